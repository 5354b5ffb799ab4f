"""A hook attached to existing values, until the function that computes them has been traced."""

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
        The equation of the hook, and the equation that reports the cotangents of further values.
    hook : object
        An object with the attributes `active`, `last`, `label` and `source`.
    values : tuple
        The values that it is attached to. The cotangents of the first `count` pass through it; it only sees the others.
    count : int or None
        None for one value: the one that is defined first.
    state : tuple
        The traced `BackwardState`, if any.
    lanes : tuple of (int, tuple of (int or None))
        Mapped axes, outermost first: the size, and the position of the axis in each value.
    order : tuple of int
        The position of each value in the user's list.
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
        """The same for corresponding values of another trace."""
        return replace(self, values=tuple(values), state=self.state if state is None else tuple(state))

    def mapped(self, size: int, values: Sequence[Any], dims: Sequence[int | None]) -> Attachment:
        """The same for values with an additional mapped axis."""
        return replace(self, values=tuple(values), lanes=((size, tuple(dims)), *self.lanes))

    def lanes_of(self, places: Sequence[int]) -> tuple[tuple[int, tuple[int | None, ...]], ...]:
        """The mapped axes of some of the values."""
        return tuple([(size, tuple([dims[i] for i in places])) for size, dims in self.lanes])

    def chosen(self, places: Sequence[int], count: int | None) -> Attachment:
        """The same with only these values, in this order."""
        values, order = [tuple([x[i] for i in places]) for x in (self.values, self.order)]
        return replace(self, values=values, count=count, lanes=self.lanes_of(places), order=order)

    def present(self) -> Attachment:
        """The same without the values that are None, which are not differentiated.

        If none of the remaining values has a replaceable cotangent, the cotangents of the others pass through it.
        """
        places = [i for i, v in enumerate(self.values) if v is not None]
        if len(places) == len(self.values):
            return self
        count = None if self.count is None else sum(i < self.count for i in places)
        return self.chosen(places, len(places) if count == 0 else count)
