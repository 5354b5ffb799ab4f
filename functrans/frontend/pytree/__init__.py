"""Pytrees: nested containers of leaves.

`definition` is the structure without the leaves, and compares trees with it; `flatten` splits trees into leaves and
structure, and maps functions over them; `prefix` compares structures, and spreads the values of a prefix over the
leaves below; `register` turns users' classes into node types. The table of node types is `frontend.pytree.nodes`.
"""

from __future__ import annotations

from .definition import LEAF, IsLeaf, PyTree, PyTreeDef, first_difference, flatten_axes
from .flatten import (
    leaf_path,
    tree_flatten,
    tree_flatten_one_level,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
)

__all__ = [
    "LEAF",
    "IsLeaf",
    "PyTree",
    "PyTreeDef",
    "first_difference",
    "flatten_axes",
    "leaf_path",
    "tree_flatten",
    "tree_flatten_one_level",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_map",
    "tree_structure",
    "tree_unflatten",
]
