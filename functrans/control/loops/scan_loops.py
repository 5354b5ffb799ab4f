"""The loop of a scan, in Python and in a kernel, and a loop that computes only some of its results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core import Atom, Block, BlockEmitter, Buffer, Eqn, Jaxpr
from ...core.values import Param, PyTree, Value
from ...passes.indices.carry_ranges import in_scan, known, numbers_of
from ...passes.indices.int_ranges import Range
from ...passes.masks import Mask, chosen, split
from ...passes.toolkit import live_equations, narrowed, variables_read
from ...primitives.tape import stacked, write_tape
from ..bodies.building import fixpoint
from ..bodies.run import computed
from .carry_memory import Carries, in_place


def head_of(values: Sequence[Any], length: int | None) -> tuple[Sequence[Any], Sequence[Any]]:
    """The operand with the trip count, if any, and the other operands."""
    return (values[:1], values[1:]) if length is None else ((), values)


def is_counter(row: Any) -> bool:
    """Whether a row operand, or its aval or its memory, is a number, from which the rows count."""
    return row.shape == ()


def in_python(
    jaxpr: Jaxpr,
    args: Sequence[Value],
    *,
    length: int | None,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
) -> list[Any]:
    """The scan as a Python loop."""
    head, rest = head_of(args, length)
    consts, carry, rows = split(rest, num_consts, num_carry)
    count = length if length is not None else max(int(head[0]), 0)
    out_rows: list[list[Any]] = []
    for i in reversed(range(count)) if reverse else range(count):
        here = [x + np.int64(i) if is_counter(x) else x.record(i) if length is None else x[i] for x in rows]
        outs = computed(jaxpr, [*consts, *carry, *here])
        carry = outs[:num_carry]
        out_rows.append(outs[num_carry:])
    if reverse:
        out_rows.reverse()
    carry_avals, avals = split(jaxpr.out_avals, num_carry)
    columns = [[row[j] for row in out_rows] for j in range(len(avals))]
    together = stacked if length is not None else write_tape
    return [
        *[np.array(x, a.dtype) for x, a in zip(carry, carry_avals)],
        *[together(a.strong(), column) for a, column in zip(avals, columns)],
    ]


def carry_places(
    *operands: PyTree, length: int | None, num_consts: int, num_carry: int, **params: Param
) -> list[tuple[int, int]]:
    """The parts of the carry whose result may overwrite their operand."""
    return in_place(operands, num_consts + (length is None), num_carry)


def kernel(
    k: BlockEmitter,
    operands: Sequence[Buffer],
    results: Sequence[Buffer],
    *,
    jaxpr: Jaxpr,
    length: int | None,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
) -> None:
    """The kernel rule: a native loop around the body's statements."""
    head, rest = head_of(operands, length)
    consts, init, rows = split(rest, num_consts, num_carry)
    last, out_rows = split(results, num_carry)
    counters = [r for r, x in enumerate(rows) if is_counter(x)]
    if length is not None and not num_carry and not counters and len(jaxpr.eqns) == 1:
        rule = jaxpr.eqns[0].primitive.kernel
        write = rule.over_lanes if isinstance(rule, Block) else None
        if write is not None and write(k, jaxpr, consts, rows, out_rows, length):
            return
    carries = Carries(k, jaxpr, num_consts, init, last)
    ranges = in_scan(numbers_of(k, operands), jaxpr, length, num_consts, num_carry).inside
    readers = [_counter(k, x) if r in counters else partial(k.row, x) for r, x in enumerate(rows)]

    def step(i: Any) -> None:
        here = [*consts, *known(k, carries.now(), ranges), *[row(i) for row in readers]]
        k.inline(jaxpr, here, [*carries.following(), *[k.row(y, i) for y in out_rows]], carries.spare)
        carries.advance()

    if length is None:
        groups = (consts, carries, ranges, rows)
        _over_tapes(k, k.load(head[0], ()), jaxpr, groups, counters, out_rows, reverse)
    else:
        _unrolled(k, length, max(min(unroll, length), 1), reverse, step, separate=not num_carry)
    carries.finish()


def _counter(k: BlockEmitter, start: Buffer) -> Callable[[Any], Buffer]:
    first = k.load(start, ())
    return lambda i: k.number(first + i)


def _unrolled(
    k: BlockEmitter, length: int, unroll: int, reverse: bool, step: Callable[[Any], None], separate: bool
) -> None:
    rounds = length // unroll
    tail = rounds * unroll
    if reverse and tail < length:
        with k.loop(length, tail, reverse=True) as i:
            step(i)
    with k.loop(rounds, reverse=reverse, interruptible=True, separate=separate) as j:
        for r in reversed(range(unroll)) if reverse else range(unroll):
            step(j * unroll + r)
    if not reverse and tail < length:
        with k.loop(length, tail) as i:
            step(i)


def _over_tapes(
    k: BlockEmitter,
    count: Any,
    jaxpr: Jaxpr,
    groups: tuple[Sequence[Any], Carries, Sequence[Range], Sequence[Any]],
    counters: Collection[int],
    out_rows: Sequence[Any],
    reverse: bool,
) -> None:
    consts, carries, ranges, rows = groups
    # The loop counts as the first counter does, so that its bounds are that one's.
    base = k.load(rows[min(counters)], ()) if counters else count * 0
    stop = base + count
    count = k.where(count < 0, k.const(0, count.dtype), count)
    firsts = [k.load(x, ()) if r in counters else k.span(x)[0] for r, x in enumerate(rows)]
    starts = [k.begin_tape(tape) for tape in out_rows]
    for tape, start in zip(out_rows, starts):
        k.reserve(tape, start + count)
    with k.loop(stop, base, reverse=reverse, interruptible=True) as n:
        i = n - base
        here = [
            k.number(n if r == min(counters) else first + i) if r in counters else k.record(x, first + i)
            for r, (x, first) in enumerate(zip(rows, firsts))
        ]
        there = [k.record(tape, start + i) for tape, start in zip(out_rows, starts)]
        carry = known(k, carries.now(), ranges)
        k.inline(jaxpr, [*consts, *carry, *here], [*carries.following(), *there], carries.spare)
        carries.advance()
    for tape, start in zip(out_rows, starts):
        k.end_tape(tape, start, count)


def narrow(eqn: Eqn, needed: Collection[Atom], strict: bool) -> Eqn | None:
    """Drop the stacked rows and carries that are never read, and the constants and rows that the body does not read."""
    params, body = eqn.params, eqn.params["jaxpr"]
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    wanted = tuple([v in needed for v in eqn.outvars])
    if not any(wanted):  # it is there for its effects
        return None
    kept, read = read_in_body(body, wanted, num_consts, num_carry)
    if all(kept) and all(read):
        return None

    head, operands = head_of(eqn.invars, params["length"])
    consts, carry, _ = split(read, num_consts, num_carry)
    smaller = smaller_body(body, kept, read)
    params = params | {"jaxpr": smaller, "num_consts": sum(consts), "num_carry": sum(carry)}
    return eqn.replace(
        invars=[*head, *chosen(operands, read)], outvars=chosen(eqn.outvars, kept), params=params
    )


def smaller_body(body: Jaxpr, kept: Mask, read: Mask) -> Jaxpr:
    """The body of a loop from the inputs in `read` to the outputs in `kept`."""

    def build() -> Jaxpr:
        outvars = chosen(body.outvars, kept)
        eqns = live_equations(body.eqns, outvars, partial(narrowed, strict=True))
        return body.replace(invars=chosen(body.invars, read), eqns=eqns, outvars=outvars)

    return body.derive(("narrow", kept, read), build)


def read_in_body(body: Jaxpr, wanted: Mask, num_consts: int, num_carry: int) -> tuple[Mask, Mask]:
    """Which outputs of a body to compute if those in `wanted` are read besides by it, and which inputs that reads."""
    return body.derive(
        ("read", wanted, num_consts), lambda: _read_in_body(body, wanted, num_consts, num_carry)
    )


def _read_in_body(body: Jaxpr, wanted: Mask, num_consts: int, num_carry: int) -> tuple[Mask, Mask]:
    def inputs(kept: Sequence[bool]) -> list[bool]:
        outvars = chosen(body.outvars, (*kept, *wanted[num_carry:]))
        used = variables_read(live_equations(body.eqns, outvars, partial(narrowed, strict=True)), outvars)
        return [v in used for v in body.invars]

    kept = fixpoint(wanted[:num_carry], lambda now: inputs(now)[num_consts : num_consts + num_carry])
    read = inputs(kept)
    read[num_consts : num_consts + num_carry] = kept
    return (*kept, *wanted[num_carry:]), tuple(read)
