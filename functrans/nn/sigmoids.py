"""Smooth activations: sigmoids, gates by them, and softplus and its like."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import numpy as fnp
from ..arrays.array import Array
from ..core import ArgumentValueError
from ..core.values import ArrayLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, one_axis, shape_of
from .operands import activation, real_operand, select, with_weak_numbers

#: Beyond this distance from 0 ``exp(-|x|)`` is 0 in double precision.
_FAR = 800.0


@checked
def identity(x: ArrayLike) -> Array:
    """The argument itself, as an array.

    Parameters
    ----------
    x : array_like, shape (...)
        Of any dtype.

    Returns
    -------
    Array, shape (...)

    Examples
    --------
    >>> from functrans import nn
    >>> nn.identity([1.0, 2.0])
    Array([1., 2.])
    """
    return fnp.array(array_operand(x, "identity"))


@activation
def sigmoid(x: Value) -> Value:
    """Logistic function ``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.sigmoid([-1000.0, 0.0, 1000.0])
    Array([0. , 0.5, 1. ])
    """
    return ops.logistic_p.bind(x)


@checked
def tanh(x: ArrayLike, /) -> Array:
    """Hyperbolic tangent.

    Parameters
    ----------
    x : array_like, shape (...)
        Real or complex.

    Returns
    -------
    Array, shape (...)

    Examples
    --------
    >>> from functrans import nn
    >>> nn.tanh([0.0, 1000.0])
    Array([0., 1.])
    """
    return fnp.tanh(x)


@activation
def soft_sign(x: Value) -> Value:
    """A sigmoid with slow tails: ``x / (1 + |x|)``.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.soft_sign([-3.0, 1.0])
    Array([-0.75,  0.5 ])
    """
    far = fnp.isinf(x)
    inner = select(far, dtype_of(x).type(0), x)
    return select(far, fnp.sign(x), inner / (1.0 + fnp.abs(inner)))


@activation
def softplus(x: Value) -> Value:
    """Smooth rectifier ``log(1 + exp(x))``, without overflow.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.softplus([-1000.0, 0.0, 1000.0])
    Array([0.00000000e+00, 6.93147181e-01, 1.00000000e+03])
    """
    return ops.softplus_p.bind(x)


@activation
def log_sigmoid(x: Value) -> Value:
    """Logarithm of `sigmoid`, accurate where `sigmoid` is near 0: ``-softplus(-x)``.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.log_sigmoid([-1000.0, 0.0])
    Array([-1.00000000e+03, -6.93147181e-01])
    """
    return -ops.softplus_p.bind(-x)


@activation
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Any:
    """Algebraic softplus ``(x + sqrt(x**2 + b)) / 2``.

    Parameters
    ----------
    b : array_like
        Positive, broadcast against `x`. The result at 0 is ``sqrt(b) / 2``.

    Notes
    -----
    For negative `x`, by ``b / (sqrt(x**2 + b) - x) / 2``, which loses no digits.

    References
    ----------
    J. T. Barron: Squareplus: a softplus-like algebraic rectifier. arXiv:2112.11687, 2021.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.squareplus([-1e9, 0.0, 1e9])
    Array([1.e-09, 1.e+00, 1.e+09])
    """
    x, b = ops.common(x, b)
    root = fnp.hypot(x, fnp.sqrt(b))
    negative = x < 0
    beyond = fnp.where(negative, root - x, dtype_of(root).type(1))
    return 0.5 * fnp.where(negative, b / beyond, x + root)


def _gated(x: Value, gate: Callable[[Any], Any], far: float = _FAR) -> Value:
    """``x * gate(x)`` for a gate that in working precision is 0 below `-far` and 1 above `far`."""
    outside = ops.abs_p.bind(x) > far
    inner = select(outside, dtype_of(x).type(0), x)  # an infinity times 0 would be NaN
    return select(outside, select(x <= 0, dtype_of(x).type(0), x), inner * gate(inner))


@activation
def silu(x: Value) -> Value:
    """Sigmoid linear unit: ``x * sigmoid(x)``; `swish` is the same function.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.silu([-1.0, 0.0, 1.0])
    Array([-0.26894142,  0.        ,  0.73105858])
    """
    return _gated(x, ops.logistic_p.bind)


swish = silu


@activation
def mish(x: Value) -> Value:
    """A self-regularized gate: ``x * tanh(softplus(x))``.

    References
    ----------
    D. Misra: Mish: a self regularized non-monotonic activation function. BMVC 2020.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.mish([-1.0, 0.0, 1.0])
    Array([-0.30340146,  0.        ,  0.86509839])
    """
    return _gated(x, _tanh_of_softplus)


def _tanh_of_softplus(x: Value) -> Value:
    # With p = sigmoid(x), q = 1 - p and exp(softplus(x)) = 1 / q, the hyperbolic tangent is (1 - q**2) / (1 + q**2).
    p, q = with_weak_numbers(ops.logistic_p.bind(x)), with_weak_numbers(ops.logistic_p.bind(-x))
    return p * (1.0 + q) / (1.0 + q * q)


@checked
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Gaussian error linear unit: `x` times the normal distribution function of `x`.

    Parameters
    ----------
    x : array_like, shape (...)
        Real; integers become float64.
    approximate : bool
        Whether to compute ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``, off by up to 5e-4, instead of
        ``x / 2 * erfc(-x / sqrt(2))``.

    Returns
    -------
    Array, shape (...)

    References
    ----------
    D. Hendrycks, K. Gimpel: Gaussian error linear units. arXiv:1606.08415, 2016.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.gelu([-1.0, 1.0]), nn.gelu([-1.0, 1.0], approximate=False)
    (Array([-0.15880801,  0.84119199]), Array([-0.15865525,  0.84134475]))
    """
    value = real_operand(x, "gelu")
    return finish(_gated(value, _normal_by_tanh if approximate else _normal, 40.0))


def _normal_by_tanh(x: Value) -> Value:
    # (1 + tanh(z)) / 2 is sigmoid(2 z), which loses no digits in the lower tail.
    x = with_weak_numbers(x)
    return ops.logistic_p.bind(math.sqrt(8.0 / math.pi) * x * (1.0 + 0.044715 * (x * x)))


def _normal(x: Value) -> Any:
    return 0.5 * with_weak_numbers(ops.erfc_p.bind(-math.sqrt(0.5) * with_weak_numbers(x)))


@checked
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Gated linear unit: the first half of `x` along an axis, times the sigmoid of the second.

    Parameters
    ----------
    x : array_like, shape (..., 2 n, ...)
        Real; integers become float64.
    axis : int
        Its extent must be even.

    Returns
    -------
    Array, shape (..., n, ...)

    Raises
    ------
    ArgumentValueError
        If the extent of the axis is odd.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.glu([4.0, 0.0])
    Array([2.])
    """
    value = real_operand(x, "glu")
    axis = one_axis(axis, len(shape_of(value)), "glu")
    size = shape_of(value)[axis]
    if size % 2:
        raise ArgumentValueError(f"glu: the extent of axis {axis} must be even, got {size}")
    first, second = fnp.split(value, 2, axis)
    return finish(first * ops.logistic_p.bind(second))


@activation
def log1mexp(x: Value) -> Value:
    """``log(1 - exp(-x))`` for positive `x`, accurate for small and large ones.

    Notes
    -----
    ``log(-expm1(-x))`` below ``log(2)``, and ``log1p(-exp(-x))`` above. The derivative is ``1 / expm1(x)``.

    References
    ----------
    M. Mächler: Accurately computing ``log(1 - exp(-|a|))``, assessed by the Rmpfr package. 2012.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.log1mexp([1e-20, 50.0])
    Array([-4.60517019e+01, -1.92874985e-22])
    """
    small, split = x < math.log(2.0), dtype_of(x).type(math.log(2.0))
    # Each piece gets an argument at which its derivative is finite.
    low = fnp.log(-fnp.expm1(-select(small, x, split)))
    high = fnp.log1p(-fnp.exp(-select(small, split, x)))
    return select(small, low, high)
