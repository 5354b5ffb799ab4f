"""Libraries that load on first use, so that ``import functrans`` does not wait for them, and those of C functions."""

from __future__ import annotations

import ctypes
import functools
import sys
from importlib.util import find_spec
from typing import Any

from .module_getattr import lazy_import

ducc0: Any = lazy_import("ducc0")
jax: Any = lazy_import("jax")
llvm: Any = lazy_import("llvmlite.binding")
llvmlite: Any = lazy_import("llvmlite")
ml_dtypes: Any = lazy_import("ml_dtypes")
numba: Any = lazy_import("numba")
scipy: Any = lazy_import("scipy")
subprocess: Any = lazy_import("subprocess")


class SpecialUfunc:
    """A ufunc of ``scipy.special``, which loads when more than its name is needed.

    Parameters
    ----------
    name : str

    Attributes
    ----------
    floats : bool
        Whether it computes with float64 and float32.
    """

    def __init__(self, name: str):
        self.__name__ = name
        self.floats = name != "wofz"

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(scipy.special, self.__name__), name)


class _SpecialUfuncs:
    """The ufuncs of ``scipy.special``."""

    def __getattr__(self, name: str) -> Any:
        return SpecialUfunc(name)


special_ufuncs = _SpecialUfuncs()

#: On Windows a process has no common table of functions. These have C's, Python's, the system's and the compiler's. C's
#: stand first: an older C library that some library loaded has a heap of its own.
_ON_WINDOWS = ("ucrtbase", "kernel32", "ntdll")


@functools.cache
def has_ducc0() -> bool:
    """Whether ducc0, which the extra ``fft`` installs, is there."""
    return find_spec("ducc0") is not None


def package_of(kind: type) -> str:
    """The package of a class; '' if it is not known: of the functions that Cython 3.1 compiles, it is a descriptor."""
    module = kind.__module__
    return module.partition(".")[0] if isinstance(module, str) else ""


@functools.cache
def c_libraries() -> tuple[ctypes.CDLL, ...]:
    """Where the functions of C and of Python are, in the order in which to look."""
    if sys.platform != "win32":
        return (ctypes.CDLL(None),)
    c, *others = [ctypes.CDLL(name) for name in _ON_WINDOWS]
    return c, ctypes.pythonapi, *others


def c_address(name: str) -> int | None:
    """The address of a function; None if no library has it."""
    for library in c_libraries():
        found = getattr(library, name, None)
        if found is not None:
            return ctypes.cast(found, ctypes.c_void_p).value
    return None
