"""The names that ``vmap(f, axis_name=...)`` gives to batch axes: what collectives such as ``lax.psum`` refer to.

A name lives in the size of its axis. Batch rules pass the size on to whatever they batch in turn, so the name reaches
the bodies of jitted functions, loops and custom rules without any of them knowing about names.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from .trace import Trace, current_trace, eval_trace


class AxisSize(int):
    """The extent of a batch axis with a name.

    Parameters
    ----------
    size : int
    name : hashable
    """

    name: Hashable

    def __new__(cls, size: int, name: Hashable) -> AxisSize:
        """An integer that knows the name."""
        axis = super().__new__(cls, size)
        axis.name = name
        return axis


def axis_name(size: int) -> Hashable | None:
    """The name of the batch axis whose size a batch rule receives; None if it has none."""
    return size.name if type(size) is AxisSize else None


def axis_key(size: int) -> tuple[int, Hashable]:
    """What distinguishes a batch axis of one size and name from others, as the key of a cache."""
    return int(size), axis_name(size)


def named_axes() -> dict[Hashable, int]:
    """The names in scope and the sizes of their axes, innermost first."""
    axes: dict[Hashable, int] = {}
    for trace in _enclosing():
        size: Any = getattr(trace, "size", None)
        if type(size) is AxisSize:
            axes.setdefault(size.name, int(size))
    return axes


def _enclosing() -> Iterator[Trace]:
    trace = current_trace.get()
    while trace is not eval_trace:
        yield trace
        trace = trace.parent
