"""A line search for the strong Wolfe conditions, as one native loop.

J. Nocedal & S. J. Wright: Numerical Optimization, 2nd ed. 2006, section 3.5. Near the minimum, where values differ by
rounding only, slopes decide: W. W. Hager & H. Zhang, SIAM J. Optim. 16, 170-192, 2005, section 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import lax
from ... import numpy as fnp
from ...core.values import ArrayLike, Value
from ...runtime.records import NamedTuple

_DECREASE, _CURVATURE = 1e-4, 0.9
_NOISE = 16  # rounding errors of a value, in units of the last place
_CLOSEST = 0.1  # how close a trial comes to the ends of its bracket


class Point(NamedTuple):
    """A point of the line: the length of the step, the value and the slope there, and the gradient, shape (n,)."""

    a: ArrayLike
    value: Any
    slope: Any
    gradient: Any


class _Search(NamedTuple):
    """The state: the best point so far, the other end of the bracket once there is one, and the next trial."""

    count: Any
    best: Point
    other: Point
    bracketed: Any
    done: Any
    a: ArrayLike


def line_search(
    fun: Callable[[Any], tuple[Any, Any]],
    x: ArrayLike,
    direction: Any,
    start: Point,
    a: ArrayLike,
    maxiter: int,
) -> tuple[Point, Any]:
    """A point on the line at which the function is lower, and flatter, than at the start.

    Parameters
    ----------
    fun : callable
        ``fun(x) -> value, gradient``.
    x, direction : vectors, shape (n,)
    start : Point
        That at `x`; its slope is negative.
    a : float
        The first step to try.
    maxiter : int
        The maximum number of trials.

    Returns
    -------
    point : Point
        The best one so far if `maxiter` trials were not enough. `start` if none was lower.
    count : int
        The number of evaluations.
    """
    noise = _NOISE * fnp.finfo(x.dtype).eps * fnp.abs(start.value)

    def missing(s: _Search) -> Value:
        return ~s.done & (s.count < maxiter)

    def body(s: _Search) -> _Search:
        value, gradient = fun(x + s.a * direction)
        trial = Point(s.a, value, fnp.vdot(gradient, direction), gradient)
        lower = value <= start.value + _DECREASE * s.a * start.slope
        flatter = (value <= start.value + noise) & (trial.slope <= (2 * _DECREASE - 1) * start.slope)
        good = (lower | flatter) & (value <= s.best.value + noise)  # not where it is NaN
        ahead = fnp.where(s.bracketed, trial.slope * (s.other.a - s.best.a), trial.slope)
        turned = good & (ahead >= 0)
        other = _choose(turned, s.best, _choose(good, s.other, trial))
        best = _choose(good, trial, s.best)
        bracketed = s.bracketed | ~good | turned
        done = good & (fnp.abs(trial.slope) <= -_CURVATURE * start.slope)
        return _Search(s.count + 1, best, other, bracketed, done, _next(best, other, bracketed))

    first = _Search(fnp.asarray(0), start, start, fnp.asarray(False), fnp.asarray(False), a)
    last = lax.while_loop(missing, body, first)
    return last.best, last.count


def _next(best: Point, other: Point, bracketed: Any) -> Value:
    """The next step to try: twice the best one, or within the bracket where a cubic through its ends is least."""
    width = fnp.where(bracketed, other.a - best.a, 1.0)
    c = best.slope + other.slope - 3 * (other.value - best.value) / width
    square = c * c - best.slope * other.slope
    root = fnp.sign(width) * fnp.sqrt(fnp.maximum(square, 0))
    bottom = other.slope - best.slope + 2 * root
    part = 1 - (other.slope + root - c) / fnp.where(bottom == 0, 1.0, bottom)
    usable = (square >= 0) & (bottom != 0) & fnp.isfinite(part)
    part = fnp.where(usable, fnp.clip(part, _CLOSEST, 1 - _CLOSEST), 0.5)
    return fnp.where(bracketed, best.a + part * width, 2 * best.a)


def _choose(condition: Value, new: Point, old: Point) -> Point:
    return Point(*[fnp.where(condition, x, y) for x, y in zip(new, old)])
