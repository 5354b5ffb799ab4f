"""What timed kernels have counted: the memory to which their marks write (see `llvm.timing`)."""

from __future__ import annotations

import threading

import numpy as np

from ...runtime.context import Living
from ...runtime.records import NamedTuple
from ...runtime.unusual import unusual
from ..backend import Run
from ..llvm.timing import EVENT, EVENTS, MIX, SHIFT, THREADS, clock
from ..loops.from_jaxpr.sites import HEADER, WORDS, Sites, TimedSite

#: The table of threads; kernels add to it, as Python does.
_table = np.zeros(THREADS, np.int64)
thread_times = memoryview(_table)


def thread_slot() -> int:
    """The number of the running thread's word in the table."""
    return ((threading.get_ident() * MIX) & ((1 << 64) - 1)) >> SHIFT


class KernelCounts(NamedTuple):
    """What the calls of a kernel have counted, in the units of `llvm.timing.clock`.

    Attributes
    ----------
    calls, time : int
    sites : ndarray, shape (sites, 2)
        The time of each, and how often it began.
    events, chunks : ndarrays, shape (number noted, 3)
        The thread, the start and the end of calls, and of chunks of loops that a team of threads runs.
    """

    calls: int
    time: int
    sites: np.ndarray
    events: np.ndarray
    chunks: np.ndarray


class Counters:
    """The counters of one kernel of one program.

    Parameters
    ----------
    name : str
        Of the program.
    sites : Sites
    """

    def __init__(self, name: str, sites: Sites):
        self.name = name
        self.sites: list[TimedSite] = sites.sites
        self._words = sites.words
        self._memory: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        timed_kernels.add(self)

    def new(self) -> np.ndarray:
        """Counters for calls, of which one may be running at a time."""
        words, events = np.zeros(self._words, np.int64), np.zeros((EVENTS, EVENT), np.int64)
        chunks = np.zeros(1 + EVENTS * EVENT, np.int64)
        words[5:7], words[8] = (_table.ctypes.data, events.ctypes.data), chunks.ctypes.data
        self._memory.append((words, events, chunks))
        if unusual.recorder is not None:
            unusual.recorder.keep(self)
        return words

    def timed(self, run: Run) -> Run:
        """A kernel that does not count by itself, timed as a whole."""
        words, read = self.new(), clock()

        def with_clock(arrays: tuple[np.ndarray, ...]) -> int:
            start = read()
            status = run(arrays)
            spent = read() - start
            words[3:5] += 1, spent
            thread_times[thread_slot()] += spent
            return status

        return with_clock

    def read(self) -> list[KernelCounts]:
        """What has been counted so far, for each memory that `new` has made."""
        return [
            KernelCounts(
                int(words[3]),
                int(words[4]),
                words[HEADER:].reshape(-1, WORDS).copy(),
                events[: int(words[7])].copy(),
                chunks[1:].reshape(-1, EVENT)[: min(int(chunks[0]), EVENTS)].copy(),
            )
            for words, events, chunks in tuple(self._memory)
        ]


#: The counters of all timed kernels.
timed_kernels: Living[None] = Living()
