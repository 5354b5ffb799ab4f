"""Functions with which NumPy writes into arrays, here returning updated copies: place, put and similar.

They require ``inplace=False`` and return the updated array; without it they raise, so that code that relies on the
in-place change does not fail silently.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import INT64, ArgumentValueError, ImmutableArrayError, ShapeError, concrete, is_abstract
from ...core.values import ArrayLike, Value
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, one_axis, operand, shape_of
from ..dispatch import array_operand, implements, owned
from .at import At

__all__ = ["fill_diagonal", "place", "put", "put_along_axis", "putmask"]


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ImmutableArrayError(
            f"{name}: functrans arrays are immutable. Write x = functrans.numpy.{name}(x, ..., inplace=False)"
        )


def cycled(values: ArrayLike, places: ArrayLike) -> Value:
    """Read a flat array cyclically at nonnegative indices."""
    n = shape_of(values)[0]
    return ops.gather_p.bind(values, ops.remainder_p.bind(places, np.int64(n)), axes=(0,), mode="clip")


@implements(np.place)
def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Replace the elements under a mask, in order, by values that are repeated as needed.

    Parameters
    ----------
    arr : array_like
    mask : array_like of bool
        With as many elements as `arr`. It may be traced.
    vals : array_like
    inplace : bool
        Must be False.

    Returns
    -------
    Array

    Raises
    ------
    ImmutableArrayError
        If `inplace` is not False.
    ArgumentValueError
        If `vals` is empty, but elements are selected.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.place([1, 2, 3, 4], [True, False, True, True], [7, 8], inplace=False)
    Array([7, 2, 8, 7])
    """
    _refuse_inplace("place", inplace)
    x, chosen = array_operand(arr, "place"), ops.truth(array_operand(mask, "place", 1))
    values = ops.stored(ops.flat(array_operand(vals, "place", 2)), dtype_of(x), "place")
    if prod(shape_of(chosen)) != prod(shape_of(x)):
        raise ArgumentValueError(
            f"place: mask and data must be the same size, got shapes {shape_of(chosen)} and {shape_of(x)}"
        )
    if not shape_of(values)[0]:
        if is_abstract(chosen) or np.any(concrete(chosen)):
            raise ArgumentValueError("place: cannot insert from an empty array")
        return owned(x, arr)
    chosen = ops.flat(chosen)
    counted = ops.cumsum_p.bind(ops.convert(chosen, INT64), axis=0, reverse=False)
    values = cycled(values, ops.select_p.bind(chosen, ops.sub_p.bind(counted, np.int64(1)), np.int64(0)))
    return finish(ops.reshape_p.bind(ops.select_p.bind(chosen, values, ops.flat(x)), shape=shape_of(x)))


@implements(np.put)
def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str = "raise", *, inplace: bool = True
) -> Value | None:
    """Replace the elements at indices into the flattened array by values that are repeated as needed.

    Parameters
    ----------
    a : array_like
    ind : array_like of int
    v : array_like
    mode : {'raise', 'wrap', 'clip'}
    inplace : bool
        Must be False.

    Raises
    ------
    ImmutableArrayError
        If `inplace` is not False.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.put([1, 2, 3], [0, 2], [7, 8], inplace=False)
    Array([7, 2, 8])
    """
    _refuse_inplace("put", inplace)
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentValueError(f"put: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    x = array_operand(a, "put")
    i = ops.flat(array_operand(ind, "put", 1))
    values = ops.stored(ops.flat(array_operand(v, "put", 2)), dtype_of(x), "put")
    if not shape_of(i)[0] or not shape_of(values)[0]:
        return owned(x, a)
    places = ops.iota(shape_of(i), 0)
    changed = At(ops.flat(x))[finish(i)].set(finish(cycled(values, places)), mode=mode)
    return finish(ops.reshape_p.bind(operand(changed, "put"), shape=shape_of(x)))


@implements(np.putmask)
def putmask(a: ArrayLike, mask: ArrayLike, values: ArrayLike, *, inplace: bool = True) -> Value | None:
    """Replace the elements under a mask by the values at the same positions, repeated as needed.

    Parameters
    ----------
    a : array_like
    mask : array_like of bool
        With the shape of `a`. It may be traced.
    values : array_like
    inplace : bool
        Must be False.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.putmask([1, 2, 3, 4], [True, False, True, True], [7, 8], inplace=False)
    Array([7, 2, 7, 8])
    """
    _refuse_inplace("putmask", inplace)
    x, chosen = array_operand(a, "putmask"), ops.truth(array_operand(mask, "putmask", 1))
    new = ops.stored(ops.flat(array_operand(values, "putmask", 2)), dtype_of(x), "putmask")
    if shape_of(chosen) != shape_of(x):
        raise ArgumentValueError(
            f"putmask: mask and data must be the same size, got shapes {shape_of(chosen)} and {shape_of(x)}"
        )
    if not shape_of(new)[0]:
        return owned(x, a)
    filled = ops.reshape_p.bind(cycled(new, ops.iota((prod(shape_of(x)),), 0)), shape=shape_of(x))
    return finish(ops.select_p.bind(chosen, filled, x))


@implements(np.put_along_axis)
def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    *,
    inplace: bool = True,
    mode: str | None = None,
) -> Any:
    """Replace the elements that `take_along_axis` would take.

    Parameters
    ----------
    arr : array_like
    indices : array_like of int
        As many axes as `arr`; all but `axis` broadcast against it.
    values : array_like
        Broadcast to `indices`.
    axis : int or None
        None flattens the array.
    inplace : bool
        Must be False.
    mode : str, optional
        What to do with indices out of bounds, as for ``x.at[i]``; by default an error.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.put_along_axis([[10, 30], [60, 40]], [[1], [0]], 99, axis=1, inplace=False)
    Array([[10, 99],
           [99, 40]])
    """
    _refuse_inplace("put_along_axis", inplace)
    x = array_operand(arr, "put_along_axis")
    i = array_operand(indices, "put_along_axis", 1)
    if axis is None:
        changed = put_along_axis(ops.flat(x), i, values, 0, inplace=False, mode=mode)
        return finish(ops.reshape_p.bind(operand(changed, "put_along_axis"), shape=shape_of(x)))
    shape, others = shape_of(x), shape_of(i)
    d = one_axis(axis, len(shape), "put_along_axis")
    if len(shape) != len(others):
        raise ShapeError(f"put_along_axis: shapes {shape} and {others} must have the same number of axes")
    places = [
        finish(i) if e == d else finish(ops.iota(tuple([n if e == f else 1 for f in range(len(shape))]), e))
        for e, n in enumerate(shape)
    ]
    values = finish(ops.stored(array_operand(values, "put_along_axis", 2), dtype_of(x), "put_along_axis"))
    where = At(finish(x))[tuple(places)]
    return where.set(values) if mode is None else where.set(values, mode=mode)


@implements(np.fill_diagonal)
def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Any:
    """Replace the main diagonal of an array.

    Parameters
    ----------
    a : array_like
        At least two axes; if more than two, all of one extent.
    val : array_like
        Its elements fill the diagonal in order, repeated as needed.
    wrap : bool
        Whether to restart the diagonal below the last column of a tall matrix, after one free row.
    inplace : bool
        Must be False.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fill_diagonal(fnp.zeros((2, 2)), 5.0, inplace=False)
    Array([[5., 0.],
           [0., 5.]])
    """
    _refuse_inplace("fill_diagonal", inplace)
    x = array_operand(a, "fill_diagonal")
    shape = shape_of(x)
    if len(shape) < 2:
        raise ShapeError(f"fill_diagonal: array must be at least 2-d, got shape {shape}")
    end = None
    if len(shape) == 2:
        step = shape[1] + 1
        end = None if wrap else shape[1] * shape[1]
    elif len(set(shape)) > 1:
        raise ShapeError(
            f"fill_diagonal: all dimensions of the array must be of equal length, got shape {shape}"
        )
    else:
        step = 1 + sum(shape[0] ** k for k in range(1, len(shape)))
    places = np.arange(prod(shape))[:end:step]
    values = finish(ops.stored(array_operand(val, "fill_diagonal", 1), dtype_of(x), "fill_diagonal"))
    return put(x, places, values, inplace=False) if places.size else owned(x, a)
