"""Elementary functions of doubles without branches or tables, for inlining into vectorized loops.

Further ones are in `trigonometry`, `powers` and `hyperbolic`. They are accurate to 4 units in the last place over the
whole range, most to 2.5, and exact for zeros, infinities, NaN and denormals. What they compute in two parts is exact
without fused multiply-add too: constants end in zero bits, and products have `FunctionText.product`. A libmvec call
spills every live vector register; in a loop with several accumulators these functions are twice as fast. The
polynomials here are Chebyshev interpolants, computed with 150 digits.
"""

from __future__ import annotations

import math

from .expr import Expr, FunctionText

LOG2E = 1.4426950408889634
#: log 2 in two parts; the first ends in 20 zero bits, so that its product with an exponent is exact.
LN2_HIGH, LN2_LOW = 0.6931471804855391, 7.440617110012397e-11
#: Adding it to a double puts the nearest integer into the low bits, where 12 zeros and more are above it.
MAGIC = 1.5 * 2.0**52

#: (exp(r) - 1 - r) / r**2 for abs(r) <= log(2) / 2.
EXP = (
    0.5000000000000001, 0.16666666666666669, 0.04166666666662413, 0.008333333333330062, 0.0013888888917213717,
    0.00019841269863053618, 2.4801521295954376e-05, 2.7557268459997064e-06, 2.7620088445409746e-07,
    2.510038549551032e-08,
)  # fmt: skip
#: The same for -0.01 <= r <= 0.7.
EXP_ABOVE = (
    0.5, 0.16666666666666652, 0.041666666666687835, 0.008333333332728681, 0.0013888888966914286,
    0.00019841264256723051, 2.480182995236768e-05, 2.755066364512941e-06, 2.76729487626071e-07,
    2.3824736741614534e-08, 2.802296916186016e-09,
)  # fmt: skip
#: (2 atanh(s) / s - 2) / z, z = s**2, for log(m), s = (m - 1) / (m + 1), m between sqrt(1/2) and sqrt(2).
LOG = (
    0.666666666666667, 0.3999999999989938, 0.28571428626031065, 0.2222221112572281, 0.18182889786191042,
    0.15331699633543858, 0.14616721179861816,
)  # fmt: skip
#: erf(x) / x for abs(x) <= 1, in x**2.
ERF = (
    1.1283791670955126, -0.37612638903183543, 0.11283791670945006, -0.02686617064323777,
    0.0052239776071164225, -0.0008548325975389692, 0.00012055294904839707, -1.492473690741966e-05,
    1.6447424703317362e-06, -1.6208483801871705e-07, 1.3720064546777686e-08, -7.795898827002142e-10,
)  # fmt: skip
#: -log(erfc(x)) - x**2 for 1 <= x <= 6, in x - 3.5.
ERFC = (
    1.862437402148174, 0.2660995883651909, -0.03324694525778242, 0.005225658221939981,
    -0.000873687323545211, 0.00014729777489954873, -2.4386373823313104e-05, 3.889557155325179e-06,
    -5.856139032767791e-07, 8.069303240006965e-08, -9.532060947155006e-09, 7.74894938262315e-10,
    2.5027567470717578e-11, -3.065185473437961e-11, 9.09456815352739e-12, -2.0554075993038623e-12,
    4.1568031971878565e-13, -6.703248087615219e-14, 5.252994671634073e-15, -5.507869202468303e-16,
    4.137506353844001e-16, -1.8647709480120564e-17, -3.169997093543526e-17, 5.038175090820216e-18,
)  # fmt: skip


def reduce(f: FunctionText, x: Expr) -> tuple[Expr, Expr]:
    """An integer whose low 12 bits are those of k, and exp(r) - 1, with x = k log 2 + r."""
    k, r = _reduced(f, x, x)
    return k, exp_less_one(f, r)


def _reduced(f: FunctionText, x: Expr, near: Expr) -> tuple[Expr, Expr]:
    """An integer whose low 12 bits are those of k, and r with x = k log 2 + r, where `near` is nearest to k log 2."""
    shifted = f.fma(near, LOG2E, MAGIC)
    k = shifted - MAGIC
    return f.bits(shifted), f.fma(k, -LN2_LOW, f.fma(k, -LN2_HIGH, x))


def exp_less_one(f: FunctionText, r: Expr) -> Expr:
    """exp(r) - 1 for abs(r) <= log(2) / 2."""
    square = r * r
    return f.fma(square, f.polynomial_in_halves(r, square, EXP), r)


def power_of_two(f: FunctionText, k: Expr) -> Expr:
    """2**k for the integer between -1022 and 1023 with the low 12 bits of `k`."""
    return f.from_bits((k + 1023) << 52)


def halves(f: FunctionText, k: Expr) -> tuple[Expr, Expr]:
    """Two powers of two whose product is 2**k, for integers from -1140 to 1024 as in `reduce`."""
    half = f.shift_right(k, 1)
    return power_of_two(f, half), power_of_two(f, k - half)


def scaled(f: FunctionText, p: Expr, k: Expr) -> Expr:
    """2**k (1 + p) for integers as in `halves`; the second product rounds only where the result is denormal."""
    half, other = halves(f, k)
    return f.fma(half, p, half) * other


def exp(f: FunctionText, x: Expr) -> Expr:
    """The exponential."""
    x = f.select(x < -746.0, -746.0, x)
    k, p = reduce(f, f.select(x > 710.0, 710.0, x))
    return scaled(f, p, k)


def expm1(f: FunctionText, x: Expr) -> Expr:
    """exp(x) - 1: s p + (s - 1) with s = 2**k and p = exp(r) - 1."""
    y = f.select(x > 710.0, 710.0, f.select(x < -40.0, -40.0, x))
    k, p = reduce(f, y)
    half = power_of_two(f, k - 1)
    result = f.fma(half, p, half - 0.5)
    # Keeps the sign of zero and denormals.
    return f.select(f.intrinsic("fabs", x) < 1e-300, x, result + result)


def tanh(f: FunctionText, x: Expr) -> Expr:
    """Hyperbolic tangent: t / (t + 2) with t = expm1(2 abs(x)), and x's sign.

    In t = s p + (s - 1), with s = 2**k, nothing cancels: p = exp(r) - 1 is hardly negative.
    """
    y = f.intrinsic("fabs", x)
    y = f.select(y > 20.0, 20.0, y)
    y = y + y
    k, r = _reduced(f, y, y - 0.34)
    square = r * r
    s, rest = power_of_two(f, k), square * f.polynomial_in_halves(r, square, EXP_ABOVE)
    p = r + rest
    t = f.fma(s, p, s - 1.0)
    q = t / (t + 2.0)
    # What the quotient leaves of t, and the error of t, which matter for small ones; 1 / (t + 2) is (1 - q) / 2.
    left = f.fma(s, rest - (p - r), f.fma(q, -t, f.fma(q, -2.0, t)))
    q = f.fma(f.select(y > 2.0, 0.0, left), f.fma(q, -0.5, 0.5), q)
    return f.intrinsic("copysign", q, x)


_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_ONE_BITS = 0x3FF0000000000000
_FRACTION = 0x000FFFFFFFFFFFFF


def split(f: FunctionText, x: Expr) -> tuple[Expr, Expr]:
    """The exponent (a float) and the fraction, between sqrt(1/2) and sqrt(2), of a positive normal number."""
    shifted = f.bits(x) + (_ONE_BITS - _SQRT_HALF_BITS)
    exponent = f.from_bits(f.shift_right(shifted, 52) | 0x4330000000000000) - (2.0**52 + 1023.0)
    return exponent, f.from_bits((shifted & _FRACTION) + _SQRT_HALF_BITS)


def log_parts(f: FunctionText, g: Expr) -> tuple[Expr, Expr]:
    """The parts h = g**2 / 2 and the small part q with log(1 + g) = g - (h - q)."""
    s = g / (g + 2.0)
    z = s * s
    h = g * g * 0.5
    return h, s * f.fma(z, f.polynomial(z, LOG), h)


def log_edges(f: FunctionText, x: Expr, result: Expr) -> Expr:
    """NaN below zero, infinities at zero and infinity."""
    result = f.select(x > 0.0, result, f.select(x.eq(0.0), -math.inf, math.nan))
    return f.select(x.eq(math.inf), math.inf, result)


def log_reduced(f: FunctionText, x: Expr) -> tuple[Expr, Expr]:
    """Exponent and fraction, of denormal numbers too."""
    denormal = x < 2.0**-1022
    exponent, m = split(f, f.select(denormal, x * 2.0**54, x))
    return exponent - f.select(denormal, 54.0, 0.0), m


def log(f: FunctionText, x: Expr) -> Expr:
    """The natural logarithm."""
    k, m = log_reduced(f, x)
    g = m - 1.0
    h, q = log_parts(f, g)
    return log_edges(f, x, f.fma(k, LN2_HIGH, g - (h - f.fma(k, LN2_LOW, q))))


def log1p(f: FunctionText, x: Expr) -> Expr:
    """log(1 + x): the logarithm of the rounded sum, corrected by what the rounding lost."""
    u = x + 1.0
    k, m = split(f, u)
    plain = k.eq(0.0)
    lost = f.select(x > 1.0, 1.0 - (u - x), x - (u - 1.0)) / u
    g = f.select(plain, x, m - 1.0)
    h, q = log_parts(f, g)
    q = f.fma(k, LN2_LOW, q) + f.select(plain, 0.0, lost)
    result = f.fma(k, LN2_HIGH, g - (h - q))
    result = f.select(f.intrinsic("fabs", x) < 1e-300, x, result)
    result = f.select(x > -1.0, result, f.select(x.eq(-1.0), -math.inf, math.nan))
    return f.select(x.eq(math.inf), math.inf, result)


def erf(f: FunctionText, x: Expr) -> Expr:
    """The error function: an odd polynomial up to 1, then 1 - exp(-x**2 - polynomial), 1 from 6 on."""
    y = f.intrinsic("fabs", x)
    small = y * f.polynomial(y * y, ERF)
    y6 = f.select(y > 6.0, 6.0, y)
    k, p = reduce(f, -f.fma(y6, y6, f.polynomial(y6 - 3.5, ERFC)))
    s = power_of_two(f, k)
    large = f.fma(-s, p, 1.0 - s)
    return f.intrinsic("copysign", f.select(y < 1.0, small, large), x)


#: The functions by their names in the kernel vocabulary.
FUNCTIONS = {"exp": exp, "expm1": expm1, "tanh": tanh, "log": log, "log1p": log1p, "erf": erf}
#: Those that loops with several accumulators have inlined.
FASTER = frozenset(("exp", "expm1", "tanh"))
