"""What an `Array` refuses, with the form to use instead; and what NumPy's functions return, made writable."""

from __future__ import annotations

import opcode
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from ..core.errors import ArrayTooLargeError, FunctransError, ImmutableArrayError, InvalidIndexError
from ..core.trace import operators


def refuse(what: str, instead: str) -> NoReturn:
    """Raise the error for `what` would change an `Array`."""
    raise ImmutableArrayError(f"{what}: an Array of functrans cannot be changed in place. {instead}")


COPY = "Or take a copy that is yours: np.array(x)"


class Flags:
    """The flags of an `Array`: to be read, not to be set."""

    __slots__ = ("_flags",)

    def __init__(self, flags: Any):
        object.__setattr__(self, "_flags", flags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flags, name)

    def __getitem__(self, key: str) -> Any:
        return self._flags[key]

    def __setattr__(self, name: str, value: Any) -> None:
        if value:
            refuse(f"x.flags.{name} = {value}", "Take a copy that is yours: y = np.array(x)")

    def __setitem__(self, key: str, value: Any) -> None:
        self.__setattr__(key.lower(), value)

    def __repr__(self) -> str:
        return repr(self._flags)


def refused(error: Exception, by: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Exception:
    """What to raise where NumPy refused: functrans's own error of the same call, with shapes and the user's line."""
    if isinstance(error, FunctransError):
        return error
    if isinstance(error, MemoryError):
        return ArrayTooLargeError(f"{by}: {error}")
    try:
        function(*args, **kwargs)
    except FunctransError as own:
        return own.with_traceback(None)
    except Exception:
        return InvalidIndexError(str(error)) if type(error) is IndexError else error
    return error


def operator_refused(error: Exception, op: Callable[..., Any], *operands: Any) -> Exception:
    """The same for an operator. The errors of objects that NumPy asks element by element are their own."""
    if not all(map(_is_numeric, operands)):
        return error
    stem = op.__name__.rstrip("_")
    return refused(error, stem, operators.operator[stem], *operands)


def _is_numeric(x: Any) -> bool:
    """Whether `x` is an array of NumPy's types, or converted to one."""
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

#: What prints arrays, and so wants one, also of a number.
PRINTERS = frozenset((np.array_repr, np.array_str, np.array2string))
#: What NumPy itself makes read-only, or too large to be copied: elements that occur in it more than once.
READ_ONLY = frozenset((np.broadcast_to, np.broadcast_arrays, np.lib.stride_tricks.sliding_window_view))


def writable(x: Any) -> Any:
    """What a function of NumPy returned, in memory that may be written to: not in that of an `Array`."""
    kind = type(x)
    if kind is np.ndarray:
        return x if x.flags.writeable else x.copy(order="K")
    if isinstance(x, tuple):
        parts = [writable(part) for part in x]
        return kind(*parts) if hasattr(x, "_fields") else kind(parts)
    return [writable(part) for part in x] if kind is list else x


def calls_operator(frame: FrameType) -> bool:
    """Whether a frame is at an operator of Python: NumPy's scalars on its left side go by way of the ufunc."""
    return opcode.opname[frame.f_code.co_code[frame.f_lasti]] in _OPERATORS


_OPERATORS = frozenset(("BINARY_OP", "COMPARE_OP"))

#: Methods of ndarray that write, and what to write instead.
METHODS = (
    ("sort", "Write x = functrans.numpy.sort(x)"),
    ("partition", "Write x = functrans.numpy.partition(x, k)"),
    ("fill", "Write x = functrans.numpy.full_like(x, v)"),
    ("put", "Write x = x.ravel().at[i].set(v).reshape(x.shape)"),
    ("resize", "Write x = functrans.numpy.resize(x, shape)"),
    ("setfield", "Write x = x.at[i].set(v)"),
)
