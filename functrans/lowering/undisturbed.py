"""Compilation that an interrupt or a fork cannot break off halfway.

Numba and LLVM keep process-wide tables. An exception in their midst (`KeyboardInterrupt`, or anything else that a
signal handler raises) corrupts these, and the next compilation may crash. Python runs signal handlers only in the main
thread. So when the main thread needs a compilation, another thread does it: an interrupt ends the wait at once, and the
compilation continues to its end, so that the next call finds its result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any

from ..core.context import compiling

#: Stack size in bytes; LLVM recurses deeply, and threads have small stacks on some systems.
_STACK = 1 << 24


def undisturbed(f: Callable[..., Any], *args: Any) -> Any:
    """``f(*args)``, run to its end whatever signals arrive; an interrupt of the main thread leaves it running."""
    if threading.current_thread() is not threading.main_thread():
        return _alone(f, args)
    outcome: Future[Any] = Future()
    thread = threading.Thread(
        target=copy_context().run, args=(_run, outcome, f, args), name="functrans compiles"
    )
    size = threading.stack_size()
    try:
        threading.stack_size(max(size, _STACK))
        thread.start()
    except RuntimeError:  # cannot start a thread: the interpreter is ending, or a limit is reached
        return _alone(f, args)
    finally:
        threading.stack_size(size)
    try:
        return outcome.result()
    finally:
        del outcome  # break the cycle between an exception in it and this frame


def _run(outcome: Future[Any], f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        outcome.set_result(_alone(f, args))
    except BaseException as error:
        outcome.set_exception(error)


def _alone(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    with compiling:
        return f(*args)
