"""A program from a file: another process has lowered it, and compiled its kernels.

Calls run its steps. The stages that make a program load only if a kernel fails, or someone asks for more than results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import Jaxpr
from ...runtime.context import cached_property
from ...runtime.module_getattr import lazy_import
from ...runtime.records import dataclass
from ..llvm.c.native_call import native_call
from ..llvm.objects import LoadedCode
from ..steps import RunnableKernel, Step
from .wrapper import write_wrapper

if TYPE_CHECKING:
    from ..backend import Run
    from .executable import Executable

executable = lazy_import("functrans.lowering.run.executable")


@dataclass(eq=False)
class FiledKernel(RunnableKernel):
    """A kernel of which there is machine code alone.

    Attributes
    ----------
    numbers : bytes
        The words of its parameters.
    code : LoadedCode
    """

    numbers: bytes
    code: LoadedCode

    def bind(self, leaves: Sequence[np.dtype | None] = ()) -> Run:
        """See `RunnableKernel.bind`."""
        return native_call(self.code.address, self.numbers, self.large, self.code, leaves)


class FiledExecutable:
    """What `control.call.executable` returns for a program from a file.

    Parameters
    ----------
    jaxpr : Jaxpr
        The simplified program.
    steps : sequence of Step
    lower : callable
        Lowers and compiles the program here.

    Attributes
    ----------
    call : callable
        ``call(*arrays) -> list of ndarray``, as `Executable.call`.
    """

    def __init__(self, jaxpr: Jaxpr, steps: Sequence[Step], lower: Callable[[], Executable]):
        self._lower = lower
        self.call = write_wrapper(jaxpr, steps, partial(_failed, jaxpr))

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """Run the steps."""
        return self.call(*arrays)

    def compile(self) -> FiledExecutable:
        """It is compiled."""
        return self

    @cached_property
    def form(self) -> Executable:
        """The program as it is lowered here, for those who look at its kernels."""
        return self._lower()


def _failed(*args: Any) -> list[Any]:
    outs: list[Any] = executable.failed(*args)
    return outs
