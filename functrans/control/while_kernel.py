"""The kernel of ``while_loop``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core import INT64, Atom, BlockEmitter, Buffer, Eqn, Jaxpr, Pointwise, Var
from ..passes.int_ranges import narrowed
from ..passes.masks import split
from ..passes.toolkit import backward_slice, live_equations
from ..primitives.elementwise.bits import and_p
from .bodies import JaxprBuilder
from .carry_memory import Carries, in_place
from .carry_ranges import claimed, in_while, known, numbers_of

BOOL = np.dtype(bool)


def carry_places(*operands: Any, num_cond: int, num_consts: int, **params: Any) -> list[tuple[int, int]]:
    """The parts of the carry whose result may overwrite their operand."""
    return in_place(operands, num_cond + num_consts, len(operands) - num_cond - num_consts)


def kernel(
    k: BlockEmitter,
    operands: Sequence[Buffer],
    results: Sequence[Buffer],
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    num_cond: int,
    num_consts: int,
) -> None:
    """The kernel rule: a native loop around the statements of the condition and the body."""
    cond_consts, consts, init = split(operands, num_cond, num_consts)
    last, (count,), tapes = split(results, len(init), 1)
    numbers = numbers_of(k, operands)
    before, inside, _, most = in_while(numbers, cond_jaxpr, body_jaxpr, num_cond, num_consts)
    carries = Carries(k, body_jaxpr, len(consts), init, last)
    flag = k.scratch((), BOOL)
    starts = [k.begin_tape(tape) for tape in tapes]
    rounds = k.local(k.const(0, INT64))
    first, rest = cond_jaxpr.derive("stages", lambda: stages(cond_jaxpr))

    def holds(test: Jaxpr, ranges: Sequence[Any]) -> Any:
        k.inline(test, [*cond_consts, *known(k, carries.now(), ranges)], [flag])
        return k.load(flag, ())

    def test() -> Any:
        going = holds(first, before)
        if rest is None:
            return going
        result = k.local(k.const(False, BOOL))
        with k.if_(going):
            limits = claimed(first, numbers[:num_cond], before)
            result.set(holds(rest, narrowed(before, limits)))
        with k.failures_if(~going):  # all of a condition is evaluated
            holds(rest, before)
        return result.get()

    with k.while_(test, most):
        n = rounds.get()
        for tape, start in zip(tapes, starts):
            k.reserve(tape, start + n + 1)
        rows = [k.record(tape, start + n) for tape, start in zip(tapes, starts)]
        rounds.set(n + 1)
        here = known(k, carries.now(), inside)
        k.inline(body_jaxpr, [*consts, *here], [*carries.following(), *rows], carries.spare)
        carries.advance()
    n = rounds.get()
    k.store(count, (), n)
    for tape, start in zip(tapes, starts):
        k.end_tape(tape, start, n)
    carries.finish()


def stages(cond: Jaxpr) -> tuple[Jaxpr, Jaxpr | None]:
    """A condition in two parts, of which the second is tested only if the first one, on numbers alone, holds.

    In the second part the first one bounds indices, and the loop leaves by a branch that is easy to predict.
    """
    producer = {v: e for e in cond.eqns for v in e.outvars}
    groups: dict[bool, list[Atom]] = {True: [], False: []}
    slices: list[Eqn] = []
    for v in _conjuncts(cond.outvars[0], producer):
        eqns = backward_slice(cond.eqns, [v], cond.invars)
        cheap = all(_on_numbers(e) for e in eqns)
        groups[cheap].append(v)
        slices += eqns if cheap else []
    if not groups[True] or not groups[False]:
        return cond, None
    first = _all(cond, groups[True])
    first = first.replace(eqns=[e for e in first.eqns if e in slices or e not in cond.eqns])
    rest = _all(cond, groups[False])
    return first, rest.replace(eqns=live_equations(rest.eqns, rest.outvars))


def _conjuncts(v: Atom, producer: dict[Var, Eqn]) -> Iterator[Atom]:
    """The conditions that are joined by ``and``."""
    e = producer.get(v) if isinstance(v, Var) else None
    if e is None or e.primitive is not and_p:
        yield v
        return
    for a in e.invars:
        yield from _conjuncts(a, producer)


def _on_numbers(e: Eqn) -> bool:
    scalars = not any(a.aval.shape for a in (*e.invars, *e.outvars))
    return scalars and isinstance(e.primitive.kernel, Pointwise) and e.effects.movable


def _all(cond: Jaxpr, conditions: Sequence[Atom]) -> Jaxpr:
    """Whether all of some conditions hold."""
    new = JaxprBuilder(cond)
    result, *others = conditions
    for v in others:
        result = new.bind(and_p, result, v)
    return new.finish("stages of a condition", [result])
