"""``progress``: progress bars for compiled loops."""

from __future__ import annotations

import operator
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ..core import ArgumentError, ArgumentValueError, Transformed
from ..core.values import PyTree
from ..frontend.arguments import check_function, name_of
from ..frontend.checked import checked

#: How often a bar moves by default.
STEPS = 100
_WIDTH = 30


@checked
def progress(length: int, every: int | None = None, desc: str | None = None, bar: Any = None) -> Any:
    """Show a progress bar while a compiled loop runs: a decorator for the body of the loop.

    Parameters
    ----------
    length : int
        The number of iterations of the loop.
    every : int, optional
        Iterations between updates of the bar, each of which is one host call. By default a hundredth of `length`.
    desc : str, optional
        The text before the bar; by default the name of the body.
    bar : object, optional
        The bar: any object with a method ``update(n)``, which is called after `n` more iterations; or a callable that
        makes one (``tqdm.tqdm``, or your own function), called as ``bar(total=length, desc=desc)`` at the start of each
        run; that bar is closed at the end. By default a tqdm bar if tqdm is installed, otherwise a line on
        ``sys.stderr``.

    Returns
    -------
    callable
        Takes the body of a `lax.scan`, `lax.fori_loop` or `lax.map`, and returns the body to use instead.

    Raises
    ------
    ArgumentError, ArgumentValueError
        If an argument has the wrong type or is not positive; raised by the loop if it has another length.

    Notes
    -----
    The loop stays native: it counts iterations, and calls Python at its start, every `every` iterations, and at its
    end. It works under `jit`, `grad` (it shows the forward loop) and `vmap` (one bar for all lanes). Outside a loop,
    the decorated body behaves like the body.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans import lax
    >>> class Percent:
    ...     def __init__(self, total, desc):
    ...         self.total, self.done = total, 0
    ...     def update(self, n):
    ...         self.done += n
    ...         print(f"{100 * self.done // self.total}%")
    >>> @ft.progress(1000, every=300, bar=Percent)
    ... def body(x, _):
    ...     return 3.7 * x * (1 - x), None
    >>> x, _ = lax.scan(body, 0.5, length=1000)
    30%
    60%
    90%
    100%
    """
    length = _positive("length", length, least=0)
    step = max(length // STEPS, 1) if every is None else _positive("every", every)
    if bar is not None and not callable(bar) and not callable(getattr(bar, "update", None)):
        raise ArgumentError(
            f"progress: bar must have a method update(n), or make an object that has one, but it is "
            f"{str(bar)[:60]!r} of type {type(bar).__name__}"
        )

    def decorate(body: Callable[..., PyTree]) -> Progress:
        check_function("progress", body)
        return Progress(body, length, step, name_of(body) if desc is None else desc, bar)

    return decorate


def _positive(name: str, value: Any, least: int = 1) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"progress: {name} must be an integer, got {value!r}") from None
    if number < least:
        raise ArgumentValueError(f"progress: {name} must be at least {least}, got {number}")
    return number


class Progress(Transformed):
    """A body whose loop has a progress bar. The loop calls `report` with the number of finished iterations."""

    _copied_names = (*Transformed._copied_names, "__doc__")
    _transient = frozenset(("_here",))

    def __init__(self, body: Callable[..., PyTree], length: int, every: int, desc: str, bar: Any):
        super().__init__("progress", body)
        self.body = body
        self.length = length
        self.every = every
        self._desc = desc
        self._bar = bar
        self._arrived()

    def _arrived(self) -> None:
        self._here = threading.local()  # the bar of a run, and the number of iterations reported to it

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """The body."""
        return self.body(*args, **kwargs)

    def check(self, loop: str, length: int) -> None:
        """Raise an error if the loop has another length."""
        if length != self.length:
            raise ArgumentValueError(
                f"{loop}: progress expects {self.length} iterations, but the loop has {length}. Pass "
                f"the length of the loop to functrans.progress"
            )

    def report(self, finished: PyTree) -> None:
        """Called by the loop: starts a bar at 0 and ends it at the last iteration."""
        here, n = self._here, int(finished)
        if n == 0:
            self._close()  # of a run that was interrupted
            here.bar, here.done = self._new_bar(), 0
            return
        bar = getattr(here, "bar", None)
        if bar is not None:
            bar.update(n - here.done)
            here.done = n
            if n == self.length:
                self._close()

    def _is_given(self) -> bool:
        """Whether the user made the bar, and will close it."""
        return not isinstance(self._bar, type) and hasattr(self._bar, "update")

    def _new_bar(self) -> Any:
        if self._is_given():
            return self._bar
        make = default_bar() if self._bar is None else self._bar
        return make(total=self.length, desc=self._desc)

    def _close(self) -> None:
        bar = getattr(self._here, "bar", None)
        self._here.bar = None
        if bar is not None and not self._is_given() and hasattr(bar, "close"):
            bar.close()


def default_bar() -> Callable[..., PyTree]:
    """What makes a bar where the user does not say: tqdm, if it is installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return Line
    return tqdm


class Line:
    """A bar without tqdm: one line on ``sys.stderr``, rewritten at each update."""

    def __init__(self, total: int, desc: str):
        self.total = total
        self.desc = desc
        self.done = 0
        self.began = time.monotonic()
        self._write()

    def update(self, n: int) -> None:
        """Count `n` more iterations."""
        self.done += n
        self._write()

    def close(self) -> None:
        """End the line."""
        sys.stderr.write("\n")
        sys.stderr.flush()

    def _write(self) -> None:
        share = self.done / max(self.total, 1)
        filled = int(share * _WIDTH)
        spent = time.monotonic() - self.began
        left = f"{spent * (1 - share) / share:.1f} s left" if self.done else "..."
        bar = "#" * filled + "." * (_WIDTH - filled)
        sys.stderr.write(
            f"\r{self.desc}: {share:4.0%} [{bar}] {self.done}/{self.total}, {spent:.1f} s, {left}   "
        )
        sys.stderr.flush()
