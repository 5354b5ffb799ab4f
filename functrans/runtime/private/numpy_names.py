"""What functrans uses of NumPy that NumPy documents for C only: its table of functions."""

from __future__ import annotations

import ctypes
import functools
import pkgutil

import numpy as np

#: The places of ``PyArray_NewFromDescr``, ``PyArray_SetBaseObject``, ``PyDataMem_SetHandler`` and
#: ``PyDataMem_DefaultHandler`` in the table, which never change.
NEW, SET_BASE, SET_HANDLER, USUAL_HANDLER = 94, 282, 304, 306
#: The places of ``PyArray_GetNDArrayCVersion`` and ``PyArray_Type``, and the version that all of NumPy 2 has.
_VERSION, _TYPE, _KNOWN_VERSION = 0, 2, 0x2000000
_CAPSULE = "numpy._core.multiarray:_ARRAY_API"


@functools.cache
def c_functions() -> ctypes.Array[ctypes.c_size_t] | None:
    """The addresses of NumPy's functions for C, or None if the table is not where it was or is that of another ABI."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    try:
        address = get(pkgutil.resolve_name(_CAPSULE), None)
    except (ImportError, AttributeError, ValueError):
        return None
    table = (ctypes.c_size_t * (USUAL_HANDLER + 1)).from_address(address)
    if table[_TYPE] != id(np.ndarray) or ctypes.CFUNCTYPE(ctypes.c_uint)(table[_VERSION])() != _KNOWN_VERSION:
        return None
    return table
