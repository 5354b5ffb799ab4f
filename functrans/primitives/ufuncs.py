"""NumPy's ufuncs as functions of arrays and tracers, and Python's operators of tracers.

Each follows NumPy's promotion. This file fills `operators.ufunc` and `operators.operator`, so ``np.sin(t)`` and
``t * 2`` work on tracers without the layers above.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.operators import operators
from ..core.values import Param, Value
from .elementwise import (
    arithmetic as elementwise,
)
from .elementwise import (
    bits,
    complexes,
    composed,
    exp_log,
    rounding,
    trig,
)
from .elementwise import (
    composed as comparing,
)
from .elementwise import (
    trig as sigmoid,
)
from .elementwise.composed import equal as equal
from .elementwise.composed import float_power as float_power
from .elementwise.composed import greater as greater
from .elementwise.composed import greater_equal as greater_equal
from .elementwise.composed import less as less
from .elementwise.composed import less_equal as less_equal
from .elementwise.composed import not_equal as not_equal
from .elementwise.composed import power as power
from .elementwise.composed import power_operator, unchanged
from .operands import finish
from .structure import linear
from .ufunc_fronts import binary, binary_operator, publish, unary, unary_operator

# --- arithmetic ---------------------------------------------------------------------------------------------

add = binary(np.add, linear.add_p.bind, "The sum of two numbers.")
subtract = binary(np.subtract, elementwise.sub_p.bind, "The difference of two numbers.")
multiply = binary(np.multiply, elementwise.mul_p.bind, "The product of two numbers.")
divide = binary(
    np.divide, elementwise.div_p.bind, "The quotient of two numbers; integers are divided as floats."
)
true_divide = divide
floor_divide = binary(
    np.floor_divide,
    composed.floored,
    "The quotient rounded down to an integer. Its derivative is 0.",
)
remainder = binary(
    np.remainder,
    rounding.remainder_p.bind,
    "The remainder with the sign of the divisor, like Python's ``%``.",
)
mod = remainder
fmod = binary(
    np.fmod, rounding.fmod_p.bind, "The remainder with the sign of the dividend, like C's ``fmod``."
)
negative = unary(np.negative, elementwise.neg_p.bind, "The negative of a number.")
positive = unary(np.positive, unchanged, "Return numbers unchanged.")
absolute = unary(np.absolute, complexes.abs_p.bind, "The absolute value; the derivative at 0 is 0.")
fabs = unary(np.fabs, complexes.abs_p.bind, "The absolute value as a float; the derivative at 0 is 0.")
square = unary(np.square, composed.square, "The square of a number.")
reciprocal = unary(
    np.reciprocal, composed.reciprocal, "``1 / x``; for integers, truncated to 0 except for 1 and -1."
)
sign = unary(np.sign, composed.sign, "-1, 0 or 1, with derivative 0; for a complex number, ``x / |x|``.")
maximum = binary(
    np.maximum,
    elementwise.max_p.bind,
    "The larger of two numbers; NaN propagates. Ties share the derivative evenly.",
)
minimum = binary(
    np.minimum,
    elementwise.min_p.bind,
    "The smaller of two numbers; NaN propagates. Ties share the derivative evenly.",
)
fmax = binary(
    np.fmax, composed.fmax, "The larger of two numbers, ignoring NaN. Ties share the derivative evenly."
)
fmin = binary(
    np.fmin, composed.fmin, "The smaller of two numbers, ignoring NaN. Ties share the derivative evenly."
)
heaviside = binary(
    np.heaviside, composed.heaviside, "Step function: 0 for negative `x`, 1 for positive `x`, and `y` at 0."
)
conjugate = unary(np.conjugate, composed.conjugate, "The complex conjugate.")

# --- rounding, and the parts of floats ----------------------------------------------------------------------

floor = unary(np.floor, rounding.floor_p.bind, "Round down to an integer. The derivative is 0.")
ceil = unary(np.ceil, rounding.ceil_p.bind, "Round up to an integer. The derivative is 0.")
trunc = unary(np.trunc, rounding.trunc_p.bind, "Round towards 0 to an integer. The derivative is 0.")
rint = unary(
    np.rint, rounding.rint_p.bind, "Round to the nearest integer, ties to even. The derivative is 0."
)
signbit = unary(np.signbit, rounding.signbit_p.bind, "Whether the sign bit is set, also for zeros and NaN.")
copysign = binary(
    np.copysign, rounding.copysign_p.bind, "The magnitude of the first number with the sign of the second."
)
nextafter = binary(
    np.nextafter, rounding.nextafter_p.bind, "The next float after the first number, towards the second."
)
spacing = unary(np.spacing, composed.spacing, "The distance to the next float away from 0.")
ldexp = binary(np.ldexp, composed.ldexp, "``x * 2**y`` for an integer `y`.")
isfinite = unary(np.isfinite, composed.is_finite, "Whether a number is finite: not infinite and not NaN.")
isinf = unary(np.isinf, composed.is_inf, "Whether a number is infinite.")
isnan = unary(np.isnan, composed.is_nan, "Whether a number is NaN.")

# --- exponentials, logarithms, roots ------------------------------------------------------------------------

exp = unary(np.exp, exp_log.exp_p.bind, "The exponential function.")
exp2 = unary(np.exp2, exp_log.exp2_p.bind, "``2**x``.")
expm1 = unary(np.expm1, exp_log.expm1_p.bind, "``exp(x) - 1``, precise near 0.")
log = unary(np.log, exp_log.log_p.bind, "Natural logarithm.")
log2 = unary(np.log2, exp_log.log2_p.bind, "Logarithm to base 2.")
log10 = unary(np.log10, exp_log.log10_p.bind, "Logarithm to base 10.")
log1p = unary(np.log1p, exp_log.log1p_p.bind, "``log(1 + x)``, precise near 0.")
logaddexp = binary(np.logaddexp, sigmoid.logaddexp_p.bind, "``log(exp(x) + exp(y))`` without overflow.")
logaddexp2 = binary(np.logaddexp2, sigmoid.logaddexp2_p.bind, "``log2(2**x + 2**y)`` without overflow.")
sqrt = unary(np.sqrt, exp_log.sqrt_p.bind, "Square root; the derivative at 0 is infinite.")
cbrt = unary(np.cbrt, exp_log.cbrt_p.bind, "Cube root; the derivative at 0 is infinite.")

# --- trigonometric and hyperbolic ---------------------------------------------------------------------------

sin = unary(np.sin, trig.sin_p.bind, "Sine of an angle in radians.")
cos = unary(np.cos, trig.cos_p.bind, "Cosine of an angle in radians.")
tan = unary(np.tan, trig.tan_p.bind, "Tangent of an angle in radians.")
arcsin = unary(np.arcsin, trig.arcsin_p.bind, "The inverse sine, an angle in radians.")
arccos = unary(np.arccos, trig.arccos_p.bind, "The inverse cosine, an angle in radians.")
arctan = unary(np.arctan, trig.arctan_p.bind, "The inverse tangent, an angle in radians.")
arctan2 = binary(
    np.arctan2, trig.arctan2_p.bind, "The angle, in radians, of the point with ordinate `x` and abscissa `y`."
)
hypot = binary(
    np.hypot, trig.hypot_p.bind, "``sqrt(x**2 + y**2)`` without overflow; the derivative at the origin is 0."
)
sinh = unary(np.sinh, trig.sinh_p.bind, "Hyperbolic sine.")
cosh = unary(np.cosh, trig.cosh_p.bind, "Hyperbolic cosine.")
tanh = unary(np.tanh, sigmoid.tanh_p.bind, "Hyperbolic tangent.")
arcsinh = unary(np.arcsinh, trig.arcsinh_p.bind, "Inverse hyperbolic sine.")
arccosh = unary(np.arccosh, trig.arccosh_p.bind, "Inverse hyperbolic cosine.")
arctanh = unary(np.arctanh, trig.arctanh_p.bind, "Inverse hyperbolic tangent.")
degrees = unary(np.degrees, composed.scaled(180 / math.pi), "Convert radians to degrees.")
radians = unary(np.radians, composed.scaled(math.pi / 180), "Convert degrees to radians.")
rad2deg = unary(np.rad2deg, composed.scaled(180 / math.pi), "Convert radians to degrees.")
deg2rad = unary(np.deg2rad, composed.scaled(math.pi / 180), "Convert degrees to radians.")

# --- logic and bits -----------------------------------------------------------------------------------------

logical_and = binary(np.logical_and, composed.logical_and, "Whether both numbers are nonzero.")
logical_or = binary(np.logical_or, composed.logical_or, "Whether at least one number is nonzero.")
logical_xor = binary(np.logical_xor, composed.logical_xor, "Whether exactly one number is nonzero.")
logical_not = unary(np.logical_not, composed.logical_not, "Whether a number is 0.")
bitwise_and = binary(np.bitwise_and, bits.and_p.bind, 'Bitwise "and".')
bitwise_or = binary(np.bitwise_or, bits.or_p.bind, 'Bitwise "or".')
bitwise_xor = binary(np.bitwise_xor, bits.xor_p.bind, 'Bitwise exclusive "or".')
invert = unary(np.invert, bits.not_p.bind, 'Invert all bits; for booleans, logical "not".')
bitwise_not = invert
left_shift = binary(np.left_shift, bits.shift_left_p.bind, "``x * 2**y``, by shifting bits left.")
right_shift = binary(np.right_shift, bits.shift_right_p.bind, "``x // 2**y``, by shifting bits right.")
gcd = binary(np.gcd, bits.gcd_p.bind, "The greatest common divisor.")
lcm = binary(np.lcm, bits.lcm_p.bind, "The least common multiple.")

# --- of two results -----------------------------------------------------------------------------------------


def _divmod(x: Value, y: Value, /, **options: Param) -> tuple[Any, Any]:
    return floor_divide(x, y, **options), remainder(x, y, **options)


def _modf(x: Value, /, **options: Param) -> tuple[Any, Any]:
    return _fraction(x, **options), _whole(x, **options)


_fraction, _whole = unary(np.modf, composed.fraction, ""), unary(np.modf, rounding.trunc_p.bind, "")
divmod = publish(_divmod, np.divmod, "The floored quotient and the remainder, as a tuple.")
modf = publish(_modf, np.modf, "The fractional and the integer part, as a tuple.")

# --- Python's operators -------------------------------------------------------------------------------------

_BINARY = {
    "add": (np.add, linear.add_p),
    "sub": (np.subtract, elementwise.sub_p),
    "mul": (np.multiply, elementwise.mul_p),
    "truediv": (np.true_divide, elementwise.div_p),
    "mod": (np.remainder, rounding.remainder_p),
    "and": (np.bitwise_and, bits.and_p),
    "or": (np.bitwise_or, bits.or_p),
    "xor": (np.bitwise_xor, bits.xor_p),
    "lshift": (np.left_shift, bits.shift_left_p),
    "rshift": (np.right_shift, bits.shift_right_p),
}
_UNARY = {
    "neg": (np.negative, elementwise.neg_p.bind),
    "pos": (np.positive, unchanged),
    "abs": (np.absolute, complexes.abs_p.bind),
    "invert": (np.invert, bits.not_p.bind),
}


def _round(x: Value, ndigits: int | None = None) -> Value:
    return finish(composed.rounded(x, 0 if ndigits is None else ndigits))


operators.operator.update(
    {
        **{name: binary_operator(ufunc, prim.bind) for name, (ufunc, prim) in _BINARY.items()},
        **{name: unary_operator(ufunc, body) for name, (ufunc, body) in _UNARY.items()},
        **comparing.OPERATORS,
        "floordiv": binary_operator(np.floor_divide, composed.floored),
        "pow": power_operator,
        "round": _round,
    }
)
