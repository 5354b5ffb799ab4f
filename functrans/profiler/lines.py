"""From what was recorded to the user's lines."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from ..core import Source
from ..lowering.loops.from_jaxpr.sites import Share, TimedSite
from ..lowering.run.timing import KernelCounts
from ..runtime.records import dataclass
from .recorder import Thread

#: The kinds of time, in the order of the table, with their headings.
KINDS = {
    "kernel": "kernels",
    "host": "host calls",
    "eager": "eager",
    "trace": "tracing",
    "lower": "lowering",
    "llvm": "LLVM",
    "cache": "loading",
    "wait": "waiting",
    "other": "other",
}
#: What the time of no line is called.
UNKNOWN, OUTSIDE = "(no line)", "(outside functrans)"


@dataclass(eq=False)
class LineTimes:
    """A line of the user's code, and what its time went to.

    Attributes
    ----------
    filename, function : str
    line : int
        1-based; 0 where there is none.
    backward : bool
        Whether the time is that of its derivative, in reverse mode.
    seconds : dict of str to float
        By kind: ``"kernel"``, ``"host"``, ``"eager"``, ``"trace"``, ``"lower"``, ``"llvm"``, ``"cache"`` (loading from
        it), ``"wait"``, ``"other"``.
    calls : int
        How often something of it ran: a loop nest of a kernel, a host call, an operation, a compilation.
    bytes_read, bytes_written : int
        By its kernels, from and to arrays in memory.
    """

    filename: str
    line: int
    function: str
    backward: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    calls: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    @property
    def total(self) -> float:
        """All of its seconds."""
        return sum(self.seconds.values())

    @property
    def text(self) -> str:
        """The source text of the line, stripped."""
        return linecache.getline(self.filename, self.line).strip()

    @property
    def place(self) -> str:
        """``file.py:12``, with an arrow for a derivative."""
        if not self.line:
            return self.filename
        return f"{os.path.basename(self.filename)}:{self.line}{' (backward)' if self.backward else ''}"

    def add(self, kind: str, seconds: float) -> None:
        """Add time of a kind."""
        self.seconds[kind] = self.seconds.get(kind, 0.0) + seconds


class Lines:
    """Lines by place."""

    def __init__(self) -> None:
        self.by_place: dict[Any, LineTimes] = {}

    def at(self, source: Source | None) -> LineTimes:
        """The line of a source."""
        if source is None:
            return self.named(UNKNOWN)
        filename, number, function, _ = source.parts()
        backward = getattr(source, "backward", False)
        key = filename, number, backward
        if key not in self.by_place:
            self.by_place[key] = LineTimes(filename, number, function, backward)
        return self.by_place[key]

    def named(self, name: str) -> LineTimes:
        """The line of what is at none of the user's."""
        return self.by_place.setdefault(name, LineTimes(name, 0, ""))

    def add_thread(self, thread: Taken, rate: float, scale: float) -> None:
        """Add the events of a thread; what was sampled stands for `scale` times as much.

        `rate` is the number of ticks of the kernels' clock in a nanosecond.
        """
        for (kind, source), (calls, time, kernels) in thread.totals.items():
            line, times = self.at(source), scale if kind == "sampled" else 1.0
            line.add("eager" if kind == "sampled" else kind, max(time - kernels / rate, 0.0) * times * 1e-9)
            line.calls += round(calls * times)

    def add_kernel(self, kernel: CountedKernel, hosted: Mapping[int, int], rate: float) -> None:
        """Add the calls of a kernel."""
        times = kernel.sites[:, 0] / rate
        counts = kernel.sites[:, 1]
        if not times.any() and kernel.time:  # it was timed as a whole
            costs = np.array([sum(s.cost for s in site.shares) for site in kernel.parts])
            times, counts = kernel.time / rate * costs / costs.sum(), np.full(len(costs), kernel.calls)
        for number, site in enumerate(kernel.parts):
            shares = site.own if any(kernel.sites[i, 1] for i in site.inner) else site.shares
            own = max(times[number] - sum(hosted.get(n, 0) for n in site.host), 0.0)
            self.add_site(shares, own * 1e-9, int(counts[number]))

    def add_site(self, shares: list[Share], seconds: float, count: int) -> None:
        """Divide the time of a site among lines."""
        whole = sum(s.cost for s in shares)
        for share in shares:
            line = self.at(share.source)
            line.add("kernel", seconds * share.cost / whole)
            line.bytes_read += share.read * count
            line.bytes_written += share.written * count
        for source in {id(self.at(s.source)): s.source for s in shares}.values():
            self.at(source).calls += count


# --- what is recorded, at one time, and the difference of two --------------------------------------------------


@dataclass
class Taken:
    """What a thread had recorded.

    Attributes
    ----------
    totals : dict
        By kind and line: calls, nanoseconds, ticks of kernels in these.
    hosted : dict
        See `Thread.hosted`.
    first : int
        The number of events that it had.
    inside, kernels, ticks : int
        The time of events, of kernels in these, and of all kernels.
    """

    thread: Thread
    totals: dict[tuple[str, Any], tuple[int, int, int]]
    hosted: dict[int, int]
    first: int
    inside: int
    kernels: int
    ticks: int

    def since(self, earlier: Taken | None) -> Taken:
        """What was added since an earlier time."""
        if earlier is None:
            return Taken(self.thread, self.totals, self.hosted, 0, self.inside, self.kernels, self.ticks)
        totals = {}
        for key, new in self.totals.items():
            old = earlier.totals.get(key, (0, 0, 0))
            if new != old:
                totals[key] = (new[0] - old[0], new[1] - old[1], new[2] - old[2])
        hosted = {n: t - earlier.hosted.get(n, 0) for n, t in self.hosted.items()}
        return Taken(
            self.thread,
            totals,
            hosted,
            earlier.first,
            self.inside - earlier.inside,
            self.kernels - earlier.kernels,
            self.ticks - earlier.ticks,
        )


def take(thread: Thread, ticks: int) -> Taken:
    """What a thread has recorded so far."""
    totals = {(t.kind, t.source): (t.calls, t.time, t.kernels) for t in tuple(thread.totals.values())}
    return Taken(
        thread, totals, dict(thread.hosted), len(thread.events), thread.inside, thread.kernels, ticks
    )


@dataclass
class CountedKernel:
    """What the calls of a kernel have counted between two times.

    Attributes
    ----------
    name : str
    parts : list of TimedSite
    calls, time : int
    sites : ndarray
    events, chunks : ndarray
        See `lowering.run.timing.KernelCounts`.
    """

    name: str
    parts: list[TimedSite]
    calls: int
    time: int
    sites: np.ndarray
    events: np.ndarray
    chunks: np.ndarray


def counted(
    name: str, parts: list[TimedSite], new: Iterable[KernelCounts], old: list[KernelCounts]
) -> CountedKernel | None:
    """What was counted since `old` was read; None if the kernel was not called."""
    new = list(new)
    blank = len(new) - len(old)
    calls = sum(r.calls for r in new) - sum(r.calls for r in old)
    if not calls:
        return None
    sites = sum(r.sites for r in new) - (sum(r.sites for r in old) if old else 0)
    starts = [(len(r.events), len(r.chunks)) for r in old] + [(0, 0)] * blank
    events = np.concatenate([r.events[n:] for r, (n, _) in zip(new, starts)])
    chunks = np.concatenate([r.chunks[n:] for r, (_, n) in zip(new, starts)])
    time = sum(r.time for r in new) - sum(r.time for r in old)
    return CountedKernel(name, parts, calls, time, np.asarray(sites), events, chunks)
