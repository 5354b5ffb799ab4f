"""Special functions: erf, the gamma function's logarithm and its derivatives, logistic, x log y."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.special

from ..core.dtypes import FLOAT64
from ..core.primitive import Primitive
from .elementwise import div_p, eq_p, mul_p, neg_p, select_p, sub_p
from .exp_log import exp_p, integer_pow_p, log1p_p, log_p, multiplied
from .families import elementwise, literal
from .linear import Rule, add_p


def _real(name: str, impl: Rule, factor: Rule) -> Primitive:
    return elementwise(name, impl, factors=(factor,), kernel=lambda k, x: k.call(name, x), kinds="f")


def _bell(x: Any, factor: float) -> Any:
    """``factor exp(-x**2)``."""
    return mul_p.bind(literal(factor, x), exp_p.bind(neg_p.bind(integer_pow_p.bind(x, y=2))))


_SLOPE = 2 / math.sqrt(math.pi)

erf_p: Primitive = _real("erf", scipy.special.erf, lambda ans, x: _bell(x, _SLOPE))
erfc_p: Primitive = _real("erfc", scipy.special.erfc, lambda ans, x: _bell(x, -_SLOPE))

lgamma_p: Primitive = _real("lgamma", scipy.special.gammaln, lambda ans, x: digamma_p.bind(x))
digamma_p: Primitive = _real("digamma", scipy.special.psi, lambda ans, x: polygamma_p.bind(x, m=1))

# --- logistic -----------------------------------------------------------------------------------------------


def _logistic_kernel(k: Any, x: Any) -> Any:
    one = k.const(1, x.dtype)
    small = k.call("exp", -k.call("abs", x))
    return k.where(x >= 0, one, small) / (small + one)


logistic_p: Primitive = elementwise(
    "logistic",
    scipy.special.expit,
    factors=(lambda ans, x: mul_p.bind(ans, sub_p.bind(literal(1.0, ans), ans)),),
    kernel=_logistic_kernel,
    kinds="f",
)


def _logit_kernel(k: Any, x: Any) -> Any:
    one = k.const(1, x.dtype)
    # Near 1/2, where the quotient is near 1, its logarithm loses digits.
    twice = x * 2.0 - one
    middle = k.call("log1p", twice) - k.call("log1p", -twice)
    return k.where(k.call("abs", twice) < 0.4, middle, k.call("log", x / (one - x)))


logit_p: Primitive = elementwise(
    "logit",
    scipy.special.logit,
    terms=(lambda t, ans, x: div_p.bind(t, mul_p.bind(x, sub_p.bind(literal(1.0, x), x))),),
    kernel=_logit_kernel,
    kinds="f",
)

# --- x log y ------------------------------------------------------------------------------------------------


def _is_zero(x: Any) -> Any:
    return eq_p.bind(x, literal(0.0, x))


def _ratio(x: Any, y: Any) -> Any:
    """``x / y``, and 0 where `x` is 0."""
    return div_p.bind(x, select_p.bind(_is_zero(x), literal(1.0, x), y))


def _x_times(log: str) -> Callable[..., Any]:
    def emit(k: Any, x: Any, y: Any) -> Any:
        # 0 where x is 0, but NaN stays.
        return k.where(x.eq(0.0) & y.eq(y), k.const(0, x.dtype), x * k.call(log, y))

    return emit


xlogy_p: Primitive = elementwise(
    "xlogy",
    scipy.special.xlogy,
    factors=(
        lambda ans, x, y: log_p.bind(y),
        lambda ans, x, y: _ratio(x, y),
    ),
    kernel=_x_times("log"),
    kinds="f",
)

xlog1py_p: Primitive = elementwise(
    "xlog1py",
    scipy.special.xlog1py,
    factors=(
        lambda ans, x, y: log1p_p.bind(y),
        lambda ans, x, y: _ratio(x, add_p.bind(y, literal(1.0, y))),
    ),
    kernel=_x_times("log1p"),
    kinds="f",
)


def _entr_kernel(k: Any, x: Any) -> Any:
    zero, low = k.const(0, x.dtype), k.const(-math.inf, x.dtype)
    return k.where(x.eq(0.0), zero, k.where(x < 0.0, low, -x * k.call("log", x)))


entr_p: Primitive = elementwise(
    "entr",
    scipy.special.entr,
    factors=(lambda ans, x: sub_p.bind(literal(-1.0, x), log_p.bind(x)),),
    kernel=_entr_kernel,
    kinds="f",
)

# --- polygamma ----------------------------------------------------------------------------------------------

_SHIFT = 10
"""The asymptotic series is used for arguments of at least this, to which recurrence leads."""
_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
)  # fmt: skip


@lru_cache(maxsize=64)
def _cotangent_derivative(m: int) -> tuple[int, ...]:
    """Coefficients of the `m`-th derivative of cot, a polynomial in cot, since cot' is ``-1 - cot**2``."""
    p = [0, 1]
    for _ in range(m):
        slope = [n * c for n, c in enumerate(p)][1:]
        p = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope])]
    return tuple(p)


def _reflected(x: Any, cot: Any, positive: Any, m: int) -> Any:
    """Value left of 0, from ``m! zeta(m + 1, 1 - x)`` and ``cot(pi x)`` (DLMF 5.15.6)."""
    *rest, leading = _cotangent_derivative(m)
    polynomial = cot * float(leading) + float(rest.pop())  # no zero times an infinite cotangent, at the poles
    for c in reversed(rest):
        polynomial = polynomial * cot + float(c)
    return polynomial * -(math.pi ** (m + 1)) - positive


def _polygamma(x: Any, *, m: int) -> Any:
    x = np.asarray(x)
    wide = x.astype(np.float64)
    left = wide < 0
    if not left.any():
        return (_sign(m) * math.gamma(m + 1) * scipy.special.zeta(m + 1.0, wide)).astype(x.dtype)[()]
    # SciPy's zeta steps from a negative argument up to 9 one by one, and never arrives from -1e20.
    value = math.gamma(m + 1) * scipy.special.zeta(m + 1.0, np.where(left, 1 - wide, wide))
    with np.errstate(all="ignore"):
        angle = np.pi * (wide - np.rint(wide))
        negative = _reflected(wide, np.cos(angle) / np.sin(angle), value, m)
    value = np.where(left, negative, _sign(m) * value)
    pole = left & (np.floor(wide) == wide)
    return np.where(pole, _sign(m) * np.inf, value).astype(x.dtype)[()]


def _sign(m: int) -> float:
    return 1.0 if m % 2 else -1.0


def _positive_polygamma(k: Any, x: Any, m: int) -> Any:
    """``m! zeta(m + 1, x)`` for ``x > 0``: 10 steps, then the asymptotic series (DLMF 5.15.8)."""
    one = k.const(1, x.dtype)
    total = multiplied(one / x, m + 1)
    for step in range(1, _SHIFT):
        total = total + multiplied(one / (x + float(step)), m + 1)
    y = one / (x + float(_SHIFT))
    power = multiplied(y, m)
    series = power * (1 / m) + power * y * 0.5
    for i, bernoulli in enumerate(_BERNOULLI, start=1):
        power = power * (y * y)
        series = series + power * (
            bernoulli * math.gamma(2 * i + m) / (math.gamma(2 * i + 1) * math.gamma(m + 1))
        )
    return (total + series) * math.gamma(m + 1)


def _polygamma_kernel(k: Any, x: Any, *, m: int) -> Any:
    if m == 1:
        return k.call("trigamma", x)
    wide = k.cast(x, FLOAT64)
    zero = k.const(0, FLOAT64)
    left = wide < zero
    value = _positive_polygamma(k, k.where(left, 1 - wide, wide), m)
    angle = (wide - k.call("rint", wide)) * math.pi
    negative = _reflected(wide, k.call("cos", angle) / k.call("sin", angle), value, m)
    pole = (wide <= zero) & k.call("floor", wide).eq(wide)
    value = k.where(left, negative, value * _sign(m))
    return k.cast(k.where(pole, k.const(_sign(m) * math.inf, FLOAT64), value), x.dtype)


polygamma_p: Primitive = elementwise(
    "polygamma",
    _polygamma,
    factors=(lambda ans, x, *, m: polygamma_p.bind(x, m=m + 1),),
    kernel=_polygamma_kernel,
    kinds="f",
)
