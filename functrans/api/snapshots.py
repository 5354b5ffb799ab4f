"""Snapshots of values, to detect later changes: see `watch`."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from operator import attrgetter, is_
from types import FunctionType
from typing import Any

import numpy as np

from .reads import MISSING, of_class

_NOTHING: dict[str, Any] = {}


class Node:
    """The snapshot of a value. `changed` returns the path to what has changed, "" for the value itself."""

    __slots__ = ()

    def changed(self, x: Any) -> str | None:
        """The path at which `x` differs from the snapshot; None if it does not."""
        return None


class Number(Node):
    """A number, a string or another simple value, compared by type and value: 1, 1.0 and True differ."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def changed(self, x: Any) -> str | None:
        """As `Node.changed`."""
        value = self.value
        if x is value or (type(x) is type(value) and repr(x) == repr(value)):
            return None
        return ""


class Members(Node):
    """A set of numbers or names."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def changed(self, x: Any) -> str | None:
        """As `Node.changed`."""
        return None if type(x) is type(self.value) and x == self.value else ""


class Same(Node):
    """A value compared by identity, referenced weakly if possible."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        try:
            self.value: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self.value = lambda: value

    def changed(self, x: Any) -> str | None:
        """As `Node.changed`."""
        return None if self.value() is x else ""


class WritableArray(Node):
    """A writable array, compared by its numbers."""

    __slots__ = ("bytes", "copy", "dtype", "shape")

    def __init__(self, x: np.ndarray):
        self.shape, self.dtype = x.shape, x.dtype
        small = x.nbytes < 4096 or x.itemsize not in (1, 2, 4, 8)
        self.bytes = x.tobytes() if small else None
        self.copy = None if small else self._words(x).copy()

    @staticmethod
    def _words(x: np.ndarray) -> np.ndarray:
        """The bits, so that a NaN equals itself and zeros of opposite sign differ."""
        return np.ascontiguousarray(x).view(f"u{x.itemsize}")

    def changed(self, x: Any) -> str | None:
        """As `Node.changed`."""
        if type(x) is not np.ndarray or x.shape != self.shape or x.dtype != self.dtype:
            return ""
        same = x.tobytes() == self.bytes if self.copy is None else np.array_equal(self._words(x), self.copy)
        return None if same else ""


class Items(Node):
    """The elements of a list, a tuple or another sequence."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: Any, parts: list[Node]):
        self.kind, self.parts = kind, parts

    def changed(self, x: Any) -> str | None:
        """As `Node.changed`."""
        if type(x) is not self.kind or len(x) != len(self.parts):
            return ""
        for i, (part, value) in enumerate(zip(self.parts, x)):
            path = part.changed(value)
            if path is not None:
                return f"[{i}]{path}"
        return None


class Entries(Node):
    """The entries of a dictionary, in their order."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: Any, parts: list[tuple[Node, Node]]):
        self.kind, self.parts = kind, parts

    def changed(self, x: Any) -> str | None:
        """As `Node.changed`."""
        if type(x) is not self.kind or len(x) != len(self.parts):
            return ""
        for (first, part), (key, value) in zip(self.parts, x.items()):
            if first.changed(key) is not None:
                return ""
            path = part.changed(value)
            if path is not None:
                return f"[{key!r}]{path}"
        return None


class Parts(Node):
    """A value that consists of named parts."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: Any, parts: list[tuple[str, Node]]):
        self.kind, self.parts = kind, parts

    def changed(self, x: Any) -> str | None:
        """As `Node.changed`."""
        if type(x) is not self.kind:
            return ""
        return next(
            (path for name, part in self.parts if (path := part.changed(getattr(x, name))) is not None),
            None,
        )


class Closure(Node):
    """A function and the values that it captured."""

    __slots__ = ("cells", "function")

    def __init__(self, function: FunctionType, cells: list[Node]):
        self.function, self.cells = Same(function), cells

    def changed(self, x: Any) -> str | None:
        """As `Node.changed`."""
        if self.function.changed(x) is not None:
            return ""
        for name, cell, node in zip(x.__code__.co_freevars, x.__closure__ or (), self.cells):
            path = node.changed(in_cell(cell))
            if path is not None:
                return f": the variable {name}{path}"
        return None


class Functions(Node):
    """An object made of functions: ``grad(f)``, a function with rules."""

    __slots__ = ("identity", "parts")

    def __init__(self, x: Any, parts: list[tuple[str, Node]]):
        self.identity, self.parts = Same(x), parts

    def changed(self, x: Any) -> str | None:
        """As `Node.changed`."""
        if self.identity.changed(x) is not None:
            return ""
        for name, node in self.parts:
            value = vars(x).get(name, MISSING)
            path = node.changed(getattr(value, "functions", value))
            if path is not None:
                return f": a function in it{path}"
        return None


class Attributes(Node):
    """Attributes of an object: those in its dictionary, in its slots, and in its class.

    `count` is the number of attributes in its dictionary if all of them matter, otherwise None.
    """

    __slots__ = (
        "constant",
        "constants",
        "count",
        "fixed",
        "identical",
        "identity",
        "inherited",
        "own",
        "slots",
    )

    def __init__(self, x: Any):
        self.identity = Same(x) if type(x).__weakrefoffset__ else None
        # Immutable values are compared all at once, and then one by one if they are not identical.
        self.constants: Callable[[Any], Any] = _nothing
        self.identical: tuple[Any, ...] = ()
        self.constant: list[tuple[str, Node]] = []
        self.own: list[tuple[str, Node]] = []
        self.inherited: list[tuple[str, Node]] = []
        # Likewise those of the class, which are not inspected.
        self.fixed: Callable[[Any], bool] | None = None
        self.slots: list[tuple[str, Any, Node]] = []
        self.count: int | None = None

    def changed(self, x: Any) -> str | None:
        """As `Node.changed`."""
        if self.identity is not None and self.identity.value() is not x:
            return ""
        if isinstance(x, type):
            cls, space = x, _NOTHING
        else:
            cls, space = type(x), getattr(x, "__dict__", _NOTHING)
        path = None
        if not _identical(self.constants, space, self.identical):
            path = _first(self.constant, space)
        path = path or _first(self.own, space)
        if path is not None:
            return path
        fixed = self.fixed
        for name, node in self.inherited if fixed is None or not fixed(x) else ():
            entry = of_class(cls, name)
            hidden = name in space and not hasattr(type(entry), "__set__")
            path = node.changed(space[name] if hidden else entry)
            if path is not None:
                return f".{name}{path}"
        for name, slot, node in self.slots:
            path = node.changed(in_slot(slot, x))
            if path is not None:
                return f".{name}{path}"
        return None if self.count is None or self.count == len(space) else ".__dict__"

    def settle(self, cls: type) -> None:
        """Remember the attributes of the class, if their identity shows that they are unchanged."""
        names = [name for name, _ in self.inherited]
        if not names or any(type(node) not in (Same, Number) for _, node in self.inherited):
            return
        of = attrgetter(*names, names[0])
        try:
            inherited = of(cls)
        except AttributeError:  # a missing attribute
            return
        if not all(map(is_, of(cls), inherited)):  # created at each access, as bound methods are
            return
        visible = frozenset(names).isdisjoint

        def fixed(x: Any) -> bool:
            return visible(getattr(x, "__dict__", ())) and _identical(of, type(x), inherited)

        self.fixed = fixed

    def quickly(self) -> Callable[[Any], bool] | None:
        """A test that all objects are identical to before; None if some must be inspected."""
        if self.own or self.slots or self.count is not None or (self.inherited and self.fixed is None):
            return None
        get, values, fixed = self.constants, self.identical, self.fixed
        if fixed is None:
            return functools.partial(_same_attributes, get, values)
        return lambda x: _identical(get, x.__dict__, values) and fixed(x)


def _nothing(space: Any) -> tuple[Any, ...]:
    return ()


def _same_attributes(get: Callable[[Any], Any], values: tuple[Any, ...], x: Any) -> bool:
    try:
        return all(map(is_, get(x.__dict__), values))
    except (KeyError, AttributeError):
        return False


def _identical(get: Callable[[Any], Any], space: Any, values: tuple[Any, ...]) -> bool:
    """Whether the attributes are still the same objects: a fast check for the usual case."""
    try:
        return all(map(is_, get(space), values))
    except (KeyError, AttributeError):
        return False


def _first(parts: list[tuple[str, Node]], space: Any) -> str | None:
    for name, node in parts:
        path = node.changed(space.get(name, MISSING))
        if path is not None:
            return f".{name}{path}"
    return None


def in_slot(slot: Any, x: Any) -> Any:
    """What an object holds in a slot, or `MISSING`."""
    try:
        return slot.__get__(x)
    except AttributeError:
        return MISSING


def in_cell(cell: Any) -> Any:
    """What a closure holds in a cell, or `MISSING`."""
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return MISSING
