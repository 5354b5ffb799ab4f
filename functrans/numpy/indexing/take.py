"""Elements by index: take, diagonals, triangles."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.protocols import is_jax_array
from ...core import INT64, ArgumentError, ArgumentValueError, ShapeError, Tracer, is_abstract
from ...core.values import ArrayLike, DTypeLike, Value
from ...primitives import ops
from ...primitives.ops import finish, many_axes, one_axis, operand, refuse_out, shape_of
from ..dispatch import along, array_operand, implements, owned

__all__ = [
    "diag", "diagflat", "diagonal", "take", "take_along_axis", "trace", "tril", "triu",
]  # fmt: skip


# --- take ---------------------------------------------------------------------------------------------------


def _index_array(indices: Value, name: str, position: int = 1) -> Value:
    known = Tracer | np.ndarray | np.generic | int | float | complex | list | tuple
    plain = isinstance(indices, known) or is_jax_array(indices)
    i = operand(indices if plain else ops.index_array(indices), name, position)
    i = i if isinstance(i, (Tracer, np.ndarray)) else np.asarray(i)
    if i.dtype.kind == "b":
        return ops.convert(i, INT64)
    if i.dtype.kind not in "iu":
        if isinstance(i, np.ndarray) and not i.size:
            return i.astype(INT64)
        raise ArgumentError(
            f"{name}: indices must be integers, got dtype {i.dtype}; convert with .astype(int)"
        )
    return i


def _filling(name: str, mode: str, value: Value) -> dict[str, Any]:
    """The parameter of a gather that fills."""
    if value is None:
        return {}
    if mode != "fill":
        raise ArgumentValueError(f"{name}: fill_value is for mode='fill', got mode={mode!r}")
    return {"fill_value": None if value != value else np.asarray(value).item()}


@implements(np.take, method="take")
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str = "raise",
    *,
    fill_value: ArrayLike = None,
) -> Array:
    """Take elements along an axis.

    Parameters
    ----------
    a : array_like, shape ``(*before, n, *after)``
    indices : array_like of int, shape ``(*common)``
    axis : int, optional
        By default the flattened array is indexed.
    mode : {'raise', 'wrap', 'clip', 'fill'}
        What to do with an index out of bounds: raise `IndexOutOfBoundsError`; take it modulo the extent; take the
        nearest valid one (for negative ones 0); or return `fill_value`.
    fill_value : scalar, optional
        By default NaN, the least integer or True.

    Returns
    -------
    Array, shape ``(*before, *common, *after)``

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.take([10, 20, 30], [2, 0])
    Array([30, 10])
    """
    refuse_out("take", out)
    if mode not in ("raise", "wrap", "clip", "fill"):
        raise ArgumentValueError(f"take: mode must be 'raise', 'wrap', 'clip' or 'fill', got {mode!r}")
    mode = ops.default_mode("fill") if mode == "raise" else mode
    x = array_operand(a, "take")
    i = _index_array(indices, "take")
    x, d = along(x if shape_of(x) else ops.flat(x), axis, "take")
    if mode == "clip" and i.dtype.kind == "i":
        i = ops.max_p.bind(i, i.dtype.type(0))  # negative indices do not count from the end here
    taken = ops.gather_p.bind(x, i, axes=(d,), mode=mode, **_filling("take", mode, fill_value))
    common = len(shape_of(i))
    order = list(range(common, len(shape_of(taken))))
    order[d:d] = range(common)
    return owned(taken if not d else ops.transpose_p.bind(taken, permutation=tuple(order)), a)


@implements(np.take_along_axis)
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | None = "raise",
    fill_value: ArrayLike = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Any:
    """Take elements along an axis by an index for each position, as from ``argsort`` and ``argmax(keepdims=True)``.

    Parameters
    ----------
    arr : array_like
    indices : array_like of int
        As many axes as `arr`; all but `axis` broadcast against it.
    axis : int or None
        None flattens both arrays.
    mode : {'raise', 'wrap', 'clip', 'fill'}
        None is 'raise'.
    fill_value : scalar, optional
        See `take`.
    wrap_negative_indices : bool, optional
        Whether negative indices count from the end; if False, they are out of bounds.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.take_along_axis(fnp.array([[1, 2], [3, 4]]), [[0], [1]], axis=1)
    Array([[1],
           [4]])
    """
    x, i = array_operand(arr, "take_along_axis"), _index_array(indices, "take_along_axis")
    if axis is None:
        x, i, axis = ops.flat(x), ops.flat(i), 0
    shape, others = shape_of(x), shape_of(i)
    if len(shape) != len(others):
        raise ShapeError(f"take_along_axis: shapes {shape} and {others} must have the same number of axes")
    d = one_axis(axis, len(shape), "take_along_axis")
    mode = ops.default_mode("fill") if mode in (None, "raise") else mode
    if wrap_negative_indices is False and i.dtype.kind == "i":
        i = ops.negative_outside(i, mode)
    common = ops.broadcast_shapes("take_along_axis", (*shape[:d], 1, *shape[d + 1 :]), others)
    places = [
        ops.broadcast_to(i, common)
        if e == d
        else ops.iota(common, e)
        if shape[e] == common[e]
        else ops.full(common, 0, INT64)
        for e in range(len(shape))
    ]
    filling = _filling("take_along_axis", mode, fill_value)
    return owned(ops.gather_p.bind(x, *places, axes=tuple(range(len(shape))), mode=mode, **filling), arr)


# --- diagonals ----------------------------------------------------------------------------------------------


def _diagonal(x: Value, offset: int, axis1: ArrayLike, axis2: ArrayLike, name: str) -> Value:
    shape = shape_of(x)
    if len(shape) < 2:
        raise ShapeError(f"{name}: expected at least 2 axes, got shape {shape}")
    d, e = many_axes((axis1, axis2), len(shape), name)
    k = operator.index(offset)
    row, column = max(0, -k), max(0, k)
    length = max(0, min(shape[d] - row, shape[e] - column))
    steps = ops.iota((length,), 0) if is_abstract(x) else np.arange(length)
    rows = ops.add_p.bind(steps, np.int64(row)) if row else steps
    columns = ops.add_p.bind(steps, np.int64(column)) if column else steps
    out = ops.gather_p.bind(x, rows, columns, axes=(d, e), mode="promise_in_bounds")
    return ops.move_axis(out, 0, len(shape) - 2)


@implements(np.diagonal, method="diagonal")
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal along two axes, as the last axis of the result.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.diagonal(fnp.array([[1, 2], [3, 4]]))
    Array([1, 4])
    """
    return owned(_diagonal(array_operand(a, "diagonal"), offset, axis1, axis2, "diagonal"), a)


@implements(np.trace, method="trace")
def trace(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike = None, out: None = None
) -> Any:
    """The sum of the diagonal along two axes; small integers are summed as int64 (uint64), as in NumPy.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.trace(fnp.array([[1, 2], [3, 4]]))
    Array(5)
    """
    refuse_out("trace", out)
    elements = _diagonal(array_operand(a, "trace"), offset, axis1, axis2, "trace")
    to = np.add.reduce(np.zeros(1, elements.dtype)).dtype if dtype is None else np.dtype(dtype)
    return finish(ops.reduce_sum_p.bind(ops.convert(elements, to), axes=(len(shape_of(elements)) - 1,)))


@implements(np.diag)
def diag(v: ArrayLike, k: int = 0) -> Value:
    """A square matrix with a vector on its diagonal; or the diagonal of a matrix.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.diag([1, 2])
    Array([[1, 0],
           [0, 2]])
    """
    x = array_operand(v, "diag")
    shape = shape_of(x)
    if len(shape) == 2:
        return owned(_diagonal(x, k, 0, 1, "diag"), v)
    if len(shape) != 1:
        raise ShapeError(f"diag: expected 1 or 2 axes, got shape {shape}")
    k = operator.index(k)
    n = shape[0] + abs(k)
    zero = x.dtype.type(0)
    # Element i is in row i + max(0, -k).
    column = ops.pad_p.bind(x, zero, padding_config=((max(0, -k), max(0, k), 0),)) if k else x
    rows = ops.reshape_p.bind(column, shape=(n, 1))
    mask = ops.diagonal_mask(n, n, k) if is_abstract(x) else np.eye(n, k=k, dtype=bool)
    return finish(ops.select_p.bind(mask, rows, zero))


@implements(np.diagflat)
def diagflat(v: ArrayLike, k: int = 0) -> Any:
    """A square matrix with the elements of an array of any shape on its diagonal.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.diagflat([[1, 2]])
    Array([[1, 0],
           [0, 2]])
    """
    return diag(ops.flat(array_operand(v, "diagflat")), k)


# --- triangles ----------------------------------------------------------------------------------------------


def lower_mask(x: ArrayLike, rows: int, columns: int, k: int) -> Value:
    """True on and below diagonal `k`; computed in the traced program if the values of `x` are unknown."""
    if not is_abstract(x):
        return np.tri(rows, columns, k, bool)
    shifted = ops.iota((rows, 1), 0)
    shifted = ops.add_p.bind(shifted, np.int64(k)) if k else shifted
    return ops.ge_p.bind(shifted, ops.iota((1, columns), 1))


def _matrix(m: Value, name: str) -> Value:
    x = array_operand(m, name)
    shape = shape_of(x)
    if not shape:
        raise ShapeError(f"{name}: expected at least 1 axis, got a number")
    return ops.broadcast_to(x, shape * 2) if len(shape) == 1 else x


@implements(np.tril)
def tril(m: ArrayLike, k: int = 0) -> Any:
    """The lower triangle: set elements above diagonal `k` of the last two axes to zero.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.tril(fnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]])
    """
    x = _matrix(m, "tril")
    rows, columns = shape_of(x)[-2:]
    mask = lower_mask(x, rows, columns, operator.index(k))
    return finish(ops.select_p.bind(mask, x, x.dtype.type(0)))


@implements(np.triu)
def triu(m: ArrayLike, k: int = 0) -> Value:
    """The upper triangle: set elements below diagonal `k` of the last two axes to zero.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.triu([[1, 2], [3, 4]])
    Array([[1, 2],
           [0, 4]])
    """
    x = _matrix(m, "triu")
    rows, columns = shape_of(x)[-2:]
    mask = lower_mask(x, rows, columns, operator.index(k) - 1)
    return finish(ops.select_p.bind(mask, x.dtype.type(0), x))
