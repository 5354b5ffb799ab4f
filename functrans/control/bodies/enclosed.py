"""The bodies that an equation encloses, for calls, loops and branches alike: to find them, and to put others there.

The leading inputs of a body are operands of the equation that it reads unchanged. Captured arrays have no place in the
bodies of loops and branches: they become further such operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import Eqn, Jaxpr
from ...runtime.records import NamedTuple
from ..cond import cond_p
from ..scan import scan_p
from ..while_loop import while_p


class Enclosed(NamedTuple):
    """A body in an equation.

    Attributes
    ----------
    jaxpr : Jaxpr
    start, shared : int
        The operands of the equation that its first `shared` inputs are.
    """

    jaxpr: Jaxpr
    start: int
    shared: int


def enclosed(eqn: Eqn) -> list[Enclosed]:
    """The bodies of an equation; none for functions with rules of their own, which decide about derivatives."""
    prim, params = eqn.primitive, eqn.params
    if prim.is_transparent:
        return [Enclosed(params["jaxpr"], 0, len(eqn.invars))]
    if prim is scan_p:
        return [Enclosed(params["jaxpr"], 0 if params["length"] is not None else 1, params["num_consts"])]
    if prim is while_p:
        first, consts = params["num_cond"], params["num_consts"]
        return [Enclosed(params["cond_jaxpr"], 0, first), Enclosed(params["body_jaxpr"], first, consts)]
    if prim is cond_p:
        return [Enclosed(branch, 1, len(eqn.invars) - 1) for branch in params["branches"]]
    return []


def with_bodies(
    eqn: Eqn, operands: Sequence[Any], bodies: Sequence[Jaxpr], constant: Callable[[Any], Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The operands and parameters of an equation with other bodies.

    Parameters
    ----------
    eqn : Eqn
    operands : sequence
        Atoms or values.
    bodies : sequence of Jaxpr
        One for each of `enclosed`, with as many inputs.
    constant : callable
        From a captured array of a body to an operand.
    """
    prim, params = eqn.primitive, eqn.params
    if prim.is_transparent:
        return list(operands), {**params, "jaxpr": bodies[0]}
    new = [list(map(constant, b.consts)) for b in bodies]
    if prim is cond_p:
        added = [v for b in bodies for v in b.constvars]
        branches = tuple([b.replace(invars=[*_own(added, b), *b.invars], constants=()) for b in bodies])
        return [operands[0], *[x for own in new for x in own], *operands[1:]], {"branches": branches}
    opened = [b.replace(invars=[*b.constvars, *b.invars], constants=()) if b.consts else b for b in bodies]
    if prim is scan_p:
        start = enclosed(eqn)[0].start
        changed = {"jaxpr": opened[0], "num_consts": params["num_consts"] + len(new[0])}
        return [*operands[:start], *new[0], *operands[start:]], {**params, **changed}
    first = params["num_cond"]
    return [*new[0], *operands[:first], *new[1], *operands[first:]], {
        "cond_jaxpr": opened[0],
        "body_jaxpr": opened[1],
        "num_cond": first + len(new[0]),
        "num_consts": params["num_consts"] + len(new[1]),
    }


def _own(added: Sequence[Any], body: Jaxpr) -> list[Any]:
    """The captured variables of all branches as inputs of one: its own, and others that it does not read."""
    own = {*body.constvars}
    return [v if v in own else type(v)(v.aval) for v in added]
