"""Positions of elements as index arrays: triangles, diagonals, meshes, flat and multidimensional."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...core.trace import Tracer, concrete, is_abstract
from ...core.values import ArrayLike, PyTree, ShapeLike, Value
from ...errors import ArgumentError, ArgumentValueError, NonConcreteBooleanIndexError, ShapeError
from ...primitives import ops, ufuncs
from ...primitives.ops import as_shape, finish, operand, positive_shape, shape_of
from ..dispatch import array_operand, implements, owned
from ..elementwise import selection

__all__ = [
    "diag_indices", "diag_indices_from", "ix_", "mask_indices", "ravel_multi_index", "tril_indices",
    "tril_indices_from", "triu_indices", "triu_indices_from", "unravel_index",
]  # fmt: skip

# --- of shapes ----------------------------------------------------------------------------------------------


@implements(np.tril_indices)
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Value, Value]:
    """Rows and columns of the elements on and below diagonal `k` of an ``n x m`` matrix.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.tril_indices(2)
    (Array([0, 1, 1]), Array([0, 0, 1]))
    """
    n, m = positive_shape((n, n if m is None else m), "tril_indices")
    rows, columns = np.tril_indices(n, operator.index(k), m)
    return finish(rows), finish(columns)


@implements(np.triu_indices)
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Value, Value]:
    """Rows and columns of the elements on and above diagonal `k` of an ``n x m`` matrix.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.triu_indices(2)
    (Array([0, 0, 1]), Array([0, 1, 1]))
    """
    n, m = positive_shape((n, n if m is None else m), "triu_indices")
    rows, columns = np.triu_indices(n, operator.index(k), m)
    return finish(rows), finish(columns)


def _matrix_shape(arr: Value, name: str) -> tuple[int, ...]:
    shape = shape_of(array_operand(arr, name))
    if len(shape) != 2:
        raise ShapeError(f"{name}: input array must be 2-d, got shape {shape}")
    return shape


@implements(np.tril_indices_from)
def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Any, Any]:
    """`tril_indices` for the shape of a matrix.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.tril_indices_from(fnp.ones((2, 2)))
    (Array([0, 1, 1]), Array([0, 0, 1]))
    """
    n, m = _matrix_shape(arr, "tril_indices_from")
    return tril_indices(n, k, m)


@implements(np.triu_indices_from)
def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Value, Value]:
    """`triu_indices` for the shape of a matrix.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.triu_indices_from(fnp.ones((2, 2)), k=1)
    (Array([0]), Array([1]))
    """
    n, m = _matrix_shape(arr, "triu_indices_from")
    return triu_indices(n, k, m)


@implements(np.diag_indices)
def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """Indices of the diagonal of an array with `ndim` axes of extent `n`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> x = fnp.zeros((2, 2))
    >>> x.at[fnp.diag_indices(2)].set(7.0)
    Array([[7., 0.],
           [0., 7.]])
    """
    places = finish(np.arange(operator.index(n)))
    return (places,) * operator.index(ndim)


@implements(np.diag_indices_from)
def diag_indices_from(arr: ArrayLike) -> tuple[Any, ...]:
    """`diag_indices` for the shape of an array, whose axes all have the same extent.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.diag_indices_from(fnp.ones((2, 2)))
    (Array([0, 1]), Array([0, 1]))
    """
    shape = shape_of(array_operand(arr, "diag_indices_from"))
    if len(shape) < 2:
        raise ShapeError(f"diag_indices_from: input array must be at least 2-d, got shape {shape}")
    if len(set(shape)) != 1:
        raise ShapeError(f"diag_indices_from: all axes must be of equal length, got shape {shape}")
    return diag_indices(shape[0], len(shape))


@implements(np.mask_indices)
def mask_indices(n: int, mask_func: Callable[..., Any], k: ArrayLike = 0) -> tuple[Any, ...]:
    """Indices of the elements of an ``n x n`` matrix that a function such as `triu` does not set to zero.

    The function runs while tracing, and must not depend on traced values.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.mask_indices(2, fnp.triu)
    (Array([0, 0, 1]), Array([0, 1, 1]))
    """
    chosen = mask_func(np.ones((n, n), int), k)
    if is_abstract(chosen):
        raise NonConcreteBooleanIndexError(
            "mask_indices: the number of true elements depends on values, which are unknown while tracing; "
            "call it outside the function, or use triu_indices or tril_indices"
        )
    chosen = concrete(chosen)
    return tuple([finish(places) for places in np.nonzero(chosen)])


# --- meshes -------------------------------------------------------------------------------------------------


@implements(np.ix_)
def ix_(*args: PyTree) -> tuple[Any, ...]:
    """Make index arrays that select all combinations of rows, columns, ...

    Parameters
    ----------
    *args : array_like of int or bool, shape (n,)
        Booleans mean the positions of true elements; their values must be known while tracing.

    Raises
    ------
    ShapeError
        If an argument is not one-dimensional.
    NonConcreteBooleanIndexError
        If one is a boolean array whose values are unknown while tracing.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> x = fnp.arange(6).reshape(2, 3)
    >>> x[fnp.ix_([0, 1], [0, 2])]
    Array([[0, 2],
           [3, 5]])
    """
    arrays = []
    for d, arg in enumerate(args):
        x = operand(arg, "ix_", d)
        if len(shape_of(x)) != 1:
            raise ShapeError(f"ix_: cross index must be 1 dimensional, argument {d} has shape {shape_of(x)}")
        if x.dtype.kind == "b":
            if is_abstract(x):
                raise NonConcreteBooleanIndexError(
                    f"ix_: argument {d} is a traced boolean mask, and the shape of "
                    "the result depends on its values; pass positions, or use where"
                )
            (x,) = np.nonzero(concrete(x))
        elif not x.size:
            x = x.astype(np.intp)
        shape = [1] * len(args)
        shape[d] = shape_of(x)[0]
        arrays.append(owned(ops.reshape_p.bind(x, shape=tuple(shape)), arg))
    return tuple(arrays)


# --- flat and many-dimensional ------------------------------------------------------------------------------


def _order(order: str, name: str) -> str:
    if order not in ("C", "F"):
        raise ArgumentValueError(f"{name}: only 'C' or 'F' order is permitted, got {order!r}")
    return order


def _integers(x: Value, name: str, position: int = 0) -> Any:
    i = array_operand(x, name, position)
    if i.dtype.kind not in "iu":
        raise ArgumentError(
            f"{name}: only int indices permitted, got dtype {i.dtype}; convert with .astype(int)"
        )
    return i


def _checked(i: ArrayLike, n: int, mode: str) -> Value:
    """Check an index within an axis of `n`, by gathering from a range, which reports the error."""
    if mode == "raise":
        i = selection.where(i < 0, np.int64(n), i)  # negative ones do not count from the end here
    elif mode == "clip":
        i = ufuncs.maximum(i, 0)
    return finish(ops.gather_p.bind(ops.iota((n,), 0), operand(i, "index"), axes=(0,), mode=mode))


@implements(np.unravel_index)
def unravel_index(indices: ArrayLike, shape: ShapeLike, order: str = "C") -> tuple[Any, ...]:
    """Convert indices into the flattened array to indices along each axis.

    Parameters
    ----------
    indices : array_like of int
    shape : tuple of int
        The shape of the array.
    order : {'C', 'F'}

    Returns
    -------
    tuple of Array
        One for each axis.

    Raises
    ------
    ArgumentValueError
        If an index is out of bounds; in compiled code, `IndexOutOfBoundsError`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.unravel_index([5, 1], (2, 3))
    (Array([1, 0]), Array([2, 1]))
    """
    extents = as_shape(shape, "unravel_index")
    i = _integers(indices, "unravel_index")
    _order(order, "unravel_index")
    if not isinstance(i, Tracer):
        try:
            return tuple([finish(np.asarray(part)) for part in np.unravel_index(i, extents, order)])  # type: ignore[call-overload]
        except ValueError as error:
            raise ArgumentValueError(f"unravel_index: {error}") from None
    i = _checked(i.astype(np.int64), prod(extents), "raise")
    coordinates = []
    listed = extents[::-1] if order == "C" else extents
    for n in listed[:-1]:
        i, inside = ufuncs.divmod(i, n)
        coordinates.append(inside)
    coordinates.append(i)
    return tuple(coordinates[::-1] if order == "C" else coordinates)


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """Convert indices along each axis to indices into the flattened array.

    Parameters
    ----------
    multi_index : tuple of array_like of int
        One for each axis.
    dims : tuple of int
        The shape of the array.
    mode : {'raise', 'wrap', 'clip'}, or a tuple of them
        What to do with an index out of bounds; for all axes or for each.
    order : {'C', 'F'}

    Raises
    ------
    ArgumentValueError
        If an index is out of bounds; in compiled code, `IndexOutOfBoundsError`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.ravel_multi_index(([1, 0], [2, 1]), (2, 3))
    Array([5, 1])
    """
    extents = as_shape(dims, "ravel_multi_index")
    _order(order, "ravel_multi_index")
    parts = [_integers(i, "ravel_multi_index") for i in multi_index]
    if len(parts) != len(extents):
        raise ArgumentValueError(
            f"ravel_multi_index: dims has {len(extents)} extents, multi_index {len(parts)} arrays"
        )
    if not any(isinstance(i, Tracer) for i in parts):
        try:
            return finish(np.asarray(np.ravel_multi_index(tuple(parts), extents, mode, order)))  # type: ignore[call-overload]
        except ValueError as error:
            raise ArgumentValueError(f"ravel_multi_index: {error}") from None
    modes = mode if isinstance(mode, tuple) else (mode,) * len(extents)
    if len(modes) != len(extents) or not set(modes) <= {"raise", "wrap", "clip"}:
        raise ArgumentValueError(
            f"ravel_multi_index: mode must be 'raise', 'wrap' or 'clip', one or {len(extents)} of them, got {mode!r}"
        )
    common = ops.broadcast_shapes("ravel_multi_index", *[shape_of(i) for i in parts])
    total: ArrayLike = np.int64(0)
    pairs = list(zip(parts, extents, modes))
    for i, n, how in pairs if order == "C" else reversed(pairs):
        total = total * n + _checked(ops.broadcast_to(i, common), n, how)
    return total
