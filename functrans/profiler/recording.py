"""What was recorded between two moments."""

from __future__ import annotations

from ..lowering.llvm.timing import clock
from ..lowering.run.timing import thread_slot, thread_times, timed_kernels
from .lines import OUTSIDE, CountedKernel, Lines, Taken, counted, take
from .operations import Operations
from .recorder import Recorder, now


def _both_clocks() -> tuple[int, int]:
    """Python's clock and that of kernels, at about the same time."""
    read = clock()
    samples = []
    for _ in range(7):
        start = now()
        ticks = read()
        end = now()
        samples.append((end - start, (start + end) // 2, ticks))
    return min(samples)[1:]


class Moment:
    """What was recorded up to a moment."""

    def __init__(self, recorder: Recorder, operations: Operations):
        self.windows = operations.open
        self.since = operations.since
        self.now, self.ticks = _both_clocks()
        self.threads = {t: take(t, thread_times[t.slot]) for t in tuple(recorder.threads)}
        self.kernels = {c: c.read() for c in {**dict.fromkeys(timed_kernels), **recorder.counters}}
        self.thread = recorder.thread()
        self.own = thread_times[thread_slot()]


class Recording:
    """What was recorded between two moments."""

    def __init__(self, before: Moment, after: Moment):
        self.start, self.first_tick = before.now, before.ticks
        self.elapsed = after.now - before.now
        since = max(after.since, before.now) if after.since else after.now
        #: The time since operations were sampled, and that of the samples.
        self.sampled = after.now - since, after.windows - before.windows
        #: Ticks of the kernels' clock in a nanosecond.
        self.rate = (after.ticks - before.ticks) / max(self.elapsed, 1)
        self.threads: list[Taken] = [x.since(before.threads.get(t)) for t, x in after.threads.items()]
        self.events = [x.thread.events[x.first : after.threads[x.thread].first] for x in self.threads]
        self.kernels: list[CountedKernel] = []
        for c, reads in after.kernels.items():
            kernel = counted(c.name, c.sites, reads, before.kernels.get(c, []))
            if kernel is not None:
                self.kernels.append(kernel)
        self.own = next(x for x in self.threads if x.thread is before.thread)
        self.own_ticks = after.own - before.own if after.thread is before.thread else self.own.ticks

    def add_to(self, lines: Lines) -> None:
        """Add it up by lines."""
        inside = self.own.inside + (self.own_ticks - self.own.kernels) / self.rate
        left = self.elapsed - inside
        sampled = sum(t[1] - t[2] / self.rate for k, t in self.own.totals.items() if k[0] == "sampled")
        scale = self.sampled[0] / max(self.sampled[1], 1)
        if sampled > 0.0:  # not more than there is
            scale = min(scale, 1.0 + left / sampled)
        hosted: dict[int, int] = {}
        for thread in self.threads:
            lines.add_thread(thread, self.rate, scale)
            for n, t in thread.hosted.items():
                hosted[n] = hosted.get(n, 0) + t
        for kernel in self.kernels:
            lines.add_kernel(kernel, hosted, self.rate)
        lines.named(OUTSIDE).add("other", max(left - (scale - 1.0) * sampled, 0.0) * 1e-9)
