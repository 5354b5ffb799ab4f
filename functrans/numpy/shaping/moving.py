"""Move and repeat elements: flip, rot90, roll, tile, repeat."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import INT64, ArgumentError, ArgumentValueError, ShapeError, Tracer, concrete
from ...core.values import ArrayLike, AxisLike, Value
from ...primitives import ops
from ...primitives.ops import axes_or_all, dtype_of, many_axes, one_axis, operand, positive_shape, shape_of
from ..dispatch import along, array_operand, implements, owned
from ..indexing.nonzero import need_size
from .reshaping import permuted

__all__ = ["flip", "fliplr", "flipud", "repeat", "roll", "rot90", "tile"]


@implements(np.flip)
def flip(m: ArrayLike, axis: AxisLike = None) -> Any:
    """Reverse the elements along all axes, or along some.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.flip([[1, 2], [3, 4]], axis=1)
    Array([[2, 1],
           [4, 3]])
    """
    x = array_operand(m, "flip")
    ndim = len(shape_of(x))
    axes = axes_or_all(axis, ndim, "flip")
    return owned(ops.rev_p.bind(x, dimensions=axes) if axes else x, m)


@implements(np.fliplr)
def fliplr(m: ArrayLike) -> Array:
    """Reverse the order of columns (axis 1).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.fliplr([[1, 2], [3, 4]])
    Array([[2, 1],
           [4, 3]])
    """
    return flip(m, _axis_of("fliplr", m, 1))


@implements(np.flipud)
def flipud(m: ArrayLike) -> Any:
    """Reverse the order of rows (axis 0).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.flipud([[1, 2], [3, 4]])
    Array([[3, 4],
           [1, 2]])
    """
    return flip(m, _axis_of("flipud", m, 0))


def _axis_of(name: str, m: Value, axis: int) -> int:
    shape = shape_of(operand(m, name))
    if len(shape) <= axis:
        raise ShapeError(f"{name}: expected at least {axis + 1} axes, got shape {shape}")
    return axis


@implements(np.rot90)
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """Rotate by 90 degrees `k` times in the plane of two axes, from the first towards the second.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.rot90([[1, 2], [3, 4]])
    Array([[2, 4],
           [1, 3]])
    """
    x = array_operand(m, "rot90")
    d, e = many_axes(axes, len(shape_of(x)), "rot90")
    order = list(range(len(shape_of(x))))
    order[d], order[e] = order[e], order[d]
    turns = operator.index(k) % 4
    if turns == 1:
        x = permuted(ops.rev_p.bind(x, dimensions=(e,)), tuple(order))
    elif turns == 2:
        x = ops.rev_p.bind(x, dimensions=(d, e))
    elif turns == 3:
        x = ops.rev_p.bind(permuted(x, tuple(order)), dimensions=(e,))
    return owned(x, m)


@implements(np.roll)
def roll(a: ArrayLike, shift: ArrayLike, axis: AxisLike = None) -> Any:
    """Shift elements by `shift` positions; those that leave at the end reenter at the beginning.

    Parameters
    ----------
    a : array_like
    shift : int or tuple of int
        May be a traced integer (not a tuple of them).
    axis : int or tuple of int, optional
        By default the array is rolled as if flattened.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.roll([1, 2, 3, 4], 1)
    Array([4, 1, 2, 3])
    """
    x = array_operand(a, "roll")
    shape = shape_of(x)
    if axis is None:
        total = shift if isinstance(shift, Tracer) else int(np.sum(shift))
        return owned(ops.reshape_p.bind(_rolled(ops.flat(x), total, 0), shape=shape), a)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,)
    if len(axes) != len(shifts) and 1 not in (len(axes), len(shifts)):
        raise ArgumentValueError(f"roll: shift {shift} and axis {axis} have different lengths")
    if not axes or not shifts:
        return owned(x, a)
    count = max(len(axes), len(shifts))
    for s, d in zip(shifts * (count // len(shifts)), axes * (count // len(axes))):
        x = _rolled(x, s, one_axis(d, len(shape), "roll"))
    return owned(x, a)


def _rolled(x: Value, shift: ArrayLike, axis: int) -> Value:
    shape = shape_of(x)
    n = shape[axis]
    if isinstance(shift, Tracer):
        if not n:
            return x
        places = ops.sub_p.bind(ops.iota((n,), 0), ops.convert(shift, np.dtype(np.int64)))
        return ops.move_axis(ops.gather_p.bind(x, places, axes=(axis,), mode="wrap"), 0, axis)
    cut = -operator.index(shift) % n if n else 0
    if not cut:
        return x
    head, tail = ops.slice_along(x, axis, 0, cut), ops.slice_along(x, axis, cut, n)
    return ops.concatenate_p.bind(tail, head, dimension=axis)


@implements(np.tile)
def tile(A: ArrayLike, reps: ArrayLike) -> Any:
    """Repeat an array along each axis.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.tile([1, 2], (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    x = array_operand(A, "tile")
    counts = positive_shape(reps, "tile")
    ndim = max(len(counts), len(shape_of(x)))
    shape = (1,) * (ndim - len(shape_of(x))) + shape_of(x)
    counts = (1,) * (ndim - len(counts)) + counts
    x = ops.reshape_p.bind(x, shape=shape)
    spaced = ops.broadcast_in_dim_p.bind(
        x,
        shape=tuple([m for pair in zip(counts, shape) for m in pair]),
        broadcast_dimensions=tuple(range(1, 2 * ndim, 2)),
    )
    return owned(ops.reshape_p.bind(spaced, shape=tuple([r * n for r, n in zip(counts, shape)])), A)


@implements(np.repeat, method="repeat")
def repeat(
    a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None
) -> Any:
    """Repeat each element along an axis, or of the flattened array.

    Parameters
    ----------
    a : array_like
    repeats : int or sequence of int
        One number, or one for each element along the axis.
    axis : int, optional
    total_repeat_length : int, optional
        Extent of the result along the axis, if `repeats` is unknown while tracing. Extra elements are dropped; missing
        ones are filled with the last element.

    Raises
    ------
    ConcretizationTypeError
        If the shape of the result depends on values that are unknown while tracing.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> fnp.repeat([1, 2], [1, 3])
    Array([1, 2, 2, 2])
    >>> ft.jit(lambda n: fnp.repeat(np.arange(2), n, total_repeat_length=4))(np.array([3, 1]))
    Array([0, 0, 0, 1])
    """
    x = array_operand(a, "repeat")
    x, d = along(x if shape_of(x) else ops.flat(x), axis, "repeat")
    given = array_operand(repeats, "repeat", 1)
    if dtype_of(given).kind not in "iub":
        raise ArgumentError(f"repeat: repeats must be integers, got {repeats!r}")
    counts = concrete(given)
    if counts is not None and np.size(counts) and np.min(counts) < 0:
        raise ArgumentValueError(f"repeat: repeats must not be negative, got {repeats!r}")
    if total_repeat_length is not None:
        total = operator.index(total_repeat_length)
        out = _repeated(x, ops.convert(given, INT64), d, total)
    elif counts is None:
        need_size("repeat: repeats", given, "total_repeat_length=")
    elif np.size(counts) == 1:
        out = _each_repeated(x, int(np.reshape(counts, ())), d)
    else:
        out = _picked(x, np.repeat(np.arange(shape_of(x)[d]), _one_each(counts, shape_of(x), d)), d)
    return owned(out, a)


def _one_each(counts: Any, shape: tuple[int, ...], d: int) -> Value:
    """One count for each element along an axis."""
    size = prod(shape_of(counts))
    if len(shape_of(counts)) > 1 or size not in (1, shape[d]):
        raise ShapeError(f"repeat: {size} repeats do not match axis {d} of extent {shape[d]}")
    return ops.broadcast_to(counts, (shape[d],))


def _each_repeated(x: Value, count: int, d: int) -> Value:
    shape = shape_of(x)
    wide = (*shape[: d + 1], count, *shape[d + 1 :])
    originals = tuple([i for i in range(len(wide)) if i != d + 1])
    spaced = ops.broadcast_in_dim_p.bind(x, shape=wide, broadcast_dimensions=originals)
    return ops.reshape_p.bind(spaced, shape=(*shape[:d], shape[d] * count, *shape[d + 1 :]))


def _repeated(x: ArrayLike, counts: Any, d: int, total: int) -> Value:
    """Repeat elements up to `total`: position `i` gets the first whose repeats end after it."""
    shape = shape_of(x)
    if total and not shape[d]:
        raise ArgumentValueError(
            f"repeat: axis {d} of shape {shape} has no elements to fill {total} positions with"
        )
    ends = ops.cumsum_p.bind(_one_each(counts, shape, d), axis=0, reverse=False)
    places = ops.searchsorted_p.bind(ends, ops.iota((total,), 0), side="right")
    return _picked(x, ops.min_p.bind(places, ops.broadcast_to(np.int64(shape[d] - 1), (total,))), d)


def _picked(x: ArrayLike, places: ArrayLike, d: int) -> Value:
    return ops.move_axis(ops.gather_p.bind(x, places, axes=(d,), mode="promise_in_bounds"), 0, d)
