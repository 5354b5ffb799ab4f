"""What a rank of a mesh computes, in a trace that knows over which axes values differ.

`shard_map` traces a function once, and its program then needs no types (`varying.py`). A custom rule that is in the
program runs later, where nothing knows of the mesh: it runs in a `RankTrace`.
"""

from __future__ import annotations

from typing import Any

from ...core.aval import Aval, aval_of
from ...core.named_axes import mesh_in_scope
from ...core.primitive import Primitive
from ...core.trace import Trace
from ...core.values import Params, Value
from ...passes.toolkit import map_subjaxprs
from ...runtime.context import run_with
from ...transforms.held import HeldTracer
from .varying import Axes, without_axes


class RankTracer(HeldTracer):
    """A value, with a type that says over which axes it differs."""

    __slots__ = ("aval",)
    _trace: RankTrace

    def __init__(self, trace: RankTrace, value: Value, aval: Aval):
        self._trace = trace
        self.value = value
        self.aval = aval

    def describe(self) -> str:
        """Where the tracer is from."""
        return "shard_map"


class RankTrace(Trace):
    """Passes everything on, and notes the types of results. A mesh is in scope while it is the current trace."""

    __slots__ = ()

    def __init__(self, parent: Trace):
        self.parent = parent

    def process(self, prim: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        """Apply the primitive one level down."""
        avals = prim.result_avals(list(map(aval_of, args)), params)
        values = tuple(map(self.lower, args))
        params = map_subjaxprs(params, without_axes)
        out = run_with(mesh_in_scope, None, self.parent.process, prim, values, params)
        if prim.multiple_results:
            return [RankTracer(self, x, a) for x, a in zip(out, avals)]
        return RankTracer(self, out, avals)

    def lift(self, x: Value, axes: Axes) -> Any:
        """A tracer for a value that differs over these axes."""
        return RankTracer(self, x, aval_of(x).over(axes))

    def lower(self, x: Value) -> Any:
        """The value of a tracer, or any other value."""
        return x.value if type(x) is RankTracer and x._trace is self else x
