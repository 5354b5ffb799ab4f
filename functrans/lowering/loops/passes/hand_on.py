"""Hand an element from one iteration of a loop to the next in a variable.

Recursions read what the iteration before has stored, and so do their derivatives. If other statements store in the same
array, a compiler of one loop cannot know that they leave the element alone, and it goes through memory::

                                        s = d[i, n]
    for k in range(n, 0, -1):           for k in range(n, 0, -1):
        t = d[i, k]              ──▶        t = s
        d[i - 1, k] += t * a[k]             d[i - 1, k] += t * a[k]
        d[i, k - 1] += t * b[k]             u = d[i, k - 1] + t * b[k]
                                            d[i, k - 1] = u
                                            s = u
"""

from __future__ import annotations

from typing import Any

from .. import ir
from ..offsets import Offsets


def hand_on(loop: ir.For, offsets: Offsets) -> list[Any]:
    """Change a loop without loops and branches inside, in place; returns statements that must come before it.

    These read memory, which is allowed only if the loop has an iteration.
    """
    return _Recurrence(loop, offsets).before()


class _Recurrence:
    def __init__(self, loop: ir.For, offsets: Offsets):
        self.loop = loop
        self.offsets = offsets
        self.statements = loop.body.statements
        self.step = -1 if loop.reverse else 1
        self.defined: set[Any] = {loop.var, *[s.value for s in self.statements if hasattr(s, "value")]}
        copies = [s for s in self.statements if type(s) is ir.Copy and s.target.place != s.source.place]
        self.copied = {b.place for s in copies for b in (s.target, s.source)}
        self.stores = [(n, s) for n, s in enumerate(self.statements) if type(s) is ir.Store]

    def before(self) -> list[Any]:
        """Replace loads in the loop; the statements that make the first elements."""
        before: list[Any] = []
        after: list[Any] = []
        for n, s in enumerate(self.statements):
            store = self.source(n, s) if type(s) is ir.Load and s.buffer.place not in self.copied else None
            if store is None:
                continue
            var = ir.LocalVar(s.value.dtype)
            first = ir.Value(s.value.dtype)
            lets, index = self.first(s)
            before += [*lets, ir.Load(first, s.buffer, index), ir.Declare(var, first)]
            self.statements[n] = ir.Get(s.value, var)
            after.append(ir.Set(var, store.x))
        self.statements += after
        return before

    def source(self, n: int, load: ir.Load) -> ir.Store | None:
        """The store of what a load reads in the next iteration, if LLVM would not find it."""
        stores = [(m, s) for m, s in self.stores if s.buffer.place == load.buffer.place]
        place, store = next(((m, s) for m, s in reversed(stores) if self.is_next(s, load)), (0, None))
        if store is None or len(stores) == 1 or store.x.dtype != load.value.dtype:
            return None
        for m, s in stores:
            if m > place and not self.misses(s, load, self.step):
                return None
            if m < n and not self.misses(s, load, 0):
                return None
        return store

    def is_next(self, store: ir.Store, load: ir.Load) -> bool:
        """Whether a load reads what a store stored in the iteration before."""
        if store.buffer.shape != load.buffer.shape or store.part is not None or load.part is not None:
            return False
        pairs = [(self.offsets.of(i), self.offsets.of(j)) for i, j in zip(store.index, load.index)]
        moving = [a is self.loop.var for (a, _), _ in pairs]
        steps = [self.step if moves else 0 for moves in moving]
        known = all(m or a is None or a not in self.defined for m, ((a, _), _) in zip(moving, pairs))
        return (
            any(moving) and known and all(a == b and m - d == n for ((a, m), (b, n)), d in zip(pairs, steps))
        )

    def misses(self, store: ir.Store, load: ir.Load, step: int) -> bool:
        """Whether a store, `step` before an iteration, was certainly not to what a load reads in that iteration."""
        if store.buffer.shape != load.buffer.shape:
            return False
        for i, j in zip(store.index, load.index):
            (a, m), (b, n) = self.offsets.of(i), self.offsets.of(j)
            if a is self.loop.var:
                m -= step
            elif step and a in self.defined:
                continue
            if a == b and m != n:
                return True
        return False

    def first(self, load: ir.Load) -> tuple[list[Any], tuple[ir.Operand, ...]]:
        """The index that a load has in the first iteration, and the statements that compute it."""
        lets: list[Any] = []

        def plus(x: ir.Operand, number: int) -> ir.Operand:
            if number:
                lets.append(ir.Let(ir.Value(ir.INT64), "add", (x, ir.Extent(number))))
                x = lets[-1].value
            return x

        index: list[ir.Operand] = []
        for i in load.index:
            base, offset = self.offsets.of(i)
            if base is self.loop.var:
                start = plus(self.loop.stop, -1) if self.loop.reverse else self.loop.start
                index.append(plus(start, offset))
            elif i in self.defined and base is not None:
                index.append(plus(base, offset))
            else:
                index.append(i)
        return lets, tuple(index)
