"""Callers that failed because a function was not traced yet compile when they are called again.

A dispatcher of Numba's notes the types for which it failed to infer types, and raises the old error again for them. It
says when it begins and ends to compile, by events. So after a failure of ours, each dispatcher that ends forgets it, up
to the one that was called first.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any

from ...runtime.private.numba_names import (
    COMPILING,
    LOCKED,
    Listener,
    forget_failure,
    global_compiler_lock,
    register_listener,
)

#: The threads in which a function was not traced yet, until Numba has nothing left to compile there.
_failed: set[int] = set()


def note_failure() -> None:
    """Have those that are compiling in this thread forget that they fail."""
    _failed.add(get_ident())


class _Forgetting(Listener):
    """See the module."""

    def on_start(self, event: Any) -> None:
        """Nothing: this file may be imported while Numba compiles, so not all that ends has been seen to begin."""

    def on_end(self, event: Any) -> None:
        """Forget the failure of a dispatcher, if it is one."""
        if event.kind == COMPILING:
            if get_ident() in _failed:
                forget_failure(**event.data)
        elif not global_compiler_lock.is_locked():  # by this thread
            _failed.discard(get_ident())


_forgetting = _Forgetting()
register_listener(COMPILING, _forgetting)
register_listener(LOCKED, _forgetting)
