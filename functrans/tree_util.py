"""Pytree functions under the names of ``jax.tree_util``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from .errors import PytreeError
from .frontend import pytree as _unchecked
from .frontend.checked import checked
from .frontend.pytree import PyTree, PyTreeDef
from .frontend.pytree.nodes import (
    TUPLE,
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    SequenceKey,
    is_node_type,
    keyed_children,
    keystr,
    kind_of,
    register_kind,
)
from .frontend.pytree.register import (
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from .runtime.module_getattr import module_attributes as _module_attributes

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "build_tree",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_one_level",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]
__getattr__, __dir__ = _module_attributes("functrans.tree_util", globals())

F = TypeVar("F", bound=Callable[..., Any])


def _public(function: F) -> F:
    """A function of `frontend.pytree` with argument checks, which `frontend.pytree` omits for speed."""
    public = checked(function)
    public.__module__ = __name__
    return public


tree_flatten = _public(_unchecked.tree_flatten)
tree_flatten_one_level = _public(_unchecked.tree_flatten_one_level)
tree_flatten_with_path = _public(_unchecked.tree_flatten_with_path)
tree_leaves = _public(_unchecked.tree_leaves)
tree_map = _public(_unchecked.tree_map)
tree_structure = _public(_unchecked.tree_structure)
tree_unflatten = _public(_unchecked.tree_unflatten)

IsLeaf = Callable[[Any], bool] | None
_MISSING: Any = object()


@checked
def tree_all(tree: PyTree, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.tree.all({"a": True, "b": [1, 0]})
    False
    """
    return all(tree_leaves(tree, is_leaf))


@checked
def tree_reduce(
    function: Callable[[Any, Any], Any], tree: PyTree, initializer: Any = _MISSING, is_leaf: IsLeaf = None
) -> Any:
    """Combine the leaves from left to right with a function of two arguments.

    Raises
    ------
    PytreeError
        If the tree has no leaves and there is no `initializer`.

    Examples
    --------
    >>> tree_reduce(lambda a, b: a + b, {"a": 1, "b": (2, 3)}, 0)
    6
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is not _MISSING:
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise PytreeError("tree_reduce: the tree has no leaves; pass an initializer")
    return functools.reduce(function, leaves)


@checked
def tree_reduce_associative(
    operation: Callable[[Any, Any], Any], tree: PyTree, *, identity: Any = _MISSING, is_leaf: IsLeaf = None
) -> Any:
    """Combine the leaves with an associative function of two arguments, neighbours first.

    Parameters
    ----------
    operation : callable
    tree : pytree
    identity : optional
        The result for a tree without leaves.
    is_leaf : callable, optional

    Raises
    ------
    PytreeError
        If the tree has no leaves and there is no `identity`.

    Examples
    --------
    >>> tree_reduce_associative(lambda a, b: f"({a}{b})", list("abcde"))
    '(((ab)(cd))e)'
    """
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is _MISSING:
            raise PytreeError("tree_reduce_associative: the tree has no leaves; pass an identity")
        return identity
    while len(leaves) > 1:
        pairs = [operation(a, b) for a, b in zip(leaves[::2], leaves[1::2])]
        leaves = pairs + leaves[len(pairs) * 2 :]
    return leaves[0]


@checked
def flatten_one_level(tree: PyTree) -> tuple[list[PyTree], Any]:
    """The children of the root and its aux data; see `tree_flatten_one_level`, which returns None for a leaf.

    Raises
    ------
    PytreeError
        If the tree is a leaf.

    Examples
    --------
    >>> flatten_one_level({"a": [1, 2], "b": 3})
    ([[1, 2], 3], ('a', 'b'))
    """
    found = tree_flatten_one_level(tree)
    if found is None:
        raise PytreeError(
            f"flatten_one_level: tree must be a node, but is a leaf of type {type(tree).__name__}"
        )
    return found


@checked
def flatten_one_level_with_keys(tree: PyTree) -> tuple[list[tuple[KeyEntry, PyTree]], Any]:
    """The children of the root with their keys, and its aux data.

    Raises
    ------
    PytreeError
        If the tree is a leaf.

    Examples
    --------
    >>> flatten_one_level_with_keys((1, 2))
    ([(SequenceKey(idx=0), 1), (SequenceKey(idx=1), 2)], None)
    """
    kind = kind_of(tree)
    if kind is None:
        raise PytreeError(
            f"flatten_one_level_with_keys: tree must be a node, but is a leaf of type {type(tree).__name__}"
        )
    return keyed_children(kind, tree, ())


@checked
def is_tree_node(typ: type) -> bool:
    """Whether objects of a class are nodes of pytrees: containers, None, namedtuples and registered classes.

    Examples
    --------
    >>> is_tree_node(list), is_tree_node(float)
    (True, False)
    """
    return is_node_type(typ)


class PyTreeRegistry:
    """The registry of node types; there is only one: `default_registry`.

    Examples
    --------
    >>> default_registry.flatten_one_level([1, (2, 3)])
    ([1, (2, 3)], None)
    """

    flatten = staticmethod(tree_flatten)
    flatten_one_level = staticmethod(tree_flatten_one_level)
    flatten_one_level_with_keys = staticmethod(flatten_one_level_with_keys)
    flatten_with_path = staticmethod(tree_flatten_with_path)
    register_node = staticmethod(register_pytree_node)
    register_dataclass_node = staticmethod(register_dataclass)
    is_node = staticmethod(is_tree_node)


default_registry = PyTreeRegistry()


@checked
def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: PyTree
) -> PyTree:
    """Turn a pytree of pytrees inside out.

    Parameters
    ----------
    outer_treedef : PyTreeDef
        The structure of the outer tree.
    inner_treedef : PyTreeDef or None
        The structure of each inner tree; None means that of the first.
    pytree_to_transpose : pytree
        A pytree with the composed structure.

    Returns
    -------
    pytree
        Has structure `inner_treedef`; each leaf is a tree of structure `outer_treedef`.

    Raises
    ------
    PytreeError
        If the tree does not have the composed structure.

    Examples
    --------
    >>> tree = [(1, "a"), (2, "b"), (3, "c")]
    >>> tree_transpose(tree_structure([0, 0, 0]), tree_structure((0, 0)), tree)
    ([1, 2, 3], ['a', 'b', 'c'])
    """
    subtrees = outer_treedef.flatten_up_to(pytree_to_transpose, "tree_transpose: the tree")
    if inner_treedef is None:
        if not subtrees:
            raise PytreeError("tree_transpose: the outer tree has no leaves; pass inner_treedef")
        inner_treedef = tree_structure(subtrees[0])
    columns = [inner_treedef.flatten_up_to(subtree, "tree_transpose: an inner tree") for subtree in subtrees]
    rows = zip(*columns) if columns else [()] * inner_treedef.num_leaves
    return inner_treedef.unflatten([outer_treedef.unflatten(row) for row in rows])


@checked
def tree_leaves_with_path(
    tree: PyTree, is_leaf: Callable[..., Any] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree with their key paths.

    Examples
    --------
    >>> import functrans as ft
    >>> [(ft.tree_util.keystr(path), leaf) for path, leaf in ft.tree.leaves_with_path({"a": (1, 2)})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


@checked
def tree_map_with_path(
    f: Callable[..., Any],
    tree: PyTree,
    *rest: PyTree,
    is_leaf: Callable[..., Any] | None = None,
    is_leaf_takes_path: bool = False,
) -> PyTree:
    """As `tree_map`, with the key path as the first argument of the function.

    Examples
    --------
    >>> tree_map_with_path(lambda path, x: f"{keystr(path)}={x}", {"a": [1, 2]})
    {'a': ["['a'][0]=1", "['a'][1]=2"]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [
        treedef.flatten_up_to(other, f"tree_map_with_path: tree {i}") for i, other in enumerate(rest, 2)
    ]
    return treedef.unflatten([f(*pair, *values) for pair, *values in zip(pairs, *others)])


@checked
def tree_broadcast(prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Repeat the leaves of a prefix tree until it has the structure of the full tree.

    Parameters
    ----------
    prefix_tree : pytree
        A prefix of `full_tree`.
    full_tree : pytree
    is_leaf : callable, optional
        As in `tree_flatten`; applied to both.

    Raises
    ------
    PytreeError
        If the first is not a prefix of the second; the message names the key path at which they differ.

    Examples
    --------
    >>> tree_broadcast((0, 1), ("a", {"x": "b", "y": "c"}))
    (0, {'x': 1, 'y': 1})
    """
    prefix_leaves, prefix_def = tree_flatten(prefix_tree, is_leaf)
    subtrees = prefix_def.flatten_up_to(full_tree, "tree_broadcast: the full tree")
    treedef = tree_structure(full_tree, is_leaf)
    counts = [len(tree_leaves(subtree, is_leaf)) for subtree in subtrees]
    return treedef.unflatten([leaf for leaf, n in zip(prefix_leaves, counts) for _ in range(n)])


@checked
def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every element is a leaf.

    Examples
    --------
    >>> all_leaves([1, 2.0]), all_leaves([1, (2,)])
    (True, False)
    """
    return all(kind_of(x) is None or (is_leaf is not None and is_leaf(x)) for x in iterable)


@checked
def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is that of a single leaf.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.tree_util.treedef_is_leaf(ft.tree.structure(1.0))
    True
    """
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


@checked
def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees with these structures.

    Examples
    --------
    >>> import functrans as ft
    >>> leaf = ft.tree.structure(0)
    >>> ft.tree_util.treedef_tuple([leaf, leaf])
    PyTreeDef((*, *))
    """
    definitions = tuple(treedefs)
    return PyTreeDef(TUPLE, None, definitions)


@checked
def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children of the root.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.tree_util.treedef_children(ft.tree.structure((1, [2, 3])))
    [PyTreeDef(*), PyTreeDef([*, *])]
    """
    return treedef.children()


@checked
def build_tree(treedef: PyTreeDef, xs: Any) -> PyTree:
    """A tree of this structure from nested sequences.

    Parameters
    ----------
    treedef : PyTreeDef
    xs : nested iterables
        One iterable per node, of its children in order, and a leaf for each leaf.

    Raises
    ------
    PytreeError
        If the number of elements of an iterable differs from the number of children of its node.

    Examples
    --------
    >>> build_tree(tree_structure(({"a": 0, "b": 0}, [0])), [[1, 2], [3]])
    ({'a': 1, 'b': 2}, [3])
    """
    leaves: list[Any] = []
    _collect_nested(treedef, xs, leaves)
    return treedef.unflatten(leaves)


def _collect_nested(treedef: PyTreeDef, xs: Any, leaves: list[Any]) -> None:
    if treedef_is_leaf(treedef):
        leaves.append(xs)
        return
    children = treedef.children()
    values = list(xs) if children else []
    if len(values) != len(children):
        raise PytreeError(
            f"build_tree: a node of structure {treedef} has {len(children)} children, got {xs!r}"
        )
    for child, value in zip(children, values):
        _collect_nested(child, value, leaves)


class Partial(functools.partial):
    """A `functools.partial` that is a pytree: the bound arguments are children, and the function is structure.

    Parameters
    ----------
    func : callable
    *args, **kw
        Bound arguments.

    Examples
    --------
    >>> add = Partial(lambda x, y: x + y, 1)
    >>> tree_leaves(add)
    [1]
    >>> tree_map(lambda x: x * 10, add)(5)
    15
    """


def _flatten_partial(node: Partial) -> tuple[tuple[Any, Any], Hashable]:
    return (node.args, node.keywords), node.func


register_kind(
    Partial,
    _flatten_partial,
    lambda func, children: Partial(func, *children[0], **children[1]),
    lambda node, aux, n: (GetAttrKey("args"), GetAttrKey("keywords")),
)
