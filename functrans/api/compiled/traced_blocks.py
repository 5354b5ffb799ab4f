"""Which hookable blocks a traced program used: when their hooks change, the program is traced again."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextvars import ContextVar
from typing import Protocol

from ...runtime.context import Living


class Forgetful(Protocol):
    """An object that holds traced programs by their keys."""

    def forget(self, keys: Iterable[Hashable]) -> None:
        """Drop some of its programs."""


class TraceInProgress:
    """A program being traced: where it will be cached, and the blocks that it used."""

    __slots__ = ("blocks", "cache", "key", "outer")

    def __init__(self, cache: Forgetful, key: Hashable):
        self.cache = cache
        self.key = key
        self.outer = traces.get()
        self.blocks: dict[MetBlock, None] = {}


#: The innermost program that `jit` is tracing.
traces: ContextVar[TraceInProgress | None] = ContextVar("functrans_traces", default=None)


class MetBlock:
    """The programs that used a block."""

    __slots__ = ("__weakref__", "_programs")

    def __init__(self) -> None:
        self._programs: Living[set[Hashable]] = Living()

    def met(self) -> None:
        """Record the block for all programs being traced."""
        trace = traces.get()
        while trace is not None:
            trace.blocks[self] = None
            self._programs.setdefault(trace.cache, set()).add(trace.key)
            trace = trace.outer

    def unmet(self, cache: Forgetful, key: Hashable) -> None:
        """Forget a program that is no longer cached."""
        keys = self._programs.get(cache)
        if keys is not None:
            keys.discard(key)

    def changed(self) -> None:
        """Drop these programs."""
        for cache, keys in self._programs.items():
            cache.forget(keys)
        self._programs.clear()
