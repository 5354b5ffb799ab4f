"""What the variables of a jitted function stand for while it is translated.

A number is a Python number if it is known, else a scalar of functrans. An array is an `ArrayView` of a `Storage`:
writes go to the storage, so that all views of it see them. Tuples are Python tuples of such values. Everything else
(functions, modules, dtypes, None) is the object itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ... import numpy as fnp
from ...core import Tracer
from ...primitives import ops
from ...runtime.context import run_quietly
from ...runtime.records import dataclass

INDEX = np.dtype(np.int64)


def is_known(x: Any) -> bool:
    """Whether `x` is a number known while translating."""
    return isinstance(x, (bool, int, float, complex, np.generic))


def is_number(x: Any) -> bool:
    """Whether `x` is a number, known or not."""
    return is_known(x) or (isinstance(x, (Tracer, np.ndarray)) and np.ndim(x) == 0)


def cast(x: Any, dtype: np.dtype) -> Any:
    """A number or array in a dtype; a known number stays known."""
    if is_known(x):
        return run_quietly(np.asarray(x).astype, dtype).item()
    return ops.strong(x, dtype)


def strong(x: Any, dtype: np.dtype) -> Any:
    """As `cast`, and a known number becomes an array of rank 0."""
    return np.asarray(x).astype(dtype) if is_known(x) else ops.strong(x, dtype)


@dataclass(frozen=True)
class Storage:
    """The memory of an array.

    Attributes
    ----------
    value : array
        What it holds now.
    argument : str or None
        The argument or constant that it belongs to, which must not be written.
    tied : bool
        Whether another storage may be the same memory, depending on a condition. Then it must not be written.
    """

    value: Any
    argument: str | None = None
    tied: bool = False


@dataclass(frozen=True)
class Span:
    """A basic slice of one axis: places ``start + k * step`` for ``k < length``, which may depend on the run."""

    start: Any
    length: Any
    step: int = 1

    def at(self, k: Any) -> Any:
        """Place number `k`."""
        k = k if is_known(self.step) and self.step == 1 else k * self.step
        return k if is_known(self.start) and self.start == 0 else self.start + k

    def covers(self, size: int) -> bool:
        """Whether it is all of an axis, in order."""
        whole = is_known(self.start) and self.start == 0 and self.step == 1 and is_known(self.length)
        return whole and self.length == size

    def part(self, other: Span) -> Span:
        """A slice of the slice."""
        return Span(self.at(other.start), other.length, self.step * other.step)


@dataclass(frozen=True, eq=False)
class ArrayView:
    """An array: part of a storage.

    Attributes
    ----------
    storage : int
    items : tuple of scalar or Span
        What it takes of each axis of the storage.
    order : tuple of int
        The remaining axes, in the view's order.
    base : tuple of int
        The shape of the storage.
    """

    storage: int
    items: tuple[Any, ...]
    order: tuple[int, ...]
    base: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple([self.items[axis].length for axis in self.order])

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the storage, in the same order."""
        taken = [isinstance(i, Span) and i.covers(n) for i, n in zip(self.items, self.base, strict=True)]
        return all(taken) and self.order == tuple(range(len(self.base)))

    def taken(self, places: Sequence[Any]) -> ArrayView:
        """The view of a basic index: a scalar or a `Span` for each of the leading axes.

        A negative scalar counts from the end. That is left to the final read or write if the view has all of the axis.
        """
        items, order = list(self.items), list(self.order)
        for axis, place in zip(self.order, places, strict=False):
            old = items[axis]
            if isinstance(place, Span):
                items[axis] = old.part(place)
            else:
                if not (is_known(place) or old.covers(self.base[axis])):
                    place = fnp.where(place < 0, place + old.length, place)
                items[axis] = old.at(place)
                order.remove(axis)
        return ArrayView(self.storage, tuple(items), tuple(order), self.base)

    def index(self) -> tuple[Any, ...]:
        """As an index of the storage's array."""
        return tuple([_as_index(i) for i in self.items])

    def permutation(self) -> tuple[int, ...] | None:
        """How the axes of the indexed array are ordered in the view; None if as they are."""
        kept = sorted(self.order)
        found = tuple([kept.index(axis) for axis in self.order])
        return None if found == tuple(range(len(found))) else found


def _as_index(item: Any) -> Any:
    if not isinstance(item, Span):
        return item
    if is_known(item.start):
        stop = item.start + item.step * item.length
        return slice(item.start, None if stop < 0 else stop, item.step)
    return item.at(np.arange(item.length))


def is_slice(x: Any) -> bool:
    """Whether `x` is an array whose shape depends on the run."""
    return isinstance(x, ArrayView) and not all(map(is_known, x.shape))


class LengthUnknown(BaseException):
    """A use of an array that needs a shape known while translating. As `Learned`, no `Exception`."""


def whole(storage: int, shape: Sequence[int]) -> ArrayView:
    """The view of all of a storage."""
    items = tuple([Span(0, n) for n in shape])
    return ArrayView(storage, items, tuple(range(len(items))), tuple(shape))


def read(array: Any, view: ArrayView) -> Any:
    """What a view sees of the array of its storage.

    Raises
    ------
    LengthUnknown
        If its shape depends on the run.
    """
    if is_slice(view):
        raise LengthUnknown
    if view.is_whole:
        return array
    index = view.index()
    if all(isinstance(i, slice) for i in index):
        part = array[index]
    else:
        part = fnp.asarray(array).at[_joint(view, index)].get(mode="clip")
    order = view.permutation()
    return part if order is None else fnp.transpose(part, order)


def written(array: Any, view: ArrayView, value: Any) -> Any:
    """The array of a storage after `value` was written to a view of it."""
    dtype = array.dtype
    value = strong(value, dtype)
    if view.is_whole:
        return fnp.broadcast_to(value, array.shape)
    order = view.permutation()
    if order is not None and np.ndim(value):
        value = fnp.transpose(fnp.broadcast_to(value, view.shape), tuple(np.argsort(order)))
    return fnp.asarray(array).at[_joint(view, view.index())].set(value, mode="clip")


def _joint(view: ArrayView, index: tuple[Any, ...]) -> tuple[Any, ...]:
    """An index whose arrays select a grid: several moving windows, or one beside scalars."""
    arrays = [k for k, i in enumerate(index) if not isinstance(i, slice) and np.ndim(i)]
    scalars = [k for k, i in enumerate(index) if not isinstance(i, slice) and not np.ndim(i)]
    if not arrays or (len(arrays) == 1 and not scalars):
        return index
    kept = [k for k, i in enumerate(view.items) if isinstance(i, Span)]
    grid = []
    for k, i in enumerate(index):
        if isinstance(i, slice):
            i = np.arange(view.items[k].length) * view.items[k].step + view.items[k].start
        if np.ndim(i):
            shape = [-1 if axis == k else 1 for axis in kept]
            i = fnp.reshape(i, shape)
        grid.append(i)
    return tuple(grid)


@dataclass(frozen=True)
class Counted:
    """A value that ``for`` asks for its elements: `length` of them, of which element `k` is ``element(machine, k)``."""

    length: Any

    def element(self, machine: Any, k: Any) -> Any:
        """Element `k`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Range(Counted):
    """``range(start, stop, step)``, or ``prange``."""

    start: Any = 0
    step: Any = 1

    def element(self, machine: Any, k: Any) -> Any:
        """A number of the range."""
        k = k if is_known(self.step) and self.step == 1 else k * self.step
        return k if is_known(self.start) and self.start == 0 else self.start + k


@dataclass(frozen=True)
class RowsOf(Counted):
    """The elements or rows of an array."""

    view: Any = None

    def element(self, machine: Any, k: Any) -> Any:
        """An element or row."""
        return machine.load(self.view.taken([k]))


@dataclass(frozen=True)
class Elements(Counted):
    """The elements of a tuple."""

    items: tuple[Any, ...] = ()

    def element(self, machine: Any, k: Any) -> Any:
        """An element of the tuple."""
        return machine.element_of(self.items, k)


@dataclass(frozen=True)
class Zipped(Counted):
    """``zip``: several at once."""

    parts: tuple[Counted, ...] = ()

    def element(self, machine: Any, k: Any) -> Any:
        """One element of each."""
        return tuple([p.element(machine, k) for p in self.parts])


@dataclass(frozen=True)
class Places(Counted):
    """``np.ndindex(shape)``; with a view ``np.ndenumerate``, which has the elements too."""

    shape: tuple[int, ...] = ()
    view: Any = None

    def element(self, machine: Any, k: Any) -> Any:
        """The indices of element `k` in row-major order."""
        found: list[Any] = []
        for n in reversed(self.shape):
            found.insert(0, k % n if len(found) < len(self.shape) - 1 else k)
            k = k // n
        place = tuple(found)
        return place if self.view is None else (place, machine.load(self.view.taken(place)))


@dataclass(frozen=True)
class Label:
    """Where control goes next: one of several blocks, whose label is a scalar of the run."""

    targets: frozenset[int]
    value: Any = None

    @property
    def target(self) -> int | None:
        """The block, if there is only one."""
        return next(iter(self.targets)) if len(self.targets) == 1 else None

    def without_value(self) -> Label:
        """Only the blocks."""
        return replace(self, value=None)


def label_value(label: Label) -> Any:
    """A label as a scalar."""
    return np.asarray(label.target, INDEX) if label.value is None else label.value
