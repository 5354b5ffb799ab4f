"""Window functions, sinc and the Bessel function i0."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import DtypeError, is_float, is_inexact
from ...core.jax_dtypes import default_float
from ...core.values import ArrayLike, ShapeLike, Value
from ...frontend.checked import checked
from ...primitives import ops, ufuncs
from ...primitives.ops import dtype_of, finish, literal, strong
from ..creation.filled import ones
from ..dispatch import array_operand, implements
from ..elementwise import selection

__all__ = ["bartlett", "blackman", "hamming", "hanning", "i0", "kaiser", "sinc"]

#: The power series of sin(u) / u in u**2, with as many terms as derivatives of order 20 need for |u| < 1.
_SERIES = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(20)]


@implements(np.sinc)
def sinc(x: ArrayLike) -> Array:
    """``sin(pi x) / (pi x)``, and 1 at 0.

    Parameters
    ----------
    x : array_like
        Complex numbers are supported.

    Returns
    -------
    Array
        With the dtype of `x`; float64 for integers.

    Notes
    -----
    Near 0 it is computed by its power series, so that derivatives of all orders are correct there.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.sinc(fnp.array([0.0, 0.5]))
    Array([1.        , 0.63661977])
    """
    value = array_operand(x, "sinc")
    value = value if is_inexact(dtype_of(value)) else ops.convert(value, default_float(dtype_of(value)))
    u = ops.mul_p.bind(value, literal(math.pi, value))
    one = literal(1.0, u)
    far = ops.ge_p.bind(ops.abs_p.bind(u), dtype_of(ops.abs_p.bind(u)).type(1.0))
    near = ops.select_p.bind(far, literal(0.0, u), u)
    square = ops.mul_p.bind(near, near)
    series: Any = literal(_SERIES[-1], u)
    for coefficient in _SERIES[-2::-1]:
        series = ops.add_p.bind(ops.mul_p.bind(series, square), literal(coefficient, u))
    # The side that is not selected divides by 1, so that it makes no NaN.
    u = ops.select_p.bind(far, u, one)
    return finish(ops.select_p.bind(far, ops.div_p.bind(ops.sin_p.bind(u), u), series))


@implements(np.i0)
def i0(x: ArrayLike) -> Any:
    """Modified Bessel function of the first kind, of order 0.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Raises
    ------
    DtypeError
        If `x` is complex.

    Notes
    -----
    The derivative of :math:`I_n` is :math:`(I_{n-1} + I_{n+1}) / 2`, which yields derivatives of all orders (DLMF
    10.29.1).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.i0([0.0, 1.0])
    Array([1.        , 1.26606588])
    """
    value = array_operand(x, "i0")
    if dtype_of(value).kind == "c":
        raise DtypeError("i0: x must be real, it is complex")
    value = value if is_float(dtype_of(value)) else ops.convert(value, default_float(dtype_of(value)))
    return finish(ops.bessel_i_p.bind(value, n=0, scaled=False))


# --- windows ------------------------------------------------------------------------------------------------


def _steps(M: ArrayLike) -> Any:
    """``1 - M, 3 - M, ..., M - 1``, or None if the window is trivial."""
    count = operator.index(M)
    if count < 2:
        return None
    steps = strong(ops.iota((count,), 0), default_float())
    return finish(steps) * 2.0 - (count - 1.0)


def _trivial(M: ArrayLike) -> Value:
    return ones(max(operator.index(M), 0))


def _cosines(M: ArrayLike, *weights: float) -> Value:
    n = _steps(M)
    if n is None:
        return _trivial(M)
    angle = n * (math.pi / (operator.index(M) - 1))
    total: ArrayLike = weights[0]
    for k, weight in enumerate(weights[1:], 1):
        total = total + weight * ufuncs.cos(k * angle)
    return total


@checked
def hanning(M: int) -> Any:
    """The Hann window of `M` points: ``0.5 - 0.5 cos(2 pi n / (M - 1))``.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.hanning(3)
    Array([0., 1., 0.])
    """
    return _cosines(M, 0.5, 0.5)


@checked
def hamming(M: int) -> Any:
    """The Hamming window of `M` points: ``0.54 - 0.46 cos(2 pi n / (M - 1))``.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.hamming(3)
    Array([0.08, 1.  , 0.08])
    """
    return _cosines(M, 0.54, 0.46)


@checked
def blackman(M: int) -> Any:
    """The Blackman window of `M` points: ``0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1))``.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.round(fnp.blackman(5), 2)
    Array([-0.  ,  0.34,  1.  ,  0.34, -0.  ])
    """
    return _cosines(M, 0.42, 0.5, 0.08)


@checked
def bartlett(M: int) -> Any:
    """The triangular window of `M` points, with zeros at its ends.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ])
    """
    n = _steps(M)
    if n is None:
        return _trivial(M)
    return 1.0 - ufuncs.absolute(n) / (operator.index(M) - 1)


@checked
def kaiser(M: int, beta: ArrayLike) -> Any:
    """The Kaiser window of `M` points; its shape parameter `beta` may be traced and differentiated.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.kaiser(3, 0.0)
    Array([1., 1., 1.])
    """
    n = _steps(M)
    if n is None:
        return _trivial(M)
    # (1 - r)(1 + r) is 0 at the ends, where the root has no derivative; i0 of a root is a series in its square.
    r = n / (operator.index(M) - 1)
    inside = (1.0 - r) * (1.0 + r)
    root = selection.where(inside > 0, ufuncs.sqrt(selection.where(inside > 0, inside, 1.0)), 0.0)
    shape: ShapeLike = finish(strong(array_operand(beta, "kaiser", 1), default_float()))
    return i0(shape * root) / i0(shape)
