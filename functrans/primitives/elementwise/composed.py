"""Elementwise functions composed of primitives: what NumPy has as a ufunc and no primitive is needed for.

The operands have the dtype that NumPy computes in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtypes import BOOL, FLOAT64
from ..families import literal
from ..structure.linear import broadcast_shapes, broadcast_to, dtype_of, shape_of
from .arithmetic import (
    convert,
    convert_element_type_p,
    div_p,
    eq_p,
    ge_p,
    gt_p,
    lt_p,
    max_p,
    min_p,
    mul_p,
    ne_p,
    select_p,
    sub_p,
)
from .bits import and_p, not_p, or_p, xor_p
from .complexes import abs_p, conj_p, imag_p, real_p
from .exp_log import integer_pow_p
from .rounding import copysign_p, is_finite_p, is_inf_p, is_nan_p, nextafter_p, rint_p, sign_p, trunc_p


def constant(value: Any, x: Any, *others: Any) -> Any:
    """A number in the shape that the operands broadcast to."""
    return broadcast_to(value, broadcast_shapes("broadcast", shape_of(x), *map(shape_of, others)))


def unchanged(x: Any) -> Any:
    """The same values; a copy of an array, as the caller may change his."""
    return x.copy() if type(x) is np.ndarray else x


def square(x: Any) -> Any:
    """``x * x``."""
    return integer_pow_p.bind(x, y=2)


def reciprocal(x: Any) -> Any:
    """``1 / x``; of integers truncated to 0 but for 1 and -1."""
    if dtype_of(x).kind in "fc":
        return div_p.bind(literal(1.0, x), x)
    unit = eq_p.bind(integer_pow_p.bind(x, y=2), literal(1, x))
    return select_p.bind(unit, x, literal(0, x))


def sign(x: Any) -> Any:
    """-1, 0 or 1; of a complex number ``x / |x|``."""
    if dtype_of(x).kind != "c":
        return sign_p.bind(x)
    size = abs_p.bind(x)
    size = select_p.bind(eq_p.bind(size, literal(0.0, size)), literal(1.0, size), size)
    return div_p.bind(x, convert(size, dtype_of(x)))


def conjugate(x: Any) -> Any:
    """The complex conjugate; a real number as it is."""
    return conj_p.bind(x) if dtype_of(x).kind == "c" else unchanged(x)


def real(x: Any) -> Any:
    """The real part; a real number as it is."""
    return real_p.bind(x) if dtype_of(x).kind == "c" else x


def imag(x: Any) -> Any:
    """The imaginary part; zeros for real numbers."""
    return imag_p.bind(x) if dtype_of(x).kind == "c" else constant(dtype_of(x).type(0), x)


def scaled(factor: float) -> Any:
    """Multiplication by a number."""
    return lambda x: mul_p.bind(x, literal(factor, x))


# --- tests --------------------------------------------------------------------------------------------------


def is_finite(x: Any) -> Any:
    """Neither NaN nor infinite: all integers are."""
    return is_finite_p.bind(x) if dtype_of(x).kind in "fc" else constant(np.True_, x)


def is_inf(x: Any) -> Any:
    """Infinite: no integer is."""
    return is_inf_p.bind(x) if dtype_of(x).kind in "fc" else constant(np.False_, x)


def is_nan(x: Any) -> Any:
    """NaN: no integer is."""
    return is_nan_p.bind(x) if dtype_of(x).kind in "fc" else constant(np.False_, x)


def truth(x: Any) -> Any:
    """``x != 0``."""
    return x if dtype_of(x) == BOOL else convert_element_type_p.bind(x, dtype=BOOL)


def logical_and(x: Any, y: Any) -> Any:
    """Both are true."""
    return and_p.bind(truth(x), truth(y))


def logical_or(x: Any, y: Any) -> Any:
    """One is true, or both."""
    return or_p.bind(truth(x), truth(y))


def logical_xor(x: Any, y: Any) -> Any:
    """Just one is true."""
    return xor_p.bind(truth(x), truth(y))


def logical_not(x: Any) -> Any:
    """It is false."""
    return not_p.bind(truth(x))


# --- of floats ----------------------------------------------------------------------------------------------


def fmax(x: Any, y: Any) -> Any:
    """The larger; where one is NaN, the other."""
    return _without_nan(x, y, max_p)


def fmin(x: Any, y: Any) -> Any:
    """The smaller; where one is NaN, the other."""
    return _without_nan(x, y, min_p)


def _without_nan(x: Any, y: Any, prim: Any) -> Any:
    if dtype_of(x).kind not in "fc":
        return prim.bind(x, y)
    rest = select_p.bind(is_nan_p.bind(y), x, prim.bind(x, y))
    return select_p.bind(is_nan_p.bind(x), y, rest)


def heaviside(x: Any, y: Any) -> Any:
    """0 left of 0, 1 right of it, `y` at 0, NaN of NaN."""
    step = select_p.bind(gt_p.bind(x, literal(0.0, x)), literal(1.0, x), literal(0.0, x))
    step = select_p.bind(eq_p.bind(x, literal(0.0, x)), y, step)
    return select_p.bind(is_nan_p.bind(x), literal(math.nan, x), step)


def spacing(x: Any) -> Any:
    """The distance to the next number away from 0, with the sign of `x`."""
    away = copysign_p.bind(literal(math.inf, x), x)
    return sub_p.bind(nextafter_p.bind(x, away), x)


def ldexp(x: Any, n: Any) -> Any:
    """``x * 2**n`` for integers `n`: exact, as products with the powers of two in the digits of `n`."""
    double = dtype_of(x) == FLOAT64
    digits, bound = (9, 2200) if double else (6, 300)  # beyond the bound every number is 0 or infinite
    n = max_p.bind(min_p.bind(n, literal(bound, n)), literal(-bound, n))
    down = lt_p.bind(n, literal(0, n))
    size = abs_p.bind(n)

    def step(x: Any, taken: Any, power: int) -> Any:
        factor = select_p.bind(down, literal(2.0**-power, x), literal(2.0**power, x))
        return mul_p.bind(x, select_p.bind(taken, factor, literal(1.0, x)))

    for k in range(digits):
        digit = and_p.bind(size, literal(1 << k, n))
        x = step(x, ne_p.bind(digit, literal(0, n)), 1 << k)
    largest = 1 << digits
    for k in range(bound // largest + 1):
        x = step(x, ge_p.bind(size, literal((k + 1) * largest, n)), largest)
    return x


def fraction(x: Any) -> Any:
    """What is left without the integer part, with the sign of `x`; 0 of infinities."""
    rest = sub_p.bind(x, trunc_p.bind(x))
    rest = select_p.bind(is_inf_p.bind(x), literal(0.0, x), rest)
    return copysign_p.bind(rest, x)


def rounded(x: Any, decimals: int) -> Any:
    """``np.round``: to a number of decimals, or to tens, hundreds, ... if negative; the even one of two."""
    dtype = dtype_of(x)
    if dtype.kind in "iub":
        if decimals >= 0 or dtype.kind == "b":
            return unchanged(x)
        wide = rounded(convert(x, FLOAT64), decimals)
        return convert(wide, dtype)
    if decimals == 0:
        return rint_p.bind(x)
    factor = literal(10.0 ** abs(decimals), x)
    first, last = (mul_p, div_p) if decimals > 0 else (div_p, mul_p)
    return last.bind(rint_p.bind(first.bind(x, factor)), factor)
