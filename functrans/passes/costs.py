"""What an equation does, from its record: its operations (`work`), and its time in additions of one vectorized number.

Rules of the kind `Pointwise` run on scalars that only count; the work of the others follows from the number of
elements, or from the record's slot ``cost``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ..core.aval import Aval
from ..core.dtypes import is_inexact, is_low, register_dtype
from ..core.ir import Eqn, Jaxpr, subjaxprs
from ..core.kernel import Block, Indexed, Pointwise, Reduction, Reshape
from ..core.primitive import Primitive, Workload
from ..core.values import ArrayLike, Params
from .scalar_functions import CALL, COSTS, FUNCTIONS, OPERATIONS, result_dtype

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
    """An `IndexEmitter` that adds up costs; the parts of calls are in `functions` and `instructions`."""

    def __init__(self) -> None:
        self.cost = 0
        self.functions = 0
        self.instructions = 0

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
        if name not in FUNCTIONS or FUNCTIONS[name].instruction:  # `opaque` and its like are not functions
            self.instructions += COSTS[name]
        else:
            self.functions += COSTS[name]
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
    return _element(eqn)[0]


def _element(eqn: Eqn) -> tuple[int, bool]:
    """The cost of one element of the result of an elementwise equation, and whether it is a transcendental function."""
    dtypes = tuple([a.aval.dtype for a in eqn.invars])
    if not eqn.params:
        return _counted_once(eqn.primitive, dtypes)
    counter = _count_pointwise(eqn.primitive, dtypes, eqn.params)
    return counter.cost, _is_transcendental(counter, dtypes)


@lru_cache(maxsize=1024)
def _counted_once(prim: Primitive, dtypes: tuple[np.dtype, ...]) -> tuple[int, bool]:
    counter = _count_pointwise(prim, dtypes, {})
    return counter.cost, _is_transcendental(counter, dtypes)


def _is_transcendental(counter: CountingEmitter, dtypes: Sequence[np.dtype]) -> bool:
    """Whether a rule calls a function of a maths library, or is a formula that takes as long as one."""
    own = counter.cost - counter.functions - counter.instructions
    return counter.functions > 0 or (own >= 2 * CALL and all(is_inexact(d) for d in dtypes))


def _count_pointwise(prim: Primitive, dtypes: Sequence[np.dtype], params: Params) -> CountingEmitter:
    counter = CountingEmitter()
    assert type(prim.kernel) is Pointwise
    prim.kernel.emit(counter, *[CountedScalar(counter, register_dtype(d)) for d in dtypes], **params)
    return counter


def count_indexed(counter: CountingEmitter, eqn: Eqn) -> None:
    """Run the rule of an equation of the kind `Indexed` for one element."""
    rule, out = eqn.primitive.kernel, eqn.outvars[0].aval
    assert type(rule) is Indexed
    operands = [_CountedOperand(counter, i, a.aval) for i, a in enumerate(eqn.invars)]
    index = tuple(CountedScalar(counter, _INT64, axis) for axis in range(out.ndim))
    rule.emit(counter, index, *operands, out=out, **eqn.params)


def work(eqn: Eqn) -> Workload:
    """What an equation without bodies does, from its record or its family."""
    prim = eqn.primitive
    kind = type(prim.kernel)
    if kind is Pointwise:
        out = eqn.outvars[0].aval
        each, transcendental = _element(eqn)
        additions = _scaled(each, out)
        return (
            Workload(0, out.size, additions)
            if transcendental
            else Workload(out.size * (each > 0), 0, additions)
        )
    if prim.cost is not None:
        return prim.cost(*[a.aval for a in eqn.invars], **eqn.params)
    if kind is Reshape:
        return Workload(additions=0)
    if kind is Reduction:  # which writes nothing
        x = eqn.invars[0].aval
        return Workload(x.size, 0, _scaled(1, x) // 4)
    if kind is Indexed:
        return Workload(additions=_scaled(2, eqn.outvars[0].aval))
    if prim.factors is not None:  # elementwise: by NumPy or SciPy, or by a loop of its own
        n = eqn.outvars[0].aval.size
        return Workload(n) if kind is Block else Workload(0, n)
    return Workload()


def cost(eqn: Eqn) -> int:
    """The time of an equation, in additions of float64."""
    if type(eqn.primitive.kernel) is Pointwise:
        return _scaled(element_cost(eqn), eqn.outvars[0].aval)
    bodies = list(subjaxprs(eqn.params))
    if bodies:
        known = 1 if eqn.primitive.call is not None or "branches" in eqn.params else ITERATIONS
        repeats = eqn.params.get("length", known)
        return (ITERATIONS if repeats is None else repeats) * sum(map(total_cost, bodies))
    done = work(eqn)
    if done.additions is not None:
        return done.additions
    # A call of LAPACK or of NumPy: nothing for the operations of small arrays, which take less than the call.
    elements = sum(prod(a.aval.shape) for a in (*eqn.invars, *eqn.outvars))
    return max(UNKNOWN * elements, (done.flops + CALL * done.transcendentals) // 4)


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
