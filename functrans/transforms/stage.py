"""Stage a Python function to a jaxpr: every primitive becomes an equation.

All primitives bound while the trace is current are staged, even if all operands are known: a `zeros` inside a jitted
function becomes an equation, not a constant of that size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays.array import read_only_copy, unwrap
from ..arrays.ref import Ref, Region, current_region
from ..core.attachment import Attachment
from ..core.aval import PYTHON_SCALARS, Aval
from ..core.backward_state import BackwardState, StateAval, stand_in
from ..core.dtypes import check_supported, native
from ..core.ir import Atom, Eqn, Jaxpr, Literal, Var
from ..core.jax_dtypes import beside_wide
from ..core.primitive import Primitive
from ..core.tape import Tape
from ..core.trace import Trace, Tracer, current_trace, leaked, refuse_leaks, tracing
from ..core.values import ArrayLike, Params, Value
from ..errors import HookError, NoTracingError
from ..errors.source import user_source
from ..passes.check import verified
from ..passes.toolkit import (
    backward_slice,
    forward_slice,
    live_equations,
    new_equation,
    substitute,
    variables_read,
)
from ..runtime.config import Config, config
from ..runtime.context import run_with
from ..runtime.unusual import unusual
from .attached import Insertion

_no_tracing = Config.no_tracing


class StagedTracer(Tracer):
    """A value known only by its aval, and named by a variable."""

    __slots__ = ("_var", "aval")
    _trace: StageTrace

    def __init__(self, trace: StageTrace, var: Var):
        self._trace = trace
        self._var = var
        self.aval = var.aval

    def describe(self) -> str:
        return f"jit of {self._trace.name}"

    def origins(self) -> list[str] | None:
        return self._trace.origins(self._var)

    def handed(self) -> Value:
        return stand_in(self) if type(self.aval) is StateAval else self


class StageTrace(Trace):
    """Collects equations. Values of enclosing traces and arrays become constants.

    Parameters
    ----------
    parent : Trace
        The enclosing trace.
    name : str
        The function's name, for messages.
    argument : callable, optional
        ``argument(i)`` is the name of the user's argument that input `i` comes from, for messages.
    """

    __slots__ = ("argument", "attached", "consts", "eqns", "inputs", "name")
    stages = True

    def __init__(self, parent: Trace, name: str, argument: Callable[[int], str] | None = None):
        self.parent = parent
        self.name = name
        self.argument = argument
        self.inputs: list[Var] = []
        self.eqns: list[Eqn] = []
        self.consts: dict[int, tuple[Var, Any, Any]] = {}
        self.attached: list[Attachment] = []

    def input(self, aval: Aval) -> StagedTracer:
        """A new input."""
        return StagedTracer(self, Var(aval))

    def origins(self, var: Var) -> list[str] | None:
        """The names of the inputs on which a variable depends, and of those of enclosing traces; None if unknown."""
        read = {var, *variables_read(backward_slice(self.eqns, [var]))}
        places = [i for i, v in enumerate(self.inputs) if v in read]
        if self.argument is None and places:
            return None
        names = [self.argument(i) for i in places] if self.argument is not None else []
        for v, value, _ in self.consts.values():
            if v in read and isinstance(value, Tracer):
                outer = value.origins()
                if outer is None:
                    return None
                trace = value._trace
                names += [f"{n} of {trace.name}" if isinstance(trace, StageTrace) else n for n in outer]
        return list(dict.fromkeys(names))

    def process(self, prim: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        if unusual.narrow:
            args = beside_wide(args)
        if prim.call is not None and prim.call.trace is not None:
            args, params = prim.call.trace(self, args, params)
        invars = [a._var if type(a) is StagedTracer and a._trace is self else self.atom(a) for a in args]
        out = prim.result_avals([v.aval for v in invars], params)
        outvars = [Var(a) for a in out] if prim.multiple_results else [Var(out)]
        self.eqns.append(Eqn(prim, invars, outvars, params, user_source()))
        if prim.multiple_results:
            return [StagedTracer(self, v) for v in outvars]
        return StagedTracer(self, outvars[0])

    def atom(self, x: Value) -> Atom:
        """The variable or literal that stands for a value."""
        if type(x) is StagedTracer and x._trace is self:
            return x._var
        if type(x) in PYTHON_SCALARS or isinstance(x, np.generic):
            return Literal(x)
        constant = self.consts.get(id(x))
        if constant is None:
            constant = self.consts[id(x)] = (*self._constant(x), x)
        return constant[0]

    def _constant(self, x: ArrayLike) -> tuple[Var, Any]:
        if isinstance(x, Tracer):
            if not self._known_outside(x):
                raise leaked(x)
            return Var(x.aval), x
        if type(x) is BackwardState:
            return Var(x.aval), x
        x = unwrap(x)
        if not x.dtype.isnative:
            x = native(x, "captured constant")
        if isinstance(x, Tape):
            return Var(x.aval), x
        check_supported(x.dtype, "captured constant")
        value = read_only_copy(x)
        return Var(Aval(value.shape, value.dtype)), value

    def _known_outside(self, tracer: Tracer) -> bool:
        above: Trace | None = self.parent
        while above is not None:
            if above.knows(tracer):
                return True
            above = getattr(above, "parent", None)
        return False

    def attach(self, attachment: Attachment) -> bool:
        """Whether the program will be differentiated is not known yet."""
        self.attached.append(attachment)
        return True

    def jaxpr(self, inputs: Sequence[StagedTracer], outs: Sequence[Value], stats: Any = None) -> Jaxpr:
        """Finish the trace: the jaxpr from `inputs` to `outs`, without dead equations and unused constants."""
        outvars: Sequence[Atom] = [self.atom(unwrap(x)) for x in outs]
        eqns: Sequence[Eqn] = self.eqns
        if self.attached:
            eqns, outvars = self._with_hooks(eqns, outvars)
        eqns = live_equations(eqns, outvars)
        read = variables_read(eqns, outvars)
        constants = [(v, c) for v, c, _ in self.consts.values() if v in read]
        return Jaxpr(
            [t._var for t in inputs],
            eqns,
            outvars,
            constvars=[v for v, _ in constants],
            consts=[c for _, c in constants],
            name=self.name,
            stats=stats,
        )

    def take_hooks(self, inputs: Sequence[StagedTracer]) -> tuple[list[Attachment], list[StagedTracer]]:
        """Take out the hooks on values of other traces, and those on `inputs`, which they then name by place.

        Only where a program is called is the cotangent of its arguments complete. What such hooks captured in the
        program are further results of it, which they name by places behind those of `inputs`.
        """
        places = {id(t._var): i for i, t in enumerate(inputs)}
        attachments, own = [], []
        captured: list[StagedTracer] = []
        count = len(inputs)

        def placed(x: Value) -> Any:
            if type(x) is not StagedTracer or x._trace is not self:
                return x
            place = places.setdefault(id(x._var), count + len(captured))
            if place == count + len(captured):
                captured.append(x)
            return place

        for a in self.attached:
            mine = [type(x) is StagedTracer and x._trace is self for x in a.values]
            if not any(mine):
                self._refuse_captured(a)
                attachments.append(a)
            elif all(m and places.get(id(x._var), count) < count for x, m in zip(a.values, mine)):
                attachments.append(a.on([places[id(x._var)] for x in a.values], list(map(placed, a.extra))))
            elif all(mine):
                own.append(a)
            else:
                raise HookError(
                    f"{a.hook.label}: some of the values are computed in {self.name}, others outside. Register the "
                    "hook where all of them are computed, or pass the others as arguments",
                    a.hook.source,
                )
        self.attached = own
        return attachments, captured

    def _refuse_captured(self, a: Attachment) -> None:
        if any(type(x) is StagedTracer and x._trace is self for x in a.extra):
            raise HookError(
                f"{a.hook.label}: the hook '{a.hook.name}' captured a value computed in {self.name}, but is on a value "
                "from outside, whose cotangent is complete only there. Register the hook outside, with a value that "
                "this function returns",
                a.hook.source,
            )

    def _with_hooks(self, eqns: Sequence[Eqn], outvars: Sequence[Atom]) -> tuple[list[Eqn], Sequence[Atom]]:
        def make(prim: Primitive, args: Sequence[Any], params: Params, source: Any) -> tuple[Eqn, Any]:
            invars = [a if isinstance(a, Var) else self.atom(a) for a in args]
            eqn = new_equation(prim, invars, params, source)
            return eqn, eqn.outvars

        def renamed(eqn: Eqn, env: dict[Any, Any]) -> Eqn:
            return substitute([eqn], env)[0]

        for hook in [a.hook for a in self.attached if a.hook.last]:
            raise HookError(
                f"{hook.label}: the value is not an argument of the function that is differentiated, but computed in "
                "it, or of the body of a loop. Use register_hook for such values",
                hook.source,
            )
        insertion = Insertion([e.outvars for e in eqns], make)
        attached = [a.lowered(self.atom) for a in self.attached]
        made = insertion.insert(eqns, attached, renamed)
        outs: Sequence[Atom] = [insertion.env.get(a, a) for a in outvars]
        if insertion.waiting:
            outs = self._supplied(made, insertion, outs)
        return made, outs

    def _supplied(self, eqns: list[Eqn], insertion: Insertion, outs: Sequence[Atom]) -> Sequence[Atom]:
        """Supply hooks with what they captured, behind all else: the results that depend on their values pass by."""
        reached: set[Any] = set()
        tokens: list[Atom] = []
        captured: list[Atom] = []
        for place, a in insertion.waiting:
            count = len(eqns[place].outvars) - len(a.hook.captures)
            reached.update(eqns[place].outvars[:count])
            tokens += eqns[place].outvars[count:]
            captured += insertion.now(a.extra[: len(a.hook.captures)])
        reached = forward_slice(eqns, reached)
        through = list(dict.fromkeys([v for v in outs if isinstance(v, Var) and v in reached]))
        if not through:
            return outs
        _, first = insertion.waiting[0]
        hooks = tuple([a.hook for _, a in insertion.waiting])
        operands, source = [*through, *tokens, *captured], first.hook.source
        supply, results = insertion.make(first.supply, operands, {"hooks": hooks}, source)
        eqns.append(supply)
        renamed: dict[Any, Any] = dict(zip(through, results))
        return [renamed.get(v, v) for v in outs]


def attach_to(hooks: Sequence[Attachment], values: Sequence[Value] = ()) -> None:
    """Attach hooks on the parameters of a function to the values with which it is called."""
    for a in hooks:
        current_trace.get().attach(a.lowered(lambda x: values[x] if type(x) is int else x))


def attached(hooks: Sequence[Attachment], values: Sequence[Value], outs: Sequence[Value]) -> list[Value]:
    """Attach hooks on the parameters of a function after it was called; return its other results."""
    count = len(outs) - captured_results(hooks, len(values))
    attach_to(hooks, [*values, *outs[count:]])
    return list(outs[:count])


def captured_results(hooks: Sequence[Attachment], inputs: int) -> int:
    """How many results a function of so many parameters has only because hooks on the parameters captured them.

    They follow all others.
    """
    places = [x for a in hooks for x in a.extra if type(x) is int]
    return max([0, *[x + 1 - inputs for x in places]])


class Uses:
    """The refs from outside that a function uses: additional inputs, and outputs for those that it writes.

    Parameters
    ----------
    refs : sequence of Ref
        Refs to begin with, whether it uses them or not.
    written : sequence of bool
        Which of these are outputs in any case.
    read_only : bool
        Whether it may not write any.

    Attributes
    ----------
    refs, written
        All that it uses, in the order of inputs and outputs, and which of them are outputs.
    """

    def __init__(self, refs: Sequence[Ref] = (), written: Sequence[bool] = (), read_only: bool = False):
        self.refs = list(refs)
        self.written = list(written)
        self.read_only = read_only

    def run(
        self, region: Region, trace: StageTrace, fun: Callable[..., Sequence[Any]], inputs: Sequence[Value]
    ) -> Sequence[Value]:
        """Trace the function in its region."""
        for ref in self.refs:
            region.value(ref)
        region.written.update(ref for ref, w in zip(self.refs, self.written) if w)
        outs = tracing(trace, fun, *inputs)
        self.refs = list(region.values)
        self.written = [ref in region.written for ref in self.refs]
        return [*outs, *[region.values[ref] for ref in self.refs if ref in region.written]]


def stage(
    fun: Callable[..., Sequence[Any]],
    avals: Sequence[Aval],
    name: str = "f",
    stats: Any = None,
    hooks: list[Attachment] | None = None,
    hoist: bool = True,
    uses: Uses | None = None,
    argument: Callable[[int], str] | None = None,
) -> Jaxpr:
    """The jaxpr of a function of flat values.

    Parameters
    ----------
    fun : callable
        ``fun(*tracers) -> sequence of values``.
    avals : sequence of Aval
        The types of its arguments.
    name, stats
        As in `Jaxpr`.
    hooks : list, optional
        Receives the hooks on values of enclosing traces, which the caller attaches. By default they are attached now.
        What hooks on arguments captured are results behind all others.
    hoist : bool
        Whether it also receives those on arguments; otherwise they stay in the jaxpr.
    uses : Uses, optional
        Receives the refs from outside that the function uses. They follow the inputs and outputs of the jaxpr.
    argument : callable, optional
        As in `StageTrace`.
    """
    trace = StageTrace(current_trace.get(), name, argument)
    inputs = [trace.input(a) for a in avals]
    trace.inputs = [t._var for t in inputs]
    if _no_tracing.ever_changed and config.no_tracing:
        raise NoTracingError(
            f"{name} would be traced, but config.no_tracing is set: call it first with such arguments"
        )
    if uses is None:
        outs = tracing(trace, fun, *inputs)
    else:
        region = Region(trace, name, trace.input, uses.read_only)
        outs = run_with(current_region, region, uses.run, region, trace, fun, inputs)
        inputs += region.inputs
        del region
    refuse_leaks(trace, inputs, outs, [x for a in trace.attached for x in a.values])
    if trace.attached:
        taken, captured = trace.take_hooks(inputs if hoist and hooks is not None else ())
        outs = [*outs, *captured]
        if hooks is None:
            attach_to(taken)
        else:
            hooks += taken
    return verified(trace.jaxpr(inputs, outs, stats), "staging")
