"""Functions of `scipy.special` for arrays and traced values.

SciPy's own ufuncs work on traced values too: ``scipy.special.erf(t)`` calls the function defined here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import scipy.special as sp

from ..core import FLOAT64, ArgumentError, ArgumentValueError, DtypeError, Primitive, aval_of, operators
from ..core.module_getattr import module_attributes as _module_attributes
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..numpy.reductions.reductions import mask_operand
from ..primitives import ops, special_ops
from ..primitives.ops import axes_or_all, binary, common, dtype_of, finish, literal, shape_of, ternary, unary

__all__ = [
    "betainc",
    "betaincc",
    "betainccinv",
    "betaincinv",
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "softmax",
    "xlog1py",
    "xlogy",
    "zeta",
]

erf = unary(sp.erf, ops.erf_p.bind, "Error function.")
erfc = unary(sp.erfc, ops.erfc_p.bind, "Complementary error function ``1 - erf(x)``.")
gammaln = unary(sp.gammaln, ops.lgamma_p.bind, "Logarithm of the absolute value of the gamma function.")
digamma = psi = unary(sp.psi, ops.digamma_p.bind, "Digamma function, the derivative of `gammaln`.")
expit = unary(sp.expit, ops.logistic_p.bind, "Logistic function ``1 / (1 + exp(-x))``.")
logit = unary(sp.logit, ops.logit_p.bind, "Logarithm of the odds ``x / (1 - x)``, the inverse of `expit`.")
xlogy = binary(sp.xlogy, ops.xlogy_p.bind, "``x * log(y)``, and 0 where `x` is 0.")
xlog1py = binary(sp.xlog1py, ops.xlog1py_p.bind, "``x * log(1 + y)``, and 0 where `x` is 0.")
erfinv = unary(sp.erfinv, special_ops.erfinv_p.bind, "The inverse of `erf`.")
ndtri = unary(sp.ndtri, special_ops.ndtri_p.bind, "The inverse of `ndtr`.")


def _bessel(n: int, scaled: bool) -> Callable[[Any], Any]:
    return lambda x: ops.bessel_i_p.bind(x, n=n, scaled=scaled)


i0e = unary(sp.i0e, _bessel(0, True), "Modified Bessel function of order 0, times ``exp(-|x|)``.")
i1e = unary(sp.i1e, _bessel(1, True), "Modified Bessel function of order 1, times ``exp(-|x|)``.")
gammainc = binary(
    sp.gammainc,
    special_ops.gammainc_p.bind,
    "Regularised lower incomplete gamma function of `a`, `x`. Differentiable at most twice in `a`.",
)
gammaincc = binary(
    sp.gammaincc,
    special_ops.gammaincc_p.bind,
    "Regularised upper incomplete gamma function of `a`, `x`. Differentiable at most twice in `a`.",
)
entr = unary(sp.entr, ops.entr_p.bind, "Entropy ``-x * log(x)``, 0 at 0, ``-inf`` for negative `x`.")


def _ndtr(x: Any) -> Any:
    half = literal(0.5, x)
    return ops.mul_p.bind(half, ops.erfc_p.bind(ops.mul_p.bind(literal(-math.sqrt(0.5), x), x)))


ndtr = unary(sp.ndtr, _ndtr, "Normal distribution function, ``erfc(-x / sqrt(2)) / 2``.")
i0 = unary(sp.i0, _bessel(0, False), "Modified Bessel function of order 0.")
i1 = unary(sp.i1, _bessel(1, False), "Modified Bessel function of order 1.")
betaln = binary(sp.betaln, ops.betaln_p.bind, "Logarithm of the absolute value of the beta function.")


betainc = ternary(
    sp.betainc,
    special_ops.betainc_p.bind,
    "Regularised incomplete beta function of `a`, `b`, `x`. Differentiable at most once in `a`, `b`.",
)
betaincc = ternary(
    sp.betaincc,
    special_ops.betaincc_p.bind,
    "``1 - betainc(a, b, x)``. Differentiable at most once in `a`, `b`.",
)
betaincinv = ternary(
    sp.betaincinv,
    special_ops.betaincinv_p.bind,
    "The inverse of ``betainc(a, b, x)`` in `x`. Differentiable at most once in `a`, `b`.",
)
betainccinv = ternary(
    sp.betainccinv,
    special_ops.betainccinv_p.bind,
    "The inverse of ``betaincc(a, b, x)`` in `x`. Differentiable at most once in `a`, `b`.",
)
gammaincinv = binary(
    sp.gammaincinv,
    special_ops.gammaincinv_p.bind,
    "The inverse of ``gammainc(a, x)`` in `x`. Differentiable at most twice in `a`.",
)
gammainccinv = binary(
    sp.gammainccinv,
    special_ops.gammainccinv_p.bind,
    "The inverse of ``gammaincc(a, x)`` in `x`. Differentiable at most twice in `a`.",
)


@checked
def zeta(x: Any, q: Any = 1.0) -> Any:
    """Hurwitz's zeta function, the sum of ``(n + q)**-x``; Riemann's for `q` = 1.

    Parameters
    ----------
    x, q : array_like
        They broadcast together.

    Returns
    -------
    Array

    Raises
    ------
    NoRuleError
        When differentiated in `x`.

    References
    ----------
    DLMF 25.11.

    Examples
    --------
    >>> from functrans.scipy.special import zeta
    >>> zeta(2.0)
    Array(1.64493407)
    """
    return _of_parameters("zeta", special_ops.zeta_p, x, q)


def _of_parameters(name: str, prim: Primitive, *given: Any) -> Any:
    """A primitive of real numbers, in their common dtype."""
    values = common(*[_float(x, name, i) for i, x in enumerate(given)])
    ops.broadcast_shapes(name, *map(shape_of, values))
    return finish(prim.bind(*values))


@checked
def polygamma(n: int, x: Any) -> Any:
    """Derivative of order `n` of the digamma function.

    Parameters
    ----------
    n : int
        Not traced, and not negative. 0 gives `digamma`.
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
    ``(-1)**(n + 1) * n! * zeta(n + 1, x)``; for negative `x` by reflection.

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
    return finish(ops.polygamma_p.bind(_float(x, "polygamma", 1), m=order))


def _float(x: Any, name: str, position: int = 0) -> Any:
    value = array_operand(x, name, position)
    if dtype_of(value).kind == "c":
        raise DtypeError(f"{name}: argument {position} is complex; take its real part, or its absolute value")
    return value if dtype_of(value).kind == "f" else ops.convert(value, FLOAT64)


def _axes(x: Any, axis: Any, name: str) -> tuple[int, ...]:
    ndim = len(shape_of(x))
    return axes_or_all(axis, ndim, name)


def _keep_dims(x: Any, like: Any, axes: tuple[int, ...]) -> Any:
    """A reduced value with its axes restored, at extent 1."""
    return ops.reshape_p.bind(x, shape=tuple([1 if d in axes else n for d, n in enumerate(shape_of(like))]))


def _largest(x: Any, axes: tuple[int, ...]) -> Any:
    """The maximum along axes, a constant for derivatives."""
    ops.reduce_max_p.abstract(aval_of(x), axes=axes)  # max of an empty array raises
    return ops.stop_gradient_p.bind(ops.reduce_max_p.bind(x, axes=axes))


def _top(x: Any, axes: tuple[int, ...]) -> Any:
    """`_largest`, or 0 where it is not finite. Axes are kept."""
    top = _largest(x, axes)
    return _keep_dims(ops.select_p.bind(ops.is_finite_p.bind(top), top, literal(0.0, top)), x, axes)


@checked
def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """``log(sum(b * exp(a)))`` along axes, without overflow.

    Parameters
    ----------
    a : array_like
        Real.
    axis : int or tuple of int, optional
        By default all.
    b : array_like, optional
        Weights, broadcast against `a`. Where a weight is 0, `a` may be infinite.
    keepdims : bool
        Whether to keep reduced axes with extent 1.
    return_sign : bool
        Whether to return the logarithm of the sum's absolute value, and its sign.
    where : array_like of bool, optional
        The elements to add. Broadcast against `a`.

    Returns
    -------
    Array, or a tuple of two
        ``-inf`` for an empty sum. NaN where the sum is negative and `return_sign` is False.

    Examples
    --------
    >>> from functrans.scipy.special import logsumexp
    >>> logsumexp([1000.0, 1000.0])
    Array(1000.69314718)
    """
    x, w = _float(a, "logsumexp"), None
    if where is not None:
        mask = mask_operand(where, shape_of(x), "logsumexp")
        x = ops.select_p.bind(mask, x, literal(-math.inf, x))
    if b is not None:
        x, w = common(x, _float(b, "logsumexp", 2))
        shape = ops.broadcast_shapes("logsumexp", shape_of(x), shape_of(w))
        x, w = ops.broadcast_to(x, shape), ops.broadcast_to(w, shape)
        # Elements of weight 0 must not determine the shift.
        x = ops.select_p.bind(ops.ne_p.bind(w, literal(0.0, w)), x, literal(-math.inf, x))
    axes = _axes(x, axis, "logsumexp")
    if 0 in [shape_of(x)[d] for d in axes]:
        total, shift = ops.reduce_sum_p.bind(x, axes=axes), None
    else:
        shift = _top(x, axes)
        terms = ops.exp_p.bind(ops.sub_p.bind(x, shift))
        total = ops.reduce_sum_p.bind(terms if w is None else ops.mul_p.bind(w, terms), axes=axes)
    total = _keep_dims(total, x, axes) if keepdims else total
    out = ops.log_p.bind(ops.abs_p.bind(total) if return_sign else total)
    if shift is not None:
        out = ops.add_p.bind(out, shift if keepdims else ops.reshape_p.bind(shift, shape=shape_of(out)))
    return (finish(out), finish(ops.sign_p.bind(total))) if return_sign else finish(out)


@checked
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
        With the shape of `x`. All NaN along an axis with an element ``inf``, or with only ``-inf``, as in SciPy.

    Examples
    --------
    >>> from functrans.scipy.special import softmax
    >>> softmax([0.0, 0.0])
    Array([0.5, 0.5])
    """
    value = _float(x, "softmax")
    axes = _axes(value, axis, "softmax")
    parts = ops.exp_p.bind(ops.sub_p.bind(value, _keep_dims(_largest(value, axes), value, axes)))
    return finish(ops.div_p.bind(parts, _keep_dims(ops.reduce_sum_p.bind(parts, axes=axes), value, axes)))


@checked
def log_softmax(x: Any, axis: Any = None) -> Any:
    """Logarithm of `softmax`, accurate where `softmax` is near 0.

    Parameters
    ----------
    x : array_like
        Real.
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
    value = _float(x, "log_softmax")
    axes = _axes(value, axis, "log_softmax")
    shifted = ops.sub_p.bind(value, _top(value, axes))
    total = ops.reduce_sum_p.bind(ops.exp_p.bind(shifted), axes=axes)
    return finish(ops.sub_p.bind(shifted, _keep_dims(ops.log_p.bind(total), value, axes)))


#: Functions of SciPy written in Python, which convert their arguments.
operators.converting.update(
    {
        name: f"Write functrans.scipy.special.{name}"
        for name in ("logsumexp", "softmax", "log_softmax", "polygamma")
    }
)
#: SciPy's names for functions that are in functrans.numpy.
_IN_NUMPY = ("cbrt", "deg2rad", "exp2", "expm1", "log1p", "logaddexp", "rad2deg", "sinc", "sign")
__getattr__, __dir__ = _module_attributes(
    "functrans.scipy.special", globals(), {name: f"Write functrans.numpy.{name}" for name in _IN_NUMPY}
)
