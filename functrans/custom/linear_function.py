"""A `Function` that is linear: its derivative is itself, and its ``transpose`` a rule of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.aval import Aval, Zero, aval_of
from ..core.errors import GradientError, MissingRuleError
from ..core.primitive import Linear
from ..transforms.stage import stage
from ..transforms.values import given
from .gradients import Gradients, gradient_given
from .record import Values
from .recording import Call


def linear_jvp(
    call: Call,
    bind: Callable[[Values], list[Any]],
    values: Values,
    tangents: Values,
    again: Callable[[], list[Any]],
) -> tuple[list[Any], list[Any]]:
    """Outputs and tangents of what is linear, in all operands that move together: the rule applied to tangents.

    `bind` applies it, where the outputs are known to be of the types of those.
    """
    outs = again()
    avals = [aval_of(x).strong() for x in outs]
    moving = [type(t) is not Zero for t in tangents]
    if sum(moving) > 1:
        _check_together(call, values, moving, avals)
    pushed = bind([t if m else x for x, t, m in zip(values, tangents, moving)])
    return outs, [t if a.dtype.kind in "fc" else Zero(a) for t, a in zip(pushed, avals)]


def _check_together(call: Call, values: Values, moving: Sequence[bool], avals: Sequence[Aval]) -> None:
    """Refuse what is linear in each of the operands alone: a product of two that both move."""
    mixed = [Linear(aval_of(x).strong()) if m else x for x, m in zip(values, moving)]
    try:
        found = stage(lambda *cts: [g for g in transposed(call, cts, mixed) if g is not None], avals)
        if not found.outvars:
            raise GradientError(f"{call.definition.name}: transpose returned None for all of them")
    except Exception as error:
        parts = enumerate(call.arguments.layout.parts)
        names = [call.name(i) for i, p in parts if any(moving[p.first : p.last])]
        raise MissingRuleError(
            f"{call.definition.name}: transpose fails for {' and '.join(names)} together, so the derivative in both "
            "needs another rule. Define backward (or jvp), or let transpose take None for both, if forward is linear "
            f"in them together, as a sum is. It raised {type(error).__name__}: {str(error).partition(chr(10))[0]}"
        ) from error


def transposed(call: Call, cts: Values, values: Values) -> list[Any]:
    """Cotangents of the operands that are `Linear`, by the user's ``transpose``; None for all others."""
    d = call.definition
    assert d.transpose is not None
    layout, static, _ = call.arguments
    inputs = layout.filled([None if type(x) is Linear else given(x) for x in values], static)
    gradients = list(map(gradient_given, cts))
    returned = d.transpose(inputs, *call.outputs.layout.filled(gradients))
    linear = [type(x) is Linear for x in values]
    avals = [(x.aval if type(x) is Linear else aval_of(x)).strong() for x in values]
    check = Gradients(f"{d.name}.transpose", d.transpose, layout, avals, linear, call.name)
    found = check.checked(returned)
    return [g if m else None for g, m in zip(found, linear)]
