"""Calls: primitives that apply a jaxpr. These are `call`, which `jit` binds, and the others made by `call_primitive`.

A call's derivatives, transpose and batched form are derived from its jaxpr once, cached on it, and are calls
themselves. So ``vjp(jit(f), x)`` runs two kernels, and a second ``vjp`` of a known ``jit(f)`` derives nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import Aval, CallRules, Effect, Jaxpr, Linear, Primitive, Zero, eval_trace, subjaxprs, tracing
from ..core.evaluation import evaluate
from ..core.values import ArrayLike, Param, PyTree, Rule, Tangent
from ..errors import JaxprTypeError
from ..passes.masks import Mask, chosen, chosen_terms, nested, perturbed, scatter, terms_mask, with_zeros
from ..primitives.structure.linear import instantiate
from ..runtime.config import config, is_timed
from ..runtime.module_getattr import lazy_import, slots
from ..transforms.batch import batch_jaxpr
from ..transforms.jvp import jvp_jaxpr
from ..transforms.linearize_jaxpr import LinearizedJaxpr, in_loop, linearize_jaxpr
from ..transforms.transpose import transpose_jaxpr

taylor = lazy_import("functrans.transforms.jet")
partitioner = lazy_import("functrans.control.residuals.partitioner")
varying = lazy_import("functrans.control.ranks.varying_bodies")


def executable(jaxpr: Jaxpr) -> Callable[..., list[np.ndarray]]:
    """The compiled form of `jaxpr` under the current configuration, cached on it."""
    timed = is_timed()
    return jaxpr.derive(("executable", timed), lambda: slots.compiler.compile_jaxpr(jaxpr, timed=timed))


def effects_of_bodies(**params: Param) -> Effect:
    """The effects of a primitive whose parameters hold jaxprs: those of the jaxprs."""
    effects = Effect.NONE
    for body in subjaxprs(params):
        effects |= body.effects
    return effects


def _abstract(*avals: Aval, jaxpr: Jaxpr, **options: Param) -> tuple[Aval, ...]:
    if config.verify and [(a.shape, a.dtype) for a in avals] != [(a.shape, a.dtype) for a in jaxpr.in_avals]:
        raise JaxprTypeError(
            f"call of '{jaxpr.name}': the operands are {avals}, but its inputs {jaxpr.in_avals}"
        )
    return tuple(jaxpr.out_avals)


def evaluate_call(*args: ArrayLike, jaxpr: Jaxpr, **options: Param) -> list[Any]:
    """The `impl` of a call that is not compiled as a unit: it evaluates one operation after another."""
    return tracing(eval_trace, evaluate, jaxpr, args)


def _linearized(jaxpr: Jaxpr, mask: Mask, **options: Param) -> LinearizedJaxpr:
    key = ("partition", mask, in_loop.get())
    return jaxpr.derive(key, lambda: partitioner.partitioned(linearize_jaxpr(jaxpr, mask)))


def call_primitive(
    name: str,
    impl: Callable[..., list[Any]],
    linearized: Callable[..., LinearizedJaxpr] = _linearized,
    *,
    moves_data: bool = False,
    transposed: Callable[[dict[str, Any]], dict[str, Any]] = lambda options: options,
) -> Primitive:
    """A primitive that applies its parameter `jaxpr`, with every rule.

    Parameters
    ----------
    name : str
    impl : callable
        ``impl(*args, jaxpr=..., **options)``.
    linearized : callable
        ``linearized(jaxpr, perturbed, **options)`` splits the jaxpr for reverse mode.
    moves_data : bool
        As in `Primitive`; true if `impl` checks for NaN itself.
    transposed : callable
        The options of the transpose, from those of the call.

    Returns
    -------
    Primitive
        Its other parameters, `options`, are passed on to the calls derived from it.
    """

    def jvp(
        primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, **options: Param
    ) -> tuple[list[Any], list[Any]]:
        mask = perturbed(tangents)
        pushed, nonzero = jvp_jaxpr(jaxpr, mask)
        results = prim.bind(*primals, *chosen(tangents, mask), jaxpr=pushed, **options)
        outs = results[: len(jaxpr.outvars)]
        return outs, with_zeros(nonzero, results[len(outs) :], outs)

    def jet(
        primals: Sequence[Any], series: Sequence[Sequence[Any]], *, jaxpr: Jaxpr, **options: Param
    ) -> tuple[list[Any], list[list[Any]]]:
        masks = terms_mask(series)
        pushed, nonzero = taylor.jet_jaxpr(jaxpr, masks)
        results = prim.bind(*primals, *map(instantiate, chosen_terms(series, masks)), jaxpr=pushed, **options)
        outs = results[: len(jaxpr.outvars)]
        return outs, nested(nonzero, results[len(outs) :], outs)

    def checked(check: Rule, args: Sequence[Any], *, jaxpr: Jaxpr, **options: Param) -> tuple[list[Any], Any]:
        inner = check(jaxpr)
        return inner.separate(prim.bind(*args, jaxpr=inner.jaxpr, **options))

    def linearize(
        primals: Sequence[Any], tangents: Sequence[Tangent], *, jaxpr: Jaxpr, **options: Param
    ) -> tuple[list[Any], list[Any]]:
        mask = perturbed(tangents)
        parts = linearized(jaxpr, mask, **options)
        results = prim.bind(*primals, jaxpr=parts.primal, **options)
        outs = results[: len(jaxpr.outvars)]
        if not any(parts.nonzero):
            return outs, [Zero(x) for x in outs]
        residuals = [primals[i] if where == "in" else results[i] for where, i in parts.residuals]
        pushed = prim.bind(*residuals, *chosen(tangents, mask), jaxpr=parts.linear, **options)
        return outs, with_zeros(parts.nonzero, pushed, outs)

    def transpose(cts: Sequence[Any], *args: PyTree, jaxpr: Jaxpr, **options: Param) -> list[Any]:
        return pulled(cts, None, args, jaxpr, options)

    def accumulate(
        cts: Sequence[Tangent], totals: Sequence[Tangent], *args: PyTree, jaxpr: Jaxpr, **options: Param
    ) -> list[Any]:
        return pulled(cts, totals, args, jaxpr, options)

    def pulled(
        cts: Sequence[Any],
        totals: Sequence[Tangent] | None,
        args: Sequence[Any],
        jaxpr: Jaxpr,
        options: dict[str, Any],
    ) -> list[Any]:
        linear = tuple([type(a) is Linear for a in args])
        nonzero = perturbed(cts)
        given = None if totals is None else tuple([t is not None for t in chosen(totals, linear)])
        body, has = transpose_jaxpr(jaxpr, linear, nonzero, given)
        known = [a for a in args if type(a) is not Linear]
        before = [t for t in totals or () if t is not None]
        results = prim.bind(*known, *chosen(cts, nonzero), *before, jaxpr=body, **transposed(options))
        return scatter(linear, scatter(has, results))

    def batch(
        size: int, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: Jaxpr, **options: Param
    ) -> tuple[list[Any], tuple[int | None, ...]]:
        body, out_dims = batch_jaxpr(jaxpr, size, tuple(dims))
        return prim.bind(*args, jaxpr=body, **options), out_dims

    prim = Primitive(
        name,
        _abstract,
        impl,
        jvp=jvp,
        linearize=linearize,
        jet=jet,
        checked=checked,
        transpose=transpose,
        accumulate=accumulate,
        batch=batch,
        effects=effects_of_bodies,
        multiple_results=True,
        call=CallRules(),
        moves_data=moves_data,
        vary=lambda axes, params: varying.of_call(axes, params),
    )
    return prim


def _compiled(*args: PyTree, jaxpr: Jaxpr) -> list[Any]:
    return with_numbers(jaxpr, executable(jaxpr)(*args))


def with_numbers(jaxpr: Jaxpr, outs: list[Any]) -> list[Any]:
    """The outputs of a program, with Python numbers for those that are weak."""
    for i in jaxpr.derive("numbers", lambda: [n for n, a in enumerate(jaxpr.out_avals) if a.is_number]):
        outs[i] = outs[i].item()
    return outs


call_p = call_primitive("call", _compiled, moves_data=True)
