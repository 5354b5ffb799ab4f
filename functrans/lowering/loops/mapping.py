"""Kernels with replaced operands: the basis of `outline` and `split_functions`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, assert_never

from . import ir


class Mapping:
    """A copy of a kernel with every operand replaced by ``f(operand)``; `kernel` is the result.

    Extents of buffer shapes are passed as `Extent` too (except for 'stack' buffers), and may become `Param`.
    Values and local variables are shared with the original.
    """

    def __init__(self, kernel: ir.Kernel, f: Callable[[ir.Operand], ir.Operand]):
        self.f = f
        self.buffers = {id(b): self.decl(b) for b in kernel.buffers}
        self.kernel = ir.Kernel(
            kernel.name, list(self.buffers.values()), self.body(kernel.body), kernel.ints, kernel.floats
        )

    def decl(self, b: ir.BufferDecl) -> ir.BufferDecl:
        """A declaration."""
        shape = b.shape if b.role == "stack" else tuple(self.extent(n) for n in b.shape)
        return ir.BufferDecl(b.name, b.dtype, shape, b.role, b.storage)

    def extent(self, n: Any) -> Any:
        """An extent of a shape."""
        new = self.f(ir.Extent(n) if isinstance(n, int) else n)
        return new.value if type(new) is ir.Extent else new

    def body(self, body: ir.StatementList) -> ir.StatementList:
        """The statements of a block."""
        return ir.StatementList([self.statement(s) for s in body.statements])

    def argument(self, a: Any) -> Any:
        """An argument of a routine."""
        if isinstance(a, (str, ir.LocalVar)):
            return a
        if type(a) is ir.Address:
            return ir.Address(self.buffers[id(a.buffer)], self.f(a.offset))
        return self.f(a)

    def statement(self, s: ir.Statement) -> ir.Statement:
        """One statement."""
        f, buffers = self.f, self.buffers
        match s:
            case ir.Let():
                return ir.Let(s.value, s.op, tuple(map(f, s.args)), s.reassoc)
            case ir.Load():
                return ir.Load(s.value, buffers[id(s.buffer)], tuple(map(f, s.index)), s.part)
            case ir.Store():
                return ir.Store(buffers[id(s.buffer)], tuple(map(f, s.index)), f(s.x), s.part)
            case ir.For():
                team = None if s.team is None else replace(s.team, size=f(s.team.size))
                return replace(s, start=f(s.start), stop=f(s.stop), body=self.body(s.body), team=team)
            case ir.While():
                return ir.While(self.body(s.test), f(s.condition), self.body(s.body), s.brief)
            case ir.If():
                return ir.If(f(s.condition), self.body(s.then), self.body(s.orelse))
            case ir.Declare():
                return ir.Declare(s.var, f(s.init))
            case ir.Set():
                return ir.Set(s.var, f(s.x))
            case ir.Copy():
                return ir.Copy(buffers[id(s.target)], buffers[id(s.source)])
            case ir.Call():
                return ir.Call(s.routine, s.letter, tuple(map(self.argument, s.args)), s.value)
            case ir.Fail():
                return ir.Fail(f(s.condition), s.equation)
            case ir.HostCall():
                return ir.HostCall(f(s.number), tuple(map(self.argument, s.refs)), s.reads, s.native)
            case ir.Reserve():
                return ir.Reserve(buffers[id(s.tape)], f(s.needed), f(s.limit))
            case ir.Mark():
                return ir.Mark(buffers[id(s.counters)], f(s.site), s.place)
            case ir.Get():
                return s
            case _:
                assert_never(s)
