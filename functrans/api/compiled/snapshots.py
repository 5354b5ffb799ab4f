"""Snapshots of instances: whether any attribute has changed since a jitted method was traced.

A traced method is a program without `self`: what it read are its constants. A snapshot is of *all* attributes of the
instance and of its class, each compared by value:

- numbers, strings and the like by type and value, arrays by dtype, shape and bits, an `Array` by identity;
- lists, dictionaries and other containers by what they contain, in its order;
- objects by their type and all their attributes, and by those of the classes of users;
- functions by identity and by the values that they captured; classes of libraries, modules and locks by identity;
- objects with state that Python cannot see by what they pickle.

What cannot be pickled is refused. Global variables are constants, as for any jitted function.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Mapping
from operator import call, is_, itemgetter
from typing import Any

import numpy as np

from ...runtime.context import pass_on
from ...runtime.libraries import package_of
from . import looks
from .looks import PACKAGE, Same, is_fixed

#: The largest number of objects to look into, since each call looks into all of them.
_MOST = 10_000
_RESTLESS = "which differs each time it is looked at"
_UNSEEN = "which may change unnoticed, since it cannot be compared by its attributes or as a pickle"


class IncomparableError(Exception):
    """A value cannot be compared: the path to it, the value, and what is wrong with it."""


class Snapshot:
    """The value of an instance. It keeps nothing alive that may refer back to the instance.

    Parameters
    ----------
    instance : object
    lenient : bool
        Whether to compare by identity what cannot be compared by value.

    Raises
    ------
    IncomparableError
        If it contains something that may change unnoticed.
    """

    def __init__(self, instance: Any, *, lenient: bool = False):
        builder = _Builder(lenient)
        try:
            own = builder.of(instance, "self")
            self._parts = {k: builder.of(v, f"self.{k}") for k, v in looks.attributes(instance).items()}
            classes = builder.of_classes()
        except RecursionError:
            raise IncomparableError("self", instance, "which is nested too deeply to be compared") from None
        #: Whether nothing has changed; each call asks.
        self.same: Same = lambda x: own(x) and all(map(call, classes))
        if len(classes) == 1:
            (only,) = classes
            self.same = lambda x: own(x) and only()
        #: Objects whose state Python cannot see: their paths, they themselves, and whether they are as they were.
        self.hidden = builder.hidden
        if not self.same(instance):
            name = self.changed(instance)
            raise IncomparableError(
                f"self{name}", looks.attributes(instance).get(name[1:], instance), _RESTLESS
            )

    def changed(self, instance: Any) -> str:
        """The first attribute that has changed, such as ``".w"``; ``""`` if it is one of a class."""
        now = looks.attributes(instance)
        for name in [*self._parts, *now]:
            if name not in self._parts or name not in now or not self._parts[name](now[name]):
                return f".{name}"
        return ""


class _Builder:
    """Builds the tests by which values are compared. The tests do not refer to it, because it holds the values."""

    def __init__(self, lenient: bool):
        self.lenient = lenient
        self.hidden: list[tuple[str, Any, Same]] = []
        #: By identity, and whether leniently: the value, its test (None while it is being built), and how many objects
        #: that looks into.
        self._known: dict[tuple[int, bool], tuple[Any, Same | None, int]] = {}
        self._count = 0
        self._inside_itself: set[int] = set()
        self._classes: dict[type, None] = {}

    def of(self, x: Any, path: str) -> Same:
        """The test of a value."""
        if is_fixed(x):
            return lambda y: y is x or looks.equal(x, y)
        key = id(x)
        known = self._known.get((key, False)) or (self._known.get((key, True)) if self.lenient else None)
        if known is not None:
            _, same, count = known
            if same is None:  # its outer place is then compared by identity, too
                self._inside_itself.add(key)
                return lambda y: id(y) == key
            self._count += count
            return same
        if self._count >= _MOST:
            return self._refused(x, path, f"and each call would compare more than {_MOST:,} objects in self")
        self._known[key, self.lenient] = x, None, 0
        before, self._count = self._count, self._count + 1
        same = made = self._made(x, path)
        if key in self._inside_itself:
            same = lambda y: id(y) == key and made(y)  # noqa: E731
        self._known[key, self.lenient] = x, same, self._count - before
        return same

    def of_classes(self) -> list[Callable[[], bool]]:
        """The tests of the classes that were met, and of those met in them."""
        tests: list[Callable[[], bool]] = []
        done: set[type] = set()
        while new := self._classes.keys() - done:
            done |= new
            tests += [self._class(c) for c in new]
        return tests

    def _made(self, x: Any, path: str) -> Same:
        kind: Any = type(x)
        if kind is np.ndarray and not x.dtype.hasobject:
            return looks.array(x)
        if kind is list or (issubclass(kind, tuple) and not hasattr(x, "__dict__")):
            return self._items(x, path)
        if kind is dict:
            return self._dict(x, path)
        if kind is types.FunctionType:
            return self._function(x, path)
        if issubclass(kind, type):
            self._meet(x)
            return looks.identical(x)
        for kinds, look in looks.VIEWS:
            if issubclass(kind, kinds):
                return self._view(x, look, path)
        root = package_of(kind)
        if root == PACKAGE:
            return self._transformed(x, path)
        if issubclass(kind, looks.IDENTITIES) or (root in ("numba", "ctypes") and callable(x)):
            return looks.identical(x)
        pickles = (kind.__reduce__, kind.__reduce_ex__) != (object.__reduce__, object.__reduce_ex__)
        if looks.is_plain(kind) and not (pickles and root in looks.LIBRARIES):
            return self._object(x, path)
        return self._hidden(x, path)

    def _refused(self, x: Any, path: str, why: str) -> Same:
        if not self.lenient:
            raise IncomparableError(path, x, why)
        return looks.identical(x)

    def _meet(self, kind: type) -> None:
        """Compare what the classes of users among these hold, once for all of their instances."""
        for c in kind.__mro__:
            if c is not object and package_of(c) not in looks.LIBRARIES and package_of(c) != PACKAGE:
                self._classes[c] = None

    def _items(self, x: Any, path: str) -> Same:
        kind, n = type(x), len(x)
        if all(map(is_fixed, x)):
            values = tuple(x)
            return lambda y: (
                type(y) is kind
                and len(y) == n
                and (all(map(is_, y, values)) or all(map(looks.equal, values, y)))
            )
        parts = [self.of(v, f"{path}[{i}]") for i, v in enumerate(x)]
        return lambda y: type(y) is kind and len(y) == n and all(map(call, parts, y))

    def _dict(self, x: dict[Any, Any], path: str) -> Same:
        if not all(type(k) is str for k in x):
            return self._view(x, lambda y: list(y.items()), path)
        names, entries = list(x), self._entries(x, lambda k: f"{path}[{k!r}]")
        return lambda y: type(y) is dict and list(y) == names and entries(y)

    def _entries(
        self, x: Mapping[Any, Any], path: Callable[[Any], str], fixed: Callable[[Any], bool] = is_fixed
    ) -> Same:
        """The test of the values of a mapping. The fixed ones are compared all at once first, by identity."""
        items = list(x.items())  # what follows may run the user's code, which may change it
        constant = {k: v for k, v in items if fixed(v)}
        unique = {k: v for k, v in constant.items() if _is_unique(type(v))}
        get, get_unique = _getter(constant.keys() - unique.keys()), _getter(unique)
        values, unique_values = get(x), get_unique(x)
        others = [(k, self.of(v, path(k))) for k, v in items if k not in constant]

        def same(y: Any) -> bool:
            try:
                if get_unique(y) != unique_values:
                    return False
                now = get(y)
                if not all(map(is_, now, values)) and not all(map(looks.equal, values, now)):
                    return False
                for k, part in others:
                    if not part(y[k]):
                        return False
            except KeyError:
                return False
            return True

        return same

    def _function(self, x: types.FunctionType, path: str) -> Same:
        """By identity, and by what it captured. What cannot be compared there is a constant, as in any function."""
        same = looks.identical(x)
        if not x.__closure__ and not x.__defaults__ and not x.__kwdefaults__:
            return same
        before, self.lenient = self.lenient, True
        captured = self.of(looks.captured(x), path)
        self.lenient = before
        return lambda y: same(y) and captured(looks.captured(y))

    def _transformed(self, x: Any, path: str) -> Same:
        """An object of functrans: by identity, and by the users' functions in it."""
        same, kept = looks.identical(x), getattr(x, "__dict__", {})
        rules = [k for k, v in kept.items() if callable(v) or hasattr(v, "functions")]
        names = [k for k in rules if k not in getattr(x, "_transient", ())]
        if not names:
            return same

        def functions(y: Any) -> list[Any]:
            return [getattr(v, "functions", v) for v in map(vars(y).get, names)]

        before, self.lenient = self.lenient, True
        inside = self.of(functions(x), path)
        self.lenient = before
        return lambda y: same(y) and inside(functions(y))

    def _view(self, x: Any, look: Callable[[Any], Any], path: str) -> Same:
        kind, part = type(x), self.of(look(x), path)
        return lambda y: type(y) is kind and part(look(y))

    def _object(self, x: Any, path: str) -> Same:
        """By its type, its dictionary and its slots."""
        kind, slots = type(x), looks.slots(type(x))
        self._meet(kind)
        has_space, space = hasattr(x, "__dict__"), getattr(x, "__dict__", {})
        count, entries = len(space), self._entries(space, lambda k: f"{path}.{k}")
        if has_space and not slots:
            return lambda y: type(y) is kind and len(now := y.__dict__) == count and entries(now)
        parts = [self.of(looks.in_slot(slot, x), f"{path}.{name}") for name, slot in slots.items()]

        def same(y: Any) -> bool:
            if type(y) is not kind or (has_space and not (len(y.__dict__) == count and entries(y.__dict__))):
                return False
            return all(map(call, parts, [looks.in_slot(slot, y) for slot in slots.values()]))

        return same

    def _hidden(self, x: Any, path: str) -> Same:
        """By what it pickles, and by its attributes if its class is not written in Python."""
        kind = type(x)
        self._meet(kind)
        of_attributes = (lambda _: None) if looks.is_plain(kind) else looks.attributes
        held = of_attributes(x)  # creates the dictionary that some kinds pickle
        try:
            pickled = looks.pickled(x)
        except Exception as error:
            pass_on(error)
            return self._refused(x, path, _UNSEEN)
        if isinstance(pickled, str):  # it stands for a global variable
            return looks.identical(x)
        inside = self.of((held, pickled), path)

        def same(y: Any) -> bool:
            try:
                return type(y) is kind and inside((of_attributes(y), looks.pickled(y)))
            except Exception as error:
                pass_on(error)
                return False

        if not isinstance(x, Collection):
            self.hidden.append((path, x, same))
        return same

    def _class(self, c: type) -> Callable[[], bool]:
        count, names = len(vars(c)), list(looks.read_of_class(c))
        entries = self._entries(
            looks.read_of_class(c), lambda k: f"{c.__qualname__}.{k}", looks.is_fixed_in_class
        )

        def unchanged() -> bool:
            space = c.__dict__
            return (len(space) == count or list(looks.read_of_class(c)) == names) and entries(space)

        return unchanged


def _getter(names: Collection[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """The function from a mapping to the values of these names."""
    if not names:
        return lambda _: ()
    first, *_ = names
    return itemgetter(*names) if len(names) > 1 else lambda y: (y[first],)


def _is_unique(kind: Any) -> bool:
    """Whether values of a class are equal only if they are identical."""
    return kind.__eq__ is object.__eq__
