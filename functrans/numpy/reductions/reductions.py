"""Reductions: sum, prod, max, min, any, all, argmax, argmin, count_nonzero, and the reductions of ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays.arguments import Scalar
from ...arrays.array import Array
from ...core import (
    BOOL,
    INT64,
    ArgumentValueError,
    DtypeError,
    Primitive,
    ShapeError,
    Tracer,
    canonical,
    is_inexact,
    narrowed,
)
from ...core.values import ArrayLike, AxisLike, DTypeLike, PyTree, Value
from ...primitives import ops, ufuncs
from ...primitives.ops import dtype_of, finish, operand, reduced_axes, refuse_out, shape_of
from ..dispatch import along, array_operand, given, implements

_UINT64 = np.dtype(np.uint64)


def reduced(prim: Primitive, x: Value, axis: AxisLike, keepdims: bool, name: str) -> Value:
    """Apply `prim` to a strong value along the user's `axis`: None for all, an integer, or a tuple."""
    shape = shape_of(x)
    axes = reduced_axes(axis, len(shape), name)
    out = prim.bind(x, axes=axes)
    if given(keepdims, False):
        out = ops.reshape_p.bind(out, shape=tuple([1 if d in axes else n for d, n in enumerate(shape)]))
    return out


def accumulator(dtype: np.dtype) -> np.dtype:
    """The dtype in which NumPy adds and multiplies: 64-bit integers for small integers and booleans."""
    if dtype.kind == "b" or (dtype.kind == "i" and dtype.itemsize < 8):
        return narrowed(INT64)
    return narrowed(_UINT64) if dtype.kind == "u" and dtype.itemsize < 8 else dtype


def _summed_in(dtype: np.dtype, promote_integers: bool) -> np.dtype:
    return dtype if dtype.kind in "iu" and not promote_integers else accumulator(dtype)


def masked(x: Value, where: ArrayLike, neutral: ArrayLike, name: str) -> Value:
    """Replace `x` by a neutral element where the mask is false."""
    if given(where, True) is True:
        return x
    return ops.select_p.bind(mask_operand(where, shape_of(x), name), x, dtype_of(x).type(neutral))


def mask_operand(where: ArrayLike, shape: tuple[int, ...], name: str) -> Value:
    """Check the argument `where`: its dtype must be bool, and it must broadcast to a shape."""
    mask = operand(where, f"{name}: where")
    if dtype_of(mask) != BOOL:
        raise DtypeError(f"{name}: where must be of dtype bool, got {dtype_of(mask)}; write where != 0")
    if ops.broadcast_shapes(f"{name}: where", shape_of(mask), shape) != shape:
        raise ShapeError(
            f"{name}: where of shape {shape_of(mask)} does not broadcast to {shape}, the shape of the array"
        )
    return mask


def _with_initial(combine: Callable[..., PyTree], out: ArrayLike, initial: Value, neutral: Any = None) -> Any:
    if given(initial, None) is None or (neutral is not None and initial is neutral):
        return finish(out)
    dtype = dtype_of(out)  # the result's, whatever the dtype of the initial value
    return combine(out, ops.convert(initial, dtype) if isinstance(initial, Tracer) else dtype.type(initial))


# --- sum and prod -------------------------------------------------------------------------------------------


@implements(np.sum, method="sum")
def sum(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: Scalar = None,
    where: ArrayLike = True,
    *,
    promote_integers: bool = True,
) -> Array:
    """Sum along axes.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional
        By default all.
    dtype : dtype-like, optional
        The dtype to compute in. By default int64 or uint64 for booleans and small integers.
    keepdims : bool
        Whether to keep summed axes with extent 1.
    initial : scalar, optional
        Added to the sum.
    where : array_like of bool, optional
        The elements to add. Broadcast against `a`.
    promote_integers : bool
        Whether booleans and small integers are added as 64-bit integers. If False, small ones keep their dtype.

    Returns
    -------
    Array

    Raises
    ------
    AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.sum([[1.0, 2.0], [3.0, 4.0]], axis=0)
    Array([4., 6.])
    """
    if out is not None:
        refuse_out("sum", out)
    x = array_operand(a, "sum")
    own = dtype_of(x)
    to = _summed_in(own, promote_integers) if dtype is None else canonical(dtype, "sum: dtype")
    if to != own:
        x = ops.convert(x, to)
    if where is not True:
        x = masked(x, where, 0, "sum")
    return _with_initial(ufuncs.add, reduced(ops.reduce_sum_p, x, axis, keepdims, "sum"), initial)


@implements(np.prod, method="prod")
def prod(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: Scalar = None,
    where: ArrayLike = True,
    *,
    promote_integers: bool = True,
) -> Any:
    """Product along axes; for the parameters see `sum`.

    Notes
    -----
    The derivative multiplies the other factors, without division: it is correct if factors are 0.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.prod([2, 3, 4])
    Array(24)
    """
    refuse_out("prod", out)
    x = array_operand(a, "prod")
    own = dtype_of(x)
    x = ops.convert(
        x, _summed_in(own, promote_integers) if dtype is None else canonical(dtype, "prod: dtype")
    )
    x = masked(x, where, 1, "prod")
    if dtype_of(x) == BOOL:
        return finish(reduced(ops.reduce_and_p, x, axis, keepdims, "prod"))
    return _with_initial(ufuncs.multiply, reduced(ops.reduce_prod_p, x, axis, keepdims, "prod"), initial)


# --- max and min --------------------------------------------------------------------------------------------


def _lowest(dtype: np.dtype, sign: int) -> Any:
    """The neutral element of max (``sign=-1``) or min (1) in a dtype."""
    if dtype.kind == "b":
        return sign > 0
    if is_inexact(dtype):
        return sign * np.inf
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def _extremum(
    name: str,
    prim: Primitive,
    combine: Callable[..., PyTree],
    sign: int,
    a: Value,
    axis: AxisLike,
    keepdims: Any,
    initial: Value,
    where: Any,
) -> Value:
    x = array_operand(a, name)
    initial = given(initial, None)
    if initial is None and given(where, True) is not True:
        raise ArgumentValueError(f"{name}: where= needs initial=, the result if no element is selected")
    x = masked(x, where, _lowest(dtype_of(x), sign), name)
    shape = shape_of(x)
    axes = reduced_axes(axis, len(shape), name)
    if 0 in [shape[d] for d in axes]:
        if initial is None:
            raise ArgumentValueError(
                f"{name}: zero-size array of shape {shape} has no {name}imum along axis {axis}; pass initial="
            )
        out_shape = tuple([1 if d in axes else n for d, n in enumerate(shape) if d not in axes or keepdims])
        return finish(ops.full(out_shape, initial, dtype_of(x)))
    return _with_initial(combine, reduced(prim, x, axis, keepdims, name), initial)


@implements(np.max, np.amax, method="max")
def max(
    a: ArrayLike,
    axis: AxisLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: Scalar = None,
    where: ArrayLike = True,
) -> Any:
    """Largest element along axes; NaN propagates.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional
        By default all.
    keepdims : bool
        Whether to keep reduced axes with extent 1.
    initial : scalar, optional
        A lower bound of the result; required with `where` and for empty arrays.
    where : array_like of bool, optional
        The elements to compare.

    Returns
    -------
    Array

    Raises
    ------
    ArgumentValueError
        If the array is empty, and `initial` is not passed.

    Notes
    -----
    All largest elements share the derivative evenly.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.max([[1.0, 5.0], [3.0, 4.0]], axis=1)
    Array([5., 4.])
    """
    refuse_out("max", out)
    return _extremum("max", ops.reduce_max_p, ufuncs.maximum, -1, a, axis, keepdims, initial, where)


@implements(np.min, np.amin, method="min")
def min(
    a: ArrayLike,
    axis: AxisLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: Scalar = None,
    where: ArrayLike = True,
) -> Any:
    """Smallest element along axes; NaN propagates. See `max`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.min([[1.0, 5.0], [3.0, 4.0]], axis=1)
    Array([1., 3.])
    """
    refuse_out("min", out)
    return _extremum("min", ops.reduce_min_p, ufuncs.minimum, 1, a, axis, keepdims, initial, where)


amax, amin = max, min


@implements(np.ptp)
def ptp(a: ArrayLike, axis: AxisLike = None, out: None = None, keepdims: bool = False) -> Array | None:
    """Largest minus smallest element along axes.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.ptp([3, 9, 4])
    Array(6)
    """
    refuse_out("ptp", out)
    return ufuncs.subtract(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


# --- truth --------------------------------------------------------------------------------------------------


@implements(np.any, method="any")
def any(
    a: ArrayLike, axis: AxisLike = None, out: None = None, keepdims: bool = False, *, where: ArrayLike = True
) -> Any:
    """Whether any element along axes is nonzero; False if empty.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.any([[0, 1], [0, 0]], axis=1)
    Array([ True, False])
    """
    refuse_out("any", out)
    x = masked(ops.truth(array_operand(a, "any")), where, False, "any")
    return finish(reduced(ops.reduce_or_p, x, axis, keepdims, "any"))


@implements(np.all, method="all")
def all(
    a: ArrayLike, axis: AxisLike = None, out: None = None, keepdims: bool = False, *, where: ArrayLike = True
) -> Any:
    """Whether all elements along axes are nonzero; True if empty.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.all([[1, 1], [0, 1]], axis=1)
    Array([ True, False])
    """
    refuse_out("all", out)
    x = masked(ops.truth(array_operand(a, "all")), where, True, "all")
    return finish(reduced(ops.reduce_and_p, x, axis, keepdims, "all"))


@implements(np.count_nonzero)
def count_nonzero(a: ArrayLike, axis: AxisLike = None, *, keepdims: bool = False) -> Any:
    """The number of nonzero elements along axes.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.count_nonzero([0, 2, 3])
    Array(2)
    """
    x = ops.convert(ops.truth(array_operand(a, "count_nonzero")), INT64)
    return finish(reduced(ops.reduce_sum_p, x, axis, keepdims, "count_nonzero"))


# --- positions ----------------------------------------------------------------------------------------------


def _position(name: str, prim: Primitive, a: Value, axis: AxisLike, keepdims: Any) -> Value:
    x = array_operand(a, name)
    shape = shape_of(x)
    if not shape and type(axis) is int and axis in (0, -1):
        axis = None  # a number has these, as in `reduced_axes`
    x, d = along(x, axis, name)
    reduced = (1,) * len(shape) if axis is None else (*shape[:d], 1, *shape[d + 1 :])
    if shape_of(x)[d] == 0:
        raise ArgumentValueError(
            f"{name}: attempt to get {name} of an empty sequence (shape {shape}, axis {axis})"
        )
    out = prim.bind(x, axes=(d,))
    return finish(ops.reshape_p.bind(out, shape=reduced) if keepdims is True else out)


@implements(np.argmax, method="argmax")
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Value:
    """Index of the (first) largest element; NaN counts as largest.

    Parameters
    ----------
    a : array_like
    axis : int, optional
        By default the index into the flattened array.
    keepdims : bool
        Whether to keep the axis with extent 1.

    Returns
    -------
    Array of int64

    Raises
    ------
    ArgumentValueError
        If the array is empty.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.argmax([[1, 5], [7, 2]], axis=0)
    Array([1, 0])
    """
    refuse_out("argmax", out)
    return _position("argmax", ops.argmax_p, a, axis, keepdims)


@implements(np.argmin, method="argmin")
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Value:
    """Index of the (first) smallest element; NaN counts as smallest. See `argmax`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.argmin([3, 1, 2])
    Array(1)
    """
    refuse_out("argmin", out)
    return _position("argmin", ops.argmin_p, a, axis, keepdims)
