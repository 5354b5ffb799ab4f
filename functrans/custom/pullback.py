"""The derivative of a rule at a point, as its reverse rule gives it; and one rule for both modes.

What is linear can be transposed: `transposed_bwd` is forward mode from a reverse rule, `recorded_jvp` reverse mode
from a jvp. Either runs the user's rule with symbolic derivatives, and refuses what is seen not to be linear in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ..control.bodies import Mask, chosen, given, split
from ..control.interned import UserCode
from ..core.aval import Aval, Zero, aval_of
from ..core.context import run_quietly
from ..core.errors import ConcretizationError, MissingRuleError, NoRuleError, TangentError
from ..core.ir import Atom, Jaxpr, Literal, Var
from ..core.primitive import Linear
from ..core.trace import Tracer, concrete, current_trace, eval_trace, tracing
from ..primitives.elementwise.arithmetic import mul_p, sub_p
from ..primitives.structure.linear import add_p
from ..transforms.evaluate import evaluate
from ..transforms.linearize import Entry, Linearized, LinearTracer, TangentTrace, replay
from ..transforms.stage import StagedTracer, live_equations, stage
from ..transforms.transpose import backward
from . import rule as slots
from .rule import CustomRule, Forward, Lanes, Values


@dataclass(frozen=True, eq=False)
class Pull(UserCode):
    """The linear map from tangents of a rule's operands to tangents of its outputs, at one point.

    The operands of its equation are the captured values, the residuals, the operands of the rule (if it has a jvp), and
    the tangents of those operands that are perturbed.

    Attributes
    ----------
    rule : CustomRule
    lanes : tuple
    token : object
        As `Forward.token`.
    mask : tuple of bool
        Which operands of the rule are perturbed, captured ones left out.
    moving : tuple of bool
        Which outputs have a tangent.
    outs : list of Aval
        All outputs.
    residuals : int
        Their number.
    traced : Jaxpr, optional
        `bwd`, where it was traced to see what it reads: from captured values, the residuals kept, and cotangents.
    nonzero : tuple of bool
        Which perturbed operands it has a cotangent for.
    """

    rule: CustomRule
    lanes: Lanes
    token: Any
    mask: Mask
    moving: Mask
    outs: tuple[Aval, ...]
    residuals: int
    traced: Jaxpr | None = None
    nonzero: Mask = ()

    @staticmethod
    def of(rule: CustomRule, lanes: Lanes | None, mask: Mask, found: Forward) -> Pull:
        """The pull of a rule's forward pass."""
        assert found.differentiable is not None
        outs = tuple([aval_of(x).strong() for x in found.outs])
        return Pull(
            rule=rule,
            lanes=lanes or (),
            token=found.token,
            mask=mask[len(rule.captures) :],
            moving=found.differentiable,
            outs=outs,
            residuals=len(found.residuals),
        )

    def __repr__(self) -> str:
        return self.rule.name

    @property
    def captured(self) -> int:
        """The number of captured values."""
        return len(self.rule.captures)

    @property
    def known(self) -> int:
        """The number of operands that are no tangents."""
        primals = self.rule.arity if self.rule.jvp is not None else 0
        return self.captured + self.residuals + primals

    def perturbed(self, tangents: Values) -> list[Any]:
        """Of tangents of all operands those of perturbed ones."""
        return chosen(tangents[self.captured :], self.mask)

    def pulled(self, captured: Values, residuals: Values, cts: Values) -> list[Any]:
        """Cotangents (None or `Zero` where they are zero) of perturbed operands, for those of moving outputs."""
        if self.traced is not None:
            known = [given(ct, a) for ct, a in zip(cts, chosen(self.outs, self.moving))]
            found = iter(evaluate(self.traced, [*captured, *residuals, *known]))
            return [next(found) if m else None for m in self.nonzero]
        moving = iter(cts)
        everything = [next(moving) if m else Zero(a) for a, m in zip(self.outs, self.moving)]
        return chosen(
            slots.bwd(self.rule, self.lanes, self.token, captured, residuals, everything), self.mask
        )

    def traced_now(self, captured: Values, residuals: Values) -> tuple[Pull, list[Any]]:
        """With `bwd` traced, and without residuals that it does not read; captured arrays are residuals, too."""
        values = [*captured, *residuals]
        nonzero: list[bool] = []

        def pull(*xs: Any) -> list[Any]:
            found = without_zeros(self).pulled(*split(xs, len(captured), len(residuals)))
            nonzero[:] = [ct is not None and type(ct) is not Zero for ct in found]
            return chosen(found, nonzero)

        avals = [*map(aval_of, values), *chosen(self.outs, self.moving)]
        jaxpr = stage(pull, avals, f"{self.rule.name}Backward")
        read = variables_read(jaxpr)
        front, saved, back = split(jaxpr.invars, len(captured), len(residuals))
        mask = [v in read for v in saved]
        invars = [*front, *chosen(saved, mask), *jaxpr.constvars, *back]
        traced = Jaxpr(invars, jaxpr.eqns, jaxpr.outvars, name=jaxpr.name)
        kept = [*chosen(residuals, mask), *jaxpr.consts]
        return replace(self, residuals=len(kept), traced=traced, nonzero=tuple(nonzero)), kept


def variables_read(jaxpr: Jaxpr) -> set[Any]:
    """The variables that an equation or an output reads."""
    return {a for e in jaxpr.eqns for a in e.invars if type(a) is Var} | set(jaxpr.outvars)


def independent(jaxpr: Jaxpr, inputs: Sequence[Var]) -> Jaxpr | None:
    """The jaxpr without all that depends on some of its inputs; None where an output does.

    What depends on them is gone also where it has an effect: a gradient that nobody wants gathers from them.
    """
    reached, eqns = set(inputs), []
    for e in jaxpr.eqns:
        if reached.isdisjoint([a for a in e.invars if type(a) is Var]):
            eqns.append(e)
        else:
            reached.update(e.outvars)
    if not reached.isdisjoint([a for a in jaxpr.outvars if type(a) is Var]):
        return None
    return Jaxpr(jaxpr.invars, eqns, jaxpr.outvars, jaxpr.constvars, jaxpr.consts, jaxpr.name)


def without_zeros(pull: Pull) -> Pull:
    """The same; arrays of zeros that the reverse rule returns, which is linear too, are symbolic zeros."""
    bwd = pull.rule.bwd
    assert bwd is not None

    def found(token: Any, residuals: Values, cts: Values) -> list[Any]:
        return [Zero(ct) if is_zero(ct) else ct for ct in bwd(token, residuals, cts)]

    return replace(pull, rule=replace(pull.rule, bwd=found))


def is_zero(x: Any) -> bool:
    """Whether a derivative is an array of zeros, wherever the rule is applied."""
    value = _constant(x) if type(x) is StagedTracer else x
    return isinstance(value, np.ndarray | np.generic | float | complex) and not np.any(value)


def may_be_zero(x: Any) -> bool:
    """Whether a derivative is zero here or not known: a rule may have made it of zeros that stood for no derivative."""
    value = concrete(x)
    return value is None or not np.any(value)


def _constant(x: StagedTracer) -> Any:
    """The number that traced code makes of literals and constants alone; None where it reads anything else."""
    trace = x._trace
    env: dict[Atom, Any] = {v: c for v, c, _ in trace.consts.values() if not isinstance(c, Tracer)}
    for eqn in live_equations(trace.eqns, [x._var]):
        if eqn.effects:
            continue
        if any(type(a) is not Literal and a not in env for a in eqn.invars):
            return None
        args = [a.value if type(a) is Literal else env[a] for a in eqn.invars]
        out = tracing(eval_trace, partial(eqn.primitive.bind, *args, **eqn.params))
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple else [out]))
    return env.get(x._var)


def transposed_bwd(pull: Pull, captured: Values, residuals: Values, tangents: Values) -> list[Any]:
    """Tangents (values or `Zero`) of all outputs, for those of the perturbed operands.

    The reverse rule is run with cotangents that are recorded, not known; what it does to them is then transposed.
    """
    trace = TangentTrace(current_trace.get())
    cts = [trace.input(a) for a, m in zip(pull.outs, pull.moving) if m]
    try:
        found = tracing(trace, lambda: without_zeros(pull).pulled(captured, residuals, cts))
    except ConcretizationError as error:
        if error.traced_by != "linearize":  # not a derivative that is recorded
            raise
        _refuse(pull, f"it asks for numbers: {error.message.partition(':')[0]}", error)
    ends: list[Linear] = []
    given: list[Any] = []
    for ct, t in zip(found, tangents):
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
        pushed = iter(backward(part.tape, ends, given, inputs))
    except NoRuleError as error:
        _refuse(pull, error.message, error)
    return [next(pushed) if m else Zero(a) for a, m in zip(pull.outs, pull.moving)]


def _refuse(pull: Pull, why: str, cause: Exception | None = None) -> NoReturn:
    raise MissingRuleError(
        f"forward mode through {pull.rule.name}: {pull.rule.no_forward}. None follows from its reverse rule, which is "
        f"not linear in the cotangent: {why}. Reverse mode works: write jacrev(grad(f)) for hessian(f), which is "
        "jacfwd(grad(f))"
    ) from cause


def _check_linear(pull: Pull, part: Linearized) -> None:
    """Refuse what is seen not to be linear; where all numbers are known, also what adds to the cotangent."""
    why = _nonlinear(part.tape)
    if why is not None:
        _refuse(pull, why)
    if _is_known(part.tape):
        zeros = [np.zeros(v.aval.shape, v.aval.dtype) for v in part.inputs if v is not None]
        found = run_quietly(tracing, eval_trace, replay, part, zeros)
        if any(type(x) is np.ndarray and np.any(x[np.isfinite(x)]) for x in map(np.asarray, found)):
            _refuse(pull, "a cotangent of zero gives another value than zero")


def _nonlinear(tape: Sequence[Entry]) -> str | None:
    """What on a tape is not linear in the inputs, in words."""
    for entry in tape:
        name = entry.primitive.name
        if entry.primitive.transpose is None and not entry.primitive.inlined:
            return f"'{name}' of it"
        if all(v.aval.dtype.kind not in "fc" for v in entry.outs):
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
        Where it is seen not to be linear.
    """
    trace = current_trace.get()
    if type(trace) is not TangentTrace:  # in another rule's jvp, which is checked as a whole
        return push()
    start = len(trace.tape)
    try:
        outs, found = push()
    except ConcretizationError as error:
        if error.traced_by != "linearize":  # not a derivative that is recorded
            raise
        _refuse_jvp(name, f"it asks for numbers: {error.message.partition(':')[0]}", error)
    if any(type(x) is LinearTracer and x._trace is trace for x in outs):
        _refuse_jvp(
            name,
            "its outputs depend on them, as far as is seen: a loop or a branch takes arguments and tangents together. "
            "Take the derivative of the loop by functrans.jvp instead",
        )
    pushed = [_recorded(name, t, given) for t in found]
    ends = [t.linear for t in pushed if type(t) is LinearTracer]
    why = _nonlinear(Linearized([], [], ends, trace.tape[start:]).pruned().tape)
    if why is not None:
        _refuse_jvp(
            name, f"{why}. Define a reverse rule (defvjp, backward), or multiply by the tangents only"
        )
    return outs, pushed


def _recorded(name: str, t: Any, given: Values) -> Any:
    """A tangent that a jvp returned, as what is transposed."""
    if type(t) is Zero or any(type(t) is type(x) and t._trace is x._trace for x in given):
        return t
    # Of an argument that does not move the rule may have got an array of zeros, and returned what it made of that.
    if is_zero(t) or (any(type(x) is Zero for x in given) and may_be_zero(t)):
        return Zero(t)
    why = "it returns a tangent that does not depend on those of the arguments. Multiply by these, or return zeros"
    return _refuse_jvp(name, why)


def _refuse_jvp(name: str, why: str, cause: Exception | None = None) -> NoReturn:
    raise TangentError(
        f"reverse mode through {name} transposes its jvp, which is not linear in the tangents: {why}"
    ) from cause
