"""``scan``: a loop with a known trip count over the rows of arrays.

The operands are constants (the same in each iteration), the carry, and rows (arrays whose first axis is the loop's);
the results are the last carry and the stacked rows that the body returns::

    consts, carry, rows[i] --body--> carry, rows'[i]

If the trip count is known only at run time, `length` is None, the first operand is the trip count, and stacked rows are
tapes (see `core.tape`). Consecutive integers need neither an array nor a tape: the operand of such rows is the first of
them, a number.

Its linearization consists of two scans: one that also stacks the residuals, and a linear one over them. Loop-invariant
residuals are computed once, and are constants of the second scan. The transpose runs in the other direction; cotangents
of constants become part of the carry, since every iteration adds to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import (
    Aval,
    Block,
    Jaxpr,
    Linear,
    Primitive,
    TapeAval,
    Zero,
    aval_of,
    subjaxprs,
)
from ..core.evaluation import evaluate
from ..core.values import ArrayLike, Param, Params, PyTree, Rule, Tangent, Value
from ..passes.indices.carry_ranges import of_scan
from ..passes.masks import chosen, chosen_terms, nested, perturbed, scatter, split, with_zeros
from ..passes.toolkit import single_equation, variables_read
from ..primitives.reductions.reduce import reduce_max_p
from ..primitives.structure.linear import add_p, batched_first, instantiate, move_axis
from ..runtime.config import config
from ..runtime.module_getattr import lazy_import
from ..transforms.batch import mentions_axis
from ..transforms.stage import stage
from .bodies.building import invariant_part
from .bodies.cache import derive_from_all
from .bodies.run import run_compiled
from .bodies.transforms import (
    BatchedBody,
    batched_body,
    carried_masks,
    carry_mask,
    pushed_body,
    transposed_body,
)
from .call import call_p, effects_of_bodies
from .loops.scan_lanes import body_in_step, carrying_counters, copies_lanes, no_common_tape
from .loops.scan_loops import carry_places, head_of, in_python, kernel, narrow
from .residuals.carried_values import carry_values

if TYPE_CHECKING:
    from .residuals.halves import Halves, Origin, ResidualPlace

checking = lazy_import("functrans.control.bodies.checked")
loop_halves = lazy_import("functrans.control.residuals.halves")
rewinding = lazy_import("functrans.control.residuals.rewinding")
varying = lazy_import("functrans.control.ranks.varying_bodies")


def bind(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    carry: Sequence[Any],
    rows: Sequence[Any],
    *,
    length: int | None,
    count: ArrayLike = None,
    reverse: bool = False,
    unroll: int = 1,
) -> list[Any]:
    """Bind a scan; the loop-invariant part of the body is computed before it.

    Parameters
    ----------
    jaxpr : Jaxpr
        From (constants, carry, row) to (carry, row), without captured arrays.
    consts, carry, rows : sequences of values
    length : int or None
        The trip count; None if it is `count`, and rows are tapes.
    count : scalar of int64, optional
    reverse : bool
        Whether to go from the last row to the first.
    unroll : int
        How many iterations the kernel's loop body contains.

    Returns
    -------
    list
        The last carry, then the stacked rows.
    """
    known = len(consts)
    outside, inside, _ = jaxpr.derive(("invariants", known), lambda: invariant_part(jaxpr, known, ()))
    if outside is not None:
        consts = [*consts, *evaluate(outside, consts)]
    before = len(consts) + len(carry)
    inside, read = inside.derive(("rows read", before), lambda: _without_unread(inside, before))
    rows = chosen(rows, read)
    return scan_p.bind(
        *(() if length is not None else (count,)),
        *consts,
        *carry,
        *rows,
        jaxpr=inside,
        length=length,
        reverse=reverse,
        unroll=unroll,
        num_consts=len(consts),
        num_carry=len(carry),
    )


def _without_unread(jaxpr: Jaxpr, before: int) -> tuple[Jaxpr, list[bool]]:
    """The body without the rows that it does not read (often a counter), and which of its rows it reads."""
    used = variables_read(jaxpr.eqns, jaxpr.outvars)
    first, rows = split(jaxpr.invars, before)
    read = [v in used for v in rows]
    if all(read):
        return jaxpr, read
    return jaxpr.replace(invars=[*first, *chosen(rows, read)]), read


def _abstract(
    *avals: Aval, jaxpr: Jaxpr, length: int | None, num_carry: int, **params: Param
) -> tuple[Aval, ...]:
    carry, rows = split([a.strong() for a in jaxpr.out_avals], num_carry)
    if length is None:
        return (*carry, *[TapeAval(a) for a in rows])
    return (*carry, *[a.with_shape((length, *a.shape)) for a in rows])


# --- evaluation ---------------------------------------------------------------------------------------------


def _impl(*args: Value, jaxpr: Jaxpr, **params: Param) -> list[Value]:
    if config.disable_jit:
        return in_python(jaxpr, args, **params)
    return run_compiled(scan_p, args, {"jaxpr": jaxpr, **params}, jaxpr)


# --- forward mode -------------------------------------------------------------------------------------------


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param
) -> tuple[list[Any], list[Tangent]]:
    outs, series = _jet(primals, [[t] for t in tangents], **params)
    return outs, [t for (t,) in series]


def _jet(
    primals: Sequence[Value],
    series: Sequence[Sequence[Tangent]],
    *,
    jaxpr: Jaxpr,
    length: int | None,
    num_consts: int,
    num_carry: int,
    **params: Param,
) -> tuple[list[Any], list[list[Any]]]:
    head, primals = head_of(primals, length)
    _, series = head_of(series, length)
    params.update(length=length, count=head[0] if head else None)
    sizes = num_consts, num_carry
    masks = carried_masks(jaxpr, series, *sizes)
    body, captured, nonzero = pushed_body(jaxpr, masks, sizes)
    groups = [
        [*p, *map(instantiate, chosen_terms(s, m))]
        for p, s, m in zip(split(primals, *sizes), split(series, *sizes), split(masks, *sizes))
    ]
    results = bind(body, [*captured, *groups[0]], groups[1], groups[2], **params)
    moving = sum(map(sum, nonzero[:num_carry]))
    carry, s_carry, rows, s_rows = split(results, num_carry, moving, len(nonzero) - num_carry)
    outs = [*carry, *rows]
    return outs, nested(nonzero, [*s_carry, *s_rows], outs)


# --- errors as values ---------------------------------------------------------------------------------------


def _checked(
    check: Rule,
    args: Sequence[Value],
    *,
    jaxpr: Jaxpr,
    length: int | None,
    num_consts: int,
    num_carry: int,
    **params: Param,
) -> tuple[list[Any], Any]:
    head, args = head_of(args, length)
    params.update(length=length, count=head[0] if head else None)
    inner = check(jaxpr)
    consts, carry, rows = split(args, num_consts, num_carry)
    body, captured = jaxpr.derive(
        ("checked scan", inner.jaxpr, num_consts, num_carry),
        lambda: checking.loop_body_with_state(inner, num_consts, num_carry),
    )
    start = checking.all_checks([inner])
    results = bind(body, [*captured, *consts], [*start.flat(), *carry], rows, **params)
    state, outs = split(results, len(start.flat()))
    return outs, start.with_flat(state)


# --- reverse mode -------------------------------------------------------------------------------------------


def _linearize(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    *,
    jaxpr: Jaxpr,
    length: int | None,
    num_consts: int,
    num_carry: int,
    **params: Param,
) -> tuple[list[Any], list[Any]]:
    head, primals = head_of(primals, length)
    _, tangents = head_of(tangents, length)
    sizes = num_consts, num_carry
    mask = carry_mask(jaxpr, perturbed(tangents), *sizes, reverse=True)
    halves = loop_halves.halves_of(jaxpr, mask, sizes, primals, length=length, reverse=params["reverse"])
    consts, carry, rows = split(primals, *sizes)
    consts = [*halves.captured[0], *consts]
    new = [] if halves.outside is None else evaluate(halves.outside, consts)
    consts = chosen([*consts, *new], halves.read)
    results = scan_p.bind(
        *head,
        *consts,
        *carry,
        *rows,
        jaxpr=halves.primal,
        length=length,
        num_consts=len(consts),
        num_carry=num_carry,
        **params,
    )
    of = loop_halves.Origin
    values = {of.OPERAND: primals, of.INVARIANT: new, of.RESULT: results}
    active = [instantiate(t, aval_of(x)) if m else None for x, t, m in zip(primals, tangents, mask)]
    groups = [chosen(t, m) for t, m in zip(split(active, *sizes), split(mask, *sizes))]
    outs = results[: len(jaxpr.outvars)]
    pushed = push(halves, values, groups, head, length=length, **params)
    return outs, with_zeros(halves.nonzero, pushed, outs)


def push(
    halves: Halves,
    values: Mapping[Origin, Sequence[Any]],
    tangents: Sequence[Sequence[Tangent]],
    head: Sequence[Value],
    **params: Param,
) -> list[Value]:
    """Bind the linear half of a loop to residuals, of which `values` has those of each origin, and to tangents of
    constants, carry and rows; `head` has the trip count if it is an operand.

    If it reads restored arrays, it is one equation with the scan that restores them.
    """
    of = loop_halves.Origin

    def at(places: Sequence[ResidualPlace]) -> list[Any]:
        return [values[p.origin][p.number] for p in places if p.origin is not of.RESTORED]

    past = halves.past
    values = {**values, of.FIRST: [np.int64(0)]}
    groups = [head, [*halves.captured[1], *at(halves.consts)], at(halves.rows), *tangents]
    if past is not None:
        last = [values[of.RESULT][c] for c in past.carries]
        groups += [at(past.consts), last, at(past.rows)]
    sizes = list(map(len, groups))
    operands = [x for group in groups for x in group]

    def program(*operands: Value) -> list[Value]:
        head, consts, stored, t_consts, t_carry, t_rows, *others = split(operands, *sizes[:-1])
        options = params | {"count": head[0] if head else None}
        restored: list[Any] = []
        if past is not None:
            way_back = options | {"reverse": not options["reverse"]}
            restored = bind(past.body, *others, **way_back)[len(past.carries) :]
        rest = iter(stored)
        rows = [restored[p.number] if p.origin is of.RESTORED else next(rest) for p in halves.rows]
        return bind(halves.linear, [*consts, *t_consts], t_carry, [*rows, *t_rows], **options)

    if past is None:
        return program(*operands)
    avals = tuple([aval_of(x).strong() for x in operands])
    name = f"linear({halves.linear.name})"
    key = ("with the way back", *sorted(params.items()), *avals)
    return call_p.bind(*operands, jaxpr=halves.linear.derive(key, lambda: stage(program, avals, name)))


def _transpose(cts: Sequence[Tangent], *args: PyTree, **params: Param) -> list[Tangent]:
    return _accumulate(cts, (None,) * len(args), *args, **params)


def _accumulate(
    cts: Sequence[Tangent],
    before: Sequence[Any],
    *args: PyTree,
    jaxpr: Jaxpr,
    length: int | None,
    num_consts: int,
    num_carry: int,
    reverse: bool,
    **params: Param,
) -> list[Any]:
    """The sums of the cotangents of constants begin with those `before`; that of a carry is added at the end."""
    head, operands = head_of(args, length)
    params.update(length=length, count=head[0] if head else None)
    sizes = num_consts, num_carry
    consts, _, rows = split(operands, *sizes)
    linear = (*[type(a) is Linear for a in consts], *[True] * num_carry, *[type(a) is Linear for a in rows])
    body, captured, carry, has = transposed_body(jaxpr, linear, perturbed(cts), sizes)
    ct_carry, ct_rows = split(cts, num_carry)
    known = [[a for a in group if type(a) is not Linear] for group in (consts, rows)]
    _, before = head_of(before, length)
    totals = [(a, total) for a, total in zip(consts, before) if type(a) is Linear]
    totals = [instantiate(total, a.aval) for (a, total), h in zip(totals, has[0]) if h]
    starts = [instantiate(ct, a.aval) for a, ct, m in zip(jaxpr.outvars, ct_carry, carry) if m]
    given_rows = [ct for ct in ct_rows if type(ct) is not Zero]
    outs = bind(
        body,
        [*captured, *known[0]],
        [*totals, *starts],
        [*known[1], *given_rows],
        reverse=not reverse,
        **params,
    )
    of_consts, of_carry, of_rows = split(scatter((*has[0], *carry, *has[1]), outs), len(has[0]), num_carry)
    results: list[Any] = [None for _ in head]
    results += scatter([type(a) is Linear for a in consts], of_consts)
    later = [*of_carry, *scatter([type(a) is Linear for a in rows], of_rows)]
    return [*results, *map(_with_total, before[num_consts:], later)]


def _with_total(total: Value, ct: Value) -> Value:
    return ct if total is None or ct is None else add_p.bind(total, ct)


# --- batching -----------------------------------------------------------------------------------------------


def _batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], **params: Param
) -> tuple[list[Any], list[int | None]]:
    """Four ways: the lanes one after the other; all at once; all at once, as often as a common count says; in step."""
    jaxpr, length = params["jaxpr"], params["length"]
    needs_all_lanes = mentions_axis(size, [jaxpr])
    taped = any(isinstance(a, TapeAval) for a in (*jaxpr.in_avals, *jaxpr.out_avals))
    if taped or length is None:
        if not needs_all_lanes:
            return over_lanes(scan_p, size, args, dims, params)
        if taped:
            raise no_common_tape()
        return _of_unknown_length(size, args, dims, **params)
    sizes = params["num_consts"], params["num_carry"]
    lanes = _all_lanes(size, dims, jaxpr, sizes)
    if not needs_all_lanes and copies_lanes(scan_p, jaxpr, lanes.body, size, params["num_carry"]):
        return over_lanes(scan_p, size, args, dims, params)
    options = {name: params[name] for name in ("length", "reverse", "unroll")}
    return _at_once(size, args, dims, lanes, sizes, **options)


def _of_unknown_length(
    size: int,
    args: Sequence[Value],
    dims: Sequence[int | None],
    *,
    jaxpr: Jaxpr,
    num_consts: int,
    num_carry: int,
    **params: Param,
) -> tuple[list[Any], list[int | None]]:
    """A loop whose trip count is an operand, while collectives in its body need all lanes."""
    sizes = num_consts, num_carry
    counters = len(args) - 1 - sum(sizes)
    if (counters and params["reverse"]) or len(jaxpr.outvars) > num_carry:
        raise no_common_tape()
    if counters:
        jaxpr, sizes = carrying_counters(jaxpr, counters), (num_consts, num_carry + counters)
    if dims[0] is not None:
        outs, out_dims = _in_step(size, args, dims, jaxpr, sizes)
    else:
        lanes = _all_lanes(size, dims[1:], jaxpr, sizes)
        outs, out_dims = _at_once(size, args[1:], dims[1:], lanes, sizes, count=args[0], **params)
    return outs[:num_carry], out_dims[:num_carry]


def _all_lanes(size: int, dims: Sequence[int | None], jaxpr: Jaxpr, sizes: tuple[int, int]) -> BatchedBody:
    """The body for all lanes at once, if rows have their batch axis after the loop's."""
    first, rows = split(dims, sum(sizes))
    return batched_body(jaxpr, size, (*first, *[None if d is None else 0 for d in rows]), sizes)


def _at_once(
    size: int,
    args: Sequence[Value],
    dims: Sequence[int | None],
    lanes: BatchedBody,
    sizes: tuple[int, int],
    **params: Param,
) -> tuple[list[Any], list[int | None]]:
    """One loop, each iteration of which computes that of all lanes."""
    consts, carry, rows = split(list(zip(args, dims)), *sizes)
    results = bind(
        lanes.body,
        [*lanes.captured, *[x for x, _ in consts]],
        [batched_first(size, x, d) if m else x for (x, d), m in zip(carry, lanes.carry)],
        [x if d is None else move_axis(x, d, 1) for x, d in rows],
        **params,
    )
    of_carry = [0 if m else None for m in lanes.carry]
    return results, [*of_carry, *[None if d is None else 1 for d in lanes.rows]]


def _in_step(
    size: int, args: Sequence[Any], dims: Sequence[int | None], jaxpr: Jaxpr, sizes: tuple[int, int]
) -> tuple[list[Any], list[int | None]]:
    """A loop without rows that each lane runs as often as the lane's count says, while its collectives need all lanes:
    those that are done keep their values.
    """
    counts = move_axis(args[0], dims[0] or 0, 0)
    body, captured = body_in_step(jaxpr, size, dims[1 : 1 + sizes[0]], sizes)
    fixed = [*captured, *args[1 : 1 + sizes[0]]]
    init = [batched_first(size, x, d) for x, d in zip(args[1 + sizes[0] :], dims[1 + sizes[0] :])]
    longest = reduce_max_p.bind(counts, axes=(0,)) if size else np.int64(0)
    outs = bind(body, [counts, *fixed], [*init, np.int64(0)], [], length=None, count=longest)
    return outs[:-1], [0] * sizes[1]


def over_lanes(
    prim: Primitive, size: int, args: Sequence[Value], dims: Sequence[int | None], params: Params
) -> tuple[list[Any], list[int | None]]:
    """Apply a primitive to each lane of a batch separately, one after the other, in a loop.

    So each lane of a ``while_loop`` stops independently, and no lane is affected by another lane's branch.
    """
    lanes = [batched_first(size, x, d) for x, d in zip(args, dims) if d is not None]
    fixed = [x for x, d in zip(args, dims) if d is None]
    avals = [aval_of(x).strong() for x in fixed]
    avals += [a.with_shape(a.shape[1:]) for a in (aval_of(x).strong() for x in lanes)]
    key = ("lane", prim.name, *sorted(params.items(), key=lambda item: item[0]), *dims, *avals)

    def build() -> Jaxpr:
        shared, own = iter(avals[: len(fixed)]), iter(avals[len(fixed) :])
        one = single_equation(prim, [next(shared) if d is None else next(own) for d in dims], params)
        pairs = list(zip(one.invars, dims))
        return one.replace(
            invars=[*[v for v, d in pairs if d is None], *[v for v, d in pairs if d is not None]]
        )

    body = derive_from_all(list(subjaxprs(params)), key, build)
    results = bind(body, fixed, [], lanes, length=size)
    return results, [0] * len(results)


scan_p: Primitive = Primitive(
    "scan",
    _abstract,
    _impl,
    jvp=_jvp,
    linearize=_linearize,
    jet=_jet,
    checked=_checked,
    transpose=_transpose,
    accumulate=_accumulate,
    rewind=lambda *args: rewinding.over_scan(*args),
    batch=_batch,
    kernel=Block(kernel, reuse=carry_places, ranges=of_scan),
    effects=effects_of_bodies,
    multiple_results=True,
    narrow=narrow,
    simplify=carry_values,
    vary=lambda axes, params: varying.of_scan(axes, **params),
)
