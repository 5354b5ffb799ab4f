"""``checkpoint``: a call whose reverse mode computes again what it needs, instead of keeping it.

Its linearisation runs the body, and keeps the operands and what the policy says. Its linear half is one equation, a
checkpoint itself: it computes the rest anew and pushes the tangents. Transposition evaluates what is not linear in the
backward pass; so memory is that of one checkpoint at a time. All else is as for `call`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.ir import Eqn, Jaxpr
from ..passes.masks import Mask
from ..transforms.linearize import LinearizedJaxpr, linearize_jaxpr
from .call import call_primitive, evaluate_call
from .rematerialize import by_policy, inline_calls

#: ``policy(primitive, *avals, **params)``: whether the results of an equation are kept.
Policy = Callable[..., bool]


def bind(
    jaxpr: Jaxpr, args: Sequence[Any], *, policy: Policy | None = None, prevent_cse: bool = True
) -> list[Any]:
    """Apply a checkpointed jaxpr."""
    return checkpoint_p.bind(*args, jaxpr=jaxpr, policy=policy, prevent_cse=prevent_cse)


def _taken_apart(jaxpr: Jaxpr, mask: Mask, *, policy: Policy | None, prevent_cse: bool) -> LinearizedJaxpr:
    def keep(eqn: Eqn) -> bool:
        return policy is not None and policy(eqn.primitive, *[a.aval for a in eqn.invars], **eqn.params)

    def build() -> LinearizedJaxpr:
        parts = linearize_jaxpr(jaxpr, mask)
        if policy is not None:  # it is asked about the equations of calls, too
            parts = parts._replace(primal=inline_calls(parts.primal))
        return by_policy(parts, keep, apart=prevent_cse)

    return jaxpr.derive(("checkpoint linearize", mask, policy, prevent_cse), build)


checkpoint_p = call_primitive("checkpoint", evaluate_call, _taken_apart)
