"""Exponential, sine and cosine integrals, the dilogarithm, quotients such as exprel, and what these give."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import FLOAT64, Primitive, quietly
from ...core.kernel import IndexEmitter
from ...core.values import ArrayLike, Value
from ...runtime.libraries import scipy
from ..elementwise.arithmetic import div_p, eq_p, max_p, mul_p, neg_p, select_p, sub_p
from ..elementwise.exp_log import exp_p, integer_pow_p, log1p_p, log_p, pow_p
from ..elementwise.trig import cos_p, cosh_p
from ..families import elementwise, literal
from ..structure.linear import Rule, add_p, broadcast_to, dtype_of, shape_of
from .error_functions import part_of
from .from_scipy import of_scipy, of_scipy_complex, refused

# --- exponential integrals: DLMF 6.2, 8.19.13 ------------------------------------------------------------------


def _decay(ans: Value, z: Value) -> Value:
    return neg_p.bind(div_p.bind(exp_p.bind(neg_p.bind(z)), z))


def _growth(ans: Value, z: Value) -> Value:
    return div_p.bind(exp_p.bind(z), z)


exp1_p: Primitive = of_scipy("exp1", _decay)
exp1_complex_p: Primitive = of_scipy_complex("exp1", _decay)
expi_p: Primitive = of_scipy("expi", _growth)
expi_complex_p: Primitive = of_scipy_complex("expi", _growth)


def _omega_slope(ans: Value, x: Value) -> Value:
    return div_p.bind(ans, add_p.bind(literal(1.0, ans), ans))


#: The solution w of ``w + log(w) = x``: DLMF 4.13.
wrightomega_p: Primitive = of_scipy("wrightomega", _omega_slope)
wrightomega_complex_p: Primitive = of_scipy_complex("wrightomega", _omega_slope)


@quietly
def _expn(n: Value, x: Value, *, below: int) -> Any:
    dtype = np.result_type(n, x)
    n, x = np.trunc(np.asarray(n, np.float64)) - below, np.asarray(x, np.float64)
    out = scipy.special.expn(n, x)
    if below:
        power = 1 - np.minimum(n, 0)
        scale = scipy.special.gamma(power) * scipy.special.gammaincc(power, x)
        out = np.where((n < 0) & (n >= -below), scale * x**-power, out)
    return np.asarray(out).astype(dtype)[()]


def _expn_kernel(k: IndexEmitter, n: ArrayLike, x: ArrayLike, *, below: int) -> Any:
    dtype = x.dtype
    n, x = k.call("trunc", k.cast(n, FLOAT64)) - float(below), k.cast(x, FLOAT64)
    out = k.call("expn", n, x)
    if below:
        power = 1 - k.call("min", n, k.const(0.0, FLOAT64))
        scale = k.call("gamma", power) * k.call("gammaincc", power, x)
        out = k.where((n < 0.0) & (n >= -float(below)), scale * k.call("pow", x, -power), out)
    return k.cast(out, dtype)


#: The function of order ``n - below``. SciPy's orders are integers and not negative; those of derivatives may be
#: negative, with the values ``gamma(1 - n, x) x**(n - 1)`` (DLMF 8.19.1).
expn_p: Primitive = elementwise(
    "expn",
    _expn,
    factors=(
        refused("the derivative of expn(n, x) in its order n"),
        lambda ans, n, x, *, below: neg_p.bind(expn_p.bind(n, x, below=below + 1)),
    ),
    kernel=_expn_kernel,
    kinds="f",
)

# --- quotients with a removable singularity --------------------------------------------------------------------

_SERIES = 44
#: Functions g with g(0) = 0: the coefficient of ``x**k`` in g(x) / x; up to which size of x the series of the
#: derivative of order m is used; the derivative of g of order n, with a function that calls functions by name.
_QUOTIENTS: dict[str, tuple[Callable[..., float], Callable[[int], float], Callable[..., Any]]] = {
    "log1p": (
        lambda k: (-1.0) ** k / (k + 1),
        lambda m: 0.4,
        lambda call, x, n: _power(x / x / (x + 1.0), n) * ((-1.0) ** (n - 1) * math.factorial(n - 1)),
    ),
    "expm1": (
        lambda k: 1 / math.factorial(k + 1),
        lambda m: 0.5 + 2 * m,
        lambda call, x, n: call("exp", x),
    ),
    "sin": (
        lambda k: 0.0 if k % 2 else (-1.0) ** (k // 2) / math.factorial(k + 1),
        lambda m: 0.5 + m,
        lambda call, x, n: call("cos" if n % 2 else "sin", x) * (-1.0 if n % 4 in (2, 3) else 1.0),
    ),
    "sinh": (
        lambda k: 0.0 if k % 2 else 1 / math.factorial(k + 1),
        lambda m: 0.5 + m,
        lambda call, x, n: call("cosh" if n % 2 else "sinh", x),
    ),
}


def _power(x: Value, n: int) -> Value:
    out = x
    for _ in range(n - 1):
        out = out * x
    return out


def _from_series(x: Value, of: str, m: int) -> Value:
    """The derivative of order `m` of g(x) / x near 0."""
    terms = _QUOTIENTS[of][0]
    coefficients = [terms(k) * math.prod(range(k - m + 1, k + 1)) for k in range(m, _SERIES + m)]
    total = x * coefficients[-1] + coefficients[-2]
    for c in reversed(coefficients[:-2]):
        total = total * x + c
    return total


def _from_recurrence(call: Callable[..., Any], x: Value, of: str, m: int) -> Value:
    """The same elsewhere: with ``f = g / x``, the derivative of order n of g is ``x f(n) + n f(n - 1)``."""
    derivative = _QUOTIENTS[of][2]
    out = call(of, x) / x
    for n in range(1, m + 1):
        out = (derivative(call, x, n) - out * float(n)) / x
    return out


@quietly
def _quotient(x: Value, *, of: str, m: int) -> Any:
    wide = np.asarray(x, np.float64)
    close = abs(wide) < _QUOTIENTS[of][1](m)
    far = _from_recurrence(lambda name, y: getattr(np, name)(y), np.where(close, 1.0, wide), of, m)
    out = np.where(close, _from_series(np.where(close, wide, 0.0), of, m), far)
    return np.asarray(out).astype(dtype_of(x))[()]


def _quotient_kernel(k: ArrayLike, x: ArrayLike, *, of: str, m: int) -> Any:
    wide = k.cast(x, FLOAT64)
    close = k.call("abs", wide) < _QUOTIENTS[of][1](m)
    far = _from_recurrence(k.call, k.where(close, k.const(1.0, FLOAT64), wide), of, m)
    near = _from_series(k.where(close, wide, k.const(0.0, FLOAT64)), of, m)
    return k.cast(k.where(close, near, far), x.dtype)


#: The derivative of order `m` of ``g(x) / x``, where `of` names g.
quotient_p: Primitive = elementwise(
    "quotient",
    _quotient,
    factors=(lambda ans, x, *, of, m: quotient_p.bind(x, of=of, m=m + 1),),
    kernel=_quotient_kernel,
    kinds="f",
)
#: ``(exp(x) - 1) / x``.
exprel_p: Primitive = of_scipy("exprel", lambda ans, x: quotient_p.bind(x, of="expm1", m=1))


def _spence_slope(ans: Value, x: Value) -> Value:
    return neg_p.bind(quotient_p.bind(sub_p.bind(x, literal(1.0, x)), of="log1p", m=0))


#: The dilogarithm of 1 - x (DLMF 25.12.2): its derivative is ``log(x) / (1 - x)``.
spence_p: Primitive = of_scipy("spence", _spence_slope)


def _complex_spence_slope(ans: Value, z: Value) -> Value:
    one = literal(1.0, z)
    at_one = eq_p.bind(z, one)
    other = select_p.bind(at_one, broadcast_to(literal(2.0, z), shape_of(z)), z)
    slope = div_p.bind(log_p.bind(other), sub_p.bind(one, other))
    return select_p.bind(at_one, broadcast_to(literal(-1.0, z), shape_of(z)), slope)


#: First derivatives at 1 are right there, higher ones are 0.
spence_complex_p: Primitive = of_scipy_complex("spence", _complex_spence_slope)
xlogy_complex_p: Primitive = of_scipy_complex(
    "xlogy", lambda ans, x, y: log_p.bind(y), lambda ans, x, y: div_p.bind(x, y)
)
xlog1py_complex_p: Primitive = of_scipy_complex(
    "xlog1py",
    lambda ans, x, y: log1p_p.bind(y),
    lambda ans, x, y: div_p.bind(x, add_p.bind(y, literal(1.0, y))),
)

# --- sine and cosine integrals: DLMF 6.2.9, 6.2.11, 6.2.15, 6.2.16 ----------------------------------------------

sine_integral_p: Primitive = part_of("sici", 0, lambda ans, x: quotient_p.bind(x, of="sin", m=0))
cosine_integral_p: Primitive = part_of("sici", 1, lambda ans, x: div_p.bind(cos_p.bind(x), x))
sinh_integral_p: Primitive = part_of("shichi", 0, lambda ans, x: quotient_p.bind(x, of="sinh", m=0))
cosh_integral_p: Primitive = part_of("shichi", 1, lambda ans, x: div_p.bind(cosh_p.bind(x), x))

# --- powers and entropies ----------------------------------------------------------------------------------------


def _boxcox_in_lmbda(log: Rule) -> Rule:
    def factor(ans: Value, x: Value, lmbda: Any) -> Value:
        # exprel of a number times -inf would be 0 times infinity at x = 0.
        size = max_p.bind(log(x), literal(-1e15, x))
        slope = quotient_p.bind(mul_p.bind(lmbda, size), of="expm1", m=1)
        return mul_p.bind(integer_pow_p.bind(size, y=2), slope)

    return factor


def _less_one(x: Value) -> Value:
    return sub_p.bind(x, literal(1.0, x))


#: ``(x**lmbda - 1) / lmbda``, the logarithm of x times exprel of lmbda times it.
boxcox_p: Primitive = of_scipy(
    "boxcox", lambda ans, x, lmbda: pow_p.bind(x, _less_one(lmbda)), _boxcox_in_lmbda(log_p.bind)
)
boxcox1p_p: Primitive = of_scipy(
    "boxcox1p",
    lambda ans, x, lmbda: exp_p.bind(mul_p.bind(_less_one(lmbda), log1p_p.bind(x))),
    _boxcox_in_lmbda(log1p_p.bind),
)


def _log_ratio(x: Value, y: Value) -> Value:
    return log_p.bind(div_p.bind(x, y))


#: ``x log(x / y) - x + y`` and ``x log(x / y)``.
kl_div_p: Primitive = of_scipy(
    "kl_div",
    lambda ans, x, y: _log_ratio(x, y),
    lambda ans, x, y: sub_p.bind(literal(1.0, x), div_p.bind(x, y)),
)
rel_entr_p: Primitive = of_scipy(
    "rel_entr",
    lambda ans, x, y: add_p.bind(_log_ratio(x, y), literal(1.0, x)),
    lambda ans, x, y: neg_p.bind(div_p.bind(x, y)),
)
