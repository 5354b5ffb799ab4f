"""Loops, branches and calls of values that differ between ranks: their bodies, with types that say so.

A carry differs if its first value does, or what the body makes of it. What runs only if a condition holds that differs
between ranks runs on some of them: all that it reads and returns differs, and it must not wait for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ...core.evaluation import evaluate
from ...core.ir import Eqn, Jaxpr, subjaxprs
from ...core.named_axes import mesh_in_scope
from ...core.values import Param, Params, Value
from ...errors import CollectiveError
from ...passes.masks import split
from ...transforms.stage import stage
from .collectives import axes_of
from .varying import Axes, differ

_NONE: Axes = frozenset()


def _of_inputs(jaxpr: Jaxpr) -> list[Axes]:
    return [a.vma for a in jaxpr.in_avals]


def _of_outputs(jaxpr: Jaxpr) -> list[Axes]:
    return [a.vma for a in jaxpr.out_avals]


def _joined(*groups: Sequence[Axes]) -> list[Axes]:
    return [_NONE.union(*column) for column in zip(*groups, strict=True)]


def _with_axes(jaxpr: Jaxpr, ins: Sequence[Axes], outs: Sequence[Axes] | None = None) -> Jaxpr:
    """The body for inputs that differ over the axes `ins`, with outputs that differ over at least `outs`."""
    if list(ins) == _of_inputs(jaxpr) and (outs is None or list(outs) == _of_outputs(jaxpr)):
        return jaxpr

    def program(*values: Value) -> list[Any]:
        results = evaluate(jaxpr, values)
        return results if outs is None else list(map(differ, results, outs))

    def build() -> Jaxpr:
        avals = [a.over(axes) for a, axes in zip(jaxpr.in_avals, ins, strict=True)]
        return stage(program, avals, jaxpr.name, jaxpr.stats)

    key = ("axes", mesh_in_scope.get(), tuple(ins), None if outs is None else tuple(outs))
    return jaxpr.derive(key, build)


def of_call(axes: list[Axes], params: Params) -> tuple[list[Axes], Params]:
    """See `Primitive.vary`."""
    jaxpr = params.get("jaxpr")
    if jaxpr is None:
        return axes, params
    needed = _joined(axes, _of_inputs(jaxpr))
    body = _with_axes(jaxpr, needed)
    return needed, params if body is jaxpr else {**params, "jaxpr": body}


def of_scan(
    axes: list[Axes], *, jaxpr: Jaxpr, length: int | None, num_consts: int, num_carry: int, **params: Param
) -> tuple[list[Axes], Params]:
    """See `Primitive.vary`."""
    head, own = (axes[:1], axes[1:]) if length is None else ([], axes)
    common = _NONE.union(*head)
    consts, carry, rows = split([a | common for a in _joined(own, _of_inputs(jaxpr))], num_consts, num_carry)
    while True:
        body = _with_axes(jaxpr, [*consts, *carry, *rows])
        outs = [a | common for a in _of_outputs(body)]
        after = _joined(carry, outs[:num_carry])
        if after == carry:
            break
        carry = after
    ins = [*consts, *carry, *rows]
    body = _with_axes(jaxpr, ins, [*carry, *outs[num_carry:]])
    _refuse("the number of iterations of a loop", common, body)
    params.update(jaxpr=body, length=length, num_consts=num_consts, num_carry=num_carry)
    return [*head, *ins], params


def of_while(
    axes: list[Axes], *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, num_cond: int, num_consts: int
) -> tuple[list[Axes], Params]:
    """See `Primitive.vary`."""
    of_cond, consts, carry = split(axes, num_cond, num_consts)
    common = _NONE
    while True:
        tested = [a | common for a in _joined([*of_cond, *carry], _of_inputs(cond_jaxpr))]
        done = [a | common for a in _joined([*consts, *carry], _of_inputs(body_jaxpr))]
        carry = _joined(tested[num_cond:], done[num_consts:])
        of_cond, consts = tested[:num_cond], done[:num_consts]
        test = _with_axes(cond_jaxpr, [*of_cond, *carry])
        body = _with_axes(body_jaxpr, [*consts, *carry])
        outs = _of_outputs(body)
        after = _joined(carry, outs[: len(carry)])
        before, common = common, common | _of_outputs(test)[0]
        if after == carry and common == before:
            break
        carry = after
    body = _with_axes(body_jaxpr, [*consts, *carry], [*carry, *outs[len(carry) :]])
    _refuse("the condition of a loop", common, test, body)
    params = {"cond_jaxpr": test, "body_jaxpr": body, "num_cond": num_cond, "num_consts": num_consts}
    return [*of_cond, *consts, *carry], params


def of_cond(axes: list[Axes], *, branches: tuple[Jaxpr, ...]) -> tuple[list[Axes], Params]:
    """See `Primitive.vary`."""
    common, own = axes[0], axes[1:]
    ins = [a | common for a in _joined(own, *map(_of_inputs, branches))]
    bodies = [_with_axes(b, ins) for b in branches]
    outs = [a | common for a in _joined(*map(_of_outputs, bodies))]
    _refuse("the condition of a branch", common, *bodies)
    return [common, *ins], {"branches": tuple([_with_axes(b, ins, outs) for b in branches])}


# --- collectives that only some ranks would call -----------------------------------------------------------------


def _refuse(what: str, axes: Axes, *bodies: Jaxpr) -> None:
    if axes:
        for body in bodies:
            for eqn in body.eqns:
                if eqn.effects.collective:
                    _look_into(what, axes, eqn)


def _look_into(what: str, axes: Axes, eqn: Eqn) -> None:
    if not axes.isdisjoint(axes_of(eqn.params)):
        _refused(what, axes, eqn)
    _refuse(what, axes, *subjaxprs(eqn.params))


def _refused(what: str, axes: Axes, eqn: Eqn) -> NoReturn:
    names = ", ".join(map(repr, sorted(axes)))
    raise CollectiveError(
        f"{eqn.primitive.name} over {eqn.params['axis_name']} would run on some ranks only, which would wait for the "
        f"others for ever: {what} around it differs over the axis {names}. Compute it before, and choose with "
        "`where`, or make the condition the same on all ranks, as by lax.pmax. If it is the gradient of a value that "
        f"all ranks have, write x = lax.pvary(x, {names}) before the condition, which sums behind it",
        eqn.source,
    )
