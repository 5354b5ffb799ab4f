"""Aux data that is not hashable, held by value.

A compiled function keeps structures as keys. A list, dict, set or array in one could change later, so the structure
holds what it contained, and hands out copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array, wrap

#: What is held by value, beside tuples.
CONTAINERS = (list, dict, set, np.ndarray, Array)


class Held:
    """The contents of lists, dicts, sets and arrays, nested in each other and in tuples, with hashable values.

    Raises
    ------
    TypeError
        If there is anything else in it that is not hashable.
    """

    __slots__ = ("_contents", "_hash")

    def __init__(self, x: Any):
        self._contents = _contents(x)
        self._hash = hash(self._contents)

    def copy(self) -> Any:
        """An object with these contents."""
        return _copy(self._contents)

    def __eq__(self, other: object) -> bool:
        return type(other) is Held and self._contents == other._contents

    def __hash__(self) -> int:
        return self._hash


def _contents(x: Any) -> Any:
    """The type, which tells 1 from 1.0 and True, and what makes an equal object."""
    kind = type(x)
    if kind is list or kind is tuple:
        return kind, tuple(map(_contents, x))
    if kind is dict:
        return kind, tuple([(key, _contents(value)) for key, value in list(x.items())])
    if kind is set:
        return kind, frozenset(x)
    if kind is np.ndarray or kind is Array:
        if x.dtype.hasobject:
            raise TypeError("an array of objects cannot be compared")
        return kind, x.dtype.str, x.shape, x.tobytes()
    hash(x)
    return kind, repr(x) if kind in (float, complex) else None, x


def _copy(contents: Any) -> Any:
    kind, *rest = contents
    if kind is list or kind is tuple:
        return kind(map(_copy, rest[0]))
    if kind is dict:
        return {key: _copy(value) for key, value in rest[0]}
    if kind is set:
        return set(rest[0])
    if kind is np.ndarray or kind is Array:
        array = np.frombuffer(rest[2], rest[0]).reshape(rest[1]).copy()
        return wrap(array) if kind is Array else array
    return rest[1]
