"""The memory of a loop's carry in its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from ...core import INT64, Atom, Block, BlockEmitter, Buffer, Jaxpr, Pointwise, Reshape, TapeAval
from ...runtime.records import NamedTuple
from ...transforms.transpose import LARGE


def in_place(operands: Sequence[Atom], first: int, count: int) -> list[tuple[int, int]]:
    """For each large part of the carry the numbers of its operand, counted from `first`, and of its result."""
    sizes = [a.aval.size * a.aval.dtype.itemsize for a in operands[first : first + count]]
    return [(first + i, i) for i, n in enumerate(sizes) if n > LARGE]


def sources_of(jaxpr: Jaxpr) -> list[Atom]:
    """For each result the first value of its chain, in which each may take the memory of the previous one.

    A branch asks for the sources of the branches inside it, so each jaxpr answers once: all in one walk.
    """
    return jaxpr.derive(sources_of, lambda: _sources(jaxpr))


def _sources(jaxpr: Jaxpr) -> list[Atom]:
    previous: dict[Atom, Atom] = {}
    for eqn in jaxpr.eqns:
        rule = eqn.primitive.kernel
        if isinstance(rule, Block):
            for i, k in reversed(rule.overwrites(eqn.invars, eqn.params)):
                previous[eqn.outvars[k]] = eqn.invars[i]
        elif isinstance(rule, Pointwise | Reshape):
            for out, a in product(eqn.outvars, reversed(eqn.invars)):
                if isinstance(rule, Reshape) or (a.aval.shape, a.aval.dtype) == (
                    out.aval.shape,
                    out.aval.dtype,
                ):
                    previous[out] = a
    sources: list[Atom] = list(jaxpr.outvars)
    for k, source in enumerate(sources):
        while source in previous:
            source = previous[source]
        sources[k] = source
    return sources


class _Ring(NamedTuple):
    """Parts of the carry that hand their values on: each becomes what the next one was, and the last one is new.

    They have `size` buffers, and move on by one of them in each iteration. One more buffer than parts is for the new
    value, unless it may overwrite the first part.
    """

    parts: list[int]
    size: int


class Carries:
    """The memory of a loop's carry, from one iteration to the next.

    A small value has separate memory, which becomes registers. A larger one lives in the buffer of the result, if the
    body can overwrite it with the next value; otherwise it alternates between two buffers, which saves a copy in each
    iteration. So do two that change places, and the last three states of a recursion.

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
        rings = _rings(k, body, first, last)
        #: For each part of the carry in several buffers these, its number among them, and their number.
        self.moving: dict[int, tuple[Any, int, int]] = {}
        #: The numbers of the operands whose memory the next carry leaves.
        self.spare = [first + r.parts[0] for r in rings if r.size > len(r.parts)]
        self.turns = {size: k.local(k.const(0, INT64)) for size in sorted({r.size for r in rings})}
        for ring in rings:
            place = last[ring.parts[0]]
            buffers = k.scratch((ring.size, *place.shape), place.dtype)
            self.moving.update((j, (buffers, n, ring.size)) for n, j in enumerate(ring.parts))
        self.places = [
            b if is_tape or _is_large(b) else k.scratch(tuple(b.shape), b.dtype)
            for b, is_tape in zip(last, _tapes(body, len(last)))
        ]
        self.slots: dict[int, list[Any]] = {size: list(range(size)) for size in self.turns}
        for place, x in zip(self._at(0), init):
            k.copy(place, x)

    def _at(self, later: int) -> list[Any]:
        places = list(self.places)
        for j, (buffers, n, size) in self.moving.items():
            places[j] = self.k.row(buffers, self.slots[size][(n + later) % size])
        return places

    def now(self) -> list[Any]:
        """The memory from which an iteration reads its carry."""
        for size, turn in self.turns.items():
            first = turn.get()
            others = [first + n for n in range(1, size)]
            self.slots[size] = [first, *[self.k.where(n < size, n, n - size) for n in others]]
        return self._at(0)

    def following(self) -> list[Any]:
        """The memory for the next carry, after `now`; the same memory if possible."""
        return self._at(1)

    def advance(self) -> None:
        """At the end of an iteration, the next carry becomes the current one."""
        for size, turn in self.turns.items():
            turn.set(self.slots[size][1])

    def finish(self) -> None:
        """After the loop, copy the carry to the results."""
        for result, place in zip(self.last, self.now()):
            if place is not result:
                self.k.copy(result, place)


def _tapes(body: Jaxpr, count: int) -> list[bool]:
    return [isinstance(a, TapeAval) for a in body.out_avals[:count]]


def _is_large(b: Buffer) -> bool:
    return prod(b.shape) * b.dtype.itemsize > LARGE


def _rings(k: BlockEmitter, body: Jaxpr, first: int, last: Sequence[Buffer]) -> list[_Ring]:
    """The parts of a carry that are not overwritten in their place."""
    count = len(last)
    tapes = _tapes(body, count)
    large = [j for j, b in enumerate(last) if not tapes[j] and _is_large(b)]
    if not large:
        return []
    old = body.invars[first : first + count]
    rings, complete = _rings_of(k, body, (first, count), _chains(old, body.outvars[:count], large))
    if not complete:  # some may change elements of another part, and become it
        changed, in_place = _rings_of(k, body, (first, count), _chains(old, sources_of(body)[:count], large))
        rings = changed if in_place else rings
    return [r for r in rings if r.size > 1]


def _rings_of(
    k: BlockEmitter, body: Jaxpr, carry: tuple[int, int], chains: Sequence[Sequence[int]]
) -> tuple[list[_Ring], bool]:
    """The rings of these chains, and whether all parts overwrite each other."""
    following = {j: after for chain in chains for j, after in zip(chain, [*chain[1:], chain[0]])}
    first, count = carry
    # Each next value takes the memory of the following part.
    over = k.overwritable(body, first, [following.get(j, j) for j in range(count)])
    rings = [_Ring([*chain], len(chain) + (not all(over[j] for j in chain))) for chain in chains]
    return rings, all(over[j] for j in following)


def _chains(old: Sequence[Atom], new: Sequence[Atom], large: Sequence[int]) -> list[list[int]]:
    """The large parts of a carry in chains, of which each becomes what the next one was, if `new` has it."""
    source: dict[int, int] = {}
    for j in large:
        i = next((i for i in large if new[j] is old[i]), j)
        if i != j and i not in source.values() and old[i].aval.strong() == old[j].aval.strong():
            source[j] = i
    chains: list[list[int]] = []
    done: set[int] = set()
    # Chains start at parts that no other one becomes; what is left are circles.
    for j in sorted(large, key=lambda j: j in source.values()):
        chain: list[int] = []
        while j not in done:
            done.add(j)
            chain.append(j)
            j = source.get(j, j)
        if chain:
            chains.append(chain)
    return chains
