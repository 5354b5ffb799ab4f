"""The overrides of options in a context, and who is told that there are such."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .locks import new_rlock


class Patch:
    """The overrides of a context, and the key they give (until the process-wide values change)."""

    __slots__ = ("__weakref__", "key", "outer", "overrides", "version")

    def __init__(self, overrides: dict[str, Any], outer: Patch | None):
        self.overrides = overrides
        self.outer = outer
        self.version = -1
        self.key: tuple[Any, ...] = ()


class Watch:
    """Tells somebody when an option begins, and ceases, to be on anywhere: in the process or in a context."""

    __slots__ = ("count", "lock", "told")

    def __init__(self, told: Callable[[bool], None]):
        self.told = told
        self.count = 0
        self.lock = new_rlock()  # a context may end while this thread holds it

    def add(self, number: int) -> None:
        """Count places where the option is on."""
        with self.lock:
            before, self.count = self.count, self.count + number
            if bool(before) != bool(self.count):
                self.told(bool(self.count))

    def follow(self, patch: Patch) -> None:
        """Count a patch that has the option on, for as long as a context has the patch."""
        self.add(1)
        weakref.finalize(patch, self.add, -1).atexit = False
