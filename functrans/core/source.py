"""Where in the user's code something happened.

A `Source` holds a code object and an instruction offset, never a frame: a frame would keep every array that is
local to it alive for as long as the jaxpr lives.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import Any

import numpy as np
import scipy

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_SKIPPED = (_PACKAGE, *[os.path.dirname(os.path.abspath(str(m.__file__))) + os.sep for m in (np, scipy)])
_STDLIB = tuple(
    os.path.join(os.path.dirname(os.__file__), name) for name in ("contextlib.py", "functools.py")
)
_is_internal: dict[CodeType, bool] = {}


class Place:
    """A place in the user's code, as messages show it. Subclasses know the file, the line, its text, the function."""

    __slots__ = ()

    def parts(self) -> tuple[str, int, str, str]:
        """File, line, function, and the text of the line."""
        raise NotImplementedError

    def __str__(self) -> str:
        filename, line, function, _ = self.parts()
        return f"{os.path.basename(filename)}:{line} ({function})"

    def describe(self) -> str:
        """Two lines for an error message: the place, then the text of the line."""
        filename, line, function, text = self.parts()
        place = f"{filename}:{line}, in {function}"
        return f"{place}\n    {text}" if text else place


@dataclass(frozen=True, slots=True)
class Noted(Place):
    """A place in words, as it arrives from another process."""

    filename: str
    line: int
    function: str
    text: str

    def parts(self) -> tuple[str, int, str, str]:
        """File, line, function, and the text of the line."""
        return self.filename, self.line, self.function, self.text


@dataclass(frozen=True, slots=True)
class Source(Place):
    """A place in the user's code: a code object and the offset of the instruction that ran."""

    code: CodeType
    lasti: int

    @property
    def filename(self) -> str:
        """The file of the code object, as Python recorded it."""
        return self.code.co_filename

    @property
    def line(self) -> int:
        """The line number of the instruction (1-based)."""
        for start, stop, line in self.code.co_lines():
            if start <= self.lasti < stop and line is not None:
                return line
        return self.code.co_firstlineno

    @property
    def function(self) -> str:
        """The qualified name of the function the instruction belongs to."""
        return self.code.co_qualname

    @property
    def text(self) -> str:
        """The source line itself, stripped; empty where it cannot be read."""
        return linecache.getline(self.filename, self.line).strip()

    def is_in(self, traceback: TracebackType | None) -> bool:
        """Whether an exception passed this place on its way."""
        while traceback is not None:
            if traceback.tb_frame.f_code is self.code and traceback.tb_lasti == self.lasti:
                return True
            traceback = traceback.tb_next
        return False

    def parts(self) -> tuple[str, int, str, str]:
        """File, line, function, and the text of the line."""
        return self.filename, self.line, self.function, self.text

    def __reduce__(self) -> tuple[Any, ...]:
        # Code objects cannot be pickled, and another process may not have the file.
        return Noted, self.parts()


def is_internal(code: CodeType) -> bool:
    """Whether a code object belongs to functrans, NumPy, SciPy, or to what calls users' functions for others."""
    known = _is_internal.get(code)
    if known is None:
        name = code.co_filename
        known = name.startswith(_SKIPPED) or name in _STDLIB or name.startswith(("<frozen", "<functrans"))
        _is_internal[code] = known
    return known


#: The place of the equation that is being replayed, while a jaxpr is derived from another.
replayed: ContextVar[Source | None] = ContextVar("functrans_replayed", default=None)


def user_source() -> Source | None:
    """The innermost frame outside functrans and NumPy, or that of the equation replayed; None when there is none."""
    known = replayed.get()
    if known is not None:
        return known
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_internal(frame.f_code):
            return Source(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


def last_line(fun: Callable[..., Any]) -> Source | None:
    """The line of a user's function from which it returns, for errors in what it returned."""
    code = getattr(getattr(fun, "__wrapped__", fun), "__code__", None)
    return Source(code, len(code.co_code) - 2) if isinstance(code, CodeType) else None
