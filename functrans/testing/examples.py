"""`check` at many points, and the smallest of those at which a law does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from itertools import islice
from time import monotonic
from typing import Any

import numpy as np

from ..api.vmap import vmap
from ..arrays.array import unwrap
from ..core import is_inexact, run_quietly
from ..core.values import Params, PyTree
from ..errors import ArgumentError, ArgumentValueError, FunctransError
from ..frontend.arguments import name_of
from ..frontend.pytree import tree_flatten, tree_unflatten
from ..runtime.module_getattr import nearest_names
from .checking import LAWS, check
from .report import LawViolation

Point = tuple[PyTree, ...]
#: How far random points are from the first, as a factor: a domain as "positive" is kept, zeros stay.
_FACTORS = 0.8, 1.25
#: Shapes beside those of the first point; and of the points in lanes, each so many-th is tested alone, too.
_SHAPES, _APART = 2, 25
#: Laws of a function that hold in each lane if they hold for all lanes.
_OF_DERIVATIVES = "jvp_is_slope", "vjp_is_slope", "vjp_is_adjoint", "hessian_is_symmetric"
#: How many smaller points are tried, and for how long.
_TRIALS, _SECONDS = 60, 15.0
#: Digits to which numbers are rounded, coarsest first.
_DIGITS = 0, 1, 2


def check_options(what: str, args: tuple[Any, ...], options: Params) -> None:
    """Raise `ArgumentError` for what are not options of `check` by name."""
    if args:
        raise ArgumentError(f"{what} takes options by name, as in order=2; got {', '.join(map(repr, args))}")
    known = [p.name for p in signature(check).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            nearest = nearest_names(name, known) or known
            raise ArgumentError(
                f"{what}: there is no option {name!r}; options are those of check: {', '.join(nearest)}"
            )


def check_examples(
    f: Callable[..., Any],
    args: Point,
    options: Params,
    examples: int = 1,
    seed: int = 0,
    float32: bool = False,
    time: float | None = None,
) -> None:
    """Test all laws at a point, and at random ones around it.

    Parameters
    ----------
    f : callable
    args : tuple
        The first point. The others have each number of it multiplied by one between 0.8 and 1.25; up to two thirds of
        them have shorter axes, if `f` takes such arguments.
    options : dict
        Those of `check`.
    examples : int
        How many points.
    seed : int
        Of points and directions.
    float32 : bool
        Whether to test each point in single precision, too.
    time : float, optional
        Seconds after which no more points are drawn.

    Raises
    ------
    LawViolation
        An `AssertionError`, for the smallest point that was found at which the same law does not hold: few elements,
        round numbers. A note shows the point.

    Notes
    -----
    All laws are tested at the first point of each dtype, and at each twenty-fifth of the others. The derivatives at the
    others are tested together, with one point in each lane of ``vmap(f)``: that takes about as long as one point. If a
    law does not hold there, the points are tested one by one.
    """
    __tracebackhide__ = True
    if examples < 1:
        raise ArgumentValueError(f"check_derivatives: examples={examples}: test at one point at least")
    options = {"rng": seed, **options}
    start = monotonic()
    for single in (False, True) if float32 else (False,):
        first = _mapped(_single, args) if single else args
        for points in _groups(f, first, examples, np.random.default_rng(seed)):
            together = len(points) > 1 and _hold_in_lanes(f, points, options)
            for point in points[::_APART] if together else points:
                if point is not args and time is not None and monotonic() - start > time:
                    return
                violation = _violation(f, point, options)
                if violation is not None:
                    raise _smallest(f, point, violation, options)


def _single(x: np.ndarray) -> np.ndarray:
    return x.astype("complex64" if x.dtype.kind == "c" else "float32")


def _groups(
    f: Callable[..., Any], first: Point, examples: int, random: np.random.Generator
) -> Iterator[list[Point]]:
    """The first point; then the others, those of equal shapes together."""
    yield [first]
    shapes = [
        first,
        *[p for p in islice(_smaller(first, rounder=False), 0, None, 2) if _takes(f, p)][:_SHAPES],
    ]
    for k, like in enumerate(shapes):
        count = len(range(k, examples - 1, len(shapes)))
        if count:
            yield [_nearby(like, random) for _ in range(count)]


def _nearby(point: Point, random: np.random.Generator) -> Point:
    return _mapped(lambda x: (x * random.uniform(*_FACTORS, x.shape)).astype(x.dtype), point)


def _takes(f: Callable[..., Any], point: Point) -> bool:
    """Whether these are arguments of the function: others have shapes that it refuses."""
    try:
        run_quietly(f, *point)
    except Exception:
        return False
    return True


def _hold_in_lanes(f: Callable[..., Any], points: list[Point], options: Params) -> bool:
    """Whether the laws of derivatives hold at all points, one in each lane; False if they cannot be tested so."""
    laws = options.get("laws", "all")
    asked = list(_OF_DERIVATIVES) if laws == "all" else [laws] if isinstance(laws, str) else list(laws)
    if "derivative" in options or not set(asked) <= set(_OF_DERIVATIVES):
        return False
    leaves, tree = tree_flatten(points[0])
    moving = [is_inexact(np.asarray(unwrap(x)).dtype) for x in leaves]
    columns = zip(*[tree_flatten(point)[0] for point in points])
    stacked = [np.stack(list(map(unwrap, xs))) if m else xs[0] for m, xs in zip(moving, columns)]
    lanes = vmap(f, in_axes=tree_unflatten(tree, [0 if m else None for m in moving]))
    try:
        return _violation(lanes, tree_unflatten(tree, stacked), {**options, "laws": asked}) is None
    except FunctransError:  # it has no lanes, or arguments that are not arrays
        return False


def _violation(f: Callable[..., Any], point: Point, options: Params) -> LawViolation | None:
    try:
        check(f, *point, **options)
    except LawViolation as violation:
        return violation
    return None


def _smallest(f: Callable[..., Any], point: Point, found: LawViolation, options: Params) -> LawViolation:
    """The violation of the same law at the smallest point that is found by going from one to a smaller one."""
    tried, start = 0, monotonic()
    options = _for_one_law(f, found, options)
    while True:
        for smaller in _smaller(point):
            tried += 1
            try:
                violation = _violation(f, smaller, options)
            except FunctransError:  # arguments of such a shape are none of this function
                violation = None
            if violation is not None and violation.law == found.law and _same_cause(violation, found):
                point, found = smaller, violation
                break
            if tried >= _TRIALS or monotonic() - start > _SECONDS:
                return _with_point(f, point, found)
        else:
            return _with_point(f, point, found)


def _for_one_law(f: Callable[..., Any], found: LawViolation, options: Params) -> Params:
    """Options for the law that was violated alone; of the function, not of its derivative, in order one."""
    if found.name not in LAWS:
        return options
    first = found.subject == name_of(f) and found.name != "hessian_is_symmetric"
    return {
        **options,
        "laws": found.name,
        "order": min(1, options.get("order", 2)) if first else options.get("order", 2),
    }


def _same_cause(a: LawViolation, b: LawViolation) -> bool:
    """Whether both have a wrong number, or an exception of the same type."""
    return type(a.__cause__) is type(b.__cause__)


def _with_point(f: Callable[..., Any], point: Point, violation: LawViolation) -> LawViolation:
    shown = ", ".join(
        np.array2string(x, separator=", ") if isinstance(x, np.ndarray) else repr(x) for x in point
    )
    violation.add_note(f"the smallest example found: {name_of(f)}({shown})")
    return violation


def _smaller(point: Point, rounder: bool = True) -> Iterator[Point]:
    """Points with shorter axes, then with rounder numbers."""
    lengths = {n for x in _arrays(point) for n in x.shape}
    for length in sorted(lengths, reverse=True):
        for n in sorted({1, 2, length // 2, length - 1}):
            if 0 < n < length:
                yield _resized(point, length, n)
    for digits in _DIGITS if rounder else ():
        rounded = _mapped(partial(_rounded, digits=digits), point)
        if any((a != b).any() for a, b in zip(_arrays(rounded), _arrays(point))):
            yield rounded


def _resized(point: Point, length: int, n: int) -> Point:
    """All axes of one length cut: operands that match go on matching."""

    def cut(x: np.ndarray) -> np.ndarray:
        return x[tuple([slice(n if size == length else None) for size in x.shape])]

    return _mapped(cut, point, every=True)


def _rounded(x: np.ndarray, digits: int) -> np.ndarray:
    """Rounded, but no number to zero, where derivatives of many functions are special."""
    near = np.round(x, digits)
    return np.where(near == 0, x, near).astype(x.dtype)


def _arrays(point: Point) -> list[np.ndarray]:
    return [np.asarray(unwrap(x)) for x in tree_flatten(point)[0]]


def _mapped(change: Callable[[np.ndarray], np.ndarray], point: Point, every: bool = False) -> Point:
    """The point with its float and complex arrays changed; with `every`, those of integers, too."""
    leaves, tree = tree_flatten(point)
    arrays = [np.array(unwrap(x)) for x in leaves]
    return tree_unflatten(
        tree, [change(x) if every or is_inexact(x.dtype) else kept for x, kept in zip(arrays, leaves)]
    )
