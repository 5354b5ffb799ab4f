"""By what equal rules are known: a loop's body that is traced again applies new rules, equal to the old ones."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any


def rule_key(parts: tuple[Any, ...], static: Iterable[Any] = ()) -> Hashable:
    """The key of a rule made of `parts` and `static` arguments; None where one of them is not hashable."""
    key = (*parts, *[typed(x) for x in static])
    try:
        hash(key)
    except TypeError:
        return None
    return key


def typed(value: Any) -> Hashable:
    """A static value with its type: 1, 1.0 and True are equal, and so are 0.0 and -0.0, but they make different
    programs; one NaN makes the same program as the next.
    """
    if isinstance(value, tuple):
        return type(value), tuple([typed(part) for part in value])
    return type(value), repr(value) if isinstance(value, float | complex) else value
