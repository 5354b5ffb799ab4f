"""Pytrees: nested containers of leaves, taken apart and put together.

A `PyTreeDef` is the structure without the leaves. It is compared and hashed on every call of a compiled
function, so the definitions of flat tuples, lists and string-keyed dictionaries are shared, and hashes kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

from .errors import PytreeError
from .tree_nodes import (
    DICT,
    LEAF_TYPES,
    LIST,
    NONE,
    TUPLE,
    KeyPath,
    NodeKind,
    UnsortableKeysError,
    is_namedtuple_kind,
    keystr,
    kind_of,
    kind_of_type,
)

PyTree = Any
IsLeaf = Callable[[Any], bool] | None


class PyTreeDef:
    """The structure of a pytree.

    Made by `tree_structure` and `tree_flatten`, not directly. Two definitions are equal if the node types,
    the aux data (keys of a dictionary, class of a namedtuple, what a registered type says) and the children
    are.

    Attributes
    ----------
    num_leaves : int
    num_nodes : int
        Leaves and containers together.

    Examples
    --------
    >>> tree_structure((1, {"a": 2}))
    PyTreeDef((*, {'a': *}))
    >>> tree_structure((1, {"a": 2})).unflatten([10, 20])
    (10, {'a': 20})
    """

    __slots__ = ("_aux", "_children", "_flat", "_hash", "_kind", "_shared", "num_leaves", "num_nodes")

    num_leaves: int
    num_nodes: int
    _kind: NodeKind | None
    _hash: int | None

    def __init__(self, kind: NodeKind | None, aux: Any, children: tuple[PyTreeDef, ...]):
        self._kind = kind
        self._aux = aux
        self._children = children
        self._hash = None
        self._shared = False
        leaves = nodes = 0
        for child in children:
            leaves += child.num_leaves
            nodes += child.num_nodes
        self.num_leaves = 1 if kind is None else leaves
        self.num_nodes = nodes + 1
        self._flat = leaves == nodes == len(children)  # every child is a leaf

    def children(self) -> list[PyTreeDef]:
        """The structures of the children of the root (none for a leaf)."""
        return list(self._children)

    def node_data(self) -> tuple[type, Any] | None:
        """Node type and aux data of the root; None for a leaf."""
        if self._kind is None:
            return None
        return (self._aux if is_namedtuple_kind(self._kind) else self._kind.type), self._aux

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of this structure with the given leaves.

        Raises
        ------
        PytreeError
            If the number of leaves is not `num_leaves`.
        """
        if type(leaves) is not list and type(leaves) is not tuple:
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise PytreeError(
                f"unflatten: {self} has {self.num_leaves} leaves, but {len(leaves)} values were given"
            )
        if self._flat and self._kind is not None:
            return self._kind.unflatten(self._aux, leaves)
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> PyTree:
        kind = self._kind
        if kind is None:
            return next(leaves)
        if self._flat:
            return kind.unflatten(self._aux, list(islice(leaves, self.num_leaves)))
        return kind.unflatten(self._aux, [child._build(leaves) for child in self._children])

    def flatten_up_to(self, tree: PyTree, name: str = "tree") -> list[PyTree]:
        """The subtrees of `tree` that stand where this structure has leaves.

        Parameters
        ----------
        tree : pytree
            A tree of which this structure is a prefix.
        name : str
            What error messages call `tree`.

        Raises
        ------
        PytreeError
            If this structure is not a prefix of `tree`'s; names the key path at which they part.
        """
        subtrees: list[PyTree] = []
        if not _collect_subtrees(self, tree, subtrees):
            _raise_mismatch(self, tree, name, _collect_subtrees)
        return subtrees

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with `inner` in the place of each leaf."""
        if self._kind is None:
            return inner
        return PyTreeDef(self._kind, self._aux, tuple(child.compose(inner) for child in self._children))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not PyTreeDef:
            return NotImplemented
        return (
            self.num_leaves == other.num_leaves
            and self._kind is other._kind
            and _same_aux(self._aux, other._aux)
            and _same_types(self._aux, other._aux)
            and self._children == other._children
        )

    def __hash__(self) -> int:
        value = self._hash
        if value is None:
            kind = self._kind
            try:
                value = hash((None if kind is None else kind.type, self._aux, self._children))
            except TypeError as error:
                raise PytreeError(
                    f"the aux data of a pytree node must be hashable; {_kind_name(kind)} gave"
                    f" {self._aux!r} ({error}). Return a tuple, string or number, or make it a child"
                ) from None
            self._hash = value
        return value

    def __reduce__(self) -> tuple:
        cls = None if self._kind is None else self._kind.type
        return _rebuild, (cls, self._aux, self._children)

    def __repr__(self) -> str:
        return f"PyTreeDef({self})"

    def __str__(self) -> str:
        if self._kind is None:
            return "*"
        return self._kind.show(self._aux, [str(child) for child in self._children])


def _rebuild(cls: type | None, aux: Any, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    if cls is None:
        return LEAF
    if cls is tuple:
        return PyTreeDef(TUPLE if aux is None else kind_of_type(aux), aux, children)
    return PyTreeDef(kind_of_type(cls), aux, children)


def _same_aux(a: Any, b: Any) -> bool:
    if a is b:
        return True
    try:
        return bool(a == b)
    except Exception as error:
        raise PytreeError(
            f"the aux data of a pytree node must be comparable with ==; comparing {a!r} and {b!r} failed:"
            f" {error}. Make arrays children of the node"
        ) from error


def _same_types(a: Any, b: Any) -> bool:
    """Whether equal data make the same program: 1, 1.0 and True are equal, and so are 0.0 and -0.0, but do not."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return all(map(_same_types, a, b))
    return not isinstance(a, float | complex) or repr(a) == repr(b)


LEAF = PyTreeDef(None, None, ())
_NONE_DEF = PyTreeDef(NONE, None, ())
_SHARED_KINDS = frozenset({TUPLE, LIST, DICT})
_MOST_SHARED = 64
_TUPLE_DEFS = [PyTreeDef(TUPLE, None, (LEAF,) * n) for n in range(_MOST_SHARED)]
_LIST_DEFS = [PyTreeDef(LIST, None, (LEAF,) * n) for n in range(_MOST_SHARED)]
for _treedef in (LEAF, _NONE_DEF, *_TUPLE_DEFS, *_LIST_DEFS):
    _treedef._shared = True
# From the keys of a dictionary, in their order, to a getter of the values in sorted order and the definition.
# Only for string keys: 1, True and 1.0 are one key of a dictionary.
_DICT_DEFS: dict[tuple[str, ...], tuple[Callable[[dict], Iterable[Any]], PyTreeDef]] = {}
_STR_ONLY = frozenset({str})
# Nested tuples, lists and string-keyed dictionaries, by kind, keys and identity of the children, which the
# value keeps alive. Nodes with aux data of users' own are not shared: the data would never be freed.
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


def _nested_def(kind: NodeKind, aux: Any, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    treedef = PyTreeDef(kind, aux, children)
    plain = aux is None or _STR_ONLY.issuperset(map(type, aux))
    if plain and all(child._shared for child in children):
        if len(_NESTED_DEFS) >= _MOST_NESTED:
            _NESTED_DEFS.clear()
        treedef = _NESTED_DEFS.setdefault((kind, aux, *map(id, children)), treedef)
        treedef._shared = True
    return treedef


def _flatten_until(tree: PyTree, leaves: list[Any], is_leaf: Callable[[Any], bool]) -> PyTreeDef:
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
        Called on each node first; where it returns True, the node is taken as a leaf.

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
        for _ in _walk(tree, (), is_leaf):  # raises where the path is known
            pass
        raise


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> PyTree:
    """The tree of the given structure and leaves: the inverse of `tree_flatten`.

    Raises
    ------
    PytreeError
        If the number of leaves is not that of the structure.

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


def tree_map(f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Apply a function to the leaves of a tree, or to those of several trees together.

    Parameters
    ----------
    f : callable
        Takes one leaf of `tree` and what stands in its place in each tree of `rest`.
    tree : pytree
    *rest : pytrees
        Of the structure of `tree`, or with deeper trees in the place of its leaves.
    is_leaf : callable, optional
        As in `tree_flatten`; applied to `tree`.

    Returns
    -------
    pytree
        Of the structure of `tree`.

    Raises
    ------
    PytreeError
        If `tree` is not a prefix of a tree in `rest`; names the key path at which they part.

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
    for key, child in _keyed_children(kind, tree, path):
        yield from _walk(child, (*path, key), is_leaf)


def _keyed_children(kind: NodeKind, node: Any, path: KeyPath) -> list[tuple[Any, Any]]:
    try:
        children, aux = kind.flatten(node)
    except UnsortableKeysError:
        met = ", ".join(sorted({type(key).__name__ for key in node}))
        raise PytreeError(
            f"the keys of the dictionary at tree{keystr(path)} cannot be sorted (types met: {met}):"
            f" {list(node)!r}. Use keys of one type, or an OrderedDict, which keeps its own order"
        ) from None
    children = list(children)
    return list(zip(kind.keys(node, aux, len(children)), children))


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """The leaves of a tree with their key paths, and the structure.

    Examples
    --------
    >>> pairs, treedef = tree_flatten_with_path({"a": [1, 2]})
    >>> [(keystr(path), leaf) for path, leaf in pairs]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_walk(tree, (), is_leaf)), tree_structure(tree, is_leaf)


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
    pairs = _keyed_children(kind, tree, ())
    return [child for _, child in pairs], kind.flatten(tree)[1]


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: PyTree) -> list[Any]:
    """One value of a prefix tree for each leaf of a structure.

    Parameters
    ----------
    name : str
        What error messages call `axis_tree`, for example ``"vmap in_axes"``.
    treedef : PyTreeDef
        The structure of the full tree.
    axis_tree : pytree
        A prefix of it. None counts as a leaf here: it is a value such as "not batched".

    Returns
    -------
    list
        Of length ``treedef.num_leaves``.

    Raises
    ------
    PytreeError
        If `axis_tree` is not a prefix; names the key path at which they part.

    Examples
    --------
    >>> flatten_axes("in_axes", tree_structure((1, {"a": 2, "b": 3})), (0, None))
    [0, None, None]
    """
    axes: list[Any] = []
    if not _collect_axes(treedef, axis_tree, axes):
        _raise_mismatch(treedef, axis_tree, name, _collect_axes)
    return axes


def _collect_axes(treedef: PyTreeDef, axes: PyTree, out: list[Any]) -> bool:
    kind = None if axes is None else kind_of(axes)
    if kind is None:
        out.extend([axes] * treedef.num_leaves)
        return True
    children = _matching_children(treedef, axes)
    return children is not None and all(
        _collect_axes(child, axis, out) for child, axis in zip(treedef._children, children)
    )


def _collect_subtrees(treedef: PyTreeDef, tree: PyTree, out: list[Any]) -> bool:
    if treedef._kind is None:
        out.append(tree)
        return True
    children = _matching_children(treedef, tree)
    if children is None:
        return False
    if treedef._flat:
        out.extend(children)
        return True
    return all(_collect_subtrees(child, subtree, out) for child, subtree in zip(treedef._children, children))


def _matching_children(treedef: PyTreeDef, node: Any) -> Sequence[Any] | None:
    """The children of `node` if it is a node like the root of `treedef`."""
    kind = kind_of(node)
    if kind is None or kind is not treedef._kind:
        return None
    try:
        children, aux = kind.flatten(node)
    except UnsortableKeysError:
        return None
    children = children if isinstance(children, (tuple, list)) else list(children)
    if len(children) != len(treedef._children) or not _same_aux(treedef._aux, aux):
        return None
    return children


_Collect = Callable[[PyTreeDef, Any, list[Any]], bool]


def _raise_mismatch(treedef: PyTreeDef, tree: PyTree, name: str, collect: _Collect) -> None:
    path, expected, met = _first_difference(treedef, tree, (), collect)
    raise PytreeError(
        f"{name} does not match at {keystr(path) if path else 'the root'}: expected {expected}, got {met}\n"
        f"  expected structure: {treedef}\n"
        f"  met structure:      {tree_structure(tree)}"
    )


def _first_difference(
    treedef: PyTreeDef, node: Any, path: KeyPath, collect: _Collect
) -> tuple[KeyPath, str, str]:
    """Where and how `node` first differs from `treedef`; the caller knows that it does."""
    kind = kind_of(node)
    children = _matching_children(treedef, node)
    if kind is not None and children is not None:
        keys = kind.keys(node, treedef._aux, len(children))
        for key, child, subtree in zip(keys, treedef._children, children):
            if not collect(child, subtree, []):
                return _first_difference(child, subtree, (*path, key), collect)
    return path, _describe(treedef), _describe_node(node, path)


def first_difference(a: PyTreeDef, b: PyTreeDef) -> tuple[KeyPath, str, str] | None:
    """Where two structures first part, and what stands there in each of them; None where they are equal.

    Examples
    --------
    >>> first_difference(tree_structure({"a": (1, 2)}), tree_structure({"a": (1, 2, 3)}))
    ((DictKey(key='a'),), 'a tuple of length 2', 'a tuple of length 3')
    """
    if a == b:
        return None
    path: KeyPath = ()
    while len(a._children) == len(b._children) > 0 and a._kind is b._kind and _same_aux(a._aux, b._aux):
        node = a.unflatten([0] * a.num_leaves)
        keys = a._kind.keys(node, a._aux, len(a._children))  # type: ignore[union-attr]
        parted = [(k, x, y) for k, x, y in zip(keys, a._children, b._children) if x != y]
        if not parted:
            break
        key, a, b = parted[0]
        path = (*path, key)
    return path, _describe(a), _describe(b)


def _describe_node(node: Any, path: KeyPath) -> str:
    kind = kind_of(node)
    if kind is None:
        return f"a leaf of type {type(node).__name__}"
    pairs = _keyed_children(kind, node, path)
    return _describe(PyTreeDef(kind, kind.flatten(node)[1], (LEAF,) * len(pairs)))


def _describe(treedef: PyTreeDef) -> str:
    """The root of a structure in words: type, number of children, keys."""
    kind, n = treedef._kind, len(treedef._children)
    if kind is None:
        return "a leaf"
    if kind is NONE:
        return "None"
    if kind is TUPLE or kind is LIST:
        return f"a {kind.type.__name__} of length {n}"
    if kind is DICT:
        return f"a dict with keys {list(treedef._aux)!r}"
    if is_namedtuple_kind(kind):
        return f"a namedtuple {treedef._aux.__name__} of length {n}"
    return f"a {kind.type.__name__} of {n} children with data {treedef._aux!r}"


def _kind_name(kind: NodeKind | None) -> str:
    return "a leaf" if kind is None else kind.type.__name__
