"""The memory of a loop's carry in its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..core import Atom, Block, BlockEmitter, Buffer, Jaxpr, Pointwise, Reshape, TapeAval, Var
from ..transforms.transpose import LARGE


def in_place(operands: Sequence[Atom], first: int, count: int) -> list[tuple[int, int]]:
    """For each large part of the carry the numbers of its operand, counted from `first`, and of its result."""
    sizes = [a.aval.size * a.aval.dtype.itemsize for a in operands[first : first + count]]
    return [(first + i, i) for i, n in enumerate(sizes) if n > LARGE]


def source_of(jaxpr: Jaxpr, v: Atom) -> Atom:
    """The first in the chain of values that ends with `v`, of which each may take the memory of the previous one."""
    producer = {v: e for e in jaxpr.eqns for v in e.outvars}
    while isinstance(v, Var) and v in producer:
        eqn = producer[v]
        rule = eqn.primitive.kernel
        if isinstance(rule, Block):
            place = eqn.outvars.index(v)
            sources = [eqn.invars[i] for i, k in rule.overwrites(eqn.invars, eqn.params) if k == place]
        elif isinstance(rule, Pointwise):
            sources = [a for a in eqn.invars if (a.aval.shape, a.aval.dtype) == (v.aval.shape, v.aval.dtype)]
        else:
            sources = [*eqn.invars] if isinstance(rule, Reshape) else []
        if not sources:
            break
        v = sources[0]
    return v


class Carries:
    """The memory of a loop's carry, from one iteration to the next.

    A small value has memory of its own, which becomes registers. A larger one lives in the buffer of the result, if the
    body can overwrite it with the next value; otherwise it alternates between two buffers, which saves a copy in each
    iteration.

    Parameters
    ----------
    k : BlockEmitter
    body : Jaxpr
        Its first results are the carry.
    first : int
        The number of the operand at which the carry starts.
    init, last : sequence of Buffer
        The initial carry, and the buffers of the final one.
    """

    def __init__(
        self, k: BlockEmitter, body: Jaxpr, first: int, init: Sequence[Buffer], last: Sequence[Buffer]
    ):
        self.k = k
        self.last = last
        self.turn = None
        tapes = [isinstance(a, TapeAval) for a in body.out_avals[: len(last)]]
        large = [t or prod(b.shape) * b.dtype.itemsize > LARGE for b, t in zip(last, tapes)]
        twice = [False] * len(last)
        if any(large):
            over = k.overwritable(body, first, len(last))
            twice = [n and not o and not t for n, o, t in zip(large, over, tapes)]
        if any(twice):
            self.turn = k.local(k.const(0, np.dtype(np.int64)))
        self.twice = twice
        self.places = [
            k.scratch((2, *b.shape), b.dtype) if t else b if n else k.scratch(tuple(b.shape), b.dtype)
            for b, n, t in zip(last, large, twice)
        ]
        for place, x, t in zip(self.places, init, twice):
            k.copy(k.row(place, 0) if t else place, x)

    def now(self) -> list[Any]:
        """The memory from which an iteration reads its carry."""
        if self.turn is None:
            return self.places
        here = self.turn.get()
        return [self.k.row(p, here) if t else p for p, t in zip(self.places, self.twice)]

    def following(self) -> list[Any]:
        """The memory for the next carry; the same memory if possible."""
        if self.turn is None:
            return self.places
        there = 1 - self.turn.get()
        return [self.k.row(p, there) if t else p for p, t in zip(self.places, self.twice)]

    def advance(self) -> None:
        """At the end of an iteration, the next carry becomes the current one."""
        if self.turn is not None:
            self.turn.set(1 - self.turn.get())

    def finish(self) -> None:
        """After the loop, copy the carry to the results."""
        for result, place in zip(self.last, self.now()):
            if place is not result:
                self.k.copy(result, place)
