"""Ranges of integers, found from the bounds and conditions of loops.

A loop from 1 to n that reads element ``i - 1`` of an array of n elements needs no test whether the index is in bounds.
Sizes are known while a kernel is built, though not in its text: kernels of other sizes for which the same tests are
decided have the same text.

The builder of kernels follows the numbers of one iteration. What a loop hands from one iteration to the next is found
here in advance: `ranges_of` runs a jaxpr's kernel rules on scalars that stand for ranges, and `of_loop` repeats a body
until the ranges of its carry no longer change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from ...core.aval import Aval
from ...core.dtypes import memory_dtype
from ...core.ir import Atom, Eqn, Jaxpr, Literal
from ...core.kernel import Block, Pointwise, Reshape
from ...core.values import ArrayLike
from ...runtime.records import NamedTuple, dataclass
from ..costs import CountedScalar, CountingEmitter
from ..scalar_functions import COMPARISONS, result_dtype

#: The smallest and the largest value, both included.
Range = tuple[int, int]

LOWEST, HIGHEST = -(2**63), 2**63 - 1
UNKNOWN: Range = (LOWEST, HIGHEST)
#: Counting up or down takes too long to get here, in steps of at most `LARGEST_STEP` from within half of it.
FAR = 1 << 62
LARGEST_STEP = 1 << 16
#: So often a body is repeated to find what its carry settles at. A number that doubles takes 24 rounds to 16 million.
ROUNDS = 24


def combined(op: str, a: Range, b: Range) -> Range | None:
    """The range of ``a op b``; None if it is unknown, or if int64 could not hold the result."""
    if op in ("add", "sub", "mul"):
        if op == "sub":
            ends = [a[0] - b[1], a[1] - b[0]]
        elif op == "add":
            ends = [a[0] + b[0], a[1] + b[1]]
        else:
            ends = [x * y for x in a for y in b]
        low, high = min(ends), max(ends)
        return (low, high) if low >= LOWEST and high <= HIGHEST else None
    if op == "min":
        return min(a[0], b[0]), min(a[1], b[1])
    if op == "max":
        return max(a[0], b[0]), max(a[1], b[1])
    if op == "irem" and b[0] > 0:
        return 0 if a[0] >= 0 else max(1 - b[1], a[0]), min(b[1] - 1, max(a[1], 0))
    if op in ("and", "or", "xor") and a[0] >= 0 and b[0] >= 0:
        return 0, (1 << max(a[1].bit_length(), b[1].bit_length())) - 1
    if op == "idiv" and a[0] >= 0 and b[0] > 0:
        return a[0] // b[1], a[1] // b[0]
    if op in ("shl", "shr") and a[0] >= 0 and b[0] >= 0 and b[1] < 64:
        low, high = (a[0] << b[0], a[1] << b[1]) if op == "shl" else (a[0] >> b[1], a[1] >> b[0])
        return (low, high) if high <= HIGHEST else None
    return None


def decided(op: str, a: Range, b: Range) -> bool | None:
    """The result of a comparison; None if it depends on the values."""
    if op in ("ge", "gt", "ne"):
        opposite = decided({"ge": "lt", "gt": "le", "ne": "eq"}[op], a, b)
        return None if opposite is None else not opposite
    if op == "lt":
        return True if a[1] < b[0] else False if a[0] >= b[1] else None
    if op == "le":
        return True if a[1] <= b[0] else False if a[0] > b[1] else None
    if op == "eq":
        return False if a[1] < b[0] or b[1] < a[0] else True if a[0] == a[1] == b[0] == b[1] else None
    return None


def extreme(op: str, a: Range, b: Range) -> int | None:
    """Which of two numbers, 0 or 1, their ``min`` or ``max`` is; None if it depends on the values."""
    if a[1] <= b[0]:
        return int(op == "max")
    return int(op == "min") if b[1] <= a[0] else None


def hull(a: Range, b: Range) -> Range:
    """The range of a number that is one of two."""
    return min(a[0], b[0]), max(a[1], b[1])


def common(a: Range, b: Range) -> Range:
    """The range of a number that is in both."""
    return max(a[0], b[0]), min(a[1], b[1])


# --- numbers of a jaxpr -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """What is known of a scalar: of an int64, or of a boolean as 0 or 1. Of others, nothing.

    Attributes
    ----------
    range : Range
    base : Atom or None
        A number: this one is `scale` times that, which is a literal, plus a number in the range `shift`.
    scale : int
    shift : Range
    claims : mapping of Atom to Range
        The ranges of other numbers if this one is true.
    """

    range: Range = UNKNOWN
    base: Atom | None = None
    scale: int = 1
    shift: Range = (0, 0)
    claims: Mapping[Atom, Range] = field(default_factory=dict)

    def is_sum_with(self, base: Atom) -> bool:
        """Whether it is the sum of another number and a literal, `shift`."""
        return self.base is base and self.scale == 1 and self.shift[0] == self.shift[1]

    @staticmethod
    def either(numbers: Sequence[Facts]) -> Facts:
        """A number that is one of several."""
        first, *others = numbers
        for x in others:
            known, shift = hull(first.range, x.range), hull(first.shift, x.shift)
            alike = first.base is x.base and first.scale == x.scale
            first = Facts(known, first.base, first.scale, shift) if alike else Facts(known)
        return first


class _Scalar(CountedScalar):
    """A scalar that stands for a range."""

    __slots__ = ("number",)

    def __init__(self, emitter: CountingEmitter, dtype: np.dtype, number: Facts):
        super().__init__(emitter, dtype)
        self.number = number


class _Ranging(CountingEmitter):
    """A `ScalarEmitter` that computes with ranges."""

    def const(self, value: Any, dtype: np.dtype) -> CountedScalar:
        """A literal number."""
        dtype = np.dtype(dtype)
        return _Scalar(self, dtype, _constant(value) if _counts(dtype) else Facts())

    def operation(self, op: str, *args: Any, dtype: np.dtype | None = None) -> CountedScalar:
        """One operation."""
        dtypes = tuple([a.dtype for a in args if isinstance(a, CountedScalar)])
        to = result_dtype(op, dtypes) if dtype is None else dtype
        if op == "cast" and dtypes[0].kind in "iu" and dtypes[0].itemsize < 8:
            limits = np.iinfo(dtypes[0])
            return _Scalar(self, to, Facts((int(limits.min), int(limits.max))))
        if not _counts(to) or not all(map(_counts, dtypes)):
            return _Scalar(self, to, Facts((0, 1)) if to == np.bool_ else Facts())
        numbers = [a.number if isinstance(a, _Scalar) else _constant(a) for a in args]
        return _Scalar(self, to, _result(op, numbers, to))


def _counts(dtype: np.dtype) -> bool:
    return dtype == np.int64 or dtype == np.bool_


def _constant(value: ArrayLike) -> Facts:
    return Facts((int(value), int(value)))


def _result(op: str, args: Sequence[Facts], dtype: np.dtype) -> Facts:
    """An operation on int64 numbers and booleans."""
    x, y = args[0], args[-1]
    if op == "cast":
        return replace(x, base=None) if dtype == np.int64 else Facts((0, 1))
    if op == "not":
        return Facts((1 - x.range[1], 1 - x.range[0])) if dtype == np.bool_ else Facts()
    if op == "neg":
        return _result("sub", [_constant(0), x], dtype)
    if op == "select":
        return Facts.either((args[1], y))
    if op in COMPARISONS:
        answer = decided(op, x.range, y.range)
        return Facts((0, 1) if answer is None else (int(answer),) * 2, claims=_claims(op, x, y))
    if dtype == np.bool_:
        both = {a: common(x.claims.get(a, UNKNOWN), y.claims.get(a, UNKNOWN)) for a in {*x.claims, *y.claims}}
        return Facts((0, 1), claims=both if op in ("and", "mul") else {})
    if op in ("min", "max"):
        chosen = extreme(op, x.range, y.range)
        return Facts(combined(op, x.range, y.range) or UNKNOWN) if chosen is None else (x, y)[chosen]
    known = combined(op, x.range, y.range) or UNKNOWN
    return Facts(known) if known == UNKNOWN else _linear(op, x, y, known)


def _linear(op: str, x: Facts, y: Facts, known: Range) -> Facts:
    """A number in a known range, with what it is made of if that is a multiple of another number and a rest."""
    scale = x.scale
    if x.base is None and op in ("add", "sub", "mul"):
        x, y, scale = y, x, -y.scale if op == "sub" else y.scale
        shift = combined(op, y.range, x.shift)
    else:
        shift = combined(op, x.shift, y.range)
    if x.base is None or shift is None or op not in ("add", "sub", "mul", "shl"):
        return Facts(known)
    if op in ("mul", "shl"):
        factor = combined(op, (scale, scale), y.range)
        if factor is None or factor[0] != factor[1]:
            return Facts(known)
        scale = factor[0]
    return Facts(known, x.base, scale, shift)


_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq"}


def _claims(op: str, x: Facts, y: Facts) -> dict[Atom, Range]:
    """What a comparison says of the numbers of which its sides are multiples, with a rest."""
    claims: dict[Atom, Range] = {}
    for one, how, other in ((x, op, y), (y, _MIRRORED.get(op, "ne"), x)):
        if one.base is not None and how != "ne":
            strict = how in ("lt", "gt")
            low = other.range[0] + strict - one.shift[1] if how in ("gt", "ge", "eq") else None
            high = other.range[1] - strict - one.shift[0] if how in ("lt", "le", "eq") else None
            claim = _quotient((low, high), one.scale)
            claims[one.base] = common(claims.get(one.base, UNKNOWN), claim)
    return claims


def _quotient(known: tuple[int | None, int | None], scale: int) -> Range:
    """The range of a number of which a multiple is in a range, of which an end may be unknown."""
    if scale == 0:
        return UNKNOWN
    low, high = known if scale > 0 else (known[1], known[0])
    return LOWEST if low is None else -(-low // scale), HIGHEST if high is None else high // scale


def ranges_of(jaxpr: Jaxpr, inputs: Sequence[Facts]) -> dict[Atom, Facts]:
    """What is known of the scalars that a jaxpr computes, from what is known of its inputs."""
    known: dict[Atom, Facts] = dict(zip(jaxpr.invars, inputs, strict=True))
    for e in jaxpr.eqns:
        if any(not v.aval.shape and _is_number(v.aval) for v in e.outvars):
            known.update(zip(e.outvars, _of_equation(e, [facts_of(a, known) for a in e.invars])))
    return known


def facts_of(a: Atom, known: Mapping[Atom, Facts]) -> Facts:
    """What is known of an operand."""
    if isinstance(a, Literal):
        return _constant(a.value) if _is_number(a.aval) and not a.aval.shape else Facts()
    return known.get(a) or Facts()


def _is_number(aval: Aval) -> bool:
    return isinstance(aval, Aval) and _counts(aval.dtype)


def _of_equation(e: Eqn, inputs: Sequence[Facts]) -> Sequence[Facts]:
    rule = e.primitive.kernel
    if isinstance(rule, Pointwise):
        emitter = _Ranging()
        scalars = [_Scalar(emitter, memory_dtype(a.aval.dtype), x) for a, x in zip(e.invars, inputs)]
        result: Any = rule.emit(emitter, *scalars, **e.params)
        return [result.number]
    if isinstance(rule, Reshape) and not e.invars[0].aval.shape:
        return [inputs[0]]
    if isinstance(rule, Block) and rule.ranges is not None:
        return rule.ranges(inputs, **e.params)
    return [Facts() for _ in e.outvars]


# --- loops --------------------------------------------------------------------------------------------------


class LoopRanges(NamedTuple):
    """The ranges of what a loop hands from one iteration to the next.

    Attributes
    ----------
    before, inside, after : lists of Range
        The carry when the condition is tested, when the body starts, and after the loop.
    most : int or None
        The most iterations that the loop can have.
    """

    before: list[Range]
    inside: list[Range]
    after: list[Range]
    most: int | None = None


def of_loop(
    carry: Sequence[Atom],
    first: Sequence[Facts],
    step: Callable[[Sequence[Facts]], Sequence[Facts]],
    condition: Callable[[Sequence[Range]], Sequence[Range]] | None = None,
    rounds: int | None = None,
) -> LoopRanges:
    """The ranges of what a loop hands from one iteration to the next.

    A number that only grows is at least its first value, one that only shrinks at most. The condition, or the number of
    iterations, bounds the other side.

    Parameters
    ----------
    carry : sequence of Atom
    first : sequence of Facts
        The carry before the loop.
    step : callable
        From the carry to the next carry.
    condition : callable, optional
        From the ranges of the carry to what the condition of the loop says of it.
    rounds : int, optional
        The number of iterations, if known.
    """
    starts = [x.range for x in first]
    before, lost = list(starts), [False] * len(starts)
    for n in range(ROUNDS + len(starts) + 1):
        limits = [UNKNOWN] * len(starts) if condition is None else condition(before)
        inside = narrowed(before, limits)
        outs = step([Facts(r, v) for v, r in zip(carry, inside)])
        after, new = [], []
        for v, start, x, old, limit, gone in zip(carry, starts, outs, before, limits, lost):
            counted = x.base is v and x.scale == 1 and max(map(abs, x.shift)) <= LARGEST_STEP
            if counted and start != UNKNOWN:
                after.append(_counted(start, x.shift, limit, rounds))
                new.append(_counted(start, x.shift, limit, None if rounds is None else max(rounds - 1, 0)))
            else:
                new.append(UNKNOWN if gone else hull(old, x.range))
                after.append(new[-1])
        if new == before:
            return LoopRanges(before, inside, after, _most(carry, inside, outs))
        if n >= ROUNDS:  # give up on those that still grow
            lost = [a or b != c for a, b, c in zip(lost, new, before)]
            new = [UNKNOWN if gone else r for gone, r in zip(lost, new)]
        before = new
    return unknown_loop(len(starts))


def unknown_loop(count: int) -> LoopRanges:
    """A loop with so many parts of its carry, of which nothing is known."""
    return LoopRanges([UNKNOWN] * count, [UNKNOWN] * count, [UNKNOWN] * count)


def _most(carry: Sequence[Atom], inside: Sequence[Range], outs: Sequence[Facts]) -> int | None:
    """How often a number in a range can grow or shrink before it leaves the range."""
    most = []
    for v, (low, high), x in zip(carry, inside, outs):
        if x.base is v:
            grown = sorted([(x.scale - 1) * low, (x.scale - 1) * high])
            least = max(grown[0] + x.shift[0], -grown[1] - x.shift[1])
            most += [(high - low) // least + 1] if least > 0 else []
    return min(most, default=None)


def narrowed(ranges: Sequence[Range], limits: Sequence[Range]) -> list[Range]:
    """The ranges of numbers inside limits."""
    both = [common(r, limit) for r, limit in zip(ranges, limits)]
    return [b if b[0] <= b[1] else r for b, r in zip(both, ranges)]  # empty: the code is not reached


def _counted(start: Range, shift: Range, limit: Range, rounds: int | None) -> Range:
    """The range of a number to which each iteration, begun inside a limit, adds `shift`."""
    low, high = start
    if shift[1] > 0:
        far = FAR if start[1] <= FAR // 2 else HIGHEST + 1
        grown = far if rounds is None else start[1] + rounds * shift[1]
        high = max(high, min(grown, limit[1] + shift[1]))
    if shift[0] < 0:
        far = -FAR if start[0] >= -FAR // 2 else LOWEST - 1
        grown = far if rounds is None else start[0] + rounds * shift[0]
        low = min(low, max(grown, limit[0] + shift[0]))
    return (low, high) if low >= LOWEST and high <= HIGHEST else UNKNOWN
