"""`debug.print` and `debug.callback`."""

from __future__ import annotations

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
    if not isinstance(fmt, str):
        raise ArgumentError(
            f"debug.print: expected a format string, got {type(fmt).__name__}: write debug.print('{{}}', x)"
        )
    fields = check_format("debug.print", fmt, args, kwargs)
    call, values = host_call("debug.print", _Print(fmt, fields), args, kwargs, None)
    debug_callback_p.bind(*values, call=call, ordered=bool(ordered))
    return None


@dataclass(frozen=True)
class _Print:
    """Prints one line."""

    fmt: str
    fields: bool

    @property
    def __name__(self) -> str:
        return f"print({self.fmt!r})"

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> None:
        if self.fields:
            line = self.fmt.format(*args, **kwargs)
        else:
            line = " ".join([self.fmt.format(), *map(str, args)])
        print(line, flush=True)


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
