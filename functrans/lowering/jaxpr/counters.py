"""Counters of loops: rows that hold consecutive integers, and carries that grow by one, become index arithmetic.
Carries that stay the same become constants.

``fori_loop`` needs no array for its numbers (see `control.scan`), but users write ``scan`` over ``arange``, and carry
numbers that count. The kernel would read from memory what it could take from the loop's variable, whose range tells
which indices are in bounds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import prod
from operator import mul
from typing import Any

import numpy as np

from ...control.scan import scan_p
from ...core import INT64, Atom, Aval, Eqn, Literal, Primitive, Var
from ...core.values import Param
from ...passes.toolkit import live_equations, new_equation, substitute
from ...primitives.elementwise.arithmetic import mul_p, sub_p
from ...primitives.structure.linear import add_p, reshape_p
from ...primitives.structure.shape import iota_p, slice_p
from ...runtime.records import NamedTuple


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
        if e.primitive is scan_p:
            e = _of_carry(_of_rows(_without_fixed(e, env), producer, new), read)
        new.append(e)
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


class _Affine(NamedTuple):
    """An array of integers: the sum of a number, if any, `start`, and along each axis so many steps as the index."""

    number: Var | None
    start: int
    steps: tuple[int, ...]


def _of_rows(e: Eqn, producer: dict[Var, Eqn], new: list[Eqn]) -> Eqn:
    """The scan without rows of evenly spaced integers: it counts instead. `new` gets equations before it."""
    params = e.params
    if params["length"] is None:
        return e
    first = params["num_consts"] + params["num_carry"]
    rows, inner = list(e.invars[first:]), list(params["jaxpr"].invars)
    computed: list[Eqn] = []
    for r, a in enumerate(rows):
        affine = _affine(a, producer) if a.aval.shape else None
        if affine is None:
            continue
        if affine.steps == (1,):
            rows[r] = _number(affine, new, e)
        else:
            rows[r], v = Literal(np.int64(0)), inner[first + r]
            inner[first + r] = Var(Aval((), INT64))
            computed += _row(affine, inner[first + r], v, e)
    if all(a is b for a, b in zip(rows, e.invars[first:])):
        return e
    body = params["jaxpr"]
    if computed:
        eqns, outvars = with_counters([*computed, *body.eqns], list(body.outvars))
        body = body.replace(invars=inner, eqns=live_equations(eqns, outvars), outvars=outvars)
    return e.replace(invars=[*e.invars[:first], *rows], params={**params, "jaxpr": body})


def _number(affine: _Affine, new: list[Eqn], e: Eqn) -> Atom:
    """The first of consecutive integers."""
    start = Literal(np.int64(affine.start))
    if affine.number is None:
        return start
    if not affine.start:
        return affine.number
    new.append(new_equation(add_p, [affine.number, start], {}, e.source))
    return new[-1].outvars[0]


def _row(affine: _Affine, i: Var, row: Var, e: Eqn) -> list[Eqn]:
    """Equations that compute a row of evenly spaced integers from its number."""
    eqns: list[Eqn] = []

    def bind(prim: Primitive, *args: Any, **params: Param) -> Var:
        atoms = [a if isinstance(a, Var) else Literal(np.int64(a)) for a in args]
        eqns.append(new_equation(prim, atoms, params, e.source))
        return eqns[-1].outvars[0]

    step, *steps = affine.steps
    value = bind(add_p, bind(mul_p, i, step), affine.start)
    shape = row.aval.shape
    for d, step in enumerate(steps):
        along = bind(iota_p, dtype=INT64, shape=shape, dimension=d)
        value = bind(add_p, along if step == 1 else bind(mul_p, along, step), value)
    eqns[-1] = eqns[-1].replace(outvars=[row])
    return eqns


def _affine(a: Atom, producer: dict[Var, Eqn]) -> _Affine | None:
    """What an array of evenly spaced integers holds; None if it holds anything else."""
    e = producer.get(a) if isinstance(a, Var) else None
    if e is None or e.outvars[0].aval.dtype != INT64 or not e.outvars[0].aval.shape:
        return None
    shape, params = e.outvars[0].aval.shape, e.params
    if e.primitive is iota_p:
        return _Affine(None, 0, tuple([int(d == params["dimension"]) for d in range(len(shape))]))
    if e.primitive in (add_p, sub_p, mul_p):
        x, y = e.invars
        if e.primitive is not sub_p and not x.aval.shape:
            x, y = y, x
        return None if y.aval.shape else _with_number(e.primitive, _affine(x, producer), y)
    source = _affine(e.invars[0], producer) if e.primitive in (slice_p, reshape_p) else None
    if source is None:
        return None
    if e.primitive is slice_p:
        start = source.start + sum(map(mul, source.steps, params["start_indices"]))
        return source._replace(start=start, steps=tuple(map(mul, source.steps, params["strides"])))
    if len(source.steps) > 1:
        return None
    return source._replace(steps=tuple([source.steps[0] * prod(shape[d + 1 :]) for d in range(len(shape))]))


def _with_number(op: Primitive, x: _Affine | None, y: Atom) -> _Affine | None:
    """Evenly spaced integers, combined with a number."""
    if x is None or isinstance(y, Var):
        return x._replace(number=y) if x and isinstance(y, Var) and op is add_p and x.number is None else None
    n = int(y.value)
    if op is not mul_p:
        return x._replace(start=x.start + (n if op is add_p else -n))
    return None if x.number is not None else _Affine(None, x.start * n, tuple([s * n for s in x.steps]))


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
