"""Elementwise selection and comparison: where, select, clip, round, isclose, parts of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import ArgumentError, ArgumentValueError, finfo, is_inexact, operators, run_quietly
from ...core.values import ArrayLike, Value
from ...primitives import ops, ufuncs
from ...primitives.ops import common, dtype_of, finish, literal, operand, refuse_out, shape_of
from ..dispatch import array_operand, implements, owned
from ..indexing.nonzero import nonzero
from ..reductions.reductions import all as all_of

# --- where --------------------------------------------------------------------------------------------------


@implements(np.where)
def where(
    condition: ArrayLike,
    x: ArrayLike = None,
    y: ArrayLike = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = None,
) -> Any:
    """Select `x` where the condition is true, else `y`; without both, `nonzero` of the condition.

    Parameters
    ----------
    condition : array_like
        Nonzero elements count as true.
    x, y : array_like
        Their shapes must broadcast with the condition's.
    size : int, optional
    fill_value : int or tuple of int, optional
        As for `nonzero`, without `x` and `y`.

    Returns
    -------
    Array
        With the common dtype of `x` and `y`.

    Raises
    ------
    ArgumentValueError
        If only one of `x` and `y` is passed.
    ConcretizationTypeError
        If `x`, `y` and `size` are not passed, and the condition is traced.

    Notes
    -----
    Both sides are computed. If the derivative of the side not selected is infinite or NaN, the derivative of the result
    is NaN; so select a harmless argument, too: ``where(x > 0, log(where(x > 0, x, 1)), 0)``.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.where([True, False], 1.0, [5, 6])
    Array([1., 6.])
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ArgumentValueError("where: give both x and y, or neither")
    c = ops.truth(operand(condition, "where"))
    given = operand(x, "where", 1), operand(y, "where", 2)
    on_true, on_false = common(*given)
    ops.broadcast_shapes("where", shape_of(c), shape_of(on_true), shape_of(on_false))
    return finish(ops.weakly_as(ops.select_p.bind(c, on_true, on_false), *given))


@implements(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """Select from the choice of the first true condition, else `default`.

    Parameters
    ----------
    condlist : sequence of array_like of bool
    choicelist : sequence of array_like
        One for each condition.
    default : array_like

    Returns
    -------
    Array

    Raises
    ------
    ArgumentValueError
        If the lists are empty or of different lengths.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> x = fnp.array([0, 1, 2])
    >>> fnp.select([x < 1, x < 2], [x - 10, x + 10], 99)
    Array([-10,  11,  99])
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentValueError(
            f"select: condlist has {len(condlist)} conditions and choicelist "
            f"{len(choicelist)} choices; expected equally many, at least one"
        )
    *choices, out = common(*[operand(x, "select", 1) for x in choicelist], operand(default, "select", 2))
    for condition, choice in reversed(list(zip(condlist, choices))):
        c = operand(condition, "select")
        if dtype_of(c).kind != "b":
            raise ArgumentError(f"select: a condition has dtype {dtype_of(c)}, expected bool")
        ops.broadcast_shapes("select", shape_of(c), shape_of(choice), shape_of(out))
        out = ops.select_p.bind(c, choice, out)
    return finish(out)


@implements(np.clip)
def clip(
    a: ArrayLike,
    a_min: ArrayLike = None,
    a_max: ArrayLike = None,
    out: None = None,
    *,
    min: Any = None,
    max: Any = None,
) -> Array:
    """Limit numbers to the range from `a_min` to `a_max`.

    Parameters
    ----------
    a : array_like
    a_min, a_max : array_like, optional
        Broadcast against `a`. May also be passed as `min` and `max`.

    Returns
    -------
    Array

    Notes
    -----
    At a bound each side gets half of the derivative, as for `maximum` and `minimum`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.clip([1.0, 5.0, 9.0], 2.0, 6.0)
    Array([2., 5., 6.])
    """
    refuse_out("clip", out)
    if (a_min is not None or a_max is not None) and (min is not None or max is not None):
        raise ArgumentValueError("clip: bounds are given as a_min and a_max, or as min and max, not both")
    x = operand(a, "clip")
    low, high = _bounds(x, a_min if min is None else min, a_max if max is None else max)
    if low is not None and high is not None:
        given = x, operand(low, "clip", 1), operand(high, "clip", 2)
        x, below, above = common(*given)
        ops.broadcast_shapes("clip", shape_of(x), shape_of(below), shape_of(above))
        return finish(ops.weakly_as(ops.clip_p.bind(below, x, above), *given))
    if low is not None:
        x = ufuncs.maximum(x, low)
    if high is not None:
        x = ufuncs.minimum(x, high)
    return owned(array_operand(x, "clip"), a)


def _bounds(x: Value, low: ArrayLike, high: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
    """The bounds; as in NumPy, Python integers beyond the range of the dtype of `x` are dropped."""
    dtype = dtype_of(x)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low = None if type(low) is int and low <= info.min else low
        high = None if type(high) is int and high >= info.max else high
    return low, high


def _clip_method(a: ArrayLike, min: Any = None, max: Any = None, out: None = None) -> Value:
    return clip(a, min, max, out)


operators.attribute["clip"] = _clip_method


@implements(np.nan_to_num)
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Array:
    """Replace NaN by 0 and infinities by the largest numbers.

    Parameters
    ----------
    x : array_like
    copy : bool
        Accepted, without effect.
    nan, posinf, neginf : float
        The replacements.

    Returns
    -------
    Array

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nan_to_num([1.0, fnp.nan, fnp.inf], posinf=9.0)
    Array([1., 0., 9.])
    """
    value = array_operand(x, "nan_to_num")
    dtype = dtype_of(value)
    if dtype.kind == "c":
        parts = [_finite(part(value), nan, posinf, neginf) for part in (ops.real, ops.imag)]
        return finish(ops.complex_p.bind(*parts))
    return owned(value if dtype.kind in "biu" else _finite(value, nan, posinf, neginf), x)


def _finite(x: ArrayLike, nan: float, posinf: float | None, neginf: float | None) -> Any:
    info = finfo(dtype_of(x))
    highest = _of_dtype(float(info.max) if posinf is None else posinf, x)
    lowest = _of_dtype(float(info.min) if neginf is None else neginf, x)
    out = ops.select_p.bind(ops.eq_p.bind(x, literal(math.inf, x)), highest, x)
    out = ops.select_p.bind(ops.eq_p.bind(x, literal(-math.inf, x)), lowest, out)
    return ops.select_p.bind(ops.is_nan_p.bind(x), _of_dtype(nan, x), out)


def _of_dtype(number: ArrayLike, x: ArrayLike) -> Value:
    """Convert a number, which may be traced, to the dtype and shape of `x`."""
    return ops.broadcast_to(ops.convert(array_operand(number, "nan_to_num"), dtype_of(x)), shape_of(x))


# --- rounding -----------------------------------------------------------------------------------------------


@implements(np.round, np.around, method="round")
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round to a number of decimals, ties to even. The derivative is 0.

    Parameters
    ----------
    a : array_like
    decimals : int
        Negative values round to tens, hundreds, and so on.

    Returns
    -------
    Array

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.round([1.25, 2.5, 3.75], 1), fnp.round(2.5)
    (Array([1.2, 2.5, 3.8]), Array(2.))
    """
    refuse_out("round", out)
    return finish(ops.rounded(array_operand(a, "round"), decimals))


around = round


@implements(np.fix)
def fix(x: ArrayLike, out: None = None) -> Array:
    """Round towards 0.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fix([1.7, -1.7])
    Array([ 1., -1.])
    """
    refuse_out("fix", out)
    return ufuncs.trunc(x)


# --- parts of numbers ---------------------------------------------------------------------------------------


@implements(np.real)
def real(val: ArrayLike) -> Any:
    """The real part of numbers.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.real([1 + 2j, 3])
    Array([1., 3.])
    """
    return owned(ops.real(array_operand(val, "real")), val)


@implements(np.imag)
def imag(val: Any) -> Any:
    """The imaginary part of numbers; zeros for real numbers.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.imag([1 + 2j, 3])
    Array([2., 0.])
    """
    return owned(ops.imag(array_operand(val, "imag")), val)


@implements(np.angle)
def angle(z: ArrayLike, deg: bool = False) -> Any:
    """The argument of complex numbers, in radians or degrees.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.angle([1j, -1j], deg=True)
    Array([ 90., -90.])
    """
    x = array_operand(z, "angle")
    if dtype_of(x).kind in "biu":
        out = operand(ufuncs.arctan2(0, x), "angle")
    else:
        out = ops.arctan2_p.bind(ops.imag(x), ops.real(x))
    return finish(ops.mul_p.bind(out, literal(180 / math.pi, out)) if deg else out)


@implements(np.isreal)
def isreal(x: ArrayLike) -> Any:
    """Whether elements are real, that is, have an imaginary part of 0.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.isreal([1 + 0j, 2j])
    Array([ True, False])
    """
    part = ops.imag(array_operand(x, "isreal"))
    return finish(ops.eq_p.bind(part, dtype_of(part).type(0)))


@implements(np.iscomplex)
def iscomplex(x: ArrayLike) -> Any:
    """Whether elements have a nonzero imaginary part.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.iscomplex([1 + 0j, 2j])
    Array([False,  True])
    """
    return ufuncs.logical_not(isreal(x))


@implements(np.isposinf)
def isposinf(x: ArrayLike, out: None = None) -> Any:
    """Whether elements are positive infinity.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.isposinf([-fnp.inf, 0.0, fnp.inf])
    Array([False, False,  True])
    """
    return ufuncs.equal(x, math.inf)


@implements(np.isneginf)
def isneginf(x: ArrayLike, out: None = None) -> Any:
    """Whether elements are negative infinity.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.isneginf([-fnp.inf, 0.0, fnp.inf])
    Array([ True, False, False])
    """
    return ufuncs.equal(x, -math.inf)


def _as_of_a_number(part: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """For traced values: keeps weak values weak, like attributes of Python numbers."""
    return lambda x: ops.weakly(part(x)) if x.aval.weak else part(x)


operators.attribute["real"] = property(_as_of_a_number(real))
operators.attribute["imag"] = property(_as_of_a_number(imag))
operators.attribute["conj"] = operators.attribute["conjugate"] = _as_of_a_number(ufuncs.conjugate)


# --- nearly equal -------------------------------------------------------------------------------------------


@implements(np.isclose)
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether ``|a - b| <= atol + rtol * |b|``; infinities are close where equal.

    Parameters
    ----------
    a, b : array_like
    rtol, atol : float
    equal_nan : bool
        Whether NaN is close to NaN.

    Returns
    -------
    Array of bool

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.isclose([1.0, 1.1], [1.0 + 1e-9, 1.2])
    Array([ True, False])
    """
    x, y = common(operand(a, "isclose"), operand(b, "isclose", 1))
    ops.broadcast_shapes("isclose", shape_of(x), shape_of(y))
    if not is_inexact(dtype_of(x)):
        x, y = common(x, y, np.float64(0))[:2]
    size = ops.abs_p.bind(y)
    bound = ops.add_p.bind(literal(atol, size), ops.mul_p.bind(literal(rtol, size), size))
    gap = ops.abs_p.bind(run_quietly(ops.sub_p.bind, x, y, invalid="ignore"))  # of equal infinities
    near = ops.and_p.bind(ops.le_p.bind(gap, bound), ops.is_finite_p.bind(y))
    out = ops.or_p.bind(near, ops.eq_p.bind(x, y))
    if equal_nan:
        out = ops.or_p.bind(out, ops.and_p.bind(ops.is_nan_p.bind(x), ops.is_nan_p.bind(y)))
    return finish(out)


@implements(np.allclose)
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """Whether all elements are close; see `isclose`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9])
    Array(True)
    """
    return all_of(isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Any:
    """Whether shapes and all elements are equal.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.array_equal([1, 2], [1, 2]), fnp.array_equal([1, 2], [1, 2, 3])
    (Array(True), Array(False))
    """
    x, y = operand(a1, "array_equal"), operand(a2, "array_equal", 1)
    if shape_of(x) != shape_of(y):
        return finish(np.False_)
    same = operand(ufuncs.equal(x, y), "array_equal")
    if equal_nan:
        both = ufuncs.logical_and(ufuncs.isnan(x), ufuncs.isnan(y))
        same = operand(ufuncs.logical_or(same, both), "array_equal")
    return all_of(same)


@implements(np.array_equiv)
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Any:
    """Whether the shapes broadcast together and all elements are then equal.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.array_equiv([1, 2], [[1, 2], [1, 2]])
    Array(True)
    """
    x, y = operand(a1, "array_equiv"), operand(a2, "array_equiv", 1)
    try:
        ops.broadcast_shapes("array_equiv", shape_of(x), shape_of(y))
    except ValueError:
        return finish(np.False_)
    return all_of(ufuncs.equal(x, y))
