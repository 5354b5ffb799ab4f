"""Check and read the dimension numbers of general gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.aval import aval_of
from ..core.errors import ArgumentError, ArgumentValueError, DtypeError, ShapeError
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.axes import as_shape, many_axes

__all__ = ["GatherDimensionNumbers", "ScatterDimensionNumbers"]


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


def with_some_index(x: Any, windows: ops.PlacedWindows) -> tuple[Any, ops.PlacedWindows]:
    """Add a leading axis of extent 1 if no axis needs an index array."""
    if windows.indexed():
        return x, windows
    axes = (ops.Axis(None, None, 1, None), *windows.axes)
    return ops.reshape_p.bind(x, shape=(1, *windows.shape)), windows._replace(
        shape=(1, *windows.shape), axes=axes
    )


def index_operand(name: str, given: Any) -> Any:
    value = array_operand(given, name, 1)
    aval = aval_of(value)
    if aval.dtype.kind not in "iu":
        raise DtypeError(f"{name}: indices must be integers, got {aval.dtype}")
    if not aval.shape:
        raise ShapeError(f"{name}: indices need a last axis, with a column for each axis they index")
    return value
