"""Differences of neighbours (diff, ediff1d, gradient), and integration (trapezoid)."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import ArgumentError, ArgumentValueError, DtypeError, ShapeError, Tracer
from ...core.jax_dtypes import default_float
from ...core.values import ArrayLike, Value
from ...primitives import ops, ufuncs
from ...primitives.ops import axes_or_all, dtype_of, finish, one_axis, operand, shape_of
from ..dispatch import array_operand, implements, owned
from ..shaping.joining import joined

__all__ = [
    "diff", "ediff1d", "gradient", "trapezoid",
]  # fmt: skip


@implements(np.diff)
def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """Differences of neighbours along an axis, taken `n` times; for booleans, whether neighbours differ.

    Parameters
    ----------
    a : array_like
    n : int
        The number of times; 0 returns `a`.
    axis : int
    prepend, append : array_like, optional
        Joined before and after `a` first; a number means a slice of it.

    Returns
    -------
    Array
        Shorter by `n` along the axis.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.diff([1, 2, 4, 7])
    Array([1, 2, 3])
    """
    x = array_operand(a, "diff")
    times = operator.index(n)
    if times < 0:
        raise ArgumentValueError(f"diff: n must not be negative, got {times}")
    if not times:
        return owned(x, a)
    d = one_axis(axis, len(shape_of(x)), "diff")
    parts = [_slab(prepend, x, d)] if prepend is not None else []
    parts += [x] + ([_slab(append, x, d)] if append is not None else [])
    if len(parts) > 1:
        x = joined(parts, d, "diff")
    for _ in range(min(times, shape_of(x)[d])):
        x = (ops.ne_p if x.dtype.kind == "b" else ops.sub_p).bind(*ops.neighbours(x, d))
    return finish(x)


def _slab(value: Value, x: Value, axis: int) -> Value:
    """Convert a value to join before or after: a number becomes one slice."""
    value = array_operand(value, "diff")
    if shape_of(value):
        return value
    shape = shape_of(x)
    return ops.broadcast_to(value, (*shape[:axis], 1, *shape[axis + 1 :]))


@implements(*([np.trapezoid] if hasattr(np, "trapezoid") else []))
def trapezoid(y: ArrayLike, x: ArrayLike = None, dx: ArrayLike = 1.0, axis: int = -1) -> Value:
    """Integrate samples by the trapezoidal rule.

    Parameters
    ----------
    y : array_like
        The samples along `axis`.
    x : array_like, optional
        The positions of the samples: a vector, or an array with the shape of `y`.
    dx : number
        The distance of samples, if `x` is not passed.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.trapezoid([1.0, 2.0, 3.0])
    Array(4.)
    """
    values = array_operand(y, "trapezoid")
    shape = shape_of(values)
    d = one_axis(axis, len(shape), "trapezoid")
    if x is None:
        step = operand(dx, "trapezoid", 2)
    else:
        places = operand(x, "trapezoid", 1)
        if len(shape_of(places)) == 1:
            if shape_of(places)[0] != shape[d]:
                raise ShapeError(
                    f"trapezoid: x has {shape_of(places)[0]} positions for {shape[d]} samples along axis {d}"
                )
            spread = tuple([shape[d] if e == d else 1 for e in range(len(shape))])
            places = ops.reshape_p.bind(places, shape=spread)
        step = operand(diff(places, axis=d), "trapezoid")
    # Integers are added, and multiplied by integers, in the dtype of the integers, as in NumPy, so they may wrap.
    products = ufuncs.multiply(step, ufuncs.add(*ops.neighbours(values, d)))
    areas = operand(ufuncs.true_divide(products, 2.0), "trapezoid")
    return finish(ops.reduce_sum_p.bind(areas, axes=(d,)))


# --- gradient -----------------------------------------------------------------------------------------------


@implements(np.gradient)
def gradient(
    f: ArrayLike, *varargs: Any, axis: int | Sequence[int] | None = None, edge_order: int = 1
) -> Any:
    """The gradient of a function sampled on a grid: central differences, one-sided at the edges.

    Parameters
    ----------
    f : array_like
        The samples.
    *varargs : number or array_like of one axis
        The distances of samples, or their positions: one for all axes, or one for each. By default 1.
    axis : int or sequence of int, optional
        The axes to differentiate along; by default all.
    edge_order : {1, 2}
        The order of the differences at the edges.

    Returns
    -------
    Array or tuple of Array
        With the shape of `f`; a tuple if there are several axes. Integers become float64.

    Raises
    ------
    ShapeError
        If an axis has fewer than ``edge_order + 1`` samples, or positions do not match samples.
    ArgumentError, ArgumentValueError
        If the number of distances does not match, or `edge_order` is above 2.
    AxisError
        If an axis is out of bounds.

    Notes
    -----
    Second order inside, also for unequal distances: for distances `a` before and `b` after, it is
    ``(a**2 f(x + b) + (b**2 - a**2) f(x) - b**2 f(x - a)) / (a b (a + b))``. Differentiable in the samples and the
    distances.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.gradient([1.0, 2.0, 4.0, 7.0])
    Array([1. , 1.5, 2.5, 3. ])
    """
    x = array_operand(f, "gradient")
    if dtype_of(x).kind == "b":
        raise DtypeError(
            "gradient: f has dtype bool, and booleans have no differences; convert with .astype(float)"
        )
    if dtype_of(x).kind in "iu":
        x = ops.convert(x, default_float(dtype_of(x)))
    shape = shape_of(x)
    axes = axes_or_all(axis, len(shape), "gradient")
    order = operator.index(edge_order)
    if order not in (1, 2):
        raise ArgumentValueError(f"gradient: edge_order must be 1 or 2, got {edge_order}")
    steps = _distances(varargs, [shape[d] for d in axes])
    for d in axes:
        if shape[d] < order + 1:
            raise ShapeError(
                f"gradient: axis {d} of shape {shape} has {shape[d]} samples; edge_order={order} needs {order + 1}"
            )
    out = [finish(ops.convert(_slopes(x, h, d, order), dtype_of(x))) for d, h in zip(axes, steps)]
    return out[0] if len(out) == 1 else tuple(out)


def _distances(given: Sequence[Any], extents: Sequence[int]) -> list[Any]:
    """For each axis a number, or the distances of neighbours."""
    if not given:
        return [1.0] * len(extents)
    if len(given) == 1 and not shape_of(operand(given[0], "gradient", 1)):
        given = [given[0]] * len(extents)
    if len(given) != len(extents):
        raise ArgumentError(
            f"gradient: invalid number of arguments: got {len(given)} distances for {len(extents)} axes; expected "
            "none, one number, or one for each axis"
        )
    return [_distance(operand(h, "gradient", i + 1), n) for i, (h, n) in enumerate(zip(given, extents))]


def _distance(h: ArrayLike, n: int) -> Any:
    shape = shape_of(h)
    if not shape:
        return h
    if len(shape) != 1 or shape[0] != n:
        raise ShapeError(
            f"gradient: distances must be numbers, or {n} positions for {n} samples; got an array of shape {shape}"
        )
    if dtype_of(h).kind in "iu":
        h = ops.convert(h, default_float(dtype_of(h)))
    steps = ops.sub_p.bind(*ops.neighbours(h, 0))
    # As in NumPy, equal distances are treated as one number; for traced ones this is unknown.
    if not isinstance(steps, Tracer) and n > 1 and bool((steps == steps[0]).all()):
        return steps[0]
    return steps


def _slopes(x: Value, h: ArrayLike, d: int, order: int) -> Value:
    """Slopes along one axis; `h` is the distance, or all of them."""
    shape = shape_of(x)
    n = shape[d]
    across = (-1, *[1] * (len(shape) - d - 1))

    def part(start: int, stop: int) -> Value:
        return ops.slice_along(x, d, start, stop)

    def steps(start: int, stop: int) -> Value:
        return ops.reshape_p.bind(ops.slice_along(h, 0, start, stop), shape=(stop - start, *across[1:]))

    even = not shape_of(h)
    if even:
        inside = (part(2, n) - part(0, n - 2)) / (2.0 * h)
        a = b = c = e = h
    else:
        before, after = steps(0, n - 2), steps(1, n - 1)
        both = before + after
        inside = (
            part(0, n - 2) * (-after / (before * both))
            + part(1, n - 1) * ((after - before) / (before * after))
            + part(2, n) * (before / (after * both))
        )
        a, e = steps(0, 1), steps(n - 2, n - 1)
        b, c = (steps(1, 2), steps(n - 3, n - 2)) if order == 2 else (a, e)
    if order == 1:
        first, last = (part(1, 2) - part(0, 1)) / a, (part(n - 1, n) - part(n - 2, n - 1)) / e
    else:
        first = _edge(part(0, 1), part(1, 2), part(2, 3), a, b)
        last = -_edge(part(n - 1, n), part(n - 2, n - 1), part(n - 3, n - 2), e, c)
    pieces = [ops.convert(piece, dtype_of(x)) for piece in (first, inside, last)]
    return ops.concatenate_p.bind(*pieces, dimension=d)


def _edge(y0: Value, y1: Any, y2: Any, a: Value, b: Value) -> Value:
    """The slope at an edge, of second order, from three samples at distances `a` and `b`."""
    return y0 * (-(2.0 * a + b) / (a * (a + b))) + y1 * ((a + b) / (a * b)) - y2 * (a / (b * (a + b)))


# --- ediff1d ------------------------------------------------------------------------------------------------


@implements(np.ediff1d)
def ediff1d(ary: ArrayLike, to_end: ArrayLike = None, to_begin: Any = None) -> Array:
    """Differences of neighbours in the flattened array.

    Parameters
    ----------
    ary : array_like
    to_end, to_begin : array_like, optional
        Joined after and before the differences, flattened, with the dtype of `ary`.

    Returns
    -------
    Array
        One-dimensional.

    Raises
    ------
    DtypeError
        If `to_end` or `to_begin` cannot be cast to the dtype of `ary`, or that is bool.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.ediff1d([1, 2, 4, 7], to_end=[9, 9])
    Array([1, 2, 3, 9, 9])
    """
    x = ops.flat(array_operand(ary, "ediff1d: ary"))
    dtype = dtype_of(x)
    if dtype.kind == "b":
        raise DtypeError(
            "ediff1d: ary has dtype bool, and booleans have no differences; convert with .astype(int)"
        )
    steps = ops.sub_p.bind(*ops.neighbours(x, 0))
    parts = []
    for name, value in (("to_begin", to_begin), ("", steps), ("to_end", to_end)):
        if value is None:
            continue
        if name:
            value = ops.flat(array_operand(value, f"ediff1d: {name}"))
            if not np.can_cast(dtype_of(value), dtype, casting="same_kind"):
                raise DtypeError(
                    f"ediff1d: {name} has dtype {dtype_of(value)}, which cannot be cast to that of ary, {dtype}, under "
                    "the rule same_kind"
                )
        parts.append(ops.convert(value, dtype))
    return finish(ops.concatenate_p.bind(*parts, dimension=0) if len(parts) > 1 else parts[0])
