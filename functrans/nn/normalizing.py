"""Functions along axes: softmax, logarithms of sums, standardization, one-hot codes."""

from __future__ import annotations

import math
from typing import Any

from .. import numpy as fnp
from ..arrays.arguments import one_of
from ..arrays.array import Array
from ..core import ArgumentValueError, ShapeError, canonical
from ..core.values import ArrayLike, AxisLike, DTypeLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import axes_or_all, dtype_of, finish, one_axis, shape_of
from ..scipy import special
from .operands import inexact_operand, parameter, real_operand


def _mask(where: Any, x: Value, name: str) -> Any:
    """A boolean array in the shape of `x`.

    Raises
    ------
    ShapeError
        If it does not broadcast to that shape.
    """
    mask = ops.truth(array_operand(where, f"{name}: where"))
    if ops.broadcast_shapes(f"{name}: where", shape_of(mask), shape_of(x)) != shape_of(x):
        raise ShapeError(
            f"{name}: where has shape {shape_of(mask)}, which does not broadcast to {shape_of(x)}"
        )
    return ops.broadcast_to(mask, shape_of(x))


@checked
def softmax(x: ArrayLike, axis: AxisLike = -1, where: ArrayLike = None) -> Array:
    """``exp(x) / sum(exp(x))`` along axes, without overflow.

    Parameters
    ----------
    x : array_like, shape (...)
        Integers become float64.
    axis : int, tuple of int or None
        None for all.
    where : array_like of bool, optional
        The elements that take part, broadcast against `x`; the result of the others is 0.

    Returns
    -------
    Array, shape (...)
        All NaN along an axis with an element ``inf``, or, without `where`, with only ``-inf``.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.softmax([1000.0, 1000.0, 0.0])
    Array([0.5, 0.5, 0. ])
    >>> nn.softmax([1.0, 1.0, 5.0], where=[True, True, False])
    Array([0.5, 0.5, 0. ])
    """
    value = inexact_operand(x, "softmax")
    if where is None:
        return special.softmax(value, axis)
    mask, none = _mask(where, value, "softmax"), dtype_of(value).type(-math.inf)
    masked = fnp.where(mask, value, none)
    any_left = fnp.any(mask, axis=axis, keepdims=True)
    # Where nothing takes part, no quotient of zeros is taken.
    masked = fnp.where(any_left, masked, dtype_of(value).type(0))
    return finish(fnp.where(mask, special.softmax(masked, axis), dtype_of(value).type(0)))


@checked
def log_softmax(x: ArrayLike, axis: AxisLike = -1, where: ArrayLike = None) -> Array:
    """Logarithm of `softmax`, accurate where `softmax` is near 0.

    Parameters
    ----------
    x : array_like, shape (...)
        Integers become float64.
    axis : int, tuple of int or None
        None for all.
    where : array_like of bool, optional
        The elements that take part, broadcast against `x`; the result of the others is ``-inf``.

    Returns
    -------
    Array, shape (...)

    Examples
    --------
    >>> from functrans import nn
    >>> nn.log_softmax([1000.0, 0.0])
    Array([    0., -1000.])
    """
    value = inexact_operand(x, "log_softmax")
    if where is None:
        return special.log_softmax(value, axis)
    mask, none = _mask(where, value, "log_softmax"), dtype_of(value).type(-math.inf)
    return finish(fnp.where(mask, special.log_softmax(fnp.where(mask, value, none), axis), none))


@checked
def logsumexp(
    a: ArrayLike,
    axis: AxisLike = None,
    b: ArrayLike = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike = None,
) -> Array:
    """``log(sum(b * exp(a)))`` along axes, without overflow.

    Parameters
    ----------
    a : array_like, shape (...)
        Integers become float64.
    axis : int, tuple of int or None
        None for all.
    b : array_like, optional
        Weights, broadcast against `a`.
    keepdims : bool
        Whether to keep reduced axes with extent 1.
    return_sign : bool
        Whether to return the logarithm of the sum's absolute value, and its sign.
    where : array_like of bool, optional
        The elements that take part, broadcast against `a`.

    Returns
    -------
    Array, or a tuple of two
        ``-inf`` for an empty sum. NaN where the sum is real and negative and `return_sign` is False.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.logsumexp([1000.0, 1000.0])
    Array(1000.69314718)
    """
    value = inexact_operand(a, "logsumexp")
    if where is not None:
        mask = _mask(where, value, "logsumexp")
        # Elements that take no part have weight 0, whatever they are.
        b = fnp.where(mask, dtype_of(value).type(1) if b is None else array_operand(b, "logsumexp: b"), 0)
    return special.logsumexp(value, axis, b, keepdims, return_sign)


@checked
def logmeanexp(x: ArrayLike, axis: AxisLike = None, where: ArrayLike = None, keepdims: bool = False) -> Array:
    """Logarithm of the mean of ``exp(x)`` along axes, without overflow.

    Parameters
    ----------
    x : array_like, shape (...)
        Real; integers become float64.
    axis : int, tuple of int or None
        None for all.
    where : array_like of bool, optional
        The elements that take part, broadcast against `x`.
    keepdims : bool
        Whether to keep reduced axes with extent 1.

    Returns
    -------
    Array
        NaN for the mean of nothing.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.logmeanexp([1000.0, 1000.0])
    Array(1000.)
    """
    value = real_operand(x, "logmeanexp")
    total = logsumexp(value, axis, None, keepdims, False, where)
    if where is None:
        axes = axes_or_all(axis, len(shape_of(value)), "logmeanexp")
        number = math.prod([shape_of(value)[d] for d in axes])
        return finish(total - (math.log(number) if number else -math.inf))
    count = fnp.sum(_mask(where, value, "logmeanexp"), axis=axis, keepdims=keepdims)
    return finish(total - fnp.log(count).astype(dtype_of(value)))


@checked
def standardize(
    x: ArrayLike,
    axis: AxisLike = -1,
    mean: ArrayLike = None,
    variance: ArrayLike = None,
    epsilon: Any = 1e-5,
    where: ArrayLike = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """Shift and scale to mean 0 and variance 1 along axes.

    Parameters
    ----------
    x : array_like, shape (...)
        Real; integers become float64.
    axis : int, tuple of int or None
        None for all.
    mean, variance : array_like, optional
        Instead of those of `x`; broadcast against it.
    epsilon : array_like
        Added to the variance.
    where : array_like of bool, optional
        The elements that count for mean and variance, broadcast against `x`.
    algorithm : {'fast', 'stable'}
        Accepted for JAX. Both compute the mean of ``(x - mean)**2``, which does not cancel.

    Returns
    -------
    Array, shape (...)
        ``(x - mean) / sqrt(variance + epsilon)``.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.standardize([1.0, 2.0, 3.0], epsilon=0.0)
    Array([-1.22474487,  0.        ,  1.22474487])
    """
    value = real_operand(x, "standardize")
    one_of(algorithm, ("fast", "stable"), "standardize: algorithm")
    counted = {} if where is None else {"where": _mask(where, value, "standardize")}
    if mean is None:
        mean = fnp.mean(value, axis=axis, keepdims=True, **counted)
    centred = value - parameter(mean, "standardize", 2)
    if variance is None:
        variance = fnp.mean(fnp.square(centred), axis=axis, keepdims=True, **counted)
    spread = parameter(variance, "standardize", 3) + parameter(epsilon, "standardize", 4)
    return finish(centred * fnp.reciprocal(fnp.sqrt(spread)))


@checked
def one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike = None, axis: int = -1) -> Array:
    """Vectors with a one at the position that each integer names.

    Parameters
    ----------
    x : array_like of int, shape (...)
    num_classes : int
        The extent of the new axis.
    dtype : dtype, optional
        By default float64.
    axis : int
        The position of the new axis in the result.

    Returns
    -------
    Array, shape (..., num_classes)
        All zeros for an integer outside ``range(num_classes)``.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.one_hot([1, 0, 3], 3)
    Array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    value = array_operand(x, "one_hot")
    if num_classes < 0:
        raise ArgumentValueError(f"one_hot: num_classes must not be negative, got {num_classes}")
    ndim = len(shape_of(value)) + 1
    axis = one_axis(axis, ndim, "one_hot")
    classes = fnp.arange(num_classes).reshape([-1 if d == axis else 1 for d in range(ndim)])
    to = canonical(float if dtype is None else dtype, "one_hot: dtype")
    return fnp.equal(fnp.expand_dims(value, axis), classes).astype(to)
