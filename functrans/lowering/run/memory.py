"""The memory that a call of a program takes, from what its wrapper does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ...core import Jaxpr, Var
from ...runtime.records import NamedTuple
from ..lower import LoweredKernel
from ..steps import HostStep, Step, ViewStep
from .unit import KernelUnit
from .wrapper import POOLED, last_uses


class MemoryAnalysis(NamedTuple):
    """The memory of a compiled function, in bytes. The names are those of JAX.

    Attributes
    ----------
    argument_size_in_bytes, output_size_in_bytes : int
        All arguments, all results.
    temp_size_in_bytes : int
        The most scratch memory of kernels and values between steps at a time. Of tapes, whose lengths are known only at
        run time, it has the spans.
    alias_size_in_bytes : int
        The results that take the memory of donated arguments.
    generated_code_size_in_bytes : int
        The object code of the kernels, each counted once.
    """

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    alias_size_in_bytes: int
    generated_code_size_in_bytes: int


def nbytes(atoms: Iterable[Any]) -> int:
    """The bytes of values."""
    return sum([a.aval.size * a.aval.dtype.itemsize for a in atoms])


def memory_analysis(jaxpr: Jaxpr, steps: Sequence[Step], donated: Collection[int]) -> MemoryAnalysis:
    """The memory of a simplified program.

    Parameters
    ----------
    jaxpr : Jaxpr
    steps : sequence
        As for `write_wrapper`.
    donated : collection of int
        The numbers of the inputs whose memory results may take.
    """
    kernels = [step for step in steps if isinstance(step, KernelUnit)]
    given = {jaxpr.invars[i] for i in donated}
    alias = nbytes(v for unit in kernels for v in unit.updates) + nbytes(given.intersection(jaxpr.outvars))
    codes = {id(unit.code): unit.code.code.size for unit in kernels}
    return MemoryAnalysis(
        nbytes(jaxpr.invars), nbytes(jaxpr.outvars), _temporary(jaxpr, steps), alias, sum(codes.values())
    )


def _temporary(jaxpr: Jaxpr, steps: Sequence[Step]) -> int:
    """The most that is allocated at a time, besides results."""
    failing = [i for i, step in enumerate(steps) if isinstance(step, KernelUnit) and step.may_fail]
    ends = last_uses(jaxpr, steps, max(failing, default=-1))
    owner: dict[Any, Any] = {}  # of a view's memory
    for step in steps:
        if isinstance(step, ViewStep):
            (a,), (v,) = step.eqn.invars, step.eqn.outvars
            owner[v] = owner.get(a, a)
    returned = {owner.get(a, a) for a in jaxpr.outvars}
    for v, a in owner.items():
        if a in ends:
            ends[a] = max(ends[a], ends.pop(v, ends[a]))
    now = most = 0
    for i, step in enumerate(steps):
        made: list[Any] = []
        scratch = 0
        if isinstance(step, KernelUnit):
            made = [v for v in step.outvars if v not in returned and v not in step.updates]
            scratch = sum(n for n in step.scratch.values() if n > 0)
        elif isinstance(step, HostStep):
            made = [v for v in step.eqn.outvars if v not in returned]
        now += nbytes(made)
        most = max(most, now + scratch)
        if scratch <= POOLED:  # the wrapper keeps it for the next call
            now += scratch
        now -= nbytes(v for v, end in ends.items() if end == i and v not in returned and v not in owner)
    return most


def bytes_accessed(steps: Sequence[LoweredKernel | HostStep | ViewStep]) -> int:
    """The bytes of what steps read and write: each array once for each step; views move nothing."""
    total = 0
    for step in steps:
        if isinstance(step, LoweredKernel):
            atoms = {*step.outvars, *[v for v, _ in step.interface.values()], *step.updates.values()}
        elif isinstance(step, HostStep):
            atoms = {*step.eqn.invars, *step.eqn.outvars}
        else:
            continue
        total += nbytes(a for a in atoms if type(a) is Var)
    return total
