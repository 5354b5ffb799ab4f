"""Errors for writes to an `Array`, with replacements; and writable results of NumPy's functions."""

from __future__ import annotations

import opcode
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from ..core import ArrayTooLargeError, FunctransError, ImmutableArrayError, InvalidIndexError, operators
from ..core.values import Param, Value
from ..runtime.context import pass_on


def refuse(what: str, instead: str) -> NoReturn:
    """Raise the error for `what`, which would modify an `Array`."""
    raise ImmutableArrayError(f"{what}: an Array of functrans cannot be changed in place. {instead}")


COPY = "Or make a copy to modify: np.array(x)"


class Flags:
    """The flags of an `Array`, read-only."""

    __slots__ = ("_flags",)

    def __init__(self, flags: Any):
        object.__setattr__(self, "_flags", flags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flags, name)

    def __getitem__(self, key: str) -> Any:
        return self._flags[key]

    def __setattr__(self, name: str, value: Any) -> None:
        if value:
            refuse(f"x.flags.{name} = {value}", "Make a copy to modify: y = np.array(x)")

    def __setitem__(self, key: str, value: Any) -> None:
        self.__setattr__(key.lower(), value)

    def __repr__(self) -> str:
        return repr(self._flags)


def refused(
    error: Exception, by: str, function: Callable[..., Any], *args: Value, **kwargs: Param
) -> Exception:
    """The error to raise when NumPy raised one: functrans's for the same call, with shapes and the user's line."""
    if isinstance(error, FunctransError):
        return error
    if isinstance(error, MemoryError):
        return ArrayTooLargeError(f"{by}: {error}")
    try:
        function(*args, **kwargs)
    except FunctransError as own:
        return own.with_traceback(None)
    except Exception as second:
        pass_on(second)
        return InvalidIndexError(str(error)) if type(error) is IndexError else error
    return error


def operator_refused(error: Exception, op: Callable[..., Any], *operands: Value) -> Exception:
    """The same for an operator. Errors of objects that NumPy processes element by element stay as they are."""
    if not all(map(_is_numeric, operands)):
        return error
    stem = op.__name__.rstrip("_")
    return refused(error, stem, operators.operator[stem], *operands)


def _is_numeric(x: Value) -> bool:
    """Whether `x` is an array of NumPy's types, or converts to one."""
    if isinstance(x, np.ndarray | np.generic):
        return x.dtype.kind != "O"
    return isinstance(x, bool | int | float | complex | list | tuple)


ATTRIBUTES = {
    "shape": "Write x = x.reshape(shape)",
    "dtype": "Write x = x.view(dtype), or x.astype(dtype) to convert the numbers",
    "real": "Write x = v + 1j * x.imag",
    "imag": "Write x = x.real + 1j * v",
    "flat": "Write x = x.at[...].set(v)",
}

WRITERS: dict[Any, str] = {
    np.copyto: "Write x = functrans.numpy.broadcast_to(v, x.shape)",
    np.put: "Write x = x.ravel().at[i].set(v).reshape(x.shape)",
    np.place: "Write x = functrans.numpy.where(mask, v, x)",
    np.putmask: "Write x = functrans.numpy.where(mask, v, x)",
    np.fill_diagonal: "Write i = functrans.numpy.arange(len(x)); x = x.at[i, i].set(v)",
    np.put_along_axis: "Write x = x.at[...].set(v) with the indices of all axes",
}

#: Functions that print arrays, and so need an array even for a number.
PRINTERS = frozenset((np.array_repr, np.array_str, np.array2string))
#: Results that NumPy itself makes read-only, or that are too large to copy: they contain elements more than once.
READ_ONLY = frozenset((np.broadcast_to, np.broadcast_arrays, np.lib.stride_tricks.sliding_window_view))


def writable(x: Any) -> Any:
    """The result of a NumPy function in writable memory, separate from that of any `Array`."""
    kind = type(x)
    if kind is np.ndarray:
        return x if x.flags.writeable else x.copy(order="K")
    if isinstance(x, tuple):
        parts = [writable(part) for part in x]
        return kind(*parts) if hasattr(x, "_fields") else kind(parts)
    return [writable(part) for part in x] if kind is list else x


def calls_operator(frame: FrameType) -> bool:
    """Whether a frame is at a Python operator: with a NumPy scalar on the left, these call the ufunc."""
    return opcode.opname[frame.f_code.co_code[frame.f_lasti]] in _OPERATORS


_OPERATORS = frozenset(("BINARY_OP", "COMPARE_OP"))

#: Methods of ndarray that write, and their replacements.
METHODS = (
    ("sort", "Write x = functrans.numpy.sort(x)"),
    ("partition", "Write x = functrans.numpy.partition(x, k)"),
    ("fill", "Write x = functrans.numpy.full_like(x, v)"),
    ("put", "Write x = x.ravel().at[i].set(v).reshape(x.shape)"),
    ("resize", "Write x = functrans.numpy.resize(x, shape)"),
    ("setfield", "Write x = x.at[i].set(v)"),
    # From NumPy 2.5 on, in place of assignments.
    ("_set_shape", "Write x = x.reshape(shape)"),
    ("_set_dtype", "Write x = x.view(dtype)"),
)
