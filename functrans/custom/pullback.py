"""The derivative of a rule at a point, as its reverse rule gives it; and one rule for both modes.

What is linear can be transposed: `transposed_bwd` is forward mode from a reverse rule, `recorded_jvp` reverse mode
from a jvp. Either runs the user's rule with symbolic derivatives, and refuses what is seen not to be linear in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .. import errors
from ..arrays.autocast import autocasting, under
from ..control.bodies.cache import UserCode
from ..core import is_inexact
from ..core.aval import Aval, Zero, aval_of
from ..core.evaluation import bind_equation, evaluate, run_equations
from ..core.ir import Atom, Jaxpr, Var
from ..core.primitive import Linear
from ..core.trace import Tracer, concrete, current_trace, eval_trace, is_staged, tracing
from ..core.values import ArrayLike, PyTree, Tangent, Value
from ..passes.masks import Mask, chosen, scatter, split, with_zeros
from ..passes.toolkit import backward_slice, forward_slice, variables_read
from ..primitives.elementwise.arithmetic import mul_p, sub_p
from ..primitives.structure.linear import add_p, instantiate
from ..runtime.config import config
from ..runtime.context import run_quietly
from ..runtime.module_getattr import lazy_import
from ..runtime.unusual import unusual
from ..transforms.linearize import Entry, Linearized, LinearTracer, TangentTrace, replay
from ..transforms.stage import StagedTracer, stage
from ..transforms.transpose import backward
from .rule import Applied, Forward, Values

if TYPE_CHECKING:
    from ..arrays.autocast_rules import Autocast

#: Loads when autocast is first used.
autocast_rules = lazy_import("functrans.arrays.autocast_rules")


class Pullback(UserCode):
    """The linear map from tangents of a rule's operands to tangents of its outputs, at one point.

    The operands of its equation are the captured values, the residuals, the operands of the rule (if it has a jvp), and
    the tangents of those operands that are perturbed.

    Attributes
    ----------
    rule : Applied
    captured : int
        The number of captured values.
    token : object
        As `Forward.token`.
    mask : tuple of bool
        Which operands of the rule are perturbed, captured ones left out.
    outs : list of Aval
        All outputs.
    moving : list of bool
        Which outputs have a tangent.
    moving_avals : list of Aval
        The types of the tangents.
    residuals, known : int
        The numbers of residuals, and of all operands that are not tangents.
    traced : Jaxpr, optional
        `bwd`, where it was traced to see what it reads: from captured values, the residuals kept, and cotangents.
    compiled : bool
        Whether `bwd` becomes part of a program.
    autocast : Autocast or None
        The autocast of `bwd` in a program, by ``config.backward_pass_autocast``, or by the rule.
    nonzero : list of bool
        Which perturbed operands it has a cotangent for.
    """

    __slots__ = (
        "autocast", "captured", "compiled", "known", "mask", "moving", "moving_avals", "nonzero", "outs", "residuals",
        "rule", "token", "traced",
    )  # fmt: skip

    def __init__(self, rule: Applied, mask: Mask, result: Forward):
        self.rule = rule
        self.captured = len(rule.captures)
        self.mask = mask
        self.token = result.token
        self.residuals = len(result.residuals)
        self.known = self.captured + self.residuals + (rule.rule.arity if rule.rule.has_forward else 0)
        self.outs: list[Aval] = []
        self.moving: list[bool] = []
        for x in result.outs:
            aval = aval_of(x)
            self.outs.append(aval.strong() if aval.weak else aval)
            self.moving.append(is_inexact(aval.dtype))
        if result.differentiable is not None:
            self.moving = [a and b for a, b in zip(self.moving, result.differentiable, strict=True)]
        self.moving_avals = chosen(self.outs, self.moving) if False in self.moving else self.outs
        self.traced: Jaxpr | None = None
        self.nonzero: list[bool] = []
        self.compiled = is_staged()
        self.autocast = _assumed(rule) if self.compiled else None

    @property
    def name(self) -> str:
        """That of the rule."""
        return self.rule.name

    def __repr__(self) -> str:
        return self.rule.name

    def pulled(self, captured: Values, residuals: Values, cts: Values) -> list[Tangent]:
        """Cotangents (None or `Zero` where they are zero) of perturbed operands, for those of moving outputs."""
        if self.traced is not None:
            known = [instantiate(ct, a) for ct, a in zip(cts, self.moving_avals)]
            return scatter(self.nonzero, evaluate(self.traced, [*captured, *residuals, *known]))
        if len(cts) != len(self.outs):
            cts = with_zeros(self.moving, cts, self.outs)
        back = self._under(self.rule.bwd, self.token, captured, residuals, cts)
        return chosen(back, self.mask) if False in self.mask else list(back)

    @property
    def assumed_autocast(self) -> tuple[Autocast | None, str] | None:
        """What `bwd` assumes in a program, and its name; None where it runs where the pullback is called."""
        own = self.rule.rule.backward_autocast
        return (self.autocast, f"{self.name}Backward") if self.compiled and own is None else None

    def _under(self, f: Callable[..., PyTree], *args: PyTree) -> PyTree:
        """``f(*args)`` under the autocast that the rule or the options say, or that is on here."""
        if not autocasting.used:
            return f(*args)
        own = self.rule.rule.backward_autocast
        if own is not None:
            return under(self.rule.autocast if own == "forward" else None, f, *args)
        return under(self.autocast, f, *args) if self.compiled else f(*args)

    def without_zeros(self, captured: Values, residuals: Values, cts: Values) -> list[Any]:
        """The same; arrays of zeros that the reverse rule returns, which is linear too, are symbolic zeros."""
        return [Zero(ct) if is_zero(ct) else ct for ct in self.pulled(captured, residuals, cts)]

    def traced_now(self, captured: Values, residuals: Values) -> list[Any]:
        """Trace `bwd`. Gives the residuals that it reads, the only ones from now on, with what it captured."""
        values = [*captured, *residuals]

        def pull(*xs: ArrayLike) -> list[Any]:
            back = self.without_zeros(*split(xs, len(captured), len(residuals)))
            self.nonzero = [ct is not None and type(ct) is not Zero for ct in back]
            return chosen(back, self.nonzero)

        avals = [*map(aval_of, values), *self.moving_avals]
        jaxpr = stage(pull, avals, f"{self.name}Backward")
        read = variables_read(jaxpr.eqns, jaxpr.outvars)
        front, saved, back = split(jaxpr.invars, len(captured), len(residuals))
        mask = [v in read for v in saved]
        invars = [*front, *chosen(saved, mask), *jaxpr.constvars, *back]
        self.traced = jaxpr.replace(invars=invars, constants=())
        used = [*chosen(residuals, mask), *jaxpr.consts]
        self.known += len(used) - self.residuals
        self.residuals = len(used)
        return used


def _assumed(rule: Applied) -> Autocast | None:
    """The autocast of a rule's ``bwd`` in a program."""
    setting = config.backward_pass_autocast
    if setting == "same_as_forward":
        return rule.autocast
    if setting == "off":
        return None
    state = autocast_rules.state_after(map(autocast_rules.block_of, setting))
    if state is not None:
        autocasting.used = unusual.used = True
    return state


def independent(jaxpr: Jaxpr, inputs: Sequence[Var]) -> Jaxpr | None:
    """The jaxpr without all that depends on some of its inputs; None where an output does.

    What depends on them is gone also where it has an effect: a gradient that is not requested gathers from them.
    """
    reached = forward_slice(jaxpr.eqns, inputs)
    if not reached.isdisjoint(jaxpr.outvars):
        return None
    return jaxpr.replace(eqns=[e for e in jaxpr.eqns if reached.isdisjoint(e.invars)])


def is_zero(x: PyTree) -> bool:
    """Whether a derivative is an array of zeros, wherever the rule is applied."""
    value = _constant(x) if type(x) is StagedTracer else x
    return isinstance(value, np.ndarray | np.generic | float | complex) and not np.any(value)


def may_be_zero(x: PyTree) -> bool:
    """Whether a derivative is zero here or not known: a rule may have made it of zeros that stood for no derivative."""
    value = concrete(x)
    return value is None or not np.any(value)


def _constant(x: StagedTracer) -> Any:
    """The number that traced code makes of literals and constants alone; None where it reads anything else."""
    trace = x._trace
    env: dict[Atom, Any] = {v: c for v, c, _ in trace.consts.values() if not isinstance(c, Tracer)}
    eqns = backward_slice(trace.eqns, [x._var])
    known = {*env, *[v for e in eqns for v in e.outvars]}
    if any(not e.effects.movable for e in eqns) or not known.issuperset(variables_read(eqns)):
        return None
    run_equations(eqns, env, partial(tracing, eval_trace, bind_equation))
    return env.get(x._var)


def transposed_bwd(
    pull: Pullback, captured: Values, residuals: Values, tangents: Values
) -> list[Value | None]:
    """Tangents (values or `Zero`) of all outputs, for those of the perturbed operands.

    The reverse rule is run with cotangents that are recorded, not known; what it does to them is then transposed.
    """
    trace = TangentTrace(current_trace.get())
    cts = [trace.input(a) for a, m in zip(pull.outs, pull.moving) if m]
    try:
        back = tracing(trace, pull.without_zeros, captured, residuals, cts)
    except errors.ConcretizationTypeError as error:
        if not error.is_of(trace):  # of a number, not of a symbolic derivative
            raise
        _refuse(pull, f"it asks for numbers: {error.message.partition(':')[0]}", error)
    ends: list[Linear] = []
    given: list[Any] = []
    for ct, t in zip(back, tangents):
        if type(ct) is LinearTracer and ct._trace is trace:
            ends.append(ct.linear)
            given.append(t)
        elif ct is not None and type(ct) is not Zero and (all(pull.moving) or not may_be_zero(ct)):
            # (For an output that does not move it may have got an array of zeros, and returned what it made of that.)
            _refuse(pull, "it returns a value that does not depend on the cotangent")
    inputs: list[Linear | None] = [ct.linear for ct in cts]
    part = Linearized([], inputs, ends, trace.tape).pruned()
    _check_linear(pull, part)
    try:
        return with_zeros(pull.moving, backward(part.tape, ends, given, inputs), pull.outs)
    except errors.NoRuleError as error:
        return _refuse(pull, error.message, error)


def _refuse(pull: Pullback, why: str, cause: Exception | None = None) -> NoReturn:
    raise errors.MissingRuleError(
        f"forward mode through {pull.name}: {pull.rule.rule.no_forward}. None follows from its reverse rule, which is "
        f"not linear in the cotangent: {why}. Reverse mode works: write jacrev(grad(f)) for hessian(f), which is "
        "jacfwd(grad(f))"
    ) from cause


def _check_linear(pull: Pullback, part: Linearized) -> None:
    """Refuse what is known not to be linear; if all numbers are known, also what adds to the cotangent."""
    why = _nonlinear(part.tape)
    if why is not None:
        _refuse(pull, why)
    if _is_known(part.tape):
        zeros = [np.zeros(v.aval.shape, v.aval.dtype) for v in part.inputs if v is not None]
        pushed = map(np.asarray, run_quietly(tracing, eval_trace, replay, part, zeros))
        if any(type(x) is np.ndarray and np.any(x[np.isfinite(x)]) for x in pushed):
            _refuse(pull, "a cotangent of zero gives another value than zero")


def _nonlinear(tape: Sequence[Entry]) -> str | None:
    """What on a tape is not linear in the inputs, in words."""
    for entry in tape:
        name = entry.primitive.name
        if entry.primitive.transpose is None:
            return f"'{name}' of it"
        if all(not is_inexact(v.aval.dtype) for v in entry.outs):
            return f"'{name}' of it, which is of dtype {entry.outs[0].aval.dtype}"
        if entry.primitive is mul_p and all(type(a) is Linear for a in entry.args):
            return f"'{name}' of it by itself"
        if entry.primitive in (add_p, sub_p) and any(map(_adds, entry.args)):
            return f"'{name}' of it and a number that is not zero"
    return None


def _adds(a: Any) -> bool:
    """Whether an operand is known not to be zero."""
    value = None if type(a) is Linear else concrete(a)
    return value is not None and bool(np.any(value))


def _is_known(tape: Sequence[Entry]) -> bool:
    return not any(isinstance(a, Tracer) for entry in tape for a in entry.args)


def recorded_jvp(
    name: str, push: Callable[[], tuple[Any, Any]], given: Values
) -> tuple[Sequence[Any], list[Any]]:
    """Outputs and tangents of a rule's jvp, on the tape of the current trace, to be transposed.

    Parameters
    ----------
    name : str
        Of the rule.
    push : callable
        Runs it; gives outputs and tangents.
    given : sequence
        The tangents that it gets.

    Raises
    ------
    TangentError
        If it is known not to be linear.
    """
    trace = current_trace.get()
    if type(trace) is not TangentTrace:  # in another rule's jvp, which is checked as a whole
        return push()
    start = len(trace.tape)
    try:
        outs, tangents = push()
    except errors.ConcretizationTypeError as error:
        if not error.is_of(trace):  # of a number, not of a symbolic derivative
            raise
        _refuse_jvp(name, f"it asks for numbers: {error.message.partition(':')[0]}", error)
    if any(type(x) is LinearTracer and x._trace is trace for x in outs):
        _refuse_jvp(
            name,
            "its outputs depend on them, or seem to: a loop or a branch takes arguments and tangents together. "
            "Take the derivative of the loop by functrans.jvp instead",
        )
    pushed = [_recorded(name, t, given) for t in tangents]
    ends = [t.linear for t in pushed if type(t) is LinearTracer]
    why = _nonlinear(Linearized([], [], ends, trace.tape[start:]).pruned().tape)
    if why is not None:
        _refuse_jvp(
            name, f"{why}. Define a reverse rule (defvjp, backward), or multiply by the tangents only"
        )
    return outs, pushed


def _recorded(name: str, t: ArrayLike, given: Values) -> Tangent:
    """A tangent that a jvp returned, as what is transposed."""
    if type(t) is Zero or any(type(t) is type(x) and t._trace is x._trace for x in given):
        return t
    # Of an argument that does not move the rule may have got an array of zeros, and returned what it made of that.
    if is_zero(t) or (any(type(x) is Zero for x in given) and may_be_zero(t)):
        return Zero(t)
    why = "it returns a tangent that does not depend on those of the arguments. Multiply by these, or return zeros"
    return _refuse_jvp(name, why)


def _refuse_jvp(name: str, why: str, cause: Exception | None = None) -> NoReturn:
    raise errors.TangentError(
        f"reverse mode through {name} transposes its jvp, which is not linear in the tangents: {why}"
    ) from cause
