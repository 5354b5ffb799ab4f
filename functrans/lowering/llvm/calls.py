"""Calls from a kernel: BLAS and LAPACK, C functions of complex numbers, Python, and memory for tapes."""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np

from ...runtime.guards import GUARD, WORD
from ...runtime.passes import OWN_PRODUCTS
from ..blas import C_PREFIX, NOT_OWN, symbol
from ..loops import ir
from . import ops
from .function import KernelFunction
from .interrupts import NEEDED_BY_HOST
from .maths.choice import PURE

_X86 = platform.machine() in ("x86_64", "AMD64")
#: On Windows on x86-64, C writes complex doubles to memory that the caller names, and reads them there.
_IN_MEMORY = _X86 and sys.platform == "win32"
#: The types in which complex numbers are returned, by size in bytes.
COMPLEX = {16: "{ double, double }", 8: "<2 x float>" if _X86 else "{ float, float }"}
_GUARDS = f"<{GUARD // 8} x i64>"
_WORDS = f"<{', '.join([f'i64 {WORD}'] * (GUARD // 8))}>"
#: Enlarges a pool: to twice its size, as far as the limit allows. The guards work as in `core.tape.reserve`.
_RESERVE = f"""define internal i1 @functrans.reserve(ptr captures(none) %h, i64 %needed, i64 %record, i64 %limit)
noinline cold {{
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
  %bytes = mul i64 %wanted, %size
  %whole = add i64 %bytes, {2 * GUARD}
  %address = load ptr, ptr %h
  %none = icmp eq ptr %address, null
  br i1 %none, label %get, label %again
again:
  %start = getelementptr i8, ptr %address, i64 -{GUARD}
  %held = load i64, ptr %start
  %end = getelementptr i8, ptr %address, i64 %held
  %guard = load {_GUARDS}, ptr %end, align 1
  %kept = add i64 %held, {GUARD}
  br label %get
get:
  %block = phi ptr [ null, %grow ], [ %start, %again ]
  %moved = phi i64 [ 0, %grow ], [ %kept, %again ]
  %after = phi {_GUARDS} [ {_WORDS}, %grow ], [ %guard, %again ]
  %new = call ptr @functrans.resize(ptr %block, i64 %moved, i64 %whole)
  %lost = icmp eq ptr %new, null
  br i1 %lost, label %full, label %done
done:
  br i1 %none, label %first, label %known
first:
  store {_GUARDS} {_WORDS}, ptr %new, align 8
  br label %known
known:
  store i64 %bytes, ptr %new
  %data = getelementptr i8, ptr %new, i64 {GUARD}
  %last = getelementptr i8, ptr %data, i64 %bytes
  store {_GUARDS} %after, ptr %last, align 1
  store ptr %data, ptr %h
  store i64 %wanted, ptr %capacity
  ret i1 true
full:
  ret i1 false
}}"""
_RESIZE = """define internal ptr @functrans.resize(ptr %block, i64 %kept, i64 %bytes) {
  %new = call ptr @realloc(ptr %block, i64 %bytes)
  ret ptr %new
}"""
#: The same in checked mode: memory always moves, and new and released memory is filled with guard words.
_RESIZE_CHECKED = """define internal ptr @functrans.resize(ptr %block, i64 %kept, i64 %bytes) {
  %new = call ptr @malloc(i64 %bytes)
  %lost = icmp eq ptr %new, null
  br i1 %lost, label %done, label %good
good:
  call void @functrans.fill(ptr %new, i64 %bytes)
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %move
move:
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %block, i64 %kept, i1 false)
  call void @functrans.fill(ptr %block, i64 %kept)
  call void @free(ptr %block)
  br label %done
done:
  ret ptr %new
}"""
_FILL = f"""define internal void @functrans.fill(ptr %block, i64 %bytes) {{
  %words = lshr i64 %bytes, 3
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %more, %next ]
  %place = getelementptr i64, ptr %block, i64 %i
  store i64 {WORD}, ptr %place
  %more = add i64 %i, 1
  %again = icmp slt i64 %more, %words
  br i1 %again, label %next, label %done
done:
  ret void
}}"""
_NEEDED_BY_RESERVE = {"functrans.reserve": _RESERVE, "functrans.resize": _RESIZE}
_NEEDED_BY_RESERVE["realloc"] = "declare ptr @realloc(ptr, i64)"
_NEEDED_IN_CHECKED_MODE = {
    "functrans.reserve": _RESERVE,
    "functrans.resize": _RESIZE_CHECKED,
    "functrans.fill": _FILL,
    "malloc": "declare ptr @malloc(i64)",
    "free": "declare void @free(ptr)",
}


def routine(fn: KernelFunction, s: ir.Call) -> None:
    """A routine of BLAS or LAPACK."""
    name = symbol(s.letter + s.routine)
    if s.routine == "gemm" and not fn.options.runs(OWN_PRODUCTS):
        name += NOT_OWN
    fn.symbols.add(name)
    args = [f"ptr {_pass_by_address(fn, a)}" for a in s.args]
    if s.value is not None and s.value.dtype.kind == "c":
        fn.values[s.value] = _complex_result(fn, name, args, s.value.dtype.itemsize)
        return
    t = "void" if s.value is None else ops.llvm_type(s.value.dtype)
    fn.globals[name] = f"declare {t} @{name}({', '.join(['ptr'] * len(args))})"
    code = f"call {t} @{name}({', '.join(args)})"
    if s.value is None:
        fn.lines.append(f"  {code}")
    else:
        fn.values[s.value] = fn.new(code)


def _pass_by_address(fn: KernelFunction, a: Any) -> str:
    if isinstance(a, str):
        name = f"@{fn.name}.{ord(a)}"
        fn.globals[name] = f"{name} = private constant i8 {ord(a)}"
        return name
    if type(a) is ir.LocalVar:
        return fn.locals[a]
    if type(a) is ir.Address:
        return fn.element(a.buffer, fn.operand(a.offset))
    if isinstance(a, tuple):
        return _complex_by_address(fn, a)
    x = fn.operand(a)
    if a.dtype == ir.INT64:
        x, t = fn.new(f"trunc i64 {x} to i32"), "i32"
    else:
        t = ops.llvm_type(a.dtype)
    slot = fn.alloca(t)
    fn.lines.append(f"  store {t} {x}, ptr {slot}")
    return slot


def _complex_by_address(fn: KernelFunction, pair: tuple[Any, Any]) -> str:
    t = ops.llvm_type(pair[0].dtype)
    slot = fn.alloca(f"[2 x {t}]")
    fn.lines.append(f"  store {t} {fn.operand(pair[0])}, ptr {slot}")
    second = fn.new(f"getelementptr {t}, ptr {slot}, i64 1")
    fn.lines.append(f"  store {t} {fn.operand(pair[1])}, ptr {second}")
    return slot


def c_function(fn: KernelFunction, name: str, args: list[str]) -> str:
    """A C function of complex doubles, whose parts travel in separate registers, or in memory."""
    ours = C_PREFIX + name
    fn.symbols.add(ours)
    if not _IN_MEMORY:
        return _complex_result(fn, ours, [f"double {a}" for a in args], 16, PURE)
    slots = []
    for parts in zip(args[::2], args[1::2], strict=True):
        slots.append(fn.alloca("[2 x double]"))
        for i, part in enumerate(parts):
            place = fn.new(f"getelementptr double, ptr {slots[-1]}, i64 {i}")
            fn.lines.append(f"  store double {part}, ptr {place}")
    return _complex_result(fn, ours, [f"ptr {slot}" for slot in slots], 16)


def _complex_result(fn: KernelFunction, name: str, args: list[str], nbytes: int, attributes: str = "") -> str:
    """The complex number that a C function returns."""
    t = COMPLEX[nbytes]
    returned = f"ptr sret({t})"
    kinds = [a.partition(" ")[0] for a in args]
    if _IN_MEMORY and nbytes == 16:
        fn.globals[name] = f"declare void @{name}({', '.join([returned, *kinds])})"
        slot = fn.alloca(t)
        fn.lines.append(f"  call void @{name}({', '.join([f'{returned} {slot}', *args])})")
        return fn.new(f"load {t}, ptr {slot}")
    # Half of the memory of a complex double: it is returned as an integer.
    raw = "i64" if _IN_MEMORY else t
    fn.globals[name] = f"declare {raw} @{name}({', '.join(kinds)})"
    number = fn.new(f"call {raw} @{name}({', '.join(args)}){attributes}")
    return fn.new(f"bitcast {raw} {number} to {t}") if _IN_MEMORY else number


def part_of(fn: KernelFunction, x: str, dtype: np.dtype, imag: bool) -> str:
    """A part of the complex number returned by a C function."""
    t = COMPLEX[dtype.itemsize]
    return fn.new(
        f"extractelement {t} {x}, i32 {int(imag)}" if t[0] == "<" else f"extractvalue {t} {x}, {int(imag)}"
    )


def host_call(fn: KernelFunction, s: ir.HostCall) -> None:
    """An equation that Python or a C function evaluates."""
    if not s.native:
        fn.globals.update(NEEDED_BY_HOST)
    places = fn.alloca(f"[{max(len(s.refs), 1)} x ptr]")
    fn.count += 1
    n = fn.count
    fn.lines.append(f"  br i1 {fn.is_good()}, label %call{n}, label %end{n}")
    fn.mark(f"call{n}")
    copies = [_copied(fn, ref.buffer) if ref.buffer.role == "stack" else "" for ref in s.refs]
    for i, (ref, copy) in enumerate(zip(s.refs, copies)):
        address = fn.element(ref.buffer, fn.operand(ref.offset), base=copy)
        place = fn.new(f"getelementptr ptr, ptr {places}, i64 {i}")
        fn.lines.append(f"  store ptr {address}, ptr {place}")
    if s.native:
        function = fn.new(f"inttoptr i64 {fn.operand(s.number)} to ptr")
        failed = fn.new(f"icmp ne i64 {fn.new(f'call i64 {function}(ptr {places})')}, 0")
        status = fn.new(f"zext i1 {failed} to i64")
    else:
        raised = fn.new(f"call i1 @functrans.host(i64 {fn.operand(s.number)}, ptr {places})")
        status = fn.new(f"select i1 {raised}, i64 {ir.PENDING}, i64 0")
    fn.lines.append(f"  store i64 {status}, ptr %status")
    for ref, copy in zip(s.refs[s.reads :], copies[s.reads :]):
        if copy:
            _move(fn, fn.bases[ref.buffer.place], copy, ref.buffer)
    fn.lines.append(f"  br label %end{n}")
    fn.mark(f"end{n}")


def _copied(fn: KernelFunction, buffer: ir.BufferDecl) -> str:
    """A copy of a small buffer for Python: the original stays invisible outside, so that it can be a register."""
    copy = fn.stack(buffer)
    _move(fn, copy, fn.bases[buffer.place], buffer)
    return copy


def _move(fn: KernelFunction, target: str, source: str, buffer: ir.BufferDecl) -> None:
    """Copy the memory of a small buffer."""
    nbytes = buffer.size * buffer.dtype.itemsize
    fn.lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {nbytes}, i1 false)")


def reserve(fn: KernelFunction, s: ir.Reserve) -> None:
    """Make room in the pool of a tape; the kernel returns if that fails."""
    fn.globals.update(_NEEDED_IN_CHECKED_MODE if fn.checked else _NEEDED_BY_RESERVE)
    header, needed = fn.bases[s.tape.place], fn.operand(s.needed)
    fn.count += 1
    n = fn.count
    held = fn.new(f"load i64, ptr {fn.new(f'getelementptr i64, ptr {header}, i64 1')}")
    fn.lines.append(f"  br i1 {fn.new(f'icmp sle i64 {needed}, {held}')}, label %room{n}, label %grow{n}")
    fn.mark(f"grow{n}")
    size = str(s.tape.dtype.itemsize)
    for extent in s.tape.shape[1:]:
        size = fn.new(f"mul i64 {size}, {fn.extent(extent)}")
    arguments = f"ptr {header}, i64 {needed}, i64 {size}, i64 {fn.operand(s.limit)}"
    good = fn.new(f"call i1 @functrans.reserve({arguments})")
    fn.lines.append(f"  br i1 {good}, label %room{n}, label %full{n}")
    fn.mark(f"full{n}")
    old = fn.new("load i64, ptr %status")
    fn.lines.append(f"  ret i64 {fn.new(f'or i64 {old}, {ir.TAPE_FULL}')}")
    fn.mark(f"room{n}")
