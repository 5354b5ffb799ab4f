"""Finite differences on grids: gradient, and differences of a flattened array."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import FLOAT64
from ...core.errors import ArgumentError, ArgumentValueError, DtypeError, ShapeError
from ...core.trace import Tracer
from ...primitives.axes import axes_or_all
from ...primitives.elementwise.arithmetic import convert, sub_p
from ...primitives.operands import finish, operand
from ...primitives.structure.linear import dtype_of, flat, reshape_p, shape_of
from ...primitives.structure.shape import concatenate_p, neighbours, slice_along
from ..dispatch import array_operand, implements

__all__ = ["ediff1d", "gradient"]

# --- gradient -----------------------------------------------------------------------------------------------


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: int | Sequence[int] | None = None, edge_order: int = 1) -> Any:
    """Slopes of a function of which samples on a grid are given: central differences, one-sided at the edges.

    Parameters
    ----------
    f : array_like
        The samples.
    *varargs : number or array_like of one axis
        The distance of samples, or where they were taken: one for all axes, or one for each. By default 1.
    axis : int or sequence of int, optional
        The axes to differentiate along; by default all.
    edge_order : {1, 2}
        The order of the differences at the edges.

    Returns
    -------
    Array or tuple of Array
        Of the shape of `f`; a tuple if there are several axes. Integers give float64.

    Raises
    ------
    ShapeError
        If an axis has fewer than ``edge_order + 1`` samples, or places do not fit samples.
    ArgumentError, ArgumentValueError
        If the number of distances does not fit, or `edge_order` is above 2.
    AxisError
        If there is no such axis.

    Notes
    -----
    Second order inside, also where distances differ: for distances `a` before and `b` behind it is
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
        x = convert(x, FLOAT64)
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
    out = [finish(convert(_slopes(x, h, d, order), dtype_of(x))) for d, h in zip(axes, steps)]
    return out[0] if len(out) == 1 else tuple(out)


def _distances(given: Sequence[Any], extents: Sequence[int]) -> list[Any]:
    """For each axis a number, or the distances of neighbours."""
    if not given:
        return [1.0] * len(extents)
    if len(given) == 1 and not shape_of(operand(given[0], "gradient", 1)):
        given = [given[0]] * len(extents)
    if len(given) != len(extents):
        raise ArgumentError(
            f"gradient: invalid number of arguments: got {len(given)} distances for {len(extents)} axes; want none, "
            "one number, or one for each axis"
        )
    return [_distance(operand(h, "gradient", i + 1), n) for i, (h, n) in enumerate(zip(given, extents))]


def _distance(h: Any, n: int) -> Any:
    shape = shape_of(h)
    if not shape:
        return h
    if len(shape) != 1 or shape[0] != n:
        raise ShapeError(
            f"gradient: distances must be numbers, or {n} places for {n} samples; got an array of shape {shape}"
        )
    if dtype_of(h).kind in "iu":
        h = convert(h, FLOAT64)
    steps = sub_p.bind(*neighbours(h, 0))
    # As in NumPy, equal distances are one; of traced ones that is not known.
    if not isinstance(steps, Tracer) and n > 1 and bool((steps == steps[0]).all()):
        return steps[0]
    return steps


def _slopes(x: Any, h: Any, d: int, order: int) -> Any:
    """Slopes along one axis; `h` is the distance, or all of them."""
    shape = shape_of(x)
    n = shape[d]
    across = (-1, *[1] * (len(shape) - d - 1))

    def part(start: int, stop: int) -> Any:
        return slice_along(x, d, start, stop)

    def steps(start: int, stop: int) -> Any:
        return reshape_p.bind(slice_along(h, 0, start, stop), shape=(stop - start, *across[1:]))

    even = not shape_of(h)
    if even:
        inside = (part(2, n) - part(0, n - 2)) / (2.0 * h)
        a = b = c = e = h
    else:
        before, behind = steps(0, n - 2), steps(1, n - 1)
        both = before + behind
        inside = (
            part(0, n - 2) * (-behind / (before * both))
            + part(1, n - 1) * ((behind - before) / (before * behind))
            + part(2, n) * (before / (behind * both))
        )
        a, e = steps(0, 1), steps(n - 2, n - 1)
        b, c = (steps(1, 2), steps(n - 3, n - 2)) if order == 2 else (a, e)
    if order == 1:
        first, last = (part(1, 2) - part(0, 1)) / a, (part(n - 1, n) - part(n - 2, n - 1)) / e
    else:
        first = _edge(part(0, 1), part(1, 2), part(2, 3), a, b)
        last = -_edge(part(n - 1, n), part(n - 2, n - 1), part(n - 3, n - 2), e, c)
    pieces = [convert(piece, dtype_of(x)) for piece in (first, inside, last)]
    return concatenate_p.bind(*pieces, dimension=d)


def _edge(y0: Any, y1: Any, y2: Any, a: Any, b: Any) -> Any:
    """The slope at an edge, of second order, from three samples at distances `a` and `b`."""
    return y0 * (-(2.0 * a + b) / (a * (a + b))) + y1 * ((a + b) / (a * b)) - y2 * (a / (b * (a + b)))


# --- ediff1d ------------------------------------------------------------------------------------------------


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours in the flattened array.

    Parameters
    ----------
    ary : array_like
    to_end, to_begin : array_like, optional
        Put behind and before the differences, flattened, in the dtype of `ary`.

    Returns
    -------
    Array
        Of one axis.

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
    x = flat(array_operand(ary, "ediff1d: ary"))
    dtype = dtype_of(x)
    if dtype.kind == "b":
        raise DtypeError(
            "ediff1d: ary has dtype bool, and booleans have no differences; convert with .astype(int)"
        )
    steps = sub_p.bind(*neighbours(x, 0))
    parts = []
    for name, value in (("to_begin", to_begin), ("", steps), ("to_end", to_end)):
        if value is None:
            continue
        if name:
            value = flat(array_operand(value, f"ediff1d: {name}"))
            if not np.can_cast(dtype_of(value), dtype, casting="same_kind"):
                raise DtypeError(
                    f"ediff1d: {name} has dtype {dtype_of(value)}, which cannot be cast to that of ary, {dtype}, under "
                    "the rule same_kind"
                )
        parts.append(convert(value, dtype))
    return finish(concatenate_p.bind(*parts, dimension=0) if len(parts) > 1 else parts[0])
