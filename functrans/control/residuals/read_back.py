"""Residuals of loops that the last array still has: read back from it, not stored.

Where a loop does not overwrite an element later, the backward pass finds in the last array what an iteration read or
wrote (see `overwritten`). Before a body is linearized, such values are marked, and the last array becomes a constant of
it, and of the loops and branches inside; only marks read it::

    v = sin u                          v = sin u
    z = scatter y v i         ──▶      v' = read_back v last i
                                       z = scatter y v' i

A marked value costs nothing as a residual: the linear half has ``gather last i`` in its place. The primal half has none
of this: when it runs, there is no last array yet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Any

from ...core.aval import Zero
from ...core.ir import Atom, Eqn, Jaxpr, Var
from ...core.primitive import Primitive
from ...core.values import Param, Tangent, Value
from ...passes.check import verified
from ...passes.toolkit import forward_slice, inline, new_equation, substitute
from ...primitives.indexing.gather_scatter import gather_p
from ...runtime.records import NamedTuple
from ...transforms.linearize_jaxpr import LinearizedJaxpr
from .overwritten import (
    ElementAccess,
    KnownLoop,
    bodies_of,
    body_name,
    elements_that_stay,
    is_checkpoint,
    is_nested,
    sizes_of,
    updated_arrays,
)
from .rematerialize import recomputing, residual_atoms, second_run, with_second_run

#: The last array has to be kept. That pays if as much is read back as this share of it; in another loop, each iteration
#: keeps one.
SHARES = {"once": 1 / 8, "in a loop": 1.0}


def _abstract(x: Value, last: Any, *indices: Any, **params: Param) -> Value:
    return x


def _impl(x: Value, last: Any, *indices: Value, **params: Param) -> Value:
    return x


def _jvp(primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param) -> tuple[Value, Tangent]:
    ans = read_back_p.bind(*primals, **params)
    return ans, Zero(ans) if type(tangents[0]) is Zero else tangents[0]


#: The first operand, which equals ``gather(last, *indices)`` after the loop. It exists while a body is linearized.
read_back_p: Primitive = Primitive("read_back", _abstract, _impl, jvp=_jvp)


class Marked(NamedTuple):
    """A body whose elements that stay are marked.

    Attributes
    ----------
    body : Jaxpr
        The last arrays are constants after the other ones.
    carries : tuple of int
        The numbers of these arrays in the carry.
    """

    body: Jaxpr
    carries: tuple[int, ...]


def updates(body: Jaxpr, sizes: tuple[int, int]) -> bool:
    """Whether a loop of this body may overwrite elements of an array that it carries."""
    return bool(updated_arrays(_without_calls(body), *sizes))


def _without_calls(body: Jaxpr) -> Jaxpr:
    """The body with calls inlined, except checkpoints: they have policies."""

    def inner(eqn: Eqn) -> Jaxpr | None:
        return eqn.params["jaxpr"] if eqn.primitive.is_transparent and not is_checkpoint(eqn) else None

    return body.derive("without calls", lambda: inline(body, inner)) if any(map(inner, body.eqns)) else body


def marked(body: Jaxpr, sizes: tuple[int, int], loop: KnownLoop | None, repeated: bool) -> Marked:
    """Mark the elements that the last arrays of a loop still have.

    Parameters
    ----------
    body : Jaxpr
        From constants, carry and rows.
    sizes : (int, int)
        The lengths of the first two.
    loop : KnownLoop or None
        None if there is nothing to find.
    repeated : bool
        Whether the loop is in another one, which would store each of its last arrays.
    """
    if loop is None:
        return Marked(body, ())
    num_consts, num_carry = sizes
    body = _without_calls(body)
    place = num_consts
    carries: list[int] = []
    for c in updated_arrays(body, num_consts, num_carry):
        own = loop._replace(
            lowest=(*loop.lowest[:num_consts], *[None] * len(carries), *loop.lowest[num_consts:])
        )
        array = body.invars[place + c].aval
        accesses = [a for a in elements_that_stay(body, place, num_carry, c, own) if not _is_marked(a, body)]
        total = sum(a.bytes(1 if repeated else inf) for a in accesses)
        share = SHARES["in a loop" if repeated else "once"]
        if not total or total < share * array.size * array.dtype.itemsize:
            continue
        body = _with_marks(body, place, array.strong(), accesses, ())
        carries.append(c)
        place += 1
    return Marked(verified(body, "read back"), tuple(carries))


def _is_marked(access: ElementAccess, body: Jaxpr) -> bool:
    """Whether the body of an enclosing loop has marked an element already."""
    e = access.eqn
    if access.inside:
        outside, number = access.inside[-1]
        body = bodies_of(outside)[number]
    return (e.outvars[0] if e.primitive is gather_p else e.invars[1]) in marks(body)


def _with_marks(
    body: Jaxpr, place: int, aval: Any, accesses: Sequence[ElementAccess], inside: tuple[tuple[Eqn, int], ...]
) -> Jaxpr:
    """A body with marks, and with the last array as an input at this place; `inside` is where it is."""
    last = Var(aval)
    own = {a.eqn: a for a in accesses if a.inside == inside}
    nested = {a.inside[len(inside)][0] for a in accesses if a.inside[: len(inside)] == inside != a.inside}
    env: dict[Any, Atom] = {}
    eqns: list[Eqn] = []
    for old in body.eqns:
        (e,) = substitute([old], env)
        if old in nested:
            e = _with_marks_inside(old, e, last, accesses, inside)
        if old not in own:
            eqns.append(e)
            continue
        reads = e.primitive is gather_p
        v = e.outvars[0] if reads else e.invars[1]
        indices = e.invars[1:] if reads else e.invars[2:]
        # What was in bounds is so again. Negative indices still count from the end.
        params = {k: x for k, x in e.params.items() if k != "unique_indices"}
        if not reads or params["mode"] == "raise":
            params = {"axes": params["axes"], "mode": "clip"}
        mark = new_equation(read_back_p, [v, last, *indices], params, e.source)
        env[v] = mark.outvars[0]
        eqns += [e, mark] if reads else [mark, *substitute([e], {v: mark.outvars[0]})]
    invars = [*body.invars[:place], last, *body.invars[place:]]
    return body.replace(invars=invars, eqns=eqns, outvars=[env.get(a, a) for a in body.outvars])


def _with_marks_inside(
    old: Eqn, e: Eqn, last: Var, accesses: Sequence[ElementAccess], inside: tuple[tuple[Eqn, int], ...]
) -> Eqn:
    """A loop or a branch with marks in its bodies."""
    bodies = tuple(
        [_with_marks(b, 0, last.aval, accesses, (*inside, (old, n))) for n, b in enumerate(bodies_of(e))]
    )
    if "branches" in e.params:
        return e.replace(invars=[e.invars[0], last, *e.invars[1:]], params=e.params | {"branches": bodies})
    if is_checkpoint(e):
        return e.replace(invars=[last, *e.invars], params=e.params | {"jaxpr": bodies[0]})
    first = sizes_of(e)[0]
    params = e.params | {body_name(e): bodies[0], "num_consts": e.params["num_consts"] + 1}
    return e.replace(invars=[*e.invars[:first], last, *e.invars[first:]], params=params)


# --- after linearization ------------------------------------------------------------------------------------


def last_arrays(body: Jaxpr) -> list[Var]:
    """The inputs of a body that only marks read."""
    return body.derive("last arrays", lambda: _last_arrays(body))


def _last_arrays(body: Jaxpr) -> list[Var]:
    read: dict[Any, bool] = {}
    for e in body.eqns:
        for n, a in enumerate(e.invars):
            if isinstance(a, Var) and a.aval.shape:
                mark = e.primitive is read_back_p and n == 1
                read[a] = read.get(a, True) and (mark or _is_passed_on(e, n))
    outs = set(body.outvars)
    return [v for v in body.invars if read.get(v, False) and v not in outs]


def _is_passed_on(e: Eqn, operand: int) -> bool:
    """Whether only marks read an operand of a loop or a branch."""
    if not is_nested(e):
        return False
    if is_checkpoint(e):
        (body,) = bodies_of(e)
        return body.invars[operand] in last_arrays(body)
    if "branches" in e.params:
        inputs = [b.invars[operand - 1] for b in bodies_of(e)] if operand else []
        return bool(inputs) and any(v in last_arrays(b) for v, b in zip(inputs, bodies_of(e)))
    (body,) = bodies_of(e)
    return operand >= sizes_of(e)[0] and body.invars[operand - sizes_of(e)[0]] in last_arrays(body)


def after_the_loop(parts: LinearizedJaxpr, last: Collection[Var]) -> LinearizedJaxpr:
    """A linearized body whose primal half, but for marks, does not read the last arrays: its linear half does."""
    primal = parts.primal
    late = forward_slice([e for e in primal.eqns if e.primitive is not read_back_p], last)
    if late.isdisjoint(residual_atoms(parts)):
        return parts
    early = {v for e in primal.eqns for v in e.outvars if v not in late}
    return recomputing(parts, early)


def marks(primal: Jaxpr) -> dict[Atom, Eqn]:
    """The values that can be read back, each with its mark."""
    return {v: e for e in primal.eqns if e.primitive is read_back_p for v in (e.outvars[0], e.invars[0])}


def recomputing_marked(
    parts: LinearizedJaxpr, stored: Collection[Any], *, separate: bool = False
) -> LinearizedJaxpr:
    """As `recomputing`, for a linearized body with marks, which are gone afterwards.

    The linear half reads marked values from the last arrays, but for those in `stored`.
    """
    primal = parts.primal
    known = marks(primal)
    if not known:
        return recomputing(parts, stored, separate=separate)
    residuals = residual_atoms(parts)
    given = {*stored, *known}
    read = _read_back(primal, residuals, known, stored)
    again: dict[Eqn, None] = {}
    for v, indices in read.items():
        again.update(dict.fromkeys(indices))
        gather = new_equation(gather_p, known[v].invars[1:], known[v].params, known[v].source)
        again[gather.replace(outvars=[v])] = None
    operands = [a for v in read for a in known[v].invars[1:]]
    eqns, leaves = second_run(primal, [*residuals, *operands], given)
    again.update(dict.fromkeys(eqns))
    half = with_second_run(parts, list(again), [v for v in leaves if v not in read], separate=separate)
    same: dict[Any, Atom] = {}
    for e in half.primal.eqns:
        if e.primitive is read_back_p:
            same[e.outvars[0]] = same.get(e.invars[0], e.invars[0])
    return half._replace(
        primal=half.primal.replace(
            eqns=substitute([e for e in half.primal.eqns if e.primitive is not read_back_p], same),
            outvars=[same.get(a, a) for a in half.primal.outvars],
        )
    )


def _read_back(
    primal: Jaxpr, residuals: Sequence[Atom], known: Mapping[Atom, Eqn], stored: Collection[Any]
) -> dict[Any, list[Eqn]]:
    """The values that are read back, each after those that its indices read, with the equations of its indices.

    An index may come from a value that is read back itself. This value has to be an earlier one: of two values that are
    found by each other, one is stored.
    """
    place: dict[Any, int] = {v: n for n, e in enumerate(primal.eqns) for v in e.outvars}
    read: dict[Any, list[Eqn]] = {}

    def run(values: Sequence[Atom]) -> tuple[list[Eqn], list[Var]]:
        eqns, leaves = second_run(primal, values, {*stored, *known})
        return eqns, [v for v in leaves if v in known and v not in stored]

    _, wanted = run(residuals)
    while wanted:
        v = wanted.pop()
        eqns, earlier = run(known[v].invars[1:])
        if v not in read and all(place.get(a, -1) < place.get(v, -1) for a in earlier):
            read[v] = eqns
            wanted += earlier
    return {v: read[v] for v in sorted(read, key=lambda v: place.get(v, -1))}
