"""State that threads share: context variables set for the duration of a call, and locks that survive a fork.

Python runs signal handlers, and so raises `KeyboardInterrupt`, when a call returns, when a function starts, and at the
end of a loop iteration. A context manager written in Python has such moments between setting a variable and the start
of the block, and between the end of the block and the reset. These functions have none.

A fork copies the locks that other threads hold, but not the threads that would release them. The data that the locks of
`new_lock` protect is consistent at every instant (tables changed by single operations), so a child starts with them
released.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def run_with(variable: ContextVar[T], value: T, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``f(*args, **kwargs)`` while `variable` has this value; the previous value then returns."""
    before = variable.get()
    try:  # entered before the variable is set: an interrupt may arrive as soon as `set` returns
        variable.set(value)
        return f(*args, **kwargs)
    finally:  # a single C call, with no chance for an interrupt before it
        variable.set(before)


def run_quietly(f: Callable[..., Any], *args: Any, **kinds: Any) -> Any:
    """``f(*args)``, an internal function, without NumPy's warnings: all, or those of `kinds` (see `numpy.errstate`).

    It runs in a copy of the context, which C code leaves: the methods of `numpy.errstate` are Python and can be
    interrupted.
    """
    return copy_context().run(_quiet, kinds or _ALL, f, args, {})


def quietly(f: F) -> F:
    """An internal function with NumPy's floating-point warnings off."""

    @functools.wraps(f)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        return copy_context().run(_quiet, _ALL, f, args, kwargs)

    return quiet  # type: ignore[return-value]


_ALL = {"all": "ignore"}


def _quiet(
    kinds: dict[str, Any], f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    with np.errstate(**kinds):
        return f(*args, **kwargs)


class Override:
    """Set a context variable within a ``with`` block, or during the calls of a decorated function.

    Parameters
    ----------
    variable : ContextVar
        The variable, whose value outside all blocks is None.
    make : callable
        ``make(outer)`` returns the value for the block, given the outer value, which it stores as its attribute
        `outer`.

    Notes
    -----
    May be nested and reused, also by several threads at once.
    """

    __slots__ = ("_make", "_variable")

    def __init__(self, variable: ContextVar[Any], make: Callable[[Any], Any]):
        self._variable, self._make = variable, make

    def __enter__(self) -> None:
        outer = self._variable.get()
        value = self._make(outer)
        try:
            self._variable.set(value)
        except BaseException:  # an interrupt right after it was set: the block does not start
            self._variable.set(outer)
            raise

    def __exit__(self, *exception: object) -> None:
        # The current value holds the previous one. This object does not: several threads may use it.
        try:
            value = self._variable.get()
        except BaseException:  # an interrupt right after it returned
            value = self._variable.get()
            self._variable.set(None if value is None else value.outer)
            raise
        self._variable.set(None if value is None else value.outer)

    def __call__(self, f: F) -> F:
        """The function, with the value set during its calls."""

        @functools.wraps(f)
        def overridden(*args: Any, **kwargs: Any) -> Any:
            return run_with(self._variable, self._make(self._variable.get()), f, *args, **kwargs)

        return overridden  # type: ignore[return-value]


_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> Any:
    """Like `threading.Lock`."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def new_rlock() -> Any:
    """Like `threading.RLock`: the thread that holds it may acquire it again."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _open_all() -> None:
    for lock in list(_locks):
        # The forking thread continues in the child, and releases its own locks.
        if not (hasattr(lock, "_is_owned") and lock._is_owned()):
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)
