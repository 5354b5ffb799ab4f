"""General gather: windows of an array at positions that are data; the dimension numbers of gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays.array import Array
from ..core import ArgumentError, ArgumentValueError, DtypeError, ShapeError, aval_of
from ..core.values import ArrayLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import GatherScatterMode, as_shape, finish, many_axes, shape_of
from ..runtime.records import NamedTuple
from .elementwise import operands

__all__ = [
    "GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers", "gather", "index_take",
]  # fmt: skip


class GatherDimensionNumbers(NamedTuple):
    """The meaning of each axis of a gather.

    Attributes
    ----------
    offset_dims : tuple of int
        The positions of the window axes in the result, in ascending order.
    collapsed_slice_dims : tuple of int
        Axes of the operand in which windows have extent 1, and that are dropped.
    start_index_map : tuple of int
        The axis of the operand for each column of the start indices.
    operand_batching_dims : tuple of int
        Axes of the operand whose index runs along with an axis of the start indices; they are dropped, too.
    start_indices_batching_dims : tuple of int
        The corresponding axes of the start indices.
    """

    offset_dims: Sequence[int]
    collapsed_slice_dims: Sequence[int]
    start_index_map: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    start_indices_batching_dims: Sequence[int] = ()


class ScatterDimensionNumbers(NamedTuple):
    """The meaning of each axis of a scatter.

    Attributes
    ----------
    update_window_dims : tuple of int
        The window axes of the updates, in ascending order.
    inserted_window_dims : tuple of int
        Axes of the operand in which windows have extent 1, and that the updates lack.
    scatter_dims_to_operand_dims : tuple of int
        The axis of the operand for each column of the indices.
    operand_batching_dims : tuple of int
        Axes of the operand whose index runs along with an axis of the indices; the updates lack them, too.
    scatter_indices_batching_dims : tuple of int
        The corresponding axes of the indices.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


Kind = type[GatherDimensionNumbers] | type[ScatterDimensionNumbers]

# --- reading dimension numbers ------------------------------------------------------------------------------


class GatherScatterNumbers(NamedTuple):
    """Either kind of dimension numbers, checked."""

    places: tuple[int, ...]
    dropped: tuple[int, ...]
    columns: tuple[int, ...]
    own_batch: tuple[int, ...]
    index_batch: tuple[int, ...]


def read_numbers(
    name: str, given: Any, kind: Kind, ndim: int, index: tuple[int, ...]
) -> GatherScatterNumbers:
    if not isinstance(given, kind):
        raise ArgumentError(f"{name}: dimension_numbers must be {kind.__name__}, got {type(given).__name__}")
    places, dropped, columns, own, other = given
    numbers = GatherScatterNumbers(
        as_shape(places, name),
        many_axes(dropped, ndim, name),
        many_axes(columns, ndim, name),
        many_axes(own, ndim, name),
        many_axes(other, len(index) - 1, name),
    )
    if list(numbers.places) != sorted(set(numbers.places)):
        raise ArgumentValueError(f"{name}: {kind._fields[0]} must ascend, got {numbers.places}")
    if len(numbers.columns) != index[-1]:
        raise ArgumentValueError(
            f"{name}: indices of shape {index} have {index[-1]} columns along their last axis, but "
            f"{kind._fields[2]} has {len(numbers.columns)} axes"
        )
    if {*numbers.dropped, *numbers.columns} & {*numbers.own_batch}:
        raise ArgumentValueError(
            f"{name}: operand_batching_dims {numbers.own_batch} also appear in another field"
        )
    if len(numbers.own_batch) != len(numbers.index_batch):
        raise ArgumentValueError(
            f"{name}: batching axes {numbers.own_batch} and {numbers.index_batch} differ in number; expected "
            "one for one"
        )
    return numbers


def windows_of(
    name: str,
    shape: tuple[int, ...],
    index: tuple[int, ...],
    numbers: GatherScatterNumbers,
    sizes: tuple[int, ...],
) -> ops.PlacedWindows:
    """Return the windows after checking their extents."""
    window_axes = [d for d in range(len(shape)) if d not in numbers.dropped and d not in numbers.own_batch]
    count = len(index) - 1 + len(window_axes)
    if len(numbers.places) != len(window_axes) or any(not 0 <= p < count for p in numbers.places):
        raise ArgumentValueError(
            f"{name}: windows of an operand of shape {shape} keep the axes {tuple(window_axes)}; expected one position "
            f"for each among the {count} axes, got {numbers.places}"
        )
    for d, (n, size) in enumerate(zip(shape, sizes)):
        if d not in window_axes and size > 1:
            raise ShapeError(f"{name}: axis {d} is dropped, so windows have extent 1 there, got {size}")
        if not 0 <= size <= n:
            raise ShapeError(f"{name}: windows of extent {size} along axis {d} exceed shape {shape}")
    for d, i in zip(numbers.own_batch, numbers.index_batch):
        if shape[d] != index[i]:
            raise ShapeError(f"{name}: batching axes {d} and {i} have extents {shape[d]} and {index[i]}")
    axes = [
        ops.Axis(
            numbers.columns.index(d) if d in numbers.columns else None,
            numbers.index_batch[numbers.own_batch.index(d)] if d in numbers.own_batch else None,
            sizes[d],
            window_axes.index(d) if d in window_axes else None,
        )
        for d in range(len(shape))
    ]
    return ops.PlacedWindows(shape, tuple(axes), index[:-1], numbers.places)


def with_some_index(x: Value, windows: ops.PlacedWindows) -> tuple[Any, ops.PlacedWindows]:
    """Add a leading axis of extent 1 if no axis needs an index array."""
    if windows.indexed():
        return x, windows
    axes = (ops.Axis(None, None, 1, None), *windows.axes)
    return ops.reshape_p.bind(x, shape=(1, *windows.shape)), windows._replace(
        shape=(1, *windows.shape), axes=axes
    )


def index_operand(name: str, given: ArrayLike) -> Value:
    value = array_operand(given, name, 1)
    aval = aval_of(value)
    if aval.dtype.kind not in "iu":
        raise DtypeError(f"{name}: indices must be integers, got {aval.dtype}")
    if not aval.shape:
        raise ShapeError(f"{name}: indices need a last axis, with a column for each axis they index")
    return value


@checked
def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: GatherScatterMode | str | None = None,
    fill_value: ArrayLike = None,
) -> Array:
    """Gather windows of an array at these start indices.

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
    x: Value,
    indices: Value,
    numbers: GatherScatterNumbers,
    sizes: tuple[int, ...],
    mode: Any,
    fill_value: ArrayLike,
) -> Value:
    way = ops.checked_mode("fill" if mode is None else mode)
    x, windows = with_some_index(x, windows_of("lax.gather", shape_of(x), shape_of(indices), numbers, sizes))
    arrays, way = ops.index_arrays(windows, indices, way)
    if way not in ("fill", "drop"):
        ops.check_sizes("lax.gather", windows)
    fill = {"fill_value": fill_value} if way in ("fill", "drop") else {}
    out = ops.gather_p.bind(x, *arrays, axes=windows.indexed(), mode=way, **fill)
    return ops.arranged(out, windows.order())


@checked
def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
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
