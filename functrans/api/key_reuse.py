"""`debug_key_reuse`: the option of this name within a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..arrays.arguments import FLAG
from ..runtime.config import config
from ..runtime.module_getattr import lazy_import

_uses = lazy_import("functrans.control.key_uses")


@contextmanager
def debug_key_reuse(val: bool = True) -> Iterator[None]:
    """Raise an error when a key of `functrans.random` is used twice within the block.

    Parameters
    ----------
    val : bool

    Raises
    ------
    KeyReuseError
        When the second use runs, also in a compiled function, a loop, or a lane of `vmap`.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans import random
    >>> with ft.debug_key_reuse():
    ...     first, second = random.split(random.key(0))
    ...     x = random.normal(first) + random.normal(second)
    """
    val = FLAG.check(val, "debug_key_reuse", "val")
    if val and not config.debug_key_reuse:
        _uses.forget()
    with config.patch(debug_key_reuse=val):
        yield
