"""Functions with custom rules for `vmap`, under the names of ``jax.custom_batching``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .custom.custom_vmap import custom_vmap
from .frontend.checked import checked
from .frontend.pytree import PyTree, tree_flatten, tree_leaves, tree_unflatten
from .lax.control_flow.loops import map as map_rows
from .runtime.module_getattr import module_attributes as _module_attributes

__all__ = ["custom_vmap", "sequential_vmap"]


@checked
def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """Make `vmap` call a function for one example after the other, in a loop.

    Parameters
    ----------
    f : callable
        A function of arrays and pytrees of arrays.

    Returns
    -------
    custom_vmap
        Its rule is a loop over the mapped arguments, `functrans.lax.map`.

    Notes
    -----
    Use it for functions that need much memory for one example, or that cannot be batched. `f` is traced, like the body
    of any loop. The decorator does not change values.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans.custom_batching import sequential_vmap
    >>> @sequential_vmap
    ... def f(x):
    ...     ft.debug.print("x = {}", x)
    ...     return x + 1.0
    >>> ft.vmap(f)(fnp.arange(3.0))
    x = 0.0
    x = 1.0
    x = 2.0
    Array([1., 2., 3.])
    """
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def one_by_one(axis_size: int, in_batched: list[PyTree], *args: Any) -> tuple[PyTree, bool]:
        leaves, tree = tree_flatten(args)
        flags = tree_leaves(in_batched)

        def one(rows: list[Any]) -> PyTree:
            row = iter(rows)
            return mapped(*tree_unflatten(tree, [next(row) if b else x for x, b in zip(leaves, flags)]))

        return map_rows(one, [x for x, b in zip(leaves, flags) if b]), True

    return mapped


__getattr__, __dir__ = _module_attributes("functrans.custom_batching", globals())
