"""Linearization of a jaxpr: its primal half, and its linear half over the residuals."""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np

from ..core import aval_of, evaluate
from ..core.backward_state import BackwardState
from ..core.ir import Atom, Eqn, Jaxpr, Literal, Var
from ..core.primitive import Linear
from ..core.trace import Tracer, current_trace, tracing
from ..passes.check import verified
from ..runtime.records import NamedTuple
from .linearize import Entry, linearize
from .stage import StagedTracer, StageTrace
from .tape_sources import source_of

#: What is linearized now: "loop" for the body of a loop and what is in it, where each iteration stores its residuals;
#: "checkpoint" for a checkpoint in a loop that should store none of them.
in_loop: ContextVar[str] = ContextVar("in_loop", default="")


class LinearizedJaxpr(NamedTuple):
    """A jaxpr split into its primal half and its linear half.

    Attributes
    ----------
    primal : Jaxpr
        From the inputs to the outputs, followed by the residuals that are neither inputs nor outputs.
    linear : Jaxpr
        From (residuals, tangents of the perturbed inputs) to the nonzero tangents. A residual is the same variable in
        both halves.
    residuals : tuple of (str, int)
        The origin of each residual: ``("in", i)`` input i, ``("out", i)`` output i of `primal`.
    nonzero : tuple of bool
        For each output, whether it has a tangent.
    """

    primal: Jaxpr
    linear: Jaxpr
    residuals: tuple[tuple[str, int], ...]
    nonzero: tuple[bool, ...]


def linearize_jaxpr(jaxpr: Jaxpr, perturbed: tuple[bool, ...]) -> LinearizedJaxpr:
    """Linearize a jaxpr in its perturbed inputs; cached on the jaxpr."""
    return jaxpr.derive(("linearize", perturbed, in_loop.get()), lambda: _linearize_jaxpr(jaxpr, perturbed))


def linearize_body(jaxpr: Jaxpr, perturbed: tuple[bool, ...], where: str = "loop") -> LinearizedJaxpr:
    """The same for the body of a loop, or for a checkpoint in one."""
    token = in_loop.set(in_loop.get() if in_loop.get() == "checkpoint" else where)
    try:
        return linearize_jaxpr(jaxpr, perturbed)
    finally:
        in_loop.reset(token)


def _linearize_jaxpr(jaxpr: Jaxpr, perturbed: tuple[bool, ...]) -> LinearizedJaxpr:
    outer = StageTrace(current_trace.get(), jaxpr.name)
    inputs = [outer.input(a) for a in jaxpr.in_avals]
    linearized = tracing(
        outer, partial(linearize, distinct=False), lambda *xs: evaluate(jaxpr, xs), inputs, perturbed
    ).pruned()
    linear = _TapeToJaxpr(outer)
    eqns = [linear.equation(e) for e in linearized.tape]
    tangents = [linear.variable(t) for t in linearized.tangents if type(t) is Linear]
    residuals = list(linear.residuals.values())
    places = {id(t._var): ("in", i) for i, t in enumerate(inputs)}
    for i, x in enumerate(linearized.outs):
        if type(x) is StagedTracer:
            places.setdefault(id(x._var), ("out", i))
    fresh = [t for t in residuals if id(t._var) not in places]
    places.update({id(t._var): ("out", len(linearized.outs) + i) for i, t in enumerate(fresh)})
    primal = verified(outer.jaxpr(inputs, [*linearized.outs, *fresh], jaxpr.stats), "linearize")
    invars = [t._var for t in residuals] + [linear.variable(v) for v in linearized.inputs if v is not None]
    body = jaxpr.replace(
        invars=invars, eqns=eqns, outvars=tangents, constants=linear.consts, name=f"linear({jaxpr.name})"
    )
    nonzero = tuple(type(t) is Linear for t in linearized.tangents)
    verified(body, "linearize")
    return LinearizedJaxpr(primal, body, tuple(places[id(t._var)] for t in residuals), nonzero)


class _TapeToJaxpr:
    """Turns entries into equations: linear variables and residuals into variables, numbers into literals."""

    def __init__(self, outer: StageTrace):
        self.outer = outer
        self.variables: dict[Linear, Var] = {}
        self.residuals: dict[Var, StagedTracer] = {}
        self.constants: dict[int, tuple[Var, Any]] = {}

    def variable(self, x: Linear) -> Var:
        variable = self.variables.get(x)
        if variable is None:
            variable = self.variables[x] = Var(x.aval)
        return variable

    def atom(self, x: Any) -> Atom:
        if type(x) is Linear:
            return self.variable(x)
        if type(x) is StagedTracer and x._trace is self.outer:
            self.residuals.setdefault(x._var, x)
            return x._var
        if isinstance(x, np.ndarray | Tracer | BackwardState):
            return self.constants.setdefault(id(x), (Var(aval_of(x)), x))[0]
        return Literal(x)

    def equation(self, entry: Entry) -> Eqn:
        args, params = entry.args, entry.params
        call = entry.primitive.call
        if call is not None and call.trace is not None:
            args, params = call.trace(self.outer, args, params)
        outvars = [self.variable(v) for v in entry.outs]
        return Eqn(entry.primitive, [self.atom(a) for a in args], outvars, params, source_of(entry.outs))

    @property
    def consts(self) -> list[tuple[Var, Any]]:
        return list(self.constants.values())
