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
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from ....runtime.records import dataclass
from .. import ir, queries
from ..builder import StatementBuilder
from ..handles import Memory, ScalarHandle
from ..touches import touches
from .parallel import EVEN
from .row_calls import TOGETHER, RowBlock, RowCall, in_shape, is_streamed, row_call, write_product
from .row_groups import Dependences, Member, RowGroup, RowLoop, axis_of, row_loop, uses_of

#: Python or a pool would see what is moved past them.
_FIXED = (ir.HostCall, ir.Reserve)
#: Bytes of a block's rows; the fewest and the most rows of a block, and the fewest blocks.
BYTES, FEWEST, MOST, BLOCKS = 192 << 10, 32, 2048, 4
#: The least bytes that several statements must share.
LEAST = 1 << 20


def block_rows(kernel: ir.Kernel, threads: int) -> dict[ir.For, int]:
    """Run statements block by block of rows, in place; the kernel must not be outlined yet.

    Parameters
    ----------
    kernel : Kernel
    threads : int
        How many may share the blocks.

    Returns
    -------
    dict of For to int
        The most iterations of loops whose bounds are not literals.
    """
    blocks = _RowBlocks(kernel, threads)
    blocks.body(kernel.body)
    return blocks.trips


@dataclass(eq=False)
class _Run:
    """A group, in the statements among which it stands.

    Attributes
    ----------
    statements : list
        All of them, in their order.
    before, after : list
        Those that are not in the group.
    """

    group: RowGroup
    statements: list[ir.Statement] = field(default_factory=list)
    before: list[ir.Statement] = field(default_factory=list)
    after: list[ir.Statement] = field(default_factory=list)
    _uses: Dependences = field(default_factory=Dependences)
    _uses_after: Dependences = field(default_factory=Dependences)

    def takes(self, s: ir.Statement, member: Member | None) -> bool:
        """Add the next statement, which may be a member, if that is possible."""
        if any(isinstance(t, _FIXED) for t in queries.walk(ir.StatementList([s]))):
            return False
        if type(s) is ir.Mark:
            if s.place != "next":
                return False
            self.group.members.append(s)
        elif type(s) is ir.Copy and s.target.place == s.source.place:
            pass  # it does nothing
        elif member is None:
            uses = uses_of(s)
            if self._uses.conflicts(uses) or self._uses_after.conflicts(uses):
                self._uses_after.add(uses)
                self.after.append(s)
            else:
                self.before.append(s)
        else:
            uses = uses_of(s)
            other = member.rows != self.group.rows or self._uses_after.conflicts(uses)
            if other or not self.group.takes(member):
                return False
            self._uses.add(uses)
        self.statements.append(s)
        return True


class _RowBlocks:
    def __init__(self, kernel: ir.Kernel, threads: int):
        self.kernel = kernel
        self.panels = EVEN * threads if threads > 1 else 1
        self.trips: dict[ir.For, int] = {}
        self.users = Counter(t.buffer.place for t in touches(kernel.body))
        #: Whether inputs are overwritten: then nothing may move past a failure, after which they are read again.
        self.updates = any(b.role == "update" for b in kernel.buffers)

    def body(self, body: ir.StatementList) -> None:
        """Run groups of a block of statements, and of those inside, by rows."""
        for s in body.statements:
            for inner in queries.bodies_of(s):
                self.body(inner)
        products = {id(s): p for s in body.statements if (p := row_call(s))}
        numbers = {p.rows for p in products.values()}
        if not numbers or (self.updates and queries.may_fail(body)):
            return
        new: list[ir.Statement] = []
        run: _Run | None = None
        for s in body.statements:
            member = products.get(id(s)) or row_loop(s, numbers)
            if run is not None and run.takes(s, member):
                continue
            if run is not None:
                new += self.finished(run)
            run = None if member is None else _Run(RowGroup(member.rows, in_order=self.panels == 1))
            if run is None or not run.takes(s, member):
                run = None
                new.append(s)
        body.statements = new if run is None else [*new, *self.finished(run)]

    def finished(self, run: _Run) -> list[ir.Statement]:
        """The statements of a run: in blocks if that is worth it."""
        group = run.group
        if group.shared < LEAST and not any(isinstance(m, RowCall) and is_streamed(m) for m in group.members):
            return run.statements
        size = min(max(BYTES // (sum(group.bytes.values()) // group.rows), FEWEST), MOST)
        size -= size % TOGETHER
        if group.rows < BLOCKS * max(size, self.panels):
            return run.statements
        if self.panels > 1 and any(self.is_copied(p, group) for p in group.written):
            return run.statements
        members = group.members
        last = max(i for i, m in enumerate(members) if type(m) is not ir.Mark) + 1
        marks = [m for m in members[last:] if type(m) is ir.Mark]
        del members[last:]
        return [*run.before, *self.blocks(group, size), *marks, *run.after]

    # --- writing ----------------------------------------------------------------------------------------------

    def blocks(self, group: RowGroup, size: int) -> list[ir.Statement]:
        """A group in blocks of rows."""
        b = StatementBuilder(self.kernel.name, self.kernel.buffers)
        number = -(-group.rows // size)
        parts = self.parts(b, group, size)
        totals = [
            in_shape(b, m.target, (m.target.size,)) if isinstance(m, RowCall) and m.folds else None
            for m in group.members
        ]
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
            self.trips[blocks] = -(-number // self.panels)
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
                    self.trips[m.loop] = size
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

    def parts(self, b: StatementBuilder, group: RowGroup, size: int) -> dict[ir.BufferDecl, ir.BufferDecl]:
        """Memory for one block, by the declarations of what only the group uses."""
        parts: dict[ir.BufferDecl, ir.BufferDecl] = {}
        storages: dict[str, str] = {}
        for x in list(self.kernel.buffers):
            if self.is_part(x.place, group):
                axis = axis_of(x, group.rows, group.steps[x.place])
                shape = tuple([size if d == axis else n for d, n in enumerate(x.shape)])
                parts[x] = b.buffer(f"{x.name}_rows", x.dtype, shape, "scratch", storages.get(x.place))
                storages.setdefault(x.place, parts[x].place)
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
