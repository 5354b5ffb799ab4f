"""``cond``: one of several branches; only the selected one runs.

All branches take the same operands (their captured values follow these) and return the same types. If lanes of a batch
may take different branches, they run one after the other: no lane sees the errors or the NaN of a branch that it does
not take.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from ..core import (
    Atom,
    Aval,
    Block,
    BlockEmitter,
    Buffer,
    Eqn,
    Jaxpr,
    Linear,
    Primitive,
    TapeAval,
    Var,
    aval_of,
)
from ..core.evaluation import evaluate
from ..core.trace import Tracer
from ..core.values import ArrayLike, PyTree, Rule, Tangent, Value
from ..passes.indices.carry_ranges import of_branches
from ..passes.masks import (
    Mask,
    by_value,
    chosen,
    chosen_terms,
    nested,
    perturbed,
    scatter,
    terms_mask,
    with_zeros,
)
from ..passes.toolkit import lift_constants, live_equations, narrowed, substitute, variables_read
from ..primitives.elementwise.arithmetic import eq_p
from ..primitives.structure.linear import instantiate
from ..runtime.module_getattr import lazy_import
from ..runtime.records import NamedTuple
from ..transforms.batch import batch_jaxpr, mentions_axis
from ..transforms.jvp import jvp_jaxpr
from ..transforms.linearize_jaxpr import LinearizedJaxpr, in_loop, linearize_jaxpr
from ..transforms.transpose import transpose_jaxpr
from .bodies.branches import (
    Branches,
    any_of,
    batched_outputs,
    completed,
    inputs_read,
    with_common_operands,
    with_inputs,
)
from .bodies.building import JaxprBuilder, handed_on
from .bodies.cache import derive_from_all
from .bodies.run import computed
from .bodies.transforms import chosen_lanes
from .call import effects_of_bodies
from .loops.carry_memory import sources_of
from .scan import over_lanes

checking = lazy_import("functrans.control.bodies.checked")
rewinding = lazy_import("functrans.control.residuals.rewinding")
partitioner = lazy_import("functrans.control.residuals.partitioner")
read_back = lazy_import("functrans.control.residuals.read_back")
taylor = lazy_import("functrans.transforms.jet")
varying = lazy_import("functrans.control.ranks.varying_bodies")


def bind(
    index: ArrayLike, branches: Sequence[tuple[Jaxpr, Sequence[Any]]], operands: Sequence[Any]
) -> list[Any]:
    """Bind a choice between branches.

    Parameters
    ----------
    index : scalar of int64
        The number of the branch, in range.
    branches : sequence of (Jaxpr, values)
        Each from (the constants of the branch, operands), with the values of these constants.
    operands : sequence of values

    Returns
    -------
    list
        The results of the branch.
    """
    common, captured = with_common_operands(branches, len(operands))
    values = [*captured, *operands]
    # An array that no branch reads would be a residual all the same. One that two branches capture is one operand:
    # as two, it has two cotangents, of which each branch has to return one full of zeros.
    read = any_of([b.derive("inputs read", partial(inputs_read, b)) for b in common])
    first: dict[int, int] = {}
    own = [first.setdefault(id(x), i) if isinstance(x, Tracer) else i for i, x in enumerate(values)]
    if not all(read) or own != list(range(len(values))):
        which = tuple([n if r else None for n, r in zip(own, read)])
        common = tuple([b.derive(("inputs", which), partial(with_inputs, b, which)) for b in common])
        values = [x for i, x in enumerate(values) if i in which]
    return cond_p.bind(index, *values, branches=common)


def _abstract(index: Aval, *avals: Aval, branches: Branches) -> tuple[Aval, ...]:
    return tuple([a.strong() for a in branches[0].out_avals])


def _impl(index: Value, *args: Value, branches: Branches) -> list[Value]:
    return computed(branches[int(index)], args)


def _kernel(
    k: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer], *, branches: Branches
) -> None:
    index = k.load(operands[0], ())
    for number, branch in enumerate(branches):
        with k.if_(index.eq(number)):
            k.inline(branch, operands[1:], results)


def _carried(index: Atom, *operands: Atom, branches: Branches) -> list[tuple[int, int]]:
    """The operands whose memory a result may have: a branch changes them into it, or returns them."""
    numbers: list[dict[Atom, int]] = [{v: i for i, v in enumerate(b.invars, 1)} for b in branches]
    pairs: dict[int, int] = {}
    for k, sources in enumerate(zip(*map(sources_of, branches))):
        found = [n.get(v) for v, n in zip(sources, numbers)]
        for i in sorted({i for i in found if i is not None}, key=lambda i: (-found.count(i), i)):
            aval = operands[i - 1].aval
            if i not in pairs and aval.ndim and aval.strong() == branches[0].out_avals[k].strong():
                pairs[i] = k
                break
    return list(pairs.items())


def _narrow(eqn: Eqn, needed: Collection[Atom], strict: bool) -> Eqn | None:
    """Drop results that are never read and operands that no branch reads; pass each operand once."""
    branches: Branches = eqn.params["branches"]
    index, *operands = eqn.invars
    kept = tuple([i for i, v in enumerate(eqn.outvars) if v in needed])
    bodies = []
    for branch in branches:
        outvars = [branch.outvars[i] for i in kept]
        eqns = live_equations(branch.eqns, outvars, partial(narrowed, strict=strict))
        bodies.append((eqns, outvars, variables_read(eqns, outvars)))
    used = [
        any(b.invars[i] in read for b, (_, _, read) in zip(branches, bodies)) for i in range(len(operands))
    ]
    first: dict[Atom, int] = {}
    same = [
        first.setdefault(a, i) if isinstance(a, Var) and u else i
        for i, (a, u) in enumerate(zip(operands, used))
    ]
    rest = tuple([i for i, u in enumerate(used) if u and same[i] == i])
    if len(rest) == len(operands) and len(kept) == len(eqn.outvars):
        return None

    def build() -> Branches:
        new = []
        for branch, (eqns, outvars, _) in zip(branches, bodies):
            env: dict[Atom, Atom] = {
                v: branch.invars[i] for v, i in zip(branch.invars, same) if v is not branch.invars[i]
            }
            outs = [env.get(v, v) for v in outvars]
            invars = [branch.invars[i] for i in rest]
            new.append(branch.replace(invars=invars, eqns=substitute(eqns, env), outvars=outs))
        return tuple(new)

    narrow = derive_from_all(branches, ("narrow", strict, kept, rest, tuple(same)), build)
    return eqn.replace(
        invars=[index, *[operands[i] for i in rest]],
        outvars=[eqn.outvars[i] for i in kept],
        params={"branches": narrow},
    )


# --- forward mode -------------------------------------------------------------------------------------------


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, branches: Branches
) -> tuple[list[Any], list[Tangent]]:
    index, *args = primals
    mask = perturbed(tangents[1:])
    pushed = [jvp_jaxpr(b, mask) for b in branches]
    nonzero = any_of([results[1] for results in pushed])
    count = len(branches[0].outvars)
    avals = branches[0].out_avals
    bodies = [lift_constants(completed(body, count, has, nonzero, avals)) for body, has in pushed]
    results = bind(index, bodies, [*args, *chosen(tangents[1:], mask)])
    outs = results[:count]
    return outs, with_zeros(nonzero, results[count:], outs)


def _jet(
    primals: Sequence[Value], series: Sequence[Sequence[Tangent]], *, branches: Branches
) -> tuple[list[Any], list[list[Any]]]:
    index, *args = primals
    order, count = len(series[0]), len(branches[0].outvars)
    masks = terms_mask(series[1:])
    pushed = [taylor.jet_jaxpr(b, masks) for b in branches]
    flat = [tuple([given for m in has for given in m]) for _, has in pushed]
    nonzero = any_of(flat)
    avals = [a for a in branches[0].out_avals for _ in range(order)]
    bodies = [
        lift_constants(completed(body, count, has, nonzero, avals)) for (body, _), has in zip(pushed, flat)
    ]
    results = bind(index, bodies, [*args, *map(instantiate, chosen_terms(series[1:], masks))])
    outs = results[:count]
    return outs, nested(by_value(nonzero, order), results[count:], outs)


# --- errors as values ---------------------------------------------------------------------------------------


def _checked(check: Rule, args: Sequence[Value], *, branches: Branches) -> tuple[list[Any], Any]:
    inner = [check(b) for b in branches]
    index, *operands = args

    def build() -> list[tuple[Jaxpr, tuple[Any, ...]]]:
        return checking.branches_with_state(inner)

    key = ("checked", *[c.jaxpr for c in inner])
    results = bind(index, derive_from_all(branches, key, build), operands)
    count = len(branches[0].outvars)
    return results[:count], checking.all_checks(inner).with_flat(results[count:])


# --- reverse mode -------------------------------------------------------------------------------------------


class _Halves(NamedTuple):
    """The linearized branches: all primal halves have the same types, and so have all linear halves.

    Attributes
    ----------
    primal, linear : tuple of (Jaxpr, values)
        Branches with their constants. `primal` returns the residuals after the outputs, in slots of common types;
        `linear` takes operands, outputs, slots and tangents.
    nonzero : tuple of bool
        The outputs with a tangent.
    """

    primal: tuple[tuple[Jaxpr, tuple[Any, ...]], ...]
    linear: tuple[tuple[Jaxpr, tuple[Any, ...]], ...]
    nonzero: Mask


def _halves(branches: Branches, mask: Mask) -> _Halves:
    def build() -> _Halves:
        parts = [_linearized(b, mask) for b in branches]
        count = len(branches[0].outvars)
        nonzero = any_of([p.nonzero for p in parts])
        slots: list[Aval] = []
        numbers = [_in_slots(p, count, slots) for p in parts]
        primal = [_primal(p, count, slots, n) for p, n in zip(parts, numbers)]
        linear = [_linear(b, p, count, slots, n, nonzero) for b, p, n in zip(branches, parts, numbers)]
        return _Halves(tuple(map(lift_constants, primal)), tuple(map(lift_constants, linear)), nonzero)

    return derive_from_all(branches, ("cond linearize", mask, in_loop.get()), build)


def _linearized(branch: Jaxpr, mask: Mask) -> LinearizedJaxpr:
    parts = linearize_jaxpr(branch, mask)
    return partitioner.economical_branch(parts, read_back.last_arrays(branch)) if in_loop.get() else parts


def _in_slots(parts: LinearizedJaxpr, count: int, slots: list[Aval]) -> dict[int, int]:
    """Assign a slot to each residual that only the branch itself has; adds slots that are missing."""
    free = list(range(len(slots)))
    slots_of: dict[int, int] = {}
    for r, (where, i) in enumerate(parts.residuals):
        if where == "in" or i < count:
            continue
        aval = parts.primal.outvars[i].aval.strong()
        slot = next((n for n in free if slots[n] == aval), None)
        if slot is None:
            slot = len(slots)
            slots.append(aval)
        else:
            free.remove(slot)
        slots_of[r] = slot
    return slots_of


def _primal(parts: LinearizedJaxpr, count: int, slots: Sequence[Aval], numbers: dict[int, int]) -> Jaxpr:
    primal = parts.primal
    new = JaxprBuilder(primal)
    in_slot = {slot: primal.outvars[parts.residuals[r][1]] for r, slot in numbers.items()}
    outs = [in_slot[n] if n in in_slot else new.zeros(a) for n, a in enumerate(slots)]
    return new.finish("linearize of cond", [*primal.outvars[:count], *outs])


def _linear(
    branch: Jaxpr,
    parts: LinearizedJaxpr,
    count: int,
    slots: Sequence[Aval],
    numbers: dict[int, int],
    nonzero: Mask,
) -> Jaxpr:
    linear = completed(parts.linear, 0, parts.nonzero, nonzero, branch.out_avals)
    operands = [Var(a) for a in branch.in_avals]
    outs = [Var(a.strong()) for a in branch.out_avals]
    slot_vars = [Var(a) for a in slots]
    residuals, tangents = linear.invars[: len(parts.residuals)], linear.invars[len(parts.residuals) :]
    for r, ((where, i), v) in enumerate(zip(parts.residuals, residuals)):
        if r in numbers:
            slot_vars[numbers[r]] = v
        else:
            (operands if where == "in" else outs)[i] = v
    return linear.replace(invars=[*operands, *outs, *slot_vars, *tangents])


def _linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, branches: Branches
) -> tuple[list[Any], list[Any]]:
    index, *args = primals
    mask = perturbed(tangents[1:])
    halves = _halves(branches, mask)
    results = bind(index, halves.primal, args)
    outs = results[: len(branches[0].outvars)]
    active = chosen(tangents[1:], mask)
    pushed = bind(index, halves.linear, [*args, *results, *active]) if any(halves.nonzero) else ()
    return outs, with_zeros(halves.nonzero, pushed, outs)


def _transpose(cts: Sequence[Any], index: ArrayLike, *args: PyTree, branches: Branches) -> list[Tangent]:
    return _pulled(cts, None, index, args, branches)


def _accumulate(
    cts: Sequence[Tangent], totals: Sequence[Tangent], index: ArrayLike, *args: PyTree, branches: Branches
) -> list[Value]:
    """A branch adds to the totals of the operands that it reads, and returns the others as they are."""
    return _pulled(cts, totals[1:], index, args, branches)


def _pulled(
    cts: Sequence[Any],
    totals: Sequence[Tangent] | None,
    index: ArrayLike,
    args: Sequence[Any],
    branches: Branches,
) -> list[Any]:
    linear = tuple([type(a) is Linear for a in args])
    nonzero = perturbed(cts)
    avals = [a.aval for a in args if type(a) is Linear]
    given: Mask | None = None
    before: list[Any] = []
    if totals is not None and all(t is None for t in totals):
        given = (False,) * len(avals)
    elif totals is not None:
        reached = any_of([transpose_jaxpr(b, linear, nonzero)[1] for b in branches])
        own = [t if r else None for t, r in zip(chosen(totals, linear), reached)]
        given = tuple([t is not None for t in own])
        before = [t for t in own if t is not None]
    transposed = [transpose_jaxpr(b, linear, nonzero, given) for b in branches]
    has = any_of([mask for _, mask in transposed])
    bodies = [lift_constants(completed(body, 0, mask, has, avals)) for body, mask in transposed]
    operands = [a for a in args if type(a) is not Linear]
    results = bind(index, bodies, [*operands, *chosen(cts, nonzero), *before])
    return [None, *scatter(linear, scatter(has, results))]


# --- batching -----------------------------------------------------------------------------------------------


def _batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, branches: Branches
) -> tuple[list[Any], list[int | None]]:
    tapes = any(isinstance(a, TapeAval) for b in branches for a in (*b.in_avals, *b.out_avals))
    together = mentions_axis(size, branches)
    if (dims[0] is not None and not together) or tapes:
        outs, out_dims = over_lanes(cond_p, size, args, dims, {"branches": branches})
        return _handed_on(outs, out_dims, args, dims, branches)
    if dims[0] is not None:
        outs, out_dims = _selected(size, args, dims, branches)
        return _handed_on(outs, out_dims, args, dims, branches)
    batched = [batch_jaxpr(b, size, tuple(dims[1:])) for b in branches]
    mask = any_of([[d is not None for d in out_dims] for _, out_dims in batched])
    bodies = [lift_constants(batched_outputs(body, size, out_dims, mask)) for body, out_dims in batched]
    return bind(args[0], bodies, args[1:]), [0 if m else None for m in mask]


def _handed_on(
    outs: list[Value],
    out_dims: list[int | None],
    args: Sequence[Value],
    dims: Sequence[int | None],
    branches: Branches,
) -> tuple[list[Any], list[int | None]]:
    """The results, without a batch axis where all branches return one operand that has none."""
    for i, places in enumerate(zip(*map(handed_on, branches))):
        place = places[0]
        if place is not None and len(set(places)) == 1 and dims[1 + place] is None:
            outs[i], out_dims[i] = args[1 + place], None
    return outs, out_dims


def _selected(
    size: int, args: Sequence[Value], dims: Sequence[int | None], branches: Branches
) -> tuple[list[Any], list[int | None]]:
    """The results of the branch of each lane. All branches run for all lanes, whose collectives need each other; errors
    of lanes that do not take the branch do not count.
    """
    outs: list[Any] = []
    for number, branch in enumerate(branches):
        lane = checking.lane_of(branch)
        body, out_dims = batch_jaxpr(lane.jaxpr, size, tuple(dims[1:]))
        jaxpr, consts = lift_constants(batched_outputs(body, size, out_dims, (True,) * len(out_dims)))
        results, errors = lane.separate(evaluate(jaxpr, [*consts, *args[1:]]))
        here = eq_p.bind(args[0], aval_of(args[0]).dtype.type(number))
        checking.raise_in(here, errors)
        outs = [chosen_lanes(here, x, out) for out, x in zip(outs, results)] if number else results
    return outs, [0] * len(outs)


cond_p: Primitive = Primitive(
    "cond",
    _abstract,
    _impl,
    jvp=_jvp,
    linearize=_linearize,
    jet=_jet,
    checked=_checked,
    transpose=_transpose,
    accumulate=_accumulate,
    rewind=lambda *args: rewinding.over_cond(*args),
    batch=_batch,
    kernel=Block(_kernel, reuse=_carried, ranges=of_branches),
    effects=effects_of_bodies,
    multiple_results=True,
    narrow=_narrow,
    vary=lambda axes, params: varying.of_cond(axes, **params),
)
