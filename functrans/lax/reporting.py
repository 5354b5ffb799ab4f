"""Loops that report how far they are (`functrans.progress`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..api.progress import Progress
from ..debug.host import debug_callback
from ..numpy.elementwise.selection import where
from .branching import cond

#: What is carried in front of a carry: the number of finished iterations, and that at which the next report is due.
START = (np.int64(0), np.int64(0))


def reporting(progress: Progress, call: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
    """A body that counts, where ``call(fun, (carry, row)) -> (carry, y)``; its carry is a pair of count and carry."""

    def counted(fun: Callable[..., Any], values: tuple[Any, Any]) -> tuple[Any, Any]:
        ((done, due), carry), row = values
        now = done == due
        _report(progress, now, done)
        carry, y = call(fun, (carry, row))
        _report(progress, done + 1 == progress.length, done + 1)
        return ((done + 1, where(now, due + progress.every, due)), carry), y

    return counted


def _report(progress: Progress, now: Any, done: Any) -> None:
    cond(now, lambda done: debug_callback(progress.report, done), lambda done: None, done)
