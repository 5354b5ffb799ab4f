"""`checkpoint` and what belongs to it, under the names of ``jax.ad_checkpoint``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from . import checkpoint_policies
from .api.checkpoint import checkpoint, checkpoint_name, remat
from .core import Jaxpr, Var, aval_of, is_inexact
from .core.values import PyTree
from .frontend.arguments import Flat, argument_at, argument_place, check_function, flatten_values, name_of
from .frontend.checked import checked
from .frontend.pytree import tree_flatten_with_path
from .runtime.module_getattr import module_attributes as _module_attributes
from .transforms.linearize_jaxpr import linearize_jaxpr
from .transforms.stage import stage

__all__ = [
    "Recompute", "Saveable", "checkpoint", "checkpoint_name", "checkpoint_policies", "print_saved_residuals", "remat",
]  # fmt: skip

__getattr__, __dir__ = _module_attributes(
    "functrans.ad_checkpoint",
    globals(),
    {"Offloadable": "There is one memory: a policy says Saveable (True) or Recompute (False)"},
)

#: What a policy of `checkpoint` returns for values to store, and for values to compute again.
Saveable, Recompute = True, False


@checked
def print_saved_residuals(fun: Callable[..., PyTree], *args: Any, **kwargs: Any) -> None:
    """Print what reverse mode stores between the forward and the backward pass of a function, one value a line.

    Parameters
    ----------
    fun : callable
    *args, **kwargs
        Its arguments. All float and complex ones are differentiated.

    Notes
    -----
    The values are those of the compiled program, ``jit(fun)``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> def loss(x):
    ...     return fnp.sum(fnp.sin(x) ** 2)
    >>> ft.ad_checkpoint.print_saved_residuals(ft.checkpoint(loss), fnp.ones(3))
    f64[3] from argument 0 ('x')
    """
    what = "print_saved_residuals"
    check_function(what, fun)
    values, treedef = flatten_values((args, kwargs), partial(argument_at, what, fun))
    flat = Flat(fun, treedef, lambda f, given: f(*given[0], **given[1]))
    jaxpr = stage(flat, [aval_of(x) for x in values], name_of(fun), argument=flat.argument)
    paths = [path for path, _ in tree_flatten_with_path((args, kwargs))[0]]
    for line in _lines(jaxpr, [argument_place(fun, path) for path in paths]):
        print(line)


def _lines(jaxpr: Jaxpr, places: list[str]) -> Iterator[str]:
    parts = linearize_jaxpr(jaxpr, tuple([is_inexact(a.dtype) for a in jaxpr.in_avals]))
    primal = parts.primal
    sources = dict(zip(primal.constvars, ["a captured array"] * len(primal.constvars)))
    sources.update(zip(primal.invars, places))
    for eqn in primal.eqns:
        place = f" at {eqn.source}" if eqn.source is not None else ""
        sources.update(dict.fromkeys(eqn.outvars, f"{eqn.primitive.name}{place}"))
    for kind, i in parts.residuals:
        x = (primal.invars if kind == "in" else primal.outvars)[i]
        if isinstance(x, Var):
            yield f"{x.aval} from {sources[x]}"
    for constant in parts.linear.consts:
        yield f"{aval_of(constant)} from a captured array"
