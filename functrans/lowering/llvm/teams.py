"""Loops that a team of threads runs: their bodies as functions of the number of a chunk, called by the pool."""

from __future__ import annotations

from typing import Any

from ..blas import GET_THREADS, SET_THREADS, can_set_threads
from ..loops import ir, queries
from ..loops.passes.split_functions import PartCall, team_call
from ..steps import COUNTERS
from .c.pool import RUN
from .interrupts import NEEDED_BY_POLL_IN_TEAM
from .timing import note_chunks

_BLAS = f"declare i32 @{GET_THREADS}()", f"declare void @{SET_THREADS}(i32)"


def run_team(fn: Any, s: ir.For, team: ir.Team) -> None:
    """Have the pool run a loop: `fn` is the function (`Statements`) that contains it.

    What the body needs goes into a frame: addresses of storages, then numbers.
    """
    call = team_call(fn.kernel, s)
    fn.globals.update(NEEDED_BY_POLL_IN_TEAM)
    fn.globals[RUN] = f"declare i64 @{RUN}(ptr, ptr, i64, i64, i1, ptr, ptr, ptr)"
    given = {s.var: "%chunk", team.worker: "%worker"}
    words = [
        *(f"ptr {fn.bases[place]}" for place in call.places),
        *(f"i64 {fn.operand(x)}" for x in call.ints if x not in given),
        *(f"double {fn.double(x)}" for x in call.floats),
    ]
    timed = len(words) if COUNTERS in fn.bases else None
    if timed is not None:
        words.append(f"ptr {fn.bases[COUNTERS]}")
    frame = fn.alloca(f"[{max(len(words), 1)} x i64]")
    for i, word in enumerate(words):
        place = fn.new(f"getelementptr i64, ptr {frame}, i64 {i}")
        fn.lines.append(f"  store {word}, ptr {place}")
    name = fn.part(call)
    chunk = f"{name}.chunk{'_'.join(map(str, _positions(call, given)))}{'.timed' * (timed is not None)}"
    if chunk not in fn.parts:
        fn.parts[chunk] = chunk
        around = ([], []) if timed is None else note_chunks(fn, timed)
        fn.functions += _chunk(call, given, f"{name}.body", chunk, *around)
    blas = "ptr null, ptr null"
    if any(type(x) is ir.Call for x in queries.walk(s.body)) and can_set_threads():
        # One thread of BLAS for each of ours.
        fn.globals[GET_THREADS], fn.globals[SET_THREADS] = _BLAS
        blas = f"ptr @{GET_THREADS}, ptr @{SET_THREADS}"
    old = fn.new("load i64, ptr %status")
    own = fn.new(
        f"call i64 @{RUN}(ptr @{chunk}, ptr {frame}, i64 {fn.operand(s.stop)}, i64 {fn.operand(team.size)}, "
        f"i1 {int(team.uneven)}, ptr @functrans.poll, {blas})"
    )
    fn.leave_if_overwritten(call, own)
    status = fn.new(f"or i64 {old}, {own}")
    fn.lines.append(f"  store i64 {status}, ptr %status")
    fn.leave_if(fn.new(f"icmp slt i64 {status}, 0"), status)


def _positions(call: PartCall, given: dict[Any, str]) -> list[int]:
    """Where the numbers of the chunk and of the thread are among the arguments."""
    return [call.ints.index(x) if x in call.ints else -1 for x in given]


def _chunk(
    call: PartCall, given: dict[Any, str], body: str, name: str, before: list[str], after: list[str]
) -> list[str]:
    """The function that calls a body with the contents of a frame, between other lines."""
    lines: list[str] = []
    arguments: list[str] = []
    count = 0
    for t, numbers in (("ptr", call.places), ("i64", call.ints), ("double", call.floats)):
        for x in numbers:
            if t == "i64" and x in given:
                arguments.append(f"i64 {given[x]}")
                continue
            lines.append(f"  %p{count} = getelementptr i64, ptr %frame, i64 {count}")
            lines.append(f"  %a{count} = load {t}, ptr %p{count}")
            arguments.append(f"{t} %a{count}")
            count += 1
    return [
        f"define internal i64 @{name}(ptr %frame, i64 %chunk, i64 %worker) nounwind {{",
        *before,
        *lines,
        f"  %status = call i64 @{body}({', '.join(arguments)})",
        *after,
        "  ret i64 %status",
        "}",
    ]
