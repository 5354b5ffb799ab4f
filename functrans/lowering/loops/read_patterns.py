"""What an equation reads, and at what cost; found by running its kernel rule on recording scalars.

For each axis of an operand, an *index map* holds the axis of the output that indexes it; None if the index is computed
(a slice's offset, a gather) or does not matter (axes of extent 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core import Aval, Block, Eqn, Indexed, Pointwise, Reduction, Reshape
from ...passes.costs import CountedScalar, CountingEmitter, count_indexed, element_cost
from ..jaxpr.reshapes import reshape_groups

IndexMap = tuple[int | None, ...]


class Access(NamedTuple):
    """One read of an operand."""

    operand: int
    place: IndexMap


class Accesses(NamedTuple):
    """The reads of an equation, and the cost of one output element without them.

    `guarded` are the operands read under a condition, where calls of the maths library would prevent vectorization.
    """

    reads: tuple[Access, ...]
    cost: int
    guarded: frozenset[int] = frozenset()


class _ReadNoter(CountingEmitter):
    """It also notes which operands are read, and along which axes."""

    def __init__(self) -> None:
        super().__init__()
        self.conditions = 0
        self.reads: list[Access] = []
        self.conditional: set[int] = set()

    def read(self, number: int, aval: Aval, index: Sequence[Any]) -> CountedScalar:
        """Note a read of an operand."""
        where = tuple(
            getattr(i, "axis", None) if n != 1 else None for i, n in zip(index, aval.shape, strict=True)
        )
        self.reads.append(Access(number, where))
        if self.conditions:
            self.conditional.add(number)
        return super().read(number, aval, index)

    def guarded(
        self, condition: CountedScalar, read: Callable[[], CountedScalar], otherwise: Any
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
        # In terms of an element's own index; those that run along the first operand share its leading axes.
        return Accesses(tuple([Access(i, tuple(range(eqn.invars[i].aval.ndim))) for i in streamed]), 0)
    assert type(rule) is Indexed
    reader = _ReadNoter()
    count_indexed(reader, eqn)
    return Accesses(tuple(dict.fromkeys(reader.reads)), reader.cost, frozenset(reader.conditional))


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
