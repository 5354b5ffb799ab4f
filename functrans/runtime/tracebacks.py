"""Tracebacks that show the user's frames.

An error that leaves functrans passes a *boundary*, which removes the frames of functrans from its traceback. Boundaries
are the functions to which users pass functions (transformations, control flow, custom rules, callbacks),
and every function that checks its arguments. A boundary costs nothing measurable unless an error is raised.
"""

from __future__ import annotations

import functools
from types import TracebackType
from typing import Any

from ..errors import FunctransError
from ..errors.source import calls_for_others, is_own
from .config import config
from .context import F


def boundary(function: F) -> F:
    """The function, with the frames of functrans removed from errors that leave it."""

    @functools.wraps(function)
    def outermost(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            show_users_frames(error)
            raise

    return outermost  # type: ignore[return-value]


def show_users_frames(error: BaseException) -> None:
    """Remove the frames of functrans from the traceback of an error and of its causes.

    If the error is not a `FunctransError`, the frame that raised it stays: the fault may be in functrans.
    """
    if config.traceback_filtering:
        _filter(error, set())


def _filter(error: BaseException, seen: set[int]) -> None:
    seen.add(id(error))
    error.__traceback__ = _filtered(error.__traceback__, not isinstance(error, FunctransError))
    for other in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
        if isinstance(other, BaseException) and id(other) not in seen:
            _filter(other, seen)


def _filtered(traceback: TracebackType | None, keep_last: bool) -> TracebackType | None:
    parts: list[TracebackType] = []
    own = False
    while traceback is not None:
        code = traceback.tb_frame.f_code
        own = is_own(code) or (own and calls_for_others(code))
        if not own or (keep_last and traceback.tb_next is None):
            parts.append(traceback)
        traceback = traceback.tb_next
    filtered = None
    for part in reversed(parts):
        line: int | None = part.tb_lineno
        # None for an instruction without a line, at which an interrupt may arrive: -1 says so.
        filtered = TracebackType(filtered, part.tb_frame, part.tb_lasti, -1 if line is None else line)
    return filtered
