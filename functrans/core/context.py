"""State that threads share: context variables set for the length of a call, and locks that survive a fork.

Python runs the handlers of signals, and so raises `KeyboardInterrupt`, where a call returns, at the start of a function
and at the end of a loop's round. A context manager written in Python has such instants between its setting a variable
and the start of the block, and between the end of the block and the resetting. These functions have none.

A fork copies the locks that other threads hold, but not the threads that would release them. What the locks of
`new_lock` protect is whole at any instant (tables changed by one operation), so in a child they start released.
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
    """``f(*args, **kwargs)`` while `variable` has a value; then it has the former one again."""
    before = variable.get()
    try:  # before it is set: an interrupt may be raised as soon as `set` returns
        variable.set(value)
        return f(*args, **kwargs)
    finally:  # one call of C, and no instant before it
        variable.set(before)


def run_quietly(f: Callable[..., Any], *args: Any, **kinds: Any) -> Any:
    """``f(*args)``, a function of ours, without NumPy's warnings: all, or those of the `kinds` of `numpy.errstate`.

    In a copy of the context, which C leaves: the methods of `numpy.errstate` are Python and can be interrupted.
    """
    return copy_context().run(_quiet, kinds or _ALL, f, args, {})


def quietly(f: F) -> F:
    """A function of ours without NumPy's warnings of overflow and the like."""

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
    """A value of a context variable for a ``with`` block, or for the calls of a function that it decorates.

    Parameters
    ----------
    variable : ContextVar
        Its value outside of all blocks is None.
    made : callable
        ``made(outer)`` is the value for the block, from that around it, and holds that as its attribute `outer`.

    Notes
    -----
    May be nested, and used again, by several threads at once.
    """

    __slots__ = ("_made", "_variable")

    def __init__(self, variable: ContextVar[Any], made: Callable[[Any], Any]):
        self._variable, self._made = variable, made

    def __enter__(self) -> None:
        outer = self._variable.get()
        value = self._made(outer)
        try:
            self._variable.set(value)
        except BaseException:  # an interrupt, as soon as it was set: the block does not begin
            self._variable.set(outer)
            raise

    def __exit__(self, *exception: object) -> None:
        # The former value hangs on the present one, not on this object, which several threads may be using.
        try:
            value = self._variable.get()
        except BaseException:  # an interrupt, as soon as it returned
            value = self._variable.get()
            self._variable.set(None if value is None else value.outer)
            raise
        self._variable.set(None if value is None else value.outer)

    def __call__(self, f: F) -> F:
        """The function, whose calls have the value."""

        @functools.wraps(f)
        def overridden(*args: Any, **kwargs: Any) -> Any:
            return run_with(self._variable, self._made(self._variable.get()), f, *args, **kwargs)

        return overridden  # type: ignore[return-value]


_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> Any:
    """As `threading.Lock`."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def new_rlock() -> Any:
    """As `threading.RLock`: the thread that holds it may take it again."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _open_all() -> None:
    for lock in list(_locks):
        # The thread that forked goes on, and opens its own.
        if not (hasattr(lock, "_is_owned") and lock._is_owned()):
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)
