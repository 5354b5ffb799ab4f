"""Compilation, and the disposal of what was compiled, that an interrupt or a fork cannot break off halfway.

Numba and LLVM keep process-wide tables, and llvmlite a lock. An exception in their midst (`KeyboardInterrupt`, or
anything else that a signal handler raises) corrupts the tables, so that the next compilation may crash, or leaves the
lock closed, so that other threads wait for ever. Python runs signal handlers only in the main thread. So when the main
thread needs a compilation, another thread does it: an interrupt ends the wait at once, and the compilation continues to
its end, so that the next call finds its result. What the main thread drops is only noted, and disposed of by the next
thread that compiles (`Disposal`).
"""

from __future__ import annotations

import _thread
import atexit
import operator
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from itertools import starmap
from typing import Any

from ..runtime.context import compiling

#: Stack size in bytes; LLVM recurses deeply, and threads have small stacks on some systems.
_STACK = 1 << 24


def undisturbed(f: Callable[..., Any], *args: Any) -> Any:
    """``f(*args)``, run to its end whatever signals arrive; an interrupt of the main thread leaves it running.

    `threading.Thread.start` and `concurrent.futures.Future` are Python code, which a signal handler can leave halfway:
    the handler's exception was replaced by a KeyError of `start`, or a lock stayed closed. So only C code starts the
    thread here, and waits for it.
    """
    if _thread.get_ident() != threading.main_thread().ident or _ending:
        return _alone(f, args)
    outcome: list[Any] = []
    done = _thread.allocate_lock()
    done.acquire()
    size = threading.stack_size()
    started: list[Any] = []
    steps = starmap(
        operator.call,
        (
            (threading.stack_size, max(size, _STACK)),
            (_thread.start_new_thread, copy_context().run, (_run, outcome, done, f, args)),
            (threading.stack_size, size),
        ),
    )
    try:
        started.extend(steps)  # all in one call of C
    except RuntimeError:
        if len(started) > 1:  # it was started: this is the exception of a signal handler
            raise
        threading.stack_size(size)
        return _alone(f, args)  # no thread can be started: the interpreter is ending, or a limit is reached
    done.acquire()
    value, error = outcome
    if error is None:
        return value
    try:
        raise error
    finally:
        del error, outcome  # break the cycle between the exception and this frame


def _run(outcome: list[Any], done: Any, f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    sys.settrace(threading.gettrace())  # as `threading` does for its threads
    sys.setprofile(threading.getprofile())
    try:
        outcome[:] = _alone(f, args), None
    except BaseException as error:
        outcome[:] = None, error
    finally:
        done.release()


def _alone(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    with compiling:
        return f(*args)


_ending: list[bool] = []


@atexit.register
def _end() -> None:
    """Wait for threads that compile: one that is cut off while the interpreter ends keeps its locks closed."""
    compiling.acquire()
    _ending.append(True)


class Disposal:
    """Holds resources for their owners, and drops them where no signal arrives, after the owners have died."""

    def __init__(self) -> None:
        self._resources: dict[weakref.ref[Any], Any] = {}
        self._dead: deque[weakref.ref[Any]] = deque()

    def hold(self, owner: Any, resource: Any) -> None:
        """Keep a resource until its owner has died, and `run` is called."""
        # When the owner dies, only C code runs.
        self._resources[weakref.ref(owner, self._dead.append)] = resource

    def run(self) -> None:
        """Drop the resources of all owners that have died. Call it where no signal arrives."""
        while self._dead:
            self._resources.pop(self._dead.popleft(), None)

    def __len__(self) -> int:
        return len(self._resources)
