"""Special functions that SciPy computes: inverses of erf and of the normal distribution function, incomplete gamma and
beta functions, the Hurwitz zeta function. Kernels call SciPy's exported routines, which lack the incomplete beta and
the zeta function.

Where a derivative in a parameter has no closed form, requesting it raises an error; it is not taken for zero.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from ...core import NoRuleError, Primitive
from ...core.libraries import scipy
from ..elementwise.arithmetic import mul_p, neg_p, sub_p
from ..elementwise.exp_log import exp_p, integer_pow_p
from ..families import elementwise, literal
from ..structure.linear import Rule, add_p
from .functions import lgamma_p, xlog1py_p, xlogy_p


def _refused(what: str) -> Rule:
    def factor(ans: Any, *operands: Any) -> NoReturn:
        raise NoRuleError(
            f"{what} has no closed form and is not implemented. If you do not need it, hold the argument constant with "
            "functrans.lax.stop_gradient"
        )

    return factor


def _less_one(x: Any) -> Any:
    return sub_p.bind(x, literal(1.0, x))


# --- inverses -----------------------------------------------------------------------------------------------

erfinv_p = elementwise(
    "erfinv",
    lambda x: scipy.special.erfinv(x),
    factors=(
        lambda ans, x: mul_p.bind(
            literal(math.sqrt(math.pi) / 2, x), exp_p.bind(integer_pow_p.bind(ans, y=2))
        ),
    ),
    kernel=lambda k, x: k.call("erfinv", x),
    kinds="f",
)
ndtri_p = elementwise(
    "ndtri",
    lambda x: scipy.special.ndtri(x),
    factors=(
        lambda ans, x: mul_p.bind(
            literal(math.sqrt(2 * math.pi), x),
            exp_p.bind(mul_p.bind(literal(0.5, x), integer_pow_p.bind(ans, y=2))),
        ),
    ),
    kernel=lambda k, x: k.call("ndtri", x),
    kinds="f",
)

# --- incomplete gamma and beta functions: DLMF 8.8.13, 8.17.20 ------------------------------------------------


def _gamma_density(a: Any, x: Any) -> Any:
    """``x**(a - 1) exp(-x) / gamma(a)``."""
    power = xlogy_p.bind(_less_one(a), x)
    return exp_p.bind(sub_p.bind(sub_p.bind(power, x), lgamma_p.bind(a)))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """``x**(a - 1) (1 - x)**(b - 1) / beta(a, b)``."""
    logarithm = sub_p.bind(lgamma_p.bind(add_p.bind(a, b)), add_p.bind(lgamma_p.bind(a), lgamma_p.bind(b)))
    powers = add_p.bind(xlogy_p.bind(_less_one(a), x), xlog1py_p.bind(_less_one(b), neg_p.bind(x)))
    return exp_p.bind(add_p.bind(powers, logarithm))


gammainc_p = elementwise(
    "gammainc",
    lambda a, x: scipy.special.gammainc(a, x),
    factors=(
        _refused("the derivative of the incomplete gamma function in its parameter a"),
        lambda ans, a, x: _gamma_density(a, x),
    ),
    kernel=lambda k, a, x: k.call("gammainc", a, x),
    kinds="f",
)
gammaincc_p = elementwise(
    "gammaincc",
    lambda a, x: scipy.special.gammaincc(a, x),
    factors=(
        _refused("the derivative of the incomplete gamma function in its parameter a"),
        lambda ans, a, x: neg_p.bind(_gamma_density(a, x)),
    ),
    kernel=lambda k, a, x: k.call("gammaincc", a, x),
    kinds="f",
)
betainc_p = elementwise(
    "betainc",
    lambda a, b, x: scipy.special.betainc(a, b, x),
    factors=(
        _refused("the derivative of the incomplete beta function in its parameter a"),
        _refused("the derivative of the incomplete beta function in its parameter b"),
        lambda ans, a, b, x: _beta_density(a, b, x),
    ),
    kinds="f",
)

# --- Hurwitz's zeta: DLMF 25.11.17 ---------------------------------------------------------------------------


def _zeta(s: Any, q: Any) -> Any:
    out = scipy.special.zeta(s, q)
    return out.astype(np.result_type(s, q), copy=False) if isinstance(out, np.ndarray) else out


zeta_p: Primitive = elementwise(
    "zeta",
    _zeta,
    factors=(
        _refused("the derivative of zeta(s, q) in s"),
        lambda ans, s, q: neg_p.bind(mul_p.bind(s, zeta_p.bind(add_p.bind(s, literal(1.0, s)), q))),
    ),
    kinds="f",
)
