"""Ranks and summary statistics of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as fnp
from ...arrays.array import Array
from ...core import ArgumentValueError, DtypeError, concrete, is_float, quietly
from ...core.jax_dtypes import default_float
from ...core.values import ArrayLike, Value
from ...frontend.checked import checked
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, shape_of
from ...runtime.records import NamedTuple

__all__ = ["kurtosis", "mode", "rankdata", "sem", "skew", "zscore"]


class ModeResult(NamedTuple):
    """The most common value and how often it occurs."""

    mode: Any
    count: Any


def _sample(name: str, a: Value, axis: int | None, nan_policy: str) -> tuple[Any, int, Any]:
    """The sample, flat if `axis` is None; the axis; and where it is NaN (None where it cannot be)."""
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ArgumentValueError(
            f"{name}: nan_policy must be 'propagate', 'omit' or 'raise', got {nan_policy!r}"
        )
    x = ops.operand(a, name)
    if dtype_of(x).kind == "c":
        raise DtypeError(f"{name}: a is complex; take its real part, or its absolute value")
    x = ops.strong(x, dtype_of(x))
    if axis is None or not shape_of(x):
        x, axis = ops.flat(x), 0
    axis = ops.one_axis(axis, len(shape_of(x)), name)
    if not is_float(dtype_of(x)):
        return x, axis, None
    bad = np.isnan(x)
    if nan_policy == "raise":
        known = concrete(bad)
        if known is None:
            raise ArgumentValueError(
                f"{name}: nan_policy='raise' depends on values, unknown while tracing: write 'propagate', and "
                "look for NaN in the result"
            )
        if known.any():
            raise ArgumentValueError(f"{name}: a contains NaN, and nan_policy is 'raise'")
    return x, axis, bad


def _runs(x: Value, axis: int) -> tuple[Any, Any, Any]:
    """Of a sorted sample, along an axis: the first and last position of equal values, and where a value is new.

    NaN counts as equal to NaN.
    """
    n = shape_of(x)[axis]
    left, right = fnp.take(x, np.arange(n - 1), axis=axis), fnp.take(x, np.arange(1, n), axis=axis)
    new = (left != right) & ~((left != left) & (right != right))
    edge = np.ones((*shape_of(x)[:axis], 1, *shape_of(x)[axis + 1 :]), bool)
    index = np.arange(n).reshape(-1, *[1] * (len(shape_of(x)) - axis - 1))
    start, stop = np.concatenate([edge, new], axis=axis), np.concatenate([new, edge], axis=axis)
    first = ops.cummax_p.bind(np.where(start, index, 0), axis=axis, reverse=False)
    last = ops.cummin_p.bind(np.where(stop, index, n - 1), axis=axis, reverse=True)
    return first, last, start


_RANKS = {
    "average": lambda first, last, start, axis: 0.5 * (first + last) + 1,
    "min": lambda first, last, start, axis: first + 1,
    "max": lambda first, last, start, axis: last + 1,
    "dense": lambda first, last, start, axis: np.cumsum(start, axis=axis),
    "ordinal": lambda first, last, start, axis: np.cumsum(np.ones_like(first), axis=axis),
}


@checked
def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """Ranks from 1, in increasing order.

    Parameters
    ----------
    a : array_like
        Real.
    method : {'average', 'min', 'max', 'dense', 'ordinal'}
        The rank of equal elements: the mean, the smallest or the largest of those they occupy; the number of different
        values up to theirs; different ones, in order of occurrence.
    axis : int, optional
        By default the flattened array is ranked.
    nan_policy : {'propagate', 'omit', 'raise'}
        With NaN among the elements: all ranks along the axis are NaN; only those of NaN are; `ArgumentValueError`.

    Returns
    -------
    Array
        With the shape of `a`, flat without `axis`. Integers for integers, except for 'average'; else floats.

    Raises
    ------
    ArgumentValueError
        For an unknown method or policy; for NaN, if so chosen, and for this choice while tracing.

    Notes
    -----
    Ranks of floats are floats, since they may be NaN. SciPy decides this by the values. The derivative is 0.

    Examples
    --------
    >>> from functrans.scipy.stats import rankdata
    >>> rankdata([0.5, 2.0, 0.5, 1.0])
    Array([1.5, 4. , 1.5, 3. ])
    """
    if method not in _RANKS:
        raise ArgumentValueError(f"rankdata: method must be one of {', '.join(_RANKS)}, got {method!r}")
    x, along, bad = _sample("rankdata", a, axis, nan_policy)
    floats = method == "average" or bad is not None
    if 0 in shape_of(x):
        return finish(np.zeros(shape_of(x), float if floats else int))
    order = np.argsort(x, axis=along, kind="stable")
    runs = _runs(fnp.take_along_axis(x, order, axis=along), along)
    ranks = _RANKS[method](*runs, along)
    ranks = fnp.take_along_axis(ranks, np.argsort(order, axis=along), axis=along)
    if floats:
        ranks = ops.convert(ranks, default_float(dtype_of(ranks)))
    if bad is not None:
        ranks = np.where(
            bad if nan_policy == "omit" else np.any(bad, axis=along, keepdims=True), np.nan, ranks
        )
    return finish(ranks)


@checked
def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """The most common value, the smallest of several, and how often it occurs.

    Parameters
    ----------
    a : array_like
        Real.
    axis : int, optional
        None for the flattened array.
    nan_policy : {'propagate', 'omit', 'raise'}
        Whether NaN is a value like others, is not counted, or raises `ArgumentValueError`.
    keepdims : bool
        Whether to keep the axis, with extent 1.

    Returns
    -------
    ModeResult
        A named tuple (mode, count). For an empty sample NaN and 0.

    Examples
    --------
    >>> from functrans.scipy.stats import mode
    >>> mode([2, 1, 2, 3, 1])
    ModeResult(mode=Array(1), count=Array(2))
    """
    x, along, bad = _sample("mode", a, axis, nan_policy)
    if shape_of(x)[along] == 0:
        shape = [1 if d == along else n for d, n in enumerate(shape_of(x))]
        empty = np.full(shape, np.nan), np.zeros(shape, int)
        return ModeResult(*[_reduced(y, a, axis, along, keepdims) for y in empty])
    x = np.sort(x, axis=along)
    first, last, _ = _runs(x, along)
    count = last - first + 1
    if bad is not None and nan_policy == "omit":
        count = np.where(np.isnan(x), 0, count)
    at = np.argmax(count, axis=along, keepdims=True)
    value, count = (fnp.take_along_axis(y, at, axis=along) for y in (x, count))
    if bad is not None and nan_policy == "omit":
        value = np.where(count == 0, np.nan, value)
    return ModeResult(*[_reduced(y, a, axis, along, keepdims) for y in (value, count)])


def _reduced(value: Value, a: Value, axis: int | None, along: int, keepdims: bool) -> Value:
    """A result with or without the axis, of extent 1, that the sample was reduced along."""
    if not keepdims:
        return finish(np.squeeze(value, along))
    return finish(value if axis is not None else np.reshape(value, (1,) * fnp.ndim(a)))


# --- moments --------------------------------------------------------------------------------------------------


class _Moments:
    """The number of elements along an axis, their mean and central moments. Axes are kept."""

    @quietly
    def __init__(self, name: str, a: ArrayLike, axis: int | None, nan_policy: str):
        x, self.axis, bad = _sample(name, a, axis, nan_policy)
        self.given = (a, axis)
        self.x = x if bad is not None else ops.convert(x, default_float(dtype_of(x)))
        self.left_out = bad if nan_policy == "omit" else None
        dtype = dtype_of(self.x)
        if self.left_out is None:
            self.n: ArrayLike = dtype.type(shape_of(self.x)[self.axis])
        else:
            self.n = self._sum(np.ones_like(self.x))
        self.mean = self._sum(self.x) / self.n
        self.deviation = self.x - self.mean

    def _sum(self, terms: ArrayLike) -> Value:
        terms = terms if self.left_out is None else np.where(self.left_out, 0.0, terms)
        return np.sum(terms, axis=self.axis, keepdims=True)

    def central(self, order: int) -> Value:
        """The mean of ``(x - mean)**order``."""
        return self._sum(self.deviation**order) / self.n

    def variance(self, ddof: int) -> Value:
        """With `ddof` degrees of freedom less."""
        return self._sum(np.square(self.deviation)) / (self.n - ddof)

    def done(self, value: Value, keepdims: bool) -> Value:
        """The result, without the axis unless it is to be kept."""
        return _reduced(value, *self.given, self.axis, keepdims)


@checked
@quietly
def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Standard error of the mean: the standard deviation over the square root of the number of elements.

    Parameters
    ----------
    a : array_like
        Real.
    axis : int, optional
        None for the flattened array.
    ddof : int
        The variance is the sum of squares over the number of elements less `ddof`.
    nan_policy : {'propagate', 'omit', 'raise'}
        With NaN among the elements: the result is NaN; NaN is left out; `ArgumentValueError`.
    keepdims : bool
        Whether to keep the axis, with extent 1.

    Returns
    -------
    Array

    Examples
    --------
    >>> from functrans.scipy.stats import sem
    >>> sem([1.0, 2.0, 3.0])
    Array(0.57735027)
    """
    m = _Moments("sem", a, axis, nan_policy)
    return m.done(np.sqrt(m.variance(ddof)) / np.sqrt(m.n), keepdims)


@checked
@quietly
def zscore(a: ArrayLike, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate") -> Array:
    """Deviations from the mean in units of the standard deviation; see `sem` for the arguments.

    Returns
    -------
    Array
        With the shape of `a`. NaN where all elements are equal.

    Examples
    --------
    >>> from functrans.scipy.stats import zscore
    >>> zscore([1.0, 2.0, 3.0])
    Array([-1.22474487,  0.        ,  1.22474487])
    """
    if axis is not None:
        ops.one_axis(axis, fnp.ndim(a), "zscore")
    m = _Moments("zscore", a, axis, nan_policy)
    value = m.deviation / np.sqrt(m.variance(ddof))
    return finish(np.reshape(value, fnp.shape(a)))


@checked
@quietly
def skew(
    a: ArrayLike,
    axis: int | None = 0,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Skewness: the third central moment over the power 3/2 of the second.

    Parameters
    ----------
    a, axis, nan_policy, keepdims
        As in `sem`.
    bias : bool
        If False, the estimate is corrected for bias, where there are more than 2 elements.

    Returns
    -------
    Array
        NaN where all elements are equal.

    Examples
    --------
    >>> from functrans.scipy.stats import skew
    >>> skew([1.0, 2.0, 6.0])
    Array(0.59517006)
    """
    m = _Moments("skew", a, axis, nan_policy)
    value = m.central(3) / m.central(2) ** 1.5
    if not bias:
        enough = m.n > 2
        n = np.where(enough, m.n, 3.0)
        value = np.where(enough, np.sqrt(n * (n - 1)) / (n - 2) * value, value)
    return m.done(value, keepdims)


@checked
@quietly
def kurtosis(
    a: ArrayLike,
    axis: int | None = 0,
    fisher: bool = True,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Kurtosis: the fourth central moment over the square of the second.

    Parameters
    ----------
    a, axis, nan_policy, keepdims
        As in `sem`.
    fisher : bool
        Whether to subtract 3, so that the normal distribution has 0.
    bias : bool
        If False, the estimate is corrected for bias, where there are more than 3 elements.

    Returns
    -------
    Array
        NaN where all elements are equal.

    Examples
    --------
    >>> from functrans.scipy.stats import kurtosis
    >>> kurtosis([1.0, 2.0, 3.0, 4.0])
    Array(-1.36)
    """
    m = _Moments("kurtosis", a, axis, nan_policy)
    value = m.central(4) / np.square(m.central(2)) - 3
    if not bias:
        enough = m.n > 3
        n = np.where(enough, m.n, 4.0)
        corrected = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * value + 6)
        value = np.where(enough, corrected, value)
    return m.done(value if fisher else value + 3, keepdims)
