"""``call``: the application of a jaxpr, as one equation. What `jit` binds.

Its derivatives, its transpose and its batched form are derived from the jaxpr once, kept on it, and are calls again; so
``grad(jit(f))`` runs two kernels, and a fresh ``grad`` of a known ``jit(f)`` derives nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.aval import Aval, Zero
from ..core.config import config, trace_key
from ..core.errors import JaxprError
from ..core.ir import Jaxpr
from ..core.passes import evaluate
from ..core.primitive import CallRules, Effect, Linear, Primitive
from ..core.trace import eval_trace, tracing
from ..transforms.batch import batch_jaxpr
from ..transforms.jvp import jvp_jaxpr
from ..transforms.linearize import linearize_jaxpr
from ..transforms.transpose import transpose_jaxpr
from .bodies import perturbed, spread

Compiler = Callable[[Jaxpr], Callable[..., list[np.ndarray]]]
_compiler: list[Compiler] = []


def set_compiler(compiler: Compiler) -> None:
    """Install what turns a jaxpr into a callable of arrays; without one, calls are evaluated by NumPy."""
    _compiler[:] = [compiler]


def executable(jaxpr: Jaxpr) -> Callable[..., list[np.ndarray]]:
    """The compiled form of `jaxpr` under the present configuration, kept on it."""
    return jaxpr.derive(("executable", trace_key()), lambda: _compiler[0](jaxpr))


def _numbers(jaxpr: Jaxpr) -> list[int]:
    """Which outputs are Python numbers."""
    return [i for i, a in enumerate(jaxpr.out_avals) if a.is_number]


def _impl(*args: Any, jaxpr: Jaxpr) -> list[Any]:
    if _compiler:
        outs = executable(jaxpr)(*args)
        for i in jaxpr.derive("numbers", lambda: _numbers(jaxpr)):
            outs[i] = outs[i].item()
        return outs
    return tracing(eval_trace, evaluate, jaxpr, args)


def _abstract(*avals: Aval, jaxpr: Jaxpr) -> tuple[Aval, ...]:
    if config.verify and [(a.shape, a.dtype) for a in avals] != [(a.shape, a.dtype) for a in jaxpr.in_avals]:
        raise JaxprError(f"call of '{jaxpr.name}': the operands are {avals}, but its inputs {jaxpr.in_avals}")
    return tuple(jaxpr.out_avals)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr) -> tuple[list[Any], list[Any]]:
    pushed, nonzero = jvp_jaxpr(jaxpr, perturbed(tangents), trace_key())
    found = call_p.bind(*primals, *[t for t in tangents if type(t) is not Zero], jaxpr=pushed)
    outs = found[: len(jaxpr.outvars)]
    return outs, spread(found[len(outs) :], nonzero, outs)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr
) -> tuple[list[Any], list[Any]]:
    parts = linearize_jaxpr(jaxpr, perturbed(tangents), trace_key())
    found = call_p.bind(*primals, jaxpr=parts.primal)
    residuals = [primals[i] if where == "in" else found[i] for where, i in parts.residuals]
    outs = found[: len(jaxpr.outvars)]
    given = [t for t in tangents if type(t) is not Zero]
    pushed = call_p.bind(*residuals, *given, jaxpr=parts.linear) if any(parts.nonzero) else []
    return outs, spread(pushed, parts.nonzero, outs)


def _transpose(cts: Sequence[Any], *args: Any, jaxpr: Jaxpr) -> list[Any]:
    linear = tuple([type(a) is Linear for a in args])
    body, nonzero = transpose_jaxpr(jaxpr, linear, perturbed(cts), trace_key())
    known = [a for a in args if type(a) is not Linear]
    found = iter(call_p.bind(*known, *[ct for ct in cts if type(ct) is not Zero], jaxpr=body))
    has = iter(nonzero)
    return [next(found) if p and next(has) else None for p in linear]


def _batch(
    size: int, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: Jaxpr
) -> tuple[list[Any], tuple[int | None, ...]]:
    body, out_dims = batch_jaxpr(jaxpr, size, tuple(dims), trace_key())
    return call_p.bind(*args, jaxpr=body), out_dims


def _effects(*, jaxpr: Jaxpr) -> Effect:
    return jaxpr.effects


call_p = Primitive(
    "call",
    _abstract,
    _impl,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    effects=_effects,
    multiple=True,
    call=CallRules(),
    moves_data=True,
)
