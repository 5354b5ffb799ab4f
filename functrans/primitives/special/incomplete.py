"""The incomplete gamma and beta functions, and their derivatives in the parameters."""

from __future__ import annotations

import math
from typing import Any

from ...core import Primitive
from ...core.libraries import scipy
from ..elementwise.arithmetic import div_p, eq_p, mul_p, neg_p, select_p, sub_p
from ..elementwise.bits import or_p
from ..elementwise.exp_log import exp_p, log_p
from ..families import elementwise, literal
from ..structure.linear import Rule, add_p
from .formulas import FORMULAS, on_arrays
from .from_scipy import refused
from .functions import digamma_p, lgamma_p, polygamma_p, xlog1py_p, xlogy_p


def _less_one(x: Any) -> Any:
    return sub_p.bind(x, literal(1.0, x))


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


def _relative_slope(a: Any, x: Any) -> Any:
    """The derivative of the logarithm of the density in `x`: ``(a - 1) / x - 1``."""
    return _less_one(div_p.bind(_less_one(a), x))


#: ``x**(a - 1) exp(-x) / gamma(a)``.
gamma_density_p: Primitive = _of_formula(
    "gamma_density",
    lambda ans, a, x: mul_p.bind(ans, sub_p.bind(log_p.bind(x), digamma_p.bind(a))),
    lambda ans, a, x: mul_p.bind(ans, _relative_slope(a, x)),
)


def _quantile_slope_in_x(ans: Any, a: Any, x: Any) -> Any:
    # The density times `ans` is minus the derivative of P in a, whose derivative in x is that of the density in a.
    return sub_p.bind(sub_p.bind(digamma_p.bind(a), log_p.bind(x)), mul_p.bind(ans, _relative_slope(a, x)))


def _quantile_bend_in_x(ans: Any, a: Any, x: Any) -> Any:
    slope = gamma_quantile_slope_p.bind(a, x)
    rest = add_p.bind(mul_p.bind(ans, _relative_slope(a, x)), div_p.bind(slope, x))
    return sub_p.bind(polygamma_p.bind(a, m=1), rest)


#: The derivative in `a` of the quantile `x` at a fixed probability, and that derivative's own in `a`.
gamma_quantile_slope_p: Primitive = _of_formula(
    "gamma_quantile_slope", lambda ans, a, x: gamma_quantile_bend_p.bind(a, x), _quantile_slope_in_x
)
gamma_quantile_bend_p: Primitive = _of_formula(
    "gamma_quantile_bend",
    refused("the third derivative of the incomplete gamma function in its parameter a"),
    _quantile_bend_in_x,
)


def gammainc_slope(a: Any, x: Any) -> Any:
    """The derivative of the incomplete gamma function P(a, x) in `a`: minus density times slope of the quantile."""
    # As `a` vanishes, the density does, and the slope grows without bound; their product has a limit.
    a = select_p.bind(eq_p.bind(a, literal(0.0, a)), literal(1e-30, a), a)
    slope = mul_p.bind(gamma_density_p.bind(a, x), gamma_quantile_slope_p.bind(a, x))
    zero, infinite = literal(0.0, x), literal(math.inf, x)
    edge = or_p.bind(or_p.bind(eq_p.bind(x, zero), eq_p.bind(x, infinite)), eq_p.bind(a, infinite))
    return select_p.bind(edge, zero, neg_p.bind(slope))


gammainc_p = elementwise(
    "gammainc",
    lambda a, x: scipy.special.gammainc(a, x),
    factors=(
        lambda ans, a, x: gammainc_slope(a, x),
        lambda ans, a, x: gamma_density_p.bind(a, x),
    ),
    kernel=lambda k, a, x: k.call("gammainc", a, x),
    kinds="f",
)
gammaincc_p = elementwise(
    "gammaincc",
    lambda a, x: scipy.special.gammaincc(a, x),
    factors=(
        lambda ans, a, x: neg_p.bind(gammainc_slope(a, x)),
        lambda ans, a, x: neg_p.bind(gamma_density_p.bind(a, x)),
    ),
    kernel=lambda k, a, x: k.call("gammaincc", a, x),
    kinds="f",
)

# --- incomplete beta function: DLMF 8.17.20 ------------------------------------------------------------------


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """``x**(a - 1) (1 - x)**(b - 1) / beta(a, b)``."""
    logarithm = sub_p.bind(lgamma_p.bind(add_p.bind(a, b)), add_p.bind(lgamma_p.bind(a), lgamma_p.bind(b)))
    powers = add_p.bind(xlogy_p.bind(_less_one(a), x), xlog1py_p.bind(_less_one(b), neg_p.bind(x)))
    return exp_p.bind(add_p.bind(powers, logarithm))


betainc_p = elementwise(
    "betainc",
    lambda a, b, x: scipy.special.betainc(a, b, x),
    factors=(
        refused("the derivative of the incomplete beta function in its parameter a"),
        refused("the derivative of the incomplete beta function in its parameter b"),
        lambda ans, a, b, x: _beta_density(a, b, x),
    ),
    kinds="f",
)
