"""Counts of a jitted function: traces, compiles, hits and misses."""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from ..core.context import new_lock


class CacheInfo(NamedTuple):
    """Counts of one jitted function.

    Attributes
    ----------
    traces : int
        How often the Python function was traced.
    compiles : int
        Kernels compiled, including those of derivatives, but not kernels that another function had compiled.
    disk_hits : int
        Kernels that another process had compiled, and that were read from the cache on disk.
    hits, misses : int
        Calls whose argument types had been traced before, and calls whose had not.
    routes : dict of str to int
        Kernels by what they are: ``"llvm"`` (native code), ``"njit"`` (Python source, jitted), ``"python"``.
    """

    traces: int
    compiles: int
    disk_hits: int
    hits: int
    misses: int
    routes: dict[str, int]


class Stats:
    """Counters that many threads may increment."""

    def __init__(self) -> None:
        self._hits = count()
        self.hit = self._hits.__next__  # atomic, and faster than a lock
        self._lock = new_lock()
        self._misses = 0
        self._compiles = 0
        self._disk_hits = 0
        self._routes: dict[str, int] = {}

    def miss(self) -> None:
        """Count a call that has to trace."""
        with self._lock:
            self._misses += 1

    def count_kernel(self, route: str, origin: str) -> None:
        """Count a kernel made by `route`; see `lowering.backend.Code` for its origin."""
        with self._lock:
            self._compiles += origin == "compiled"
            self._disk_hits += origin == "disk"
            self._routes[route] = self._routes.get(route, 0) + 1

    def info(self) -> CacheInfo:
        """The counts now."""
        with self._lock:
            hits = int(repr(self._hits)[6:-1])
            counts = self._misses, self._compiles, self._disk_hits, hits, self._misses
            return CacheInfo(*counts, dict(self._routes))
