"""Stage a Python function to a jaxpr: every primitive becomes an equation.

All primitives bound while the trace is current are staged, even if all operands are known: a `zeros` inside a jitted
function becomes an equation, not a constant of that size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays.array import read_only_copy, unwrap
from ..core.aval import PYTHON_SCALARS, Aval
from ..core.dtypes import check_supported, native
from ..core.ir import Atom, Eqn, Jaxpr, Literal, Var
from ..core.primitive import Primitive
from ..core.source import user_source
from ..core.tape import Tape
from ..core.trace import Trace, Tracer, current_trace, leaked, tracing
from ..passes.check import verified
from ..passes.toolkit import live_equations, variables_read


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


class StageTrace(Trace):
    """Collects equations. Values of enclosing traces and arrays become constants.

    Parameters
    ----------
    parent : Trace
        The enclosing trace.
    name : str
        The function's name, for messages.
    """

    __slots__ = ("consts", "eqns", "name")

    def __init__(self, parent: Trace, name: str):
        self.parent = parent
        self.name = name
        self.eqns: list[Eqn] = []
        self.consts: dict[int, tuple[Var, Any, Any]] = {}

    def input(self, aval: Aval) -> StagedTracer:
        """A new input."""
        return StagedTracer(self, Var(aval))

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if prim.call is not None and prim.call.trace is not None:
            args, params = prim.call.trace(self, args, params)
        invars = [a._var if type(a) is StagedTracer and a._trace is self else self.atom(a) for a in args]
        out = prim.abstract(*[v.aval for v in invars], **params)
        outvars = [Var(a) for a in out] if prim.multiple_results else [Var(out)]
        self.eqns.append(Eqn(prim, invars, outvars, params, user_source()))
        if prim.multiple_results:
            return [StagedTracer(self, v) for v in outvars]
        return StagedTracer(self, outvars[0])

    def atom(self, x: Any) -> Atom:
        """The variable or literal that stands for a value."""
        if type(x) is StagedTracer and x._trace is self:
            return x._var
        if type(x) in PYTHON_SCALARS or isinstance(x, np.generic):
            return Literal(x)
        found = self.consts.get(id(x))
        if found is None:
            found = self.consts[id(x)] = (*self._constant(x), x)
        return found[0]

    def _constant(self, x: Any) -> tuple[Var, Any]:
        if isinstance(x, Tracer):
            if not self._known_outside(x):
                raise leaked(x)
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

    def jaxpr(self, inputs: Sequence[StagedTracer], outs: Sequence[Any], stats: Any = None) -> Jaxpr:
        """Finish the trace: the jaxpr from `inputs` to `outs`, without dead equations and unused constants."""
        outvars = [self.atom(unwrap(x)) for x in outs]
        eqns = live_equations(self.eqns, outvars)
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


def stage(
    fun: Callable[..., Sequence[Any]],
    avals: Sequence[Aval],
    name: str = "f",
    stats: Any = None,
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
    """
    trace = StageTrace(current_trace.get(), name)
    inputs = [trace.input(a) for a in avals]
    outs = tracing(trace, fun, *inputs)
    return verified(trace.jaxpr(inputs, outs, stats), "staging")
