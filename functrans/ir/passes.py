"""Passes: from a program to a better one, before it is differentiated or compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..arrays.array import read_only_copy
from ..control.bodies.cache import alike
from ..control.bodies.enclosed import Enclosed, enclosed, with_bodies
from ..control.call import call_p
from ..core import (
    Atom,
    Effect,
    Eqn,
    Jaxpr,
    Literal,
    Tracer,
    Var,
    aval_of,
    eval_trace,
    run_quietly,
    tracing,
)
from ..core.evaluation import bind_equation
from ..frontend.checked import checked
from ..lowering.jaxpr.simplify import algebra, shared_key
from ..passes import toolkit
from ..passes.check import check_jaxpr, verified
from ..passes.rewriter import Rewriter

#: How often a pass is repeated at most.
_MOST_ROUNDS = 32


@checked
def verify(jaxpr: Jaxpr) -> None:
    """Check that a program is well formed, and every body in it.

    Each variable is defined once, and before it is used; operands suit their primitives, and results have the types
    that follow; literals are numbers and constants arrays of their types.

    Parameters
    ----------
    jaxpr : Jaxpr

    Raises
    ------
    JaxprError
        The message names the equation and the user's line.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> program = ir.trace(np.sin, np.ones(3))
    >>> ir.verify(program)
    >>> ir.verify(program.replace(eqns=()))
    Traceback (most recent call last):
    ...
    functrans.errors.JaxprTypeError: jaxpr 'sin': output 0: variable Var:f64[3] is used but not defined before...
    """
    check_jaxpr(jaxpr)


@checked
def inline(jaxpr: Jaxpr) -> Jaxpr:
    """The program with the equations of jitted functions in place of calls of them, in bodies too.

    Functions with custom derivative rules and checkpointed functions stay calls.

    Examples
    --------
    >>> import numpy as np, functrans as ft
    >>> from functrans import ir
    >>> print(ir.inline(ir.trace(lambda x: ft.jit(np.sin)(x) + 1.0, np.ones(3))))
    lambda a:f64[3].
      b:f64[3] = sin a
      c:f64[3] = add b 1.0
      return (c,)
    """
    flat = toolkit.inline(jaxpr, lambda e: e.params["jaxpr"] if e.primitive is call_p else None)
    return verified(_in_bodies(flat, inline), "inlining")


@checked
def eliminate_dead_code(jaxpr: Jaxpr) -> Jaxpr:
    """The program without equations whose results nothing needs, in bodies too; those with effects stay.

    Examples
    --------
    >>> from functrans import ir
    >>> b = ir.Builder(1.0)
    >>> unused, used = b.add("sin", b.inputs[0]), b.add("cos", b.inputs[0])
    >>> [e.primitive.name for e in ir.eliminate_dead_code(b.build(used)).eqns]
    ['cos']
    """
    return _settled(jaxpr, _without_dead_code)


def _without_dead_code(jaxpr: Jaxpr) -> Jaxpr:
    narrow = partial(toolkit.narrowed, strict=True)
    live = toolkit.live_equations(jaxpr.eqns, [*jaxpr.outvars, *_acting(jaxpr.eqns)], narrow)
    if len(live) != len(jaxpr.eqns) or any(a is not b for a, b in zip(live, jaxpr.eqns)):
        jaxpr = jaxpr.replace(eqns=live)
    return verified(
        _in_bodies(toolkit.drop_unused_constants(jaxpr), _without_dead_code), "removing dead code"
    )


@checked
def eliminate_common_subexpressions(jaxpr: Jaxpr) -> Jaxpr:
    """The program in which equal equations with equal operands occur once, in bodies too.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> program = ir.trace(lambda x: np.sin(x) + np.sin(x), 1.0)
    >>> [e.primitive.name for e in ir.eliminate_common_subexpressions(program).eqns]
    ['convert_element_type', 'sin', 'add']
    """
    rw = Rewriter().sweep(jaxpr.eqns, key=_shared)
    if rw.env:
        jaxpr = jaxpr.replace(eqns=rw.eqns, outvars=[rw.read(a) for a in jaxpr.outvars])
    return verified(_in_bodies(jaxpr, eliminate_common_subexpressions), "sharing common equations")


@checked
def simplify(jaxpr: Jaxpr) -> Jaxpr:
    """The program after the algebra of the compiler, which is exact in floating-point arithmetic.

    Calls of jitted functions are inlined, equal equations shared, dead ones removed, in bodies too. What has a meaning
    for derivatives stays: custom rules, `stop_gradient`, hooks, checkpoints and their names.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> print(ir.simplify(ir.trace(lambda x: (-(-x.T)).T * 1.0, np.ones((3, 2)))))
    lambda a:f64[3,2].
      return (a,)
    """
    flat = inline(toolkit.constants_to_literals(jaxpr))
    return _settled(flat, lambda program: _without_dead_code(_simplified(program)))


def _simplified(jaxpr: Jaxpr) -> Jaxpr:
    jaxpr = _in_bodies(jaxpr, _simplified)
    rw = Rewriter().sweep(jaxpr.eqns, partial(algebra, marks=True), _shared)
    if not rw.env and len(rw.eqns) == len(jaxpr.eqns) and all(a is b for a, b in zip(rw.eqns, jaxpr.eqns)):
        return jaxpr
    return verified(
        jaxpr.replace(eqns=rw.eqns, outvars=[rw.read(a) for a in jaxpr.outvars]), "simplification"
    )


def _settled(jaxpr: Jaxpr, change: Callable[[Jaxpr], Jaxpr]) -> Jaxpr:
    """The program after a pass that is repeated as long as it changes something: one change makes room for others."""
    for _ in range(_MOST_ROUNDS):
        new = change(jaxpr)
        if new is jaxpr or alike(new, jaxpr):
            break
        jaxpr = new
    return jaxpr


def _shared(eqn: Eqn) -> Any:
    """A hook on each of two equal values runs for each."""
    return None if Effect.HOOK in eqn.effects else shared_key(eqn)


def _acting(eqns: Sequence[Eqn]) -> list[Var]:
    return [v for e in eqns if not e.effects.movable for v in e.outvars]


def _in_bodies(jaxpr: Jaxpr, change: Callable[[Jaxpr], Jaxpr]) -> Jaxpr:
    """The program with its bodies changed, whose captured arrays do not change; itself if none does."""
    eqns = [_with_bodies(e, change) for e in jaxpr.eqns]
    return jaxpr if all(a is b for a, b in zip(eqns, jaxpr.eqns)) else jaxpr.replace(eqns=eqns)


def _with_bodies(eqn: Eqn, change: Callable[[Jaxpr], Jaxpr]) -> Eqn:
    inside = enclosed(eqn)
    bodies = [change(b.jaxpr) for b in inside]
    if all(new is old.jaxpr for new, old in zip(bodies, inside)):
        return eqn
    _, params = with_bodies(eqn, eqn.invars, bodies, _no_constants)
    return eqn.replace(params=params)


def _no_constants(constant: Any) -> Any:
    raise AssertionError("a pass gave a body captured arrays")


# --- constants ----------------------------------------------------------------------------------------------


@checked
def fold_constants(jaxpr: Jaxpr, *, max_bytes: int = 1 << 20) -> Jaxpr:
    """The program with everything evaluated that depends on captured arrays and literals alone, in bodies too.

    Numbers become literals, arrays become captured arrays. Equations with effects are not evaluated.

    Parameters
    ----------
    jaxpr : Jaxpr
    max_bytes : int
        Equations with larger results stay.

    Examples
    --------
    >>> import numpy as np, functrans.numpy as fnp
    >>> from functrans import ir
    >>> program = ir.trace(lambda x: x * fnp.sqrt(fnp.arange(4.0) + 1.0).sum(), 1.0)
    >>> print(ir.fold_constants(program))
    lambda a:f64[]*.
      b:f64[] = mul a 6.146264369941973:f64[]
      return (b,)
    """
    folded = _Folding(max_bytes).program(jaxpr, {})
    return verified(folded, "folding constants")


class _Folding:
    """Evaluation of what is known in a program and its bodies."""

    def __init__(self, max_bytes: int):
        self.max_bytes = max_bytes

    def program(self, jaxpr: Jaxpr, inputs: Mapping[Var, Any]) -> Jaxpr:
        """The program, some of whose inputs have known values; what is computed from these is captured."""
        known: dict[Any, Any] = {**dict(jaxpr.constants), **inputs}
        captured: dict[Any, Any] = dict(jaxpr.constants)
        known = {v: c for v, c in known.items() if not isinstance(c, Tracer)}
        places: dict[int, Atom] = {}
        env: dict[Any, Atom] = {v: Literal(_number(c)) for v, c in known.items() if _is_number(v, c)}
        eqns: list[Eqn] = []
        changed = False

        def constant(value: Any) -> Atom:
            """An atom for a value that was computed here."""
            atom = places.get(id(value))
            if atom is None:
                atom = places[id(value)] = Var(aval_of(value))
                captured[atom] = value
            return atom

        for eqn in jaxpr.eqns:
            values = self.values(eqn, known)
            outs = None if values is None else self.outputs(eqn, values)
            if outs is None:
                eqns.append(self.with_bodies(eqn, known, constant))
                changed = changed or eqns[-1] is not eqn
                continue
            changed = True
            for v, x in zip(eqn.outvars, outs):
                known[v] = x
                if _is_number(v, x):
                    env[v] = Literal(_number(x))
                else:
                    captured[v] = x
        if not changed and not env:
            return jaxpr
        new = jaxpr.replace(
            eqns=toolkit.substitute(eqns, env),
            outvars=[env.get(a, a) for a in jaxpr.outvars],
            constants=[(v, c) for v, c in captured.items() if v not in env],
        )
        return toolkit.drop_unused_constants(new)

    def values(self, eqn: Eqn, known: Mapping[Atom, Any]) -> list[Any] | None:
        """The operands of an equation that can be evaluated; None for another."""
        if eqn.effects is not Effect.NONE or eqn.primitive.each_lane:
            return None
        if sum(v.aval.size * v.aval.dtype.itemsize for v in eqn.outvars) > self.max_bytes:
            return None
        if not all(isinstance(a, Literal) or a in known for a in eqn.invars):
            return None
        return [a.value if isinstance(a, Literal) else known[a] for a in eqn.invars]

    def outputs(self, eqn: Eqn, values: Sequence[Any]) -> list[Any] | None:
        """What an equation computes; None if that is not an array."""
        outs = tracing(eval_trace, run_quietly, lambda: bind_equation(eqn, values))
        if not all(isinstance(x, np.ndarray | np.generic | bool | int | float | complex) for x in outs):
            return None
        return [_as(x, v) for x, v in zip(outs, eqn.outvars)]

    def with_bodies(self, eqn: Eqn, known: Mapping[Atom, Any], constant: Callable[[Any], Atom]) -> Eqn:
        inside = enclosed(eqn)
        bodies = [self.program(b.jaxpr, _known_inputs(b, eqn, known)) for b in inside]
        if all(new is old.jaxpr for new, old in zip(bodies, inside)):
            return eqn
        invars, params = with_bodies(eqn, eqn.invars, bodies, constant)
        return eqn.replace(invars=invars, params=params)


def _known_inputs(body: Enclosed, eqn: Eqn, known: Mapping[Atom, Any]) -> dict[Var, Any]:
    given = zip(body.jaxpr.invars[: body.shared], eqn.invars[body.start :])
    return {
        v: a.value if isinstance(a, Literal) else known[a]
        for v, a in given
        if isinstance(a, Literal) or a in known
    }


def _as(x: Any, v: Var) -> Any:
    """A result as a constant: read only, of the variable's type."""
    if v.aval.weak:
        return x.item() if isinstance(x, np.ndarray | np.generic) else x
    return read_only_copy(np.asarray(x, v.aval.dtype)) if v.aval.shape else np.asarray(x, v.aval.dtype)[()]


def _is_number(v: Var, x: Any) -> bool:
    return not v.aval.shape and isinstance(x, np.ndarray | np.generic | bool | int | float | complex)


def _number(x: Any) -> Any:
    return x[()] if isinstance(x, np.ndarray) else x
