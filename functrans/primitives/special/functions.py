"""Special functions: erf, x log y, log-gamma, log-beta and their derivatives, Bessel functions i0, i1 and i0e, i1e."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...core import FLOAT64, Primitive, quietly
from ...core.kernel import IndexEmitter
from ...core.values import ArrayLike, Value
from ...runtime.libraries import scipy
from ..elementwise.arithmetic import div_p, ge_p, mul_p, neg_p, select_p, sub_p
from ..elementwise.complexes import abs_p
from ..elementwise.exp_log import log1p_p, log_p, multiplied
from ..elementwise.rounding import sign_p
from ..families import elementwise, literal
from ..structure.linear import Rule, add_p


def _real(name: str, impl: Rule, factor: Rule) -> Primitive:
    return elementwise(name, impl, factors=(factor,), kernel=lambda k, x: k.call(name, x), kinds="f")


@quietly
def _bell(x: Value, *, m: int) -> Value:
    """The derivative of order `m` of ``exp(-x**2)``: itself times a Hermite polynomial (DLMF 18.5.5)."""
    bell = np.exp(-np.square(x))
    return np.where(bell == 0, bell, bell * _hermite(x, np.ones_like(x), m))[()]


def _hermite(x: Value, one: Any, m: int) -> Any:
    """``(-1)**m H_m(x)`` by recurrence (DLMF 18.9.1), for arrays and kernel scalars."""
    before, now = one, one
    for n in range(m):
        before, now = now, x * now * -2.0 - (before * (2.0 * n) if n else 0.0)
    return now


def _bell_kernel(k: IndexEmitter, x: Any, *, m: int) -> Any:
    bell = k.call("exp", -(x * x))
    return k.where(bell.eq(0.0), bell, bell * _hermite(x, k.const(1, x.dtype), m))


bell_p: Primitive = elementwise(
    "bell", _bell, factors=(lambda ans, x, *, m: bell_p.bind(x, m=m + 1),), kernel=_bell_kernel, kinds="f"
)

_SLOPE = 2 / math.sqrt(math.pi)


def _scaled_bell(x: Value, factor: float) -> Value:
    return mul_p.bind(literal(factor, x), bell_p.bind(x, m=0))


erf_p: Primitive = _real("erf", lambda x: scipy.special.erf(x), lambda ans, x: _scaled_bell(x, _SLOPE))
erfc_p: Primitive = _real("erfc", lambda x: scipy.special.erfc(x), lambda ans, x: _scaled_bell(x, -_SLOPE))

lgamma_p: Primitive = _real("lgamma", lambda x: scipy.special.gammaln(x), lambda ans, x: digamma_p.bind(x))
digamma_p: Primitive = _real(
    "digamma", lambda x: scipy.special.psi(x), lambda ans, x: polygamma_p.bind(x, m=1)
)

# --- x log y ------------------------------------------------------------------------------------------------


@quietly
def _xdivy(x: ArrayLike, y: ArrayLike) -> Any:
    return np.where((x == 0) & (y == y), x, x / y)[()]


#: ``x / y``, and 0 where `x` is 0.
xdivy_p: Primitive = elementwise(
    "xdivy",
    _xdivy,
    terms=(
        lambda t, ans, x, y: div_p.bind(t, y),
        lambda t, ans, x, y: mul_p.bind(t, neg_p.bind(xdivy_p.bind(ans, y))),
    ),
    transposes=(lambda ct, x, y: div_p.bind(ct, y), None),
    kernel=lambda k, x, y: k.where(x.eq(0.0) & y.eq(y), x, x / y),
    kinds="f",
)


def _x_times(log: str) -> Callable[..., Any]:
    def emit(k: IndexEmitter, x: Any, y: Any) -> Any:
        # 0 where x is 0, except that NaN propagates.
        return k.where(x.eq(0.0) & y.eq(y), k.const(0, x.dtype), x * k.call(log, y))

    return emit


xlogy_p: Primitive = elementwise(
    "xlogy",
    lambda x, y: scipy.special.xlogy(x, y),
    factors=(
        lambda ans, x, y: log_p.bind(y),
        lambda ans, x, y: xdivy_p.bind(x, y),
    ),
    kernel=_x_times("log"),
    kinds="f",
)

xlog1py_p: Primitive = elementwise(
    "xlog1py",
    lambda x, y: scipy.special.xlog1py(x, y),
    factors=(
        lambda ans, x, y: log1p_p.bind(y),
        lambda ans, x, y: xdivy_p.bind(x, add_p.bind(y, literal(1.0, y))),
    ),
    kernel=_x_times("log1p"),
    kinds="f",
)


def _entr_kernel(k: IndexEmitter, x: ArrayLike) -> Any:
    zero, low = k.const(0, x.dtype), k.const(-math.inf, x.dtype)
    return k.where(x.eq(0.0), zero, k.where(x < 0.0, low, -x * k.call("log", x)))


entr_p: Primitive = elementwise(
    "entr",
    lambda x: scipy.special.entr(x),
    factors=(lambda ans, x: sub_p.bind(literal(-1.0, x), log_p.bind(x)),),
    kernel=_entr_kernel,
    kinds="f",
)

# --- polygamma ----------------------------------------------------------------------------------------------

_SHIFT = 10
"""The recurrence shifts arguments to at least this, where the asymptotic series applies."""
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


def _reflected(x: Value, cot: Any, positive: Any, m: int) -> Value:
    """The value for negative `x`, from ``m! zeta(m + 1, 1 - x)`` and ``cot(pi x)`` (DLMF 5.15.6)."""
    *rest, leading = _cotangent_derivative(m)
    polynomial = cot * float(leading) + float(rest.pop())  # no 0 * inf at the poles
    for c in reversed(rest):
        polynomial = polynomial * cot + float(c)
    return polynomial * -(math.pi ** (m + 1)) - positive


@quietly
def _polygamma(x: Value, *, m: int) -> Any:
    x = np.asarray(x)
    wide = x.astype(np.float64)
    left = wide < 0
    if not left.any():
        return (_sign(m) * math.gamma(m + 1) * scipy.special.zeta(m + 1.0, wide)).astype(x.dtype)[()]
    # SciPy's zeta steps from a negative argument up to 9 in unit steps, which never ends from -1e20.
    value = math.gamma(m + 1) * scipy.special.zeta(m + 1.0, np.where(left, 1 - wide, wide))
    angle = np.pi * (wide - np.rint(wide))
    negative = _reflected(wide, np.cos(angle) / np.sin(angle), value, m)
    value = np.where(left, negative, _sign(m) * value)
    pole = left & (np.floor(wide) == wide)
    return np.where(pole, _sign(m) * np.inf, value).astype(x.dtype)[()]


def _sign(m: int) -> float:
    return 1.0 if m % 2 else -1.0


def positive_polygamma(one: Value, x: Value, m: int) -> Value:
    """``m! zeta(m + 1, x)`` for ``x > 0``: 10 steps, then the asymptotic series (DLMF 5.15.8)."""
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


def _polygamma_kernel(k: ArrayLike, x: ArrayLike, *, m: int) -> Any:
    if m == 1:
        return k.call("trigamma", x)
    wide = k.cast(x, FLOAT64)
    zero = k.const(0, FLOAT64)
    left = wide < zero
    value = positive_polygamma(k.const(1, FLOAT64), k.where(left, 1 - wide, wide), m)
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

# --- beta function ------------------------------------------------------------------------------------------


def positive_gap(one: Any, log1p: Rule, a: Value, b: Value, m: int) -> Value:
    """``polygamma(m, a) - polygamma(m, a + b)`` for positive numbers, without cancellation.

    The series of `positive_polygamma` and of digamma (DLMF 5.11.2), term by term: differences of powers of
    ``u = 1 / (a + k)`` and ``v = 1 / (a + b + k)`` contain the factor ``u - v = u / (1 + (a + k) / b)``.
    """
    total = None
    for step in range(_SHIFT + 1):
        u = one / (a + float(step))
        v = one / (a + b + float(step))
        gap = u / (one + (a + float(step)) / b)
        power, quotient = one, [one]  # of v; (u**(p + 1) - v**(p + 1)) / (u - v)
        for _ in range(m if step < _SHIFT else m + 2 * len(_BERNOULLI)):
            power = power * v
            quotient.append(u * quotient[-1] + power)
        if step < _SHIFT:
            part = gap * quotient[m]
            total = part if total is None else total + part
    first = log1p(b * u) if m == 0 else gap * quotient[m - 1] * (1 / m)
    total = total + first + gap * quotient[m] * 0.5
    for i, bernoulli in enumerate(_BERNOULLI, start=1):
        factor = bernoulli * math.gamma(2 * i + m) / (math.gamma(2 * i + 1) * math.gamma(m + 1))
        total = total + gap * quotient[2 * i + m - 1] * factor
    return total * (_sign(m) * math.gamma(m + 1))


@quietly
def _polygamma_gap(a: Value, b: Value, *, m: int) -> Value:
    dtype = np.result_type(a, b)
    a, b = (np.asarray(x, np.float64) for x in (a, b))
    value = positive_gap(1.0, np.log1p, a, b, m)
    left = (a <= 0) | (b <= 0)
    if left.any():
        psi = scipy.special.psi if m == 0 else partial(_polygamma, m=m)
        value = np.where(left, psi(a) - psi(a + b), value)
    return np.asarray(value, dtype)[()]


def _polygamma_gap_kernel(k: Any, a: Any, b: Any, *, m: int) -> Any:
    dtype, zero = a.dtype, k.const(0, FLOAT64)
    a, b = k.cast(a, FLOAT64), k.cast(b, FLOAT64)
    value = positive_gap(k.const(1, FLOAT64), lambda x: k.call("log1p", x), a, b, m)
    first, second = (k.call("digamma", x) if m == 0 else _polygamma_kernel(k, x, m=m) for x in (a, a + b))
    return k.cast(k.where((a <= zero) | (b <= zero), first - second, value), dtype)


#: ``polygamma(m, a) - polygamma(m, a + b)``.
polygamma_gap_p: Primitive = elementwise(
    "polygamma_gap",
    _polygamma_gap,
    factors=(
        lambda ans, a, b, *, m: polygamma_gap_p.bind(a, b, m=m + 1),
        lambda ans, a, b, *, m: neg_p.bind(polygamma_p.bind(add_p.bind(a, b), m=m + 1)),
    ),
    kernel=_polygamma_gap_kernel,
    kinds="f",
)

betaln_p: Primitive = elementwise(
    "betaln",
    lambda a, b: scipy.special.betaln(a, b),
    factors=(
        lambda ans, a, b: polygamma_gap_p.bind(a, b, m=0),
        lambda ans, a, b: polygamma_gap_p.bind(b, a, m=0),
    ),
    kernel=lambda k, a, b: k.call("betaln", a, b),
    kinds="f",
)


def _name(n: int, scaled: bool) -> str:
    """Return SciPy's name of the function; orders other than 0 and 1 are an argument of a general one."""
    return f"i{n if n in (0, 1) else 'v'}{'e' if scaled else ''}"


def _bessel_i(x: Value, *, n: int, scaled: bool) -> Value:
    function = getattr(scipy.special, _name(n, scaled))
    # SciPy's orders are floats; its float32 loop would round them, too.
    return function(x) if n in (0, 1) else function(np.asarray(x).dtype.type(n), x)


_FAR = 25.0
"""From here on derivatives of scaled functions use the asymptotic series: differences would lose all digits."""
_TERMS = 40


@lru_cache(maxsize=64)
def _series(n: int, m: int) -> tuple[float, ...]:
    """Coefficients of ``y**k`` in the derivative of order `m` over ``y**(m + 1/2)``, ``y = 1 / x`` (DLMF 10.40.1)."""
    coefficients, term = [], 1 / math.sqrt(2 * math.pi)
    for k in range(_TERMS):
        coefficients.append(term * (-1) ** m * math.prod(k + 0.5 + i for i in range(m)))
        term *= ((2 * k + 1) ** 2 - 4 * n * n) / (8 * (k + 1))
    return tuple(coefficients)


def _far_sum(y: Value, root: Value, n: int, m: int) -> Value:
    """The series at ``y = 1 / abs(x)``, for arrays and kernel scalars."""
    *rest, total = _series(n, m)
    value = y * total + rest.pop()
    for c in reversed(rest):
        value = value * y + c
    return value * root * multiplied(y, m)


def _far_slope(x: Value, *, n: int, m: int) -> Value:
    y = 1 / np.maximum(np.abs(np.asarray(x, np.float64)), _FAR)
    value = _far_sum(y, np.sqrt(y), n, m)
    value = np.copysign(1.0, x) * value if (n + m) % 2 else value
    return np.asarray(value, np.asarray(x).dtype)[()]


def _far_slope_kernel(k: ArrayLike, x: ArrayLike, *, n: int, m: int) -> Any:
    one = k.const(1, FLOAT64)
    y = one / k.call("max", k.cast(k.call("abs", x), FLOAT64), k.const(_FAR, FLOAT64))
    value = k.cast(_far_sum(y, k.call("sqrt", y), n, m), x.dtype)
    return k.call("copysign", k.const(1, x.dtype), x) * value if (n + m) % 2 else value


#: Derivatives of order ``m >= 1`` of scaled functions where ``abs(x) >= _FAR``; elsewhere the value at `_FAR`.
far_slope_p: Primitive = elementwise(
    "bessel_i_far_slope",
    _far_slope,
    factors=(lambda ans, x, *, n, m: far_slope_p.bind(x, n=n, m=m + 1),),
    kernel=_far_slope_kernel,
    kinds="f",
)


def _slope(ans: Value, x: Value, *, n: int, scaled: bool) -> Value:
    """Half the sum of the neighbouring orders; orders n and -n are equal (DLMF 10.27.1, 10.29.1)."""
    if n == 0:
        slope = bessel_i_p.bind(x, n=1, scaled=scaled)
    else:
        below, above = (bessel_i_p.bind(x, n=m, scaled=scaled) for m in (n - 1, n + 1))
        slope = mul_p.bind(add_p.bind(below, above), literal(0.5, x))
    if not scaled:
        return slope
    near = sub_p.bind(slope, mul_p.bind(sign_p.bind(x), ans))
    far = ge_p.bind(abs_p.bind(x), literal(_FAR, x))
    return select_p.bind(far, far_slope_p.bind(x, n=n, m=1), near)


def _kernel(k: IndexEmitter, x: Any, *, n: int, scaled: bool) -> Any:
    order = () if n in (0, 1) else (k.const(n, x.dtype),)
    return k.call(_name(n, scaled), *order, x)


bessel_i_p: Primitive = elementwise(
    "bessel_i",
    _bessel_i,
    factors=(_slope,),
    kernel=_kernel,
    kinds="f",
)
