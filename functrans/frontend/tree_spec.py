"""The expected form of a tree: its structure, and the shape and dtype of each leaf.

Code that checks a tree (the result of a user's function, or an argument with known structure) asks a `TreeSpec` for the
first mismatch, and describes it: which function, which argument, which error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core import Aval, PytreeError, is_complex
from ..runtime.records import NamedTuple
from . import pytree
from .pytree.nodes import KeyPath, keystr

#: Whether a leaf of one type may stand for a leaf of another with the same shape: ``accepts(own, expected)``.
Accepts = Callable[[Aval, Aval], bool]


def same_dtype(own: Aval, expected: Aval) -> bool:
    """Whether the dtypes are equal."""
    return own.dtype == expected.dtype


def real_for_real(own: Aval, expected: Aval) -> bool:
    """Whether a conversion keeps the imaginary part."""
    return is_complex(expected.dtype) or not is_complex(own.dtype)


def same_kind(own: Aval, expected: Aval) -> bool:
    """Whether NumPy converts the dtype with ``casting="same_kind"``."""
    return np.can_cast(own.dtype, expected.dtype, "same_kind")


class Mismatch(NamedTuple):
    """A difference between a tree and its expected form.

    Attributes
    ----------
    aspect : str
        ``"structure"``, ``"shape"`` or ``"dtype"``.
    path : KeyPath
    expected, got : str or Aval
        The node in words if the structures differ, otherwise the types of the leaf.
    leaf : int
        The number of the leaf.
    """

    aspect: str
    path: KeyPath
    expected: Any
    got: Any
    leaf: int = 0

    @property
    def at(self) -> str:
        """``" at ['bias']"``; empty for the whole tree."""
        return f" at {keystr(self.path)}" if self.path else ""


class TreeSpec(NamedTuple):
    """The expected form of a tree.

    Attributes
    ----------
    tree : PyTreeDef
    avals : sequence of Aval
        The types of its leaves.
    """

    tree: pytree.PyTreeDef
    avals: Sequence[Aval]

    def structure_mismatch(self, tree: pytree.PyTreeDef) -> Mismatch | None:
        """Where a structure first differs; None if it does not."""
        if tree is self.tree or tree == self.tree:
            return None
        path, expected, actual = pytree.first_difference(self.tree, tree) or ((), str(self.tree), str(tree))
        return Mismatch("structure", path, expected, actual)

    def mismatch(
        self, tree: pytree.PyTreeDef, avals: Iterable[Aval], accepts: Accepts = same_dtype
    ) -> Mismatch | None:
        """Where a tree with this structure and these leaves first differs; None if it does not."""
        mismatch = self.structure_mismatch(tree)
        if mismatch is not None:
            return mismatch
        for i, (own, expected) in enumerate(zip(avals, self.avals)):
            aspect = leaf_mismatch(own, expected, accepts)
            if aspect:
                return Mismatch(aspect, pytree.leaf_path(self.tree, i), expected, own, i)
        return None


def leaf_mismatch(own: Aval, expected: Aval, accepts: Accepts) -> str:
    """The aspect in which a leaf differs: ``"shape"``, ``"dtype"``, or ``""``."""
    if own.shape != expected.shape:
        return "shape"
    return "" if own.dtype == expected.dtype or accepts(own, expected) else "dtype"


def derivative_leaves(tree: pytree.PyTree, treedef: pytree.PyTreeDef) -> list[Any] | Mismatch:
    """The leaves of a derivative of a tree with this structure: None for each leaf of a part that is None."""
    leaves, own = pytree.tree_flatten(tree)
    if own is treedef or own == treedef:
        return leaves
    completed = _completed(tree, treedef)
    if completed is not None:
        return completed
    mismatch = TreeSpec(treedef, ()).structure_mismatch(own)
    assert mismatch is not None
    return mismatch


def _completed(tree: pytree.PyTree, treedef: pytree.PyTreeDef) -> list[Any] | None:
    prefix, own = pytree.tree_flatten(tree, is_leaf=lambda x: x is None)
    try:
        parts = own.flatten_up_to(pytree.tree_unflatten(treedef, range(treedef.num_leaves)))
    except PytreeError:
        return None
    leaves: list[Any] = []
    for x, part in zip(prefix, parts):
        if x is not None and type(part) is not int:
            return None
        leaves += [x] * len(pytree.tree_leaves(part))
    return leaves
