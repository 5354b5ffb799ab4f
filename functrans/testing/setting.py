"""A function of pytrees at a point, as the laws use it: flat, with random directions, and a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..arrays.arguments import Parameters
from ..arrays.array import unwrap, wrap
from ..core import (
    ArgumentError,
    ArgumentValueError,
    aval_of,
    check_supported,
    finfo,
    is_inexact,
    is_low,
    run_quietly,
)
from ..core.values import PyTree, Value
from ..frontend.arguments import name_of
from ..frontend.pytree import tree_flatten, tree_flatten_with_path, tree_leaves, tree_unflatten
from ..frontend.pytree.nodes import keystr
from ..primitives.operands import plain
from ..runtime.config import config
from .complex_step import Steps, known_steps, slopes_of
from .finite_difference import is_kink, one_sided_slopes
from .report import LawViolation, Margin, Report

Wrt = int | Sequence[int] | None
CONVENTION = (
    "complex numbers: cotangents pair without conjugation, <ct, y> = Re sum(ct * y), so the gradient of a real f at "
    "x + iy is df/dx - i df/dy, as in JAX; torch and TensorFlow have its conjugate"
)
CONJUGATED = f"the conjugate of the gradient would be right. {CONVENTION}"


class Setting:
    """A function at a point.

    Parameters
    ----------
    report : Report
    f : callable
        A function of pytrees of arrays.
    args : tuple
        Its arguments at the point.
    rng : int
        Seed of the random directions.
    wrt : int, sequence of int or None
        Positions of the arguments to differentiate; None for all float and complex leaves.

    Attributes
    ----------
    leaves : list of ndarray
        All leaves of the arguments.
    active : list of int
        Indices of the leaves that are differentiated.
    primals : list of ndarray
        The active leaves.
    """

    def __init__(self, report: Report, f: Callable[..., Any], args: tuple[Any, ...], rng: int, wrt: Wrt):
        self.report = report
        self.f = f
        pairs, self._treedef = tree_flatten_with_path(args)
        self.given = [x for _, x in pairs]
        parameters = Parameters(f)
        self.names = [parameters.place(path[0].idx) + keystr(path[1:]) for path, _ in pairs]
        self.leaves = [
            _copied(x, f"{self.report.subject}: {name}") for x, name in zip(self.given, self.names)
        ]
        chosen = _positions(wrt, len(args))
        self.active = [
            i
            for i, (path, _) in enumerate(pairs)
            if is_inexact(self.leaves[i].dtype) and (chosen is None or path[0].idx in chosen)
        ]
        if chosen is not None and not self.active:
            raise ArgumentError(f"wrt={wrt}: these arguments have no float or complex leaf to differentiate")
        self.primals = [self.leaves[i] for i in self.active]
        if rng < 0:
            raise ArgumentValueError(f"rng={rng}: a seed must not be negative")
        self.random = np.random.default_rng(rng)
        self._smooth: list[int] | None = None
        self._steps: Steps | None = None
        self._values: list[np.ndarray] | None = None

    # --- the function ---------------------------------------------------------------------------------------

    def flat(self, *leaves: PyTree) -> tuple[Any, ...]:
        """All output leaves for all input leaves."""
        values = [wrap(x) if isinstance(x, np.ndarray | np.generic) else x for x in leaves]
        return tuple(tree_leaves(self.f(*tree_unflatten(self._treedef, values))))

    def smooth(self, *primals: PyTree) -> tuple[Value, ...]:
        """The float and complex outputs for the active leaves, the others fixed."""
        leaves: list[Any] = list(self.leaves)
        for i, x in zip(self.active, primals):
            leaves[i] = x
        outs = self.flat(*leaves)
        if self._smooth is None:
            self._smooth = [i for i, y in enumerate(outs) if is_inexact(aval_of(unwrap(y)).dtype)]
        return tuple([outs[i] for i in self._smooth])

    def evaluate(self, primals: Sequence[PyTree]) -> list[np.ndarray]:
        """`smooth` as a function of lists, for finite differences."""
        return [np.asarray(unwrap(y)) for y in run_quietly(self.smooth, *primals)]

    @property
    def values(self) -> list[np.ndarray]:
        """The outputs at the point, evaluated once."""
        if self._values is None:
            self._values = self.evaluate(self.primals)
        return self._values

    def objective(self, weights: Sequence[np.ndarray]) -> Callable[..., Any]:
        """The real scalar ``Re sum(w * output)`` of the active leaves."""

        def scalar(*primals: Value) -> Value:
            parts = [fnp.sum(y * w) for y, w in zip(self.smooth(*primals), weights)]
            total = sum(parts[1:], start=parts[0])
            return fnp.real(total) if np.dtype(total.dtype).kind == "c" else total

        return scalar

    # --- numerical derivatives ------------------------------------------------------------------------------

    @property
    def steps(self) -> Steps:
        """Whether complex steps apply to the function, and whether it has no kinks."""
        if self._steps is None:
            real = all(y.dtype.kind == "f" for y in self.values)
            fixed = [x for i, x in enumerate(self.leaves) if i not in self.active]
            self._steps = (
                known_steps(self.f, self.smooth, self.primals, fixed) if real else Steps(False, False)
            )
        return self._steps

    def slopes(self, v: Sequence[np.ndarray | None]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The slopes of the outputs in a direction, and estimates of their errors."""
        return slopes_of(self.smooth, self.primals, v, self.steps, self.values)

    def kink(self, v: Sequence[np.ndarray | None]) -> str | None:
        """What there is to say if the point has a kink in a direction: the slopes to either side."""
        if self.steps.smooth and all(np.isfinite(y).all() for y in self.values):
            return None
        if not is_kink(self.evaluate, self.primals, v):
            return None
        text = "the point is non-differentiable (kink), or next to such a point: slopes on either side differ"
        below, above = one_sided_slopes(self.evaluate, self.primals, v)
        gaps = [np.where(np.isfinite(gap := np.abs(a - b)), gap, np.inf) for a, b in zip(above, below)]
        k = max(range(len(gaps)), key=lambda n: gaps[n].max(initial=-1))
        if gaps[k].size:
            index = tuple(int(i) for i in np.unravel_index(int(gaps[k].argmax()), gaps[k].shape))
            text += f", {below[k][index] + 0.0:.6g} and {above[k][index] + 0.0:.6g} for index {index} of output {k}"
        return f"{text}. Choose another point; numerical derivatives are meaningless here"

    @contextmanager
    def kinks_told(self, where: str, v: Sequence[np.ndarray | None]) -> Iterator[None]:
        """A block that compares with slopes in a direction: if they differ, a kink is reported as what it is."""
        try:
            yield
        except LawViolation as violation:
            if violation.__cause__ is None and (text := self.kink(v)) is not None:
                self.report.fail(where, text)
            raise

    def conjugate_hint(self, expected: float, v: Sequence[np.ndarray], gradients: Sequence[Any]) -> str:
        """What to say of complex gradients that disagree with the slope `expected` in direction `v`."""
        if not any(x.dtype.kind == "c" for x in self.primals):
            return ""
        conjugates, size = pairing(v, [np.conj(np.asarray(g)) for g in gradients])
        return CONJUGATED if abs(conjugates - expected) <= 1e-5 * max(size, abs(expected)) else CONVENTION

    # --- directions -----------------------------------------------------------------------------------------

    def like(self, values: Sequence[PyTree]) -> list[np.ndarray]:
        """Normal random numbers with the shapes and dtypes of `values`."""
        return [normal(self.random, np.shape(x), np.asarray(x).dtype) for x in values]

    def directions(self) -> Iterator[tuple[str, list[np.ndarray | None]]]:
        """A direction in all active leaves, then in each one only (the others have no tangent)."""
        every = self.like(self.primals)
        yield "all arguments" if len(every) > 1 else self.names[self.active[0]], list(every)
        if len(every) > 1:
            for k, i in enumerate(self.active):
                yield f"{self.names[i]} alone", [v if n == k else None for n, v in enumerate(every)]

    def at_least(self, tolerance: float) -> float:
        """The tolerance, or 16 units in the last place if an input or output is float16 or bfloat16."""
        return max([tolerance, *[16 * float(finfo(d).eps) for d in self._dtypes() if is_low(d)]])

    def _dtypes(self) -> list[np.dtype]:
        return [x.dtype for x in self.primals] + [y.dtype for y in self.values]

    def tolerance(
        self, rtol: float | None, atol: float | None, double: float, single: float = 1e-3
    ) -> Margin:
        """`rtol` and `atol`; by default `double`, or `single` if an input or output has single precision (see also
        `at_least`).
        """
        if rtol is None or atol is None:
            narrow = any(d in (np.float32, np.complex64) for d in self._dtypes())
            double = self.at_least(single if narrow else double)
        return Margin(double if rtol is None else rtol, double if atol is None else atol)

    @staticmethod
    def scaled(tolerance: Margin, size: Any) -> Margin:
        """The tolerance for numbers of a size below one, whose errors count from a thousandth of it on."""
        largest = np.max(np.where(np.isfinite(size), np.abs(size), 1.0), initial=0.0)
        return tolerance._replace(atol=tolerance.atol * float(np.clip(largest, 1e-3, 1.0)))


def _copied(x: Value, where: str) -> np.ndarray:
    """A copy of an array or number passed to `f`.

    Raises
    ------
    ArgumentError, UnsupportedDtypeError
        If it is not an array of numbers.
    """
    copy = np.array(plain(unwrap(x), where))
    check_supported(copy.dtype, where)
    return copy


def normal(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Normal random numbers of a float or complex dtype."""
    x = random.standard_normal(shape)
    if dtype.kind == "c":
        x = x + 1j * random.standard_normal(shape)
    return np.asarray(x).astype(dtype)


def pairing(xs: Sequence[PyTree], ys: Sequence[PyTree]) -> tuple[float, float]:
    """``Re sum(x * y)`` without conjugation, and the same sum of absolute values (the scale of rounding errors)."""
    wide = [(np.asarray(x).astype(complex), np.asarray(y).astype(complex)) for x, y in zip(xs, ys)]
    total = sum(float(np.sum(x * y).real) for x, y in wide)
    return total, sum(float(np.sum(np.abs(x * y))) for x, y in wide)


def _positions(wrt: Wrt, count: int) -> set[int] | None:
    if wrt is None:
        return None
    positions = {wrt} if isinstance(wrt, int) else set(wrt)
    if not all(-count <= i < count for i in positions):
        raise ArgumentError(
            f"wrt={wrt}: the function has {count} arguments, so positions run from 0 to {count - 1}"
        )
    return {i % count for i in positions}


@contextmanager
def proving(
    title: str, law: str, f: Callable[..., Any], args: tuple[PyTree, ...], rng: int, wrt: Wrt = None
) -> Iterator[Setting]:
    """The setting of one law. Exceptions are chained; sizes are run-time parameters of kernels as far as possible."""
    name = name_of(f)
    suffix = "" if wrt is None else f", wrt={wrt}"
    report = Report(title, name, f"functrans.testing.{law}({name}, *args, rng={rng}{suffix})", rng, law)
    setting = Setting(report, f, args, rng, wrt)  # wrong arguments do not violate a law
    with report.chained(), config.patch(specialize_below=2):
        yield setting


def copied(tree: PyTree) -> Any:
    """The tree with writable copies of its arrays."""
    leaves, treedef = tree_flatten(tree)
    return tree_unflatten(treedef, [np.array(unwrap(x)) if isinstance(x, np.ndarray) else x for x in leaves])
