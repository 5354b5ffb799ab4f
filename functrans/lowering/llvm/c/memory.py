"""The memory of large results, which the next result takes over when an array has died.

The system gives memory of many megabytes page by page, filled with zeros, at the first access to each: that takes as
long as to compute the elements. So the memory of large arrays that kernels make does not return to the system when they
die, up to `KEPT` bytes in all. Other arrays, which NumPy makes, have no part in it.

The means is NumPy's: an array knows the functions that gave its memory (NEP 49), and it owns the memory like any other.
Their source is ``memory.c``, of which `generate` has made LLVM text. `result_maker` has NumPy call them.
"""

from __future__ import annotations

import ctypes
import functools

from ....runtime.private.numpy_names import USUAL_HANDLER, c_functions
from ...processor import processor
from ...undisturbed import undisturbed
from ..objects import compile_object, keep_for_ever
from ..store import obtain
from ..symbols import load
from .texts import text_of

#: Arrays of at least this many bytes have such memory: for smaller ones, the C library asks the system rarely.
LEAST = 1 << 20
#: The most bytes that are kept, as of scratch memory.
KEPT = 1 << 27
#: The name that NumPy's capsules of handlers have.
_CAPSULE = b"mem_handler"
_FUNCTIONS = ("allocate", "allocate_zeros", "resize", "release", "forget")


class _Allocator(ctypes.Structure):
    """``PyDataMemAllocator`` of NumPy's C API."""

    _fields_ = (("ctx", ctypes.c_void_p), *[(name, ctypes.c_void_p) for name in _FUNCTIONS[:4]])


class _NumpyHandler(ctypes.Structure):
    """``PyDataMem_Handler``."""

    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("allocator", _Allocator))


class _Store(ctypes.Structure):
    """``struct store`` of ``memory.c``."""

    _fields_ = (
        ("usual", _Allocator),
        *[(name, ctypes.c_int64) for name in ("limit", "kept", "count", "reused", "busy")],
        ("blocks", ctypes.c_void_p * 16),
    )


class MemoryHandler:
    """A handler of memory that keeps what is released.

    Parameters
    ----------
    limit : int
        The most bytes that it keeps.

    Attributes
    ----------
    capsule : object
        The handler as NumPy takes it.
    usual : int
        The address of the object that is NumPy's own handler.
    """

    def __init__(self, limit: int):
        table = c_functions()
        assert table is not None
        self.usual = ctypes.c_size_t.from_address(table[USUAL_HANDLER]).value
        usual = ctypes.cast(self.usual, ctypes.py_object).value
        pointer = _capsule_function(
            "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p
        )
        given = _NumpyHandler.from_address(pointer(usual, _CAPSULE)).allocator
        self._store = _Store(_Allocator.from_buffer_copy(given), limit)
        functions = [_addresses()[name] for name in _FUNCTIONS[:4]]
        self._handler = _NumpyHandler(b"functrans", 1, _Allocator(ctypes.addressof(self._store), *functions))
        new = _capsule_function(
            "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
        )
        self.capsule = new(ctypes.addressof(self._handler), _CAPSULE, None)
        keep_for_ever(self)  # arrays outlive whatever made them

    @property
    def kept(self) -> int:
        """The number of bytes that are kept now."""
        return self._store.kept

    @property
    def reused(self) -> int:
        """How often an array got memory that was kept."""
        return self._store.reused

    def forget(self) -> None:
        """Return what is kept to the system."""
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_addresses()["forget"])(ctypes.addressof(self._store))


@functools.cache
def results_memory() -> MemoryHandler:
    """That of the process."""
    return MemoryHandler(KEPT)


def forget() -> None:
    """Return to the system what is kept for results."""
    if results_memory.cache_info().currsize:
        results_memory().forget()


def _capsule_function(name: str, result: object, *arguments: object) -> ctypes._FuncPointer:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))  # type: ignore[arg-type]


@functools.cache
def _addresses() -> dict[str, int]:
    return undisturbed(_load)


def _load() -> dict[str, int]:
    text, cpu, entry = text_of("memory.ll", {}), processor(), "functrans.memory"
    code, _ = obtain(
        text, cpu, "memory of results", lambda: compile_object(text, entry, cpu, "code"), load, lasting=""
    )
    keep_for_ever(code)
    place = ctypes.CFUNCTYPE(ctypes.c_size_t)(code.address)()
    return dict(zip(_FUNCTIONS, (ctypes.c_size_t * len(_FUNCTIONS)).from_address(place), strict=True))
