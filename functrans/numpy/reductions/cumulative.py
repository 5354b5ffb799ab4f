"""Cumulative sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import BOOL, ArgumentValueError, Primitive, canonical, has_jax_semantics, is_inexact
from ...core.values import ArrayLike, AxisLike, DTypeLike, Value
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, refuse_out, shape_of
from ..dispatch import along, array_operand, implements
from .reductions import accumulator

__all__ = [
    "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "nancumprod", "nancumsum",
]  # fmt: skip


def _accumulated(
    name: str, x: Value, axis: AxisLike, dtype: DTypeLike, neutral: int, initial: bool = False
) -> Value:
    """The cumulative fold with neutral element 0 (sum) or 1 (product) of an array that is not weak."""
    own = dtype_of(x)
    if dtype is not None:
        to = canonical(dtype, f"{name}: dtype")
    else:
        to = own if has_jax_semantics() and own != BOOL else accumulator(own)
    x = ops.convert(x, to)
    x, d = along(x if shape_of(x) else ops.flat(x), axis, name)
    prim: Primitive = ops.cumprod_p if neutral else ops.cumsum_p
    if to == BOOL:
        prim = ops.cummin_p if neutral else ops.cummax_p
    out = prim.bind(x, axis=d, reverse=False)
    if initial:
        config = tuple([(int(e == d), 0, 0) for e in range(len(shape_of(out)))])
        out = ops.pad_p.bind(out, to.type(neutral), padding_config=config)
    return finish(out)


@implements(np.cumsum, method="cumsum")
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Value:
    """Cumulative sums along an axis.

    Parameters
    ----------
    a : array_like
    axis : int, optional
        By default the array is flattened first.
    dtype : dtype-like, optional
        The dtype to compute in. By default int64 or uint64 for booleans and small integers.
    out : None
        Not supported: arrays are immutable.

    Returns
    -------
    Array
        With the shape of `a`, or one-dimensional without `axis`.

    Raises
    ------
    AxisError
        If the axis is out of bounds.

    Notes
    -----
    Linear. The cotangent is summed from the other end.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.cumsum([1, 2, 3])
    Array([1, 3, 6])
    """
    refuse_out("cumsum", out)
    return _accumulated("cumsum", array_operand(a, "cumsum"), axis, dtype, 0)


@implements(np.cumprod, method="cumprod")
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Value | None:
    """Cumulative products along an axis; for the parameters see `cumsum`.

    Notes
    -----
    The derivative never divides: it is correct if elements are 0, to any order.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.cumprod([1, 2, 3])
    Array([1, 2, 6])
    """
    refuse_out("cumprod", out)
    return _accumulated("cumprod", array_operand(a, "cumprod"), axis, dtype, 1)


def _without_nan(x: Value, neutral: int) -> Value:
    dtype = dtype_of(x)
    return ops.select_p.bind(ops.is_nan(x), dtype.type(neutral), x) if is_inexact(dtype) else x


@implements(np.nancumsum)
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Any:
    """`cumsum` with NaN replaced by 0; the derivative in a NaN is 0.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nancumsum([1.0, fnp.nan, 3.0])
    Array([1., 1., 4.])
    """
    refuse_out("nancumsum", out)
    return _accumulated("nancumsum", _without_nan(array_operand(a, "nancumsum"), 0), axis, dtype, 0)


@implements(np.nancumprod)
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Any:
    """`cumprod` with NaN replaced by 1; the derivative in a NaN is 0.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nancumprod([2.0, fnp.nan, 3.0])
    Array([2., 2., 6.])
    """
    refuse_out("nancumprod", out)
    return _accumulated("nancumprod", _without_nan(array_operand(a, "nancumprod"), 1), axis, dtype, 1)


def _cumulative(
    name: str, x: Value, axis: AxisLike, dtype: DTypeLike, neutral: int, include_initial: bool
) -> Value:
    value = array_operand(x, name)
    if axis is None and len(shape_of(value)) > 1:
        raise ArgumentValueError(
            f"{name}: for an array of shape {shape_of(value)} the axis must be given: axis=0, ..."
        )
    return _accumulated(name, value, 0 if axis is None else axis, dtype, neutral, bool(include_initial))


@implements(*([np.cumulative_sum] if hasattr(np, "cumulative_sum") else []))
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike = None,
    out: None = None,
    include_initial: bool = False,
) -> Any:
    """`cumsum` as in the array API standard.

    Parameters
    ----------
    x : array_like
    axis : int, optional
        Optional if the array has only one.
    dtype : dtype-like, optional
        The dtype to compute in, see `cumsum`.
    out : None
        Not supported.
    include_initial : bool
        Whether to start with 0, so that the result is longer by one.

    Returns
    -------
    Array

    Raises
    ------
    ArgumentValueError
        If the array has several axes, and `axis` is not passed.
    AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.cumulative_sum(fnp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6])
    """
    refuse_out("cumulative_sum", out)
    return _cumulative("cumulative_sum", x, axis, dtype, 0, include_initial)


@implements(*([np.cumulative_prod] if hasattr(np, "cumulative_prod") else []))
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike = None,
    out: None = None,
    include_initial: bool = False,
) -> Any:
    """`cumprod` as in the array API standard; for the parameters see `cumulative_sum`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.cumulative_prod(fnp.asarray([2, 3]), include_initial=True)
    Array([1, 2, 6])
    """
    refuse_out("cumulative_prod", out)
    return _cumulative("cumulative_prod", x, axis, dtype, 1, include_initial)
