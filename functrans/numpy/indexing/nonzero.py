"""Positions of true elements: nonzero and related functions. The shapes of their results depend on values.

If the values are known (outside ``jit``, also under ``grad``) the results have NumPy's shapes. Under ``jit`` and
``vmap``, `size` sets the shape: extra elements are dropped, missing ones are filled in.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np

from ...arrays.array import Array
from ...core import INT64, Tracer, concrete, operators
from ...core.values import ArrayLike, ShapeLike, Value
from ...errors import ArgumentValueError, ConcretizationTypeError, InvalidIndexError
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, operand, refuse_out, shape_of, stack
from ..dispatch import along, array_operand, implements


def need_size(name: str, x: ArrayLike, option: str = "size=") -> NoReturn:
    """Raise an error for a result with unknown shape."""
    raise ConcretizationTypeError(
        f"{name} of a traced value of type {x.aval} ({x.history()}): the shape of the result depends on "
        f"values, which are unknown while tracing. Set the size with {option}, compute the result outside the "
        "function, or use where(condition, x, y)"
    )


def size_of(size: ArrayLike, name: str) -> int:
    """`size` as an int."""
    n = operator.index(size)
    if n < 0:
        raise ArgumentValueError(f"{name}: size must not be negative, got {n}")
    return n


def true_places(mask: ArrayLike, size: int) -> tuple[ArrayLike, ArrayLike]:
    """The first `size` positions of true elements of a one-dimensional mask, and which of these are valid."""
    shape = shape_of(mask)
    order = ops.argsort(ops.not_p.bind(mask), 0)  # stable: true elements first
    if size <= shape[0]:
        order = ops.slice_along(order, 0, 0, size)
    else:
        order = ops.concatenate_p.bind(order, ops.full((size - shape[0],), 0, INT64), dimension=0)
    count = ops.reduce_sum_p.bind(ops.convert(mask, INT64), axes=(0,))
    return order, ops.lt_p.bind(ops.iota((size,), 0), count)


def filled(x: Value, valid: ArrayLike, fill: ArrayLike) -> Value:
    """Select rows of `x` where valid, else a number."""
    shape = shape_of(x)
    valid = ops.broadcast_in_dim_p.bind(valid, shape=shape, broadcast_dimensions=(0,))
    value = ops.convert(fill, dtype_of(x)) if isinstance(fill, Tracer) else np.asarray(fill, dtype_of(x))
    return ops.select_p.bind(
        valid,
        x,
        ops.broadcast_in_dim_p.bind(
            value,
            shape=shape,
            broadcast_dimensions=tuple(range(len(shape) - len(shape_of(value)), len(shape))),
        ),
    )


def _places(x: Value, size: ShapeLike, fill_value: Value, name: str) -> list[Any]:
    """The indices of true elements, one array for each axis."""
    values = concrete(x)
    if size is None:
        if values is None:
            need_size(name, x)
        return list(np.nonzero(values))
    shape = shape_of(x)
    rest, valid = true_places(ops.truth(ops.flat(x)), size_of(size, name))
    indices = []
    for n in shape[:0:-1]:
        extent = np.int64(max(n, 1))
        indices.append(ops.remainder_p.bind(rest, extent))
        rest = ops.floor_divide_p.bind(rest, extent)
    indices = [*indices, rest][::-1]
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * len(shape)
    if len(fills) != len(shape):
        raise ArgumentValueError(f"{name}: {len(fills)} fill values for {len(shape)} axes")
    return [
        filled(i, valid, 0 if f is None else operand(f, f"{name}: fill_value"))
        for i, f in zip(indices, fills)
    ]


@implements(np.nonzero, method="nonzero")
def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = None) -> tuple[Any, ...]:
    """The indices of nonzero elements, one array for each axis.

    Parameters
    ----------
    a : array_like, of at least one axis
    size : int, optional
        The number of indices to return. Required under ``jit`` and ``vmap``.
    fill_value : int or tuple of int, optional
        The value of missing indices; by default 0.

    Returns
    -------
    tuple of Array of int64, shape (count,) or (size,)

    Raises
    ------
    ConcretizationTypeError
        If the values of `a` are unknown, and `size` is not passed.
    ArgumentValueError
        If `a` has no axes.

    Examples
    --------
    >>> import functrans as ft
    >>> import functrans.numpy as fnp
    >>> fnp.nonzero([0, 3, 0, 4])
    (Array([1, 3]),)
    >>> ft.jit(lambda x: fnp.nonzero(x, size=3, fill_value=-1))(fnp.array([0, 3, 0, 4]))
    (Array([ 1,  3, -1]),)
    """
    x = array_operand(a, "nonzero")
    if not shape_of(x):
        raise ArgumentValueError("nonzero: expected an array of at least one axis; see atleast_1d")
    return tuple([finish(i) for i in _places(x, size, fill_value, "nonzero")])


@implements(np.flatnonzero)
def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = None) -> Any:
    """The indices of nonzero elements in the flattened array; see `nonzero`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.flatnonzero([[0, 3], [4, 0]])
    Array([1, 2])
    """
    return finish(_places(ops.flat(array_operand(a, "flatnonzero")), size, fill_value, "flatnonzero")[0])


@implements(np.argwhere)
def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = None) -> Array:
    """The indices of nonzero elements, one row for each; see `nonzero`.

    Returns
    -------
    Array of int64, shape (count, ndim) or (size, ndim)

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.argwhere([[0, 3], [4, 0]])
    Array([[0, 1],
           [1, 0]])
    """
    x = array_operand(a, "argwhere")
    if not shape_of(x):
        count = len(_places(ops.flat(x), size, fill_value, "argwhere")[0])
        return finish(np.zeros((count, 0), np.int64))
    columns = _places(x, size, fill_value, "argwhere")
    return finish(ops.move_axis(stack(columns), 0, 1))


def _chosen(x: Value, mask: ArrayLike, axis: int, size: ShapeLike, fill_value: Value, name: str) -> Value:
    """Select the elements of `x` along an axis where the mask is true."""
    if size is None:
        values = concrete(mask)
        if values is None:
            need_size(name, mask)
        indices: Any = np.flatnonzero(values)
        valid = None
    else:
        indices, valid = true_places(ops.truth(mask), size_of(size, name))
    if concrete(mask) is not None and shape_of(mask)[0] > shape_of(x)[axis]:
        beyond = np.flatnonzero(concrete(mask))
        if beyond.size and beyond[-1] >= shape_of(x)[axis]:
            raise InvalidIndexError(
                f"{name}: the condition has {shape_of(mask)[0]} entries, the array {shape_of(x)[axis]} elements"
            )
    out = ops.gather_p.bind(x, indices, axes=(axis,), mode="clip" if shape_of(x)[axis] else "fill")
    if valid is not None:
        out = filled(out, valid, operand(fill_value, f"{name}: fill_value"))
    return ops.move_axis(out, 0, axis)


@implements(np.extract)
def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """Select elements of the flattened array where the flattened condition is true.

    Parameters
    ----------
    condition, arr : array_like
        Must have equal sizes.
    size : int, optional
        The number of elements to return. Required if the condition is traced.
    fill_value : scalar
        The value of missing elements.

    Returns
    -------
    Array, shape (count,) or (size,)

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.extract([True, False, True], [1.0, 2.0, 3.0])
    Array([1., 3.])
    """
    mask, x = ops.flat(array_operand(condition, "extract")), ops.flat(array_operand(arr, "extract", 1))
    return finish(_chosen(x, mask, 0, size, fill_value, "extract"))


@implements(np.compress)
def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Select slices along an axis where the condition is true.

    Parameters
    ----------
    condition : array_like, shape (m,)
        Slices from `m` on are dropped.
    a : array_like
    axis : int, optional
        By default the array is flattened.
    size : int, optional
        The number of slices to return. Required if the condition is traced.
    fill_value : scalar
        The value of missing slices.

    Returns
    -------
    Array

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.compress([False, True], [[1, 2], [3, 4]], axis=0)
    Array([[3, 4]])
    """
    refuse_out("compress", out)
    mask, x = array_operand(condition, "compress"), array_operand(a, "compress", 1)
    if len(shape_of(mask)) != 1:
        raise ArgumentValueError(f"compress: the condition must have one axis, got shape {shape_of(mask)}")
    x, d = along(x if shape_of(x) else ops.flat(x), axis, "compress")
    return finish(_chosen(x, mask, d, size, fill_value, "compress"))


def _compress_method(a: Value, condition: Value, axis: int | None = None, out: None = None) -> Value:
    return compress(condition, a, axis, out)


operators.attribute["compress"] = _compress_method
