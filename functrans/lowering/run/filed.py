"""A program from a file: another process has lowered it, and compiled its kernels.

Calls run its steps. The stages that make a program load only if a kernel fails, or someone asks for more than results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import Jaxpr
from ...frontend.pytree import PyTreeDef
from ...runtime.context import cached_property
from ...runtime.module_getattr import lazy_import
from ...runtime.records import dataclass
from ..llvm.c.native_call import matcher, native_call
from ..llvm.objects import LoadedCode
from ..steps import RunnableKernel, Step
from .wrapper import Public, write_wrapper

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


class _LoweredHere:
    """A program from a file as it is lowered here; apart from its executable, whose wrapper would keep itself alive."""

    def __init__(self, lower: Callable[[], Executable]):
        self._lower = lower

    @cached_property
    def executable(self) -> Executable:
        """Lowered when it is asked for."""
        return self._lower()

    def failed(self, status: int, arrays: tuple[Any, ...], *known: Any) -> list[Any]:
        """The result of a call whose kernel reported failure."""
        return _failed(self.executable.simplified, status, arrays, {})


class FiledExecutable:
    """What `control.call.executable` returns for a program from a file.

    Parameters
    ----------
    jaxpr : Jaxpr
        The simplified program.
    steps : sequence of Step
    lower : callable
        Lowers and compiles the program here.
    has_equations : bool
        Whether the simplified program has its equations. If not, one call defines all its variables, and a program
        that fails lowers the program here: its equations know the user's lines.

    Attributes
    ----------
    call : callable
        ``call(*arrays) -> list of ndarray``, as `Executable.call`.
    """

    #: There are no donated inputs.
    overwrites_last = True

    def __init__(
        self,
        jaxpr: Jaxpr,
        steps: Sequence[Step],
        lower: Callable[[], Executable],
        has_equations: bool = True,
    ):
        self._form = _LoweredHere(lower)
        self._jaxpr = jaxpr
        self._steps = steps
        self._on_failure: Callable[..., Any] = partial(_failed, jaxpr) if has_equations else self._form.failed
        self.call = write_wrapper(jaxpr, steps, self._on_failure)

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """Run the steps."""
        return self.call(*arrays)

    def compile(self) -> FiledExecutable:
        """It is compiled."""
        return self

    def fast_call(
        self, leaves: Sequence[Any], out_tree: PyTreeDef, weak: Sequence[bool]
    ) -> tuple[Callable[[tuple[Any, ...]], bool], Callable[..., Any]] | None:
        """See `Executable.fast_call`."""
        match = matcher(leaves)
        if match is None:
            return None
        public = Public(tuple(map(type, leaves)), out_tree, tuple(weak))
        return match, write_wrapper(self._jaxpr, self._steps, self._on_failure, public=public)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.form, name)

    @property
    def form(self) -> Executable:
        """The program as it is lowered here, for those who look at its kernels."""
        return self._form.executable


def _failed(*args: Any) -> list[Any]:
    outs: list[Any] = executable.failed(*args)
    return outs
