"""Attribute access on modules: public names, suggestions for missing ones, and loading on first use.

`module_attributes` serves public modules: ``dir`` lists the public names, a missing name raises an error that suggests
the nearest one, and parts load on first use. `lazy_import` returns a stand-in for a module that loads on first use.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from importlib import import_module
from types import ModuleType
from typing import Any

from ..errors import NoAttributeError
from .context import loading


def nearest_names(name: str, known: Any, n: int = 3) -> list[str]:
    """Similar names, most similar first, including those that contain it or are part of it."""
    names = sorted(k for k in known if not k.startswith("_"))
    close = difflib.get_close_matches(name, names, n=n, cutoff=0.6)
    lower = name.lower()
    close += [
        k for k in names if len(k) > 2 and (k.lower() in lower or lower in k.lower()) and k not in close
    ]
    return close[:n]


def module_attributes(
    module: str,
    names: dict[str, Any],
    hints: dict[str, str] | None = None,
    parts: Collection[str] = (),
    further: Callable[[str], Any] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for a module with an ``__all__``.

    Parameters
    ----------
    module : str
        The module's name, for the message.
    names : dict
        Its ``globals()``.
    hints : dict from str to str, optional
        The replacement to suggest for particular names.
    parts : collection of str, optional
        Submodules that load on first access.
    further : callable, optional
        Names that are not listed: ``further(name)`` returns the object, or None if there is none.
    """

    def __getattr__(name: str) -> Any:
        if name in parts:
            return import_module(f"{module}.{name}")
        value = None if further is None else further(name)
        if value is not None:
            return value
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        hint = (hints or {}).get(name)
        close = nearest_names(name, names["__all__"])
        text = hint or (f"Nearest: {', '.join(close)}" if close else "See dir() for the available names")
        raise NoAttributeError(f"{module} has no '{name}'. {text}")

    def __dir__() -> list[str]:
        return sorted({*names["__all__"], *[n for n in names if n.startswith("__")]})

    return __getattr__, __dir__


class _LazyModule(ModuleType):
    """See `lazy_import`."""

    def __getattr__(self, name: str) -> Any:
        with loading:
            return self._load(name)

    def _load(self, name: str) -> Any:
        module = import_module(self.__name__)
        try:
            value = getattr(module, name)
        except AttributeError:
            if name.startswith("__"):
                raise
            try:
                value = import_module(f"{self.__name__}.{name}")
            except ModuleNotFoundError:
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None
        if isinstance(value, ModuleType):  # other values may be replaced in the module
            self.__dict__[name] = value
        return value


def lazy_import(name: str) -> Any:
    """A module that is imported when one of its names is first used; submodules are names as well.

    Parameters
    ----------
    name : str
        Absolute.

    Examples
    --------
    >>> calendar = lazy_import("calendar")
    >>> calendar.isleap(2024)
    True
    """
    return _LazyModule(name)
