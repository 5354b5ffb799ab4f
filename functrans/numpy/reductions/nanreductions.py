"""Reductions that ignore NaN: nansum, nanprod, nanmax, nanmin, nanargmax, nanargmin, nanmean, nanvar, nanstd.

A NaN is replaced before the reduction, so it has no effect on derivatives: the derivative in it is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...arrays.arguments import Scalar
from ...arrays.array import Array
from ...core import ArgumentValueError, concrete, is_inexact, run_quietly
from ...core.values import ArrayLike, AxisLike, DTypeLike, PyTree, Value
from ...primitives import ops, ufuncs
from ...primitives.ops import dtype_of, finish, literal, operand, reduced_axes, refuse_out, shape_of
from ..dispatch import NO_VALUE, array_operand, given, implements
from ..elementwise import selection
from ..statistics import averages as statistics
from . import reductions

__all__ = [
    "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar",
]  # fmt: skip


def _checked(a: Value, axis: AxisLike, name: str) -> Value:
    """Check that the array has the axis, so that a message names the function that was called."""
    x = array_operand(a, name)
    reduced_axes(axis, len(shape_of(x)), name)
    return x


def _replaced(x: Value, number: float) -> tuple[Any, Any]:
    """Replace NaN in `x` by `number`; also return the mask of NaN, or None if the dtype cannot have any."""
    if not is_inexact(dtype_of(x)):
        return x, None
    nan = ufuncs.isnan(x)
    return selection.where(nan, dtype_of(x).type(number), x), nan


# --- sums ---------------------------------------------------------------------------------------------------


@implements(np.nansum)
def nansum(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: Any = False,
    initial: Scalar = None,
    where: ArrayLike = True,
) -> Any:
    """Sum along axes, treating NaN as 0. For the parameters see `sum`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nansum([1.0, fnp.nan, 2.0])
    Array(3.)
    """
    x, _ = _replaced(_checked(a, axis, "nansum"), 0)
    return reductions.sum(x, axis, dtype, out, given(keepdims, False), initial, given(where, True))


@implements(np.nanprod)
def nanprod(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: Any = False,
    initial: Scalar = None,
    where: ArrayLike = True,
) -> Any:
    """Product along axes, treating NaN as 1. For the parameters see `sum`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nanprod([3.0, fnp.nan, 2.0])
    Array(6.)
    """
    x, _ = _replaced(_checked(a, axis, "nanprod"), 1)
    return reductions.prod(x, axis, dtype, out, given(keepdims, False), initial, given(where, True))


# --- max and min --------------------------------------------------------------------------------------------


def _extremum(
    function: Callable[..., PyTree],
    worst: float,
    a: Value,
    axis: AxisLike,
    out: ArrayLike,
    keepdims: Any,
    initial: Value,
    where: Any,
) -> Value:
    name = f"nan{function.__name__}"
    refuse_out(name, out)
    keepdims, initial, where = given(keepdims, False), given(initial, None), given(where, True)
    x = _checked(a, axis, name)
    value, nan = _replaced(x, worst)
    extremum = function(value, axis, None, keepdims, initial, where)
    if nan is None or initial is not None:
        return extremum
    nothing = reductions.all(nan, axis, keepdims=keepdims)
    return selection.where(nothing, literal(np.nan, x), extremum)


@implements(np.nanmax)
def nanmax(
    a: ArrayLike,
    axis: AxisLike = None,
    out: None = None,
    keepdims: Any = False,
    initial: Scalar = None,
    where: ArrayLike = True,
) -> Any:
    """Largest element along axes, ignoring NaN. For the parameters see `max`.

    Returns
    -------
    Array
        NaN if all elements are NaN, without a warning.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nanmax([[1.0, fnp.nan], [fnp.nan, fnp.nan]], axis=1)
    Array([ 1., nan])
    """
    return _extremum(reductions.max, -np.inf, a, axis, out, keepdims, initial, where)


@implements(np.nanmin)
def nanmin(
    a: ArrayLike,
    axis: AxisLike = None,
    out: None = None,
    keepdims: ArrayLike = False,
    initial: Scalar = None,
    where: ArrayLike = True,
) -> Any:
    """Smallest element along axes, ignoring NaN. See `nanmax`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nanmin([3.0, fnp.nan, 2.0])
    Array(2.)
    """
    return _extremum(reductions.min, np.inf, a, axis, out, keepdims, initial, where)


def _position(
    function: Callable[..., PyTree], worst: float, a: Value, axis: AxisLike, out: ArrayLike, keepdims: Any
) -> Any:
    name = f"nan{function.__name__}"
    refuse_out(name, out)
    keepdims = given(keepdims, False)
    value, nan = _replaced(_checked(a, axis, name), worst)
    position = function(value, axis, keepdims=keepdims)
    if nan is None:
        return position
    nothing = reductions.all(nan, axis, keepdims=keepdims)
    known = concrete(nothing)
    if known is None:
        return selection.where(nothing, np.int64(-1), position)
    if np.any(known):
        raise ArgumentValueError(f"{name}: All-NaN slice encountered: along axis {axis} there is no number")
    return position


@implements(np.nanargmax)
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, *, keepdims: Any = False) -> Array:
    """Index of the (first) largest element, ignoring NaN. For the parameters see `argmax`.

    Returns
    -------
    Array of int64

    Raises
    ------
    ArgumentValueError
        If all are NaN. Under ``jit``, where this is unknown, the index is -1 instead.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nanargmax([1.0, fnp.nan, 5.0])
    Array(2)
    """
    return _position(reductions.argmax, -np.inf, a, axis, out, keepdims)


@implements(np.nanargmin)
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, *, keepdims: Any = False) -> Any:
    """Index of the (first) smallest element, ignoring NaN. See `nanargmax`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nanargmin([4.0, fnp.nan, 1.0])
    Array(2)
    """
    return _position(reductions.argmin, np.inf, a, axis, out, keepdims)


# --- mean, var, std -----------------------------------------------------------------------------------------


def _numbers(a: Value, axis: AxisLike, where: Any, name: str) -> tuple[Any, Any]:
    """Replace NaN by 0; also return a mask of the elements to use (or True)."""
    x, nan = _replaced(_checked(a, axis, name), 0)
    where = given(where, True)
    if nan is None:
        return x, where
    counts = ufuncs.logical_not(nan)
    if where is True:
        return x, counts
    shape = shape_of(x)
    mask = ops.broadcast_to(ops.truth(operand(where, f"{name}: where")), shape)
    return x, ops.and_p.bind(mask, operand(counts, name))


@implements(np.nanmean)
def nanmean(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: Any = False,
    *,
    where: ArrayLike = True,
) -> Array:
    """Arithmetic mean along axes, ignoring NaN. For the parameters see `mean`.

    Returns
    -------
    Array
        NaN if all elements are NaN.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nanmean([1.0, fnp.nan, 4.0])
    Array(2.5)
    """
    x, mask = _numbers(a, axis, where, "nanmean")
    mean = partial(statistics.mean, where=mask)
    return run_quietly(mean, x, axis, dtype, out, given(keepdims, False), invalid="ignore")


@implements(np.nanvar)
def nanvar(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    out: None = None,
    ddof: float = 0,
    keepdims: ArrayLike = False,
    *,
    where: ArrayLike = True,
    mean: ArrayLike = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Array:
    """Variance along axes, ignoring NaN. For the parameters see `var`.

    Returns
    -------
    Array
        NaN if the divisor is not positive.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nanvar([1.0, fnp.nan, 3.0])
    Array(1.)
    """
    refuse_out("nanvar", out)
    keepdims = given(keepdims, False)
    x, mask = _numbers(a, axis, where, "nanvar")
    less = statistics.degrees_less(ddof, given(correction, None), "nanvar")
    var = partial(statistics.var, where=mask, mean=given(mean, None))
    variance = run_quietly(var, x, axis, dtype, None, less, keepdims, invalid="ignore", divide="ignore")
    if mask is True:
        return variance
    number = reductions.sum(ops.broadcast_to(operand(mask, "nanvar"), shape_of(x)), axis, keepdims=keepdims)
    return selection.where(number > less, variance, literal(np.nan, variance))


@implements(np.nanstd)
def nanstd(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    out: None = None,
    ddof: float = 0,
    keepdims: ArrayLike = False,
    *,
    where: ArrayLike = True,
    mean: ArrayLike = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Any:
    """Standard deviation along axes, ignoring NaN: the root of `nanvar`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nanstd([1.0, fnp.nan, 3.0])
    Array(1.)
    """
    refuse_out("nanstd", out)
    x = array_operand(a, "nanstd")
    variance = nanvar(x, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    return finish(statistics.root_of_variance(operand(variance, "nanstd"), x, given(mean, None)))
