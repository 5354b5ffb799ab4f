"""A hook attached to existing values, until the function that computes them has been traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import HookError
from ..runtime.records import dataclass

if TYPE_CHECKING:
    from .primitive_record import PrimitiveRecord


@dataclass(frozen=True, eq=False)
class Attachment:
    """A registration.

    Attributes
    ----------
    primitive, note, supply : Primitive
        The equation of the hook, the one that reports the cotangents of further values, and the one that supplies what
        it captured and is computed later.
    hook : object
        An object with the attributes `active`, `last`, `label` and `source`.
    values : tuple
        The values that it is attached to. The cotangents of the first `count` pass through it; it only sees the others.
    count : int or None
        None for one value: the one that is defined first.
    extra : tuple
        Further operands of the hook: the traced values that it captured, and the traced `BackwardState`, if any.
    lanes : tuple of (int, tuple of (int or None))
        Mapped axes, outermost first: the size, and the position of the axis in each value.
    extra_lanes : tuple of tuple of (int or None)
        The position of each of these axes in each extra operand.
    order : tuple of int
        The position of each value in the user's list.
    """

    primitive: PrimitiveRecord
    note: PrimitiveRecord
    supply: PrimitiveRecord
    hook: Any
    values: tuple[Any, ...]
    count: int | None = 1
    extra: tuple[Any, ...] = ()
    lanes: tuple[tuple[int, tuple[int | None, ...]], ...] = ()
    extra_lanes: tuple[tuple[int | None, ...], ...] = ()
    order: tuple[int, ...] = (0,)

    def on(self, values: Sequence[Any], extra: Sequence[Any] | None = None) -> Attachment:
        """The same for corresponding values of another trace."""
        return replace(self, values=tuple(values), extra=self.extra if extra is None else tuple(extra))

    def lowered(self, lower: Callable[[Any], Any]) -> Attachment:
        """The same for the values that these stand for."""
        return self.on([lower(x) for x in self.values], [lower(x) for x in self.extra])

    def mapped(self, size: int, lower: Callable[[Any], tuple[Any, int | None]]) -> Attachment:
        """The same for values with an additional mapped axis; itself if no value has one."""
        values, extra = [lower(x) for x in self.values], [lower(x) for x in self.extra]
        if all(d is None for _, d in values):
            if any(d is not None for _, d in extra):
                raise captured_lane(self.hook)
            return self
        return replace(
            self.lowered(lambda x: lower(x)[0]),
            lanes=((size, tuple([d for _, d in values])), *self.lanes),
            extra_lanes=(tuple([d for _, d in extra]), *self.extra_lanes),
        )

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


def captured_lane(hook: Any) -> HookError:
    """The error for a hook on one value that captured another one for each example."""
    return HookError(
        f"{hook.label}: the hook '{hook.name}' captured a value that vmap maps, but is on one that it does not map, of "
        "which there is one total cotangent. Register the hook on a mapped value, or use cotangent_hook, which has a "
        "hook for each example",
        hook.source,
    )
