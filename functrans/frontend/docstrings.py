"""Docstrings whose shared sections are written once for a family of functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
#: A section's heading is underlined.
_HEADING = re.compile(r"^(\w[\w ]*)\n-+$", re.MULTILINE)
#: Their order in numpydoc; the summary has no heading.
_ORDER = ("", "Parameters", "Returns", "Raises", "Notes", "References", "Examples")


def with_sections(text: str | None, sections: str) -> str:
    r"""A docstring with further sections, in numpydoc's order; what a section of it has comes first.

    Parameters
    ----------
    text : str
        A summary, and any sections.
    sections : str
        What a family shares, such as the parameters.

    Examples
    --------
    >>> with_sections("A summary.\n\nNotes\n-----\nExact.", "Parameters\n----------\nx : float")
    'A summary.\n\nParameters\n----------\nx : float\n\nNotes\n-----\nExact.'
    """
    own, shared = _split(text or ""), _split(sections)
    parts = []
    for heading in _ORDER:
        body = "\n".join(filter(None, (own.pop(heading, ""), shared.pop(heading, ""))))
        parts.append(f"{heading}\n{'-' * len(heading)}\n{body}" if heading and body else body)
    assert not {**own, **shared}, "sections without a place in the order"
    return "\n\n".join(filter(None, parts))


def described(sections: str) -> Callable[[F], F]:
    """Put shared sections into the docstring of a function."""

    def decorated(function: F) -> F:
        function.__doc__ = with_sections(function.__doc__, sections)
        return function

    return decorated


def examples_begin(lines: str) -> Callable[[F], F]:
    """Put lines that a family shares at the beginning of a function's examples."""

    def decorated(function: F) -> F:
        head, heading, own = inspect.cleandoc(function.__doc__ or "").partition("Examples\n--------\n")
        function.__doc__ = f"{head}{heading}{lines.strip()}\n{own}"
        return function

    return decorated


def _split(text: str) -> dict[str, str]:
    """The sections by heading."""
    summary, *rest = _HEADING.split(inspect.cleandoc(text))
    parts = {"": summary} | dict(zip(rest[::2], rest[1::2]))
    return {heading: body.strip("\n") for heading, body in parts.items()}
