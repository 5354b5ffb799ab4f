"""A primitive of JAX for functions that are linear in some arguments, given with their transposes.

JAX's own ``jax.custom_derivatives.linear_call`` cannot be batched, and differentiates nothing but the linear arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from ..core.values import PyTree

Fun = Callable[..., Any]


def linear_call(jax: Any, fun: Fun, transposed: Fun, args: PyTree, linear: list[Any]) -> list[Any]:
    """``fun(args, linear)``, a list, in JAX's programs.

    Parameters
    ----------
    jax : module
    fun : callable
        Linear in a list of arrays; JAX can differentiate it in all of its arguments.
    transposed : callable
        ``transposed(args, cts)`` is a list of cotangents of the linear arguments.
    args : pytree
    linear : list
    """
    leaves, tree = jax.tree.flatten(args)

    def of_leaves(f: Fun) -> Fun:
        return lambda leaves, last: f(jax.tree.unflatten(tree, leaves), last)

    return _primitive(jax).bind(
        *leaves, *linear, fun=of_leaves(fun), transposed=of_leaves(transposed), count=len(leaves)
    )


@cache
def _primitive(jax: Any) -> Any:
    from jax.extend.core import Primitive  # JAX is an optional library
    from jax.interpreters import ad, batching, mlir

    prim = Primitive("functrans_linear")
    prim.multiple_results = True

    def computed(*xs: Any, fun: Fun, transposed: Fun, count: int) -> list[Any]:
        return fun(xs[:count], list(xs[count:]))

    def abstract(*avals: Any, fun: Fun, transposed: Fun, count: int) -> list[Any]:
        outs = jax.eval_shape(fun, avals[:count], list(avals[count:]))
        return [jax.core.ShapedArray(out.shape, out.dtype) for out in outs]

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        ts = list(map(ad.instantiate_zeros, tangents))
        return prim.bind(*primals, **params), jax.jvp(partial(computed, **params), tuple(primals), tuple(ts))[
            1
        ]

    def transpose(cts: Sequence[Any], *xs: Any, fun: Fun, transposed: Fun, count: int) -> list[Any]:
        known, given = xs[:count], list(map(ad.instantiate_zeros, cts))
        found = prim.bind(*known, *given, fun=transposed, transposed=fun, count=count)
        return [None] * count + found

    def batch(
        args: Sequence[Any], dims: Sequence[Any], *, fun: Fun, transposed: Fun, count: int
    ) -> tuple[Any, Any]:
        size = next(x.shape[d] for x, d in zip(args, dims) if d is not None)
        last = [
            jax.numpy.broadcast_to(x, (size, *x.shape)) if d is None else jax.numpy.moveaxis(x, d, 0)
            for x, d in zip(args[count:], dims[count:])
        ]
        axes = (tuple(dims[:count]), 0)
        lanes = [jax.vmap(f, axes, 0, axis_size=size) for f in (fun, transposed)]
        outs = prim.bind(*args[:count], *last, fun=lanes[0], transposed=lanes[1], count=count)
        return outs, [0] * len(outs)

    prim.def_impl(computed)
    prim.def_abstract_eval(abstract)
    mlir.register_lowering(prim, mlir.lower_fun(computed, multiple_results=True))
    ad.primitive_jvps[prim] = jvp
    ad.primitive_transposes[prim] = transpose
    batching.primitive_batchers[prim] = batch
    return prim
