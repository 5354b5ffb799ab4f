"""Partition a jaxpr into a sequence of kernels and host calls.

An equation without a kernel rule, or with an effect other than raising, is a host call: NumPy evaluates it. (The kernel
that contains a loop or a branch makes the calls inside it: `lowering/host/host_calls.py`.) All equations between two
rounds of host calls form one kernel. Each is computed as early as its operands allow, but an equation that would only
make one kernel pass more memory to the next is computed where it is read.

Host calls with effects run in program order. What may raise before one of them in the program runs before it. What may
raise after it may run earlier, in a kernel: if that kernel fails, the earlier host calls are made before the error is
raised (`lowering/host/explain_failure.py`).

Where a kernel would only copy, because a host call reads or made the same elements in another shape, the other shape is
a view (`ViewStep`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from ...control.bodies.building import is_host
from ...control.callbacks.callback import pure_callback_p
from ...core import (
    Atom,
    Aval,
    Block,
    BlockEmitter,
    Eqn,
    Jaxpr,
    Pointwise,
    Primitive,
    Reshape,
    TapeAval,
    Var,
    subjaxprs,
)
from ...passes.toolkit import extract, variables_read
from ...primitives.structure.linear import reshape_p
from ...runtime.records import dataclass
from ..steps import HostStep, ViewStep


@dataclass(eq=False)
class KernelStep:
    """Equations that form one kernel, as a separate jaxpr."""

    jaxpr: Jaxpr


Step = KernelStep | HostStep | ViewStep


def partition(jaxpr: Jaxpr) -> list[Step]:
    """The steps of a simplified jaxpr, in the order of execution."""
    levels = _levels(jaxpr)
    steps: list[Step] = []
    for level in sorted(set(levels.values())):
        eqns = [e for e in jaxpr.eqns if levels[e] == level]
        if level % 2:
            steps += [_view(e.invars[0], e.outvars[0]) if _is_view(e) else HostStep(e) for e in eqns]
        elif len(eqns) == len(jaxpr.eqns):
            steps.append(KernelStep(_part(jaxpr, eqns, levels, level)))
        else:
            steps += _with_views(_part(jaxpr, eqns, levels, level))
    return steps


def _levels(jaxpr: Jaxpr) -> dict[Eqn, int]:
    """The level of each equation: even levels are kernels, odd ones rounds of host calls."""
    at: dict[Atom, int] = {}
    levels: dict[Eqn, int] = {}
    last_host = last_raising = -1
    for e in jaxpr.eqns:
        operands = [at.get(a, -1) for a in e.invars]
        may_raise = _may_raise(e)
        ordered = e.effects.ordered
        if ordered or (is_host(e) and may_raise):
            operands.append(last_host)
        if ordered:
            operands.append(last_raising)
        if is_host(e):
            level = max([1, *[n + (n % 2 == 0) for n in operands]])
        elif _is_view(e) and operands[0] % 2 and operands[0] > 0:
            (level,) = operands
        else:  # a kernel; if it has effects, it is a loop or a branch that calls the host
            level = max([0, *[n + n % 2 for n in operands]])
        if ordered:
            last_host = level
        if may_raise:
            last_raising = max(last_raising, level)
        levels[e] = level
        at.update(dict.fromkeys(e.outvars, level))
    if any(n % 2 for n in levels.values()):
        _delay(jaxpr, levels)
    return levels


def _may_raise(e: Eqn) -> bool:
    if e.effects.may_raise or e.primitive is pure_callback_p:
        return True
    return any(_may_raise(inner) for body in subjaxprs(e.params) for inner in body.eqns)


def _delay(jaxpr: Jaxpr, levels: dict[Eqn, int]) -> None:
    """Move equations that enlarge their operands (broadcasts) to the kernel that reads them."""
    first: dict[Atom, float] = dict.fromkeys(jaxpr.outvars, -1)
    for e in reversed(jaxpr.eqns):
        reader = min((first.get(v, inf) for v in e.outvars), default=inf)
        if not is_host(e) and e.effects.movable and not isinstance(e.primitive.kernel, Block):
            smaller = sum(a.aval.size for a in e.invars if isinstance(a, Var)) <= e.outvars[0].aval.size
            if smaller and reader != inf and reader % 2 == 0:
                levels[e] = int(reader)
        for a in e.invars:
            first[a] = min(first.get(a, inf), levels[e])


def _part(jaxpr: Jaxpr, eqns: list[Eqn], levels: dict[Eqn, int], level: int) -> Jaxpr:
    """The equations of one kernel as a jaxpr: its inputs are what they read, its outputs what is read elsewhere."""
    elsewhere = variables_read([e for e in jaxpr.eqns if levels[e] != level], jaxpr.outvars)
    outs = [v for e in eqns for v in e.outvars if v in elsewhere]
    return extract(jaxpr, eqns, outs)


# --- views --------------------------------------------------------------------------------------------------


def _is_view(e: Eqn) -> bool:
    """Whether the result may be the operand's memory in another shape."""
    return (
        isinstance(e.primitive.kernel, Reshape)
        and type(e.invars[0]) is Var
        and type(e.outvars[0].aval) is Aval
    )


def _view(of: Atom, v: Var) -> ViewStep:
    return ViewStep(Eqn(reshape_p, [of], [v], {"shape": v.aval.shape}))


def _with_views(part: Jaxpr) -> list[Step]:
    """The steps of a kernel's equations, of which it writes no elements that are in memory already."""
    whole: dict[Atom, Atom] = {}  # what other names of the same elements stand for
    for e in part.eqns:
        if _is_view(e):
            whole[e.outvars[0]] = whole.get(e.invars[0], e.invars[0])
    stored: dict[Atom, Atom] = {v: v for v in (*part.invars, *part.outvars) if v not in whole}
    outs: list[Var] = []
    views: list[Step] = []
    for v in part.outvars:
        assert isinstance(v, Var)
        first = stored.setdefault(whole.get(v, v), v)
        if first is v:
            outs.append(v)
        else:
            views.append(_view(first, v))
    eqns: list[Eqn] = []
    read = set(outs)
    for e in reversed(part.eqns):
        if not _is_view(e) or e.outvars[0] in read:
            eqns.append(e)
            read.update(variables_read([e]))
    kernel: list[Step] = [KernelStep(extract(part, eqns[::-1], outs))] if eqns else []
    return kernel + views


# --- outputs in separate memory -----------------------------------------------------------------------------

#: Copies a value to separate memory.
same_p = Primitive("same", lambda x: x, lambda x: x, kernel=Pointwise(lambda k, x: x), moves_data=True)


def _same_tape_kernel(k: BlockEmitter, operands: Sequence[Any], results: Sequence[Any]) -> None:
    k.copy(results[0], operands[0])


#: Copies tapes to separate pools.
same_tape_p = Primitive("same_tape", lambda x: x, lambda x: x, kernel=Block(_same_tape_kernel))


def with_distinct_outputs(jaxpr: Jaxpr) -> Jaxpr:
    """An equivalent jaxpr whose outputs are distinct variables, defined by its equations.

    A copy has the line that reads the value first, for profiles.
    """
    defined = {v for e in jaxpr.eqns for v in e.outvars}
    eqns, outvars = list(jaxpr.eqns), []
    for a in jaxpr.outvars:
        if a not in defined:
            copy = same_tape_p if isinstance(a.aval, TapeAval) else same_p
            source = next((e.source for e in jaxpr.eqns if a in e.invars), None)
            eqns.append(Eqn(copy, [a], [Var(a.aval)], {}, source))
            a = eqns[-1].outvars[0]
        defined.discard(a)
        outvars.append(a)
    return jaxpr.replace(eqns=eqns, outvars=outvars)
