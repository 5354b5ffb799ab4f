"""Shapes, slices, reductions, products: what is not elementwise."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..core.aval import aval_of
from ..core.dtypes import canonical
from ..core.errors import ArgumentError, ArgumentValueError, ShapeError
from ..core.primitive import Primitive
from ..core.trace import Tracer
from ..numpy.dispatch import owned
from ..primitives import create, reduce
from ..primitives.axes import as_shape, filled_shape, many_axes, one_axis, positive_shape
from ..primitives.dot import dot_general_p
from ..primitives.dynamic import dynamic_slice_p, dynamic_update_slice_p
from ..primitives.elementwise import convert, lt_p, select_p
from ..primitives.linear import (
    add_p,
    broadcast_in_dim_p,
    reduce_sum_p,
    reshape_p,
    shape_of,
    transpose_p,
)
from ..primitives.linear import (
    broadcast_shapes as common_shape,
)
from ..primitives.operands import finish, strong
from ..primitives.operands import operand as value_of
from ..primitives.shape import concatenate_p, pad_p, rev_p, slice_p
from .elementwise import operands

__all__ = [
    "argmax", "argmin", "batch_matmul", "broadcast", "broadcast_in_dim", "broadcast_shapes",
    "broadcasted_iota", "collapse", "concatenate", "dot", "dot_general", "dynamic_index_in_dim",
    "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "expand_dims", "full", "full_like", "index_in_dim", "iota", "pad",
    "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum", "reshape", "rev",
    "slice", "slice_in_dim", "squeeze", "transpose", "zeros_like_array",
]  # fmt: skip


def _one(name: str, x: Any) -> Any:
    return operands(name, x)[0]


def _ints(values: Any, name: str) -> tuple[int, ...]:
    return as_shape(values, f"lax.{name}")


# --- shapes -------------------------------------------------------------------------------------------------


def reshape(operand: Any, new_sizes: Any, dimensions: Sequence[int] | None = None) -> Any:
    """The same elements in another shape; with `dimensions` the axes are first brought into that order.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.reshape(np.arange(4), (2, 2))
    Array([[0, 1],
           [2, 3]])
    """
    x = _one("reshape", operand)
    if dimensions is not None:
        x = transpose_p.bind(x, permutation=_ints(dimensions, "reshape"))
    shape = filled_shape(_ints(new_sizes, "reshape"), prod(shape_of(x)), "lax.reshape", shape_of(x))
    return owned(reshape_p.bind(x, shape=shape), operand)


def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    """Axes in another order.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.transpose(np.array([[1, 2], [3, 4]]), (1, 0))
    Array([[1, 3],
           [2, 4]])
    """
    x = _one("transpose", operand)
    order = _ints(permutation, "transpose")
    transpose_p.abstract(aval_of(x), permutation=order)
    return owned(transpose_p.bind(x, permutation=order), operand)


def broadcast(operand: Any, sizes: Sequence[int]) -> Any:
    """New axes in front, along which the array is repeated.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.broadcast(np.arange(2), (2,))
    Array([[0, 1],
           [0, 1]])
    """
    x = _one("broadcast", operand)
    front = positive_shape(sizes, "lax.broadcast")
    axes = tuple(range(len(front), len(front) + len(shape_of(x))))
    return owned(broadcast_in_dim_p.bind(x, shape=front + shape_of(x), broadcast_dimensions=axes), operand)


def broadcast_in_dim(operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Any:
    """The array repeated to `shape`; its axis `i` becomes axis ``broadcast_dimensions[i]``.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.broadcast_in_dim(np.array([1, 2]), (2, 3), (0,))  # axis 0 stays, axis 1 is new
    Array([[1, 1, 1],
           [2, 2, 2]])
    """
    x = _one("broadcast_in_dim", operand)
    params = {
        "shape": positive_shape(shape, "lax.broadcast_in_dim"),
        "broadcast_dimensions": _ints(broadcast_dimensions, "broadcast_in_dim"),
    }
    broadcast_in_dim_p.abstract(aval_of(x), **params)
    return owned(broadcast_in_dim_p.bind(x, **params), operand)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return tuple(common_shape("lax.broadcast_shapes", *[_ints(s, "broadcast_shapes") for s in shapes]))


def squeeze(array: Any, dimensions: Sequence[int]) -> Any:
    """Without the axes given, which have extent 1.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.squeeze(np.ones((1, 3)), (0,)).shape
    (3,)
    """
    x = _one("squeeze", array)
    shape = shape_of(x)
    axes = many_axes(dimensions, len(shape), "lax.squeeze")
    if any(shape[d] != 1 for d in axes):
        raise ShapeError(f"lax.squeeze: axes {axes} of shape {shape} have not all extent 1")
    return owned(reshape_p.bind(x, shape=tuple([n for d, n in enumerate(shape) if d not in axes])), array)


def expand_dims(array: Any, dimensions: Sequence[int]) -> Any:
    """With new axes of extent 1, at these places of the result.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.expand_dims(np.ones(3), (0, 2)).shape
    (1, 3, 1)
    """
    x = _one("expand_dims", array)
    axes = many_axes(dimensions, len(shape_of(x)) + len(dimensions), "lax.expand_dims")
    rest = iter(shape_of(x))
    shape = tuple([1 if d in axes else next(rest) for d in range(len(shape_of(x)) + len(axes))])
    return owned(reshape_p.bind(x, shape=shape), array)


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """The axes from `start_dimension` to before `stop_dimension` as one.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.collapse(np.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    x = _one("collapse", operand)
    shape = shape_of(x)
    first, stop, _ = _bounds(start_dimension, stop_dimension, len(shape))
    return owned(reshape_p.bind(x, shape=(*shape[:first], prod(shape[first:stop]), *shape[stop:])), operand)


def _bounds(start: int | None, stop: int | None, n: int) -> tuple[int, int, int]:
    """Python's reading of ``start:stop``."""
    return builtins.slice(start, stop).indices(n)


def concatenate(operands: Any, dimension: int) -> Any:
    """Arrays of one dtype joined along an axis they have.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.concatenate([np.array([1, 2]), np.array([3])], 0)
    Array([1, 2, 3])
    """
    values = [_one("concatenate", x) for x in operands]
    concatenate_p.abstract(*[aval_of(v) for v in values], dimension=dimension)
    return finish(concatenate_p.bind(*values, dimension=dimension))


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """For each axis ``(low, high, interior)`` elements of `padding_value` before, behind and between;
    negative ones crop.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.pad(np.array([1, 2]), 0, [(1, 0, 2)])  # one before, none behind, two between
    Array([0, 1, 0, 0, 2])
    """
    x, value = operands("pad", operand, padding_value)
    config = tuple([_ints(c, "pad") for c in padding_config])
    pad_p.abstract(aval_of(x), aval_of(value), padding_config=config)
    return owned(pad_p.bind(x, value, padding_config=config), operand)


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """Elements in reverse order along some axes.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.rev(np.arange(3), (0,))
    Array([2, 1, 0])
    """
    x = _one("rev", operand)
    axes = many_axes(dimensions, len(shape_of(x)), "lax.rev")
    return owned(rev_p.bind(x, dimensions=axes) if axes else x, operand)


# --- slices -------------------------------------------------------------------------------------------------


def slice(
    operand: Any,
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
    x = _one("slice", operand)
    params = {
        "start_indices": _ints(start_indices, "slice"),
        "limit_indices": _ints(limit_indices, "slice"),
        "strides": (1,) * len(shape_of(x)) if strides is None else _ints(strides, "slice"),
    }
    slice_p.abstract(aval_of(x), **params)
    return owned(slice_p.bind(x, **params), operand)


def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Any:
    """``operand[start:limit:stride]`` along one axis; negative indices count from the end.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.slice_in_dim(np.arange(10), 1, -2, stride=3)
    Array([1, 4, 7])
    """
    shape = shape_of(_one("slice_in_dim", operand))
    d = one_axis(axis, len(shape), "lax.slice_in_dim")
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[d], stop, _ = _bounds(start_index, limit_index, shape[d])
    limits[d], strides[d] = max(stop, starts[d]), operator.index(stride)
    return slice(operand, starts, limits, strides)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """``operand[index]`` along one axis, which stays with extent 1 if `keepdims`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.index_in_dim(np.array([[1, 2], [3, 4]]), 1, axis=1, keepdims=False)
    Array([2, 4])
    """
    shape = shape_of(_one("index_in_dim", operand))
    d = one_axis(axis, len(shape), "lax.index_in_dim")
    i = one_axis(index, shape[d], "lax.index_in_dim: index")
    out = slice_in_dim(operand, i, i + 1, 1, d)
    return out if keepdims else squeeze(out, (d,))


def _starts(x: Any, start_indices: Any, name: str) -> list[Any]:
    """One start for each axis; negative ones count from the end."""
    shape = shape_of(x)
    if isinstance(start_indices, (Tracer, np.ndarray)):
        start_indices = [start_indices[i] for i in range(shape_of(start_indices)[0])]
    if len(start_indices) != len(shape):
        raise ArgumentValueError(f"lax.{name}: want {len(shape)} starts, got {len(start_indices)}")
    found = []
    for s, n in zip(start_indices, shape):
        s = value_of(s, name)
        if isinstance(s, Tracer):
            if s.dtype.kind == "i":
                extent = s.dtype.type(n) if n <= np.iinfo(s.dtype).max else None
                if extent is None:
                    s, extent = convert(s, np.dtype(np.int64)), np.int64(n)
                s = select_p.bind(lt_p.bind(s, s.dtype.type(0)), add_p.bind(s, extent), s)
            found.append(s)
        else:
            i = operator.index(s if not isinstance(s, np.ndarray) else s[()])
            found.append(i + n if i < 0 else i)
    return found


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Any:
    """A slice that begins where traced numbers say; the start is clamped so that it fits.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_slice(np.arange(5), (4,), (2,))
    Array([3, 4])
    """
    x = _one("dynamic_slice", operand)
    starts = _starts(x, start_indices, "dynamic_slice")
    sizes = _ints(slice_sizes, "dynamic_slice")
    dynamic_slice_p.abstract(aval_of(x), *map(aval_of, starts), slice_sizes=sizes)
    return owned(dynamic_slice_p.bind(x, *starts, slice_sizes=sizes), operand)


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> Any:
    """`dynamic_slice` along one axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_slice_in_dim(np.arange(10), 8, 4)  # begins at 6
    Array([6, 7, 8, 9])
    """
    shape = shape_of(_one("dynamic_slice_in_dim", operand))
    d = one_axis(axis, len(shape), "lax.dynamic_slice_in_dim")
    starts: list[Any] = [0] * len(shape)
    sizes = list(shape)
    starts[d], sizes[d] = start_index, operator.index(slice_size)
    return dynamic_slice(operand, starts, sizes)


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    """One element along an axis, at a traced place, which is clamped.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_index_in_dim(np.array([[1, 2], [3, 4]]), 1, keepdims=False)
    Array([3, 4])
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis)
    d = one_axis(axis, len(shape_of(out)), "lax.dynamic_index_in_dim")
    return out if keepdims else squeeze(out, (d,))


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Any:
    """`operand` with a slice replaced, which begins where traced numbers say; the start is clamped.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_update_slice(np.zeros(4), np.ones(2), (1,))
    Array([0., 1., 1., 0.])
    """
    x, new = operands_of_update("dynamic_update_slice", operand, update)
    starts = _starts(x, start_indices, "dynamic_update_slice")
    dynamic_update_slice_p.abstract(aval_of(x), aval_of(new), *map(aval_of, starts))
    return owned(dynamic_update_slice_p.bind(x, new, *starts), operand)


def operands_of_update(name: str, operand: Any, update: Any) -> tuple[Any, Any]:
    """Operand and update, which must agree in dtype but not in shape."""
    x = _one(name, operand)
    new = value_of(update, name, 1)
    aval = aval_of(new)
    return x, strong(new, aval_of(x).dtype if aval.weak else aval.dtype)


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Any:
    """`dynamic_update_slice` along one axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_update_slice_in_dim(np.zeros(4), np.ones(2), 1, 0)
    Array([0., 1., 1., 0.])
    """
    ndim = len(shape_of(_one("dynamic_update_slice_in_dim", operand)))
    starts: list[Any] = [0] * ndim
    starts[one_axis(axis, ndim, "lax.dynamic_update_slice_in_dim")] = start_index
    return dynamic_update_slice(operand, update, starts)


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Any:
    """`operand` with one element along an axis replaced.

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
        new = reshape_p.bind(new, shape=(*shape[:d], 1, *shape[d:]))
    return dynamic_update_slice_in_dim(x, new, index, d)


# --- new arrays ---------------------------------------------------------------------------------------------


def iota(dtype: Any, size: int) -> Any:
    """``0, 1, ..., size - 1``.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.iota(np.float32, 3)
    Array([0., 1., 2.], dtype=float32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Any:
    """The index along one axis, at every place of an array.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.broadcasted_iota(int, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]])
    """
    to, extents = canonical(dtype, "lax.iota: dtype"), positive_shape(shape, "lax.iota")
    create.iota_p.abstract(dtype=to, shape=extents, dimension=dimension)
    return finish(create.iota(extents, dimension, to))


def full(shape: Sequence[int], fill_value: Any, dtype: Any = None) -> Any:
    """One number everywhere.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.full((2,), 3.5)
    Array([3.5, 3.5])
    """
    value = _one("full", fill_value)
    if shape_of(value):
        raise ArgumentError(f"lax.full: fill_value must be a number, got shape {shape_of(value)}")
    to = value.dtype if dtype is None else canonical(dtype, "lax.full: dtype")
    return finish(create.full(positive_shape(shape, "lax.full"), value, to))


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """One number everywhere, in the shape and dtype of `x`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.full_like(np.zeros(2), 1)
    Array([1., 1.])
    """
    aval = aval_of(value_of(x, "full_like"))
    return full(aval.shape if shape is None else shape, fill_value, aval.dtype if dtype is None else dtype)


def zeros_like_array(x: Any) -> Any:
    """Zeros of the shape and dtype of `x`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.zeros_like_array(np.array([1, 2]))
    Array([0, 0])
    """
    return full_like(x, 0)


# --- reductions ---------------------------------------------------------------------------------------------


def _reduction(name: str, prim: Primitive, doc: str, example: str) -> Callable[..., Any]:
    def function(operand: Any, axes: Sequence[int]) -> Any:
        x = _one(name, operand)
        d = many_axes(axes, len(shape_of(x)), f"lax.{name}")
        prim.abstract(aval_of(x), axes=d)
        return owned(prim.bind(x, axes=d), operand)

    function.__name__ = function.__qualname__ = name
    given = "[[True, False], [True, True]]" if name in ("reduce_and", "reduce_or") else "[[1, 2], [3, 4]]"
    function.__doc__ = f"""{doc} along some axes; the dtype stays.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.{name}(np.array({given}), (1,))
    {example}
    """
    return function


reduce_sum = _reduction("reduce_sum", reduce_sum_p, "The sum", "Array([3, 7])")
reduce_prod = _reduction("reduce_prod", reduce.reduce_prod_p, "The product", "Array([ 2, 12])")
reduce_max = _reduction("reduce_max", reduce.reduce_max_p, "The largest element", "Array([2, 4])")
reduce_min = _reduction("reduce_min", reduce.reduce_min_p, "The smallest element", "Array([1, 3])")
reduce_and = _reduction("reduce_and", reduce.reduce_and_p, "Whether all are true", "Array([False,  True])")
reduce_or = _reduction("reduce_or", reduce.reduce_or_p, "Whether any is true", "Array([ True,  True])")


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Where the largest element stands along an axis, the first one of equal ones.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.argmax(np.array([1.0, 3.0, 3.0]), 0, np.int32)
    Array(1, dtype=int32)
    """
    return _argument("argmax", reduce.argmax_p, operand, axis, index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Where the smallest element stands along an axis, the first one of equal ones.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.argmin(np.array([[1.0, 0.0], [2.0, 4.0]]), 1, int)
    Array([1, 0])
    """
    return _argument("argmin", reduce.argmin_p, operand, axis, index_dtype)


def _argument(name: str, prim: Primitive, operand: Any, axis: int, index_dtype: Any) -> Any:
    x = _one(name, operand)
    d = one_axis(axis, len(shape_of(x)), f"lax.{name}")
    prim.abstract(aval_of(x), axes=(d,))
    return finish(convert(prim.bind(x, axes=(d,)), canonical(index_dtype, f"lax.{name}: index_dtype")))


# --- products -----------------------------------------------------------------------------------------------


def _product_operands(name: str, lhs: Any, rhs: Any, preferred: Any) -> tuple[Any, Any]:
    x, y = _one(name, lhs), _one(name, rhs)
    if preferred is not None:
        to = canonical(preferred, f"lax.{name}: preferred_element_type")
        x, y = convert(x, to), convert(y, to)
    return x, y


def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """The product summed over pairs of axes, in parallel over pairs of batch axes.

    Parameters
    ----------
    lhs, rhs : array_like
        Of one dtype.
    dimension_numbers : ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    precision
        Accepted; sums are always taken in the dtype of the result.
    preferred_element_type : dtype-like, optional
        The dtype to compute in.

    Returns
    -------
    Array
        Axes: batch, free axes of `lhs`, free axes of `rhs`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> x, y = np.ones((5, 2, 3)), np.ones((5, 3, 4))
    >>> lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape  # a matrix product for each of 5
    (5, 2, 4)
    """
    x, y = _product_operands("dot_general", lhs, rhs, preferred_element_type)
    (a, b), (c, d) = dimension_numbers
    numbers = (
        (_ints(a, "dot_general"), _ints(b, "dot_general")),
        (_ints(c, "dot_general"), _ints(d, "dot_general")),
    )
    dot_general_p.abstract(aval_of(x), aval_of(y), dimension_numbers=numbers)
    return finish(dot_general_p.bind(x, y, dimension_numbers=numbers))


def dot(lhs: Any, rhs: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The product of vectors and matrices.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dot(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
    Array([3., 7.])
    """
    n, m = len(shape_of(_one("dot", lhs))), len(shape_of(_one("dot", rhs)))
    if not (1 <= n <= 2 and 1 <= m <= 2):
        raise ShapeError(f"lax.dot: want vectors or matrices, got {n} and {m} axes; use lax.dot_general")
    return dot_general(lhs, rhs, (((n - 1,), (0,)), ((), ())), precision, preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """The product of the matrices in the last two axes; the axes before them are equal.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    n = len(shape_of(_one("batch_matmul", lhs)))
    if n < 2 or len(shape_of(_one("batch_matmul", rhs))) != n:
        raise ShapeError("lax.batch_matmul: want operands with the same number of axes, at least 2")
    batch = tuple(range(n - 2))
    return dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (batch, batch)), precision)
