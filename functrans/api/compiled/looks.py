"""What snapshots know of values: which never change, which are compared by identity, of which parts others consist."""

from __future__ import annotations

import datetime
import decimal
import enum
import functools
import re
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core.trace import Tracer
from ...runtime.libraries import package_of

#: Whether a value is as it was.
Same = Callable[[Any], bool]

#: Compared by type and text: 1, 1.0 and True differ, and so do 0.0 and -0.0; a NaN equals itself.
_VALUES = frozenset((
    bool, int, float, complex, str, bytes, range, type(None), type(...), datetime.date, datetime.time,
    datetime.datetime, datetime.timedelta, datetime.timezone, decimal.Decimal,
))  # fmt: skip
#: Compared by identity. They refer to nothing that may change, so a snapshot may hold them.
_FIXED = (Array, np.dtype, np.ufunc, types.ModuleType, re.Pattern)
#: Compared by identity, and referenced weakly if possible.
IDENTITIES = (
    Tracer, enum.Enum, property, staticmethod, classmethod, functools.cached_property,
    type(threading.Lock()), type(threading.RLock()),
)  # fmt: skip
LIBRARIES = sys.stdlib_module_names | {"numpy", "scipy", "numba"}
PACKAGE = __name__.partition(".")[0]
_WORD = np.dtype(np.intp).itemsize
#: The flag of types made by a ``class`` statement.
_HEAP = 1 << 9
#: What is in an empty slot or cell.
MISSING = object()

#: Kinds that are compared by parts, and how to get these.
VIEWS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (types.MethodType, lambda x: (x.__func__, x.__self__)),
    (functools.partial, lambda x: (x.func, x.args, x.keywords, vars(x))),
    (types.MappingProxyType, dict),
    (weakref.ref, lambda x: x()),
)


def is_fixed(x: Any) -> bool:
    """Whether a value never changes, and refers to nothing that may."""
    kind = type(x)
    return (
        kind in _VALUES
        or kind is object  # a marker
        or issubclass(kind, _FIXED)
        or (issubclass(kind, np.generic) and kind.__module__ == "numpy" and kind is not np.void)
        or (kind is types.BuiltinFunctionType and isinstance(x.__self__, types.ModuleType | None))
    )


def is_fixed_in_class(x: Any) -> bool:
    """The same of an entry of a class, which also holds functions, and what libraries make of them."""
    kind = type(x)
    makes_methods = hasattr(kind, "__get__") and package_of(kind) in (PACKAGE, *LIBRARIES)
    return is_fixed(x) or (makes_methods and not issubclass(kind, types.MethodType | functools.partial))


def equal(x: Any, y: Any) -> bool:
    """Whether `y` is the fixed value `x`, or equals it in type and value."""
    kind = type(x)
    return y is x or (
        type(y) is kind and (kind in _VALUES or issubclass(kind, np.generic)) and repr(x) == repr(y)
    )


def identical(x: Any) -> Same:
    """By identity."""
    try:
        reference = weakref.ref(x)
    except TypeError:
        return lambda y: y is x
    return lambda y: reference() is y


def array(x: np.ndarray) -> Same:
    """By its bits, so that a NaN equals itself and zeros of opposite sign differ."""
    shape, dtype = x.shape, x.dtype
    if x.nbytes < 4096 or x.itemsize not in (1, 2, 4, 8):
        text = x.tobytes()
        return lambda y: (
            type(y) is np.ndarray and y.shape == shape and y.dtype == dtype and y.tobytes() == text
        )

    def words(y: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(y).view(f"u{y.itemsize}")

    copy = words(x).copy()
    return lambda y: (
        type(y) is np.ndarray and y.shape == shape and y.dtype == dtype and bool((words(y) == copy).all())
    )


def captured(function: types.FunctionType) -> tuple[Any, ...]:
    """What a function holds besides its code."""
    values = []
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            values.append(MISSING)
    return *values, function.__defaults__, function.__kwdefaults__


def attributes(x: Any) -> dict[str, Any]:
    """The attributes of an object itself, by name."""
    held = {name: in_slot(slot, x) for name, slot in slots(type(x)).items()}
    return {name: v for name, v in held.items() if v is not MISSING} | getattr(x, "__dict__", {})


def slots(kind: type) -> dict[str, types.MemberDescriptorType]:
    """The slots of a class and its bases, by name."""
    entries = [(name, v) for c in kind.__mro__ if c.__flags__ & _HEAP for name, v in vars(c).items()]
    return {name: v for name, v in entries if isinstance(v, types.MemberDescriptorType)}


def in_slot(slot: Any, x: Any) -> Any:
    """What an object holds in a slot, or `MISSING`."""
    try:
        return slot.__get__(x)
    except AttributeError:  # not assigned
        return MISSING


def read_of_class(c: type) -> dict[str, Any]:
    """What a class holds for its instances. ``_abc_impl`` is what `abc` notes of subclasses."""
    return {
        name: v
        for name, v in vars(c).items()
        if (name != "_abc_impl" and not name.startswith("__")) or type(v) is types.FunctionType
    }


def pickled(x: Any) -> Any:
    """The parts into which `pickle` takes an object; a name if it is a global variable."""
    parts = x.__reduce_ex__(4)
    if isinstance(parts, str):
        return parts
    make, arguments, state, items, pairs = (*parts, None, None, None)[:5]
    return make, arguments, state, items and list(items), pairs and list(pairs)


def is_plain(kind: type) -> bool:
    """Whether the state of an object is all in its dictionary and slots, since its classes are written in Python."""
    classes = kind.__mro__[:-1]
    if not all(c.__flags__ & _HEAP and (kind.__dictoffset__ or "__slots__" in vars(c)) for c in classes):
        return False
    slots = sum(isinstance(v, types.MemberDescriptorType) for c in classes for v in vars(c).values())
    return kind.__itemsize__ == 0 and kind.__basicsize__ <= object.__basicsize__ + _WORD * (slots + 2)
