"""The steps of a program: kernels, and the host calls and views between them, in the order of execution.

`run.wrapper` writes the function that runs them. It needs no kernel's loops, so a program from a file
(`run.filed`) runs without those, and without the stages that made them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.ir import Atom, Eqn, Var
from ..runtime.records import dataclass

if TYPE_CHECKING:
    from .backend import Run
    from .host.host_calls import HostEquation

#: The name of the buffer of counters, in a kernel's list of storages.
COUNTERS = "counters"


@dataclass(eq=False)
class HostStep:
    """One equation that NumPy evaluates."""

    eqn: Eqn


@dataclass(eq=False)
class ViewStep:
    """An equation of `reshape_p` whose result shares memory with its operand."""

    eqn: Eqn


@dataclass(eq=False)
class KernelCall:
    """How a program calls a kernel.

    Attributes
    ----------
    storages : sequence of str
        The storages whose addresses the kernel receives, in order.
    outvars : tuple of Atom
        The values that it computes.
    interface : dict of str to (Var, int)
        See `Loops.interface`.
    updates : dict of Var to Var
        See `Loops.updates`.
    scratch : dict of str to int
        See `scratch_bytes`.
    calls : tuple of HostEquation
        The equations that Python evaluates; they must stay alive as long as the kernel runs.
    large : bool
        Whether it runs long enough to make releasing the GIL worthwhile.
    may_fail : bool
        Whether it may report failure.
    """

    storages: Sequence[str]
    outvars: tuple[Atom, ...]
    interface: dict[str, tuple[Var, int]]
    updates: dict[Var, Var]
    scratch: dict[str, int]
    calls: tuple[HostEquation, ...]
    large: bool
    may_fail: bool


class RunnableKernel(KernelCall):
    """A kernel with its code.

    Attributes
    ----------
    route : str
        How it was made: 'llvm', 'njit' or 'python'.
    checked : bool
        Whether calls check guard words around the memory.
    counters : Counters or None
        What it counts, if it is timed.
    """

    route: str = "llvm"
    checked: bool = False
    counters: Any = None

    def bind(self, leaves: Sequence[np.dtype | None] = ()) -> Run:
        """A function of the arrays alone; see `NativeCode.bind`."""
        raise NotImplementedError


Step = RunnableKernel | HostStep | ViewStep


def packed_numbers(ints: tuple[int, ...], floats: tuple[float, ...]) -> bytes:
    """The words of a kernel's parameters."""
    return struct.pack(f"{len(ints)}q{len(floats)}d", *ints, *floats)
