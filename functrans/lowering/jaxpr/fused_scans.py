"""Two scans as one, where the second reads what the first stacks.

The way back through a loop (see `control.residuals.rewinding`) is a scan whose rows are arrays as they were, and the
transposed loop reads these rows. As one loop, they are one array that is updated in place, and nothing is stacked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...control.bodies.cache import derive_from_all
from ...control.loops.scan_loops import head_of
from ...control.scan import scan_p
from ...core import Atom, Eqn, Jaxpr, Var, evaluate
from ...passes.masks import split
from ...transforms.stage import stage
from ...transforms.transpose import is_large


def fuse_scans(eqns: Sequence[Eqn], outvars: Iterable[Atom]) -> list[Eqn]:
    """The equations, with scans joined to the one that alone reads large rows of theirs, in the same order."""
    eqns = list(eqns)
    outs = set(outvars)
    while (pair := _pair(eqns, outs)) is not None:
        first, second = pair
        joined = _joined(first, second)
        eqns = [joined if e is second else e for e in eqns if e is not first]
    return eqns


def _pair(eqns: Sequence[Eqn], outs: set[Atom]) -> tuple[Eqn, Eqn] | None:
    """Two scans to join, if there are any."""
    if sum(e.primitive is scan_p for e in eqns) < 2:
        return None
    producer = {v: e for e in eqns if e.primitive is scan_p for v in e.outvars}
    place = {e: n for n, e in enumerate(eqns)}
    readers: dict[Atom, list[Eqn]] = {}
    for e in eqns:
        for a in e.invars:
            if isinstance(a, Var) and a in producer:
                readers.setdefault(a, []).append(e)
    for second in eqns:
        if second.primitive is not scan_p:
            continue
        for row in _rows(second):
            first = producer.get(row) if isinstance(row, Var) else None
            if first is None or not _in_step(first, second) or row in outs or readers[row] != [second]:
                continue
            place_of_row = first.outvars.index(row)
            entry = first.params["jaxpr"].outvars[place_of_row]
            if place_of_row < first.params["num_carry"] or not is_large(entry.aval):
                continue
            inside = {a for a in _rows(second) if readers.get(a) == [second]}
            others = [e for v in first.outvars if v not in inside for e in readers.get(v, [])]
            if all(place[e] > place[second] for e in others):
                return first, second
    return None


def _rows(scan: Eqn) -> Sequence[Atom]:
    operands = head_of(scan.invars, scan.params["length"])[1]
    return operands[scan.params["num_consts"] + scan.params["num_carry"] :]


def _in_step(first: Eqn, second: Eqn) -> bool:
    """Whether two scans have the same trip count and direction, and the first may run as late as the second."""
    same = all(first.params[key] == second.params[key] for key in ("length", "reverse"))
    if not same or first.effects.on_host:
        return False
    return first.params["length"] is not None or first.invars[0] is second.invars[0]


def _joined(first: Eqn, second: Eqn) -> Eqn:
    """One scan for both; the rows between them are still among its results, which `narrow` drops."""
    bodies = first.params["jaxpr"], second.params["jaxpr"]
    sizes = [(e.params["num_consts"], e.params["num_carry"]) for e in (first, second)]
    head, operands = head_of(first.invars, first.params["length"])
    consts, carry, rows = split(operands, *sizes[0])
    consts2, carry2, rows2 = split(head_of(second.invars, second.params["length"])[1], *sizes[1])
    stacked: Sequence[Atom] = first.outvars[sizes[0][1] :]
    inside = [stacked.index(a) if a in stacked else -1 for a in rows2]
    own = [a for a, i in zip(rows2, inside) if i < 0]
    counts = [len(consts), len(consts2), len(carry), len(carry2), len(rows)]

    def step(*values: Any) -> list[Any]:
        consts, consts2, carry, carry2, rows, own = split(values, *counts)
        now, stacked = split(evaluate(bodies[0], [*consts, *carry, *rows]), len(carry))
        rest = iter(own)
        here = [next(rest) if i < 0 else stacked[i] for i in inside]
        now2, stacked2 = split(evaluate(bodies[1], [*consts2, *carry2, *here]), len(carry2))
        return [*now, *now2, *stacked, *stacked2]

    groups = [split(b.in_avals, *s) for b, s in zip(bodies, sizes)]
    fresh = [a for a, i in zip(groups[1][2], inside) if i < 0]
    avals = [*groups[0][0], *groups[1][0], *groups[0][1], *groups[1][1], *groups[0][2], *fresh]

    def build() -> Jaxpr:
        return stage(step, [a.strong() for a in avals], bodies[1].name, bodies[1].stats)

    body = derive_from_all(bodies, ("joined", *counts, *inside), build)
    outs = [*split(first.outvars, sizes[0][1]), *split(second.outvars, sizes[1][1])]
    params = {"jaxpr": body, "num_consts": counts[0] + counts[1], "num_carry": counts[2] + counts[3]}
    return second.replace(
        invars=[*head, *consts, *consts2, *carry, *carry2, *rows, *own],
        outvars=[*outs[0], *outs[2], *outs[1], *outs[3]],
        params=second.params | params,
    )
