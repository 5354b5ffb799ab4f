"""``scipy.special``: exponential integrals, powers, entropies, losses, elementary functions without cancellation."""

from __future__ import annotations

import math
from typing import Any

from ...core.values import ArrayLike, Value
from ...frontend.checked import checked
from ...primitives import ops, special_ops
from ...primitives.ops import binary, finish, literal, unary
from ...primitives.ufunc_fronts import register_special
from ...runtime.libraries import special_ufuncs as sp
from .arguments import by_kind, of_floats, real_float

__all__ = [
    "boxcox", "boxcox1p", "cosm1", "entr", "exp1", "exp10", "expi", "expit", "expn", "exprel", "huber",
    "inv_boxcox", "inv_boxcox1p", "kl_div", "log_expit", "logit", "pseudo_huber", "rel_entr", "shichi", "sici",
    "spence", "wrightomega", "xlog1py", "xlogy",
]  # fmt: skip

expit = unary(sp.expit, ops.logistic_p.bind, "Logistic function ``1 / (1 + exp(-x))``.")
logit = unary(sp.logit, ops.logit_p.bind, "Logarithm of the odds ``x / (1 - x)``, the inverse of `expit`.")
log_expit = unary(
    sp.log_expit,
    lambda x: ops.neg_p.bind(ops.logaddexp_p.bind(literal(0.0, x), ops.neg_p.bind(x))),
    "Logarithm of `expit`.",
    ("[-800.0, 0.0]", "Array([-8.00000000e+02, -6.93147181e-01])"),
)
wrightomega = unary(
    sp.wrightomega,
    by_kind(special_ops.wrightomega_p, special_ops.wrightomega_complex_p),
    "Wright's omega function: the solution `w` of ``w + log(w) = x``.",
    ("[1.0, 2.0]", "Array([1.       , 1.5571456])"),
)
xlogy = binary(
    sp.xlogy, by_kind(ops.xlogy_p, special_ops.xlogy_complex_p), "``x * log(y)``, and 0 where `x` is 0."
)
xlog1py = binary(
    sp.xlog1py,
    by_kind(ops.xlog1py_p, special_ops.xlog1py_complex_p),
    "``x * log(1 + y)``, and 0 where `x` is 0.",
)
entr = unary(sp.entr, ops.entr_p.bind, "Entropy ``-x * log(x)``, 0 at 0, ``-inf`` for negative `x`.")
rel_entr = binary(
    sp.rel_entr,
    special_ops.rel_entr_p.bind,
    "``x * log(x / y)``, and 0 where `x` is 0.",
    ("[0.0, 2.0], 1.0", "Array([0.        , 1.38629436])"),
)
kl_div = binary(
    sp.kl_div,
    special_ops.kl_div_p.bind,
    "``x * log(x / y) - x + y``, and `y` where `x` is 0.",
    ("[0.0, 2.0], 1.0", "Array([1.        , 0.38629436])"),
)

# --- exponential integrals ------------------------------------------------------------------------------------

exp1 = unary(
    sp.exp1,
    by_kind(special_ops.exp1_p, special_ops.exp1_complex_p),
    "Exponential integral: of ``exp(-t) / t`` from `x` to infinity.",
    ("[0.5, 2.0]", "Array([0.55977359, 0.04890051])"),
)
expi = unary(
    sp.expi,
    by_kind(special_ops.expi_p, special_ops.expi_complex_p),
    "Exponential integral: of ``exp(t) / t`` from -infinity to `x`, its principal value.",
    ("[0.5, 2.0]", "Array([0.4542199 , 4.95423436])"),
)
expn = binary(
    sp.expn,
    of_floats(lambda n, x: special_ops.expn_p.bind(n, x, below=0)),
    "Exponential integral of order `x`: of ``exp(-y * t) / t**x`` from 1 to infinity. Differentiable in `y` only.",
    ("2, [0.5, 2.0]", "Array([0.32664386, 0.03753426])"),
)
spence = unary(
    sp.spence,
    by_kind(special_ops.spence_p, special_ops.spence_complex_p),
    "Dilogarithm: the integral of ``log(t) / (1 - t)`` from 1 to `x`.",
    ("[0.0, 2.0]", "Array([ 1.64493407, -0.82246703])"),
)


@checked
def sici(x: ArrayLike) -> tuple[Any, Any]:
    """Sine and cosine integrals.

    Parameters
    ----------
    x : array_like
        Real.

    Returns
    -------
    tuple of Array
        The integral of ``sin(t) / t`` from 0 to `x`; Euler's constant, plus ``log(x)``, plus the integral of
        ``(cos(t) - 1) / t`` from 0 to `x`.

    References
    ----------
    DLMF 6.2.9, 6.2.13.

    Examples
    --------
    >>> from functrans.scipy.special import sici
    >>> sici([0.5, 2.0])
    (Array([0.49310742, 1.60541298]), Array([-0.17778408,  0.42298083]))
    """
    value = real_float(x, "sici")
    sine, cosine = special_ops.sine_integral_p, special_ops.cosine_integral_p
    return finish(sine.bind(value)), finish(cosine.bind(value))


@checked
def shichi(x: ArrayLike) -> tuple[Any, Any]:
    """Hyperbolic sine and cosine integrals.

    Parameters
    ----------
    x : array_like
        Real.

    Returns
    -------
    tuple of Array
        As from `sici`, of sinh and cosh.

    References
    ----------
    DLMF 6.2.15, 6.2.16.

    Examples
    --------
    >>> from functrans.scipy.special import shichi
    >>> shichi([0.5, 2.0])
    (Array([0.50699675, 2.50156743]), Array([-0.05277684,  2.45266692]))
    """
    value = real_float(x, "shichi")
    sinh, cosh = special_ops.sinh_integral_p, special_ops.cosh_integral_p
    return finish(sinh.bind(value)), finish(cosh.bind(value))


register_special("sici", sici)
register_special("shichi", shichi)

# --- powers ----------------------------------------------------------------------------------------------------

boxcox = binary(
    sp.boxcox,
    special_ops.boxcox_p.bind,
    "Box-Cox transform ``(x**y - 1) / y``, and ``log(x)`` where `y` is 0.",
    ("2.0, [0.0, 2.0]", "Array([0.69314718, 1.5       ])"),
)
boxcox1p = binary(
    sp.boxcox1p,
    special_ops.boxcox1p_p.bind,
    "Box-Cox transform of ``1 + x``.",
    ("1.0, [0.0, 2.0]", "Array([0.69314718, 1.5       ])"),
)


def _log_inverse(y: Value, lmbda: Any) -> Value:
    """``log(1 + lmbda y) / lmbda``."""
    one, zero = literal(1.0, y), literal(0.0, y)
    none = ops.and_p.bind(ops.eq_p.bind(lmbda, zero), ops.is_inf_p.bind(y))
    product = ops.mul_p.bind(lmbda, ops.select_p.bind(none, one, y))
    far = ops.is_inf_p.bind(product)
    scale = ops.select_p.bind(far, lmbda, one)
    sizes = [ops.log_p.bind(ops.abs_p.bind(x)) for x in (scale, ops.select_p.bind(far, y, one))]
    large = ops.div_p.bind(ops.add_p.bind(*sizes), scale)
    large = ops.select_p.bind(ops.lt_p.bind(product, zero), literal(math.nan, y), large)
    quotient = special_ops.quotient_p.bind(ops.select_p.bind(far, one, product), of="log1p", m=0)
    return ops.select_p.bind(far, large, ops.mul_p.bind(y, quotient))


inv_boxcox = binary(
    sp.inv_boxcox,
    lambda y, lmbda: ops.exp_p.bind(_log_inverse(y, lmbda)),
    "Inverse of ``boxcox(., y)``.",
    ("1.5, [0.0, 2.0]", "Array([4.48168907, 2.        ])"),
)
inv_boxcox1p = binary(
    sp.inv_boxcox1p,
    lambda y, lmbda: ops.expm1_p.bind(_log_inverse(y, lmbda)),
    "Inverse of ``boxcox1p(., y)``.",
    ("1.5, [0.0, 2.0]", "Array([3.48168907, 1.        ])"),
)
exprel = unary(
    sp.exprel,
    special_ops.exprel_p.bind,
    "``(exp(x) - 1) / x``, and 1 at 0.",
    ("[0.0, 1.0]", "Array([1.        , 1.71828183])"),
)


def _cosm1(x: Value) -> Value:
    sine = ops.sin_p.bind(ops.mul_p.bind(literal(0.5, x), x))
    return ops.mul_p.bind(literal(-2.0, x), ops.mul_p.bind(sine, sine))


cosm1 = unary(
    sp.cosm1, _cosm1, "``cos(x) - 1``, accurate near 0.", ("[0.0, 1e-10]", "Array([-0.e+00, -5.e-21])")
)
exp10 = unary(
    sp.exp10,
    lambda x: ops.pow_p.bind(literal(10.0, x), x),
    "``10**x``.",
    ("[0.0, 2.0]", "Array([  1., 100.])"),
)

# --- losses ----------------------------------------------------------------------------------------------------


def _of_positive(delta: Value, value: Value) -> Value:
    """Return a loss, infinite where `delta` is negative."""
    bad = ops.lt_p.bind(delta, literal(0.0, delta))
    return ops.select_p.bind(bad, literal(float("inf"), delta), value)


def _huber(delta: Any, r: ArrayLike) -> Value:
    size = ops.abs_p.bind(r)
    square = ops.mul_p.bind(literal(0.5, r), ops.mul_p.bind(r, r))
    rest = ops.sub_p.bind(size, ops.mul_p.bind(literal(0.5, delta), delta))
    inside = ops.le_p.bind(size, delta)
    return _of_positive(delta, ops.select_p.bind(inside, square, ops.mul_p.bind(delta, rest)))


def _pseudo_huber(delta: Value, r: Value) -> Value:
    zero, one = literal(0.0, delta), literal(1.0, delta)
    none = ops.eq_p.bind(delta, zero)
    ratio = ops.div_p.bind(r, ops.select_p.bind(none, one, delta))
    root = ops.hypot_p.bind(one, ratio)
    far = ops.is_inf_p.bind(r)
    value = ops.mul_p.bind(r, ops.div_p.bind(ops.select_p.bind(far, one, r), ops.add_p.bind(one, root)))
    value = ops.select_p.bind(far, ops.abs_p.bind(r), value)
    return _of_positive(delta, ops.select_p.bind(none, zero, value))


huber = binary(
    sp.huber,
    _huber,
    "Huber's loss: ``y**2 / 2`` where ``abs(y) <= x``, else ``x * (abs(y) - x / 2)``.",
    ("1.0, [0.5, 3.0]", "Array([0.125, 2.5  ])"),
)
pseudo_huber = binary(
    sp.pseudo_huber,
    _pseudo_huber,
    "Smooth loss ``x**2 * (sqrt(1 + (y / x)**2) - 1)``.",
    ("1.0, [0.5, 3.0]", "Array([0.11803399, 2.16227766])"),
)
