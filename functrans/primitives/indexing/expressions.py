"""NumPy's index expressions: ``x[...]`` and ``x.at[...]`` of traced values and of arrays.

An expression is parsed into a `Plan`: a slice of every axis (integers are slices of one element), a reshape that drops
the axes of integers and inserts new ones, and a gather by the index arrays. Reads follow the plan; writes run it
backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ... import errors
from ...arrays.array import unwrap
from ...core import INT64, Tracer, because, is_abstract, operators
from ...core.values import ArrayLike, Index, Value
from ...runtime.records import NamedTuple
from ..axes import broadcast_shapes
from ..elementwise.arithmetic import mul_p
from ..structure.linear import add_p, broadcast_to, reshape_p, shape_of, transpose_p
from ..structure.shape import iota, rev_p, slice_p
from .gather_scatter import gather_p
from .index_entries import Mask, entries_of, with_ellipsis
from .index_shapes import check_bounds, default_mode, rest_of
from .item import getitem_p


class Plan(NamedTuple):
    """An index expression, parsed for an array of one shape.

    Attributes
    ----------
    starts, limits, strides : tuple of int
        The slice of each axis of the array.
    flipped : tuple of int
        Axes whose slice runs backwards.
    expression : tuple
        The same slices, integers and new axes in the form that `item.getitem_p` takes.
    view : tuple of int
        The shape after slices, integers and new axes.
    axes : tuple of int
        The axes of `view` that index arrays index.
    indices : list
        The index arrays, broadcast to one shape.
    place : int
        The position of the index arrays' axes in the result.
    mode : str
        The mode of the gather or scatter.
    shape : tuple of int
        The shape of the result.
    distinct : bool
        Whether the index arrays are known to select no element twice.
    """

    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]
    flipped: tuple[int, ...]
    expression: tuple[Any, ...]
    view: tuple[int, ...]
    axes: tuple[int, ...]
    indices: list[Any]
    place: int
    mode: str
    shape: tuple[int, ...]
    distinct: bool = False

    def sliced_shape(self) -> tuple[int, ...]:
        """The shape after the slices."""
        extents = zip(self.starts, self.limits, self.strides)
        return tuple([(limit - start + step - 1) // step for start, limit, step in extents])

    def is_whole(self, shape: tuple[int, ...]) -> bool:
        """Whether the slices take every element, in order."""
        return self.sliced_shape() == shape and not self.flipped

    def order(self) -> tuple[int, ...] | None:
        """The permutation that takes ``S + rest`` to the result's axes; None if they agree."""
        common = len(self.shape) - (len(self.view) - len(self.axes))
        if not self.place or not common:
            return None
        rest = range(common, len(self.shape))
        return (*rest[: self.place], *range(common), *rest[self.place :])


# --- reading an expression ----------------------------------------------------------------------------------


def plan_index(index: Index, shape: tuple[int, ...], mode: str = "raise", staged: bool = False) -> Plan:
    """Parse an index expression for an array of a shape.

    Parameters
    ----------
    index : any
        What was between the brackets.
    shape : tuple of int
    mode : str
        See `GatherScatterMode`.
    staged : bool
        Whether the array's values are unknown. Then constant indices are checked here, once.
    """
    key, arrays = _key(index)
    if key is None or (arrays and staged):
        return _read(entries_of(index), shape, mode, staged)
    plan = _known_plan(key, shape, mode)
    if not arrays:
        return plan
    common = shape_of(plan.indices[0])
    return plan._replace(indices=[i if i.shape == common else np.broadcast_to(i, common) for i in arrays])


def _read(entries: list[Any], shape: tuple[int, ...], mode: str, staged: bool) -> Plan:
    arrays = [e for e in entries if isinstance(e, np.ndarray | np.generic | Tracer)]
    # ``x[i, 0]`` as one look-up, for a traced number `i`: a slice of column 0 costs more, also in derivatives.
    looked_up = any(isinstance(e, Tracer) for e in arrays) and all(shape_of(e) == () for e in arrays)
    entries = with_ellipsis(entries, shape)
    reader = _Reader(shape, mode, looked_up, _spaced(entries) if looked_up else 0)
    for entry in entries:
        reader.read(entry)
    return reader.finish(staged)


def _spaced(entries: Sequence[Any]) -> int:
    """How many slices of a look-up have a step; 0 if others stand between them."""
    steps = [type(e) is slice and e.step is not None and e.step != 1 for e in entries]
    if True not in steps:
        return 0
    run = range(steps.index(True), len(steps) - steps[::-1].index(True))
    between = [entries[i] for i in run if not steps[i]]
    return 0 if any(type(e) is slice or e is None or e is Ellipsis for e in between) else sum(steps)


_INT_OR_NONE = frozenset((int, type(None)))


def _key(index: Index) -> tuple[tuple[Any, ...] | None, list[np.ndarray]]:
    """Return what the plan of a simple expression depends on (integers, slices of them, None, Ellipsis, and the shapes
    of integer arrays), and these arrays.
    """
    key: list[Any] = []
    arrays = []
    for e in index if type(index) is tuple else (index,):
        kind = type(e)
        if kind is int or e is None or e is Ellipsis:
            key.append(e)
        elif kind is slice and {type(e.start), type(e.stop), type(e.step)} <= _INT_OR_NONE:
            key.append((e.start, e.stop, e.step))
        elif kind is np.ndarray and e.ndim and e.dtype.kind in "iu":
            arrays.append(e)
            key.append((e.shape,))
        else:
            return None, []
    return tuple(key), arrays


@lru_cache(maxsize=4096)
def _known_plan(key: tuple[Any, ...], shape: tuple[int, ...], mode: str) -> Plan:
    """Return the cached plan of a simple expression; arrays of zeros stand for the index arrays."""
    entries = [
        e if type(e) is not tuple else slice(*e) if len(e) == 3 else np.broadcast_to(np.int64(0), e[0])
        for e in key
    ]
    return _read(entries, shape, mode, False)


class _Reader:
    """Walks through the parts of an expression and the axes of the array in parallel.

    If `looked_up`, integers are index arrays, not slices, and so are the `spaced` slices with a step: a slice of the
    whole array would be copied where one row of it is written.
    """

    def __init__(self, shape: tuple[int, ...], mode: str, looked_up: bool, spaced: int):
        self.shape = shape
        self.mode = mode
        self.looked_up = looked_up
        self.spaced = spaced
        self.steps = 0  # slices with a step so far
        self.place: int | None = None  # where their axes are in the result
        self.axis = 0
        self.starts: list[int] = []
        self.limits: list[int] = []
        self.strides: list[int] = []
        self.flipped: list[int] = []
        self.index: list[Any] = []
        self.view: list[int] = []
        self.axes: list[int] = []
        self.original: list[int] = []  # the array's axes, for messages
        self.indices: list[Any] = []
        self.first: int | None = None  # the axis of the view with the first integer or array
        self.run_ended = False
        self.separated = False

    def read(self, entry: Any) -> None:
        """Process one part of the expression."""
        if entry is None or entry is Ellipsis or type(entry) is slice:
            self.run_ended = self.first is not None
            if entry is None:
                self.view.append(1)
                self.index.append(None)
            elif entry is not Ellipsis:
                self.slice(entry)
            return
        if self.first is None:
            self.first = len(self.view)
        elif self.run_ended:
            self.separated = True
        if type(entry) is int:
            self.integer(entry)
        elif type(entry) is Mask:
            self.mask(entry)
        else:
            self.array(entry)

    def take(self, start: int, limit: int, stride: int) -> None:
        self.starts.append(start)
        self.limits.append(limit)
        self.strides.append(stride)
        self.axis += 1

    def slice(self, entry: slice) -> None:
        start, stop, step = _slice_indices(entry, self.shape[self.axis])
        count = len(range(start, stop, step))
        if step != 1 and self.spaced:
            self.look_up(start, count, step)
            return
        self.view.append(count)
        self.index.append((start, start + count * step, step) if count else (0, 0, 1))
        if not count:
            self.take(0, 0, 1)
        elif step > 0:
            self.take(start, start + (count - 1) * step + 1, step)
        else:
            self.flipped.append(self.axis)
            self.take(start + (count - 1) * step, start + 1, -step)

    def look_up(self, start: int, count: int, step: int) -> None:
        if self.place is None:
            self.place = len(self.view) - len(self.axes)
        shape = tuple([count if d == self.steps else 1 for d in range(self.spaced)])
        self.steps += 1
        number = mul_p.bind(iota(shape, self.steps - 1), np.int64(step))
        self.array(add_p.bind(number, np.int64(start)))

    def integer(self, i: int) -> None:
        n = self.shape[self.axis]
        inside = -n <= i < n
        if not inside and self.mode == "raise":
            raise errors.IndexOutOfBoundsError(
                f"index {i} is out of bounds for axis {self.axis} with size {n}"
            )
        if self.looked_up or not inside:
            self.array(np.int64(i % n if inside else i))
        else:
            self.index.append(i % n)
            self.take(i % n, i % n + 1, 1)

    def array(self, a: ArrayLike) -> None:
        n = self.shape[self.axis]
        self.original.append(self.axis)
        self.index.append((0, n, 1))
        self.take(0, n, 1)
        self.axes.append(len(self.view))
        self.view.append(n)
        self.indices.append(a)

    def mask(self, mask: Mask) -> None:
        if not mask.shape:  # a single boolean: a new axis of size 1 or 0
            self.original.append(self.axis)
            self.axes.append(len(self.view))
            self.view.append(1)
            self.index.append(None)
            self.indices.append(mask.positions[0])
            return
        for d, extent in enumerate(mask.shape):
            if self.shape[self.axis + d] != extent:
                raise errors.InvalidIndexError(
                    f"boolean index did not match indexed array along axis {self.axis + d}; size of axis is "
                    f"{self.shape[self.axis + d]} but size of corresponding boolean axis is {extent}"
                )
        for a in mask.positions:
            self.array(a)

    def finish(self, staged: bool) -> Plan:
        indices, mode = self.indices, self.mode
        rest = rest_of(tuple(self.view), tuple(self.axes))
        shape, place = rest, 0
        if indices:
            if staged and mode == "raise":
                indices, mode = self.checked()
            common = _common_shape(indices)
            indices = [broadcast_to(i, common) for i in indices]
            if self.place is not None:
                place = self.place
            elif not self.separated and self.first is not None:
                place = self.first  # full slices take all axes of the view before it
            shape = rest[:place] + common + rest[place:]
        return Plan(
            tuple(self.starts),
            tuple(self.limits),
            tuple(self.strides),
            tuple(self.flipped),
            tuple(self.index),
            tuple(self.view),
            tuple(self.axes),
            indices,
            place,
            mode,
            shape,
            self.place is not None,
        )

    def checked(self) -> tuple[list[Any], str]:
        """Check constant indices now, so that nothing can fail later."""
        if any(isinstance(i, Tracer) for i in self.indices):
            return self.indices, self.mode
        resolved = []
        for i, d, view_axis in zip(self.indices, self.original, self.axes):
            n = self.view[view_axis]
            i = i.astype(INT64)
            check_bounds(i, n, d)
            resolved.append(np.where(i < 0, i + n, i))
        return resolved, "promise_in_bounds"


def _slice_indices(entry: slice, n: int) -> tuple[int, int, int]:
    for bound in (entry.start, entry.stop, entry.step):
        if is_abstract(bound):
            raise errors.TracerIntegerConversionError(
                f"a slice with the traced bound {bound!r}: the shape of the result would depend on data"
                f"{because(bound)}. "
                "For a slice of fixed length use lax.dynamic_slice(x, (start,), (length,)); or mark the argument "
                "static"
            )
    try:
        return entry.indices(n)
    except ValueError:
        raise errors.InvalidIndexError("slice step cannot be zero") from None


def _common_shape(indices: Sequence[Value]) -> tuple[int, ...]:
    shapes = [shape_of(i) for i in indices]
    try:
        return broadcast_shapes("index", *shapes)
    except ValueError:
        listed = " ".join(map(str, shapes))
        raise errors.InvalidIndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {listed}"
        ) from None


# --- reading an array ---------------------------------------------------------------------------------------


def take_view(x: Value, plan: Plan) -> Value:
    """Apply the slices, integers and new axes of an expression."""
    shape = shape_of(x)
    if not is_abstract(x):
        if plan.view == shape and plan.is_whole(shape):
            return x
        return getitem_p.bind(x, index=plan.expression, shape=plan.view)
    if plan.sliced_shape() != shape:
        x = slice_p.bind(x, start_indices=plan.starts, limit_indices=plan.limits, strides=plan.strides)
    if plan.flipped:
        x = rev_p.bind(x, dimensions=plan.flipped)
    return x if shape_of(x) == plan.view else reshape_p.bind(x, shape=plan.view)


def take(x: ArrayLike, plan: Plan, fill_value: ArrayLike = None) -> Value:
    """Return the elements that an expression selects."""
    out = take_view(x, plan)
    if not plan.axes:
        return out
    params = {"fill_value": fill_value} if plan.mode in ("fill", "drop") else {}
    out = gather_p.bind(out, *plan.indices, axes=plan.axes, mode=plan.mode, **params)
    order = plan.order()
    return out if order is None else transpose_p.bind(out, permutation=order)


def getitem(x: Value, index: Index) -> Value:
    """Return ``x[index]``, for a tracer or an ndarray.

    Raises
    ------
    IndexOutOfBoundsError
        If an index is out of bounds (in kernels too).
    InvalidIndexError
        If there are too many indices, an index is not an integer, or index arrays do not broadcast.
    NonConcreteBooleanIndexError
        If a boolean mask is traced.
    """
    x = unwrap(x)
    staged, mode = is_abstract(x), default_mode("clip")
    if type(index) is np.ndarray and index.dtype.kind in "iu" and index.ndim and not staged and shape_of(x):
        return gather_p.bind(x, index, axes=(0,), mode=mode)
    return take(x, plan_index(index, shape_of(x), mode, staged))


operators.operator["getitem"] = getitem
