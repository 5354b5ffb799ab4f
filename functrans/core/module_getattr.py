"""``__getattr__`` and ``__dir__`` of public modules: list public names, suggest the nearest for a missing one."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NoReturn

from .errors import NoAttributeError


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
    module: str, names: dict[str, Any], hints: dict[str, str] | None = None
) -> tuple[Callable[[str], NoReturn], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for a module with an ``__all__``.

    Parameters
    ----------
    module : str
        The module's name, for the message.
    names : dict
        Its ``globals()``.
    hints : dict from str to str, optional
        The replacement to suggest for particular names.
    """

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        hint = (hints or {}).get(name)
        close = nearest_names(name, names["__all__"])
        text = hint or (f"Nearest: {', '.join(close)}" if close else "See dir() for the available names")
        raise NoAttributeError(f"{module} has no '{name}'. {text}")

    def __dir__() -> list[str]:
        return sorted({*names["__all__"], *[n for n in names if n.startswith("__")]})

    return __getattr__, __dir__
