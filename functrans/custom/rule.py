"""The rule that every front end builds: a function of flat values, with slots; and how slots are run.

Slots run on the operands of an equation, mapped over the axes that `vmap` gave it. `lanes` are these axes, outermost
first: the size of each, and where each operand has it. Outputs have them in front. A slot without lanes runs in a
`StandInTrace` if it needs stand-ins: for captured tracers (the leading operands), and for Python numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.autocast import autocasting, under
from ..control.bodies.cache import UserCode
from ..core.aval import PYTHON_NUMBERS, PYTHON_SCALARS, Aval, Zero, aval_of
from ..core.primitive import Linear
from ..core.trace import current_trace, tracing
from ..core.values import ArrayLike, PyTree, Tangent, Value
from ..errors import CapturedTracerError, UnexpectedTracerError
from ..errors.source import replayed
from ..primitives.elementwise.arithmetic import mul_p
from ..primitives.reductions.reduce import reduce_sum_p
from ..primitives.structure.linear import batched_first, move_axis
from ..runtime.records import NamedTuple
from ..transforms.batch import BatchTrace
from ..transforms.substituted import Capture
from .closures import StandInTrace

if TYPE_CHECKING:
    from ..arrays.autocast_rules import Autocast

Mask = tuple[bool, ...]
Values = Sequence[Any]
#: Applies a rule one level down, and gives the outputs.
Again = Callable[[], list[Any]]
#: Outputs, and their tangents (of a batching rule: their batch axes).
Pushed = tuple[Sequence[Any], Sequence[Any]]


class Lane(NamedTuple):
    """An axis of `vmap` that a rule is mapped over.

    Attributes
    ----------
    size : int
    dims : tuple of (int or None)
        Where each operand has it.
    shared : list of bool
        Which outputs are the same for all examples; known once a slot has run.
    """

    size: int
    dims: tuple[int | None, ...]
    shared: list[bool]


Lanes = tuple[Lane, ...]
Dims = Sequence[int | None]
UserFunction = Callable[..., Any]


class Forward(NamedTuple):
    """What a rule's forward pass gives when the reverse pass is to follow.

    Attributes
    ----------
    outs : list of values
    residuals : list of values
        What `bwd` gets again; of the same trace as `outs`.
    token : object
        What else `bwd` gets again: structures, flags, anything but arrays.
    differentiable : tuple of bool or None
        Which outputs have a derivative; None: all of float or complex dtype.
    materialized : bool
        Whether `bwd` takes zeros for symbolic zeros. Then residuals that it does not read are not kept.
    """

    outs: list[Any]
    residuals: list[Any]
    token: Any = None
    differentiable: Mask | None = None
    materialized: bool = True


class CustomRule(UserCode):
    """One call of a function of flat values with rules from the user. Front ends write the slots that they have.

    Slots are called with values (arrays, NumPy scalars, tracers; Python numbers arrive as tracers with a concrete
    value) one level down: what they bind is computed, differentiated or staged by the transformations outside.

    Attributes
    ----------
    name : str
        For messages and printing.
    arity : int
        The number of operands that the slots get.
    has_reverse : bool
        Whether there are `fwd_res` and `bwd`; without, reverse mode transposes `jvp`.
    has_forward : bool
        Whether there is `jvp`; without, forward mode transposes `bwd`, where `derive_jvp` allows it.
    has_vmap : bool
        Whether there is `vmap`; without, all other slots are batched.
    has_transpose : bool
        Whether there is `transpose`; without, `bwd` serves, if it does not read the values of what the function is
        linear in; without `bwd`, the traced `fwd` is transposed.
    has_plain : bool
        Whether `plain` is differentiated like any other function where a mode has no rule, and where a captured value
        is being differentiated. Without, both are errors.
    derive_jvp : bool
    no_reverse, no_forward : str
        What the error says where a mode has no rule.
    outs : tuple of Aval or None
        The types of the outputs, where they are known before it runs: it is then not traced to find them.
    captured_constant : bool
        Whether the rule may ignore derivatives in captured values: a solver's derivative follows from an equation,
        whatever its functions captured. Otherwise they must not read a value that is being differentiated.
    backward_autocast : str or None
        The autocast of `bwd` where the rule says so: "forward", that of the forward pass, or "off".
    dirty : mapping
        The operands that outputs replace, known when the forward pass has run: their numbers, and those of the outputs.
    """

    name: str
    arity: int
    has_reverse = False
    has_forward = False
    has_vmap = False
    has_transpose = False
    has_plain = False
    derive_jvp = True
    no_reverse = "it has no rule for reverse mode"
    no_forward = "it has no rule for forward mode"
    outs: tuple[Aval, ...] | None = None
    captured_constant = False
    backward_autocast: str | None = None
    dirty: Mapping[int, int] = MappingProxyType({})

    def fwd(self, values: Values) -> Values:
        """The outputs."""
        raise NotImplementedError

    def plain(self, values: Values) -> Values:
        """The outputs, in a form that automatic differentiation may look into."""
        return self.fwd(values)

    def fwd_res(self, values: Values, perturbed: Mask, again: Again) -> Forward:
        """The outputs, and what `bwd` needs.

        ``again()`` applies the rule one level down and returns its outputs: so that the rule holds at every level of
        differentiation.
        """
        raise NotImplementedError

    def bwd(self, token: Any, residuals: Values, cts: Values) -> Values:
        """Cotangents, each a value or `Zero` (or None), an entry an operand."""
        raise NotImplementedError

    def jvp(self, values: Values, tangents: Values, again: Again) -> Pushed:
        """Outputs and their tangents; tangents are values or `Zero`."""
        raise NotImplementedError

    def vmap(self, size: int, values: Values, dims: Dims) -> Pushed:
        """Outputs for all examples, and where they have the mapped axis."""
        raise NotImplementedError

    def transpose(self, cts: Values, values: Values) -> Values:
        """Cotangents of the operands that are `Linear`, where the function is linear in these."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name


class Applied(UserCode):
    """A rule as an equation applies it: the parameter of ``custom_call``. Its methods run the slots.

    Attributes
    ----------
    rule : CustomRule
    captures : tuple of Capture
        Tracers that the slots' functions captured. Their values are leading operands, which slots do not receive.
    lanes : tuple
        See `Lanes`.
    autocast : Autocast or None
        That of the call: all slots but `bwd` run under it, also if a jaxpr is derived elsewhere.
    """

    __slots__ = ("autocast", "captures", "lanes", "rule")

    def __init__(
        self,
        rule: CustomRule,
        captures: Sequence[Capture] = (),
        lanes: Lanes = (),
        autocast: Autocast | None = None,
    ):
        self.rule = rule
        self.captures = captures
        self.lanes = lanes
        self.autocast = autocast

    def over(self, lanes: Lanes) -> Applied:
        """Mapped over these axes."""
        return Applied(self.rule, self.captures, lanes, self.autocast)

    @property
    def name(self) -> str:
        """That of the rule."""
        return self.rule.name

    def __repr__(self) -> str:
        return self.rule.name

    def own(self, values: Values) -> Values:
        """The operands of the rule: without the constants of its jaxpr, that `lift_constants` puts in front."""
        first = len(values) - len(self.captures) - self.rule.arity
        return values[first:] if first else values

    def capturing(self, captures: Sequence[Capture]) -> Applied:
        """With other captured values; more of them stand in front."""
        more = (None,) * (len(captures) - len(self.captures))
        lanes = (
            tuple([lane._replace(dims=(*more, *lane.dims)) for lane in self.lanes]) if more else self.lanes
        )
        return Applied(self.rule, captures, lanes, self.autocast)

    def marked(self, mask: Mask, by: str) -> Applied:
        """Refusing to read captured values that are being differentiated."""
        if self.rule.captured_constant or not any(mask[: len(self.captures)]):
            return self
        return self.capturing(
            [
                c._replace(differentiated=c.differentiated or by) if m else c
                for c, m in zip(self.captures, mask)
            ]
        )

    # --- slots ----------------------------------------------------------------------------------------------------

    def fwd(self, *operands: PyTree) -> list[Value]:
        """The outputs."""
        return self._outputs("fwd", operands)

    def plain(self, *operands: ArrayLike) -> list[Value]:
        """The outputs, to be differentiated."""
        return self._outputs("plain", operands)

    def _outputs(self, slot: str, operands: Values) -> list[Value]:
        if not self.lanes:
            return list(self._run(self._as_called(getattr(self.rule, slot)), operands))
        lane, inner = self._lane()
        return self._stacked(lane, tracing(lane.trace, getattr(inner, slot), *lane.lifted(operands)))

    def _stacked(self, lane: _Lane, outs: Values) -> list[Value]:
        """Outputs with the outermost axis in front; which of them are the same for all examples is noted."""
        self.lanes[0].shared[:] = [lane.trace.lower(x)[1] is None for x in outs]
        return lane.stacked(outs)

    def fwd_res(self, operands: Values, perturbed: Mask, again: Again) -> Forward:
        """The outputs, and what the reverse pass needs; `again` applies the whole equation one level down."""
        if not self.lanes:
            return self._run(
                self._as_called(self.rule.fwd_res), operands, perturbed[len(self.captures) :], again
            )
        lane, inner = self._lane()
        result = tracing(
            lane.trace, inner.fwd_res, lane.lifted(operands), perturbed, lambda: lane.fronted(again())
        )
        pairs = [lane.trace.lower(x) for x in result.residuals]
        outs = self._stacked(lane, result.outs)
        spread = tuple(self.lanes[0].shared) if lane.trace.collective else ()
        token = _LaneToken(result.token, tuple([d for _, d in pairs]), spread)
        return result._replace(outs=outs, residuals=[x for x, _ in pairs], token=token)

    def bwd(self, token: Any, captured: Values, residuals: Values, cts: Values) -> Values:
        """Cotangents (values or `Zero`) of the operands that are not captured."""
        if not self.lanes:
            if not PYTHON_NUMBERS.isdisjoint(map(type, cts)):
                cts = list(map(_strong, cts))
            known = [*captured, *residuals] if captured else residuals
            back = self._run(self._bwd, known, token, cts)
            if len(back) != self.rule.arity:
                raise AssertionError(f"{self.name}: {len(back)} cotangents for {self.rule.arity} operands")
            return back
        lane, inner = self._lane()
        saved = [lane.trace.lift(x, d) for x, d in zip(residuals, token.dims)]
        if True in token.spread:
            cts = [lane.spread(ct) if s else ct for ct, s in zip(cts, token.spread)]
        back = tracing(lane.trace, inner.bwd, token.inner, lane.lifted(captured), saved, lane.fronted(cts))
        return [lane.gathered(ct, d) for ct, d in zip(back, lane.dims[len(captured) :])]

    def _bwd(self, residuals: Values, token: Any, cts: Values) -> Values:
        return self.rule.bwd(token, residuals, cts)

    def jvp(self, operands: Values, tangents: Values, again: Again) -> Pushed:
        """Outputs and their tangents (values or `Zero`)."""
        if not self.lanes:
            own = list(map(_strong, tangents[len(self.captures) :]))
            return self._run(self._as_called(self.rule.jvp), operands, own, again)
        lane, inner = self._lane()
        ins, ts = lane.lifted(operands), lane.lifted(tangents)
        outs, out_ts = tracing(lane.trace, inner.jvp, ins, ts, lambda: lane.fronted(again()))
        return self._stacked(lane, outs), [t if type(t) is Zero else lane.stack(t) for t in out_ts]

    def transpose(self, cts: Values, operands: Values) -> list[Any]:
        """Cotangents of the operands that are `Linear`, by the rule's transpose; None for all others."""
        if not self.lanes:
            back = self._run(partial(self.rule.transpose, list(map(_strong, cts))), operands)
            return [*[None] * len(self.captures), *back]
        lane, inner = self._lane()
        back = tracing(lane.trace, inner.transpose, lane.fronted(cts), lane.lifted(operands))
        return [lane.gathered(ct, d) for ct, d in zip(back, lane.dims)]

    def vmap(self, size: int, operands: Values, dims: Dims) -> Pushed:
        """Outputs and their batch axes, by the rule for batching."""
        return self._run(self._as_called(partial(self.rule.vmap, size)), operands, dims[len(self.captures) :])

    def _as_called(self, slot: UserFunction) -> UserFunction:
        """The slot, under the autocast of the call."""
        return partial(under, self.autocast, slot) if autocasting.used else slot

    def _run(self, slot: UserFunction, operands: Values, *rest: PyTree) -> Any:
        """The slot's result; what it stages, and its errors, have the source lines of the rule."""
        count = len(self.captures)
        values = operands[count:] if count else operands
        trace = None
        if count or not PYTHON_SCALARS.isdisjoint(map(type, values)):
            trace = StandInTrace(current_trace.get(), self.captures, operands[:count], self.name)
            values = [np.bool_(x) if type(x) is bool else trace.lift(x) for x in values]
        before = replayed.get()
        try:
            if before is not None:  # a jaxpr is being replayed
                replayed.set(None)
            if trace is None:
                return slot(values, *rest)
            return lowered(tracing(trace, slot, values, *rest), trace)
        except UnexpectedTracerError as error:
            raise CapturedTracerError(
                f"{self.name}: its rules read a traced value from where functrans does not look for one: a global "
                "variable, an attribute of a class, an object kept in ctx, a function kept there. Pass it as an "
                "argument; what a backward needs, save by itself (ctx.save_for_backward, or an attribute of ctx)",
                error.source,
            ) from error
        finally:
            if before is not None:
                replayed.set(before)

    def _lane(self) -> tuple[_Lane, Applied]:
        """The outermost mapped axis, and what is mapped over it."""
        return _Lane(self.lanes[0]), self.over(self.lanes[1:])


def lowered(result: Any, trace: Any) -> Any:
    """What a slot returned (values, a pair of sequences, a `Forward`), with values instead of a trace's tracers."""
    if type(result) is Forward:
        outs, residuals = lowered(result.outs, trace), lowered(result.residuals, trace)
        return result._replace(outs=outs, residuals=residuals)
    return [lowered(x, trace) if isinstance(x, list | tuple) else trace.lower(x) for x in result]


def _strong(x: Tangent) -> Tangent:
    """A tangent or cotangent with a dtype that is not weak: not a Python number."""
    return aval_of(x).dtype.type(x) if type(x) in PYTHON_NUMBERS else x


# --- mapped --------------------------------------------------------------------------------------------------


class _LaneToken(NamedTuple):
    """The token of a mapped rule: that of one example, the batch axes of the residuals, and which outputs are shared as
    results of collectives.
    """

    inner: Any
    dims: tuple[int | None, ...]
    spread: tuple[bool, ...]


class _Lane:
    """One mapped axis: values of the trace outside to those of one example, and back."""

    __slots__ = ("dims", "size", "trace")

    def __init__(self, lane: Lane):
        self.size, self.dims = lane.size, lane.dims
        self.trace = BatchTrace(current_trace.get(), self.size)

    def lifted(self, operands: Values) -> list[Tangent]:
        """Operands (or the first of them) as one example sees them."""
        return [self.lift(x, d) for x, d in zip(operands, self.dims)]

    def lift(self, x: Tangent, dim: int | None) -> Tangent:
        """A value, a symbolic zero or a `Linear` as one example sees it."""
        if type(x) is not Zero and type(x) is not Linear:
            return self.trace.lift(x, dim)
        aval = x.aval
        return x if dim is None else type(x)(aval.with_shape(aval.shape[:dim] + aval.shape[dim + 1 :]))

    def fronted(self, values: Values) -> list[Value]:
        """Values with the axis in front as one example sees them."""
        return [self.lift(x, 0) for x in values]

    def stack(self, x: Value) -> PyTree:
        value, dim = self.trace.lower(x)
        return batched_first(self.size, value, dim)

    def stacked(self, values: Values) -> list[Value]:
        """One example's values with the axis in front."""
        return [self.stack(x) for x in values]

    def spread(self, ct: ArrayLike) -> PyTree:
        """The cotangent of what a collective gave to all examples, for each of them. It came by one."""
        if type(ct) is Zero:
            return ct
        return batched_first(self.size, reduce_sum_p.bind(ct, axes=(0,)), None)

    def gathered(self, ct: Tangent, dim: int | None) -> Tangent:
        """The cotangent of an operand that has the axis at `dim`; summed over examples where they share it."""
        if ct is None:
            return None
        if type(ct) is Zero:
            return Zero(_whole(ct.aval, self.size, dim))
        value, own = self.trace.lower(ct)
        if dim is not None:
            return move_axis(batched_first(self.size, value, own), 0, dim)
        if own is not None:
            return reduce_sum_p.bind(value, axes=(own,))
        return mul_p.bind(value, aval_of(value).dtype.type(self.size))


def _whole(aval: Aval, size: int, dim: int | None) -> Aval:
    return aval if dim is None else aval.with_shape((*aval.shape[:dim], size, *aval.shape[dim:]))
