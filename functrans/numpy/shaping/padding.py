"""pad, in all of NumPy's modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.values import ArrayLike, Params, PyTree, Value
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, one_axis, operand, shape_of, strong
from ..calling import apply_along_axis
from ..creation.ranges import linspace
from ..dispatch import array_operand, implements, owned
from ..elementwise import selection
from ..reductions import reductions
from ..statistics import averages as statistics
from ..statistics.medians import median
from .moving import flip

__all__ = ["pad"]

_OPTIONS: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",),
    "edge": (),
    "empty": (),
    "linear_ramp": ("end_values",),
    "maximum": ("stat_length",),
    "mean": ("stat_length",),
    "median": ("stat_length",),
    "minimum": ("stat_length",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "wrap": (),
}
_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": reductions.max,
    "mean": statistics.mean,
    "median": median,
    "minimum": reductions.min,
}


@implements(np.pad)
def pad(array: ArrayLike, pad_width: ArrayLike, mode: Any = "constant", **kwargs: Any) -> Value:
    """Pad an array before and after along each axis.

    Parameters
    ----------
    array : array_like
    pad_width : int, pair, or sequence of pairs; or dict from axis to one of them
        The numbers of elements before and after: for all axes alike, or for each axis.
    mode : str or callable
        'constant', 'edge', 'linear_ramp' (from the edge to `end_values`), 'maximum', 'mean', 'median' and 'minimum' (of
        the `stat_length` elements nearest to the edge), 'reflect' (about the first and last element), 'symmetric'
        (about the edge after them), 'wrap', or 'empty' (zeros). A function is called as
        ``f(vector, pad_width, axis, kwargs)`` with each vector along an axis, padded with zeros, and returns it filled.
    constant_values, end_values : number, pair, or sequence of pairs
        May be traced. Default 0.
    stat_length : int, pair, or sequence of pairs, optional
        By default all elements.
    reflect_type : {'even', 'odd'}
        'odd' means twice the edge minus the reflected value.

    Returns
    -------
    Array

    Raises
    ------
    ArgumentValueError
        If the mode is unknown or does not accept an option, a width is negative, or an axis is empty in a mode that
        needs elements.
    ShapeError
        If `pad_width` does not match the axes.

    Notes
    -----
    Differentiable in the array, in constants and in end values. As in NumPy, axes are padded one after another, so that
    later axes determine the corners.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.pad([1, 2, 3], (1, 2), mode="reflect")
    Array([2, 1, 2, 3, 2, 1])
    >>> fnp.pad([2.0, 4.0], 2, mode="linear_ramp")
    Array([0., 1., 2., 4., 2., 0.])
    """
    x = array_operand(array, "pad")
    shape = shape_of(x)
    widths = _widths(pad_width, len(shape))
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)
    allowed = _OPTIONS.get(mode)
    if allowed is None:
        known = ", ".join(map(repr, _OPTIONS))
        raise ArgumentValueError(f"pad: mode must be one of {known}, or a function, got {mode!r}")
    if not set(kwargs) <= set(allowed):
        raise ArgumentValueError(f"pad: unsupported keyword arguments for mode {mode!r}: {sorted(kwargs)}")
    if mode in ("constant", "empty"):
        return owned(_constant(x, widths, kwargs.get("constant_values", 0)), array)
    for d, width in enumerate(widths):
        if width == (0, 0):
            continue
        if not shape[d]:
            raise ArgumentValueError(
                f"pad: can't extend empty axis {d} using modes other than 'constant' or 'empty'"
            )
        x = _along(x, d, width, mode, kwargs, len(shape))
    return owned(x, array)


def _along(x: Value, d: int, width: tuple[int, int], mode: str, options: Params, ndim: int) -> Value:
    if mode == "linear_ramp":
        return _ramps(x, d, width, _pairs(options.get("end_values", 0), ndim, "end_values")[d])
    if mode in _STATISTICS:
        lengths = options.get("stat_length")
        pair = (None, None) if lengths is None else _lengths(lengths, ndim)[d]
        return _statistic(x, d, width, pair, mode)
    kind = options.get("reflect_type", "even")
    if kind not in ("even", "odd"):
        raise ArgumentValueError(f"pad: reflect_type must be 'even' or 'odd', got {kind!r}")
    n = shape_of(x)[d]
    if kind == "odd" and n > 1:
        return _odd(x, d, width, mode == "symmetric")
    places = np.pad(np.arange(n), width, mode)  # type: ignore[call-overload]
    return ops.move_axis(ops.gather_p.bind(x, places, axes=(d,), mode="promise_in_bounds"), 0, d)


# --- what is asked for --------------------------------------------------------------------------------------


def _widths(pad_width: ArrayLike, ndim: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        given = {one_axis(d, ndim, "pad"): width for d, width in pad_width.items()}
        pad_width = [np.broadcast_to(given.get(d, 0), (2,)) for d in range(ndim)]
    widths = np.asarray(pad_width)
    if widths.dtype.kind not in "iu":
        raise ArgumentError(f"pad: pad_width must be integers, got {pad_width!r}")
    try:
        widths = np.broadcast_to(widths, (ndim, 2))
    except ValueError:
        raise ShapeError(f"pad: pad_width {pad_width!r} does not match an array with {ndim} axes") from None
    if (widths < 0).any():
        raise ArgumentValueError(f"pad: pad_width must not be negative, got {pad_width!r}")
    return [(int(lo), int(hi)) for lo, hi in widths]


def _pairs(given: Any, ndim: int, name: str) -> list[tuple[Any, Any]]:
    """One number for each side of each axis."""
    values: ArrayLike = finish(array_operand(given, f"pad: {name}"))
    shape = shape_of(values)
    try:
        values = finish(ops.broadcast_to(operand(values, "pad"), np.broadcast_shapes(shape, (ndim, 2))))
    except ValueError:
        raise ShapeError(f"pad: {name} of shape {shape} does not match an array with {ndim} axes") from None
    if shape_of(values) != (ndim, 2):
        raise ShapeError(f"pad: {name} of shape {shape} does not match an array with {ndim} axes")
    return [(values[d, 0], values[d, 1]) for d in range(ndim)]


def _lengths(given: Any, ndim: int) -> list[tuple[int, int]]:
    lengths = np.asarray(given)
    if lengths.dtype.kind not in "iu" or (lengths < 0).any():
        raise ArgumentValueError(f"pad: index can't contain negative values: stat_length {given!r}")
    try:
        return [(int(a), int(b)) for a, b in np.broadcast_to(lengths, (ndim, 2))]
    except ValueError:
        raise ShapeError(f"pad: stat_length {given!r} does not match an array with {ndim} axes") from None


# --- modes --------------------------------------------------------------------------------------------------


def _constant(x: ArrayLike, widths: list[tuple[int, int]], constant: ArrayLike) -> Value:
    dtype, ndim = dtype_of(x), len(widths)
    value = operand(constant, "pad")
    ops.refuse_complex(dtype_of(value), dtype, "pad")
    if not shape_of(value):
        config = tuple([(lo, hi, 0) for lo, hi in widths])
        return ops.pad_p.bind(x, strong(value, dtype), padding_config=config)
    # Different numbers for each side: axis by axis, so that later axes determine the corners, as in NumPy.
    for d, ((lo, hi), values) in enumerate(zip(widths, _pairs(constant, ndim, "constant_values"))):
        for low, high, number in ((lo, 0, values[0]), (0, hi, values[1])):
            config = tuple([(low, high, 0) if e == d else (0, 0, 0) for e in range(ndim)])
            if low or high:
                x = ops.pad_p.bind(x, strong(operand(number, "pad"), dtype), padding_config=config)
    return x


def _edges(x: Value, d: int, first: int, last: int) -> tuple[Any, Any]:
    """The first and the last elements along an axis."""
    shape = shape_of(x)
    return ops.slice_along(x, d, 0, first), ops.slice_along(x, d, shape[d] - last, shape[d])


def _beside(x: Value, d: int, before: Any, after: Any) -> Value:
    parts = [before, x, after]
    dtype = dtype_of(x)
    return ops.concatenate_p.bind(*[strong(operand(part, "pad"), dtype) for part in parts], dimension=d)


def _ramps(x: Value, d: int, width: tuple[int, int], ends: tuple[Any, Any]) -> Value:
    ramps = []
    for edge, end, n in zip(_edges(x, d, 1, 1), ends, width):
        line = reductions.sum(edge, d, dtype=dtype_of(x))  # of one element: this removes the axis
        ramps.append(linspace(end, line, n, endpoint=False, dtype=dtype_of(x), axis=d))
    return _beside(x, d, ramps[0], flip(ramps[1], d))


def _statistic(
    x: Value, d: int, width: tuple[int, int], lengths: tuple[int | None, int | None], mode: str
) -> Value:
    n, dtype = shape_of(x)[d], dtype_of(x)
    taken = [n if length is None or length > n else length for length in lengths]
    if 0 in taken and mode in ("maximum", "minimum"):
        raise ArgumentValueError("pad: stat_length of 0 yields no value for padding")
    statistics = []
    for part, count in zip(_edges(x, d, *taken), width):
        number: ArrayLike = _STATISTICS[mode](finish(part), axis=d, keepdims=True)
        if dtype.kind in "iu" and number.dtype.kind not in "iu":
            number = selection.round(number)
        shape = list(shape_of(number))
        shape[d] = count
        statistics.append(ops.broadcast_to(ops.convert(operand(number, "pad"), dtype), tuple(shape)))
    return _beside(x, d, *statistics)


def _odd(x: Value, d: int, width: tuple[int, int], symmetric: bool) -> Any:
    """Reflect in both coordinates, so that the array continues after two reflections."""
    n = shape_of(x)[d]
    period = 2 * n if symmetric else 2 * (n - 1)
    turns, inside = np.divmod(np.arange(-width[0], n + width[1]), period)
    back = inside >= n
    places = np.where(back, period - inside - symmetric, inside)
    spread = [1] * len(shape_of(x))
    spread[d] = len(places)

    def numbers(values: ArrayLike) -> Value:
        return np.asarray(values).astype(dtype_of(x)).reshape(spread)

    value: Any = finish(
        ops.move_axis(ops.gather_p.bind(x, places, axes=(d,), mode="promise_in_bounds"), 0, d)
    )
    first, last = (finish(edge) for edge in _edges(x, d, 1, 1))
    rise: Any = 2 * (last - first)
    return operand(value * numbers(1 - 2 * back) + last * numbers(2 * back) + rise * numbers(turns), "pad")


def _by_function(
    x: Value, widths: list[tuple[int, int]], function: Callable[..., PyTree], kwargs: Any
) -> Value:
    padded: Any = finish(_constant(x, widths, 0))
    for d, width in enumerate(widths):

        def filled(vector: ArrayLike, width: tuple[int, int] = width, d: int = d) -> Value:
            out = function(vector, width, d, kwargs)
            if out is None:
                raise ArgumentError(
                    "pad: the function must return the vector with its ends filled; functrans arrays are "
                    "immutable: return vector.at[...].set(...)"
                )
            return out

        padded = apply_along_axis(filled, d, padded)
    return padded
