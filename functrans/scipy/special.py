"""Functions of `scipy.special` for arrays and traced values.

SciPy's own ufuncs work on traced values too: ``scipy.special.erf(t)`` calls what stands here.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import scipy.special as sp

from ..core.aval import aval_of
from ..core.dtypes import FLOAT64
from ..core.errors import ArgumentError, ArgumentValueError, DtypeError
from ..numpy.dispatch import array_operand
from ..primitives import special
from ..primitives.axes import many_axes
from ..primitives.complexes import abs_p
from ..primitives.elementwise import convert, div_p, mul_p, ne_p, select_p, stop_gradient_p, sub_p
from ..primitives.exp_log import exp_p, log_p
from ..primitives.families import literal
from ..primitives.linear import (
    add_p,
    broadcast_shapes,
    broadcast_to,
    dtype_of,
    reduce_sum_p,
    reshape_p,
    shape_of,
)
from ..primitives.operands import finish
from ..primitives.promotion import binary, common, unary
from ..primitives.reduce import reduce_max_p
from ..primitives.rounding import is_finite_p, sign_p

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "expit",
    "gammaln",
    "log_softmax",
    "logit",
    "logsumexp",
    "polygamma",
    "psi",
    "softmax",
    "xlog1py",
    "xlogy",
]

erf = unary(sp.erf, special.erf_p.bind, "Error function.")
erfc = unary(sp.erfc, special.erfc_p.bind, "Complementary error function ``1 - erf(x)``.")
gammaln = unary(sp.gammaln, special.lgamma_p.bind, "Logarithm of the size of the gamma function.")
digamma = psi = unary(sp.psi, special.digamma_p.bind, "Digamma function, the derivative of `gammaln`.")
expit = unary(sp.expit, special.logistic_p.bind, "Logistic function ``1 / (1 + exp(-x))``.")
logit = unary(
    sp.logit, special.logit_p.bind, "Logarithm of the odds ``x / (1 - x)``, the inverse of `expit`."
)
xlogy = binary(sp.xlogy, special.xlogy_p.bind, "``x * log(y)``, and 0 where `x` is 0.")
xlog1py = binary(sp.xlog1py, special.xlog1py_p.bind, "``x * log(1 + y)``, and 0 where `x` is 0.")
entr = unary(sp.entr, special.entr_p.bind, "Entropy ``-x * log(x)``, 0 at 0, ``-inf`` left of it.")


def polygamma(n: int, x: Any) -> Any:
    """Derivative of order `n` of the digamma function.

    Parameters
    ----------
    n : int
        Known, not traced, and not negative. 0 gives `digamma`.
    x : array_like

    Returns
    -------
    Array

    Raises
    ------
    ArgumentValueError
        If `n` is negative.

    Notes
    -----
    ``(-1)**(n + 1) * n! * zeta(n + 1, x)``; left of 0 by reflection.

    References
    ----------
    DLMF 5.15.

    Examples
    --------
    >>> from functrans.scipy.special import polygamma
    >>> import numpy as np
    >>> bool(abs(polygamma(1, 1.0) - np.pi**2 / 6) < 1e-15)
    True
    """
    try:
        order = operator.index(n)
    except TypeError:
        raise ArgumentError(f"polygamma: the order must be an integer, got {n!r}") from None
    if order < 0:
        raise ArgumentValueError(f"polygamma: the order must not be negative, got {order}")
    if order == 0:
        return digamma(x)
    return finish(special.polygamma_p.bind(_float(x, "polygamma", 1), m=order))


def _float(x: Any, name: str, position: int = 0) -> Any:
    value = array_operand(x, name, position)
    if dtype_of(value).kind == "c":
        raise DtypeError(f"{name}: argument {position} is complex; take its real part, or its absolute value")
    return value if dtype_of(value).kind == "f" else convert(value, FLOAT64)


def _axes(x: Any, axis: Any, name: str) -> tuple[int, ...]:
    ndim = len(shape_of(x))
    return tuple(range(ndim)) if axis is None else many_axes(axis, ndim, name)


def _kept(x: Any, like: Any, axes: tuple[int, ...]) -> Any:
    """A reduced value with its axes back, at extent 1."""
    return reshape_p.bind(x, shape=tuple([1 if d in axes else n for d, n in enumerate(shape_of(like))]))


def _top(x: Any, axes: tuple[int, ...]) -> Any:
    """The maximum along axes, a constant for derivatives; 0 where it is not finite. The axes are kept."""
    reduce_max_p.abstract(aval_of(x), axes=axes)  # refuses to find the largest of nothing
    top = stop_gradient_p.bind(reduce_max_p.bind(x, axes=axes))
    return _kept(select_p.bind(is_finite_p.bind(top), top, literal(0.0, top)), x, axes)


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """``log(sum(b * exp(a)))`` along axes, without overflow.

    Parameters
    ----------
    a : array_like
        Real.
    axis : int or tuple of int, optional
        By default all.
    b : array_like, optional
        Weights, broadcast against `a`. Where they are 0, `a` may be infinite.
    keepdims : bool
        Keep reduced axes with extent 1.
    return_sign : bool
        Return the logarithm of the size of the sum, and its sign.

    Returns
    -------
    Array, or a tuple of two
        ``-inf`` of nothing. NaN where the sum is negative and its sign is not asked for.

    Examples
    --------
    >>> from functrans.scipy.special import logsumexp
    >>> logsumexp([1000.0, 1000.0])
    Array(1000.69314718)
    """
    x, w = _float(a, "logsumexp"), None
    if b is not None:
        x, w = common(x, _float(b, "logsumexp", 2))
        shape = broadcast_shapes("logsumexp", shape_of(x), shape_of(w))
        x, w = broadcast_to(x, shape), broadcast_to(w, shape)
        # What has no weight must not decide the shift.
        x = select_p.bind(ne_p.bind(w, literal(0.0, w)), x, literal(-math.inf, x))
    axes = _axes(x, axis, "logsumexp")
    if 0 in [shape_of(x)[d] for d in axes]:
        total, shift = reduce_sum_p.bind(x, axes=axes), None
    else:
        shift = _top(x, axes)
        terms = exp_p.bind(sub_p.bind(x, shift))
        total = reduce_sum_p.bind(terms if w is None else mul_p.bind(w, terms), axes=axes)
    total = _kept(total, x, axes) if keepdims else total
    out = log_p.bind(abs_p.bind(total) if return_sign else total)
    if shift is not None:
        out = add_p.bind(out, shift if keepdims else reshape_p.bind(shift, shape=shape_of(out)))
    return (finish(out), finish(sign_p.bind(total))) if return_sign else finish(out)


def softmax(x: Any, axis: Any = None) -> Any:
    """``exp(x) / sum(exp(x))`` along axes, without overflow.

    Parameters
    ----------
    x : array_like
        Real.
    axis : int or tuple of int, optional
        By default all.

    Returns
    -------
    Array
        Of the shape of `x`.

    Examples
    --------
    >>> from functrans.scipy.special import softmax
    >>> softmax([0.0, 0.0])
    Array([0.5, 0.5])
    """
    value = _float(x, "softmax")
    axes = _axes(value, axis, "softmax")
    parts = exp_p.bind(sub_p.bind(value, _top(value, axes)))
    return finish(div_p.bind(parts, _kept(reduce_sum_p.bind(parts, axes=axes), value, axes)))


def log_softmax(x: Any, axis: Any = None) -> Any:
    """Logarithm of `softmax`, precise where that is near 0.

    Parameters
    ----------
    x : array_like
        Real.
    axis : int or tuple of int, optional
        By default all.

    Returns
    -------
    Array
        Of the shape of `x`.

    Examples
    --------
    >>> from functrans.scipy.special import log_softmax
    >>> log_softmax([1000.0, 0.0])
    Array([    0., -1000.])
    """
    value = _float(x, "log_softmax")
    axes = _axes(value, axis, "log_softmax")
    shifted = sub_p.bind(value, _top(value, axes))
    total = reduce_sum_p.bind(exp_p.bind(shifted), axes=axes)
    return finish(sub_p.bind(shifted, _kept(log_p.bind(total), value, axes)))
