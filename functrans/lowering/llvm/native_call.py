"""Fast calls of kernels from Python: built-in functions whose machine code is a few instructions of LLVM.

``run(arrays)`` reads the address and the parameters of the kernel from an array of words, calls the kernel, and returns
its status as an int. A call through ctypes or a Numba-jitted function takes several times as long.

``match(leaves)`` says, in the time of one attribute access, whether a tuple has values of given types, dtypes and
shapes.

``new_results()`` makes the arrays that users receive, in half the time of ``np.empty`` and a read-only view.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy._core import multiarray

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

_METH_NOARGS, _METH_O = 0x0004, 0x0008
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
#: ``PyObject *(PyObject *words, PyObject *)``. The words: the addresses of two functions of NumPy, that of ndarray, the
#: number of results; for each its class, its dtype, the number of axes and the extents. One result is not in a tuple.
_RESULTS = """declare ptr @PyTuple_New(i64)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
define ptr @functrans.results(ptr %self, ptr %none) {{
  %field = getelementptr i8, ptr %self, i64 {data}
  %words = load ptr, ptr %field
  %new = load ptr, ptr %words
  %base.at = getelementptr i64, ptr %words, i64 1
  %set.base = load ptr, ptr %base.at
  %plain.at = getelementptr i64, ptr %words, i64 2
  %plain = load ptr, ptr %plain.at
  %count.at = getelementptr i64, ptr %words, i64 3
  %count = load i64, ptr %count.at
  %first = getelementptr i64, ptr %words, i64 4
  %alone = icmp eq i64 %count, 1
  br i1 %alone, label %next, label %several
several:
  %made = call ptr @PyTuple_New(i64 %count)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %fail, label %next
next:
  %i = phi i64 [ 0, %0 ], [ 0, %several ], [ %i.next, %put ]
  %tuple = phi ptr [ null, %0 ], [ %made, %several ], [ %tuple, %put ]
  %record = phi ptr [ %first, %0 ], [ %first, %several ], [ %after, %put ]
  %type = load ptr, ptr %record
  %dtype.at = getelementptr i64, ptr %record, i64 1
  %dtype = load ptr, ptr %dtype.at
  %ndim.at = getelementptr i64, ptr %record, i64 2
  %ndim = load i64, ptr %ndim.at
  %axes = trunc i64 %ndim to i32
  %extents = getelementptr i64, ptr %record, i64 3
  %after = getelementptr i64, ptr %extents, i64 %ndim
  call void @Py_IncRef(ptr %dtype)
  %memory = call ptr %new(ptr %plain, ptr %dtype, i32 %axes, ptr %extents, ptr null, ptr null, i32 0, ptr null)
  %no.memory = icmp eq ptr %memory, null
  br i1 %no.memory, label %give.up, label %view
view:
  %elements.at = getelementptr i8, ptr %memory, i64 {data}
  %elements = load ptr, ptr %elements.at
  %strides.at = getelementptr i8, ptr %memory, i64 {strides}
  %strides = load ptr, ptr %strides.at
  call void @Py_IncRef(ptr %dtype)
  %result = call ptr %new(ptr %type, ptr %dtype, i32 %axes, ptr %extents, ptr %strides,
    ptr %elements, i32 0, ptr null)
  %no.result = icmp eq ptr %result, null
  br i1 %no.result, label %free, label %own
free:
  call void @Py_DecRef(ptr %memory)
  br label %give.up
own:
  %bad = call i32 %set.base(ptr %result, ptr %memory)
  %is.good = icmp eq i32 %bad, 0
  br i1 %is.good, label %owned, label %drop
drop:
  call void @Py_DecRef(ptr %result)
  br label %give.up
owned:
  br i1 %alone, label %one, label %put
one:
  ret ptr %result
put:
  %items = getelementptr i8, ptr %tuple, i64 {items}
  %item.at = getelementptr ptr, ptr %items, i64 %i
  store ptr %result, ptr %item.at
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %count
  br i1 %more, label %next, label %return
return:
  ret ptr %tuple
give.up:
  br i1 %alone, label %fail, label %forget
forget:
  call void @Py_DecRef(ptr %tuple)
  br label %fail
fail:
  ret ptr null
}}
"""
#: The places of ``PyArray_NewFromDescr`` and ``PyArray_SetBaseObject`` in NumPy's table of functions.
_NEW, _SET_BASE = 94, 282
#: Where CPython keeps an object's type and the size of a tuple, and NumPy the parts of an array (`_fields_are_known`).
_OFFSETS = {
    "type": ARRAY_DATA - 8, "size": ARRAY_DATA, "items": TUPLE_ITEMS, "data": ARRAY_DATA,
    "ndim": ARRAY_DATA + 8, "shape": ARRAY_DATA + 16, "strides": ARRAY_DATA + 24, "dtype": ARRAY_DATA + 40,
    "flags": ARRAY_DATA + 48,
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


def result_maker(results: Sequence[tuple[type, np.dtype, tuple[int, ...]]]) -> Callable[[], Any] | None:
    """A built-in function that makes uninitialised, read-only arrays: views of plain arrays that own the memory.

    Parameters
    ----------
    results : sequence of (type, dtype, tuple of int)
        The class, dtype and shape of each. There is at least one.

    Returns
    -------
    callable or None
        It returns the array, or a tuple of several. None if the memory layout of arrays is not the known one.
    """
    if not _fields_are_known():
        return None
    table = _numpy_functions()
    words = [table[_NEW], table[_SET_BASE], id(np.ndarray), len(results)]
    for kind, dtype, shape in results:
        words += [id(kind), id(dtype), len(shape), *shape]
    references = tuple([(kind, dtype) for kind, dtype, _ in results])
    return _new_function()(ctypes.byref(_method("results")), np.array(words, np.int64), references)


@functools.cache
def _numpy_functions() -> Any:
    """NumPy's table of functions for C, whose places never change."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = multiarray._ARRAY_API
    return (ctypes.c_size_t * (_SET_BASE + 1)).from_address(pointer(capsule, None))


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
def _fields_are_known() -> bool:
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
    """One of the functions: ``run``, ``run_without_gil``, ``match`` or ``results``."""
    return undisturbed(_make_method, name)


def _make_method(name: str) -> _MethodDef:
    if name == "match":
        text = _MATCH.format(**_OFFSETS, tidy=TIDY)
    elif name == "results":
        text = _RESULTS.format(**_OFFSETS)
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
    method = _MethodDef(name.encode(), code.address, _METH_NOARGS if name == "results" else _METH_O, None)
    # Functions refer to both, without owning them, to the end of the process.
    keep_for_ever((method, code))
    return method
