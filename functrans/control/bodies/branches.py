"""Branches of a ``cond`` made alike: with the same operands, and with the same results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core import Atom, Aval, Jaxpr, Var
from ...passes.masks import Mask
from ...passes.toolkit import substitute, variables_read
from .building import JaxprBuilder

Branches = tuple[Jaxpr, ...]


def inputs_read(branch: Jaxpr) -> Mask:
    """The inputs that a branch reads or returns."""
    used = variables_read(branch.eqns, branch.outvars)
    return tuple([v in used for v in branch.invars])


def with_inputs(branch: Jaxpr, which: tuple[int | None, ...]) -> Jaxpr:
    """The branch with the numbers of its inputs replaced by others; those that none of `which` names are left out."""
    old = branch.invars
    env: dict[Atom, Atom] = {v: old[n] for v, n in zip(old, which) if n is not None and v is not old[n]}
    return branch.replace(
        invars=[v for i, v in enumerate(old) if i in which],
        eqns=substitute(branch.eqns, env) if env else branch.eqns,
        outvars=[env.get(a, a) for a in branch.outvars],
    )


def with_common_operands(
    branches: Sequence[tuple[Jaxpr, Sequence[Any]]], count: int
) -> tuple[Branches, list[Any]]:
    """The branches, each taking the constants of all branches before the operands."""
    if not any(consts for _, consts in branches):
        return tuple([jaxpr for jaxpr, _ in branches]), []
    avals = [[v.aval for v in jaxpr.invars[: len(consts)]] for jaxpr, consts in branches]
    bodies = []
    for k, (jaxpr, consts) in enumerate(branches):
        others = [tuple([a for b in avals[:k] for a in b]), tuple([a for b in avals[k + 1 :] for a in b])]

        def build(jaxpr: Jaxpr = jaxpr, own: int = len(consts), others: Any = others) -> Jaxpr:
            before, after = [[Var(a) for a in group] for group in others]
            invars = [*before, *jaxpr.invars[:own], *after, *jaxpr.invars[own:]]
            return jaxpr.replace(invars=invars)

        bodies.append(jaxpr.derive(("common operands", len(consts), *others), build))
    return tuple(bodies), [x for _, consts in branches for x in consts]


def any_of(masks: Sequence[Sequence[bool]]) -> Mask:
    """What at least one of the branches has."""
    return tuple([any(column) for column in zip(*masks, strict=True)])


def completed(jaxpr: Jaxpr, first: int, has: Mask, complete: Mask, avals: Sequence[Aval]) -> Jaxpr:
    """The jaxpr with zeros for outputs that only other branches have.

    Its outputs from number `first` on are those marked in `has`, with types `avals`; the new ones are those in
    `complete`.
    """
    if has == complete:
        return jaxpr

    def build() -> Jaxpr:
        new = JaxprBuilder(jaxpr)
        outputs = iter(jaxpr.outvars[first:])
        outs = [
            (next(outputs) if h else new.zeros(a.strong()))
            for a, h, w in zip(avals, has, complete, strict=True)
            if w
        ]
        return new.finish("branches of a cond", [*jaxpr.outvars[:first], *outs])

    return jaxpr.derive(("with zeros", first, has, complete), build)


def batched_outputs(jaxpr: Jaxpr, size: int, dims: Sequence[int | None], mask: Mask) -> Jaxpr:
    """The jaxpr with a batch axis on all outputs in `mask`."""
    new = JaxprBuilder(jaxpr)
    return new.finish("vmap of cond", new.batched(jaxpr.outvars, dims, mask, size))
