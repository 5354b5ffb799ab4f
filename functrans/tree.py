"""Pytree functions under the short names of ``jax.tree``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from .frontend.checked import checked
from .frontend.pytree import PyTree
from .runtime.module_getattr import module_attributes as _module_attributes
from .tree_util import tree_all as all
from .tree_util import tree_broadcast as broadcast
from .tree_util import tree_flatten as flatten
from .tree_util import tree_flatten_with_path as flatten_with_path
from .tree_util import tree_leaves as leaves
from .tree_util import tree_leaves_with_path as leaves_with_path
from .tree_util import tree_map as map
from .tree_util import tree_map_with_path as map_with_path
from .tree_util import tree_reduce as reduce
from .tree_util import tree_reduce_associative as reduce_associative
from .tree_util import tree_structure as structure
from .tree_util import tree_transpose as transpose
from .tree_util import tree_unflatten as unflatten

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_only",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
__getattr__, __dir__ = _module_attributes("functrans.tree", globals())


@checked
def map_only(
    predicate: type | tuple[type, ...] | Callable[[Any], bool],
) -> Callable[[Callable[[Any], Any], PyTree], PyTree]:
    """A `map` that changes only the leaves that satisfy a predicate.

    Parameters
    ----------
    predicate : callable, type or tuple of types
        A type means ``isinstance``.

    Returns
    -------
    callable
        ``mapper(f, tree)``.

    Examples
    --------
    >>> map_only(float)(lambda x: x / 2, {"rate": 3.0, "steps": 10})
    {'rate': 1.5, 'steps': 10}
    """
    if isinstance(predicate, (type, tuple)):
        return map_only(lambda leaf: isinstance(leaf, predicate))

    def mapper(f: Callable[[Any], Any], tree: PyTree) -> PyTree:
        return map(lambda leaf: f(leaf) if predicate(leaf) else leaf, tree)

    return mapper


@checked
def static(**kwargs: Any) -> Any:
    """A dataclass field that belongs to the structure of the pytree (see `tree_util.register_dataclass`).

    Parameters
    ----------
    **kwargs
        As for `dataclasses.field`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from functrans import tree_util
    >>> @tree_util.register_dataclass
    ... @dataclass
    ... class Power:
    ...     base: float
    ...     exponent: int = static(default=2)
    >>> leaves(Power(3.0))
    [3.0]
    """
    return dataclasses.field(metadata={**kwargs.pop("metadata", {}), "static": True}, **kwargs)
