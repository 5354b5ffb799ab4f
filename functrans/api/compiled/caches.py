"""The traces that jitted functions cache, and the counts that `cache_info` shows."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from types import MethodType
from typing import Any, TypeVar

from ...core.aval import Aval
from ...core.values import PyTree
from ...runtime.config import config
from ...runtime.context import Living, new_lock, new_rlock
from ...runtime.records import NamedTuple
from ...runtime.unusual import awaited
from .fast_path import NO_CALL, FastCall, Runner
from .lowered import Traced
from .snapshots import Snapshot

K = TypeVar("K")
V = TypeVar("V")


class Recent(dict[K, V]):
    """A cache that drops the entries that were not used for longest.

    ``cache[key]`` is None if there is no entry.

    Entries belong to one of two generations. This dictionary is the young one: reading it is no slower than reading any
    dictionary, since nothing records the use. When it has half of the entries that are allowed, it becomes the old
    generation, and the previous old one is dropped, except for the entries that were read meanwhile and so moved to the
    young one. So an entry survives if it is used at least once while half of the limit of others are.

    Parameters
    ----------
    most : callable
        Returns the most entries, at least 2.
    dropped : callable, optional
        Called with a dictionary of entries that have just been dropped.
    """

    __slots__ = ("_dropped", "_most", "_old")

    def __init__(self, most: Callable[[], int], dropped: Callable[[dict[K, V]], object] | None = None):
        super().__init__()
        self._most = most
        self._dropped = dropped
        self._old: dict[K, V] = {}

    def __missing__(self, key: K) -> Any:
        # Another thread may find it missing in between, and make it once more.
        value = self._old.pop(key, None)
        if value is not None:
            self[key] = value
        return value

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self._most() // 2 and key not in self:
            gone, self._old = self._old, dict(self)
            super().clear()
            if self._dropped is not None and gone:
                self._dropped(gone)
        super().__setitem__(key, value)

    def forget(self, key: K) -> None:
        """Drop an entry if there is one."""
        self.pop(key, None)
        self._old.pop(key, None)

    def recent_items(self) -> Iterator[tuple[K, V]]:
        """All entries, the last ones first."""
        yield from reversed(list(self.items()))
        yield from reversed(list(self._old.items()))

    def clear(self) -> None:
        """Drop all entries."""
        self._old = {}
        super().clear()


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

    def derived(self) -> Stats:
        """Counters for programs derived from the function: kernels and hits count here, traces do not."""
        stats = Stats()
        stats.hit, stats.count_kernel = self.hit, self.count_kernel  # type: ignore[method-assign]
        return stats

    def info(self) -> CacheInfo:
        """The counts now."""
        with self._lock:
            hits = int(repr(self._hits)[6:-1])
            counts = self._misses, self._compiles, self._disk_hits, hits, self._misses
            return CacheInfo(*counts, dict(self._routes))


class Cache:
    """The traces of one function under one set of options, shared by its `Jitted` objects."""

    def __init__(self, stats: Stats | None = None) -> None:
        self.traced: Recent[Hashable, Traced] = Recent(_most, partial(_unmet, weakref.ref(self)))
        self.runners: Recent[Hashable, Runner] = Recent(_most)
        self.latest = self.earlier = NO_CALL
        self.stats = Stats() if stats is None else stats
        self._derived: dict[Hashable, Cache] = {}
        #: The instance of a jitted method, as it was when traced.
        self.snapshot: Snapshot | None = None
        #: How often programs were dropped because the instance had changed.
        self.changes = 0
        #: What to do whenever traces are dropped.
        self.on_drop: list[Callable[[], None]] = []
        self._locks: dict[Hashable, Any] = {}

    def get(self, key: Hashable, trace: Callable[[], Traced]) -> Traced:
        """The program traced for a key, if another thread has finished it.

        While one thread traces, others do not trace for the same key. There is one lock per key: two functions that
        call each other, traced by two threads, would deadlock with one lock per function.
        """
        with awaited(self._locks.setdefault(key, new_rlock())):
            try:
                traced: Traced | None = self.traced[key]
                if traced is not None:
                    self.stats.hit()
                    return traced
                self.stats.miss()
                traced = trace()
                if traced.is_lasting:
                    self.traced[key] = traced
                return traced
            finally:
                self._locks.pop(key, None)

    def like(self, key: tuple[Hashable, ...], avals: Sequence[Aval]) -> Traced | None:
        """The last program traced for a key that ends in avals of these dtypes and ranks, of any sizes."""
        wanted = [(a.dtype, a.ndim, a.weak) for a in avals]
        n = len(key)
        for other, traced in self.traced.recent_items():
            assert isinstance(other, tuple)
            if other[:n] == key and [(a.dtype, a.ndim, a.weak) for a in other[n:]] == wanted:
                return traced
        return None

    def note(self, fast: FastCall) -> None:
        """Remember what was called, and the one before it that was different."""
        if fast is not self.latest:
            self.earlier, self.latest = self.latest, fast

    def derived(self, key: Hashable) -> Cache:
        """The cache of a transformation of the function."""
        cache = self._derived.get(key)
        return self._derived.setdefault(key, Cache(self.stats.derived())) if cache is None else cache

    def forget(self, keys: Iterable[Hashable]) -> None:
        """Drop some of the traces, and everything derived from any."""
        for cache in list(self._derived.values()):
            cache.clear()
        for key in keys:
            self.traced.forget(key)
        self._dropped()

    def clear(self) -> None:
        """Drop all traces and kernels."""
        for cache in list(self._derived.values()):
            cache.clear()
        for _, traced in self.traced.recent_items():
            traced.jaxpr.forget()
        self.traced.clear()
        self._dropped()
        self.snapshot = None

    def drop_calls(self) -> None:
        """Drop the short ways to call the programs."""
        self.runners.clear()
        self.latest = self.earlier = NO_CALL

    def _dropped(self) -> None:
        self.drop_calls()
        for do in self.on_drop:
            do()


def _unmet(cache: weakref.ref[Cache], dropped: dict[Hashable, Traced]) -> None:
    """Programs need not be dropped any more when blocks that they used change.

    The reference is weak: a cycle would keep a function's arrays alive until a garbage collection.
    """
    owner = cache()
    if owner is not None:
        for key, traced in dropped.items():
            for block in traced.blocks:
                block.unmet(owner, key)


def _most() -> int:
    return config.trace_limit


class _Caches:
    """The caches of all jitted functions; each lives as long as its function."""

    def __init__(self) -> None:
        self.by_function: Living[dict[Hashable, Cache]] = Living()
        self.everything: Living[None] = Living()
        self.lock = new_rlock()

    def get(self, fun: Callable[..., PyTree], options: Hashable) -> Cache:
        with self.lock:
            if type(fun).__eq__ not in _IDENTITY:
                return self.new()
            try:
                cache = self.by_function.setdefault(fun, {}).setdefault(options, Cache())
            except TypeError:  # no weak reference
                return self.new()
            self.everything.add(cache)
            return cache

    def new(self) -> Cache:
        """A cache that is not shared."""
        cache = Cache()
        with self.lock:
            self.everything.add(cache)
        return cache

    def clear(self) -> None:
        with self.lock:
            known = list(self.everything)
        for cache in known:
            cache.clear()


#: Functions that are equal only if identical. Callables that define ``__eq__`` may be equal and compute differently (a
#: dataclass holding 1 and one holding 1.0).
_IDENTITY: tuple[Any, ...] = (object.__eq__, MethodType.__eq__)
caches = _Caches()
