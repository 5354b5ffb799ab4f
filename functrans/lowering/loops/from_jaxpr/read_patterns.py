"""What an equation reads, and at what cost; found by running its kernel rule on recording scalars.

For each axis of an operand, an *index map* holds the axis of the output that indexes it, or that axis and a number that
is added to its index (a slice's offset); None if the index is computed otherwise (a gather) or does not matter (axes of
extent 1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ....core import Along, Aval, Block, Eqn, Indexed, Pointwise, Reduction, Reshape, Shifted
from ....passes.costs import CountedScalar, CountingEmitter, count_indexed, element_cost
from ....runtime.config import config
from ....runtime.passes import INTERIOR
from ....runtime.records import NamedTuple
from ...jaxpr.reshapes import reshape_groups

#: Nests that meet conditions along more axes have no interior.
MOST = 2
#: Loops with fewer iterations have none: the elements that do not fill a vector are computed one at a time. The first
#: limit is for cheap elements.
SHORT, LONG = 32, 64
IndexMap = tuple[Along, ...]
#: The comparisons of indices change their result between the elements ``number - 1`` and ``number`` of an axis.
Cut = tuple[int, int]


def split(d: int | Shifted) -> Shifted:
    """An axis, and the number that is added to its index, which may be zero here."""
    return d if isinstance(d, Shifted) else Shifted(d, 0)


def shifted(d: Along, by: int = 0) -> Along:
    """An index plus a number."""
    if d is None:
        return None
    axis, old = split(d)
    return Shifted(axis, old + by) if old + by else axis


def through(d: Along, where: IndexMap) -> Along:
    """The index of an operand's axis, if `where` has the indices of the axes that it is in terms of."""
    if d is None:
        return None
    axis, by = split(d)
    return shifted(where[axis], by)


def lag(written: IndexMap, read: IndexMap, shape: Sequence[int], loops: Sequence[int]) -> int | None:
    """How many iterations after an element of an array is overwritten it is read; negative if that is before.

    None if it is not the same number for all elements, or not along the innermost one of the loops.

    Parameters
    ----------
    written, read : IndexMap
        Which element of the array an iteration writes, and which one it reads, in terms of `loops`.
    shape : sequence of int
        The shape of the array.
    loops : sequence of int
        The innermost one comes last.
    """
    difference = None
    missing = set(loops)
    for n, w, r in zip(shape, written, read):
        if n == 1:
            continue
        if w is None or r is None:
            return None
        (a, s), (b, t) = split(w), split(r)
        if a != b or (s != t and a != loops[-1]):
            return None
        missing.discard(a)
        if a == loops[-1]:
            difference = s - t
    return None if missing else difference


class Access(NamedTuple):
    """One read of an operand."""

    operand: int
    place: IndexMap


class Accesses(NamedTuple):
    """The reads of an equation, and the cost of one output element without them.

    `guarded` are the operands read under a condition, where calls of the maths library would prevent vectorization.
    `cuts` are the places along axes of the output where such a condition changes.
    """

    reads: tuple[Access, ...]
    cost: int
    guarded: frozenset[int] = frozenset()
    cuts: tuple[Cut, ...] = ()


class _ReadNoter(CountingEmitter):
    """It also notes which operands are read, and along which axes."""

    def __init__(self) -> None:
        super().__init__()
        self.conditions = 0
        self.reads: list[Access] = []
        self.conditional: set[int] = set()
        self.cuts: dict[Cut, None] = {}

    def operation(self, op: str, *args: Any, dtype: np.dtype | None = None) -> CountedScalar:
        """An operation, which may shift an index or compare it with a number."""
        result = super().operation(op, *args, dtype=dtype)
        x, *others = args
        if (
            len(others) == 1
            and isinstance(x, CountedScalar)
            and x.axis is not None
            and type(others[0]) is int
        ):
            number = others[0]
            if op in ("add", "sub"):
                result.axis, result.by = x.axis, x.by + (number if op == "add" else -number)
            elif op in ("lt", "ge"):
                self.cuts[x.axis, number - x.by] = None
        return result

    def read(self, number: int, aval: Aval, index: Sequence[Any]) -> CountedScalar:
        """Note a read of an operand."""
        where = tuple(
            shifted(i.axis, i.by) if isinstance(i, CountedScalar) and n != 1 else None
            for i, n in zip(index, aval.shape, strict=True)
        )
        self.reads.append(Access(number, where))
        if self.conditions:
            self.conditional.add(number)
        return super().read(number, aval, index)

    def guarded(
        self, condition: CountedScalar, read: Callable[[], CountedScalar], otherwise: CountedScalar
    ) -> CountedScalar:
        """A read under a condition."""
        self.conditions += 1
        result = super().guarded(condition, read, otherwise)
        self.conditions -= 1
        return result


def accesses(eqn: Eqn) -> Accesses:
    """The reads of an equation that need no memory (for a `Block`, those of its streamed operands)."""
    rule, out = eqn.primitive.kernel, eqn.outvars[0].aval
    if type(rule) is Pointwise:
        reads = [Access(i, _aligned(a.aval, out)) for i, a in enumerate(eqn.invars)]
        return Accesses(tuple(reads), element_cost(eqn))
    if type(rule) is Reduction:
        return Accesses((Access(0, tuple(range(eqn.invars[0].aval.ndim))),), 1)
    if type(rule) is Reshape:
        return Accesses((Access(0, _reshape_map(eqn.invars[0].aval.shape, out.shape)),), 0)
    if type(rule) is Block:
        streamed = range(len(eqn.invars))[streamed_from(eqn) :]
        # In terms of an element's index; those that run along the first operand share its leading axes.
        return Accesses(tuple([Access(i, tuple(range(eqn.invars[i].aval.ndim))) for i in streamed]), 0)
    assert type(rule) is Indexed
    reader = _ReadNoter()
    count_indexed(reader, eqn)
    distinct = tuple(dict.fromkeys(reader.reads))
    # Most elements are read without a condition.
    cost = 1 if reader.cuts and _is_mostly_inside(out.shape, reader.cuts) else reader.cost
    return Accesses(distinct, cost, frozenset(reader.conditional), tuple(reader.cuts))


def interior(extent: int, cuts: Iterable[int], least: int = LONG) -> tuple[int, int] | None:
    """The first and the end of most elements of an axis, between two cuts; None if most are not, or are few.

    Loops run over them separately, without the conditions that change at the cuts.
    """
    if not config.runs(INTERIOR):
        return None
    ends = sorted({0, extent, *[c for c in cuts if 0 < c < extent]})
    first, end = max(pairwise(ends), key=lambda p: p[1] - p[0], default=(0, 0))
    return (first, end) if extent >= least and 4 * (end - first) >= 3 * extent else None


def _is_mostly_inside(shape: Sequence[int], cuts: Collection[Cut]) -> bool:
    """Whether loops over an output have an interior along each axis with cuts."""
    axes = {d for d, _ in cuts}
    return len(axes) <= MOST and all(interior(shape[d], [c for e, c in cuts if e == d]) for d in axes)


def streamed_from(eqn: Eqn) -> int:
    """The first operand of a block that does not need memory."""
    rule = eqn.primitive.kernel
    assert type(rule) is Block
    return len(eqn.invars) if rule.streamed_from is None else rule.streamed_from


def _aligned(operand: Aval, out: Aval) -> IndexMap:
    shift = out.ndim - operand.ndim
    return tuple(None if n == 1 else d + shift for d, n in enumerate(operand.shape))


def _reshape_map(source: tuple[int, ...], target: tuple[int, ...]) -> IndexMap:
    """The axes that a reshape does not change."""
    where: list[int | None] = [None] * len(source)
    if 0 not in source:
        for left, right in reshape_groups(source, target):
            if len(left) == len(right) == 1:
                where[left[0]] = right[0]
    return tuple(where)
