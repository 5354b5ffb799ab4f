"""Forward mode: each value carries a tangent, and each primitive's jvp rule computes both.

The rule of a primitive runs one level down (`JVPTrace.inner`), so the enclosing trace computes what it binds, or
differentiates it once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.attachment import Attachment
from ..core.aval import Aval, Zero, aval_of
from ..core.evaluation import evaluate
from ..core.ir import Jaxpr
from ..core.primitive import Primitive
from ..core.trace import PYTHON_KEYS, Trace, Tracer, current_trace, refuse_leaks, tracing
from ..core.values import ArrayLike, Params, Tangent, Value
from ..passes.masks import with_zeros
from .stage import stage


class JVPTracer(Tracer):
    """A primal and its tangent."""

    __slots__ = ("primal", "tangent")
    _trace: JVPTrace

    def __init__(self, trace: JVPTrace, primal: ArrayLike, tangent: ArrayLike):
        self._trace = trace
        self.primal = primal
        self.tangent = tangent

    @property
    def aval(self) -> Aval:  # type: ignore[override]
        return aval_of(self.primal)

    @property
    def shape(self) -> tuple[int, ...]:
        return getattr(self.primal, "shape", ())

    @property
    def dtype(self) -> Any:
        dtype = getattr(self.primal, "dtype", None)
        return self.aval.dtype if dtype is None else dtype

    def key(self) -> Any:
        primal = self.primal
        key = PYTHON_KEYS.get(type(primal))
        if key is not None:
            return key
        return primal.key() if isinstance(primal, Tracer) else primal.dtype

    def origins(self) -> list[str] | None:
        primal = self.primal
        return primal.origins() if isinstance(primal, Tracer) else None

    def concrete(self) -> Any:
        value = self.primal
        return value.concrete() if isinstance(value, Tracer) else value

    @property
    def is_symbolic(self) -> bool:  # type: ignore[override]
        return any(isinstance(x, Tracer) and x.is_symbolic for x in (self.primal, self.tangent))

    def describe(self) -> str:
        return self._trace.name


class JVPTrace(Trace):
    """Computes tangents along with the primals.

    Attributes
    ----------
    inner : Trace
        The trace in which the rules run.
    """

    __slots__ = ("inner",)
    name = "jvp"

    def __init__(self, parent: Trace):
        self.parent = parent
        self.inner = parent

    def rule(self, prim: Primitive, tangents: Sequence[Tangent]) -> Callable[..., Any]:
        """The rule of `prim` that this interpreter applies."""
        if prim.linearize is not None:
            for t in tangents:
                if isinstance(t, Tracer) and t.is_symbolic:
                    return prim.linearize  # one equation from primals and tangents would go to the tape whole
        return prim.jvp if prim.jvp is not None else prim.rule("jvp")

    def process(self, prim: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        primals = []
        tangents = []
        perturbed = False
        for a in args:
            if type(a) is JVPTracer and a._trace is self:
                primals.append(a.primal)
                tangents.append(a.tangent)
                perturbed = True
            else:
                primals.append(a)
                tangents.append(Zero(a))
        if not perturbed:
            return self.parent.process(prim, args, params)
        rule = self.rule(prim, tangents)
        outer = current_trace.get()
        try:  # like `run_with`, without a call
            current_trace.set(self.inner)
            out, tangent = rule(primals, tangents, **params)
        finally:
            current_trace.set(outer)
        if prim.multiple_results:
            return [x if type(t) is Zero else JVPTracer(self, x, t) for x, t in zip(out, tangent)]
        return out if type(tangent) is Zero else JVPTracer(self, out, tangent)

    def attach(self, attachment: Attachment) -> bool:
        """A hook belongs to its value at every level; tangents are not cotangents."""
        mine = any(type(self.split(x)[1]) is not Zero for x in attachment.values)
        return self.parent.attach(attachment.lowered(lambda x: self.split(x)[0])) or mine

    def pair(self, primal: ArrayLike, tangent: Tangent) -> Any:
        """A tracer for the pair; the primal alone if the tangent is a symbolic zero."""
        return primal if type(tangent) is Zero else JVPTracer(self, primal, tangent)

    def split(self, x: Value) -> tuple[Any, Any]:
        """The primal and tangent of a result of the traced function."""
        if type(x) is JVPTracer and x._trace is self:
            return x.primal, x.tangent
        return x, Zero(x)


def jvp(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Tangent]
) -> tuple[list[Any], list[Any]]:
    """Outputs and output tangents (values or `Zero`) of a function of flat values."""
    trace = JVPTrace(current_trace.get())
    outs = tracing(trace, fun, *[trace.pair(x, t) for x, t in zip(primals, tangents)])
    refuse_leaks(trace, outs)
    pairs = [trace.split(x) for x in outs]
    return [x for x, _ in pairs], [t for _, t in pairs]


def jvp_jaxpr(jaxpr: Jaxpr, perturbed: tuple[bool, ...]) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The jaxpr from (inputs, tangents of the perturbed ones) to (outputs, their nonzero tangents).

    Returns
    -------
    Jaxpr
    tuple of bool
        For each output, whether it has a tangent.
    """

    def build() -> tuple[Jaxpr, tuple[bool, ...]]:
        mask: list[bool] = []

        def pushed(*values: Value) -> list[Any]:
            primals = values[: len(jaxpr.invars)]
            tangents = with_zeros(perturbed, values[len(primals) :], primals)
            outs, out_tangents = jvp(lambda *xs: evaluate(jaxpr, xs), primals, tangents)
            mask.extend(type(t) is not Zero for t in out_tangents)
            return [*outs, *[t for t in out_tangents if type(t) is not Zero]]

        avals = [*jaxpr.in_avals, *[a for a, p in zip(jaxpr.in_avals, perturbed) if p]]
        return stage(pushed, avals, f"jvp({jaxpr.name})", jaxpr.stats), tuple(mask)

    return jaxpr.derive(("jvp", perturbed), build)
