"""Reverse mode through loops that overwrite arrays: the arrays of the past are restored, not stored.

If the derivative of an iteration reads a carried array as a whole (a product of a matrix and the carry, say), the array
would be a residual of each iteration. If an iteration overwrites only some elements, it is cheaper to store these: the
way back (see `functrans.passes.rewind`) starts with the array as the loop leaves it, and undoes one iteration after the
other, in the order in which reverse mode needs them::

    forward    y0 --write--> y1 --write--> y2         log: the elements that were overwritten, one row per iteration
    backward   y0 <--undo--- y1 <--undo--- y2         a scan in the other direction, whose rows are the arrays

The loop of the transpose reads these rows one by one, so the compiler makes one loop of both, which updates one array.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ...core.aval import Aval
from ...core.ir import Atom, Eqn, Jaxpr, Var
from ...core.primitive import Primitive
from ...core.tape import TapeAval
from ...passes.check import verified
from ...passes.costs import is_arithmetic
from ...passes.masks import split
from ...passes.rewind import Back, Rewound, rewound, variables
from ...passes.toolkit import backward_slice, new_equation, variables_read
from ...runtime.config import config
from ...runtime.passes import REWINDING
from ...runtime.records import NamedTuple
from ...transforms.transpose import is_large
from ..bodies.building import JaxprBuilder


class Past(NamedTuple):
    """The way back through the iterations of a loop.

    Attributes
    ----------
    carries : tuple of int
        The numbers of the carried arrays that are restored.
    after, before : list of Var
        These arrays after and before an iteration.
    back : list of Eqn
        Computes them, one from the other, and from `needs`.
    needs : list of Var
        The values of the primal half that `back` reads.
    versions : dict
        For each residual that is not stored the restored value.
    """

    carries: tuple[int, ...]
    after: list[Var]
    before: list[Atom]
    back: list[Eqn]
    needs: list[Var]
    versions: dict[Atom, Atom]


def with_log(
    primal: Jaxpr, values: Sequence[Atom], num_consts: int, num_carry: int
) -> tuple[Jaxpr, Past | None]:
    """The primal half of a loop's body, which logs what it overwrites if that is less than the residuals it replaces.

    `values` are the residuals.
    """
    if not config.runs(REWINDING):
        return primal, None
    residuals = set(values)
    free = {*primal.invars[:num_consts], *primal.invars[num_consts + num_carry :], *residuals}
    past = Past((), [], [], [], [], {})
    for c in range(num_carry):
        start, end = primal.invars[num_consts + c], primal.outvars[c]
        way = rewound(primal, start, end) if is_large(start.aval) and start is not end else None
        if way is None:
            continue
        way = _with_less(way, primal, free)
        versions = {v: w for v, w in way.versions.items() if v in residuals}
        logged = [v for v in way.needs if v not in free]
        if sum(map(_bytes, logged)) >= sum(_bytes(v) for v in versions):
            continue
        if not set(primal.constvars).isdisjoint(way.needs):
            continue
        primal = primal.replace(eqns=way.eqns)
        past = Past(
            (*past.carries, c),
            [*past.after, way.after],
            [*past.before, way.versions[start]],
            [*past.back, *[e for e in way.back if e not in past.back]],  # both compute their indices again
            [*past.needs, *[v for v in way.needs if v not in past.needs]],
            past.versions | versions,
        )
    return primal, past if past.carries else None


def _with_less(way: Rewound, jaxpr: Jaxpr, free: Collection[Atom]) -> Rewound:
    """The way back with fewer needs: cheap arithmetic on `free` values, such as that of indices, runs again."""
    needs: list[Var] = []
    again: list[Eqn] = []
    for v in way.needs:
        eqns: list[Eqn] = backward_slice(jaxpr.eqns, [v], free)
        leaves = [a for a in variables_read(eqns, [v]) if not any(a in e.outvars for e in eqns)]
        if all(is_arithmetic(e) and e.effects.movable for e in eqns) and set(leaves) <= set(free):
            again += [e for e in eqns if e not in again]
            needs += leaves
        else:
            needs.append(v)
    return way._replace(needs=variables(needs), back=[*again, *way.back])


def _bytes(a: Atom) -> int:
    if isinstance(a.aval, TapeAval):  # of unknown length: nothing, compared with a large array
        return 0
    return a.aval.size * a.aval.dtype.itemsize


# --- the way back over loops and branches -------------------------------------------------------------------


class _Level:
    """Where the way back over a loop or a branch finds, outside of it, what its body needs."""

    def __init__(self, eqn: Eqn, groups: Sequence[tuple[str, Sequence[Atom], Sequence[Atom]]]):
        self.eqn = eqn
        self.outside = {v: (name, a) for name, inside, atoms in groups for v, a in zip(inside, atoms)}

    def of(self, name: str, needs: Sequence[Var]) -> tuple[list[Var], list[Atom]]:
        """The needs that are operands of one group, inside and outside."""
        own = [v for v in needs if v in self.outside and self.outside[v][0] == name]
        return own, [self.outside[v][1] for v in own]

    def logged(self, needs: Sequence[Var]) -> list[Var]:
        """The needs that the body has to log."""
        return [v for v in needs if v not in self.outside]


def over_scan(eqn: Eqn, operand: int, result: int, after: Atom) -> Back | None:
    """The way back over a scan: the same number of iterations in the other direction."""
    params, body = eqn.params, eqn.params["jaxpr"]
    head, operands = split(eqn.invars, params["length"] is None)
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    if result >= num_carry or operand != len(head) + num_consts + result:
        return None
    inside, outside = split(body.invars, num_consts, num_carry), split(operands, num_consts, num_carry)
    groups = list(zip(("consts", "carry", "rows"), inside, outside))
    stacked = ("rows", body.outvars[num_carry:], eqn.outvars[num_carry:])
    level = _Level(eqn, [stacked, groups[0], groups[2]])
    params = {"length": params["length"], "reverse": not params["reverse"], "unroll": 1}
    logs = len(eqn.outvars)
    return _over_loop(level, "jaxpr", body, result, after, (eqn.primitive, head, params), num_consts, logs)


def over_while(scan_p: Primitive, eqn: Eqn, operand: int, result: int, after: Atom) -> Back | None:
    """The way back over a while loop: a scan of as many iterations."""
    first, num_consts = eqn.params["num_cond"], eqn.params["num_consts"]
    num_carry = len(eqn.invars) - first - num_consts
    body = eqn.params["body_jaxpr"]
    if result >= num_carry or operand != first + num_consts + result:
        return None
    consts = eqn.invars[first : first + num_consts]
    taped = ("rows", body.outvars[num_carry:], eqn.outvars[num_carry + 1 :])
    level = _Level(eqn, [taped, ("consts", body.invars[:num_consts], consts)])
    params = {"length": None, "reverse": True, "unroll": 1}
    scan = scan_p, [eqn.outvars[num_carry]], params
    return _over_loop(level, "body_jaxpr", body, result, after, scan, num_consts, len(eqn.outvars))


def _over_loop(
    level: _Level,
    name: str,
    body: Jaxpr,
    carry: int,
    after: Atom,
    scan: tuple[Primitive, list[Atom], dict[str, Any]],
    num_consts: int,
    count: int,
) -> Back | None:
    """The way back over a loop, whose body is its parameter `name`, by a scan of this count and these parameters."""
    way = rewound(body, body.invars[num_consts + carry], body.outvars[carry])
    if way is None:
        return None
    way = _with_less(way, body, level.outside)
    eqn, logged = level.eqn, level.logged(way.needs)
    longer = body.replace(eqns=way.eqns, outvars=[*body.outvars, *logged])
    loop = new_equation(eqn.primitive, eqn.invars, eqn.params | {name: verified(longer, "log")}, eqn.source)
    stacked = loop.outvars[count:]
    loop = loop.replace(outvars=[*eqn.outvars, *stacked])
    consts, of_consts = level.of("consts", way.needs)
    rows, of_rows = level.of("rows", way.needs)
    undo = body.replace(
        invars=[*consts, way.after, *rows, *logged],
        eqns=way.back,
        outvars=[way.versions[body.invars[num_consts + carry]]],
        name=f"rewind({body.name})",
    )
    prim, head, params = scan
    params = params | {"jaxpr": verified(undo, "rewind"), "num_consts": len(consts), "num_carry": 1}
    operands = [*head, *of_consts, after, *of_rows, *stacked]
    back = new_equation(prim, operands, params, eqn.source)
    return Back([loop], variables([*head, *of_consts, *of_rows, *stacked]), [back], back.outvars[0])


def over_cond(eqn: Eqn, operand: int, result: int, after: Atom) -> Back | None:
    """The way back over a branch: that of the branch that ran. Logs of equal type share their place."""
    branches = eqn.params["branches"]
    ways = [rewound(b, b.invars[operand - 1], b.outvars[result]) for b in branches]
    if any(way is None for way in ways):
        return None
    slots: list[Aval] = []
    longer, undone = [], []
    found = [way for way in ways if way is not None]
    places = [_places(_Level(eqn, [("all", b.invars, eqn.invars[1:])]).logged(w.needs), slots)
              for b, w in zip(branches, found)]  # fmt: skip
    for branch, way, own in zip(branches, found, places):
        new = JaxprBuilder(branch.replace(eqns=way.eqns))
        logged = [own[n] if n in own else new.zeros(a) for n, a in enumerate(slots)]
        longer.append(new.finish("log", [*branch.outvars, *logged]))
        operands = [v if v in way.needs else Var(v.aval) for v in branch.invars]
        given = [own[n] if n in own else Var(a) for n, a in enumerate(slots)]
        start = way.versions[branch.invars[operand - 1]]
        undone.append(branch.replace(invars=[way.after, *operands, *given], eqns=way.back, outvars=[start]))
    choice = new_equation(eqn.primitive, eqn.invars, {"branches": tuple(longer)}, eqn.source)
    stored = choice.outvars[len(eqn.outvars) :]
    choice = choice.replace(outvars=[*eqn.outvars, *stored])
    index = eqn.invars[0]
    numbers = range(len(eqn.invars) - 1)
    read = [any(b.invars[i] in w.needs for b, w in zip(branches, found)) for i in numbers]
    undone = [_without(b, [True, *read, *[True] * len(slots)]) for b in undone]
    outside = [a for a, r in zip(eqn.invars[1:], read) if r]
    back = new_equation(
        eqn.primitive, [index, after, *outside, *stored], {"branches": tuple(undone)}, eqn.source
    )
    return Back([choice], variables([index, *outside, *stored]), [back], back.outvars[0])


def _without(jaxpr: Jaxpr, mask: Sequence[bool]) -> Jaxpr:
    return verified(jaxpr.replace(invars=[v for v, m in zip(jaxpr.invars, mask) if m]), "rewind")


def _places(logged: Sequence[Var], slots: list[Aval]) -> dict[int, Var]:
    """The numbers of the slots of a branch's logs; adds slots that are missing."""
    own: dict[int, Var] = {}
    for v in logged:
        aval = v.aval.strong()
        place = next((n for n, a in enumerate(slots) if a == aval and n not in own), None)
        if place is None:
            place = len(slots)
            slots.append(aval)
        own[place] = v
    return own
