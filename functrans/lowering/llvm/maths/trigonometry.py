"""Trigonometric functions of doubles and their inverses, for inlining into vectorised loops: see `inline_maths`.

The arguments of sine, cosine and tangent are reduced by multiples of pi/2 in four parts (Cody and Waite); where that
does not suffice, the C library's function is called. The polynomials are minimax (Remez), of relative error.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...blas import C_PREFIX
from .expr import Expr, FunctionText
from .inline_maths import MAGIC

#: pi/2 in four parts, of which the first three have 33 bits: products with an integer of 20 bits are exact.
_HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
#: From here on the reduction lacks digits.
_FAR = 2.0**20
#: (sin(r) / r - 1) / r**2 for abs(r) <= pi/2, in r**2; error of the sine 2**-58.
_SIN = (
    -0.16666666666666666, 0.008333333333333194, -0.00019841269841209218, 2.755731921113722e-06,
    -2.5052106872798054e-08, 1.6058939705690232e-10, -7.642991483643226e-13, 2.7211748988153967e-15,
)  # fmt: skip
#: The same for abs(r) <= pi/4; error 2**-57.
_SIN4 = (
    -0.16666666666666632, 0.008333333333322424, -0.0001984126982981684, 2.755731369519396e-06,
    -2.505075864878796e-08, 1.5896827693316782e-10,
)  # fmt: skip
#: (cos(r) - 1 + r**2 / 2) / r**4 for abs(r) <= pi/4, in r**2; error of the cosine 2**-59.
_COS4 = (
    0.0416666666666666, -0.001388888888887414, 2.4801587289491976e-05, -2.75573143552769e-07,
    2.0875723688465492e-09, -1.1359670048338807e-11,
)  # fmt: skip
#: (atan(t) / t - 1) / t**2 for abs(t) <= tan(pi/8), in t**2; error of the arc tangent 2**-58.
_ATAN = (
    -0.333333333333332, 0.19999999999954082, -0.14285714280248665, 0.11111110786145953, -0.09090897836679984,
    0.07692061641087809, -0.066631204270814, 0.05848009215761234, -0.05039846797631426, 0.03807835215646486,
    -0.017922311987620957,
)  # fmt: skip
#: (asin(t) / t - 1) / t**2 for abs(t) <= 1/2, in t**2; error of the arc sine 2**-55.
_ASIN = (
    0.16666666666665383, 0.07500000000342986, 0.04464285682352899, 0.030381959329385356, 0.02237175356715514,
    0.017359770458660828, 0.013884604736388945, 0.012173239141366546, 0.006511022909513359,
    0.019573452625488805, -0.016293376717417367, 0.03195849697506403,
)  # fmt: skip
#: pi in two parts.
_PI, _PI_LOW = math.pi, 1.2246467991473532e-16
_TAN_PI_8 = math.sqrt(2.0) - 1.0


def _less_half_pis(f: FunctionText, x: Expr, n: Expr) -> Expr:
    """The difference x - n pi/2."""
    for part in _HALF_PI:
        x = f.fma(n, -part, x)
    return x


def _odd(f: FunctionText, r: Expr, coefficients: tuple[float, ...]) -> Expr:
    """The odd polynomial r + r**3 p(r**2)."""
    z = r * r
    return f.fma(r * z, f.polynomial(z, coefficients), r)


def _flipped(f: FunctionText, x: Expr, n: Expr) -> Expr:
    """x, with the other sign if an integer is odd."""
    return f.from_bits(f.bits(x) ^ (n << 63))


def _is_far(f: FunctionText, x: Expr) -> Expr:
    return f.intrinsic("fabs", x) >= _FAR


def sin(f: FunctionText, x: Expr) -> Expr:
    """The sine: that of x - k pi, with the other sign if k is odd."""
    shifted = f.fma(x, 1 / math.pi, MAGIC)
    k = shifted - MAGIC
    r = _less_half_pis(f, x, k + k)
    near = _flipped(f, _odd(f, r, _SIN), f.bits(shifted))
    # Keeps the sign of zero.
    return f.rarely(_is_far(f, x), f"{C_PREFIX}sin", f.select(x.eq(0.0), x, near))


def cos(f: FunctionText, x: Expr) -> Expr:
    """The cosine: the sine of x - n pi/2, for an odd n."""
    shifted = f.fma(x, 1 / math.pi, -0.5) + MAGIC
    k = shifted - MAGIC
    r = _less_half_pis(f, x, f.fma(k, 2.0, 1.0))
    near = _flipped(f, _odd(f, r, _SIN), f.bits(shifted) + 1)
    return f.rarely(_is_far(f, x), f"{C_PREFIX}cos", near)


def tan(f: FunctionText, x: Expr) -> Expr:
    """The tangent: of x - n pi/2, as sine and cosine, which change places if n is odd."""
    shifted = f.fma(x, 2 / math.pi, MAGIC)
    r = _less_half_pis(f, x, shifted - MAGIC)
    z = r * r
    sine = _odd(f, r, _SIN4)
    half = z * 0.5
    most = 1.0 - half
    cosine = most + f.fma(z * z, f.polynomial(z, _COS4), (1.0 - most) - half)
    odd = (f.bits(shifted) & 1).eq(1)
    near = f.select(odd, -cosine, sine) / f.select(odd, sine, cosine)
    return f.rarely(_is_far(f, x), f"{C_PREFIX}tan", f.select(x.eq(0.0), x, near))


def arcsin(f: FunctionText, x: Expr) -> Expr:
    """The arc sine; from 1/2 on pi/2 - 2 asin(sqrt((1 - x) / 2))."""
    y = f.intrinsic("fabs", x)
    large = y > 0.5
    z = f.select(large, f.fma(y, -0.5, 0.5), y * y)
    r = f.select(large, f.intrinsic("sqrt", z), y)
    more = r * z * f.polynomial(z, _ASIN)
    result = f.select(large, (_PI / 2 - (r + r)) - (more + more - _PI_LOW / 2), r + more)
    return f.intrinsic("copysign", result, x)


def arccos(f: FunctionText, x: Expr) -> Expr:
    """The arc cosine: pi/2 - asin(x) up to 1/2, and 2 asin(sqrt((1 - x) / 2))."""
    y = f.intrinsic("fabs", x)
    large = y > 0.5
    z = f.select(large, f.fma(y, -0.5, 0.5), y * y)
    r = f.intrinsic("copysign", f.select(large, f.intrinsic("sqrt", z), y), x)
    small = f.fma(r * z, f.polynomial(z, _ASIN), r)
    negative = x < 0.0
    end, low = f.select(negative, _PI, 0.0), f.select(negative, _PI_LOW, 0.0)
    return f.select(large, end + (small + small + low), _PI / 2 - (small - _PI_LOW / 2))


def _angle(f: FunctionText, y: Expr, x: Expr) -> Expr:
    """The arc tangent of y / x for positive numbers.

    Of angles beyond pi/8 and 3 pi/8 it is that of (y - x) / (y + x) and -x / y, and pi/4 and pi/2.
    """
    middle, steep = y > x * _TAN_PI_8, y * _TAN_PI_8 > x
    below = f.select(steep, y, f.select(middle, y + x, x))
    small = _odd(f, f.select(steep, -x, f.select(middle, y - x, y)) / below, _ATAN)
    turn = f.select(steep, _PI / 2, f.select(middle, f.number(_PI / 4), 0.0))
    low = f.select(steep, _PI_LOW / 2, f.select(middle, f.number(_PI_LOW / 4), 0.0))
    return turn + (small + low)


def arctan(f: FunctionText, x: Expr) -> Expr:
    """The arc tangent."""
    return f.intrinsic("copysign", _angle(f, f.intrinsic("fabs", x), f.number(1.0)), x)


def arctan2(f: FunctionText, y: Expr, x: Expr) -> Expr:
    """The angle of a point, whose sign is that of y, and which is beyond pi/2 if x has a minus sign."""
    up, right = f.intrinsic("fabs", y), f.intrinsic("fabs", x)
    # Sums do not overflow, products with tan(pi/8) are no denormals, two infinities count as equal, and zero is not
    # divided by zero.
    larger = f.select(up > right, up, right)
    scale = f.select(larger > 2.0**1000, 2.0**-100, f.select(larger < 2.0**-900, f.number(2.0**100), 1.0))
    both = up.eq(math.inf) & right.eq(math.inf)
    up, right = (f.select(both, 1.0, v * scale) for v in (up, right))
    right = f.select((up + right).eq(0.0), 1.0, right)
    angle = _angle(f, up, right)
    return f.intrinsic("copysign", f.select(f.bits(x) < 0, _PI - (angle - _PI_LOW), angle), y)


#: The functions by their names in the kernel vocabulary: those with a branch, and all.
WITH_BRANCH: dict[str, Callable[..., Expr]] = {"sin": sin, "cos": cos, "tan": tan}
FUNCTIONS: dict[str, Callable[..., Expr]] = {
    **WITH_BRANCH,
    "arcsin": arcsin,
    "arccos": arccos,
    "arctan": arctan,
    "arctan2": arctan2,
}
