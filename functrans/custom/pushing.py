"""Forward mode from a reverse rule: what is linear can be transposed once more."""

from __future__ import annotations

from typing import Any

from ..core.aval import Zero
from ..core.errors import ConcretizationError, MissingRuleError, NoRuleError
from ..core.trace import current_trace, tracing
from ..transforms.linearize import LinearTracer, TangentTrace
from ..transforms.transpose import backward
from .pull import Pull
from .record import Values


def transposed_bwd(pull: Pull, captured: Values, residuals: Values, tangents: Values) -> list[Any]:
    """Tangents (values or `Zero`) of all outputs, for those of the perturbed operands.

    The reverse rule is run with cotangents that are recorded, not known; what it does to them is then transposed.
    """
    trace = TangentTrace(current_trace.get())
    cts = [trace.input(a) for a, m in zip(pull.outs, pull.moving) if m]
    try:
        with tracing(trace):
            found = pull.pulled(captured, residuals, cts)
        ends, given = [], []
        for ct, t in zip(found, tangents):
            if type(ct) is LinearTracer and ct._trace is trace:
                ends.append(ct.linear)
                given.append(t)
            elif ct is not None and type(ct) is not Zero:
                raise NoRuleError("it returns a value that does not depend on the cotangent")
        out = backward(trace.tape, ends, given, [ct.linear for ct in cts])
    except (NoRuleError, ConcretizationError) as error:
        raise MissingRuleError(
            f"forward mode through {pull.rule.name}: {pull.rule.no_forward}, and none follows from its reverse rule, "
            f"which is not linear in the cotangent: {error.message}"
        ) from error
    moving = iter(out)
    return [next(moving) if m else Zero(a) for a, m in zip(pull.outs, pull.moving)]
