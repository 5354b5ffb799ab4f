"""A hook attached to values that exist already, until the function that computes them has been traced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .primitive import Primitive


@dataclass(frozen=True, eq=False)
class Attachment:
    """A registration.

    Attributes
    ----------
    primitive, note : Primitive
        The equation of the hook, and that by which it learns the cotangents of further values.
    hook : object
        With `active`, `last`, `label` and `source`.
    values : tuple
        What it is attached to. The cotangents of the first `count` pass through it, those of the others it only sees.
    count : int or None
        None for one, of those values the one that is defined first.
    state : tuple
        The traced `BackwardState`, if there is one.
    lanes : tuple of (int, tuple of (int or None))
        Mapped axes, outermost first: the size, and where each value has the axis.
    order : tuple of int
        The place of each value in the user's list.
    """

    primitive: Primitive
    note: Primitive
    hook: Any
    values: tuple[Any, ...]
    count: int | None = 1
    state: tuple[Any, ...] = ()
    lanes: tuple[tuple[int, tuple[int | None, ...]], ...] = ()
    order: tuple[int, ...] = (0,)

    def on(self, values: Sequence[Any], state: Sequence[Any] | None = None) -> Attachment:
        """The same for other values: those of another trace."""
        return replace(self, values=tuple(values), state=self.state if state is None else tuple(state))

    def mapped(self, size: int, values: Sequence[Any], dims: Sequence[int | None]) -> Attachment:
        """The same for values with a mapped axis."""
        return replace(self, values=tuple(values), lanes=((size, tuple(dims)), *self.lanes))

    def lanes_of(self, places: Sequence[int]) -> tuple[tuple[int, tuple[int | None, ...]], ...]:
        """The mapped axes of some of the values."""
        return tuple([(size, tuple([dims[i] for i in places])) for size, dims in self.lanes])

    def chosen(self, places: Sequence[int], count: int | None) -> Attachment:
        """The same with only these of the values, in this order."""
        values, order = [tuple([x[i] for i in places]) for x in (self.values, self.order)]
        return replace(self, values=values, count=count, lanes=self.lanes_of(places), order=order)

    def present(self) -> Attachment:
        """The same without the values that are None: those that are not differentiated.

        If no value is left whose cotangent it could replace, the others pass through it.
        """
        places = [i for i, v in enumerate(self.values) if v is not None]
        if len(places) == len(self.values):
            return self
        count = None if self.count is None else sum(i < self.count for i in places)
        return self.chosen(places, len(places) if count == 0 else count)
