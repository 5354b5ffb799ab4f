"""Overwrite an array that a loop still reads: old elements wait in variables until a later iteration has read them.

A step of a stencil writes a working copy of its array, which is copied back afterwards. Without the copy it needs no
second array, and reads each element once. LLVM vectorizes such loops: a vector of old elements is shifted into the next
one::

    for i in range(1, n - 1):                       s = u[0]
        w[i] = u[i - 1] + u[i] + u[i + 1]           for i in range(1, n - 1):
    u = w                                  ──▶          t = u[i]
                                                        u[i] = s + t + u[i + 1]
                                                        s = t

An iteration may also read an element that it has just overwritten. `aliasing` decides which arrays have working copies:
those of which this file can do without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import ir, queries
from ..check import LoopIRError
from ..offsets import Offsets
from ..touches import touches


def overwrite(kernel: ir.Kernel) -> ir.Kernel:
    """Do without the working copies of a kernel, in place; it must not be outlined yet.

    Raises
    ------
    LoopIRError
        If it is not certain which element a statement reads.
    """
    copies = kernel.copies
    chained = not {c.buffer.place for c in copies}.isdisjoint(c.original.place for c in copies)
    for group in [[c] for c in copies] if chained else [copies]:
        _overwrite_in(kernel.body, group)
        originals = {c.buffer.place: c.original for c in group}
        for b in kernel.buffers:  # a copy, or a reshape of one
            if b.place in originals:
                b.role, b.storage = originals[b.place].role, originals[b.place].place
    kernel.copies = []
    return kernel


def _overwrite_in(body: ir.StatementList, copies: Sequence[ir.WorkingCopy]) -> None:
    """Look for the blocks whose statements write copies, in one walk for all, and replace these."""
    places: dict[str, list[int]] = {c.buffer.place: [] for c in copies}
    for n, s in enumerate(body.statements):
        for place in {t.buffer.place for t in touches(ir.StatementList([s]))} & places.keys():
            places[place].append(n)
    inside: dict[int, list[ir.WorkingCopy]] = {}
    for c in copies:
        if len(places[c.buffer.place]) == 1:
            inside.setdefault(places[c.buffer.place][0], []).append(c)
    for n, some in inside.items():
        for inner in queries.bodies_of(body.statements[n]):
            _overwrite_in(inner, some)
    here = [(places[c.buffer.place], c) for c in copies if len(places[c.buffer.place]) > 1]
    if here:
        _replace_in(body, {c: using for using, c in sorted(here, key=lambda pair: pair[0][0])})


def _replace_in(body: ir.StatementList, places: Mapping[ir.WorkingCopy, Sequence[int]]) -> None:
    """Replace statements of a block that write copies; `places` has their numbers, in the order of the first ones."""
    pieces = [[s] for s in body.statements]
    starts = list(range(len(pieces)))  # the piece that has what became of each statement
    offsets, noted = Offsets(), 0
    for copy, using in places.items():
        first, end = starts[using[0]], using[-1] + 1
        while end < len(starts) and starts[end] < end:
            end += 1
        for piece in pieces[noted:first]:
            for s in piece:
                offsets.note(s)
        noted = max(noted, first)
        found = [s for piece in pieces[first:end] for s in piece if not _copies(s, copy)]
        pieces[first:end] = [_LateReads(copy, offsets).body(found), *[[] for _ in range(first + 1, end)]]
        starts[first:end] = [first] * (end - first)
    body.statements[:] = [s for piece in pieces for s in piece]


def _copies(s: ir.Statement, copy: ir.WorkingCopy) -> bool:
    """Whether a statement only copies the original or to it: nothing once they share their memory."""
    pair = {copy.buffer.place, copy.original.place}
    if type(s) is ir.Copy:
        return {s.target.place, s.source.place} == pair
    inner = s
    while type(inner) is ir.For and len(inner.body.statements) == 1:
        (inner,) = inner.body.statements
    if type(inner) is not ir.For or [type(t) for t in inner.body.statements] != [ir.Load, ir.Store]:
        return False
    load, store = inner.body.statements
    same = load.index == store.index and store.x is load.value
    return same and {load.buffer.place, store.buffer.place} == pair


class _LateReads:
    """Replaces loops over consecutive elements, which count as one loop; each stores each element at most once."""

    def __init__(self, copy: ir.WorkingCopy, offsets: Offsets):
        self.buffer = copy.original
        self.copy = copy.buffer
        self.prefix = list(copy.prefix)
        self.offsets = offsets

    def is_inside(self, s: ir.Load | ir.Store) -> bool:
        """Whether a statement reads an old element, or writes a new one."""
        place = self.copy.place if type(s) is ir.Store else self.buffer.place
        return s.buffer.place == place and list(s.index[: len(self.prefix)]) == self.prefix

    def body(self, statements: Sequence[ir.Statement]) -> list[ir.Statement]:
        """The statements of a block."""
        new: list[ir.Statement] = []
        group: list[tuple[ir.For, ir.Store]] = []
        for s in (*self.opened(statements), None):
            store = self.note(s)
            if group and (store is None or not self.continues(*group[-1], s, store)):
                new += self.waiting(group)
                group = []
            if store is not None:
                assert type(s) is ir.For
                group.append((s, store))
            elif s is not None:
                new.append(s)
        return new

    def opened(self, statements: Sequence[ir.Statement]) -> list[ir.Statement]:
        """The statements, with those of loops along axes of extent 1, which may hide the loop outside them."""
        new: list[ir.Statement] = []
        for s in statements:
            if type(s) is ir.For and any(self.is_along_one(s, t) for t in queries.walk(s.body)):
                new.append(ir.Let(s.var, "add", (s.start, ir.Extent(0))))
                new += self.opened(s.body.statements)
            else:
                new.append(s)
        return new

    def is_along_one(self, loop: ir.For, s: ir.Statement) -> bool:
        """Whether a loop runs along an axis of extent 1 of the memory that a statement writes to."""
        if type(s) is not ir.Store or queries.rounds(loop, 0) != 1 or not self.is_inside(s):
            return False
        return any(n == 1 and i is loop.var for i, n in zip(s.index, s.buffer.shape))

    def note(self, s: ir.Statement | None) -> ir.Store | None:
        """Note the integers of a statement; the store of a loop that overwrites an element in each iteration."""
        if s is None:
            return None
        self.offsets.note(s)
        for inner in queries.bodies_of(s):
            inner.statements = self.body(inner.statements)
        if type(s) is not ir.For or queries.rounds(s, 0) <= 0:
            return None
        stores = [t for t in s.body.statements if type(t) is ir.Store and self.is_inside(t)]
        return next((t for t in stores if self.axis(s, t) is not None), None)

    def axis(self, loop: ir.For, s: ir.Load | ir.Store) -> int | None:
        """The axis along which a loop accesses the memory."""
        return next((d for d, i in enumerate(s.index) if self.offsets.of(i)[0] is loop.var), None)

    def place(self, loop: ir.For, s: ir.Load | ir.Store) -> tuple[int, list[Any]]:
        """What is added to the loop's variable in the index of an access, and the other indices."""
        axis = self.axis(loop, s)
        if (
            axis is None
            or s.part is not None
            or _without_ones(s.buffer.shape) != _without_ones(self.buffer.shape)
        ):
            raise LoopIRError(f"{s} reads elements while they are overwritten")
        others = [
            None if d == axis else self.offsets.of(i) for d, i in enumerate(s.index) if s.buffer.shape[d] != 1
        ]
        return self.offsets.of(s.index[axis])[1], others

    def first(self, loop: ir.For, s: ir.Store) -> int:
        """The first index along the loop's axis."""
        assert type(loop.start) is ir.Extent
        return loop.start.value + self.place(loop, s)[0]

    def continues(self, loop: ir.For, store: ir.Store, after: Any, other: ir.Store) -> bool:
        """Whether a loop goes on where another one has ended."""
        end = self.first(loop, store) + queries.rounds(loop, 0)
        same = self.place(loop, store)[1] == self.place(after, other)[1]
        return same and not after.reverse and end == self.first(after, other)

    def waiting(self, group: list[tuple[ir.For, ir.Store]]) -> list[ir.Statement]:
        """The statements that replace consecutive loops."""
        lags = [self.lags(loop, store) for loop, store in group]
        latest = max([lag for found in lags for lag in found.values()], default=0)
        variables = [ir.LocalVar(self.buffer.dtype) for _ in range(latest)]
        for (loop, store), found in zip(group, lags):
            if any(found.values()):
                if loop.reverse:
                    raise LoopIRError(f"{loop} overwrites elements in the wrong order")
                loop.independent = loop.separate = loop.adds = False
            self.replace(loop, store, found, variables)
        before = self.declarations(*group[0], variables)
        return [*before, *[loop for loop, _ in group]]

    def lags(self, loop: ir.For, store: ir.Store) -> dict[ir.Load, int]:
        """The loads of a loop, and how many iterations after the store to an element they read it."""
        offset, others = self.place(loop, store)
        found: dict[ir.Load, int] = {}
        for s in queries.walk(loop.body):
            if type(s) is ir.Load and self.is_inside(s):
                own, rest = self.place(loop, s)
                if rest != others:
                    raise LoopIRError(f"{s} reads elements while they are overwritten")
                found[s] = offset - own
        return found

    def replace(
        self, loop: ir.For, store: ir.Store, lags: dict[ir.Load, int], variables: list[ir.LocalVar]
    ) -> None:
        """Read old elements from variables, and hand them on at the end of an iteration."""
        statements = loop.body.statements
        _read_first([s for s, n in lags.items() if n < 0], statements, store)
        before = statements[: statements.index(store)]
        after = queries.walk(ir.StatementList(statements[len(before) :]))
        late = {s: variables[n - 1] for s, n in lags.items() if n > 0}
        again = [s for s in after if type(s) is ir.Load and lags.get(s) == 0]
        self.reading(loop.body, late)
        if not variables and not again:
            return
        here = next((s for s in before if type(s) is ir.Load and lags.get(s) == 0), None)
        if here is None:
            here = ir.Load(ir.Value(self.buffer.dtype), store.buffer, store.index)
            statements.insert(statements.index(store), here)
        if again:
            now = ir.LocalVar(self.buffer.dtype)
            statements.insert(statements.index(store), ir.Declare(now, here.value))
            self.reading(loop.body, dict.fromkeys(again, now))
        old: list[ir.Operand] = [here.value]
        for var in variables[:-1]:
            value = ir.Value(var.dtype)
            statements.append(ir.Get(value, var))
            old.append(value)
        statements += [ir.Set(var, x) for var, x in zip(variables, old)]

    def reading(self, body: ir.StatementList, late: dict[ir.Load, ir.LocalVar]) -> None:
        """Replace loads in a block, in place."""
        for n, s in enumerate(body.statements):
            if type(s) is ir.Load and s in late:
                body.statements[n] = ir.Get(s.value, late[s])
            for inner in queries.bodies_of(s):
                self.reading(inner, late)

    def declarations(self, loop: ir.For, store: ir.Store, variables: list[ir.LocalVar]) -> list[ir.Statement]:
        """The variables before the first iteration, with the elements before the first one that it overwrites."""
        first = self.first(loop, store)
        new: list[ir.Statement] = []
        index: list[ir.Operand] = []
        for i in store.index:
            base, offset = self.offsets.of(i)
            if base is None or base is loop.var or not offset:
                index.append(ir.Extent(offset) if base is None else base)
                continue
            whole = ir.Value(ir.INT64)
            index.append(whole)
            new.append(ir.Let(whole, "add", (base, ir.Extent(offset))))
        axis = self.axis(loop, store)
        for n, var in enumerate(variables, 1):
            init: ir.Operand = ir.Const(var.dtype.type(0).item(), var.dtype)
            if first - n >= 0:
                init = ir.Value(var.dtype)
                place = tuple([ir.Extent(first - n) if d == axis else i for d, i in enumerate(index)])
                new.append(ir.Load(init, store.buffer, place))
            new.append(ir.Declare(var, init))
        return new


def _read_first(loads: list[ir.Load], statements: list[ir.Statement], store: ir.Store) -> None:
    """Move loads of what later iterations overwrite before the store: vectors of elements are read before they are."""
    after = statements[statements.index(store) :]
    made = {s.value: s for s in after if type(s) is ir.Let}
    needed: set[Any] = set()
    waiting: list[Any] = [s for s in after if s in loads]
    while waiting:
        s = waiting.pop()
        needed.add(s)
        waiting += [made[x] for x in queries.operands_of(s) if x in made]
    if needed:
        rest = [s for s in after if s not in needed]
        statements[len(statements) - len(after) :] = [s for s in after if s in needed] + rest


def _without_ones(shape: tuple[int, ...]) -> list[int]:
    return [n for n in shape if n != 1]
