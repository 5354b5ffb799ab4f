"""Move numbers out of the code: shapes and literals that would otherwise make a new kernel for each value.

The jaxpr's literals become parameters while the loops are built (`Literals`); constants written by kernel rules (the
coefficients of a polynomial) stay. Extents, strides and offsets become parameters here.

Equal numbers share a parameter only if they must be equal: two axes of 64 are one parameter if a loop runs along both,
or if they are the same axis of the same memory, and two otherwise, so that the same program with batch size 63 has the
same text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ....core.dtypes import register_dtype
from ....core.ir import Literal
from .. import ir, queries
from ..mapping import Mapping

_COMMON = (0.0, 1.0, -1.0, 2.0, 0.5)


class Literals:
    """The float and complex literals of one kernel that become parameters.

    Equal ones share a parameter, except whole numbers, which are often extents that happen to be equal (a mean divides
    by one). Infinities are parameters, too: where LLVM sees ``max(s, -inf if c else x)``, it makes ``s if c else
    max(s, x)``, of which it makes no vectors.
    """

    def __init__(self) -> None:
        self.values: list[float] = []
        self._slots: dict[Any, int] = {}

    def operand(self, literal: Literal) -> ir.Param | None:
        """The parameter for a literal; None if it should stay in the code."""
        dtype = register_dtype(literal.aval.dtype)
        if dtype.kind not in "fc":
            return None
        number = np.asarray(literal.value, dtype).item()
        parts = (number.real, number.imag) if dtype.kind == "c" else (number,)
        if all(p in _COMMON or math.isnan(p) for p in parts):
            return None
        key = literal if parts[0].is_integer() else (repr(number), dtype)
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = len(self.values)
            self.values.extend(parts)
        return ir.Param(slot, dtype)


def outline(kernel: ir.Kernel, specialize_below: int) -> tuple[ir.Kernel, tuple[int, ...]]:
    """The kernel with large extents turned into parameters, and the values of these.

    Parameters
    ----------
    kernel : Kernel
    specialize_below : int
        Extents up to this one stay literals.
    """
    mapping = _Outline(kernel, specialize_below)
    mapping.kernel.ints = len(mapping.values)
    return mapping.kernel, tuple(mapping.values)


class _UnionFind:
    """Sets of numbers that are equal by construction (union-find)."""

    def __init__(self) -> None:
        self.parent: dict[Any, Any] = {}

    def find(self, x: Any) -> Any:
        root = x
        while (up := self.parent.get(root, root)) is not root:
            root = up
        while x is not root:  # shorter ways for the next ones
            self.parent[x], x = root, self.parent[x]
        return root

    def join(self, x: Any, y: Any) -> None:
        x, y = self.find(x), self.find(y)
        if x is not y:
            self.parent[y] = x


class _Outline(Mapping):
    def __init__(self, kernel: ir.Kernel, specialize_below: int):
        self.largest = specialize_below
        self.values: list[int] = []
        self.slots: dict[Any, int] = {}
        self.groups = _UnionFind()
        self.dims = {id(b): [_Dim() for _ in b.shape] for b in kernel.buffers}
        # LLVM sees that elements have the same address, and need no check at run time, if their strides are the same.
        views: dict[Any, list[_Dim]] = {}
        for b in kernel.buffers:
            for dim, other in zip(self.dims[id(b)], views.setdefault((b.place, b.shape), self.dims[id(b)])):
                self.groups.join(other, dim)
        for s in _accesses(kernel.body, {}):
            self.join(*s)
        super().__init__(kernel, self.alone)

    def join(
        self, buffer: ir.BufferDecl, index: tuple[ir.Operand, ...], loops: dict[ir.Value, ir.For]
    ) -> None:
        for n, i, dim in zip(buffer.shape, index, self.dims[id(buffer)]):
            loop = loops.get(i) if type(i) is ir.Value else None
            if loop is not None and loop.start == ir.Extent(0) and loop.stop == ir.Extent(n):
                self.groups.join(dim, loop)

    def param(self, n: int, group: Any) -> ir.Operand:
        if abs(n) <= self.largest:
            return ir.Extent(n)
        slot = None if group is None else self.slots.get(group)
        if slot is None:
            slot = len(self.values)
            self.values.append(n)
            if group is not None:
                self.slots[group] = slot
        return ir.Param(slot, ir.INT64)

    def alone(self, x: Any) -> Any:
        if type(x) is not ir.Extent:
            return x
        return self.number(x) if x.outlined else self.param(x.value, None)

    # --- where `Mapping` meets numbers that belong to a group ----------------------------------------------

    def decl(self, b: ir.BufferDecl) -> ir.BufferDecl:
        shape: list[Any] = []
        for d, (n, dim) in enumerate(zip(b.shape, self.dims[id(b)])):
            if d == 0 and b.dealt:  # one text serves every number of threads
                new: Any = self.number(ir.Extent(n))
            else:
                new = ir.Extent(n) if b.role == "stack" else self.param(n, self.groups.find(dim))
            shape.append(new.value if type(new) is ir.Extent else new)
        return ir.BufferDecl(b.name, b.dtype, tuple(shape), b.role, b.storage)

    def argument(self, a: Any) -> Any:
        if type(a) is ir.Address:
            return ir.Address(self.buffers[id(a.buffer)], self.alone(a.offset))
        return a if isinstance(a, (str, ir.LocalVar)) else self.alone(a)

    def number(self, x: Any) -> ir.Param:
        """A parameter, however small the number."""
        self.values.append(x.value)
        return ir.Param(len(self.values) - 1, ir.INT64)

    def statement(self, s: ir.Statement) -> ir.Statement:
        if type(s) is ir.HostCall:
            # Programs have different numbers.
            return ir.HostCall(self.number(s.number), tuple(map(self.argument, s.refs)), s.reads, s.native)
        if type(s) is not ir.For or type(s.stop) is not ir.Extent:
            return super().statement(s)
        stop = self.number(s.stop) if s.stop.outlined else self.param(s.stop.value, self.groups.find(s))
        team = None if s.team is None else replace(s.team, size=self.alone(s.team.size))
        return replace(s, start=self.alone(s.start), stop=stop, body=self.body(s.body), team=team)


class _Dim:
    """One axis of one declaration."""

    __slots__ = ()


def _accesses(
    body: ir.StatementList, loops: dict[ir.Value, ir.For]
) -> Iterator[tuple[ir.BufferDecl, tuple[ir.Operand, ...], dict[ir.Value, ir.For]]]:
    """The loads and stores, with their enclosing loops."""
    for s in body.statements:
        if type(s) in (ir.Load, ir.Store):
            yield s.buffer, s.index, loops
        elif type(s) is ir.For:
            yield from _accesses(s.body, {**loops, s.var: s})
        else:
            for inner in queries.bodies_of(s):
                yield from _accesses(inner, loops)
