"""Functions with rules of their own for `vmap`, under the names of ``jax.custom_batching``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core.checked import checked
from .core.names import module_attributes as _module_attributes
from .core.pytree import PyTree, tree_flatten, tree_leaves, tree_unflatten
from .custom.custom_vmap import custom_vmap
from .lax.loops import map as map_rows

__all__ = ["custom_vmap", "sequential_vmap"]


@checked
def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function that `vmap` calls for one example after the other, in a loop.

    Parameters
    ----------
    f : callable
        Of arrays and trees of arrays.

    Returns
    -------
    custom_vmap
        With a rule that is a loop over the mapped arguments, `functrans.lax.map`.

    Notes
    -----
    For functions that need much memory for one example, or do not make sense for several at once. `f` is traced, as the
    body of any loop; values are the same as without the decorator.

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
