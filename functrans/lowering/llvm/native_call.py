"""Fast calls of kernels from Python: built-in functions whose machine code is a few instructions of LLVM.

``run(arrays)`` reads the address and the parameters of the kernel from an array of words, calls the kernel, and returns
its status as an int. A call through ctypes or a Numba-jitted function takes several times as long.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..processor import processor
from ..undisturbed import undisturbed
from .objects import LoadedCode, compile_object
from .symbols import load

#: Where CPython keeps the items of a tuple and NumPy the data pointer of an array (`layout_is_known` checks it).
TUPLE_ITEMS = tuple.__basicsize__
ARRAY_DATA = object.__basicsize__

_METH_O = 0x0008
#: Functions ``PyObject *(PyObject *words, PyObject *arrays)``. A negative status means that an exception is pending.
_TEXT = """declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
define ptr @functrans.{name}(ptr %self, ptr %tuple) {{
  %field = getelementptr i8, ptr %self, i64 {data}
  %words = load ptr, ptr %field
  %kernel = load ptr, ptr %words
  %after = getelementptr i8, ptr %words, i64 8
  %arrays = ptrtoint ptr %tuple to i64
  %numbers = ptrtoint ptr %after to i64
  {save}
  %status = call i64 %kernel(i64 %arrays, i64 %numbers)
  {restore}
  %pending = icmp slt i64 %status, 0
  br i1 %pending, label %raise, label %return
raise:
  ret ptr null
return:
  %number = call ptr @PyLong_FromLongLong(i64 %status)
  ret ptr %number
}}
"""


class _MethodDef(ctypes.Structure):
    """``PyMethodDef`` of the C API."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def native_call(
    address: int, numbers: bytes, nogil: bool, keep: Any
) -> Callable[[tuple[np.ndarray, ...]], int]:
    """A kernel as a built-in function of the tuple of its arrays.

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
    """
    words = np.frombuffer(address.to_bytes(8, "little") + numbers, np.int64)
    # The last argument, the module of the function, may be any object.
    return _new_function()(ctypes.byref(_method(nogil)), words, keep)


@functools.cache
def _new_function() -> Callable[..., Any]:
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    return new


@functools.cache
def _method(nogil: bool) -> _MethodDef:
    """The function that holds the GIL, or the one that releases it."""
    return undisturbed(_make_method, nogil)


def _make_method(nogil: bool) -> _MethodDef:
    name = "run_without_gil" if nogil else "run"
    text = _TEXT.format(
        name=name,
        data=ARRAY_DATA,
        save="%thread = call ptr @PyEval_SaveThread()" if nogil else "",
        restore="call void @PyEval_RestoreThread(ptr %thread)" if nogil else "",
    )
    code = load(compile_object(text, f"functrans.{name}", processor(), optimize=False))
    method = _MethodDef(name.encode(), code.address, _METH_O, None)
    _kept.append((method, code))
    return method


#: Python refers to these structures: they live forever, also one of two that threads make at once.
_kept: list[tuple[_MethodDef, LoadedCode]] = []
