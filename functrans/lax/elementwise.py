"""Strict elementwise operations: operands have one dtype and equally many axes, or none; extents of 1 broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..core import (
    ArgumentValueError,
    DtypeError,
    Primitive,
    ShapeError,
    aval_of,
    canonical,
    has_jax_semantics,
    is_float,
    is_inexact,
    promote,
)
from ..core.values import ArrayLike, DTypeLike, Param, PyTree, Value
from ..frontend.checked import checked
from ..frontend.pytree import tree_map
from ..numpy.dispatch import owned
from ..primitives import ops
from ..primitives.ops import broadcast_shapes, dtype_of, finish, literal, operand, shape_of, strong
from .elementwise_examples import example_of

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt", "ceil", "clamp", "complex", "conj",
    "convert_element_type", "cos", "cosh", "digamma", "div", "eq", "erf", "erfc", "exp", "exp2", "expm1",
    "floor", "ge", "gt", "imag", "integer_pow", "is_finite", "le", "lgamma", "log", "log1p", "logistic",
    "lt", "max", "min", "mul", "ne", "neg", "nextafter", "pow", "real", "reciprocal", "rem", "round",
    "rsqrt", "select", "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign",
    "sin", "sinh", "sqrt", "square", "stop_gradient", "sub", "tan", "tanh",
]  # fmt: skip


def operands(name: str, *given: ArrayLike) -> list[Value]:
    """Check that operands have one dtype, and convert Python numbers to it.

    Raises
    ------
    DtypeError
        If arrays have different dtypes.
    ShapeError
        If they have different shapes (scalars match any shape).
    """
    values = _of_one_dtype(name, given)
    if len({shape_of(v) for v in values} - {()}) > 1:
        listed = ", ".join(str(shape_of(v)) for v in values)
        raise ShapeError(
            f"lax.{name}: operands have different shapes ({listed}); broadcast them first, or use "
            "functrans.numpy"
        )
    return values


def broadcast_operands(name: str, *given: ArrayLike) -> list[Value]:
    """As `operands`, but extents of 1 broadcast: arrays of shapes (3, 1) and (1, 4) become arrays of shape (3, 4).

    Raises
    ------
    DtypeError
        If arrays have different dtypes.
    ShapeError
        If they have different numbers of axes, or extents that differ and are not 1 (scalars match any shape).
    """
    values = _of_one_dtype(name, given)
    shapes = list(dict.fromkeys(shape_of(v) for v in values if shape_of(v)))
    if len(shapes) < 2:
        return values
    listed = ", ".join(str(shape_of(v)) for v in values)
    if len(set(map(len, shapes))) > 1:
        raise ShapeError(
            f"lax.{name}: operands have different numbers of axes ({listed}); reshape them first, or use "
            "functrans.numpy"
        )
    full = broadcast_shapes(f"lax.{name}", *shapes)
    return [ops.broadcast_to(v, full) if shape_of(v) else v for v in values]


def _of_one_dtype(name: str, given: Sequence[Value]) -> list[Value]:
    values = [operand(x, name, i) for i, x in enumerate(given)]
    avals = [aval_of(v) for v in values]
    own = {a.dtype for a in avals if not a.weak} or {promote([(a.dtype, False) for a in avals])[0]}
    if not any(d.kind == "c" for d in own):
        own |= {a.dtype for a in avals if a.dtype.kind == "c"}  # a number, whose imaginary part would be lost
    if len(own) > 1:
        listed = ", ".join(str(a.dtype) for a in avals)
        raise DtypeError(
            f"lax.{name}: operands have different dtypes ({listed}); convert them with "
            "lax.convert_element_type, or use functrans.numpy, which promotes"
        )
    (dtype,) = own
    return [strong(v, dtype) for v in values]


def _bound(prim: Primitive, values: Sequence[Value], **params: Param) -> Value:
    prim.abstract(*[aval_of(v) for v in values], **params)  # evaluation does not check dtypes
    return prim.bind(*values, **params)


def of_primitive(name: str, prim: Primitive, count: int, doc: str, **params: Param) -> Callable[..., Any]:
    """Make the strict function of `count` operands that binds `prim` with these parameters."""

    def unary(x: Value) -> Value:
        return finish(_bound(prim, operands(name, x), **params))

    def binary(x: Value, y: Value) -> Value:
        return finish(_bound(prim, broadcast_operands(name, x, y), **params))

    def ternary(x: Value, y: Value, z: Value) -> Value:
        return finish(_bound(prim, broadcast_operands(name, x, y, z), **params))

    function: Callable[..., PyTree] = (unary, binary, ternary)[count - 1]
    function.__name__ = function.__qualname__ = name
    function.__module__ = __package__  # where pickle finds it
    arguments, printed = example_of(name)
    function.__doc__ = f"""{doc}

    Raises
    ------
    DtypeError, ShapeError
        If operands differ in dtype, or in the number of axes unless they have none, or in extents other than 1; see
        `functrans.lax`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.{name}({arguments})
    {printed}
    """
    return checked(function)


neg = of_primitive("neg", ops.neg_p, 1, "``-x``.")
sign = of_primitive("sign", ops.sign_p, 1, "-1, 0 or 1.")
floor = of_primitive("floor", ops.floor_p, 1, "The largest integer not above `x`.")
ceil = of_primitive("ceil", ops.ceil_p, 1, "The smallest integer not below `x`.")
is_finite = of_primitive("is_finite", ops.is_finite_p, 1, "Whether `x` is finite: not NaN and not infinite.")
exp = of_primitive("exp", ops.exp_p, 1, "``e**x``.")
exp2 = of_primitive("exp2", ops.exp2_p, 1, "``2**x``.")
expm1 = of_primitive("expm1", ops.expm1_p, 1, "``e**x - 1``, accurate near 0.")
log = of_primitive("log", ops.log_p, 1, "The natural logarithm.")
log1p = of_primitive("log1p", ops.log1p_p, 1, "``log(1 + x)``, accurate near 0.")
sqrt = of_primitive("sqrt", ops.sqrt_p, 1, "The square root.")
cbrt = of_primitive("cbrt", ops.cbrt_p, 1, "The cube root.")
sin = of_primitive("sin", ops.sin_p, 1, "The sine.")
cos = of_primitive("cos", ops.cos_p, 1, "The cosine.")
tan = of_primitive("tan", ops.tan_p, 1, "The tangent.")
asin = of_primitive("asin", ops.arcsin_p, 1, "The inverse sine.")
acos = of_primitive("acos", ops.arccos_p, 1, "The inverse cosine.")
atan = of_primitive("atan", ops.arctan_p, 1, "The inverse tangent.")
sinh = of_primitive("sinh", ops.sinh_p, 1, "The hyperbolic sine.")
cosh = of_primitive("cosh", ops.cosh_p, 1, "The hyperbolic cosine.")
tanh = of_primitive("tanh", ops.tanh_p, 1, "The hyperbolic tangent.")
asinh = of_primitive("asinh", ops.arcsinh_p, 1, "The inverse hyperbolic sine.")
acosh = of_primitive("acosh", ops.arccosh_p, 1, "The inverse hyperbolic cosine.")
atanh = of_primitive("atanh", ops.arctanh_p, 1, "The inverse hyperbolic tangent.")
erf = of_primitive("erf", ops.erf_p, 1, "The error function.")
erfc = of_primitive("erfc", ops.erfc_p, 1, "``1 - erf(x)``, accurate for large `x`.")
lgamma = of_primitive("lgamma", ops.lgamma_p, 1, "The logarithm of the absolute value of the gamma function.")
digamma = of_primitive("digamma", ops.digamma_p, 1, "The derivative of `lgamma`.")
logistic = of_primitive("logistic", ops.logistic_p, 1, "``1 / (1 + exp(-x))``.")
abs = of_primitive("abs", ops.abs_p, 1, "The absolute value.")
real = of_primitive("real", ops.real_p, 1, "The real part of a complex number.")
imag = of_primitive("imag", ops.imag_p, 1, "The imaginary part of a complex number.")
bitwise_not = of_primitive("bitwise_not", ops.not_p, 1, "Invert all bits.")
add = of_primitive("add", ops.add_p, 2, "``x + y``.")
sub = of_primitive("sub", ops.sub_p, 2, "``x - y``.")
mul = of_primitive("mul", ops.mul_p, 2, "``x * y``.")
max = of_primitive("max", ops.max_p, 2, "The larger of `x` and `y`; NaN propagates.")
min = of_primitive("min", ops.min_p, 2, "The smaller of `x` and `y`; NaN propagates.")
rem = of_primitive(
    "rem", ops.fmod_p, 2, "The remainder of division rounded towards zero, with the sign of `x`."
)
pow = of_primitive("pow", ops.pow_p, 2, "``x**y``.")
atan2 = of_primitive("atan2", ops.arctan2_p, 2, "The angle of the point with ordinate `x` and abscissa `y`.")
nextafter = of_primitive("nextafter", ops.nextafter_p, 2, "The next number from `x` towards `y`.")
complex = of_primitive("complex", ops.complex_p, 2, "``x + 1j * y``.")
bitwise_and = of_primitive("bitwise_and", ops.and_p, 2, 'Bitwise "and".')
bitwise_or = of_primitive("bitwise_or", ops.or_p, 2, 'Bitwise "or".')
bitwise_xor = of_primitive("bitwise_xor", ops.xor_p, 2, 'Bitwise exclusive "or".')
shift_left = of_primitive("shift_left", ops.shift_left_p, 2, "Shift bits left by `y` places.")
eq = of_primitive("eq", ops.eq_p, 2, "``x == y``.")
ne = of_primitive("ne", ops.ne_p, 2, "``x != y``.")
lt = of_primitive("lt", ops.lt_p, 2, "``x < y``.")
le = of_primitive("le", ops.le_p, 2, "``x <= y``.")
gt = of_primitive("gt", ops.gt_p, 2, "``x > y``.")
ge = of_primitive("ge", ops.ge_p, 2, "``x >= y``.")


@checked
def conj(x: ArrayLike) -> Any:
    """The complex conjugate; for a real number, the complex number with that real part.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.conj(np.array([1.0 + 2.0j]))
    Array([1.-2.j])
    """
    (value,) = operands("conj", x)
    if dtype_of(value).kind != "c":
        return complex(value, value.dtype.type(0))
    return finish(ops.conj_p.bind(value))


@checked
def div(x: ArrayLike, y: ArrayLike) -> Any:
    """``x / y``; integers are rounded towards zero.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.div(np.array([7, -7]), 2)
    Array([ 3, -3])
    """
    a, b = broadcast_operands("div", x, y)
    if is_inexact(dtype_of(a)):
        return finish(_bound(ops.div_p, (a, b)))
    whole = ops.sub_p.bind(a, _bound(ops.fmod_p, (a, b)))
    return finish(ops.or_for_zero(ops.floor_divide_p.bind(whole, b), b, -1))


@checked
def square(x: ArrayLike) -> Array:
    """``x * x``.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.square(np.array([2.0, -3.0]))
    Array([4., 9.])
    """
    return integer_pow(x, 2)


@checked
def integer_pow(x: ArrayLike, y: int) -> Any:
    """``x**y`` for an integer `y` known while tracing.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.integer_pow(np.array([2.0, 4.0]), -1)
    Array([0.5 , 0.25])
    """
    (value,) = operands("integer_pow", x)
    ops.same_dtype("lax.integer_pow", [aval_of(value)], "iufc")
    if y >= 0:
        return owned(ops.integer_pow_p.bind(value, y=int(y)), x)
    return div(literal(1, value), ops.integer_pow_p.bind(value, y=-int(y)))


@checked
def reciprocal(x: ArrayLike) -> Any:
    """``1 / x``.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.reciprocal(np.array([2.0, 4.0]))
    Array([0.5 , 0.25])
    """
    (value,) = operands("reciprocal", x)
    return finish(_bound(ops.div_p, (dtype_of(value).type(1), value)))


@checked
def rsqrt(x: ArrayLike) -> Any:
    """``1 / sqrt(x)``.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.rsqrt(np.array([4.0, 16.0]))
    Array([0.5 , 0.25])
    """
    (value,) = operands("rsqrt", x)
    root = _bound(ops.sqrt_p, (value,))
    return finish(ops.div_p.bind(literal(1.0, root), root))


@checked
def round(x: ArrayLike, rounding_method: int = 0) -> Any:
    """The nearest integer; halves away from zero (method 0) or to the even one (method 1).

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.round(np.array([0.5, 2.5]))
    Array([1., 3.])
    >>> lax.round(np.array([0.5, 2.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([0., 2.])
    """
    (value,) = operands("round", x)
    if not is_float(dtype_of(value)):
        raise DtypeError(f"lax.round: x must have a floating point dtype, got {dtype_of(value)}")
    if rounding_method not in (0, 1):
        raise ArgumentValueError(f"lax.round: rounding_method must be 0 or 1, got {rounding_method!r}")
    if rounding_method == 1:
        return finish(_bound(ops.rint_p, (value,)))
    # Starts from the truncated number, since adding a half may round.
    whole = _bound(ops.trunc_p, (value,))
    rest = ops.abs_p.bind(ops.sub_p.bind(value, whole))
    away = ops.add_p.bind(whole, ops.copysign_p.bind(literal(1.0, value), value))
    return finish(ops.select_p.bind(ops.ge_p.bind(rest, literal(0.5, rest)), away, whole))


@checked
def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Any:
    """Shift bits right by `y` places, preserving the sign.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.shift_right_arithmetic(np.array([8, -8]), 1)
    Array([ 4, -4])
    """
    return finish(_shifted("shift_right_arithmetic", x, y, "i"))


@checked
def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Any:
    """Shift bits right by `y` places, filling with zeros.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.shift_right_logical(np.array([8, -8], np.int8), 1)
    Array([  4, 124], dtype=int8)
    """
    return finish(_shifted("shift_right_logical", x, y, "u"))


def _shifted(name: str, x: Value, y: Value, kind: str) -> Value:
    a, b = broadcast_operands(name, x, y)
    own = dtype_of(a)
    if own.kind not in "iu":
        raise DtypeError(f"lax.{name}: expected integers, got dtype {own}")
    other = np.dtype(f"{kind}{own.itemsize}")
    return ops.convert(ops.shift_right_p.bind(ops.convert(a, other), ops.convert(b, other)), own)


@checked
def clamp(min: Any, x: ArrayLike, max: Any) -> Any:
    """Limit `x` to the range from `min` to `max`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.clamp(0.0, np.array([-1.0, 0.5, 3.0]), 1.0)
    Array([0. , 0.5, 1. ])
    """
    return finish(_bound(ops.clamp_p, operands("clamp", min, x, max)))


@checked
def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Any:
    """`on_true` where `pred` is true, else `on_false`; `pred` has their shape or no axes.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.select(np.array([True, False]), np.array([1.0, 2.0]), np.array([-1.0, -2.0]))
    Array([ 1., -2.])
    """
    condition = operand(pred, "select", 0)
    a, b = operands("select", on_true, on_false)
    avals = [aval_of(v) for v in (condition, a, b)]
    if avals[1].shape != avals[2].shape or avals[0].shape not in ((), avals[1].shape):
        raise ShapeError(
            f"lax.select: shapes {', '.join(str(v.shape) for v in avals)} differ; broadcast the operands "
            "first"
        )
    ops.select_p.abstract(*avals)
    value = ops.select_p.bind(condition, a, b)
    if has_jax_semantics():
        value = ops.weakly_as(value, operand(on_true, "select", 1), operand(on_false, "select", 2))
    return finish(value)


@checked
def select_n(which: Any, *cases: Any) -> Any:
    """Select elements from the case that `which`, of integers, numbers (a bool: the first or the second).

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.select_n(np.array([0, 2], np.int32), np.array([1, 2]), np.array([10, 20]), np.array([100, 200]))
    Array([  1, 200])
    """
    number = operand(which, "select_n", 0)
    if dtype_of(number).kind == "b":
        if len(cases) != 2:
            raise ArgumentValueError(f"lax.select_n: a bool chooses between 2 cases, got {len(cases)}")
        return select(number, cases[1], cases[0])
    if dtype_of(number).kind not in "iu" or not cases:
        raise DtypeError(f"lax.select_n: `which` must be bool or an integer, got {dtype_of(number)}")
    number = ops.convert(number, np.promote_types(dtype_of(number), np.int32))
    integer = dtype_of(number).type
    out = operands("select_n", *cases)[-1]
    for i in range(len(cases) - 2, -1, -1):
        out = select(ops.eq_p.bind(number, integer(i)), cases[i], out)
    return finish(out)


@checked
def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Any:
    """Convert an array to another dtype, by NumPy's casting.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.convert_element_type(np.array([1.7, -1.7]), np.int32)
    Array([ 1, -1], dtype=int32)
    """
    (value,) = operands("convert_element_type", operand)
    return owned(ops.convert(value, canonical(new_dtype, "lax.convert_element_type: new_dtype")), operand)


@checked
def stop_gradient(x: ArrayLike) -> Array:
    """Return `x`, which derivatives treat as a constant; of a pytree, each leaf.

    Parameters
    ----------
    x : pytree of arrays
        A list is a pytree of its elements.

    Returns
    -------
    pytree of Array

    Examples
    --------
    >>> from functrans import lax
    >>> lax.stop_gradient(2.0)
    Array(2.)
    >>> lax.stop_gradient({"w": 2.0, "b": (1.0, None)})
    {'b': (Array(1.), None), 'w': Array(2.)}
    """
    return tree_map(lambda leaf: owned(ops.stop_gradient_p.bind(operand(leaf, "stop_gradient")), leaf), x)
