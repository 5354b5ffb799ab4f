"""Changed copies under the names of NumPy's functions: place, put, delete, insert, resize and their like.

NumPy's `place`, `put`, `put_along_axis` and `fill_diagonal` write into their argument. Here they take
``inplace=False`` and return the changed array; without it they refuse, so that code written for the effect fails
aloud.
"""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from ..core.dtypes import INT64
from ..core.errors import (
    ArgumentValueError,
    ConcretizationError,
    ImmutableArrayError,
    IndexOutOfBoundsError,
    ShapeError,
)
from ..core.trace import Tracer, concrete, is_abstract
from ..primitives.at import At
from ..primitives.axes import one_axis, positive_shape
from ..primitives.composed import truth
from ..primitives.create import full, iota
from ..primitives.cumulative import cumsum_p
from ..primitives.elementwise import convert, ge_p, lt_p, select_p, sub_p
from ..primitives.index import gather_p
from ..primitives.linear import (
    add_p,
    broadcast_to,
    dtype_of,
    flat,
    move_batch_axis,
    reshape_p,
    shape_of,
)
from ..primitives.operands import finish, operand
from ..primitives.rounding import remainder_p
from ..primitives.shape import concatenate_p
from .dispatch import along, array_operand, implements, owned

__all__ = [
    "delete", "fill_diagonal", "insert", "place", "put", "put_along_axis", "putmask", "resize", "trim_zeros",
]  # fmt: skip


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ImmutableArrayError(
            f"{name}: arrays of functrans do not change in place. Write x = functrans.numpy.{name}(x, ..., "
            "inplace=False)"
        )


def _numbers(x: Any, name: str, what: str) -> Any:
    """`x` with its numbers; an error where they are not known while tracing."""
    if is_abstract(x):
        raise ConcretizationError(
            f"{name}: the shape of the result depends on {what}, whose numbers are not known while tracing. Compute it "
            "outside of the function, or mark the argument static"
        )
    return concrete(x)


# --- writing ------------------------------------------------------------------------------------------------


def _cycled(values: Any, places: Any) -> Any:
    """A flat array read cyclically at places that are not negative."""
    n = shape_of(values)[0]
    return gather_p.bind(values, remainder_p.bind(places, np.int64(n)), axes=(0,), mode="clip")


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Any:
    """The array with the elements under a mask replaced, one after another, by values that are repeated as needed.

    Parameters
    ----------
    arr : array_like
    mask : array_like of bool
        Of as many elements as `arr`. It may be traced.
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
        If there are no values for the elements.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.place([1, 2, 3, 4], [True, False, True, True], [7, 8], inplace=False)
    Array([7, 2, 8, 7])
    """
    _refuse_inplace("place", inplace)
    x, chosen = array_operand(arr, "place"), truth(array_operand(mask, "place", 1))
    values = convert(flat(array_operand(vals, "place", 2)), dtype_of(x))
    if prod(shape_of(chosen)) != prod(shape_of(x)):
        raise ArgumentValueError(
            f"place: mask and data must be the same size, got shapes {shape_of(chosen)} and {shape_of(x)}"
        )
    if not shape_of(values)[0]:
        if is_abstract(chosen) or np.any(_numbers(chosen, "place", "the mask")):
            raise ArgumentValueError("place: cannot insert from an empty array")
        return owned(x, arr)
    chosen = flat(chosen)
    counted = cumsum_p.bind(convert(chosen, INT64), axis=0, reverse=False)
    values = _cycled(values, select_p.bind(chosen, sub_p.bind(counted, np.int64(1)), np.int64(0)))
    return finish(reshape_p.bind(select_p.bind(chosen, values, flat(x)), shape=shape_of(x)))


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise", *, inplace: bool = True) -> Any:
    """The array with elements at places of its flat form replaced by values, which are repeated as needed.

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
    i = flat(array_operand(ind, "put", 1))
    values = convert(flat(array_operand(v, "put", 2)), dtype_of(x))
    if not shape_of(i)[0] or not shape_of(values)[0]:
        return owned(x, a)
    places = iota(shape_of(i), 0)
    changed = At(flat(x))[finish(i)].set(finish(_cycled(values, places)), mode=mode)
    return finish(reshape_p.bind(operand(changed, "put"), shape=shape_of(x)))


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any, *, inplace: bool = True) -> Any:
    """The array with the elements under a mask replaced by the values at the same places, repeated as needed.

    Parameters
    ----------
    a : array_like
    mask : array_like of bool
        Of the shape of `a`. It may be traced.
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
    x, chosen = array_operand(a, "putmask"), truth(array_operand(mask, "putmask", 1))
    new = convert(flat(array_operand(values, "putmask", 2)), dtype_of(x))
    if shape_of(chosen) != shape_of(x):
        raise ArgumentValueError(
            f"putmask: mask and data must be the same size, got shapes {shape_of(chosen)} and {shape_of(x)}"
        )
    if not shape_of(new)[0]:
        return owned(x, a)
    filled = reshape_p.bind(_cycled(new, iota((prod(shape_of(x)),), 0)), shape=shape_of(x))
    return finish(select_p.bind(chosen, filled, x))


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None, *, inplace: bool = True) -> Any:
    """The array with values put where `take_along_axis` would take.

    Parameters
    ----------
    arr : array_like
    indices : array_like of int
        As many axes as `arr`; all but `axis` broadcast against it.
    values : array_like
        Broadcast to `indices`.
    axis : int or None
        None: the array is flat.
    inplace : bool
        Must be False.

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
        changed = put_along_axis(flat(x), i, values, 0, inplace=False)
        return finish(reshape_p.bind(operand(changed, "put_along_axis"), shape=shape_of(x)))
    shape, others = shape_of(x), shape_of(i)
    d = one_axis(axis, len(shape), "put_along_axis")
    if len(shape) != len(others):
        raise ShapeError(f"put_along_axis: shapes {shape} and {others} must have the same number of axes")
    places = [
        finish(i) if e == d else finish(iota(tuple([n if e == f else 1 for f in range(len(shape))]), e))
        for e, n in enumerate(shape)
    ]
    return At(finish(x))[tuple(places)].set(values)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """The array with its main diagonal replaced.

    Parameters
    ----------
    a : array_like
        At least two axes; more than two must be of one extent.
    val : array_like
        Its elements one after another, repeated as needed.
    wrap : bool
        Begin the diagonal anew below the last column of a tall matrix, one row left free.
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
        raise ShapeError(f"fill_diagonal: all dimensions of input must be of equal length, got {shape}")
    else:
        step = 1 + sum(shape[0] ** k for k in range(1, len(shape)))
    places = np.arange(prod(shape))[:end:step]
    return put(x, places, val, inplace=False) if places.size else owned(x, a)


# --- other numbers of elements ------------------------------------------------------------------------------


def _positions(obj: Any, name: str) -> Any:
    """What `numpy.delete` and `numpy.insert` take to name elements, with known numbers."""
    if isinstance(obj, slice):
        return obj
    i = operand(obj, name, 1)
    i = _numbers(i, name, "the positions")
    if isinstance(obj, int):
        return i
    i = np.asarray(i)
    return i if i.size else i.astype(np.intp)  # an empty list makes floats


def _numbered(function: Any, name: str, *args: Any) -> np.ndarray:
    """What NumPy's function does to the positions along an axis."""
    try:
        return function(*args)
    except IndexError as error:
        raise IndexOutOfBoundsError(f"{name}: {error}") from None
    except (ValueError, TypeError) as error:
        raise ArgumentValueError(f"{name}: {error}") from None


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """The array without some of its subarrays along an axis.

    Parameters
    ----------
    arr : array_like
    obj : int, slice, array_like of int or bool
        Which to leave out. A single integer may be traced; the numbers of others must be known.
    axis : int, optional
        By default elements of the flat array are left out.

    Raises
    ------
    IndexOutOfBoundsError
        If there is no such subarray.
    ConcretizationError
        If several positions are not known while tracing.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.delete([1, 2, 3, 4], [0, 2])
    Array([2, 4])
    """
    x, d = along(array_operand(arr, "delete"), axis, "delete")
    n = shape_of(x)[d]
    if isinstance(obj, Tracer) and not obj.shape and is_abstract(obj) and obj.dtype.kind in "iu" and n:
        i = convert(obj, INT64)
        # Read once for its check: an index out of bounds is an error in compiled code too.
        i = gather_p.bind(iota((n,), 0), i, axes=(0,), mode="raise")
        steps = iota((n - 1,), 0)
        places: Any = add_p.bind(steps, convert(ge_p.bind(steps, i), INT64))
    else:
        places = _numbered(np.delete, "delete", np.arange(n), _positions(obj, "delete"))
    out = gather_p.bind(x, places, axes=(d,), mode="promise_in_bounds")
    return owned(move_batch_axis(out, 0, d), arr)


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """The array with subarrays put in before others along an axis.

    Parameters
    ----------
    arr : array_like
    obj : int, slice, array_like of int or bool
        Before which. A single integer may be traced; the numbers of others must be known.
    values : array_like
        Cast to the dtype of `arr`.
    axis : int, optional
        By default elements are put into the flat array.

    Raises
    ------
    IndexOutOfBoundsError
        If there is no such position.
    ShapeError
        If the values do not fit.
    ConcretizationError
        If several positions are not known while tracing.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.insert([1, 2, 3], 1, 7), fnp.insert([[1, 2], [3, 4]], 1, [8, 9], axis=1)
    (Array([1, 7, 2, 3]), Array([[1, 8, 2],
           [3, 9, 4]]))
    """
    x, d = along(array_operand(arr, "insert"), axis, "insert")
    n = shape_of(x)[d]
    v = convert(array_operand(values, "insert", 2), dtype_of(x))
    ndim = len(shape_of(x))
    if len(shape_of(v)) < ndim:
        v = reshape_p.bind(v, shape=(1,) * (ndim - len(shape_of(v))) + shape_of(v))
    traced = isinstance(obj, Tracer) and not obj.shape and is_abstract(obj) and obj.dtype.kind in "iu"
    positions: Any = None if traced else _positions(obj, "insert")
    if not isinstance(positions, slice) and not np.ndim(positions):
        v = move_batch_axis(v, 0, d)  # NumPy: the first axis of the values then lies along `axis`
    if traced or (not isinstance(positions, slice) and np.size(positions) == 1):
        count = shape_of(v)[d]  # before a single position go any number of them
    else:
        count = _inserted(positions, n)
    shape = list(shape_of(x))
    shape[d] = count
    if len(shape_of(v)) != ndim or any(m not in (1, w) for m, w in zip(shape_of(v), shape)):
        raise ShapeError(
            f"insert: values of shape {np.shape(values)} do not fit into shape {tuple(shape)}, that of what is put in"
        )
    v = broadcast_to(v, tuple(shape))
    if traced:
        places = _shifted(obj, n, count)
    else:
        new = np.arange(n, n + count)
        places = _numbered(np.insert, "insert", np.arange(n), positions, new)
    out = gather_p.bind(concatenate_p.bind(x, v, dimension=d), places, axes=(d,), mode="promise_in_bounds")
    return owned(move_batch_axis(out, 0, d), arr)


def _inserted(positions: Any, n: int) -> int:
    """How many subarrays several positions name."""
    if isinstance(positions, slice):
        return len(range(*positions.indices(n)))
    return int(positions.sum()) if positions.dtype.kind == "b" else positions.size


def _shifted(obj: Any, n: int, count: int) -> Any:
    """Where each element comes from, when `count` at the end go before the traced position `obj`."""
    i = convert(obj, INT64)
    zero = np.int64(0)
    i = select_p.bind(lt_p.bind(i, zero), add_p.bind(i, np.int64(n)), i)
    i = select_p.bind(lt_p.bind(i, zero), np.int64(n + 1), i)
    i = gather_p.bind(iota((n + 1,), 0), i, axes=(0,), mode="raise")
    steps = iota((n + count,), 0)
    after = sub_p.bind(steps, np.int64(count))
    inner = add_p.bind(sub_p.bind(steps, i), np.int64(n))
    behind = select_p.bind(ge_p.bind(after, i), after, inner)
    return select_p.bind(lt_p.bind(steps, i), steps, behind)


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    """The elements one after another, repeated as needed, in a new shape.

    Parameters
    ----------
    a : array_like
    new_shape : int or tuple of int

    Returns
    -------
    Array
        Zeros, if `a` has no elements.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.resize([1, 2, 3], (2, 2))
    Array([[1, 2],
           [3, 1]])
    """
    shape = positive_shape(new_shape, "resize")
    x = flat(array_operand(a, "resize"))
    count = prod(shape)
    if not shape_of(x)[0] or not count:
        return finish(full(shape, 0, dtype_of(x)))
    return owned(reshape_p.bind(_cycled(x, iota((count,), 0)), shape=shape), a)


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """The array without the zeros at its ends.

    Parameters
    ----------
    filt : array_like
        Its numbers must be known: inside ``jit`` the shape of the result would be unknown.
    trim : {'fb', 'f', 'b'}
        In front, behind, or both.
    axis : int or tuple of int, optional
        By default all.

    Raises
    ------
    ConcretizationError
        If the numbers are not known while tracing.

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
