"""Jitted functions bound to an instance: methods and callable objects."""

from __future__ import annotations

import functools
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from ...errors import StaleInstanceError
from ...errors.source import warn_user
from ...runtime.libraries import package_of
from .caches import Cache, caches
from .snapshots import IncomparableError, Snapshot

_PACKAGE = __name__.partition(".")[0]
_CURES = (
    "Register {} as a pytree (functrans.tree_util.register_dataclass), so that its arrays are arguments; or pass the "
    "value as an argument of the method; or make the instance a constant on purpose, ignoring later changes, with "
    "jit(..., static_argnames='self') or functools.partial of a plain function"
)
#: After so many traces of a method because its instance had changed, a warning says so.
_MANY = 10


class InstanceChangedError(Exception):
    """The instance of a method has changed, so its programs were dropped. `Jitted.__call__` then traces again."""


def untransformed(fun: Any) -> Any:
    """The innermost function, below `grad`, `vmap`, `jit` and other transformations."""
    while package_of(type(fun)) == _PACKAGE and hasattr(fun, "__wrapped__"):
        fun = fun.__wrapped__
    return fun


def instance_of(fun: Any) -> Any:
    """The instance of a bound method or a callable object; None for other functions.

    Looks through transformations: ``grad(model.loss)`` reads the model as ``model.loss`` does.
    """
    fun = untransformed(fun)
    if type(fun) is MethodType:
        return fun.__self__
    plain = isinstance(fun, FunctionType | BuiltinFunctionType | functools.partial | np.ufunc | type)
    if plain or package_of(type(fun)) == _PACKAGE or type(type(fun).__call__) is not FunctionType:
        return None
    return fun


class InstanceCaches:
    """The caches of a jitted method, one for each instance that it is bound to."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[weakref.ref[Any], Cache]] = {}
        #: Those of instances without weak references, matched by their values.
        self._unheld: deque[Cache] = deque(maxlen=8)

    def of(self, instance: Any) -> Cache | None:
        """The cache for `instance`, freed with the instance, which it does not keep alive.

        None if its class has slots without room for weak references.
        """
        key = id(instance)
        found = self._held.get(key)
        if found is None:
            caches_of = weakref.ref(self)

            def forget(_: object) -> None:
                instances = caches_of()
                if instances is not None:
                    instances._held.pop(key, None)

            try:
                found = weakref.ref(instance, forget), caches.new()
            except TypeError:
                return None
            found = self._held.setdefault(key, found)
        return found[1]

    def of_equal(self, instance: Any) -> Cache:
        """The cache for an instance without weak references: that of any instance of the same value."""
        for cache in self._unheld:
            snapshot = cache.snapshot
            if snapshot is not None and snapshot.same(instance):
                return cache
        cache = caches.new()
        self._unheld.append(cache)
        return cache


@contextmanager
def remembered(fun: Any, cache: Cache) -> Iterator[None]:
    """While a method is traced: puts a snapshot of its instance into its cache.

    Raises
    ------
    StaleInstanceError
        If the instance cannot be compared, or holds an object with hidden state (a random generator, an iterator) from
        which the method has drawn, because what it drew would be a constant.
    """
    before, instance = _snapshot(fun), instance_of(fun)
    yield
    for path, x, same in before.hidden:
        if not same(x):
            raise _error(fun, path, x, "whose state changed while the method was traced")
    if cache.snapshot is None or not cache.snapshot.same(instance):
        cache.snapshot = before if before.same(instance) else _snapshot(fun)
        cache.snapshot.hidden.clear()  # a snapshot keeps nothing alive
        cache.drop_calls()  # they compare with the earlier one


def _snapshot(fun: Any) -> Snapshot:
    """The snapshot of the instance in a function. An object that defines ``__eq__`` and ``__hash__`` is trusted."""
    instance = instance_of(fun)
    kind: Any = type(instance)
    own = kind.__eq__ is not object.__eq__ and kind.__hash__ not in (None, object.__hash__)
    try:
        return Snapshot(instance, lenient=own)
    except IncomparableError as error:
        raise _error(fun, *error.args) from None


def _error(fun: Any, path: str, value: Any, why: str) -> StaleInstanceError:
    return StaleInstanceError(
        f"jit of {title_of(fun)}: {path} is of type {type(value).__name__}, {why}, while what the method reads from "
        f"self becomes a constant of the compiled program. {_CURES.format(type(instance_of(fun)).__name__)}"
    )


def refresh(fun: Any, cache: Cache) -> bool:
    """Drop the programs of a method if its instance has changed; return whether it has."""
    snapshot, instance = cache.snapshot, instance_of(fun)
    if snapshot is None or snapshot.same(instance):
        return False
    cache.clear()
    cache.changes += 1
    if cache.changes == _MANY:
        name, kind = snapshot.changed(instance), type(instance).__name__
        what = f"self{name}" if name else f"what the class {kind} holds"
        warn_user(
            f"jit of {title_of(fun)}: traced {_MANY} times because {what} had changed between calls. "
            f"{_CURES.format(kind)}"
        )
    return True


def held_weakly(instance: Any) -> Callable[[], Any]:
    """A function that returns the instance, and does not keep it alive if possible."""
    try:
        return weakref.ref(instance)
    except TypeError:
        return lambda: instance


def title_of(fun: Any) -> str:
    """The name of a function, for messages."""
    fun = untransformed(fun)
    return str(getattr(fun, "__qualname__", type(fun).__qualname__))
