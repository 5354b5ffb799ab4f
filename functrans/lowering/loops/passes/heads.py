"""One loop over the heads of attention, or other batches of products, for what several loops over them compute.

.. code-block:: text

    for h in 0..heads:                        for h in 0..heads:
        s[h] = q[h] @ k[h].T                      s = q[h] @ k[h].T
    for h in 0..heads:             ──▶            for i, j:
        for i, j:                                     w[i,j] = f(s[i,j])
            w[h,i,j] = f(s[h,i,j])                out[h] = w @ v[h]
    for h in 0..heads:
        out[h] = w[h] @ v[h]

What only these loops use has room for one head. `row_blocks` says which loops come together; the statements of one head
may then run block by block of its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import ir, mapping
from ..builder import StatementBuilder
from ..touches import touches
from .places import START, MatrixPlaces, extents_of
from .row_groups import RowGroup, RowLoop


def write_loop(
    b: StatementBuilder, group: RowGroup, parts: Mapping[ir.BufferDecl, ir.BufferDecl], places: MatrixPlaces
) -> None:
    """Write the loops of a group as one; `parts` has the memory for one head, by the declarations that it replaces."""
    loops = [m.loop for m in group.members if isinstance(m, RowLoop)]
    separate = all(loop.separate for loop in loops)
    adds = all(loop.separate or loop.adds for loop in loops)
    with b.loop(group.rows, interruptible=True, separate=separate, adds=adds) as head:
        for m in group.members:
            if isinstance(m, RowLoop):
                for s in _OfHead(m.loop, head.operand, group, parts, places).body(m.loop.body).statements:
                    b.append(s)
            elif isinstance(m, ir.Mark):
                b.append(m)


class _OfHead(mapping.Mapping):
    """The statements of a loop over heads, for one of them.

    A part has no axis of heads: the distances of elements on the axes before that have shrunk.
    """

    def __init__(
        self,
        loop: ir.For,
        head: ir.Operand,
        group: RowGroup,
        parts: Mapping[ir.BufferDecl, ir.BufferDecl],
        places: MatrixPlaces,
    ):
        self.loop, self.group, self.parts, self.places = loop, group, parts, places
        self.f = lambda x: head if x is loop.var else x
        self.buffers = {id(t.buffer): parts.get(t.buffer, t.buffer) for t in touches(loop.body)}
        self.offsets: dict[ir.Address, ir.Operand] = {}

    def body(self, body: ir.StatementList) -> ir.StatementList:
        """The statements of a block, and those that compute offsets in the parts."""
        new: list[ir.Statement] = []
        for s in body.statements:
            for a in s.args if type(s) is ir.Call else ():
                if type(a) is ir.Address and a.buffer in self.parts:
                    self.offsets[a] = self.within(a, new)
            new.append(self.statement(s))
        return ir.StatementList(new)

    def within(self, a: ir.Address, new: list[ir.Statement]) -> ir.Operand:
        """The offset of a matrix in the part of the head, computed by new statements."""
        terms = self.places.terms(a.offset)
        total: ir.Operand = ir.Extent(terms.get(None, 0))
        for v, n in terms.items():
            if v is None or v is self.loop.var or n == 0:
                continue
            term, following = ir.Value(ir.INT64), ir.Value(ir.INT64)
            new.append(ir.Let(term, "mul", (v, ir.Extent(self.shrunk(n, a)))))
            if total == START:
                total = term
            else:
                new.append(ir.Let(following, "add", (total, term)))
                total = following
        return total

    def argument(self, a: Any) -> Any:
        """An argument of a routine."""
        if type(a) is ir.Address and a.buffer in self.parts:
            return ir.Address(self.parts[a.buffer], self.offsets[a])
        return super().argument(a)

    def statement(self, s: ir.Statement) -> ir.Statement:
        """One statement."""
        if isinstance(s, ir.Load | ir.Store) and s.buffer in self.parts:
            s.index = tuple([x for x in s.index if x is not self.loop.var])
        elif type(s) is ir.Call:
            args = list(s.args)
            for i, a in enumerate(args):
                if type(a) is ir.Address and a.buffer in self.parts:
                    _, outer, distance = extents_of(s, i)
                    args[i + 1] = ir.Extent(self.shrunk(distance, a) if outer > 1 else distance)
            s.args = tuple(args)
        return super().statement(s)

    def shrunk(self, n: int, a: ir.Address) -> int:
        """The distance of two elements in the part, where they were so many elements apart."""
        of_all = self.group.rows * self.group.steps[a.buffer.place]
        return n // self.group.rows if n % of_all == 0 else n
