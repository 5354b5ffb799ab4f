"""Quantiles and percentiles, with and without NaN, by all of NumPy's methods.

R. J. Hyndman, Y. Fan: Sample Quantiles in Statistical Packages, The American Statistician 50 (1996), counted from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...core import INT64, Tracer, concrete, default_float, dtype_kind, is_float, quietly
from ...core.values import ArrayLike, AxisLike, Index, Value
from ...errors import ArgumentError, ArgumentValueError, DtypeError, IndexOutOfBoundsError, ShapeError
from ...primitives import ops
from ...primitives.ops import axes_or_all, finish, literal, many_axes, operand, refuse_out, strong
from ...primitives.structure.linear import dtype_of, shape_of
from ...runtime.records import NamedTuple
from ..dispatch import NO_VALUE, array_operand, implements
from .medians import axes_last, count_numbers, lanes_of, last_element, pick, sorted_lanes, spread_lead

Place = Callable[[Any, Any], Any]


def _between(alpha: float, beta: float) -> Place:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _step_up(index: Index, stays: Any) -> Value:
    """The next index, or the index itself if it is a whole number and `stays`."""
    low = np.floor(index)
    return np.where((index == low) & stays, low, low + 1)


def _fraction(rest: Value, index: Index) -> Value:
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


# --- quantiles --------------------------------------------------------------------------------------------------


def _clipped(place: ArrayLike, n: ArrayLike) -> Value:
    """Convert a position to an index of one of `n` elements, or 0 if `n` is 0."""
    i = ops.convert(place, INT64) if isinstance(place, Tracer) else _whole(place)
    top = np.int64(max(n - 1, 0)) if type(n) is int else ops.sub_p.bind(n, np.int64(1))
    return ops.max_p.bind(ops.min_p.bind(i, ops.broadcast_to(top, shape_of(i))), np.int64(0))


@quietly
def _whole(place: Value) -> np.ndarray:
    return np.asarray(np.nan_to_num(np.asarray(place), nan=-1.0)).astype(np.int64)


def _interpolated(x: Value, q: ArrayLike, n: ArrayLike, method: Method, weak: bool) -> Value:
    """Quantiles of the first `n` elements of sorted rows."""
    rank = len(shape_of(q))
    count = n if type(n) is int else ops.convert(n, dtype_of(q))
    if type(n) is not int:
        q = ops.reshape_p.bind(q, shape=shape_of(q) + (1,) * len(shape_of(n)))
    place = method.place(count, q)
    place = operand(place, "quantile")
    own = dtype_of(x)
    to = ops.common_dtype((own, float if weak else dtype_of(place)))[0]
    whole = dtype_of(place).kind in "iu"
    if method.weight is None or (whole and method is METHODS["linear"]):
        return pick(x, _clipped(place, n), rank)
    if own.kind == "b":
        raise DtypeError(
            "quantile: a has dtype bool, and booleans cannot be interpolated; convert them with .astype(int)"
        )
    place = ops.convert(place, default_float(dtype_of(place))) if whole else place
    low = ops.floor_p.bind(place)
    rest = ops.sub_p.bind(place, low)
    below = _clipped(low, n)
    above = _clipped(ops.add_p.bind(low, literal(1.0, low)), n)
    t = ops.convert(operand(method.weight(rest, place), "quantile"), to)
    a, b = (pick(x, i, rank) for i in (below, above))
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


def _weighted(x: Value, weights: Value, q: Value, skip: bool) -> Any:
    """Quantiles of rows by the cumulative sum of weights: the smallest element that it reaches `q` at."""
    shape = shape_of(x)
    last = len(shape) - 1
    weights = ops.convert(weights, default_float(dtype_of(weights)))
    if skip:
        weights = ops.select_p.bind(ops.eq_p.bind(x, x), weights, literal(0.0, weights))
    ordered, weights = ops.sort_p.bind(x, weights, dimension=last, num_keys=1)
    total = ops.cumsum_p.bind(weights, axis=last, reverse=False)
    share = ops.div_p.bind(
        total,
        ops.broadcast_in_dim_p.bind(
            last_element(total), shape=shape, broadcast_dimensions=tuple(range(last))
        ),
    )
    if is_float(dtype_of(q)):
        share = ops.convert(share, dtype_of(q))
    share = ops.select_p.bind(ops.eq_p.bind(share, literal(0.0, share)), literal(-1.0, share), share)
    targets = ops.reshape_p.bind(ops.convert(q, dtype_of(share)), shape=(prod(shape_of(q)),))
    targets = ops.broadcast_in_dim_p.bind(
        targets, shape=(*shape[:-1], *shape_of(targets)), broadcast_dimensions=(last,)
    )
    at = ops.min_p.bind(ops.searchsorted_p.bind(share, targets, side="left"), np.int64(shape[-1] - 1))
    picked = ops.move_axis(ops.take_along(ordered, at, last), last, 0)
    return ordered, ops.reshape_p.bind(picked, shape=shape_of(q) + shape[:-1])


def _checked_q(q: ArrayLike, name: str, scale: int) -> tuple[Any, bool]:
    """The fractions, and whether they were a Python number, which does not affect the dtype."""
    weak = type(q) in (int, float) or (isinstance(q, Tracer) and q.weak_type)
    value = operand(q, f"{name}: q")
    value = strong(value, dtype_of(value))
    value = value if isinstance(value, Tracer) else np.asarray(value)
    if dtype_kind(dtype_of(value)) not in "iuf":
        if dtype_of(value).kind == "c":
            raise DtypeError(f"{name}: q must be real, got dtype {dtype_of(value)}")
        value = ops.convert(value, INT64)
    numbers = concrete(value)
    if len(shape_of(value)) > 2:
        raise ArgumentValueError(f"{name}: q must be a number or have one axis, got shape {shape_of(value)}")
    if numbers is not None and np.size(numbers) and not (np.min(numbers) >= 0 and np.max(numbers) <= scale):
        raise ArgumentValueError(f"{name}: q must be in the range [0, {scale}], got {numbers}")
    if scale != 1:
        value = value if is_float(dtype_of(value)) else ops.convert(value, default_float(dtype_of(value)))
        value = ops.div_p.bind(value, literal(float(scale), value))
        value = value if isinstance(value, Tracer) else np.asarray(value)
    return value, weak


def _checked_weights(weights: Value, x: Value, axis: AxisLike, method: str, name: str) -> Any:
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
    a: Value,
    q: Value,
    axis: AxisLike,
    out: ArrayLike,
    method: str,
    keepdims: Any,
    weights: Value,
    *,
    skip: bool = False,
    scale: int = 1,
) -> Value:
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
    lanes = lanes_of(x, axis, keepdims, name)
    lead = shape_of(fractions)
    if shape_of(lanes.x)[-1] == 0:
        if not skip:
            raise IndexOutOfBoundsError(
                f"{name}: no elements along axis {axis} of an array of shape {shape_of(x)}"
            )
        return finish(ops.full(lead + lanes.shape, np.nan, ops.common_dtype((dtype, float))[0]))
    if weights is not None:
        w = axes_last(_checked_weights(weights, x, axis, method, name), lanes.axes)
        ordered, values = _weighted(lanes.x, w, fractions, skip and is_float(dtype))
    else:
        way = METHODS[method]
        ordered = sorted_lanes(lanes.x)
        counted = skip and is_float(dtype)
        n = count_numbers(ordered) if counted else shape_of(ordered)[-1]
        values = _interpolated(ordered, fractions, n, way, weak)
    if is_float(dtype):
        # NaN comes last; if it is to be skipped, it is used only if all elements are NaN.
        witness = pick(ordered, np.zeros((), np.int64), 0) if skip else last_element(ordered)
        values = ops.select_p.bind(spread_lead(ops.is_nan(witness), lead), literal(np.nan, values), values)
    return finish(ops.reshape_p.bind(values, shape=lead + lanes.shape))


@implements(np.quantile)
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: AxisLike = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike = None,
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
    a: ArrayLike,
    q: ArrayLike,
    axis: AxisLike = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike = None,
) -> Value | None:
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
    a: ArrayLike,
    q: ArrayLike,
    axis: AxisLike = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = NO_VALUE,
    *,
    weights: ArrayLike = None,
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
    a: ArrayLike,
    q: ArrayLike,
    axis: AxisLike = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = NO_VALUE,
    *,
    weights: ArrayLike = None,
) -> Value:
    """`percentile` ignoring NaN; NaN if all elements are NaN.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.nanpercentile([4.0, fnp.nan, 2.0, 3.0], 50)
    Array(3.)
    """
    return _quantile("nanpercentile", a, q, axis, out, method, keepdims, weights, skip=True, scale=100)
