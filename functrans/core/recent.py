"""Caches of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

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
