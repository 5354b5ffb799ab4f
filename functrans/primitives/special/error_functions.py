"""Functions related to erf and the normal distribution: erfcx, Dawson's, Faddeeva's, Fresnel's, Owen's.

Where derivatives by recurrence would cancel (erfcx, Dawson's function), their order `m` is a parameter of the
primitive, with a different formula.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import FLOAT64, Primitive, quietly
from ...core.values import ArrayLike, Value
from ...runtime.libraries import scipy
from ..elementwise.arithmetic import convert, div_p, ge_p, max_p, min_p, mul_p, neg_p, select_p, sub_p
from ..elementwise.exp_log import exp_p, integer_pow_p
from ..elementwise.trig import cos_p, sin_p
from ..families import elementwise, literal
from ..structure.linear import add_p, dtype_of
from .formulas import FORMULAS, on_arrays
from .from_scipy import of_scipy, of_scipy_complex
from .functions import bell_p, erf_p, erfc_p

_ROOT_PI = math.sqrt(math.pi)


def scaled(factor: float, x: Value) -> Value:
    """``factor * x``."""
    return mul_p.bind(literal(factor, x), x)


def _bell(x: Value) -> Value:
    """``exp(-x**2)``."""
    return exp_p.bind(neg_p.bind(integer_pow_p.bind(x, y=2)))


# --- erfcx: DLMF 7.18 ----------------------------------------------------------------------------------------

_LEFT = -1.0
"""Where the recurrence takes over: below, it adds numbers of one sign."""


def _by_recurrence(x: Value, erfcx: Any, m: int) -> Value:
    """The derivative of order `m` for negative `x`: ``(-2)**m m!`` times DLMF 7.18.7."""
    below, here = 2 / _ROOT_PI, erfcx
    for n in range(1, m + 1):
        below, here = here, x * here * (-1 / n) + below * (1 / (2 * n))
    return here * ((-2.0) ** m * math.factorial(m))


@quietly
def _erfcx(x: Value, *, m: int) -> Value:
    wide = np.asarray(x, np.float64)
    out = scipy.special.erfcx(wide)
    if m:
        moment = on_arrays(FORMULAS["erfcx_moment"])(wide, float(m))
        out = np.where(wide < _LEFT, _by_recurrence(wide, out, m), moment * ((-2.0) ** m * 2 / _ROOT_PI))
    return np.asarray(out).astype(dtype_of(x))[()]


def _erfcx_kernel(k: ArrayLike, x: ArrayLike, *, m: int) -> Any:
    if m == 0:
        return k.call("erfcx", x)
    wide = k.cast(x, FLOAT64)
    left = _by_recurrence(wide, k.call("erfcx", wide), m)
    right = k.call("erfcx_moment", wide, k.const(float(m), FLOAT64)) * ((-2.0) ** m * 2 / _ROOT_PI)
    return k.cast(k.where(wide < _LEFT, left, right), x.dtype)


#: The derivative of order `m` of ``exp(x**2) erfc(x)``.
erfcx_p: Primitive = elementwise(
    "erfcx", _erfcx, factors=(lambda ans, x, *, m: erfcx_p.bind(x, m=m + 1),), kernel=_erfcx_kernel, kinds="f"
)
erfcx_complex_p: Primitive = of_scipy_complex(
    "erfcx", lambda ans, z: sub_p.bind(scaled(2.0, mul_p.bind(z, ans)), literal(2 / _ROOT_PI, z))
)

# --- logarithm of the normal distribution function -------------------------------------------------------------


def log_ndtr_slope(x: Value) -> Value:
    """The density over the distribution function, without cancellation in either tail."""
    zero = literal(0.0, x)
    left, right = min_p.bind(x, zero), max_p.bind(x, zero)
    mills = erfcx_p.bind(scaled(-math.sqrt(0.5), left), m=0)
    low = div_p.bind(literal(math.sqrt(2 / math.pi), x), mills)
    root = scaled(math.sqrt(0.5), right)
    high = div_p.bind(scaled(math.sqrt(2 / math.pi), bell_p.bind(root, m=0)), erfc_p.bind(neg_p.bind(root)))
    return select_p.bind(ge_p.bind(x, zero), high, low)


log_ndtr_p: Primitive = of_scipy("log_ndtr", lambda ans, x: log_ndtr_slope(x))
#: The inverse of `log_ndtr`.
ndtri_exp_p: Primitive = of_scipy(
    "ndtri_exp", lambda ans, y: div_p.bind(literal(1.0, y), log_ndtr_slope(ans))
)
erfcinv_p: Primitive = of_scipy(
    "erfcinv", lambda ans, x: scaled(-_ROOT_PI / 2, exp_p.bind(integer_pow_p.bind(ans, y=2)))
)

# --- Dawson's function: DLMF 7.10.3, 7.12 ---------------------------------------------------------------------

_FAR = 7.0
"""From here on the asymptotic series is exact."""
_TERMS = 26


def _near_dawsn(x: Value, dawsn: Any, m: int) -> Any:
    """The derivative of order `m` by recurrence, ``D' = 1 - 2 x D``."""
    below, here = dawsn, dawsn
    for n in range(m):
        below, here = here, x * here * -2.0 + (1.0 if n == 0 else below * (-2.0 * n))
    return here


def _far_dawsn(y: Value, m: int) -> Value:
    """The same far out, for ``y = 1 / abs(x)``: derivatives of ``sum((2 k - 1)!! / (2**(k + 1) x**(2 k + 1)))``."""
    coefficient, coefficients = 0.5, []
    for k in range(_TERMS):
        coefficients.append(coefficient * math.prod(range(2 * k + 1, 2 * k + 1 + m)))
        coefficient *= (2 * k + 1) / 2
    total = y * y * coefficients[-1] + coefficients[-2]
    for c in reversed(coefficients[:-2]):
        total = total * (y * y) + c
    for _ in range(m + 1):
        total = total * y
    return total * (-1.0) ** m


@quietly
def _dawsn(x: Value, *, m: int) -> Value:
    wide = np.asarray(x, np.float64)
    out = scipy.special.dawsn(wide)
    if m:
        far = _far_dawsn(1 / np.maximum(abs(wide), _FAR), m)
        far = far if m % 2 else np.copysign(1.0, wide) * far
        out = np.where(abs(wide) < _FAR, _near_dawsn(wide, out, m), far)
    return np.asarray(out).astype(dtype_of(x))[()]


def _dawsn_kernel(k: ArrayLike, x: ArrayLike, *, m: int) -> Any:
    if m == 0:
        return k.call("dawsn", x)
    wide = k.cast(x, FLOAT64)
    size = k.call("abs", wide)
    one = k.const(1.0, FLOAT64)
    far = _far_dawsn(one / k.call("max", size, k.const(_FAR, FLOAT64)), m)
    far = far if m % 2 else far * k.call("copysign", one, wide)
    return k.cast(k.where(size < _FAR, _near_dawsn(wide, k.call("dawsn", wide), m), far), x.dtype)


#: The derivative of order `m` of ``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to x.
dawsn_p: Primitive = elementwise(
    "dawsn", _dawsn, factors=(lambda ans, x, *, m: dawsn_p.bind(x, m=m + 1),), kernel=_dawsn_kernel, kinds="f"
)
dawsn_complex_p: Primitive = of_scipy_complex(
    "dawsn", lambda ans, z: sub_p.bind(literal(1.0, z), scaled(2.0, mul_p.bind(z, ans)))
)

# --- functions with elementary derivatives: DLMF 7.2, 7.10.2 -----------------------------------------------------


def _square_exp(z: Value) -> Value:
    return exp_p.bind(integer_pow_p.bind(z, y=2))


erfi_p: Primitive = of_scipy("erfi", lambda ans, x: scaled(2 / _ROOT_PI, _square_exp(x)))
erfi_complex_p: Primitive = of_scipy_complex("erfi", lambda ans, z: scaled(2 / _ROOT_PI, _square_exp(z)))
erf_complex_p: Primitive = of_scipy_complex("erf", lambda ans, z: scaled(2 / _ROOT_PI, _bell(z)))
erfc_complex_p: Primitive = of_scipy_complex("erfc", lambda ans, z: scaled(-2 / _ROOT_PI, _bell(z)))


def _half_square(z: Value) -> Value:
    return scaled(-0.5, integer_pow_p.bind(z, y=2))


ndtr_complex_p: Primitive = of_scipy_complex(
    "ndtr", lambda ans, z: scaled(1 / math.sqrt(2 * math.pi), exp_p.bind(_half_square(z)))
)
log_ndtr_complex_p: Primitive = of_scipy_complex(
    "log_ndtr",
    lambda ans, z: scaled(1 / math.sqrt(2 * math.pi), exp_p.bind(sub_p.bind(_half_square(z), ans))),
)


def _wofz_slope(ans: Value, z: Value) -> Value:
    return sub_p.bind(convert(2j / _ROOT_PI, dtype_of(z)), scaled(2.0, mul_p.bind(z, ans)))


wofz_p: Primitive = of_scipy_complex("wofz", _wofz_slope)


def part_of(name: str, part: int, factor: ArrayLike) -> Primitive:
    """One of several results of SciPy's function."""

    def impl(x: Value) -> Value:
        return np.asarray(getattr(scipy.special, name)(np.asarray(x, np.float64))[part]).astype(dtype_of(x))[
            ()
        ]

    return elementwise(
        f"{name}{part}", impl, factors=(factor,), kernel=lambda k, x: k.call(f"{name}{part}", x), kinds="f"
    )


def _quarter_turns(x: Value) -> Value:
    """``pi x**2 / 2``, of which sine and cosine are the slopes of Fresnel's integrals (DLMF 7.2.7)."""
    return scaled(math.pi / 2, integer_pow_p.bind(x, y=2))


fresnel_s_p: Primitive = part_of("fresnel", 0, lambda ans, x: sin_p.bind(_quarter_turns(x)))
fresnel_c_p: Primitive = part_of("fresnel", 1, lambda ans, x: cos_p.bind(_quarter_turns(x)))


def _owens_t_in_h(ans: Value, h: Value, a: Value) -> Value:
    root = math.sqrt(0.5)
    bell = bell_p.bind(scaled(root, h), m=0)
    return scaled(-0.5 / math.sqrt(2 * math.pi), mul_p.bind(bell, erf_p.bind(scaled(root, mul_p.bind(a, h)))))


def _owens_t_in_a(ans: Value, h: Value, a: Value) -> Value:
    spread = add_p.bind(literal(1.0, a), integer_pow_p.bind(a, y=2))
    power = scaled(-0.5, mul_p.bind(integer_pow_p.bind(h, y=2), spread))
    return div_p.bind(scaled(0.5 / math.pi, exp_p.bind(power)), spread)


#: D. B. Owen, Tables for computing bivariate normal probabilities, 1956.
owens_t_p: Primitive = of_scipy("owens_t", _owens_t_in_h, _owens_t_in_a)
