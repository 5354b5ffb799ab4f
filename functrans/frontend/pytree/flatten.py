"""Split trees into leaves and structure, put them together again, and map functions over them.

Every call of a compiled function does this, so the structures of flat tuples, lists and string-keyed dictionaries are
shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any

from ...core.values import Value
from .definition import LEAF, IsLeaf, PyTree, PyTreeDef
from .nodes import (
    DICT,
    LEAF_TYPES,
    LIST,
    NONE,
    TUPLE,
    KeyPath,
    NodeKind,
    UnsortableKeysError,
    keyed_children,
    kind_of,
)

_NONE_DEF = PyTreeDef(NONE, None, ())
_SHARED_KINDS = frozenset({TUPLE, LIST, DICT})
_MOST_SHARED = 64
_TUPLE_DEFS = [PyTreeDef(TUPLE, None, (LEAF,) * n) for n in range(_MOST_SHARED)]
_LIST_DEFS = [PyTreeDef(LIST, None, (LEAF,) * n) for n in range(_MOST_SHARED)]
for _treedef in (LEAF, _NONE_DEF, *_TUPLE_DEFS, *_LIST_DEFS):
    _treedef._shared = True
# From the keys of a dictionary, in their order, to a getter of its values in sorted order and its structure. Only for
# string keys: 1, True and 1.0 are the same key.
_DICT_DEFS: dict[tuple[str, ...], tuple[Callable[[dict], Iterable[Any]], PyTreeDef]] = {}
_STR_ONLY = frozenset({str})
# Nested tuples, lists and string-keyed dictionaries, by kind, keys and identity of the children, which the value keeps
# alive. Nodes with users' aux data are not shared: the data would never be freed.
_NESTED_DEFS: dict[tuple[Any, ...], PyTreeDef] = {}
_MOST_NESTED = 4096


def _flat_def(kind: NodeKind, n: int) -> PyTreeDef:
    if n < _MOST_SHARED:
        return _TUPLE_DEFS[n] if kind is TUPLE else _LIST_DEFS[n]
    return PyTreeDef(kind, None, (LEAF,) * n)


def _dict_def(keys: tuple[str, ...]) -> tuple[Callable[[dict], Iterable[Any]], PyTreeDef] | None:
    if not _STR_ONLY.issuperset(map(type, keys)):
        return None
    if len(_DICT_DEFS) >= 1024:
        _DICT_DEFS.clear()
    ordered = tuple(sorted(keys))
    getter = itemgetter(*ordered) if len(keys) > 1 else dict.values
    entry = (getter, PyTreeDef(DICT, ordered, (LEAF,) * len(keys)))
    entry[1]._shared = True
    return _DICT_DEFS.setdefault(keys, entry)


def _flatten_into(tree: PyTree, leaves: list[Any]) -> PyTreeDef:
    cls = type(tree)
    if cls in LEAF_TYPES:
        leaves.append(tree)
        return LEAF
    kind: NodeKind | None
    children: Iterable[Any]
    if cls is tuple or cls is list:
        kind, children, aux = (TUPLE if cls is tuple else LIST), tree, None
        if LEAF_TYPES.issuperset(map(type, tree)):
            leaves.extend(tree)
            return _flat_def(kind, len(tree))
    elif tree is None:
        return _NONE_DEF
    else:
        if cls is dict and LEAF_TYPES.issuperset(map(type, tree.values())):
            keys = tuple(tree)
            entry = _DICT_DEFS.get(keys) or _dict_def(keys)
            if entry is not None:
                leaves.extend(entry[0](tree))
                return entry[1]
        kind = kind_of(tree)
        if kind is None:
            leaves.append(tree)
            return LEAF
        children, aux = kind.flatten(tree)
    defs = tuple([_flatten_into(child, leaves) for child in children])
    if kind in _SHARED_KINDS:
        return _NESTED_DEFS.get((kind, aux, *map(id, defs))) or _nested_def(kind, aux, defs)
    return PyTreeDef(kind, aux, defs)


def _nested_def(kind: NodeKind, aux: PyTree, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    treedef = PyTreeDef(kind, aux, children)
    plain = aux is None or _STR_ONLY.issuperset(map(type, aux))
    if plain and all(child._shared for child in children):
        if len(_NESTED_DEFS) >= _MOST_NESTED:
            _NESTED_DEFS.clear()
        treedef = _NESTED_DEFS.setdefault((kind, aux, *map(id, children)), treedef)
        treedef._shared = True
    return treedef


def _flatten_until(tree: PyTree, leaves: list[Value], is_leaf: Callable[[Any], bool]) -> PyTreeDef:
    kind = None if is_leaf(tree) else kind_of(tree)
    if kind is None:
        leaves.append(tree)
        return LEAF
    children, aux = kind.flatten(tree)
    return PyTreeDef(kind, aux, tuple([_flatten_until(child, leaves, is_leaf) for child in children]))


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree, and its structure.

    Parameters
    ----------
    tree : pytree
        Tuples, lists, dictionaries (in the order of their sorted keys), `OrderedDict`, `defaultdict`,
        namedtuples, None (a node without children), registered types; anything else is a leaf.
    is_leaf : callable, optional
        Called first on each node; if it returns True, the node is a leaf.

    Returns
    -------
    leaves : list
    treedef : PyTreeDef

    Raises
    ------
    PytreeError
        If the keys of a dictionary cannot be sorted.

    Examples
    --------
    >>> tree_flatten({"b": (1, None), "a": [2, 3]})
    ([2, 3, 1], PyTreeDef({'a': [*, *], 'b': (*, None)}))
    """
    leaves: list[Any] = []
    try:
        if is_leaf is None:
            return leaves, _flatten_into(tree, leaves)
        return leaves, _flatten_until(tree, leaves, is_leaf)
    except UnsortableKeysError:
        for _ in _walk(tree, (), is_leaf):  # raises an error that names the path
            pass
        raise


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> PyTree:
    """The tree with this structure and these leaves: the inverse of `tree_flatten`.

    Raises
    ------
    PytreeError
        If the number of leaves does not match the structure.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.tree.unflatten(ft.tree.structure((0, [0, 0])), "abc")
    ('a', ['b', 'c'])
    """
    return treedef.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.tree.leaves({"b": 2, "a": (1, None)})
    [1, 2]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a tree.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.tree.structure({"b": 2, "a": (1, None)})
    PyTreeDef({'a': (*, None), 'b': *})
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., PyTree], tree: PyTree, *rest: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Apply a function to the leaves of a tree, or to those of several trees together.

    Parameters
    ----------
    f : callable
        Takes one leaf of `tree`, and the subtree at the same position in each tree of `rest`.
    tree : pytree
    *rest : pytrees
        Trees with the structure of `tree`, possibly with subtrees in place of its leaves.
    is_leaf : callable, optional
        As in `tree_flatten`; applied to `tree`.

    Returns
    -------
    pytree
        It has the structure of `tree`.

    Raises
    ------
    PytreeError
        If `tree` is not a prefix of a tree in `rest`; the message names the key path at which they differ.

    Examples
    --------
    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten(list(map(f, leaves)))
    others = [treedef.flatten_up_to(other, f"tree_map: tree {i}") for i, other in enumerate(rest, 2)]
    return treedef.unflatten([f(*values) for values in zip(leaves, *others)])


def _walk(tree: PyTree, path: KeyPath, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    kind = None if is_leaf is not None and is_leaf(tree) else kind_of(tree)
    if kind is None:
        yield path, tree
        return
    for key, child in keyed_children(kind, tree, path)[0]:
        yield from _walk(child, (*path, key), is_leaf)


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[..., Any] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """The leaves of a tree with their key paths, and the structure.

    Parameters
    ----------
    tree : pytree
    is_leaf : callable, optional
        ``is_leaf(subtree)``, or ``is_leaf(path, subtree)``, decides for each subtree whether it is a leaf.
    is_leaf_takes_path : bool
        Whether `is_leaf` takes the key path as well.

    Examples
    --------
    >>> import functrans as ft
    >>> pairs, treedef = ft.tree.flatten_with_path({"a": [1, 2]})
    >>> [(ft.tree_util.keystr(path), leaf) for path, leaf in pairs]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    if is_leaf is None or not is_leaf_takes_path:
        return list(_walk(tree, (), is_leaf)), tree_structure(tree, is_leaf)
    pairs: list[tuple[KeyPath, Any]] = []
    return pairs, _flatten_with_path(tree, (), pairs, is_leaf)


def _flatten_with_path(
    tree: PyTree, path: KeyPath, pairs: list[tuple[KeyPath, Any]], is_leaf: Callable[..., Any]
) -> PyTreeDef:
    kind = None if is_leaf(path, tree) else kind_of(tree)
    if kind is None:
        pairs.append((path, tree))
        return LEAF
    children, aux = keyed_children(kind, tree, path)
    parts = [_flatten_with_path(child, (*path, key), pairs, is_leaf) for key, child in children]
    return PyTreeDef(kind, aux, tuple(parts))


def leaf_path(treedef: PyTreeDef, i: int) -> KeyPath:
    """The key path of the leaf with this number."""
    return tree_flatten_with_path(tree_unflatten(treedef, range(treedef.num_leaves)))[0][i][0]


def tree_flatten_one_level(tree: PyTree) -> tuple[list[PyTree], Any] | None:
    """The children of the root and its aux data; None for a leaf.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.tree_util.tree_flatten_one_level([1, (2, 3)])
    ([1, (2, 3)], None)
    """
    kind = kind_of(tree)
    if kind is None:
        return None
    pairs, aux = keyed_children(kind, tree, ())
    return [child for _, child in pairs], aux
