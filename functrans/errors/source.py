"""Places in the user's code.

A `Source` holds a code object and an instruction offset, never a frame: a frame would keep its local arrays alive as
long as the jaxpr lives.
"""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

import numpy as np

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_HOMES = (np.__file__, getattr(find_spec("scipy"), "origin", None))
_SKIPPED = (_PACKAGE, *[os.path.dirname(os.path.abspath(str(file))) + os.sep for file in _HOMES])
_STDLIB = tuple(
    os.path.join(os.path.dirname(os.__file__), name) for name in ("contextlib.py", "functools.py")
)
_LIBRARIES = (os.path.dirname(os.__file__) + os.sep,)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_NAME = __name__.partition(".")[0]
_is_internal: dict[str, bool] = {}  # by file name: strings cache their hash, code objects recompute it
_is_passed_over: dict[str, bool] = {}


def shown_file(filename: str) -> str:
    """The name of a file; of a notebook's cell, which has a temporary one, the name that IPython shows: Cell In[8]."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return filename
    try:
        known = shell.compile.format_code_name(filename)
    except AttributeError:  # another shell, or an old one
        return filename
    return filename if known is None else " ".join(known)


def at_line(filename: str, line: int) -> str:
    """A line of a file, or of a cell, as messages name it."""
    return f"{filename}, line {line}" if filename.startswith("Cell In[") else f"{filename}:{line}"


class Place:
    """A place in the user's code, as shown in messages. Subclasses know its file, line, function and source text."""

    __slots__ = ()

    def parts(self) -> tuple[str, int, str, str]:
        """File, line, function, and the source text of the line."""
        raise NotImplementedError

    def __str__(self) -> str:
        filename, line, function, _ = self.parts()
        return f"{at_line(os.path.basename(filename), line)} ({function})"

    @property
    def short(self) -> str:
        """The file and the line."""
        filename, line, _, _ = self.parts()
        return at_line(os.path.basename(filename), line)

    def describe(self) -> str:
        """Two lines for an error message: the place, then the text of the line."""
        filename, line, function, text = self.parts()
        place = f"{at_line(filename, line)}, in {function}"
        return f"{place}\n    {text}" if text else place


@dataclass(frozen=True, slots=True)
class Noted(Place):
    """A place as text, received from another process."""

    filename: str
    line: int
    function: str
    text: str

    def parts(self) -> tuple[str, int, str, str]:
        """File, line, function, and the source text of the line."""
        return self.filename, self.line, self.function, self.text


@dataclass(frozen=True, slots=True)
class Source(Place):
    """A place in the user's code: a code object and an instruction offset.

    An equation with a `backward` source belongs to the derivative of what that place computes, in reverse mode.
    """

    code: CodeType
    lasti: int
    backward: bool = False

    @property
    def filename(self) -> str:
        """The file of the code object, as recorded by Python."""
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
        """The source line, stripped; empty if it cannot be read."""
        try:
            return linecache.getline(self.filename, self.line).strip()
        except IndexError:  # from doctest, of an example that has gone
            return ""

    def transposed(self) -> Source:
        """The same place, for equations of reverse mode."""
        return self if self.backward else Source(self.code, self.lasti, True)

    def is_in(self, traceback: TracebackType | None) -> bool:
        """Whether an exception passed through this place."""
        while traceback is not None:
            if traceback.tb_frame.f_code is self.code and traceback.tb_lasti == self.lasti:
                return True
            traceback = traceback.tb_next
        return False

    def parts(self) -> tuple[str, int, str, str]:
        """File, line, function, and the source text of the line."""
        return shown_file(self.filename), self.line, self.function, self.text

    def __reduce__(self) -> tuple[Any, ...]:
        # Code objects cannot be pickled, and another process may not have the file.
        return Noted, self.parts()


def is_internal(code: CodeType) -> bool:
    """Whether a code object belongs to functrans, NumPy, SciPy, or a library module that calls users' functions."""
    name = code.co_filename
    known = _is_internal.get(name)
    if known is None:
        known = name.startswith((*_SKIPPED, "<frozen", "<functrans")) or calls_for_others(code)
        _is_internal[name] = known
    return known


def is_own(code: CodeType) -> bool:
    """Whether a code object belongs to functrans or was generated by it."""
    return code.co_filename.startswith((_PACKAGE, "<functrans"))


def calls_for_others(code: CodeType) -> bool:
    """Whether a code object belongs to a module of Python's library that calls users' functions."""
    return code.co_filename in _STDLIB


def is_installed(code: CodeType) -> bool:
    """Whether a code object belongs to Python's library or to an installed package."""
    name = code.co_filename
    return name.startswith(_LIBRARIES) or any(part in name for part in _INSTALLED)


def _passed_over(frame: FrameType) -> bool:
    """Whether a frame belongs to an installed library that does not use functrans, such as pandas or Matplotlib.

    A library that imports functrans is built on it, so its author needs to see its lines.
    """
    name = frame.f_code.co_filename
    known = _is_passed_over.get(name)
    if known is None:
        known = is_installed(frame.f_code) and not any(map(_is_ours, list(frame.f_globals.values())))
        _is_passed_over[name] = known
    return known


def _is_ours(x: Any) -> bool:
    """Whether a global of a module is a module, function or class of functrans."""
    if not isinstance(x, ModuleType | FunctionType | type):
        return False
    name = x.__name__ if isinstance(x, ModuleType) else x.__module__
    return isinstance(name, str) and name.partition(".")[0] == _NAME


#: The source of the equation being replayed, while a jaxpr is derived from another.
replayed: ContextVar[Source | None] = ContextVar("functrans_replayed", default=None)


def user_source() -> Source | None:
    """The user's line, or the line of the equation being replayed; None if unknown.

    This is the innermost frame outside functrans and NumPy. Frames of libraries that do not use functrans are skipped,
    unless no other exists.
    """
    known = replayed.get()
    if known is not None:
        return known
    frame = _user_frame()
    return None if frame is None else Source(frame.f_code, frame.f_lasti)


def _user_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    library: FrameType | None = None
    while frame is not None:
        if not is_internal(frame.f_code):
            if not _passed_over(frame):
                return frame
            library = library or frame
        frame = frame.f_back
    return library


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the user's line, as often as Python's filters for that line allow."""
    source, frame = replayed.get(), _user_frame()
    if source is not None:
        warnings.warn_explicit(message, category, *source.parts()[:2])
    elif frame is None:
        warnings.warn(message, category, stacklevel=2)
    else:
        space = frame.f_globals
        registry, module = space.setdefault("__warningregistry__", {}), space.get("__name__")
        warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, module, registry)


def last_line(fun: Callable[..., Any]) -> Source | None:
    """The line from which a user's function returns, for errors about what it returned."""
    code = getattr(getattr(fun, "__wrapped__", fun), "__code__", None)
    return Source(code, len(code.co_code) - 2) if isinstance(code, CodeType) else None
