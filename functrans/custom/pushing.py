"""One rule for both modes: what is linear can be transposed.

`transposed_bwd` is forward mode from a reverse rule, `recorded_jvp` reverse mode from a jvp. Either runs the user's
rule with derivatives that are recorded, not known, and refuses what is seen not to be linear in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..core.aval import Zero
from ..core.context import run_quietly
from ..core.errors import ConcretizationError, MissingRuleError, NoRuleError, TangentError
from ..core.primitive import Linear
from ..core.trace import Tracer, concrete, current_trace, eval_trace, tracing
from ..primitives.elementwise import mul_p, sub_p
from ..primitives.linear import add_p
from ..transforms.linearize import Entry, Linearized, LinearTracer, TangentTrace, replay
from ..transforms.transpose import backward
from .constants import is_zero, may_be_zero
from .pull import Pull, without_zeros
from .record import Values


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
