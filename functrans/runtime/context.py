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
import gc
import logging  # noqa: F401  its handler of forks must be registered before the one of this module
import os
import signal
import sys
import threading
import weakref
from _thread import RLock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from types import CodeType
from typing import Any, Generic, TypeVar

import numpy as np

K = TypeVar("K")
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


def pass_on(error: BaseException) -> None:
    """Raise an exception again if a signal handler raised it.

    For blocks that replace, or ignore, whatever a call of a user's object raises.
    """
    traceback = error.__traceback__
    if traceback is None or traceback.tb_next is None:  # it was not raised in another frame, as mostly
        return
    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()}
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            raise error
        traceback = traceback.tb_next


def _code(handler: Any) -> CodeType | None:
    if not callable(handler):
        return None
    handler = getattr(handler, "func", handler)  # of a partial
    code = getattr(handler, "__code__", None)  # also of a method
    return getattr(type(handler).__call__, "__code__", None) if code is None else code


class Override:
    """Set a context variable within a ``with`` block, or during the calls of a decorated function.

    Parameters
    ----------
    variable : ContextVar
        The variable, whose value outside all blocks is None.
    make : callable
        ``make(outer)`` returns the value for the block, from the outer value, which it stores as its attribute
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


class Living(Generic[T]):
    """Objects that are alive, each with a value: a `weakref.WeakKeyDictionary`, or a `weakref.WeakSet`.

    Objects leave it without Python code: what a signal handler raises in that is lost, and the entry stays.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[weakref.ref[Any], T] = {}

    def add(self: Living[None], x: Any) -> None:
        """Note an object, which must be hashed by identity."""
        self.setdefault(x, None)

    def setdefault(self, x: Any, value: T) -> T:
        """The value of an object, which must be hashed by identity; `value` if it is new."""
        return self._entries.setdefault(weakref.ref(x, self._entries.pop), value)

    def get(self, x: Any) -> T | None:
        """The value of an object, or None."""
        return self._entries.get(weakref.ref(x))

    def discard(self, x: Any) -> None:
        """Forget an object, if it is known."""
        self._entries.pop(weakref.ref(x), None)

    def items(self) -> list[tuple[Any, T]]:
        """The objects with their values."""
        return [(x, value) for r, value in list(self._entries.items()) if (x := r()) is not None]

    def clear(self) -> None:
        """Forget all objects."""
        self._entries = {}  # those that die later leave the old one

    def __contains__(self, x: Any) -> bool:
        return weakref.ref(x) in self._entries

    def __iter__(self) -> Iterator[Any]:
        return iter([x for x, _ in self.items()])

    def __len__(self) -> int:
        return len(self._entries)


class LivingValues(Generic[K, T]):
    """Values by key for as long as something else holds them: a `weakref.WeakValueDictionary`.

    Values leave it without Python code, as from `Living`, if C hashes the keys: numbers, bytes, tuples of these.
    """

    __slots__ = ("_references",)

    def __init__(self) -> None:
        self._references: dict[K, weakref.ref[Any]] = {}

    def get(self, key: K) -> T | None:
        """The value, or None."""
        reference = self._references.get(key)
        return None if reference is None else reference()

    def __getitem__(self, key: K) -> T:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: K, value: T) -> None:
        self._references[key] = weakref.ref(value, functools.partial(self._references.pop, key))

    def clear(self) -> None:
        """Forget all values."""
        self._references = {}

    def __len__(self) -> int:
        return len(self._references)


class TakenWhole(RLock):  # type: ignore[misc]  # the stubs call it final; CPython does not
    """A lock of which an interrupt leaves either nothing or a block to its end.

    Since 3.14, Python looks for signals between the end of a lock's ``__enter__`` in C and the start of the block,
    where nothing releases the lock. It does not look there if the method is Python code.
    """

    def __enter__(self) -> bool:  # type: ignore[override]
        taken: list[bool] = []
        try:
            taken.extend(map(self.acquire, (True,)))  # taken and noted in one call of C
        except BaseException:
            if taken:
                self.release()
            raise
        return True


_looks_after_enter = sys.version_info >= (3, 14)
_locks: Living[None] = Living()


def new_lock() -> Any:
    """Like `threading.Lock`, for blocks; the thread that holds it must not ask for it again."""
    lock = TakenWhole() if _looks_after_enter else threading.Lock()
    _locks.add(lock)
    return lock


def new_rlock() -> Any:
    """Like `threading.RLock`: the thread that holds it may acquire it again."""
    lock = TakenWhole() if _looks_after_enter else threading.RLock()
    _locks.add(lock)
    return lock


class cached_property(functools.cached_property[T]):
    """Python's, whose lock a fork opens, too; before 3.12, all objects of a class share one."""

    def __init__(self, func: Callable[[Any], T]):
        super().__init__(func)
        if hasattr(self, "lock"):
            _locks.add(self.lock)


def _open_all() -> None:
    for lock in _locks:
        # The forking thread continues in the child, and releases the locks that it holds.
        if not (hasattr(lock, "_is_owned") and lock._is_owned()):
            lock._at_fork_reinit()


#: Held while kernels compile, and while a library or a part of functrans loads. A child cannot finish what another
#: thread began, so a fork waits for these, in this order.
compiling, loading = (
    (TakenWhole(), TakenWhole()) if _looks_after_enter else (threading.RLock(), threading.RLock())
)


@contextmanager
def imports() -> Iterator[None]:
    """A block of imports, without Python's collector, which would take a tenth of their time and find nothing."""
    with loading:  # so that no fork sees the collector off, and only one thread switches it
        collects = gc.isenabled()
        try:
            gc.disable()
            yield
        finally:
            if collects:
                if not gc.get_freeze_count():
                    gc.freeze()
                    gc.unfreeze()  # what is new is old at once, or the next collection would look at all of it
                gc.enable()


#: The locks that the fork in progress has taken. Another thread may load llvmlite, or this module, during a fork: then
#: there are more locks after it than before.
_taken: list[Any] = []


def _native_locks() -> list[Any]:
    """Those of Numba and llvmlite: compiling users' functions and freeing LLVM's objects also take time."""
    numba, llvm = map(sys.modules.get, ("numba.core.compiler_lock", "llvmlite.binding.ffi"))
    locks = getattr(numba, "global_compiler_lock", None), getattr(getattr(llvm, "lib", None), "_lock", None)
    return [lock for lock in locks if lock is not None]


def _before_fork() -> None:
    for locks in (lambda: [compiling, loading], _native_locks):
        for lock in locks():  # the native ones are known once nothing loads any more
            lock.__enter__()
            _taken.append(lock)


def _after_fork() -> None:
    taken = _taken.copy()
    _taken.clear()
    for lock in reversed(taken):
        lock.__exit__(None, None, None)


def _after_fork_in_child() -> None:
    if not _taken:  # this module was loaded during the fork, perhaps by a thread that the child does not have
        compiling._at_fork_reinit()  # type: ignore[attr-defined]
        loading._at_fork_reinit()  # type: ignore[attr-defined]
    _after_fork()
    _open_all()


# Handlers run in reverse order before a fork. What compiles or loads may write to a log, so the lock of `logging` is
# taken after those of this module: a fork that had it first would wait for ever for a thread that waits for it.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
