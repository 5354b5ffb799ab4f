"""The structure of a pytree: printed, compared, filled with leaves, and compared with a tree.

Every call of a compiled function compares and hashes a `PyTreeDef`, so its hash is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NoReturn

import numpy as np

from ...core.values import PyTree
from ...errors import PytreeError
from ...runtime.context import pass_on
from .held import CONTAINERS, Held
from .nodes import (
    TUPLE,
    KeyPath,
    NodeKind,
    UnsortableKeysError,
    in_words,
    is_namedtuple_kind,
    keyed_children,
    keystr,
    kind_of,
    kind_of_type,
)

IsLeaf = Callable[[Any], bool] | None


class PyTreeDef:
    """The structure of a pytree.

    Made by `tree_structure` and `tree_flatten`, not directly. Two structures are equal if their node types, aux data
    (keys of a dictionary, class of a namedtuple, data of a registered type) and children are equal.

    Attributes
    ----------
    num_leaves : int
    num_nodes : int
        The number of leaves and containers.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.tree.structure((1, {"a": 2}))
    PyTreeDef((*, {'a': *}))
    >>> ft.tree.structure((1, {"a": 2})).unflatten([10, 20])
    (10, {'a': 20})
    """

    __slots__ = ("_aux", "_children", "_flat", "_hash", "_kind", "_shared", "num_leaves", "num_nodes")

    num_leaves: int
    num_nodes: int
    _kind: NodeKind | None
    _hash: int | None

    def __init__(self, kind: NodeKind | None, aux: PyTree, children: tuple[PyTreeDef, ...]):
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

    @property
    def aux(self) -> Any:
        """The aux data of the root."""
        aux = self._aux
        return aux.copy() if type(aux) is Held else aux

    def held(self) -> PyTreeDef:
        """The structure itself, which now holds the contents of aux data that is not hashable, if it can: it does not
        change with those lists and arrays.
        """
        with suppress(PytreeError):
            hash(self)
        return self

    def children(self) -> list[PyTreeDef]:
        """The structures of the children of the root (none for a leaf)."""
        return list(self._children)

    def node_data(self) -> tuple[type, Any] | None:
        """Node type and aux data of the root; None for a leaf."""
        if self._kind is None:
            return None
        return (self._aux if is_namedtuple_kind(self._kind) else self._kind.type), self.aux

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree with this structure and these leaves.

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
            return self._kind.unflatten(self.aux, leaves)
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> PyTree:
        kind = self._kind
        if kind is None:
            return next(leaves)
        if self._flat:
            return kind.unflatten(self.aux, list(islice(leaves, self.num_leaves)))
        return kind.unflatten(self.aux, [child._build(leaves) for child in self._children])

    def flatten_up_to(self, tree: PyTree, name: str = "tree") -> list[PyTree]:
        """The subtrees of `tree` at the positions of this structure's leaves.

        Parameters
        ----------
        tree : pytree
            A tree of which this structure is a prefix.
        name : str
            The name of `tree` in error messages.

        Raises
        ------
        PytreeError
            If this structure is not a prefix of `tree`'s; the message names the key path at which they differ.
        """
        subtrees: list[PyTree] = []
        if not _collect_subtrees(self, tree, subtrees):
            raise_mismatch(self, tree, name, _collect_subtrees)
        return subtrees

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with each leaf replaced by `inner`."""
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
            and same_aux(self.aux, other.aux)
            and same_types(self.aux, other.aux)
            and self._children == other._children
        )

    def __hash__(self) -> int:
        value = self._hash
        if value is None:
            cls = None if self._kind is None else self._kind.type
            children = hash(self._children)
            try:
                value = hash((cls, self._aux, children))
            except TypeError:
                value = hash((cls, self._hold(), children))
            self._hash = value
        return value

    def _hold(self) -> Held:
        try:
            self._aux = Held(self._aux)
        except TypeError as error:
            cls = None if self._kind is None else self._kind.type.__name__
            raise PytreeError(
                "the aux data of a pytree node must be hashable, or consist of lists, dicts, sets and arrays of "
                f"hashable values; {cls} gave {self._aux!r} ({error}). Return a tuple, string or number, or make it a "
                "child"
            ) from None
        return self._aux

    def __reduce__(self) -> tuple:
        cls = None if self._kind is None else self._kind.type
        return rebuild, (cls, self.aux, self._children)

    def __repr__(self) -> str:
        return f"PyTreeDef({self})"

    def __str__(self) -> str:
        if self._kind is None:
            return "*"
        return self._kind.show(self.aux, [str(child) for child in self._children])


def rebuild(cls: type | None, aux: PyTree, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    """The structure that `PyTreeDef.__reduce__` took apart."""
    if cls is None:
        return LEAF
    if cls is tuple:
        return PyTreeDef(TUPLE if aux is None else kind_of_type(aux), aux, children)
    return PyTreeDef(kind_of_type(cls), aux, children)


def same_aux(a: Any, b: Any) -> bool:
    """Whether aux data are equal; raises if they cannot be compared."""
    if a is b:
        return True
    if isinstance(a, np.ndarray):
        with suppress(TypeError):
            return Held(a) == Held(b)
    try:
        if a == b:
            return True
    except Exception as error:
        pass_on(error)
        with suppress(TypeError):
            return Held(a) == Held(b)  # arrays
        raise PytreeError(
            f"the aux data of a pytree node must be comparable with ==; comparing {a!r} and {b!r} failed:"
            f" {error}. Make arrays children of the node"
        ) from error
    # Before NumPy 2.2, containers with empty arrays are not equal.
    with suppress(TypeError):
        return type(a) in (tuple, *CONTAINERS) and Held(a) == Held(b)
    return False


def same_types(a: Any, b: Any) -> bool:
    """Whether equal data also make the same program: 1, 1.0 and True are equal, as are 0.0 and -0.0, but do not."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return all(map(same_types, a, b))
    if type(a) in CONTAINERS:
        with suppress(TypeError):
            return Held(a) == Held(b)
    return not isinstance(a, float | complex) or repr(a) == repr(b)


LEAF = PyTreeDef(None, None, ())
Collect = Callable[[PyTreeDef, Any, list[Any]], bool]


def _collect_subtrees(treedef: PyTreeDef, tree: PyTree, out: list[Any]) -> bool:
    if treedef._kind is None:
        out.append(tree)
        return True
    children = matching_children(treedef, tree)
    if children is None:
        return False
    if treedef._flat:
        out.extend(children)
        return True
    return all(_collect_subtrees(child, subtree, out) for child, subtree in zip(treedef._children, children))


def matching_children(treedef: PyTreeDef, node: PyTree) -> Sequence[Any] | None:
    """The children of `node` if it is a node like the root of `treedef`."""
    kind = kind_of(node)
    if kind is None or kind is not treedef._kind:
        return None
    try:
        children, aux = kind.flatten(node)
    except UnsortableKeysError:
        return None
    children = children if isinstance(children, (tuple, list)) else list(children)
    if len(children) != len(treedef._children) or not same_aux(treedef.aux, aux):
        return None
    return children


def raise_mismatch(treedef: PyTreeDef, tree: PyTree, name: str, collect: Collect) -> NoReturn:
    """Raise the error that shows where `tree` first differs from `treedef`; `collect` found that it does."""
    path, expected, actual = _departure(treedef, tree, (), collect)
    raise PytreeError(
        f"{name} does not match at {keystr(path) if path else 'the root'}: expected {expected}, got {actual}\n"
        f"  expected structure: {treedef}\n"
        f"  actual structure:   {_structure_of(tree, ())}"
    )


def _departure(treedef: PyTreeDef, node: PyTree, path: KeyPath, collect: Collect) -> tuple[KeyPath, str, str]:
    """Where and how `node` first differs from `treedef`; the caller knows that it does."""
    kind = kind_of(node)
    children = matching_children(treedef, node)
    if kind is not None and children is not None:
        keys = kind.keys(node, treedef.aux, len(children))
        for key, child, subtree in zip(keys, treedef._children, children):
            if not collect(child, subtree, []):
                return _departure(child, subtree, (*path, key), collect)
    actual = f"a leaf of type {type(node).__name__}" if kind is None else describe(_structure_of(node, path))
    return path, describe(treedef), actual


def describe(treedef: PyTreeDef) -> str:
    """The root of a structure in words."""
    return "a leaf" if treedef._kind is None else in_words(treedef._kind, treedef.aux, len(treedef._children))


def _structure_of(tree: PyTree, path: KeyPath) -> PyTreeDef:
    """The structure of the subtree at `path`, for messages."""
    kind = kind_of(tree)
    if kind is None:
        return LEAF
    pairs, aux = keyed_children(kind, tree, path)
    return PyTreeDef(kind, aux, tuple([_structure_of(child, (*path, key)) for key, child in pairs]))


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
    while len(a._children) == len(b._children) > 0 and a._kind is b._kind and same_aux(a.aux, b.aux):
        node = a.unflatten([0] * a.num_leaves)
        keys = a._kind.keys(node, a.aux, len(a._children))  # type: ignore[union-attr]
        parted = [(k, x, y) for k, x, y in zip(keys, a._children, b._children) if x != y]
        if not parted:
            break
        key, a, b = parted[0]
        path = (*path, key)
    return path, describe(a), describe(b)
