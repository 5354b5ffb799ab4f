"""A kernel of an executable, with its compiled code."""

from __future__ import annotations

from ...runtime.context import cached_property
from ...runtime.records import dataclass
from ..host.host_calls import HostEquation
from ..lower import LoweredKernel
from ..python.emit import emit_python
from .compile import CompiledKernel
from .timing import Counters


@dataclass(eq=False)
class KernelUnit(LoweredKernel):
    """One kernel of an executable; its `code` may be shared with other executables."""

    code: CompiledKernel

    @cached_property
    def counters(self) -> Counters | None:
        """What it counts, if it is timed."""
        return None if self.sites is None else Counters(self.kernel.name, self.sites)

    @property
    def python_source(self) -> str:
        """The readable Python form, with this program's names."""
        return emit_python(self.kernel)

    @property
    def llvm(self) -> str:
        """The kernel's LLVM text; empty on other routes."""
        return self.code.llvm

    @property
    def calls_python(self) -> bool:
        """Whether Python evaluates some of its equations; jitted functions of the user's are called by address."""
        return any(isinstance(entry, HostEquation) for entry in self.calls)

    @property
    def route(self) -> str:
        """How the kernel was made: 'llvm', 'njit' or 'python'."""
        return self.code.route
