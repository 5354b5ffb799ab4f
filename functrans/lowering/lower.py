"""From a jaxpr to kernels that a backend can compile: the whole pipeline in one file."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection

from ..core.ir import Atom, Eqn, Jaxpr, Var
from ..runtime.config import config
from ..runtime.passes import BLOCKS, COLLAPSING, ROW_BLOCKS, STRIPS, TEAMS
from ..runtime.records import dataclass
from .backend import Options
from .host.host_calls import with_host_calls
from .jaxpr.partition import KernelStep, partition
from .jaxpr.simplify import simplify
from .loops import ir, queries
from .loops.check import verified
from .loops.from_jaxpr.aliasing import Updates, schedule
from .loops.from_jaxpr.build_loops import Loops, build_loops
from .loops.from_jaxpr.sites import Sites
from .loops.passes.blocked import with_blocks
from .loops.passes.collapse import collapse
from .loops.passes.hold import hold_elements
from .loops.passes.late_reads import overwrite
from .loops.passes.outline import outline
from .loops.passes.parallel import divide
from .loops.passes.plan import plan, scratch_bytes, written_before_failure
from .loops.passes.row_blocks import block_rows
from .loops.passes.strips import strips
from .loops.passes.versions import with_versions
from .python.runtime import NAMES
from .steps import HostStep, KernelCall, ViewStep

#: Kernels that access at least this many elements release the GIL.
LARGE = 20_000


@dataclass(eq=False)
class LoweredKernel(KernelCall):
    """A kernel ready for a backend, and the arguments with which this program calls it.

    Attributes
    ----------
    kernel : Kernel
        Outlined: its text is the same for other shapes and literals.
    ints, floats : tuples
        The numbers that outlining removed from it.
    eqns : tuple of Eqn
        The equations of the simplified program that it computes.
    sites : Sites or None
        What is timed in it.
    """

    kernel: ir.Kernel
    ints: tuple[int, ...]
    floats: tuple[float, ...]
    eqns: tuple[Eqn, ...]
    sites: Sites | None


@dataclass(eq=False)
class Program:
    """A simplified jaxpr, and the kernels, host calls and views that compute it, in the order of execution."""

    jaxpr: Jaxpr
    steps: list[LoweredKernel | HostStep | ViewStep]


def lower(jaxpr: Jaxpr, options: Options, donated: Collection[int] = ()) -> Program:
    """The kernels and host calls of a jaxpr, not compiled yet.

    Parameters
    ----------
    jaxpr : Jaxpr
    options : Options
    donated : collection of int
        The inputs whose memory may become that of outputs.
    """
    # Jaxpr to jaxpr: calls inlined, dead and common equations removed, exact algebra.
    jaxpr = simplify(jaxpr, strict=options.strict)
    # Equations without a kernel rule are host calls; all equations between two rounds of host calls form one kernel.
    parts = partition(jaxpr)
    # Python may keep what a host call received; a view is another name.
    read_later = [
        *jaxpr.outvars,
        *[a for part in parts if not isinstance(part, KernelStep) for a in part.eqn.invars],
    ]
    free = {jaxpr.invars[i] for i in donated}.difference(read_later)
    outputs = [v for v in jaxpr.outvars if isinstance(v, Var)]
    steps: list[LoweredKernel | HostStep | ViewStep] = []
    # The last step comes first: an input can be overwritten where no later step reads it. If a kernel reports failure,
    # NumPy evaluates the program again, from inputs that must be intact.
    for step in reversed(parts):
        if not isinstance(step, KernelStep):
            steps.append(step)
            continue
        loops = _loops(step, options, _updates(step.jaxpr, free, outputs))
        free.difference_update(step.jaxpr.invars)
        lowered = _lowered(step, loops, options, jaxpr.name)
        if lowered.may_fail:
            free.clear()
        steps.append(lowered)
    return Program(jaxpr, steps[::-1])


def _updates(jaxpr: Jaxpr, free: Collection[Var], outputs: Collection[Var]) -> Updates:
    """For each input of a kernel that may be overwritten, the program's outputs that could have its memory."""
    candidates = {
        v: [y for y in jaxpr.outvars if y in outputs and _fits(v, y)] for v in jaxpr.invars if v in free
    }
    return {v: [y for y in ys if isinstance(y, Var)] for v, ys in candidates.items() if ys}


def _fits(v: Var, y: Atom) -> bool:
    a, b = v.aval, y.aval
    return a.ndim > 0 and (a.dtype, a.size) == (b.dtype, b.size)


def _loops(step: KernelStep, options: Options, updates: Updates) -> Loops:
    """The loops of a step; they overwrite an input only where the kernel cannot fail any more."""
    while True:
        # Decide which values to store, which of them share loops and memory; then write the statements.
        body = with_host_calls(step.jaxpr)
        plan = schedule(body, updates, reassoc=not options.strict)
        loops = build_loops(plan, strict=options.strict, timed=options.timed)
        loops.kernel = with_versions(verified(loops.kernel), loops.facts)  # tests of indices leave loops
        if loops.kernel.copies:
            loops.kernel = overwrite(verified(loops.kernel))  # stencils overwrite what they still read
        lost = written_before_failure(loops.kernel) if loops.updates else frozenset()
        damaged = {loops.interface[place][0] for place in lost if place in loops.interface}
        if damaged.isdisjoint(loops.updates):
            return loops
        updates = {v: ys for v, ys in updates.items() if not any(loops.updates.get(y) is v for y in damaged)}


def _lowered(step: KernelStep, loops: Loops, options: Options, name: str) -> LoweredKernel:
    """Loops to loops, up to the text that is the kernel's key."""
    kernel = verified(loops.kernel)
    threads = config.num_threads if config.runs(TEAMS) else 1
    # Products with tall matrices run with the loops between them, block by block of rows.
    if config.runs(ROW_BLOCKS) and not options.strict:
        block_rows(kernel, threads)
    if config.runs(COLLAPSING):
        kernel = verified(collapse(verified(kernel)))  # adjacent axes that are used together become one
    if config.runs(STRIPS):
        kernel = verified(strips(kernel))  # what is read against rows is read in strips
    if not options.strict:
        kernel = verified(hold_elements(kernel))  # loops add to an element in a variable
    # Long loops of separate iterations become chunks for several threads.
    if threads > 1:
        divide(kernel, threads, options.specialize_below)
    if config.runs(BLOCKS):
        kernel = with_blocks(verified(kernel))  # long sums are computed in blocks, for accuracy
    kernel = plan(verified(kernel), options.specialize_below)  # scratch shares memory
    scratch, work = scratch_bytes(kernel), sum(b.size for b in kernel.buffers)
    kernel.name = _identifier(name)
    kernel, ints = outline(verified(kernel), options.specialize_below)  # numbers become parameters
    return LoweredKernel(
        kernel.storages,
        step.jaxpr.outvars,
        loops.interface,
        loops.updates,
        scratch,
        loops.calls,
        large=work >= LARGE
        or any(queries.is_long(s) or queries.is_shared(s) for s in queries.walk(kernel.body)),
        may_fail=any(type(s) is ir.Fail for s in queries.walk(kernel.body)),
        kernel=verified(kernel),
        ints=ints,
        floats=loops.floats,
        eqns=step.jaxpr.eqns,
        sites=loops.sites,
    )


def _identifier(name: str) -> str:
    """A name for the kernel's Python form, chosen so as not to hide functions like ``log``."""
    identifier = re.sub(r"\W", "_", name)
    if not identifier.isascii():
        return "kernel"
    taken = identifier in NAMES or keyword.iskeyword(identifier)
    return identifier if identifier.isidentifier() and not taken else f"kernel_{identifier}"
