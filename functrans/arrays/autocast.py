"""The autocast of the running thread or task: what `functrans.autocast` sets, as an override of the options.

So it ends with its block, is seen by no other thread, and is part of the trace key. Operations test `autocasting.used`
first, and until a process uses autocast that is all that they pay.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.values import ArrayLike, Param, Value
from ..runtime.config import Patch, config
from ..runtime.context import run_with
from ..runtime.module_getattr import lazy_import
from ..runtime.options import AutocastOption

if TYPE_CHECKING:
    from .autocast_rules import Autocast

#: Loads when autocast is first used.
rules = lazy_import("functrans.arrays.autocast_rules")

# Looked up late, since it loads the rules.
AutocastOption.block_of = staticmethod(lambda block: rules.block_of(block))

_patch = config._store.patch
_current = config._store.current


class _Autocasting:
    """Whether this process has ever used autocast."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = False


class _Made(threading.local):
    """How many casts autocast has made in this thread."""

    count = 0


autocasting = _Autocasting()
made = _Made()


def ambient() -> Autocast | None:
    """The state of autocast here; None where it is off."""
    patch = _current()
    return None if patch is None else patch.overrides.get("autocast")


def ambient_scope() -> Any:
    """The `AutocastScope` of the innermost block, also if autocast is off in it; None outside."""
    patch = _current()
    return None if patch is None else patch.overrides.get("autocast_scope")


def casts_here(name: str) -> bool:
    """Whether autocast may cast operands of this operation here."""
    state = ambient()
    return state is not None and state.policy(name) != "none"


def under(state: Autocast | None, f: Callable[..., Any], *args: Value, **kwargs: Param) -> Any:
    """``f(*args, **kwargs)`` under a state, as in a block that nothing is around."""
    if ambient() == state:
        return f(*args, **kwargs)
    scope = None if state is None else rules.AutocastScope(state.dtype, state.rules)
    overrides = {"autocast": state, "autocast_scope": scope}
    return run_with(_patch, Patch(overrides, _current()), f, *args, **kwargs)


def without(f: Callable[..., Any], *args: ArrayLike, **kwargs: Any) -> Any:
    """``f(*args, **kwargs)`` with autocast off, as in a block within this one: the code inside an operation."""
    if ambient() is None:
        return f(*args, **kwargs)
    return run_with(_patch, Patch({"autocast": None}, _current()), f, *args, **kwargs)
