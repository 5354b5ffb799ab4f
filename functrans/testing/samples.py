"""Samples of a domain: the numbers on which the rules of a primitive are tested."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from ..core import dtype_kind, finfo, is_float, is_inexact
from ..runtime.records import NamedTuple
from .domain import Case, Domain, Interval


class Sample(NamedTuple):
    """A case with numbers of one dtype."""

    case: Case
    dtype: np.dtype
    operands: list[np.ndarray]

    def describe(self) -> str:
        """Types of operands, and parameters."""
        shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in self.operands)
        params = ", ".join(f"{k}={v}" for k, v in self.case.params.items())
        return f"operands {shapes}" + (f", {params}" if params else "")


def samples(domain: Domain, rng: int, kinds: str, *, all_dtypes: bool = True) -> list[Sample]:
    """Every case in the widest dtype of each kind; the first case in every dtype."""
    random = np.random.default_rng(rng)
    widest = [np.dtype(name) for name in ("bool", "int64", "float64", "complex128")]
    results = []
    for n, case in enumerate(domain.all_cases()):
        # Without operands of the dtype under test, any dtype works.
        for dtype in domain.dtypes() or widest[:1]:
            if dtype_kind(dtype) in kinds and (dtype in widest or (n == 0 and all_dtypes)):
                results.append(Sample(case, dtype, [o.draw(random, dtype) for o in case.operands]))
    return results


def special_samples(domain: Domain, rng: int) -> list[Sample]:
    """For each dtype, every combination of special numbers, as long vectors; and floats of every magnitude."""
    random = np.random.default_rng(rng)
    results = []
    for params, dtype in itertools.product(domain.params, domain.dtypes()):
        if dtype.kind == "c" and domain.complex_special == "none":
            continue
        finite = domain.complex_special == "finite"
        numbers = [special_numbers(dtype, interval, finite) for interval in domain.intervals]
        grids = [g.ravel() for g in np.meshgrid(*numbers, indexing="ij")]
        if is_float(dtype):
            grids = [np.concatenate([g, _of_every_magnitude(random, dtype)]) for g in grids]
        results.append(Sample(Case((), params), dtype, grids))
    return results


def _of_every_magnitude(random: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    """Numbers from the smallest to the largest of the dtype, and common ones; enough for vector loops and rests."""
    limit = -float(np.log2(finfo(dtype).tiny))
    size = np.concatenate([random.uniform(-limit, limit, 101), random.uniform(-6.0, 6.0, 200)])
    return (np.exp2(size) * random.choice([-1.0, 1.0], size.shape)).astype(dtype)


def sprinkled_samples(tried: Sequence[Sample], domain: Domain, rng: int) -> list[Sample]:
    """The same samples with some special numbers."""
    random = np.random.default_rng(rng)
    results = []
    for s in tried:
        if is_float(s.dtype) or (s.dtype.kind == "c" and domain.complex_special != "none"):
            finite = s.dtype.kind == "c" and domain.complex_special == "finite"
            operands = [_sprinkled(x, random, finite) for x in s.operands]
            results.append(Sample(s.case, s.dtype, operands))
    return results


# --- special numbers ----------------------------------------------------------------------------------------------

_SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.inf, -np.inf, np.nan)


def _sprinkled(x: np.ndarray, random: np.random.Generator, finite: bool = False) -> np.ndarray:
    """`x` with a third of its elements replaced by corner cases of its dtype (NaN, infinity, zeros, a denormal)."""
    if not is_inexact(x.dtype):
        return x
    real = x.real.dtype
    numbers = [0.0, -0.0, finfo(real).smallest_subnormal, *(() if finite else (np.inf, np.nan))]
    chosen = random.choice(np.array(numbers, real), x.shape)
    return np.where(random.random(x.shape) < 0.3, chosen, x).astype(x.dtype)


def special_numbers(dtype: np.dtype, interval: Interval, finite: bool = False) -> np.ndarray:
    """The corner cases of a dtype: NaN, infinities, zeros of both signs, denormals, the largest; extreme integers.

    Integers stay within the interval if it is not the default. With `finite`, complex numbers exclude NaN and
    infinities.
    """
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        low, high = interval.integers
        least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        if (low, high) == Interval.integers:
            return np.array([least, least + 1, 0, 1, 2, 3, most - 1, most, -1 if least else 5], dtype)
        return np.arange(max(low, least), min(high, most) + 1).astype(dtype)
    real = dtype.type(0).real.dtype
    if is_float(dtype):
        tiny, denormal = finfo(real).tiny, np.finfo(real).smallest_subnormal
        corners = [*_SPECIAL_FLOATS, tiny, -tiny, denormal, -denormal, finfo(real).max]
        return np.array(corners, real)
    parts = np.array([0.0, -0.0, 1.5, -2.0, *(() if finite else (np.inf, -np.inf, np.nan))], real)
    out = np.empty((parts.size, parts.size), dtype)
    out.real, out.imag = parts[:, None], parts
    return out.ravel()


# --- layouts ------------------------------------------------------------------------------------------------------


def _strided(x: np.ndarray) -> np.ndarray:
    """Every second element of a larger array."""
    larger = np.zeros(tuple(2 * n + 1 for n in x.shape), x.dtype)
    out = larger[(slice(1, None, 2),) * x.ndim] if x.ndim else larger
    out[...] = x
    return out


def _reversed(x: np.ndarray) -> np.ndarray:
    every = (slice(None, None, -1),) * x.ndim
    return np.ascontiguousarray(x[every])[every] if x.ndim else x


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": lambda x: x,
    "strided": _strided,
    "reversed": _reversed,
    "Fortran-ordered": lambda x: np.array(x, order="F"),
}
