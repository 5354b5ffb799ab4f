"""Memory with a row for each thread or each chunk of a divided loop, and accesses to a row."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm, prod
from typing import Any

from ....core.kernel import CACHE_LINE
from .. import ir, queries


def shapes_of_rows(count: int, decls: Sequence[ir.BufferDecl]) -> list[tuple[int, ...]]:
    """The shapes of memory with a row for each of so many threads or chunks, at least a cache line apart.

    Parameters
    ----------
    count : int
    decls : sequence of BufferDecl
        The declarations of one storage.
    """
    inner = [max(prod(b.shape[1:]), 1) for b in decls]
    unit = lcm(*inner)
    gap = -(-CACHE_LINE // (unit * decls[0].dtype.itemsize)) * unit
    if any(not b.shape for b in decls):
        return [(count, *b.shape) for b in decls]
    return [(count, b.shape[0] + gap // n, *b.shape[1:]) for b, n in zip(decls, inner)]


def with_rows(body: ir.StatementList, rows: dict[ir.BufferDecl, ir.BufferDecl], worker: ir.Value) -> None:
    """Address the row of a thread in each access to some buffers."""
    statements: list[ir.Statement] = []
    for s in body.statements:
        for inner in queries.bodies_of(s):
            with_rows(inner, rows, worker)
        if isinstance(s, ir.Load | ir.Store) and s.buffer in rows:
            s.buffer, s.index = rows[s.buffer], (worker, *s.index)
        elif type(s) is ir.Copy and (s.target in rows or s.source in rows):
            if s.target.place != s.source.place:
                statements += copied(s, rows, rows, worker)
            continue
        elif type(s) is ir.Call:
            args: list[Any] = []
            for a in s.args:
                if type(a) is ir.Address and a.buffer in rows:
                    row, place = ir.Value(ir.INT64), ir.Value(ir.INT64)
                    step = prod(rows[a.buffer].shape[1:])
                    statements.append(ir.Let(row, "mul", (worker, ir.Extent(step))))
                    statements.append(ir.Let(place, "add", (row, a.offset)))
                    a = ir.Address(rows[a.buffer], place)
                args.append(a)
            s.args = tuple(args)
        statements.append(s)
    body.statements = statements


def copied(
    s: ir.Copy,
    sources: dict[ir.BufferDecl, ir.BufferDecl],
    targets: dict[ir.BufferDecl, ir.BufferDecl],
    worker: ir.Value,
) -> list[Any]:
    """The loops that copy a buffer, or a thread's row of one."""
    index = tuple([ir.Value(ir.INT64) for _ in s.target.shape])
    element = ir.Value(s.source.dtype)

    source, target = sources.get(s.source, s.source), targets.get(s.target, s.target)
    at = [(worker, *index) if b.dealt else index for b in (source, target)]
    statements: list[Any] = [ir.Load(element, source, at[0]), ir.Store(target, at[1], element)]
    return nest(index, s.target.shape, statements)


def nest(index: tuple[ir.Value, ...], shape: tuple[int, ...], body: list[ir.Statement]) -> list[ir.Statement]:
    """Loops over all elements of an array."""
    for i, n in zip(reversed(index), reversed(shape)):
        body = [ir.For(i, ir.Extent(0), ir.Extent(n), ir.StatementList(body), independent=True)]
    return body
