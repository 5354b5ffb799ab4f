"""JAX's names: traces in a directory, and names for parts of a program in them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from ..core import ArgumentError
from ..core.values import Param, PyTree
from ..errors import ProfileError
from ..errors.source import user_source
from ..frontend.arguments import path_of
from ..runtime.context import F, new_lock
from ..runtime.unusual import unusual
from .recorder import Recorder, now
from .session import Profile

_lock = new_lock()
#: The trace that `start_trace` began, if one is running.
_running: list[AbstractContextManager[Profile]] = []


@contextmanager
def trace(
    log_dir: str | PathLike[str], create_perfetto_link: bool = False, create_perfetto_trace: bool = False
) -> Iterator[Profile]:
    """Profile a block, and write its trace into a directory; `jax.profiler.trace` in JAX.

    Parameters
    ----------
    log_dir : path-like
        The trace is the file ``plugins/profile/DATE/perfetto_trace.json.gz`` in it, as with JAX.
    create_perfetto_link, create_perfetto_trace : bool
        Accepted: the file is there in any case, and https://ui.perfetto.dev opens it.

    Yields
    ------
    Profile
        See `functrans.profile`; the trace is written when the block ends.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import functrans as ft, functrans.numpy as fnp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with ft.profiler.trace(folder):
    ...         y = ft.jit(fnp.sin)(1.0)
    ...     [path.name for path in Path(folder).rglob("*.gz")]
    ['perfetto_trace.json.gz']
    """
    log_dir = path_of("profiler.trace: log_dir", log_dir)
    session = Profile()
    try:
        with session:
            yield session
    finally:
        folder = Path(log_dir) / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")
        folder.mkdir(parents=True, exist_ok=True)
        session.save(folder / "perfetto_trace.json.gz")


def start_trace(
    log_dir: str | PathLike[str], create_perfetto_link: bool = False, create_perfetto_trace: bool = False
) -> None:
    """Begin a `trace` that `stop_trace` ends; `jax.profiler.start_trace` in JAX.

    Parameters
    ----------
    log_dir, create_perfetto_link, create_perfetto_trace
        As for `trace`.

    Raises
    ------
    ProfileError
        If one is running: there is one at a time.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import functrans as ft, functrans.numpy as fnp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ft.profiler.start_trace(folder)
    ...     y = ft.jit(fnp.sin)(1.0)
    ...     ft.profiler.stop_trace()
    ...     [path.name for path in Path(folder).rglob("*.gz")]
    ['perfetto_trace.json.gz']
    """
    with _lock:
        if _running:
            raise ProfileError(
                "profiler.start_trace: a trace is running already: end it by profiler.stop_trace()"
            )
        block = trace(log_dir, create_perfetto_link, create_perfetto_trace)
        block.__enter__()
        _running.append(block)


def stop_trace() -> None:
    """End the trace that `start_trace` began, and write it; `jax.profiler.stop_trace` in JAX.

    Raises
    ------
    ProfileError
        If none is running.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.profiler.stop_trace()
    Traceback (most recent call last):
    ...
    functrans.errors.ProfileError: profiler.stop_trace: no trace is running...
    """
    with _lock:
        if not _running:
            raise ProfileError(
                "profiler.stop_trace: no trace is running: begin one by profiler.start_trace(log_dir)"
            )
        _running.pop().__exit__(None, None, None)


class TraceAnnotation:
    """Name the time of a block in the traces of profiles; `jax.profiler.TraceAnnotation` in JAX.

    Parameters
    ----------
    name : str
    **kwargs
        Further words for the name, as ``step=3``.

    Raises
    ------
    ArgumentError
        If the name is not a text.

    Examples
    --------
    >>> import functrans as ft
    >>> with ft.profiler.TraceAnnotation("load the data"):
    ...     data = list(range(10))
    """

    def __init__(self, name: str, **kwargs: PyTree):
        if not isinstance(name, str):
            raise ArgumentError(f"{type(self).__name__}: name must be a str, got {type(name).__name__}")
        self.name = " ".join([name, *(f"{k}={v}" for k, v in kwargs.items())])
        self._starts: list[int] = []

    def __enter__(self) -> TraceAnnotation:
        self._starts.append(now())
        return self

    def __exit__(self, *exception: object) -> None:
        start, recorder = self._starts.pop(), unusual.recorder
        if isinstance(recorder, Recorder):
            recorder.thread().note(self.name, user_source(), start, now())


class StepTraceAnnotation(TraceAnnotation):
    """Name the time of a step of training in the traces of profiles; `jax.profiler.StepTraceAnnotation` in JAX.

    Parameters
    ----------
    name : str
    **kwargs
        Further words for the name: the number of the step, ``step_num=3``.

    Raises
    ------
    ArgumentError
        If the name is not a text.

    Examples
    --------
    >>> import functrans as ft
    >>> for step in range(3):
    ...     with ft.profiler.StepTraceAnnotation("train", step_num=step):
    ...         data = list(range(10))
    """


def annotate_function(
    func: F | None = None, name: str | None = None, **kwargs: PyTree
) -> F | Callable[[F], F]:
    """A function whose calls have a name in the traces of profiles; `jax.profiler.annotate_function` in JAX.

    Parameters
    ----------
    func : callable, optional
        If it is left out, the result is a decorator.
    name : str, optional
        By default the function's.
    **kwargs
        See `TraceAnnotation`.

    Returns
    -------
    callable

    Examples
    --------
    >>> import functrans as ft
    >>> @ft.profiler.annotate_function
    ... def load():
    ...     return 3
    >>> load()
    3
    """
    if func is None:
        return functools.partial(annotate_function, name=name, **kwargs)  # type: ignore[return-value]
    if not callable(func):
        raise ArgumentError(f"annotate_function: func must be callable, got {type(func).__name__}")
    title = getattr(func, "__qualname__", type(func).__qualname__) if name is None else name

    @functools.wraps(func)
    def annotated(*args: PyTree, **options: Param) -> Any:
        with TraceAnnotation(title, **kwargs):
            return func(*args, **options)

    return annotated
