"""Dormand-Prince steps of adaptive size, as one native loop.

A step computes solutions of order 5 and 4 from seven slopes. Their difference estimates the error, which decides
whether the step is accepted, and the size of the next one. The last slope is the first one of the next step. Between
the ends of a step, a polynomial of degree 4 gives the solution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as fnp
from ..core.values import ArrayLike, PyTree
from ..runtime.records import NamedTuple

Slope = Callable[[Any, Any], Any]

# J. R. Dormand & P. J. Prince: A family of embedded Runge-Kutta formulae. J. Comp. Appl. Math. 6, 19-26, 1980, table 2.
_NODES = np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_WEIGHTS = np.zeros((7, 7))
for _row, _entries in enumerate((
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)):  # fmt: skip
    _WEIGHTS[_row + 1, : len(_entries)] = _entries
_FOURTH_ORDER = np.array([5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40])
_ERROR = _WEIGHTS[6] - _FOURTH_ORDER
# L. F. Shampine: Some practical Runge-Kutta formulas. Math. Comp. 46, 135-150, 1986: the solution in the middle.
_MIDDLE = np.array([
    6025192743 / 30085553152, 0, 51252292925 / 65400821598, -2691868925 / 45128329728, 187940372067 / 1594534317056,
    -1776094331 / 19743644256, 11237099 / 235043384,
]) / 2  # fmt: skip
_ORDER = 5
_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 10.0
_TINY = 1e-9  # an error so small that the step grows by the largest factor


class Tolerances(NamedTuple):
    """Numbers that bound the steps, as in `odeint`."""

    rtol: ArrayLike
    atol: ArrayLike
    mxstep: Any
    hmax: Any

    def scale(self, size: ArrayLike) -> PyTree:
        """The error that is allowed for values of this size."""
        return self.atol.astype(size.dtype) + self.rtol.astype(size.dtype) * size


class Step(NamedTuple):
    """The state of the loop: where it stands, and the last accepted step.

    Attributes
    ----------
    count : int
        The steps since the last output, rejected ones included.
    t, y, slope : number, vectors of shape (n,)
        The time, the solution, and its slope.
    h : float
        The size of the next step, positive.
    t0, y0, slope0 : number, vectors of shape (n,)
        The same at the start of the last step.
    middle : vector, shape (n,)
        The solution in the middle of the last step.
    """

    count: Any
    t: ArrayLike
    y: ArrayLike
    slope: Any
    h: Any
    t0: Any
    y0: ArrayLike
    slope0: Any
    middle: Any


def integrate(slope: Slope, y0: ArrayLike, times: ArrayLike, options: Tolerances, unroll: bool) -> PyTree:
    """The solution at all times, NaN at those that were not reached.

    Parameters
    ----------
    slope : callable
        ``slope(t, y)`` for a number and a vector.
    y0 : vector, shape (n,)
        Float or complex.
    times : vector, shape (m,)
        Ascending or descending.
    options : Tolerances
    unroll : bool
        Whether to write the seven slopes one by one: quicker to run, slower to compile.

    Returns
    -------
    vector, shape (m, n)

    Notes
    -----
    The sizes of the steps are constants for derivatives, which so are those of the steps that were taken.
    """
    if not y0.size:
        return fnp.zeros((times.shape[0], 0), y0.dtype)
    start = times[0]
    sign = fnp.where(times[-1] < start, -1.0, 1.0).astype(times.dtype)
    end = sign * lax.stop_gradient(times[-1])
    hmax = options.hmax.astype(times.dtype)

    def body(s: Step) -> Step:
        h = fnp.minimum(s.h, end - lax.stop_gradient(sign * s.t))
        y, after, error, middle = _slopes(slope, s.t, s.y, s.slope, sign * h, unroll)
        ratio = lax.stop_gradient(_rms(error / options.scale(fnp.maximum(fnp.abs(s.y), fnp.abs(y)))))
        good = ratio <= 1
        least = fnp.where(ratio < 1, 1.0, _SHRINK).astype(h.dtype)
        factor = fnp.clip(_SAFETY * fnp.maximum(ratio, _TINY).astype(h.dtype) ** (-1 / _ORDER), least, _GROW)
        following = fnp.minimum(h * factor, hmax)
        taken = Step(s.count + 1, s.t + sign * h, y, after, following, s.t, s.y, s.slope, middle)
        rejected = s._replace(count=s.count + 1, h=following)
        return Step(*[fnp.where(good, new, old) for new, old in zip(taken, rejected)])

    def reach(s: Step, target: ArrayLike) -> tuple[Step, Any]:
        def missing(s: Step) -> PyTree:
            return (sign * s.t < sign * target) & (s.count < options.mxstep) & (s.h > 0)

        s = lax.while_loop(missing, body, s._replace(count=fnp.asarray(0)))
        reached = (sign * s.t >= sign * target) & (sign * target >= sign * s.t0)
        return s, fnp.where(reached, _between(s, target), np.nan)

    slope0 = slope(start, y0)
    h = fnp.minimum(lax.stop_gradient(_first_step(slope, start, y0, slope0, sign, options)), hmax)
    first = Step(fnp.asarray(0), start, y0, slope0, h, start, y0, slope0, y0)
    return fnp.concatenate([y0[None], lax.scan(reach, first, times[1:])[1]])


def _slopes(
    slope: Slope, t: ArrayLike, y: ArrayLike, first: ArrayLike, h: ArrayLike, unroll: bool
) -> tuple[Any, Any, Any, Any]:
    """The solution after a step, its slope there, the error, and the solution in the middle."""
    real = y.real.dtype
    size = h.astype(real)
    if unroll:
        slopes = [first]
        for node, weights in zip(_NODES[1:].tolist(), _WEIGHTS[1:]):
            after = y + size * _sum(weights, slopes)
            slopes.append(slope(t + node * h, after))
        return after, slopes[-1], size * _sum(_ERROR, slopes), y + size * _sum(_MIDDLE, slopes)

    def stage(k: ArrayLike, row: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        i, node, weights = row
        after = y + size * (weights @ k)
        return k.at[i].set(slope(t + node.astype(h.dtype) * h, after)), after

    k = fnp.concatenate([first[None], fnp.zeros((6, *y.shape), y.dtype)])
    rows = np.arange(1, 7), _NODES[1:], _WEIGHTS[1:].astype(real)
    k, afters = lax.scan(stage, k, rows)
    error, middle = size * (_ERROR.astype(real) @ k), y + size * (_MIDDLE.astype(real) @ k)
    return afters[-1], k[6], error, middle


def _sum(weights: np.ndarray, slopes: list[Any]) -> Any:
    terms = [w * k for w, k in zip(weights.tolist(), slopes) if w]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _between(s: Step, t: ArrayLike) -> Any:
    """The solution at a time within the last step: the polynomial through its ends and its middle."""
    real = s.y.real.dtype
    h = fnp.where(s.t == s.t0, 1.0, s.t - s.t0)
    passed = (t - s.t0).astype(real)
    x = ((t - s.t0) / h).astype(real)
    h = (s.t - s.t0).astype(real)
    before, after = h * s.slope0, h * s.slope
    fourth = 2 * (after - before) - 8 * (s.y0 + s.y) + 16 * s.middle
    third = 5 * before - 3 * after + 18 * s.y0 + 14 * s.y - 32 * s.middle
    second = after - 4 * before - 11 * s.y0 - 5 * s.y + 16 * s.middle
    return s.y0 + passed * s.slope0 + x * x * (second + x * (third + x * fourth))


def _first_step(
    slope: Slope, t: ArrayLike, y: ArrayLike, first: ArrayLike, sign: ArrayLike, options: Tolerances
) -> Any:
    """The size of the first step.

    E. Hairer, S. P. Norsett & G. Wanner: Solving Ordinary Differential Equations I, 2nd ed. 1993, section II.4.
    """
    scale = options.scale(fnp.abs(y))
    d0, d1 = _rms(y / scale), _rms(first / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = fnp.where(small, 1e-6, 0.01 * d0 / fnp.where(small, 1.0, d1))
    step = h0.astype(t.dtype) * sign
    change = slope(t + step, y + step.astype(y.real.dtype) * first) - first
    d2 = _rms(change / scale) / h0
    steepest = fnp.maximum(d1, d2)
    flat = steepest <= 1e-15
    bent = (0.01 / fnp.where(flat, 1.0, steepest)) ** (1 / _ORDER)
    h1 = fnp.where(flat, fnp.maximum(1e-6, 1e-3 * h0), bent)
    return fnp.minimum(100 * h0, h1).astype(t.dtype)


def _rms(x: ArrayLike) -> Any:
    squares = x.real**2 + x.imag**2 if fnp.iscomplexobj(x) else x * x
    return fnp.sqrt(fnp.mean(squares))
