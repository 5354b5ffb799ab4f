"""Transformations of a loop's body: its jvp, jet, transpose and batched form (`residuals.halves` linearizes it).

Each takes a body from (constants, carry, rows) to (carry, rows), returns another one of that form, and caches it on the
body. `scan` and `while_loop` are built from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.ir import Jaxpr, Var
from ...core.named_axes import axis_key
from ...core.values import Tangent, Value
from ...passes.masks import Mask, Masks, scatter, split, terms_mask
from ...passes.toolkit import lift_constants
from ...primitives.elementwise.arithmetic import select_p
from ...primitives.structure.linear import reshape_p, shape_of
from ...primitives.tape import sum_primitive
from ...runtime.module_getattr import lazy_import
from ...runtime.records import NamedTuple
from ...transforms.batch import batch_jaxpr
from ...transforms.jvp import jvp_jaxpr
from ...transforms.linearize_jaxpr import linearize_jaxpr
from ...transforms.transpose import sums_in_place, transpose_jaxpr
from .building import JaxprBuilder, fixpoint

taylor = lazy_import("functrans.transforms.jet")


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


def carried_masks(
    jaxpr: Jaxpr, series: Sequence[Sequence[Tangent]], num_consts: int, num_carry: int
) -> Masks:
    """The masks of the body's inputs, if these are the coefficients of the loop's operands."""
    given = terms_mask(series)
    mask = carry_mask(jaxpr, tuple(map(any, given)), num_consts, num_carry, reverse=False)
    ends = num_consts, num_consts + num_carry
    return tuple(
        [(m,) * len(g) if ends[0] <= i < ends[1] else g for i, (g, m) in enumerate(zip(given, mask))]
    )


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


class BatchedBody(NamedTuple):
    """A body that computes an iteration of all lanes of a batch."""

    body: Jaxpr
    captured: tuple[Any, ...]
    carry: Mask  # which carry values are batched
    rows: Sequence[int | None]  # the batch axes of the rows that it returns


def batched_body(
    jaxpr: Jaxpr, size: int, dims: tuple[int | None, ...], sizes: tuple[int, int]
) -> BatchedBody:
    """The body for all lanes of a batch at once; `dims` are the batch axes of its inputs."""

    def build() -> BatchedBody:
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
        return BatchedBody(body, captured, mask, out_dims[num_carry:])

    return jaxpr.derive(("scan batch", axis_key(size), dims, sizes), build)


def chosen_lanes(flags: Any, new: Any, old: Any) -> Value:
    """For each lane of a batch, along axis 0, `new` where its flag is set, and `old` elsewhere."""
    shape = shape_of(new)
    return select_p.bind(reshape_p.bind(flags, shape=(*shape[:1], *(1,) * (len(shape) - 1))), new, old)
