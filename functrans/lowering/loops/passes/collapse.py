"""Merge nested loops over adjacent axes that are always used together.

An elementwise operation on an array of a million rows of 3 has an inner loop of three iterations; as one axis of three
million elements, the same memory is processed at full vector width. Accesses go through declarations with other shapes
and the same storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import ir, queries

_Site = tuple[Any, int]  # a load or a store, and the position of the outer index in it


def collapse(kernel: ir.Kernel) -> ir.Kernel:
    """Merge loops of a kernel, in place; it must not be outlined yet."""
    merged = _Collapse(kernel)
    merged.body(kernel.body)
    views = merged.views_of
    kernel.buffers = [x for b in kernel.buffers for x in (b, *views.get(id(b), ()))]
    return kernel


class _Collapse:
    def __init__(self, kernel: ir.Kernel):
        self.names = {b.name for b in kernel.buffers}
        self.views: dict[tuple[int, tuple[int, ...]], ir.BufferDecl] = {}
        self.views_of: dict[int, list[ir.BufferDecl]] = {}  # by buffer, including views of views
        self.first: dict[int, int] = {}  # by view, the buffer that it views

    def body(self, body: ir.StatementList) -> None:
        for s in body.statements:
            for inner in queries.bodies_of(s):  # innermost loops first
                self.body(inner)
            if type(s) is ir.For:
                self.merge(s)

    def merge(self, outer: ir.For) -> None:
        """Merge a loop with its body, if that is a single suitable loop, whose body is merged already."""
        if len(outer.body.statements) != 1:
            return
        (inner,) = outer.body.statements
        if not isinstance(inner, ir.For):
            return
        n, m = _trips(outer), _trips(inner)
        if n is None or m is None:
            return
        sites = adjacent_uses(inner.body, outer.var, inner.var, m)
        if sites is None:
            return
        for s, place in sites:
            s.buffer = self.view(s.buffer, place)
            s.index = (*s.index[:place], outer.var, *s.index[place + 2 :])
        outer.stop = ir.Extent(n * m)
        outer.body = inner.body
        outer.interruptible |= inner.interruptible
        outer.independent &= inner.independent
        outer.adds = (outer.separate or outer.adds) and (inner.separate or inner.adds)
        outer.separate &= inner.separate

    def view(self, buffer: ir.BufferDecl, place: int) -> ir.BufferDecl:
        """The buffer with the axis at `place` and the next one merged."""
        n, m = buffer.shape[place : place + 2]
        shape = (*buffer.shape[:place], n * m, *buffer.shape[place + 2 :])
        view = self.views.get((id(buffer), shape))
        if view is None:
            name = f"{buffer.name.removesuffix('_flat')}_flat"
            while name in self.names:
                name += "_"
            self.names.add(name)
            view = ir.BufferDecl(name, buffer.dtype, shape, buffer.role, buffer.place)
            self.views[id(buffer), shape] = view
            first = self.first[id(view)] = self.first.get(id(buffer), id(buffer))
            self.views_of.setdefault(first, []).append(view)
        return view


def _trips(loop: ir.For) -> int | None:
    """How often a simple loop runs."""
    plain = loop.start == ir.Extent(0) and not loop.reverse
    return loop.stop.value if plain and isinstance(loop.stop, ir.Extent) else None


def adjacent_uses(body: ir.StatementList, i: ir.Value, j: ir.Value, m: int) -> list[_Site] | None:
    """Where `i` and `j` index adjacent axes, the second with extent `m`; None if either is used in any other way."""
    sites: list[_Site] = []
    for s in queries.walk(body):
        used = [x for x in _all_operands(s) if x is i or x is j]
        if not used:
            continue
        if not isinstance(s, (ir.Load, ir.Store)) or len(used) != 2:
            return None
        place = next((p for p, x in enumerate(s.index) if x is i), len(s.index))
        if place + 1 >= len(s.index) or s.index[place + 1] is not j or s.buffer.shape[place + 1] != m:
            return None
        sites.append((s, place))
    return sites


def _all_operands(s: Any) -> Iterator[Any]:
    for x in queries.operands_of(s):
        yield x.offset if type(x) is ir.Address else x
