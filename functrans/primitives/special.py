"""Special functions: erf, erfc, lgamma and its derivatives of all orders, the polygamma functions."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.special

from ..core.dtypes import FLOAT64
from ..core.primitive import Primitive
from .elementwise import mul_p, neg_p
from .exp_log import exp_p, integer_pow_p, multiplied
from .families import elementwise, literal
from .linear import Rule


def _real(name: str, impl: Rule, term: Rule) -> Primitive:
    return elementwise(name, impl, terms=(term,), kernel=lambda k, x: k.call(name, x), kinds="f")


def _bell(x: Any, factor: float) -> Any:
    """``factor exp(-x**2)``."""
    return mul_p.bind(literal(factor, x), exp_p.bind(neg_p.bind(integer_pow_p.bind(x, y=2))))


_SLOPE = 2 / math.sqrt(math.pi)

erf_p: Primitive = _real("erf", scipy.special.erf, lambda t, ans, x: mul_p.bind(t, _bell(x, _SLOPE)))
erfc_p: Primitive = _real("erfc", scipy.special.erfc, lambda t, ans, x: mul_p.bind(t, _bell(x, -_SLOPE)))

lgamma_p: Primitive = _real(
    "lgamma", scipy.special.gammaln, lambda t, ans, x: mul_p.bind(t, digamma_p.bind(x))
)
digamma_p: Primitive = _real(
    "digamma", scipy.special.psi, lambda t, ans, x: mul_p.bind(t, polygamma_p.bind(x, m=1))
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
    polynomial = cot * 0.0
    for c in reversed(_cotangent_derivative(m)):
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
    terms=(lambda t, ans, x, *, m: mul_p.bind(t, polygamma_p.bind(x, m=m + 1)),),
    kernel=_polygamma_kernel,
    kinds="f",
)
