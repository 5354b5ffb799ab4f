"""How a kernel counts its time, while a profile is open: the code of a mark, and the clock that it reads.

The clock is the processor's counter of cycles at its nominal frequency (x86), or the system's monotonic clock. A kernel
adds to its `counters`, ten words and two for each site::

    0  the clock at the last mark            4  the time of all calls
    1  the site since then                   5  the address of the table of threads
    2  the clock at the start of the call    6  the address of the events
    3  the number of calls                   7  the number of events
    8  the address of the chunks             9  (unused)
    10 + 2 * site  its time     11 + 2 * site  how often it began

The table of threads has the time of all kernels that a thread has run. An event is a call: the thread, its start and
its end; the first `EVENTS` calls are noted. So are the first chunks of loops that a team of threads runs, in memory
whose first word is their number.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from collections.abc import Callable
from typing import Any

from ..loops import ir
from ..loops.from_jaxpr.sites import HEADER, WORDS
from ..processor import processor
from ..undisturbed import undisturbed
from .interrupts import IDENT, NOW
from .objects import compile_object, keep_for_ever
from .store import obtain
from .symbols import load

#: How many calls of a kernel are noted one by one, and the words of each.
EVENTS, EVENT = 2048, 3
#: The words of the table of threads: a power of two.
THREADS = 1 << 8
#: From the number of a thread to its word: a multiplicative hash.
MIX, SHIFT = 0x9E3779B97F4A7C15, 56
_CYCLES = platform.machine() in ("x86_64", "AMD64")

_CLOCK_DECLARED = (
    {"llvm.readcyclecounter": "declare i64 @llvm.readcyclecounter()"}
    if _CYCLES
    else {"GetTickCount64": "declare i64 @GetTickCount64()"}
    if sys.platform == "win32"
    else {"clock_gettime": "declare i32 @clock_gettime(i32, ptr)"}
)
_CLOCK = "  %now = call i64 @llvm.readcyclecounter()" if _CYCLES else NOW


def _word(name: str, place: str | int) -> str:
    return f"  %{name} = getelementptr i64, ptr %words, i64 {place}"


#: Adds the time since the last mark to the site before it.
_SPEND = f"""{_CLOCK}
  %last = load i64, ptr %words
{_word("whose", 1)}
  %old = load i64, ptr %whose
  %passed = sub i64 %now, %last
  %pair = mul i64 %old, {WORDS}
  %number = add i64 %pair, {HEADER}
{_word("total", "%number")}
  %before = load i64, ptr %total
  %after = add i64 %before, %passed
  store i64 %after, ptr %total
"""
#: Begins a site.
_BEGIN = f"""  store i64 %now, ptr %words
  store i64 %site, ptr %whose
  %mine = mul i64 %site, {WORDS}
  %next = add i64 %mine, {HEADER + 1}
{_word("times", "%next")}
  %n = load i64, ptr %times
  %more = add i64 %n, 1
  store i64 %more, ptr %times
  ret void
}}"""
_FUNCTIONS = {
    "first": f"""define internal void @functrans.mark.first(ptr %words, i64 %site) noinline nounwind {{
{_CLOCK}
  store i64 %now, ptr %words
{_word("whose", 1)}
  store i64 %site, ptr %whose
{_word("start", 2)}
  store i64 %now, ptr %start
{_word("calls", 3)}
  %c = load i64, ptr %calls
  %d = add i64 %c, 1
  store i64 %d, ptr %calls
  ret void
}}""",
    "next": f"""define internal void @functrans.mark.next(ptr %words, i64 %site) noinline nounwind {{
{_SPEND}{_BEGIN}""",
    "last": f"""define internal void @functrans.mark.last(ptr %words, i64 %site) noinline nounwind {{
{_SPEND}{_word("begin", 2)}
  %start = load i64, ptr %begin
  %spent = sub i64 %now, %start
{_word("whole", 4)}
  %w = load i64, ptr %whole
  %w2 = add i64 %w, %spent
  store i64 %w2, ptr %whole
  %ident = call {IDENT} @PyThread_get_thread_ident()
  %id = {"zext i32 %ident to i64" if IDENT == "i32" else "add i64 %ident, 0"}
  %mixed = mul i64 %id, {MIX - (1 << 64)}
  %slot = lshr i64 %mixed, {SHIFT}
{_word("table", 5)}
  %threads = load ptr, ptr %table
  %own = getelementptr i64, ptr %threads, i64 %slot
  %t = load i64, ptr %own
  %t2 = add i64 %t, %spent
  store i64 %t2, ptr %own
{_word("count", 7)}
  %e = load i64, ptr %count
  %full = icmp uge i64 %e, {EVENTS}
  br i1 %full, label %done, label %note
note:
{_word("events", 6)}
  %all = load ptr, ptr %events
  %place = mul i64 %e, {EVENT}
  %event = getelementptr i64, ptr %all, i64 %place
  store i64 %id, ptr %event
  %from = getelementptr i64, ptr %event, i64 1
  store i64 %start, ptr %from
  %to = getelementptr i64, ptr %event, i64 2
  store i64 %now, ptr %to
  %e2 = add i64 %e, 1
  store i64 %e2, ptr %count
  br label %done
done:
  ret void
}}""",
}


#: Notes the chunk of a loop that a thread has run.
_CHUNK = f"""define internal void @functrans.mark.chunk(ptr %frame, i64 %place, i64 %start) noinline nounwind {{
  %held = getelementptr i64, ptr %frame, i64 %place
  %words = load ptr, ptr %held
{_CLOCK}
{_word("chunks", 8)}
  %all = load ptr, ptr %chunks
  %n = atomicrmw add ptr %all, i64 1 monotonic
  %full = icmp uge i64 %n, {EVENTS}
  br i1 %full, label %done, label %note
note:
  %ident = call {IDENT} @PyThread_get_thread_ident()
  %id = {"zext i32 %ident to i64" if IDENT == "i32" else "add i64 %ident, 0"}
  %triple = mul i64 %n, {EVENT}
  %first = add i64 %triple, 1
  %event = getelementptr i64, ptr %all, i64 %first
  store i64 %id, ptr %event
  %from = getelementptr i64, ptr %event, i64 1
  store i64 %start, ptr %from
  %to = getelementptr i64, ptr %event, i64 2
  store i64 %now, ptr %to
  br label %done
done:
  ret void
}}"""
_START = f"""define internal i64 @functrans.mark.start() noinline nounwind {{
{_CLOCK}
  ret i64 %now
}}"""


def note_chunks(fn: Any, word: int) -> tuple[list[str], list[str]]:
    """The lines before and after a chunk of a loop that note it; word number `word` of its frame has the counters."""
    _declare(fn, "chunk", _CHUNK)
    fn.globals.setdefault("functrans.mark.start", _START)
    return (
        ["  %start = call i64 @functrans.mark.start()"],
        [f"  call void @functrans.mark.chunk(ptr %frame, i64 {word}, i64 %start)"],
    )


def mark(fn: Any, s: ir.Mark) -> None:
    """Emit a mark: `fn` is the function (`Statements`) that contains it."""
    _declare(fn, s.place, _FUNCTIONS[s.place])
    base, site = fn.bases[s.counters.place], fn.operand(s.site)
    fn.lines.append(f"  call void @functrans.mark.{s.place}(ptr {base}, i64 {site})")


def _declare(fn: Any, name: str, text: str) -> None:
    """Add a function of this module to a kernel's."""
    fn.globals.setdefault(f"functrans.mark.{name}", text)
    for declared, declaration in _CLOCK_DECLARED.items():
        fn.globals.setdefault(declared, declaration)
    if name in ("last", "chunk"):
        fn.globals.setdefault("PyThread_get_thread_ident", f"declare {IDENT} @PyThread_get_thread_ident()")


@functools.cache
def clock() -> Callable[[], int]:
    """A function that reads the clock of marks."""
    return ctypes.CFUNCTYPE(ctypes.c_int64)(undisturbed(_load))


def _load() -> int:
    entry = "functrans.clock"
    head = "\n".join(_CLOCK_DECLARED.values())
    text = f"{head}\ndefine i64 @{entry}() nounwind {{\n{_CLOCK}\n  ret i64 %now\n}}\n"
    cpu = processor()
    code, _ = obtain(text, cpu, "clock", lambda: compile_object(text, entry, cpu, "code"), load)
    keep_for_ever(code)
    return code.address
