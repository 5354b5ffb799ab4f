"""Set operations on arrays: unique elements, unions, intersections and differences.

The shapes of most of these results depend on values; see `nonzero` for what that means under ``jit``.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import BOOL, INT64, ArgumentValueError, concrete, is_inexact
from ...core.values import ArrayLike, Value
from ...primitives import ops
from ...primitives.ops import common, dtype_of, finish, operand, shape_of
from ...runtime.records import NamedTuple
from ..dispatch import along, array_operand, implements
from ..indexing.nonzero import filled, need_size, size_of, true_places
from .sorting import places


class UniqueAllResult(NamedTuple):
    """The result of `unique_all`."""

    values: ArrayLike
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCountsResult(NamedTuple):
    """The result of `unique_counts`."""

    values: ArrayLike
    counts: Any


class UniqueInverseResult(NamedTuple):
    """The result of `unique_inverse`."""

    values: ArrayLike
    inverse_indices: Any


def _rows(x: Value, indices: Value) -> Value:
    """Take elements along the first axis; indices must be in bounds."""
    return ops.gather_p.bind(x, indices, axes=(0,), mode="promise_in_bounds")


def _distinct(x: Value, equal_nan: bool) -> Value:
    """Whether each element of a sorted one-dimensional array differs from the one before it."""
    now, past = ops.neighbours(x, 0)
    differs = ops.ne_p.bind(now, past)
    if equal_nan and is_inexact(dtype_of(x)):
        differs = ops.and_p.bind(differs, ops.or_p.bind(ops.eq_p.bind(now, now), ops.eq_p.bind(past, past)))
    return differs


class _Groups:
    """Rows along the first axis in sorted order, and where groups of equal ones begin."""

    def __init__(self, x: ArrayLike, equal_nan: bool):
        shape = shape_of(x)
        self.n = n = shape[0]
        width = prod(shape[1:])
        table = ops.reshape_p.bind(x, shape=(n, width))
        keys = [ops.element_along(table, 1, j) for j in range(width)]
        *keys, self.order = ops.sort_p.bind(
            *(keys or [ops.full((n,), 0, INT64)]), ops.iota((n,), 0), dimension=0, num_keys=max(width, 1)
        )
        differs = _distinct(keys[0], equal_nan and len(shape) == 1)
        for key in keys[1:]:
            differs = ops.or_p.bind(differs, _distinct(key, False))
        self.begins = ops.concatenate_p.bind(ops.full((1,), True, BOOL), differs, dimension=0)

    def inverse(self) -> Any:
        """The number of each row's group."""
        number = ops.sub_p.bind(
            ops.cumsum_p.bind(ops.convert(self.begins, INT64), axis=0, reverse=False), np.int64(1)
        )
        nothing = ops.full((self.n,), 0, INT64)
        return ops.scatter_p.bind(
            nothing, number, self.order, axes=(0,), mode="promise_in_bounds", unique_indices=True
        )


def _unique_of_size(x: Value, size: int, fill_value: Value, equal_nan: bool) -> tuple[Any, Any, Any, Any]:
    """Values, indices, inverse and counts of the rows along the first axis, in `size` groups."""
    if not shape_of(x)[0]:
        value = 0 if fill_value is None else fill_value
        nothing = ops.full((size,), 0, INT64)
        return (
            ops.full((size, *shape_of(x)[1:]), value, dtype_of(x)),
            nothing,
            ops.full((0,), 0, INT64),
            nothing,
        )
    groups = _Groups(x, equal_nan)
    starts, valid = true_places(groups.begins, size)
    starts = filled(starts, valid, 0)  # by default, fill with the smallest one
    indices = _rows(groups.order, starts)
    values = _rows(x, indices)
    if fill_value is not None:
        values = filled(values, valid, operand(fill_value, "unique: fill_value"))
    # A group ends where the next one begins; the last one ends at the end.
    following, is_start = true_places(groups.begins, size + 1)
    following = ops.slice_along(filled(following, is_start, groups.n), 0, 1, size + 1)
    counts = filled(ops.sub_p.bind(following, starts), valid, 0)
    return values, indices, groups.inverse(), counts


def _unique_known(x: Value, equal_nan: bool) -> tuple[Any, Any, Any, Any]:
    """The same for known values, in as many groups as occur."""
    _, indices, inverse, counts = np.unique(concrete(x), True, True, True, axis=0, equal_nan=equal_nan)
    return _rows(x, indices), indices, inverse.reshape(-1), counts


@implements(np.unique)
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: ArrayLike = None,
) -> Any:
    """The distinct elements, in sorted order.

    Parameters
    ----------
    ar : array_like
    return_index : bool
        Whether to return the first index of each, too.
    return_inverse : bool
        Whether to return, for each element of `ar`, the index of its value, too.
    return_counts : bool
        Whether to return the number of occurrences of each, too.
    axis : int, optional
        The axis whose slices to compare, in lexicographic order, instead of elements.
    equal_nan : bool
        Whether all NaN count as one.
    sorted : bool
        Accepted, without effect; the result is always sorted.
    size : int, optional
        The number of values to return. Required under ``jit`` and ``vmap``.
    fill_value : scalar, optional
        The value of missing elements; by default the smallest one.

    Returns
    -------
    Array, or tuple of Array
        Values, then the other requested results, as int64.

    Raises
    ------
    ConcretizationTypeError
        If the values are unknown, and `size` is not passed.

    Notes
    -----
    The derivative of a value is that of the first element equal to it.

    Examples
    --------
    >>> import functrans as ft
    >>> import functrans.numpy as fnp
    >>> fnp.unique([3, 1, 3])
    Array([1, 3])
    >>> ft.jit(lambda x: fnp.unique(x, size=3, fill_value=0))(fnp.array([3, 1, 3]))
    Array([1, 3, 0])
    """
    x = array_operand(ar, "unique")
    shape = shape_of(x)
    rows, d = along(x, axis, "unique")
    rows = ops.move_axis(rows, d, 0)
    if size is not None:
        result = _unique_of_size(rows, size_of(size, "unique"), fill_value, equal_nan)
    elif concrete(x) is None:
        need_size("unique", x)
    else:
        result = _unique_known(rows, equal_nan)
    values, indices, inverse, counts = result
    values = ops.move_axis(values, 0, d)
    if axis is None:
        inverse = ops.reshape_p.bind(inverse, shape=shape)
    asked = [(return_index, indices), (return_inverse, inverse), (return_counts, counts)]
    outs = tuple([finish(y) for y in (values, *[y for requested, y in asked if requested])])
    return outs if len(outs) > 1 else outs[0]


@implements(np.unique_values)
def unique_values(x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = None) -> Any:
    """The distinct elements; every NaN is distinct. See `unique`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.unique_values([3, 1, 3])
    Array([1, 3])
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


@implements(np.unique_counts)
def unique_counts(
    x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = None
) -> UniqueCountsResult:
    """The distinct elements and their counts. See `unique_values`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.unique_counts([3, 1, 3])
    UniqueCountsResult(values=Array([1, 3]), counts=Array([1, 2]))
    """
    return UniqueCountsResult(
        *unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    )


@implements(np.unique_inverse)
def unique_inverse(
    x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = None
) -> UniqueInverseResult:
    """The distinct elements, and the index among them of each element of `x`. See `unique_values`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.unique_inverse([3, 1, 3])
    UniqueInverseResult(values=Array([1, 3]), inverse_indices=Array([1, 0, 1]))
    """
    return UniqueInverseResult(
        *unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    )


@implements(np.unique_all)
def unique_all(x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = None) -> UniqueAllResult:
    """The distinct elements, their first indices, inverse indices and counts. See `unique_values`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.unique_all([3, 1, 3]).indices
    Array([1, 0])
    """
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


# --- membership -------------------------------------------------------------------------------------------------


@implements(np.isin)
def isin(
    element: ArrayLike,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
    method: str | None = None,
) -> Array:
    """Whether each element occurs in another array.

    Parameters
    ----------
    element, test_elements : array_like
    assume_unique : bool
        Accepted, without effect.
    invert : bool
        Whether to negate the result.
    kind : {None, 'sort', 'table'}
        Accepted, without effect.
    method : str, optional
        Accepted for compatibility with JAX, without effect.

    Returns
    -------
    Array of bool, shape of `element`

    Notes
    -----
    Uses binary search in the sorted `test_elements`. NaN does not occur in any array.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.isin([1, 2, 3], [3, 1])
    Array([ True, False,  True])
    """
    if kind not in (None, "sort", "table"):
        raise ArgumentValueError(f"isin: kind must be None, 'sort' or 'table', got {kind!r}")
    x, others = array_operand(element, "isin"), ops.flat(array_operand(test_elements, "isin", 1))
    if kind == "table" and any(dtype_of(a).kind not in "biu" for a in (x, others)):
        raise ArgumentValueError(
            f"isin: kind='table' is for integers, got dtypes {dtype_of(x)} and {dtype_of(others)}"
        )
    return finish(_occurs(x, others, invert))


def _occurs(x: ArrayLike, others: ArrayLike, invert: bool) -> Value:
    n = shape_of(others)[0]
    if not n:
        return ops.full(shape_of(x), invert, BOOL)
    x, others = common(x, others)
    (ordered,) = ops.sort_p.bind(others, dimension=0, num_keys=1)
    at = places(ordered, x, "left")
    # Clipped: what is beyond the end is equal to nothing.
    neighbours = ops.gather_p.bind(ordered, at, axes=(0,), mode="clip")
    return (ops.ne_p if invert else ops.eq_p).bind(x, neighbours)


# --- of two sets --------------------------------------------------------------------------------------------


def _two(ar1: ArrayLike, ar2: ArrayLike, name: str) -> list[Any]:
    return common(ops.flat(array_operand(ar1, name)), ops.flat(array_operand(ar2, name, 1)))


def _require(name: str, size: ArrayLike, *values: Value) -> None:
    """Without a size, raise an error unless all values are known."""
    for x in values:
        if size is None and concrete(x) is None:
            need_size(name, x)


def _picked(x: ArrayLike, mask: ArrayLike, size: ArrayLike, fill_value: ArrayLike, name: str) -> Value:
    """Select elements of a one-dimensional array by a mask; by default, fill with the first of them."""
    if size is None:
        return _rows(x, np.flatnonzero(concrete(mask)))
    at, valid = true_places(mask, size_of(size, name))
    if not shape_of(x)[0]:
        return ops.full(shape_of(at), 0 if fill_value is None else fill_value, dtype_of(x))
    out = _rows(x, at)
    if fill_value is None:
        fill_value = _rows(x, ops.element_along(at, 0, 0)) if shape_of(at)[0] else 0
    return filled(out, valid, operand(fill_value, f"{name}: fill_value"))


@implements(np.union1d)
def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = None) -> Any:
    """The distinct elements of both arrays, in sorted order; for `size` and `fill_value` see `unique`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.union1d([1, 3], [2, 3])
    Array([1, 2, 3])
    """
    x, y = common(operand(ar1, "union1d"), operand(ar2, "union1d", 1))
    x, y = (ops.flat(array_operand(a, "union1d")) for a in (x, y))
    _require("union1d", size, x, y)
    return unique(ops.concatenate_p.bind(x, y, dimension=0), size=size, fill_value=fill_value)


def _marked(x: Value, assume_unique: bool) -> tuple[Any, Any, Any]:
    """The sorted elements, their indices, and which are the first of equal ones."""
    n = shape_of(x)[0]
    ordered, order = ops.sort_p.bind(x, ops.iota((n,), 0), dimension=0, num_keys=1)
    if assume_unique or not n:
        return ordered, order, ops.full((n,), True, BOOL)
    first = ops.concatenate_p.bind(ops.full((1,), True, BOOL), _distinct(ordered, True), dimension=0)
    return ordered, order, first


@implements(np.intersect1d)
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike = None,
) -> Any:
    """The distinct elements that occur in both arrays, in sorted order.

    Parameters
    ----------
    ar1, ar2 : array_like
        Flattened.
    assume_unique : bool
        A promise that neither array has repeated elements.
    return_indices : bool
        Whether to return the first indices of the elements in both arrays, too.
    size : int, optional
        The number of elements to return. Required under ``jit`` and ``vmap``.
    fill_value : scalar, optional
        The value of missing elements; by default the smallest one. Missing indices are the sizes of the arrays.

    Returns
    -------
    Array, or tuple of three

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.intersect1d([1, 3, 4, 3], [3, 2, 4])
    Array([3, 4])
    """
    x, y = _two(ar1, ar2, "intersect1d")
    _require("intersect1d", size, x, y)
    ordered, order, first = _marked(x, assume_unique)
    m = shape_of(y)[0]
    mask = ops.and_p.bind(first, _occurs(ordered, y, False))
    values = finish(_picked(ordered, mask, size, fill_value, "intersect1d"))
    if not return_indices:
        return values
    here = _picked(order, mask, size, shape_of(x)[0], "intersect1d")
    if not m:
        return values, finish(here), finish(ops.full(shape_of(here), m, INT64))
    others, others_order = ops.sort_p.bind(y, ops.iota((m,), 0), dimension=0, num_keys=1)
    there = ops.gather_p.bind(others_order, places(others, ordered, "left"), axes=(0,), mode="clip")
    return values, finish(here), finish(_picked(there, mask, size, m, "intersect1d"))


@implements(np.setdiff1d)
def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike = None,
) -> Any:
    """The distinct elements of `ar1` that do not occur in `ar2`, sorted (unless `assume_unique`).

    For `size` and `fill_value` see `unique`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.setdiff1d([1, 3, 4, 3], [3, 2])
    Array([1, 4])
    """
    x, y = ops.flat(array_operand(ar1, "setdiff1d")), ops.flat(array_operand(ar2, "setdiff1d", 1))
    _require("setdiff1d", size, x, y)
    if assume_unique:
        mask = _occurs(x, y, True)
    else:
        x, _, first = _marked(x, False)
        mask = ops.and_p.bind(first, _occurs(x, y, True))
    return finish(_picked(x, mask, size, fill_value, "setdiff1d"))


@implements(np.setxor1d)
def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike = None,
) -> Any:
    """The distinct elements that occur in just one of the arrays, sorted; for `size` and `fill_value` see `unique`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.setxor1d([1, 3], [2, 3])
    Array([1, 2])
    """
    x, y = _two(ar1, ar2, "setxor1d")
    _require("setxor1d", size, x, y)
    n, m = shape_of(x)[0], shape_of(y)[0]
    origin = ops.concatenate_p.bind(ops.full((n,), False, BOOL), ops.full((m,), True, BOOL), dimension=0)
    both = ops.concatenate_p.bind(x, y, dimension=0)
    # Equal elements become adjacent, those of the first array before those of the second.
    ordered, origin = ops.sort_p.bind(both, origin, dimension=0, num_keys=1)
    if not n + m:
        return finish(_picked(ordered, ops.full((0,), True, BOOL), size, fill_value, "setxor1d"))
    now, past = ops.neighbours(origin, 0)
    # NaN is not equal to any element of the other array.
    tail = ops.slice_along(ordered, 0, 1, n + m)
    differs = ops.or_p.bind(
        _distinct(ordered, True), ops.and_p.bind(ops.ne_p.bind(tail, tail), ops.xor_p.bind(now, past))
    )
    first = ops.concatenate_p.bind(ops.full((1,), True, BOOL), differs, dimension=0)
    group = ops.cumsum_p.bind(ops.convert(first, INT64), axis=0, reverse=False)
    ends = ops.sub_p.bind(places(group, group, "right"), np.int64(1))
    mask = ops.and_p.bind(first, ops.eq_p.bind(origin, _rows(origin, ends)))
    return finish(_picked(ordered, mask, size, fill_value, "setxor1d"))
