"""``checkpoint``: a call whose reverse mode rematerializes what it needs instead of storing it.

Its linearization runs the body, and stores the operands and what the policy selects. Its linear half is one equation,
itself a checkpoint: it computes the rest again and applies the linear operations. Transposition evaluates the nonlinear
part in the backward pass, so memory is needed for one checkpoint at a time. Otherwise it behaves like `call`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.ir import Eqn, Jaxpr
from ..passes.masks import Mask
from ..transforms.linearize_jaxpr import LinearizedJaxpr, in_loop, linearize_body, linearize_jaxpr
from .call import call_primitive, evaluate_call
from .residuals import read_back
from .residuals.rematerialize import inline_calls, selected

#: ``policy(primitive, *avals, **params)``: whether to store the results of an equation.
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
        last = read_back.last_arrays(jaxpr)
        parts = linearize_body(jaxpr, mask, "checkpoint") if last else linearize_jaxpr(jaxpr, mask)
        parts = read_back.after_the_loop(parts, last)
        if policy is not None:  # the policy also applies to the equations inside calls
            parts = parts._replace(primal=inline_calls(parts.primal))
        return read_back.recomputing_marked(parts, selected(parts.primal, keep), separate=prevent_cse)

    return jaxpr.derive(("checkpoint linearize", mask, policy, prevent_cse, in_loop.get()), build)


checkpoint_p = call_primitive("checkpoint", evaluate_call, _taken_apart)
