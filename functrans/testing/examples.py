"""`check` at many points, and the smallest of those at which a law does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from time import monotonic
from typing import Any

import numpy as np

from ..arrays.array import unwrap
from ..core import is_inexact
from ..core.values import Params, PyTree
from ..errors import ArgumentValueError, FunctransError
from ..frontend.arguments import name_of
from ..frontend.pytree import tree_flatten, tree_unflatten
from .checking import LAWS, check
from .report import LawViolation

Point = tuple[PyTree, ...]
#: How far random points are from the first, as a factor: a domain as "positive" is kept, zeros stay.
_FACTORS = 0.8, 1.25
#: How many smaller points are tried, and for how long.
_TRIALS, _SECONDS = 60, 15.0
#: Digits to which numbers are rounded, coarsest first.
_DIGITS = 0, 1, 2


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
        The first point. The others have each number of it multiplied by one between 0.8 and 1.25.
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
    """
    __tracebackhide__ = True
    if examples < 1:
        raise ArgumentValueError(f"check_derivatives: examples={examples}: test at one point at least")
    options = {"rng": seed, **options}
    start = monotonic()
    for i, point in enumerate(islice(_points(args, seed, float32), examples * (1 + float32))):
        if i and time is not None and monotonic() - start > time:
            return
        violation = _violation(f, point, options)
        if violation is not None:
            raise _smallest(f, point, violation, options)


def _points(args: Point, seed: int, float32: bool) -> Iterator[Point]:
    random = np.random.default_rng(seed)
    point = args
    while True:
        yield point
        if float32:
            yield _mapped(lambda x: x.astype("complex64" if x.dtype.kind == "c" else "float32"), point)
        point = _mapped(lambda x: (x * random.uniform(*_FACTORS, x.shape)).astype(x.dtype), args)


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


def _smaller(point: Point) -> Iterator[Point]:
    """Points with shorter axes, then with rounder numbers."""
    lengths = {n for x in _arrays(point) for n in x.shape}
    for length in sorted(lengths, reverse=True):
        for n in sorted({1, 2, length // 2, length - 1}):
            if 0 < n < length:
                yield _resized(point, length, n)
    for digits in _DIGITS:
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
