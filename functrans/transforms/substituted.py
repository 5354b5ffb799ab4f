"""Run a user's function with the tracers that it captured replaced by other values."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.primitive import Primitive
from ..core.trace import Trace, Tracer
from ..core.values import Params, Value
from ..runtime.records import NamedTuple

_NOT_CAPTURED = (None, None)


class Capture(NamedTuple):
    """A tracer that a user's function captured.

    Attributes
    ----------
    name : str
        The variable that holds it.
    tracer : Tracer
    differentiated : str or None
        By which transformation, where one differentiates it: then rules must not read it.
    apart : bool
        Whether it is an argument that rules get apart, see `Apart`.
    """

    name: str
    tracer: Tracer
    differentiated: str | None = None
    apart: bool = False


class SubstitutedTrace(Trace):
    """Passes everything on, with values instead of captured tracers.

    Parameters
    ----------
    parent : Trace
    captures : sequence of Capture
    values : sequence
        What stands for each of them now.
    """

    __slots__ = ("captured",)

    def __init__(self, parent: Trace, captures: Sequence[Capture], values: Sequence[Value]):
        self.parent = parent
        self.captured = {id(c.tracer): (c, value) for c, value in zip(captures, values)}

    def process(self, prim: Primitive, args: tuple[Value, ...], params: Params) -> Value:
        values = tuple([self.lower(a) if isinstance(a, Tracer) else a for a in args])
        return self.parent.process(prim, values, params)

    def knows(self, tracer: Tracer) -> bool:
        return id(tracer) in self.captured

    def stands_for(self, tracer: Tracer) -> Value | None:
        capture, value = self.captured.get(id(tracer), _NOT_CAPTURED)
        return None if capture is None or capture.differentiated is not None else value

    def lower(self, x: Value) -> Value | None:
        """The value that a captured tracer stands for; any other value as it is."""
        capture, value = self.captured.get(id(x), _NOT_CAPTURED)
        return x if capture is None else value
