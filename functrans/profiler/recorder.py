"""The recorder: events of Python, timed where they happen, added up by the user's line.

.. code-block:: text

    sources of events                         the recorder                         a profile
      trace, lower, LLVM, cache ─ recorded ─▶   by thread: line and kind ─▶ times    what was added between its
      waiting for a lock ─────── awaited ──▶                             events      start and its end, by line
      host calls ──────────────── host ────▶                                         (`lines`)
      operations outside jit ── EvalTrace ─▶
      kernels ── marks in the machine code, without Python (`lowering.llvm.timing`) ─▶ counters

An event has its own time alone: without events inside it on the same thread, and without kernels, whose time the table
of threads has. A kernel that calls Python has that call's time in its site, from which it is taken later.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ..core import Source, user_source
from ..core.values import PyTree
from ..errors.source import is_internal, replayed
from ..lowering.run.timing import thread_slot, thread_times

#: Nanoseconds of any thread's clock.
now = time.perf_counter_ns
#: The most events that a thread keeps for the picture of time; their sums have all.
MOST_EVENTS = 100_000


class Total:
    """What the events of one kind at one line add up to.

    Attributes
    ----------
    kind : str
    source : Source or None
    calls, time : int
        `time` is in nanoseconds, and includes that of kernels.
    kernels : int
        The time of kernels in it, in the units of their clock.
    """

    __slots__ = ("calls", "kernels", "kind", "source", "time")

    def __init__(self, kind: str, source: Source | None):
        self.kind = kind
        self.source = source
        self.calls = self.time = self.kernels = 0


class Thread:
    """What one thread has recorded.

    Attributes
    ----------
    totals : dict
        By kind, code, instruction and direction.
    hosted : dict of int to int
        By the number of an equation that kernels have Python evaluate, the time of these calls.
    events : list of (str, Source or None, int, int)
        Kind or name, line, start, end.
    inside, kernels : int
        The time of events in the one that is open, and of kernels in these.
    """

    def __init__(self) -> None:
        thread = threading.current_thread()
        self.ident, self.name, self.slot = thread.ident, thread.name, thread_slot()
        self.totals: dict[Any, Total] = {}
        self.hosted: dict[int, int] = {}
        self.events: list[tuple[str, Source | None, int, int]] = []
        self.inside = self.kernels = 0

    def add(self, kind: str, source: Source | None, start: int, end: int, kernels: int) -> None:
        """Add an event; the time inside it is that of `inside` and `kernels`."""
        total = self.total(kind, source)
        total.calls += 1
        total.time += end - start - self.inside
        total.kernels += kernels - self.kernels
        self.note(kind, source, start, end)

    def operation(self, kind: str, name: str, start: int, end: int, kernels: int) -> None:
        """Add an operation outside `jit`."""
        source = replayed.get()
        if source is None:
            frame = sys._getframe(2)
            while frame.f_back is not None and is_internal(frame.f_code):
                frame = frame.f_back
            total = self.totals.get((kind, id(frame.f_code), frame.f_lasti, False))
            if total is None:
                total = self.total(kind, Source(frame.f_code, frame.f_lasti))
        else:
            total = self.total(kind, source)
        total.calls += 1
        total.time += end - start - self.inside
        total.kernels += kernels - self.kernels
        self.note(name, None, start, end)

    def note(self, name: str, source: Source | None, start: int, end: int) -> None:
        """Note an event for the picture of time."""
        if len(self.events) < MOST_EVENTS:
            self.events.append((name, source, start, end))

    def total(self, kind: str, source: Source | None) -> Total:
        """The sum of a kind of events at a line."""
        key = (kind, None) if source is None else (kind, id(source.code), source.lasti, source.backward)
        total = self.totals.get(key)
        if total is None:
            total = self.totals[key] = Total(kind, source)
        return total


class Recorder:
    """Implements `runtime.unusual.Listener`."""

    def __init__(self) -> None:
        self._local = threading.local()
        self.threads: list[Thread] = []
        self.counters: dict[Any, None] = {}

    def thread(self) -> Thread:
        """The running thread's part."""
        try:
            return self._local.thread
        except AttributeError:
            thread = self._local.thread = Thread()
            self.threads.append(thread)
            return thread

    def keep(self, counters: Any) -> None:
        """See `runtime.unusual.Listener`."""
        self.counters[counters] = None

    def run(self, kind: str | Callable[[Any], str], f: Callable[..., PyTree], args: tuple[Any, ...]) -> Any:
        """See `runtime.unusual.Listener`."""
        thread, source = self.thread(), user_source()
        outer, thread.inside = thread.inside, 0
        outer_kernels, thread.kernels = thread.kernels, 0
        ticks, start = thread_times[thread.slot], now()
        name = kind if isinstance(kind, str) else "cache"
        try:
            result = f(*args)
            if not isinstance(kind, str):
                name = kind(result)
            return result
        finally:
            end, kernels = now(), thread_times[thread.slot] - ticks
            thread.add(name, source, start, end, kernels)
            thread.inside, thread.kernels = outer + end - start, outer_kernels + kernels

    def host(self, equation: Any, number: int | None, f: Callable[..., PyTree], args: tuple[Any, ...]) -> Any:
        """See `runtime.unusual.Listener`."""
        thread = self.thread()
        outer, thread.inside = thread.inside, 0
        outer_kernels, thread.kernels = thread.kernels, 0
        ticks, start = thread_times[thread.slot], now()
        try:
            return f(*args)
        finally:
            end, kernels = now(), thread_times[thread.slot] - ticks
            kind = "wait" if equation.effects.collective else "host"
            thread.add(kind, equation.source, start, end, kernels)
            if number is None:
                thread.inside, thread.kernels = outer + end - start, outer_kernels + kernels
            else:  # a kernel is running: its clock runs on, and has all of this
                thread.hosted[number] = thread.hosted.get(number, 0) + end - start
                thread_times[thread.slot] -= kernels
                thread.inside, thread.kernels = outer, outer_kernels

    def awaited(self, lock: Any) -> Any:
        """See `runtime.unusual.Listener`."""
        return _Awaited(self, lock)


class _Awaited:
    """A lock, whose owner notes how long it waited for it."""

    __slots__ = ("lock", "recorder")

    def __init__(self, recorder: Recorder, lock: Any):
        self.recorder, self.lock = recorder, lock

    def __enter__(self) -> Any:
        return self.lock.acquire(blocking=False) or self.recorder.run("wait", self.lock.acquire, ())

    def __exit__(self, *exception: object) -> None:
        self.lock.release()
