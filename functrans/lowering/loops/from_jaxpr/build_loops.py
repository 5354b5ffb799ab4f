"""Write fused roots as loop IR: the tree of loops, with every value evaluated where it is read."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from itertools import count

from ....core.ir import Jaxpr, Var, variable_name
from ....core.tape import TapeAval
from ....passes.indices.int_ranges import Facts
from ....runtime.records import dataclass
from ...host.host_calls import HostEquation, with_host_calls
from ...jaxpr.partition import with_distinct_outputs
from .. import ir
from ..arithmetic import IndexFacts
from ..handles import Place, TapeMemory, memory_key
from .aliasing import Schedule, home, schedule
from .elements import NestBuilder
from .pair_nests import PairNests
from .sites import Sites


@dataclass
class Loops:
    """The loops of a jaxpr.

    Attributes
    ----------
    kernel : Kernel
        Neither planned nor outlined yet; float literals are already parameters.
    floats : tuple of float
        The values of these parameters.
    interface : dict of str to (Var, int)
        The inputs and outputs, by the storage that holds them; of a tape, the spans are number 0, then the pools.
    updates : dict of Var to Var
        Outputs that are written into the memory of an input, with that input.
    calls : tuple of HostEquation
        The equations that Python evaluates; they must stay alive as long as the kernel runs.
    facts : IndexFacts
        What is known of the kernel's indices.
    sites : Sites or None
        What is timed in it.
    """

    kernel: ir.Kernel
    floats: tuple[float, ...]
    interface: dict[str, tuple[Var, int]]
    updates: dict[Var, Var]
    calls: tuple[HostEquation, ...]
    facts: IndexFacts
    sites: Sites | None


def build_loops(plan: Schedule, *, strict: bool = False, timed: bool = False) -> Loops:
    """Write the loops of a jaxpr as scheduled.

    Parameters
    ----------
    plan : Schedule
    strict : bool
        Whether sums must not be reordered.
    timed : bool
        Whether the kernel counts the time of its parts (see `sites`).
    """
    jaxpr = plan.roots.jaxpr
    builder = LoopBuilder(jaxpr.name, not strict, Sites() if timed else None)
    interface: dict[str, tuple[Var, int]] = {}
    places: dict[Var, Place] = {}
    names = _names(jaxpr)
    updates = {home(plan.owner, v): v for v in jaxpr.invars if v in plan.owner}
    for v, role in (
        *((v, "update" if v in updates.values() else "in") for v in (*jaxpr.constvars, *jaxpr.invars)),
        *((v, "out") for v in jaxpr.outvars),
    ):
        assert isinstance(v, Var)
        storage = names[updates[v]] if v in updates else None
        decl = places[v] = builder.buffer(names[v], v.aval.dtype, v.aval.shape, role, storage)
        interface[decl.place] = v, 0
        if isinstance(v.aval, TapeAval):
            pools = [builder.buffer(f"{names[v]}_pool", ir.INT64, (3,), role) for _ in range(v.aval.levels)]
            interface.update((pool.place, (v, level)) for level, pool in enumerate(pools, 1))
            places[v] = TapeMemory(decl, tuple(pools), v.aval)
    PairNests(plan, builder, places, names).write()
    kernel = builder.finish()
    kernel.floats = len(builder.literals.values)
    floats, calls = tuple(builder.literals.values), tuple(builder.calls)
    return Loops(kernel, floats, interface, updates, calls, builder.facts, builder.sites)


class LoopBuilder(NestBuilder):
    """A builder that also writes whole jaxprs."""

    def inline(
        self, jaxpr: Jaxpr, operands: Sequence[Place], results: Sequence[Place], spare: Sequence[int] = ()
    ) -> None:
        """The statements of a jaxpr; a result may share the memory of an operand (see `core.kernel`)."""
        assert not jaxpr.constvars, (
            "captured values must be operands, so that nothing else writes their memory"
        )
        places = dict(zip(jaxpr.invars, operands, strict=True))
        # An output that is an input, and has its memory, is there already.
        changed = [
            (v, m)
            for v, m in zip(jaxpr.outvars, results, strict=True)
            if not (isinstance(v, Var) and v in places and memory_key(places[v]) == memory_key(m))
        ]
        body = with_distinct_outputs(with_host_calls(jaxpr.replace(outvars=[v for v, _ in changed])))
        inputs = {memory_key(m): v for v, m in places.items()}
        updates = {}
        for v, (_, m) in zip(body.outvars, changed, strict=True):
            assert isinstance(v, Var)
            places[v] = m
            if memory_key(m) in inputs:
                updates[inputs[memory_key(m)]] = v
        overwritten = [jaxpr.invars[i] for i in spare if jaxpr.invars[i] not in updates]
        changes = {v: (new,) for v, new in updates.items()}
        plan = schedule(body, changes, overwritten, reassoc=self.reassoc)
        facts = [Facts(self.range_of(m)) for m in operands]
        PairNests(plan, self, places, _names(body), updates, facts).write()

    def overwritable(self, jaxpr: Jaxpr, first: int, places: Sequence[int]) -> list[bool]:
        """Whether each of the first results may overwrite an operand: `places` has their numbers, from `first` on.

        Not if the operand's memory serves another value better: it would be copied for that one.
        """
        carry = [jaxpr.invars[first + p] for p in places]
        changed = [i for i, (old, new) in enumerate(zip(carry, jaxpr.outvars)) if old is not new]
        outvars = [v for i, v in enumerate(jaxpr.outvars) if i in changed or i >= len(places)]
        body = with_distinct_outputs(with_host_calls(jaxpr.replace(outvars=outvars)))
        updates = {carry[i]: (new,) for i, new in zip(changed, body.outvars) if isinstance(new, Var)}
        owner = schedule(body, updates, updates, reassoc=self.reassoc).owner
        return [old not in updates or home(owner, old) in updates[old] for old in carry]


def _names(jaxpr: Jaxpr) -> dict[Var, str]:
    """The variable names of the printed jaxpr, as identifiers."""
    names: dict[Var, str] = {}
    numbers = count()
    for v in (*jaxpr.constvars, *jaxpr.invars, *[v for e in jaxpr.eqns for v in e.outvars]):
        name = variable_name(next(numbers))
        names[v] = name + "_" if keyword.iskeyword(name) else name
    return names
