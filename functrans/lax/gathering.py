"""General gather: windows of an array at positions that are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.aval import aval_of
from ..core.errors import ShapeError
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import GatherScatterMode, as_shape, finish, many_axes, shape_of
from .dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterNumbers,
    index_operand,
    read_numbers,
    windows_of,
    with_some_index,
)
from .elementwise import operands

__all__ = ["GatherScatterMode", "gather", "index_take"]


@checked
def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: GatherScatterMode | str | None = None,
    fill_value: Any = None,
) -> Any:
    """Gather windows of an array at the given start indices.

    Parameters
    ----------
    operand : array_like
    start_indices : array_like of int, shape (..., k)
        Each row is the start of a window in the axes ``dimension_numbers.start_index_map``; it starts at 0 in others.
    dimension_numbers : GatherDimensionNumbers
    slice_sizes : sequence of int
        The extents of the windows, one for each axis of `operand`.
    unique_indices, indices_are_sorted : bool
        Promises that have no effect.
    mode : GatherScatterMode or str, optional
        What to do with windows that are not entirely in bounds. ``"fill"`` (the default) fills them with `fill_value`.
        ``"clip"`` and ``"promise_in_bounds"`` move them into bounds. In these modes negative indices are out of bounds.
        ``"raise"`` raises `IndexOutOfBoundsError`, and negative indices count from the end. ``"wrap"`` takes every
        index modulo the extent.
    fill_value : optional
        By default NaN, the lowest signed or the highest unsigned integer, or True.

    Returns
    -------
    Array
        The axes ``dimension_numbers.offset_dims`` are the window axes; the others are those of `start_indices` except
        the last.

    Raises
    ------
    ArgumentError, ArgumentValueError, ShapeError
        If the dimension numbers do not match the operands.
    IndexOutOfBoundsError
        In mode ``"raise"``, also from a compiled kernel.

    Notes
    -----
    Differentiable in `operand`, to any order; a filled window has no derivative. Where they suffice, index expressions
    (``x[i, j]``, ``x.at[i, j].get(mode=...)``) are easier to read.

    References
    ----------
    Gather of XLA's operation semantics, https://openxla.org/xla/operation_semantics#gather

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> rows = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(), start_index_map=(0,))
    >>> lax.gather(np.arange(6.0), np.array([[0], [3], [5]]), rows, (2,), mode="clip")
    Array([[0., 1.],
           [3., 4.],
           [4., 5.]])
    """
    (x,) = operands("gather", operand)
    indices = index_operand("lax.gather", start_indices)
    sizes = as_shape(slice_sizes, "lax.gather: slice_sizes")
    shape = shape_of(x)
    if len(sizes) != len(shape):
        raise ShapeError(f"lax.gather: expected {len(shape)} slice_sizes for shape {shape}, got {sizes}")
    numbers = read_numbers(
        "lax.gather", dimension_numbers, GatherDimensionNumbers, len(shape), shape_of(indices)
    )
    return finish(take_windows(x, indices, numbers, sizes, mode, fill_value))


def take_windows(
    x: Any, indices: Any, numbers: GatherScatterNumbers, sizes: tuple[int, ...], mode: Any, fill_value: Any
) -> Any:
    way = ops.checked_mode("fill" if mode is None else mode)
    x, windows = with_some_index(x, windows_of("lax.gather", shape_of(x), shape_of(indices), numbers, sizes))
    arrays, way = ops.index_arrays(windows, indices, way)
    if way not in ("fill", "drop"):
        ops.check_sizes("lax.gather", windows)
    fill = {"fill_value": fill_value} if way in ("fill", "drop") else {}
    out = ops.gather_p.bind(x, *arrays, axes=windows.indexed(), mode=way, **fill)
    return ops.arranged(out, windows.order())


@checked
def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Any:
    """Take elements at indices along some axes; the other axes follow whole.

    Parameters
    ----------
    src : array_like
    idxs : sequence of array_like of int, shape (n,)
        One for each of `axes`, taken modulo the extent.
    axes : sequence of int

    Returns
    -------
    Array, shape (n, ...)

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.index_take(np.arange(6).reshape(2, 3), (np.array([0, 1, 2]),), (1,))
    Array([[0, 3],
           [1, 4],
           [2, 5]])
    """
    (x,) = operands("index_take", src)
    places = many_axes(axes, len(shape_of(x)), "lax.index_take")
    arrays = [array_operand(i, "index_take", 1) for i in idxs]
    ops.gather_p.abstract(aval_of(x), *map(aval_of, arrays), axes=places, mode="wrap")
    return finish(ops.gather_p.bind(x, *arrays, axes=places, mode="wrap"))
