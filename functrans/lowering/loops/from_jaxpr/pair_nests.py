"""Nests over pairs of one axis that visit half of them (see `pairs`), in blocks of rows.

The square around the diagonal of a block is visited as a whole; right of it, each element is also added where its
mirror belongs::

                                        for b in 0..n/32:
                                            for i in 32*b .. 32*(b+1):
    for i in 0..n:                              r = 0
        r = 0                                   for j in 32*b .. 32*(b+1):
        for j in 0..n:                              r += f(x[i] - x[j])
            r += f(x[i] - x[j])     ──▶          for j in 32*(b+1) .. n:
        y[i] = r                                    t = f(x[i] - x[j])
                                                    r += t
                                                    rows[j] -= t
                                                rows[i] += r
                                        y[:] = rows[:]
"""

from __future__ import annotations

from typing import Any

from ....core.dtypes import register_dtype
from ..handles import ScalarHandle
from .aliasing import Schedule
from .fuse import Loop
from .materialize import Root, fold_of
from .nests import Nests
from .pairs import folds_of_pairs
from .row_sums import RowSums

#: Rows of a block: with more, more is computed twice; with fewer, more rows begin at places where vectors do not.
ROWS = 32


class PairNests(Nests):
    """Writes the statements of a jaxpr, as `Nests`; of pairs that mirror each other, only one."""

    def __init__(self, plan: Schedule, *args: Any):
        super().__init__(plan, *args)
        self.pairs = folds_of_pairs(plan.fusion.body)
        self.sums: dict[Root, RowSums] = {}
        #: Whether what is written belongs to a pair whose mirror is not visited.
        self.mirrored = False

    def begin(self, root: Root, at: list[ScalarHandle]) -> None:
        """As in `Nests`; sums of rows of pairs begin with their nest."""
        if root not in self.pairs or self.pairs[root].kept is None:
            super().begin(root, at)

    def loop(self, item: Loop, at: list[ScalarHandle], rounds: int, long: bool, watched: bool) -> None:
        """As in `Nests`."""
        if item.mirrors:
            self.pair_loops(item, at, rounds, long, watched)
        elif any(root in self.sums and self.sums[root].few for root in item.members):
            for k in range(item.extent):
                self.body(item.body, [*at, self.builder.extent(k)], rounds, watched)
        else:
            super().loop(item, at, rounds, long, watched)

    def pair_loops(self, item: Loop, at: list[ScalarHandle], rounds: int, long: bool, watched: bool) -> None:
        """The loops over pairs."""
        b, n = self.builder, item.extent
        rows = {root: pair for root, pair in item.mirrors.items() if pair.kept is not None}
        sums = {root: RowSums(b, root, pair, n) for root, pair in rows.items()}
        self.sums.update(sums)
        with b.loop(-(-n // ROWS), interruptible=long, adds=True) as block:
            start = block * ROWS
            end = start + ROWS
            stop = b.where(end < n, end, b.extent(n))
            with b.loop(stop, start, most=ROWS) as i:
                self.row(item, [*at, i], start, stop, rounds * n * n, watched or long)
        for root, pair in rows.items():
            del self.sums[root]
            with b.loop(n, separate=True) as i:
                place = dict(zip((*root.loops[: len(at)], pair.kept), [*at, i]))
                for inner, total in sums[root].totals(i):
                    axes = enumerate(root.axes)
                    index = tuple([inner.get(a, place.get(axis, self.zero)) for a, axis in axes])
                    self.keep(root.var, index, b.cast(total, register_dtype(root.var.aval.dtype)))

    def row(
        self,
        item: Loop,
        at: list[ScalarHandle],
        start: ScalarHandle,
        stop: ScalarHandle,
        rounds: int,
        watched: bool,
    ) -> None:
        """A row of pairs: those in the block from `start` to `stop`, and those behind it."""
        b = self.builder
        (inner,) = item.body
        assert isinstance(inner, Loop)
        sums = [self.sums[root] for root in item.mirrors if root in self.sums]
        for rows in sums:
            rows.begin()
        with b.loop(stop, start, most=ROWS) as j:
            self.body(inner.body, [*at, j], rounds, watched)
        self.mirrored = True
        with b.loop(item.extent, stop, most=item.extent) as j:
            self.body(inner.body, [*at, j], rounds, watched)
        self.mirrored = False
        for rows in sums:
            rows.end(at[-1])

    def take(self, root: Root, x: ScalarHandle, at: list[ScalarHandle]) -> None:
        """As in `Nests`; of a pair whose mirror is not visited, the element of the mirror, too."""
        pair = self.pairs.get(root)
        if pair is None:
            super().take(root, x, at)
            return
        assert root.eqn is not None
        mirror = x if pair.sign > 0 else -x
        if pair.kept is None:
            twice = self.mirrored and fold_of(root.eqn) == "sum"
            super().take(root, x + mirror if twice else x, at)
            return
        if pair.kept != root.loops[pair.depth]:  # sums of columns are those of rows of the mirrors
            x, mirror = mirror, x
        sums = self.sums[root]
        place = self._index(root, at)
        index = [place[a] for a in sums.axes]
        sums.take(index, x)
        if self.mirrored:
            sums.take_in(at[pair.depth + 1], index, mirror)
