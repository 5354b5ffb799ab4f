"""What an equation reads, and at what cost; found by running its kernel rule on recording scalars.

For each axis of an operand, an *index map* holds the axis of the output that indexes it; None if the index is computed
(a slice's offset, a gather) or does not matter (axes of extent 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import Aval, Block, Eqn, Indexed, Pointwise, Reduction, Reshape, memory_dtype
from ..jaxpr.reshapes import reshape_groups
from .check import result_dtype
from .ir import COSTS, INT64, OPERATIONS

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


class _Watch:
    """A scalar with only a dtype; as an index, also the axis that it comes from."""

    __slots__ = ("axis", "dtype", "emitter")

    def __init__(self, emitter: _CostEmitter, dtype: np.dtype, axis: int | None = None):
        self.emitter = emitter
        self.dtype = dtype
        self.axis = axis

    def eq(self, other: Any) -> _Watch:
        return self.emitter.operation("eq", self)

    def ne(self, other: Any) -> _Watch:
        return self.emitter.operation("ne", self)

    def __neg__(self) -> _Watch:
        return self.emitter.operation("neg", self)

    def __invert__(self) -> _Watch:
        return self.emitter.operation("not", self)


def _binary(op: str) -> Callable[[_Watch, Any], _Watch]:
    return lambda self, other: self.emitter.operation(op, self)


for _name, _op in (
    [(n, n) for n in ("add", "sub", "mul", "and", "or", "xor", "lt", "le", "gt", "ge")]
    + [("r" + n, n) for n in ("add", "sub", "mul")]
    + [("truediv", "div"), ("rtruediv", "div"), ("lshift", "shl"), ("rshift", "shr")]
):
    setattr(_Watch, f"__{_name}__", _binary(_op))


class _Operand:
    """An operand of an indexed rule: records the indices at which it is read."""

    def __init__(self, emitter: _CostEmitter, number: int, aval: Aval):
        self.emitter = emitter
        self.number = number
        self.aval = aval

    def __getitem__(self, index: Sequence[Any]) -> _Watch:
        where = tuple(
            getattr(i, "axis", None) if n != 1 else None for i, n in zip(index, self.aval.shape, strict=True)
        )
        self.emitter.reads.append(Access(self.number, where))
        if self.emitter.conditions:
            self.emitter.conditional.add(self.number)
        return _Watch(self.emitter, memory_dtype(self.aval.dtype))


class _CostEmitter:
    """An `IndexEmitter` that adds up costs."""

    def __init__(self) -> None:
        self.cost = 0
        self.conditions = 0
        self.reads: list[Access] = []
        self.conditional: set[int] = set()

    def operation(self, op: str, x: _Watch, dtype: np.dtype | None = None) -> _Watch:
        self.cost += COSTS[op]
        return _Watch(self, result_dtype(op, (x.dtype,)) if dtype is None else dtype)

    def const(self, value: Any, dtype: np.dtype) -> _Watch:
        return _Watch(self, np.dtype(dtype))

    def call(self, name: str, *args: _Watch) -> _Watch:
        if OPERATIONS.get(name) != len(args):
            raise TypeError(f"kernel rule: {name!r} is not a function of {len(args)} operands")
        return self.operation(name, args[0])

    def cast(self, x: _Watch, dtype: np.dtype) -> _Watch:
        return x if x.dtype == dtype else self.operation("cast", x, np.dtype(dtype))

    def where(self, condition: _Watch, x: _Watch, y: Any) -> _Watch:
        return self.operation("select", x, x.dtype)

    def guarded(self, condition: _Watch, read: Callable[[], _Watch], otherwise: Any) -> _Watch:
        self.cost += 4
        self.conditions += 1
        result = read()
        self.conditions -= 1
        return result

    def fail_if(self, condition: _Watch) -> None:
        self.cost += 1


def accesses(eqn: Eqn) -> Accesses:
    """The reads of an equation that need no memory (for a `Block`, those of its streamed operands)."""
    rule, out = eqn.primitive.kernel, eqn.outvars[0].aval
    if type(rule) is Pointwise:
        reads = [Access(i, _aligned(a.aval, out)) for i, a in enumerate(eqn.invars)]
        return Accesses(tuple(reads), pointwise_cost(eqn))
    if type(rule) is Reduction:
        return Accesses((Access(0, tuple(range(eqn.invars[0].aval.ndim))),), 1)
    if type(rule) is Reshape:
        return Accesses((Access(0, _reshape_map(eqn.invars[0].aval.shape, out.shape)),), 0)
    if type(rule) is Block:
        streamed = range(len(eqn.invars))[streamed_from(eqn) :]
        # In terms of an element's own index; those that run along the first operand share its leading axes.
        return Accesses(tuple([Access(i, tuple(range(eqn.invars[i].aval.ndim))) for i in streamed]), 0)
    assert type(rule) is Indexed
    watcher = _CostEmitter()
    operands = [_Operand(watcher, i, a.aval) for i, a in enumerate(eqn.invars)]
    index = tuple(_Watch(watcher, INT64, axis) for axis in range(out.ndim))
    rule.emit(watcher, index, *operands, out=out, **eqn.params)
    return Accesses(tuple(dict.fromkeys(watcher.reads)), watcher.cost, frozenset(watcher.conditional))


def streamed_from(eqn: Eqn) -> int:
    """The first operand of a block that does not need memory."""
    rule = eqn.primitive.kernel
    assert type(rule) is Block
    return len(eqn.invars) if rule.streamed_from is None else rule.streamed_from


def pointwise_cost(eqn: Eqn) -> int:
    """The cost of one element of an elementwise equation."""
    watcher = _CostEmitter()
    rule = eqn.primitive.kernel
    assert type(rule) is Pointwise
    rule.emit(watcher, *[_Watch(watcher, memory_dtype(a.aval.dtype)) for a in eqn.invars], **eqn.params)
    return watcher.cost


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
