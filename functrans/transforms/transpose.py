"""Transposition: run a linear program backwards, from cotangents of its outputs to cotangents of its inputs.

Reverse mode is `linearize` followed by this. If a variable is used twice, its cotangents are added. In a loop, what an
iteration adds to the cotangent of a large array is often a few elements; these are added in place (slot `accumulate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import Atom, Aval, Block, Effect, Eqn, Jaxpr, Linear, Primitive, TapeAval, Zero, looks_for_faults
from ..core.evaluation import bind_equation, evaluate
from ..core.ir import has_subjaxprs
from ..core.named_axes import differing
from ..core.values import Params, Tangent, Value
from ..errors.source import replayed
from ..passes.masks import with_zeros
from ..passes.toolkit import forward_slice
from ..primitives.tape import sum_primitive
from ..runtime.config import Config, config
from ..runtime.module_getattr import lazy_import
from ..runtime.passes import TOTALS
from .linearize import Entry
from .stage import stage
from .tape_sources import backward_source, located, locates

#: Loads when ``config.check_backward_autocast`` is first set.
autocasts = lazy_import("functrans.transforms.backward_autocast")
_compares = Config.check_backward_autocast
#: Values of more bytes than this are arrays in memory, not in registers.
LARGE = 256


def backward(
    tape: Sequence[Entry],
    outs: Sequence[Any],
    cotangents: Sequence[Tangent],
    inputs: Sequence[Linear | None],
    totals: Sequence[Tangent] | None = None,
) -> list[Any]:
    """Cotangents (values or `Zero`) of `inputs`.

    Parameters
    ----------
    tape : sequence of Entry
        Entries in the order of evaluation.
    outs : sequence of Linear or Zero
        The linear variables that the tape computes.
    cotangents : sequence
        A value or a `Zero` for each of `outs`.
    inputs : sequence of Linear or None
        The linear inputs; None gives None.
    totals : sequence, optional
        In a loop: for each input the cotangent that it has from other iterations, or None. It is added to, if possible
        in place; so are the cotangents of other large values.
    """
    cts: dict[Linear, Tangent] = {}
    if totals is not None:
        cts.update((v, total) for v, total in zip(inputs, totals) if v is not None and total is not None)
        tape = _reads_first(tape)
    for v, ct in zip(outs, cotangents):
        if type(v) is Linear and type(ct) is not Zero:
            ct = _reduced(ct, v)
            cts[v] = sum_primitive(v.aval).bind(cts[v], ct) if v in cts else ct
    if _compares.ever_changed:
        autocasts.compare_autocast(tape)
    if looks_for_faults():
        tape = [located(entry) for entry in tape]
    before = replayed.get()
    finds = locates()
    try:
        for entry in reversed(tape):
            if finds:
                replayed.set(backward_source(entry.outs, before))
            _transposed(entry, cts, totals is not None)
    finally:
        if finds:
            replayed.set(before)
    return [None if v is None else cts.get(v, Zero(v.aval)) for v in inputs]


def _transposed(entry: Entry, cts: dict[Linear, Tangent], in_loop: bool) -> None:
    """Take the cotangents of an entry's results out of `cts`, and add those of its operands."""
    prim, args, params, results = entry
    ct: Tangent
    if prim.multiple_results:
        ct = [cts.pop(v, None) for v in results]
        if all(c is None for c in ct):
            return
        ct = [Zero(v.aval) if c is None else c for v, c in zip(results, ct)]
    else:
        ct = cts.pop(results[0], None)
        if ct is None:
            return
    if in_loop and prim.accumulate is not None:
        news = _accumulated(prim, ct, cts, args, params)
    else:
        rule = prim.transpose if prim.transpose is not None else prim.rule("transpose")
        news = rule(ct, *args, **params)
    for a, new in zip(args, news):
        if type(a) is Linear and new is not None and type(new) is not Zero:
            new = _reduced(new, a)
            old = cts.get(a)
            cts[a] = new if old is None else sum_primitive(a.aval).bind(old, new)


def _reduced(ct: Value, of: Linear) -> Any:
    """A cotangent of a value that all ranks of a mesh have: the sum of those that ranks have."""
    return ct if differing.reduced is None else differing.reduced(ct, of.aval)


def is_large(aval: Aval) -> bool:
    """Whether adding to some elements in place is cheaper than adding arrays."""
    return not isinstance(aval, TapeAval) and aval.size * aval.dtype.itemsize > LARGE


def sums_in_place(aval: Aval) -> bool:
    """Whether what adds to a cotangent of this type receives the sum of the others."""
    return is_large(aval) and config.runs(TOTALS)


def _reads_first(tape: Sequence[Entry]) -> list[Entry]:
    """The tape with each update of a large array after the other reads of that array that do not depend on it.

    Backward, the update then comes first: it has the whole cotangent, to which the reads add in place.
    """
    tape = list(tape)
    for p in range(len(tape) - 1, -1, -1):
        update = tape[p]
        if update.primitive.rewind is None:
            continue
        arrays = {a for a in update.invars if sums_in_place(a.aval)}
        last = max([k for k in range(p, len(tape)) if not arrays.isdisjoint(tape[k].invars)], default=p)
        between = tape[p + 1 : last + 1]
        if any(e.primitive.effects(**e.params) & ~Effect.RAISE for e in between):  # such as hooks
            continue
        reached = forward_slice(between, update.outvars)
        after = [e for e in between if not reached.isdisjoint(e.outvars)]
        before = [e for e in between if reached.isdisjoint(e.outvars)]
        tape[p : last + 1] = [*before, update, *after]
    return tape


def _accumulated(
    prim: Primitive, ct: Value, cts: dict[Linear, Tangent], args: Sequence[Any], params: Params
) -> Sequence[Any]:
    """The cotangents of an entry's operands. Those that `cts` has for large operands are taken out, and added.

    Without any, a branch or a call still learns that it is in a loop: what its body adds, it adds in place.
    """
    totals = [cts.pop(a, None) if type(a) is Linear and sums_in_place(a.aval) else None for a in args]
    if all(total is None for total in totals) and not has_subjaxprs(params):
        return prim.rule("transpose")(ct, *args, **params)
    news = prim.rule("accumulate")(ct, totals, *args, **params)
    return [total if new is None or type(new) is Zero else new for total, new in zip(totals, news)]


def transpose_jaxpr(
    jaxpr: Jaxpr,
    linear: tuple[bool, ...],
    nonzero: tuple[bool, ...],
    totals: tuple[bool, ...] | None = None,
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The jaxpr from (nonlinear inputs, nonzero cotangents) to cotangents of linear inputs.

    Parameters
    ----------
    jaxpr : Jaxpr
    linear : tuple of bool
        For each input, whether the jaxpr is linear in it.
    nonzero : tuple of bool
        For each output, whether it has a cotangent.
    totals : tuple of bool, optional
        In a loop: for each linear input, whether the jaxpr takes a further operand, after the cotangents, to which it
        adds the cotangent.

    Returns
    -------
    Jaxpr
    tuple of bool
        For each linear input, whether the new jaxpr has an output for it (otherwise its cotangent is zero).
    """

    def build() -> tuple[Jaxpr, tuple[bool, ...]]:
        mask: list[bool] = []
        inputs = [Linear(v.aval) for v, p in zip(jaxpr.invars, linear) if p]

        def transposed(*values: Value) -> list[Any]:
            operands = iter(values)
            fresh = iter(inputs)
            ins = [next(fresh) if p else next(operands) for p in linear]
            cotangents = with_zeros(nonzero, operands, jaxpr.out_avals)
            given = None if totals is None else [next(operands) if t else None for t in totals]
            outs, tape = _linear_part(jaxpr, ins)
            cts = backward(tape, outs, cotangents, inputs, given)
            mask.extend(type(ct) is not Zero for ct in cts)
            return [ct for ct in cts if type(ct) is not Zero]

        avals = [v.aval for v, p in zip(jaxpr.invars, linear) if not p]
        avals += [v.aval for v, p in zip(jaxpr.outvars, nonzero) if p]
        avals += [v.aval for v, p in zip(inputs, totals or ()) if p]
        program = stage(transposed, avals, f"transpose({jaxpr.name})", jaxpr.stats)
        return program if totals is not None else _late(program, linear.count(False)), tuple(mask)

    return jaxpr.derive(("transpose", linear, nonzero, totals), build)


def _late(program: Jaxpr, count: int) -> Jaxpr:
    """A transposed program that computes what does not depend on cotangents as late as possible.

    The first `count` inputs are no cotangents. What the backward program computes again is then needed for the shortest
    time, and its memory is free for what comes after.
    """
    reached = forward_slice(program.eqns, program.invars[count:])
    late = {e: n for n, e in enumerate(program.eqns) if reached.isdisjoint(e.outvars) and e.effects.movable}
    if not any(isinstance(e.primitive.kernel, Block | None) for e in late):
        return program  # arithmetic is computed where it is read
    makers: dict[Atom, Eqn] = {v: e for e in late for v in e.outvars}
    eqns: list[Eqn] = []
    for e in program.eqns:
        if e in late:
            continue
        before: set[Eqn] = set()
        waiting: list[Atom] = list(e.invars)
        while waiting:
            maker = makers.get(waiting.pop())
            if maker in late and maker not in before:
                before.add(maker)
                waiting += maker.invars
        eqns += [*sorted(before, key=late.__getitem__), e]
        for maker in before:  # which the loop has passed
            del late[maker]
    return program.replace(eqns=[*eqns, *late])


def _linear_part(jaxpr: Jaxpr, values: Sequence[Any]) -> tuple[list[Any], list[Entry]]:
    """Evaluate the equations without a linear operand; the others form a tape."""
    tape = []

    def visit(eqn: Eqn, args: list[Any]) -> Sequence[Any]:
        if not any(type(a) is Linear for a in args):
            return bind_equation(eqn, args)
        outs = tuple([Linear(v.aval) for v in eqn.outvars])
        for v in outs:
            v.source = eqn.source
        tape.append(Entry(eqn.primitive, tuple(args), eqn.params, outs))
        return outs

    return evaluate(jaxpr, values, visit), tape
