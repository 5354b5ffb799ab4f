"""Compute long sums in blocks, so that their error does not grow with the number of elements.

The loop at which a sum reaches the size of a block is split, and the sum of each block is added to a total together
with the rounding error of that addition. Inner loops do not change, and are vectorized as before.

References
----------
D. E. Knuth, The Art of Computer Programming, vol. 2, section 4.2.2, theorem B: the rounding error of an addition.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from .. import ir, queries

#: Elements per block: where sums may be reordered, for as many running sums as fit into registers; else for one.
SIZE, SIZE_IN_ORDER = 1024, 128
_DOUBLE = (np.dtype(np.float64), np.dtype(np.complex128))


def block_size(fold: str, dtype: np.dtype, reassoc: bool) -> int:
    """The elements per block of a fold; 0 if it has no blocks (single-precision sums are computed in double)."""
    return (SIZE if reassoc else SIZE_IN_ORDER) if fold == "sum" and dtype in _DOUBLE else 0


def with_blocks(kernel: ir.Kernel) -> ir.Kernel:
    """Split the loops of long sums, in place; the kernel must not be outlined yet."""
    _BlockedSums().sums_of(kernel.body)
    return kernel


class _BlockedSums:
    def __init__(self) -> None:
        #: The total of each sum whose loop is split, and the accumulated error of its additions.
        self.totals: dict[ir.LocalVar, tuple[ir.LocalVar, ir.LocalVar]] = {}
        #: The sums to which short loops add as well.
        self.rest: set[ir.LocalVar] = set()

    def sums_of(self, body: ir.StatementList) -> tuple[dict[ir.LocalVar, int], set[ir.LocalVar]]:
        """Split loops in a block.

        Returns the enclosing sums that it adds to, with the number of elements, and those whose loops it has split.
        """
        counts: dict[ir.LocalVar, int] = {}
        cut: set[ir.LocalVar] = set()
        for place, s in enumerate(body.statements):
            if type(s) is ir.Set and s.var.block:
                counts[s.var] = counts.get(s.var, 0) + 1
            trips = _trips(s)
            for inner in queries.bodies_of(s):
                sums, done = self.sums_of(inner)
                elements = {v: n * trips for v, n in sums.items()}
                long = {
                    v: v.block * trips // n for v, n in elements.items() if n >= v.block and v not in done
                }
                if long:
                    body.statements[place] = self.cut(s, max(min(long.values()), 1), list(long))
                cut |= done | long.keys()
                for v, n in elements.items():
                    if v not in long:
                        counts[v] = counts.get(v, 0) + n
        own = {s.var for s in body.statements if type(s) is ir.Declare}
        self.rest |= cut & counts.keys()
        body.statements = [t for s in body.statements for t in self.finished(s, own)]
        return {v: n for v, n in counts.items() if v not in own and v not in cut}, cut - own

    def cut(self, loop: ir.For, size: int, sums: list[ir.LocalVar]) -> ir.For:
        """A loop over the blocks of a loop; each block completes a part of some sums."""
        number, start, end, stop = (ir.Value(ir.INT64) for _ in range(4))
        inside = ir.Value(ir.BOOL)
        first = [ir.Let(start, "mul", (number, ir.Extent(size)))]
        if loop.start != ir.Extent(0):
            offset, start = start, ir.Value(ir.INT64)
            first.append(ir.Let(start, "add", (loop.start, offset)))
        body: list[Any] = [
            *first,
            ir.Let(end, "add", (start, ir.Extent(size))),
            ir.Let(inside, "lt", (end, loop.stop)),
            ir.Let(stop, "select", (inside, end, loop.stop)),
            ir.For(loop.var, start, stop, loop.body),
        ]
        for var in sums:
            self.totals.setdefault(var, (ir.LocalVar(var.dtype), ir.LocalVar(var.dtype)))
            body += _flushed(var, *self.totals[var])
        count = ir.Extent(-(-_trips(loop) // size), outlined=queries.rounds(loop, -1) < 0)
        return ir.For(number, ir.Extent(0), count, ir.StatementList(body), interruptible=loop.interruptible)

    def finished(self, s: Any, own: Collection[ir.LocalVar]) -> list[Any]:
        """A statement in the block where the sums `own` are declared and read."""
        if type(s) is ir.Declare and s.var in self.totals:
            return [s, *[ir.Declare(var, s.init) for var in self.totals[s.var]]]
        if type(s) is ir.Get and s.var in self.totals and s.var in own:
            total, error, exact = _values(s.var.dtype, 3)
            known = ir.Value(ir.BOOL)
            return [
                *(_flushed(s.var, *self.totals[s.var]) if s.var in self.rest else ()),
                ir.Get(total, self.totals[s.var][0]),
                ir.Get(error, self.totals[s.var][1]),
                ir.Let(exact, "add", (total, error)),
                ir.Let(known, "eq", (error, error)),  # NaN if the sum is infinite
                ir.Let(s.value, "select", (known, exact, total)),
            ]
        return [s]


def _trips(s: Any) -> int:
    """How often a loop runs, or may run at most; 1 if that is unknown, and for other statements."""
    return max(queries.rounds(s, s.most or 1), 0) if type(s) is ir.For else 1


def _values(dtype: np.dtype, number: int) -> list[ir.Value]:
    return [ir.Value(dtype) for _ in range(number)]


def _flushed(var: ir.LocalVar, total: ir.LocalVar, error: ir.LocalVar) -> list[Any]:
    """Add the sum to the total, and the rounding error of that addition to the error."""
    x, old, new, part, rest, low, high, lost, before, after = _values(var.dtype, 10)
    return [
        ir.Get(x, var),
        ir.Get(old, total),
        ir.Let(new, "add", (old, x)),
        ir.Let(part, "sub", (new, old)),
        ir.Let(rest, "sub", (new, part)),
        ir.Let(low, "sub", (old, rest)),
        ir.Let(high, "sub", (x, part)),
        ir.Let(lost, "add", (low, high)),
        ir.Get(before, error),
        ir.Let(after, "add", (before, lost)),
        ir.Set(error, after),
        ir.Set(total, new),
        ir.Set(var, ir.Const(0j if var.dtype.kind == "c" else 0.0, var.dtype)),
    ]
