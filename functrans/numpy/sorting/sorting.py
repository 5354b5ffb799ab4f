"""Sorting (sort, argsort, lexsort, partition) and searching in sorted arrays (searchsorted, digitize)."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

from ...arrays.array import Array
from ...core import INT64, Tracer, canonical, concrete, operators
from ...core.values import ArrayLike, DTypeLike, Param, PyTree, Value
from ...errors import ArgumentError, ArgumentValueError, ImmutableArrayError, ShapeError
from ...primitives import ops
from ...primitives.ops import common, dtype_of, finish, one_axis, operand, shape_of
from ..dispatch import along, array_operand, implements

_KINDS = ("quicksort", "mergesort", "heapsort", "stable")
_PARTITION_KINDS = ("introselect",)


def _check_options(name: str, kind: Any, order: Any, stable: Any, kinds: Sequence[str] = _KINDS) -> None:
    if order is not None:
        raise ArgumentValueError(
            f"{name}: order= is for fields of structured arrays, which functrans does not support"
        )
    if kind is not None and stable is not None:
        raise ArgumentValueError(f"{name}: pass kind= or stable=, not both (every sort here is stable)")
    # As in NumPy, which reads the first letter.
    if kind is not None and not (isinstance(kind, str) and kind[:1].lower() in [k[0] for k in kinds]):
        raise ArgumentValueError(f"{name}: kind must be one of {', '.join(map(repr, kinds))}, got {kind!r}")


def _of_an_axis(x: Value) -> Value:
    """Convert a number to an array of one element, as NumPy's functions that return an order do."""
    return x if shape_of(x) else ops.reshape_p.bind(x, shape=(1,))


@implements(np.sort)
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    order: Any = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Array:
    """Return a sorted copy.

    Parameters
    ----------
    a : array_like, shape (*before, n, *after)
    axis : int or None
        None sorts the flattened array.
    kind : {'quicksort', 'mergesort', 'heapsort', 'stable'}, optional
        Accepted, without effect.
    order : None
        Accepted for compatibility with NumPy; functrans has no structured arrays.
    stable : bool, optional
        Accepted, without effect; the sort is always stable.
    descending : bool
        Whether to sort from largest to smallest, with NaN first; equal elements keep their order. (From the array API
        standard; NumPy does not have it.)

    Returns
    -------
    Array, shape (*before, n, *after)
        With the dtype of `a`.

    Raises
    ------
    AxisError
        If the axis is out of bounds; a number has no axes (use ``axis=None``).

    Notes
    -----
    NaN comes last; complex numbers are ordered by their real part, then the imaginary one. The derivative permutes
    tangents like the elements; at ties it follows the stable order.

    Examples
    --------
    >>> import functrans as ft
    >>> import functrans.numpy as fnp
    >>> fnp.sort([3.0, 1.0, 2.0])
    Array([1., 2., 3.])
    >>> ft.grad(lambda x: fnp.sort(x)[0])(fnp.array([3.0, 1.0, 2.0]))
    Array([0., 1., 0.])
    """
    _check_options("sort", kind, order, stable)
    x, d = along(array_operand(a, "sort"), axis, "sort")
    if descending:
        x = ops.rev_p.bind(x, dimensions=(d,))
    out = ops.sort_p.bind(x, dimension=d, num_keys=1)[0]
    return finish(ops.rev_p.bind(out, dimensions=(d,)) if descending else out)


@implements(np.argsort, method="argsort")
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    order: Any = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
    dtype: DTypeLike = None,
) -> Any:
    """The indices that sort an array, as int64 or `dtype`; for the other parameters see `sort`.

    Notes
    -----
    The order is always stable: equal elements keep theirs (NumPy's default does not guarantee it).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.argsort([3.0, 1.0, 2.0])
    Array([1, 2, 0])
    """
    _check_options("argsort", kind, order, stable)
    x, d = along(_of_an_axis(array_operand(a, "argsort")), axis, "argsort")
    to = INT64 if dtype is None else canonical(dtype, "argsort: dtype")
    if not descending:
        return finish(ops.convert(ops.argsort(x, d), to))
    places = ops.rev_p.bind(ops.iota(shape_of(x), d), dimensions=(d,))
    x = ops.rev_p.bind(x, dimensions=(d,))
    places = ops.rev_p.bind(ops.sort_p.bind(x, places, dimension=d, num_keys=1)[1], dimensions=(d,))
    return finish(ops.convert(places, to))


@implements(np.lexsort)
def lexsort(keys: ArrayLike, axis: int = -1) -> Array:
    """The indices that sort by several keys: by the last one first, ties by the one before it, and so on.

    Parameters
    ----------
    keys : sequence of array_like of one shape, or array_like, shape (k, *shape)
        They may have different dtypes.
    axis : int

    Returns
    -------
    Array of int64, shape (*shape)

    Raises
    ------
    ArgumentError
        If `keys` is empty.
    ShapeError
        If keys have different shapes.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.lexsort(([3, 1, 2], [1, 0, 0]))
    Array([1, 2, 0])
    """
    if isinstance(keys, (Tracer, np.ndarray)):
        keys = array_operand(keys, "lexsort")
        keys = [keys[i] for i in range(shape_of(keys)[0])] if shape_of(keys) else []
    if not isinstance(keys, Iterable) or not (listed := list(keys)):
        raise ArgumentError("lexsort: keys must be a sequence of at least one key")
    values = [array_operand(x, "lexsort", i) for i, x in enumerate(listed)]
    shapes = [shape_of(v) for v in values]
    if len(set(shapes)) > 1:
        raise ShapeError(f"lexsort: all keys must have the same shape, got {', '.join(map(str, shapes))}")
    if not shapes[0] and axis in (-1, 0):
        return finish(np.zeros((), np.int64))
    d = one_axis(axis, len(shapes[0]), "lexsort")
    order = ops.sort_p.bind(*values[::-1], ops.iota(shapes[0], d), dimension=d, num_keys=len(values))
    return finish(order[-1])


# --- partitions -----------------------------------------------------------------------------------------------


def _check_places(kth: ArrayLike, x: Value, axis: int, name: str) -> None:
    """Check that each `kth` is in bounds, unless the array is empty."""
    n = shape_of(x)[axis]
    if isinstance(kth, Tracer):
        operator.index(kth)
    listed = np.asarray(operand(kth, f"{name}: kth"))
    if listed.dtype.kind == "b":
        raise ArgumentValueError(f"{name}: kth must be integers, got booleans")
    if listed.dtype.kind not in "iu" and listed.size:
        raise ArgumentError(f"{name}: kth must be integers, got dtype {listed.dtype}")
    if listed.ndim > 1:
        raise ArgumentValueError(f"{name}: kth must be an integer or a sequence of them")
    for i in listed.reshape(-1).tolist() if prod(shape_of(x)) else ():
        if not -n <= i < n:
            raise ArgumentValueError(f"{name}: kth(={i}) is out of bounds for an array of {n} elements")


@implements(np.partition)
def partition(
    a: ArrayLike, kth: ArrayLike, axis: int | None = -1, kind: str = "introselect", order: Any = None
) -> Array:
    """Return a copy with the `kth` element in its sorted position, smaller ones before it, larger ones after.

    Parameters
    ----------
    a : array_like
    kth : int or sequence of int
    axis : int or None
        None flattens the array.
    kind : {'introselect'}
    order : None

    Returns
    -------
    Array

    Raises
    ------
    ArgumentValueError
        If `kth` is out of bounds.

    Notes
    -----
    Both sides are sorted, which is one of the orders that NumPy allows.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.partition([3, 1, 2, 0], 1)
    Array([0, 1, 2, 3])
    """
    _check_options("partition", kind, order, None, _PARTITION_KINDS)
    x, d = along(array_operand(a, "partition"), axis, "partition")
    _check_places(kth, x, d, "partition")
    return finish(ops.sort_p.bind(x, dimension=d, num_keys=1)[0])


@implements(np.argpartition, method="argpartition")
def argpartition(
    a: ArrayLike, kth: ArrayLike, axis: int | None = -1, kind: str = "introselect", order: Any = None
) -> Any:
    """The indices of the elements in the order of `partition`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.argpartition([3, 1, 2, 0], 1)
    Array([3, 1, 2, 0])
    """
    _check_options("argpartition", kind, order, None, _PARTITION_KINDS)
    x, d = along(_of_an_axis(array_operand(a, "argpartition")), axis, "argpartition")
    _check_places(kth, x, d, "argpartition")
    return finish(ops.argsort(x, d))


@implements(np.sort_complex)
def sort_complex(a: ArrayLike) -> Any:
    """Sort along the last axis as complex numbers: by the real part, then the imaginary one.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.sort_complex([2 - 1j, 1 + 0j, 2 - 3j])
    Array([1.+0.j, 2.-3.j, 2.-1.j])
    """
    x, d = along(array_operand(a, "sort_complex"), -1, "sort_complex")
    out = ops.sort_p.bind(x, dimension=d, num_keys=1)[0]
    dtype = dtype_of(x)
    if dtype.kind == "c":
        return finish(out)
    # As in NumPy: single precision for integers of up to 16 bits.
    narrow = dtype.kind in "iu" and dtype.itemsize <= 2
    return finish(ops.convert(out, np.dtype(np.complex64 if narrow else np.complex128)))


# --- methods that would change the array ------------------------------------------------------------------------


def _sort_method(a: Value, *args: PyTree, **options: Param) -> NoReturn:
    raise ImmutableArrayError("x.sort(): a traced value cannot be changed in place. Write x = np.sort(x)")


def _partition_method(a: Value, *args: PyTree, **options: Param) -> NoReturn:
    raise ImmutableArrayError(
        "x.partition(): a traced value cannot be changed in place. Write x = np.partition(x, kth)"
    )


operators.attribute["sort"] = _sort_method
operators.attribute["partition"] = _partition_method


_SIDES = {"left": "left", "right": "right", "l": "left", "r": "right"}


def places(a: Value, v: Value, side: str) -> Value:
    """The insertion indices of the numbers `v` in the sorted `a`."""
    a, v = common(a, v)
    v = v if isinstance(v, (Tracer, np.ndarray)) else np.asarray(v)
    return ops.searchsorted_p.bind(a, v, side=side)


@implements(np.searchsorted, method="searchsorted")
def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: Any = None, *, method: str | None = None
) -> Array:
    """The indices at which to insert numbers into a sorted array so that it stays sorted.

    Parameters
    ----------
    a : array_like, shape (n,)
        Sorted, unless `sorter` is passed.
    v : array_like, shape (*shape)
    side : {'left', 'right'}
        Whether to insert before or after equal elements.
    sorter : array_like of int, shape (n,), optional
        The order that sorts `a`, from `argsort`.
    method : str, optional
        Accepted for compatibility with JAX; it is always binary search.

    Returns
    -------
    Array of int64, shape (*shape)

    Raises
    ------
    ShapeError
        If `a` is not one-dimensional.
    ArgumentValueError
        If `side` is unknown.

    Notes
    -----
    NaN is larger than all numbers. The result has no derivative.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.searchsorted([1.0, 2.0, 3.0], [0.5, 2.0, 9.0])
    Array([0, 1, 3])
    """
    if not isinstance(side, str) or side not in _SIDES:
        raise ArgumentValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    x, numbers = array_operand(a, "searchsorted"), array_operand(v, "searchsorted", 1)
    if len(shape_of(x)) != 1:
        raise ShapeError(f"searchsorted: expected a sorted array with one axis, got shape {shape_of(x)}")
    if sorter is not None:
        order = array_operand(sorter, "searchsorted: sorter")
        if dtype_of(order).kind not in "iu":
            raise ArgumentError(f"searchsorted: sorter must be integers, got dtype {dtype_of(order)}")
        if shape_of(order) != shape_of(x):
            raise ShapeError(f"searchsorted: sorter of shape {shape_of(order)} for {shape_of(x)[0]} elements")
        x = ops.gather_p.bind(x, order, axes=(0,), mode="raise")
    return finish(places(x, numbers, _SIDES[side]))


def _direction(values: np.ndarray) -> int:
    """1 if edges increase, -1 if they decrease; NaN is ignored."""
    other = values[values != values[0]]
    rising = not other.size or values[0] < other[0]
    wrong = values[1:] < values[:-1] if rising else values[1:] > values[:-1]
    if wrong.any():
        raise ArgumentValueError("digitize: bins must be monotonically increasing or decreasing")
    return 1 if rising else -1


@implements(np.digitize)
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The index of the bin of each element.

    Parameters
    ----------
    x : array_like, shape (*shape)
    bins : array_like, shape (n,)
        Increasing or decreasing.
    right : bool
        Whether a bin includes its right edge instead of its left one.

    Returns
    -------
    Array of int64, shape (*shape)
        ``i`` with ``bins[i-1] <= x < bins[i]``; 0 and n beyond the edges.

    Raises
    ------
    ArgumentValueError
        If `bins` is known, and not monotonic.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.digitize([0.2, 6.4, 3.0], [0.0, 1.0, 2.5, 4.0])
    Array([1, 4, 3])
    """
    numbers, edges = array_operand(x, "digitize"), array_operand(bins, "digitize", 1)
    if dtype_of(numbers).kind == "c":
        raise ArgumentError("digitize: x may not be complex")
    if len(shape_of(edges)) != 1:
        raise ArgumentValueError(f"digitize: bins must have one axis, got shape {shape_of(edges)}")
    n = shape_of(edges)[0]
    if dtype_of(edges).kind == "c":
        raise ArgumentError("digitize: bins may not be complex")
    values = concrete(edges)
    side = "left" if right else "right"
    direction = 1 if n < 2 else 0 if values is None else _direction(values)
    if direction > 0:
        return finish(places(edges, numbers, side))
    reverse = ops.rev_p.bind(edges, dimensions=(0,))
    falling = ops.sub_p.bind(np.int64(n), places(reverse, numbers, side))
    if direction < 0:
        return finish(falling)
    rising = places(edges, numbers, side)
    first, last = (ops.element_along(edges, 0, i) for i in (0, n - 1))
    ascending = ops.broadcast_to(ops.ge_p.bind(last, first), shape_of(numbers))
    return finish(ops.select_p.bind(ascending, rising, falling))
