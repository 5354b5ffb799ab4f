"""Minimize the residuals of a loop's body by a min-cut: recompute cheap operations, store the rest.

Each value that a residual depends on is a vertex whose capacity is its size. The sources are the values that must be
stored if needed at all (the carry, and expensive results); the residuals are the sink. The values in a minimal cut
between them are stored, and cheap arithmetic recomputes the residuals from these. A step of a Runge-Kutta method has
dozens of residuals and a carry of a few numbers: it stores the carry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import pairwise

from ..core import Atom, Eqn, Jaxpr, Reduction, Var
from ..passes.toolkit import forward_slice
from ..transforms.linearize import LinearizedJaxpr
from .checkpoint import inline_calls, recomputing, residual_atoms, second_run

#: Sums over at most this many elements count as cheap.
SHORT = 64
#: At most this many elements are recomputed for each element that is not stored.
WORK = 16


def economical(parts: LinearizedJaxpr, num_consts: int, num_carry: int) -> LinearizedJaxpr:
    """A linearized loop body that stores the fewest bytes per iteration.

    Parameters
    ----------
    parts : LinearizedJaxpr
        From (constants, carry, rows) to (carry, rows). The constants are the same in each iteration; the rows of both
        sides are in memory anyway.
    num_consts, num_carry : int
    """
    primal = inline_calls(parts.primal)
    parts = parts._replace(primal=primal)
    network = _Network(primal, num_consts, num_carry, len(parts.nonzero))
    residuals = residual_atoms(parts)
    before = network.size(residuals)
    stored = network.cut(residuals)
    after = network.size(stored)
    available = stored | network.free
    work = sum(v.aval.size for e in second_run(primal, residuals, available)[0] for v in e.outvars)
    itemsize = 8
    if after >= before or work * itemsize > WORK * (before - after):
        return parts
    return recomputing(parts, available)


class _Network:
    """The values of a body, and the cost of storing them.

    Attributes
    ----------
    free : set of Var
        Values that cost nothing: rows and loop-invariant values (but invariant values larger than their operands are
        recomputed all the same).
    """

    def __init__(self, primal: Jaxpr, num_consts: int, num_carry: int, num_outs: int):
        self.producer: dict[Atom, Eqn] = {v: e for e in primal.eqns for v in e.outvars}
        varying = forward_slice(primal.eqns, primal.invars[num_consts:])
        self.free: set[Atom] = {*primal.invars[:num_consts], *primal.invars[num_consts + num_carry :]}
        self.cheap: set[Eqn] = set()
        for e in primal.eqns:
            if _is_cheap(e):
                self.cheap.add(e)
            if varying.isdisjoint(e.outvars) and (e not in self.cheap or not _grows(e)):
                self.free.update(e.outvars)
        self.fixed = self.free | {v for v in self.producer if v not in varying} | set(primal.constvars)
        self.free.update(a for a in primal.outvars[num_carry:num_outs] if type(a) is Var)

    def costs(self, a: Atom) -> bool:
        """Whether storing the value takes memory in each iteration."""
        return type(a) is Var and a not in self.free and a not in self.fixed

    def size(self, values: Iterable[Atom]) -> int:
        """The total bytes of the values that take memory in each iteration."""
        return sum(_bytes(a) for a in set(values) if self.costs(a))

    def cut(self, residuals: Iterable[Atom]) -> set[Atom]:
        """The fewest bytes from which cheap arithmetic computes the residuals; of equal cuts the last."""
        goal = {a for a in residuals if self.costs(a)}
        sources: dict[Atom, list[Atom]] = {}
        waiting = list(goal)
        while waiting:
            v = waiting.pop()
            if v in sources:
                continue
            e = self.producer.get(v)
            sources[v] = [] if e is None or e not in self.cheap else [a for a in e.invars if self.costs(a)]
            waiting += sources[v]
        roots = {v for v in sources if (e := self.producer.get(v)) is None or e not in self.cheap}
        return _smallest_cut(sources, roots, goal)


def _smallest_cut(sources: dict[Atom, list[Atom]], roots: set[Atom], goal: set[Atom]) -> set[Atom]:
    """The vertices between `roots` and `goal` with the least total size, nearest to the goal."""
    # A vertex is two nodes, (v, 0) and (v, 1), joined by an arc of its size; arcs between vertices are unlimited.
    readers: dict[Atom, list[Atom]] = {v: [] for v in sources}
    for v, operands in sources.items():
        for a in operands:
            readers[a].append(v)
    capacity = {v: _bytes(v) for v in sources}
    sent = dict.fromkeys(sources, 0)
    along: dict[tuple[Atom, Atom], int] = {}

    def predecessors(node: tuple[Atom, int]) -> list[tuple[Atom, int]]:
        """The nodes that can still send flow to this one."""
        v, side = node
        if side:
            nodes = [(v, 0)] if capacity[v] else []
            return nodes + [(w, 0) for w in readers[v] if along.get((v, w))]
        return ([(v, 1)] if sent[v] else []) + [(a, 1) for a in sources[v]]

    while True:
        came: dict[tuple[Atom, int], tuple[Atom, int] | None] = {(v, 1): None for v in goal}
        queue = deque(came)
        start = None
        while queue and start is None:
            node = queue.popleft()
            if not node[1] and node[0] in roots:
                start = node
                break
            for other in predecessors(node):
                if other not in came:
                    came[other] = node
                    queue.append(other)
        if start is None:
            return {v for v in sources if (v, 1) in came and (v, 0) not in came}
        path = [start]
        while (after := came[path[-1]]) is not None:
            path.append(after)
        arcs = list(pairwise(path))
        room = []
        for (v, i), (w, j) in arcs:
            if v is w:
                room.append(capacity[v] if i < j else sent[v])
            elif not i:  # cancel flow from w to v
                room.append(along[w, v])
        most = min(room)
        for (v, i), (w, j) in arcs:
            if v is w:
                step = most if i < j else -most
                capacity[v] -= step
                sent[v] += step
            elif i:
                along[v, w] = along.get((v, w), 0) + most
            else:
                along[w, v] -= most


def _bytes(a: Atom) -> int:
    return a.aval.size * a.aval.dtype.itemsize


def _grows(e: Eqn) -> bool:
    return sum(v.aval.size for v in e.outvars) > sum(a.aval.size for a in e.invars if type(a) is Var)


def _is_cheap(e: Eqn) -> bool:
    if not e.effects.movable:
        return False
    if isinstance(e.primitive.kernel, Reduction):
        return e.invars[0].aval.size <= SHORT
    if e.primitive.is_call:
        return all(map(_is_cheap, e.params["jaxpr"].eqns))
    return e.primitive.cheap
