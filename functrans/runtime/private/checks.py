"""Checks of names that are not public: a release may move them, or change what they take."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from ...errors import UnsupportedLibraryError
from ..records import dataclass


@dataclass(frozen=True)
class Takes:
    """What a function is called with.

    Attributes
    ----------
    count : int
        The number of positional arguments, with ``self``.
    keywords : tuple of str
    """

    count: int
    keywords: tuple[str, ...] = ()

    def accepts(self, x: Any) -> bool:
        """Whether `x` is a function that can be called so."""
        try:
            inspect.signature(x).bind(*range(self.count), **dict.fromkeys(self.keywords))
        except (TypeError, ValueError):
            return False
        return True

    def __str__(self) -> str:
        named = "".join(f", {k}=" for k in self.keywords)
        return f"a function of {self.count} arguments{named}"


def takes(count: int, *keywords: str) -> Takes:
    """A function that is called with so many positional arguments, and with keywords."""
    return Takes(count, keywords)


def method(count: int, *keywords: str) -> Takes:
    """A method that is called with so many positional arguments besides ``self``, and with keywords."""
    return Takes(count + 1, keywords)


@dataclass(frozen=True)
class Library:
    """A library whose private names are used.

    Attributes
    ----------
    name : str
        Of the package.
    works : str
        The versions that functrans was tested with.
    """

    name: str
    works: str

    def find(self, path: str, shape: Takes | None = None) -> Any:
        """What stands at a path, such as ``numba.core.base:BaseContext.make_array``.

        Raises
        ------
        UnsupportedLibraryError
            If there is nothing, or it cannot be called as `shape` says.
        """
        try:
            found = pkgutil.resolve_name(path)
        except (ImportError, AttributeError):
            raise self.lacks(path.replace(":", ".")) from None
        if shape is not None and not shape.accepts(found):
            raise self.lacks(f"{path.replace(':', '.')} as {shape}")
        return found

    def check(self, needed: Mapping[str, Takes | None]) -> None:
        """Raise `UnsupportedLibraryError` unless all of these are there."""
        for path, shape in needed.items():
            self.find(path, shape)

    def lacks(self, what: str) -> UnsupportedLibraryError:
        """The error that something is not there."""
        return UnsupportedLibraryError(
            f"{self.name} {version(self.name)} does not have {what}, which functrans uses. It was tested with "
            f"{self.name} {self.works}: install one of these, or a newer functrans"
        )
