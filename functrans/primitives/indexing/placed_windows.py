"""Windows of an array at positions that data decide, as gathers and scatters in canonical form.

A *window* has an extent along each axis of the operand, and begins where a row of the start indices says. An `Axis`
describes what the windows take of one axis. From it come the index arrays of `gather_p` and `scatter_p`: one for each
indexed axis, of the shape ``batch + extents`` of the windows. Axes of which windows take everything need none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import INT64, IndexOutOfBoundsError
from ...core.values import ArrayLike, Value
from ...runtime.records import NamedTuple
from ..elementwise.arithmetic import clamp_p, convert, ge_p, le_p, lt_p, select_p
from ..elementwise.bits import and_p
from ..structure.linear import add_p, broadcast_in_dim_p, reshape_p, shape_of, transpose_p
from ..structure.shape import iota, slice_p


class Axis(NamedTuple):
    """What the windows take of one axis of the operand.

    Attributes
    ----------
    column : int or None
        The column of the start indices with their position on this axis; None for 0.
    batch : int or None
        The batch axis whose index replaces the start index.
    size : int
        The extent of the windows along this axis.
    window : int or None
        The windows' axis that it becomes; None if it is dropped.
    """

    column: int | None
    batch: int | None
    size: int
    window: int | None


class PlacedWindows(NamedTuple):
    """A gather or scatter of windows, for one shape of operand and start indices.

    Attributes
    ----------
    shape : tuple of int
        The shape of the operand.
    axes : tuple of Axis
        One for each axis of the operand.
    batch : tuple of int
        The shape of the start indices without their last axis.
    places : tuple of int
        The positions of the windows' axes in the result (of a gather) or in the updates (of a scatter).
    """

    shape: tuple[int, ...]
    axes: tuple[Axis, ...]
    batch: tuple[int, ...]
    places: tuple[int, ...]

    def indexed(self) -> tuple[int, ...]:
        """The axes of the operand that need an index array."""
        return tuple([
            d
            for d, (n, a) in enumerate(zip(self.shape, self.axes))
            if a.column is not None or a.batch is not None or a.size != n or a.window is None
        ])  # fmt: skip

    def expanded(self) -> tuple[int, ...]:
        """Those of them that remain axes of the windows."""
        return tuple([d for d in self.indexed() if self.axes[d].window is not None])

    def order(self) -> tuple[int, ...]:
        """The permutation that takes the canonical ``batch + expanded + whole`` to the result's axes."""
        expanded = self.expanded()
        inner = [*expanded, *[d for d in range(len(self.shape)) if d not in self.indexed()]]
        count = len(self.batch) + len(inner)
        outer = iter(range(len(self.batch)))
        source = {self.places[w]: len(self.batch) + inner.index(d)
                  for d, w in enumerate(a.window for a in self.axes) if w is not None}  # fmt: skip
        return tuple([source[p] if p in source else next(outer) for p in range(count)])


def index_arrays(windows: PlacedWindows, starts: ArrayLike, mode: str) -> tuple[list[Any], str]:
    """Return the index arrays, and the mode for the canonical gather or scatter.

    Mode "clip" moves a window until it fits. Modes "fill" and "drop" leave out a whole window if it does not fit, and
    treat negative starts as out of bounds. In modes "raise" and "wrap" negative starts count from the end.
    """
    expanded = windows.expanded()
    common = windows.batch + tuple([windows.axes[d].size for d in expanded])
    arrays = []
    for d in windows.indexed():
        axis, n = windows.axes[d], windows.shape[d]
        parts = []
        if axis.batch is not None:
            parts.append(_spread(iota(windows.batch, axis.batch), common))
        elif axis.column is not None:
            parts.append(_spread(_start(_column(starts, axis.column), n, axis.size, mode), common))
        if d in expanded and (axis.size > 1 or not parts):
            parts.append(iota(common, len(windows.batch) + expanded.index(d)))
        total = parts[0] if parts else _spread(np.int64(0), common)
        arrays.append(add_p.bind(total, parts[1]) if len(parts) > 1 else total)
    inside = mode in ("clip", "promise_in_bounds") or all(a.column is None for a in windows.axes)
    return arrays, "promise_in_bounds" if inside else mode


def _column(starts: Value, i: int) -> Value:
    """Return one column of the start indices, as int64."""
    shape = shape_of(starts)
    if shape[-1] != 1:
        starts = slice_p.bind(
            starts,
            start_indices=(0,) * (len(shape) - 1) + (i,),
            limit_indices=(*shape[:-1], i + 1),
            strides=(1,) * len(shape),
        )
    return convert(reshape_p.bind(starts, shape=shape[:-1]), INT64)


def _start(start: Value, n: int, size: int, mode: str) -> Value:
    """Return adjusted starts, with which the canonical gather treats elements out of bounds as `mode` says."""
    zero, last = np.int64(0), np.int64(n - size)
    if mode in ("clip", "promise_in_bounds"):
        # A broken promise must not read or write foreign memory.
        return clamp_p.bind(zero, start, last)
    if mode in ("fill", "drop"):
        fits = and_p.bind(ge_p.bind(start, zero), le_p.bind(start, last))
        return select_p.bind(fits, start, np.int64(n))
    if mode == "raise" and size != 1:
        # Count from the end here: adding an offset to a negative start must not give a valid index.
        from_end = and_p.bind(lt_p.bind(start, zero), ge_p.bind(start, np.int64(-n)))
        return select_p.bind(from_end, add_p.bind(start, np.int64(n)), start)
    return start


def _spread(x: ArrayLike, common: tuple[int, ...]) -> Value:
    shape = shape_of(x)
    if shape == common:
        return x
    return broadcast_in_dim_p.bind(x, shape=common, broadcast_dimensions=tuple(range(len(shape))))


def check_sizes(name: str, windows: PlacedWindows) -> None:
    """Refuse windows that are larger than the operand."""
    if 0 in windows.batch:
        return
    for d, a in enumerate(windows.axes):
        if a.size > windows.shape[d]:
            raise IndexOutOfBoundsError(
                f"{name}: the window size {a.size} exceeds the size {windows.shape[d]} of axis {d}"
            )


def arranged(x: Value, order: Sequence[int]) -> Value:
    """Reorder the axes."""
    order = tuple(order)
    return x if order == tuple(range(len(order))) else transpose_p.bind(x, permutation=order)


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """Return the inverse permutation."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))
