"""Activations made of straight pieces, and of pieces with an exponential."""

from __future__ import annotations

from typing import Any

from .. import numpy as fnp
from ..arrays.array import Array
from ..core.values import ArrayLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..primitives.ops import dtype_of, finish
from .operands import activation, real_operand, select, with_weak_numbers

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@checked
def relu(x: ArrayLike) -> Array:
    """Rectified linear unit: ``max(x, 0)``.

    Parameters
    ----------
    x : array_like, shape (...)
        Real. Integers stay integers.

    Returns
    -------
    Array, shape (...)

    Raises
    ------
    DtypeError
        If `x` is complex.

    Notes
    -----
    The derivative at 0 is 0.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.relu([-1.0, 2.0])
    Array([0., 2.])
    """
    value = array_operand(x, "relu")
    value = value if dtype_of(value).kind in "iu" else real_operand(value, "relu")
    return finish(_positive(value))


def _positive(x: Value) -> Value:
    return select(x <= 0, dtype_of(x).type(0), x)  # NaN stays


@activation
def relu6(x: Value) -> Value:
    """Rectified linear unit with a ceiling: ``min(max(x, 0), 6)``.

    Notes
    -----
    The derivative at 0 and at 6 is 0.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.relu6([-1.0, 2.0, 8.0])
    Array([0., 2., 6.])
    """
    return _between(x, 6.0)


def _between(x: Value, high: float) -> Value:
    return select(x >= high, dtype_of(x).type(high), _positive(x))


@activation
def hard_sigmoid(x: Value) -> Value:
    """Piecewise linear sigmoid: ``relu6(x + 3) / 6``.

    Notes
    -----
    The derivative at -3 and at 3 is 0.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.hard_sigmoid([-4.0, 0.0, 4.0])
    Array([0. , 0.5, 1. ])
    """
    return with_weak_numbers(_between(x + 3.0, 6.0)) / 6.0


@activation
def hard_silu(x: Value) -> Value:
    """Piecewise quadratic SiLU: ``x * hard_sigmoid(x)``; `hard_swish` is the same function.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.hard_silu([-4.0, 1.5, 4.0])
    Array([0.   , 1.125, 4.   ])
    """
    low, high = x <= -3.0, x >= 3.0
    inner = with_weak_numbers(select(low | high, dtype_of(x).type(0), x))  # an infinity times 0 would be NaN
    return select(high, x, inner * _between(inner + 3.0, 6.0) / 6.0)


hard_swish = hard_silu


@activation
def hard_tanh(x: Value) -> Value:
    """Piecewise linear tanh: `x` between -1 and 1, and the nearer of them outside.

    Notes
    -----
    The derivative at -1 and at 1 is 1.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.hard_tanh([-2.0, 0.5, 2.0])
    Array([-1. ,  0.5,  1. ])
    """
    one = dtype_of(x).type(1)
    return select(x > 1.0, one, select(x < -1.0, -one, x))


@activation
def leaky_relu(x: Value, negative_slope: Any = 0.01) -> Value:
    """Rectified linear unit with a slope for negative numbers: `x`, or ``negative_slope * x`` below 0.

    Parameters
    ----------
    negative_slope : array_like
        Broadcast against `x`.

    Notes
    -----
    The derivative at 0 is 1.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.leaky_relu([-2.0, 3.0])
    Array([-0.02,  3.  ])
    """
    return fnp.where(x >= 0, x, negative_slope * x)


@activation
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Value:
    """Exponential linear unit: `x`, or ``alpha * (exp(x) - 1)`` below 0.

    Parameters
    ----------
    alpha : array_like
        Broadcast against `x`.

    Notes
    -----
    The derivative at 0 is `alpha`.

    References
    ----------
    D.-A. Clevert, T. Unterthiner, S. Hochreiter: Fast and accurate deep network learning by exponential linear units.
    ICLR 2016.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.elu([-1.0, 2.0])
    Array([-0.63212056,  2.        ])
    """
    return _elu(x, alpha)


def _elu(x: ArrayLike, alpha: ArrayLike) -> Value:
    above = x > 0
    below = fnp.where(above, dtype_of(x).type(0), x)  # the other piece must not overflow
    return fnp.where(above, x, alpha * fnp.expm1(below))


@activation
def celu(x: Value, alpha: ArrayLike = 1.0) -> Value:
    """Continuously differentiable exponential linear unit: `x`, or ``alpha * (exp(x / alpha) - 1)`` below 0.

    Parameters
    ----------
    alpha : array_like
        Broadcast against `x`.

    References
    ----------
    J. T. Barron: Continuously differentiable exponential linear units. arXiv:1704.07483, 2017.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.celu([-1.0, 2.0], 0.5)
    Array([-0.43233236,  2.        ])
    """
    above = x > 0
    below = fnp.where(above, dtype_of(x).type(0), x)
    return fnp.where(above, x, alpha * fnp.expm1(below / alpha))


@activation
def selu(x: ArrayLike) -> Value:
    """Scaled exponential linear unit, which keeps zero mean and unit variance from layer to layer.

    Notes
    -----
    ``1.0507 * elu(x, 1.6733)``, with the constants in full precision.

    References
    ----------
    G. Klambauer et al.: Self-normalizing neural networks. NeurIPS 2017.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.selu([-1.0, 2.0])
    Array([-1.11133074,  2.10140197])
    """
    return _SELU_SCALE * _elu(x, _SELU_ALPHA)


@activation
def sparse_plus(x: Value) -> Value:
    """Softplus made of pieces: 0 up to -1, ``(x + 1)**2 / 4`` up to 1, then `x`.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.sparse_plus([-2.0, 0.0, 2.0])
    Array([0.  , 0.25, 2.  ])
    """
    zero = dtype_of(x).type(0)
    inner = with_weak_numbers(select((x <= -1.0) | (x >= 1.0), zero, x))
    return select(x <= -1.0, zero, select(x >= 1.0, x, 0.25 * fnp.square(inner + 1.0)))


@activation
def sparse_sigmoid(x: ArrayLike) -> Any:
    """Derivative of `sparse_plus`: ``clip((x + 1) / 2, 0, 1)``.

    Examples
    --------
    >>> from functrans import nn
    >>> nn.sparse_sigmoid([-2.0, 0.5, 2.0])
    Array([0.  , 0.75, 1.  ])
    """
    return 0.5 * fnp.clip(x + 1.0, 0.0, 2.0)
