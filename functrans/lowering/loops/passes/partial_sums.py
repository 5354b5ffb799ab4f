"""What the chunks of a divided loop add up: variables, and elements of arrays.

Each chunk has its own, which begin with the neutral element and are combined in the order of the chunks::

                                          for c in 0..chunks team:
    for i in 0..n:                            partial[c] = 0
        s[k[i]] = s[k[i]] + t[i]    ──▶       for i in units*c/chunks .. units*(c+1)/chunks:
                                                  partial[c,k[i]] = partial[c,k[i]] + t[i]
                                          for c in 0..chunks:
                                              s[:] = s[:] + partial[c,:]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field
from typing import Any

from ....runtime.records import dataclass
from .. import ir, queries
from ..arithmetic import make_const
from ..from_jaxpr.folds import combination, neutral
from ..touches import RESULTS, touches_of
from .chunk_rows import nest, shapes_of_rows, with_rows

#: The folds by the operations that combine two results.
_FOLDS = {combination(fold): fold for fold in ("sum", "max", "min", "any", "all")}

#: Declares memory with a row for each chunk: its name, dtype and shape, and the storage that it shares.
Declare = Callable[[str, Any, tuple[int, ...], str | None], ir.BufferDecl]


def folds_in_memory(loop: ir.For, places: Collection[str]) -> dict[str, str] | None:
    """How a loop combines what some storages hold with something else.

    Parameters
    ----------
    loop : For
    places : collection of str
        Storages.

    Returns
    -------
    dict of str to str or None
        The fold of each storage. None if the loop uses one of them in any other way, or in two.
    """
    adders = _Adders(loop)
    found: dict[str, str] = {}
    combined: set[ir.Statement] = set()
    for s in adders.statements:
        product = _product_added_to(s)
        if product is not None and product.place in places:
            fold: str | None = "sum"
            combined.add(s)
        elif isinstance(s, ir.Store) and s.buffer.place in places:
            product, (fold, load) = s.buffer, adders.of(s)
            combined.update((s, load) if load else ())
        else:
            continue
        if fold is None or found.setdefault(product.place, fold) != fold:
            return None
    for s in adders.statements:
        added = _product_added_to(s) if s in combined else None
        for touch in () if isinstance(s, ir.Mark) else touches_of(s):
            if touch.buffer.place in places and (s not in combined or (added and touch.buffer is not added)):
                return None
    return found


class _Adders:
    """The statements of a loop, and which stores combine an element with something."""

    def __init__(self, loop: ir.For):
        self.statements = list(queries.walk(loop.body))
        self.uses: Counter[Any] = Counter(x for s in self.statements for x in queries.operands_of(s))
        self.loads: dict[Any, ir.Load] = {s.value: s for s in self.statements if isinstance(s, ir.Load)}
        self.lets: dict[Any, ir.Let] = {s.value: s for s in self.statements if isinstance(s, ir.Let)}

    def of(self, store: ir.Store) -> tuple[str | None, ir.Load | None]:
        """The fold, and the load of the element; None if it stores something else, or either is used again."""
        let = self.lets.get(store.x)
        for x in () if let is None or self.uses[store.x] != 1 else let.args:
            load = self.loads.get(x)
            same = load and (load.buffer, load.index, load.part) == (store.buffer, store.index, store.part)
            if let and load and same and self.uses[x] == 1:
                return _FOLDS.get(let.op), load
        return None, None


def _product_added_to(s: ir.Statement) -> ir.BufferDecl | None:
    """The array to whose elements a statement adds a product: BLAS's ``beta``, before the result, is 1."""
    if not isinstance(s, ir.Call) or s.routine not in RESULTS:
        return None
    place = RESULTS[s.routine]
    target, scale = s.args[place], s.args[place - 1]
    adds = isinstance(target, ir.Address) and isinstance(scale, ir.Const) and scale.value == 1
    return target.buffer if adds else None


@dataclass
class PartialSums:
    """What the chunks of a loop add up, and the statements for that.

    Attributes
    ----------
    before, after : list
        Statements of a chunk before and after its loop.
    combined : list
        Statements after all chunks.
    """

    loop: ir.For
    number: ir.Value
    chunks: int
    declare: Declare
    before: list[ir.Statement] = field(default_factory=list)
    after: list[ir.Statement] = field(default_factory=list)
    combined: list[ir.Statement] = field(default_factory=list)

    def variables(self, variables: Iterable[ir.LocalVar]) -> None:
        """Give each chunk its own variables."""
        again = ir.Value(ir.INT64)
        combined: list[ir.Statement] = []
        for var in variables:
            own = ir.LocalVar(var.dtype, var.block, var.fold)
            for s in queries.walk(self.loop.body):
                if isinstance(s, ir.Get | ir.Set) and s.var is var:
                    s.var = own
            partial = self.declare("partial", var.dtype, (self.chunks,), None)
            result, part, old, new = (ir.Value(var.dtype) for _ in range(4))
            self.before.append(ir.Declare(own, make_const(neutral(var.fold, var.dtype), var.dtype)))
            self.after += [ir.Get(result, own), ir.Store(partial, (self.number,), result)]
            combined += [
                ir.Load(part, partial, (again,)),
                ir.Get(old, var),
                ir.Let(new, combination(var.fold), (old, part)),
                ir.Set(var, new),
            ]
        if combined:
            self.combined.append(self.of_chunks(again, combined))

    def elements(self, decls: Sequence[ir.BufferDecl], folds: dict[str, str]) -> None:
        """Give each chunk its own elements of arrays."""
        rows: dict[ir.BufferDecl, ir.BufferDecl] = {}
        for place, fold in folds.items():
            views = [b for b in decls if b.place == place]
            storage = None
            for b, shape in zip(views, shapes_of_rows(self.chunks, views)):
                rows[b] = self.declare("partial", b.dtype, shape, storage)
                storage = rows[b].place
            self.whole(views[0], rows[views[0]], fold)
        with_rows(self.loop.body, rows, self.number)

    def whole(self, b: ir.BufferDecl, partial: ir.BufferDecl, fold: str) -> None:
        """The start and the combination of all elements of an array."""
        zero = make_const(neutral(fold, b.dtype), b.dtype)
        index = tuple([ir.Value(ir.INT64) for _ in b.shape])
        self.before += nest(index, b.shape, [ir.Store(partial, (self.number, *index), zero)])
        again, part, old, new = ir.Value(ir.INT64), *(ir.Value(b.dtype) for _ in range(3))
        index = tuple([ir.Value(ir.INT64) for _ in b.shape])
        body: list[ir.Statement] = [
            ir.Load(part, partial, (again, *index)),
            ir.Load(old, b, index),
            ir.Let(new, combination(fold), (old, part)),
            ir.Store(b, index, new),
        ]
        self.combined.append(self.of_chunks(again, nest(index, b.shape, body)))

    def of_chunks(self, number: ir.Value, body: list[ir.Statement]) -> ir.For:
        """A loop over all chunks, in their order."""
        stop = ir.Extent(self.chunks, outlined=True)
        return ir.For(number, ir.Extent(0), stop, ir.StatementList(body))
