"""``functrans.scipy.ndimage``: arrays sampled between their elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..arrays.arguments import one_of
from ..core import (
    BOOL,
    ArgumentValueError,
    DtypeError,
    ShapeError,
    default_float,
    finfo,
    is_float,
    is_inexact,
)
from ..core.values import ArrayLike, Value
from ..frontend.checked import checked
from ..lax.control_flow.loops import scan
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, shape_of
from ..runtime.module_getattr import module_attributes as _module_attributes

__all__ = ["map_coordinates"]
__getattr__, __dir__ = _module_attributes("functrans.scipy.ndimage", globals())

_MODES = ("constant", "nearest", "mirror", "reflect", "wrap", "grid-constant", "grid-mirror", "grid-wrap")
#: Poles of the recursive filters (M. Unser, "Splines", IEEE Signal Processing Magazine 16, 1999, table 1).
_POLES = {
    2: (math.sqrt(8) - 3,),
    3: (math.sqrt(3) - 2,),
    4: (
        math.sqrt(664 - math.sqrt(438976)) + math.sqrt(304) - 19,
        math.sqrt(664 + math.sqrt(438976)) - math.sqrt(304) - 19,
    ),
    5: (
        math.sqrt(67.5 - math.sqrt(4436.25)) + math.sqrt(26.25) - 6.5,
        math.sqrt(67.5 + math.sqrt(4436.25)) - math.sqrt(26.25) - 6.5,
    ),
}
#: So many elements beyond an edge change a spline by less than rounding does: the largest pole is -0.43.
_REACH = 44


@checked
def map_coordinates(
    input: ArrayLike,
    coordinates: ArrayLike,
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> Any:
    """Sample an array between its elements, by splines.

    Parameters
    ----------
    input : array_like, shape (n1, ..., nd)
    coordinates : sequence of d array_like, or array of shape (d, ...)
        The positions along each axis, in elements; they are broadcast.
    order : int
        0 takes the nearest element, 1 interpolates linearly, 2 to 5 by splines of that order.
    mode : {'constant', 'nearest', 'mirror', 'reflect', 'wrap'}
        What lies beyond the edges: `cval`; the last element; the array reflected about its last element, or about the
        edge after it; or the array again. SciPy's 'grid-constant', 'grid-mirror' and 'grid-wrap' are the same as
        'constant', 'reflect' and 'wrap'.
    cval : number
        The value beyond the edges with ``'constant'``.
    prefilter : bool
        Whether to compute the coefficients of the spline first, for orders above 1; without, `input` is smoothed.

    Returns
    -------
    Array
        With the shape of a coordinate, and the dtype of `input`; rounded for integers.

    Raises
    ------
    ArgumentValueError
        If the order or the mode is unknown.
    ShapeError
        If there is not one coordinate for each axis.

    Notes
    -----
    Differentiable in `input` and, for orders above 0, in the coordinates. Modes follow JAX: with ``'constant'``,
    positions next to an edge are interpolated between elements and `cval`, and the period of ``'wrap'`` is the number
    of elements. SciPy calls these 'grid-constant' and 'grid-wrap', and does something else by the shorter names.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.scipy.ndimage import map_coordinates
    >>> map_coordinates(fnp.arange(12.0).reshape(3, 4), ([0.5, 1.5], [1.5, 2.5]), order=1)
    Array([3.5, 8.5])
    """
    name = "map_coordinates"
    x = array_operand(input, f"{name}: input")
    if not 0 <= order <= 5:
        raise ArgumentValueError(f"{name}: order must be from 0 to 5, got {order}")
    one_of(mode, _MODES, f"{name}: mode")
    mode = {"grid-constant": "constant", "grid-mirror": "reflect", "grid-wrap": "wrap"}.get(mode, mode)
    shape, given = shape_of(x), dtype_of(x)
    at = _positions(name, coordinates, shape)
    if 0 in shape and at[0].size:
        raise ShapeError(f"{name}: input has no elements, got shape {shape}")
    outside = _number(name, cval, given)
    if order == 0:
        nearest = [fnp.astype(_away_from_zero(u), np.int64) for u in at]
        return _element(finish(x), nearest, mode, outside)
    outside = fnp.astype(outside, given if is_inexact(given) else default_float())
    samples = finish(x if is_inexact(given) else ops.convert(x, default_float(dtype_of(x))))
    extra = [0] * len(shape)
    if prefilter and order > 1:
        samples, extra = _coefficients(samples, order, mode, outside)
    nodes = [_nodes(u + e, order) for u, e in zip(at, extra)]
    if order > 1:
        nodes = _on_own_axes(nodes)
    out = _sum_of_nodes(samples, nodes, mode, outside)
    if order > 1:
        out = fnp.sum(out, tuple(range(len(shape))))
    return _in_dtype(out, given)


def _positions(name: str, coordinates: ArrayLike, shape: tuple[int, ...]) -> list[Any]:
    """The coordinates along each axis, floating point and of one shape."""
    if not isinstance(coordinates, Sequence):
        coordinates = fnp.asarray(coordinates)
    count = len(coordinates) if isinstance(coordinates, Sequence) or coordinates.ndim else 0
    if not shape or count != len(shape):
        raise ShapeError(
            f"{name}: coordinates must be one array for each axis of input, which has shape {shape}, got {count}"
        )
    parts = []
    for d in range(count):
        u = array_operand(coordinates[d], f"{name}: coordinates {d}")
        if dtype_of(u).kind == "c":
            raise DtypeError(f"{name}: coordinates must be real, got {dtype_of(u)}")
        parts.append(finish(u if is_float(dtype_of(u)) else ops.convert(u, default_float(dtype_of(u)))))
    return list(fnp.broadcast_arrays(*parts))


def _number(name: str, cval: ArrayLike, dtype: np.dtype) -> Value:
    value = array_operand(cval, f"{name}: cval")
    if shape_of(value) or (dtype_of(value).kind == "c" and dtype.kind != "c"):
        raise ShapeError(f"{name}: cval must be a number like the elements of input, got {cval!r}")
    return finish(ops.convert(value, dtype))


def _in_dtype(out: ArrayLike, dtype: np.dtype) -> Value:
    if is_inexact(dtype):
        return fnp.astype(out, dtype)
    return fnp.astype(_away_from_zero(out) if dtype != BOOL else fnp.not_equal(out, 0), dtype)


def _away_from_zero(x: Value) -> Value:
    """Round; halves away from zero, as SciPy and JAX do."""
    return fnp.trunc(x + fnp.copysign(0.5, x))


# --- splines ------------------------------------------------------------------------------------------------


def _nodes(u: ArrayLike, order: int) -> list[tuple[Any, Any]]:
    """The elements next to each position, and their weights: the B-splines that are not zero there."""
    whole = fnp.floor(u if order % 2 else u + 0.5)
    t = u - whole if order % 2 else u - whole + 0.5
    weights: list[Any] = [fnp.ones_like(t)]
    for k in range(1, order + 1):
        # The recursion of Cox and de Boor on the integers, between 0 and 1: spline i lives from i to i + k + 1.
        lower, weights = weights, []
        for m in range(k + 1):
            i = m - k
            rising = (t - i) / k * lower[m - 1] if m else None
            falling = (i + k + 1 - t) / k * lower[m] if m < k else None
            weights.append(rising if falling is None else falling if rising is None else rising + falling)
    first = (
        fnp.astype(whole, np.int64) - (order - 1) // 2
        if order % 2
        else fnp.astype(whole, np.int64) - order // 2
    )
    return [(first + m, w) for m, w in enumerate(weights)]


def _on_own_axes(nodes: list[list[tuple[Any, Any]]]) -> list[list[tuple[Any, Any]]]:
    """One node for each axis of the array, with its elements along a leading axis."""
    rank = len(nodes)
    out = []
    for d, parts in enumerate(nodes):
        place = tuple([len(parts) if e == d else 1 for e in range(rank)])
        joined = [fnp.stack(x) for x in zip(*parts)]
        index, weight = (fnp.reshape(x, (*place, *x.shape[1:])) for x in joined)
        out.append([(index, weight)])
    return out


def _sum_of_nodes(
    samples: Value, nodes: Sequence[list[tuple[Any, Any]]], mode: str, outside: ArrayLike
) -> Value:
    """The sum over all combinations of nodes of the axes."""
    total: ArrayLike = None
    combinations: list[list[tuple[Any, Any]]] = [[]]
    for parts in nodes:
        combinations = [[*c, p] for c in combinations for p in parts]
    for chosen in combinations:
        term = _element(samples, [i for i, _ in chosen], mode, outside)
        term = term * fnp.astype(reduce(fnp.multiply, [w for _, w in chosen]), _real_of(samples.dtype))
        total = term if total is None else total + term
    return total


def _real_of(dtype: np.dtype) -> np.dtype:
    return finfo(dtype).dtype


def _element(samples: Value, indices: Sequence[ArrayLike], mode: str, outside: ArrayLike) -> Value:
    inside = [_FIXED[mode](i, n) for i, n in zip(indices, samples.shape)]
    places = [ops.operand(i, "map_coordinates") for i in fnp.broadcast_arrays(*inside)]
    value = finish(
        ops.gather_p.bind(
            ops.operand(samples, "map_coordinates"),
            *places,
            axes=tuple(range(len(places))),
            mode="promise_in_bounds",
        )
    )
    if mode != "constant":
        return value
    valid = reduce(fnp.logical_and, [(i >= 0) & (i < n) for i, n in zip(indices, samples.shape)])
    return fnp.where(valid, value, outside)


def _clipped(i: ArrayLike, n: int) -> Value:
    return fnp.clip(i, 0, n - 1)


def _mirrored(i: ArrayLike, n: int) -> Value:
    """Reflected about the first and last element: a triangular wave."""
    return fnp.zeros_like(i) if n == 1 else (n - 1) - fnp.absolute(i % (2 * n - 2) - (n - 1))


def _reflected(i: ArrayLike, n: int) -> Value:
    """Reflected about the edges."""
    j = i % (2 * n)
    return fnp.minimum(j, 2 * n - 1 - j)


_FIXED: dict[str, Callable[[Any, int], Any]] = {
    "constant": _clipped,
    "nearest": _clipped,
    "mirror": _mirrored,
    "reflect": _reflected,
    "wrap": lambda i, n: i % n,
}


# --- coefficients -------------------------------------------------------------------------------------------


def _coefficients(samples: Value, order: int, mode: str, outside: ArrayLike) -> tuple[Any, list[int]]:
    """The coefficients of the spline through the samples, and how many of them precede the first sample.

    The samples are continued beyond the edges as `mode` says, so far that the filters forget how they began. The
    coefficients have the same symmetry, so the rest is cut off again, except where there is none.
    """
    lopsided = mode in ("constant", "nearest")
    for d in range(samples.ndim):
        n = samples.shape[d]
        if n == 1 and mode != "constant":
            samples = _repeated(samples, d, lopsided)
            continue
        beyond = fnp.arange(-2 * _REACH, n + 2 * _REACH)
        extended = fnp.moveaxis(_extended(samples, d, beyond, mode, outside), d, 0)
        filtered = reduce(_filtered, _POLES[order], extended)
        cut = _REACH if lopsided else 2 * _REACH
        samples = fnp.moveaxis(filtered[cut : filtered.shape[0] - cut], 0, d)
    return samples, [_REACH if lopsided else 0] * samples.ndim


def _repeated(samples: Value, axis: int, lopsided: bool) -> Value:
    """A single sample: the spline is constant."""
    return fnp.repeat(samples, 2 * _REACH + 1, axis) if lopsided else samples


def _extended(samples: Value, axis: int, beyond: ArrayLike, mode: str, outside: ArrayLike) -> Value:
    n = samples.shape[axis]
    index = ops.operand(_FIXED[mode](beyond, n), "map_coordinates")
    value = ops.gather_p.bind(
        ops.operand(samples, "map_coordinates"), index, axes=(axis,), mode="promise_in_bounds"
    )
    taken = fnp.moveaxis(finish(value), 0, axis)
    if mode != "constant":
        return taken
    valid = fnp.reshape((beyond >= 0) & (beyond < n), (-1, *[1] * (samples.ndim - axis - 1)))
    return fnp.where(valid, taken, outside)


def _filtered(x: Value, pole: float) -> Value:
    """The inverse of ``(z + z**-1 - pole - 1 / pole)``, along axis 0: a recursion from either end."""

    def step(state: ArrayLike, row: ArrayLike) -> tuple[Any, Any]:
        state = row + pole * state
        return state, state

    causal = scan(step, x[0] / (1.0 - pole), x)[1]
    both = scan(step, causal[-1] / (1.0 - pole), causal, reverse=True)[1]
    return both * (1.0 - pole) ** 2
