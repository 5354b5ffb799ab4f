"""A kernel of an executable, with its compiled code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...runtime.context import cached_property
from ...runtime.module_getattr import lazy_import
from ...runtime.records import dataclass
from ..backend import Run
from ..host.host_calls import HostEquation
from ..llvm.backend import NativeCode
from ..lower import LoweredKernel
from ..steps import RunnableKernel
from .compile import CompiledKernel
from .timing import Counters

emit = lazy_import("functrans.lowering.python.emit")


@dataclass(eq=False)
class KernelUnit(LoweredKernel, RunnableKernel):
    """One kernel of an executable; its `code` may be shared with other executables."""

    code: CompiledKernel

    @cached_property
    def counters(self) -> Counters | None:
        """What it counts, if it is timed."""
        return None if self.sites is None else Counters(self.kernel.name, self.sites)

    @property
    def python_source(self) -> str:
        """The readable Python form, with this program's names."""
        source: str = emit.emit_python(self.kernel)
        return source

    @property
    def llvm(self) -> str:
        """The kernel's LLVM text; empty on other routes."""
        return self.code.llvm

    @property
    def calls_python(self) -> bool:
        """Whether Python evaluates some of its equations; jitted functions of the user's are called by address."""
        return any(isinstance(entry, HostEquation) for entry in self.calls)

    @property
    def route(self) -> str:  # type: ignore[override]
        """How the kernel was made: 'llvm', 'njit' or 'python'."""
        return self.code.route

    @property
    def checked(self) -> bool:  # type: ignore[override]
        """Whether calls check guard words around the memory."""
        return self.code.checked

    def bind(self, leaves: Sequence[np.dtype | None] = ()) -> Run:
        """See `RunnableKernel.bind`; only native code takes numbers, and no names for checks with them."""
        if leaves:
            assert isinstance(self.code.code, NativeCode)
            return self.code.code.bind(self.ints, self.floats, self.large, leaves)
        return self.code.bind(self.ints, self.floats, nogil=self.large, named=self.kernel)
