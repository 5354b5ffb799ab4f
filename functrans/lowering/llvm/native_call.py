"""Fast calls of kernels from Python: built-in functions whose machine code is a few instructions of LLVM.

``run(arrays)`` reads the address and the parameters of the kernel from an array of words, calls the kernel, and returns
its status as an int. A call through ctypes or a Numba-jitted function takes several times as long.

``match(leaves)`` says, in the time of one attribute access, whether a tuple has values of given types, dtypes and
shapes.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...arrays.array import Array, wrap
from ..processor import processor
from ..undisturbed import undisturbed
from .objects import compile_object, keep_for_ever
from .store import obtain
from .symbols import load

#: Where CPython keeps the items of a tuple and NumPy the data pointer of an array (`layout_is_known` checks it).
TUPLE_ITEMS = tuple.__basicsize__
ARRAY_DATA = object.__basicsize__

#: The classes of arrays that `matcher` treats as equal.
ARRAYS = (np.ndarray, Array)

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
#: ``PyObject *(PyObject *words, PyObject *leaves)``. The words: the number of leaves; for each leaf two types (either
#: is accepted) and the number of axes, -1 for a leaf that is not an array; for an array also its dtype and its extents.
_MATCH = """declare ptr @PyBool_FromLong(i64)
define ptr @functrans.match(ptr %self, ptr %tuple) {{
  %field = getelementptr i8, ptr %self, i64 {data}
  %words = load ptr, ptr %field
  %count = load i64, ptr %words
  %size.at = getelementptr i8, ptr %tuple, i64 {size}
  %size = load i64, ptr %size.at
  %items = getelementptr i8, ptr %tuple, i64 {items}
  %first = getelementptr i64, ptr %words, i64 1
  %fits = icmp eq i64 %size, %count
  br i1 %fits, label %next, label %no
next:
  %i = phi i64 [ 0, %0 ], [ %i.scalar, %scalar ], [ %i.array, %shaped ]
  %record = phi ptr [ %first, %0 ], [ %after.scalar, %scalar ], [ %after.array, %shaped ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %leaf, label %yes
leaf:
  %item.at = getelementptr ptr, ptr %items, i64 %i
  %item = load ptr, ptr %item.at
  %type.at = getelementptr i8, ptr %item, i64 {type}
  %type = load ptr, ptr %type.at
  %one = load ptr, ptr %record
  %other.at = getelementptr i64, ptr %record, i64 1
  %other = load ptr, ptr %other.at
  %is.one = icmp eq ptr %type, %one
  %is.other = icmp eq ptr %type, %other
  %is = or i1 %is.one, %is.other
  br i1 %is, label %typed, label %no
typed:
  %axes.at = getelementptr i64, ptr %record, i64 2
  %axes = load i64, ptr %axes.at
  %no.array = icmp slt i64 %axes, 0
  br i1 %no.array, label %scalar, label %array
scalar:
  %i.scalar = add i64 %i, 1
  %after.scalar = getelementptr i64, ptr %record, i64 3
  br label %next
array:
  %flags.at = getelementptr i8, ptr %item, i64 {flags}
  %flags = load i32, ptr %flags.at
  %tidy = and i32 %flags, {tidy}
  %is.tidy = icmp eq i32 %tidy, {tidy}
  %ndim.at = getelementptr i8, ptr %item, i64 {ndim}
  %ndim = load i32, ptr %ndim.at
  %ndim.wide = sext i32 %ndim to i64
  %same.ndim = icmp eq i64 %ndim.wide, %axes
  %dtype.at = getelementptr i8, ptr %item, i64 {dtype}
  %dtype = load ptr, ptr %dtype.at
  %wanted.at = getelementptr i64, ptr %record, i64 3
  %wanted = load ptr, ptr %wanted.at
  %same.dtype = icmp eq ptr %dtype, %wanted
  %same = and i1 %same.ndim, %same.dtype
  %good = and i1 %same, %is.tidy
  br i1 %good, label %shape, label %no
shape:
  %shape.at = getelementptr i8, ptr %item, i64 {shape}
  %extents = load ptr, ptr %shape.at
  %extents.wanted = getelementptr i64, ptr %record, i64 4
  br label %axis
axis:
  %d = phi i64 [ 0, %shape ], [ %d.next, %extent ]
  %inside = icmp ult i64 %d, %axes
  br i1 %inside, label %extent, label %shaped
extent:
  %n.at = getelementptr i64, ptr %extents, i64 %d
  %n = load i64, ptr %n.at
  %m.at = getelementptr i64, ptr %extents.wanted, i64 %d
  %m = load i64, ptr %m.at
  %d.next = add i64 %d, 1
  %equal = icmp eq i64 %n, %m
  br i1 %equal, label %axis, label %no
shaped:
  %i.array = add i64 %i, 1
  %after.array = getelementptr i64, ptr %extents.wanted, i64 %axes
  br label %next
yes:
  %true = call ptr @PyBool_FromLong(i64 1)
  ret ptr %true
no:
  %false = call ptr @PyBool_FromLong(i64 0)
  ret ptr %false
}}
"""
#: Where CPython keeps an object's type and the size of a tuple, and NumPy the parts of an array (`_fields_are_known`).
_OFFSETS = {
    "type": ARRAY_DATA - 8, "size": ARRAY_DATA, "items": TUPLE_ITEMS, "data": ARRAY_DATA,
    "ndim": ARRAY_DATA + 8, "shape": ARRAY_DATA + 16, "dtype": ARRAY_DATA + 40, "flags": ARRAY_DATA + 48,
}  # fmt: skip
#: NumPy's flags of arrays that are C-contiguous and aligned, as ``x.flags.num`` has them.
TIDY = 0x1 | 0x100


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
    return _new_function()(ctypes.byref(_method("run_without_gil" if nogil else "run")), words, keep)


def matcher(leaves: Sequence[Any]) -> Callable[[tuple[Any, ...]], bool] | None:
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
    if not _fields_are_known():
        return None
    words: list[int] = [len(leaves)]
    for x in leaves:
        if type(x) in ARRAYS:
            words += [*map(id, ARRAYS), x.ndim, id(x.dtype), *x.shape]
        else:
            words += [id(type(x)), id(type(x)), -1]
    references = tuple([getattr(x, "dtype", None) for x in leaves]), tuple(map(type, leaves))
    return _new_function()(ctypes.byref(_method("match")), np.array(words, np.int64), references)


@functools.cache
def _fields_are_known() -> bool:
    """Whether arrays store their class, axes, extents, dtype and flags where `matcher` expects them."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    for x in (np.zeros((5, 7), np.float32), wrap(np.zeros(3)), np.ones((6, 4, 2), np.int64).T):
        pointers = {k: ctypes.c_size_t.from_address(id(x) + _OFFSETS[k]).value for k in ("type", "dtype")}
        ndim, flags = [ctypes.c_int.from_address(id(x) + _OFFSETS[k]).value for k in ("ndim", "flags")]
        if pointers != {"type": id(type(x)), "dtype": id(x.dtype)} or ndim != x.ndim:
            return False
        place = ctypes.c_size_t.from_address(id(x) + _OFFSETS["shape"]).value
        if tuple((ctypes.c_ssize_t * ndim).from_address(place)) != x.shape:
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
    """One of the functions: ``run``, ``run_without_gil`` or ``match``."""
    return undisturbed(_make_method, name)


def _make_method(name: str) -> _MethodDef:
    if name == "match":
        text = _MATCH.format(**_OFFSETS, tidy=TIDY)
    else:
        nogil = name == "run_without_gil"
        text = _TEXT.format(
            name=name,
            data=ARRAY_DATA,
            save="%thread = call ptr @PyEval_SaveThread()" if nogil else "",
            restore="call void @PyEval_RestoreThread(ptr %thread)" if nogil else "",
        )
    cpu, entry = processor(), f"functrans.{name}"
    code, _ = obtain(text, cpu, name, lambda: compile_object(text, entry, cpu, optimize=False), load)
    method = _MethodDef(name.encode(), code.address, _METH_O, None)
    # Functions refer to both, without owning them, to the end of the process.
    keep_for_ever((method, code))
    return method
