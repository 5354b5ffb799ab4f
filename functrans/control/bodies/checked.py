"""Bodies of loops and branches that return the state of their checks (see `functrans.transforms.checks`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.aval import aval_of
from ...core.evaluation import evaluate
from ...core.ir import Jaxpr
from ...core.values import Value
from ...passes.masks import split
from ...passes.toolkit import lift_constants
from ...primitives.checks import check_p
from ...primitives.elementwise.arithmetic import eq_p
from ...primitives.elementwise.bits import and_p, not_p, or_p
from ...primitives.structure.linear import batched_first
from ...runtime.failures import OneOf
from ...transforms.checks import NONE, CheckedJaxpr, Errors, checked_jaxpr
from ...transforms.stage import stage

#: A jaxpr, and the values of its leading inputs.
Body = tuple[Jaxpr, tuple[Any, ...]]


def all_checks(parts: Sequence[CheckedJaxpr]) -> Errors:
    """The checks of several jaxprs, none of which ran."""
    errors = [p.errors for p in parts]
    joined = Errors(
        NONE, tuple([c for e in errors for c in e.checks]), tuple([v for e in errors for v in e.values])
    )
    return joined.cleared()


def branches_with_state(parts: Sequence[CheckedJaxpr]) -> list[Body]:
    """Branches that all return the state of the checks of all."""

    def body(k: int) -> Body:
        def run(*operands: Value) -> list[Any]:
            outs, own = parts[k].apply(operands)
            before, after = all_checks(parts[:k]), all_checks(parts[k + 1 :])
            return [*outs, *before.then(own).then(after).flat()]

        return lift_constants(stage(run, parts[k].jaxpr.in_avals, parts[k].jaxpr.name))

    return [body(k) for k in range(len(parts))]


def loop_body_with_state(
    body: CheckedJaxpr, num_consts: int, num_carry: int, test: CheckedJaxpr | None = None, num_test: int = 0
) -> Body:
    """A body whose carry begins with the state: that of the first iteration in which a check failed.

    The checks of a loop's condition, which runs after the body, follow those of the body; its constants come first.
    """
    parts = [body] if test is None else [body, test]
    start = all_checks(parts).flat()

    def run(*values: Value) -> list[Any]:
        test_consts, consts, state, rest = split(values, num_test, num_consts, len(start))
        outs, now = body.apply([*consts, *rest])
        if test is not None:
            now = now.then(test.apply([*test_consts, *outs[:num_carry]])[1])
        return [*now.with_flat(state).unless_failed(now).flat(), *outs]

    avals = body.jaxpr.in_avals
    test_avals = test.jaxpr.in_avals[:num_test] if test is not None else []
    states = [aval_of(x).strong() for x in start]
    return lift_constants(
        stage(run, [*test_avals, *avals[:num_consts], *states, *avals[num_consts:]], body.jaxpr.name)
    )


def lane_of(jaxpr: Jaxpr) -> CheckedJaxpr:
    """A jaxpr to be mapped, which also runs for lanes whose errors do not count: see `raise_in`."""
    if jaxpr.effects.may_raise:
        return checked_jaxpr(jaxpr, ("user", "index"))
    return CheckedJaxpr(jaxpr, Errors(), ())


def raise_in(lanes: Any, errors: Errors) -> None:
    """Raise the errors of the lanes in a mask; the state has the lanes' axis in front."""
    if errors.checks:
        ok = or_p.bind(eq_p.bind(errors.code, NONE), not_p.bind(lanes))
        check = OneOf(errors.checks, tuple(map(len, errors.values)), native=True)
        check_p.bind(ok, *errors.flat(), check=check, debug=False)


def raise_lanes(lane: CheckedJaxpr, lanes: Any, state: Sequence[Any], dims: Sequence[int | None]) -> None:
    """The same for the state that a mapped jaxpr returned, with the lanes' axis at `dims`."""
    size = aval_of(lanes).shape[0]
    raise_in(lanes, lane.errors.with_flat([batched_first(size, x, d) for x, d in zip(state, dims)]))


def test_with_state(test: Jaxpr, num_consts: int, start: Errors) -> Jaxpr:
    """The condition of a loop that ends when a check failed."""
    states = [aval_of(x).strong() for x in start.flat()]

    def run(*values: Value) -> list[Any]:
        consts, state, carry = split(values, num_consts, len(states))
        (more,) = evaluate(test, [*consts, *carry])
        return [and_p.bind(more, eq_p.bind(state[0], NONE))]

    avals = test.in_avals
    return stage(run, [*avals[:num_consts], *states, *avals[num_consts:]], test.name)
