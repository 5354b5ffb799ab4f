"""The addresses of the functions that object code calls by name."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Iterable

from ...runtime.libraries import c_address, llvm
from ...runtime.module_getattr import lazy_import
from ..blas import (
    C_PREFIX,
    GET_THREADS,
    MATHS_PREFIX,
    NOT_OWN,
    OWN_PRODUCTS,
    PREFIX,
    SET_THREADS,
    MissingRoutineError,
    address,
    has_own_products,
    symbol,
    thread_function,
)
from .c.pool import ROLE, RUN, pool_address
from .gemm import own_gemm
from .objects import LoadedCode, ObjectCode, load_object

#: A process whose kernels call none of them does without it.
library = lazy_import("functrans.lowering.llvm.maths.library")

_GEMM = {symbol(f"{letter}gemm"): letter for letter in OWN_PRODUCTS}


def load(code: ObjectCode) -> LoadedCode:
    """Load object code, with the addresses of the functions that it calls.

    Raises
    ------
    MissingRoutineError
        If a function does not exist: calling it would jump to an invalid address.
    RuntimeError
        If the code cannot be loaded on this machine.
    """
    return load_object(code, {name: address_of(name) for name in code.symbols})


def own_products(names: Iterable[str]) -> dict[str, bool]:
    """Those of the names that are matrix products, and whether functrans's own code computes them here."""
    return {name: has_own_products(_GEMM[name]) for name in names if name in _GEMM}


@functools.cache
def address_of(name: str) -> int:
    """The address of a function; see `load`."""
    if name.startswith(MATHS_PREFIX):
        return library.own_function(name, load)
    if name in (RUN, ROLE):
        return pool_address(name)
    if name in (GET_THREADS, SET_THREADS):
        return thread_function(name)
    if name in _GEMM and has_own_products(_GEMM[name]):
        return own_gemm(_GEMM[name])
    if name.startswith(PREFIX) and not name.startswith(C_PREFIX):
        return address(name.removeprefix(PREFIX).removesuffix(NOT_OWN))
    location = _in_process(name.removeprefix(C_PREFIX))
    if location is None:
        raise MissingRoutineError(f"the C library has no function for '{name}'")
    return location


@functools.cache
def is_in_process(name: str) -> bool:
    """Whether the libraries of this process export a function."""
    return _in_process(name) is not None


def _in_process(name: str) -> int | None:
    if name.startswith("_ZGV"):
        has_libmvec()  # loads it
    if sys.platform == "win32":
        return ctypes.addressof(_USES_FLOATS) if name == "_fltused" else c_address(WINDOWS.get(name, name))
    # Until the first kernel is loaded, LLVM does not search the process itself.
    return llvm.address_of_symbol(name) or c_address(name)


#: What Windows' C library calls otherwise than C.
WINDOWS = {"hypotf": "_hypotf"}
#: Code for Windows that computes with floating-point numbers refers to a variable of this name, and reads it never.
_USES_FLOATS = ctypes.c_int(0x9875)


@functools.cache
def has_libmvec() -> bool:
    """Whether glibc's library of vector functions exists; it is loaded now."""
    with contextlib.suppress(RuntimeError):
        llvm.load_library_permanently("libmvec.so.1")
        return True
    return False
