"""The names of axes, which collectives such as ``lax.psum`` refer to.

The name that ``vmap(f, axis_name=...)`` gives to a batch axis lives in the size of the axis. Batch rules pass the size
on to whatever they batch in turn, so the name reaches the bodies of jitted functions, loops and custom rules without
any of them knowing about names.

Those of a mesh are bound while ``shard_map`` traces, in `mesh_in_scope`. A collective holds the mesh itself, as
`MeshAxes`, so its equation means the same outside.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from math import prod
from typing import Any

from ..runtime.records import dataclass
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


@dataclass(frozen=True)
class MeshAxes:
    """Axes of a mesh, as one: what a collective combines if it is not the axis of a ``vmap``.

    Attributes
    ----------
    mesh : functrans.distributed.Mesh
        Compared by identity.
    names : tuple of str
        Of several, the last one varies fastest.
    """

    mesh: Any
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of ranks that combine their values."""
        return prod([self.mesh.shape[name] for name in self.names])

    @property
    def index(self) -> int:
        """The place of this rank among them."""
        index = 0
        for name in self.names:
            index = index * self.mesh.shape[name] + self.mesh.axis_index(name)
        return index

    @property
    def communicator(self) -> Any:
        """What carries the collectives of these axes."""
        return self.mesh.communicator(self.names)

    def __str__(self) -> str:
        return self.names[0] if len(self.names) == 1 else f"({', '.join(self.names)})"


#: The mesh whose axes are bound while ``shard_map`` traces.
mesh_in_scope: ContextVar[Any] = ContextVar("functrans_mesh", default=None)


class _Differing:
    """How values that differ between ranks are treated: slots that the first ``shard_map`` of a process fills.

    Attributes
    ----------
    adapt : callable or None
        ``adapt(prim, args, params) -> (args, params)``: makes operands differ alike before an operation.
    typed : callable or None
        ``typed(prim, avals, params, out)``: the types of its outputs.
    reduced : callable or None
        ``reduced(ct, aval)``: a cotangent that differs over no more axes than the value of type `aval`.
    """

    __slots__ = ("adapt", "reduced", "typed")

    def __init__(self) -> None:
        self.adapt: Callable[..., Any] | None = None
        self.typed: Callable[..., Any] | None = None
        self.reduced: Callable[..., Any] | None = None


differing = _Differing()


def scope_key() -> tuple[Any, ...]:
    """What distinguishes the names in scope from others, as part of the key of a cache."""
    mesh = mesh_in_scope.get()
    return tuple(named_axes().items()) if mesh is None else (*named_axes().items(), mesh)


def named_axes() -> dict[Hashable, int]:
    """The names of batch axes in scope and their sizes, innermost first."""
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
