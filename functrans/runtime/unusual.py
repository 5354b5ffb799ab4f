"""What this process looks for besides computing: unusual options and dtypes, and where time goes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Listener(Protocol):
    """What receives the events of a process while a profile is open; `profiler.recorder` implements it."""

    def run(self, kind: str | Callable[[Any], str], f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """``f(*args)``, recorded as an event of this kind, which may follow from the result."""
        ...

    def host(self, equation: Any, number: int | None, f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """The same for an equation that Python evaluates; with its number if a kernel calls it."""
        ...

    def awaited(self, lock: Any) -> AbstractContextManager[Any]:
        """A lock as a context manager that records how long its owner waits for it."""
        ...

    def keep(self, counters: Any) -> None:
        """Keep the counters of a timed kernel."""
        ...


class _Unusual:
    """Whether this process has ever used autocast, arrays of float16 or bfloat16, or an option such as ``debug_nans``.

    Until then, operators and methods of an `Array` are NumPy's, and look at nothing. `narrow` says whether 64 bits have
    ever been off; `recorder` is there while a profile is open.
    """

    __slots__ = ("narrow", "recorder", "used")

    def __init__(self) -> None:
        self.used = False
        self.narrow = False
        self.recorder: Listener | None = None


unusual = _Unusual()


def recorded(kind: str | Callable[[Any], str], f: Callable[..., Any], *args: Any) -> Any:
    """``f(*args)``; the recorder, if any, learns how long it takes."""
    recorder = unusual.recorder
    return f(*args) if recorder is None else recorder.run(kind, f, args)


def awaited(lock: Any) -> Any:
    """A lock; the recorder, if any, learns how long a thread waits for it."""
    recorder = unusual.recorder
    return lock if recorder is None else recorder.awaited(lock)
