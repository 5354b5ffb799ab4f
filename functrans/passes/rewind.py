"""The way back through writes: the versions of an array that is updated in place, from the last one to the first.

A program that overwrites elements of an array loses what they were. If it *logs* these elements before it overwrites
them, each earlier version of the array can be restored from the next one, in place::

    forward                                 back
    old = gather(x0, i)                     .
    x1 = scatter(x0, v, i)                  x0 = scatter(x1, old, i)

The log of a loop or a branch is what its body logs: rows, or results of the branch (slot `rewind` of a primitive).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.ir import Atom, Eqn, Jaxpr, Var
from ..runtime.records import NamedTuple


class Back(NamedTuple):
    """The way back over one equation.

    Attributes
    ----------
    eqns : list of Eqn
        What replaces the equation: it and equations that log.
    needs : list of Var
        The values of the forward program that the way back reads.
    back : list of Eqn
        From `needs` and the array after the equation to the array before it.
    before : Atom
        The array before it.
    """

    eqns: list[Eqn]
    needs: list[Var]
    back: list[Eqn]
    before: Atom


class Rewound(NamedTuple):
    """A jaxpr that logs what it overwrites in an array, and the way back.

    Attributes
    ----------
    eqns, needs, back
        As in `Back`, for the whole jaxpr.
    after : Var
        The array at the end, an input of the way back.
    versions : dict
        For each version of the array in the jaxpr the restored one.
    """

    eqns: list[Eqn]
    needs: list[Var]
    back: list[Eqn]
    after: Var
    versions: dict[Atom, Atom]


def rewound(jaxpr: Jaxpr, start: Atom, end: Atom) -> Rewound | None:
    """The way back from an array `end` of a jaxpr to `start`, of which it is an update; None if it is not."""
    producer = {v: e for e in jaxpr.eqns for v in e.outvars}
    after = Var(start.aval.strong())
    versions: dict[Atom, Atom] = {end: after}
    replaced: dict[Eqn, list[Eqn]] = {}
    needs: list[Var] = []
    back: list[Eqn] = []
    now = end
    while now is not start:
        eqn = producer.get(now) if isinstance(now, Var) else None
        step = None if eqn is None else _over(eqn, now, versions[now])
        if eqn is None or step is None:
            return None
        source, way = step
        replaced[eqn] = way.eqns
        needs += way.needs
        back += way.back
        versions[source] = way.before
        now = source
    eqns = [new for e in jaxpr.eqns for new in replaced.get(e, [e])]
    return Rewound(eqns, list(dict.fromkeys(needs)), back, after, versions)


def _over(eqn: Eqn, result: Atom, after: Atom) -> tuple[Atom, Back] | None:
    """The array that an equation updates to `result`, and the way back to it."""
    rule = eqn.primitive.rewind
    if rule is None:
        return None
    place = eqn.outvars.index(result)
    for i, a in enumerate(eqn.invars):
        same = isinstance(a, Var) and (a.aval.shape, a.aval.dtype) == (result.aval.shape, result.aval.dtype)
        way = rule(eqn, i, place, after) if same else None
        if way is not None:
            return a, way
    return None


def variables(atoms: Sequence[Atom]) -> list[Var]:
    """The variables among atoms, each once."""
    return list(dict.fromkeys([a for a in atoms if isinstance(a, Var)]))
