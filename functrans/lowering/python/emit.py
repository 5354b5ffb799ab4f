"""Loop IR to readable Python.

The source takes one NumPy array for each buffer, then the parameters. It is printed for users, can be stepped through
in a debugger, and is the oracle for tests of the LLVM backend. It runs on NumPy scalars, which wrap and round according
to their dtypes. Names such as ``exp`` and ``float32`` come from `functrans.lowering.python.runtime`.

A value used once is written inside the expression that uses it, unless something that it reads is written in between.
"""

from __future__ import annotations

import keyword
import math
from typing import Any

import numpy as np

from ...runtime.records import dataclass
from ..loops import ir, queries
from ..loops.ir import INT64
from .runtime import NAMES

_INFIX = {
    "add": ("+", 5), "sub": ("-", 5), "mul": ("*", 6), "div": ("/", 6), "and": ("&", 3), "or": ("|", 1),
    "xor": ("^", 2), "shl": ("<<", 4), "shr": (">>", 4), "lt": ("<", 0), "le": ("<=", 0), "gt": (">", 0),
    "ge": (">=", 0), "eq": ("==", 0), "ne": ("!=", 0),
}  # fmt: skip
#: NumPy's complex scalars and arrays order NaN differently.
_ORDER = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_SELECT, _COMPARE, _UNARY, _ATOM = -1, 0, 7, 9
#: dtypes for which Python numbers compute as NumPy's do (except for division and overflow, which `_SourceWriter.typed`
#: guards).
_NATURAL = ("bool", "int64", "float64", "complex128")
_WIDTH = 72


@dataclass
class _Expr:
    """Source text, its binding strength, whether it may be a Python number, and the memory that it reads."""

    text: str
    binding: int = _ATOM
    plain: bool = False
    reads: frozenset[Any] = frozenset()

    def at(self, binding: int) -> str:
        """The text, in parentheses if it binds less tightly."""
        return self.text if self.binding >= binding else f"({self.text})"


def emit_python(kernel: ir.Kernel, *, explicit: bool = False) -> str:
    """The source of a function with the kernel's name.

    Parameters
    ----------
    kernel : Kernel
    explicit : bool
        Whether to round and wrap after each operation on a narrow dtype, for compilers that promote as C does (Numba).

    Examples
    --------
    >>> from functrans.lowering.loops.builder import StatementBuilder
    >>> b = StatementBuilder("total")
    >>> x = b.buffer("x", np.dtype("f8"), (30,), "in")
    >>> y = b.buffer("y", np.dtype("f8"), (), "out")
    >>> total = b.local(b.const(0.0, x.dtype))
    >>> with b.loop(30) as i:
    ...     total.set(total.get() + b.call("exp", -b.load(x, (i,))) * 2.0)
    >>> b.store(y, (), total.get())
    >>> print(emit_python(b.finish()))
    def total(x, y):
        # x: float64[30]; y: float64[] (out)
        status = 0
        s = 0.0
        for i in range(30):
            s = s + exp(-x[i]) * 2.0
        y[()] = s
        return status
    """
    return _SourceWriter(kernel, explicit).text()


class _SourceWriter:
    def __init__(self, kernel: ir.Kernel, explicit: bool):
        self.kernel = kernel
        self.explicit = explicit
        self.lines: list[str] = []
        self.indent = "    "
        self.taken = {"status", *NAMES, *keyword.kwlist}
        self.exprs: dict[Any, _Expr] = {}
        self.pending: dict[ir.Value, _Expr] = {}
        self.uses: dict[ir.Value, int] = {}
        self.boxed: set[ir.LocalVar] = set()  # locals written by a routine: arrays of one element
        self.buffers = {id(b): self.name(b.name) for b in kernel.buffers}
        self.count(kernel.body)
        self.fails = any(type(s) is ir.Fail for s in queries.walk(kernel.body))

    def count(self, body: ir.StatementList) -> None:
        """How often each value is used; a use inside a block counts as several."""
        for s in body.statements:
            for x in queries.operands_of(s):
                x = x.offset if type(x) is ir.Address else x
                if type(x) is ir.Value:
                    self.uses[x] = self.uses.get(x, 0) + 1
                elif type(x) is ir.LocalVar:
                    self.boxed.add(x)
            for inner in queries.bodies_of(s):
                self.count(inner)

    def name(self, base: str) -> str:
        name, n = base, 1
        while name in self.taken:
            n += 1
            name = f"{base}{n}"
        self.taken.add(name)
        return name

    def text(self) -> str:
        k = self.kernel
        arrays = [self.buffers[id(b)] for b in k.buffers if b.role not in ("stack", "tape")]
        numbers = [f"n{i}" for i in range(k.ints)] + [f"p{i}" for i in range(k.floats)]
        self.taken.update(numbers)
        kinds = [self.describe(b) for b in k.buffers if b.role not in ("stack", "tape")]
        self.lines = [f"def {k.name}({', '.join(arrays + numbers)}):", *self.comment(kinds), "    status = 0"]
        for b in k.buffers:
            if b.role == "stack":
                self.line(f"{self.buffers[id(b)]} = empty({b.shape!r}, {b.dtype.name})")
        self.body(k.body)
        self.line("return status")
        return "\n".join(self.lines)

    def describe(self, b: ir.BufferDecl) -> str:
        shape = ",".join(str(n) if isinstance(n, int) else f"n{n.slot}" for n in b.shape)
        return f"{self.buffers[id(b)]}: {b.dtype.name}[{shape}]" + ("" if b.role == "in" else f" ({b.role})")

    def comment(self, kinds: list[str]) -> list[str]:
        lines = ["    #"]
        for i, kind in enumerate(kinds):
            if len(lines[-1]) + len(kind) > 100:
                lines.append("    #")
            lines[-1] += f" {kind}" + (";" if i + 1 < len(kinds) else "")
        return lines

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    # --- expressions -----------------------------------------------------------------------------------

    def operand(self, x: Any) -> _Expr:
        if type(x) is ir.Value:
            expr = self.pending.pop(x, None)
            return expr if expr is not None else self.exprs[x]
        if type(x) is ir.Extent:
            return _Expr(str(x.value), _UNARY if x.value < 0 else _ATOM, True)
        if type(x) is ir.Param:
            return self.param(x)
        return self.const(x)

    def param(self, x: ir.Param) -> _Expr:
        if x.dtype == INT64:
            return _Expr(f"n{x.slot}", plain=True)
        if x.dtype.kind == "c":
            return _Expr(f"{x.dtype.name}(complex(p{x.slot}, p{x.slot + 1}))")
        return (
            _Expr(f"p{x.slot}", plain=True) if x.dtype.itemsize == 8 else _Expr(f"{x.dtype.name}(p{x.slot})")
        )

    def const(self, x: ir.Const) -> _Expr:
        text, kind = repr(x.value), x.dtype.kind
        if kind == "c":
            text = text if text[0] == "(" else f"({text})"
            parts = x.value.real, x.value.imag
            signed_zero = 0.0 in parts and any(math.copysign(1.0, p) < 0 for p in parts)
            if signed_zero or not math.isfinite(sum(parts)):
                # -0-0j is an expression whose real part is +0, and infj is a name
                text = f"complex({parts[0]!r}, {parts[1]!r})"
        if self.explicit and x.dtype.name not in _NATURAL:
            return _Expr(f"{x.dtype.name}({text})")
        # The difference from an extent: combined with a Python int, this must wrap.
        return _Expr(text, _UNARY if text[0] == "-" else _ATOM, True)

    def typed(self, x: _Expr, dtype: np.dtype) -> _Expr:
        """`x` as a NumPy scalar."""
        return _Expr(f"{dtype.name}({x.text})", reads=x.reads) if x.plain else x

    def index(self, index: tuple[Any, ...]) -> tuple[str, frozenset[Any]]:
        exprs = [self.operand(i) for i in index]
        text = ", ".join(e.text for e in exprs) if exprs else "()"
        return text, frozenset().union(*(e.reads for e in exprs))

    def let(self, s: ir.Let) -> _Expr:
        args = [self.operand(a) for a in s.args]
        dtype = s.args[-1].dtype
        expr = self.operation(s, args, dtype)
        expr.reads = frozenset().union(*(a.reads for a in args))
        narrow = s.value.dtype.name not in _NATURAL and s.value.dtype.kind in "iuf"
        if self.explicit and narrow and s.op not in ("cast", "select"):
            expr = _Expr(f"{s.value.dtype.name}({expr.text})", reads=expr.reads)
        return expr

    def operation(self, s: ir.Let, args: list[_Expr], dtype: np.dtype) -> _Expr:
        op = s.op
        plain = all(a.plain for a in args)
        if op == "select":
            c, x, y = args
            # A mixture of a literal and a NumPy scalar may be either, so it is guarded like a literal.
            text = f"{x.at(_COMPARE)} if {c.at(_COMPARE)} else {y.at(_SELECT)}"
            return _Expr(text, _SELECT, x.plain or y.plain)
        if op == "cast":
            return self.cast(args[0], dtype, s.value.dtype)
        if plain and not self.natural(s, dtype):
            args = [self.typed(args[0], dtype), *args[1:]]
            plain = False
        if op in _ORDER and dtype.kind == "c":
            return _Expr(f"{_ORDER[op]}({args[0].text}, {args[1].text})")
        if op in _INFIX:
            sign, binding = _INFIX[op]
            left = _COMPARE + 1 if binding == _COMPARE else binding
            return _Expr(f"{args[0].at(left)} {sign} {args[1].at(binding + 1)}", binding, plain)
        if op == "neg":
            return _Expr(f"-{args[0].at(_UNARY)}", _UNARY, plain)
        if op == "not":
            if dtype.kind == "b":
                return _Expr(f"not {args[0].at(_COMPARE)}", _SELECT, True)
            return _Expr(f"~{args[0].at(_UNARY)}", _UNARY, plain)
        if op in ("real", "imag") and dtype.kind == "c":
            return _Expr(f"{args[0].at(_ATOM)}.{op}", _ATOM, plain)
        if op == "opaque":
            return args[0]
        return _Expr(
            f"{self.function(op, dtype)}({', '.join(a.text for a in args)})", _ATOM, plain and dtype == INT64
        )

    def natural(self, s: ir.Let, dtype: np.dtype) -> bool:
        """Whether Python numbers give the same result as NumPy scalars."""
        if dtype == INT64:
            return all(type(a) is not ir.Const or s.op in ("shl", "shr") for a in s.args)
        return dtype.name in _NATURAL and s.op not in ("div", "pow")

    def function(self, op: str, dtype: np.dtype) -> str:
        if op in ("bits", "from_bits"):
            return f"{op}{dtype.itemsize * 8}"
        if op in ("min", "max"):
            return op if dtype.kind in "iu" else {"min": "minimum", "max": "maximum"}[op]
        return {"pow": "power", "complex": f"make_complex{dtype.itemsize * 16}"}.get(op, op)

    def cast(self, x: _Expr, source: np.dtype, target: np.dtype) -> _Expr:
        if target.kind == "b":
            return _Expr(f"{x.at(_COMPARE + 1)} != 0", _COMPARE, True)
        if source.kind == "c" and target.kind != "c":
            x = _Expr(f"{x.at(_ATOM)}.real")
        return _Expr(f"{target.name}({x.text})")

    # --- statements ------------------------------------------------------------------------------------

    def define(self, value: ir.Value, e: _Expr) -> None:
        """Keep an expression for its one use, or give it a name."""
        uses = self.uses.get(value, 0)
        if uses == 0 and not e.reads:
            return
        if uses == 1 and len(e.text) < _WIDTH:
            self.pending[value] = e
        else:
            self.assign(value, e)

    def assign(self, value: ir.Value, e: _Expr) -> None:
        name = self.name(f"t{len(self.exprs)}")
        self.line(f"{name} = {e.text}")
        self.exprs[value] = _Expr(name, plain=e.plain)

    def flush(self, *places: Any) -> None:
        """Assign names to pending expressions that read memory about to be written (to all, if none is named)."""
        for value, e in list(self.pending.items()):
            if not places or any(p in e.reads for p in places):
                del self.pending[value]
                self.assign(value, e)

    def body(self, body: ir.StatementList) -> None:
        for s in body.statements:
            _EMIT[type(s)](self, s)

    def nested(self, head: str, body: ir.StatementList) -> None:
        self.line(head)
        outer, self.indent = self.indent, self.indent + "    "
        start = len(self.lines)
        self.body(body)
        self.flush()
        if len(self.lines) == start:
            self.line("pass")
        self.indent = outer

    def emit_let(self, s: ir.Let) -> None:
        self.define(s.value, self.let(s))

    def emit_load(self, s: ir.Load) -> None:
        index, reads = self.index(s.index)
        text = f"{self.memory(s.buffer)}[{index}]"
        self.define(s.value, _Expr(text, reads=reads | {s.buffer.place}))

    def emit_store(self, s: ir.Store) -> None:
        index, _ = self.index(s.index)
        x = self.operand(s.x)
        self.flush(s.buffer.place)
        self.line(f"{self.memory(s.buffer)}[{index}] = {x.text}")

    def emit_for(self, s: ir.For) -> None:
        start, stop = self.operand(s.start), self.operand(s.stop)
        self.flush()
        depth = len(self.indent) // 4 - 1
        name = "ijklmn"[depth] if depth < 6 else f"i{depth}"
        name = name if name not in self.taken else self.name("i")
        self.taken.add(name)
        bounds = stop.text if start.text == "0" else f"{start.text}, {stop.text}"
        if s.reverse:
            bounds = f"{stop.at(5)} - 1, {start.at(5)} - 1, -1"
        self.exprs[s.var] = _Expr(name, plain=True)
        if s.team is not None:
            self.exprs[s.team.worker] = _Expr("0", plain=True)
        self.nested(f"for {name} in range({bounds}):", s.body)
        if self.fails and any(type(x) is ir.HostCall for x in queries.walk(s.body)):
            self.line("    if status:")
            self.line("        break")
        self.taken.discard(name)

    def emit_while(self, s: ir.While) -> None:
        self.flush()
        self.line("while True:")
        outer, self.indent = self.indent, self.indent + "    "
        if any(type(x) is ir.Fail for part in (s.test, s.body) for x in queries.walk(part)):
            self.line("if status:")
            self.line("    break")
        self.body(s.test)
        condition = self.operand(s.condition)
        self.flush()
        self.line(f"if not {condition.at(_UNARY)}:")
        self.line("    break")
        self.body(s.body)
        self.flush()
        self.indent = outer

    def emit_if(self, s: ir.If) -> None:
        condition = self.operand(s.condition)
        self.flush()
        self.nested(f"if {condition.text}:", s.then)
        if s.orelse.statements:
            self.nested("else:", s.orelse)

    def emit_local(self, s: ir.Declare) -> None:
        x = self.operand(s.init)
        if s.var in self.boxed:
            name = self.name("info")
            self.line(f"{name} = array([{x.text}], {s.var.dtype.name})")
            self.exprs[s.var] = _Expr(f"{name}[0]")
        else:
            name = self.name("s")
            self.line(f"{name} = {self.typed_unless_natural(x, s.var.dtype).text}")
            self.exprs[s.var] = _Expr(name)

    def typed_unless_natural(self, x: _Expr, dtype: np.dtype) -> _Expr:
        return x if dtype.name in _NATURAL else self.typed(x, dtype)

    def emit_get(self, s: ir.Get) -> None:
        plain = s.var.dtype.name in _NATURAL
        self.define(s.value, _Expr(self.exprs[s.var].text, plain=plain, reads=frozenset((s.var,))))

    def emit_set(self, s: ir.Set) -> None:
        x = self.typed_unless_natural(self.operand(s.x), s.var.dtype)
        self.flush(s.var)
        self.line(f"{self.exprs[s.var].text} = {x.text}")

    def emit_copy(self, s: ir.Copy) -> None:
        if s.target.place == s.source.place:
            return
        self.flush(s.target.place)
        target, source = self.buffers[id(s.target)], self.buffers[id(s.source)]
        reshaped = "" if s.target.shape == s.source.shape else f".reshape({target}.shape)"
        self.line(f"{target}[...] = {source}{reshaped}")

    def memory(self, b: ir.BufferDecl) -> str:
        """The expression for a buffer's array."""
        if b.role != "tape":
            return self.buffers[id(b)]
        shape = "".join(f"{n if isinstance(n, int) else f'n{n.slot}'}, " for n in b.shape[1:])
        return f"records({self.header(b)}, ({shape}), '{b.dtype.name}')"

    def header(self, tape: ir.BufferDecl) -> str:
        """The expression for the header of a tape's pool."""
        declaration = next(b for b in self.kernel.buffers if b.place == tape.place and b.role != "tape")
        return self.buffers[id(declaration)]

    def emit_host_call(self, s: ir.HostCall) -> None:
        args = [self.operand(s.number).text, *map(self.argument, s.refs)]
        self.flush()
        if self.fails:
            self.line("if not status:")
        self.line(f"{'    ' * self.fails}host({', '.join(args)})")

    def emit_reserve(self, s: ir.Reserve) -> None:
        needed, limit = self.operand(s.needed), self.operand(s.limit)
        self.flush()
        size = [
            str(s.tape.dtype.itemsize),
            *(n if isinstance(n, int) else f"n{n.slot}" for n in s.tape.shape[1:]),
        ]
        call = f"reserve({self.header(s.tape)}, {needed.text}, max({' * '.join(map(str, size))}, 1), {limit.text})"
        self.line(f"if not {call}:")
        self.line(f"    return status | {ir.TAPE_FULL}")

    def emit_mark(self, s: ir.Mark) -> None:
        """Nothing: the whole kernel is timed (see `run.timing`)."""

    def emit_fail(self, s: ir.Fail) -> None:
        condition = self.operand(s.condition)
        self.line(f"if {condition.text}:")
        self.line(f"    status |= 1 << {min(s.equation, ir.LAST_EQUATION)}")

    def emit_call(self, s: ir.Call) -> None:
        args = [self.argument(a) for a in s.args]
        self.flush()
        call = f"{s.letter}{s.routine}({', '.join(args)})"
        if s.value is None:
            self.line(call)
        else:
            self.assign(s.value, _Expr(call))

    def argument(self, a: Any) -> str:
        if isinstance(a, str):
            return repr(a)
        if type(a) is ir.LocalVar:
            return self.exprs[a].text.removesuffix("[0]")
        if type(a) is ir.Address:
            offset = self.operand(a.offset).text
            name = self.buffers[id(a.buffer)]
            return name if offset == "0" else f"({name}, {offset})"
        return self.typed_unless_natural(self.operand(a), a.dtype).text


_EMIT: dict[type, Any] = {
    ir.Let: _SourceWriter.emit_let,
    ir.Load: _SourceWriter.emit_load,
    ir.Store: _SourceWriter.emit_store,
    ir.For: _SourceWriter.emit_for,
    ir.While: _SourceWriter.emit_while,
    ir.If: _SourceWriter.emit_if,
    ir.Declare: _SourceWriter.emit_local,
    ir.Get: _SourceWriter.emit_get,
    ir.Set: _SourceWriter.emit_set,
    ir.Copy: _SourceWriter.emit_copy,
    ir.Fail: _SourceWriter.emit_fail,
    ir.Call: _SourceWriter.emit_call,
    ir.Reserve: _SourceWriter.emit_reserve,
    ir.HostCall: _SourceWriter.emit_host_call,
    ir.Mark: _SourceWriter.emit_mark,
}
