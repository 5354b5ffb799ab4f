"""What a backend is: one way from an outlined kernel to something that runs.

`llvm.backend` and `python.backend` implement the protocols; `run.compile` chooses among the backends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .loops import ir

#: A kernel with fixed parameters, called with one array for each of its storages; returns the kernel's status.
Run = Callable[[tuple[np.ndarray, ...]], int]


@dataclass(frozen=True)
class Options:
    """How kernels are made.

    Equal options make equal code of a kernel's text: they are part of a cache's key.

    Parameters
    ----------
    strict : bool
        The C library's scalar functions and no contraction: arithmetic equals NumPy's bit for bit.
    backend : {'llvm', 'python'}
        'python' forces the Python form.
    checked : bool
        Look for writes beside the memory that the kernel is given.
    specialize_below : int
        Extents up to this one are literals of the text; so it does not matter to equality.
    """

    strict: bool = False
    backend: str = "llvm"
    checked: bool = False
    specialize_below: int = field(default=16, compare=False)


DEFAULT_OPTIONS = Options()


class Code(Protocol):
    """The code of one kernel.

    Attributes
    ----------
    entry : callable
        What keeps the code alive: a Numba dispatcher, or the Python function.
    llvm : str
        Its LLVM text; empty where there is none.
    """

    @property
    def entry(self) -> Any:
        """See the class."""
        ...

    @property
    def llvm(self) -> str:
        """See the class."""
        ...

    def bind(self, ints: tuple[int, ...], floats: tuple[float, ...], nogil: bool) -> Run:
        """A function of the arrays alone, with the kernel's parameters fixed; `nogil` releases the GIL in a call."""
        ...


class Backend(Protocol):
    """One way to compile kernels.

    Attributes
    ----------
    name : str
        For users: how a kernel was made.
    """

    @property
    def name(self) -> str:
        """See the class."""
        ...

    def takes(self, kernel: ir.Kernel) -> bool:
        """Whether it can compile kernels of statements such as this one has."""
        ...

    def compile(self, kernel: ir.Kernel, options: Options) -> Code:
        """The code of an outlined kernel.

        Raises
        ------
        UnsupportedKernelError
            If it cannot be compiled here all the same.
        """
        ...


class UnsupportedKernelError(RuntimeError):
    """A backend cannot compile a kernel; the message says why."""
