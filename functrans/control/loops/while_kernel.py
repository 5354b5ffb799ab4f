"""The kernel of ``while_loop``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ...core import INT64, Atom, BlockEmitter, Buffer, Eqn, Jaxpr, Pointwise, Var
from ...core.values import Param, PyTree
from ...passes.indices.carry_ranges import claimed, in_while, known, numbers_of, step_of
from ...passes.indices.int_ranges import HIGHEST, narrowed
from ...passes.masks import chosen, split
from ...passes.toolkit import backward_slice, live_equations, variables_read
from ...primitives.elementwise.arithmetic import ge_p, gt_p, le_p, lt_p
from ...primitives.elementwise.bits import and_p
from ...runtime.config import config
from ...runtime.passes import COUNTED_LOOPS
from ..bodies.building import JaxprBuilder
from .carry_memory import Carries, in_place
from .scan_loops import read_in_body, smaller_body

BOOL = np.dtype(bool)


def carry_places(*operands: PyTree, num_cond: int, num_consts: int, **params: Param) -> list[tuple[int, int]]:
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

    def going() -> AbstractContextManager[Any]:
        return (
            k.while_(test, most)
            if bounds is None
            else k.loop(*bounds[1:3], reverse=bounds[3], interruptible=True)
        )

    bounds = _bounds(k, cond_jaxpr, body_jaxpr, cond_consts, init, num_consts)
    with going() as i:
        n = rounds.get()
        for tape, start in zip(tapes, starts):
            k.reserve(tape, start + n + 1)
        rows = [k.record(tape, start + n) for tape, start in zip(tapes, starts)]
        rounds.set(n + 1)
        here = known(k, carries.now(), inside)
        if bounds is not None:
            here[bounds[0]] = k.number(i)
        k.inline(body_jaxpr, [*consts, *here], [*carries.following(), *rows], carries.spare)
        carries.advance()
    n = rounds.get()
    k.store(count, (), n)
    for tape, start in zip(tapes, starts):
        k.end_tape(tape, start, n)
    carries.finish()


def narrow(eqn: Eqn, needed: Collection[Atom], strict: bool) -> Eqn | None:
    """Drop the tapes and carries that neither the condition nor anything else reads, and constants not read."""
    cond, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    num_cond, num_consts = eqn.params["num_cond"], eqn.params["num_consts"]
    num_carry = len(cond.invars) - num_cond
    wanted = [v in needed for v in eqn.outvars]
    if not any(wanted):  # it is there for its effects
        return None
    outs, _, tapes = split(wanted, num_carry, 1)
    live = live_equations(cond.eqns, cond.outvars)
    tested = variables_read(live, cond.outvars)
    of_cond, of_carry = split([v in tested for v in cond.invars], num_cond)
    steering = (*[w or t for w, t in zip(outs, of_carry)], *tapes)
    kept, read = read_in_body(body, steering, num_consts, num_carry)
    if all(kept) and all(read) and all(of_cond):
        return None
    carried, consts = kept[:num_carry], read[:num_consts]

    def smaller_test() -> Jaxpr:
        return cond.replace(invars=chosen(cond.invars, (*of_cond, *carried)), eqns=live)

    params = eqn.params | {
        "cond_jaxpr": cond.derive(("narrow", carried), smaller_test),
        "body_jaxpr": smaller_body(body, kept, read),
        "num_cond": sum(of_cond),
        "num_consts": sum(consts),
    }
    results = (*carried, True, *kept[num_carry:])
    return eqn.replace(
        invars=chosen(eqn.invars, (*of_cond, *read)), outvars=chosen(eqn.outvars, results), params=params
    )


def _bounds(
    k: BlockEmitter,
    cond: Jaxpr,
    body: Jaxpr,
    cond_consts: Sequence[Buffer],
    init: Sequence[Buffer],
    num_consts: int,
) -> tuple[int, Any, Any, bool] | None:
    """If the loop counts to a limit: the counter's place in the carry, its end, its start, and whether it counts down.

    End and start are those of a loop of the kernel.
    """
    if not config.runs(COUNTED_LOOPS) or len(cond.eqns) != 1 or cond.outvars[0] not in cond.eqns[0].outvars:
        return None
    consts: dict[Atom, Buffer] = dict(zip(cond.invars, cond_consts))
    carry = cond.invars[len(cond_consts) :]
    (e,) = cond.eqns
    if e.primitive not in _MIRRORED or any(a.aval.shape or a.aval.dtype != INT64 for a in e.invars):
        return None
    for x, op, y in (
        (e.invars[0], e.primitive, e.invars[1]),
        (e.invars[1], _MIRRORED[e.primitive], e.invars[0]),
    ):
        if x not in carry or (isinstance(y, Var) and y not in consts):
            continue
        j, down = carry.index(x), op in (gt_p, ge_p)
        if step_of(body, body.invars[num_consts + j], j) != (-1 if down else 1):
            return None
        start, end = k.load(init[j], ()), _limit(k, y, consts)
        last = [start, end] if down else [end] if op is le_p else []
        if any(not isinstance(x, int) and k.range_of(x)[1] == HIGHEST for x in last):
            return None  # the number after it may not exist
        if down:
            return j, start + 1, end + 1 if op is gt_p else end, True
        return j, end + 1 if op is le_p else end, start, False
    return None


def _limit(k: BlockEmitter, y: Atom, consts: dict[Atom, Buffer]) -> Any:
    if isinstance(y, Var):
        return k.load(consts[y], ())
    # As the length of an axis, it may become a parameter.
    return int(y.value) if abs(int(y.value)) < 1 << 31 else k.const(y.value, INT64)


_MIRRORED = {lt_p: gt_p, gt_p: lt_p, le_p: ge_p, ge_p: le_p}


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
