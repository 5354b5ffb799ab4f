"""Read an array against its rows in strips, so that a line of memory serves all of its elements at once.

The inner loop of a transposition goes down a column: each element is in another line of memory, which may have left the
cache when the next column wants its neighbour. It has where the distance of rows is a power of two, since such lines
compete for few places::

                                    for block in range(m // 8):
    for i in range(n):                  for i in range(n):
        for j in range(m):                  for k in range(8):
            b[i, j] = a[j, i]   ──▶             b[i, 8 * block + k] = a[8 * block + k, i]
                                    for i in range(n):
                                        for j in range(m - m % 8, m):
                                            b[i, j] = a[j, i]
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....passes.scalar_functions import CALL, COSTS
from .. import ir, queries

#: The columns of a strip: doubles of a line of memory.
_STRIP = 8
#: Loops over at least this many elements, and as many along each axis, are divided into strips.
_ELEMENTS, _EXTENT = 1 << 12, 32
_ZERO = ir.Extent(0)


def strips(kernel: ir.Kernel) -> ir.Kernel:
    """Divide loops that read against rows, in place; the kernel must not be outlined yet."""
    _body(kernel.body)
    return kernel


def _body(body: ir.StatementList) -> None:
    new: list[Any] = []
    for s in body.statements:
        for inner in queries.bodies_of(s):
            _body(inner)
        new += _in_strips(s) if type(s) is ir.For else [s]
    body.statements = new


def _in_strips(outer: ir.For) -> list[Any]:
    """The loops that replace a loop."""
    inner = outer.body.statements[0] if len(outer.body.statements) == 1 else None
    if type(inner) is not ir.For or not (_is_plain(outer) and _is_plain(inner)):
        return [outer]
    n, m = queries.rounds(outer, 0), queries.rounds(inner, 0)
    if min(n, m) < _EXTENT or n * m < _ELEMENTS or not _is_against_rows(inner.body, outer.var, inner.var):
        return [outer]
    whole = m - m % _STRIP
    block, start, k = (ir.Value(ir.INT64) for _ in range(3))
    row = ir.StatementList(
        [ir.Let(inner.var, "add", (start, k)), *inner.body.statements],
    )
    strip = [
        ir.Let(start, "mul", (block, ir.Extent(_STRIP))),
        replace(inner, var=k, stop=ir.Extent(_STRIP), body=row),
    ]
    body = ir.StatementList([replace(outer, body=ir.StatementList(strip), interruptible=False)])
    loops = [replace(outer, var=block, stop=ir.Extent(whole // _STRIP), body=body)]
    if whole < m:
        i, j = ir.Value(ir.INT64), ir.Value(ir.INT64)
        copies = _copied(inner.body.statements, {outer.var: i, inner.var: j})
        rest = replace(inner, var=j, start=ir.Extent(whole), body=ir.StatementList(copies))
        loops.append(replace(outer, var=i, body=ir.StatementList([rest])))
    return loops


def _is_plain(s: ir.For) -> bool:
    return s.independent and s.separate and s.start == _ZERO and type(s.stop) is ir.Extent and not s.reverse


def _is_against_rows(body: ir.StatementList, i: ir.Value, j: ir.Value) -> bool:
    """Whether `j` counts the rows of an array that is read, and columns of whatever is written.

    Not where functions are computed, for which a strip has too few elements.
    """
    moves: dict[Any, set[ir.Value]] = {i: {i}, j: {j}}
    loads, stores = [], []
    for s in body.statements:
        if type(s) is ir.Let and COSTS[s.op] >= CALL:
            return False
        if type(s) is ir.Let:
            moves[s.value] = set().union(*[moves.get(x, set()) for x in s.args])
        elif type(s) is ir.Load:
            loads.append([moves.get(x, set()) for x in s.index])
            moves[s.value] = set().union(*loads[-1])
        elif type(s) is ir.Store:
            stores.append([moves.get(x, set()) for x in s.index])
        else:
            return False
    along_rows = all(index and index[-1] == {j} for index in stores)
    return along_rows and any(index[-1:] == [{i}] and any(j in x for x in index[:-1]) for index in loads)


def _copied(statements: list[Any], new: dict[Any, ir.Value]) -> list[Any]:
    """Loads, stores and what is computed between them, with values of their own."""
    copies: list[Any] = []
    for s in statements:
        if type(s) is ir.Store:
            index = tuple([new.get(x, x) for x in s.index])
            copies.append(replace(s, index=index, x=new.get(s.x, s.x)))
            continue
        value = ir.Value(s.value.dtype)
        if type(s) is ir.Load:
            copies.append(replace(s, value=value, index=tuple([new.get(x, x) for x in s.index])))
        else:
            copies.append(replace(s, value=value, args=tuple([new.get(x, x) for x in s.args])))
        new[s.value] = value
    return copies
