"""Which short loops become vectors.

LLVM unrolls a loop of few iterations before it looks for vectors, and then for vectors of the loop around it: eight
rows at a time, each element of which comes from another place in memory. Where a row lies side by side in memory, it
is often better to compute it in vectors itself, and to unroll what is left::

    for i in 0..n:                         for i in 0..n:
        s = 0                                  s = sum of the lanes of x[i,0:8]**2 + x[i,8:16]**2
        for j in 0..16:              ──▶
            s = s + x[i,j]**2
        y[i] = f(s)                            y[i] = f(s)

Where functions of the elements are computed, as in a softmax, a row of ten would be a vector and a rest, or two vectors
that are not full: there the lanes of a vector are rows, whose elements are gathered.
"""

from __future__ import annotations

from ..loops import ir, queries
from ..processor import Processor
from .loop_shape import SHORT, calls_maths, rounds_of_nest
from .maths.choice import LIBM

#: What LLVM is told of such a loop. (It does not unroll before it looks for vectors.)
ROW = '!0, !{!"llvm.loop.vectorize.followup_vectorized", !{!"llvm.loop.unroll.full"}}'
#: And of a loop whose elements are to be in different vectors.
UNROLLED = '!{!"llvm.loop.unroll.full"}'
#: The fewest elements of a row that is computed in vectors: fewer are shuffled into vectors of several rows. And the
#: fewest where the loop around could be vectors itself.
LEAST, LEAST_ALONE = 8, 16
#: The most elements of a row with functions of each that is unrolled; the most functions, which LLVM has to compile.
MOST_UNROLLED, MOST_FUNCTIONS = 16, 16
#: What a row computes, and what may stand beside its loops in a loop that becomes vectors.
_PURE = (ir.Let, ir.Load, ir.Store, ir.Get, ir.Set)
_BESIDE = (*_PURE, ir.Declare, ir.For)


def short_loops(body: ir.StatementList, cpu: Processor) -> tuple[set[ir.For], set[ir.For]]:
    """The innermost loops in a block that should be vectors of their own, and those to unroll.

    The loop around those becomes vectors with a row in each lane.
    """
    rows: set[ir.For] = set()
    unrolled: set[ir.For] = set()
    for s in queries.walk(body):
        if type(s) is ir.For:
            loops = [x for x in s.body.statements if type(x) is ir.For]
            own = [x for x in loops if _is_row(x)]
            if _computes_rows(s, loops) and cpu.gathers and not _fills_vectors(s, loops, cpu):
                unrolled.update(loops)
            elif own and (not _may_be_vectors(s, loops) or _are_better(s, loops)):
                rows.update(own)
        elif type(s) is ir.If:  # the loop around is no vector
            rows.update(x for branch in queries.bodies_of(s) for x in branch.statements if _is_row(x))
    return rows, unrolled


def _computes_rows(s: ir.For, loops: list[ir.For]) -> bool:
    """Whether a loop computes functions of all elements of short rows."""
    if not any(calls_maths(x.body) for x in loops) or 0 <= queries.rounds(s, -1) <= SHORT:
        return False
    inside = [x for loop in loops for x in loop.body.statements]
    functions = [queries.rounds(x, 0) * sum(map(_is_function, x.body.statements)) for x in loops]
    return (
        all(0 < queries.rounds(x, 0) <= MOST_UNROLLED for x in loops)
        and sum(functions) <= MOST_FUNCTIONS
        and all(type(x) in _BESIDE for x in s.body.statements)
        and all(type(x) in _PURE for x in inside)
    )


def _fills_vectors(s: ir.For, loops: list[ir.For], cpu: Processor) -> bool:
    """Whether rows fill wide vectors, and what else is computed of them does not need more lanes."""
    inside = [x for loop in loops for x in loop.body.statements]
    size = max(x.value.dtype.itemsize for x in inside if type(x) is ir.Let and _is_function(x))
    lanes = cpu.vector_bits // (8 * size)
    if not lanes or any(queries.rounds(x, 0) % lanes for x in loops):
        return False
    return not any(map(_is_function, s.body.statements)) or any(type(x) is ir.Store for x in inside)


def _is_function(s: ir.Statement) -> bool:
    return type(s) is ir.Let and s.op in LIBM


def _is_row(s: ir.Statement) -> bool:
    """Whether a loop is short, and goes through memory element by element."""
    if (
        type(s) is not ir.For
        or s.reverse
        or not LEAST <= queries.rounds(s, 0) <= SHORT
        or calls_maths(s.body)
    ):
        return False
    moving = {s.var}
    for x in s.body.statements:
        if type(x) not in _PURE and not (type(x) is ir.Fail and x.condition not in moving):
            return False
        if type(x) is ir.Let and x.value.dtype == ir.INT64 and x.op in ("add", "sub"):
            moving.update({x.value} if not moving.isdisjoint(x.args) else ())
    indices = [x.index for x in s.body.statements if type(x) in (ir.Load, ir.Store)]
    used = [index for index in indices if not moving.isdisjoint(index)]
    return bool(used) and all(i[-1] in moving and moving.isdisjoint(i[:-1]) for i in used)


def _may_be_vectors(s: ir.For, loops: list[ir.For]) -> bool:
    """Whether LLVM can compute several iterations of a loop at once, when it has unrolled the loops inside.

    It does not with a running minimum or maximum beside them, nor with few iterations that store rows.
    """
    lets = [x for x in s.body.statements if type(x) is ir.Let]
    extremes = {x.value for x in lets if x.op in ("min", "max") and x.value.dtype.kind == "f"}
    if not all(type(x) in _BESIDE for x in s.body.statements):
        return False
    if any(rounds_of_nest(x) > SHORT or calls_maths(x.body) for x in loops):
        return False
    if any(type(x) is ir.Set and x.x in extremes for x in s.body.statements):
        return False
    return not (0 < queries.rounds(s, 0) <= SHORT and any(_stores_row(x, s.var) for x in loops))


def _are_better(s: ir.For, loops: list[ir.For]) -> bool:
    """Whether rows should be vectors although the loop around them could be.

    So where they only move from one place to another. Not where a sum goes on from row to row, whose lanes would be
    added up in each; nor where functions of a row's sum are computed, several at once.
    """
    declared = {x.var for x in s.body.statements if type(x) is ir.Declare}
    inside = [x for loop in loops for x in loop.body.statements]
    read = {x.value for x in inside if type(x) is ir.Load}
    if all(_only_moves(x, read) for x in inside):
        return True
    if any(type(x) is ir.Set and x.var not in declared for x in inside):
        return False
    if not any(type(x) is ir.Store for x in inside) and any(
        type(x) is ir.Let and x.op in LIBM for x in s.body.statements
    ):
        return False
    return all(rounds_of_nest(x) >= LEAST_ALONE for x in loops)


def _only_moves(s: ir.Statement, read: set[ir.Value]) -> bool:
    """Whether a statement moves what is read, or computes where from and to; an index outside may be noted once."""
    if type(s) is ir.Let:
        return s.value.dtype.kind in "ib"
    return type(s) in (ir.Load, ir.Fail) or (type(s) is ir.Store and s.x in read)


def _stores_row(loop: ir.For, row: ir.Value) -> bool:
    """Whether a loop stores elements of the row with some number."""
    return any(type(x) is ir.Store and {loop.var, row} <= set(x.index) for x in loop.body.statements)
