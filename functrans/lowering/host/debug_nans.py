"""Locate the origin of a NaN in a compiled function's results: evaluate the jaxpr again, and trace the result back.

Only values that contribute to the result count: a NaN that ``where`` discards is not an error. With
``config.debug_infs``, the same for infinities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...control.callbacks.callback import Replay, made_before
from ...core.debug_nans import describe, fault_in, fault_of, only_moves, title
from ...core.evaluation import run_equations
from ...core.ir import Atom, Eqn, Jaxpr, Literal, has_subjaxprs
from ...errors import InfError, NaNError
from ...runtime.config import config
from ...runtime.context import run_quietly, run_with
from .explain_failure import call_host, inputs


def any_fault(outs: Sequence[Any]) -> bool:
    """Whether one of the results contains a NaN or an infinity that is an error now."""
    return any(fault_in(x) for x in outs)


def look(
    jaxpr: Jaxpr,
    outs: Sequence[Any],
    arrays: Sequence[Any],
    known: Mapping[Eqn, Sequence[Any]],
    made: Sequence[Any] = (),
) -> None:
    """Raise the error for results that contain a NaN or an infinity.

    Parameters
    ----------
    jaxpr : Jaxpr
        Simplified.
    outs, arrays : sequence
        Results and arguments.
    known, made
        The results of this run's host calls: those between kernels by equation, those inside kernels in order.

    Notes
    -----
    Nothing is raised if an argument contained the NaN, and the program only moved it, as in ``x[::-1]``.
    """
    env, calls_left = config.patch(debug_nans=False, debug_infs=False)(_evaluated)(jaxpr, arrays, known, made)
    for i, (a, x) in enumerate(zip(jaxpr.outvars, outs)):
        if not fault_in(x):
            continue
        if not fault_in(_read(env, a)):
            fault = fault_in(x)
            raise (NaNError if fault == "NaN" else InfError)(
                f"{jaxpr.name} returned {fault} in output {i}{describe(x, fault)}; evaluated again, operation by "
                "operation, it does not"
            )
        eqn = _origin(jaxpr, env, a)
        if eqn is not None:
            rest = made[len(made) - calls_left.get(eqn, 0) :]
            raise _error(eqn, env, rest)


def _read(env: Mapping[Atom, Any], a: Atom) -> Any:
    return a.value if isinstance(a, Literal) else env[a]


def _evaluated(
    jaxpr: Jaxpr, arrays: Sequence[Any], known: Mapping[Eqn, Sequence[Any]], made: Sequence[Any]
) -> tuple[dict[Atom, Any], dict[Eqn, int]]:
    """The values of all variables; and for each equation the number of calls still to replay before it."""
    env: dict[Atom, Any] = dict(jaxpr.constants)
    env.update(zip(jaxpr.invars, inputs(jaxpr, arrays)))
    calls_left = {}
    replay = Replay(made)

    def visit(eqn: Eqn, args: list[Any]) -> Sequence[Any]:
        calls_left[eqn] = len(replay)
        return known[eqn] if eqn in known else _computed(eqn, args, bool(made))

    run_with(made_before, replay, run_equations, jaxpr.eqns, env, visit)
    return env, calls_left


def _computed(eqn: Eqn, args: Sequence[Any], replays: bool) -> Sequence[Any]:
    """One equation; loops run as kernels, unless these would repeat host calls."""
    if replays or not has_subjaxprs(eqn.params):
        return call_host(eqn, args)
    return run_quietly(partial(eqn.primitive.impl, *args, **eqn.params))


def _origin(jaxpr: Jaxpr, env: Mapping[Atom, Any], a: Atom) -> Eqn | None:
    """The first equation, going back from a variable, that computes with or to NaN; None if all only move it."""
    producer = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    origin = None
    at: Atom | None = a
    while at is not None and not isinstance(at, Literal) and at in producer:
        eqn = producer[at]
        if not only_moves(eqn.primitive):
            origin = eqn
        at = next((b for b in eqn.invars if fault_in(_read(env, b))), None)
    return origin


def _error(eqn: Eqn, env: Mapping[Atom, Any], made: Sequence[Any]) -> NaNError | InfError:
    """The error for an equation; for a loop or a branch, the error for the operation in its body."""
    args = [_read(env, a) for a in eqn.invars]
    if has_subjaxprs(eqn.params):
        try:  # as Python, which checks each operation
            run_with(made_before, Replay(made), call_host, eqn, args)
        except (NaNError, InfError) as inner:
            return inner
    error = fault_of(title(eqn.primitive, eqn.params), [env[v] for v in eqn.outvars], args, eqn.source)
    assert error is not None
    return error
