"""What is known of the integers that loops and branches hand on: indices that they bound need no test in kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core import INT64, Atom, Aval, BlockEmitter, Buffer, Jaxpr, Var
from ...core.values import Param
from ..masks import split
from .int_ranges import FAR, UNKNOWN, Facts, LoopRanges, Range, facts_of, of_loop, ranges_of, unknown_loop


def numbers_of(k: BlockEmitter, operands: Sequence[Buffer]) -> list[Facts]:
    """What a kernel knows of the operands of a loop."""
    return [Facts(k.range_of(x)) for x in operands]


def known(k: BlockEmitter, carry: Sequence[Any], ranges: Sequence[Range]) -> list[Any]:
    """The carry with its numbers as scalars in their ranges."""
    return [
        x if r == UNKNOWN else k.number(k.ranged(k.load(x, ()), r))
        for x, r in zip(carry, ranges, strict=True)
    ]


def _counts(carry: Sequence[Atom]) -> bool:
    """Whether there is anything to find."""
    return any(type(v.aval) is Aval and not v.aval.shape and v.aval.dtype == INT64 for v in carry)


#: So many answers are kept for a body.
_MOST_KNOWN = 64


def _results(body: Jaxpr, inputs: Sequence[Facts]) -> list[Facts]:
    """What is known of the results of a body. A loop asks several times, and so does each loop around it."""
    answers: dict[Any, list[Facts]] = body.derive(_results, dict)
    question = tuple([(x.range, x.base, x.scale, x.shift, *x.claims.items()) for x in inputs])
    answer = answers.get(question)
    if answer is None:
        found = ranges_of(body, inputs)
        answer = [facts_of(a, found) for a in body.outvars]
        if len(answers) >= _MOST_KNOWN:
            answers.clear()
        answers[question] = answer
    return answer


def in_while(
    inputs: Sequence[Facts], cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, num_cond: int, num_consts: int
) -> LoopRanges:
    """The carry of a ``while_loop``."""
    cond_consts, consts, first = split(inputs, num_cond, num_consts)
    carry = body_jaxpr.invars[num_consts:]
    if not _counts(carry):
        return unknown_loop(len(carry))
    return of_loop(
        carry,
        first,
        lambda now: _results(body_jaxpr, [*consts, *now])[: len(carry)],
        lambda ranges: claimed(cond_jaxpr, cond_consts, ranges),
    )


def step_of(body: Jaxpr, old: Var, place: int) -> int | None:
    """What each iteration adds to a number of the carry, the result number `place` of the body; None if that varies."""
    facts = _results(body, [Facts((-FAR, FAR), v) if v is old else Facts() for v in body.invars])[place]
    return facts.shift[0] if facts.is_sum_with(old) else None


def claimed(cond: Jaxpr, consts: Sequence[Facts], ranges: Sequence[Range]) -> list[Range]:
    """What a condition that holds says of a carry."""
    carry = cond.invars[len(consts) :]
    (going,) = _results(cond, [*consts, *[Facts(r, v) for r, v in zip(ranges, carry)]])
    return [going.claims.get(v, UNKNOWN) for v in carry]


def of_while(
    inputs: Sequence[Facts], *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, num_cond: int, num_consts: int
) -> list[Facts]:
    """The ``ranges`` slot of ``while_loop``."""
    before = in_while(inputs, cond_jaxpr, body_jaxpr, num_cond, num_consts).before
    tapes = len(body_jaxpr.outvars) - len(before)
    return [*[Facts(r) for r in before], *[Facts()] * (1 + tapes)]


def in_scan(
    inputs: Sequence[Facts],
    jaxpr: Jaxpr,
    length: int | None,
    num_consts: int,
    num_carry: int,
) -> LoopRanges:
    """The carry of a ``scan``."""
    inputs = inputs[length is None :]
    consts, first, rows = split(inputs, num_consts, num_carry)
    carry = jaxpr.invars[num_consts : num_consts + num_carry]
    if not _counts(carry):
        return unknown_loop(num_carry)
    here = [_row(x, length) for x in rows]
    return of_loop(
        carry, first, lambda now: _results(jaxpr, [*consts, *now, *here])[:num_carry], rounds=length
    )


def _row(first: Facts, length: int | None) -> Facts:
    """A row; of those that count, the first number is known."""
    low, high = first.range
    return Facts() if length is None or first.range == UNKNOWN else Facts((low, high + max(length - 1, 0)))


def of_scan(
    inputs: Sequence[Facts],
    *,
    jaxpr: Jaxpr,
    length: int | None,
    num_consts: int,
    num_carry: int,
    **params: Param,
) -> list[Facts]:
    """The ``ranges`` slot of ``scan``."""
    after = in_scan(inputs, jaxpr, length, num_consts, num_carry).after
    return [*[Facts(r) for r in after], *[Facts()] * (len(jaxpr.outvars) - num_carry)]


def of_branches(inputs: Sequence[Facts], *, branches: Sequence[Jaxpr]) -> list[Facts]:
    """The ``ranges`` slot of ``cond``."""
    results = [_results(b, inputs[1:]) for b in branches]
    return [Facts.either(column) for column in zip(*results)]
