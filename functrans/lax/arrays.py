"""Reshape, broadcast, join and pad arrays, and create new ones."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from math import prod
from typing import Any

from ..core import ArgumentError, ArgumentValueError, ShapeError, aval_of, canonical
from ..core.values import ArrayLike, DTypeLike, ShapeLike, Value
from ..frontend.checked import checked
from ..frontend.structs import described
from ..numpy.dispatch import owned
from ..primitives import ops
from ..primitives.operands import operand as value_of
from ..primitives.ops import as_shape, filled_shape, finish, many_axes, positive_shape, shape_of
from .elementwise import operands

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_shapes", "broadcasted_iota", "collapse", "concatenate",
    "expand_dims", "full", "full_like", "iota", "pad", "reshape", "rev", "squeeze", "transpose",
    "zeros_like_array",
]  # fmt: skip


def single(name: str, x: ArrayLike) -> Value:
    """Convert one operand of the function `name` to a value."""
    return operands(name, x)[0]


def ints(values: ArrayLike, name: str) -> tuple[int, ...]:
    """Integers known while tracing."""
    return as_shape(values, f"lax.{name}")


# --- shapes -------------------------------------------------------------------------------------------------


@checked
def reshape(operand: ArrayLike, new_sizes: ShapeLike, dimensions: Sequence[int] | None = None) -> Any:
    """Reshape an array; with `dimensions`, first transpose its axes into that order.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.reshape(np.arange(4), (2, 2))
    Array([[0, 1],
           [2, 3]])
    """
    x = single("reshape", operand)
    if dimensions is not None:
        x = ops.transpose_p.bind(x, permutation=ints(dimensions, "reshape"))
    shape = filled_shape(ints(new_sizes, "reshape"), prod(shape_of(x)), "lax.reshape", shape_of(x))
    return owned(ops.reshape_p.bind(x, shape=shape), operand)


@checked
def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Any:
    """Permute the axes of an array.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.transpose(np.array([[1, 2], [3, 4]]), (1, 0))
    Array([[1, 3],
           [2, 4]])
    """
    x = single("transpose", operand)
    order = ints(permutation, "transpose")
    ops.transpose_p.abstract(aval_of(x), permutation=order)
    return owned(ops.transpose_p.bind(x, permutation=order), operand)


@checked
def broadcast(operand: ArrayLike, sizes: Sequence[int]) -> Any:
    """Repeat an array along new leading axes.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.broadcast(np.arange(2), (2,))
    Array([[0, 1],
           [0, 1]])
    """
    x = single("broadcast", operand)
    front = positive_shape(sizes, "lax.broadcast")
    axes = tuple(range(len(front), len(front) + len(shape_of(x))))
    return owned(
        ops.broadcast_in_dim_p.bind(x, shape=front + shape_of(x), broadcast_dimensions=axes), operand
    )


@checked
def broadcast_in_dim(operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Any:
    """Broadcast an array to `shape`; its axis `i` becomes axis ``broadcast_dimensions[i]``.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.broadcast_in_dim(np.array([1, 2]), (2, 3), (0,))  # axis 0 stays, axis 1 is new
    Array([[1, 1, 1],
           [2, 2, 2]])
    """
    x = single("broadcast_in_dim", operand)
    params = {
        "shape": positive_shape(shape, "lax.broadcast_in_dim"),
        "broadcast_dimensions": ints(broadcast_dimensions, "broadcast_in_dim"),
    }
    ops.broadcast_in_dim_p.abstract(aval_of(x), **params)
    return owned(ops.broadcast_in_dim_p.bind(x, **params), operand)


@checked
def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return tuple(ops.broadcast_shapes("lax.broadcast_shapes", *[ints(s, "broadcast_shapes") for s in shapes]))


@checked
def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Any:
    """Remove axes of extent 1.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.squeeze(np.ones((1, 3)), (0,)).shape
    (3,)
    """
    x = single("squeeze", array)
    shape = shape_of(x)
    axes = many_axes(dimensions, len(shape), "lax.squeeze")
    if any(shape[d] != 1 for d in axes):
        raise ShapeError(f"lax.squeeze: axes {axes} of shape {shape} must all have extent 1")
    return owned(ops.reshape_p.bind(x, shape=tuple([n for d, n in enumerate(shape) if d not in axes])), array)


@checked
def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Any:
    """Insert axes of extent 1 at these positions of the result.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.expand_dims(np.ones(3), (0, 2)).shape
    (1, 3, 1)
    """
    x = single("expand_dims", array)
    axes = many_axes(dimensions, len(shape_of(x)) + len(dimensions), "lax.expand_dims")
    rest = iter(shape_of(x))
    shape = tuple([1 if d in axes else next(rest) for d in range(len(shape_of(x)) + len(axes))])
    return owned(ops.reshape_p.bind(x, shape=shape), array)


@checked
def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """Merge the axes from `start_dimension` up to but not including `stop_dimension` into one.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.collapse(np.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    x = single("collapse", operand)
    shape = shape_of(x)
    first, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(len(shape))
    if first > stop:
        raise ArgumentValueError(
            f"lax.collapse: start_dimension {start_dimension} comes after stop_dimension {stop_dimension} in "
            f"shape {shape}"
        )
    return owned(
        ops.reshape_p.bind(x, shape=(*shape[:first], prod(shape[first:stop]), *shape[stop:])), operand
    )


@checked
def concatenate(operands: ArrayLike, dimension: int) -> Any:
    """Join arrays of one dtype along an existing axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.concatenate([np.array([1, 2]), np.array([3])], 0)
    Array([1, 2, 3])
    """
    values = [single("concatenate", x) for x in operands]
    ops.concatenate_p.abstract(*[aval_of(v) for v in values], dimension=dimension)
    return finish(ops.concatenate_p.bind(*values, dimension=dimension))


@checked
def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """Pad or crop an array: for each axis ``(low, high, interior)`` elements of `padding_value` before, after and
    between elements; negative numbers crop.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.pad(np.array([1, 2]), 0, [(1, 0, 2)])  # one before, none after, two between
    Array([0, 1, 0, 0, 2])
    """
    x, value = operands("pad", operand, padding_value)
    config = tuple([ints(c, "pad") for c in padding_config])
    ops.pad_p.abstract(aval_of(x), aval_of(value), padding_config=config)
    return owned(ops.pad_p.bind(x, value, padding_config=config), operand)


@checked
def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Any:
    """Reverse the elements along some axes.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.rev(np.arange(3), (0,))
    Array([2, 1, 0])
    """
    x = single("rev", operand)
    axes = many_axes(dimensions, len(shape_of(x)), "lax.rev")
    return owned(ops.rev_p.bind(x, dimensions=axes) if axes else x, operand)


# --- new arrays ---------------------------------------------------------------------------------------------


@checked
def iota(dtype: DTypeLike, size: int) -> Any:
    """``0, 1, ..., size - 1``.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.iota(np.float32, 3)
    Array([0., 1., 2.], dtype=float32)
    """
    return broadcasted_iota(dtype, (size,), 0)


@checked
def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int) -> Any:
    """An array whose elements are their index along one axis.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.broadcasted_iota(int, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]])
    """
    if dtype is None:
        raise ArgumentError("lax.iota: dtype must be given, got None")
    to, extents = canonical(dtype, "lax.iota: dtype"), positive_shape(shape, "lax.iota")
    ops.iota_p.abstract(dtype=to, shape=extents, dimension=dimension)
    return finish(ops.iota(extents, dimension, to))


@checked
def full(shape: int | Sequence[int], fill_value: ArrayLike, dtype: DTypeLike = None) -> Any:
    """An array filled with one number.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.full((2,), 3.5)
    Array([3.5, 3.5])
    """
    value = single("full", fill_value)
    if shape_of(value):
        raise ArgumentError(f"lax.full: fill_value must be a number, got shape {shape_of(value)}")
    to = value.dtype if dtype is None else canonical(dtype, "lax.full: dtype")
    return finish(ops.full(positive_shape(shape, "lax.full"), value, to))


@checked
def full_like(x: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike = None, shape: ShapeLike = None) -> Any:
    """An array filled with one number, with the shape and dtype of `x`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.full_like(np.zeros(2), 1)
    Array([1., 1.])
    """
    aval = described(x)  # only shape and dtype matter
    aval = aval_of(value_of(x, "full_like")) if aval is None else aval
    return full(aval.shape if shape is None else shape, fill_value, aval.dtype if dtype is None else dtype)


@checked
def zeros_like_array(x: ArrayLike) -> Any:
    """Zeros with the shape and dtype of `x`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.zeros_like_array(np.array([1, 2]))
    Array([0, 0])
    """
    return full_like(x, 0)
