"""Sorting: sort, sort_key_val, top_k, approx_max_k, approx_min_k."""

from __future__ import annotations

import operator as _operator
from typing import Any

import numpy as np

from ..core import ArgumentError, ArgumentValueError, DtypeError, ShapeError, Tracer, is_inexact
from ..core.dtypes import INT32
from ..core.values import ArrayLike, PyTree, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..numpy.indexing.take import take_along_axis
from ..primitives import ops
from ..primitives.ops import finish, one_axis, shape_of

__all__ = ["approx_max_k", "approx_min_k", "sort", "sort_key_val", "top_k"]


@checked
def sort(operand: ArrayLike, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> PyTree:
    """Sort along an axis; several arrays are permuted alike, ordered by the first `num_keys` of them.

    Parameters
    ----------
    operand : array_like, or sequence of array_like of one shape
    dimension : int
    is_stable : bool
        Accepted, without effect; the sort is always stable.
    num_keys : int
        The number of arrays to sort by: ties in the first are ordered by the second, and so on.

    Returns
    -------
    Array, or tuple of Array

    Raises
    ------
    ShapeError
        If the arrays have different shapes.
    ArgumentValueError
        If there are fewer arrays than keys.

    Notes
    -----
    NaN comes last; -0.0 and 0.0 are equal; complex numbers are ordered by their real part, then the imaginary one.
    Tangents are permuted like their elements.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.sort((np.array([2, 1, 2]), np.array([1.0, 2.0, 0.0])), num_keys=2)
    (Array([1, 2, 2]), Array([2., 0., 1.]))
    """
    many = isinstance(operand, (list, tuple))
    given = list(operand) if many else [operand]
    if not given:
        raise ArgumentError("lax.sort: expected at least one array")
    values = [array_operand(x, "lax.sort", i) for i, x in enumerate(given)]
    shapes = [shape_of(v) for v in values]
    if len(set(shapes)) > 1:
        raise ShapeError(f"lax.sort: arrays have different shapes ({', '.join(map(str, shapes))})")
    keys = _operator.index(num_keys)
    if not 1 <= keys <= len(values):
        raise ArgumentValueError(f"lax.sort: num_keys must be from 1 to {len(values)}, got {keys}")
    d = one_axis(dimension, len(shapes[0]), "lax.sort")
    outs = tuple([finish(y) for y in ops.sort_p.bind(*values, dimension=d, num_keys=keys)])
    return outs if many else outs[0]


@checked
def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Value, Value]:
    """Sort keys along an axis, and permute values alike.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.sort_key_val(np.array([3, 1, 2]), np.array([0.0, 1.0, 2.0]))
    (Array([1, 2, 3]), Array([1., 2., 0.]))
    """
    first, second = sort((keys, values), dimension, is_stable)
    return first, second


@checked
def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Value, Value]:
    """The `k` largest elements along an axis, largest first, and their indices.

    Parameters
    ----------
    operand : array_like, shape (*before, n, *after)
    k : int
        At most n.
    axis : int

    Returns
    -------
    values : Array, shape (*before, k, *after)
    indices : Array of int32 of the same shape

    Raises
    ------
    ArgumentValueError
        If `k` is negative or larger than n.

    Notes
    -----
    NaN counts as largest; equal elements keep their order. The cost is n for `k` up to 32, and that of a sort above.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.top_k(np.array([1.0, 3.0, 2.0]), 2)
    (Array([3., 2.]), Array([1, 2], dtype=int32))
    """
    x = array_operand(operand, "lax.top_k")
    ndim = len(shape_of(x))
    d = one_axis(axis, ndim, "lax.top_k")
    if isinstance(k, Tracer) or not isinstance(k, (int, np.integer)):
        k = _operator.index(k)
    n = shape_of(x)[d]
    if not 0 <= k <= n:
        raise ArgumentValueError(f"lax.top_k: k must be from 0 to {n}, the extent of axis {d}, got {k}")
    values, places = ops.top_k(ops.move_axis(x, d, ndim - 1), int(k))
    places = ops.convert(places, INT32)
    return finish(ops.move_axis(values, ndim - 1, d)), finish(ops.move_axis(places, ndim - 1, d))


@checked
def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Value, Value]:
    """The `k` largest elements along an axis, largest first, and their indices: exactly, as JAX's on a CPU.

    Parameters
    ----------
    operand : array_like of float, shape (*before, n, *after)
    k : int
        From 1 to n.
    reduction_dimension : int
        The axis.
    recall_target : float
        From above 0 to 1. Without effect: all of the largest elements are found.
    reduction_input_size_override : int
        -1, or at least n. Without effect.
    aggregate_to_topk : bool
        If False, all n elements are returned, in the same order.

    Returns
    -------
    values : Array, shape (*before, k, *after)
    indices : Array of int32 of the same shape

    Raises
    ------
    DtypeError
        If `operand` is not of real floating-point numbers.
    AxisError
        If the axis does not exist.
    ArgumentValueError
        If `k`, `recall_target` or `reduction_input_size_override` is out of range.

    Notes
    -----
    NaN counts as largest; equal elements keep their order. The cost is that of `top_k`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.approx_max_k(np.array([1.0, 3.0, 2.0]), 2)
    (Array([3., 2.]), Array([1, 2], dtype=int32))
    """
    name, override = "lax.approx_max_k", reduction_input_size_override
    x, k, d = _approximated(name, operand, k, reduction_dimension, recall_target, override, aggregate_to_topk)
    return top_k(finish(x), k, axis=d)


@checked
def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Value, Value]:
    """The `k` smallest elements along an axis, smallest first, and their indices: exactly, as JAX's on a CPU.

    Parameters
    ----------
    operand : array_like of float, shape (*before, n, *after)
    k : int
        From 1 to n.
    reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk
        As for `approx_max_k`.

    Returns
    -------
    values : Array, shape (*before, k, *after)
    indices : Array of int32 of the same shape

    Raises
    ------
    DtypeError, AxisError, ArgumentValueError
        As for `approx_max_k`.

    Notes
    -----
    NaN counts as infinity; equal elements keep their order. The cost is that of `top_k`.

    Examples
    --------
    The nearest two of some points:

    >>> from functrans import lax
    >>> import numpy as np
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])
    >>> lax.approx_min_k(np.sum((points - np.array([1.0, 2.0])) ** 2, axis=1), 2)
    (Array([1., 5.]), Array([2, 0], dtype=int32))
    """
    name, override = "lax.approx_min_k", reduction_input_size_override
    x, k, d = _approximated(name, operand, k, reduction_dimension, recall_target, override, aggregate_to_topk)
    lowest = ops.broadcast_to(np.asarray(-np.inf, x.dtype), shape_of(x))
    keys = ops.select_p.bind(ops.ne_p.bind(x, x), lowest, ops.neg_p.bind(x))
    _, places = top_k(finish(keys), k, axis=d)
    return take_along_axis(finish(x), places, d, mode="promise_in_bounds"), places


def _approximated(
    name: str, operand: Value, k: ArrayLike, axis: int, recall: float, override: int, aggregated: bool
) -> tuple[Any, int, int]:
    """The operand, the number of elements to return, and the axis."""
    x, k = array_operand(operand, name), _operator.index(k)
    if not is_inexact(x.dtype) or x.dtype.kind == "c":
        raise DtypeError(
            f"{name}: operand must be of real floating-point numbers, got dtype {x.dtype}; use lax.top_k"
        )
    d = one_axis(axis, len(shape_of(x)), name)
    n = shape_of(x)[d]
    if not 1 <= k <= n:
        raise ArgumentValueError(f"{name}: k must be from 1 to {n}, the extent of axis {d}, got {k}")
    if not 0.0 < recall <= 1.0:
        raise ArgumentValueError(f"{name}: recall_target must be above 0 and at most 1, got {recall!r}")
    if override != -1 and override < n:
        raise ArgumentValueError(
            f"{name}: reduction_input_size_override must be -1 or at least {n}, the extent of axis {d}, got {override}"
        )
    return x, k if aggregated else n, d
