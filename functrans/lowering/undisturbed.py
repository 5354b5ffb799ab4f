"""Compilation that an interrupt or a fork cannot break off halfway.

Numba and LLVM keep process-wide tables. An exception in their midst (`KeyboardInterrupt`, or anything else that a
signal handler raises) corrupts these, and the next compilation may crash. Python runs signal handlers only in the main
thread. So when the main thread needs a compilation, another thread does it: an interrupt ends the wait at once, and the
compilation continues to its end, so that the next call finds its result.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any

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


#: Held while compiling and while the process forks: a child cannot finish another thread's compilation.
_compiling = threading.RLock()


def _alone(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    with _compiling:
        return f(*args)


#: The locks that the fork in progress has taken. A thread may import llvmlite, or this module, while another one forks:
#: then there are more locks after the fork than before it.
_taken: list[Any] = []


def _before_fork() -> None:
    for lock in (_compiling, *_native_locks()):
        lock.__enter__()
        _taken.append(lock)


def _after_fork() -> None:
    taken = _taken.copy()
    _taken.clear()
    for lock in reversed(taken):
        lock.__exit__(None, None, None)


def _after_fork_in_child() -> None:
    global _compiling
    if not _taken:  # perhaps held by a thread that the child does not have
        _compiling = threading.RLock()
    _after_fork()


def _native_locks() -> list[Any]:
    """Wrap Numba and llvmlite: compiling users' functions and freeing LLVM's objects also take the lock."""
    numba, llvm = map(sys.modules.get, ("numba.core.compiler_lock", "llvmlite.binding.ffi"))
    locks = getattr(numba, "global_compiler_lock", None), getattr(getattr(llvm, "lib", None), "_lock", None)
    return [lock for lock in locks if lock is not None]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
