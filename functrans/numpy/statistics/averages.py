"""Means and spreads: mean, average, var, std, cov, corrcoef."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import (
    INT64,
    canonical,
    concrete,
    default_float,
    is_abstract,
    is_inexact,
    real_dtype,
    run_quietly,
)
from ...core.values import ArrayLike, AxisLike, DTypeLike, Value
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...primitives import ops, ufuncs
from ...primitives.ops import axes_or_all, common, finish, literal, operand, refuse_out, strong
from ...primitives.structure.linear import dtype_of, shape_of
from ..creation.filled import zeros
from ..dispatch import array_operand, implements
from ..elementwise import selection
from ..indexing.take import diagonal
from ..products import dot
from ..reductions import reductions
from ..reductions.reductions import masked, reduced
from ..shaping.joining import concatenate
from ..shaping.reshaping import atleast_2d, squeeze, transpose

__all__ = [
    "corrcoef", "cov",
]  # fmt: skip


def _floating(a: Value, dtype: DTypeLike, name: str) -> Any:
    """Convert the operand to the dtype in which its mean is computed: float64 for integers."""
    x = array_operand(a, name)
    if dtype is not None:
        return ops.convert(x, canonical(dtype, f"{name}: dtype"))
    return x if is_inexact(dtype_of(x)) else ops.convert(x, default_float(dtype_of(x)))


def _number(shape: tuple[int, ...], axis: AxisLike, name: str) -> int:
    axes = axes_or_all(axis, len(shape), name)
    return prod([shape[d] for d in axes])


def _count(x: Value, axis: AxisLike, keepdims: bool, where: ArrayLike, name: str) -> Value:
    """The number of elements of each mean: a number of the real dtype of `x`, or with a mask an array."""
    shape = shape_of(x)
    real = real_dtype(dtype_of(x))
    if where is True:
        return real.type(_number(shape, axis, name))
    mask = ops.broadcast_to(ops.truth(operand(where, f"{name}: where")), shape)
    return ops.convert(reduced(ops.reduce_sum_p, ops.convert(mask, INT64), axis, keepdims, name), real)


def _mean(x: Value, axis: AxisLike, keepdims: bool, where: ArrayLike, name: str) -> Value:
    total = reduced(ops.reduce_sum_p, masked(x, where, 0, name), axis, keepdims, name)
    if where is True:
        return ops.div_p.bind(total, literal(float(_number(shape_of(x), axis, name)), x))
    return ops.div_p.bind(total, ops.convert(_count(x, axis, keepdims, where, name), dtype_of(x)))


@implements(np.mean, method="mean")
def mean(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike = True,
) -> Array:
    """Arithmetic mean along axes.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional
        By default all.
    dtype : dtype-like, optional
        The dtype to compute in; by default float64 for integers, else the dtype of `a`.
    keepdims : bool
        Whether to keep reduced axes with extent 1.
    where : array_like of bool, optional
        The elements to use.

    Returns
    -------
    Array
        NaN if empty.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.mean([[1, 2], [3, 4]], axis=1)
    Array([1.5, 3.5])
    """
    refuse_out("mean", out)
    return finish(_mean(_floating(a, dtype, "mean"), axis, bool(keepdims), where, "mean"))


def _variance(
    x: Value, axis: AxisLike, ddof: ArrayLike, keepdims: bool, where: ArrayLike, mean: Value, name: str
) -> Value:
    center = (
        _mean(x, axis, True, where, name)
        if mean is None
        else ops.convert(array_operand(mean, name), dtype_of(x))
    )
    # Masked before the square, whose slope is infinite where the difference is.
    gap = masked(ops.sub_p.bind(x, center), where, 0, name)
    squares = ops.integer_pow_p.bind(ops.abs_p.bind(gap) if dtype_of(x).kind == "c" else gap, y=2)
    total = reduced(ops.reduce_sum_p, squares, axis, keepdims, name)
    real = dtype_of(total)
    if where is True:
        return ops.div_p.bind(total, literal(max(_number(shape_of(x), axis, name) - ddof, 0.0), total))
    divisor = ops.sub_p.bind(_count(x, axis, keepdims, where, name), real.type(ddof))
    return ops.div_p.bind(total, ops.max_p.bind(divisor, real.type(0)))


def degrees_less(ddof: ArrayLike, correction: Any, name: str) -> Any:
    """The correction of the number of elements, passed by either name."""
    if correction is None:
        return ddof
    if ddof != 0:
        raise ArgumentValueError(f"{name}: ddof and correction cannot both be passed: they mean the same")
    return correction


@implements(np.var, method="var")
def var(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike = True,
    mean: ArrayLike = None,
    correction: float | None = None,
) -> Array:
    """Variance along axes: the mean of the squared distances from the mean.

    Parameters
    ----------
    a : array_like
    axis, dtype, keepdims, where
        As for `mean`.
    ddof, correction : float
        Subtracted from the number of elements to get the divisor.
    mean : array_like, optional
        The mean, if already known (with reduced axes kept).

    Returns
    -------
    Array
        Real; NaN if the divisor is not positive.

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
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike = True,
    mean: ArrayLike = None,
    correction: float | None = None,
) -> Any:
    """Standard deviation along axes: the root of `var`, with the same parameters.

    Notes
    -----
    The derivative is infinite or NaN if the variance is 0; of a single element, it is 0.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.std([1.0, 3.0])
    Array(1.)
    """
    refuse_out("std", out)
    ddof = degrees_less(ddof, correction, "std")
    x = _floating(a, dtype, "std")
    variance = _variance(x, axis, ddof, bool(keepdims), where, mean, "std")
    return finish(root_of_variance(variance, x, mean))


def root_of_variance(variance: Value, x: ArrayLike, mean: ArrayLike) -> Value:
    """The standard deviation of an array; of single elements it is constant, where the root has no slope."""
    if mean is None and prod(shape_of(x)) == prod(shape_of(variance)) > 0:
        variance = ops.stop_gradient_p.bind(variance)
    return ops.sqrt_p.bind(variance)


@implements(np.average)
def average(
    a: ArrayLike,
    axis: AxisLike = None,
    weights: ArrayLike = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Weighted mean along axes.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional
        By default all.
    weights : array_like, optional
        With the shape of `a`, or with the axes `axis` in that order. By default all are equal.
    returned : bool
        Whether to return the sums of the weights, too.
    keepdims : bool
        Whether to keep reduced axes with extent 1.

    Returns
    -------
    Array, or a tuple of two

    Raises
    ------
    ShapeError
        If the weights do not match `a` or its axes.
    ArgumentError
        If the shape of the weights differs from that of `a`, and `axis` is not passed.

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
        total = ops.broadcast_to(_count(x, axis, bool(keepdims), True, "average"), shape_of(out))
        return (finish(out), finish(ops.convert(total, dtype_of(out)))) if returned else finish(out)
    w = array_operand(weights, "average", 2)
    if shape_of(w) != shape:
        axes = axes_or_all(axis, len(shape), "average")
        if axis is None:
            raise ArgumentError(
                f"average: weights of shape {shape_of(w)} for an array of shape {shape}: pass axis="
            )
        if shape_of(w) != tuple([shape[d] for d in axes]):
            raise ShapeError(
                f"average: weights of shape {shape_of(w)} match neither the shape {shape} of the array "
                f"nor axis {axis}"
            )
        order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        w = ops.transpose_p.bind(w, permutation=order)
        w = ops.reshape_p.bind(w, shape=tuple([shape[i] if i in axes else 1 for i in range(len(shape))]))
    x = x if is_inexact(dtype_of(x)) else ops.convert(x, default_float(dtype_of(x)))
    x, w = common(x, w)
    total = reduced(ops.reduce_sum_p, ops.broadcast_to(w, shape), axis, bool(keepdims), "average")
    out = ops.div_p.bind(
        reduced(ops.reduce_sum_p, ops.mul_p.bind(x, w), axis, bool(keepdims), "average"), total
    )
    return (finish(out), finish(total)) if returned else finish(out)


def _observations(m: ArrayLike, y: Value, rowvar: bool, dtype: DTypeLike, name: str) -> Any:
    """Arrange the variables as rows, in the dtype to compute in."""
    arrays = [array_operand(m, name, 0)] + ([] if y is None else [array_operand(y, name, 1)])
    for x in arrays:
        if len(shape_of(x)) > 2:
            raise ShapeError(f"{name}: expected at most 2 axes, got shape {shape_of(x)}")
    if dtype is not None:
        to = canonical(dtype, f"{name}: dtype")
    else:
        to = dtype_of(common(*arrays, np.float64(0))[0])
    rows: list[Any] = [atleast_2d(finish(strong(x, to))) for x in arrays]
    turned = [not rowvar and (i > 0 or len(shape_of(x)) != 1) for i, x in enumerate(arrays)]
    # NumPy transposes every matrix except a second one with a single row.
    rows = [
        transpose(r) if t and not (i and shape_of(r)[0] == 1) else r
        for i, (r, t) in enumerate(zip(rows, turned))
    ]
    return rows[0] if y is None else concatenate(rows, 0)


def _weights(w: ArrayLike, count: int, name: str, integer: bool) -> Any:
    x = array_operand(w, "cov")
    if len(shape_of(x)) != 1:
        raise ArgumentError(f"cov: cannot handle multidimensional {name} (shape {shape_of(x)})")
    if shape_of(x)[0] != count:
        raise ArgumentError(f"cov: incompatible numbers of samples and {name}: {count} and {shape_of(x)[0]}")
    if not is_abstract(x):
        numbers = concrete(x)
        if integer and not np.all(numbers == np.around(numbers)):
            raise ArgumentError("cov: fweights must be integer")
        if np.any(numbers < 0):
            raise ArgumentValueError(f"cov: {name} cannot be negative")
    return finish(strong(x, default_float()))


@implements(np.cov)
def cov(
    m: ArrayLike,
    y: ArrayLike = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: float | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: DTypeLike = None,
) -> Array:
    """Covariance matrix.

    Parameters
    ----------
    m : array_like, shape (variables, observations) or (observations,)
    y : array_like, optional
        More variables.
    rowvar : bool
        Whether variables are rows; else they are columns.
    bias : bool
        Whether to divide by the number of observations, not by one less.
    ddof : int, optional
        Subtracted from the number of observations; overrides `bias`.
    fweights : array_like of int, shape (observations,), optional
        The number of times each observation occurred.
    aweights : array_like, shape (observations,), optional
        The relative weights of the observations.
    dtype : dtype-like, optional
        The dtype to compute in; by default at least float64.

    Returns
    -------
    Array, shape (variables, variables), or () for a single variable

    Raises
    ------
    ArgumentValueError
        If `ddof` is not an integer, or a weight is negative (if known).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    Array([[ 1., -1.],
           [-1.,  1.]])
    """
    if ddof is not None and ddof != int(ddof):
        raise ArgumentValueError(f"cov: ddof must be integer, got {ddof!r}")
    x: ArrayLike = _observations(m, y, rowvar, dtype, "cov")
    if not shape_of(x)[0]:
        return zeros((0, 0))
    count = shape_of(x)[1]
    less = operator.index(int(ddof)) if ddof is not None else 0 if bias else 1
    w: ArrayLike = None
    if fweights is not None:
        w = _weights(fweights, count, "fweights", integer=True)
    if aweights is not None:
        a: ArrayLike = _weights(aweights, count, "aweights", integer=False)
        w = a if w is None else w * a
    mean, total = _weighted_mean(x, w, count)
    if w is None:
        factor: Any = np.float64(max(count - less, 0))
    elif less == 0:
        factor = total
    elif aweights is None:
        factor = ufuncs.maximum(total - less, 0.0)
    else:
        factor = ufuncs.maximum(total - less * reductions.sum(w * a) / total, 0.0)
    # They lie in memory as the given ones do: a product reads a transposed matrix as it is.
    centred = transpose(x - mean) if rowvar else transpose(x) - transpose(mean)
    weighted = centred if w is None else centred * w[:, None]

    def scaled() -> Value:
        scale = ufuncs.divide(1.0, factor).astype(real_dtype(centred.dtype))
        return dot(transpose(centred), ufuncs.conjugate(weighted)) * scale

    return squeeze(run_quietly(scaled, divide="ignore", invalid="ignore"))


def _weighted_mean(x: Value, w: Value, count: int) -> tuple[Any, Any]:
    """The mean of each row as a column, and the sum of the weights."""
    if not count:
        return reductions.sum(x, 1, keepdims=True) * np.nan, 0.0
    if w is None:
        return average(x, 1, keepdims=True), float(count)
    return average(x, 1, w, keepdims=True), reductions.sum(w)


@implements(np.corrcoef)
def corrcoef(x: ArrayLike, y: ArrayLike = None, rowvar: bool = True, *, dtype: DTypeLike = None) -> Any:
    """Correlation coefficients of variables (Pearson's).

    Parameters
    ----------
    x, y, rowvar, dtype
        As `m`, `y`, `rowvar` and `dtype` of `cov`.

    Returns
    -------
    Array, shape (variables, variables), or () for a single variable
        Clipped to [-1, 1], since rounding may leave this range.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.corrcoef([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    Array([[ 1., -1.],
           [-1.,  1.]])
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.shape:
        return c / c
    deviation = ufuncs.sqrt(selection.real(diagonal(c)))
    c = c / deviation[:, None] / deviation[None, :]
    if c.dtype.kind == "c":
        real = selection.clip(selection.real(c), -1, 1)
        return real + 1j * selection.clip(selection.imag(c), -1, 1)
    return selection.clip(c, -1, 1)
