"""The range of a while loop's counters in its kernel: its indices need no test where the condition bounds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..core import INT64, Atom, BlockEmitter, Buffer, Eqn, Jaxpr, Literal, Var
from ..primitives.elementwise.arithmetic import ge_p, gt_p, le_p, lt_p, sub_p
from ..primitives.elementwise.bits import and_p
from ..primitives.structure.linear import add_p

#: Larger steps could exceed int64 while somebody waits.
LARGEST_STEP = 1 << 20
#: A comparison with its sides exchanged.
_MIRRORED = {ge_p: le_p, gt_p: lt_p, le_p: ge_p, lt_p: gt_p}


class CarryRanges:
    """What is known of the integers in the carry of a while loop.

    One that only grows is at least its first value, one that only shrinks at most. In the body the condition holds, and
    so does each of the comparisons that it joins by ``and``.

    Parameters
    ----------
    k : BlockEmitter
    cond, body : Jaxpr
    cond_consts, init : sequence of Buffer
    num_consts : int
        The number of constants of the body.
    """

    def __init__(
        self,
        k: BlockEmitter,
        cond: Jaxpr,
        body: Jaxpr,
        cond_consts: Sequence[Buffer],
        init: Sequence[Buffer],
        num_consts: int,
    ):
        self.k = k
        producer = {v: e for e in body.eqns for v in e.outvars}
        self.steps: dict[int, int] = {}
        self.first: dict[int, Any] = {}
        for j, (old, new) in enumerate(zip(body.invars[num_consts:], body.outvars)):
            if old.aval.shape == () and old.aval.dtype == INT64:
                step = _step(old, producer.get(new) if isinstance(new, Var) else None)
                if 0 < abs(step) <= LARGEST_STEP:
                    self.steps[j] = step
                    self.first[j] = k.load(init[j], ())
        carry: dict[Atom, int] = {v: j for j, v in enumerate(cond.invars[len(cond_consts) :])}
        consts: dict[Atom, Buffer] = dict(zip(cond.invars, cond_consts))
        self.limits: list[tuple[int, Any, Any]] = []  # carry, comparison, with what
        for x, op, y in _comparisons(cond):
            if x in carry and (isinstance(y, Literal) or y in consts):
                limit = k.load(consts[y], ()) if isinstance(y, Var) else k.const(y.value, INT64)
                self.limits.append((carry[x], op, limit))

    def known(self, carry: Sequence[Any], *, inside: bool) -> list[Any]:
        """The carry with what is known of its numbers; `inside` the body also what the condition says."""
        k, values = self.k, list(carry)
        for j in {*self.steps, *[j for j, _, _ in self.limits]}:
            number = k.load(values[j], ())
            if j in self.steps:
                low, high = (self.first[j], None) if self.steps[j] > 0 else (None, self.first[j])
                number = k.between(number, low, high, counts=True)
            for i, op, limit in self.limits if inside else ():
                if i == j:
                    low, high = (limit, None) if op in (ge_p, gt_p) else (None, limit)
                    number = k.between(number, low, high, strict=op in (gt_p, lt_p))
            values[j] = k.number(number)
        return values


def _step(old: Var, e: Eqn | None) -> int:
    """What a carry grows by in each iteration; 0 if that is unknown."""
    if e is None or e.primitive not in (add_p, sub_p):
        return 0
    x, y = e.invars
    if e.primitive is add_p and x is not old:
        x, y = y, x
    if x is not old or not isinstance(y, Literal):
        return 0
    return int(y.value) * (1 if e.primitive is add_p else -1)


def _comparisons(cond: Jaxpr) -> Iterator[tuple[Atom, Any, Atom]]:
    """The comparisons of numbers that hold where a condition holds, each way round."""
    producer = {v: e for e in cond.eqns for v in e.outvars}
    waiting = [cond.outvars[0]]
    while waiting:
        v = waiting.pop()
        e = producer.get(v) if isinstance(v, Var) else None
        if e is None:
            continue
        if e.primitive is and_p:
            waiting += e.invars
        elif e.primitive in _MIRRORED and all(a.aval.shape == () and a.aval.dtype == INT64 for a in e.invars):
            x, y = e.invars
            yield x, e.primitive, y
            yield y, _MIRRORED[e.primitive], x
