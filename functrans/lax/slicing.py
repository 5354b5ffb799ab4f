"""Static and dynamic slices; stack, split and tile arrays."""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import ArgumentValueError, DtypeError, ShapeError, Tracer, aval_of
from ..core.values import ArrayLike, DTypeLike, Index, Value
from ..frontend.checked import checked
from ..frontend.pytree import tree_map
from ..numpy.dispatch import array_operand, owned
from ..primitives import ops
from ..primitives.operands import operand as value_of
from ..primitives.ops import as_shape, dtype_of, finish, one_axis, shape_of, strong
from .arrays import full, ints, single, squeeze
from .elementwise import operands

__all__ = [
    "Precision", "RoundingMethod", "broadcast_to_rank", "dynamic_index_in_dim", "dynamic_slice",
    "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "empty", "index_in_dim", "optimization_barrier", "slice",
    "slice_in_dim", "split", "stack", "tile", "unstack",
]  # fmt: skip


@checked
def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Any:
    """``operand[start:limit:stride]`` along all axes, within bounds.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.slice(np.arange(10), (1,), (8,), (3,))
    Array([1, 4, 7])
    """
    x = single("slice", operand)
    params = {
        "start_indices": ints(start_indices, "slice"),
        "limit_indices": ints(limit_indices, "slice"),
        "strides": (1,) * len(shape_of(x)) if strides is None else ints(strides, "slice"),
    }
    ops.slice_p.abstract(aval_of(x), **params)
    return owned(ops.slice_p.bind(x, **params), operand)


@checked
def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Any:
    """``operand[start:limit:stride]`` along one axis; negative indices count from the end.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.slice_in_dim(np.arange(10), 1, -2, stride=3)
    Array([1, 4, 7])
    """
    shape = shape_of(single("slice_in_dim", operand))
    d = one_axis(axis, len(shape), "lax.slice_in_dim")
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    n = shape[d]
    start, limit = 0 if start_index is None else start_index, n if limit_index is None else limit_index
    starts[d], limits[d] = (i + n if i < 0 else i for i in (start, limit))
    if not 0 <= starts[d] <= limits[d] <= n:
        raise ArgumentValueError(
            f"lax.slice_in_dim: start_index and limit_index must be ascending and from {-n} to {n}, the extent of axis "
            f"{d}, got {start} and {limit}"
        )
    strides[d] = stride
    return slice(operand, starts, limits, strides)


@checked
def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """``operand[index]`` along one axis, which remains with extent 1 if `keepdims`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.index_in_dim(np.array([[1, 2], [3, 4]]), 1, axis=1, keepdims=False)
    Array([2, 4])
    """
    shape = shape_of(single("index_in_dim", operand))
    d = one_axis(axis, len(shape), "lax.index_in_dim")
    i = one_axis(index, shape[d], "lax.index_in_dim: index")
    out = slice_in_dim(operand, i, i + 1, 1, d)
    return out if keepdims else squeeze(out, (d,))


def _starts(
    x: Value, start_indices: ArrayLike, name: str, allow_negative_indices: bool | Sequence[bool]
) -> list[Any]:
    """One start per axis; negative ones count from the end where they are allowed, and count as 0 elsewhere."""
    shape = shape_of(x)
    if isinstance(start_indices, (Tracer, np.ndarray)):
        start_indices = [start_indices[i] for i in range(shape_of(start_indices)[0])]
    if len(start_indices) != len(shape):
        raise ArgumentValueError(
            f"lax.{name}: start_indices has {len(start_indices)} elements for an operand with {len(shape)} axes"
        )
    allowed = (
        [bool(allow_negative_indices)] * len(shape)
        if isinstance(allow_negative_indices, bool | int)
        else allow_negative_indices
    )
    resolved = []
    for k, (s, n, from_end) in enumerate(zip(start_indices, shape, allowed, strict=True)):
        s = value_of(s, f"lax.{name}: start {k}")
        if shape_of(s):
            raise ShapeError(f"lax.{name}: start {k} has shape {shape_of(s)}; a start is one integer")
        if dtype_of(s).kind not in "iu":
            raise DtypeError(f"lax.{name}: start {k} has dtype {dtype_of(s)}; a start is an integer")
        if isinstance(s, Tracer):
            if not from_end:
                s = ops.max_p.bind(s, s.dtype.type(0))
            elif s.dtype.kind == "i":
                extent = s.dtype.type(n) if n <= np.iinfo(s.dtype).max else None
                if extent is None:
                    s, extent = ops.convert(s, np.dtype(np.int64)), np.int64(n)
                s = ops.select_p.bind(ops.lt_p.bind(s, s.dtype.type(0)), ops.add_p.bind(s, extent), s)
            resolved.append(s)
        else:
            i = operator.index(s if not isinstance(s, np.ndarray) else s[()])
            resolved.append(i if i >= 0 else i + n if from_end else 0)
    return resolved


@checked
def dynamic_slice(
    operand: ArrayLike,
    start_indices: ArrayLike,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """Slice an array from starts that may be traced; they are clamped so that the slice is in bounds.

    Negative starts count from the end; without `allow_negative_indices` (for all axes or for each) they count as 0.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_slice(np.arange(5), (4,), (2,))
    Array([3, 4])
    """
    x = single("dynamic_slice", operand)
    starts = _starts(x, start_indices, "dynamic_slice", allow_negative_indices)
    sizes = ints(slice_sizes, "dynamic_slice")
    ops.dynamic_slice_p.abstract(aval_of(x), *map(aval_of, starts), slice_sizes=sizes)
    return owned(ops.dynamic_slice_p.bind(x, *starts, slice_sizes=sizes), operand)


@checked
def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """`dynamic_slice` along one axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_slice_in_dim(np.arange(10), 8, 4)  # begins at 6
    Array([6, 7, 8, 9])
    """
    shape = shape_of(single("dynamic_slice_in_dim", operand))
    d = one_axis(axis, len(shape), "lax.dynamic_slice_in_dim")
    starts: list[Any] = [0] * len(shape)
    sizes = list(shape)
    starts[d], sizes[d] = start_index, operator.index(slice_size)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


@checked
def dynamic_index_in_dim(
    operand: ArrayLike,
    index: Index,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """Take one element along an axis, at an index that may be traced; it is clamped into bounds.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_index_in_dim(np.array([[1, 2], [3, 4]]), 1, keepdims=False)
    Array([3, 4])
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    d = one_axis(axis, len(shape_of(out)), "lax.dynamic_index_in_dim")
    return out if keepdims else squeeze(out, (d,))


@checked
def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """Replace a slice of `operand`, from starts that may be traced; they are clamped into bounds.

    For `allow_negative_indices` see `dynamic_slice`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_update_slice(np.zeros(4), np.ones(2), (1,))
    Array([0., 1., 1., 0.])
    """
    x, new = operands_of_update("dynamic_update_slice", operand, update)
    starts = _starts(x, start_indices, "dynamic_update_slice", allow_negative_indices)
    ops.dynamic_update_slice_p.abstract(aval_of(x), aval_of(new), *map(aval_of, starts))
    return owned(ops.dynamic_update_slice_p.bind(x, new, *starts), operand)


def operands_of_update(name: str, operand: ArrayLike, update: ArrayLike) -> tuple[Any, Any]:
    """Check that operand and update have one dtype; their shapes may differ."""
    x = single(name, operand)
    new = value_of(update, name, 1)
    aval = aval_of(new)
    return x, strong(new, aval_of(x).dtype if aval.weak else aval.dtype)


@checked
def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """`dynamic_update_slice` along one axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_update_slice_in_dim(np.zeros(4), np.ones(2), 1, 0)
    Array([0., 1., 1., 0.])
    """
    ndim = len(shape_of(single("dynamic_update_slice_in_dim", operand)))
    starts: list[Any] = [0] * ndim
    starts[one_axis(axis, ndim, "lax.dynamic_update_slice_in_dim")] = start_index
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


@checked
def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: Index, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """Replace one element of `operand` along an axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_update_index_in_dim(np.zeros(3), 1.0, 2, 0)
    Array([0., 0., 1.])
    """
    x, new = operands_of_update("dynamic_update_index_in_dim", operand, update)
    ndim = len(shape_of(x))
    d = one_axis(axis, ndim, "lax.dynamic_update_index_in_dim")
    if len(shape_of(new)) != ndim:
        shape = shape_of(new)
        new = ops.reshape_p.bind(new, shape=(*shape[:d], 1, *shape[d:]))
    return dynamic_update_slice_in_dim(x, new, index, d, allow_negative_indices=allow_negative_indices)


class Precision(enum.Enum):
    """The precision of products; accepted for compatibility with JAX, without effect."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


class RoundingMethod(enum.IntEnum):
    """How `round` rounds numbers half-way between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


@checked
def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Split an array into pieces of these sizes along an axis.

    Raises
    ------
    ArgumentValueError
        If the sizes do not add up to the extent of the axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.split(np.arange(4), (1, 3))
    [Array([0]), Array([1, 2, 3])]
    """
    (x,) = operands("split", operand)
    shape = shape_of(x)
    d = one_axis(axis, len(shape), "lax.split")
    extents = as_shape(sizes, "lax.split: sizes")
    if min(extents, default=0) < 0 or sum(extents) != shape[d]:
        raise ArgumentValueError(
            f"lax.split: sizes {extents} do not add up to {shape[d]}, the extent of axis {d}"
        )
    stops = np.cumsum(extents).tolist()
    return [owned(ops.slice_along(x, d, stop - n, stop), operand) for n, stop in zip(extents, stops)]


@checked
def stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    """Stack arrays of one shape and dtype along a new axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.stack([np.arange(2), np.arange(2)], axis=1)
    Array([[0, 0],
           [1, 1]])
    """
    if not len(arrays):
        raise ArgumentValueError("lax.stack: expected at least one array")
    values = operands("stack", *arrays)
    shapes = {shape_of(v) for v in values}
    if len(shapes) > 1:
        raise ShapeError(f"lax.stack: arrays have different shapes ({', '.join(map(str, sorted(shapes)))})")
    (shape,) = shapes
    d = one_axis(axis, len(shape) + 1, "lax.stack")
    rows = [ops.reshape_p.bind(v, shape=(*shape[:d], 1, *shape[d:])) for v in values]
    return finish(ops.concatenate_p.bind(*rows, dimension=d))


@checked
def unstack(x: ArrayLike, axis: int = 0) -> tuple[Any, ...]:
    """Split an array along an axis, which the parts lack.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.unstack(np.arange(2))
    (Array(0), Array(1))
    """
    value = array_operand(x, "lax.unstack")
    d = one_axis(axis, len(shape_of(value)), "lax.unstack")
    return tuple([owned(ops.element_along(value, d, i), x) for i in range(shape_of(value)[d])])


@checked
def tile(operand: ArrayLike, reps: Sequence[int]) -> Any:
    """Repeat an array along each axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.tile(np.arange(2), (2,))
    Array([0, 1, 0, 1])
    """
    (x,) = operands("tile", operand)
    shape, counts = shape_of(x), as_shape(reps, "lax.tile: reps")
    if len(counts) != len(shape) or min(counts, default=0) < 0:
        raise ArgumentValueError(
            f"lax.tile: expected {len(shape)} repetitions for shape {shape}, got {counts}"
        )
    spread = tuple([n for pair in zip(counts, shape) for n in pair])
    originals = tuple(range(1, 2 * len(shape), 2))
    out = ops.broadcast_in_dim_p.bind(x, shape=spread, broadcast_dimensions=originals)
    return owned(ops.reshape_p.bind(out, shape=tuple([n * m for n, m in zip(counts, shape)])), operand)


@checked
def broadcast_to_rank(x: ArrayLike, rank: int) -> Any:
    """Prepend axes of extent 1 up to this rank.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.broadcast_to_rank(np.arange(2), 2)
    Array([[0, 1]])
    """
    value = array_operand(x, "lax.broadcast_to_rank")
    shape, count = shape_of(value), operator.index(rank)
    if count < len(shape):
        raise ArgumentValueError(f"lax.broadcast_to_rank: shape {shape} has more axes than {count}")
    return owned(ops.reshape_p.bind(value, shape=(1,) * (count - len(shape)) + shape), x)


@checked
def empty(shape: Sequence[int], dtype: DTypeLike) -> Any:
    """A new array with unspecified elements (in fact zeros).

    Examples
    --------
    >>> from functrans import lax
    >>> lax.empty((2,), float).shape
    (2,)
    """
    return full(shape, 0, dtype)


@checked
def optimization_barrier(operand: ArrayLike) -> Any:
    """Return a pytree of arrays unchanged; what uses it is not fused with what made it, and runs after it.

    A compiled function does equal computations on a value and on the same value after a barrier twice, in separate
    loops, so that one result can be freed and recomputed to save memory. The barrier itself costs nothing.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.optimization_barrier((1.0, 2.0))
    (Array(1.), Array(2.))
    """
    return tree_map(
        lambda x: owned(ops.barrier_p.bind(array_operand(x, "lax.optimization_barrier")), x), operand
    )
