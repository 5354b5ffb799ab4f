"""Covariance and correlation of variables."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...core.context import run_quietly
from ...core.dtypes import FLOAT64, canonical, real_dtype
from ...core.errors import ArgumentError, ArgumentValueError, ShapeError
from ...core.trace import concrete, is_abstract
from ...primitives import ufuncs
from ...primitives.operands import finish, strong
from ...primitives.promotion import common
from ...primitives.structure.linear import dtype_of, shape_of
from ..creation.filled import zeros
from ..dispatch import array_operand, implements
from ..elementwise import selection
from ..indexing.take import diagonal
from ..products import dot
from ..reductions import reductions
from ..shaping.joining import concatenate
from ..shaping.reshaping import atleast_2d, squeeze, transpose
from .averages import average

__all__ = ["corrcoef", "cov"]


def _observations(m: Any, y: Any, rowvar: bool, dtype: Any, name: str) -> Any:
    """The variables as rows, in the dtype to compute in."""
    arrays = [array_operand(m, name, 0)] + ([] if y is None else [array_operand(y, name, 1)])
    for x in arrays:
        if len(shape_of(x)) > 2:
            raise ShapeError(f"{name}: want at most 2 axes, got shape {shape_of(x)}")
    if dtype is not None:
        to = canonical(dtype, f"{name}: dtype")
    else:
        to = dtype_of(common(*arrays, np.float64(0))[0])
    rows: list[Any] = [atleast_2d(finish(strong(x, to))) for x in arrays]
    turned = [not rowvar and (i > 0 or len(shape_of(x)) != 1) for i, x in enumerate(arrays)]
    # NumPy turns every matrix but a second of a single row.
    rows = [
        transpose(r) if t and not (i and shape_of(r)[0] == 1) else r
        for i, (r, t) in enumerate(zip(rows, turned))
    ]
    return rows[0] if y is None else concatenate(rows, 0)


def _weights(w: Any, count: int, name: str, integer: bool) -> Any:
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
    return finish(strong(x, FLOAT64))


@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: float | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """Covariance matrix.

    Parameters
    ----------
    m : array_like, shape (variables, observations) or (observations,)
    y : array_like, optional
        More variables.
    rowvar : bool
        Whether variables are rows; else they are columns.
    bias : bool
        Divide by the number of observations, not by one less.
    ddof : int, optional
        What is subtracted from the number of observations, whatever `bias` says.
    fweights : array_like of int, shape (observations,), optional
        How often each was observed.
    aweights : array_like, shape (observations,), optional
        How much each counts.
    dtype : dtype-like, optional
        What to compute in; at least float64 by default.

    Returns
    -------
    Array, shape (variables, variables), or () of a single variable

    Raises
    ------
    ArgumentValueError
        If `ddof` is no integer, or a weight is negative (where that is known).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    Array([[ 1., -1.],
           [-1.,  1.]])
    """
    if ddof is not None and ddof != int(ddof):
        raise ArgumentValueError(f"cov: ddof must be integer, got {ddof!r}")
    x: Any = _observations(m, y, rowvar, dtype, "cov")
    if not shape_of(x)[0]:
        return zeros((0, 0))
    count = shape_of(x)[1]
    less = operator.index(int(ddof)) if ddof is not None else 0 if bias else 1
    w: Any = None
    if fweights is not None:
        w = _weights(fweights, count, "fweights", integer=True)
    if aweights is not None:
        a: Any = _weights(aweights, count, "aweights", integer=False)
        w = a if w is None else w * a
    mean, total = _mean(x, w, count)
    if w is None:
        factor: Any = np.float64(max(count - less, 0))
    elif less == 0:
        factor = total
    elif aweights is None:
        factor = ufuncs.maximum(total - less, 0.0)
    else:
        factor = ufuncs.maximum(total - less * reductions.sum(w * a) / total, 0.0)
    x = x - mean
    weighted = x if w is None else x * w

    def scaled() -> Any:
        scale = ufuncs.divide(1.0, factor).astype(real_dtype(x.dtype))
        return dot(x, ufuncs.conjugate(transpose(weighted))) * scale

    return squeeze(run_quietly(scaled, divide="ignore", invalid="ignore"))


def _mean(x: Any, w: Any, count: int) -> tuple[Any, Any]:
    """The mean of each row as a column, and the sum of the weights."""
    if not count:
        return reductions.sum(x, 1, keepdims=True) * np.nan, 0.0
    if w is None:
        return average(x, 1, keepdims=True), float(count)
    return average(x, 1, w, keepdims=True), reductions.sum(w)


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Correlation coefficients of variables (Pearson's).

    Parameters
    ----------
    x, y, rowvar, dtype
        As `m`, `y`, `rowvar` and `dtype` of `cov`.

    Returns
    -------
    Array, shape (variables, variables), or () of a single variable
        Clipped to [-1, 1], which rounding may leave.

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
