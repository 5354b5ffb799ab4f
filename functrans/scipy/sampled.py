"""Integrals of samples: cumulative_trapezoid and simpson; `trapezoid` is NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import numpy as fnp
from ..core import ArgumentError, ArgumentValueError, ShapeError, Tracer, dtype_kind, is_inexact
from ..core.values import ArrayLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..primitives.ops import finish, one_axis


@checked
def cumulative_trapezoid(
    y: ArrayLike, x: ArrayLike = None, dx: ArrayLike = 1.0, axis: int = -1, initial: ArrayLike = None
) -> Any:
    """Integrals from the first sample to each other one, by the trapezoidal rule.

    Parameters
    ----------
    y : array_like
        The samples along `axis`.
    x : array_like, optional
        The positions of the samples: a vector, or an array with the number of axes of `y`.
    dx : number
        The distance of samples, if `x` is not passed.
    axis : int
    initial : {None, 0}
        With 0, the result begins with the integral to the first sample.

    Returns
    -------
    Array
        With one element less along `axis` than `y`; as many with ``initial=0``.

    Raises
    ------
    AxisError
        If the axis is out of bounds.
    ArgumentValueError
        If the samples are empty, or `initial` is not 0 or None.
    ShapeError
        If `x` does not match `y`.

    Examples
    --------
    >>> from functrans.scipy.integrate import cumulative_trapezoid
    >>> cumulative_trapezoid([1.0, 2.0, 4.0], initial=0)
    Array([0. , 1.5, 4.5])
    """
    name = "cumulative_trapezoid"
    if initial is not None and (isinstance(initial, Tracer) or not np.isscalar(initial) or initial != 0):
        raise ArgumentValueError(f"{name}: initial must be None or 0, got {initial!r}")
    values, places, d = _samples(name, y, x, axis)
    step = dx if places is None else fnp.diff(places, axis=d)
    n = values.shape[d]
    total = fnp.cumsum(step * (_part(values, d, 1, n) + _part(values, d, 0, n - 1)) / 2.0, d)
    if initial is None:
        return total
    return fnp.concatenate([fnp.zeros_like(_part(values, d, 0, 1), dtype=total.dtype), total], d)


@checked
def simpson(y: ArrayLike, x: ArrayLike = None, *, dx: ArrayLike = 1.0, axis: int = -1) -> Any:
    """Integrate samples by Simpson's rule: parabolas through three neighbours.

    Parameters
    ----------
    y : array_like
        The samples along `axis`.
    x : array_like, optional
        The positions of the samples: a vector, or an array with the number of axes of `y`.
    dx : number
        The distance of samples, if `x` is not passed.
    axis : int

    Returns
    -------
    Array

    Raises
    ------
    AxisError
        If the axis is out of bounds.
    ArgumentValueError
        If the samples are empty.
    ShapeError
        If `x` does not match `y`.

    Notes
    -----
    For an even number of samples, the last interval is integrated below the last parabola (K. V. Cartwright, Journal of
    Mathematical Sciences and Mathematics Education 12, 2017).

    Examples
    --------
    >>> from functrans.scipy.integrate import simpson
    >>> simpson([0.0, 1.0, 4.0, 9.0, 16.0]).round(12)
    Array(21.33333333)
    """
    values, places, d = _samples("simpson", y, x, axis)
    values = values if is_inexact(values.dtype) else values.astype(float)
    n = values.shape[d]
    gaps = None if places is None else fnp.diff(places, axis=d).astype(float)  # as in SciPy
    if n < 3:
        step = (n - 1) * dx if gaps is None else fnp.sum(gaps, d)
        return 0.5 * step * fnp.sum(values, d)
    last = n - 2 if n % 2 else n - 3  # where the last whole parabola begins, plus 1
    first, middle, end = (_part(values, d, i, last + i, 2) for i in range(3))
    if gaps is None:
        total = dx / 3.0 * fnp.sum(first + 4.0 * middle + end, d)
    else:
        h, k = _part(gaps, d, 0, last, 2), _part(gaps, d, 1, last + 1, 2)
        whole = h + k
        weighted = (
            first * (2.0 - _ratio(k, h)) + middle * whole * _ratio(whole, h * k) + end * (2.0 - _ratio(h, k))
        )
        total = fnp.sum(whole / 6.0 * weighted, d)
    return total if n % 2 else total + _last_interval(values, gaps, dx, d)


def _last_interval(values: ArrayLike, gaps: Any, dx: Any, axis: int) -> Value:
    """The integral between the last two samples, below the parabola through the last three."""
    n = values.shape[axis]
    a, b, c = (fnp.squeeze(_part(values, axis, n - i, n - i + 1), axis) for i in (3, 2, 1))
    if gaps is None:
        return dx / 12.0 * (5.0 * c + 8.0 * b - a)
    h, k = (fnp.squeeze(_part(gaps, axis, n - i, n - i + 1), axis) for i in (3, 2))
    return (
        c * _ratio(2.0 * k**2 + 3.0 * h * k, 6.0 * (h + k))
        + b * _ratio(k**2 + 3.0 * h * k, 6.0 * h)
        - a * _ratio(k**3, 6.0 * h * (h + k))
    )


def _samples(name: str, y: Value, x: Value, axis: int) -> tuple[Any, Any, int]:
    """The samples, their positions (None, or with as many axes) and the axis."""
    values = finish(array_operand(y, name))
    d = one_axis(axis, values.ndim, name)
    n = values.shape[d]
    if not n:
        raise ArgumentValueError(
            f"{name}: y must have at least one sample along axis {d}, got shape {values.shape}"
        )
    if x is None:
        return values, None, d
    places = finish(array_operand(x, name, 1))
    if dtype_kind(places.dtype) not in "fciu":
        raise ArgumentError(f"{name}: x must be numbers, got {places.dtype}")
    if places.ndim == 1:
        places = fnp.reshape(places, tuple([places.size if e == d else 1 for e in range(values.ndim)]))
    if places.ndim != values.ndim or places.shape[d] != n:
        raise ShapeError(
            f"{name}: x must have {n} positions along axis {d}, as a vector or with {values.ndim} axes, got shape "
            f"{fnp.shape(x)}"
        )
    return values, places, d


def _part(x: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
    return x[(*[slice(None)] * axis, slice(start, stop, step))]


def _ratio(a: ArrayLike, b: ArrayLike) -> Value:
    """``a / b``, and 0 where `b` is 0: two samples at one position."""
    zero = fnp.equal(b, 0)
    return fnp.where(zero, 0.0, a / fnp.where(zero, 1.0, b))
