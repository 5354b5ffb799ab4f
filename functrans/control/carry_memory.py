"""Where the carry of a loop lives in its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..core.ir import Jaxpr
from ..core.kernel import BlockEmitter, Buffer
from ..core.tape import TapeAval

#: A carry of at most this many bytes is kept in registers, or on the stack.
SMALL = 256


class Carries:
    """The memory of the carry of a loop, from one iteration to the next.

    A small value lives apart: it becomes registers. A larger one lives where the result goes, if the body can write
    the next value over it; else in one of two places in turn, which saves a copy at the end of each iteration.

    Parameters
    ----------
    k : BlockEmitter
    body : Jaxpr
        Its first results are the carry.
    first : int
        The number of its operand that is the first of the carry.
    init, last : sequence of Buffer
        The carry at first, and where the last one goes.
    """

    def __init__(
        self, k: BlockEmitter, body: Jaxpr, first: int, init: Sequence[Buffer], last: Sequence[Buffer]
    ):
        self.k = k
        self.last = last
        self.turn = None
        tapes = [isinstance(a, TapeAval) for a in body.out_avals[: len(last)]]
        large = [t or prod(b.shape) * b.dtype.itemsize > SMALL for b, t in zip(last, tapes)]
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
        """The memory of the carry that an iteration is given."""
        if self.turn is None:
            return self.places
        here = self.turn.get()
        return [self.k.row(p, here) if t else p for p, t in zip(self.places, self.twice)]

    def following(self) -> list[Any]:
        """The memory of the next one; the same one where it may be."""
        if self.turn is None:
            return self.places
        there = 1 - self.turn.get()
        return [self.k.row(p, there) if t else p for p, t in zip(self.places, self.twice)]

    def advance(self) -> None:
        """At the end of an iteration: the next carry is the carry."""
        if self.turn is not None:
            self.turn.set(1 - self.turn.get())

    def finish(self) -> None:
        """Behind the loop: the carry goes to the results."""
        for result, place in zip(self.last, self.now()):
            if place is not result:
                self.k.copy(result, place)
