"""Transformations of a loop's body: its jvp, linearization, transpose and batched form.

Each takes a body from (constants, carry, rows) to (carry, rows), returns another one of that form, and caches it on the
body. `scan` and `while_loop` are built from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.aval import Aval
from ..core.dtypes import INT64
from ..core.ir import Atom, Jaxpr, Var
from ..core.named_axes import axis_key
from ..passes.check import verified
from ..passes.int_ranges import Range
from ..passes.masks import Mask, Masks, chosen, scatter, split, terms_mask
from ..passes.toolkit import lift_constants, substitute, variables_read
from ..primitives.elementwise.arithmetic import select_p
from ..primitives.structure.linear import reshape_p, shape_of
from ..primitives.tape import sum_primitive
from ..runtime.config import config
from ..runtime.module_getattr import lazy_import
from ..runtime.passes import COUNTING, READ_BACK
from ..transforms.batch import batch_jaxpr
from ..transforms.jvp import jvp_jaxpr
from ..transforms.linearize_jaxpr import LinearizedJaxpr, in_loop, linearize_body, linearize_jaxpr
from ..transforms.transpose import sums_in_place, transpose_jaxpr
from .bodies import JaxprBuilder, fixpoint, invariant_part

taylor = lazy_import("functrans.transforms.jet")
partitioner = lazy_import("functrans.control.residuals.partitioner")
rewinding = lazy_import("functrans.control.residuals.rewinding")
counting = lazy_import("functrans.control.indices.counting")
read_back = lazy_import("functrans.control.residuals.read_back")
overwritten = lazy_import("functrans.control.indices.overwritten")


def carry_mask(jaxpr: Jaxpr, mask: Mask, num_consts: int, num_carry: int, *, reverse: bool) -> Mask:
    """The mask of the body's inputs, including the carry's tangents in forward or reverse mode."""
    consts, carry, rows = split(mask, num_consts, num_carry)

    def step(now: Mask) -> Sequence[bool]:
        inputs = (*consts, *now, *rows)
        if reverse:  # a custom rule may lack forward mode
            return linearize_jaxpr(jaxpr, inputs).nonzero[:num_carry]
        return jvp_jaxpr(jaxpr, inputs)[1][:num_carry]

    return (*consts, *fixpoint(carry, step), *rows)


class PushedBody(NamedTuple):
    """A body that also computes tangents or Taylor coefficients; its groups are primals, then these."""

    body: Jaxpr
    captured: tuple[Any, ...]
    nonzero: Masks  # which tangents or coefficients each output has


def pushed_body(jaxpr: Jaxpr, masks: Masks, sizes: tuple[int, int]) -> PushedBody:
    """The jvp of the body (for masks of length 1), or its jet.

    The inputs' masks are a fixpoint: a part of the carry has all of its coefficients or none (see `carry_mask`).
    """

    def build() -> PushedBody:
        order = len(masks[0])
        if order == 1:
            pushed_jaxpr, mask = jvp_jaxpr(jaxpr, tuple([m for (m,) in masks]))
            has: Masks = tuple([(m,) for m in mask])
        else:
            pushed_jaxpr, has = taylor.jet_jaxpr(jaxpr, masks)
        opened, captured = lift_constants(pushed_jaxpr)
        new = JaxprBuilder(opened)
        front, primals, rest = split(opened.invars, len(captured), len(jaxpr.invars))
        given = split(masks, *sizes)
        pushed_inputs = split(rest, *[sum(map(sum, group)) for group in given[:2]])
        consts, carry, rows = [[*p, *t] for p, t in zip(split(primals, *sizes), pushed_inputs)]
        outs, pushed_outs = split(opened.outvars, len(jaxpr.outvars))
        pushed = scatter([m for out in has for m in out], pushed_outs)
        carried = zip([x for x in outs for _ in range(order)], pushed, [m for out in given[1] for m in out])
        t_carry = [new.zeros(x.aval) if t is None else t for x, t, m in carried if m]
        t_rows = [t for t in pushed[sizes[1] * order :] if t is not None]
        outvars = [*outs[: sizes[1]], *t_carry, *outs[sizes[1] :], *t_rows]
        what = "jvp" if order == 1 else "jet"
        body = new.finish(f"{what} of scan", outvars, [*front, *consts, *carry, *rows])
        return PushedBody(body, captured, (*given[1], *has[sizes[1] :]))

    return jaxpr.derive(("scan pushed", masks, sizes), build)


def carried_masks(jaxpr: Jaxpr, series: Sequence[Sequence[Any]], num_consts: int, num_carry: int) -> Masks:
    """The masks of the body's inputs, if these are the coefficients of the loop's operands."""
    given = terms_mask(series)
    mask = carry_mask(jaxpr, tuple(map(any, given)), num_consts, num_carry, reverse=False)
    ends = num_consts, num_consts + num_carry
    return tuple(
        [(m,) * len(g) if ends[0] <= i < ends[1] else g for i, (g, m) in enumerate(zip(given, mask))]
    )


class Halves(NamedTuple):
    """A body split into a primal half that stacks residuals and a linear half over them.

    Attributes
    ----------
    outside : Jaxpr or None
        Computes the loop-invariant values: the new constants of `primal`, after its old ones.
    primal : Jaxpr
        Returns the stacked residuals after the body's rows.
    linear : Jaxpr
        Constants, carry, rows: in each group residuals come before tangents.
    consts, rows : list of (str, int)
        The origin of each residual in a group: ``("in", i)`` operand i, ``("new", i)`` new constant i, ``("out", i)``
        stacked output i, ``("past", i)`` row i of the way back, ``("first", 0)`` the number of the first iteration.
        ``("out", i)`` among the constants is the last carry.
    past : WayBack or None
        Restores carried arrays that would otherwise be residuals.
    read : tuple of bool
        Which constants (captured, operands, new) `primal` has as inputs.
    """

    outside: Jaxpr | None
    primal: Jaxpr
    linear: Jaxpr
    captured: tuple[tuple[Any, ...], tuple[Any, ...]]
    consts: list[tuple[str, int]]
    rows: list[tuple[str, int]]
    nonzero: Mask
    past: WayBack | None
    read: Mask


class WayBack(NamedTuple):
    """The body of a scan in the other direction, whose rows are carried arrays as they were (see `rewinding`).

    Attributes
    ----------
    body : Jaxpr
        From constants, the arrays after an iteration, and rows, to the arrays before it, and rows.
    carries : tuple of int
        The numbers of these arrays among the loop's results.
    consts, rows : list of (str, int)
        The origins of the body's other inputs, as in `Halves`.
    """

    body: Jaxpr
    carries: tuple[int, ...]
    consts: list[tuple[str, int]]
    rows: list[tuple[str, int]]


def halves_of(
    jaxpr: Jaxpr,
    mask: Mask,
    sizes: tuple[int, int],
    operands: Sequence[Any],
    *,
    length: int | None,
    reverse: bool = False,
    limits: tuple[Range, ...] | None = None,
) -> Halves:
    """The two halves of a body, linear in the tangents of the inputs in `mask`.

    Of the loop, `operands`, `length` and `reverse` are known; of a ``while_loop``, `limits` is what its condition says
    of the carry.
    """
    loop = None
    if config.runs(READ_BACK) and jaxpr.derive(("updates", sizes), lambda: read_back.updates(jaxpr, sizes)):
        loop = overwritten.loop_of(operands, sizes, length, reverse)
    key = ("scan linearize", mask, sizes, limits, loop, in_loop.get())
    return jaxpr.derive(key, lambda: _take_apart(jaxpr, mask, sizes, limits, loop))


def _take_apart(
    jaxpr: Jaxpr, mask: Mask, sizes: tuple[int, int], limits: tuple[Range, ...] | None, loop: Any
) -> Halves:
    num_consts, num_carry = sizes
    body, finals = read_back.marked(jaxpr, sizes, loop, in_loop.get())
    count = len(finals)
    inputs = (*mask[:num_consts], *[False] * count, *mask[num_consts:])
    last = read_back.last_arrays(body)
    parts = partitioner.economical(linearize_body(body, inputs), num_consts + count, num_carry, last)
    front, own, rest = split(parts.primal.invars, num_consts, count)
    values = [parts.primal.invars[i] if w == "in" else parts.primal.outvars[i] for w, i in parts.residuals]
    logging, past = rewinding.with_log(parts.primal.replace(invars=[*front, *rest]), values, *sizes)
    opened, captured = lift_constants(logging)
    shift = len(captured)
    again: dict[Atom, Atom] = dict(zip([*front, *rest], opened.invars[shift:]))
    residuals = [
        again.get(v, v) if where == "in" else opened.outvars[i]
        for v, (where, i) in zip(values, parts.residuals)
    ]
    variables = residuals if past is None else [*residuals, *past.needs]
    outside, inside, fixed = invariant_part(opened, num_consts + shift, variables)
    known = num_consts + shift
    counting_on = limits is not None and config.runs(COUNTING)
    counts = counting.counts_of(opened, residuals, known, limits) if counting_on else {}
    outs = list(opened.outvars[: len(jaxpr.outvars)])
    numbers: dict[Atom, int] = {v: i for i, v in enumerate(opened.invars[shift:])}
    places: list[tuple[str, str, int]] = []
    for n, (v, new) in enumerate(zip(variables, fixed)):
        i = numbers.get(v, -1)
        if v in own:
            places.append(("consts", "out", finals[own.index(v)]))
        elif v in counts and n < len(residuals):
            places.append(("counts", "in", num_consts + counts[v].carry))
        elif past is not None and v in past.versions:
            places.append(("rows", "past", list(past.versions).index(v)))
        elif i >= 0 and not num_consts <= i < num_consts + num_carry:
            places.append(("rows" if i >= num_consts else "consts", "in", i))
        elif new >= 0:
            places.append(("consts", "new", new))
        else:
            if v not in outs[num_carry:]:
                outs.append(v)
            places.append(("rows", "out", num_carry + outs[num_carry:].index(v)))
    fixed_inputs, others = split(inside.invars, len(inside.invars) - len(jaxpr.invars) + num_consts)
    used = variables_read(inside.eqns, outs)
    read = tuple([v in used for v in fixed_inputs])
    primal = inside.replace(invars=[*chosen(fixed_inputs, read), *others], outvars=outs)
    primal = verified(primal, "linearize of scan")
    places, of_past = split(places, len(residuals))
    linear, linear_captured = _linear_half(parts, places, [counts.get(v) for v in residuals], mask, sizes)
    nonzero = (*mask[num_consts : num_consts + num_carry], *parts.nonzero[num_carry:])
    back = None if past is None else _way_back(opened, past, of_past)
    starts = _origins(places, "counts")
    groups = (
        [*_origins(places, "consts"), *starts],
        [*_origins(places, "rows"), *[("first", 0) for _ in starts]],
    )
    return Halves(outside, primal, linear, (captured, linear_captured), *groups, nonzero, back, read)


def _origins(places: Sequence[tuple[str, str, int]], group: str) -> list[tuple[str, int]]:
    return [(where, i) for g, where, i in places if g == group]


def _way_back(primal: Jaxpr, past: Any, places: Sequence[tuple[str, str, int]]) -> WayBack:
    consts, rows = ([v for v, p in zip(past.needs, places) if p[0] == g] for g in ("consts", "rows"))
    body = primal.replace(
        invars=[*consts, *past.after, *rows],
        eqns=past.back,
        outvars=[*past.before, *past.versions.values()],
        constants=(),
        name=f"past({primal.name})",
    )
    origins = _origins(places, "consts"), _origins(places, "rows")
    return WayBack(verified(body, "rewind"), past.carries, *origins)


def _linear_half(
    parts: LinearizedJaxpr,
    places: Sequence[tuple[str, str, int]],
    counts: Sequence[Any],
    mask: Mask,
    sizes: tuple[int, int],
) -> tuple[Jaxpr, tuple[Any, ...]]:
    linear, captured = lift_constants(parts.linear)
    new = JaxprBuilder(linear.replace(eqns=[]))
    front, residuals, rest = split(linear.invars, len(captured), len(places))
    masks = split(mask, *sizes)
    t_consts, t_carry, t_rows = split(rest, sum(masks[0]), sum(masks[1]))
    consts = [v for v, place in zip(residuals, places) if place[0] == "consts"]
    rows = [v for v, place in zip(residuals, places) if place[0] == "rows"]
    starts = [Var(Aval((), INT64)) for place in places if place[0] == "counts"]
    numbers = [Var(v.aval) for v in starts]
    counting_now = iter(zip(starts, numbers))
    instead: dict[Any, Atom] = {
        v: counting.counted(new, v, count, *next(counting_now))
        for v, count, place in zip(residuals, counts, places)
        if place[0] == "counts"
    }
    new.eqns += substitute(linear.eqns, instead)
    outs = scatter(parts.nonzero, linear.outvars)
    carried = iter(t_carry)
    pairs = [(next(carried), t) for t, m in zip(outs, masks[1]) if m]
    carry = [new.zeros(v.aval) if t is None else t for v, t in pairs]
    invars = [*front, *consts, *starts, *t_consts, *t_carry, *rows, *numbers, *t_rows]
    outvars = [*carry, *[t for t in outs[sizes[1] :] if t is not None]]
    return new.finish("linearize of scan", outvars, invars), captured


class Transposed(NamedTuple):
    """A transposed body; the cotangents of constants are sums in its carry."""

    body: Jaxpr
    captured: tuple[Any, ...]
    carry: Mask  # which carry values have a cotangent
    has: list[list[bool]]  # which linear constants and rows have one


def transposed_body(jaxpr: Jaxpr, linear: Mask, nonzero: Mask, sizes: tuple[int, int]) -> Transposed:
    """The transpose of a body in its linear inputs, for cotangents of the outputs in `nonzero`."""

    def build() -> Transposed:
        num_consts, num_carry = sizes
        masks = split(linear, *sizes)
        start, ct_rows = split(nonzero, num_carry)
        count = sum(masks[0])

        def step(now: Mask) -> Sequence[bool]:
            nonzero = transpose_jaxpr(jaxpr, linear, (*now, *ct_rows))[1]
            return nonzero[count : count + num_carry]

        carry = fixpoint(start, step)
        has = transpose_jaxpr(jaxpr, linear, (*carry, *ct_rows))[1]
        avals = [v.aval for v, p in zip(jaxpr.invars, linear) if p]
        given = tuple([i < count and h and sums_in_place(a) for i, (a, h) in enumerate(zip(avals, has))])
        transposed, _ = transpose_jaxpr(jaxpr, linear, (*carry, *ct_rows), given)
        opened, captured = lift_constants(transposed)
        new = JaxprBuilder(opened)
        known = num_consts - count, sum(not m for m in masks[2])
        front, consts, rows, t_carry, rest = split(opened.invars, len(captured), *known, sum(carry))
        t_rows, large = split(rest, sum(ct_rows))
        outs = scatter(has, opened.outvars)
        ct_consts, ct_carry, out_rows = split(outs, count, num_carry)
        own = iter(large)
        pairs = [
            (next(own) if g else Var(ct.aval), ct, g) for ct, g in zip(ct_consts, given) if ct is not None
        ]
        totals = [v for v, _, _ in pairs]
        sums = [ct if g else new.bind(sum_primitive(v.aval), v, ct) for v, ct, g in pairs]
        avals = jaxpr.in_avals[num_consts : num_consts + num_carry]
        carried = [
            new.zeros(a.strong()) if ct is None else ct for a, ct, m in zip(avals, ct_carry, carry) if m
        ]
        outvars = [*sums, *carried, *[ct for ct in out_rows if ct is not None]]
        body = new.finish("transpose of scan", outvars, [*front, *consts, *totals, *t_carry, *rows, *t_rows])
        return Transposed(body, captured, carry, split(has, count, num_carry)[::2])

    return jaxpr.derive(("scan transpose", linear, nonzero, sizes), build)


def batched_body(
    jaxpr: Jaxpr, size: int, dims: tuple[int | None, ...], sizes: tuple[int, int]
) -> tuple[Any, ...]:
    """The batched body, its captured values, which carry values are batched, and the batch axes of the rows."""

    def build() -> tuple[Any, ...]:
        _, num_carry = sizes
        consts, carry, rows = split(dims, *sizes)

        def in_dims(mask: Mask) -> tuple[int | None, ...]:
            return (*consts, *[0 if m else None for m in mask], *rows)

        def step(now: Mask) -> Sequence[bool]:
            out_dims = batch_jaxpr(jaxpr, size, in_dims(now))[1]
            return [d is not None for d in out_dims[:num_carry]]

        mask = fixpoint([d is not None for d in carry], step)
        batched, out_dims = batch_jaxpr(jaxpr, size, in_dims(mask))
        opened, captured = lift_constants(batched)
        new = JaxprBuilder(opened)
        outs = new.batched(opened.outvars, out_dims, mask, size)
        body = new.finish("vmap of scan", [*outs, *opened.outvars[num_carry:]])
        return body, captured, mask, out_dims[num_carry:]

    return jaxpr.derive(("scan batch", axis_key(size), dims, sizes), build)


def chosen_lanes(flags: Any, new: Any, old: Any) -> Any:
    """For each lane of a batch, along axis 0, `new` where its flag is set, and `old` elsewhere."""
    shape = shape_of(new)
    return select_p.bind(reshape_p.bind(flags, shape=(*shape[:1], *(1,) * (len(shape) - 1))), new, old)
