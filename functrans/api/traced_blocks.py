"""Which hookable blocks a traced program has met: when their hooks change, the program is traced again."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextvars import ContextVar
from typing import Any, Protocol
from weakref import WeakKeyDictionary


class Forgetful(Protocol):
    """What holds traced programs by their keys."""

    def forget(self, keys: Iterable[Hashable]) -> None:
        """Drop some of them."""


class TraceInProgress:
    """A program that is being traced: where it will be kept, and the blocks that it has met."""

    __slots__ = ("blocks", "cache", "key", "outer")

    def __init__(self, cache: Forgetful, key: Hashable):
        self.cache = cache
        self.key = key
        self.outer = traces.get()
        self.blocks: dict[MetBlock, None] = {}


#: The innermost program that is being traced by `jit`.
traces: ContextVar[TraceInProgress | None] = ContextVar("functrans_traces", default=None)


class MetBlock:
    """The programs that met a block."""

    __slots__ = ("__weakref__", "_programs")

    def __init__(self) -> None:
        self._programs: WeakKeyDictionary[Any, set[Hashable]] = WeakKeyDictionary()

    def met(self) -> None:
        """Note the block for all programs that are being traced."""
        trace = traces.get()
        while trace is not None:
            trace.blocks[self] = None
            self._programs.setdefault(trace.cache, set()).add(trace.key)
            trace = trace.outer

    def changed(self) -> None:
        """Drop these programs."""
        for cache, keys in list(self._programs.items()):
            cache.forget(keys)
        self._programs.clear()
