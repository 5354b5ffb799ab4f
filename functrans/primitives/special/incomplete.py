"""The incomplete gamma and beta functions, and their derivatives in the parameters."""

from __future__ import annotations

import math

from ...core import Primitive
from ...core.values import Value
from ..elementwise.arithmetic import div_p, eq_p, mul_p, neg_p, select_p, sub_p
from ..elementwise.bits import or_p
from ..elementwise.exp_log import log1p_p, log_p
from ..families import elementwise, literal
from ..structure.linear import Rule, add_p
from .formulas import FORMULAS, QUANTILE_ORDERS, on_arrays
from .from_scipy import of_scipy, refused
from .functions import digamma_p, polygamma_gap_p, polygamma_p


def _less_one(x: Value) -> Value:
    return sub_p.bind(x, literal(1.0, x))


def _reciprocal(x: Value) -> Value:
    return div_p.bind(literal(1.0, x), x)


def _of_formula(name: str, *factors: Rule) -> Primitive:
    """A primitive whose values are those of a formula."""
    return elementwise(
        name,
        on_arrays(FORMULAS[name]),
        factors=factors,
        kernel=lambda k, *operands: k.call(name, *operands),
        kinds="f",
    )


# --- incomplete gamma function: DLMF 8.8.13 ------------------------------------------------------------------


def _relative_slope(a: Value, x: Value) -> Value:
    """The derivative of the logarithm of the density in `x`: ``(a - 1) / x - 1``."""
    return _less_one(div_p.bind(_less_one(a), x))


#: ``x**(a - 1) exp(-x) / gamma(a)``.
gamma_density_p: Primitive = _of_formula(
    "gamma_density",
    lambda ans, a, x: mul_p.bind(ans, sub_p.bind(log_p.bind(x), digamma_p.bind(a))),
    lambda ans, a, x: mul_p.bind(ans, _relative_slope(a, x)),
)


def _quantile_slope_in_a(ans: Value, a: Value, x: Value, *, order: int) -> Value:
    if order + 1 == QUANTILE_ORDERS:
        refused(f"derivative {order + 2} of the incomplete gamma function in its parameter a")(ans)
    return gamma_quantile_slope_p.bind(a, x, order=order + 1)


def _quantile_slope_in_x(ans: Value, a: Value, x: Value, *, order: int) -> Value:
    # The density times the slope of order 0 is minus the derivative of P in a, whose derivative in x is that of the
    # density in a.
    psi = digamma_p.bind(a) if order == 0 else polygamma_p.bind(a, m=order)
    total = mul_p.bind(ans, _relative_slope(a, x))
    if order == 0:
        return sub_p.bind(sub_p.bind(psi, log_p.bind(x)), total)
    below = mul_p.bind(gamma_quantile_slope_p.bind(a, x, order=order - 1), literal(float(order), x))
    return sub_p.bind(psi, add_p.bind(total, div_p.bind(below, x)))


#: The derivative in `a` of the quantile `x` at a fixed probability, and the derivative of that of `order` in `a`.
gamma_quantile_slope_p: Primitive = elementwise(
    "gamma_quantile_slope",
    lambda a, x, *, order: on_arrays(FORMULAS[f"gamma_quantile_slope{order}"])(a, x),
    factors=(_quantile_slope_in_a, _quantile_slope_in_x),
    kernel=lambda k, a, x, *, order: k.call(f"gamma_quantile_slope{order}", a, x),
    kinds="f",
)


def gammainc_slope(a: Value, x: Value) -> Value:
    """The derivative of the incomplete gamma function P(a, x) in `a`: minus density times slope of the quantile."""
    # As `a` vanishes, the density does, and the slope grows without bound; their product has a limit.
    a = select_p.bind(eq_p.bind(a, literal(0.0, a)), literal(1e-30, a), a)
    slope = mul_p.bind(gamma_density_p.bind(a, x), gamma_quantile_slope_p.bind(a, x, order=0))
    zero, infinite = literal(0.0, x), literal(math.inf, x)
    edge = or_p.bind(or_p.bind(eq_p.bind(x, zero), eq_p.bind(x, infinite)), eq_p.bind(a, infinite))
    return select_p.bind(edge, zero, neg_p.bind(slope))


gammainc_p = of_scipy(
    "gammainc",
    lambda ans, a, x: gammainc_slope(a, x),
    lambda ans, a, x: gamma_density_p.bind(a, x),
)
gammaincc_p = of_scipy(
    "gammaincc",
    lambda ans, a, x: neg_p.bind(gammainc_slope(a, x)),
    lambda ans, a, x: neg_p.bind(gamma_density_p.bind(a, x)),
)


def _quantile_in_a(ans: Value, a: Value, p: Value) -> Value:
    return gamma_quantile_slope_p.bind(a, ans, order=0)


#: Quantiles: ``gammainc(a, x) = p``, ``gammaincc(a, x) = p``.
gammaincinv_p = of_scipy(
    "gammaincinv",
    _quantile_in_a,
    lambda ans, a, p: _reciprocal(gamma_density_p.bind(a, ans)),
)
gammainccinv_p = of_scipy(
    "gammainccinv",
    _quantile_in_a,
    lambda ans, a, p: neg_p.bind(_reciprocal(gamma_density_p.bind(a, ans))),
)

# --- incomplete beta function: DLMF 8.17.20 ------------------------------------------------------------------


def _log_gap(a: Value, b: Value, x: Value) -> Value:
    """The derivative in `a` of the logarithm of the density: ``log(x) - digamma(a) + digamma(a + b)``."""
    return sub_p.bind(log_p.bind(x), polygamma_gap_p.bind(a, b, m=0))


def _log1p_gap(a: Value, b: Value, x: Value) -> Value:
    """The same in `b`: ``log(1 - x) - digamma(b) + digamma(a + b)``."""
    return sub_p.bind(log1p_p.bind(neg_p.bind(x)), polygamma_gap_p.bind(b, a, m=0))


def _rest(x: Value) -> Value:
    return sub_p.bind(literal(1.0, x), x)


def _beta_relative_slope(a: Value, b: Value, x: Value) -> Value:
    """The derivative in `x` of the logarithm of the density: ``(a - 1) / x - (b - 1) / (1 - x)``."""
    return sub_p.bind(div_p.bind(_less_one(a), x), div_p.bind(_less_one(b), _rest(x)))


#: ``x**(a - 1) (1 - x)**(b - 1) / beta(a, b)``.
beta_density_p: Primitive = _of_formula(
    "beta_density",
    lambda ans, a, b, x: mul_p.bind(ans, _log_gap(a, b, x)),
    lambda ans, a, b, x: mul_p.bind(ans, _log1p_gap(a, b, x)),
    lambda ans, a, b, x: mul_p.bind(ans, _beta_relative_slope(a, b, x)),
)


def _slope_in_x(gap: Rule, sign: Rule) -> Rule:
    def factor(ans: Value, a: Value, b: Value, x: Value) -> Value:
        # The density times x (1 - x) times `ans` is the derivative in a parameter, up to its sign; its
        # derivative in x is that of the density in the parameter.
        rate = sub_p.bind(a, mul_p.bind(add_p.bind(a, b), x))
        total = add_p.bind(sign(gap(a, b, x)), mul_p.bind(ans, rate))
        return neg_p.bind(div_p.bind(total, mul_p.bind(x, _rest(x))))

    return factor


_SECOND = "the second derivative of the incomplete beta function in its parameters a and b"
#: Derivatives of the quantile in `a` and (its negative) in `b` at a fixed probability, over ``x (1 - x)``.
beta_slope_a_p: Primitive = _of_formula(
    "beta_slope_a", refused(_SECOND), refused(_SECOND), _slope_in_x(_log_gap, lambda x: x)
)
beta_slope_b_p: Primitive = _of_formula(
    "beta_slope_b", refused(_SECOND), refused(_SECOND), _slope_in_x(_log1p_gap, neg_p.bind)
)


def _betainc_slope(slope_p: Primitive, a: Value, b: Value, x: Value) -> Value:
    """The size of the derivative of the incomplete beta function in a parameter: 0 at the ends."""
    zero, one = literal(0.0, x), literal(1.0, x)
    edge = or_p.bind(eq_p.bind(x, zero), eq_p.bind(x, one))
    x = select_p.bind(edge, literal(0.5, x), x)
    scale = mul_p.bind(mul_p.bind(beta_density_p.bind(a, b, x), x), _rest(x))
    return select_p.bind(edge, zero, mul_p.bind(scale, slope_p.bind(a, b, x)))


betainc_p = of_scipy(
    "betainc",
    lambda ans, a, b, x: neg_p.bind(_betainc_slope(beta_slope_a_p, a, b, x)),
    lambda ans, a, b, x: _betainc_slope(beta_slope_b_p, a, b, x),
    lambda ans, a, b, x: beta_density_p.bind(a, b, x),
)
betaincc_p = of_scipy(
    "betaincc",
    lambda ans, a, b, x: _betainc_slope(beta_slope_a_p, a, b, x),
    lambda ans, a, b, x: neg_p.bind(_betainc_slope(beta_slope_b_p, a, b, x)),
    lambda ans, a, b, x: neg_p.bind(beta_density_p.bind(a, b, x)),
)


def _beta_quantile_slope(slope_p: Primitive, a: Value, b: Value, x: Value) -> Value:
    """The size of the derivative of the quantile `x` in a parameter."""
    zero, one = literal(0.0, x), literal(1.0, x)
    edge = or_p.bind(eq_p.bind(x, zero), eq_p.bind(x, one))
    inside = select_p.bind(edge, literal(0.5, x), x)
    scale = mul_p.bind(x, _rest(x))
    return mul_p.bind(scale, slope_p.bind(a, b, inside))


#: Quantiles: ``betainc(a, b, x) = p``, ``betaincc(a, b, x) = p``.
betaincinv_p = of_scipy(
    "betaincinv",
    lambda ans, a, b, p: _beta_quantile_slope(beta_slope_a_p, a, b, ans),
    lambda ans, a, b, p: neg_p.bind(_beta_quantile_slope(beta_slope_b_p, a, b, ans)),
    lambda ans, a, b, p: _reciprocal(beta_density_p.bind(a, b, ans)),
)
betainccinv_p = of_scipy(
    "betainccinv",
    lambda ans, a, b, p: _beta_quantile_slope(beta_slope_a_p, a, b, ans),
    lambda ans, a, b, p: neg_p.bind(_beta_quantile_slope(beta_slope_b_p, a, b, ans)),
    lambda ans, a, b, p: neg_p.bind(_reciprocal(beta_density_p.bind(a, b, ans))),
)
