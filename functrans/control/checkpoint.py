"""``checkpoint``: a call whose reverse mode computes again what it needs, instead of keeping it.

Its linearisation runs the body, and keeps the operands and what the policy says. Its linear half is one equation, a
checkpoint itself: it computes the rest anew and pushes the tangents. Transposition evaluates what is not linear in the
backward pass; so memory is that of one checkpoint at a time. All else is as for `call`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.aval import Aval, Zero
from ..core.config import trace_key
from ..core.ir import Eqn, Jaxpr
from ..core.passes import evaluate
from ..core.primitive import CallRules, Effect, Linear, Primitive
from ..core.trace import eval_trace, tracing
from ..transforms.batch import batch_jaxpr
from ..transforms.jvp import jvp_jaxpr
from ..transforms.linearize import LinearizedJaxpr, linearize_jaxpr
from ..transforms.transpose import transpose_jaxpr
from .bodies import Mask, chosen, perturbed, spread
from .call import call_p
from .recompute import by_policy, inline_calls

#: ``policy(primitive, *avals, **params)``: whether the results of an equation are kept.
Policy = Callable[..., bool]


def bind(
    jaxpr: Jaxpr, args: Sequence[Any], *, policy: Policy | None = None, prevent_cse: bool = True
) -> list[Any]:
    """Apply a checkpointed jaxpr."""
    return checkpoint_p.bind(*args, jaxpr=jaxpr, policy=policy, prevent_cse=prevent_cse)


def _abstract(*avals: Aval, jaxpr: Jaxpr, **options: Any) -> tuple[Aval, ...]:
    return call_p.abstract(*avals, jaxpr=jaxpr)


def _impl(*args: Any, jaxpr: Jaxpr, **options: Any) -> list[Any]:
    return tracing(eval_trace, evaluate, jaxpr, args)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, **options: Any
) -> tuple[list[Any], list[Any]]:
    mask = perturbed(tangents)
    pushed, nonzero = jvp_jaxpr(jaxpr, mask, trace_key())
    found = checkpoint_p.bind(*primals, *chosen(tangents, mask), jaxpr=pushed, **options)
    outs = found[: len(jaxpr.outvars)]
    return outs, spread(found[len(outs) :], nonzero, outs)


def _taken_apart(jaxpr: Jaxpr, mask: Mask, policy: Policy | None, prevent_cse: bool) -> LinearizedJaxpr:
    def keep(eqn: Eqn) -> bool:
        return policy is not None and policy(eqn.primitive, *[a.aval for a in eqn.invars], **eqn.params)

    def build() -> LinearizedJaxpr:
        parts = linearize_jaxpr(jaxpr, mask, trace_key())
        if policy is not None:  # it is asked about the equations of calls, too
            parts = parts._replace(primal=inline_calls(parts.primal))
        return by_policy(parts, keep, apart=prevent_cse)

    return jaxpr.derive(("checkpoint linearize", mask, policy, prevent_cse, trace_key()), build)


def _linearize(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: Jaxpr,
    policy: Policy | None,
    prevent_cse: bool,
) -> tuple[list[Any], list[Any]]:
    mask = perturbed(tangents)
    parts = _taken_apart(jaxpr, mask, policy, prevent_cse)
    options: dict[str, Any] = {"policy": policy, "prevent_cse": prevent_cse}
    found = bind(parts.primal, primals, **options)  # a checkpoint for those who differentiate once more
    residuals = [primals[i] if where == "in" else found[i] for where, i in parts.residuals]
    outs = found[: len(jaxpr.outvars)]
    if not any(parts.nonzero):
        return outs, [Zero(x) for x in outs]
    pushed = bind(parts.linear, [*residuals, *chosen(tangents, mask)], **options)
    return outs, spread(pushed, parts.nonzero, outs)


def _transpose(cts: Sequence[Any], *args: Any, jaxpr: Jaxpr, **options: Any) -> list[Any]:
    linear = tuple([type(a) is Linear for a in args])
    mask = perturbed(cts)
    body, nonzero = transpose_jaxpr(jaxpr, linear, mask, trace_key())
    known = [a for a in args if type(a) is not Linear]
    found = iter(checkpoint_p.bind(*known, *chosen(cts, mask), jaxpr=body, **options))
    has = iter(nonzero)
    return [next(found) if p and next(has) else None for p in linear]


def _batch(
    size: int, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: Jaxpr, **options: Any
) -> tuple[list[Any], tuple[int | None, ...]]:
    body, out_dims = batch_jaxpr(jaxpr, size, tuple(dims), trace_key())
    return checkpoint_p.bind(*args, jaxpr=body, **options), out_dims


def _effects(*, jaxpr: Jaxpr, **options: Any) -> Effect:
    return jaxpr.effects


checkpoint_p: Primitive = Primitive(
    "checkpoint",
    _abstract,
    _impl,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    effects=_effects,
    multiple=True,
    call=CallRules(),
)
