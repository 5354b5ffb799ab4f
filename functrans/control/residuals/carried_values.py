"""Carry what an iteration computes from its carry, if the iteration before computed it from the same numbers.

A leapfrog step needs the force at its start and at its end, and the end of one step is the start of the next. A body
that computes ``g(consts, carry)`` and also ``g(consts, next carry)`` computes everything twice; here the second value
becomes part of the carry, and the first one is computed before the loop only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.ir import Atom, Eqn, Jaxpr, Literal, Var
from ...passes.costs import is_arithmetic
from ...passes.rewriter import Rewriter
from ...passes.toolkit import backward_slice, equation_key, live_equations, substitute, variables_read
from ...runtime.config import config
from ...runtime.passes import CARRIED_VALUES


def carry_values(rw: Rewriter, eqn: Eqn) -> Eqn | None:
    """The ``simplify`` rule of ``scan``.

    Parameters
    ----------
    rw : Rewriter
        Receives the equations that compute the first values.
    eqn : Eqn

    Returns
    -------
    Eqn or None
        The scan with a longer carry, whose results come after the other parts of the carry; None if nothing repeats.
    """
    if not config.runs(CARRIED_VALUES):
        return None
    body, length = eqn.params["jaxpr"], eqn.params["length"]
    head = 0 if length is not None else 1
    first, count = eqn.params["num_consts"], eqn.params["num_carry"]
    pairs = repeated_values(body, first, count)
    if not pairs:
        return None
    now, after = [old for old, _ in pairs], [new for _, new in pairs]
    split = first + count
    env: dict[Any, Atom] = dict(zip(body.invars[:split], eqn.invars[head : head + split]))
    for e in backward_slice(body.eqns, now, body.invars):
        results = [Var(v.aval) for v in e.outvars]
        rw.emit(e.replace(invars=[env.get(a, a) for a in e.invars], outvars=results))
        env.update(zip(e.outvars, results))
    carried: dict[Any, Atom] = {v: Var(v.aval) for v in now}
    outvars = [carried.get(a, a) for a in (*body.outvars[:count], *after, *body.outvars[count:])]
    # The equations that compute the carried values no longer serve anyone.
    kept = substitute([e for e in body.eqns if carried.keys().isdisjoint(e.outvars)], carried)
    longer = body.replace(
        invars=[*body.invars[:split], *carried.values(), *body.invars[split:]],
        eqns=live_equations(kept, outvars),
        outvars=outvars,
    )
    place = head + split
    return eqn.replace(
        invars=[*eqn.invars[:place], *[env[v] for v in now], *eqn.invars[place:]],
        outvars=[*eqn.outvars[:count], *[Var(v.aval) for v in now], *eqn.outvars[count:]],
        params=eqn.params | {"jaxpr": longer, "num_carry": count + len(now)},
    )


def repeated_values(body: Jaxpr, first: int, count: int) -> list[tuple[Var, Var]]:
    """The values to carry: what an iteration computes at its start, and the equal value of the iteration before.

    Parameters
    ----------
    body : Jaxpr
    first, count : int
        The number of constants, and the length of the carry after them.

    Returns
    -------
    list of (Var, Var)
        Only values that took more than cheap arithmetic, and that the rest of the body reads.
    """
    consts, carry = body.invars[:first], body.invars[first : first + count]
    known = {key: e for e in body.eqns if (key := _key(e, e.invars)) is not None}
    # The value of each variable one iteration later.
    later: dict[Var, Atom] = {**{v: v for v in consts}, **dict(zip(carry, body.outvars))}
    costly: set[Atom] = set()
    repeated: list[Eqn] = []
    for e in body.eqns:
        if not all(isinstance(a, Literal) or a in later for a in e.invars):
            continue
        twin = known.get(_key(e, [later[a] if isinstance(a, Var) else a for a in e.invars]))
        if twin is None or not all(_same_type(v, w) for v, w in zip(e.outvars, twin.outvars)):
            continue
        later.update(zip(e.outvars, twin.outvars))
        if not is_arithmetic(e) or not costly.isdisjoint(e.invars):
            costly.update(e.outvars)
        if twin is not e:
            repeated.append(e)
    if not costly:
        return []
    others = [e for e in body.eqns if e not in set(repeated)]
    read = variables_read(others, body.outvars)
    pairs = [(v, later[v]) for e in repeated for v in e.outvars if v in read and v in costly]
    return [(v, w) for v, w in pairs if isinstance(w, Var)]


def _same_type(v: Var, w: Var) -> bool:
    return v.aval == w.aval and not v.aval.weak


def _key(e: Eqn, operands: Sequence[Atom]) -> Any:
    """Equal for equations that compute the same; None for those that must not be moved."""
    if not e.effects.shareable or not e.effects.movable:
        return None
    return equation_key(e, operands)
