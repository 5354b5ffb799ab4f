"""Profiles: what is timed between the start of a block and its end."""

from __future__ import annotations

import functools
import os
from os import PathLike
from typing import Any

from ..core import ArgumentError, ArgumentValueError, user_source
from ..core.values import PyTree
from ..errors import ProfileError
from ..runtime.config import set_timed
from ..runtime.context import F, cached_property, new_rlock
from ..runtime.unusual import unusual
from .flame import flame_graph
from .lines import Lines, LineTimes
from .operations import Operations
from .recorder import Recorder
from .recording import Moment, Recording
from .table import annotated, html_table, table
from .timeline import write_trace

_lock = new_rlock()
_open: list[Profile] = []
_operations: list[Operations] = []


class Profile:
    """Where time goes, by your own lines: see `functrans.profile`.

    Attributes
    ----------
    lines : list of LineTimes
        The lines of the file with the ``with`` statement first; in each file the longest first.
    total : float
        All seconds: those between the start and the end, and those of other threads in functrans.
    seconds : float
        From the start to the end.
    """

    def __init__(self) -> None:
        self._home = ""
        self._depth = 0
        self._before: Moment | None = None
        self._elapsed = 0
        self._parts: list[Recording] = []

    # --- recording ------------------------------------------------------------------------------------------

    def __enter__(self) -> Profile:
        with _lock:
            if self._depth:
                raise ProfileError(
                    "profile: this profile is open already. Open another one, functrans.profile(): each has all that "
                    "happens while it is open"
                )
            source = user_source()
            self._home = self._home or ("" if source is None else source.parts()[0])
            self._start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    def __call__(self, f: F) -> F:
        """The function, with the profile open during its calls; they add up."""
        if not callable(f):
            raise ArgumentError(f"profile: it decorates a function, got {type(f).__name__}")
        self._home = self._home or getattr(getattr(f, "__code__", None), "co_filename", "")

        @functools.wraps(f)
        def profiled(*args: PyTree, **kwargs: PyTree) -> Any:
            self._start()
            try:
                return f(*args, **kwargs)
            finally:
                self._stop()

        return profiled  # type: ignore[return-value]

    def _start(self) -> None:
        with _lock:
            self._depth += 1
            if self._depth > 1:
                return
            if unusual.recorder is None:
                unusual.recorder = Recorder()
                set_timed(True)
                _operations[:] = [Operations(unusual.recorder)]
                _operations[0].begin()
            _open.append(self)
            self._before = Moment(_operations[0].recorder, _operations[0])

    def _stop(self) -> None:
        with _lock:
            self._depth -= 1
            if self._depth:
                return
            before = self._before
            assert before is not None
            after = Moment(_operations[0].recorder, _operations[0])
            _open.remove(self)
            if not _open:
                unusual.recorder = None
                set_timed(False)
                _operations.pop().end()
            self._before = None
            self._parts.append(Recording(before, after))
            self.__dict__.pop("_lines", None)

    # --- reading --------------------------------------------------------------------------------------------

    def _read(self) -> Lines:
        if self._depth:
            raise ProfileError("profile: it is still open. Read it after the with block")
        if not self._parts:
            raise ProfileError("profile: nothing was recorded. Open it, `with functrans.profile() as p:`")
        return self._lines

    @cached_property
    def _lines(self) -> Lines:
        lines = Lines()
        for part in self._parts:
            part.add_to(lines)
        return lines

    @property
    def lines(self) -> list[LineTimes]:
        """See the class."""
        found = [line for line in self._read().by_place.values() if line.total or line.calls]
        sums: dict[str, float] = {}
        for line in found:
            sums[line.filename] = sums.get(line.filename, 0.0) + line.total
        return sorted(
            found,
            key=lambda x: (x.filename != self._home, not x.line, -sums[x.filename], x.filename, -x.total),
        )

    @property
    def total(self) -> float:
        """See the class."""
        return sum(line.total for line in self.lines)

    @property
    def seconds(self) -> float:
        """See the class."""
        self._read()
        return sum(part.elapsed for part in self._parts) * 1e-9

    def __str__(self) -> str:
        return table(self.lines, self.total)

    def __repr__(self) -> str:
        state = "open" if self._depth else f"{self.seconds:.3g} s" if self._parts else "empty"
        return f"<profile, {state}>"

    def _repr_html_(self) -> str:
        return f"{html_table(self.lines, self.total)}\n{self.to_svg()}"

    def annotate(self, filename: str | None = None, file: Any = None) -> None:
        """Print a source file with the times of its lines in the margin.

        Parameters
        ----------
        filename : str, optional
            By default the file with the ``with`` statement, or the one with most time if that has none.
        file : object with ``write``, optional
            By default the standard output.

        Raises
        ------
        ArgumentValueError
            If no time was recorded for that file.
        """
        lines = [line for line in self.lines if line.line]
        known = list(dict.fromkeys(line.filename for line in lines))
        if filename is None:
            filename = known[0] if known else self._home
        chosen = [line for line in lines if filename in (line.filename, os.path.basename(line.filename))]
        if not chosen:
            raise ArgumentValueError(
                f"profile.annotate: no time was recorded for {filename!r}; the files are {', '.join(known) or 'none'}"
            )
        print(annotated(chosen, self.total), file=file)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a trace in the format of Chrome, which Perfetto (https://ui.perfetto.dev) shows.

        It has one track for each thread, the pool's included, with events inside of events; a kernel contains its loop
        nests, each as long as its part of all calls.

        Parameters
        ----------
        path : path-like
            Ends with ``.json`` or ``.json.gz``.

        Raises
        ------
        ArgumentValueError
            If the name has another ending.
        """
        self._read()
        write_trace(path, self._parts)

    def to_svg(self) -> str:
        """A flame graph: functions below, then their lines, then what these spent the time on."""
        return flame_graph(self.lines, self.total)


def profile() -> Profile:
    """Time a block of code, and say which of your own lines the time goes to, compiled or not.

    Returns
    -------
    Profile
        A context manager, and a decorator. Afterwards ``print(p)`` shows a table by lines; ``p.annotate()`` your source
        with times in the margin; ``p.save("trace.json")`` writes a trace for Perfetto; ``p.to_svg()`` is a flame graph.

    Raises
    ------
    ProfileError
        If it is read while it is open, or before; or opened while it is open.

    Notes
    -----
    The time of a kernel is divided among its loop nests by counters in its machine code, so programs are compiled once
    more when they are first called in a profile. Call what you want to see once before you measure it in the same
    profile, or accept that the time of compiling is there, in columns of its own. Where one loop nest computes several
    lines, these share its time by estimate. A derivative in reverse mode has a row of its own, under the line that it
    is the derivative of.

    A profile has all threads of the process. Several may be open: each has all that happens while it is. One that is
    opened again adds to what it has.

    Examples
    --------
    >>> import functrans as ft
    >>> import functrans.numpy as fnp
    >>> @ft.jit
    ... def f(x):
    ...     y = fnp.sin(x)
    ...     return fnp.sum(y * y)
    >>> x = fnp.ones(1000)
    >>> with ft.profile() as p:
    ...     value = f(x)
    >>> sorted({kind for line in p.lines for kind in line.seconds if kind in ("kernel", "trace", "lower")})
    ['kernel', 'lower', 'trace']
    """
    return Profile()


__all__ = ["Profile", "profile"]
