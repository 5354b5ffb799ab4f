"""Indices as sums of iteration numbers and of numbers that do not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...core import INT64, Atom, Aval, Eqn, Literal, Pointwise, Reshape, Var
from ..costs import CountedScalar, CountingEmitter
from ..scalar_functions import result_dtype

#: Multiples and sums beyond this are not followed: int64 might not hold them.
_FAR = 1 << 40


class Turn:
    """The number of an iteration of a loop, from 0 to `most`, and not above the sum `bound`, if that is known."""

    __slots__ = ("bound", "most")

    def __init__(self, most: float, bound: Sum | None = None):
        self.most = most
        self.bound = bound

    @property
    def count(self) -> float:
        """How many turns there are, on average if their number varies."""
        return self.most + 1 if self.bound is None else (self.most + 1) / 2


class Sum:
    """An integer: `number`, and multiples of turns and of variables that do not change."""

    __slots__ = ("number", "terms")

    def __init__(self, number: int, terms: Mapping[Any, int]):
        self.number = number
        self.terms = terms

    def plus(self, other: Sum, times: int = 1) -> Sum:
        """The sum with a multiple of another one."""
        terms = dict(self.terms)
        for symbol, n in other.terms.items():
            terms[symbol] = terms.get(symbol, 0) + times * n
        return Sum(self.number + times * other.number, {s: n for s, n in terms.items() if n})

    def in_turns(self, instead: Mapping[Any, Sum]) -> Sum:
        """The sum in other turns."""
        total = Sum(self.number, {s: n for s, n in self.terms.items() if s not in instead})
        for symbol, n in self.terms.items():
            if symbol in instead:
                total = total.plus(instead[symbol], n)
        return total


def is_index(v: Atom) -> bool:
    """Whether a value is a number of int64."""
    return type(v.aval) is Aval and not v.aval.shape and v.aval.dtype == INT64


def known_sum(a: Atom, sums: Mapping[Any, Sum]) -> Sum | None:
    """What is known of an operand."""
    if isinstance(a, Literal):
        return Sum(int(a.value), {}) if is_index(a) else None
    return sums.get(a)


def passed_sums(operands: Iterable[tuple[Var, Atom]], sums: Mapping[Any, Sum]) -> dict[Any, Sum]:
    """What is known inside of a body, of operands that are known outside."""
    known = {v: known_sum(a, sums) for v, a in operands}
    return {v: x for v, x in known.items() if x is not None}


class _SumScalar(CountedScalar):
    """A scalar that stands for a sum; None if it is none that is followed."""

    __slots__ = ("sum",)

    def __init__(self, emitter: CountingEmitter, dtype: np.dtype, total: Sum | None):
        super().__init__(emitter, dtype)
        self.sum = total


class _SumEmitter(CountingEmitter):
    """A `ScalarEmitter` that computes with sums."""

    def const(self, value: Any, dtype: np.dtype) -> CountedScalar:
        """A literal number."""
        return _SumScalar(self, np.dtype(dtype), Sum(int(value), {}) if dtype == INT64 else None)

    def operation(self, op: str, *args: Any, dtype: np.dtype | None = None) -> CountedScalar:
        """One operation."""
        dtypes = tuple([a.dtype for a in args if isinstance(a, CountedScalar)])
        to = result_dtype(op, dtypes) if dtype is None else dtype
        terms = [a.sum if isinstance(a, _SumScalar) else Sum(a, {}) if type(a) is int else None for a in args]
        followed = to == INT64 and all(d == INT64 for d in dtypes)
        return _SumScalar(self, to, _result(op, terms[0], terms[-1]) if followed else None)


def _result(op: str, x: Sum | None, y: Sum | None) -> Sum | None:
    """An operation on one sum or two; None if int64 might not hold what it is made of."""
    if x is None or y is None:
        return None
    total: Sum | None = None
    if op == "mul":
        x, y = (y, x) if not x.terms else (x, y)
        total = None if y.terms else Sum(0, {}).plus(x, y.number)
    elif op in ("add", "sub"):
        total = x.plus(y, 1 if op == "add" else -1)
    elif op == "neg":
        total = Sum(0, {}).plus(x, -1)
    if total is None or any(abs(n) > _FAR for n in (total.number, *total.terms.values())):
        return None
    return total


def sum_of(e: Eqn, sums: Mapping[Any, Sum]) -> Sum | None:
    """The result of an equation, by its kernel rule; of an array, if all of its elements are the same."""
    rule = e.primitive.kernel
    if isinstance(rule, Reshape) or e.primitive.repeats:
        return known_sum(e.invars[0], sums)
    if not isinstance(rule, Pointwise) or e.outvars[0].aval.dtype != INT64:
        return None
    emitter = _SumEmitter()
    terms = [_SumScalar(emitter, a.aval.dtype, known_sum(a, sums)) for a in e.invars]
    if any(x.sum is None for x in terms):
        return None
    result: Any = rule.emit(emitter, *terms, **e.params)
    return result.sum
