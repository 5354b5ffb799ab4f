"""Indices as sums of iteration numbers and of numbers that do not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core import INT64, Atom, Aval, Eqn, Literal, Var
from ...primitives.elementwise.arithmetic import convert_element_type_p, mul_p, neg_p, sub_p
from ...primitives.structure.linear import add_p, broadcast_in_dim_p, reshape_p

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


def sum_of(e: Eqn, sums: Mapping[Any, Sum]) -> Sum | None:
    """The result of an equation; of an array, if all of its elements are the same."""
    if e.primitive not in _FOLLOWED or e.outvars[0].aval.dtype != INT64:
        return None
    terms = [known_sum(a, sums) for a in e.invars[:2]]
    x, y = terms[0], terms[-1]
    if x is None or y is None:
        return None
    if e.primitive is mul_p:
        x, y = (y, x) if not x.terms else (x, y)
        total = None if y.terms else Sum(0, {}).plus(x, y.number)
    elif e.primitive in (add_p, sub_p):
        total = x.plus(y, 1 if e.primitive is add_p else -1)
    else:
        total = Sum(0, {}).plus(x, -1) if e.primitive is neg_p else x
    if total is None or any(abs(n) > _FAR for n in (total.number, *total.terms.values())):
        return None
    return total


_FOLLOWED = (add_p, sub_p, mul_p, neg_p, convert_element_type_p, broadcast_in_dim_p, reshape_p)
