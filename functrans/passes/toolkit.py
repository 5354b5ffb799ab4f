"""Passes over jaxprs, each written once: evaluate, inline, eliminate dead code, lift constants, slice.

A pass never changes a jaxpr. It returns a new one with the same name, counters and source lines, or the jaxpr itself if
nothing changes. To write your own pass, combine these functions with `Jaxpr.replace` and `Eqn.replace`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, MutableMapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ..core.aval import Aval, aval_of
from ..core.ir import Atom, Eqn, Jaxpr, Literal, Var, has_subjaxprs, subjaxprs
from ..core.primitive import Primitive
from ..core.trace import Tracer
from ..core.values import Params
from ..errors.source import Source, user_source
from ..runtime.config import config
from ..runtime.passes import NARROWING

# --- construction -------------------------------------------------------------------------------------------


def new_equation(prim: Primitive, invars: Sequence[Atom], params: Params, source: Source | None) -> Eqn:
    """An equation with new output variables, whose types follow from the primitive's abstract rule."""
    out = prim.result_avals([a.aval for a in invars], params)
    outvars = [Var(a) for a in out] if prim.multiple_results else [Var(out)]
    return Eqn(prim, invars, outvars, params, source)


def single_equation(
    prim: Primitive,
    avals: Sequence[Aval],
    params: Params,
    *,
    name: str | None = None,
    stats: Any = None,
) -> Jaxpr:
    """The jaxpr of one equation, with the user's line, from its operands to its results."""
    invars = [Var(a) for a in avals]
    eqn = new_equation(prim, invars, params, user_source())
    return Jaxpr(invars, [eqn], eqn.outvars, name=name or prim.name, stats=stats)


def equation_key(eqn: Eqn, operands: Iterable[Atom]) -> Any:
    """A key that is equal for equations that compute the same, reading these operands; None if there is none."""
    atoms = tuple([a if isinstance(a, Var) else (repr(a.value), a.aval) for a in operands])
    key = (eqn.primitive, atoms, tuple(sorted(eqn.params.items())), len(eqn.outvars))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def map_subjaxprs(params: Params, change: Callable[[Jaxpr], Jaxpr]) -> dict[str, Any]:
    """Parameters with each jaxpr `j` among them replaced by ``change(j)``; the same object if nothing changes."""
    if not has_subjaxprs(params):
        return params
    same = True

    def changed(value: Any) -> Any:
        nonlocal same
        if isinstance(value, Jaxpr):
            other = change(value)
            same = same and other is value
            return other
        return tuple(map(changed, value)) if isinstance(value, tuple) else value

    mapped = {k: changed(v) for k, v in params.items()}
    return params if same else mapped


# --- slices and dead code -----------------------------------------------------------------------------------


class Operation(Protocol):
    """An operation that slices work on: an `Eqn`, or an entry of a linear tape."""

    @property
    def invars(self) -> Iterable[Any]:
        """The operands."""

    @property
    def outvars(self) -> Sequence[Any]:
        """The results."""


Op = TypeVar("Op", bound=Operation)


def backward_slice(ops: Sequence[Op], targets: Iterable[Any], stored: Collection[Any] = ()) -> list[Op]:
    """The operations that compute `targets`, in order; values in `stored` are known."""
    needed = {a for a in targets if a not in stored}
    live = []
    for op in reversed(ops):
        if not needed.isdisjoint(op.outvars):
            live.append(op)
            needed.update([a for a in op.invars if a not in stored] if stored else op.invars)
    return live[::-1]


def forward_slice(ops: Iterable[Operation], variables: Iterable[Any]) -> set[Any]:
    """`variables`, and everything computed from them."""
    reached = set(variables)
    for op in ops:
        if not reached.isdisjoint(op.invars):
            reached.update(op.outvars)
    return reached


def depending(jaxpr: Jaxpr, inputs: Sequence[bool]) -> list[bool]:
    """Which outputs may depend on the inputs in a mask, or on the lane of a batch in which they are computed."""
    reached: set[Any] = {v for v, is_in in zip(jaxpr.invars, inputs) if is_in}
    for eqn in jaxpr.eqns:
        if _differs(eqn) or not reached.isdisjoint(eqn.invars):
            reached.update(eqn.outvars)
    return [v in reached for v in jaxpr.outvars]


def _differs(eqn: Eqn) -> bool:
    """Whether an equation may have other results in each lane, though its operands are the same."""
    if eqn.primitive.each_lane or eqn.primitive.effects(**eqn.params):
        return True
    return any(_differs(inner) for jaxpr in subjaxprs(eqn.params) for inner in jaxpr.eqns)


def live_equations(
    eqns: Sequence[Eqn],
    outvars: Iterable[Atom],
    narrow: Callable[[Eqn, Collection[Atom]], Eqn] | None = None,
) -> list[Eqn]:
    """The equations that the outputs need, and those with an effect.

    Parameters
    ----------
    eqns : sequence of Eqn
    outvars : iterable of Var or Literal
    narrow : callable, optional
        ``narrow(eqn, needed) -> eqn`` may replace an equation by a cheaper one that computes only those of its results
        that are in `needed`.
    """
    needed = set(outvars)
    live = []
    for eqn in reversed(eqns):
        if not needed.isdisjoint(eqn.outvars) or not eqn.effects.removable:
            if narrow is not None:
                eqn = narrow(eqn, needed)
            live.append(eqn)
            needed.update(eqn.invars)
    return live[::-1]


def narrowed(eqn: Eqn, needed: Collection[Atom], *, strict: bool) -> Eqn:
    """The equation, or a cheaper one for only its `needed` outputs (see `Primitive.narrow`)."""
    rule = eqn.primitive.narrow if config.runs(NARROWING) else None
    return (rule(eqn, needed, strict) if rule is not None else None) or eqn


def eliminate_dead_code(jaxpr: Jaxpr, outvars: Sequence[Atom] | None = None) -> Jaxpr:
    """The jaxpr that computes `outvars` (by default its outputs), without dead equations and unused constants."""
    outvars = jaxpr.outvars if outvars is None else outvars
    eqns = live_equations(jaxpr.eqns, outvars)
    return drop_unused_constants(jaxpr.replace(eqns=eqns, outvars=outvars))


def variables_read(eqns: Iterable[Eqn], outvars: Iterable[Atom] = ()) -> dict[Var, None]:
    """The variables that equations and outputs read, in the order of their first use."""
    read = dict.fromkeys(a for e in eqns for a in e.invars if type(a) is Var)
    read.update(dict.fromkeys(a for a in outvars if type(a) is Var))
    return read


def extract(jaxpr: Jaxpr, eqns: Sequence[Eqn], outvars: Sequence[Atom]) -> Jaxpr:
    """Some equations of a jaxpr as a separate jaxpr; its inputs are what they read and do not define."""
    defined = {v for e in eqns for v in e.outvars}
    invars = [v for v in variables_read(eqns) if v not in defined]
    return jaxpr.replace(invars=invars, eqns=eqns, outvars=outvars, constants=())


def drop_unused_constants(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr without the constants that nothing reads."""
    if not jaxpr.constvars:
        return jaxpr
    read = variables_read(jaxpr.eqns, jaxpr.outvars)
    return jaxpr.replace(constants=[(v, c) for v, c in jaxpr.constants if v in read])


# --- substitution -------------------------------------------------------------------------------------------


def substitute(eqns: Iterable[Eqn], env: MutableMapping[Any, Atom]) -> list[Eqn]:
    """The equations with operands replaced according to `env`."""
    return [_reading(e, env) for e in eqns]


def _reading(eqn: Eqn, env: MutableMapping[Any, Atom]) -> Eqn:
    invars = [env.get(a, a) for a in eqn.invars]
    return eqn if all(a is b for a, b in zip(invars, eqn.invars)) else eqn.replace(invars=invars)


def inline(jaxpr: Jaxpr, body_of: Callable[[Eqn], Jaxpr | None]) -> Jaxpr:
    """The jaxpr with equations replaced by bodies, including equations inside these bodies.

    Parameters
    ----------
    jaxpr : Jaxpr
    body_of : callable
        The jaxpr from an equation's operands to its results; None for an equation to keep.

    Returns
    -------
    Jaxpr
        One constant per array, by identity. The jaxpr itself if there is nothing to inline or merge.
    """
    bodies = [body_of(e) for e in jaxpr.eqns]
    known = {id(c): v for v, c in jaxpr.constants}
    if not any(bodies) and len(known) == len(jaxpr.consts):
        return jaxpr
    constants: dict[int, tuple[Var, Any]] = {}
    eqns: list[Eqn] = []
    outvars = _write(jaxpr, bodies, {}, body_of, constants, eqns, fresh=False)
    return jaxpr.replace(eqns=eqns, outvars=outvars, constants=list(constants.values()))


# Not inside `inline`: a closure that calls itself keeps the constants alive until the next garbage collection.
def _write(
    inner: Jaxpr,
    bodies: Sequence[Jaxpr | None],
    env: dict[Atom, Atom],
    body_of: Callable[[Eqn], Jaxpr | None],
    constants: dict[int, tuple[Var, Any]],
    eqns: list[Eqn],
    fresh: bool,
) -> list[Atom]:
    """Append the equations of a jaxpr and of its bodies; returns the atoms of its outputs."""
    for v, c in inner.constants:
        env[v] = constants.setdefault(id(c), (Var(v.aval) if fresh else v, c))[0]
    for eqn, body in zip(inner.eqns, bodies):
        eqn = _reading(eqn, env)
        if body is not None:
            operands: dict[Atom, Atom] = dict(zip(body.invars, eqn.invars))
            inside = [body_of(e) for e in body.eqns]
            results = _write(body, inside, operands, body_of, constants, eqns, fresh=True)
            env.update(zip(eqn.outvars, results))
            continue
        if fresh:  # a body may be inlined twice
            outvars = [Var(v.aval) for v in eqn.outvars]
            env.update(zip(eqn.outvars, outvars))
            eqn = eqn.replace(outvars=outvars)
        eqns.append(eqn)
    return [env.get(a, a) for a in inner.outvars]


def constants_to_literals(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with captured arrays of rank 0 turned into literals."""
    numbers: dict[Any, Atom] = {
        v: Literal(c[()] if isinstance(c, np.ndarray) else c)
        for v, c in jaxpr.constants
        if not v.aval.shape and isinstance(c, np.ndarray | np.generic | int | float | complex)
    }
    if not numbers:
        return jaxpr
    return jaxpr.replace(
        eqns=substitute(jaxpr.eqns, numbers),
        outvars=[numbers.get(a, a) for a in jaxpr.outvars],
        constants=[(v, c) for v, c in jaxpr.constants if v not in numbers],
    )


# --- constants as inputs ------------------------------------------------------------------------------------


def lift_tracers(jaxpr: Jaxpr) -> tuple[Jaxpr, tuple[Any, ...]]:
    """Make captured values of enclosing traces leading inputs, and return them too; arrays stay constants."""
    traced = [(v, c) for v, c in jaxpr.constants if isinstance(c, Tracer)]
    if not traced:
        return jaxpr, ()
    remaining = [(v, c) for v, c in jaxpr.constants if not isinstance(c, Tracer)]
    lifted = jaxpr.replace(invars=[*[v for v, _ in traced], *jaxpr.invars], constants=remaining)
    return lifted, tuple([c for _, c in traced])


def lift_constants(jaxpr: Jaxpr) -> tuple[Jaxpr, tuple[Any, ...]]:
    """Make all constants, including those of calls inside, leading inputs; returns their values too. Cached on it."""
    return jaxpr.derive("lifted constants", lambda: _lift_constants(jaxpr))


def _lift_constants(jaxpr: Jaxpr) -> tuple[Jaxpr, tuple[Any, ...]]:
    lifted = {id(c): (v, c) for v, c in jaxpr.constants}
    same: dict[Any, Atom] = {v: lifted[id(c)][0] for v, c in jaxpr.constants}
    eqns = []
    for eqn in substitute(jaxpr.eqns, same):
        if eqn.primitive.is_call:
            inner, values = lift_constants(eqn.params["jaxpr"])
            extra = [lifted.setdefault(id(c), (Var(aval_of(c)), c))[0] for c in values]
            if extra:
                eqn = eqn.replace(invars=[*extra, *eqn.invars], params={**eqn.params, "jaxpr": inner})
        eqns.append(eqn)
    if not lifted:
        return jaxpr, ()
    opened = jaxpr.replace(
        invars=[*[v for v, _ in lifted.values()], *jaxpr.invars],
        eqns=eqns,
        outvars=[same.get(a, a) for a in jaxpr.outvars],
        constants=(),
    )
    return opened, tuple([c for _, c in lifted.values()])
