"""Batching: a value may have an additional axis, which each primitive's batch rule propagates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..core import (
    Attachment,
    Jaxpr,
    Primitive,
    Trace,
    Tracer,
    aval_of,
    axis_key,
    axis_name,
    current_trace,
    refuse_leaks,
    subjaxprs,
    tracing,
)
from ..core.evaluation import evaluate
from ..core.named_axes import MeshAxes
from ..core.values import Params, Value
from ..primitives.structure.linear import batched_first, reshape_p
from ..primitives.structure.shape import slice_p
from .stage import stage


class BatchTracer(Tracer):
    """A batched value and the position of its batch axis; its shape is that of one example."""

    __slots__ = ("aval", "dim", "value")
    _trace: BatchTrace

    def __init__(self, trace: BatchTrace, value: Value, dim: int):
        self._trace = trace
        self.value = value
        self.dim = dim
        whole = aval_of(value)
        self.aval = whole.with_shape(whole.shape[:dim] + whole.shape[dim + 1 :])

    @property
    def is_symbolic(self) -> bool:  # type: ignore[override]
        return isinstance(self.value, Tracer) and self.value.is_symbolic

    def describe(self) -> str:
        return "vmap"

    @property
    def static(self) -> str:  # type: ignore[override]
        return Tracer.static if isinstance(self.value, Tracer) else "do not map the argument (`in_axes=None`)"

    def origins(self) -> list[str] | None:
        """Outside `jit` no equations tell on which of the mapped arguments it depends."""
        of_value = self.value.origins() if isinstance(self.value, Tracer) else None
        return of_value or self._trace.mapped


class BatchTrace(Trace):
    """Propagates batch axes of one size through primitives. The size is an `AxisSize` if the axis has a name; whether
    lanes have seen each other is in `collective`.
    """

    __slots__ = ("collective", "mapped_arguments", "size")

    def __init__(self, parent: Trace, size: int, mapped_arguments: Callable[[], list[str]] | None = None):
        self.parent = parent
        self.size = size
        self.mapped_arguments = mapped_arguments
        self.collective = False

    @property
    def mapped(self) -> list[str] | None:
        """The names of the user's arguments that are mapped, if known."""
        return None if self.mapped_arguments is None else self.mapped_arguments()

    def process(self, prim: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        mine = [type(a) is BatchTracer and a._trace is self for a in args]
        if True not in mine and not prim.each_lane and not self._is_named_in(prim, params):
            return self.parent.process(prim, args, params)
        if prim.each_lane and type(params.get("axis_name")) is not MeshAxes:
            self.collective = True
        values = [a.value if m else a for a, m in zip(args, mine)]
        dims = [a.dim if m else None for a, m in zip(args, mine)]
        rule = prim.batch if prim.batch is not None else prim.rule("batch")
        outer = current_trace.get()
        try:  # like `run_with`, without a call
            current_trace.set(self.parent)
            out, dim = rule(self.size, values, dims, **params)
        finally:
            current_trace.set(outer)
        if prim.multiple_results:
            return [self.lift(x, d) for x, d in zip(out, dim)]
        return self.lift(out, dim)

    def _is_named_in(self, prim: Primitive, params: Params) -> bool:
        """Whether an equation may use this axis by its name."""
        name = axis_name(self.size)
        return name is not None and not _names_in(prim, params).isdisjoint((name, _ANY))

    def attach(self, attachment: Attachment) -> bool:
        return self.parent.attach(attachment.mapped(self.size, self.lower))

    def lift(self, x: Value, dim: int | None) -> Value:
        """A tracer for a value with a batch axis; the value itself without one."""
        return x if dim is None else BatchTracer(self, x, dim)

    def lower(self, x: Value) -> tuple[Any, int | None]:
        """The value and batch axis of a result of the traced function."""
        if type(x) is BatchTracer and x._trace is self:
            return x.value, x.dim
        return x, None


def batch(
    fun: Callable[..., Sequence[Any]],
    size: int,
    args: Sequence[Value],
    dims: Sequence[int | None],
    argument: Callable[[int], str] | None = None,
) -> tuple[list[Any], list[int | None]]:
    """Outputs and their batch axes (None: not batched) of a function of flat values.

    ``argument(i)`` is the name of the user's argument that value `i` comes from, for messages.
    """
    trace = BatchTrace(current_trace.get(), size)
    if argument is not None:
        trace.mapped_arguments = lambda: [argument(i) for i, d in enumerate(dims) if d is not None]
    outs = tracing(trace, fun, *[trace.lift(x, d) for x, d in zip(args, dims)])
    refuse_leaks(trace, outs)
    pairs = [trace.lower(x) for x in outs]
    return [x for x, _ in pairs], [d for _, d in pairs]


def batch_jaxpr(
    jaxpr: Jaxpr, size: int, dims: tuple[int | None, ...]
) -> tuple[Jaxpr, tuple[int | None, ...]]:
    """The batched jaxpr, cached on `jaxpr`, and the batch axis of each output (0, or None: not batched)."""

    def build() -> tuple[Jaxpr, tuple[int | None, ...]]:
        out_dims: list[int | None] = []

        def batched(*args: Value) -> list[Value]:
            outs, dims_out = batch(lambda *xs: evaluate(jaxpr, xs), size, args, dims)
            out_dims.extend(None if d is None else 0 for d in dims_out)
            return [x if d is None else batched_first(size, x, d) for x, d in zip(outs, dims_out)]

        avals = [
            a if d is None else a.with_shape((*a.shape[:d], size, *a.shape[d:]))
            for a, d in zip(jaxpr.in_avals, dims)
        ]
        return stage(batched, avals, f"vmap({jaxpr.name})", jaxpr.stats), tuple(out_dims)

    return jaxpr.derive(("batch", axis_key(size), dims), build)


def shared_results(
    size: int, outs: Sequence[Value], shared: Sequence[bool]
) -> tuple[list[Any], list[int | None]]:
    """Outputs with the batch axis in front, and their axes; of those that all lanes share, the first lane's alone."""
    if not size or True not in shared:
        return list(outs), [0] * len(outs)
    return [_first_lane(x) if s else x for x, s in zip(outs, shared)], [None if s else 0 for s in shared]


def _first_lane(x: Value) -> Value:
    aval = aval_of(x)
    start, shape = (0,) * aval.ndim, aval.shape[1:]
    row = slice_p.bind(x, start_indices=start, limit_indices=(1, *shape), strides=(1,) * aval.ndim)
    return reshape_p.bind(row, shape=shape)


def mentions_axis(size: int, jaxprs: Sequence[Jaxpr]) -> bool:
    """Whether a batch axis has a name that one of these jaxprs may use."""
    name = axis_name(size)
    return name is not None and any(not _names(jaxpr).isdisjoint((name, _ANY)) for jaxpr in jaxprs)


#: Stands for the names in users' functions that are not traced yet.
_ANY = object()


def _names(jaxpr: Jaxpr) -> frozenset[Hashable]:
    def collect() -> frozenset[Hashable]:
        return frozenset().union(*[_names_in(eqn.primitive, eqn.params) for eqn in jaxpr.eqns])

    return jaxpr.derive("axis names", collect)


def _names_in(prim: Primitive, params: Params) -> frozenset[Hashable]:
    if "axis_name" in params:
        return frozenset((params["axis_name"],))
    if prim.call is not None and prim.call.opaque:
        return frozenset((_ANY,))
    return frozenset().union(*map(_names, subjaxprs(params)))
