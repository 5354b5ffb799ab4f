"""Run products with a tall matrix, and the loops over its rows between them, block by block of its rows.

.. code-block:: text

    z = X @ w                                 for each block of rows:
    for i in 0..n:                                z[...] = X[block] @ w
        r[i] = f(z[i])             ──▶            for i in block:
        s = s + g(z[i])                               r[...] = f(z[...])
    out = r @ X                                       s = s + g(z[...])
                                                  out = out + r[...] @ X[block]

A block fits into the cache, so that the matrix is read from memory once. What only these statements use has room for
the rows of a block. Where several threads are to share the work, the blocks are dealt to panels, each of which adds up
its own results, so that these do not depend on which thread ran what.

Statements come together if a row needs nothing of other rows that they compute (`row_groups`). Those between them move
before the blocks, or after them.

Products of two long matrices, as in attention, come together for the sake of temporary matrices with a long row for
each row: the scores ``q @ k.T`` and what becomes of them. No more than a block of these is ever in memory. Where there
are several of each, as in the heads of attention, loops over the heads become one loop first: each has its matrices,
for which one place in memory is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Any

from ....runtime.records import dataclass
from .. import ir, queries
from ..builder import StatementBuilder
from ..handles import Memory, ScalarHandle
from ..touches import touches
from . import heads
from .parallel import EVEN, IN_PRODUCT
from .places import MatrixPlaces
from .row_calls import (
    TOGETHER,
    RowBlock,
    RowCall,
    is_streamed,
    memory_of_sum,
    row_calls,
    write_product,
)
from .row_groups import Dependences, Member, RowGroup, RowLoop, axis_of, head_loops, row_loops, uses_of

#: Python or a pool would see what is moved past them.
_FIXED = (ir.HostCall, ir.Reserve)
#: Bytes of a block's rows; the fewest and the most rows of a block, and the fewest blocks.
BYTES, FEWEST, MOST, BLOCKS = 192 << 10, 32, 2048, 4
#: The least bytes that several statements must share.
LEAST = 1 << 20
#: The same where rows are long, of products that BLAS computes for a whole block: it packs the other operand for each.
#: The blocks of all threads share the bytes, and the last level of the cache.
BYTES_WIDE, FEWEST_WIDE, MOST_WIDE = 16 << 20, 128, 256
#: The least bytes of long rows that are then not kept. Fewer stay in the cache anyway.
LEAST_WIDE = 24 << 20
#: The least bytes that a head does not keep; those of all heads are at least `LEAST`. From 1 MB and 32 kB on,
#: attention, chains of products, and covariances of batches, take 0.5 to 0.95 of the time.
LEAST_HEAD = 16 << 10
#: A run ends after so many statements of which none joins the group.
FAR = 64


def block_rows(kernel: ir.Kernel, threads: int) -> None:
    """Run statements block by block of rows, in place; the kernel must not be outlined yet.

    Parameters
    ----------
    kernel : Kernel
    threads : int
        How many may share the blocks.
    """
    _RowBlocks(kernel, threads).body(kernel.body)


@dataclass(eq=False)
class _Run:
    """A group, in the statements among which it stands.

    Attributes
    ----------
    wide : collection of str
        The storages of long rows for which the group is made: other statements join only if they need its rows.
    statements : list
        All of them, in their order.
    before, after : list
        Those that are not in the group.
    """

    group: RowGroup
    wide: Collection[str]
    statements: list[ir.Statement] = field(default_factory=list)
    before: list[ir.Statement] = field(default_factory=list)
    after: list[ir.Statement] = field(default_factory=list)
    _uses: Dependences = field(default_factory=Dependences)
    _uses_after: Dependences = field(default_factory=Dependences)
    _lengths: tuple[int, ...] = (0, 0, 0, 0)

    def takes(self, s: ir.Statement, members: Sequence[Member]) -> bool:
        """Add the next statement, which may be one of the members, if that is possible."""
        if any(isinstance(t, _FIXED) for t in queries.walk(ir.StatementList([s]))):
            return False
        joined = False
        if type(s) is ir.Mark:
            if s.place != "next":
                return False
            self.group.members.append(s)
        elif type(s) is ir.Copy and s.target.place == s.source.place:
            pass  # it does nothing
        else:
            uses = uses_of(s)
            joined = not self._uses_after.conflicts(uses) and self.joins(members)
            if joined:
                self._uses.add(uses)
            elif members and not self.wide:
                return False
            elif self._uses.conflicts(uses) or self._uses_after.conflicts(uses):
                self._uses_after.add(uses)
                self.after.append(s)
            else:
                self.before.append(s)
        self.statements.append(s)
        if joined:
            self._lengths = tuple([len(part) for part in self._parts])
        return True

    @property
    def is_over(self) -> bool:
        """Whether the group is empty, or has long ended."""
        length = self._lengths[0]
        return length == 0 or len(self.statements) - length > FAR

    def joins(self, members: Sequence[Member]) -> bool:
        """Add one of the members to the group if that is possible."""
        group = self.group
        possible = [m for m in members if m.rows == group.rows]
        if self.wide:
            possible = sorted(
                [m for m in possible if group.needs(m, self.wide)], key=group.agrees, reverse=True
            )
        return any(group.takes(m) for m in possible)

    def ended(self) -> _Run:
        """The run up to the group's last statement."""
        for part, length in zip(self._parts, self._lengths):
            del part[length:]
        return self

    @property
    def _parts(self) -> tuple[list[Any], ...]:
        return self.statements, self.before, self.after, self.group.members


class _RowBlocks:
    def __init__(self, kernel: ir.Kernel, threads: int):
        self.kernel = kernel
        self.threads = threads
        self.panels = 1
        self.users = Counter(t.buffer.place for t in touches(kernel.body))
        lasting = {x.place for x in kernel.buffers if x.role != "scratch" or x.dealt}
        self.alone = {place: n for place, n in self.users.items() if place not in lasting}
        self.places = MatrixPlaces(kernel.body)
        #: Whether inputs are overwritten: then nothing may move past a failure, after which they are read again.
        self.updates = any(b.role == "update" for b in kernel.buffers)

    def body(self, body: ir.StatementList) -> None:
        """Run groups of a block of statements, and of those inside, by rows."""
        fixed = self.updates and queries.may_fail(body)
        loops = {id(s): found for s in body.statements if (found := head_loops(s, self.places))}
        if loops and not fixed:
            inside = ir.StatementList([s for s in body.statements if id(s) in loops])
            own = {t.buffer.place for t in touches(inside)}
            body.statements = self.grouped(body.statements, loops, own, of_heads=True)
        for s in body.statements:
            for inner in queries.bodies_of(s):
                self.body(inner)
        products = {id(s): calls for s in body.statements if (calls := row_calls(s, self.places))}
        if not products or fixed:
            return
        wide = {p.wide.place for found in products.values() for p in found if p.wide is not None}
        if wide:
            body.statements = self.grouped(body.statements, products, wide)
        narrow = {i: [p for p in found if p.wide is None] for i, found in products.items()}
        body.statements = self.grouped(body.statements, narrow, ())

    def grouped(
        self,
        statements: Sequence[ir.Statement],
        products: Mapping[int, Sequence[Member]],
        wide: Collection[str],
        of_heads: bool = False,
    ) -> list[ir.Statement]:
        """Statements with groups in blocks, for the sake of storages of long rows if there are any.

        If the products are in loops `of_heads`, a group becomes one such loop.
        """
        if self.threads > 1:
            self.panels = 1 if of_heads else (IN_PRODUCT if wide else EVEN) * self.threads
        numbers = {p.rows for found in products.values() for p in found}
        members: list[Sequence[Member]] = [
            products.get(id(s)) or row_loops(s, numbers, of_heads) for s in statements
        ]
        new: list[ir.Statement] = []
        i = 0
        while i < len(statements):
            runs = [self.run(first, i, statements, members, wide) for first in members[i]]
            run = max(runs, key=lambda run: self.gain(run.group, wide), default=None)
            if run is None or not run.statements:
                new.append(statements[i])
                i += 1
            elif of_heads and self.is_worth(run.group, wide):
                new += [*run.before, *self.loop_over_heads(run.group), *run.after]
                i += len(run.statements)
            elif not of_heads and (size := self.size(run.group, wide)) is not None:
                new += [*run.before, *self.blocks(run.group, size), *run.after]
                i += len(run.statements)
            else:  # another group of long rows may start with the next statement
                passed = 1 if wide else len(run.statements)
                new += run.statements[:passed]
                i += passed
        return new

    def run(
        self,
        first: Member,
        start: int,
        statements: Sequence[ir.Statement],
        members: Sequence[Sequence[Member]],
        wide: Collection[str],
    ) -> _Run:
        """The run that starts with the statement of this number as this member."""
        run = _Run(RowGroup(first.rows, self.panels == 1, self.alone), wide)
        for i in range(start, len(statements)):
            if not run.takes(statements[i], [first] if i == start else members[i]) or run.is_over:
                break
        return run.ended()

    def gain(self, group: RowGroup, wide: Collection[str]) -> int:
        """The bytes that several statements share; of long rows, those that no other statement needs."""
        if not wide:
            return group.shared
        return sum(n for place, n in group.bytes.items() if place in wide and self.is_part(place, group))

    def is_worth(self, group: RowGroup, wide: Collection[str]) -> bool:
        """Whether to have one loop over heads."""
        return self.gain(group, wide) >= max(LEAST, LEAST_HEAD * group.rows)

    def size(self, group: RowGroup, wide: Collection[str]) -> int | None:
        """The rows of a block; None if it is not worth it."""
        streamed = not wide and any(isinstance(m, RowCall) and is_streamed(m) for m in group.members)
        if self.gain(group, wide) < (LEAST_WIDE if wide else LEAST) and not streamed:
            return None
        least, most, total = FEWEST, MOST, BYTES
        if wide:
            least, total = FEWEST_WIDE, BYTES_WIDE // self.threads
            most = max(min(MOST_WIDE, group.rows // (2 * self.panels)), least)
        size = min(max(total // (sum(group.bytes.values()) // group.rows), least), most)
        size -= size % TOGETHER
        if group.rows < BLOCKS * max(size, self.panels):
            return None
        if self.panels > 1 and any(self.is_copied(p, group) for p in group.written):
            return None
        return size

    # --- writing ----------------------------------------------------------------------------------------------

    def loop_over_heads(self, group: RowGroup) -> list[ir.Statement]:
        """A group of loops over heads as one loop."""
        b = StatementBuilder(self.kernel.name, self.kernel.buffers)
        heads.write_loop(b, group, self.parts(b, group, None), self.places)
        self.places.note(ir.StatementList(b.statements))
        return b.statements

    def blocks(self, group: RowGroup, size: int) -> list[ir.Statement]:
        """A group in blocks of rows."""
        b = StatementBuilder(self.kernel.name, self.kernel.buffers)
        number = -(-group.rows // size)
        parts = self.parts(b, group, size)
        totals = [memory_of_sum(b, m) if isinstance(m, RowCall) and m.folds else None for m in group.members]
        if self.panels == 1:
            last = ScalarHandle(b, ir.Extent(number, outlined=True))
            self.write(b, group, parts, totals, (b.extent(0), last), size)
            return b.statements
        of_panels = [t and b.scratch((self.panels, *t.shape), t.dtype) for t in totals]
        panels = ScalarHandle(b, ir.Extent(self.panels, outlined=True))
        with b.loop(panels, separate=True) as panel:
            blocks_of = [b.binary("idiv", i * number, panels) for i in (panel, panel + 1)]
            targets = [m and b.row(m, panel) for m in of_panels]
            blocks = self.write(b, group, parts, targets, (blocks_of[0], blocks_of[1]), size)
            blocks.most = -(-number // self.panels)
        for total, memory in zip(totals, of_panels):
            if total is not None and memory is not None:
                with b.loop(total.shape[0]) as j:
                    x = b.local(b.const(0, total.dtype))
                    with b.loop(panels) as panel:
                        x.set(x.get() + b.load(memory, (panel, j)))
                    b.store(total, (j,), x.get())
        return b.statements

    def write(
        self,
        b: StatementBuilder,
        group: RowGroup,
        parts: dict[ir.BufferDecl, ir.BufferDecl],
        targets: Sequence[Memory | None],
        bounds: tuple[ScalarHandle, ScalarHandle],
        size: int,
    ) -> ir.For:
        """Write the loop over some blocks, which adds to the targets of folds."""
        for target in targets:
            if target is not None:
                with b.loop(target.shape[0], independent=True) as j:
                    b.store(target, (j,), b.const(0, target.dtype))
        with b.loop(bounds[1], bounds[0], interruptible=True) as block:
            start = block * size
            end = start + size
            stop = b.where(end < group.rows, end, b.extent(group.rows))
            rows = RowBlock(start, stop, stop - start, size, parts)
            read: set[str] = set()
            for m, target in zip(group.members, targets):
                if isinstance(m, RowCall):
                    write_product(b, m, rows, target, m.tall.isdisjoint(read))
                    read |= m.tall
                elif isinstance(m, RowLoop):
                    _restrict(m, rows)
                    m.loop.most = size
                    b.append(m.nest)
                else:
                    b.append(m)
        loop = b.statements[-1]
        assert isinstance(loop, ir.For)
        return loop

    def is_scratch(self, place: str) -> bool:
        """Whether a storage is temporary memory."""
        return all(x.role == "scratch" and not x.dealt for x in self.kernel.buffers if x.place == place)

    def is_copied(self, place: str, group: RowGroup) -> bool:
        """Whether each thread would have a copy of a storage: no other statement uses it, and blocks need all of it."""
        alone = self.users[place] == group.uses(place)
        return alone and self.is_scratch(place) and not self.is_part(place, group)

    def is_part(self, place: str, group: RowGroup) -> bool:
        """Whether only a group uses a storage, each row its part: so memory for one block is enough."""
        if not self.users[place] == group.touches(place) > 0 or not self.is_scratch(place):
            return False
        decls = [x for x in self.kernel.buffers if x.place == place]
        return all(axis_of(x, group.rows, group.steps[place]) is not None for x in decls)

    def parts(
        self, b: StatementBuilder, group: RowGroup, size: int | None
    ) -> dict[ir.BufferDecl, ir.BufferDecl]:
        """Memory for one block, or for one row without its axis, by the declarations of what only the group uses."""
        parts: dict[ir.BufferDecl, ir.BufferDecl] = {}
        storages: dict[str, str] = {}
        for x in list(self.kernel.buffers):
            if self.is_part(x.place, group):
                axis = axis_of(x, group.rows, group.steps[x.place])
                lengths = [size if d == axis else n for d, n in enumerate(x.shape)]
                shape = tuple([n for n in lengths if n is not None])
                parts[x] = b.buffer(f"{x.name}_rows", x.dtype, shape, "scratch", storages.get(x.place))
                own = storages.setdefault(x.place, parts[x].place)
                self.users[own], self.alone[own] = self.users[x.place], self.users[x.place]
        return parts


def _restrict(member: RowLoop, rows: RowBlock) -> None:
    """Let a nest over all rows run over some, in their memory."""
    loop = member.loop
    number = ir.Value(ir.INT64)
    found = False
    for s in queries.walk(loop.body):
        if isinstance(s, ir.Load | ir.Store) and s.buffer in rows.parts:
            s.buffer, s.index = rows.parts[s.buffer], tuple([number if x is loop.var else x for x in s.index])
            found = True
    if found:
        loop.body.statements.insert(0, ir.Let(number, "sub", (loop.var, rows.start.operand)))
    loop.start, loop.stop = rows.start.operand, rows.stop.operand
