"""The record that every front end builds: a function of flat values, with its rules; and how its slots are run.

Slots run on the operands of an equation, mapped over the axes that `vmap` gave it. `lanes` are these axes, outermost
first: the size of each, and where each operand has it. Outputs have them in front. A slot without lanes runs in a
`StandInTrace`, where captured tracers stand for the leading operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..control.interned import UserCode
from ..core.aval import Aval, Zero, aval_of
from ..core.errors import CapturedTracerError, UnexpectedTracerError
from ..core.primitive import Linear
from ..core.source import replayed
from ..core.trace import current_trace, tracing
from ..primitives.elementwise.arithmetic import mul_p
from ..primitives.reductions.reduce import reduce_sum_p
from ..primitives.structure.linear import batched_first, move_axis
from ..transforms.batch import BatchTrace
from .closures import Capture, StandInTrace

Mask = tuple[bool, ...]
Values = Sequence[Any]


class Forward(NamedTuple):
    """What a rule's forward pass gives when the reverse pass is to follow.

    Attributes
    ----------
    outs : list of values
    residuals : list of values
        What `bwd` gets again; of the same trace as `outs`.
    token : object
        What else `bwd` gets again: structures, flags, anything that is no array.
    differentiable : tuple of bool or None
        Which outputs have a derivative; None: all of float or complex dtype.
    materialized : bool
        Whether `bwd` takes a symbolic zero for zeros. Then residuals that it does not read are not kept.
    """

    outs: list[Any]
    residuals: list[Any]
    token: Any = None
    differentiable: Mask | None = None
    materialized: bool = True


@dataclass(frozen=True, eq=False)
class CustomRule(UserCode):
    """A function of flat values, with rules of its own. What an absent slot means is said beside it.

    Slots are called with values (arrays, NumPy scalars, tracers; Python numbers arrive as tracers with a concrete
    value) one level down: what they bind is computed, differentiated or staged by the transformations outside.

    Attributes
    ----------
    name : str
        For messages and printing.
    arity : int
        The number of operands that the slots get.
    fwd : callable
        ``fwd(values) -> outs``.
    fwd_res : callable
        ``fwd_res(values, perturbed, again) -> Forward``. ``again()`` applies the rule one level down and returns its
        outputs: so that the rule holds at every level of differentiation.
    bwd : callable
        ``bwd(token, residuals, cts) -> cts``: cotangents, each a value or `Zero` (or None), an entry an operand.
        Absent: reverse mode transposes `jvp`.
    jvp : callable
        ``jvp(values, tangents, again) -> (outs, tangents)``, tangents being values or `Zero`. Absent: forward mode
        transposes `bwd`.
    vmap : callable
        ``vmap(size, values, dims) -> (outs, dims)``. Absent: all other slots are batched.
    transpose : callable
        ``transpose(cts, values) -> cts`` where the function is linear in the operands that are `Linear`. Absent: `bwd`,
        if that does not read their values; without `bwd`, the traced `fwd` transposed.
    derive_jvp : bool
        Whether `bwd` may be transposed for forward mode.
    plain : callable
        What is differentiated, like any other function, where there is no `bwd` (in forward mode: no `jvp`), or a
        captured value is being differentiated; mostly `fwd` itself. None: a mode without a rule, and a captured value
        that is read, are errors.
    no_reverse, no_forward : str
        What the error says where a mode has no rule.
    outs : tuple of Aval or None
        The types of the outputs, where they are known before it runs: it is then not traced to find them.
    captured_constant : bool
        Whether derivatives in captured values are none of the rule's business: those of a solver, say, that is told by
        an equation what it solves. Otherwise a captured value that is being differentiated must not be read.
    captures : tuple of Capture
        Tracers that the slots' functions captured; their values are leading operands, which slots do not get.
    """

    name: str
    arity: int
    fwd: Callable[[Values], list[Any]]
    fwd_res: Callable[[Values, Mask, Callable[[], list[Any]]], Forward] | None = None
    bwd: Callable[[Any, Values, Values], Sequence[Any]] | None = None
    jvp: Callable[[Values, Values, Callable[[], list[Any]]], tuple[Sequence[Any], Sequence[Any]]] | None = (
        None
    )
    vmap: Callable[[int, Values, Sequence[int | None]], tuple[Sequence[Any], Sequence[int | None]]] | None = (
        None
    )
    transpose: Callable[[Values, Values], Sequence[Any]] | None = None
    derive_jvp: bool = True
    plain: Callable[[Values], list[Any]] | None = None
    no_reverse: str = "it has no rule for reverse mode"
    no_forward: str = "it has no rule for forward mode"
    outs: tuple[Aval, ...] | None = None
    captured_constant: bool = False
    captures: tuple[Capture, ...] = ()

    @property
    def operands(self) -> int:
        """The number of operands of the primitive, captured ones included."""
        return len(self.captures) + self.arity

    def __repr__(self) -> str:
        return self.name


#: For each axis of `vmap` that a rule is mapped over: its size, and where each operand has it.
Lanes = tuple[tuple[int, tuple[int | None, ...]], ...]
_NUMBERS = frozenset((int, float, complex))


def fwd(rule: CustomRule, lanes: Lanes, operands: Values) -> list[Any]:
    """The outputs."""
    if not lanes:
        inside = _Inside(rule, operands)
        return inside.run(lambda: rule.fwd(inside.values))
    lane = _Lane(lanes[0])
    return lane.stacked(tracing(lane.trace, lambda: fwd(rule, lanes[1:], lane.lifted(operands))))


def fwd_res(
    rule: CustomRule, lanes: Lanes, operands: Values, perturbed: Mask, again: Callable[[], list[Any]]
) -> Forward:
    """The outputs, and what the reverse pass needs; `again` applies the whole equation one level down."""
    assert rule.fwd_res is not None
    if not lanes:
        inside = _Inside(rule, operands)
        mask = perturbed[len(rule.captures) :]
        found = inside.forward(lambda: rule.fwd_res(inside.values, mask, lambda: inside.lifted(again())))  # type: ignore[misc]
        return found._replace(differentiable=_differentiable(found))
    lane = _Lane(lanes[0])
    found = tracing(
        lane.trace,
        lambda: fwd_res(rule, lanes[1:], lane.lifted(operands), perturbed, lambda: lane.fronted(again())),
    )
    pairs = [lane.trace.lower(x) for x in found.residuals]
    token = _LaneToken(found.token, tuple([d for _, d in pairs]))
    return found._replace(outs=lane.stacked(found.outs), residuals=[x for x, _ in pairs], token=token)


def _differentiable(found: Forward) -> Mask:
    inexact = [aval_of(x).dtype.kind in "fc" for x in found.outs]
    mask = (True,) * len(inexact) if found.differentiable is None else found.differentiable
    return tuple([a and b for a, b in zip(inexact, mask, strict=True)])


def bwd(
    rule: CustomRule, lanes: Lanes, token: Any, captured: Values, residuals: Values, cts: Values
) -> list[Any]:
    """Cotangents (values or `Zero`) of the operands that are not captured."""
    assert rule.bwd is not None
    if not lanes:
        inside = _Inside(rule, [*captured, *residuals])
        cotangents = [x if type(x) is Zero else _strong(x) for x in cts]
        found = inside.run(lambda: rule.bwd(token, inside.values, cotangents))  # type: ignore[misc]
        if len(found) != rule.arity:
            raise AssertionError(f"{rule.name}: {len(found)} cotangents for {rule.arity} operands")
        return found
    lane = _Lane(lanes[0])
    count = len(captured)
    found = tracing(
        lane.trace,
        lambda: bwd(
            rule,
            lanes[1:],
            token.inner,
            lane.lifted(captured),
            [lane.trace.lift(x, d) for x, d in zip(residuals, token.dims)],
            lane.fronted(cts),
        ),
    )
    return [lane.gathered(ct, d) for ct, d in zip(found, lane.dims[count:])]


def jvp(
    rule: CustomRule, lanes: Lanes, operands: Values, tangents: Values, again: Callable[[], list[Any]]
) -> tuple[list[Any], list[Any]]:
    """Outputs and their tangents (values or `Zero`)."""
    assert rule.jvp is not None
    if not lanes:
        inside = _Inside(rule, operands)
        moving = [t if type(t) is Zero else _strong(t) for t in tangents[len(rule.captures) :]]
        count = 0

        def both() -> list[Any]:
            nonlocal count
            outs, found = rule.jvp(inside.values, moving, lambda: inside.lifted(again()))  # type: ignore[misc]
            count = len(outs)
            return [*outs, *found]

        flat = inside.run(both)
        return flat[:count], flat[count:]
    lane = _Lane(lanes[0])
    outs, found = tracing(
        lane.trace,
        lambda: jvp(
            rule, lanes[1:], lane.lifted(operands), lane.lifted(tangents), lambda: lane.fronted(again())
        ),
    )
    return lane.stacked(outs), [t if type(t) is Zero else lane.stack(t) for t in found]


def transpose(rule: CustomRule, lanes: Lanes, cts: Values, operands: Values) -> list[Any]:
    """Cotangents of the operands that are `Linear`, by the rule's own transpose; None for all others."""
    assert rule.transpose is not None
    if not lanes:
        n = len(rule.captures)
        inside = _Inside(rule, operands[:n], operands[n:])
        cotangents = [x if type(x) is Zero else _strong(x) for x in cts]
        return [None] * n + inside.run(lambda: rule.transpose(cotangents, inside.values))  # type: ignore[misc]
    lane = _Lane(lanes[0])
    found = tracing(lane.trace, lambda: transpose(rule, lanes[1:], lane.fronted(cts), lane.lifted(operands)))
    return [None if ct is None else lane.gathered(ct, d) for ct, d in zip(found, lane.dims)]


def vmap(
    rule: CustomRule, size: int, operands: Values, dims: Sequence[int | None]
) -> tuple[Sequence[Any], Sequence[int | None]]:
    """Outputs and their batch axes, by the rule's own rule."""
    assert rule.vmap is not None
    inside = _Inside(rule, operands)
    found: list[Sequence[int | None]] = []

    def outs() -> Sequence[Any]:
        values, out_dims = rule.vmap(size, inside.values, dims[len(rule.captures) :])  # type: ignore[misc]
        found.append(out_dims)
        return values

    return inside.run(outs), found[0]


# --- one lane ------------------------------------------------------------------------------------------------


class _Inside:
    """Where a slot runs: with captured tracers and Python numbers stood in for."""

    __slots__ = ("name", "trace", "values")

    def __init__(self, rule: CustomRule, operands: Values, args: Values | None = None):
        self.name = rule.name
        count = len(rule.captures)
        values = list(operands[count:] if args is None else args)
        self.trace: StandInTrace | None = None
        if count or any(type(x) in _NUMBERS for x in values):
            self.trace = StandInTrace(current_trace.get(), rule.captures, operands[:count], rule.name)
        self.values = self.lifted(values)

    def lifted(self, values: Values) -> list[Any]:
        if self.trace is None:
            return [np.bool_(x) if type(x) is bool else x for x in values]
        return [np.bool_(x) if type(x) is bool else self.trace.lift(x) for x in values]

    def run(self, slot: Callable[[], Sequence[Any]]) -> list[Any]:
        outs = self._called(slot)
        return list(outs) if self.trace is None else [self.trace.lower(x) for x in outs]

    def forward(self, slot: Callable[[], Forward]) -> Forward:
        found = self._called(slot)
        if self.trace is None:
            return found
        lower = self.trace.lower
        outs, residuals = [[lower(x) for x in values] for values in (found.outs, found.residuals)]
        return found._replace(outs=outs, residuals=residuals)

    def _called(self, slot: Callable[[], Any]) -> Any:
        """The slot's result; what it stages, and its errors, have lines of its own, also while a jaxpr is replayed."""
        before = replayed.get()
        try:
            replayed.set(None)
            return slot() if self.trace is None else tracing(self.trace, slot)
        except UnexpectedTracerError as error:
            raise CapturedTracerError(
                f"{self.name}: its rules read a traced value from where functrans does not look for one: a global "
                "variable, an attribute of a class, an object kept in ctx, a function kept there. Pass it as an "
                "argument; what a backward needs, save by itself (ctx.save_for_backward, or an attribute of ctx)",
                error.source,
            ) from error
        finally:
            replayed.set(before)


def _strong(x: Any) -> Any:
    """A tangent or cotangent with a dtype of its own."""
    return aval_of(x).dtype.type(x) if type(x) in _NUMBERS else x


# --- mapped --------------------------------------------------------------------------------------------------


class _LaneToken(NamedTuple):
    """The token of a mapped rule: that of one example, and the batch axes of the residuals."""

    inner: Any
    dims: tuple[int | None, ...]


class _Lane:
    """One mapped axis: values of the trace outside to those of one example, and back."""

    __slots__ = ("dims", "size", "trace")

    def __init__(self, lane: tuple[int, tuple[int | None, ...]]):
        self.size, self.dims = lane
        self.trace = BatchTrace(current_trace.get(), self.size)

    def lifted(self, operands: Values) -> list[Any]:
        """Operands (or the first of them) as one example sees them."""
        return [self.lift(x, d) for x, d in zip(operands, self.dims)]

    def lift(self, x: Any, dim: int | None) -> Any:
        """A value, a symbolic zero or a `Linear` as one example sees it."""
        if type(x) is not Zero and type(x) is not Linear:
            return self.trace.lift(x, dim)
        aval = x.aval
        return x if dim is None else type(x)(aval.with_shape(aval.shape[:dim] + aval.shape[dim + 1 :]))

    def fronted(self, values: Values) -> list[Any]:
        """Values with the axis in front as one example sees them."""
        return [self.lift(x, 0) for x in values]

    def stack(self, x: Any) -> Any:
        value, dim = self.trace.lower(x)
        return batched_first(self.size, value, dim)

    def stacked(self, values: Values) -> list[Any]:
        """One example's values with the axis in front."""
        return [self.stack(x) for x in values]

    def gathered(self, ct: Any, dim: int | None) -> Any:
        """The cotangent of an operand that has the axis at `dim`; summed over examples where they share it."""
        if ct is None:
            return None
        if type(ct) is Zero:
            return Zero(_whole(ct.aval, self.size, dim))
        value, found = self.trace.lower(ct)
        if dim is not None:
            return move_axis(batched_first(self.size, value, found), 0, dim)
        if found is not None:
            return reduce_sum_p.bind(value, axes=(found,))
        return mul_p.bind(value, aval_of(value).dtype.type(self.size))


def _whole(aval: Aval, size: int, dim: int | None) -> Aval:
    return aval if dim is None else aval.with_shape((*aval.shape[:dim], size, *aval.shape[dim:]))
