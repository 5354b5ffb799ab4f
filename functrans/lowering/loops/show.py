"""The text of a kernel: deterministic, with canonical names; equal text means equal machine code."""

from __future__ import annotations

from typing import Any

from . import ir

_SHORT = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c"}


def short(dtype: Any) -> str:
    """``f64`` for float64 and so on."""
    name = dtype.name
    stem = name.rstrip("0123456789")
    return _SHORT.get(stem, stem) + name[len(stem) :]


def show(kernel: ir.Kernel) -> str:
    """The kernel's text, without the names of the kernel and its buffers.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.lowering.loops.builder import StatementBuilder
    >>> b = StatementBuilder("double")
    >>> x = b.buffer("x", np.dtype("f8"), (30,), "in")
    >>> y = b.buffer("y", np.dtype("f8"), (30,), "out")
    >>> with b.loop(30) as i:
    ...     b.store(y, (i,), b.load(x, (i,)) * 2.0)
    >>> print(show(b.finish()))
    kernel
    in b0: f64[30] @0
    out b1: f64[30] @1
    for v0 in 0..30:
      v1:f64 = b0[v0]
      v2:f64 = mul v1 2.0:f64
      b1[v0] = v2
    """
    return "\n".join(_KernelPrinter(kernel).lines)


class _KernelPrinter:
    def __init__(self, kernel: ir.Kernel):
        self.values: dict[ir.Value, str] = {}
        self.locals: dict[ir.LocalVar, str] = {}
        self.buffers: dict[int, str] = {}
        self.lines = [
            "kernel" + (f" ints={kernel.ints} floats={kernel.floats}" if kernel.ints or kernel.floats else "")
        ]
        places: dict[str, int] = {}
        for b in kernel.buffers:
            self.declare(b, places.setdefault(b.place, len(places)))
        self.body(kernel.body, "")

    def declare(self, b: ir.BufferDecl, place: int) -> None:
        name = self.buffers[id(b)] = f"b{len(self.buffers)}"
        shape = ",".join(
            n if isinstance(n, str) else str(n) if isinstance(n, int) else self.operand(n) for n in b.shape
        )
        self.lines.append(f"{b.role} {name}: {short(b.dtype)}[{shape}] @{place}")

    def operand(self, x: Any) -> str:
        kind = type(x)
        if kind is ir.Value:
            return self.values[x]
        if kind is ir.Extent:
            return str(x.value)
        if kind is ir.Param:
            return f"p{x.slot}:{short(x.dtype)}"
        if kind is ir.Const:
            return f"{x.value!r}:{short(x.dtype)}"
        if kind is ir.LocalVar:
            return f"&{self.locals[x]}"
        if kind is ir.Address:
            return f"&{self.buffers[id(x.buffer)]}+{self.operand(x.offset)}"
        return repr(x)

    def element(self, buffer: ir.BufferDecl, index: tuple[Any, ...], part: int | None) -> str:
        suffix = "" if part is None else (".real", ".imag")[part]
        return f"{self.buffers[id(buffer)]}[{','.join(map(self.operand, index))}]{suffix}"

    def define(self, value: ir.Value) -> str:
        name = self.values[value] = f"v{len(self.values)}"
        return f"{name}:{short(value.dtype)}"

    def body(self, body: ir.StatementList, indent: str) -> None:
        out, show = self.lines, self.operand
        for s in body.statements:
            match s:
                case ir.Let():
                    args = " ".join(map(show, s.args))
                    out.append(
                        f"{indent}{self.define(s.value)} = {s.op}{' reassoc' if s.reassoc else ''} {args}"
                    )
                case ir.Load():
                    source = self.element(s.buffer, s.index, s.part)
                    out.append(f"{indent}{self.define(s.value)} = {source}")
                case ir.Store():
                    out.append(f"{indent}{self.element(s.buffer, s.index, s.part)} = {show(s.x)}")
                case ir.Declare():
                    name = self.locals[s.var] = f"l{len(self.locals)}"
                    out.append(f"{indent}local {name}:{short(s.var.dtype)} = {show(s.init)}")
                case ir.Get():
                    out.append(f"{indent}{self.define(s.value)} = {self.locals[s.var]}")
                case ir.Set():
                    out.append(f"{indent}{self.locals[s.var]} = {show(s.x)}")
                case ir.For():
                    bounds = f"{show(s.start)}..{show(s.stop)}{' reverse' if s.reverse else ''}"
                    bounds += " interruptible" if s.interruptible else ""
                    bounds += " independent" if s.independent else ""
                    self.define(s.var)
                    if s.team is not None:
                        self.define(s.team.worker)
                        bounds += f" team {self.values[s.team.worker]} of {show(s.team.size)}"
                        bounds += " uneven" if s.team.uneven else ""
                    out.append(f"{indent}for {self.values[s.var]} in {bounds}:")
                    self.body(s.body, indent + "  ")
                case ir.While():
                    out.append(f"{indent}while{' brief' if s.brief else ''}:")
                    self.body(s.test, indent + "  ")
                    out.append(f"{indent}do if {show(s.condition)}:")
                    self.body(s.body, indent + "  ")
                case ir.If():
                    out.append(f"{indent}if {show(s.condition)}:")
                    self.body(s.then, indent + "  ")
                    if s.orelse.statements:
                        out.append(f"{indent}else:")
                        self.body(s.orelse, indent + "  ")
                case ir.Copy():
                    out.append(f"{indent}copy {self.buffers[id(s.target)]} {self.buffers[id(s.source)]}")
                case ir.Call():
                    args = " ".join(map(show, s.args))
                    result = "" if s.value is None else f"{self.define(s.value)} = "
                    out.append(f"{indent}{result}{s.letter}{s.routine} {args}")
                case ir.HostCall():
                    refs = " ".join(map(show, s.refs))
                    kind = "native" if s.native else "host"
                    out.append(f"{indent}{kind} {show(s.number)} {refs} reads {s.reads}")
                case ir.Reserve():
                    out.append(f"{indent}reserve {self.buffers[id(s.tape)]} {show(s.needed)} {show(s.limit)}")
                case ir.Mark():
                    out.append(f"{indent}mark {s.place} {self.buffers[id(s.counters)]} {show(s.site)}")
                case ir.Fail():
                    out.append(f"{indent}fail {s.equation} if {show(s.condition)}")
