"""bincount and histograms, with differentiable weights."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import INT64, Tracer, because, concrete, default_float, is_abstract, is_inexact
from ...core.values import ArrayLike, Value
from ...errors import ArgumentError, ArgumentValueError, ConcretizationTypeError, DtypeError, ShapeError
from ...primitives import ops
from ...primitives.ops import common, common_dtype, dtype_of, finish, literal, operand, shape_of, strong
from ..dispatch import array_operand, implements
from ..indexing.nonzero import need_size, size_of
from ..sorting.sorting import places

# --- bincount -------------------------------------------------------------------------------------------------


def _tally(at: ArrayLike, length: int, weights: ArrayLike) -> Value:
    """Sum weights (or ones) by index; indices beyond the length are dropped."""
    ones = ops.full(shape_of(at), 1, INT64) if weights is None else weights
    return ops.scatter_add_p.bind(ops.full((length,), 0, dtype_of(ones)), ones, at, axes=(0,), mode="drop")


@implements(np.bincount)
def bincount(
    x: ArrayLike, weights: ArrayLike = None, minlength: int = 0, *, length: int | None = None
) -> Array:
    """Count the occurrences of each of 0, 1, 2, ...

    Parameters
    ----------
    x : array_like of int, shape (n,)
        Must not be negative.
    weights : array_like, shape (n,), optional
        Weights to sum, as float64, instead of counting.
    minlength : int
        The minimum length of the result.
    length : int, optional
        The length of the result; larger numbers are dropped, and negative ones counted as 0. Required under ``jit`` and
        ``vmap``.

    Returns
    -------
    Array, shape (max(x) + 1,) or (length,)
        int64, or float64 with weights.

    Raises
    ------
    ConcretizationTypeError
        If the values are unknown, and `length` is not passed.
    ArgumentValueError
        If a number is negative (without `length`).

    Notes
    -----
    Linear in `weights`; the derivative gathers the cotangents.

    Examples
    --------
    >>> import functrans as ft
    >>> import functrans.numpy as fnp
    >>> fnp.bincount([0, 1, 1, 3])
    Array([1, 2, 0, 1])
    >>> ft.jit(lambda x: fnp.bincount(x, length=3))(fnp.array([0, 1, 1, 3]))
    Array([1, 2, 0])
    """
    at = array_operand(x, "bincount")
    if len(shape_of(at)) != 1:
        raise ShapeError(f"bincount: expected an array with one axis, got shape {shape_of(at)}")
    if dtype_of(at).kind not in "biu" and not (isinstance(x, list) and not x):
        raise DtypeError(f"bincount: expected integers, got dtype {dtype_of(at)}; convert with .astype(int)")
    if dtype_of(at) == np.uint64 and not isinstance(at, Tracer):
        raise DtypeError(
            "bincount: x has dtype uint64, which cannot be cast safely to int64; convert with .astype(int)"
        )
    at = ops.convert(at, INT64)
    least = operator.index(minlength)
    if least < 0:
        raise ArgumentValueError(f"bincount: minlength must not be negative, got {least}")
    if length is None:
        numbers = concrete(at)
        if numbers is None:
            need_size("bincount", at, "length=")
        if numbers.size and numbers.min() < 0:
            raise ArgumentValueError(f"bincount: numbers must not be negative, got {numbers.min()}")
        n = max(least, int(numbers.max()) + 1 if numbers.size else 0)
    else:
        n = max(least, size_of(length, "bincount: length"))
        at = ops.select_p.bind(ops.lt_p.bind(at, np.int64(0)), np.int64(0), at)
    w = None
    if weights is not None:
        w = _float_weights(array_operand(weights, "bincount: weights"), "bincount")
        if shape_of(w) != shape_of(at):
            raise ShapeError(f"bincount: weights of shape {shape_of(w)} for numbers of shape {shape_of(at)}")
    return finish(_tally(at, n, w))


def _float_weights(w: Value, name: str) -> Value:
    if dtype_of(w).kind == "c":
        raise DtypeError(f"{name}: weights must be real, got dtype {dtype_of(w)}")
    return ops.convert(w, default_float(dtype_of(w)))


# --- edges ----------------------------------------------------------------------------------------------------


def _outer_edges(x: Value, given: Any, name: str) -> tuple[Any, Any]:
    """The first and the last edge of bins of equal widths: from `range`, or the extremes of the data."""
    if given is not None:
        first, last = (operand(e, f"{name}: range") for e in given)
        numbers = [concrete(e) for e in (first, last)]
        if None not in [n if n is None else 0 for n in numbers]:
            if numbers[0] > numbers[1]:
                raise ArgumentValueError(
                    f"{name}: in range the maximum must be larger than the minimum, got {given}"
                )
            if not (np.isfinite(numbers[0]) and np.isfinite(numbers[1])):
                raise ArgumentValueError(f"{name}: range {given} is not finite")
    elif not prod(shape_of(x)):
        first, last = 0, 1
    else:
        first, last = ops.reduce_min_p.bind(x, axes=(0,)), ops.reduce_max_p.bind(x, axes=(0,))
        numbers = [concrete(e) for e in (first, last)]
        if numbers[0] is not None and not (np.isfinite(numbers[0]) and np.isfinite(numbers[1])):
            raise ArgumentValueError(
                f"{name}: the data lies in [{numbers[0]}, {numbers[1]}], which is not finite; pass range="
            )
    return first, last


_RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")


def _number_of_bins(x: Value, bins: str, given: Any, weights: Value, name: str) -> int:
    """The number of bins by one of NumPy's rules, which need the values of the data."""
    if bins not in _RULES:
        raise ArgumentValueError(f"{name}: bins must be one of {', '.join(map(repr, _RULES))}, got {bins!r}")
    if weights is not None:
        raise ArgumentError(f"{name}: bins={bins!r} does not support weights; pass the number of bins")
    numbers = concrete(x)
    if numbers is None:
        raise ConcretizationTypeError(
            f"{name}: with bins={bins!r} the number of bins depends on values, which are unknown while tracing"
            f"{because(x)}. Pass the number of bins or their edges"
        )
    limits = None if given is None else tuple([concrete(operand(e, name)) for e in given])
    try:
        return len(np.histogram_bin_edges(numbers, bins, limits)) - 1
    except ValueError as error:
        raise ArgumentValueError(f"{name}: {error}") from None


def _equal_edges(x: Value, count: int, given: ArrayLike, own: bool, name: str) -> Value:
    """Edges of bins of equal widths, as ``np.linspace`` places them; in the dtype of the data if `own`."""
    if count < 1:
        raise ArgumentValueError(f"{name}: bins must be positive, got {count}")
    first, last = _outer_edges(x, given, name)
    # In the dtype that NumPy computes in, and that of its result.
    wide = common_dtype((dtype_of(first), dtype_of(last), float))[0]
    keys = [type(e) if type(e) in (int, float) else dtype_of(e) for e in (first, last)]
    dtype = common_dtype((*keys, dtype_of(x), float))[0] if own else wide
    first, last = (ops.convert(strong(e, dtype_of(e)), wide) for e in (first, last))
    # An empty range is extended to width one.
    margin = ops.select_p.bind(ops.eq_p.bind(first, last), literal(0.5, first), literal(0.0, first))
    first, last = ops.sub_p.bind(first, margin), ops.add_p.bind(last, margin)
    numbers = (
        ops.convert(ops.iota((count + 1,), 0), wide) if is_abstract(x) else np.arange(count + 1, dtype=wide)
    )
    step = ops.div_p.bind(ops.sub_p.bind(last, first), literal(float(count), first))
    edges = ops.add_p.bind(ops.mul_p.bind(numbers, step), first)
    at_end = ops.eq_p.bind(numbers, literal(float(count), numbers))
    edges = ops.convert(ops.select_p.bind(at_end, ops.broadcast_to(last, (count + 1,)), edges), dtype)
    values = concrete(edges)
    if values is not None and (values[:-1] >= values[1:]).any():
        raise ArgumentValueError(f"{name}: too many bins for the range of the data: {count} have no width")
    return edges


def _edges(
    x: ArrayLike, bins: ArrayLike, given: ArrayLike, weights: ArrayLike, name: str, own: bool = True
) -> Any:
    """The edges that `bins` describes."""
    if isinstance(bins, str):
        bins = _number_of_bins(x, bins, given, weights, name)
    value = operand(bins, f"{name}: bins")
    if shape_of(value) == ():
        try:
            return _equal_edges(x, operator.index(value), given, own, name)
        except TypeError as error:
            if isinstance(error, (ArgumentError, ConcretizationTypeError)):
                raise
            raise ArgumentError(
                f"{name}: bins must be an integer, a string or an array, got {bins!r}"
            ) from None
    if len(shape_of(value)) != 1:
        raise ArgumentValueError(f"{name}: bins must have one axis, got shape {shape_of(value)}")
    numbers = concrete(value)
    if numbers is not None and (numbers[:-1] > numbers[1:]).any():
        raise ArgumentValueError(f"{name}: the edges of bins must increase monotonically")
    return value


def _bin_of(x: ArrayLike, edges: ArrayLike) -> Value:
    """The index of each element's bin, the last one including its right edge; -1 outside all bins."""
    n = shape_of(edges)[0]
    edges, x = common(edges, x)
    first, last = ops.element_along(edges, 0, 0), ops.element_along(edges, 0, n - 1)
    at = ops.sub_p.bind(places(edges, x, "right"), np.int64(1))
    at = ops.select_p.bind(ops.eq_p.bind(x, ops.broadcast_to(last, shape_of(x))), np.int64(n - 2), at)
    inside = ops.and_p.bind(
        ops.ge_p.bind(x, ops.broadcast_to(first, shape_of(x))),
        ops.le_p.bind(x, ops.broadcast_to(last, shape_of(x))),
    )
    return ops.select_p.bind(inside, at, np.int64(-1))


def _widths(edges: Any) -> Value:
    return ops.sub_p.bind(*ops.neighbours(edges, 0))


def _sample(a: Value, name: str) -> Value:
    x = ops.flat(array_operand(a, name))
    if dtype_of(x).kind == "c":
        raise DtypeError(f"{name}: complex numbers have no order; got dtype {dtype_of(x)}")
    return ops.convert(x, np.dtype(np.uint8)) if dtype_of(x).kind == "b" else x


# --- histograms -----------------------------------------------------------------------------------------------


def _weights_of(weights: Value, a: Value, name: str) -> Any:
    """Weights, one for each element of the data."""
    w = array_operand(weights, f"{name}: weights")
    shape = shape_of(operand(a, name))
    if shape_of(w) != shape:
        raise ShapeError(f"{name}: weights of shape {shape_of(w)} for data of shape {shape}")
    return w


@implements(np.histogram_bin_edges)
def histogram_bin_edges(
    a: ArrayLike, bins: ArrayLike = 10, range: Any = None, weights: ArrayLike = None
) -> Any:
    """The edges of the bins of `histogram`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.histogram_bin_edges([0.0, 1.0, 4.0], bins=4)
    Array([0., 1., 2., 3., 4.])
    """
    x = _sample(a, "histogram_bin_edges")
    if weights is not None:
        _weights_of(weights, a, "histogram_bin_edges")
    edges = _edges(x, bins, range, weights, "histogram_bin_edges")
    return finish(edges.copy() if isinstance(edges, np.ndarray) else edges)


@implements(np.histogram)
def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Any = None,
    density: bool | None = None,
    weights: ArrayLike = None,
) -> tuple[Any, Any]:
    """Count the elements in each bin.

    Parameters
    ----------
    a : array_like
        Flattened.
    bins : int, str, or array_like, shape (n + 1,)
        The number of bins of equal widths, a rule of `numpy.histogram_bin_edges`, or the edges.
    range : pair of scalars, optional
        The first and the last edge; by default the extremes of the data.
    density : bool, optional
        Whether to divide by the total and the widths, so that the integral is 1.
    weights : array_like, shape of `a`, optional
        The weight of each element.

    Returns
    -------
    counts : Array, shape (n,)
        int64, or the dtype of the weights; float64 if `density`.
    edges : Array, shape (n + 1,)

    Raises
    ------
    ArgumentValueError
        If edges do not increase, or the data is not finite and `range` is not passed.
    ConcretizationTypeError
        If `bins` is a rule, and the data is traced by ``jit``.

    Notes
    -----
    A bin includes its left edge, the last one also its right edge. Differentiable in `weights`; edges are
    differentiable in the extremes of the data. Counts are piecewise constant in the data.

    Examples
    --------
    >>> import functrans as ft
    >>> import functrans.numpy as fnp
    >>> fnp.histogram([1.0, 2.0, 1.0], bins=[0.0, 1.0, 2.0, 3.0])
    (Array([0, 2, 1]), Array([0., 1., 2., 3.]))
    >>> ft.grad(lambda w: fnp.histogram([1.0, 5.0], 2, (0, 4), weights=w)[0].sum())(fnp.ones(2))
    Array([1., 0.])
    """
    x = _sample(a, "histogram")
    w = None
    if weights is not None:
        w = ops.flat(_weights_of(weights, a, "histogram"))
    edges = _edges(x, bins, range, weights, "histogram")
    n = shape_of(edges)[0] - 1
    at = _bin_of(x, edges) if n > 0 else ops.full(shape_of(x), 0, INT64)
    at = ops.select_p.bind(ops.lt_p.bind(at, np.int64(0)), np.int64(n), at)
    counts = _tally(at, n, w if w is None or dtype_of(w).kind != "b" else ops.convert(w, INT64))
    if density:
        widths = ops.convert(_widths(edges), default_float())
        counts, widths = common(
            counts if is_inexact(dtype_of(counts)) else ops.convert(counts, default_float(dtype_of(counts))),
            widths,
        )
        counts = ops.div_p.bind(ops.div_p.bind(counts, widths), ops.reduce_sum_p.bind(counts, axes=(0,)))
    elif w is not None and dtype_of(w).kind == "b":
        counts = ops.convert(counts, dtype_of(w))
    return finish(counts), finish(edges.copy() if isinstance(edges, np.ndarray) else edges)


def _columns(sample: ArrayLike, name: str) -> list[Any]:
    """Read the coordinates of points from an array of points or a list of coordinates."""
    if isinstance(sample, (Tracer, np.ndarray)):
        x = array_operand(sample, name)
        shape = shape_of(x)
        if len(shape) == 2:
            return [ops.element_along(x, 1, d) for d in range_(shape[1])]
        if len(shape) > 2:
            raise ArgumentValueError(f"{name}: expected points of shape (n, d), got shape {shape}")
        return [ops.flat(x)]
    parts = [operand(x, name, i) for i, x in enumerate(sample)]
    if parts and all(not shape_of(p) for p in parts):
        parts = [operand(sample, name)]
    values = common(*[p if isinstance(p, Tracer) else np.asarray(p) for p in parts])
    if len({shape_of(v) for v in values}) > 1 or any(len(shape_of(v)) != 1 for v in values):
        raise ArgumentValueError(
            f"{name}: coordinates must have one axis and equal lengths, got shapes {[shape_of(v) for v in values]}"
        )
    return values


range_ = range


@implements(np.histogramdd)
def histogramdd(
    sample: ArrayLike,
    bins: ArrayLike = 10,
    range: ArrayLike = None,
    density: bool | None = None,
    weights: ArrayLike = None,
) -> tuple[Any, list[Any]]:
    """Count the points in each box of a grid.

    Parameters
    ----------
    sample : array_like, shape (n, d), or sequence of `d` array_like, shape (n,)
        An array with one point per row, or a list of coordinate vectors.
    bins : int, or sequence of `d` int or array_like
        For each axis, the number of bins or their edges.
    range : sequence of `d` pairs or None, optional
    density : bool, optional
        Whether to divide by the total and the volumes.
    weights : array_like, shape (n,), optional

    Returns
    -------
    counts : Array of float64, shape (n1, ..., nd)
    edges : list of Array

    Notes
    -----
    Differentiable in `weights`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.histogramdd(fnp.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]), bins=2)[0]
    Array([[1., 0.],
           [0., 2.]])
    """
    columns = _columns(sample, "histogramdd")
    d = len(columns)
    many = isinstance(bins, (list, tuple)) or len(np.shape(bins)) > 0
    chosen = list(bins) if many else [bins] * d
    if len(chosen) != d:
        raise ArgumentValueError(
            f"histogramdd: bins has {len(chosen)} entries for a sample of {d} coordinates"
        )
    ranges = [None] * d if range is None else list(range)
    if len(ranges) != d:
        raise ArgumentValueError(f"histogramdd: range has {len(ranges)} pairs for {d} coordinates")
    counts, edges = _boxes(columns, chosen, ranges, weights)
    if density:
        total = ops.reduce_sum_p.bind(counts, axes=tuple(range_(d)))
        for axis, e in enumerate(edges):
            widths = ops.convert(_widths(e), default_float())
            shape = tuple([shape_of(widths)[0] if k == axis else 1 for k in range_(d)])
            counts = ops.div_p.bind(counts, ops.reshape_p.bind(widths, shape=shape))
        counts = ops.div_p.bind(counts, total)
    return finish(counts), [finish(e.copy() if isinstance(e, np.ndarray) else e) for e in edges]


def _boxes(
    columns: list[Any], bins: Sequence[ArrayLike], ranges: Sequence[Any], weights: Value
) -> tuple[Any, list[Any]]:
    edges = []
    for x, b, r in zip(columns, bins, ranges):
        if isinstance(b, str):
            raise ArgumentError("histogramdd: bins must be integers or arrays of edges")
        edges.append(_edges(x, b, r, weights, "histogramdd", own=False))
    shape = tuple([shape_of(e)[0] - 1 for e in edges])
    at = ops.full(shape_of(columns[0]), 0, INT64)
    outside = ops.full(shape_of(columns[0]), False, np.dtype(bool))
    for x, e, n in zip(columns, edges, shape):
        place = _bin_of(x, e)
        outside = ops.select_p.bind(ops.lt_p.bind(place, np.int64(0)), np.bool_(True), outside)
        at = ops.add_p.bind(ops.mul_p.bind(at, np.int64(n)), place)
    at = ops.select_p.bind(outside, np.int64(prod(shape)), at)
    w = None
    if weights is not None:
        w = _float_weights(array_operand(weights, "histogramdd: weights"), "histogramdd")
        if shape_of(w) != shape_of(at):
            raise ShapeError(f"histogramdd: weights of shape {shape_of(w)} for {shape_of(at)[0]} points")
    counts = ops.convert(_tally(at, prod(shape), w), default_float())
    return ops.reshape_p.bind(counts, shape=shape), edges


@implements(np.histogram2d)
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike = 10,
    range: Any = None,
    density: bool | None = None,
    weights: ArrayLike = None,
) -> tuple[Any, Any, Any]:
    """Count the points of the plane in each box of a grid; see `histogramdd`.

    Parameters
    ----------
    x, y : array_like, shape (n,)
    bins : int, array_like, or pair of them
        A single array of edges is used for both axes.

    Returns
    -------
    counts : Array of float64, shape (nx, ny)
    x_edges, y_edges : Array

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.histogram2d([0.0, 1.0, 1.0], [0.0, 1.0, 1.0], bins=2)[0]
    Array([[1., 0.],
           [0., 2.]])
    """
    first, second = array_operand(x, "histogram2d"), array_operand(y, "histogram2d", 1)
    if not shape_of(first) or not shape_of(second):
        raise ArgumentError("histogram2d: expected coordinates with one axis, got a number")
    if shape_of(first) != shape_of(second):
        raise ArgumentValueError(
            f"histogram2d: x and y must have the same length, got shapes {shape_of(first)} and {shape_of(second)}"
        )
    if not isinstance(bins, int) and len(
        np.shape(bins) if not isinstance(bins, (list, tuple)) else [0] * len(bins)
    ):
        count = len(bins)
        if count not in (1, 2):
            bins = [bins, bins]
    counts, (x_edges, y_edges) = histogramdd([first, second], bins, range, density, weights)
    return counts, x_edges, y_edges
