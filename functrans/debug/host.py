"""`debug.print`, `debug.log` and `debug.callback`."""

from __future__ import annotations

import logging
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from ..api.callback import host_call
from ..control.callbacks.callback import debug_callback_p
from ..core.trace import Tracer
from ..core.values import PyTree, Value
from ..errors import ArgumentError, FormatError, FunctransError
from ..errors.source import is_internal
from ..frontend.checked import checked
from ..frontend.pytree import tree_leaves
from ..runtime.records import dataclass

_log = logging.getLogger("functrans.debug")


@checked
def debug_callback(
    callback: Callable[..., PyTree] | None = None, *args: PyTree, ordered: bool = False, **kwargs: PyTree
) -> Any:
    """Call a Python function with values of the program, to inspect them.

    Parameters
    ----------
    callback : callable
        ``callback(*args, **kwargs)``. It receives immutable `Array`s, which it may keep. Its result is ignored. Its
        exceptions propagate unchanged, with a note that gives the line of this call. Without `callback`, the result
        is a function of `callback` and its arguments: ``debug.callback(ordered=True)(f, x)``.
    *args, **kwargs
        Pytrees of arrays and numbers. Other leaves (strings, flags) are passed unchanged.
    ordered : bool
        Accepted for compatibility with JAX: calls always keep program order.

    Notes
    -----
    Under `jit`, it is called each time the program reaches it. Under `grad`, `jvp` and `vjp` it is called once, with
    the values of the forward pass. Under `vmap` it is called once per lane, or once in total if no argument depends
    on the lane.

    Examples
    --------
    >>> import functrans as ft
    >>> seen = []
    >>> def loss(x):
    ...     ft.debug.callback(lambda x: seen.append(float(x)), x)
    ...     return x ** 2
    >>> ft.jit(ft.grad(loss))(3.0)
    Array(6.)
    >>> seen
    [3.0]
    """
    if callback is None and not args and not kwargs:
        return partial(debug_callback, ordered=ordered)
    if not callable(callback):
        raise ArgumentError(
            f"debug.callback: expected a function to call, got {str(callback)[:60]!r} of type {type(callback).__name__}"
        )
    call, values = host_call("debug.callback", callback, args, kwargs, None)
    debug_callback_p.bind(*values, call=call, ordered=bool(ordered))
    return None


@checked
def debug_breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
) -> None:
    """Stop in the debugger each time the program reaches this call, with the values of the caller's variables.

    Python's `sys.breakpointhook` is called (pdb, or what ``PYTHONBREAKPOINT`` names), in a frame whose variable
    `values` is a dictionary from the names of the caller's variables to their numbers.

    Parameters
    ----------
    backend, filter_frames, num_frames, ordered, token
        Accepted for compatibility with JAX, without effect.

    Notes
    -----
    For when it stops under `jit`, `grad` and `vmap`, see `debug.callback`.

    Examples
    --------
    >>> import sys, functrans as ft
    >>> before, sys.breakpointhook = sys.breakpointhook, lambda: print("stopped")
    >>> @ft.jit
    ... def f(x):
    ...     y = x * 2.0
    ...     ft.debug.breakpoint()
    ...     return y
    >>> f(3.0)
    stopped
    Array(6.)
    >>> sys.breakpointhook = before
    """
    variables = {name: x for name, x in _caller().f_locals.items() if _holds_values(x)}
    call, values = host_call("debug.breakpoint", _stop, (variables,), {}, None)
    debug_callback_p.bind(*values, call=call, ordered=bool(ordered))


def _caller() -> FrameType:
    """The user's frame."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_internal(frame.f_code):
        frame = frame.f_back
    return frame


_VALUES = (Tracer, np.ndarray, np.generic, float, int, complex)


def _holds_values(x: Any) -> bool:
    try:
        leaves = tree_leaves(x)
    except FunctransError:
        return False
    return bool(leaves) and all(isinstance(leaf, _VALUES) for leaf in leaves)


def _stop(values: dict[str, Any]) -> None:
    """Call the debugger; `values` is what it shows."""
    sys.breakpointhook()


@checked
def debug_print(fmt: str | None = None, *args: PyTree, ordered: bool = False, **kwargs: PyTree) -> Any:
    """Print values each time the program reaches this call.

    Parameters
    ----------
    fmt : str
        A format string, as for ``str.format``; not an f-string, which is evaluated before numbers are known. Without
        fields, `args` are printed after it. Without `fmt`, the result is a function of `fmt` and its arguments:
        ``debug.print(ordered=True)("x = {}", x)``.
    *args, **kwargs
        The values of the fields: pytrees of arrays and numbers, and any other objects.
    ordered : bool
        Accepted for compatibility with JAX: lines always keep program order.

    Raises
    ------
    FormatError
        While tracing, if fields and arguments do not match.

    Notes
    -----
    For when it prints under `jit`, `grad` and `vmap`, see `debug.callback`. The line is flushed. Arrays are printed
    with the ``np.printoptions`` in effect when the program runs.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> @ft.jit
    ... def step(x, rate):
    ...     ft.debug.print("x = {} at rate {rate:.2f}", x, rate=rate)
    ...     return x * (1.0 - rate)
    >>> _ = step(fnp.asarray([1.0, 2.0]), 0.125)
    x = [1. 2.] at rate 0.12
    >>> _ = ft.vmap(step, in_axes=(0, None))(fnp.asarray([1.0, 2.0]), 0.5)
    x = 1.0 at rate 0.50
    x = 2.0 at rate 0.50
    """
    if fmt is None and not args and not kwargs:
        return partial(debug_print, ordered=ordered)
    _pass_on("print", fmt, args, kwargs, ordered, _write)
    return None


@checked
def debug_log(fmt: str | None = None, *args: PyTree, ordered: bool = False, **kwargs: PyTree) -> Any:
    """Log values each time the program reaches this call: `debug.print` to Python's logging, at level ``INFO``.

    Parameters
    ----------
    fmt, *args, ordered, **kwargs
        As for `debug.print`.

    Raises
    ------
    FormatError
        While tracing, if fields and arguments do not match.

    Notes
    -----
    The logger is ``logging.getLogger("functrans.debug")``. File and line of a record are those of this call. For when
    it logs under `jit`, `grad` and `vmap`, see `debug.callback`. A logger of a higher level saves writing, not the call
    of Python.

    Examples
    --------
    >>> import logging, sys, functrans as ft
    >>> logger, handler = logging.getLogger("functrans.debug"), logging.StreamHandler(sys.stdout)
    >>> handler.setFormatter(logging.Formatter("%(levelname)s:%(lineno)d: %(message)s"))
    >>> logger.addHandler(handler)
    >>> logger.setLevel(logging.INFO)
    >>> ft.jit(lambda x: ft.debug.log("x = {x:.2f}", x=x))(0.5)
    INFO:1: x = 0.50
    >>> logger.removeHandler(handler)
    >>> logger.setLevel(logging.NOTSET)
    """
    if fmt is None and not args and not kwargs:
        return partial(debug_log, ordered=ordered)
    code, line = (frame := _caller()).f_code, frame.f_lineno
    _pass_on("log", fmt, args, kwargs, ordered, _Log(code.co_filename, line, code.co_name))
    return None


def _pass_on(
    what: str,
    fmt: str | None,
    args: tuple[PyTree, ...],
    kwargs: dict[str, PyTree],
    ordered: bool,
    write: Callable[[str], None],
) -> None:
    """Write a line of these values when the program runs."""
    if not isinstance(fmt, str):
        raise ArgumentError(
            f"debug.{what}: expected a format string, got {type(fmt).__name__}: write debug.{what}('{{}}', x)"
        )
    fields = check_format(f"debug.{what}", fmt, args, kwargs)
    call, values = host_call(f"debug.{what}", _Line(what, fmt, fields, write), args, kwargs, None)
    debug_callback_p.bind(*values, call=call, ordered=bool(ordered))


@dataclass(frozen=True)
class _Line:
    """Writes one line."""

    what: str
    fmt: str
    fields: bool
    write: Callable[[str], None]

    @property
    def __name__(self) -> str:
        return f"{self.what}({self.fmt!r})"

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> None:
        if self.fields:
            line = self.fmt.format(*args, **kwargs)
        else:
            line = " ".join([self.fmt.format(), *map(str, args)])
        self.write(line)


def _write(line: str) -> None:
    print(line, flush=True)


@dataclass(frozen=True)
class _Log:
    """Logs a line for a place in the user's code."""

    file: str
    line: int
    function: str

    def __call__(self, line: str) -> None:
        if _log.isEnabledFor(logging.INFO):
            record = _log.makeRecord(
                _log.name, logging.INFO, self.file, self.line, line, (), None, self.function
            )
            _log.handle(record)


class _Fields(string.Formatter):
    """Parses a format string without formatting, and collects the arguments that it uses and those that are missing."""

    def __init__(self) -> None:
        self.used: set[int | str] = set()
        self.missing: list[int | str] = []

    def get_field(self, field_name: str, args: Sequence[Value], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        """The argument itself; its attributes and items may not exist before the program runs."""
        head = field_name.split(".")[0].split("[")[0]
        key: int | str = int(head) if head.isdigit() else head
        given = key < len(args) if isinstance(key, int) else key in kwargs
        if not given:
            self.missing.append(key)
        self.used.add(key)
        return "", key

    def convert_field(self, value: str, conversion: Any) -> str:
        """Nothing is converted."""
        return value

    def format_field(self, value: str, format_spec: str) -> str:
        """Nothing is formatted."""
        return ""


def check_format(what: str, fmt: str, args: tuple[PyTree, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a format string has fields; raises `FormatError` if these and the arguments do not match."""
    fields = _Fields()
    try:
        fields.vformat(fmt, args, kwargs)
        has_fields = any(name is not None for _, name, _, _ in fields.parse(fmt))
    except ValueError as error:
        raise FormatError(f"{what}: {fmt!r} is not a format string: {error}") from None
    if fields.missing:
        raise FormatError(f"{what}: {fmt!r} asks for {_named(fields.missing[0])}, which is missing")
    unused: list[int | str] = [name for name in kwargs if name not in fields.used]
    if has_fields:
        unused += [i for i in range(len(args)) if i not in fields.used]
    if unused:
        raise FormatError(
            f"{what}: {fmt!r} does not use {', '.join(map(_named, unused))}. Name it in braces; and pass a plain "
            "string, not an f-string"
        )
    return has_fields


def _named(key: int | str) -> str:
    return f"positional argument {key}" if isinstance(key, int) else repr(key)
