"""The sums of the rows of a nest over pairs that visits half of them (see `pair_nests`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from math import prod

from ....core.dtypes import register_dtype
from .. import ir
from ..handles import LocalHandle, ScalarHandle
from .elements import NestBuilder
from .folds import accumulate, combine, neutral, wide_dtype
from .fuse import PairFold
from .materialize import Root, fold_of

#: Up to this many sums in a row are variables, and the loops over them are written out; more are in memory.
FEW = 15


class RowSums:
    """The sums of all rows of a fold, and those of the current row.

    Parameters
    ----------
    b : NestBuilder
    root : Root
        The fold.
    pair : PairFold
    n : int
        How many rows there are.

    Attributes
    ----------
    axes : list of int
        The axes of the value that run inside both loops: a row has a sum at each index along these.
    few : bool
        Whether each sum of a row is a variable.
    """

    def __init__(self, b: NestBuilder, root: Root, pair: PairFold, n: int):
        assert root.eqn is not None
        inner = root.loops[pair.depth + 2 :]
        self.builder = b
        self.fold = fold_of(root.eqn)
        self.axes = [a for a, axis in enumerate(root.axes) if axis in inner]
        self.shape = tuple([root.var.aval.shape[a] for a in self.axes])
        self.few = prod(self.shape) <= FEW
        dtype = register_dtype(root.var.aval.dtype)
        # As elsewhere, single numbers are summed in a wider dtype than vectors.
        self.dtype = dtype if self.shape else wide_dtype(self.fold, dtype)
        self.variables: dict[tuple[int, ...], LocalHandle] = {}
        if self.few:
            places = product(*map(range, self.shape))
            self.rows = {place: b.scratch((n,), self.dtype) for place in places}
        else:
            self.rows = {(): b.scratch((n, *self.shape), self.dtype)}
            self.row = b.scratch(self.shape, self.dtype)
        with b.loop(n, independent=True, separate=True) as i:
            for _, place, index in self._places():
                self._clear(self.rows[place], [i, *index])

    def begin(self) -> None:
        """Begin the sums of a row."""
        b = self.builder
        for _, place, index in self._places():
            if self.few:
                zero = b.const(neutral(self.fold, self.dtype), self.dtype)
                self.variables[place] = b.local(zero, fold=self.fold)
            else:
                self._clear(self.row, index)

    def take(self, index: Sequence[ScalarHandle], x: ScalarHandle) -> None:
        """Add an element to a sum of the current row."""
        if self.few:
            b, variable = self.builder, self.variables[_numbers(index)]
            variable.set(combine(b, self.fold, variable.get(), b.cast(x, self.dtype), b.reassoc))
        else:
            self._add(self.row, index, x)

    def take_in(self, row: ScalarHandle, index: Sequence[ScalarHandle], x: ScalarHandle) -> None:
        """Add an element to a sum of any other row."""
        if self.few:
            self._add(self.rows[_numbers(index)], [row], x)
        else:
            self._add(self.rows[()], [row, *index], x)

    def end(self, row: ScalarHandle) -> None:
        """Add the sums of the current row to those of all rows."""
        for _, place, index in self._places():
            own = self.variables[place].get() if self.few else self.builder.load(self.row, index)
            self._add(self.rows[place], [row, *index], own)

    def totals(self, row: ScalarHandle) -> Iterator[tuple[dict[int, ScalarHandle], ScalarHandle]]:
        """The index of each sum of a row along `axes`, by axis, and the sum."""
        for inner, place, index in self._places():
            yield dict(zip(self.axes, inner)), self.builder.load(self.rows[place], [row, *index])

    def _places(self) -> Iterator[tuple[list[ScalarHandle], tuple[int, ...], list[ScalarHandle]]]:
        """For each sum of a row its index, which memory it has, and its index there; inside loops if these are many."""
        if self.few:
            for place in self.rows:
                yield [self.builder.extent(k) for k in place], place, []
            return
        with ExitStack() as loops:
            index = [
                loops.enter_context(self.builder.loop(k, independent=True, separate=True)) for k in self.shape
            ]
            yield index, (), index

    def _clear(self, memory: ir.BufferDecl, index: Sequence[ScalarHandle]) -> None:
        b = self.builder
        b.store(memory, index, b.const(neutral(self.fold, memory.dtype), memory.dtype))

    def _add(self, memory: ir.BufferDecl, index: Sequence[ScalarHandle], x: ScalarHandle) -> None:
        accumulate(self.builder, self.fold, memory, index, x, self.builder.reassoc)


def _numbers(index: Sequence[ScalarHandle]) -> tuple[int, ...]:
    return tuple([i.operand.value for i in index if isinstance(i.operand, ir.Extent)])
