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
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

import numpy as np
import scipy

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_SKIPPED = (_PACKAGE, *[os.path.dirname(os.path.abspath(str(m.__file__))) + os.sep for m in (np, scipy)])
_STDLIB = tuple(
    os.path.join(os.path.dirname(os.__file__), name) for name in ("contextlib.py", "functools.py")
)
_LIBRARIES = (os.path.dirname(os.__file__) + os.sep,)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_NAME = __name__.partition(".")[0]
_is_internal: dict[str, bool] = {}  # by file: strings know their hash, code objects compute it each time
_is_passed_over: dict[str, bool] = {}


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
    name = code.co_filename
    known = _is_internal.get(name)
    if known is None:
        known = name.startswith((*_SKIPPED, "<frozen", "<functrans")) or calls_for_others(code)
        _is_internal[name] = known
    return known


def is_own(code: CodeType) -> bool:
    """Whether a code object belongs to functrans, or was written by it."""
    return code.co_filename.startswith((_PACKAGE, "<functrans"))


def calls_for_others(code: CodeType) -> bool:
    """Whether a code object belongs to a module of Python's that calls functions for others."""
    return code.co_filename in _STDLIB


def is_installed(code: CodeType) -> bool:
    """Whether a code object belongs to Python's library or to an installed package."""
    name = code.co_filename
    return name.startswith(_LIBRARIES) or any(part in name for part in _INSTALLED)


def _passed_over(frame: FrameType) -> bool:
    """Whether a frame belongs to an installed library that knows nothing of functrans: pandas, Matplotlib.

    A library that imports functrans is built on it, and its lines are where its author has to look.
    """
    name = frame.f_code.co_filename
    known = _is_passed_over.get(name)
    if known is None:
        known = is_installed(frame.f_code) and not any(map(_is_ours, list(frame.f_globals.values())))
        _is_passed_over[name] = known
    return known


def _is_ours(x: Any) -> bool:
    """Whether a global of a module is a module, a function or a class of functrans."""
    if not isinstance(x, ModuleType | FunctionType | type):
        return False
    name = x.__name__ if isinstance(x, ModuleType) else x.__module__
    return isinstance(name, str) and name.partition(".")[0] == _NAME


#: The place of the equation that is being replayed, while a jaxpr is derived from another.
replayed: ContextVar[Source | None] = ContextVar("functrans_replayed", default=None)


def user_source() -> Source | None:
    """The user's line, or that of the equation replayed; None when there is none.

    It is the innermost frame outside functrans and NumPy. Frames of libraries that call functrans without knowing it
    are passed over, unless there is no other.
    """
    known = replayed.get()
    if known is not None:
        return known
    frame: FrameType | None = sys._getframe(1)
    library: FrameType | None = None
    while frame is not None:
        if not is_internal(frame.f_code):
            if not _passed_over(frame):
                return Source(frame.f_code, frame.f_lasti)
            library = library or frame
        frame = frame.f_back
    return None if library is None else Source(library.f_code, library.f_lasti)


def last_line(fun: Callable[..., Any]) -> Source | None:
    """The line of a user's function from which it returns, for errors in what it returned."""
    code = getattr(getattr(fun, "__wrapped__", fun), "__code__", None)
    return Source(code, len(code.co_code) - 2) if isinstance(code, CodeType) else None
