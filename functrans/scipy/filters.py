"""Signals without their trend, and through linear filters: detrend, lfilter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..core import ArgumentValueError, ShapeError, concrete, default_float, is_inexact
from ..core.values import ArrayLike, Value
from ..frontend.checked import checked
from ..lax.control_flow.loops import scan
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, one_axis, shape_of

# --- detrend ------------------------------------------------------------------------------------------------


@checked
def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: ArrayLike = 0,
    overwrite_data: bool | None = False,
) -> Any:
    """Subtract a line of least squares, or the mean.

    Parameters
    ----------
    data : array_like
    axis : int
    type : {'linear', 'constant'}
    bp : int or sequence of int
        Where one line ends and the next begins, for ``'linear'``; from 0 to the extent of the axis. Must be known.
    overwrite_data
        Accepted, without effect: arguments never change.

    Returns
    -------
    Array
        float64 for integers.

    Raises
    ------
    ArgumentValueError
        If the type is unknown, or a point of `bp` is not within the data.
    AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> from functrans.scipy.signal import detrend
    >>> detrend([1.0, 4.0, 8.0, 8.0, 9.0])
    Array([-1.,  0.,  2.,  0., -1.])
    >>> detrend([1.0, 3.0, 5.0], type="constant")
    Array([-2.,  0.,  2.])
    """
    x = array_operand(data, "detrend")
    x = x if is_inexact(dtype_of(x)) else ops.convert(x, default_float(dtype_of(x)))
    d = one_axis(axis, len(shape_of(x)), "detrend")
    if type not in ("linear", "l", "constant", "c"):
        raise ArgumentValueError(f"detrend: type must be 'linear' or 'constant', got {type!r}")
    if type in ("constant", "c"):
        return finish(x) - fnp.mean(x, d, keepdims=True)
    n = shape_of(x)[d]
    ends = _breakpoints(bp, n)
    pieces = [_straightened(finish(ops.slice_along(x, d, i, j)), d) for i, j in pairwise(ends)]
    return pieces[0] if len(pieces) == 1 else fnp.concatenate(pieces, d)


def _breakpoints(bp: Any, n: int) -> list[int]:
    """The first elements of the pieces, and the end."""
    points = np.unique(np.asarray([0, *np.atleast_1d(np.asarray(bp)), n]))
    if points.dtype.kind not in "iu" or points[0] < 0 or points[-1] > n:
        raise ArgumentValueError(
            f"detrend: bp must be integers from 0 to the number {n} of elements, got {bp!r}"
        )
    return [int(i) for i in points] if n else [0, 0]


def _straightened(x: Value, axis: int) -> Value:
    """`x` without its line of least squares: the coefficients of 1 and of the centered positions are independent."""
    n = x.shape[axis]
    shape = tuple([n if d == axis else 1 for d in range(x.ndim)])
    # From -1 to 1, so that the squares of many positions stay small.
    t = fnp.reshape((2.0 * fnp.arange(n) - (n - 1.0)) / max(n - 1, 1), shape).astype(x.dtype)
    squares = n * (n + 1) / (3 * (n - 1)) if n > 1 else 1.0
    slope = fnp.sum(t * x, axis, keepdims=True) / squares
    return x - fnp.mean(x, axis, keepdims=True) - slope * t


# --- lfilter ------------------------------------------------------------------------------------------------


@checked
def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike = None) -> Any:
    """Filter signals by a rational transfer function: a linear recurrence.

    Parameters
    ----------
    b, a : array_like, shape (m,), (k,)
        The coefficients of the numerator and of the denominator. ``a[0]`` must not be 0.
    x : array_like, shape (..., n)
    axis : int
        The axis of time.
    zi : array_like, optional
        The initial state, with ``max(m, k) - 1`` elements along `axis` and the other axes of `x`; by default zeros.

    Returns
    -------
    y : Array, shape (..., n)
    zf : Array
        The final state, only if `zi` is passed.

    Raises
    ------
    ArgumentValueError
        If ``a[0]`` is known to be 0, or coefficients are missing.
    ShapeError
        If coefficients have more than one axis, or `zi` does not match.

    Notes
    -----
    ``a[0] y[n] = b[0] x[n] + ... + b[m-1] x[n-m+1] - a[1] y[n-1] - ... - a[k-1] y[n-k+1]``, computed in the transposed
    direct form II. One native loop over the elements, differentiable in all arguments. With a constant denominator it
    is a convolution.

    Examples
    --------
    >>> from functrans.scipy.signal import lfilter
    >>> lfilter([1.0], [1.0, -0.5], [1.0, 0.0, 0.0, 0.0])
    Array([1.   , 0.5  , 0.25 , 0.125])
    """
    given = [array_operand(v, "lfilter", i) for i, v in enumerate((b, a, x))]
    if zi is not None:
        given.append(array_operand(zi, "lfilter", 4))
    first = concrete(given[1])
    if first is not None and np.size(first) and np.ravel(first)[0] == 0:
        raise ArgumentValueError("lfilter: a[0] must not be 0")
    to = np.result_type(np.float32, *[dtype_of(v) for v in given])
    num, den, signal, *initial = [finish(ops.convert(v, to)) for v in given]
    num, den = fnp.atleast_1d(num), fnp.atleast_1d(den)
    for which, c in (("b", num), ("a", den)):
        if c.ndim != 1 or not c.size:
            raise ShapeError(
                f"lfilter: {which} must have one axis and at least one element, got shape {c.shape}"
            )
    d = one_axis(axis, signal.ndim, "lfilter")
    signal = fnp.moveaxis(signal, d, 0)
    order = max(num.size, den.size) - 1
    if initial:
        state = _initial(initial[0], d, order, signal)
    else:
        state = fnp.zeros((order, *signal.shape[1:]), to)
    num, den = num / den[0], den / den[0]
    out, last = _recurrence(num, den, signal, state, order)
    out = fnp.moveaxis(out, 0, d)
    return (out, fnp.moveaxis(last, 0, d)) if initial else out


def _initial(zi: ArrayLike, axis: int, order: int, signal: Value) -> Value:
    """The state, with time first, broadcast to the signals."""
    if zi.ndim == signal.ndim:
        zi = fnp.moveaxis(zi, axis, 0)
        outer = zip(zi.shape[1:], signal.shape[1:])
        if zi.shape[0] == order and all(n in (1, m) for n, m in outer):
            return fnp.broadcast_to(zi, (order, *signal.shape[1:]))
    raise ShapeError(
        f"lfilter: zi must have {order} elements along the axis of time, and the other axes of x, got shape {zi.shape}"
    )


def _recurrence(num: Value, den: Value, signal: Value, state: Value, order: int) -> tuple[Value, Value]:
    """The loop; the state is a tuple of numbers (or rows), one for each delay."""
    b = [num[i] if i < num.size else None for i in range(order + 1)]
    a = [den[i] if i < den.size else None for i in range(order + 1)]

    def step(z: Sequence[Value], x: Value) -> tuple[Any, Any]:
        y = b[0] * x + z[0] if order else b[0] * x
        after = []
        for i in range(1, order + 1):
            new = z[i] if i < order else 0.0 * y
            new = new if b[i] is None else new + b[i] * x
            after.append(new if a[i] is None else new - a[i] * y)
        return tuple(after), y

    last, out = scan(step, tuple(state[i] for i in range(order)), signal)
    return out, fnp.stack(last) if order else state
