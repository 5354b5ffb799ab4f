"""Keys that are used twice, while ``config.debug_key_reuse`` is on.

A key is its number, and the numbers that were used are recorded when a program runs: eagerly, in compiled code (by a
call of Python from the kernel), in each iteration of a loop and in each lane. Making a key, by `key`, `split`,
`fold_in`, `clone` or `wrap_key_data`, allows one use of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import Aval, Effect, Primitive, Zero, user_source
from ..core.values import Param, Tangent, Value
from ..errors import KeyReuseError
from ..runtime.config import Config, config

_option = Config.debug_key_reuse
#: By the number of a key: how many more uses are allowed (one, for numbers that are not here), and where it was used.
_ledger: dict[int, tuple[int, Any]] = {}


def active() -> bool:
    """Whether uses are recorded."""
    return _option.ever_changed and config.debug_key_reuse


def forget() -> None:
    """Allow each key one use."""
    _ledger.clear()


def _use(words: Any, *, name: str) -> Value:
    for word in np.ravel(words).tolist():
        left, place = _ledger.get(word, (1, None))
        if left < 1:
            first = "" if place is None else f"\n  first used at {place.describe()}"
            raise KeyReuseError(
                f"random.{name}: the key {word} was used before, so the same numbers would be drawn: make new keys "
                f"with random.split or random.fold_in; to repeat numbers on purpose pass random.clone(key){first}"
            )
        _ledger[word] = left - 1, user_source()
    return words


def _make(words: Any) -> Value:
    for word in np.ravel(words).tolist():
        if word in _ledger:
            left, place = _ledger[word]
            _ledger[word] = left + 1, place
        else:
            _ledger[word] = 1, None
    return words


def _marker(name: str, impl: Any) -> Primitive:
    """An identity of numbers of keys with an effect."""

    def abstract(x: Aval, **params: Param) -> Aval:
        return x

    def jvp(primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param) -> tuple[Any, Zero]:
        ans = marker.bind(*primals, **params)
        return ans, Zero(ans)

    def batch(
        size: int, args: Sequence[Value], dims: Sequence[int | None], **params: Param
    ) -> tuple[Any, Any]:
        return marker.bind(*args, **params), dims[0]

    marker = Primitive(name, abstract, impl, jvp=jvp, batch=batch, effects=lambda **params: Effect.HOST)
    return marker


use_key_p = _marker("use_key", _use)
make_key_p = _marker("make_key", _make)


def used(word: Value, name: str) -> Value:
    """The number of a key that is used up."""
    return use_key_p.bind(word, name=name) if active() else word


def made(word: Value) -> Value:
    """The numbers of new keys."""
    return make_key_p.bind(word) if active() else word
