"""Elementwise functions composed of primitives: powers, comparisons, and NumPy's ufuncs that need no primitive.

The operands have the dtype in which NumPy computes. Known integer exponents become products, all others ``pow``.
Comparisons of operands without a common dtype are exact.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays.autocast import autocasting
from ...arrays.protocols import taken_over
from ...core import (
    BOOL,
    FLOAT16,
    FLOAT64,
    PYTHON_KEYS,
    WEAK_KEYS,
    ArgumentValueError,
    Primitive,
    Tracer,
    default_float,
    dtype_kind,
    has_jax_semantics,
    is_inexact,
    promotes_as_jax,
)
from ...core.trace import key_of
from ...core.values import ArrayLike, Param, Value
from ...runtime.module_getattr import lazy_import
from ..axes import broadcast_shapes
from ..families import literal
from ..operands import WEAK_DTYPES, finish, operand, strong
from ..promotion import Body, computed_in
from ..structure.linear import broadcast_to, dtype_of, shape_of
from ..ufunc_fronts import binary, binary_operator, publish, unary_operator
from .arithmetic import (
    convert,
    convert_element_type_p,
    div_p,
    eq_p,
    ge_p,
    gt_p,
    le_p,
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
from .exp_log import integer_pow_p, pow_p, sqrt_p
from .rounding import (
    copysign_p,
    floor_divide_p,
    is_finite_p,
    is_inf_p,
    is_nan_p,
    nextafter_p,
    rint_p,
    sign_p,
    trunc_p,
)

#: Loads when autocast is first used.
autocast = lazy_import("functrans.primitives.autocast")


def constant(value: ArrayLike, x: ArrayLike, *others: Any) -> Value:
    """Return a constant in the shape that the operands broadcast to."""
    return broadcast_to(value, broadcast_shapes("broadcast", shape_of(x), *map(shape_of, others)))


def unchanged(x: Value) -> Value:
    """Return the same values. Arrays are copied, since the caller may modify the original."""
    return x.copy() if type(x) is np.ndarray else x


def square(x: Value) -> Value:
    """``x * x``."""
    return integer_pow_p.bind(x, y=2)


def reciprocal(x: Value) -> Any:
    """``1 / x``; for integers, truncated to 0 except for 1 and -1."""
    if is_inexact(dtype_of(x)):
        return div_p.bind(literal(1.0, x), x)
    unit = eq_p.bind(integer_pow_p.bind(x, y=2), literal(1, x))
    return select_p.bind(unit, x, literal(0, x))


def sign(x: Value) -> Value:
    """-1, 0 or 1; for a complex number, ``x / |x|``."""
    if dtype_of(x).kind != "c":
        return sign_p.bind(x)
    size = abs_p.bind(x)
    size = select_p.bind(eq_p.bind(size, literal(0.0, size)), literal(1.0, size), size)
    return div_p.bind(x, convert(size, dtype_of(x)))


def conjugate(x: Value) -> Value:
    """The complex conjugate; real numbers are returned unchanged."""
    return conj_p.bind(x) if dtype_of(x).kind == "c" else unchanged(x)


def real(x: Value) -> Value:
    """The real part; real numbers are returned unchanged."""
    return real_p.bind(x) if dtype_of(x).kind == "c" else x


def imag(x: Value) -> Value:
    """The imaginary part; zeros for real numbers."""
    return imag_p.bind(x) if dtype_of(x).kind == "c" else constant(dtype_of(x).type(0), x)


def scaled(factor: float) -> Any:
    """Return a function that multiplies by a number."""
    return lambda x: mul_p.bind(x, literal(factor, x))


# --- tests --------------------------------------------------------------------------------------------------


def is_finite(x: ArrayLike) -> Value:
    """Whether a number is neither NaN nor infinite; true for all integers."""
    return is_finite_p.bind(x) if is_inexact(dtype_of(x)) else constant(np.True_, x)


def is_inf(x: ArrayLike) -> Value:
    """Whether a number is infinite; false for all integers."""
    return is_inf_p.bind(x) if is_inexact(dtype_of(x)) else constant(np.False_, x)


def is_nan(x: ArrayLike) -> Any:
    """Whether a number is NaN; false for all integers."""
    return is_nan_p.bind(x) if is_inexact(dtype_of(x)) else constant(np.False_, x)


def truth(x: Value) -> Value:
    """``x != 0``."""
    return x if dtype_of(x) == BOOL else convert_element_type_p.bind(x, dtype=BOOL)


def logical_and(x: Value, y: Value) -> Value:
    """Whether both are true."""
    return and_p.bind(truth(x), truth(y))


def logical_or(x: Value, y: Value) -> Value:
    """Whether at least one is true."""
    return or_p.bind(truth(x), truth(y))


def logical_xor(x: Value, y: Value) -> Value:
    """Whether exactly one is true."""
    return xor_p.bind(truth(x), truth(y))


def logical_not(x: Value) -> Value:
    """Whether it is false."""
    return not_p.bind(truth(x))


# --- of floats ----------------------------------------------------------------------------------------------


def fmax(x: Value, y: Value) -> Value:
    """The larger number; if one is NaN, the other."""
    return _without_nan(x, y, max_p)


def fmin(x: Value, y: Value) -> Value:
    """The smaller number; if one is NaN, the other."""
    return _without_nan(x, y, min_p)


def _without_nan(x: Value, y: Value, prim: Primitive) -> Value:
    if not is_inexact(dtype_of(x)):
        return prim.bind(x, y)
    rest = select_p.bind(is_nan_p.bind(y), x, prim.bind(x, y))
    return select_p.bind(is_nan_p.bind(x), y, rest)


def heaviside(x: Value, y: Value) -> Value:
    """0 for negative `x`, 1 for positive `x`, `y` at 0, NaN for NaN."""
    step = select_p.bind(gt_p.bind(x, literal(0.0, x)), literal(1.0, x), literal(0.0, x))
    step = select_p.bind(eq_p.bind(x, literal(0.0, x)), y, step)
    return select_p.bind(is_nan_p.bind(x), literal(math.nan, x), step)


def spacing(x: Value) -> Value:
    """The distance to the next float away from 0, with the sign of `x`; of float16 positive, as in NumPy."""
    away = copysign_p.bind(literal(math.inf, x), x)
    step = sub_p.bind(nextafter_p.bind(x, away), x)
    return abs_p.bind(step) if dtype_of(x) == FLOAT16 else step


def ldexp(x: Value, n: Value) -> Value:
    """``x * 2**n`` for integers `n`: exact, by multiplying with one power of two per binary digit of `n`."""
    double = dtype_of(x) == FLOAT64
    digits, bound = (9, 2200) if double else (6, 300)  # beyond the bound every result is 0 or infinite
    n = max_p.bind(min_p.bind(n, literal(bound, n)), literal(-bound, n))
    down = lt_p.bind(n, literal(0, n))
    size = abs_p.bind(n)

    def step(x: Value, taken: Value, power: int) -> Value:
        factor = select_p.bind(down, literal(2.0**-power, x), literal(2.0**power, x))
        return mul_p.bind(x, select_p.bind(taken, factor, literal(1.0, x)))

    for k in range(digits):
        digit = and_p.bind(size, literal(1 << k, n))
        x = step(x, ne_p.bind(digit, literal(0, n)), 1 << k)
    largest = 1 << digits
    for k in range(bound // largest + 1):
        x = step(x, ge_p.bind(size, literal((k + 1) * largest, n)), largest)
    return x


def fraction(x: Value) -> Value:
    """The fractional part, with the sign of `x`; 0 for infinities."""
    rest = sub_p.bind(x, trunc_p.bind(x))
    rest = select_p.bind(is_inf_p.bind(x), literal(0.0, x), rest)
    return copysign_p.bind(rest, x)


def rounded(x: Value, decimals: int) -> Value:
    """``np.round``: round to a number of decimals (negative: to tens, hundreds, ...), ties to even."""
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


def floored(x: Value, y: Value) -> Value:
    """The quotient rounded down. Of integers by 0 it is 0, as in NumPy, or what JAX computes (-2, and -1 of 0)."""
    quotient = floor_divide_p.bind(x, y)
    dtype = dtype_of(quotient)
    if dtype.kind == "i" and has_jax_semantics():
        x = strong(x, dtype)
        rest = select_p.bind(eq_p.bind(x, literal(0, x)), literal(-1, x), literal(-2, x))
        return or_for_zero(quotient, y, rest)
    return or_for_zero(quotient, y, -1)


def or_for_zero(quotient: Value, y: Any, instead: Any) -> Value:
    """A quotient of integers; under JAX's semantics `instead` where the divisor is 0, with all bits set for -1."""
    dtype = dtype_of(quotient)
    if dtype.kind not in "iu" or not has_jax_semantics() or (type(y) is int and y != 0):
        return quotient
    if type(instead) is int:
        instead = literal(instead if dtype.kind == "i" else np.iinfo(dtype).max, quotient)
    y = strong(y, dtype)
    return select_p.bind(eq_p.bind(y, literal(0, y)), instead, strong(quotient, dtype))


_LARGEST_EXPONENT = 16
"""Integer exponents of floats up to this one become products, larger ones ``pow``."""


def _integer_exponent(y: ArrayLike) -> int | None:
    """Return the value of `y` if it is a known integer, else None."""
    if isinstance(y, np.number) and dtype_kind(y.dtype) in "iuf":
        y = y.item()
    if type(y) is int:
        return y
    return int(y) if type(y) is float and y.is_integer() else None


def _power_by_integer(x: Value, n: int, dtype: np.dtype, weak: bool) -> Any:
    """Return ``x**n`` in `dtype` for a known integer, or None where ``pow`` should compute it."""
    if dtype.kind in "iu" and n < 0:
        if not weak:
            raise ArgumentValueError(
                f"power: cannot raise an integer array to the negative power {n}: "
                f"write x**{float(n)}, or convert x to float"
            )
        dtype = default_float()
    if is_inexact(dtype) and abs(n) > _LARGEST_EXPONENT:
        return None
    if weak:
        number = WEAK_KEYS[dtype_kind(dtype)]
        x = number(x) if type(x) in PYTHON_KEYS else _weak_tracer(x, dtype)
    else:
        x = strong(x, dtype)
    if n == 0:
        return WEAK_KEYS[dtype_kind(dtype)](1) if weak else constant(dtype.type(1), x)
    return unchanged(x) if n == 1 else integer_pow_p.bind(x, y=n)


def _weak_tracer(x: Value, dtype: np.dtype) -> Value:
    return x if dtype_of(x) == dtype else convert_element_type_p.bind(x, dtype=dtype, weak=True)


def _power(ufunc: np.ufunc) -> tuple[Body, Body]:
    """Return the public function, and the operator, which has shortcuts for squares and square roots."""
    general = binary(ufunc, pow_p.bind, "")
    general_operator = binary_operator(ufunc, pow_p.bind)

    def by_integer(x: Value, y: Value, keep_weak: bool) -> Value | None:
        n = _integer_exponent(y)
        if n is None:
            return None
        keys = key_of(x), key_of(y)
        weak = keys[0] in WEAK_DTYPES and keys[1] in WEAK_DTYPES and (keep_weak or promotes_as_jax())
        return _power_by_integer(x, n, computed_in(ufunc, keys), weak)

    def function(x: Value, y: Value, /, **options: Param) -> Any:
        if options:
            return general(x, y, **options)
        x = operand(x, ufunc.__name__)
        if autocasting.used:
            x, y = autocast.adjusted(ufunc.__name__, x, y)
        power = by_integer(x, y, keep_weak=False)
        return general(x, y) if power is None else finish(power)

    def apply(x: Value, y: Any) -> Value:
        if autocasting.used:
            x, y = autocast.adjusted(ufunc.__name__, x, y)
        if isinstance(x, Tracer):
            if type(y) is int and y == 2:
                return _square(x)
            if type(y) is float and y == 0.5:
                return _root(x)
            power = by_integer(x, y, keep_weak=True)
            if power is not None:
                return finish(power)
        return general_operator(x, y)

    return function, apply


# NumPy's operator treats these exponents like this (squares of booleans are int8, ``np.power(x, 2)`` is int64).
_square = unary_operator(np.square, square)
_root = unary_operator(np.sqrt, sqrt_p.bind)
_function, power_operator = _power(np.power)
power = publish(
    _function,
    np.power,
    "``x**y``. The derivative of ``x**0`` in `x` is 0 everywhere, and so is that of ``0**y`` in `y`.",
)
float_power = publish(_power(np.float_power)[0], np.float_power, "``x**y`` in double precision.")


def _compared(prim: Primitive, ufunc: np.ufunc) -> Body:
    """Make a comparison. It compares int64 with uint64 exactly, though they have no common dtype."""

    def body(x: Value, y: Value) -> Value:
        a, b = dtype_of(x), dtype_of(y)
        if a == b:
            return prim.bind(x, y)
        if a.kind == "i":
            below, outcome = x, ufunc(-1, 0)
            x = convert_element_type_p.bind(x, dtype=b)
        else:
            below, outcome = y, ufunc(0, -1)
            y = convert_element_type_p.bind(y, dtype=a)
        negative = lt_p.bind(below, np.int64(0))
        return select_p.bind(negative, outcome, prim.bind(x, y))

    return body


def _beyond(compare: Body, ufunc: np.ufunc) -> Body:
    """Extend a comparison to Python integers out of the other operand's range, where the outcome is certain."""

    def function(x: Value, y: ArrayLike, /, **options: Param) -> Any:
        try:
            return compare(x, y, **options)
        except OverflowError:
            if type(y) is int:
                return finish(constant(ufunc(0, 1 if y > 0 else -1), operand(x, ufunc.__name__)))
            return finish(constant(ufunc(1 if x > 0 else -1, 0), operand(y, ufunc.__name__, 1)))

    return function


def _public(ufunc: np.ufunc, prim: Primitive, summary: str) -> Body:
    return publish(_beyond(binary(ufunc, _compared(prim, ufunc), summary), ufunc), ufunc, summary)


equal = _public(np.equal, eq_p, "Whether two numbers are equal; NaN is not equal to any number.")
not_equal = _public(np.not_equal, ne_p, "Whether two numbers differ; NaN differs from itself.")
less = _public(
    np.less, lt_p, "Whether the first number is less; complex numbers compare in lexicographic order."
)
less_equal = _public(np.less_equal, le_p, "Whether the first number is less or equal; False with NaN.")
greater = _public(
    np.greater, gt_p, "Whether the first number is greater; complex numbers compare in lexicographic order."
)
greater_equal = _public(
    np.greater_equal, ge_p, "Whether the first number is greater or equal; False with NaN."
)


# --- Python's operators -------------------------------------------------------------------------------------


def _operator(ufunc: np.ufunc, prim: Primitive) -> Body:
    return _beyond(binary_operator(ufunc, _compared(prim, ufunc)), ufunc)


def _equality(ufunc: np.ufunc, prim: Primitive, outcome: np.bool_) -> Body:
    """Make ``==`` or ``!=``, which accept any object, as in NumPy: only numbers can equal numbers."""
    compare = _operator(ufunc, prim)

    reflected = f"__{prim.name}__"

    def apply(x: ArrayLike, y: ArrayLike) -> Any:
        result = compare(x, y)
        if result is NotImplemented and not hasattr(y, "__array_ufunc__"):
            result = taken_over(reflected, x, y)
            return finish(constant(outcome, x)) if result is NotImplemented else result
        return result

    return apply


OPERATORS = {
    "eq": _equality(np.equal, eq_p, np.False_),
    "ne": _equality(np.not_equal, ne_p, np.True_),
    "lt": _operator(np.less, lt_p),
    "le": _operator(np.less_equal, le_p),
    "gt": _operator(np.greater, gt_p),
    "ge": _operator(np.greater_equal, ge_p),
}
