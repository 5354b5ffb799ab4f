"""Values of context variables for the length of a call, whatever ends the call.

Python runs the handlers of signals, and so raises `KeyboardInterrupt`, where a call returns, at the start of a function
and at the end of a loop's round. A context manager written in Python has such instants between its setting a variable
and the start of the block, and between the end of the block and the resetting. These functions have none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def run_with(variable: ContextVar[T], value: T, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``f(*args, **kwargs)`` while `variable` has a value; then it has the former one again."""
    before = variable.get()
    try:  # before it is set: an interrupt may be raised as soon as `set` returns
        variable.set(value)
        return f(*args, **kwargs)
    finally:  # one call of C, and no instant before it
        variable.set(before)


def run_quietly(f: Callable[..., Any], *args: Any) -> Any:
    """``f(*args)``, a function of ours, without NumPy's warnings of overflow and the like.

    In a copy of the context, which C leaves: the methods of `numpy.errstate` are Python and can be interrupted.
    """
    return copy_context().run(_quiet, f, args)


def _quiet(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    with np.errstate(all="ignore"):
        return f(*args)
