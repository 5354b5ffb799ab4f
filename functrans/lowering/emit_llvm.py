"""Loop IR to LLVM text.

A kernel becomes two functions. ``NAME`` is the entry, ``i64 (i64 arrays, i64 numbers)``: `arrays` is the
address of a Python tuple of ndarrays, whose data pointers it reads, and `numbers` that of the parameter
words. It calls ``NAME.body``, which is not inlined (an inlined copy would be optimised twice and lose its
vector width) and whose pointers do not alias.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import llvm_ops as ops
from . import loopir as ir
from .blas import C_PREFIX, symbol
from .complex_parts import C_FUNCTIONS, has_complex, split_complex
from .maths import LIBM, PURE, Maths
from .parts import PartCall, split
from .polling import NEEDED_BY_HOST, Countdown, is_innermost, is_long, work_of

#: Where CPython keeps the items of a tuple and NumPy the data pointer of an array (`entry` checks it).
TUPLE_ITEMS = tuple.__basicsize__
ARRAY_DATA = object.__basicsize__
#: Loops of at most so many rounds may be unrolled.
SHORT = 32
#: How C's complex numbers come back, by size in bytes (outside of Windows).
COMPLEX = {
    16: "{ double, double }",
    8: "<2 x float>" if platform.machine() in ("x86_64", "AMD64") else "{ float, float }",
}


@dataclass(frozen=True)
class LLVMKernel:
    """Text of a module, its entry's name, and the BLAS and special-function symbols that it needs."""

    text: str
    entry: str
    symbols: frozenset[str]


def emit_llvm(kernel: ir.Kernel, name: str, *, strict: bool = False) -> LLVMKernel:
    """The LLVM module of an outlined kernel.

    Parameters
    ----------
    kernel : Kernel
    name : str
        The symbol of the entry, unique in the process.
    strict : bool
        No contraction, and the C library's scalar functions everywhere.
    """
    if has_complex(kernel):
        kernel = split_complex(kernel)
    return _Function(kernel, name, strict).module()


#: Makes room in a pool: twice as much as before, as far as the limit allows.
RESERVE = """define internal i1 @functrans.reserve(ptr captures(none) %h, i64 %needed, i64 %record, i64 %limit)
noinline cold {
  %capacity = getelementptr i64, ptr %h, i64 1
  %old = load i64, ptr %capacity
  %double = shl i64 %old, 1
  %more = call i64 @llvm.smax.i64(i64 %double, i64 %needed)
  %least = call i64 @llvm.smax.i64(i64 %more, i64 64)
  %size = call i64 @llvm.smax.i64(i64 %record, i64 1)
  %most = sdiv i64 %limit, %size
  %wanted = call i64 @llvm.smin.i64(i64 %least, i64 %most)
  %fits = icmp sle i64 %needed, %wanted
  br i1 %fits, label %grow, label %full
grow:
  %address = load ptr, ptr %h
  %bytes = mul i64 %wanted, %size
  %new = call ptr @realloc(ptr %address, i64 %bytes)
  %none = icmp eq ptr %new, null
  br i1 %none, label %full, label %done
done:
  store ptr %new, ptr %h
  store i64 %wanted, ptr %capacity
  ret i1 true
full:
  ret i1 false
}"""


class _Function:
    """Emits one kernel; implements `llvm_ops.Emitter`."""

    def __init__(self, kernel: ir.Kernel, name: str, strict: bool, whole: _Function | None = None):
        self.kernel = kernel
        self.name = name
        self.strict = strict
        self.fast = "" if strict else "contract "
        self.head: list[str] = []  # allocas and what is computed once
        self.lines: list[str] = []
        self.count = 0
        self.is_entry = False  # whether parameters are read from memory
        # What belongs to the module, shared by the functions of a kernel in parts.
        self.library: Maths = Maths(strict) if whole is None else whole.library
        self.globals: dict[str, str] = {} if whole is None else whole.globals
        self.symbols: set[str] = set() if whole is None else whole.symbols
        self.loops: list[str] = [] if whole is None else whole.loops  # the hints of each
        self.label = "entry"
        self._countdown: Countdown | None = None
        self.accumulators = 0  # variables that the innermost loop around updates
        self.values: dict[ir.Value, str] = {}
        self.locals: dict[ir.LocalVar, str] = {}
        self.storages = kernel.storages
        self.bases: dict[str, str] = {place: f"%s{i}" for i, place in enumerate(self.storages)}

    # --- pieces ----------------------------------------------------------------------------------------

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def new(self, code: str) -> str:
        """Append ``name = code`` and return the name."""
        name = self.fresh()
        self.lines.append(f"  {name} = {code}")
        return name

    def alloca(self, code: str) -> str:
        """A slot in the frame."""
        name = self.fresh()
        self.head.append(f"  {name} = alloca {code}")
        return name

    def maths(self, name: str, dtype: np.dtype, args: list[str]) -> str:
        """A call of a mathematical function."""
        t = ops.llvm_type(dtype)
        function = self.library.use(name, dtype, self.accumulators >= 2)
        code = f"call {t} @{function.symbol}({', '.join(f'{t} {a}' for a in args)}){function.attributes}"
        return self.new(code)

    def operand(self, x: Any) -> str:
        kind = type(x)
        if kind is ir.Value:
            return self.values[x]
        if kind is ir.Extent:
            return str(x.value)
        if kind is ir.Const:
            return ops.literal(x.value, x.dtype)
        return self.parameter(x)

    def parameter(self, x: ir.Param) -> str:
        if self.is_entry:
            return self.word(x)
        if x.dtype == ir.INT64:
            return f"%i{x.slot}"
        return f"%f{x.slot}" if x.dtype == np.float64 else f"%g{x.slot}"

    def extent(self, n: Any) -> str:
        return str(n) if isinstance(n, int) else self.operand(n)

    def address(self, buffer: ir.BufferDecl, index: tuple[Any, ...], part: int | None) -> str:
        """The address of an element."""
        linear: Any = None
        for extent, i in zip(buffer.shape, index):
            here = self.operand(i)
            if linear is None or linear == "0":
                linear = here
            else:
                scaled = self.new(f"mul i64 {linear}, {self.extent(extent)}")
                linear = scaled if here == "0" else self.new(f"add i64 {scaled}, {here}")
        return self.element(buffer, linear or "0", part)

    def element(self, buffer: ir.BufferDecl, linear: str, part: int | None = None, base: str = "") -> str:
        """The address of element number `linear`, or of a part of it."""
        base = base or self.bases[buffer.place]
        if buffer.role == "tape":
            base = self.new(f"load ptr, ptr {base}")
        if linear == "0" and not part:
            return base
        if buffer.dtype.kind != "c":
            return self.new(
                f"getelementptr inbounds {ops.memory_type(buffer.dtype)}, ptr {base}, i64 {linear}"
            )
        t = "float" if buffer.dtype.itemsize == 8 else "double"
        return self.new(f"getelementptr inbounds {{ {t}, {t} }}, ptr {base}, i64 {linear}, i32 {part or 0}")

    # --- statements ------------------------------------------------------------------------------------

    def block(self, block: ir.Block) -> None:
        for s in block.statements:
            _EMIT[type(s)](self, s)

    def let(self, s: ir.Let) -> None:
        args = [self.operand(a) for a in s.args]
        if s.op in C_FUNCTIONS:
            found = self.c_function(s.op, args)
        elif s.op in ("real", "imag") and s.args[0].dtype.kind == "c":
            found = self.part(args[0], s.args[0].dtype, s.op == "imag")
        elif s.op == "cast":
            found = ops.cast(self, args[0], s.args[0].dtype, s.value.dtype)
        elif s.op == "select":
            found = ops.select(self, s.value.dtype, args)
        else:
            found = ops.operation(self, s.op, args, s.args[0].dtype, s.reassoc)
        self.values[s.value] = found

    def c_function(self, name: str, args: list[str]) -> str:
        """A C function of complex doubles, whose parts travel in registers of their own."""
        ours = C_PREFIX + name
        self.symbols.add(ours)
        self.globals[ours] = f"declare {COMPLEX[16]} @{ours}({', '.join(['double'] * len(args))})"
        return self.new(f"call {COMPLEX[16]} @{ours}({', '.join(f'double {a}' for a in args)}){PURE}")

    def part(self, x: str, dtype: np.dtype, imag: bool) -> str:
        """A part of the complex number that a C function returned."""
        t = COMPLEX[dtype.itemsize]
        return self.new(
            f"extractelement {t} {x}, i32 {int(imag)}"
            if t[0] == "<"
            else f"extractvalue {t} {x}, {int(imag)}"
        )

    def load(self, s: ir.Load) -> None:
        t, align = ops.memory_type(s.value.dtype), s.value.dtype.itemsize
        found = self.new(f"load {t}, ptr {self.address(s.buffer, s.index, s.part)}, align {align}")
        self.values[s.value] = self.new(f"icmp ne i8 {found}, 0") if s.value.dtype.kind == "b" else found

    def store(self, s: ir.Store) -> None:
        x, dtype = self.operand(s.x), s.x.dtype
        if dtype.kind == "b":
            x = self.new(f"zext i1 {x} to i8")
        target = self.address(s.buffer, s.index, s.part)
        self.lines.append(f"  store {ops.memory_type(dtype)} {x}, ptr {target}, align {dtype.itemsize}")

    def mark(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def loop(self, s: ir.For) -> None:
        start, stop = self.operand(s.start), self.operand(s.stop)
        self.count += 1
        n = self.count
        entered = self.new(f"icmp slt i64 {start}, {stop}")
        self.lines.append(f"  br i1 {entered}, label %pre{n}, label %end{n}")
        self.mark(f"pre{n}")
        last = self.new(f"sub i64 {self.new(f'add i64 {start}, {stop}')}, 1") if s.reverse else ""
        if is_long(s) and is_innermost(s.body):
            self.countdown.pieces(s, start, stop, last, f"end{n}")
        else:
            self.rounds(s, start, stop, last, f"end{n}")
        self.mark(f"end{n}")

    def rounds(self, s: ir.For, start: str, stop: str, last: str, end: str) -> None:
        """The iterations of a loop from `start` to `stop`, at least one; downwards from `last` if that is not empty."""
        before = self.label
        self.count += 1
        n = self.count
        polled = is_long(s) and not is_innermost(s.body)
        work = work_of(self, s.body) if polled else ""
        self.lines.append(f"  br label %body{n}")
        self.mark(f"body{n}")
        counter = self.fresh()
        phi = len(self.lines)
        self.lines.append("")
        self.values[s.var] = self.new(f"sub i64 {last}, {counter}") if last else counter
        outer, self.accumulators = self.accumulators, sum(type(x) is ir.Set for x in s.body.statements)
        self.block(s.body)
        self.accumulators = outer
        step = self.new(f"add nsw i64 {counter}, 1")
        again = self.new(f"icmp slt i64 {step}, {stop}")
        if any(type(x) is ir.HostCall for x in ir.walk(s.body)):
            again = self.new(f"and i1 {again}, {self.is_good()}")
        if polled:
            self.countdown.spend(work, n, f"next{n}", end)
            self.mark(f"next{n}")
        self.lines.append(f"  br i1 {again}, label %body{n}, label %{end}{self.hint(s)}")
        self.lines[phi] = f"  {counter} = phi i64 [ {start}, %{before} ], [ {step}, %{self.label} ]"

    @property
    def countdown(self) -> Countdown:
        """What interruptible loops look at."""
        if self._countdown is None:
            self._countdown = Countdown(self)
        return self._countdown

    def is_good(self) -> str:
        """Whether nothing has failed yet."""
        return self.new(f"icmp eq i64 {self.new('load i64, ptr %status')}, 0")

    def hint(self, s: ir.For) -> str:
        """Only short loops are unrolled: the vectoriser interleaves, more doubles the compile time."""
        a, b = s.start, s.stop
        if type(a) is ir.Extent and type(b) is ir.Extent and b.value - a.value <= SHORT:
            return ""
        self.loops.append("!0, !1" if _folds_extremes(s.body) else "!0")
        return f", !llvm.loop !{len(self.loops) + 1}"

    def repeat(self, s: ir.While) -> None:
        self.count += 1
        n = self.count
        self.lines.append(f"  br label %test{n}")
        self.mark(f"test{n}")
        if ir.may_fail(s.body) or ir.may_fail(s.test):  # what follows a failure might never end
            self.lines.append(f"  br i1 {self.is_good()}, label %good{n}, label %end{n}")
            self.mark(f"good{n}")
        self.block(s.test)
        self.lines.append(f"  br i1 {self.operand(s.condition)}, label %body{n}, label %end{n}")
        self.mark(f"body{n}")
        outer, self.accumulators = self.accumulators, sum(type(x) is ir.Set for x in s.body.statements)
        self.block(s.body)
        self.accumulators = outer
        self.countdown.spend(work_of(self, s.body), n, f"test{n}", f"end{n}")
        self.mark(f"end{n}")

    def branch(self, s: ir.If) -> None:
        self.count += 1
        n = self.count
        orelse = "else" if s.orelse.statements else "end"
        self.lines.append(f"  br i1 {self.operand(s.condition)}, label %then{n}, label %{orelse}{n}")
        self.mark(f"then{n}")
        self.block(s.then)
        self.lines.append(f"  br label %end{n}")
        if s.orelse.statements:
            self.mark(f"else{n}")
            self.block(s.orelse)
            self.lines.append(f"  br label %end{n}")
        self.mark(f"end{n}")

    def local(self, s: ir.Local) -> None:
        t = ops.llvm_type(s.var.dtype)
        slot = self.locals[s.var] = self.alloca(t)
        self.lines.append(f"  store {t} {self.operand(s.init)}, ptr {slot}")

    def get(self, s: ir.Get) -> None:
        self.values[s.value] = self.new(f"load {ops.llvm_type(s.value.dtype)}, ptr {self.locals[s.var]}")

    def set(self, s: ir.Set) -> None:
        t = ops.llvm_type(s.var.dtype)
        self.lines.append(f"  store {t} {self.operand(s.x)}, ptr {self.locals[s.var]}")

    def copy(self, s: ir.Copy) -> None:
        target, source = self.bases[s.target.place], self.bases[s.source.place]
        if target == source:
            return
        size = str(s.target.dtype.itemsize)
        for n in s.target.shape:
            size = self.new(f"mul i64 {size}, {self.extent(n)}")
        self.lines.append(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)"
        )

    def fail(self, s: ir.Fail) -> None:
        bit = 1 << min(s.equation, 62)
        old = self.new("load i64, ptr %status")
        found = self.new(f"select i1 {self.operand(s.condition)}, i64 {bit}, i64 0")
        self.lines.append(f"  store i64 {self.new(f'or i64 {old}, {found}')}, ptr %status")

    def host_call(self, s: ir.HostCall) -> None:
        self.globals.update(NEEDED_BY_HOST)
        places = self.alloca(f"[{max(len(s.refs), 1)} x ptr]")
        self.count += 1
        n = self.count
        self.lines.append(f"  br i1 {self.is_good()}, label %call{n}, label %end{n}")
        self.mark(f"call{n}")
        copies = [self.copied(ref.buffer) if ref.buffer.role == "stack" else "" for ref in s.refs]
        for i, (ref, copy) in enumerate(zip(s.refs, copies)):
            address = self.element(ref.buffer, self.operand(ref.offset), base=copy)
            place = self.new(f"getelementptr ptr, ptr {places}, i64 {i}")
            self.lines.append(f"  store ptr {address}, ptr {place}")
        raised = self.new(f"call i1 @functrans.host(i64 {self.operand(s.number)}, ptr {places})")
        pending = self.new(f"select i1 {raised}, i64 {ir.PENDING}, i64 0")
        self.lines.append(f"  store i64 {pending}, ptr %status")
        for ref, copy in zip(s.refs[s.reads :], copies[s.reads :]):
            if copy:
                self.move(self.bases[ref.buffer.place], copy, ref.buffer)
        self.lines.append(f"  br label %end{n}")
        self.mark(f"end{n}")

    def copied(self, buffer: ir.BufferDecl) -> str:
        """A copy of a small buffer for Python to see: what is seen from outside cannot be a register."""
        copy = self.stack(buffer)
        self.move(copy, self.bases[buffer.place], buffer)
        return copy

    def move(self, target: str, source: str, buffer: ir.BufferDecl) -> None:
        """Copy the memory of a small buffer."""
        nbytes = buffer.size * buffer.dtype.itemsize
        self.lines.append(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {nbytes}, i1 false)"
        )

    def reserve(self, s: ir.Reserve) -> None:
        self.globals["functrans.reserve"] = RESERVE
        self.globals["realloc"] = "declare ptr @realloc(ptr, i64)"
        header, needed = self.bases[s.tape.place], self.operand(s.needed)
        self.count += 1
        n = self.count
        held = self.new(f"load i64, ptr {self.new(f'getelementptr i64, ptr {header}, i64 1')}")
        self.lines.append(
            f"  br i1 {self.new(f'icmp sle i64 {needed}, {held}')}, label %room{n}, label %grow{n}"
        )
        self.mark(f"grow{n}")
        size = str(s.tape.dtype.itemsize)
        for extent in s.tape.shape[1:]:
            size = self.new(f"mul i64 {size}, {self.extent(extent)}")
        arguments = f"ptr {header}, i64 {needed}, i64 {size}, i64 {self.operand(s.limit)}"
        good = self.new(f"call i1 @functrans.reserve({arguments})")
        self.lines.append(f"  br i1 {good}, label %room{n}, label %full{n}")
        self.mark(f"full{n}")
        old = self.new("load i64, ptr %status")
        self.lines.append(f"  ret i64 {self.new(f'or i64 {old}, {ir.TAPE_FULL}')}")
        self.mark(f"room{n}")

    def call(self, s: ir.Call) -> None:
        name = symbol(s.letter + s.routine)
        self.symbols.add(name)
        args = [f"ptr {self.pass_by_address(a)}" for a in s.args]
        if s.value is None:
            t = "void"
        else:
            t = COMPLEX[s.value.dtype.itemsize] if s.value.dtype.kind == "c" else ops.llvm_type(s.value.dtype)
        self.globals[name] = f"declare {t} @{name}({', '.join(['ptr'] * len(args))})"
        code = f"call {t} @{name}({', '.join(args)})"
        if s.value is None:
            self.lines.append(f"  {code}")
        else:
            self.values[s.value] = self.new(code)

    def pass_by_address(self, a: Any) -> str:
        if isinstance(a, str):
            name = f"@{self.name}.{ord(a)}"
            self.globals[name] = f"{name} = private constant i8 {ord(a)}"
            return name
        if type(a) is ir.LocalVar:
            return self.locals[a]
        if type(a) is ir.Ref:
            return self.element(a.buffer, self.operand(a.offset))
        if isinstance(a, tuple):
            return self.complex_by_address(a)
        x = self.operand(a)
        if a.dtype == ir.INT64:
            x, t = self.new(f"trunc i64 {x} to i32"), "i32"
        else:
            t = ops.llvm_type(a.dtype)
        slot = self.alloca(t)
        self.lines.append(f"  store {t} {x}, ptr {slot}")
        return slot

    def complex_by_address(self, pair: tuple[Any, Any]) -> str:
        t = ops.llvm_type(pair[0].dtype)
        slot = self.alloca(f"[2 x {t}]")
        self.lines.append(f"  store {t} {self.operand(pair[0])}, ptr {slot}")
        second = self.new(f"getelementptr {t}, ptr {slot}, i64 1")
        self.lines.append(f"  store {t} {self.operand(pair[1])}, ptr {second}")
        return slot

    # --- the module ------------------------------------------------------------------------------------

    def module(self) -> LLVMKernel:
        calls = split(self.kernel)
        functions = [*self.function(), *self.entry()] if calls is None else self.in_parts(calls)
        body = [
            *(self.globals[k] for k in sorted(self.globals)),
            *self.library.declarations(),
            *functions,
            '!0 = !{!"llvm.loop.unroll.disable"}',
            '!1 = !{!"llvm.loop.interleave.count", i32 4}',
            *(f"!{i} = distinct !{{!{i}, {hints}}}" for i, hints in enumerate(self.loops, 2)),
        ]
        return LLVMKernel("\n".join(body) + "\n", self.name, frozenset(self.symbols | self.library.symbols))

    def arguments(self) -> list[str]:
        """The parameters of the function that does the work."""
        return [
            *(f"ptr noalias %s{i}" for i in range(len(self.storages))),
            *(f"i64 %i{i}" for i in range(self.kernel.ints)),
            *(f"double %f{i}" for i in range(self.kernel.floats)),
        ]

    def function(self) -> list[str]:
        """The function of all statements."""
        for b in self.kernel.buffers:
            if b.role == "stack" and b.place not in self.bases:
                self.bases[b.place] = self.stack(b)
        self.block(self.kernel.body)
        return self.text()

    def in_parts(self, calls: list[PartCall]) -> list[str]:
        """The functions of the parts, and an entry that calls them."""
        lines: list[str] = []
        names: dict[int, str] = {}
        self.is_entry = True
        for call in calls:
            name = names.get(id(call.part))
            if name is None:
                name = names[id(call.part)] = f"{self.name}.part{len(names)}"
                lines += _Function(call.part, name, self.strict, self).function()
            self.part_call(f"{name}.body", call)
        result = ["  %result = load i64, ptr %status", "  ret i64 %result", "}"]
        head = ["  %status = alloca i64", *self.head, "  store i64 0, ptr %status"]
        return [*lines, *self.entry_head(), *head, *self.lines, *result]

    def part_call(self, name: str, call: PartCall) -> None:
        for b in self.kernel.buffers:
            if b.place in call.places and b.place not in self.bases:
                self.bases[b.place] = self.stack(b)
        slots = [self.alloca(ops.memory_type(v.dtype)) for v in call.results]
        arguments = [f"ptr {self.bases[place]}" for place in call.places] + [f"ptr {slot}" for slot in slots]
        arguments += [f"i64 {self.operand(x)}" for x in call.ints]
        arguments += [f"double {self.as_double(x)}" for x in call.floats]
        old = self.new("load i64, ptr %status")
        found = self.new(f"call i64 @{name}({', '.join(arguments)})")
        status = self.new(f"or i64 {old}, {found}")
        self.lines.append(f"  store i64 {status}, ptr %status")
        if any(type(s) is ir.Reserve for s in ir.walk(call.part.body)):
            self.leave_if_full(status)
        if any(type(s) is ir.HostCall or is_long(s) for s in ir.walk(call.part.body)):
            self.leave_if(self.new(f"icmp ne i64 {status}, 0"), status)
        for v, slot in zip(call.results, slots):
            self.values[v] = self.new(f"load {ops.memory_type(v.dtype)}, ptr {slot}")

    def leave_if_full(self, status: str) -> None:
        """Return where a part found no room for a tape."""
        full = self.new(f"icmp ne i64 {self.new(f'and i64 {status}, {ir.TAPE_FULL}')}, 0")
        self.leave_if(full, status)

    def leave_if(self, condition: str, status: str) -> None:
        """Return the status where a condition holds."""
        self.count += 1
        n = self.count
        self.lines.append(f"  br i1 {condition}, label %leave{n}, label %stay{n}")
        self.mark(f"leave{n}")
        self.lines.append(f"  ret i64 {status}")
        self.mark(f"stay{n}")

    def as_double(self, x: Any) -> str:
        """A floating-point operand as parameters are passed."""
        if type(x) is ir.Param:
            return self.word(x)
        return (
            self.operand(x) if x.dtype == np.float64 else self.new(f"fpext float {self.operand(x)} to double")
        )

    def text(self) -> list[str]:
        """The function around the lines."""
        operands = [x for s in ir.walk(self.kernel.body) for x in ir.operands_of(s)]
        operands += [part for x in operands if isinstance(x, tuple) for part in x]
        narrow = {x for x in operands if type(x) is ir.Param}
        head = [f"  %g{x.slot} = fptrunc double %f{x.slot} to float" for x in narrow if x.dtype == np.float32]
        return [
            f"define internal i64 @{self.name}.body({', '.join(self.arguments())}) noinline nounwind "
            f"{self.library.function_attributes} {{",
            "entry:",
            "  %status = alloca i64",
            *self.head,
            "  store i64 0, ptr %status",
            *sorted(head),
            *self.lines,
            "  %result = load i64, ptr %status",
            "  ret i64 %result",
            "}",
        ]

    def stack(self, b: ir.BufferDecl) -> str:
        size = max(x.size * x.dtype.itemsize for x in self.kernel.buffers if x.place == b.place)
        return self.alloca(f"[{max(size, 1)} x i8], align 64")

    def entry_head(self) -> list[str]:
        """The beginning of the entry: fetches the storages."""
        lines = [
            f"define i64 @{self.name}(i64 %arrays, i64 %numbers) nounwind {{",
            "  %tuple = inttoptr i64 %arrays to ptr",
            "  %words = inttoptr i64 %numbers to ptr",
        ]
        for i in range(len(self.storages)):
            lines += [
                f"  %item{i} = getelementptr i8, ptr %tuple, i64 {TUPLE_ITEMS + 8 * i}",
                f"  %array{i} = load ptr, ptr %item{i}",
                f"  %field{i} = getelementptr i8, ptr %array{i}, i64 {ARRAY_DATA}",
                f"  %s{i} = load ptr, ptr %field{i}",
            ]
        return lines

    def entry(self) -> list[str]:
        """The function that fetches the arguments and passes them on."""
        kernel = self.kernel
        words = [(f"%i{i}", "i64") for i in range(kernel.ints)]
        words += [(f"%f{i}", "double") for i in range(kernel.floats)]
        lines = self.entry_head()
        for i, (name, t) in enumerate(words):
            lines += [
                f"  %word{i} = getelementptr i64, ptr %words, i64 {i}",
                f"  {name} = load {t}, ptr %word{i}",
            ]
        call = ", ".join(a.replace(" noalias", "") for a in self.arguments())
        return [*lines, f"  %r = call i64 @{self.name}.body({call})", "  ret i64 %r", "}"]

    def word(self, x: ir.Param) -> str:
        """A parameter read from memory, where it is needed: the entry of a kernel in parts may have hundreds."""
        is_int = x.dtype == ir.INT64
        place = self.new(f"getelementptr i64, ptr %words, i64 {x.slot + (0 if is_int else self.kernel.ints)}")
        return self.new(f"load {'i64' if is_int else 'double'}, ptr {place}")


def _folds_extremes(block: ir.Block) -> bool:
    """Whether a variable is a running minimum or maximum of floats, which LLVM alone does not interleave."""
    if len(block.statements) > 12:
        return False
    lets = [s for s in block.statements if type(s) is ir.Let]
    folds = [s.value for s in lets if s.op in ("min", "max") and s.value.dtype.kind == "f"]
    simple = not any(s.op in LIBM for s in lets)
    return simple and any(type(s) is ir.Set and s.x in folds for s in block.statements)


_EMIT: dict[type, Any] = {
    ir.Let: _Function.let,
    ir.Load: _Function.load,
    ir.Store: _Function.store,
    ir.For: _Function.loop,
    ir.While: _Function.repeat,
    ir.If: _Function.branch,
    ir.Local: _Function.local,
    ir.Get: _Function.get,
    ir.Set: _Function.set,
    ir.Copy: _Function.copy,
    ir.Fail: _Function.fail,
    ir.Call: _Function.call,
    ir.Reserve: _Function.reserve,
    ir.HostCall: _Function.host_call,
}
