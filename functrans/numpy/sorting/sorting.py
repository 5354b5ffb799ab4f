"""Sorting: sort, argsort, lexsort, partition, argpartition, sort_complex."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

from ...core.errors import ArgumentError, ArgumentValueError, ImmutableArrayError, ShapeError
from ...core.trace import Tracer, operators
from ...primitives.axes import one_axis
from ...primitives.elementwise.arithmetic import convert
from ...primitives.operands import finish, operand
from ...primitives.sorting import sort as sorts
from ...primitives.structure.create import iota
from ...primitives.structure.linear import dtype_of, reshape_p, shape_of
from ...primitives.structure.shape import rev_p
from ..dispatch import along, array_operand, implements

_KINDS = ("quicksort", "mergesort", "heapsort", "stable")
_PARTITION_KINDS = ("introselect",)


def _check_options(name: str, kind: Any, order: Any, stable: Any, kinds: Sequence[str] = _KINDS) -> None:
    if order is not None:
        raise ArgumentValueError(
            f"{name}: order= names fields of a structured array; arrays of functrans have none"
        )
    if kind is not None and stable is not None:
        raise ArgumentValueError(f"{name}: give kind= or stable=, not both (every sort here is stable)")
    # As NumPy, which reads the first letter.
    if kind is not None and not (isinstance(kind, str) and kind[:1].lower() in [k[0] for k in kinds]):
        raise ArgumentValueError(f"{name}: kind must be one of {', '.join(map(repr, kinds))}, got {kind!r}")


def _of_an_axis(x: Any) -> Any:
    """A number as an array of one element, as NumPy takes it where it asks for an order."""
    return x if shape_of(x) else reshape_p.bind(x, shape=(1,))


@implements(np.sort)
def sort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: Any = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Any:
    """A sorted copy.

    Parameters
    ----------
    a : array_like, shape (*before, n, *behind)
    axis : int or None
        None sorts the flattened array.
    kind : {'quicksort', 'mergesort', 'heapsort', 'stable'}, optional
        Accepted; makes no difference.
    order : None
        Fields of structured arrays, which do not exist here.
    stable : bool, optional
        Accepted: the sort is stable in any case.
    descending : bool
        Largest first, NaN before all; equal elements keep their order. (The array API's; NumPy has it not.)

    Returns
    -------
    Array, shape (*before, n, *behind)
        Of the dtype of `a`.

    Raises
    ------
    AxisError
        If there is no such axis; a number has none (``axis=None`` takes one).

    Notes
    -----
    NaN comes last; complex numbers are ordered by their real part, then the imaginary one. The derivative takes
    tangents the way of the elements; at ties that of the stable order.

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
        x = rev_p.bind(x, dimensions=(d,))
    out = sorts.sort_p.bind(x, dimension=d, num_keys=1)[0]
    return finish(rev_p.bind(out, dimensions=(d,)) if descending else out)


@implements(np.argsort, method="argsort")
def argsort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: Any = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Any:
    """The places of the elements in sorted order, as int64; for the parameters see `sort`.

    Notes
    -----
    Always the stable order: equal elements keep theirs (NumPy's default leaves that open).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.argsort([3.0, 1.0, 2.0])
    Array([1, 2, 0])
    """
    _check_options("argsort", kind, order, stable)
    x, d = along(_of_an_axis(array_operand(a, "argsort")), axis, "argsort")
    if not descending:
        return finish(sorts.argsort(x, d))
    places = rev_p.bind(iota(shape_of(x), d), dimensions=(d,))
    x = rev_p.bind(x, dimensions=(d,))
    return finish(rev_p.bind(sorts.sort_p.bind(x, places, dimension=d, num_keys=1)[1], dimensions=(d,)))


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """The order by several keys: the last one first, where it is equal the one before it, and so on.

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
        If there is no key.
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
    order = sorts.sort_p.bind(*values[::-1], iota(shapes[0], d), dimension=d, num_keys=len(values))
    return finish(order[-1])


# --- partitions -----------------------------------------------------------------------------------------------


def _check_places(kth: Any, x: Any, axis: int, name: str) -> None:
    """Each of the places to divide at must exist, if there is anything to divide."""
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
def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    """A copy whose `kth` element stands where it would if sorted, smaller ones before it, larger ones behind.

    Parameters
    ----------
    a : array_like
    kth : int or sequence of int
    axis : int or None
        None: the flattened array.
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
    The two sides come sorted, which is one of the orders that NumPy allows.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.partition([3, 1, 2, 0], 1)
    Array([0, 1, 2, 3])
    """
    _check_options("partition", kind, order, None, _PARTITION_KINDS)
    x, d = along(array_operand(a, "partition"), axis, "partition")
    _check_places(kth, x, d, "partition")
    return finish(sorts.sort_p.bind(x, dimension=d, num_keys=1)[0])


@implements(np.argpartition, method="argpartition")
def argpartition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None
) -> Any:
    """The places of the elements in the order of `partition`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.argpartition([3, 1, 2, 0], 1)
    Array([3, 1, 2, 0])
    """
    _check_options("argpartition", kind, order, None, _PARTITION_KINDS)
    x, d = along(_of_an_axis(array_operand(a, "argpartition")), axis, "argpartition")
    _check_places(kth, x, d, "argpartition")
    return finish(sorts.argsort(x, d))


@implements(np.sort_complex)
def sort_complex(a: Any) -> Any:
    """Sorted along the last axis, as complex numbers: by the real part, then the imaginary one.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.sort_complex([2 - 1j, 1 + 0j, 2 - 3j])
    Array([1.+0.j, 2.-3.j, 2.-1.j])
    """
    x, d = along(array_operand(a, "sort_complex"), -1, "sort_complex")
    out = sorts.sort_p.bind(x, dimension=d, num_keys=1)[0]
    dtype = dtype_of(x)
    if dtype.kind == "c":
        return finish(out)
    # NumPy's choice: single precision for integers of up to 16 bits.
    narrow = dtype.kind in "iu" and dtype.itemsize <= 2
    return finish(convert(out, np.dtype(np.complex64 if narrow else np.complex128)))


# --- methods that would change the array ------------------------------------------------------------------------


def _sort_method(a: Any, *args: Any, **options: Any) -> NoReturn:
    raise ImmutableArrayError("x.sort(): a traced value cannot be changed in place. Write x = np.sort(x)")


def _partition_method(a: Any, *args: Any, **options: Any) -> NoReturn:
    raise ImmutableArrayError(
        "x.partition(): a traced value cannot be changed in place. Write x = np.partition(x, kth)"
    )


operators.method["sort"] = _sort_method
operators.method["partition"] = _partition_method
