"""Remove, insert and repeat elements: delete, insert, resize, trim_zeros."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import INT64, Tracer, because, concrete, is_abstract
from ...core.values import ArrayLike, AxisLike, ShapeLike, Value
from ...errors import ArgumentValueError, ConcretizationTypeError, IndexOutOfBoundsError, ShapeError
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, one_axis, operand, positive_shape, shape_of
from ..dispatch import along, array_operand, implements, owned
from ..indexing.writing import cycled

__all__ = ["delete", "insert", "resize", "trim_zeros"]


def _numbers(x: Value, name: str, what: str) -> Any:
    """Return `x` with its values; raise an error if they are unknown while tracing."""
    if is_abstract(x):
        raise ConcretizationTypeError(
            f"{name}: the shape of the result depends on {what}, whose values are unknown while "
            f"tracing{because(x)}. Compute it outside the function, or mark the argument static"
        )
    return concrete(x)


def _positions(obj: ArrayLike, name: str) -> Any:
    """Convert the positions of `numpy.delete` and `numpy.insert`, whose values must be known."""
    if isinstance(obj, slice):
        return obj
    i = operand(obj, name, 1)
    i = _numbers(i, name, "the positions")
    if isinstance(obj, int):
        return i
    i = np.asarray(i)
    return i if i.size else i.astype(np.intp)  # an empty list becomes floats


def _numbered(function: Any, name: str, *args: ArrayLike) -> np.ndarray:
    """Apply NumPy's function to the positions along an axis."""
    try:
        return function(*args)
    except IndexError as error:
        raise IndexOutOfBoundsError(f"{name}: {error}") from None
    except (ValueError, TypeError) as error:
        raise ArgumentValueError(f"{name}: {error}") from None


@implements(np.delete)
def delete(arr: ArrayLike, obj: ArrayLike, axis: int | None = None) -> Any:
    """Remove subarrays along an axis.

    Parameters
    ----------
    arr : array_like
    obj : int, slice, array_like of int or bool
        The positions to remove. A single integer may be traced; the values of others must be known.
    axis : int, optional
        By default the array is flattened.

    Raises
    ------
    IndexOutOfBoundsError
        If a position is out of bounds.
    ConcretizationTypeError
        If several positions are unknown while tracing.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.delete([1, 2, 3, 4], [0, 2])
    Array([2, 4])
    """
    x, d = along(array_operand(arr, "delete"), axis, "delete")
    n = shape_of(x)[d]
    if isinstance(obj, Tracer) and not obj.shape and is_abstract(obj) and obj.dtype.kind in "iu" and n:
        i = ops.convert(obj, INT64)
        # Read once for its check: an index out of bounds is an error in compiled code, too.
        i = ops.gather_p.bind(ops.iota((n,), 0), i, axes=(0,), mode="raise")
        steps = ops.iota((n - 1,), 0)
        places: Any = ops.add_p.bind(steps, ops.convert(ops.ge_p.bind(steps, i), INT64))
    else:
        places = _numbered(np.delete, "delete", np.arange(n), _positions(obj, "delete"))
    out = ops.gather_p.bind(x, places, axes=(d,), mode="promise_in_bounds")
    return owned(ops.move_axis(out, 0, d), arr)


@implements(np.insert)
def insert(arr: ArrayLike, obj: ArrayLike, values: ArrayLike, axis: int | None = None) -> Any:
    """Insert subarrays before others along an axis.

    Parameters
    ----------
    arr : array_like
    obj : int, slice, array_like of int or bool
        The positions to insert before. A single integer may be traced; the values of others must be known.
    values : array_like
        Cast to the dtype of `arr`.
    axis : int, optional
        By default the array is flattened.

    Raises
    ------
    IndexOutOfBoundsError
        If a position is out of bounds.
    ShapeError
        If the values do not match.
    ConcretizationTypeError
        If several positions are unknown while tracing.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.insert([1, 2, 3], 1, 7), fnp.insert([[1, 2], [3, 4]], 1, [8, 9], axis=1)
    (Array([1, 7, 2, 3]), Array([[1, 8, 2],
           [3, 9, 4]]))
    """
    x, d = along(array_operand(arr, "insert"), axis, "insert")
    n = shape_of(x)[d]
    v = ops.stored(array_operand(values, "insert", 2), dtype_of(x), "insert")
    ndim = len(shape_of(x))
    if len(shape_of(v)) < ndim:
        v = ops.reshape_p.bind(v, shape=(1,) * (ndim - len(shape_of(v))) + shape_of(v))
    traced = isinstance(obj, Tracer) and not obj.shape and is_abstract(obj) and obj.dtype.kind in "iu"
    positions: Any = None if traced else _positions(obj, "insert")
    if not isinstance(positions, slice) and not np.ndim(positions):
        v = ops.move_axis(v, 0, d)  # NumPy: the first axis of the values then lies along `axis`
    if traced or (not isinstance(positions, slice) and np.size(positions) == 1):
        count = shape_of(v)[d]  # before a single position go any number of them
    else:
        count = _inserted(positions, n)
    shape = list(shape_of(x))
    shape[d] = count
    if len(shape_of(v)) != ndim or any(m not in (1, w) for m, w in zip(shape_of(v), shape)):
        raise ShapeError(
            f"insert: values of shape {np.shape(values)} do not broadcast to shape {tuple(shape)} of the inserted part"
        )
    v = ops.broadcast_to(v, tuple(shape))
    if traced:
        places = _shifted(obj, n, count)
    else:
        new = np.arange(n, n + count)
        places = _numbered(np.insert, "insert", np.arange(n), positions, new)
    out = ops.gather_p.bind(
        ops.concatenate_p.bind(x, v, dimension=d), places, axes=(d,), mode="promise_in_bounds"
    )
    return owned(ops.move_axis(out, 0, d), arr)


def _inserted(positions: ArrayLike, n: int) -> int:
    """The number of subarrays that several positions select."""
    if isinstance(positions, slice):
        return len(range(*positions.indices(n)))
    return int(positions.sum()) if positions.dtype.kind == "b" else positions.size


def _shifted(obj: Any, n: int, count: int) -> Value:
    """The source of each element when the last `count` move before the traced position `obj`."""
    i = ops.convert(obj, INT64)
    zero = np.int64(0)
    i = ops.select_p.bind(ops.lt_p.bind(i, zero), ops.add_p.bind(i, np.int64(n)), i)
    i = ops.select_p.bind(ops.lt_p.bind(i, zero), np.int64(n + 1), i)
    i = ops.gather_p.bind(ops.iota((n + 1,), 0), i, axes=(0,), mode="raise")
    steps = ops.iota((n + count,), 0)
    after = ops.sub_p.bind(steps, np.int64(count))
    inner = ops.add_p.bind(ops.sub_p.bind(steps, i), np.int64(n))
    behind = ops.select_p.bind(ops.ge_p.bind(after, i), after, inner)
    return ops.select_p.bind(ops.lt_p.bind(steps, i), steps, behind)


@implements(np.resize)
def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """Fill a new shape with the elements in order, repeated as needed.

    Parameters
    ----------
    a : array_like
    new_shape : int or tuple of int

    Returns
    -------
    Array
        Zeros if `a` is empty.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.resize([1, 2, 3], (2, 2))
    Array([[1, 2],
           [3, 1]])
    """
    shape = positive_shape(new_shape, "resize")
    x = ops.flat(array_operand(a, "resize"))
    count = prod(shape)
    if not shape_of(x)[0] or not count:
        return finish(ops.full(shape, 0, dtype_of(x)))
    return owned(ops.reshape_p.bind(cycled(x, ops.iota((count,), 0)), shape=shape), a)


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: AxisLike = None) -> Any:
    """Remove zeros at the ends of an array.

    Parameters
    ----------
    filt : array_like
        Its values must be known: under ``jit`` the shape of the result would be unknown.
    trim : {'fb', 'f', 'b'}
        Whether to trim the front, the back, or both.
    axis : int or tuple of int, optional
        By default all.

    Raises
    ------
    ConcretizationTypeError
        If the values are unknown while tracing.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.trim_zeros([0, 0, 1, 2, 0])
    Array([1, 2])
    """
    x = array_operand(filt, "trim_zeros")
    sides = str(trim).lower()
    if sides not in ("fb", "bf", "f", "b"):
        raise ArgumentValueError(f"trim_zeros: trim must be 'fb', 'f' or 'b', got {trim!r}")
    ndim = len(shape_of(x))
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (operator.index(axis),)
    chosen = {one_axis(d, ndim, "trim_zeros") for d in axes}
    numbers = np.asarray(_numbers(x, "trim_zeros", "its zeros"))
    if not ndim:
        return owned(x, filt)
    index = []
    for d, places in enumerate(np.nonzero(numbers)):
        first, last = (places.min(), places.max() + 1) if places.size else (shape_of(x)[d], shape_of(x)[d])
        if not places.size and "f" not in sides:
            first = last = 0
        low = int(first) if d in chosen and "f" in sides else 0
        high = int(last) if d in chosen and "b" in sides else shape_of(x)[d]
        index.append(slice(low, high))
    return owned(operand(finish(x)[tuple(index)], "trim_zeros"), filt)
