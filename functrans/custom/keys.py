"""By what equal rules are known: a loop's body that is traced again applies new rules, equal to the old ones."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

from .surroundings import fingerprint, is_function


class RuleKey:
    """The key of a rule, worked out when it is asked for: that of a rule that is applied eagerly never is.

    Parameters
    ----------
    parts : sequence
        Functions, structures, types. Functions are compared by what they compute (see `fingerprint`); where anything
        else is not hashable, the key is equal to itself alone.
    static : sequence
        Arguments that are no arrays.
    """

    def __init__(self, parts: Sequence[Any], static: Sequence[Any] = ()):
        self._parts = parts
        self._static = static

    @cached_property
    def _key(self) -> Hashable:
        seen: dict[int, int] = {}
        parts = [fingerprint(x, seen) if is_function(x) else x for x in self._parts]
        key = (*parts, *[fingerprint(x, seen) for x in self._static])
        try:
            hash(key)
        except TypeError:
            return id(self)
        return key

    def __eq__(self, other: object) -> bool:
        if self is other or type(other) is not RuleKey:
            return self is other
        try:
            return bool(self._key == other._key)
        except Exception:  # a comparison of the user's, of objects that rules were given
            return False

    def __hash__(self) -> int:
        return hash(self._key)
