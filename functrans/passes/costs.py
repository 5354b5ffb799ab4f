"""What an equation costs, in additions of one vectorized number: counted by running its kernel rule.

Rules of the kind `Pointwise` run on scalars that only count; the others' costs follow from the number of elements, or
from the record's slot ``cost``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ..core.aval import Aval
from ..core.dtypes import is_low, register_dtype
from ..core.ir import Eqn, Jaxpr, subjaxprs
from ..core.kernel import Indexed, Pointwise, Reduction, Reshape
from ..core.primitive import Primitive
from ..core.scalar_functions import COSTS, OPERATIONS, result_dtype
from ..core.values import ArrayLike, Params

_INT64 = np.dtype(np.int64)
#: The cost of an element of an operation without a rule that can be counted: a sort, a gather by a host call.
UNKNOWN = 20
#: The most additions for an element that count as arithmetic.
ARITHMETIC = 8
#: The assumed number of iterations of a loop whose length is unknown.
ITERATIONS = 100


class CountedScalar:
    """A scalar with only a dtype; as an index, also the axis that it comes from, and the number added to it."""

    __slots__ = ("axis", "by", "dtype", "emitter")

    def __init__(self, emitter: CountingEmitter, dtype: np.dtype, axis: int | None = None, by: int = 0):
        self.emitter = emitter
        self.dtype = dtype
        self.axis = axis
        self.by = by

    def eq(self, other: Any) -> CountedScalar:
        """Whether the two are equal."""
        return self.emitter.operation("eq", self, other)

    def ne(self, other: Any) -> CountedScalar:
        """Whether the two differ."""
        return self.emitter.operation("ne", self, other)

    def __neg__(self) -> CountedScalar:
        return self.emitter.operation("neg", self)

    def __invert__(self) -> CountedScalar:
        return self.emitter.operation("not", self)


def _binary(op: str) -> Callable[[CountedScalar, Any], CountedScalar]:
    return lambda self, other: self.emitter.operation(op, self, other)


def _reflected(op: str) -> Callable[[CountedScalar, Any], CountedScalar]:
    return lambda self, other: self.emitter.operation(op, other, self)


for _name, _op in [(n, n) for n in ("add", "sub", "mul", "and", "or", "xor", "lt", "le", "gt", "ge")] + [
    ("truediv", "div"),
    ("lshift", "shl"),
    ("rshift", "shr"),
]:
    setattr(CountedScalar, f"__{_name}__", _binary(_op))
for _name, _op in [(n, n) for n in ("add", "sub", "mul")] + [("truediv", "div")]:
    setattr(CountedScalar, f"__r{_name}__", _reflected(_op))


class _CountedOperand:
    """An operand of an indexed rule."""

    def __init__(self, emitter: CountingEmitter, number: int, aval: Aval):
        self.emitter = emitter
        self.number = number
        self.aval = aval

    def __getitem__(self, index: Sequence[Any]) -> CountedScalar:
        return self.emitter.read(self.number, self.aval, index)


class CountingEmitter:
    """An `IndexEmitter` that adds up costs."""

    def __init__(self) -> None:
        self.cost = 0

    def operation(self, op: str, *args: Any, dtype: np.dtype | None = None) -> CountedScalar:
        """Count one operation on scalars and Python numbers."""
        self.cost += COSTS[op]
        x = next(a for a in args if isinstance(a, CountedScalar))
        return CountedScalar(self, result_dtype(op, (x.dtype,)) if dtype is None else dtype)

    def read(self, number: int, aval: Aval, index: Sequence[Any]) -> CountedScalar:
        """An element of an operand."""
        return CountedScalar(self, register_dtype(aval.dtype))

    def const(self, value: ArrayLike, dtype: np.dtype) -> CountedScalar:
        """A literal number."""
        return CountedScalar(self, register_dtype(np.dtype(dtype)))

    def call(self, name: str, *args: CountedScalar) -> CountedScalar:
        """A function of `scalar_functions.FUNCTIONS`."""
        if OPERATIONS.get(name) != len(args):
            raise TypeError(f"kernel rule: {name!r} is not a function of {len(args)} operands")
        return self.operation(name, *args)

    def cast(self, x: CountedScalar, dtype: np.dtype) -> CountedScalar:
        """A conversion."""
        return x if x.dtype == dtype else self.operation("cast", x, dtype=register_dtype(np.dtype(dtype)))

    def narrowed(self, x: CountedScalar, dtype: np.dtype) -> CountedScalar:
        """A number as memory holds it."""
        return self.operation("cast", x, dtype=dtype) if is_low(dtype) else x

    def widened(self, x: CountedScalar) -> CountedScalar:
        """A number from memory."""
        return self.operation("cast", x, dtype=register_dtype(x.dtype)) if is_low(x.dtype) else x

    def where(self, condition: CountedScalar, x: CountedScalar, y: Any) -> CountedScalar:
        """A choice between two numbers."""
        return self.operation("select", condition, x, y, dtype=x.dtype)

    def guarded(
        self, condition: CountedScalar, read: Callable[[], CountedScalar], otherwise: CountedScalar
    ) -> CountedScalar:
        """A read under a condition."""
        self.cost += 4
        return read()

    def fail_if(self, condition: CountedScalar) -> None:
        """A check."""
        self.cost += 1


def element_cost(eqn: Eqn) -> int:
    """The cost of one element of the result of an elementwise equation."""
    dtypes = tuple([a.aval.dtype for a in eqn.invars])
    if eqn.params:
        return _count_pointwise(eqn.primitive, dtypes, eqn.params)
    return _element_cost(eqn.primitive, dtypes)


@lru_cache(maxsize=1024)
def _element_cost(prim: Primitive, dtypes: tuple[np.dtype, ...]) -> int:
    return _count_pointwise(prim, dtypes, {})


def _count_pointwise(prim: Primitive, dtypes: Sequence[np.dtype], params: Params) -> int:
    counter = CountingEmitter()
    assert type(prim.kernel) is Pointwise
    prim.kernel.emit(counter, *[CountedScalar(counter, register_dtype(d)) for d in dtypes], **params)
    return counter.cost


def count_indexed(counter: CountingEmitter, eqn: Eqn) -> None:
    """Run the rule of an equation of the kind `Indexed` for one element."""
    rule, out = eqn.primitive.kernel, eqn.outvars[0].aval
    assert type(rule) is Indexed
    operands = [_CountedOperand(counter, i, a.aval) for i, a in enumerate(eqn.invars)]
    index = tuple(CountedScalar(counter, _INT64, axis) for axis in range(out.ndim))
    rule.emit(counter, index, *operands, out=out, **eqn.params)


def cost(eqn: Eqn) -> int:
    """The cost of an equation, in additions of float64."""
    prim = eqn.primitive
    kind = type(prim.kernel)
    if kind is Pointwise:
        return _scaled(element_cost(eqn), eqn.outvars[0].aval)
    if prim.cost is not None:
        return prim.cost(*[a.aval for a in eqn.invars], **eqn.params)
    if kind is Reshape:
        return 0
    if kind is Reduction:  # which writes nothing
        return _scaled(1, eqn.invars[0].aval) // 4
    if kind is Indexed:
        return _scaled(2, eqn.outvars[0].aval)
    bodies = list(subjaxprs(eqn.params))
    if bodies:
        repeats = eqn.params.get("length", 1 if prim.is_call or "branches" in eqn.params else ITERATIONS)
        return (ITERATIONS if repeats is None else repeats) * sum(map(total_cost, bodies))
    return UNKNOWN * sum(prod(a.aval.shape) for a in (*eqn.invars, *eqn.outvars))


def is_arithmetic(eqn: Eqn) -> bool:
    """Whether an equation takes at most a few additions for each element of its result, wherever that is read."""
    rule, out = eqn.primitive.kernel, eqn.outvars[0].aval
    return isinstance(rule, Pointwise | Indexed | Reshape) and cost(eqn) <= _scaled(ARITHMETIC, out)


def total_cost(jaxpr: Jaxpr) -> int:
    """The cost of all equations of a jaxpr."""
    return sum(map(cost, jaxpr.eqns))


def _scaled(count: int, aval: Aval) -> int:
    """The cost of `count` operations for each element: vectors hold twice as many numbers of half the size."""
    return -(-count * prod(aval.shape) * aval.dtype.itemsize // 8)
