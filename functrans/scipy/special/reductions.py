"""``scipy.special``: logarithms and exponentials of sums."""

from __future__ import annotations

import math
from typing import Any

from ...arrays.array import Array
from ...core.values import ArrayLike, AxisLike, Value
from ...frontend.checked import checked
from ...numpy.reductions.reductions import mask_operand
from ...primitives import ops
from ...primitives.ops import axes_or_all, common, dtype_of, finish, literal, shape_of
from .arguments import inexact_operand

__all__ = ["log_softmax", "logsumexp", "softmax"]


def _axes(x: Value, axis: AxisLike, name: str) -> tuple[int, ...]:
    ndim = len(shape_of(x))
    return axes_or_all(axis, ndim, name)


def _keep_dims(x: Value, like: Value, axes: tuple[int, ...]) -> Value:
    """A reduced value with its axes restored, at extent 1."""
    return ops.reshape_p.bind(x, shape=tuple([1 if d in axes else n for d, n in enumerate(shape_of(like))]))


def _largest(x: Value, axes: tuple[int, ...]) -> Value:
    """The maximum of real parts along axes, a constant for derivatives."""
    return ops.stop_gradient_p.bind(ops.reduce_max_p.bind(ops.real_part(x), axes=axes))


def _top(x: Value, axes: tuple[int, ...]) -> Value:
    """`_largest`, or 0 where it is not finite. Axes are kept."""
    top = _largest(x, axes)
    return _keep_dims(ops.select_p.bind(ops.is_finite_p.bind(top), top, literal(0.0, top)), x, axes)


def _below(x: Value, top: Value) -> Value:
    """``x - top``, for a real `top`."""
    return ops.sub_p.bind(x, ops.convert(top, dtype_of(x)))


def _is_empty(x: Value) -> bool:
    return 0 in shape_of(x)


@checked
def logsumexp(
    a: ArrayLike,
    axis: AxisLike = None,
    b: ArrayLike = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike = None,
) -> Any:
    """``log(sum(b * exp(a)))`` along axes, without overflow.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional
        By default all.
    b : array_like, optional
        Weights, broadcast against `a`. Where a weight is 0, `a` may be infinite.
    keepdims : bool
        Whether to keep reduced axes with extent 1.
    return_sign : bool
        Whether to return the logarithm of the sum's absolute value, and its sign, which is ``total / abs(total)`` if
        complex.
    where : array_like of bool, optional
        The elements to add. Broadcast against `a`.

    Returns
    -------
    Array, or a tuple of two
        ``-inf`` for an empty sum. NaN where the sum is real and negative and `return_sign` is False. Of complex numbers
        the principal logarithm.

    Examples
    --------
    >>> from functrans.scipy.special import logsumexp
    >>> logsumexp([1000.0, 1000.0])
    Array(1000.69314718)
    """
    x, w = inexact_operand(a, "logsumexp"), None
    if where is not None:
        mask = mask_operand(where, shape_of(x), "logsumexp")
        x = ops.select_p.bind(mask, x, literal(-math.inf, x))
    if b is not None:
        x, w = common(x, inexact_operand(b, "logsumexp", 2))
        shape = ops.broadcast_shapes("logsumexp", shape_of(x), shape_of(w))
        x, w = ops.broadcast_to(x, shape), ops.broadcast_to(w, shape)
        # Elements of weight 0 must not determine the shift.
        x = ops.select_p.bind(ops.ne_p.bind(w, literal(0.0, w)), x, literal(-math.inf, x))
    axes = _axes(x, axis, "logsumexp")
    if 0 in [shape_of(x)[d] for d in axes]:
        total, shift = ops.reduce_sum_p.bind(x, axes=axes), None
    else:
        shift = _top(x, axes)
        terms = ops.exp_p.bind(_below(x, shift))
        total = ops.reduce_sum_p.bind(terms if w is None else ops.mul_p.bind(w, terms), axes=axes)
    total = _keep_dims(total, x, axes) if keepdims else total
    out = ops.log_p.bind(ops.abs_p.bind(total) if return_sign else total)
    if shift is not None:
        shift = shift if keepdims else ops.reshape_p.bind(shift, shape=shape_of(out))
        out = ops.add_p.bind(out, ops.convert(shift, dtype_of(out)))
    return (finish(out), finish(ops.sign_p.bind(total))) if return_sign else finish(out)


@checked
def softmax(x: ArrayLike, axis: AxisLike = None) -> Array:
    """``exp(x) / sum(exp(x))`` along axes, without overflow.

    Parameters
    ----------
    x : array_like
    axis : int or tuple of int, optional
        By default all.

    Returns
    -------
    Array
        With the shape of `x`. All NaN along an axis with an element ``inf``, or with only ``-inf``, as in SciPy.

    Examples
    --------
    >>> from functrans.scipy.special import softmax
    >>> softmax([0.0, 0.0])
    Array([0.5, 0.5])
    """
    value = inexact_operand(x, "softmax")
    axes = _axes(value, axis, "softmax")
    if _is_empty(value):
        return finish(value)
    parts = ops.exp_p.bind(_below(value, _keep_dims(_largest(value, axes), value, axes)))
    return finish(ops.div_p.bind(parts, _keep_dims(ops.reduce_sum_p.bind(parts, axes=axes), value, axes)))


@checked
def log_softmax(x: ArrayLike, axis: AxisLike = None) -> Array:
    """Logarithm of `softmax`, accurate where `softmax` is near 0.

    Parameters
    ----------
    x : array_like
    axis : int or tuple of int, optional
        By default all.

    Returns
    -------
    Array
        With the shape of `x`.

    Examples
    --------
    >>> from functrans.scipy.special import log_softmax
    >>> log_softmax([1000.0, 0.0])
    Array([    0., -1000.])
    """
    value = inexact_operand(x, "log_softmax")
    axes = _axes(value, axis, "log_softmax")
    if _is_empty(value):
        return finish(value)
    shifted = _below(value, _top(value, axes))
    total = ops.reduce_sum_p.bind(ops.exp_p.bind(shifted), axes=axes)
    return finish(ops.sub_p.bind(shifted, _keep_dims(ops.log_p.bind(total), value, axes)))
