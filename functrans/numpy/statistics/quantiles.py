"""Medians, quantiles and percentiles, with and without NaN, by all of NumPy's methods.

R. J. Hyndman, Y. Fan: Sample Quantiles in Statistical Packages, The American Statistician 50 (1996), counted from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...core.context import quietly
from ...core.dtypes import FLOAT64, INT64
from ...core.errors import ArgumentError, ArgumentValueError, DtypeError, IndexOutOfBoundsError, ShapeError
from ...core.trace import Tracer, concrete
from ...primitives import ops
from ...primitives.ops import axes_or_all, finish, literal, many_axes, operand, refuse_out, strong
from ...primitives.structure.linear import dtype_of, shape_of
from ..dispatch import NO_VALUE, array_operand, given, implements

Place = Callable[[Any, Any], Any]


def _between(alpha: float, beta: float) -> Place:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _step_up(index: Any, stays: Any) -> Any:
    """The next index, or the index itself if it is a whole number and `stays`."""
    low = np.floor(index)
    return np.where((index == low) & stays, low, low + 1)


def _fraction(rest: Any, index: Any) -> Any:
    return rest


class Method(NamedTuple):
    """How a quantile is computed: its position, and the weight of the upper neighbour as a function of the fraction;
    without a weight, the position is a whole number.
    """

    place: Place
    weight: Callable[[Any, Any], Any] | None = None


METHODS = {
    "inverted_cdf": Method(lambda n, q: _step_up(n * q - 1, True)),
    "averaged_inverted_cdf": Method(lambda n, q: n * q - 1, lambda rest, i: np.where(rest == 0, 0.5, 1.0)),
    "closest_observation": Method(lambda n, q: _step_up(n * q - 1.5, np.floor(n * q - 1.5) % 2 == 1)),
    "interpolated_inverted_cdf": Method(_between(0, 1), _fraction),
    "hazen": Method(_between(0.5, 0.5), _fraction),
    "weibull": Method(_between(0, 0), _fraction),
    "linear": Method(lambda n, q: (n - 1) * q, _fraction),
    "median_unbiased": Method(_between(1 / 3, 1 / 3), _fraction),
    "normal_unbiased": Method(_between(3 / 8, 3 / 8), _fraction),
    "lower": Method(lambda n, q: np.floor((n - 1) * q)),
    "higher": Method(lambda n, q: np.ceil((n - 1) * q)),
    "midpoint": Method(
        lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
        lambda rest, i: np.where(rest == 0, 0.0, 0.5),
    ),
    "nearest": Method(lambda n, q: np.round((n - 1) * q)),
}


# --- arranging ------------------------------------------------------------------------------------------------


class _Lanes(NamedTuple):
    """The data of the quantiles, in the last axis, and the shape of the result after the axes of `q`."""

    x: Any
    shape: tuple[int, ...]
    axes: tuple[int, ...]


def _lanes(x: Any, axis: Any, keepdims: Any, name: str) -> _Lanes:
    shape = shape_of(x)
    axes = axes_or_all(axis, len(shape), name)
    keep = bool(given(keepdims, False))
    result = tuple([1 if d in axes else n for d, n in enumerate(shape) if keep or d not in axes])
    return _Lanes(_last(x, axes), result, axes)


def _last(x: Any, axes: tuple[int, ...]) -> Any:
    """Merge some axes into one, the last."""
    shape = shape_of(x)
    remaining = [d for d in range(len(shape)) if d not in axes]
    order = (*remaining, *sorted(axes))
    if order != tuple(range(len(shape))):
        x = ops.transpose_p.bind(x, permutation=order)
    return ops.reshape_p.bind(x, shape=(*[shape[d] for d in remaining], prod([shape[d] for d in axes])))


def _sorted(x: Any) -> Any:
    return ops.sort_p.bind(x, dimension=len(shape_of(x)) - 1, num_keys=1)[0]


def _final(x: Any) -> Any:
    """The last element of each row."""
    shape = shape_of(x)
    return ops.element_along(x, len(shape) - 1, shape[-1] - 1)


def _count(x: Any) -> Any:
    """The number of elements of each row that are not NaN."""
    ones = ops.convert(ops.eq_p.bind(x, x), INT64)
    return ops.reduce_sum_p.bind(ones, axes=(len(shape_of(x)) - 1,))


def _pick(x: Any, index: Any, lead: int) -> Any:
    """Take elements of rows. An index has `lead` axes of its own, then those of the rows, or none."""
    shape = shape_of(x)
    last = len(shape) - 1
    if len(shape_of(index)) == lead:
        return ops.gather_p.bind(x, index, axes=(last,), mode="promise_in_bounds")
    common = shape_of(index)
    rows = [ops.iota(common, lead + d) for d in range(last)]
    return ops.gather_p.bind(x, *rows, index, axes=tuple(range(last + 1)), mode="promise_in_bounds")


def _spread(value: Any, lead: tuple[int, ...]) -> Any:
    """Repeat a value for each row along leading axes."""
    shape = shape_of(value)
    axes = tuple(range(len(lead), len(lead) + len(shape)))
    return ops.broadcast_in_dim_p.bind(value, shape=lead + shape, broadcast_dimensions=axes)


# --- quantiles --------------------------------------------------------------------------------------------------


def _clipped(place: Any, n: Any) -> Any:
    """Convert a position to an index of one of `n` elements, or 0 if `n` is 0."""
    i = ops.convert(place, INT64) if isinstance(place, Tracer) else _whole(place)
    top = np.int64(max(n - 1, 0)) if type(n) is int else ops.sub_p.bind(n, np.int64(1))
    return ops.max_p.bind(ops.min_p.bind(i, ops.broadcast_to(top, shape_of(i))), np.int64(0))


@quietly
def _whole(place: Any) -> np.ndarray:
    return np.asarray(np.nan_to_num(np.asarray(place), nan=-1.0)).astype(np.int64)


def _interpolated(x: Any, q: Any, n: Any, method: Method, weak: bool) -> Any:
    """Quantiles of the first `n` elements of sorted rows."""
    rank = len(shape_of(q))
    count = n if type(n) is int else ops.convert(n, dtype_of(q))
    if type(n) is not int:
        q = ops.reshape_p.bind(q, shape=shape_of(q) + (1,) * len(shape_of(n)))
    place = method.place(count, q)
    place = operand(place, "quantile")
    own = dtype_of(x)
    to = np.result_type(own, 1.0 if weak else dtype_of(place))
    whole = dtype_of(place).kind in "iu"
    if method.weight is None or (whole and method is METHODS["linear"]):
        return _pick(x, _clipped(place, n), rank)
    if own.kind == "b":
        raise DtypeError(
            "quantile: a has dtype bool, and booleans cannot be interpolated; convert them with .astype(int)"
        )
    place = ops.convert(place, FLOAT64) if whole else place
    low = ops.floor_p.bind(place)
    rest = ops.sub_p.bind(place, low)
    below = _clipped(low, n)
    above = _clipped(ops.add_p.bind(low, literal(1.0, low)), n)
    t = ops.convert(operand(method.weight(rest, place), "quantile"), to)
    a, b = (_pick(x, i, rank) for i in (below, above))
    if own.kind == "i":  # whose differences may overflow
        a, b = ops.convert(a, to), ops.convert(b, to)
    t = ops.reshape_p.bind(t, shape=shape_of(t) + (1,) * (len(shape_of(a)) - len(shape_of(t))))
    # From the nearer end, so that the result is monotonic, and exact at both ends.
    gap = ops.convert(ops.sub_p.bind(b, a), to)
    a, b = ops.convert(a, to), ops.convert(b, to)
    from_below = ops.add_p.bind(a, ops.mul_p.bind(gap, t))
    from_above = ops.sub_p.bind(b, ops.mul_p.bind(gap, ops.sub_p.bind(literal(1.0, t), t)))
    nearer = ops.broadcast_to(ops.ge_p.bind(t, literal(0.5, t)), shape_of(a))
    return ops.select_p.bind(nearer, from_above, from_below)


def _weighted(x: Any, weights: Any, q: Any, skip: bool) -> Any:
    """Quantiles of rows by the cumulative sum of weights: the smallest element that it reaches `q` at."""
    shape = shape_of(x)
    last = len(shape) - 1
    weights = ops.convert(weights, FLOAT64)
    if skip:
        weights = ops.select_p.bind(ops.eq_p.bind(x, x), weights, literal(0.0, weights))
    ordered, weights = ops.sort_p.bind(x, weights, dimension=last, num_keys=1)
    total = ops.cumsum_p.bind(weights, axis=last, reverse=False)
    share = ops.div_p.bind(
        total,
        ops.broadcast_in_dim_p.bind(_final(total), shape=shape, broadcast_dimensions=tuple(range(last))),
    )
    if dtype_of(q).kind == "f":
        share = ops.convert(share, dtype_of(q))
    share = ops.select_p.bind(ops.eq_p.bind(share, literal(0.0, share)), literal(-1.0, share), share)
    targets = ops.reshape_p.bind(ops.convert(q, dtype_of(share)), shape=(prod(shape_of(q)),))
    targets = ops.broadcast_in_dim_p.bind(
        targets, shape=(*shape[:-1], *shape_of(targets)), broadcast_dimensions=(last,)
    )
    at = ops.min_p.bind(ops.searchsorted_p.bind(share, targets, side="left"), np.int64(shape[-1] - 1))
    picked = ops.move_axis(ops.take_along(ordered, at, last), last, 0)
    return ordered, ops.reshape_p.bind(picked, shape=shape_of(q) + shape[:-1])


def _checked_q(q: Any, name: str, scale: int) -> tuple[Any, bool]:
    """The fractions, and whether they were a Python number, which does not affect the dtype."""
    weak = type(q) in (int, float) or (isinstance(q, Tracer) and q.weak_type)
    value = operand(q, f"{name}: q")
    value = strong(value, dtype_of(value))
    value = value if isinstance(value, Tracer) else np.asarray(value)
    if dtype_of(value).kind not in "iuf":
        if dtype_of(value).kind == "c":
            raise DtypeError(f"{name}: q must be real, got dtype {dtype_of(value)}")
        value = ops.convert(value, INT64)
    numbers = concrete(value)
    if len(shape_of(value)) > 2:
        raise ArgumentValueError(f"{name}: q must be a number or have one axis, got shape {shape_of(value)}")
    if numbers is not None and np.size(numbers) and not (np.min(numbers) >= 0 and np.max(numbers) <= scale):
        raise ArgumentValueError(f"{name}: q must be in the range [0, {scale}], got {numbers}")
    if scale != 1:
        value = value if dtype_of(value).kind == "f" else ops.convert(value, FLOAT64)
        value = ops.div_p.bind(value, literal(float(scale), value))
        value = value if isinstance(value, Tracer) else np.asarray(value)
    return value, weak


def _checked_weights(weights: Any, x: Any, axis: Any, method: str, name: str) -> Any:
    if method != "inverted_cdf":
        raise ArgumentValueError(f"{name}: only method='inverted_cdf' accepts weights, got {method!r}")
    w = array_operand(weights, f"{name}: weights")
    shape = shape_of(x)
    if shape_of(w) != shape:
        if axis is None:
            raise ArgumentError(
                f"{name}: weights of shape {shape_of(w)} for an array of shape {shape}: pass axis="
            )
        axes = many_axes(axis, len(shape), name)
        if shape_of(w) != tuple([shape[d] for d in axes]):
            raise ShapeError(f"{name}: weights of shape {shape_of(w)} for axes {axes} of shape {shape}")
        w = ops.broadcast_in_dim_p.bind(w, shape=shape, broadcast_dimensions=axes)
    numbers = concrete(w)
    if numbers is not None and numbers.size:
        axes = axes_or_all(axis, len(shape), name)
        if (numbers < 0).any():
            raise ArgumentValueError(f"{name}: weights must not be negative")
        if not np.isfinite(numbers).all() or not numbers.any(axis=axes).all():
            raise ArgumentValueError(
                f"{name}: weights hold NaN or infinity, or are all zero along axis {axis}"
            )
    return w


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Any,
    out: Any,
    method: str,
    keepdims: Any,
    weights: Any,
    *,
    skip: bool = False,
    scale: int = 1,
) -> Any:
    refuse_out(name, out)
    x = array_operand(a, name)
    dtype = dtype_of(x)
    if dtype.kind == "c":
        raise DtypeError(f"{name}: complex numbers have no order; got dtype {dtype}")
    if method not in METHODS:
        raise ArgumentValueError(
            f"{name}: method must be one of {', '.join(map(repr, METHODS))}, got {method!r}"
        )
    fractions, weak = _checked_q(q, name, scale)
    lanes = _lanes(x, axis, keepdims, name)
    lead = shape_of(fractions)
    if shape_of(lanes.x)[-1] == 0:
        if not skip:
            raise IndexOutOfBoundsError(
                f"{name}: no elements along axis {axis} of an array of shape {shape_of(x)}"
            )
        return finish(ops.full(lead + lanes.shape, np.nan, np.result_type(dtype, 1.0)))
    if weights is not None:
        w = _last(_checked_weights(weights, x, axis, method, name), lanes.axes)
        ordered, values = _weighted(lanes.x, w, fractions, skip and dtype.kind == "f")
    else:
        way = METHODS[method]
        ordered = _sorted(lanes.x)
        counted = skip and dtype.kind == "f"
        n = _count(ordered) if counted else shape_of(ordered)[-1]
        values = _interpolated(ordered, fractions, n, way, weak)
    if dtype.kind == "f":
        # NaN comes last; if it is to be skipped, it is used only if all elements are NaN.
        witness = _pick(ordered, np.zeros((), np.int64), 0) if skip else _final(ordered)
        values = ops.select_p.bind(_spread(ops.is_nan(witness), lead), literal(np.nan, values), values)
    return finish(ops.reshape_p.bind(values, shape=lead + lanes.shape))


@implements(np.quantile)
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """Quantiles: the numbers below which a fraction `q` of all elements is.

    Parameters
    ----------
    a : array_like of real numbers
    q : array_like, shape (*lead), at most two axes
        Between 0 and 1.
    axis : int or tuple of int, optional
        By default all.
    overwrite_input : bool
        Accepted, without effect; inputs are never overwritten.
    method : str
        'linear' and all others of `numpy.quantile`.
    keepdims : bool
        Whether to keep the axes with extent 1.
    weights : array_like, optional
        For ``method='inverted_cdf'``; with the shape of `a`, or of its axes `axis`.

    Returns
    -------
    Array, shape (*lead, *rest)
        NaN if any element is NaN.

    Raises
    ------
    ArgumentValueError
        If `q` is known and out of range, or the method is unknown.
    IndexOutOfBoundsError
        If there are no elements.
    DtypeError
        If `a` is complex.

    Notes
    -----
    Differentiable in `a` (the derivative goes to the one or two neighbours), and in `q` for methods that interpolate.
    It has no derivative in `weights`, in which the result is piecewise constant.

    Examples
    --------
    >>> import functrans as ft
    >>> import functrans.numpy as fnp
    >>> fnp.quantile([4.0, 1.0, 2.0, 3.0], [0.0, 0.5])
    Array([1. , 2.5])
    >>> ft.grad(lambda x: fnp.quantile(x, 0.5))(fnp.array([4.0, 1.0, 2.0, 3.0]))
    Array([0. , 0. , 0.5, 0.5])
    """
    return _quantile("quantile", a, q, axis, out, method, keepdims, weights)


@implements(np.percentile)
def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """Percentiles: `quantile` with `q` between 0 and 100.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.percentile([4.0, 1.0, 2.0, 3.0], 50)
    Array(2.5)
    """
    return _quantile("percentile", a, q, axis, out, method, keepdims, weights, scale=100)


@implements(np.nanquantile)
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = NO_VALUE,
    *,
    weights: Any = None,
) -> Any:
    """`quantile` ignoring NaN; NaN if all elements are NaN.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nanquantile([4.0, fnp.nan, 2.0, 3.0], 0.5)
    Array(3.)
    """
    return _quantile("nanquantile", a, q, axis, out, method, keepdims, weights, skip=True)


@implements(np.nanpercentile)
def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = NO_VALUE,
    *,
    weights: Any = None,
) -> Any:
    """`percentile` ignoring NaN; NaN if all elements are NaN.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nanpercentile([4.0, fnp.nan, 2.0, 3.0], 50)
    Array(3.)
    """
    return _quantile("nanpercentile", a, q, axis, out, method, keepdims, weights, skip=True, scale=100)


# --- medians --------------------------------------------------------------------------------------------------


def _median(name: str, a: Any, axis: Any, out: Any, keepdims: Any, skip: bool) -> Any:
    refuse_out(name, out)
    x = array_operand(a, name)
    if dtype_of(x).kind in "biu":
        x, skip = ops.convert(x, FLOAT64), False
    lanes = _lanes(x, axis, keepdims, name)
    rows, length = shape_of(lanes.x)[:-1], shape_of(lanes.x)[-1]
    if not length:
        return finish(ops.full(lanes.shape, np.nan, dtype_of(x)))
    ordered = _sorted(lanes.x)
    if skip:
        n = _count(ordered)
        upper = ops.shift_right_p.bind(n, np.int64(1))
        lower = ops.max_p.bind(
            ops.sub_p.bind(ops.sub_p.bind(n, np.int64(1)), upper), np.int64(0)
        )  # (n - 1) // 2
        a_, b = _pick(ordered, lower, 0), _pick(ordered, upper, 0)
        single = ops.eq_p.bind(lower, upper)
    else:
        low, high = (length - 1) // 2, length // 2
        a_, b = (_pick(ordered, np.asarray(i), 0) for i in (low, high))
        single = ops.full(rows, low == high, np.dtype(bool))
    both = ops.div_p.bind(ops.add_p.bind(a_, b), literal(2.0, a_))
    median = ops.select_p.bind(single, b, both)
    if not skip and dtype_of(x).kind in "fc":
        witness = _final(ordered)
        median = ops.select_p.bind(ops.is_nan(witness), witness, median)
    return finish(ops.reshape_p.bind(median, shape=lanes.shape))


@implements(np.median)
def median(
    a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
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
    a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: Any = NO_VALUE
) -> Any:
    """`median` ignoring NaN; NaN if all elements are NaN.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nanmedian([4.0, fnp.nan, 2.0])
    Array(3.)
    """
    return _median("nanmedian", a, axis, out, keepdims, True)
