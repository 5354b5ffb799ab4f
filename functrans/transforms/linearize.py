"""Linearization: compute the primal now, and record the tangent as a linear program for later.

A jvp rule mixes the two: ``sin`` gives ``mul(t, cos(x))``. With a `TangentTrace` as the current trace, the parts
separate: an operation without a linear operand (``cos(x)``) goes to the enclosing trace, and one with a linear operand
(the ``mul``) is recorded on the tape, with its other operands as *residuals*::

    jvp rule of sin --bind cos(x)----> TangentTrace --no linear operand--> parent: computed, staged ...
                    --bind mul(t, c)-> TangentTrace --t is linear-------> tape: (mul, (t, c)) -> new linear variable
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from ..arrays.array import read_only_copy
from ..core import Attachment, Aval, Zero, aval_of, evaluate, is_inexact
from ..core.ir import Jaxpr, Var
from ..core.primitive import Linear, Primitive
from ..core.tape import Tape
from ..core.trace import Trace, Tracer, current_trace, refuse_leaks, tracing
from ..core.values import ArrayLike, Params, Rule, Tangent, Value
from ..passes.toolkit import backward_slice
from ..primitives.elementwise.arithmetic import mul_p, sub_p
from ..primitives.elementwise.identities import name_p
from ..primitives.structure.linear import add_p, shape_of
from ..runtime.records import NamedTuple
from .attached import Insertion
from .jvp import JVPTrace, JVPTracer
from .tape_sources import LocatedTape, locates

_new_tuple = tuple.__new__  # twice as fast as calling the class


class Entry(NamedTuple):
    """One recorded linear operation. Linear operands and results are `Linear`s, all others are values."""

    primitive: Primitive
    args: tuple[Any, ...]
    params: Params
    outs: tuple[Linear, ...]

    @property
    def invars(self) -> list[Linear]:
        """The linear operands."""
        return [a for a in self.args if type(a) is Linear]

    @property
    def outvars(self) -> tuple[Linear, ...]:
        """The linear results."""
        return self.outs


_NOTHING: dict[str, Any] = {}
_SHIFTS, _NO_NAME = frozenset((add_p, sub_p)), {"name": ""}


class LinearTracer(Tracer):
    """A tangent, known only by its position on the tape."""

    __slots__ = ("linear",)
    is_symbolic = True

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
    """Records operations with a linear operand, and passes all others on.

    Parameters
    ----------
    parent : Trace
    retain : bool
        Whether the tape outlives the call that records it: its residuals must then not be arrays that a user can
        modify.
    """

    __slots__ = ("awaited", "retain", "tape")

    def __init__(self, parent: Trace, retain: bool = False):
        self.parent = parent
        self.retain = retain
        self.tape: list[Entry] = []
        #: The places on the tape of operands that are not known yet.
        self.awaited: dict[Linear, int] = {}

    def process(self, prim: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        for a in args:
            if type(a) is LinearTracer and a._trace is self:
                break
        else:
            out = self.parent.process(prim, args, params)
            return self._protected(out, args) if self.retain else out
        if prim.is_transparent:
            has_tangent = tuple([type(a) is LinearTracer and a._trace is self for a in args])
            if not all(_reached(params["jaxpr"], has_tangent)):
                # A compiled custom rule that also has other results: record only the linear part.
                return tracing(self, evaluate, params["jaxpr"], args)
        out = prim.result_avals(list(map(aval_of, args)), params)
        if prim.multiple_results:
            return self.record(prim, args, params, out)
        return self.record(prim, args, params, (out,))[0]

    def record(
        self, prim: Primitive, args: Sequence[Any], params: Params, avals: Sequence[Aval]
    ) -> list[LinearTracer]:
        """Append an entry whose results have these types."""
        operands = tuple([a.linear if type(a) is LinearTracer and a._trace is self else a for a in args])
        outs = tuple(map(Linear, avals))
        self.tape.append(_new_tuple(Entry, (prim, operands, params, outs)))
        return list(map(LinearTracer, repeat(self), outs))

    @staticmethod
    def _protected(out: ArrayLike, args: tuple[Any, ...]) -> Value:
        """Mark fresh results read-only, to distinguish them from users' arrays (see `read_only_copy`)."""
        for x in (out,) if type(out) is np.ndarray else out if isinstance(out, tuple | list) else ():
            if type(x) is np.ndarray and not any(x is a for a in args):
                x.flags.writeable = False
        return out

    def input(self, aval: Aval) -> LinearTracer:
        """A new linear input."""
        return LinearTracer(self, Linear(aval))

    def operand_known_later(self, aval: Aval) -> LinearTracer:
        """What stands for an operand of the next entry until `known_now` gives its value."""
        operand = self.input(aval)
        self.awaited[operand.linear] = len(self.tape)
        return operand

    def known_now(self, operand: LinearTracer, value: Value) -> None:
        """Use a value instead of an operand."""
        place = self.awaited.pop(operand.linear)
        entry = self.tape[place]
        args = tuple([value if a is operand.linear else a for a in entry.args])
        self.tape[place] = entry._replace(args=args)


def _reached(jaxpr: Jaxpr, mask: tuple[bool, ...]) -> tuple[bool, ...]:
    """Which outputs depend on the marked inputs, as far as calls inside it can tell."""

    def build() -> tuple[bool, ...]:
        with_tangent = {v for v, m in zip(jaxpr.invars, mask) if m}
        for e in jaxpr.eqns:
            ins = tuple([type(a) is Var and a in with_tangent for a in e.invars])
            if not any(ins):
                continue
            inner = e.params["jaxpr"] if e.primitive.is_transparent else None
            outs = (True,) * len(e.outvars) if inner is None else _reached(inner, ins)
            with_tangent.update(v for v, m in zip(e.outvars, outs) if m)
        return tuple([type(a) is Var and a in with_tangent for a in jaxpr.outvars])

    return jaxpr.derive(("reached", mask), build)


class LinearizeTrace(JVPTrace):
    """A `JVPTrace` whose tangents are recorded.

    If `distinct`, each result has a separate linear variable, even that of ``x + 1``, so that it may have a hook.
    """

    __slots__ = ("attached", "distinct", "tangents")
    name = "grad"

    def __init__(self, parent: Trace, retain: bool = False, distinct: bool = True):
        self.parent = parent
        self.tangents = self.inner = TangentTrace(parent, retain)
        self.distinct = distinct
        self.attached: list[Attachment] = []

    def process(self, prim: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        if prim.linear:
            return self._linear(prim, args, params)
        factors = prim.factors
        if factors is None:
            return self._shifted(prim, args) if prim in _SHIFTS else self._by_rule(prim, args, params)
        if len(args) == 1:
            (a,) = args
            if type(a) is not JVPTracer or a._trace is not self:
                return self.parent.process(prim, args, params)
            if type(a.tangent) is LinearTracer:
                return self._unary_product(prim, a.primal, a.tangent.linear, factors[0], params)
        primals = []
        terms = []
        for a, factor in zip(args, factors):
            if type(a) is JVPTracer and a._trace is self:
                if type(a.tangent) is not LinearTracer:
                    return self._by_rule(prim, args, params)
                primals.append(a.primal)
                if factor is not None:
                    terms.append((a.tangent.linear, factor))
            else:
                primals.append(a)
        return self._product(prim, primals, terms, params)

    def _by_rule(self, prim: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        out = JVPTrace.process(self, prim, args, params)
        if not self.distinct:
            return out
        for x in out if prim.multiple_results else (out,):
            if type(x) is JVPTracer and x._trace is self:
                t = x.tangent
                for a in args:
                    if type(a) is JVPTracer and a.tangent is t:
                        x.tangent = self._own(t.linear)
                        break
        return out

    def _own(self, v: Linear) -> LinearTracer:
        w = Linear(v.aval)
        self.tangents.tape.append(Entry(name_p, (v,), _NO_NAME, (w,)))
        return LinearTracer(self.tangents, w)

    def _shifted(self, prim: Primitive, args: tuple[Any, ...]) -> Value:
        """The short way of ``x + constant`` and ``x - constant``, of which the tangent is that of `x`."""
        x, y = args
        first = type(x) is JVPTracer and x._trace is self
        if first is (type(y) is JVPTracer and y._trace is self) or not (first or prim is add_p):
            return self._by_rule(prim, args, _NOTHING)
        a, constant = (x, y) if first else (y, x)
        t = a.tangent
        if type(t) is not LinearTracer or shape_of(constant) not in ((), t.linear.aval.shape):
            return self._by_rule(prim, args, _NOTHING)
        primal_trace = self.tangents if self.tangents.retain else self.parent
        operands = (a.primal, constant) if first else (constant, a.primal)
        ans = primal_trace.process(prim, operands, _NOTHING)
        return JVPTracer(self, ans, self._own(t.linear) if self.distinct else t)

    def attach(self, attachment: Attachment) -> bool:
        tangents = [self.split(x)[1] for x in attachment.values]
        variables = [t.linear if type(t) is LinearTracer else None for t in tangents]
        mine = any(v is not None for v in variables)
        below = attachment.lowered(lambda x: self.split(x)[0])
        if mine:
            self.attached.append(below.on(variables).present())
        if mine and attachment.hook.last:
            return True
        return self.parent.attach(below) or mine

    def _linear(self, prim: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        """The shortcut for linear operations: the tangent has the type of the output."""
        for a in args[1:]:
            if type(a) is JVPTracer and a._trace is self:
                return self._by_rule(prim, args, params)
        a = args[0]
        if type(a) is not JVPTracer or a._trace is not self:
            return self.parent.process(prim, args, params)
        if type(a.tangent) is not LinearTracer:
            return self._by_rule(prim, args, params)
        tangents = self.tangents
        primal_trace = tangents if tangents.retain else self.parent
        ans = primal_trace.process(prim, (a.primal, *args[1:]), params)
        aval = aval_of(ans)
        if not is_inexact(aval.dtype):
            return ans
        out = Linear(aval.strong())
        tangents.tape.append(Entry(prim, (a.tangent.linear, *args[1:]), params, (out,)))
        return JVPTracer(self, ans, LinearTracer(tangents, out))

    def _unary_product(
        self, prim: Primitive, x: Value, v: Linear, factor: Rule | None, params: Params
    ) -> Any:
        tangents = self.tangents
        primal_trace = tangents if tangents.retain else self.parent
        outer = current_trace.get()
        try:  # like `run_with`, without a call
            current_trace.set(primal_trace)
            ans = primal_trace.process(prim, (x,), params)
            if factor is None:
                return ans
            d = factor(ans, x, **params)
        finally:
            current_trace.set(outer)
        out = Linear(v.aval)
        tangents.tape.append(Entry(mul_p, (v, d), _NOTHING, (out,)))
        return JVPTracer(self, ans, LinearTracer(tangents, out))

    def _product(
        self,
        prim: Primitive,
        primals: Sequence[Any],
        terms: Sequence[tuple[Linear, Callable[..., Any]]],
        params: Params,
    ) -> Value:
        """The shortcut for elementwise operations: the entry that the jvp rule would record is known in advance."""
        primal_trace = self.tangents if self.tangents.retain else self.parent
        outer = current_trace.get()
        try:  # like `run_with`, without a call
            current_trace.set(primal_trace)
            ans = primal_trace.process(prim, tuple(primals), params)
            if not terms:
                return ans
            shape = shape_of(ans)
            products = [(v, factor(ans, *primals, **params)) for v, factor in terms]
        finally:
            current_trace.set(outer)
        tape = self.tangents.tape
        total = None
        for v, d in products:
            out = Linear(v.aval if v.aval.shape == shape else v.aval.with_shape(shape))
            tape.append(Entry(mul_p, (v, d), _NOTHING, (out,)))
            if total is not None:
                both = (total, out)
                out = Linear(out.aval)
                tape.append(Entry(add_p, both, _NOTHING, (out,)))
            total = out
        assert total is not None
        return JVPTracer(self, ans, LinearTracer(self.tangents, total))

    def rule(self, prim: Primitive, tangents: Sequence[Tangent]) -> Callable[..., Any]:
        if prim.linearize is not None:
            return prim.linearize
        return prim.rule("jvp")


class Linearized(NamedTuple):
    """The outputs of a function, and its derivative at that point as a tape.

    Attributes
    ----------
    outs : list
        Primal outputs.
    inputs : list of Linear or None
        The linear variable of each input; None if it is not perturbed.
    tangents : list of Linear or Zero
        The tangent of each output.
    tape : list of Entry
    arguments : frozenset of int
        The identities of the caller's arrays, or of their copies.
    """

    outs: list[Any]
    inputs: list[Linear | None]
    tangents: list[Tangent]
    tape: list[Entry]
    arguments: frozenset[int] = frozenset()

    def residual_bytes(self) -> int:
        """The memory of the residuals besides the arguments, each array counted once."""
        memory: dict[int, int] = {}
        for x in [a for e in self.tape for a in e.args if isinstance(a, np.ndarray | Tape)]:
            owner = _memory(x)
            if owner not in self.arguments:
                memory[owner] = max(memory.get(owner, 0), x.nbytes)
        return sum(memory.values())

    @property
    def holds_residuals(self) -> bool:
        """Whether it depends on the point."""
        return any(type(a) is not Linear for e in self.tape for a in e.args)

    def pruned(self) -> Linearized:
        """Without the entries that no output depends on (transposition skips them anyway)."""
        return self._replace(tape=backward_slice(self.tape, self.tangents))

    def secured(self) -> Linearized:
        """With residuals that nothing else can write to; each is copied at most once."""
        copies: dict[int, Any] = {}

        def read_only(x: Value) -> Any:
            if not isinstance(x, np.ndarray):
                return x
            copy = copies.get(id(x))
            if copy is None:
                copy = copies[id(x)] = read_only_copy(x)
            return copy

        return self._replace(tape=[e._replace(args=tuple([read_only(a) for a in e.args])) for e in self.tape])


def linearize(
    fun: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    perturbed: Sequence[bool],
    *,
    retain: bool = False,
    distinct: bool = True,
) -> Linearized:
    """Linearize a function of flat values at `primals`, in the inputs marked `perturbed`.

    With `retain` the tape may outlive the call: residuals that a user could still modify are copied.
    """
    parent = current_trace.get()
    trace = LinearizeTrace(parent, retain, distinct)
    tracers = [trace.tangents.input(aval_of(x).strong()) if p else None for x, p in zip(primals, perturbed)]
    if retain:
        primals = [read_only_copy(x) for x in primals]
    if locates():
        trace.tangents.tape = LocatedTape()
    outs = tracing(trace, fun, *[x if t is None else trace.pair(x, t) for x, t in zip(primals, tracers)])
    refuse_leaks(trace, outs, [x for a in trace.attached for x in a.values])
    pairs = [trace.split(x) for x in outs]
    tangents = [t if type(t) is Zero else t.linear for _, t in pairs]
    inputs = [None if t is None else t.linear for t in tracers]
    linearized = Linearized([x for x, _ in pairs], inputs, tangents, trace.tangents.tape)
    if trace.attached:
        linearized = _with_hooks(linearized, trace.attached)
    # A hook on the tape may hold tracers: through their trace, the tape would hold itself, and its arrays.
    trace.tangents.tape, trace.attached = [], []
    if not retain:
        return linearized
    return linearized.pruned().secured()._replace(arguments=frozenset(map(_memory, primals)))


def _memory(x: Any) -> int:
    """The identity of what owns the memory of a value."""
    if isinstance(x, Tape):
        x = x.pools[0]
    while isinstance(x, np.ndarray) and isinstance(x.base, np.ndarray):
        x = x.base
    return id(x)


def _with_hooks(linear: Linearized, attached: Sequence[Attachment]) -> Linearized:
    """The linearization with the hooks that were attached to values."""

    def make(prim: Primitive, args: Sequence[Any], params: Params, source: Any) -> tuple[Entry, Any]:
        avals = prim.result_avals(list(map(aval_of, args)), params)
        outs = tuple(map(Linear, avals if prim.multiple_results else (avals,)))
        for v in outs:
            v.source = source
        return Entry(prim, tuple(args), params, outs), outs

    def renamed(entry: Entry, env: dict[Any, Any]) -> Entry:
        return entry._replace(args=tuple([env.get(a, a) if type(a) is Linear else a for a in entry.args]))

    insertion = Insertion([e.outs for e in linear.tape], make)
    tape = insertion.insert(linear.tape, attached, renamed)
    return linear._replace(tape=tape, tangents=[insertion.env.get(t, t) for t in linear.tangents])


def replay(linearized: Linearized, tangents: Sequence[Any]) -> list[Any]:
    """The output tangents (values or `Zero`) for input tangents (values or `Zero`)."""
    env: dict[Linear, Any] = {v: t for v, t in zip(linearized.inputs, tangents) if v is not None}
    for prim, args, params, outs in linearized.tape:
        out = prim.bind(*[env[a] if type(a) is Linear else a for a in args], **params)
        env.update(zip(outs, out if prim.multiple_results else (out,)))
    return [env[t] if type(t) is Linear else t for t in linearized.tangents]
