"""Powers, roots, and logarithms of other bases, for inlining into vectorised loops: see `inline_maths`."""

from __future__ import annotations

import math
from collections.abc import Callable

from .expr import Expr, FunctionText
from .inline_maths import (
    EXP,
    LN2_HIGH,
    LN2_LOW,
    LOG2E,
    MAGIC,
    exp_less_one,
    halves,
    log_edges,
    log_parts,
    log_reduced,
    power_of_two,
    scaled,
    split,
)

#: (2 atanh(s) / s - 2 - 2 z / 3) / z**2, z = s**2, for s = (m - 1) / (m + 1), m between sqrt(1/2) and sqrt(2); minimax,
#: error of the logarithm 2**-66.
_LOG_TAIL = (
    0.4000000000000218, 0.2857142857013264, 0.2222222251467397, 0.18181784783499058, 0.15386739701396404,
    0.13257199020915234, 0.13193015414638198,
)  # fmt: skip
#: 2/3 in two parts.
_TWO_THIRDS, _TWO_THIRDS_LOW = 2 / 3, 3.700743415417188e-17
#: log2(m) / s, s = (m - 1) / (m + 1), in s**2, for m between sqrt(1/2) and sqrt(2); minimax, relative error 2**-45.
_LOG2_OF_FLOATS = (
    2.88539008177785, 0.9617966941133014, 0.5770779423771005, 0.4122092510667123, 0.31990575387752546,
    0.2828993033169323,
)  # fmt: skip
#: 2**r for abs(r) <= 1/2; minimax, relative error 2**-34.
_EXP2_OF_FLOATS = (
    0.9999999999616881, 0.693147180728435, 0.2402265119817288, 0.05550410353463082, 0.0096180272500953,
    0.0013333922543055153, 0.0001546929235290831, 1.5201928561538144e-05,
)  # fmt: skip
#: m**(-1/3) for m between sqrt(1/2) and sqrt(2); minimax, relative error 9e-7.
_INVERSE_CUBE_ROOT = (
    2.109982914781033, -3.1515887383796355, 4.438175200048918, -4.04265076010375, 2.2538479534837736,
    -0.7010505052518429, 0.09328468963074062,
)  # fmt: skip
#: The logarithm of 2 to base 10 in two parts, of which the first has 33 bits.
_LOG10_2_HIGH, _LOG10_2_LOW = 0.30102999560767785, 5.630334806675098e-11


def exp2(f: FunctionText, x: Expr) -> Expr:
    """2**x."""
    x = f.select(x > 1024.0, 1024.0, f.select(x < -1080.0, -1080.0, x))
    shifted = x + MAGIC
    r = (x - (shifted - MAGIC)) * math.log(2.0)
    return scaled(f, exp_less_one(f, r), f.bits(shifted))


def _log_of_fraction(f: FunctionText, m: Expr) -> Expr:
    g = m - 1.0
    h, q = log_parts(f, g)
    return g - (h - q)


def log2(f: FunctionText, x: Expr) -> Expr:
    """The logarithm to base 2; exact for powers of 2."""
    k, m = log_reduced(f, x)
    return log_edges(f, x, f.fma(_log_of_fraction(f, m), LOG2E, k))


def log10(f: FunctionText, x: Expr) -> Expr:
    """The logarithm to base 10."""
    k, m = log_reduced(f, x)
    low = f.fma(k, _LOG10_2_LOW, _log_of_fraction(f, m) * math.log10(math.e))
    return log_edges(f, x, f.fma(k, _LOG10_2_HIGH, low))


def cbrt(f: FunctionText, x: Expr) -> Expr:
    """The cube root of m 2**(3 q + n), n from -1 to 1.

    A step of Householder's method for the inverse root is followed by one of Newton's for the root.
    """
    y = f.intrinsic("fabs", x)
    k, m = log_reduced(f, y)
    shifted = f.fma(k, 1 / 3, MAGIC)
    n = k - (shifted - MAGIC) * 3.0
    up, down = n > 0.0, n < 0.0
    r = f.polynomial(m, _INVERSE_CUBE_ROOT) * f.select(
        up, 2 ** (-1 / 3), f.select(down, f.number(2 ** (1 / 3)), 1.0)
    )
    m = m * f.select(up, 2.0, f.select(down, f.number(0.5), 1.0))
    h = f.fma(-(m * r), r * r, 1.0)
    r = f.fma(r * h, f.fma(h, 2 / 9, 1 / 3), r)
    r2 = r * r
    c = m * r2
    c = f.fma(f.fma(-(c * c), c, m), r2 * (1 / 3), c)
    root = c * power_of_two(f, f.bits(shifted))
    return f.select((y > 0.0) & (y < math.inf), f.intrinsic("copysign", root, x), x)


def _sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """The rounded sum, and its error, which is exact if `a` is 0 or no less than `b` (Dekker)."""
    s = a + b
    return s, (a - s) + b


def _long_log(f: FunctionText, x: Expr) -> tuple[Expr, Expr]:
    """The logarithm of a positive number in two parts, to 2**-65: 2 s + s z (2/3 + z tail(z)), z = s**2."""
    k, m = log_reduced(f, x)
    d, d_low = _sum(f.number(1.0), m)
    inverse = 1.0 / d
    g = m - 1.0
    s = g * inverse
    product, error = f.product(s, d)
    s_low = (((g - product) - error) - s * d_low) * inverse
    z, error = f.product(s, s)
    z_low = f.fma(s + s, s_low, error)
    c, c_low = _sum(f.number(_TWO_THIRDS), z * f.polynomial(z, _LOG_TAIL))
    w, error = f.product(z, c)
    w_low = f.fma(z, c_low + _TWO_THIRDS_LOW, f.fma(z_low, c, error))
    u, error = f.product(s, w)
    u_low = f.fma(s, w_low, f.fma(s_low, w, error))
    high, low = _sum(s + s, u)
    low = low + (u_low + (s_low + s_low))
    high, error = _sum(k * LN2_HIGH, high)
    return _sum(high, f.fma(k, LN2_LOW, low) + error)


def _clamped(f: FunctionText, y: Expr) -> Expr:
    """An exponent that is not too large to compute with: a larger one overflows or underflows too, if x is not 1."""
    return f.select(y > 2.0**70, 2.0**70, f.select(y < -(2.0**70), -(2.0**70), y))


def _power_of_positive(f: FunctionText, x: Expr, y: Expr) -> Expr:
    """The exponential of the product with the logarithm, both in two parts: 1 ulp."""
    high, low = _long_log(f, x)
    y = _clamped(f, y)
    e, e_low = f.product(high, y)
    e_low = f.fma(low, y, e_low)
    large, small = e > 710.0, e < -746.0
    e = f.select(large, 710.0, f.select(small, -746.0, e))
    e_low = f.select(large | small, 0.0, e_low)
    shifted = f.fma(e, LOG2E, MAGIC)
    k = shifted - MAGIC
    t, t_low = _sum(f.fma(k, -LN2_HIGH, e), f.fma(k, -LN2_LOW, e_low))
    u, u_low = _sum(f.number(1.0), t)
    square = t * t
    p = u + (u_low + f.fma(square, f.polynomial_in_halves(t, square, EXP), t_low))
    half, other = halves(f, f.bits(shifted))
    return p * half * other


def _is_integer(y: Expr) -> Expr:
    """Whether a number that is not negative is an integer."""
    return (y + 2.0**52 - 2.0**52).eq(y) | (y >= 2.0**52)


def _of_any_base(f: FunctionText, x: Expr, y: Expr, result: Expr) -> Expr:
    """x**y, given `result` for the magnitude of x if that is positive and finite."""
    magnitude, size = f.intrinsic("fabs", x), f.intrinsic("fabs", y)
    zero = magnitude.eq(0.0)
    result = f.select(
        zero | magnitude.eq(math.inf), f.select(zero ^ (y < 0.0), f.number(0.0), math.inf), result
    )
    integer = _is_integer(size)
    odd = integer & _is_integer(size * 0.5).eq(0)
    result = f.select((f.bits(x) < 0) & odd, -result, result)
    result = f.select((x < 0.0) & (x > -math.inf) & integer.eq(0), math.nan, result)
    result = f.select(x.eq(x) & y.eq(y), result, x + y)
    return f.select(y.eq(0.0) | x.eq(1.0), 1.0, result)


def power(f: FunctionText, x: Expr, y: Expr) -> Expr:
    """x**y."""
    return _of_any_base(f, x, y, _power_of_positive(f, f.intrinsic("fabs", x), y))


def log2_of_float(f: FunctionText, x: Expr) -> Expr:
    """The logarithm to base 2 of a positive float, in doubles."""
    k, m = split(f, x)
    s = (m - 1.0) / (m + 1.0)
    return f.fma(s, f.polynomial(s * s, _LOG2_OF_FLOATS), k)


def exp2_of_float(f: FunctionText, x: Expr) -> Expr:
    """2**x in doubles, which is rounded to a float afterwards: a number too large or too small for one suffices."""
    x = f.select(x > 200.0, 200.0, f.select(x < -200.0, -200.0, x))
    shifted = x + MAGIC
    p = f.polynomial(x - (shifted - MAGIC), _EXP2_OF_FLOATS)
    return p * power_of_two(f, f.bits(shifted))


def _power_of_floats(f: FunctionText, x: Expr, y: Expr) -> Expr:
    e = _clamped(f, y) * log2_of_float(f, f.intrinsic("fabs", x))
    return _of_any_base(f, x, y, exp2_of_float(f, e))


def _exp_of_floats(unit: float) -> Callable[[FunctionText, Expr], Expr]:
    """The exponential to the base 2**unit."""
    return lambda f, x: exp2_of_float(f, x * unit)


def _log_of_floats(unit: float) -> Callable[[FunctionText, Expr], Expr]:
    """The logarithm in which 2 has this one."""
    return lambda f, x: log_edges(f, x, log2_of_float(f, x) * unit)


#: The functions by their names in the kernel vocabulary.
FUNCTIONS: dict[str, Callable[..., Expr]] = {
    "exp2": exp2,
    "log2": log2,
    "log10": log10,
    "cbrt": cbrt,
    "pow": power,
}
#: Those of doubles that have the digits of float32 only.
OF_FLOATS: dict[str, Callable[..., Expr]] = {
    "exp": _exp_of_floats(LOG2E),
    "exp2": _exp_of_floats(1.0),
    "log": _log_of_floats(math.log(2.0)),
    "log2": _log_of_floats(1.0),
    "log10": _log_of_floats(math.log10(2.0)),
    "pow": _power_of_floats,
}
