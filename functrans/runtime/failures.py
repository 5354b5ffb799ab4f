"""Checks that failed: what a message needs besides the numbers of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors.source import Place
from .records import dataclass

#: The categories of checks: `check` and its like; NaN in a result; division by zero; indices out of bounds.
CATEGORIES = ("user", "nan", "div", "index")


@dataclass(frozen=True)
class Failure:
    """One check of a program.

    Attributes
    ----------
    category : str
        One of `CATEGORIES`.
    template : str
        A format string.
    tree : object, optional
        ``tree.unflatten(values)`` gives the positional and keyword arguments of the template; without it, the values
        are the positional ones.
    source : Place or None
        The user's line.
    exception : callable, optional
        ``exception(values)`` makes the error to raise instead of a `CheckError`.
    """

    category: str
    template: str
    tree: Any = None
    source: Place | None = None
    exception: Callable[[Sequence[Any]], BaseException] | None = None

    def message(self, values: Sequence[Any]) -> str:
        """The message for the numbers of a run, without the line."""
        if self.exception is not None:
            error = self.exception(values)
            return f"{type(error).__name__}: {error}"
        args, kwargs = (values, {}) if self.tree is None else self.tree.unflatten(values)
        return self.template.format(*args, **kwargs)

    def failed(self, values: Sequence[Any]) -> tuple[Failure, Sequence[Any]]:
        """The check that failed, and its values: itself."""
        return self, values


@dataclass(frozen=True)
class OneOf:
    """One of several checks: the values are its number, from 1 on, and the values of all.

    If `native`, the error has the class that the operation itself raises.
    """

    failures: tuple[Failure | OneOf, ...]
    counts: tuple[int, ...]
    native: bool = False
    category = "user"
    source = None

    def failed(self, values: Sequence[Any]) -> tuple[Failure, Sequence[Any]]:
        """The check that failed, and its values."""
        k = int(values[0]) - 1
        start = 1 + sum(self.counts[:k])
        return self.failures[k].failed(values[start : start + self.counts[k]])
