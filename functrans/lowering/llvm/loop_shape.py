"""What the body of a loop looks like, as far as that decides how LLVM should treat the loop."""

from __future__ import annotations

from typing import Any

from ..loops import ir, queries
from ..loops.part_call import PartCall
from ..loops.passes.split_functions import shared
from .maths.choice import LIBM

#: Loops with at most this many iterations, counting those of inner loops, may be unrolled; those with mathematical
#: functions only up to the length of a vector: unrolled calls are computed one at a time.
SHORT, VECTOR = 32, 4
#: What a block of a few operations does not contain.
_LONG = (ir.For, ir.While, ir.Call, ir.HostCall, ir.Reserve)
#: So many operations make it worth a wider loop.
_NARROW = 64


def late_in(body: ir.StatementList, var: ir.Value | None) -> set[Any]:
    """What depends on a variable that the iteration before sets, or on an element that it stores.

    That element is the same, or at another place along an axis on which both move.

    A running minimum or maximum that nothing else reads is not late, since LLVM vectorizes it.
    """
    moving: set[Any] = set() if var is None else {var}
    late: set[Any] = set()
    written: dict[Any, Any] = {(s.buffer.place, s.index): s.x for s in body.statements if type(s) is ir.Store}
    for s in body.statements:
        if type(s) is ir.Copy and not s.target.shape:
            written[s.target.place, ()] = written.get((s.source.place, ()))
    operands = [x for s in body.statements for x in queries.operands_of(s)]
    carried: dict[Any, Any] = {}

    def follows(s: ir.Load) -> bool:
        key = s.buffer.place, s.index
        if key in written and moving.isdisjoint(s.index):
            carried[s.value] = written[key]
            return True
        return key not in written and any(
            place == s.buffer.place
            and all(a == b or (a in moving and b in moving) for a, b in zip(s.index, i))
            for place, i in written
        )

    sets = {s.var: s.x for s in body.statements if type(s) is ir.Set}
    for s in body.statements:
        if type(s) is ir.Get and s.var in sets:
            carried[s.value] = sets[s.var]
            late.add(s.value)
        elif type(s) in (ir.Let, ir.Load):
            if not moving.isdisjoint(queries.operands_of(s)):
                moving.add(s.value)
            folds = (
                any(carried.get(x) is s.value for x in queries.operands_of(s))
                and operands.count(s.value) == 1
            )
            if (type(s) is ir.Load and follows(s)) or (
                not folds and not late.isdisjoint(queries.operands_of(s))
            ):
                late.add(s.value)
    return late


def is_short(body: ir.StatementList, most: int = SHORT) -> bool:
    """Whether a block is a few operations, so that a copy costs little."""
    statements = list(queries.walk(body))
    return len(statements) <= most and not any(type(s) in _LONG for s in statements)


def fails_inside(body: ir.StatementList) -> bool:
    """Whether a block may set the status and go on: in a loop inside, in a part, or in Python."""
    for s in shared(body):
        if type(s) in (ir.HostCall, PartCall) or (
            type(s) in (ir.For, ir.While) and any(map(queries.may_fail, queries.bodies_of(s)))
        ):
            return True
        if type(s) is ir.If and (fails_inside(s.then) or fails_inside(s.orelse)):
            return True
    return False


def rounds_of_nest(s: ir.Statement) -> int:
    """The total number of iterations of the innermost loops; more than `SHORT` if unknown."""
    if type(s) is ir.While:
        return SHORT + 1
    inner = sum(rounds_of_nest(x) for body in queries.bodies_of(s) for x in body.statements)
    return max(queries.rounds(s, SHORT + 1), 0) * max(inner, 1) if type(s) is ir.For else inner


def accumulators(body: ir.StatementList, varying: set[ir.Value]) -> int:
    """How many sums a loop updates: variables, and elements of memory at places that do not depend on its number."""
    count = 0
    varying = set(varying)
    for s in body.statements:
        if type(s) is ir.Set:
            count += 1
        elif type(s) is ir.Store:
            count += varying.isdisjoint(s.index)
        elif type(s) is ir.For and queries.rounds(s, SHORT) <= VECTOR:
            inner = [x for x in s.body.statements if type(x) is not ir.Set]
            count += max(queries.rounds(s, 0), 0) * accumulators(ir.StatementList(inner), varying)
        elif type(s) in (ir.Let, ir.Load, ir.Get):
            varying.add(s.value)
    return count


def calls_maths(body: ir.StatementList) -> bool:
    """Whether there are calls of mathematical functions."""
    return any(type(s) is ir.Let and s.op in LIBM for s in queries.walk(body))


def is_branchy(body: ir.StatementList) -> bool:
    """Whether an iteration is little more than a branch, which keeps it out of vectors, and never leaves the loop."""
    kinds = {type(s) for s in queries.walk(body)}
    return ir.If in kinds and ir.Fail not in kinds and is_short(body) and not calls_maths(body)


def folds_extremes(body: ir.StatementList) -> bool:
    """Whether a variable is a running minimum or maximum of floats, which LLVM alone does not interleave."""
    if len(body.statements) > 12:
        return False
    lets = [s for s in body.statements if type(s) is ir.Let]
    folds = [s.value for s in lets if s.op in ("min", "max") and s.value.dtype.kind == "f"]
    simple = not any(s.op in LIBM for s in lets)
    return simple and any(type(s) is ir.Set and s.x in folds for s in body.statements)


def is_narrow(body: ir.StatementList) -> bool:
    """Whether a loop mostly computes with 32-bit integers, so that its vectors should be full of these.

    LLVM chooses the number of lanes by the widest type of a loop: one double in memory halves all vectors. (Functions
    of libmvec exist for whole registers only.)
    """
    lets = [s for s in body.statements if type(s) is ir.Let]
    narrow = sum(s.value.dtype.kind in "iu" and s.value.dtype.itemsize == 4 for s in lets)
    wide = any(s.value.dtype.itemsize == 8 and s.value.dtype.kind in "fu" for s in lets)
    return narrow >= _NARROW and wide and not any(s.op in LIBM for s in lets)
