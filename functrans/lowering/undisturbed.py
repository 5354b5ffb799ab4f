"""Compilation that neither an interrupt nor a fork meets half done.

Numba and LLVM keep tables for the whole process, and an exception in their midst (`KeyboardInterrupt`, or whatever else
the handler of a signal raises) leaves them broken; the next compilation may crash. Python runs handlers in the main
thread only. So a compilation that the main thread wants is done by a thread of its own: an interrupt ends the waiting
for it at once, and the compilation ends by itself, to be found by the next call.
"""

from __future__ import annotations

import os
import sys
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
        return _alone(f, args)
    outcome: Future[Any] = Future()
    thread = threading.Thread(
        target=copy_context().run, args=(_run, outcome, f, args), name="functrans compiles"
    )
    size = threading.stack_size()
    try:
        threading.stack_size(max(size, _STACK))
        thread.start()
    except RuntimeError:  # no more threads: the interpreter ends, or a limit is reached
        return _alone(f, args)
    finally:
        threading.stack_size(size)
    try:
        return outcome.result()
    finally:
        del outcome  # an exception in it would hold this frame, and that the exception


def _run(outcome: Future[Any], f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        outcome.set_result(_alone(f, args))
    except BaseException as error:
        outcome.set_exception(error)


#: Closed while something is compiled, and while the process forks: a child cannot end what another thread began.
_compiling = threading.RLock()


def _alone(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    with _compiling:
        return f(*args)


def _before_fork() -> None:
    _compiling.acquire()
    for lock in _native_locks():
        lock.__enter__()


def _after_fork() -> None:
    for lock in reversed(_native_locks()):
        lock.__exit__(None, None, None)
    _compiling.release()


def _native_locks() -> list[Any]:
    """Numba's and llvmlite's: users' functions are compiled, and LLVM's objects freed, without ours."""
    numba, llvm = map(sys.modules.get, ("numba.core.compiler_lock", "llvmlite.binding.ffi"))
    locks = getattr(numba, "global_compiler_lock", None), getattr(getattr(llvm, "lib", None), "_lock", None)
    return [lock for lock in locks if lock is not None]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
