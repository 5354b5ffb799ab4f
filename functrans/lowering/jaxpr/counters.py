"""Counters of loops: rows that hold consecutive integers, and carries that grow by one, become index arithmetic.
Carries that stay the same become constants.

``fori_loop`` needs no array for its numbers (see `control.scan`), but users write ``scan`` over ``arange``, and carry
numbers that count. The kernel would read from memory what it could take from the loop's variable, whose range tells
which indices are in bounds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from ...control.scan import scan_p
from ...core import INT64, Atom, Eqn, Literal, Var
from ...passes.toolkit import substitute
from ...primitives.elementwise.arithmetic import sub_p
from ...primitives.structure.linear import add_p
from ...primitives.structure.shape import iota_p


def with_counters(eqns: list[Eqn], outvars: list[Atom]) -> tuple[list[Eqn], list[Atom]]:
    """The equations and outputs, with counting rows and carries by their first number; such rows become dead code."""
    if not any(e.primitive is scan_p for e in eqns):
        return eqns, outvars
    producer = {v: e for e in eqns for v in e.outvars}
    read = {a for e in eqns for a in e.invars}.union(outvars)
    new: list[Eqn] = []
    env: dict[Atom, Atom] = {}
    for e in eqns:
        (e,) = substitute([e], env)
        new.append(
            _of_carry(_of_rows(_without_fixed(e, env), producer), read) if e.primitive is scan_p else e
        )
    return new, [env.get(a, a) for a in outvars]


def _without_fixed(e: Eqn, env: dict[Atom, Atom]) -> Eqn:
    """The scan with carries that stay the same as constants; `env` gets their results, which are the first values."""
    params, body = e.params, e.params["jaxpr"]
    consts, carried, head = params["num_consts"], params["num_carry"], params["length"] is None
    fixed = [j for j in range(carried) if body.outvars[j] is body.invars[consts + j]]
    if not fixed:
        return e

    def moved(values: Any, first: int) -> list[Any]:
        places = [first + consts + j for j in fixed]
        rest = [v for i, v in enumerate(values) if i not in places]
        return [*rest[: first + consts], *[values[i] for i in places], *rest[first + consts :]]

    env.update((e.outvars[j], e.invars[head + consts + j]) for j in fixed)
    outvars = [v for j, v in enumerate(body.outvars) if j not in fixed]
    return e.replace(
        invars=moved(e.invars, head),
        outvars=[v for j, v in enumerate(e.outvars) if j not in fixed],
        params={
            **params,
            "jaxpr": body.replace(invars=moved(body.invars, 0), outvars=outvars),
            "num_consts": consts + len(fixed),
            "num_carry": carried - len(fixed),
        },
    )


def _of_rows(e: Eqn, producer: dict[Var, Eqn]) -> Eqn:
    """The scan without rows of consecutive integers: it takes the first one instead."""
    if e.params["length"] is None:
        return e
    first = e.params["num_consts"] + e.params["num_carry"]
    starts = [_start(a, producer) for a in e.invars[first:]]
    if all(start is None for start in starts):
        return e
    rows = [a if s is None else Literal(np.int64(s)) for a, s in zip(e.invars[first:], starts)]
    return e.replace(invars=[*e.invars[:first], *rows])


def _start(a: Atom, producer: dict[Var, Eqn]) -> int | None:
    """The first of consecutive integers; None if an array holds anything else."""
    e = producer.get(a) if isinstance(a, Var) else None
    if e is None or e.outvars[0].aval.ndim != 1 or e.outvars[0].aval.dtype != INT64:
        return None
    if e.primitive is iota_p:
        return 0
    if e.primitive is add_p or e.primitive is sub_p:
        x, y = e.invars
        if e.primitive is add_p and isinstance(x, Literal):
            x, y = y, x
        if isinstance(y, Literal):
            start = _start(x, producer)
            return None if start is None else start + int(y.value) * (1 if e.primitive is add_p else -1)
    return None


def _of_carry(e: Eqn, read: Collection[Atom]) -> Eqn:
    """The scan without carries that only count its iterations: a row takes their place."""
    params = e.params
    body, consts, carried = params["jaxpr"], params["num_consts"], params["num_carry"]
    if params["reverse"]:
        return e
    head = params["length"] is None
    counts = [
        j
        for j, (old, new) in enumerate(zip(body.invars[consts : consts + carried], body.outvars))
        if e.outvars[j] not in read and _is_next(old, new, body.eqns)
    ]
    if not counts:
        return e

    def moved(values: Any, first: int) -> list[Any]:
        places = [first + j for j in counts]
        return [*[v for i, v in enumerate(values) if i not in places], *[values[i] for i in places]]

    outvars = [v for j, v in enumerate(body.outvars) if j not in counts]
    return e.replace(
        invars=moved(e.invars, consts + head),
        outvars=[v for j, v in enumerate(e.outvars) if j not in counts],
        params={
            **params,
            "jaxpr": body.replace(invars=moved(body.invars, consts), outvars=outvars),
            "num_carry": carried - len(counts),
        },
    )


def _is_next(old: Var, new: Atom, eqns: Iterable[Eqn]) -> bool:
    """Whether a carry is a counter: the next one is larger by one."""
    if old.aval.shape or old.aval.dtype != INT64:
        return False
    e = next((e for e in eqns if new in e.outvars), None)
    if e is None or e.primitive is not add_p:
        return False
    others = [a for a in e.invars if a is not old]
    return len(others) == 1 and isinstance(others[0], Literal) and others[0].value == 1
