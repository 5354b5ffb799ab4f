"""Pytree functions under the names of ``jax.tree_util``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from .core.errors import PytreeError
from .core.names import module_attributes as _module_attributes
from .core.pytree import (
    PyTree,
    PyTreeDef,
    tree_flatten,
    tree_flatten_one_level,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
)
from .core.tree_nodes import (
    TUPLE,
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    SequenceKey,
    keystr,
    kind_of,
    register_kind,
)

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
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]
__getattr__, __dir__ = _module_attributes("functrans.tree_util", globals())

IsLeaf = Callable[[Any], bool] | None
_Class = TypeVar("_Class", bound=type)
_MISSING: Any = object()


def tree_all(tree: PyTree, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.tree.all({"a": True, "b": [1, 0]})
    False
    """
    return all(tree_leaves(tree, is_leaf))


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


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: PyTree
) -> PyTree:
    """Turn a tree of trees inside out.

    Parameters
    ----------
    outer_treedef : PyTreeDef
        The structure of the outer tree.
    inner_treedef : PyTreeDef or None
        The structure of each inner tree; None takes that of the first.
    pytree_to_transpose : pytree
        Of the composed structure.

    Returns
    -------
    pytree
        Of structure `inner_treedef`, each leaf a tree of structure `outer_treedef`.

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
            raise PytreeError("tree_transpose: the outer tree has no leaves; give inner_treedef")
        inner_treedef = tree_structure(subtrees[0])
    columns = [inner_treedef.flatten_up_to(subtree, "tree_transpose: an inner tree") for subtree in subtrees]
    rows = zip(*columns) if columns else [()] * inner_treedef.num_leaves
    return inner_treedef.unflatten([outer_treedef.unflatten(row) for row in rows])


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree with their key paths.

    Examples
    --------
    >>> import functrans as ft
    >>> [(ft.tree_util.keystr(path), leaf) for path, leaf in ft.tree.leaves_with_path({"a": (1, 2)})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """As `tree_map`, with the key path as the first argument of the function.

    Examples
    --------
    >>> tree_map_with_path(lambda path, x: f"{keystr(path)}={x}", {"a": [1, 2]})
    {'a': ["['a'][0]=1", "['a'][1]=2"]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf)
    others = [
        treedef.flatten_up_to(other, f"tree_map_with_path: tree {i}") for i, other in enumerate(rest, 2)
    ]
    return treedef.unflatten([f(*pair, *values) for pair, *values in zip(pairs, *others)])


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
        If the first is not a prefix of the second; names the key path at which they part.

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


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every element is a leaf.

    Examples
    --------
    >>> all_leaves([1, 2.0]), all_leaves([1, (2,)])
    (True, False)
    """
    return all(kind_of(x) is None or (is_leaf is not None and is_leaf(x)) for x in iterable)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is that of a single leaf.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.tree_util.treedef_is_leaf(ft.tree.structure(1.0))
    True
    """
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees with the given structures.

    Examples
    --------
    >>> import functrans as ft
    >>> leaf = ft.tree.structure(0)
    >>> ft.tree_util.treedef_tuple([leaf, leaf])
    PyTreeDef((*, *))
    """
    definitions = tuple(treedefs)
    return PyTreeDef(TUPLE, None, definitions)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children of the root.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.tree_util.treedef_children(ft.tree.structure((1, [2, 3])))
    [PyTreeDef(*), PyTreeDef([*, *])]
    """
    return treedef.children()


def build_tree(treedef: PyTreeDef, xs: Any) -> PyTree:
    """A tree of the given structure from nested sequences.

    Parameters
    ----------
    treedef : PyTreeDef
    xs : nested iterables
        One iterable for each node, of its children in order; a leaf in the place of each leaf.

    Raises
    ------
    PytreeError
        If an iterable has not as many elements as its node has children.

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


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[KeyEntry, Any]], Any]] | None = None,
) -> None:
    """Make a class a node type of pytrees.

    Parameters
    ----------
    nodetype : type
        Met by exact type; subclasses are registered on their own.
    flatten_func : callable
        From an object to ``(children, aux_data)``; `aux_data` must be hashable and comparable.
    unflatten_func : callable
        From ``(aux_data, children)`` to an object. The children may be any objects, tracers among them: do
        not check or convert them.
    flatten_with_keys_func : callable, optional
        From an object to ``(((key, child), ...), aux_data)``, for key paths.

    Raises
    ------
    PytreeError
        If `nodetype` is not a class, or has been registered before.

    Examples
    --------
    >>> import functrans as ft
    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> ft.tree_util.register_pytree_node(Pair, lambda p: ((p.x, p.y), None), lambda aux, children: Pair(*children))
    >>> ft.tree.map(lambda v: 2 * v, Pair(1, 2)).y
    4
    """
    register_kind(nodetype, flatten_func, unflatten_func, _keys_from(flatten_with_keys_func))


def _keys_from(flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None) -> Any:
    if flatten_with_keys is None:
        return None

    def keys(node: Any, aux: Any, n: int) -> list[KeyEntry]:
        return [key for key, _ in flatten_with_keys(node)[0]]

    return keys


def register_pytree_node_class(cls: _Class) -> _Class:
    """Register a class by its methods ``tree_flatten(self)`` and ``tree_unflatten(cls, aux_data, children)``.

    Use as a decorator; `tree_unflatten` is a class method.

    Examples
    --------
    >>> @register_pytree_node_class
    ... class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    ...     def tree_flatten(self):
    ...         return (self.low, self.high), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux_data, children):
    ...         return cls(*children)
    >>> tree_map(lambda x: x + 1, Interval(1, 2)).high
    3
    """
    register_kind(cls, lambda node: node.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[KeyEntry, Any]], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Make a class a node type whose children have names.

    Parameters
    ----------
    nodetype : type
    flatten_with_keys : callable
        From an object to ``(((key, child), ...), aux_data)``.
    unflatten_func : callable
        From ``(aux_data, children)`` to an object.
    flatten_func : callable, optional
        From an object to ``(children, aux_data)``, where that is faster.

    Raises
    ------
    PytreeError
        If `nodetype` is not a class, or has been registered before.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.tree_util import GetAttrKey
    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> ft.tree_util.register_pytree_with_keys(
    ...     Pair,
    ...     lambda p: (((GetAttrKey("x"), p.x), (GetAttrKey("y"), p.y)), None),
    ...     lambda aux, children: Pair(*children),
    ... )
    >>> [ft.tree_util.keystr(path) for path, _ in ft.tree.leaves_with_path(Pair(1, 2))]
    ['.x', '.y']
    """

    def flatten(node: Any) -> tuple[Iterable[Any], Any]:
        pairs, aux = flatten_with_keys(node)
        return [child for _, child in pairs], aux

    register_kind(nodetype, flatten_func or flatten, unflatten_func, _keys_from(flatten_with_keys))


def register_pytree_with_keys_class(cls: _Class) -> _Class:
    """Register a class by its methods ``tree_flatten_with_keys`` and ``tree_unflatten``.

    Use as a decorator. A method ``tree_flatten``, where there is one, is used when no keys are needed.

    Examples
    --------
    >>> import functrans as ft
    >>> @ft.tree_util.register_pytree_with_keys_class
    ... class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten_with_keys(self):
    ...         return ((ft.tree_util.GetAttrKey("x"), self.x),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> ft.tree.leaves(Box([1, 2]))
    [1, 2]
    """
    flatten = (lambda node: node.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    unflatten = cls.tree_unflatten  # type: ignore[attr-defined]
    register_pytree_with_keys(cls, lambda node: node.tree_flatten_with_keys(), unflatten, flatten)
    return cls


def register_dataclass(
    nodetype: _Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> _Class:
    """Make a dataclass a node type of pytrees.

    Parameters
    ----------
    nodetype : type
        A dataclass. Its constructor is called with the fields by name to put an object together.
    data_fields : sequence of str, optional
        Fields that are children. With both left out, all fields of the constructor whose metadata do not have
        ``static=True``.
    meta_fields : sequence of str, optional
        Fields that belong to the structure; hashable and comparable.
    drop_fields : sequence of str
        Fields that are neither; they need a default.

    Returns
    -------
    type
        `nodetype`, so that this function serves as a decorator.

    Raises
    ------
    PytreeError
        If the fields named are not those of the constructor, or the class is not a dataclass.

    Examples
    --------
    >>> from dataclasses import dataclass, field
    >>> @register_dataclass
    ... @dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = field(metadata=dict(static=True))
    >>> tree_structure(Layer(1.0, "first"))
    PyTreeDef(CustomNode(Layer[('first',)], [*]))
    """
    if not dataclasses.is_dataclass(nodetype):
        raise PytreeError(f"register_dataclass: {nodetype!r} is not a dataclass; decorate it with @dataclass")
    fields = {field.name: field for field in dataclasses.fields(nodetype) if field.init}
    if data_fields is None and meta_fields is None:
        kept = [name for name in fields if name not in drop_fields]
        data_fields = [name for name in kept if not fields[name].metadata.get("static", False)]
        meta_fields = [name for name in kept if fields[name].metadata.get("static", False)]
    elif data_fields is None or meta_fields is None:
        raise PytreeError("register_dataclass: give both data_fields and meta_fields, or neither")
    named = [*data_fields, *meta_fields, *drop_fields]
    if sorted(named) != sorted(fields):
        raise PytreeError(
            f"register_dataclass: the constructor of {nodetype.__name__} has the fields {sorted(fields)},"
            f" but data_fields, meta_fields and drop_fields name {sorted(named)}"
        )
    _register_fields(nodetype, tuple(data_fields), tuple(meta_fields))
    return nodetype


def _register_fields(cls: type, data: tuple[str, ...], meta: tuple[str, ...]) -> None:
    keys = tuple(GetAttrKey(name) for name in data)

    def flatten(node: Any) -> tuple[list[Any], tuple]:
        return [getattr(node, name) for name in data], tuple([getattr(node, name) for name in meta])

    def unflatten(aux: tuple, children: Iterable[Any]) -> Any:
        return cls(**dict(zip(meta, aux)), **dict(zip(data, children)))

    register_kind(cls, flatten, unflatten, lambda node, aux, n: keys)


def register_static(cls: _Class) -> _Class:
    """Make objects of a class part of the structure: nodes without children.

    The class needs ``__eq__`` and ``__hash__``. Use as a decorator.

    Examples
    --------
    >>> import dataclasses, functrans as ft
    >>> @ft.tree_util.register_static
    ... @dataclasses.dataclass(frozen=True)
    ... class Options:
    ...     power: int
    >>> ft.jit(lambda x, options: x**options.power)(3.0, Options(2))
    Array(9.)
    """
    register_kind(cls, lambda node: ((), node), lambda aux, children: aux)
    return cls


class Partial(functools.partial):
    """A `functools.partial` that is a pytree: the bound arguments are children, the function is structure.

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
