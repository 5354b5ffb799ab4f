"""Dataclasses and named tuples that are made in a third of the time: a start makes two hundred of them.

`dataclasses.dataclass` compiles a text for each method of each class, six for one that is frozen. Here only
``__init__`` is such a text; the other methods are functions that all classes share. That an attribute of a frozen
class is never set is left to the type checker, so that its objects are made as fast as others.

`typing.NamedTuple` compiles each annotation to see whether it is a type, which type checkers know.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass as _dataclass
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
    from typing import NamedTuple
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, **options: bool
    ) -> Any:
        """`dataclasses.dataclass`, but that no error stops who sets an attribute of a frozen class."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, **options)
        own = cls.__dict__
        hashes = own.get("__hash__") is not None or ("__hash__" in own and "__eq__" not in own)
        if not cls.__doc__:
            cls.__doc__ = cls.__name__  # instead of its signature
        cls = _dataclass(cls, eq=False, repr=False, **options)
        if "__repr__" not in own:
            cls.__repr__ = _repr
        if eq:
            names = [f.name for f in dataclasses.fields(cls) if f.compare]
            parts = _parts(names)
            if "__eq__" not in own:
                cls.__eq__ = _equality(parts)
            if not hashes:
                cls.__hash__ = _hashing(parts) if frozen else None
        return cls

    class _NamedTupleMeta(type):
        """Makes a class of `collections.namedtuple` of the fields in a class body."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body.get("__annotations__", {})
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            for key in body.keys() - fields.keys():
                setattr(made, key, body[key])
            return made

    class NamedTuple(metaclass=_NamedTupleMeta):
        """`typing.NamedTuple`, but that annotations are not looked at."""


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _parts(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What is compared of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


def _equality(parts: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], Any]:
    def __eq__(self: Any, other: object) -> Any:
        return parts(self) == parts(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hashing(parts: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(parts(self))

    return __hash__
