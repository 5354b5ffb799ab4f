"""The protocols of a backend: a way to run an outlined kernel.

`llvm.backend` and `python.backend` implement them; `run.compile` chooses a backend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from ..runtime.passes import Pass
from ..runtime.records import dataclass

if TYPE_CHECKING:
    from .loops import ir

#: Where code comes from; see `Code`.
Origin = Literal["compiled", "disk", "memory"]
#: A kernel with fixed parameters, called with one array per storage; returns the kernel's status.
Run = Callable[[tuple[np.ndarray, ...]], int]


@dataclass(frozen=True)
class Options:
    """Options for compiling kernels.

    Equal options turn equal text into equal code: they are part of the cache key.

    Parameters
    ----------
    strict : bool
        Use only the C library's scalar functions and no contraction, so that arithmetic equals NumPy's bit for bit.
    backend : str
        The name of one of `run.compile.BACKENDS`. That of the first, 'llvm', stands for the best one that works here.
    checked : bool
        Detect writes outside the kernel's memory.
    specialize_below : int
        Extents up to this one are literals in the text, so this option need not be part of equality.
    cpu : str
        The processor, as `processor.processor` takes it.
    without : frozenset of str
        The names of the optimisations of the stage ``'code'`` that are off (see `runtime.passes`); others change the
        text.
    timed : bool
        Count the time of a kernel's parts while it runs; the text shows where (see `loops.from_jaxpr.sites`).
    """

    strict: bool = False
    backend: str = "llvm"
    checked: bool = False
    specialize_below: int = field(default=16, compare=False)
    cpu: str = "native"
    without: frozenset[str] = frozenset()
    timed: bool = field(default=False, compare=False)

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes options equal, in built-in types, which C hashes."""
        return self.strict, self.backend, self.checked, self.cpu, self.without

    def runs(self, which: Pass) -> bool:
        """Whether an optimisation of the stage ``'code'`` is on."""
        return which.name not in self.without


DEFAULT_OPTIONS = Options()


class Code(Protocol):
    """The code of one kernel.

    Attributes
    ----------
    entry : callable
        The kernel as a function: one that Numba jitted, or the Python function.
    llvm : str
        Its LLVM text; empty if it has none.
    origin : {'compiled', 'disk', 'memory'}
        Whether it was compiled now, or before: by another process, or by this one.
    size : int
        The bytes of its object code; zero if it has none.
    """

    @property
    def entry(self) -> Any:
        """See the class."""
        ...

    @property
    def llvm(self) -> str:
        """See the class."""
        ...

    @property
    def origin(self) -> Origin:
        """See the class."""
        ...

    @property
    def size(self) -> int:
        """See the class."""
        ...

    def bind(self, ints: tuple[int, ...], floats: tuple[float, ...], nogil: bool) -> Run:
        """A function of the arrays alone, with the kernel's parameters fixed; with `nogil` it releases the GIL."""
        ...


class Backend(Protocol):
    """One way to compile kernels.

    Attributes
    ----------
    name : str
        How a kernel was made, for users.
    """

    @property
    def name(self) -> str:
        """See the class."""
        ...

    def takes(self, kernel: ir.Kernel) -> bool:
        """Whether it can compile kernels with the kinds of statements in this one."""
        ...

    def compile(self, kernel: ir.Kernel, options: Options, text: str = "") -> Code:
        """The code of an outlined kernel.

        Raises
        ------
        UnsupportedKernelError
            If it cannot compile this kernel after all.
        """
        ...


class UnsupportedKernelError(RuntimeError):
    """A backend cannot compile a kernel; the message says why."""
