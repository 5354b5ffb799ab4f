"""What a function computes, as something that can be compared: its code, and what it reads from around it.

Loops keep what was derived from their bodies, by the rules in them. A rule is derived once; where it reads a number
that has changed since, it must be derived anew. So what a function reads belongs to its `fingerprint`: what stands in
its closure, its defaults and in global variables, also where other functions of the user's read it.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Hashable, Iterator
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..core.array import Array
from ..core.source import is_internal

_DEFINITIONS = (type, ModuleType, BuiltinFunctionType, np.ufunc, Array, np.dtype, enum.Enum)
_DATA = (bool, int, float, complex, str, np.generic, np.ndarray, tuple, list, dict)
_LIBRARIES = sys.stdlib_module_names | {"numpy", "scipy", "functrans"}
_PLAIN = frozenset((bool, int, str, bytes, CodeType, type(None)))
_FUNCTIONS = (FunctionType, MethodType, partial)
#: An array of at most this many bytes is compared by its numbers; a larger one may change, and equals nothing.
_LARGE = 4096
#: Functions, containers and objects that are looked into.
_MOST = 500


class Composed:
    """A function made of functions of the user's: one with rules."""

    def parts(self) -> tuple[Any, ...]:
        """These functions, and what else tells it from others."""
        raise NotImplementedError


class _Same:
    """Equal to another one of the same object."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def is_function(x: Any) -> bool:
    """Whether `x` computes by functions of the user's."""
    return isinstance(x, (*_FUNCTIONS, Composed))


def fingerprint(x: Any, seen: dict[int, int] | None = None) -> Hashable:
    """Something equal for values of which functions compute the same.

    Parameters
    ----------
    x : object
        A function or a value: 1, 1.0 and True are not equal, nor are 0.0 and -0.0, and one NaN is equal to the next.
    seen : dict
        What was met on the way here, by ``id``: functions may call each other.
    """
    seen = {} if seen is None else seen
    kind = type(x)
    if kind in _PLAIN:
        return kind, x
    if isinstance(x, float | complex | np.generic):
        return kind, repr(x)
    if isinstance(x, type) and not isinstance(x, Composed):
        found = [fingerprint(part, seen) for part in _data(x)]
        return (_Same(x), *found) if found else _Same(x)
    if isinstance(x, _DEFINITIONS) and not isinstance(x, type):
        return _Same(x)
    if isinstance(x, np.ndarray):
        return (kind, x.shape, x.dtype, x.tobytes()) if x.nbytes <= _LARGE else object()
    if _compares(x):
        return kind, x
    if id(x) in seen:
        return "met before", seen[id(x)]
    if len(seen) == _MOST:
        return object()
    seen[id(x)] = len(seen)
    parts = _parts(x)
    if parts is not None:
        return (kind, *[fingerprint(part, seen) for part in parts])
    return _Same(x) if kind is object or _is_ours(kind) else object()


def _parts(x: Any) -> list[Any] | None:
    """What a value consists of; None where it is not looked into."""
    kind = type(x)
    if kind is FunctionType:
        return list(_read(x))
    if kind is partial:
        return [x.func, x.args, x.keywords]
    if kind is MethodType:
        return [x.__func__, x.__self__]
    if isinstance(x, Composed):
        return list(x.parts())
    if isinstance(x, tuple | list):
        return list(x)
    items = x if isinstance(x, dict) else None if _is_ours(kind) else getattr(x, "__dict__", None)
    return None if items is None else [part for item in items.items() for part in item]


def attributes(cls: type) -> Iterator[tuple[str, Any]]:
    """Of a class of the user's what is no method, also of its bases."""
    for c in cls.__mro__:
        if not _is_library(c.__module__):
            for name, x in tuple(vars(c).items()):
                if not (name.startswith("__") or hasattr(type(x), "__get__")):
                    yield name, x


def _data(cls: type) -> list[Any]:
    """What functions may read from a class, as from a namespace."""
    return [part for name, x in attributes(cls) if isinstance(x, _DATA) for part in (name, x)]


def _is_library(name: str) -> bool:
    """Whether a class or module is Python's, NumPy's, SciPy's or ours."""
    return name.partition(".")[0] in _LIBRARIES


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def _compares(x: Any) -> bool:
    """Whether a value is compared by a method of its own, and hashable."""
    kind = type(x)
    own: Any = kind.__eq__
    if own is object.__eq__ or isinstance(x, (*_FUNCTIONS, tuple)):
        return False
    try:
        hash(x)
    except Exception:  # of the user's class
        return False
    return True


def _read(f: FunctionType) -> Iterator[Any]:
    """What a function reads."""
    yield f.__code__
    for cell in f.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            yield None
    if is_internal(f.__code__):
        return  # of all else, libraries read definitions only
    yield f.__defaults__
    yield f.__kwdefaults__
    names = sorted(set(_names(f.__code__)))
    for name in names:
        if name in f.__globals__:
            yield name
            yield (value := f.__globals__[name])
            if isinstance(value, ModuleType) and not _is_library(value.__name__):
                yield from _read_of(value, names)


def _read_of(module: ModuleType, names: list[str]) -> Iterator[Any]:
    """The data in a module by these names."""
    for name in names:
        if isinstance(x := vars(module).get(name), _DATA):
            yield name
            yield x


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
