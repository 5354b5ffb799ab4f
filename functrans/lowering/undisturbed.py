"""Compilation that neither an interrupt nor a fork meets half done.

Numba and LLVM keep tables for the whole process, and an exception in their midst (`KeyboardInterrupt`, or whatever else
the handler of a signal raises) leaves them broken; the next compilation may crash. Python runs handlers in the main
thread only. So a compilation that the main thread wants is done by a thread of its own: an interrupt ends the waiting
for it at once, and the compilation ends by itself, to be found by the next call.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any

#: Bytes; LLVM recurses deeply, and threads have small stacks in places.
_STACK = 1 << 24


def undisturbed(f: Callable[..., Any], *args: Any) -> Any:
    """``f(*args)``, run to its end whatever signals arrive; an interrupt of the main thread leaves it running."""
    if threading.current_thread() is not threading.main_thread():
        return f(*args)
    outcome: Future[Any] = Future()
    thread = threading.Thread(
        target=copy_context().run, args=(_run, outcome, f, args), name="functrans compiles"
    )
    size = threading.stack_size()
    try:
        threading.stack_size(max(size, _STACK))
        thread.start()
    except RuntimeError:  # no more threads: the interpreter ends, or a limit is reached
        return f(*args)
    finally:
        threading.stack_size(size)
    try:
        return outcome.result()
    finally:
        del outcome  # an exception in it would hold this frame, and that the exception


def _run(outcome: Future[Any], f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        outcome.set_result(f(*args))
    except BaseException as error:
        outcome.set_exception(error)


#: Where `fork` waits for the end of a compilation.
_forking: list[Any] = []


def wait_in_fork() -> None:
    """Let forks wait for compilations under way, which their children could not end. Called when Numba is loaded."""
    from numba.core.compiler_lock import global_compiler_lock

    if not _forking and hasattr(os, "register_at_fork"):
        _forking.append(global_compiler_lock)
        os.register_at_fork(
            before=global_compiler_lock.acquire,
            after_in_parent=global_compiler_lock.release,
            after_in_child=global_compiler_lock.release,
        )
