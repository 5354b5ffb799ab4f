"""Linearisation: the primal computed now, the tangent recorded as a linear program for later.

A jvp rule mixes the two: ``sin`` gives ``mul(t, cos(x))``. Run with a `TangentTrace` as the current trace it comes apart by
itself: an operation without a linear operand (``cos(x)``) falls through to the trace outside, and one with a linear operand
(the ``mul``) is recorded on the tape, with the values it met as *residuals*.

::

    jvp rule of sin --bind cos(x)----> TangentTrace --no linear operand--> parent: computed, staged, differentiated again
                    --bind mul(t, c)-> TangentTrace --t is linear-------> tape: (mul, (t, c)) -> new linear variable
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.aval import Aval, Zero, aval_of
from ..core.check import verified
from ..core.ir import Atom, Eqn, Jaxpr, Literal, Var
from ..core.primitive import Linear, Primitive
from ..core.trace import Trace, Tracer, current_trace, tracing
from .evaluate import evaluate
from .jvp import JVPTrace
from .stage import StagedTracer, StageTrace


class Entry(NamedTuple):
    """One recorded linear operation. Linear operands and results are `Linear`s, all else are values."""

    primitive: Primitive
    args: tuple[Any, ...]
    params: dict[str, Any]
    outs: tuple[Linear, ...]


class LinearTracer(Tracer):
    """A tangent: known by its place on the tape only."""

    __slots__ = ("linear",)

    def __init__(self, trace: TangentTrace, linear: Linear):
        self._trace = trace
        self.linear = linear

    @property
    def aval(self) -> Aval:  # type: ignore[override]
        return self.linear.aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.linear.aval.shape

    def describe(self) -> str:
        return "linearize"


class TangentTrace(Trace):
    """Records operations with a linear operand, and passes on all others.

    Parameters
    ----------
    parent : Trace
    retain : bool
        Whether the tape outlives the call that records it: residuals must then not be arrays that a user may change.
    """

    __slots__ = ("retain", "tape")

    def __init__(self, parent: Trace, retain: bool = False):
        self.parent = parent
        self.retain = retain
        self.tape: list[Entry] = []

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        linear = False
        for a in args:
            if type(a) is LinearTracer and a._trace is self:
                linear = True
                break
        if not linear:
            out = self.parent.process(prim, args, params)
            return self._kept(out, args) if self.retain else out
        plain = tuple([a.linear if type(a) is LinearTracer and a._trace is self else a for a in args])
        out = prim.abstract(*[a.aval if type(a) is Linear else aval_of(a) for a in plain], **params)
        if prim.multiple:
            outs = tuple([Linear(a) for a in out])
            self.tape.append(Entry(prim, plain, params, outs))
            return [LinearTracer(self, v) for v in outs]
        var = Linear(out)
        self.tape.append(Entry(prim, plain, params, (var,)))
        return LinearTracer(self, var)

    @staticmethod
    def _kept(out: Any, args: tuple[Any, ...]) -> Any:
        """Mark a fresh result read-only, so that it is told from an array of the user's (see `secure`)."""
        if type(out) is np.ndarray and not any(out is a for a in args):
            out.flags.writeable = False
        return out

    def input(self, aval: Aval) -> LinearTracer:
        """A new linear input."""
        return LinearTracer(self, Linear(aval))


class LinearizeTrace(JVPTrace):
    """A `JVPTrace` whose tangents are recorded."""

    __slots__ = ("tangents",)

    def __init__(self, parent: Trace, retain: bool = False):
        self.parent = parent
        self.tangents = self.inner = TangentTrace(parent, retain)

    def rule(self, prim: Primitive) -> Callable[..., Any]:
        if prim.linearize is not None:
            return prim.linearize
        return prim.jvp if prim.jvp is not None else prim.rule("jvp")


class Linearized(NamedTuple):
    """A function's outputs, and its derivative there as a tape.

    Attributes
    ----------
    outs : list
        Primal outputs.
    inputs : list of Linear or None
        The linear variable of each input, None where it is not perturbed.
    tangents : list of Linear or Zero
        The tangent of each output.
    tape : list of Entry
    """

    outs: list[Any]
    inputs: list[Linear | None]
    tangents: list[Any]
    tape: list[Entry]


def linearize(
    fun: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    perturbed: Sequence[bool],
    *,
    retain: bool = False,
) -> Linearized:
    """Linearise a function of flat values at `primals`, in the inputs marked `perturbed`.

    With `retain` the tape is safe to keep: residuals that a user could still change are copied.
    """
    parent = current_trace.get()
    trace = LinearizeTrace(parent, retain)
    tracers = [trace.tangents.input(aval_of(x).strong()) if p else None for x, p in zip(primals, perturbed)]
    if retain:
        primals = [secure(x) for x in primals]
    with tracing(trace):
        outs = fun(*[x if t is None else trace.pair(x, t) for x, t in zip(primals, tracers)])
    pairs = [trace.split(x) for x in outs]
    tangents = [t if type(t) is Zero else t.linear for _, t in pairs]
    tape = live_entries(trace.tangents.tape, tangents)
    if retain:
        tape = [Entry(e.primitive, tuple([secure(a) for a in e.args]), e.params, e.outs) for e in tape]
    inputs = [None if t is None else t.linear for t in tracers]
    return Linearized([x for x, _ in pairs], inputs, tangents, tape)


def secure(x: Any) -> Any:
    """`x`, or a copy where it is (a view of) an array that somebody may still write to."""
    base = x
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return x.copy()
        base = base.base
    return x


def live_entries(tape: Sequence[Entry], outs: Sequence[Any]) -> list[Entry]:
    """The entries that an output needs."""
    needed = {v for v in outs if type(v) is Linear}
    live = []
    for entry in reversed(tape):
        if not needed.isdisjoint(entry.outs):
            live.append(entry)
            needed.update(a for a in entry.args if type(a) is Linear)
    return live[::-1]


def replay(linearized: Linearized, tangents: Sequence[Any]) -> list[Any]:
    """The output tangents (values or `Zero`) for input tangents (values or `Zero`)."""
    env: dict[Linear, Any] = {v: t for v, t in zip(linearized.inputs, tangents) if v is not None}
    for prim, args, params, outs in linearized.tape:
        out = prim.bind(*[env[a] if type(a) is Linear else a for a in args], **params)
        env.update(zip(outs, out if prim.multiple else (out,)))
    return [env[t] if type(t) is Linear else t for t in linearized.tangents]


class LinearizedJaxpr(NamedTuple):
    """A jaxpr taken apart into its primal and its linear half.

    Attributes
    ----------
    primal : Jaxpr
        From the inputs to the outputs, followed by the residuals that nobody else holds.
    linear : Jaxpr
        From (residuals, tangents of the perturbed inputs) to the tangents that are not zero.
    residuals : tuple of (str, int)
        Where each residual is found: ``("in", i)`` input i, ``("out", i)`` output i of `primal`.
    nonzero : tuple of bool
        For each output, whether it has a tangent.
    """

    primal: Jaxpr
    linear: Jaxpr
    residuals: tuple[tuple[str, int], ...]
    nonzero: tuple[bool, ...]


def linearize_jaxpr(jaxpr: Jaxpr, perturbed: tuple[bool, ...], key: Hashable) -> LinearizedJaxpr:
    """Linearise a jaxpr in its perturbed inputs; kept on the jaxpr under `key`."""
    return jaxpr.derive(("linearize", perturbed, key), lambda: _linearize_jaxpr(jaxpr, perturbed))


def _linearize_jaxpr(jaxpr: Jaxpr, perturbed: tuple[bool, ...]) -> LinearizedJaxpr:
    outer = StageTrace(current_trace.get(), jaxpr.name)
    inputs = [outer.input(a) for a in jaxpr.in_avals]
    with tracing(outer):
        found = linearize(lambda *xs: evaluate(jaxpr, xs), inputs, perturbed)
    linear = _TapeToJaxpr(outer)
    eqns = [linear.equation(e) for e in found.tape]
    tangents = [linear.variable(t) for t in found.tangents if type(t) is Linear]
    residuals = list(linear.residuals.values())
    places = {id(t._var): ("in", i) for i, t in enumerate(inputs)}
    for i, x in enumerate(found.outs):
        if type(x) is StagedTracer:
            places.setdefault(id(x._var), ("out", i))
    fresh = [t for t, _ in residuals if id(t._var) not in places]
    places.update({id(t._var): ("out", len(found.outs) + i) for i, t in enumerate(fresh)})
    primal = verified(outer.jaxpr(inputs, [*found.outs, *fresh], jaxpr.stats), "linearize")
    invars = [v for _, v in residuals] + [linear.variable(v) for v in found.inputs if v is not None]
    consts = linear.consts
    body = Jaxpr(
        invars,
        eqns,
        tangents,
        [v for v, _ in consts],
        [c for _, c in consts],
        f"linear({jaxpr.name})",
        jaxpr.stats,
    )
    nonzero = tuple(type(t) is Linear for t in found.tangents)
    verified(body, "linearize")
    return LinearizedJaxpr(primal, body, tuple(places[id(t._var)] for t, _ in residuals), nonzero)


class _TapeToJaxpr:
    """Turns entries into equations: linear variables and residuals to variables, numbers to literals."""

    def __init__(self, outer: StageTrace):
        self.outer = outer
        self.variables: dict[Linear, Var] = {}
        self.residuals: dict[Var, tuple[StagedTracer, Var]] = {}
        self.constants: dict[int, tuple[Var, Any]] = {}

    def variable(self, x: Linear) -> Var:
        found = self.variables.get(x)
        if found is None:
            found = self.variables[x] = Var(x.aval)
        return found

    def atom(self, x: Any) -> Atom:
        if type(x) is Linear:
            return self.variable(x)
        if type(x) is StagedTracer and x._trace is self.outer:
            return self.residuals.setdefault(x._var, (x, Var(x.aval)))[1]
        if isinstance(x, np.ndarray | Tracer):
            return self.constants.setdefault(id(x), (Var(aval_of(x)), x))[0]
        return Literal(x)

    def equation(self, entry: Entry) -> Eqn:
        invars = [self.atom(a) for a in entry.args]
        return Eqn(entry.primitive, invars, [self.variable(v) for v in entry.outs], entry.params)

    @property
    def consts(self) -> list[tuple[Var, Any]]:
        return list(self.constants.values())
