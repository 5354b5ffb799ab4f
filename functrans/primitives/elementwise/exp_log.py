"""Exponentials, logarithms, powers and roots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import ArgumentValueError, Primitive, is_inexact, quietly
from ...core.kernel import IndexEmitter
from ...core.values import Value
from ...passes.rewriter import Hole, Yields
from ..families import elementwise, literal, of_product
from ..structure.linear import add_p
from .arithmetic import div_p, eq_p, mul_p, select_p, sub_p
from .bits import and_p

LN2 = math.log(2.0)
LN10 = math.log(10.0)

# --- exponentials -------------------------------------------------------------------------------------------

exp_p: Primitive = elementwise(
    "exp",
    np.exp,
    factors=(lambda ans, x: ans,),
    kernel=lambda k, x: k.call("exp", x),
    kinds="fc",
)

exp2_p: Primitive = elementwise(
    "exp2",
    np.exp2,
    factors=(lambda ans, x: mul_p.bind(ans, literal(LN2, x)),),
    kernel=lambda k, x: k.call("exp2", x),
    kinds="fc",
)

expm1_p: Primitive = elementwise(
    "expm1",
    np.expm1,
    factors=(lambda ans, x: exp_p.bind(x),),  # ``ans + 1`` cancels where the result is nearly -1
    kernel=lambda k, x: k.call("expm1", x),
    kinds="fc",
)

# --- logarithms ---------------------------------------------------------------------------------------------

log_p: Primitive = elementwise(
    "log",
    np.log,
    terms=(lambda t, ans, x: div_p.bind(t, x),),
    kernel=lambda k, x: k.call("log", x),
    kinds="fc",
)

log2_p: Primitive = elementwise(
    "log2",
    np.log2,
    terms=(lambda t, ans, x: div_p.bind(t, mul_p.bind(x, literal(LN2, x))),),
    kernel=lambda k, x: k.call("log2", x),
    kinds="fc",
)

log10_p: Primitive = elementwise(
    "log10",
    np.log10,
    terms=(lambda t, ans, x: div_p.bind(t, mul_p.bind(x, literal(LN10, x))),),
    kernel=lambda k, x: k.call("log10", x),
    kinds="fc",
)


def _log1p(x: Value) -> Any:
    """NumPy's function rounds ``1 + x`` where x is complex.

    So near 0 the real part is log1p(Re x (Re x + 2) + (Im x)^2) / 2.
    """
    if np.asarray(x).dtype.kind != "c":
        return np.log1p(x)
    wide = np.asarray(x, np.complex128)
    near = (np.abs(wide.real) < 0.5) & (np.abs(wide.imag) < 0.5)
    out = np.log1p(wide)
    small = wide[near]
    if small.size:
        out = np.array(out)
        out.real[near] = 0.5 * np.log1p(small.real * (small.real + 2.0) + small.imag * small.imag)
    return out.astype(np.asarray(x).dtype)[()]


log1p_p: Primitive = elementwise(
    "log1p",
    _log1p,
    terms=(lambda t, ans, x: div_p.bind(t, add_p.bind(x, literal(1.0, x))),),
    kernel=lambda k, x: k.call("log1p", x),
    kinds="fc",
)


# --- powers -------------------------------------------------------------------------------------------------


def multiplied(x: Value, n: int) -> Any:
    """``x ** n`` for ``n >= 1`` by squaring, for anything that supports multiplication."""
    result = None
    while True:
        if n & 1:
            result = x if result is None else result * x
        n >>= 1
        if not n:
            return result
        x = x * x


def _integer_pow(x: Value, *, y: int) -> Any:
    if y == 2:
        return np.square(x)
    if y == 0:
        return np.ones_like(x)[()]
    if not isinstance(x, np.ndarray | np.generic):
        x = np.asarray(x)
    power = multiplied(x, abs(y))
    return np.asarray(power)[()] if y > 0 else np.reciprocal(power)


def _integer_pow_kernel(k: IndexEmitter, x: Any, *, y: int) -> Any:
    one = k.const(1, x.dtype)
    if y == 0:
        return one
    power = multiplied(x, abs(y))
    if y > 0:
        return power
    return _complex_reciprocal(k, power) if x.dtype.kind == "c" else one / power


def _complex_reciprocal(k: IndexEmitter, z: Any) -> Any:
    """NumPy's ``reciprocal``, which differs from ``1 / z`` at zero and infinity."""
    x, y = k.call("real", z), k.call("imag", z)
    one = k.const(1, x.dtype)
    wide = k.call("abs", y) <= k.call("abs", x)
    ratio = k.where(wide, y, x) / k.where(wide, x, y)
    size = k.where(wide, x, y) + k.where(wide, y, x) * ratio
    small, large = ratio / size, one / size
    return k.call("complex", k.where(wide, large, small), -k.where(wide, small, large))


def _integer_pow_factor(ans: Value, x: Value, *, y: int) -> Value:
    if y in (0, 1):
        return literal(float(y), x)
    inner = x if y == 2 else integer_pow_p.bind(x, y=y - 1)
    return mul_p.bind(inner, literal(float(y), x))


integer_pow_p: Primitive = elementwise(
    "integer_pow",
    _integer_pow,
    factors=(_integer_pow_factor,),
    kernel=_integer_pow_kernel,
    kinds="iufc",
)


@quietly
def _weighted(w: Any, x: Any) -> Any:
    return np.where(w == 0, w, w * x)[()]


#: ``w * x``, and 0 where `w` is 0, even if `x` is infinite.
weighted_p: Primitive = elementwise(
    "weighted",
    _weighted,
    terms=(lambda t, ans, w, x: mul_p.bind(t, x), lambda t, ans, w, x: weighted_p.bind(w, t)),
    transposes=(lambda ct, w, x: mul_p.bind(ct, x), lambda ct, w, x: weighted_p.bind(w, ct)),
    taylor=of_product,
    kernel=lambda k, w, x: k.where(w.eq(0), w, w * x),
    kinds="fc",
)


@quietly
def _pow_less(x: Any, power: Any, *, y: float) -> Any:
    rest = np.where(power == np.inf, np.zeros_like(power), np.divide(power, x))
    return np.where(x == 0, np.full_like(power, np.inf), rest)[()]


def _pow_less_kernel(k: IndexEmitter, x: Any, power: Any, *, y: float) -> Any:
    zero, infinity = k.const(0.0, x.dtype), k.const(math.inf, x.dtype)
    return k.where(x.eq(zero), infinity, k.where(power.eq(infinity), zero, power / x))


def _pow_less_factor(ans: Value, x: Value, power: Any, *, y: float) -> Value:
    return mul_p.bind(literal(y - 1.0, x), pow_p.bind(x, literal(y - 2.0, x)))


#: ``x**(y - 1)`` from the power ``x**y``: a division instead of another power. It is for ``0 < y <= 0.8``, where
#: `power` is never too large or too small for a normal number. Its derivatives are those of ``x**(y - 1)``.
pow_less_p: Primitive = elementwise(
    "pow_less",
    _pow_less,
    factors=(_pow_less_factor, None),
    kernel=_pow_less_kernel,
    kinds="f",
)


def _pow_base_factor(ans: Value, x: Value, y: Value) -> Value:
    """``y x**(y - 1)``, and 0 where ``y == 0``, even at ``x == 0``."""
    if isinstance(y, (float, np.floating)) and 0.0 < y <= 0.8:
        return mul_p.bind(y, pow_less_p.bind(x, ans, y=float(y)))
    return weighted_p.bind(y, pow_p.bind(x, sub_p.bind(y, literal(1.0, y))))


def _pow_exponent_factor(ans: Value, x: Value, y: Value) -> Value:
    """``x**y log(x)``, and 0 at ``x == y == 0``: ``0**y`` is constant for ``y > 0``."""
    zero = literal(0.0, x)
    origin = and_p.bind(eq_p.bind(x, zero), eq_p.bind(y, zero))
    return select_p.bind(origin, zero, pow_log_p.bind(x, y, m=1))


@quietly
def _pow_log(x: Value, y: Value, *, m: int) -> Any:
    power = np.power(x, y)
    return np.where(power == 0, power, power * multiplied(np.log(x), m))[()]


def _pow_log_kernel(k: Any, x: Any, y: Any, *, m: int) -> Any:
    power = k.call("pow", x, y)
    return k.where(power.eq(0), power, power * multiplied(k.call("log", x), m))


def _pow_log_factor(ans: Value, x: Value, y: Value, *, m: int) -> Value:
    less = sub_p.bind(y, literal(1.0, y))
    rest = pow_p.bind(x, less) if m == 1 else pow_log_p.bind(x, less, m=m - 1)
    return add_p.bind(
        weighted_p.bind(y, pow_log_p.bind(x, less, m=m)), mul_p.bind(literal(float(m), x), rest)
    )


#: ``x**y log(x)**m`` for ``m > 0``, and 0 where the power is 0: derivatives of the power in its exponent.
pow_log_p: Primitive = elementwise(
    "pow_log",
    _pow_log,
    factors=(_pow_log_factor, lambda ans, x, y, *, m: pow_log_p.bind(x, y, m=m + 1)),
    kernel=_pow_log_kernel,
    kinds="fc",
)


def _pow(x: Value, y: Value) -> Value:
    try:
        return np.power(x, y)
    except ValueError as error:
        if "negative integer powers" not in str(error):
            raise
        raise ArgumentValueError(
            "power: cannot raise an integer array to a negative power; convert x to float"
        ) from None


pow_p: Primitive = elementwise(
    "pow",
    _pow,
    factors=(_pow_base_factor, _pow_exponent_factor),
    kernel=lambda k, x, y: k.call("pow", x, y) if is_inexact(x.dtype) else _integer_by_integer(k, x, y),
    kinds="iufc",
    simplify=Yields(Hole("x"), 1),
)


def _integer_by_integer(k: IndexEmitter, x: Any, y: Any) -> Any:
    """Square and multiply over all bits of the exponent; products wrap as in NumPy."""
    bits = 8 * y.dtype.itemsize - (y.dtype.kind == "i")
    one, zero = k.const(1, x.dtype), k.const(0, x.dtype)
    result, base = one, x
    for bit in range(bits):
        digit = (y & k.const(1 << bit, y.dtype)).ne(zero)
        result = k.where(digit, result * x, result)
        x = x * x
    if y.dtype.kind == "u":
        return result
    # NumPy refuses negative exponents. A kernel cannot, so it truncates the fraction.
    return k.where(
        y < 0,
        k.where(base.eq(1) | (base.eq(-1) & (y & one).eq(0)), one, k.where(base.eq(-1), -one, zero)),
        result,
    )


# --- roots --------------------------------------------------------------------------------------------------

sqrt_p: Primitive = elementwise(
    "sqrt",
    np.sqrt,
    factors=(lambda ans, x: div_p.bind(literal(0.5, x), ans),),
    kernel=lambda k, x: k.call("sqrt", x),
    kinds="fc",
)

cbrt_p: Primitive = elementwise(
    "cbrt",
    np.cbrt,
    factors=(lambda ans, x: mul_p.bind(literal(1 / 3, x), integer_pow_p.bind(ans, y=-2)),),
    kernel=lambda k, x: k.call("cbrt", x),
    kinds="f",
)
