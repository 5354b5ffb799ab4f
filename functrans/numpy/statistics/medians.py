"""Medians, with and without NaN; the arrangement of lanes that quantiles share."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...core import is_inexact
from ...core.dtypes import INT64
from ...core.jax_dtypes import default_float
from ...core.values import ArrayLike, AxisLike, Index, Value
from ...primitives import ops
from ...primitives.ops import axes_or_all, dtype_of, finish, literal, refuse_out, shape_of
from ...runtime.records import NamedTuple
from ..dispatch import NO_VALUE, array_operand, given, implements


class Lanes(NamedTuple):
    """The data with the reduced axes merged into the last one, and the shape of the result (after the axes of `q`)."""

    x: ArrayLike
    shape: tuple[int, ...]
    axes: tuple[int, ...]


def lanes_of(x: Value, axis: AxisLike, keepdims: Any, name: str) -> Lanes:
    """Move the reduced axes of an array into lanes."""
    shape = shape_of(x)
    axes = axes_or_all(axis, len(shape), name)
    keep = bool(given(keepdims, False))
    result = tuple([1 if d in axes else n for d, n in enumerate(shape) if keep or d not in axes])
    return Lanes(axes_last(x, axes), result, axes)


def axes_last(x: Value, axes: tuple[int, ...]) -> Value:
    """Merge some axes into one, the last."""
    shape = shape_of(x)
    remaining = [d for d in range(len(shape)) if d not in axes]
    order = (*remaining, *sorted(axes))
    if order != tuple(range(len(shape))):
        x = ops.transpose_p.bind(x, permutation=order)
    return ops.reshape_p.bind(x, shape=(*[shape[d] for d in remaining], prod([shape[d] for d in axes])))


def sorted_lanes(x: Value) -> Value:
    """Sort each row."""
    return ops.sort_p.bind(x, dimension=len(shape_of(x)) - 1, num_keys=1)[0]


def last_element(x: Value) -> Value:
    """The last element of each row."""
    shape = shape_of(x)
    return ops.element_along(x, len(shape) - 1, shape[-1] - 1)


def count_numbers(x: Value) -> Value:
    """The number of elements of each row that are not NaN."""
    ones = ops.convert(ops.eq_p.bind(x, x), INT64)
    return ops.reduce_sum_p.bind(ones, axes=(len(shape_of(x)) - 1,))


def pick(x: Value, index: Index, lead: int) -> Value:
    """Take elements of rows. An index has `lead` axes in front, then those of the rows, or none."""
    shape = shape_of(x)
    last = len(shape) - 1
    if len(shape_of(index)) == lead:
        return ops.gather_p.bind(x, index, axes=(last,), mode="promise_in_bounds")
    common = shape_of(index)
    rows = [ops.iota(common, lead + d) for d in range(last)]
    return ops.gather_p.bind(x, *rows, index, axes=tuple(range(last + 1)), mode="promise_in_bounds")


def spread_lead(value: Value, lead: tuple[int, ...]) -> Value:
    """Repeat a value for each row along leading axes."""
    shape = shape_of(value)
    axes = tuple(range(len(lead), len(lead) + len(shape)))
    return ops.broadcast_in_dim_p.bind(value, shape=lead + shape, broadcast_dimensions=axes)


def _median(name: str, a: Value, axis: AxisLike, out: ArrayLike, keepdims: Any, skip: bool) -> Value:
    refuse_out(name, out)
    x = array_operand(a, name)
    if dtype_of(x).kind in "biu":
        x, skip = ops.convert(x, default_float(dtype_of(x))), False
    lanes = lanes_of(x, axis, keepdims, name)
    rows, length = shape_of(lanes.x)[:-1], shape_of(lanes.x)[-1]
    if not length:
        return finish(ops.full(lanes.shape, np.nan, dtype_of(x)))
    ordered = sorted_lanes(lanes.x)
    if skip:
        n = count_numbers(ordered)
        upper = ops.shift_right_p.bind(n, np.int64(1))
        before = ops.sub_p.bind(n, np.int64(1))
        lower = ops.max_p.bind(ops.sub_p.bind(before, upper), np.int64(0))  # (n - 1) // 2
        a_, b = pick(ordered, lower, 0), pick(ordered, upper, 0)
        single = ops.eq_p.bind(lower, upper)
    else:
        low, high = (length - 1) // 2, length // 2
        a_, b = (pick(ordered, np.asarray(i), 0) for i in (low, high))
        single = ops.full(rows, low == high, np.dtype(bool))
    both = ops.div_p.bind(ops.add_p.bind(a_, b), literal(2.0, a_))
    median = ops.select_p.bind(single, b, both)
    if not skip and is_inexact(dtype_of(x)):
        witness = last_element(ordered)
        median = ops.select_p.bind(ops.is_nan(witness), witness, median)
    return finish(ops.reshape_p.bind(median, shape=lanes.shape))


@implements(np.median)
def median(
    a: ArrayLike,
    axis: AxisLike = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Value:
    """The median: the middle one of the sorted numbers, or the mean of the two in the middle.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional
        By default all.
    overwrite_input : bool
        Accepted, without effect; inputs are never overwritten.
    keepdims : bool
        Whether to keep the axes with extent 1.

    Returns
    -------
    Array
        Floats; NaN if any element is NaN, or if empty.

    Notes
    -----
    The derivative goes to the one or two numbers in the middle; ties follow the stable order.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.median([4.0, 1.0, 2.0, 9.0])
    Array(3.)
    """
    return _median("median", a, axis, out, keepdims, False)


@implements(np.nanmedian)
def nanmedian(
    a: ArrayLike,
    axis: AxisLike = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: ArrayLike = NO_VALUE,
) -> Value:
    """`median` ignoring NaN; NaN if all elements are NaN.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nanmedian([4.0, fnp.nan, 2.0])
    Array(3.)
    """
    return _median("nanmedian", a, axis, out, keepdims, True)
