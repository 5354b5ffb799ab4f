"""``while_loop``: a loop that runs while a condition on its carry holds.

Its body is a `scan` body without input rows; output rows (the residuals of its linearization) go to tapes. The results
are the last carry, the trip count and the tapes. So its linearization is this loop, writing tapes, and a `scan` of the
same trip count that reads them; derivatives of any order follow from `scan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import (
    INT64,
    Aval,
    Block,
    Jaxpr,
    Primitive,
    TapeAval,
    Var,
    aval_of,
    subjaxprs,
)
from ..core.evaluation import evaluate
from ..core.values import ArrayLike, Param, Rule, Tangent, Value
from ..passes.indices.carry_ranges import claimed, of_while
from ..passes.indices.int_ranges import UNKNOWN, Facts
from ..passes.masks import chosen, chosen_terms, nested, perturbed, split, with_zeros
from ..passes.toolkit import depending, lift_constants
from ..primitives.elementwise.arithmetic import convert
from ..primitives.reductions.reduce import reduce_or_p
from ..primitives.structure.linear import add_p, batched_first, instantiate, zeros
from ..primitives.tape import write_tape
from ..runtime.config import config
from ..runtime.module_getattr import lazy_import
from ..transforms.batch import batch_jaxpr, mentions_axis, shared_results
from ..transforms.stage import stage
from .bodies.building import JaxprBuilder, fixpoint, handed_on, invariant_part
from .bodies.cache import derive_from_all
from .bodies.run import computed, run_compiled
from .bodies.transforms import batched_body, carried_masks, carry_mask, chosen_lanes, pushed_body
from .call import effects_of_bodies
from .loops.scan_lanes import no_common_tape
from .loops.vectorized_while import in_step
from .loops.while_kernel import carry_places, kernel, narrow
from .scan import over_lanes, push, scan_p

checking = lazy_import("functrans.control.bodies.checked")
loop_halves = lazy_import("functrans.control.residuals.halves")
rewinding = lazy_import("functrans.control.residuals.rewinding")
varying = lazy_import("functrans.control.ranks.varying_bodies")


def bind(
    cond_jaxpr: Jaxpr,
    cond_consts: Sequence[Any],
    body_jaxpr: Jaxpr,
    body_consts: Sequence[Any],
    carry: Sequence[Any],
) -> list[Any]:
    """Bind a while loop; the loop-invariant part of its body is computed before it.

    Parameters
    ----------
    cond_jaxpr : Jaxpr
        From (constants, carry) to a boolean, without captured arrays.
    body_jaxpr : Jaxpr
        From (constants, carry) to carry.
    cond_consts, body_consts, carry : sequences of values

    Returns
    -------
    list
        The last carry, the trip count, the tapes.
    """
    known = len(body_consts)
    outside, inside, _ = body_jaxpr.derive(
        ("invariants", known), lambda: invariant_part(body_jaxpr, known, ())
    )
    if outside is not None:
        body_consts = [*body_consts, *evaluate(outside, body_consts)]
    return while_p.bind(
        *cond_consts,
        *body_consts,
        *carry,
        cond_jaxpr=cond_jaxpr,
        body_jaxpr=inside,
        num_cond=len(cond_consts),
        num_consts=len(body_consts),
    )


def _abstract(
    *avals: Aval, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, num_cond: int, num_consts: int
) -> tuple[Aval, ...]:
    carry, rows = split([a.strong() for a in body_jaxpr.out_avals], len(avals) - num_cond - num_consts)
    return (*carry, Aval((), INT64), *[TapeAval(a) for a in rows])


# --- evaluation ---------------------------------------------------------------------------------------------


def _impl(
    *args: ArrayLike, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, num_cond: int, num_consts: int
) -> list[Any]:
    if not config.disable_jit:
        params = {
            "cond_jaxpr": cond_jaxpr,
            "body_jaxpr": body_jaxpr,
            "num_cond": num_cond,
            "num_consts": num_consts,
        }
        return run_compiled(while_p, args, params, body_jaxpr)
    cond_consts, consts, carry = split(args, num_cond, num_consts)
    taped: list[list[Any]] = []
    while computed(cond_jaxpr, [*cond_consts, *carry])[0]:
        outs = computed(body_jaxpr, [*consts, *carry])
        carry, row = outs[: len(carry)], outs[len(carry) :]
        taped.append(row)
    carry_avals, avals = split([a.strong() for a in body_jaxpr.out_avals], len(carry))
    last = [np.array(x, a.dtype) for x, a in zip(carry, carry_avals)]
    columns = [[row[j] for row in taped] for j in range(len(avals))]
    return [*last, np.int64(len(taped)), *[write_tape(a, column) for a, column in zip(avals, columns)]]


# --- derivatives --------------------------------------------------------------------------------------------


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param
) -> tuple[list[Any], list[Tangent]]:
    outs, series = _jet(primals, [[t] for t in tangents], **params)
    return outs, [t for (t,) in series]


def _jet(
    primals: Sequence[Value],
    series: Sequence[Sequence[Tangent]],
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    num_cond: int,
    num_consts: int,
) -> tuple[list[Any], list[list[Any]]]:
    cond_consts, consts, carry = split(primals, num_cond, num_consts)
    _, own = split(series, num_cond)
    sizes = num_consts, len(carry)
    masks = carried_masks(body_jaxpr, own, *sizes)
    body, captured, nonzero = pushed_body(body_jaxpr, masks, sizes)
    groups = zip(split(own, num_consts), split(masks, num_consts))
    s_consts, s_carry = [list(map(instantiate, chosen_terms(s, m))) for s, m in groups]
    results = bind(
        _with_tangents(cond_jaxpr, [aval_of(t).strong() for t in s_carry]),
        cond_consts,
        body,
        [*captured, *consts, *s_consts],
        [*carry, *s_carry],
    )
    count = len(body_jaxpr.outvars) - len(carry)
    last, s_last, number, rows, s_rows = split(results, len(carry), len(s_carry), 1, count)
    outs = [*last, *number, *rows]
    has = (*nonzero[: len(carry)], (False,) * len(own[0]), *nonzero[len(carry) :])
    return outs, nested(has, [*s_last, *s_rows], outs)


def _checked(
    check: Rule,
    args: Sequence[Value],
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    num_cond: int,
    num_consts: int,
) -> tuple[list[Any], Any]:
    """The loop ends when a check fails; those of its condition run before it, and after each iteration."""
    test, inner = check(cond_jaxpr), check(body_jaxpr)
    cond_consts, consts, carry = split(args, num_cond, num_consts)
    start = checking.all_checks([inner, test])
    if not start.checks:
        outs = bind(test.quiet, cond_consts, inner.quiet, consts, carry)
        return outs, start

    def build() -> tuple[Any, ...]:
        state_test, captured = lift_constants(checking.test_with_state(test.quiet, num_cond, start))
        body = checking.loop_body_with_state(inner, num_consts, len(carry), test, num_cond)
        return state_test, captured, *body

    key = ("checked while", test.jaxpr, inner.jaxpr, num_cond, num_consts)
    state_test, test_captured, body, captured = derive_from_all([cond_jaxpr, body_jaxpr], key, build)
    before = checking.all_checks([inner]).then(test.apply([*cond_consts, *carry])[1])
    results = bind(
        state_test,
        [*test_captured, *cond_consts],
        body,
        [*captured, *cond_consts, *consts],
        [*before.flat(), *carry],
    )
    state, outs = split(results, len(start.flat()))
    return outs, start.with_flat(state)


def _with_tangents(cond_jaxpr: Jaxpr, avals: Sequence[Aval]) -> Jaxpr:
    """The condition, for a carry with tangents, which it ignores."""

    def build() -> Jaxpr:
        return cond_jaxpr.replace(invars=[*cond_jaxpr.invars, *[Var(a) for a in avals]])

    return cond_jaxpr.derive(("with tangents", *avals), build)


def _linearize(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    num_cond: int,
    num_consts: int,
) -> tuple[list[Any], list[Any]]:
    cond_consts, consts, carry = split(primals, num_cond, num_consts)
    sizes = num_consts, len(carry)
    mask = carry_mask(body_jaxpr, perturbed(tangents[num_cond:]), *sizes, reverse=True)
    unknown = [Facts()] * num_cond
    limits = claimed(cond_jaxpr, unknown, [UNKNOWN] * len(carry))
    own = primals[num_cond:]
    halves = loop_halves.halves_of(body_jaxpr, mask, sizes, own, length=None, limits=tuple(limits))
    consts = [*halves.captured[0], *consts]
    new = [] if halves.outside is None else evaluate(halves.outside, consts)
    consts = chosen([*consts, *new], halves.read)
    results = while_p.bind(
        *cond_consts,
        *consts,
        *carry,
        cond_jaxpr=cond_jaxpr,
        body_jaxpr=halves.primal,
        num_cond=num_cond,
        num_consts=len(consts),
    )
    last, (number,), tapes = split(results, len(carry), 1)
    outs = results[: len(body_jaxpr.outvars) + 1]
    of = loop_halves.Origin
    values = {of.OPERAND: own, of.INVARIANT: new, of.RESULT: [*last, *tapes]}
    active = [
        instantiate(t, aval_of(x)) if m else None
        for x, t, m in zip(primals[num_cond:], tangents[num_cond:], mask)
    ]
    groups = [chosen(t, m) for t, m in zip(split(active, num_consts), split(mask, num_consts))]
    pushed = push(halves, values, [*groups, []], [number], length=None, reverse=False, unroll=1)
    has = [*halves.nonzero[: len(carry)], False, *halves.nonzero[len(carry) :]]
    return outs, with_zeros(has, pushed, outs)


def _batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], **params: Param
) -> tuple[list[Any], list[int | None]]:
    if mentions_axis(size, list(subjaxprs(params))):
        return _together(size, args, dims, **params)
    outs, _ = over_lanes(while_p, size, args, dims, params)
    return _without_axis(size, outs, args, dims, **params)


def _without_axis(
    size: int,
    outs: list[Value],
    args: Sequence[Value],
    dims: Sequence[int | None],
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    num_cond: int,
    num_consts: int,
) -> tuple[list[Any], list[int | None]]:
    """The results of a loop over lanes, without a batch axis where they cannot differ: what the body hands on as it is,
    and, if all lanes take the same steps, what does not depend on values that differ.
    """
    init = args[num_cond + num_consts :]
    of_cond, consts, start = split([d is not None for d in dims], num_cond, num_consts)
    mask = fixpoint(start, lambda now: depending(body_jaxpr, (*consts, *now))[: len(start)])
    out_dims: list[int | None] = [0] * len(outs)
    if depending(cond_jaxpr, (*of_cond, *mask))[0]:
        outs = list(outs)
    else:
        outs, out_dims = shared_results(size, outs, [not m for m in mask] + [False] * (len(outs) - len(mask)))
    for i, (x, mapped, place) in enumerate(zip(init, start, handed_on(body_jaxpr))):
        if not mapped and place == num_consts + i:
            outs[i], out_dims[i] = x, None
    return outs, out_dims


def _together(
    size: int,
    args: Sequence[Value],
    dims: Sequence[int | None],
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    num_cond: int,
    num_consts: int,
) -> tuple[list[Any], list[int | None]]:
    """One loop for all lanes, whose collectives need each other: it runs while any lane continues. Lanes that do not
    keep their values, but take part in collectives.
    """
    cond_args, consts, carry = split(list(zip(args, dims)), num_cond, num_consts)
    if len(body_jaxpr.outvars) > len(carry):
        raise no_common_tape()
    sizes = num_consts, len(carry)
    starts = [d for _, d in carry]
    of_cond = (*[d for _, d in cond_args],)
    varied = True
    while True:
        key = (*[d for _, d in consts], *[None if d is None else 0 for d in starts])
        body, captured, mask, _ = batched_body(body_jaxpr, size, key, sizes)
        test, (own,) = batch_jaxpr(cond_jaxpr, size, (*of_cond, *[0 if m else None for m in mask]))
        varied = own is not None
        if not varied or all(mask):
            break
        starts = [0] * len(starts)  # what a lane keeps differs between lanes
    lane = checking.lane_of(body_jaxpr) if varied else None
    state_dims: Sequence[int | None] = ()
    if lane is not None:
        body, captured, mask, state_dims = batched_body(lane.jaxpr, size, key, sizes)
    test, test_consts = lift_constants(test)
    cond_consts = [*test_consts, *[x for x, _ in cond_args]]
    init = [batched_first(size, x, d) if m else x for (x, d), m in zip(carry, mask)]
    body_consts = [*captured, *[x for x, _ in consts]]
    if not varied:
        results = bind(test, cond_consts, body, body_consts, init)
        return results, [*[0 if m else None for m in mask], None]
    counts = zeros(Aval((size,), INT64))
    body, body_consts = _where_going(test, cond_consts, body, body_consts, lane, state_dims)
    test = _with_tangents(_any_going(test), [aval_of(counts)])
    return bind(test, cond_consts, body, body_consts, [*init, counts])[:-1], [0] * (len(init) + 1)


def _any_going(test: Jaxpr) -> Jaxpr:
    """The condition of a loop over all lanes: whether any of them continues."""

    def build() -> Jaxpr:
        new = JaxprBuilder(test)
        return new.finish("vmap of while", [new.bind(reduce_or_p, test.outvars[0], axes=(0,))])

    return test.derive("any going", build)


def _where_going(
    test: Jaxpr,
    cond_consts: Sequence[Any],
    body: Jaxpr,
    consts: Sequence[Value],
    lane: Any,
    state_dims: Sequence[int | None],
) -> tuple[Jaxpr, list[Any]]:
    """The body of a loop over all lanes, which keep their values, and have no errors, once their condition is false.
    The last carry counts the iterations of each lane.
    """

    def step(*values: Value) -> list[Any]:
        of_cond, of_body, carry = split(values[:-1], len(cond_consts), len(consts))
        (going,) = evaluate(test, [*of_cond, *carry])
        outs, state = split(evaluate(body, [*of_body, *carry]), len(carry))
        checking.raise_lanes(lane, going, state, state_dims)
        counts = add_p.bind(values[-1], convert(going, INT64))
        return [*[chosen_lanes(going, new, old) for new, old in zip(outs, carry)], counts]

    def build() -> Jaxpr:
        of_cond = test.in_avals[: len(cond_consts)]
        counts = Aval(test.out_avals[0].shape, INT64)
        return stage(step, [*of_cond, *body.in_avals, counts], "vmap of while", body.stats)

    joined = derive_from_all([body, test], ("where going", len(cond_consts), len(consts)), build)
    return joined, [*cond_consts, *consts]


while_p: Primitive = Primitive(
    "while",
    _abstract,
    _impl,
    jvp=_jvp,
    linearize=_linearize,
    rewind=lambda *args: rewinding.over_while(scan_p, *args),
    jet=_jet,
    checked=_checked,
    batch=_batch,
    kernel=Block(kernel, reuse=carry_places, over_lanes=in_step, ranges=of_while),
    effects=effects_of_bodies,
    multiple_results=True,
    narrow=narrow,
    vary=lambda axes, params: varying.of_while(axes, **params),
)
