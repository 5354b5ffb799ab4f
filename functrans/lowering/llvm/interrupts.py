"""Ctrl-C inside native loops.

Interruptible loops count down their work, in units of about one statement. When the count reaches zero they read the
clock, and every `INTERVAL` (in the main thread, the only one to which Python delivers signals) they take the GIL and
let Python run pending signal handlers. If a handler raises (`KeyboardInterrupt`), the exception stays pending, the
status gets its `PENDING` bit, and the count stays at zero, so that enclosing loops also end at their next check.

A loop without interruptible inner loops is split into pieces whose work is about the count: the inner loop does not
change, and is vectorized as before. Other loops check the count in every iteration.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import prod
from typing import Any

from ...passes.scalar_functions import COSTS
from ..loops import ir, queries
from .c.pool import ROLE
from .function import KernelFunction

#: The amount of work between two readings of the clock: about 20 us.
BUDGET = 1 << 16
#: Nanoseconds between two checks for signals.
INTERVAL = 50_000_000
#: The most that a mathematical function counts, and the least for a routine, whose work grows with the matrices.
MATHS, ROUTINE = 8, 256
#: The count of an inner loop whose trip count is unknown in advance.
UNKNOWN = 64

_CLOCKS = {"darwin": 6}  # CLOCK_MONOTONIC
_NOW = f"""  %now.spec = alloca [2 x i64]
  %now.e = call i32 @clock_gettime(i32 {_CLOCKS.get(sys.platform, 1)}, ptr %now.spec)
  %now.s = load i64, ptr %now.spec
  %now.part = getelementptr i64, ptr %now.spec, i64 1
  %now.ns = load i64, ptr %now.part
  %now.whole = mul i64 %now.s, 1000000000
  %now = add i64 %now.whole, %now.ns"""
_NOW_ON_WINDOWS = """  %now.ms = call i64 @GetTickCount64()
  %now = mul i64 %now.ms, 1000000"""
#: Reads the clock: `%now` is in nanoseconds. Its other names begin with that one.
NOW = _NOW_ON_WINDOWS if sys.platform == "win32" else _NOW

_MODULE = "functrans.lowering.host.host_calls"
#: The type of the number of a thread.
IDENT = "i32" if sys.platform == "win32" else "i64"
#: Returns whether a handler raised. `%last` is the time of the last check, zero before the first reading of the clock.
POLL = f"""define internal i1 @functrans.poll(ptr %last) noinline cold {{
{NOW}
  %old = load i64, ptr %last
  %spent = sub i64 %now, %old
  %first = icmp eq i64 %old, 0
  br i1 %first, label %start, label %later
start:
  store i64 %now, ptr %last
  ret i1 false
later:
  %due = icmp ugt i64 %spent, {INTERVAL}
  br i1 %due, label %whose, label %go
whose:
  store i64 %now, ptr %last
  %main = load {IDENT}, ptr @functrans.main
  %mine = call {IDENT} @PyThread_get_thread_ident()
  %unknown = icmp eq {IDENT} %main, 0
  %same = icmp eq {IDENT} %main, %mine
  %asked = or i1 %unknown, %same
  br i1 %asked, label %ask, label %go
ask:
  %gil = call i32 @PyGILState_Ensure()
  br i1 %unknown, label %import, label %check
import:
  %module = call ptr @PyImport_ImportModule(ptr @functrans.module)
  %lost = icmp eq ptr %module, null
  br i1 %lost, label %leave, label %learn
learn:
  %number = call ptr (ptr, ptr, ptr, ...) @PyObject_CallMethod(ptr %module, ptr @functrans.main_thread, ptr null)
  call void @Py_DecRef(ptr %module)
  %none = icmp eq ptr %number, null
  br i1 %none, label %leave, label %keep
keep:
  %ident = call {IDENT} @PyLong_AsUnsignedLong(ptr %number)
  call void @Py_DecRef(ptr %number)
  store {IDENT} %ident, ptr @functrans.main
  br label %check
check:
  %found = call i32 @PyErr_CheckSignals()
  %bad = icmp ne i32 %found, 0
  br label %leave
leave:
  %raised = phi i1 [ true, %import ], [ true, %learn ], [ %bad, %check ]
  call void @PyGILState_Release(i32 %gil)
  ret i1 %raised
go:
  ret i1 false
}}"""

#: Returns whether a host call raised.
HOST = """define internal i1 @functrans.host(i64 %number, ptr %places) noinline cold {
  %gil = call i32 @PyGILState_Ensure()
  %module = call ptr @PyImport_ImportModule(ptr @functrans.module)
  %lost = icmp eq ptr %module, null
  br i1 %lost, label %done, label %call
call:
  %found = call ptr (ptr, ptr, ptr, ...) @PyObject_CallMethod(
    ptr %module, ptr @functrans.from_kernel, ptr @functrans.format, i64 %number, ptr %places)
  call void @Py_DecRef(ptr %module)
  %none = icmp eq ptr %found, null
  br i1 %none, label %done, label %good
good:
  call void @Py_DecRef(ptr %found)
  br label %done
done:
  %raised = phi i1 [ true, %0 ], [ true, %call ], [ false, %good ]
  call void @PyGILState_Release(i32 %gil)
  ret i1 %raised
}"""


def _text(name: str, value: str) -> str:
    return f'@functrans.{name} = private constant [{len(value) + 1} x i8] c"{value}\\00"'


#: Declarations that the functions above need, by name, for the head of a module.
_PYTHON = {
    "functrans.module": _text("module", _MODULE),
    "PyGILState_Ensure": "declare i32 @PyGILState_Ensure()",
    "PyGILState_Release": "declare void @PyGILState_Release(i32)",
    "PyImport_ImportModule": "declare ptr @PyImport_ImportModule(ptr)",
    "PyObject_CallMethod": "declare ptr @PyObject_CallMethod(ptr, ptr, ptr, ...)",
    "Py_DecRef": "declare void @Py_DecRef(ptr)",
}
NEEDED_BY_POLL = {
    **_PYTHON,
    "functrans.poll": POLL,
    "functrans.main": f"@functrans.main = internal global {IDENT} 0",
    "functrans.main_thread": _text("main_thread", "main_thread"),
    "clock_gettime": "declare i32 @clock_gettime(i32, ptr)",
    "GetTickCount64": "declare i64 @GetTickCount64()",
    "PyThread_get_thread_ident": f"declare {IDENT} @PyThread_get_thread_ident()",
    "PyLong_AsUnsignedLong": f"declare {IDENT} @PyLong_AsUnsignedLong(ptr)",
    "PyErr_CheckSignals": "declare i32 @PyErr_CheckSignals()",
}
del NEEDED_BY_POLL["clock_gettime" if sys.platform == "win32" else "GetTickCount64"]
#: A worker of a team leaves Python alone: it ends when the thread that runs the kernel has met an exception.
_WORKER = f"""  %role = call i64 @{ROLE}()
  %helps = icmp ne i64 %role, 0
  br i1 %helps, label %worker, label %caller
worker:
  %ends = icmp eq i64 %role, 2
  ret i1 %ends
caller:
"""
NEEDED_BY_POLL_IN_TEAM = {
    **NEEDED_BY_POLL,
    "functrans.poll": POLL.replace("{\n", "{\n" + _WORKER, 1),
    ROLE: f"declare i64 @{ROLE}()",
}
NEEDED_BY_HOST = {
    **_PYTHON,
    "functrans.host": HOST,
    "functrans.from_kernel": _text("from_kernel", "from_kernel"),
    "functrans.format": _text("format", "LL"),
}


def is_innermost(body: ir.StatementList) -> bool:
    """Whether the body of a loop contains nothing that can be interrupted by itself."""
    return not any(queries.is_long(s) or type(s) is ir.HostCall for s in queries.walk(body))


class Work:
    """The work of a block: a number, and products of a number and parameters."""

    def __init__(self, fn: KernelFunction):
        self.fn = fn
        self.fixed = 0
        self.terms: list[tuple[int, tuple[Any, ...]]] = []

    def add(self, body: ir.StatementList, times: int = 1, factors: tuple[Any, ...] = ()) -> None:
        """Count a block that runs `times` times the product of the parameters `factors`."""
        count = 0
        for s in body.statements:
            match s:
                case ir.Let(op=op):
                    count += min(COSTS.get(op, MATHS), MATHS)
                case ir.If():
                    self.add(s.then, times, factors)
                    self.add(s.orelse, times, factors)
                case ir.For() if not queries.is_long(s):
                    known = type(s.start) is ir.Extent
                    if known and type(s.stop) is ir.Param:
                        self.add(s.body, times, (*factors, s.stop))
                    else:
                        self.add(s.body, times * max(queries.rounds(s, UNKNOWN), 1), factors)
                case ir.Copy(target=target, source=source):
                    if target.place != source.place:
                        self.elements(target.shape, times, factors)
                case ir.Call(args=args):
                    count += ROUTINE
                    sizes = [a for a in args if type(a) in (ir.Extent, ir.Param) and a.dtype == ir.INT64][:3]
                    shape = [a.value if type(a) is ir.Extent else a for a in sizes]
                    self.elements(tuple(shape), times, factors)
                case _:
                    count += 1
        self.elements((count,), times, factors)

    def elements(self, shape: tuple[Any, ...], times: int, factors: tuple[Any, ...]) -> None:
        """Count a statement for each element of a shape."""
        number = times * max(prod(n for n in shape if isinstance(n, int)), 0)
        factors = (*factors, *[n for n in shape if not isinstance(n, int)])
        if factors and number:
            self.terms.append((number, factors))
        else:
            self.fixed += number

    def total(self) -> str:
        """The number as an LLVM operand, at least 1."""
        total = str(max(self.fixed, 1))
        for number, factors in self.terms:
            product = str(number)
            for x in factors:
                product = self.fn.new(f"mul i64 {product}, {self.fn.operand(x)}")
            total = self.fn.new(f"add i64 {total}, {product}")
        return total


def work_of(fn: KernelFunction, body: ir.StatementList) -> str:
    """The work of one iteration, as an LLVM operand."""
    work = Work(fn)
    work.add(body)
    return work.total()


class Countdown:
    """The count of one function, and how loops use it.

    Parameters
    ----------
    fn : emitter of a function
        Variables are added to its head, functions to its module.
    """

    def __init__(self, fn: KernelFunction):
        for name, text in NEEDED_BY_POLL.items():
            fn.globals.setdefault(name, text)  # or that of kernels with teams
        self.fn = fn
        self.left, self.last = fn.alloca("i64"), fn.alloca("i64")
        fn.head += [f"  store i64 {BUDGET}, ptr {self.left}", f"  store i64 0, ptr {self.last}"]

    def spend(self, work: str, n: int, then: str, end: str) -> None:
        """Count down, and go to the label `then`; go to `end` to leave the loop."""
        fn = self.fn
        new = self.charge(work)
        due = fn.new(f"icmp sle i64 {new}, 0")
        fn.lines.append(f"  br i1 {due}, label %look{n}, label %{then}")
        fn.mark(f"look{n}")
        fn.lines.append(f"  store i64 0, ptr {self.left}")
        status = fn.new("load i64, ptr %status")
        fn.lines.append(f"  br i1 {fn.new(f'icmp slt i64 {status}, 0')}, label %{end}, label %poll{n}")
        fn.mark(f"poll{n}")
        raised = fn.new(f"call i1 @functrans.poll(ptr {self.last})")
        pending = fn.new(f"select i1 {raised}, i64 {ir.PENDING}, i64 0")
        fn.lines.append(f"  store i64 {fn.new(f'or i64 {status}, {pending}')}, ptr %status")
        again = fn.new(f"select i1 {raised}, i64 0, i64 {BUDGET}")
        fn.lines.append(f"  store i64 {again}, ptr {self.left}")
        fn.lines.append(f"  br i1 {raised}, label %{end}, label %{then}")

    def charge(self, work: str) -> str:
        """Count down only; returns the count."""
        fn = self.fn
        old = fn.new(f"load i64, ptr {self.left}")
        new = fn.new(f"sub nsw i64 {old}, {work}")
        fn.lines.append(f"  store i64 {new}, ptr {self.left}")
        return new

    def pieces(
        self, s: ir.For, start: str, stop: str, end: str, rounds: Callable[[str, str, str], None]
    ) -> None:
        """The iterations of a loop in pieces of about the count; `rounds` emits those of one, ending at a label."""
        fn = self.fn
        work = work_of(fn, s.body)
        if work.isdigit():
            piece = str(max(BUDGET // int(work), 1))
        else:
            piece = fn.new(f"call i64 @llvm.smax.i64(i64 {fn.new(f'sdiv i64 {BUDGET}, {work}')}, i64 1)")
        fn.count += 1
        n, before = fn.count, fn.label
        fn.lines.append(f"  br label %piece{n}")
        fn.mark(f"piece{n}")
        first = fn.fresh()
        phi = len(fn.lines)
        fn.lines.append("")
        # It saturates, since numbers may be near the limits.
        far = fn.new(f"call i64 @llvm.sadd.sat.i64(i64 {first}, i64 {piece})")
        behind = fn.new(f"call i64 @llvm.smin.i64(i64 {far}, i64 {stop})")
        rounds(first, behind, f"done{n}")
        fn.mark(f"done{n}")
        done = fn.new(f"mul i64 {fn.new(f'sub i64 {behind}, {first}')}, {work}")
        self.spend(done, n, f"next{n}", end)
        fn.mark(f"next{n}")
        again = fn.new(f"icmp slt i64 {behind}, {stop}")
        fn.lines.append(f"  br i1 {again}, label %piece{n}, label %{end}")
        fn.lines[phi] = f"  {first} = phi i64 [ {start}, %{before} ], [ {behind}, %next{n} ]"
