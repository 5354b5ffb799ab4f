"""Fast calls of kernels from Python: built-in functions whose machine code is a few instructions.

``run(arrays)`` reads the address and the parameters of the kernel from an array of words, calls the kernel, and returns
its status as an int. A call through ctypes or a Numba-jitted function takes several times as long. Some of what
`run_numbers` takes may be numbers instead of arrays.

``match(leaves)`` says, in the time of one attribute access, whether a tuple has values of certain types, dtypes and
shapes.

``new_results()`` makes the arrays that users receive, in half the time of ``np.empty`` and a read-only view.

Their source is ``call.c``; `generate` has made LLVM text of it, in which this module defines where the parts of objects
lie.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....arrays.array import Array, wrap
from ....core.values import Value
from ....runtime.private.numpy_names import NEW, SET_BASE, SET_HANDLER, c_functions
from ...processor import processor
from ...undisturbed import undisturbed
from ..objects import compile_object, keep_for_ever
from ..store import obtain
from ..symbols import load
from .memory import LEAST, results_memory
from .texts import text_of

#: Where CPython keeps the items of a tuple and NumPy the data pointer of an array (`layout_is_known` checks it).
TUPLE_ITEMS = tuple.__basicsize__
ARRAY_DATA = object.__basicsize__

#: The classes of arrays that `matcher` treats as equal.
ARRAYS = (np.ndarray, Array)

#: Where CPython keeps an object's type and the size of a tuple, and NumPy the parts of an array (`fields_are_known`).
_OFFSETS = {
    "type": ARRAY_DATA - 8, "size": ARRAY_DATA, "items": TUPLE_ITEMS, "data": ARRAY_DATA,
    "ndim": ARRAY_DATA + 8, "shape": ARRAY_DATA + 16, "strides": ARRAY_DATA + 24, "dtype": ARRAY_DATA + 40,
    "flags": ARRAY_DATA + 48,
}  # fmt: skip
#: NumPy's flags of arrays that are C-contiguous and aligned, as ``x.flags.num`` has them.
TIDY = 0x1 | 0x100
#: The functions, in the order of the table that ``functrans.calls`` returns, with the flags of their methods.
_METH_NOARGS, _METH_O = 0x0004, 0x0008
_FUNCTIONS = {
    "run": _METH_O, "run_without_gil": _METH_O, "run_numbers": _METH_O, "match": _METH_O, "results": _METH_NOARGS,
}  # fmt: skip

#: How many leaves and numbers there is room for in ``call.c``; the classes that it reads, and its numbers for them.
MOST_LEAVES, MOST_NUMBERS = 64, 16
NUMBERS = {kind: np.dtype(kind) for kind in (float, np.float64, int, bool)}
_KINDS = {np.dtype(np.float64): 1, np.dtype(np.int64): 2, np.dtype(np.bool_): 3}


class _MethodDef(ctypes.Structure):
    """``PyMethodDef`` of the C API."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def native_call(
    address: int, numbers: bytes, nogil: bool, keep: Any, leaves: Sequence[np.dtype | None] = ()
) -> Callable[[tuple[Any, ...]], int]:
    """A kernel as a built-in function of the tuple of its arrays, of which some may be Python's numbers instead.

    Parameters
    ----------
    address : int
        The address of its machine code, ``i64 (i64 arrays, i64 numbers)``.
    numbers : bytes
        The parameter words.
    nogil : bool
        Whether to release the GIL while the kernel runs.
    keep : object
        The owner of the machine code, which the function keeps alive.
    leaves : sequence of dtype or None
        Where some are numbers: None for an array; for a number, the dtype of its class in `NUMBERS`. At most
        `MOST_LEAVES`, of which at most `MOST_NUMBERS` are numbers.

    Returns
    -------
    callable
        Its result is the status; 1 if a number is an int out of range.
    """
    kinds = [0 if dtype is None else _KINDS[dtype] for dtype in leaves]
    head = [address, nogil, len(kinds), *kinds] if kinds else [address]
    words = np.concatenate([np.array(head, np.int64), np.frombuffer(numbers, np.int64)])
    name = "run_numbers" if kinds else "run_without_gil" if nogil else "run"
    # The last argument, the module of the function, may be any object.
    return _new_function()(ctypes.byref(_method(name)), words, keep)


def matcher(leaves: Sequence[Value]) -> Callable[[tuple[Any, ...]], bool] | None:
    """A built-in function that says whether a tuple has leaves like these.

    Parameters
    ----------
    leaves : sequence
        Two leaves are alike if both are arrays (of class `Array` or ndarray) of the same dtype and shape, C-contiguous
        and aligned, or otherwise have the same class. So numbers must be described by their class alone: Python's, or
        NumPy's.

    Returns
    -------
    callable or None
        None if the memory layout of arrays is not the known one.
    """
    if not fields_are_known():
        return None
    words: list[int] = [len(leaves)]
    for x in leaves:
        if type(x) in ARRAYS:
            words += [*map(id, ARRAYS), x.ndim, id(x.dtype), *x.shape]
        else:
            words += [id(type(x)), id(type(x)), -1]
    references = tuple([getattr(x, "dtype", None) for x in leaves]), tuple(map(type, leaves))
    return _new_function()(ctypes.byref(_method("match")), np.array(words, np.int64), references)


def result_maker(results: Sequence[tuple[type, np.dtype, tuple[int, ...]]]) -> Callable[[], Any] | None:
    """A built-in function that makes uninitialised, read-only arrays: views of plain arrays that own the memory.

    Parameters
    ----------
    results : sequence of (type, dtype, tuple of int)
        The class, dtype and shape of each. There is at least one. Instead of a view of class ndarray, the plain array
        itself is the result.

    Returns
    -------
    callable or None
        It returns the array, or a tuple of several. None if the memory layout of arrays, or NumPy's table of
        functions, is not the known one.
    """
    table = c_functions() if fields_are_known() else None
    if table is None:
        return None
    are_large = [math.prod(shape) * dtype.itemsize >= LEAST for _, dtype, shape in results]
    memory = results_memory() if any(are_large) else None
    handlers = [0, 0] if memory is None else [memory.usual, id(memory.capsule)]
    words = [table[NEW], table[SET_BASE], table[SET_HANDLER], *handlers, id(np.ndarray), len(results)]
    for (kind, dtype, shape), is_large in zip(results, are_large):
        words += [id(kind), id(dtype), is_large, len(shape), *shape]
    references = memory, tuple([(kind, dtype) for kind, dtype, _ in results])
    return _new_function()(ctypes.byref(_method("results")), np.array(words, np.int64), references)


@functools.cache
def layout_is_known() -> bool:
    """Whether tuples and arrays have the memory layout that kernels assume."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    arrays = tuple(np.zeros(n) for n in (1, 5, 2))
    items = (ctypes.c_size_t * 3).from_address(id(arrays) + TUPLE_ITEMS)
    if [*items] != [id(a) for a in arrays]:
        return False
    pointers = [ctypes.c_size_t.from_address(id(a) + ARRAY_DATA).value for a in arrays]
    return pointers == [a.ctypes.data for a in arrays]


@functools.cache
def fields_are_known() -> bool:
    """Whether arrays store their class, axes, extents, dtype and flags where `matcher` expects them, too."""
    if not layout_is_known():
        return False
    for x in (np.zeros((5, 7), np.float32), wrap(np.zeros(3)), np.ones((6, 4, 2), np.int64).T):
        pointers = {k: ctypes.c_size_t.from_address(id(x) + _OFFSETS[k]).value for k in ("type", "dtype")}
        ndim, flags = [ctypes.c_int.from_address(id(x) + _OFFSETS[k]).value for k in ("ndim", "flags")]
        if pointers != {"type": id(type(x)), "dtype": id(x.dtype)} or ndim != x.ndim:
            return False
        for field, numbers in (("shape", x.shape), ("strides", x.strides)):
            place = ctypes.c_size_t.from_address(id(x) + _OFFSETS[field]).value
            if tuple((ctypes.c_ssize_t * ndim).from_address(place)) != numbers:
                return False
        if flags & TIDY != np.ndarray.flags.__get__(x).num & TIDY:
            return False
    sizes = [ctypes.c_ssize_t.from_address(id(t) + _OFFSETS["size"]).value for t in ((1, 2, 3), (4,) * 9)]
    return sizes == [3, 9]


@functools.cache
def _new_function() -> Callable[..., Any]:
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    return new


@functools.cache
def _method(name: str) -> _MethodDef:
    """One of the functions."""
    method = _MethodDef(name.encode(), _addresses()[name], _FUNCTIONS[name], None)
    # Functions refer to it, without owning it, to the end of the process.
    keep_for_ever(method)
    return method


@functools.cache
def _addresses() -> dict[str, int]:
    return undisturbed(_load)


def _load() -> dict[str, int]:
    text, cpu, entry = text_of("call.ll", {**_OFFSETS, "tidy": TIDY}), processor(), "functrans.calls"
    code, _ = obtain(text, cpu, "calls", lambda: compile_object(text, entry, cpu, "code"), load, lasting="")
    keep_for_ever(code)
    place = ctypes.CFUNCTYPE(ctypes.c_size_t)(code.address)()
    return dict(zip(_FUNCTIONS, (ctypes.c_size_t * len(_FUNCTIONS)).from_address(place), strict=True))
