"""Compare structures: where two of them differ, and the values of a prefix for the leaves below."""

from __future__ import annotations

from typing import Any

from .definition import PyTree, PyTreeDef, describe, matching_children, raise_mismatch, same_aux
from .nodes import KeyPath, kind_of


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: PyTree) -> list[Any]:
    """One value of a prefix tree for each leaf of a structure.

    Parameters
    ----------
    name : str
        The name of `axis_tree` in error messages, for example ``"vmap in_axes"``.
    treedef : PyTreeDef
        The structure of the full tree.
    axis_tree : pytree
        A prefix of it. None counts as a leaf here: it is a value such as "not batched".

    Returns
    -------
    list
        One for each leaf of `treedef`.

    Raises
    ------
    PytreeError
        If `axis_tree` is not a prefix; the message names the key path at which they differ.

    Examples
    --------
    >>> import functrans as ft
    >>> flatten_axes("in_axes", ft.tree.structure((1, {"a": 2, "b": 3})), (0, None))
    [0, None, None]
    """
    axes: list[Any] = []
    if not _collect_axes(treedef, axis_tree, axes):
        raise_mismatch(treedef, axis_tree, name, _collect_axes)
    return axes


def _collect_axes(treedef: PyTreeDef, axes: PyTree, out: list[Any]) -> bool:
    kind = None if axes is None else kind_of(axes)
    if kind is None:
        out.extend([axes] * treedef.num_leaves)
        return True
    children = matching_children(treedef, axes)
    return children is not None and all(
        _collect_axes(child, axis, out) for child, axis in zip(treedef._children, children)
    )


def first_difference(a: PyTreeDef, b: PyTreeDef) -> tuple[KeyPath, str, str] | None:
    """Where two structures first differ, and the subtrees of each at that point; None if they are equal.

    Examples
    --------
    >>> import functrans as ft
    >>> first_difference(ft.tree.structure({"a": (1, 2)}), ft.tree.structure({"a": (1, 2, 3)}))
    ((DictKey(key='a'),), 'a tuple of length 2', 'a tuple of length 3')
    """
    if a == b:
        return None
    path: KeyPath = ()
    while len(a._children) == len(b._children) > 0 and a._kind is b._kind and same_aux(a._aux, b._aux):
        node = a.unflatten([0] * a.num_leaves)
        keys = a._kind.keys(node, a._aux, len(a._children))  # type: ignore[union-attr]
        parted = [(k, x, y) for k, x, y in zip(keys, a._children, b._children) if x != y]
        if not parted:
            break
        key, a, b = parted[0]
        path = (*path, key)
    return path, describe(a), describe(b)
