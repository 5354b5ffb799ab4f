"""mean, var, std, average."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...core.dtypes import FLOAT64, INT64, canonical, is_inexact, real_dtype
from ...core.errors import ArgumentError, ArgumentValueError, ShapeError
from ...primitives.axes import axes_or_all
from ...primitives.elementwise.arithmetic import convert, div_p, max_p, mul_p, sub_p
from ...primitives.elementwise.complexes import abs_p
from ...primitives.elementwise.composed import truth
from ...primitives.elementwise.exp_log import integer_pow_p, sqrt_p
from ...primitives.families import literal
from ...primitives.operands import finish, operand
from ...primitives.promotion import common, refuse_out
from ...primitives.structure.linear import (
    broadcast_to,
    dtype_of,
    reduce_sum_p,
    reshape_p,
    shape_of,
    transpose_p,
)
from ..dispatch import array_operand, implements
from ..reductions.reductions import masked, reduced


def _floating(a: Any, dtype: Any, name: str) -> Any:
    """The operand in the dtype in which a mean is taken: float64 for integers."""
    x = array_operand(a, name)
    if dtype is not None:
        return convert(x, canonical(dtype, f"{name}: dtype"))
    return x if dtype_of(x).kind in "fc" else convert(x, FLOAT64)


def _number(shape: tuple[int, ...], axis: Any, name: str) -> int:
    axes = axes_or_all(axis, len(shape), name)
    return prod([shape[d] for d in axes])


def _count(x: Any, axis: Any, keepdims: bool, where: Any, name: str) -> Any:
    """How many elements enter each mean: a number of the real dtype of `x`, or an array with a mask."""
    shape = shape_of(x)
    real = real_dtype(dtype_of(x))
    if where is True:
        return real.type(_number(shape, axis, name))
    mask = broadcast_to(truth(operand(where, f"{name}: where")), shape)
    return convert(reduced(reduce_sum_p, convert(mask, INT64), axis, keepdims, name), real)


def _mean(x: Any, axis: Any, keepdims: bool, where: Any, name: str) -> Any:
    total = reduced(reduce_sum_p, masked(x, where, 0, name), axis, keepdims, name)
    if where is True:
        return div_p.bind(total, literal(float(_number(shape_of(x), axis, name)), x))
    return div_p.bind(total, convert(_count(x, axis, keepdims, where, name), dtype_of(x)))


@implements(np.mean, method="mean")
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Any:
    """Arithmetic mean along axes.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional
        By default all.
    dtype : dtype-like, optional
        What to compute in; float64 for integers, else the dtype of `a`.
    keepdims : bool
        Keep reduced axes with extent 1.
    where : array_like of bool, optional
        Only these elements count.

    Returns
    -------
    Array
        NaN of nothing.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.mean([[1, 2], [3, 4]], axis=1)
    Array([1.5, 3.5])
    """
    refuse_out("mean", out)
    return finish(_mean(_floating(a, dtype, "mean"), axis, bool(keepdims), where, "mean"))


def _variance(x: Any, axis: Any, ddof: Any, keepdims: bool, where: Any, mean: Any, name: str) -> Any:
    center = (
        _mean(x, axis, True, where, name) if mean is None else convert(array_operand(mean, name), dtype_of(x))
    )
    gap = masked(
        sub_p.bind(x, center), where, 0, name
    )  # before the squares: the slope of an infinite one is infinite
    squares = integer_pow_p.bind(abs_p.bind(gap) if dtype_of(x).kind == "c" else gap, y=2)
    total = reduced(reduce_sum_p, squares, axis, keepdims, name)
    real = dtype_of(total)
    if where is True:
        return div_p.bind(total, literal(max(_number(shape_of(x), axis, name) - ddof, 0.0), total))
    divisor = sub_p.bind(_count(x, axis, keepdims, where, name), real.type(ddof))
    return div_p.bind(total, max_p.bind(divisor, real.type(0)))


def degrees_less(ddof: Any, correction: Any, name: str) -> Any:
    """What is subtracted from the number of elements, by whichever name it was given."""
    if correction is None:
        return ddof
    if ddof != 0:
        raise ArgumentValueError(
            f"{name}: ddof and correction cannot be given both: they are two names of one thing"
        )
    return correction


@implements(np.var, method="var")
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    """Variance along axes: the mean of the squared distances from the mean.

    Parameters
    ----------
    a : array_like
    axis, dtype, keepdims, where
        As for `mean`.
    ddof, correction : float
        The divisor is the number of elements less this.
    mean : array_like, optional
        The mean, if it is known already (with reduced axes kept).

    Returns
    -------
    Array
        Real; NaN where nothing is left to divide by.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.var([1.0, 2.0, 3.0, 4.0])
    Array(1.25)
    """
    refuse_out("var", out)
    ddof = degrees_less(ddof, correction, "var")
    return finish(_variance(_floating(a, dtype, "var"), axis, ddof, bool(keepdims), where, mean, "var"))


@implements(np.std, method="std")
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    """Standard deviation along axes: the root of `var`, whose parameters it has.

    Notes
    -----
    The derivative is infinite or NaN where the variance is 0.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.std([1.0, 3.0])
    Array(1.)
    """
    refuse_out("std", out)
    ddof = degrees_less(ddof, correction, "std")
    variance = _variance(_floating(a, dtype, "std"), axis, ddof, bool(keepdims), where, mean, "std")
    return finish(sqrt_p.bind(variance))


@implements(np.average)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """Weighted mean along axes.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional
        By default all.
    weights : array_like, optional
        Of the shape of `a`, or with the axes `axis` in that order. By default all are equal.
    returned : bool
        Return also the sums of the weights.
    keepdims : bool
        Keep reduced axes with extent 1.

    Returns
    -------
    Array, or a tuple of two

    Raises
    ------
    ShapeError
        If the weights fit neither `a` nor its axis.
    ArgumentError
        If they have another shape than `a`, and no `axis` is given.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.average([1.0, 2.0, 4.0], weights=[1, 1, 2])
    Array(2.75)
    """
    x = array_operand(a, "average")
    shape = shape_of(x)
    if weights is None:
        x = _floating(x, None, "average")
        out = _mean(x, axis, bool(keepdims), True, "average")
        total = broadcast_to(_count(x, axis, bool(keepdims), True, "average"), shape_of(out))
        return (finish(out), finish(convert(total, dtype_of(out)))) if returned else finish(out)
    w = array_operand(weights, "average", 2)
    if shape_of(w) != shape:
        axes = axes_or_all(axis, len(shape), "average")
        if axis is None:
            raise ArgumentError(
                f"average: weights of shape {shape_of(w)} for an array of shape {shape}: say along which axis"
            )
        if shape_of(w) != tuple([shape[d] for d in axes]):
            raise ShapeError(
                f"average: weights of shape {shape_of(w)} fit neither an array of shape {shape} "
                f"nor axis {axis}"
            )
        order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        w = transpose_p.bind(w, permutation=order)
        w = reshape_p.bind(w, shape=tuple([shape[i] if i in axes else 1 for i in range(len(shape))]))
    x = x if is_inexact(dtype_of(x)) else convert(x, FLOAT64)
    x, w = common(x, w)
    total = reduced(reduce_sum_p, broadcast_to(w, shape), axis, bool(keepdims), "average")
    out = div_p.bind(reduced(reduce_sum_p, mul_p.bind(x, w), axis, bool(keepdims), "average"), total)
    return (finish(out), finish(total)) if returned else finish(out)
