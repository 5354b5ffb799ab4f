"""Addresses of BLAS, LAPACK and special functions in SciPy, and their use from Python.

SciPy's Cython modules export C functions: those of ``scipy.linalg.cython_blas`` and ``cython_lapack`` take
addresses, as Fortran does; matrices are column-major, so a row-major C = A B is computed as C' = B'
A'. Kernels call them by symbols (`llvm.symbols`); the Python form of a kernel calls them through ctypes.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

import numpy as np

from ..passes.scalar_functions import FUNCTIONS
from ..runtime import passes
from ..runtime.config import config
from .processor import processor

PREFIX = "functrans."
C_PREFIX = "functrans.c."
#: Symbols of our own mathematical functions begin with this (see `llvm.maths.library`).
MATHS_PREFIX = f"{PREFIX}maths."
#: BLAS functions that return a number, of the routine's "type" or its "real" type.
RETURNS = {"dot": "type", "dotu": "type", "dotc": "type", "nrm2": "real", "asum": "real"}
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_MODULES = ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack")
#: Special functions: the C types of their versions for doubles in ``scipy.special.cython_special``.
SPECIAL = {
    f.scipy: f"double ({'double, ' * f.operands}int __pyx_skip_dispatch)"
    if f.part is None
    else f"void ({', '.join(['double'] * f.operands + ['double *'] * 2)})"
    for f in FUNCTIONS.values()
    if f.scipy and not f.libm
}


#: Number types for which `llvm.gemm` multiplies matrices.
OWN_PRODUCTS = ("s", "d")


def has_own_products(letter: str) -> bool:
    """Whether `llvm.gemm` replaces BLAS's ``gemm``: on processors with AVX-512."""
    return config.runs(passes.OWN_PRODUCTS) and letter in OWN_PRODUCTS and "avx512f" in processor().features


#: The functions of OpenBLAS that return and set the number of its threads, under the names that kernels use.
GET_THREADS, SET_THREADS = "functrans.get_blas_threads", "functrans.set_blas_threads"
_THREAD_FUNCTIONS = {
    GET_THREADS: ("scipy_openblas_get_num_threads", "openblas_get_num_threads"),
    SET_THREADS: ("scipy_openblas_set_num_threads", "openblas_set_num_threads"),
}


class MissingRoutineError(LookupError):
    """The loaded libraries lack a routine that a kernel calls."""


#: What follows the name of a product that BLAS computes although `llvm.gemm` could.
NOT_OWN = ".blas"


def symbol(routine: str) -> str:
    """The name under which LLVM code calls a routine (``dgemm``, ``psi``)."""
    return PREFIX + routine


@functools.cache
def address(routine: str) -> int:
    """The address of a routine.

    Raises
    ------
    MissingRoutineError
        If SciPy does not export the routine.
    """
    if routine in SPECIAL:
        return _special(routine)
    for module in _MODULES:
        if routine in extension(module).__pyx_capi__:
            return _capsule(module, routine)
    raise MissingRoutineError(f"SciPy does not export the routine '{routine}'")


@functools.cache
def thread_function(name: str) -> int:
    """The address of `GET_THREADS` or `SET_THREADS`; 0 if SciPy's BLAS has no such function."""
    with contextlib.suppress(OSError):
        library = ctypes.CDLL(extension("scipy.linalg.cython_blas").__file__)
        for function in _THREAD_FUNCTIONS[name]:
            # The search includes the libraries that it depends on.
            with contextlib.suppress(AttributeError):
                return ctypes.cast(getattr(library, function), ctypes.c_void_p).value or 0
    return 0


def can_set_threads() -> bool:
    """Whether the number of BLAS's threads can be set."""
    return all(map(thread_function, _THREAD_FUNCTIONS))


@functools.cache
def extension(name: str) -> Any:
    """An extension module of SciPy, loaded without the package that it is in if that is not imported yet.

    ``import scipy.linalg`` takes ten times as long. When the package is imported later, it gets the same module.
    """
    package = name.rpartition(".")[0]
    if package not in sys.modules:
        with contextlib.suppress(ImportError, AttributeError, OSError):
            return _loaded_alone(name, package)
    return importlib.import_module(name)


def _loaded_alone(name: str, package: str) -> Any:
    places = getattr(find_spec("scipy"), "submodule_search_locations", None) or []
    folders = [os.path.join(place, *package.split(".")[1:]) for place in places]
    spec = PathFinder.find_spec(name, folders)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    # Cython put it there. A later import of the package's must bind it in the package.
    sys.modules.pop(name, None)
    return module


def _special(routine: str) -> int:
    """The address of a special function for doubles: a version for several types has a number before its name."""
    module = "scipy.special.cython_special"
    exported = extension(module).__pyx_capi__
    for name in [routine, *[f"__pyx_fuse_{i}{routine}" for i in range(4)]]:
        if name in exported and _type_of(exported[name]) == SPECIAL[routine]:
            return _capsule(module, name)
    raise MissingRoutineError(f"SciPy does not export '{routine}' for doubles")


def _type_of(capsule: Any) -> str:
    """The C type of an exported function."""
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return (get_name(capsule) or b"").decode()


def _capsule(module: str, name: str) -> int:
    capsule = extension(module).__pyx_capi__[name]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get_pointer(capsule, _type_of(capsule).encode())


class _Complex64(ctypes.Structure):
    _fields_ = (("real", ctypes.c_float), ("imag", ctypes.c_float))


class _Complex128(ctypes.Structure):
    _fields_ = (("real", ctypes.c_double), ("imag", ctypes.c_double))


_RESULTS: dict[str, Any] = {"s": ctypes.c_float, "d": ctypes.c_double, "c": _Complex64, "z": _Complex128}


@functools.cache
def python_routine(routine: str, result: str) -> Callable[..., Any]:
    """A routine as a Python function.

    Parameters
    ----------
    routine : str
        Its full name, such as ``"dgemm"``.
    result : {'', 's', 'd', 'c', 'z'}
        The type of its result, '' for a subroutine.

    Returns
    -------
    callable
        Takes one-character strings, numbers (Python ints as int32, NumPy scalars unchanged), arrays, and pairs
        ``(array, offset)``.
    """
    function = ctypes.CFUNCTYPE(_RESULTS.get(result))(address(routine))

    def call(*args: Any) -> Any:
        arrays = [_memory(a) for a in args]
        number = function(*(ctypes.c_void_p(m.ctypes.data + skip) for m, skip in arrays))
        if result in ("c", "z"):
            return np.dtype("c8" if result == "c" else "c16").type(complex(number.real, number.imag))
        return None if number is None else np.dtype("f4" if result == "s" else "f8").type(number)

    return call


def _memory(a: Any) -> tuple[np.ndarray, int]:
    """An argument as an array, and an offset in bytes."""
    if isinstance(a, str):
        return np.frombuffer(a.encode(), np.uint8), 0
    if isinstance(a, tuple):
        return a[0], int(a[1]) * a[0].itemsize
    if isinstance(a, np.ndarray):
        return a, 0
    return np.array([a], np.int32 if isinstance(a, (int, np.int64)) else None), 0
