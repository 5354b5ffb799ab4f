"""What a jitted method may have read from its instance while it was traced, and whether that is still so.

A traced method is a program without `self`: what it read is a constant of it. So an instance is watched, as far as the
method can read it: attributes with all that they hold. Lists and dictionaries are compared by their elements, writable
arrays by their numbers, objects by identity and by all their attributes, functions by identity and by what they
captured. What cannot be looked into is refused, since it may change unseen. Modules and global variables are as
constant as they are for any jitted function.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import functools
import re
import sys
import threading
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from operator import attrgetter, is_, itemgetter
from types import (
    BuiltinFunctionType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np

from ..core.array import Array
from ..core.trace import Tracer
from .reads import MISSING, of_class

_NUMBERS = (
    bool, int, float, complex, str, bytes, np.generic, range, slice, type(None), type(...), datetime.date,
    datetime.time, datetime.timedelta, decimal.Decimal,
)  # fmt: skip
_IDENTITIES = (
    np.dtype, np.ufunc, ModuleType, BuiltinFunctionType, enum.Enum, re.Pattern, Array, Tracer, property, staticmethod,
    classmethod, functools.cached_property, type(threading.Lock()), type(threading.RLock()),
)  # fmt: skip
_LIBRARIES = sys.stdlib_module_names | {"numpy", "scipy", "numba"}
_PACKAGE = __name__.partition(".")[0]
_WORD = np.dtype(np.intp).itemsize
#: The flag of types that a ``class`` statement made.
_HEAP = 1 << 9
#: Values that are watched, at most: each call looks at all of them.
_MOST = 2000
_NOTHING: dict[str, Any] = {}


class UnwatchableError(Exception):
    """A value cannot be watched: the path to it, and the value."""


class Watch:
    """The state of an instance, as far as a method may read it; keeps nothing alive that may lead back to it.

    Parameters
    ----------
    instance : object
    names : set of str or None
        The attributes that may be read; None: all.
    lenient : bool
        Whether what cannot be looked into is left out.

    Raises
    ------
    UnwatchableError
        If there is something in it that may change unseen.
    """

    def __init__(self, instance: Any, names: set[str] | None, *, lenient: bool = False):
        root = _Watcher(lenient).root(instance, names)
        quick = root.quickly(type(instance)) if type(root) is _Object else None
        self._root = root
        #: Whether it surely has not changed: what each call asks first.
        self.same: Callable[[Any], bool] = quick or (lambda x: root.changed(x) is None)

    def changed(self, instance: Any) -> str | None:
        """Where it has changed first: ``".w"``; None where it has not."""
        return self._root.changed(instance)


# --- values as they were ------------------------------------------------------------------------------------


class _Node:
    """A value as it was; `changed` gives the way to what has changed, "" for the value itself."""

    __slots__ = ()

    def changed(self, x: Any) -> str | None:
        """Where `x` differs from it."""
        return None


class _Number(_Node):
    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def changed(self, x: Any) -> str | None:
        value = self.value
        if x is value or (type(x) is type(value) and repr(x) == repr(value)):
            return None
        return ""


class _Set(_Node):
    """A set of numbers or names."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def changed(self, x: Any) -> str | None:
        return None if type(x) is type(self.value) and x == self.value else ""


class _Same(_Node):
    """A value that is looked at by identity; held weakly where that is possible."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        try:
            self.value: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self.value = lambda: value

    def changed(self, x: Any) -> str | None:
        return None if self.value() is x else ""


class _Numbers(_Node):
    """An array that may be written to: the same numbers will do."""

    __slots__ = ("bytes", "copy", "dtype", "shape")

    def __init__(self, x: np.ndarray):
        self.shape, self.dtype = x.shape, x.dtype
        small = x.nbytes < 4096 or x.itemsize not in (1, 2, 4, 8)
        self.bytes = x.tobytes() if small else None
        self.copy = None if small else self._words(x).copy()

    @staticmethod
    def _words(x: np.ndarray) -> np.ndarray:
        """The bits: a NaN equals itself, and zeros of two signs differ."""
        return np.ascontiguousarray(x).view(f"u{x.itemsize}")

    def changed(self, x: Any) -> str | None:
        if type(x) is not np.ndarray or x.shape != self.shape or x.dtype != self.dtype:
            return ""
        same = x.tobytes() == self.bytes if self.copy is None else np.array_equal(self._words(x), self.copy)
        return None if same else ""


class _Items(_Node):
    """The elements of a list, a tuple or their like."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: Any, parts: list[_Node]):
        self.kind, self.parts = kind, parts

    def changed(self, x: Any) -> str | None:
        if type(x) is not self.kind or len(x) != len(self.parts):
            return ""
        for i, (part, value) in enumerate(zip(self.parts, x)):
            found = part.changed(value)
            if found is not None:
                return f"[{i}]{found}"
        return None


class _Entries(_Node):
    """The entries of a dictionary, in their order."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: Any, parts: list[tuple[_Node, _Node]]):
        self.kind, self.parts = kind, parts

    def changed(self, x: Any) -> str | None:
        if type(x) is not self.kind or len(x) != len(self.parts):
            return ""
        for (first, part), (key, value) in zip(self.parts, x.items()):
            if first.changed(key) is not None:
                return ""
            found = part.changed(value)
            if found is not None:
                return f"[{key!r}]{found}"
        return None


class _Parts(_Node):
    """A value that consists of others, which have names."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: Any, parts: list[tuple[str, _Node]]):
        self.kind, self.parts = kind, parts

    def changed(self, x: Any) -> str | None:
        if type(x) is not self.kind:
            return ""
        return next(
            (found for name, part in self.parts if (found := part.changed(getattr(x, name))) is not None),
            None,
        )


class _Closure(_Node):
    """A function, and what it captured."""

    __slots__ = ("cells", "function")

    def __init__(self, function: FunctionType, cells: list[_Node]):
        self.function, self.cells = _Same(function), cells

    def changed(self, x: Any) -> str | None:
        if self.function.changed(x) is not None:
            return ""
        for name, cell, node in zip(x.__code__.co_freevars, x.__closure__ or (), self.cells):
            found = node.changed(_in_cell(cell))
            if found is not None:
                return f": the variable {name}{found}"
        return None


class _Functions(_Node):
    """An object that was made of functions: ``grad(f)``, a function with rules."""

    __slots__ = ("identity", "parts")

    def __init__(self, x: Any, parts: list[tuple[str, _Node]]):
        self.identity, self.parts = _Same(x), parts

    def changed(self, x: Any) -> str | None:
        if self.identity.changed(x) is not None:
            return ""
        for name, node in self.parts:
            value = vars(x).get(name, MISSING)
            found = node.changed(getattr(value, "functions", value))
            if found is not None:
                return f": a function in it{found}"
        return None


class _Object(_Node):
    """Attributes of an object: those in its dictionary, in its slots, and in its class.

    `count` is the number of attributes in its dictionary where all of them matter, otherwise None.
    """

    __slots__ = ("constant", "constants", "count", "identity", "inherited", "kept", "own", "slots")

    def __init__(self, x: Any):
        self.identity = _Same(x) if type(x).__weakrefoffset__ else None
        # Values that cannot be written to are looked up all at once, and then one by one if they are not the same.
        self.constants: Callable[[Any], Any] = _nothing
        self.kept: tuple[Any, ...] = ()
        self.constant: list[tuple[str, _Node]] = []
        self.own: list[tuple[str, _Node]] = []
        self.inherited: list[tuple[str, _Node]] = []
        self.slots: list[tuple[str, Any, _Node]] = []
        self.count: int | None = None

    def changed(self, x: Any) -> str | None:
        if self.identity is not None and self.identity.value() is not x:
            return ""
        if isinstance(x, type):
            cls, space = x, _NOTHING
        else:
            cls, space = type(x), getattr(x, "__dict__", _NOTHING)
        found = None
        if not _identical(self.constants, space, self.kept):
            found = _first(self.constant, space)
        found = found or _first(self.own, space)
        if found is not None:
            return found
        for name, node in self.inherited:
            entry = of_class(cls, name)
            hidden = name in space and not hasattr(type(entry), "__set__")
            found = node.changed(space[name] if hidden else entry)
            if found is not None:
                return f".{name}{found}"
        for name, slot, node in self.slots:
            found = node.changed(_in_slot(slot, x))
            if found is not None:
                return f".{name}{found}"
        return None if self.count is None or self.count == len(space) else ".__dict__"

    def quickly(self, cls: type) -> Callable[[Any], bool] | None:
        """A test whether all is the same object as before; None where objects are to be looked into."""
        looked_into = any(type(node) not in (_Same, _Number) for _, node in self.inherited)
        if self.own or self.slots or looked_into or self.count is not None:
            return None
        get, kept = self.constants, self.kept
        names = [name for name, _ in self.inherited]
        if not names:
            return functools.partial(_same_attributes, get, kept)
        of = attrgetter(*names, names[0])
        try:
            inherited = of(cls)
        except AttributeError:  # one that is not there
            return None
        if not all(map(is_, of(cls), inherited)):  # made anew each time, as methods of classes are
            return None
        visible = frozenset(names).isdisjoint

        def same(x: Any) -> bool:
            space = x.__dict__
            return _identical(get, space, kept) and visible(space) and _identical(of, type(x), inherited)

        return same


def _nothing(space: Any) -> tuple[Any, ...]:
    return ()


def _same_attributes(get: Callable[[Any], Any], kept: tuple[Any, ...], x: Any) -> bool:
    try:
        return all(map(is_, get(x.__dict__), kept))
    except (KeyError, AttributeError):
        return False


def _identical(get: Callable[[Any], Any], space: Any, kept: tuple[Any, ...]) -> bool:
    """Whether attributes are the objects that they were: the usual case, in little time."""
    try:
        return all(map(is_, get(space), kept))
    except (KeyError, AttributeError):
        return False


def _first(parts: list[tuple[str, _Node]], space: Any) -> str | None:
    for name, node in parts:
        found = node.changed(space.get(name, MISSING))
        if found is not None:
            return f".{name}{found}"
    return None


def _in_slot(slot: Any, x: Any) -> Any:
    try:
        return slot.__get__(x)
    except AttributeError:
        return MISSING


def _in_cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return MISSING


class _Watcher:
    """Makes nodes, one for each value."""

    def __init__(self, lenient: bool):
        self.lenient = lenient
        self.known: dict[int, tuple[Any, _Node]] = {}
        self.instance: Any = MISSING
        self.met = False

    def root(self, x: Any, names: set[str] | None) -> _Node:
        """The node of an instance, of which the attributes of these names are read."""
        if names is None or not _is_plain(x):
            return self.node(x, "self")
        node, self.instance = _Object(x), x
        self._add(node, x, names, "self")
        if not self.met:
            return node
        # What holds it can read any of its attributes.
        self.instance = MISSING
        self.known.clear()
        return self.node(x, "self")

    def node(self, x: Any, path: str) -> _Node:
        """The node of a value."""
        if isinstance(x, _NUMBERS):
            return _Number(x)
        if x is MISSING or isinstance(x, _IDENTITIES):
            return _Same(x)
        if x is self.instance:
            self.met = True
            return _Node()
        known = self.known.get(id(x))
        if known is not None:
            return known[1]
        if len(self.known) >= _MOST:
            self._refuse(f"{path} (more than {_MOST} values are in it)", x)
            return _Node()
        self.known[id(x)] = x, _Same(x) if type(x).__weakrefoffset__ else _Node()
        node = self._made(x, path)
        self.known[id(x)] = x, node
        return node

    def _refuse(self, path: str, x: Any) -> None:
        if not self.lenient:
            raise UnwatchableError(path, x)

    def _made(self, x: Any, path: str) -> _Node:
        kind = type(x)
        if kind is np.ndarray and not x.dtype.hasobject:
            return _Numbers(x)
        if kind in (list, deque) or (isinstance(x, tuple) and not hasattr(x, "__dict__")):
            return _Items(kind, [self.node(v, f"{path}[{i}]") for i, v in enumerate(x)])
        if kind in (set, frozenset) and all(isinstance(v, _NUMBERS) for v in x):
            return _Set(kind(x))
        if kind in (dict, OrderedDict, defaultdict):
            return _Entries(
                kind, [(self.node(k, path), self.node(v, f"{path}[{k!r}]")) for k, v in x.items()]
            )
        if kind is functools.partial or kind is MethodType:
            names = ("func", "args", "keywords") if kind is functools.partial else ("__func__", "__self__")
            return _Parts(kind, [(name, self.node(getattr(x, name), path)) for name in names])
        if kind is FunctionType:
            return _Closure(x, self._captured([_in_cell(c) for c in x.__closure__ or ()], path))
        if kind.__module__.partition(".")[0] == _PACKAGE:
            return self._transformed(x, path)
        if callable(x) and kind.__module__.partition(".")[0] in _LIBRARIES and not isinstance(x, type):
            return _Same(x)  # a function of a library
        return self._object(x, path)

    def _captured(self, values: list[Any], path: str) -> list[_Node]:
        """What functions captured; what cannot be looked into is constant there, as in any jitted function."""
        before, self.lenient = self.lenient, True
        nodes = [self.node(v, path) for v in values]
        self.lenient = before
        return nodes

    def _transformed(self, x: Any, path: str) -> _Node:
        """One of functrans's own objects: the user's functions in it."""
        kept = getattr(x, "__dict__", _NOTHING).items()
        found = {name: v for name, v in kept if callable(v) and name not in getattr(x, "_transient", ())}
        found |= {name: v for name, v in kept if isinstance(getattr(v, "functions", None), tuple)}
        values = [getattr(v, "functions", v) for v in found.values()]
        return _Functions(x, list(zip(found, self._captured(values, path))))

    def _object(self, x: Any, path: str) -> _Node:
        cls = x if isinstance(x, type) else type(x)
        if not isinstance(x, type) and not _is_plain(x):
            self._refuse(path, x)
        node = _Object(x)
        own = [] if isinstance(x, type) else list(getattr(x, "__dict__", ()))
        known = [
            c for c in cls.__mro__ if c.__module__.partition(".")[0] not in _LIBRARIES and c is not object
        ]
        inherited = [name for c in known for name, v in vars(c).items() if _may_be_read(name, v)]
        self._add(node, x, {*own, *inherited}, path)
        node.count = None if isinstance(x, type) else len(own)
        return node

    def _add(self, node: _Object, x: Any, names: set[str], path: str) -> None:
        cls, space = (x, _NOTHING) if isinstance(x, type) else (type(x), getattr(x, "__dict__", _NOTHING))
        for name in sorted(names):
            where = f"{path}.{name}"
            entry = of_class(cls, name)
            if isinstance(entry, MemberDescriptorType) and not isinstance(x, type):
                node.slots.append((name, entry, self.node(_in_slot(entry, x), where)))
            elif name in space and not hasattr(type(entry), "__set__"):
                value = space[name]
                simple = isinstance(value, _NUMBERS) or type(value) is Array
                (node.constant if simple else node.own).append((name, self.node(value, where)))
            elif type(entry) is FunctionType or _is_library_descriptor(type(entry)):
                node.inherited.append((name, _Same(entry)))
            else:
                node.inherited.append((name, self.node(entry, where)))
        names_kept = [name for name, _ in node.constant]
        if names_kept:
            node.constants = itemgetter(*names_kept, names_kept[0])  # of two names at least: a tuple
            node.kept = tuple([space[name] for name in [*names_kept, names_kept[0]]])


def _is_plain(x: Any) -> bool:
    """Whether all that an object holds is in its dictionary and in its slots: its classes are written in Python."""
    kind = type(x)
    if kind is SimpleNamespace:
        return True
    classes = kind.__mro__[:-1]
    if not all(c.__flags__ & _HEAP and (kind.__dictoffset__ or "__slots__" in vars(c)) for c in classes):
        return False
    slots = {id(v) for c in classes for v in vars(c).values() if isinstance(v, MemberDescriptorType)}
    return kind.__itemsize__ == 0 and kind.__basicsize__ <= object.__basicsize__ + _WORD * (len(slots) + 2)


def _is_library_descriptor(kind: type) -> bool:
    """Whether it makes methods, or slots: not a descriptor of the user's, which may hold values itself."""
    root = kind.__module__.partition(".")[0]
    return hasattr(kind, "__get__") and (root == _PACKAGE or root in _LIBRARIES)


def _may_be_read(name: str, value: Any) -> bool:
    """Whether an entry of a class is an attribute of its instances."""
    return not name.startswith("__") or type(value) is FunctionType
