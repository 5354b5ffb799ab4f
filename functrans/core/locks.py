"""Locks that a forked child finds open.

A fork copies the locks that other threads hold, but not the threads that would open them. What these locks protect is
whole at any instant (tables that are changed by one operation), so a child may go on with it.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

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
