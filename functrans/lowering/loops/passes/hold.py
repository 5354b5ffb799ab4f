"""Keep elements of arrays in variables while a loop runs, if their place does not depend on its number.

In a product of matrices written as three loops, the innermost one adds to one element; in Floyd's and Warshall's
algorithm it reads one. As variables they are registers, sums may be reordered, and the loop vectorises. But another
statement of the loop may use the same memory, and touch the element in one iteration: the loop runs in three parts
then, before, in and after that iteration::

                                    for k0, k1 in (0, i), (i, i + 1), (i + 1, n):
    for k in range(n):                  s = 0
        d[j, k] *= c[k]         ──▶      for k in range(k0, k1):
        d[j, i] += b[k]                     d[j, k] *= c[k]
                                            s += b[k]
                                        d[j, i] += s
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ....runtime.config import config
from ....runtime.passes import HAND_ON, HOLDING
from ....runtime.records import NamedTuple
from .. import ir, queries
from ..offsets import Offsets
from .hand_on import hand_on

#: Loops with fewer iterations, if known, stay as they are.
FEWEST = 8
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
_SIMPLE = (ir.Let, ir.Load, ir.Store, ir.Get, ir.Set, ir.Fail, ir.Copy)


def hold_elements(kernel: ir.Kernel) -> ir.Kernel:
    """Keep elements in variables, or hand them on, in place; the kernel must not be outlined yet. It reorders sums."""
    _body(kernel.body, Offsets())
    return kernel


def _body(body: ir.StatementList, offsets: Offsets) -> None:
    new: list[Any] = []
    for s in body.statements:
        offsets.note(s)
        for inner in queries.bodies_of(s):
            _body(inner, offsets)
        new += _improved(s, offsets) if _is_simple(s) else [s]
    body.statements = new


def _improved(loop: ir.For, offsets: Offsets) -> list[Any]:
    """The statements that replace a loop."""
    before = hand_on(loop, offsets) if config.runs(HAND_ON) else []
    new = _Loop(loop, offsets).held() if config.runs(HOLDING) else [loop]
    return _unless_empty(loop, [*before, *new]) if before else new


def _unless_empty(loop: ir.For, statements: list[Any]) -> list[Any]:
    """Statements that run only if a loop has an iteration."""
    if queries.rounds(loop, 0) > 0:
        return statements
    some = ir.Value(ir.BOOL)
    then = ir.If(some, ir.StatementList(statements), ir.StatementList())
    return [ir.Let(some, "lt", (loop.start, loop.stop)), then]


def _is_simple(s: ir.Statement) -> bool:
    """Whether a loop runs in order, and has no loops and branches inside."""
    if type(s) is not ir.For or s.independent or s.separate or queries.rounds(s, FEWEST) < FEWEST:
        return False
    return all(type(t) in _SIMPLE for t in s.body.statements)


class _Access(NamedTuple):
    """A load or a store, and where it stands in the body; for a sum, `add` stands between the two."""

    element: Any
    first: int
    last: int
    add: ir.Let | None = None

    @property
    def writes(self) -> bool:
        """Whether it is more than a load."""
        return type(self.element) is ir.Store

    def is_apart_from(self, other: _Access) -> bool:
        """Whether one access ends before the other begins."""
        return self.last < other.first or other.last < self.first


#: The number of the iteration that touches an element: an operand, minus an integer.
_Cut = tuple[ir.Operand, int]


class _Loop:
    """An innermost loop."""

    def __init__(self, loop: ir.For, offsets: Offsets):
        self.loop = loop
        self.offsets = offsets
        self.statements = loop.body.statements
        self.defined: set[Any] = {loop.var, *[s.value for s in self.statements if hasattr(s, "value")]}
        self.uses: Counter[ir.Operand] = Counter(
            x for s in self.statements for x in queries.operands_of(s) if type(x) is ir.Value
        )
        copies = [s for s in self.statements if type(s) is ir.Copy and s.target.place != s.source.place]
        self.copied = {b.place for s in copies for b in (s.target, s.source)}
        self.accesses = self.accesses_of()

    def accesses_of(self) -> list[_Access]:
        """The accesses in order; a load, an addition and a store of the same element are one."""
        loaded: dict[Any, int] = {}
        added: dict[Any, ir.Let] = {}
        accesses: dict[int, _Access] = {}
        for n, s in enumerate(self.statements):
            if type(s) is ir.Load:
                loaded[s.value] = n
                accesses[n] = _Access(s, n, n)
            elif type(s) is ir.Let and s.op == "add":
                added[s.value] = s
            elif type(s) is ir.Store:
                accesses[n] = _Access(s, n, n)
                add = added.get(s.x)
                for v in () if add is None else add.args:
                    first = loaded.get(v, -1)
                    once = first >= 0 and self.uses[v] == 1 and self.uses[s.x] == 1
                    if once and _same(self.statements[first], s):
                        del accesses[first]
                        accesses[n] = _Access(s, first, n, add)
                        break
        return list(accesses.values())

    def held(self) -> list[Any]:
        """The statements that replace the loop."""
        held: list[_Access] = []
        chosen: _Cut | None = None
        for a in self.accesses:
            cuts = self.cuts(a)
            if cuts and chosen is None:
                chosen = cuts[0]
            if cuts is not None and (not cuts or chosen in cuts):
                held.append(a)
        if not held:
            return [self.loop]
        if chosen is None:
            return self.part(held, self.loop.start, self.loop.stop)
        return self.parts(held, *chosen)

    def cuts(self, a: _Access) -> list[_Cut] | None:
        """Where the loop may be cut to hold an element; empty if it need not be; None if it cannot."""
        e = a.element
        if e.part is not None or not self.defined.isdisjoint(e.index) or e.buffer.dtype not in _DTYPES:
            return None
        if a.writes and a.add is None:
            return None
        others = [o for o in self.accesses if o is not a and o.element.buffer.place == e.buffer.place]
        if e.buffer.place in self.copied:
            return None
        if not a.writes and not any(o.writes for o in others):
            return None  # nothing keeps LLVM from it
        cuts: list[_Cut] | None = None
        for o in others:
            own = self.meetings(o, e)
            if own is None:
                continue
            if not _in_order(a, o):
                return None
            cuts = own if cuts is None else [cut for cut in cuts if cut in own]
            if not cuts:
                return None
        return cuts or []

    def meetings(self, o: _Access, e: Any) -> list[_Cut] | None:
        """The iterations of which only one at most touches `e` in another access; None if none does."""
        x = o.element
        if x.buffer.shape != e.buffer.shape or x.part is not None:
            return []
        pairs = list(zip(x.index, e.index))
        if any(self.offsets.differ(i, j) for i, j in pairs):
            return None
        moving = [(j, self.offsets.of(i)) for i, j in pairs]
        return [(j, offset) for j, (base, offset) in moving if base is self.loop.var]

    # --- the new loops --------------------------------------------------------------------------------------

    def parts(self, held: list[_Access], place: ir.Operand, offset: int) -> list[Any]:
        """The loop in three parts, before, in and after an iteration."""
        loop = self.loop
        make = _Maker()
        at = make("sub", place, ir.Extent(offset)) if offset else place
        low, high = (
            make("min", make("max", x, loop.start), loop.stop) for x in (at, make("add", at, ir.Extent(1)))
        )
        number, inside = ir.Value(ir.INT64), _Maker()
        before, after = inside("eq", number, ir.Extent(0)), inside("eq", number, ir.Extent(2))
        start = inside("select", before, loop.start, inside("select", after, high, low))
        stop = inside("select", before, low, inside("select", after, loop.stop, high))
        body = ir.StatementList([*inside.statements, *self.part(held, start, stop)])
        return [*make.statements, ir.For(number, ir.Extent(0), ir.Extent(3), body, reverse=loop.reverse)]

    def part(self, held: list[_Access], start: ir.Operand, stop: ir.Operand) -> list[Any]:
        """A part of the loop, which starts with the elements as they are then."""
        gone: set[Any] = set()
        first: list[Any] = []
        last: list[Any] = []
        sums: dict[ir.Let, list[Any]] = {}
        for a in held:
            e = a.element
            if not a.writes:
                first.append(e)
                gone.add(e)
                continue
            assert a.add is not None
            load, dtype = self.statements[a.first], e.buffer.dtype
            var, old, total, sum_, new = ir.LocalVar(dtype, fold="sum"), *(ir.Value(dtype) for _ in range(4))
            term = a.add.args[a.add.args[0] is load.value]
            first.append(ir.Declare(var, ir.Const(0.0, dtype)))
            sums[a.add] = [
                ir.Get(old, var),
                ir.Let(total, "add", (old, term), reassoc=True),
                ir.Set(var, total),
            ]
            gone.update((load, e))
            last += [
                ir.Get(sum_, var),
                load,
                ir.Let(new, "add", (load.value, sum_)),
                ir.Store(e.buffer, e.index, new),
            ]
        kept = [t for s in self.statements if s not in gone for t in sums.get(s, [s])]
        loop = self.loop
        inner = ir.For(
            loop.var,
            start,
            stop,
            ir.StatementList(kept),
            loop.reverse,
            loop.interruptible,
            adds=loop.adds,
            most=loop.most,
        )
        return _unless_empty(inner, [*first, inner, *last])


def _in_order(a: _Access, o: _Access) -> bool:
    """Whether the iteration that touches an element twice may read it at its start, or add to it at its end."""
    if not a.writes:
        return not o.writes or a.last < o.first
    return a.is_apart_from(o) if o.add is not None else o.last < a.first


def _same(x: Any, y: Any) -> bool:
    return (x.buffer, x.index, x.part) == (y.buffer, y.index, y.part)


class _Maker:
    """Makes statements that compute integers."""

    def __init__(self) -> None:
        self.statements: list[Any] = []

    def __call__(self, op: str, *args: ir.Operand) -> ir.Value:
        value = ir.Value(ir.BOOL if op in ("eq", "lt") else ir.INT64)
        self.statements.append(ir.Let(value, op, args))
        return value
