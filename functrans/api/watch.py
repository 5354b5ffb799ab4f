"""What a jitted method may have read from its instance while it was traced, and whether it has changed since.

A traced method is a program without `self`: the values that it read are its constants. So everything that the method
can read from the instance is watched: attributes with all that they contain. Lists and dictionaries are compared by
their elements, writable arrays by their numbers, objects by identity and by all their attributes, functions by
identity and by the values that they captured. An object that cannot be inspected is rejected, because it may change
unnoticed. Modules and global variables are constants, as for any jitted function.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import functools
import re
import sys
import threading
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..core.trace import Tracer
from . import snapshots
from .reads import MISSING, of_class

_NUMBERS = (
    bool, int, float, complex, str, bytes, np.generic, range, slice, type(None), type(...), datetime.date,
    datetime.time, datetime.timedelta, decimal.Decimal,
)  # fmt: skip
_IDENTITIES = (
    np.dtype, np.ufunc, types.ModuleType, types.BuiltinFunctionType, enum.Enum, re.Pattern, Array, Tracer, property,
    staticmethod, classmethod, functools.cached_property, type(threading.Lock()), type(threading.RLock()),
)  # fmt: skip
_LIBRARIES = sys.stdlib_module_names | {"numpy", "scipy", "numba"}
_PACKAGE = __name__.partition(".")[0]
_WORD = np.dtype(np.intp).itemsize
#: The flag of types made by a ``class`` statement.
_HEAP = 1 << 9
#: The largest number of values to watch, since each call checks all of them.
_MOST = 2000
_NOTHING: dict[str, Any] = {}


class UnwatchableError(Exception):
    """A value cannot be watched: the path to it, and the value."""


class Watch:
    """The state of an instance that a method may read. It keeps nothing alive that may refer back to the instance.

    Parameters
    ----------
    instance : object
    names : set of str or None
        The attributes that may be read; None for all.
    lenient : bool
        Whether to skip objects that cannot be inspected.

    Raises
    ------
    UnwatchableError
        If it contains something that may change unnoticed.
    """

    def __init__(self, instance: Any, names: set[str] | None, *, lenient: bool = False):
        root = _NodeBuilder(lenient).root(instance, names)
        quick = root.quickly() if type(root) is snapshots.Attributes else None
        self._root, self.kind = root, type(instance)
        #: Whether it has certainly not changed; each call checks this first.
        self.same: Callable[[Any], bool] = quick or (lambda x: root.changed(x) is None)

    def changed(self, instance: Any) -> str | None:
        """The path to the first change, such as ``".w"``; None if there is none."""
        return self._root.changed(instance)


class _NodeBuilder:
    """Builds the nodes, one per value."""

    def __init__(self, lenient: bool):
        self.lenient = lenient
        self.known: dict[int, tuple[Any, snapshots.Node]] = {}
        self.instance: Any = MISSING
        self.refers_back = False

    def root(self, x: Any, names: set[str] | None) -> snapshots.Node:
        """The node of an instance whose attributes of these names are read."""
        if names is None or not _is_plain(x):
            return self.node(x, "self")
        node, self.instance = snapshots.Attributes(x), x
        self._add(node, x, names, "self")
        if not self.refers_back:
            return node
        # Its owner can read any of its attributes.
        self.instance = MISSING
        self.known.clear()
        return self.node(x, "self")

    def node(self, x: Any, path: str) -> snapshots.Node:
        """The node of a value."""
        if isinstance(x, _NUMBERS):
            return snapshots.Number(x)
        if x is MISSING or isinstance(x, _IDENTITIES):
            return snapshots.Same(x)
        if x is self.instance:
            self.refers_back = True
            return snapshots.Node()
        known = self.known.get(id(x))
        if known is not None:
            return known[1]
        if len(self.known) >= _MOST:
            self._refuse(f"{path} (more than {_MOST} values are in it)", x)
            return snapshots.Node()
        self.known[id(x)] = x, snapshots.Same(x) if type(x).__weakrefoffset__ else snapshots.Node()
        node = self._made(x, path)
        self.known[id(x)] = x, node
        return node

    def _refuse(self, path: str, x: Any) -> None:
        if not self.lenient:
            raise UnwatchableError(path, x)

    def _made(self, x: Any, path: str) -> snapshots.Node:
        kind = type(x)
        if kind is np.ndarray and not x.dtype.hasobject:
            return snapshots.WritableArray(x)
        if kind in (list, deque) or (isinstance(x, tuple) and not getattr(x, "__dict__", None)):
            return snapshots.Items(kind, [self.node(v, f"{path}[{i}]") for i, v in enumerate(x)])
        if kind in (set, frozenset) and all(isinstance(v, _NUMBERS) for v in x):
            return snapshots.Members(kind(x))
        if kind in (dict, OrderedDict, defaultdict):
            return snapshots.Entries(
                kind, [(self.node(k, path), self.node(v, f"{path}[{k!r}]")) for k, v in x.items()]
            )
        if kind is functools.partial or kind is types.MethodType:
            names = ("func", "args", "keywords") if kind is functools.partial else ("__func__", "__self__")
            return snapshots.Parts(kind, [(name, self.node(getattr(x, name), path)) for name in names])
        if kind is types.FunctionType:
            return snapshots.Closure(
                x, self._captured([snapshots.in_cell(c) for c in x.__closure__ or ()], path)
            )
        if kind.__module__.partition(".")[0] == _PACKAGE:
            return self._transformed(x, path)
        if callable(x) and kind.__module__.partition(".")[0] in _LIBRARIES and not isinstance(x, type):
            return snapshots.Same(x)  # a function of a library
        return self._object(x, path)

    def _captured(self, values: list[Any], path: str) -> list[snapshots.Node]:
        """The values that functions captured. Those that cannot be inspected are constants, as in any function."""
        before, self.lenient = self.lenient, True
        nodes = [self.node(v, path) for v in values]
        self.lenient = before
        return nodes

    def _transformed(self, x: Any, path: str) -> snapshots.Node:
        """An object of functrans: watches the user's functions in it."""
        attributes = getattr(x, "__dict__", _NOTHING).items()
        callables = {
            name: v for name, v in attributes if callable(v) and name not in getattr(x, "_transient", ())
        }
        callables |= {name: v for name, v in attributes if isinstance(getattr(v, "functions", None), tuple)}
        values = [getattr(v, "functions", v) for v in callables.values()]
        return snapshots.Functions(x, list(zip(callables, self._captured(values, path))))

    def _object(self, x: Any, path: str) -> snapshots.Node:
        cls = x if isinstance(x, type) else type(x)
        if not isinstance(x, type) and not _is_plain(x):
            self._refuse(path, x)
        node = snapshots.Attributes(x)
        own = [] if isinstance(x, type) else list(getattr(x, "__dict__", ()))
        known = [
            c for c in cls.__mro__ if c.__module__.partition(".")[0] not in _LIBRARIES and c is not object
        ]
        inherited = [name for c in known for name, v in vars(c).items() if _may_be_read(name, v)]
        self._add(node, x, {*own, *inherited}, path)
        node.count = None if isinstance(x, type) else len(own)
        return node

    def _add(self, node: snapshots.Attributes, x: Any, names: set[str], path: str) -> None:
        cls, space = (x, _NOTHING) if isinstance(x, type) else (type(x), getattr(x, "__dict__", _NOTHING))
        for name in sorted(names):
            where = f"{path}.{name}"
            entry = of_class(cls, name)
            if isinstance(entry, types.MemberDescriptorType) and not isinstance(x, type):
                node.slots.append((name, entry, self.node(snapshots.in_slot(entry, x), where)))
            elif name in space and not hasattr(type(entry), "__set__"):
                value = space[name]
                simple = isinstance(value, _NUMBERS) or type(value) is Array
                (node.constant if simple else node.own).append((name, self.node(value, where)))
            elif type(entry) is types.FunctionType or _is_library_descriptor(type(entry)):
                node.inherited.append((name, snapshots.Same(entry)))
            else:
                node.inherited.append((name, self.node(entry, where)))
        constant_names = [name for name, _ in node.constant]
        if constant_names:
            node.constants = itemgetter(
                *constant_names, constant_names[0]
            )  # a tuple, for two or more constant_names
            node.identical = tuple([space[name] for name in [*constant_names, constant_names[0]]])
        if not isinstance(x, type):
            node.settle(cls)


def _is_plain(x: Any) -> bool:
    """Whether an object's state is all in its dictionary and slots, since its classes are written in Python."""
    kind = type(x)
    if kind is types.SimpleNamespace:
        return True
    classes = kind.__mro__[:-1]
    if not all(c.__flags__ & _HEAP and (kind.__dictoffset__ or "__slots__" in vars(c)) for c in classes):
        return False
    slots = {id(v) for c in classes for v in vars(c).values() if isinstance(v, types.MemberDescriptorType)}
    return kind.__itemsize__ == 0 and kind.__basicsize__ <= object.__basicsize__ + _WORD * (len(slots) + 2)


def _is_library_descriptor(kind: type) -> bool:
    """Whether it makes methods or slots, unlike a user's descriptor, which may hold values itself."""
    root = kind.__module__.partition(".")[0]
    return hasattr(kind, "__get__") and (root == _PACKAGE or root in _LIBRARIES)


def _may_be_read(name: str, value: Any) -> bool:
    """Whether an entry of a class is an attribute of its instances; ``_abc_impl`` is what `abc` notes of subclasses."""
    return (name != "_abc_impl" and not name.startswith("__")) or type(value) is types.FunctionType
