"""Docstrings whose shared sections are written once for a family of functions."""

from __future__ import annotations

import inspect
import re

#: The line above which the first section starts: its heading is underlined.
_HEADING = re.compile(r"^\w[\w ]*\n-+$", re.MULTILINE)


def with_sections(text: str | None, sections: str) -> str:
    r"""A docstring with further sections in front of its own ones.

    Parameters
    ----------
    text : str
        A summary, and any sections.
    sections : str
        What a family shares, such as the parameters.

    Examples
    --------
    >>> with_sections("A summary.\n\nNotes\n-----\nExact.", "Shared.")
    'A summary.\n\nShared.\n\nNotes\n-----\nExact.'
    """
    own = inspect.cleandoc(text or "")
    first = _HEADING.search(own)
    at = first.start() if first else len(own)
    parts = (own[:at].rstrip(), inspect.cleandoc(sections), own[at:])
    return "\n\n".join(filter(None, parts))
