"""A function of pytrees at a point, as the laws use it: flat, with random directions, and a report."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..api.derivatives import jvp
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
from ..runtime.context import run_with
from .complex_step import Numerical, direction_key
from .finite_difference import is_kink, kink_beside, one_sided_slopes
from .report import LawViolation, Margin, Report

#: In how many elements of an argument a wrong gradient is looked for.
_ELEMENTS = 64
#: So many numbers stand in a line that repeats a test.
_MOST_SHOWN = 24
Wrt = int | Sequence[int] | None
CONVENTION = (
    "complex numbers: cotangents pair without conjugation, <ct, y> = Re sum(ct * y), so the gradient of a real f at "
    "x + iy is df/dx - i df/dy, as in JAX; torch and TensorFlow have its conjugate"
)
CONJUGATED = f"the conjugate of the gradient would be right. {CONVENTION}"


class Shared:
    """What the laws of one `check` know of a function at a point, so that each is computed once.

    Parameters
    ----------
    f, args, rng, wrt
        As for `Setting`.
    """

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], rng: int, wrt: Wrt):
        self._of = f, args, rng, wrt
        self.names: list[str] | None = None
        self.numerical: Numerical | None = None
        self.pushed: dict[Any, tuple[Any, Any]] = {}

    def is_of(self, f: Callable[..., Any], args: tuple[Any, ...], rng: int, wrt: Wrt) -> bool:
        """Whether this is the function at this point."""
        g, others, seed, active = self._of
        return (
            f is g
            and (rng, wrt) == (seed, active)
            and len(args) == len(others)
            and all(map(operator.is_, args, others))
        )


_SHARED: ContextVar[Shared | None] = ContextVar("shared", default=None)


def sharing(
    f: Callable[..., Any], args: tuple[Any, ...], rng: int, wrt: Wrt, call: Callable[[], None]
) -> None:
    """``call()``, in which the laws of `f` at a point share what they know."""
    run_with(_SHARED, Shared(f, args, rng, wrt), call)


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
        known = _SHARED.get()
        self._known = known if known and known.is_of(f, args, rng, wrt) else Shared(f, args, rng, wrt)
        if self._known.names is None:
            parameters = Parameters(f)
            self._known.names = [parameters.place(path[0].idx) + keystr(path[1:]) for path, _ in pairs]
        self.names = self._known.names
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
        self._seed, self.random = rng, np.random.default_rng(rng)
        self._smooth: list[int] | None = None

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
        return self.numerical.values

    def objective(self, weights: Sequence[np.ndarray]) -> Callable[..., Any]:
        """The real scalar ``Re sum(w * output)`` of the active leaves."""

        def scalar(*primals: Value) -> Value:
            parts = [fnp.sum(y * w) for y, w in zip(self.smooth(*primals), weights)]
            total = sum(parts[1:], start=parts[0])
            return fnp.real(total) if np.dtype(total.dtype).kind == "c" else total

        return scalar

    # --- numerical derivatives ------------------------------------------------------------------------------

    @property
    def numerical(self) -> Numerical:
        """`smooth` by its values alone."""
        if self._known.numerical is None:
            self._known.numerical = Numerical(self.smooth, self.primals)
        return self._known.numerical

    def slopes(self, v: Sequence[np.ndarray | None]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The slopes of the outputs in a direction, and estimates of their errors."""
        return self.numerical.slopes(v)

    def pushed(self, v: Sequence[np.ndarray | None]) -> tuple[Any, Any]:
        """The outputs, and their tangents in a direction by forward mode."""
        key = direction_key(v)
        if key not in self._known.pushed:
            self._known.pushed[key] = jvp(self.smooth, tuple(self.primals), tuple(v))
        return self._known.pushed[key]

    def kink(self, v: Sequence[np.ndarray | None]) -> str | None:
        """What there is to say if the point has a kink in a direction: the slopes to either side."""
        if self.numerical.steps.smooth and all(np.isfinite(y).all() for y in self.values):
            return None
        if not kink_beside(
            self.numerical.evaluate, self.primals, v, self.values
        ) or self._is_smooth_in_double(v):
            return None
        text = "the point is non-differentiable (kink), or next to such a point: slopes on either side differ"
        below, above = one_sided_slopes(self.numerical.evaluate, self.primals, v)
        gaps = [np.where(np.isfinite(gap := np.abs(a - b)), gap, np.inf) for a, b in zip(above, below)]
        k = max(range(len(gaps)), key=lambda n: gaps[n].max(initial=-1))
        if gaps[k].size:
            index = tuple(int(i) for i in np.unravel_index(int(gaps[k].argmax()), gaps[k].shape))
            text += f", {below[k][index] + 0.0:.6g} and {above[k][index] + 0.0:.6g} for index {index} of output {k}"
        return f"{text}. Choose another point; numerical derivatives are meaningless here"

    def _is_smooth_in_double(self, v: Sequence[np.ndarray | None]) -> bool:
        """Whether there is no kink in double precision: the wide steps of narrow numbers meet curvature, too."""
        try:
            wide = [x.astype(np.result_type(x.dtype, np.float64)) for x in self.primals]
            return any(a.dtype != x.dtype for a, x in zip(wide, self.primals)) and not is_kink(
                self.evaluate, wide, v
            )
        except Exception:  # the function takes narrow numbers alone
            return False

    @contextmanager
    def kinks_told(self, where: str, v: Sequence[np.ndarray | None]) -> Iterator[None]:
        """A block that compares with slopes in a direction: if they differ, a kink is reported as what it is."""
        try:
            yield
        except LawViolation as violation:
            if violation.__cause__ is None and (text := self.kink(v)) is not None:
                self.report.fail(where, text)
            raise

    def argument_hint(self, v: Sequence[np.ndarray | None], output: int) -> str:
        """What to say of wrong tangents in a direction: the argument that alone makes most of the error."""
        moving = [k for k, d in enumerate(v) if d is not None]
        worst, text = 0.0, ""
        for k in moving if len(moving) > 1 else ():
            alone = [d if n == k else np.zeros_like(x) for n, (d, x) in enumerate(zip(v, self.primals))]
            numeric, estimated = (part[output] for part in self.slopes(alone))
            analytic = np.asarray(self.pushed(alone)[1][output])
            gap = np.nan_to_num(np.abs(analytic - numeric) - 10 * estimated, nan=0.0, posinf=0.0, neginf=0.0)
            if gap.max(initial=0.0) > worst:
                worst, index = float(gap.max()), np.unravel_index(int(gap.argmax()), gap.shape)
                text = (
                    f"most by {self.names[self.active[k]]}: jvp gives {analytic[index]:.9g} there, finite differences "
                    f"{numeric[index]:.9g}, with an estimated error of {estimated[index]:.1g}"
                )
        return text

    def element_hint(self, weights: Sequence[np.ndarray], gradients: Sequence[Any]) -> str:
        """What to say of gradients that are wrong: the argument and the element that differ most from slopes."""
        worst, text = 0.0, ""
        for k, (i, x) in enumerate(zip(self.active, self.primals)):
            for index in itertools.islice(np.ndindex(x.shape), _ELEMENTS):
                unit = np.zeros_like(x)
                unit[index] = 1
                slopes, errors = self.slopes([unit if n == k else None for n in range(len(self.primals))])
                numeric = pairing(slopes, weights)[0]
                error = sum(float(np.sum(e * np.abs(w))) for e, w in zip(errors, weights))
                analytic = float(np.real(np.asarray(gradients[k])[index]))
                if np.isfinite(error) and abs(analytic - numeric) - 10 * error > worst:
                    worst = abs(analytic - numeric) - 10 * error
                    text = (
                        f"most in {self.names[i]}, element {index}: the gradient is {analytic:.9g}, finite differences "
                        f"give {numeric:.9g}, with an estimated error of {error:.1g}"
                    )
        return text

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
        random = np.random.default_rng((self._seed, 1))  # so that they are the same for all laws
        every = [normal(random, x.shape, x.dtype) for x in self.primals]
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

    def again() -> str:
        return f"functrans.testing.{law}({name}, {_literals(args)}, rng={rng}{suffix})"

    report = Report(title, name, again, rng, law)
    setting = Setting(report, f, args, rng, wrt)  # wrong arguments do not violate a law
    with report.chained(), config.patch(specialize_below=2):
        yield setting


class _LeafSource(str):
    """Source of a leaf, which shows as such in the text of its tree."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _literals(args: tuple[PyTree, ...]) -> str:
    """The arguments as source, if they are few finite numbers; else ``*args``."""
    leaves, treedef = tree_flatten(args)
    arrays = [np.asarray(unwrap(x)) for x in leaves]
    if sum(x.size for x in arrays) > _MOST_SHOWN or not all(np.isfinite(x).all() for x in arrays):
        return "*args"
    texts = [
        repr(x) if type(x) in (bool, int, float, complex) else _source(a) for x, a in zip(leaves, arrays)
    ]
    return ", ".join(map(repr, tree_unflatten(treedef, map(_LeafSource, texts))))


def _source(x: np.ndarray) -> str:
    same = np.array(x.tolist()).dtype == x.dtype
    return f"np.array({x.tolist()!r}{'' if same else f', {x.dtype.name!r}'})"


def copied(tree: PyTree) -> Any:
    """The tree with writable copies of its arrays."""
    leaves, treedef = tree_flatten(tree)
    return tree_unflatten(treedef, [np.array(unwrap(x)) if isinstance(x, np.ndarray) else x for x in leaves])
