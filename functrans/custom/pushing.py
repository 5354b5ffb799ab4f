"""Forward mode from a reverse rule: what is linear can be transposed once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ..core.aval import Zero
from ..core.errors import ConcretizationError, MissingRuleError, NoRuleError
from ..core.primitive import Linear
from ..core.trace import Tracer, current_trace, eval_trace, tracing
from ..transforms.linearize import Entry, Linearized, LinearTracer, TangentTrace, replay
from ..transforms.transpose import backward
from .constants import may_be_zero
from .pull import Pull, without_zeros
from .record import Values


def transposed_bwd(pull: Pull, captured: Values, residuals: Values, tangents: Values) -> list[Any]:
    """Tangents (values or `Zero`) of all outputs, for those of the perturbed operands.

    The reverse rule is run with cotangents that are recorded, not known; what it does to them is then transposed.
    """
    trace = TangentTrace(current_trace.get())
    cts = [trace.input(a) for a, m in zip(pull.outs, pull.moving) if m]
    try:
        with tracing(trace):
            found = without_zeros(pull).pulled(captured, residuals, cts)
    except ConcretizationError as error:
        _refuse(pull, error.message, error)
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
        f"not linear in the cotangent: {why}"
    ) from cause


def _check_linear(pull: Pull, part: Linearized) -> None:
    """Refuse what is seen not to be linear; where all numbers are known, also what adds to the cotangent."""
    for entry in part.tape:
        name = entry.primitive.name
        if entry.primitive.transpose is None and not entry.primitive.inlined:
            _refuse(pull, f"'{name}' of it")
        if any(v.aval.dtype.kind not in "fc" for v in entry.outs):
            _refuse(pull, f"'{name}' of it, which is of dtype {entry.outs[0].aval.dtype}")
    if _is_known(part.tape):
        zeros = [np.zeros(v.aval.shape, v.aval.dtype) for v in part.inputs if v is not None]
        with tracing(eval_trace), np.errstate(all="ignore"):
            found = replay(part, zeros)
        if any(type(x) is np.ndarray and np.any(x[np.isfinite(x)]) for x in map(np.asarray, found)):
            _refuse(pull, "a cotangent of zero gives another value than zero")


def _is_known(tape: Sequence[Entry]) -> bool:
    return not any(isinstance(a, Tracer) for entry in tape for a in entry.args)
