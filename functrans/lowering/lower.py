"""From a jaxpr to kernels that a backend can compile: the whole pipeline in one function."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.config import config
from ..core.ir import Atom, Jaxpr, Var
from .backend import Options
from .host.host_calls import HostEquation, with_host_calls
from .jaxpr.partition import HostStep, partition
from .jaxpr.simplify import simplify
from .loops import ir
from .loops.aliasing import schedule
from .loops.blocked import with_blocks
from .loops.build_loops import build_loops
from .loops.check import verify
from .loops.collapse import collapse
from .loops.outline import outline
from .loops.plan import plan, scratch_bytes
from .python.runtime import NAMES

#: Kernels that access at least this many elements release the GIL.
LARGE = 20_000


@dataclass(eq=False)
class LoweredKernel:
    """A kernel ready for a backend, and the arguments with which this program calls it.

    Attributes
    ----------
    kernel : Kernel
        Outlined: its text is the same for other shapes and literals.
    ints, floats : tuples
        The numbers that outlining removed from it.
    outvars : tuple of Atom
        The values that it computes.
    interface : dict of str to (Var, int)
        See `Loops.interface`.
    scratch : dict of str to int
        See `scratch_bytes`.
    calls : tuple of HostEquation
        The equations that Python evaluates; they must stay alive as long as the kernel runs.
    large : bool
        Whether it runs long enough to make releasing the GIL worthwhile.
    """

    kernel: ir.Kernel
    ints: tuple[int, ...]
    floats: tuple[float, ...]
    outvars: tuple[Atom, ...]
    interface: dict[str, tuple[Var, int]]
    scratch: dict[str, int]
    calls: tuple[HostEquation, ...]
    large: bool


@dataclass(eq=False)
class Program:
    """A simplified jaxpr, and the kernels and host calls that compute it, in the order of execution."""

    jaxpr: Jaxpr
    steps: list[LoweredKernel | HostStep]


def lower(jaxpr: Jaxpr, options: Options) -> Program:
    """The kernels and host calls of a jaxpr, not compiled yet.

    Parameters
    ----------
    jaxpr : Jaxpr
    options : Options
    """
    # Jaxpr to jaxpr: calls inlined, dead and common equations removed, exact algebra.
    jaxpr = simplify(jaxpr, strict=options.strict)
    steps: list[LoweredKernel | HostStep] = []
    # Equations without a kernel rule are host calls; all equations between two rounds of host calls form one kernel.
    for step in partition(jaxpr):
        if isinstance(step, HostStep):
            steps.append(step)
            continue

        # Jaxpr to loops: decide which values to store, which of them share loops and memory; then write the statements.
        body = with_host_calls(step.jaxpr)
        loops = build_loops(schedule(body), strict=options.strict)
        kernel = _verified(loops.kernel)

        # Loops to loops.
        kernel = collapse(kernel)  # adjacent axes that are used together become one
        kernel = with_blocks(kernel)  # long sums are computed in blocks, for accuracy
        kernel = plan(
            _verified(kernel), options.specialize_below
        )  # scratch on the stack, or with shared memory
        scratch, work = scratch_bytes(kernel), sum(b.size for b in kernel.buffers)
        kernel.name = _identifier(jaxpr.name)
        kernel, ints = outline(_verified(kernel), options.specialize_below)  # numbers become parameters
        steps.append(
            LoweredKernel(
                _verified(kernel),
                ints,
                loops.floats,
                step.jaxpr.outvars,
                loops.interface,
                scratch,
                loops.calls,
                large=work >= LARGE or any(map(ir.is_long, ir.walk(kernel.body))),
            )
        )
    return Program(jaxpr, steps)


def _verified(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel itself, checked first if ``config.verify`` is set."""
    if config.verify:
        verify(kernel)
    return kernel


def _identifier(name: str) -> str:
    """A name for the kernel's Python form, chosen so as not to hide functions like ``log``."""
    identifier = re.sub(r"\W", "_", name)
    if not identifier.isascii():
        return "kernel"
    return identifier if identifier.isidentifier() and identifier not in NAMES else f"kernel_{identifier}"
