"""Where a primitive is tested: a `Domain` describes its operands and parameters, and yields samples.

Samples are deterministic, drawn from a seeded generator. An operand is described by an object with
``draw(random, dtype)``: `Numbers` by default, others where not every number is valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..core.dtypes import INT64
from ..core.values import Value
from ..runtime.records import NamedTuple

MARGIN = 1e-2
"""Distance of samples from the points to avoid."""

DTYPES: dict[str, tuple[np.dtype, ...]] = {
    kind: tuple(np.dtype(name) for name in names.split())
    for kind, names in {
        "b": "bool",
        "i": "int8 int16 int32 int64",
        "u": "uint8 uint16 uint32 uint64",
        "f": "float32 float64",
        "c": "complex64 complex128",
    }.items()
}


@dataclass(frozen=True)
class Interval:
    """Numbers from `low` to `high`, at a distance of `margin` from the points `avoid`.

    Both parts of a complex number come from ``complex_range`` (there are other edges: branch cuts), away from 0 and
    ±1. Integers come from ``integers``, as far as the dtype holds them.
    """

    low: float = -2.0
    high: float = 2.0
    avoid: tuple[float, ...] = (0.0,)
    complex_range: tuple[float, float] = (-1.6, 1.6)
    integers: tuple[int, int] = (-6, 6)
    margin: float = MARGIN

    def draw(self, random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An array of random numbers."""
        if dtype.kind == "b":
            return random.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            first, last = self.integers
            return random.integers(0 if dtype.kind == "u" and first < 0 else first, last + 1, shape).astype(
                dtype
            )
        if dtype.kind == "c":
            low, high = self.complex_range
            real, imag = (
                _apart(random.uniform(low, high, shape), (-1.0, 0.0, 1.0), self.margin) for _ in range(2)
            )
            return np.asarray(real + 1j * imag).astype(dtype)
        x = _apart(random.uniform(self.low, self.high, shape), self.avoid, self.margin)
        return np.asarray(np.clip(x, self.low, self.high)).astype(dtype)


def _apart(x: Value, points: Sequence[float], margin: float) -> Value:
    for p in points:
        x = np.where(np.abs(x - p) < margin, p + np.where(x < p, -2 * margin, 2 * margin), x)
    return x


class OperandSpec(Protocol):
    """Describes one operand. If `fixed`, it keeps its dtype and is not differentiated."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        ...

    @property
    def fixed(self) -> bool:
        """Whether it ignores the dtype under test."""
        ...

    def draw(self, random: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        """A sample; `dtype` is that under test."""
        ...


@dataclass(frozen=True)
class Numbers:
    """Numbers of the dtype under test."""

    shape: tuple[int, ...]
    interval: Interval = Interval()
    fixed = False

    def draw(self, random: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        """Random numbers of the interval."""
        return self.interval.draw(random, self.shape, dtype)


@dataclass(frozen=True)
class Distinct:
    """Numbers separated from one another, so that max and min have no ties."""

    shape: tuple[int, ...]
    fixed = False

    def draw(self, random: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        """A permutation of equally spaced numbers (of small integers, with wrapping)."""
        size = int(np.prod(self.shape))
        ranks = random.permutation(size).reshape(self.shape)
        if dtype.kind in "biu":
            return ranks.astype(dtype)
        x = 0.13 * (ranks - 0.37 * size)
        return np.asarray(
            x + 1j * random.permutation(size).reshape(self.shape) * 0.11 if dtype.kind == "c" else x
        ).astype(dtype)


@dataclass(frozen=True)
class Indices:
    """Integers from `low` to `high` - 1, with an integer dtype."""

    shape: tuple[int, ...]
    low: int
    high: int
    dtype: np.dtype = INT64
    fixed = True

    def draw(self, random: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        """Random indices, with repetitions."""
        return np.asarray(random.integers(self.low, self.high, self.shape)).astype(self.dtype)


@dataclass(frozen=True)
class Bools:
    """A condition."""

    shape: tuple[int, ...]
    fixed = True

    def draw(self, random: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        """Random booleans."""
        return np.asarray(random.integers(0, 2, self.shape)).astype(bool)


@dataclass(frozen=True)
class PositiveDefinite:
    """Symmetric (Hermitian) positive definite matrices, well conditioned."""

    shape: tuple[int, ...]
    fixed = False

    def draw(self, random: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        """``A A^H + n I``."""
        a = Interval().draw(random, self.shape, dtype)
        return (a @ np.swapaxes(a, -1, -2).conj() + self.shape[-1] * np.eye(self.shape[-1])).astype(dtype)


@dataclass(frozen=True)
class Triangular:
    """Matrices whose triangles are both well conditioned."""

    shape: tuple[int, ...]
    fixed = False

    def draw(self, random: np.random.Generator, dtype: np.dtype) -> np.ndarray:
        """Small numbers, and a diagonal of about 2."""
        return (0.3 * Interval().draw(random, self.shape, dtype) + 2 * np.eye(self.shape[-1])).astype(dtype)


class Case(NamedTuple):
    """Operands and parameters of one call; `smooth` is false where finite differences do not apply."""

    operands: tuple[OperandSpec, ...]
    params: Mapping[str, Any] = {}
    smooth: bool = True


_PAIRS = (
    ((3, 4), (3, 4)),
    ((), ()),
    ((3, 1), (1, 4)),
    ((4,), (3, 4)),
    ((3, 4), ()),
    ((0, 3), (3,)),
    ((1,), (1, 1)),
)
"""Shapes of two operands: equal, 0-d, broadcast to either side, against a number, empty, of size 1."""
_SINGLES = ((3, 4), (), (0, 3), (1,), (2, 1, 3))


@dataclass(frozen=True)
class Domain:
    """The domain of a primitive: what its tests need besides its record.

    Parameters
    ----------
    *intervals : Interval
        For an elementwise primitive, one per operand; functrans chooses the shapes.
    cases : sequence of Case
        For other primitives: operands and parameters.
    params : sequence of mapping
        Parameters of an elementwise primitive.
    kinds : str
        The dtype kinds that it accepts.
    linear : sequence of tuple of int
        The sets of operands in which it is jointly linear; the transpose rule is tested on each.
    smooth : bool
        Whether to test derivatives against finite differences.
    order : int
        Highest order of derivatives tested.
    special : bool
        Whether to test kernels with NaN, infinities, signed zeros, denormals and extreme integers.
    complex_special : {'all', 'finite', 'none'}
        The same for complex numbers; 'finite' means signed zeros, but no NaN or infinities.
    without : tuple of str
        Names of dtypes to exclude.
    rtol, atol : float
        Tolerances of kernels against NumPy in double precision; in single precision, 1e8 times as large.
    signed_zeros : str
        The dtype kinds whose zeros must have NumPy's signs.
    """

    intervals: tuple[Interval, ...] = ()
    cases: tuple[Case, ...] = ()
    params: tuple[Mapping[str, Any], ...] = ({},)
    kinds: str = "fc"
    linear: tuple[tuple[int, ...], ...] = ()
    smooth: bool = True
    order: int = 2
    special: bool = True
    complex_special: str = "all"
    without: tuple[str, ...] = ()
    rtol: float = 1e-14
    atol: float = 0.0
    signed_zeros: str = "fc"
    shapes: tuple[Any, ...] = field(default=(), repr=False)

    def all_cases(self) -> list[Case]:
        """The explicit cases; for an elementwise primitive, all shapes with all parameters."""
        if not self.intervals:
            return list(self.cases)
        count = len(self.intervals)
        cases = []
        for params in self.params:
            for shapes in self.shapes or _shapes(count):
                cases.append(Case(tuple([Numbers(s, i) for s, i in zip(shapes, self.intervals)]), params))
        return cases

    def dtypes(self) -> list[np.dtype]:
        """The dtypes that the primitive accepts."""
        return [d for kind in self.kinds for d in DTYPES[kind] if d.name not in self.without]


def _shapes(count: int) -> list[tuple[tuple[int, ...], ...]]:
    if count == 1:
        return [(s,) for s in _SINGLES]
    return [(a, *[b] * (count - 1)) for a, b in _PAIRS]
