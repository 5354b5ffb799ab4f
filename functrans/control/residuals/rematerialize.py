"""Rematerialization: a linearized jaxpr with fewer residuals, whose linear half recomputes the others.

::

inputs --primal--> outputs, residuals          residuals, tangents --linear--> tangents
inputs --primal--> outputs, stored     inputs, stored, tangents --parts of primal, linear--> tangents
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ...core.ir import Atom, Eqn, Jaxpr, Literal, Var
from ...passes.check import verified
from ...passes.toolkit import backward_slice, eliminate_dead_code, inline, substitute, variables_read
from ...primitives.elementwise.identities import barrier_p, name_p
from ...transforms.linearize_jaxpr import LinearizedJaxpr
from ..callbacks.callback import is_noticed


def inline_calls(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with calls inlined, except those with rules. Cached on it."""

    def body_of(eqn: Eqn) -> Jaxpr | None:
        return eqn.params["jaxpr"] if eqn.primitive.is_transparent else None

    # A jaxpr cached on itself would outlive its last user.
    if not any(e.primitive.is_transparent for e in jaxpr.eqns):
        return jaxpr
    return jaxpr.derive("inlined", lambda: inline(jaxpr, body_of))


def residual_atoms(parts: LinearizedJaxpr) -> list[Atom]:
    """The residuals as values of the primal half."""
    primal = parts.primal
    return [primal.invars[i] if where == "in" else primal.outvars[i] for where, i in parts.residuals]


def recomputing(
    parts: LinearizedJaxpr, stored: Collection[Any], *, separate: bool = False
) -> LinearizedJaxpr:
    """The same function and derivative with other residuals: only inputs and `stored` values.

    Parameters
    ----------
    parts : LinearizedJaxpr
    stored : collection of Var
        Values of the primal half that may be stored. The linear half recomputes everything else it needs.
    separate : bool
        Whether compilers must not merge the second computation with the first.

    Returns
    -------
    LinearizedJaxpr
    """
    return with_second_run(parts, *second_run(parts.primal, residual_atoms(parts), stored), separate=separate)


def with_second_run(
    parts: LinearizedJaxpr, eqns: Sequence[Eqn], leaves: Sequence[Var], *, separate: bool = False
) -> LinearizedJaxpr:
    """The same, from what `second_run` returns."""
    primal = parts.primal
    outs = list(primal.outvars[: len(parts.nonzero)])
    where: dict[Atom, tuple[str, int]] = {v: ("out", i) for i, v in reversed(list(enumerate(outs)))}
    where.update((v, ("in", i)) for i, v in enumerate(primal.invars))
    for v in leaves:
        if v not in where:
            where[v] = "out", len(outs)
            outs.append(v)
    linear = _with_recomputation(parts, eqns, leaves, separate)
    primal = verified(eliminate_dead_code(primal, outs), "recomputation")
    return LinearizedJaxpr(primal, linear, tuple([where[v] for v in leaves]), parts.nonzero)


def second_run(
    primal: Jaxpr, residuals: Sequence[Atom], stored: Collection[Any]
) -> tuple[list[Eqn], list[Var]]:
    """The equations that compute `residuals` from inputs, constants and stored values; and which of these they read."""
    eqns = backward_slice(primal.eqns, residuals, stored)
    leaves = variables_read(eqns, residuals).keys() - primal.constvars
    leaves.difference_update(*[e.outvars for e in eqns])
    in_order = [v for v in primal.invars if v in leaves]
    if len(in_order) < len(leaves):
        in_order += [v for e in primal.eqns for v in e.outvars if v in leaves]
    return [_again(e) for e in eqns], in_order


def _again(eqn: Eqn) -> Eqn:
    rule = eqn.primitive.again
    return eqn if rule is None else eqn.replace(params=rule(eqn.params))


def _with_recomputation(
    parts: LinearizedJaxpr, recomputed: Sequence[Eqn], leaves: Sequence[Var], separate: bool
) -> Jaxpr:
    """The linear half over `leaves` instead of the residuals."""
    primal, linear = parts.primal, parts.linear
    residuals = residual_atoms(parts)
    count = len(residuals)
    # Inlining calls may have renamed some.
    instead: dict[Atom, Atom] = {a: b for a, b in zip(linear.invars, residuals) if a is not b}
    read = variables_read(recomputed, residuals) if primal.constvars else {}
    consts = [(v, c) for v, c in primal.constants if v in read]
    invars, constvars, eqns = list(leaves), [v for v, _ in consts], []
    if separate:
        # Recomputing constants gains nothing.
        barriers = {v: Var(v.aval) if v.aval.shape else v for v in [*invars, *constvars]}
        eqns = [Eqn(barrier_p, [new], [v], {}) for v, new in barriers.items() if new is not v]
        invars, constvars = [barriers[v] for v in invars], [barriers[v] for v in constvars]
    eqns += recomputed
    eqns += substitute(linear.eqns, instead) if instead else linear.eqns
    half = linear.replace(
        invars=[*invars, *linear.invars[count:]],
        eqns=eqns,
        constants=[*zip(constvars, [c for _, c in consts]), *linear.constants],
    )
    return verified(half, "recomputation")


def selected(primal: Jaxpr, keep: Callable[[Eqn], bool]) -> set[Atom]:
    """The results of the equations for which `keep` holds.

    Notes
    -----
    What a user could count happens once: results of callbacks, and of effects other than raising, are always among
    them. Results of primitives with a slot `again` never are, nor what follows from them alone.
    """
    repeated = _repeated(primal)
    stored: set[Atom] = set()
    for e in reversed(primal.eqns):
        if not repeated.isdisjoint(e.outvars):
            continue
        if is_noticed(e) or keep(e):
            stored.update(e.outvars)
        # A named value is the same value as the unnamed one, which derivatives may read.
        if e.primitive is name_p and e.outvars[0] in stored:
            stored.remove(e.outvars[0])
            stored.add(e.invars[0])
    return stored


def _repeated(primal: Jaxpr) -> set[Atom]:
    """The results of primitives that run again, and what follows from them alone."""
    repeated: set[Atom] = set()
    if not any(e.primitive.again is not None for e in primal.eqns):
        return repeated
    for e in primal.eqns:
        read = [a for a in e.invars if type(a) is not Literal and a not in primal.constvars]
        follows = bool(read) and repeated.issuperset(read) and e.effects.movable
        if e.primitive.again is not None or follows:
            repeated.update(e.outvars)
    return repeated
