"""A loop's body in two halves for reverse mode: one that runs forward and stores residuals, and a linear one over them.

Four questions, one after the other: which residuals the linear half needs (`_linearized`), how the primal half computes
them (`_without_last_arrays`), where the linear half finds each of them (`_Finder`), and the two bodies that follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from ...core.aval import Aval
from ...core.dtypes import INT64
from ...core.ir import Atom, Jaxpr, Var
from ...core.values import Value
from ...passes.check import verified
from ...passes.indices.int_ranges import Range
from ...passes.masks import Mask, chosen, scatter, split
from ...passes.toolkit import lift_constants, substitute, variables_read
from ...runtime.config import config
from ...runtime.passes import COUNTING, READ_BACK
from ...runtime.records import NamedTuple
from ...transforms.linearize_jaxpr import LinearizedJaxpr, in_loop, linearize_body
from ..bodies.building import JaxprBuilder, invariant_part
from . import counting, overwritten, partitioner, read_back, rewinding
from .counting import Count
from .overwritten import KnownLoop
from .rewinding import Past


class Origin(Enum):
    """The values among which the linear half of a loop finds a residual."""

    OPERAND = auto()
    #: What `Halves.outside` computes.
    INVARIANT = auto()
    #: Results of the primal loop: a last carry, or a stacked row.
    RESULT = auto()
    #: The rows that the way back restores.
    RESTORED = auto()
    #: One value: the number of the first iteration.
    FIRST = auto()


class Role(Enum):
    """What a residual is to the linear half."""

    CONST = auto()
    ROW = auto()
    #: Computed again from a constant and the number of the iteration (see `counting`).
    COUNT = auto()


class ResidualPlace(NamedTuple):
    """Where the linear half of a loop finds a residual: value `number` of those of its origin."""

    role: Role
    origin: Origin
    number: int


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
    captured : (tuple, tuple)
        The values of the leading inputs of `primal` and `linear`.
    consts, rows : list of ResidualPlace
        Where the residuals in a group are found.
    nonzero : tuple of bool
        Which outputs of the body have a tangent.
    past : WayBack or None
        Restores carried arrays that would otherwise be residuals.
    read : tuple of bool
        Which constants (captured, operands, new) `primal` has as inputs.
    """

    outside: Jaxpr | None
    primal: Jaxpr
    linear: Jaxpr
    captured: tuple[tuple[Any, ...], tuple[Any, ...]]
    consts: list[ResidualPlace]
    rows: list[ResidualPlace]
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
    consts, rows : list of ResidualPlace
        Where the body's other inputs are found, as in `Halves`.
    """

    body: Jaxpr
    carries: tuple[int, ...]
    consts: list[ResidualPlace]
    rows: list[ResidualPlace]


def halves_of(
    jaxpr: Jaxpr,
    mask: Mask,
    sizes: tuple[int, int],
    operands: Sequence[Value],
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
    jaxpr: Jaxpr,
    mask: Mask,
    sizes: tuple[int, int],
    limits: tuple[Range, ...] | None,
    loop: KnownLoop | None,
) -> Halves:
    num_consts, num_carry = sizes
    parts, last_arrays = _linearized(jaxpr, mask, sizes, loop)
    logged = _without_last_arrays(parts, list(last_arrays), sizes)
    body, residuals, past = logged.body, logged.residuals, logged.past
    known = len(logged.captured) + num_consts
    needs = [] if past is None else past.needs
    outside, inside, hoisted = invariant_part(body, known, [*residuals, *needs])
    counts: dict[Atom, Count] = {}
    if limits is not None and config.runs(COUNTING):
        counts = counting.counts_of(body, residuals, known, limits)
    finder = _Finder(
        last_arrays,
        operands={v: i for i, v in enumerate(body.invars[len(logged.captured) :])},
        invariant={v: i for v, i in zip([*residuals, *needs], hoisted) if i >= 0},
        restored={} if past is None else {v: i for i, v in enumerate(past.versions)},
        outs=list(body.outvars[: len(jaxpr.outvars)]),
        sizes=sizes,
    )
    places = [finder.place(v, counts.get(v)) for v in residuals]
    back = None if past is None else _way_back(body, past, [finder.place(v) for v in needs])
    primal, read = _primal_half(inside, finder.outs, len(inside.invars) - len(jaxpr.invars) + num_consts)
    linear, linear_captured = _linear_half(parts, places, [counts.get(v) for v in residuals], mask, sizes)
    nonzero = (*mask[num_consts : num_consts + num_carry], *parts.nonzero[num_carry:])
    starts = _of_role(places, Role.COUNT)
    return Halves(
        outside,
        primal,
        linear,
        (logged.captured, linear_captured),
        [*_of_role(places, Role.CONST), *starts],
        [*_of_role(places, Role.ROW), *[ResidualPlace(Role.ROW, Origin.FIRST, 0) for _ in starts]],
        nonzero,
        back,
        read,
    )


# --- which residuals ----------------------------------------------------------------------------------------


def _linearized(
    jaxpr: Jaxpr, mask: Mask, sizes: tuple[int, int], loop: KnownLoop | None
) -> tuple[LinearizedJaxpr, dict[Var, int]]:
    """The linearized body with few residuals, and its inputs that are last arrays, with their numbers in the carry.

    The last arrays are further constants (see `read_back`), which only the linear half reads.
    """
    num_consts, num_carry = sizes
    body, carries = read_back.marked(jaxpr, sizes, loop, bool(in_loop.get()))
    count = len(carries)
    inputs = (*mask[:num_consts], *[False] * count, *mask[num_consts:])
    last = read_back.last_arrays(body)
    parts = partitioner.economical(linearize_body(body, inputs), num_consts + count, num_carry, last)
    return parts, dict(zip(parts.primal.invars[num_consts:], carries))


class _Logged(NamedTuple):
    """The primal half of a body as it runs in the loop: without last arrays, with the logs of the way back.

    Attributes
    ----------
    body : Jaxpr
        From captured values, constants, carry and rows.
    captured : tuple
        The captured values.
    residuals : list of Atom
        Variables of the body; a last array is still one of the linearized body.
    past : Past or None
        The way back.
    """

    body: Jaxpr
    captured: tuple[Any, ...]
    residuals: list[Atom]
    past: Past | None


def _without_last_arrays(parts: LinearizedJaxpr, last: Sequence[Var], sizes: tuple[int, int]) -> _Logged:
    primal = parts.primal
    values = [primal.invars[i] if where == "in" else primal.outvars[i] for where, i in parts.residuals]
    inputs = [v for v in primal.invars if v not in last]
    logging, past = rewinding.with_log(primal.replace(invars=inputs), values, *sizes)
    body, captured = lift_constants(logging)
    again: dict[Atom, Atom] = dict(zip(inputs, body.invars[len(captured) :]))
    residuals = [
        again.get(v, v) if where == "in" else body.outvars[i]
        for v, (where, i) in zip(values, parts.residuals)
    ]
    return _Logged(body, captured, residuals, past)


# --- where they are found -----------------------------------------------------------------------------------


class _Finder:
    """Finds what the linear half needs; what the loop does not have otherwise becomes a stacked output, in `outs`."""

    def __init__(
        self,
        last: Mapping[Var, int],
        *,
        operands: dict[Atom, int],
        invariant: dict[Atom, int],
        restored: dict[Atom, int],
        outs: list[Atom],
        sizes: tuple[int, int],
    ):
        self.last: Mapping[Any, int] = last
        self.operands = operands
        self.invariant = invariant
        self.restored = restored
        self.outs = outs
        self.num_consts, self.num_carry = sizes

    def place(self, v: Atom, count: Count | None = None) -> ResidualPlace:
        """Where a variable of the body is found, if it is stored only where it cannot be recomputed."""
        if v in self.last:
            return ResidualPlace(Role.CONST, Origin.RESULT, self.last[v])
        if count is not None:
            return ResidualPlace(Role.COUNT, Origin.OPERAND, self.num_consts + count.carry)
        if v in self.restored:
            return ResidualPlace(Role.ROW, Origin.RESTORED, self.restored[v])
        operand = self.operands.get(v)
        if operand is not None and operand < self.num_consts:
            return ResidualPlace(Role.CONST, Origin.OPERAND, operand)
        if operand is not None and operand >= self.num_consts + self.num_carry:
            return ResidualPlace(Role.ROW, Origin.OPERAND, operand)
        if v in self.invariant:
            return ResidualPlace(Role.CONST, Origin.INVARIANT, self.invariant[v])
        if v not in self.outs[self.num_carry :]:
            self.outs.append(v)
        return ResidualPlace(Role.ROW, Origin.RESULT, self.num_carry + self.outs[self.num_carry :].index(v))


def _of_role(places: Iterable[ResidualPlace], role: Role) -> list[ResidualPlace]:
    return [place for place in places if place.role is role]


# --- the bodies ---------------------------------------------------------------------------------------------


def _primal_half(inside: Jaxpr, outs: Sequence[Atom], num_consts: int) -> tuple[Jaxpr, Mask]:
    """The body that returns `outs`, and which of its first `num_consts` inputs it reads and keeps."""
    consts, others = split(inside.invars, num_consts)
    used = variables_read(inside.eqns, outs)
    read = tuple([v in used for v in consts])
    primal = inside.replace(invars=[*chosen(consts, read), *others], outvars=outs)
    return verified(primal, "linearize of scan"), read


def _way_back(primal: Jaxpr, past: Past, places: Sequence[ResidualPlace]) -> WayBack:
    consts, rows = (
        [v for v, place in zip(past.needs, places) if place.role is role] for role in (Role.CONST, Role.ROW)
    )
    body = primal.replace(
        invars=[*consts, *past.after, *rows],
        eqns=past.back,
        outvars=[*past.before, *past.versions.values()],
        constants=(),
        name=f"past({primal.name})",
    )
    return WayBack(
        verified(body, "rewind"), past.carries, _of_role(places, Role.CONST), _of_role(places, Role.ROW)
    )


def _linear_half(
    parts: LinearizedJaxpr,
    places: Sequence[ResidualPlace],
    counts: Sequence[Count | None],
    mask: Mask,
    sizes: tuple[int, int],
) -> tuple[Jaxpr, tuple[Any, ...]]:
    linear, captured = lift_constants(parts.linear)
    new = JaxprBuilder(linear.replace(eqns=[]))
    front, residuals, rest = split(linear.invars, len(captured), len(places))
    masks = split(mask, *sizes)
    t_consts, t_carry, t_rows = split(rest, sum(masks[0]), sum(masks[1]))
    consts = [v for v, place in zip(residuals, places) if place.role is Role.CONST]
    rows = [v for v, place in zip(residuals, places) if place.role is Role.ROW]
    counted = [(v, c) for v, c, place in zip(residuals, counts, places) if c and place.role is Role.COUNT]
    starts = [Var(Aval((), INT64)) for _ in counted]
    numbers = [Var(v.aval) for v in starts]
    instead: dict[Any, Atom] = {
        v: counting.counted(new, v, count, start, number)
        for (v, count), start, number in zip(counted, starts, numbers)
    }
    new.eqns += substitute(linear.eqns, instead)
    outs = scatter(parts.nonzero, linear.outvars)
    carried = iter(t_carry)
    pairs = [(next(carried), t) for t, m in zip(outs, masks[1]) if m]
    carry = [new.zeros(v.aval) if t is None else t for v, t in pairs]
    invars = [*front, *consts, *starts, *t_consts, *t_carry, *rows, *numbers, *t_rows]
    outvars = [*carry, *[t for t in outs[sizes[1] :] if t is not None]]
    return new.finish("linearize of scan", outvars, invars), captured
