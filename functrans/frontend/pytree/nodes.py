"""The node types of pytrees: how to flatten, rebuild and print each, and how to name its children.

The table is keyed by the exact type: a subclass of dict or list is a leaf until it is registered. The one exception is
a namedtuple, recognised by its `_fields`.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.values import PyTree, Value
from ...errors import PytreeError
from ..checked import checked


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """The key-path entry of a child of a tuple or list: ``[idx]``."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True, slots=True)
class DictKey:
    """The key-path entry of a dictionary's value: ``['key']``."""

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """The key-path entry of an object's attribute: ``.name``."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True, slots=True)
class FlattenedIndexKey:
    """The key-path entry of a child of a registered node that does not name its children."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


@checked
def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """The text of a key path.

    Parameters
    ----------
    keys : tuple of key entries
    simple : bool
        Whether to show only the key, index or name of each entry, without brackets and dots.
    separator : str
        The text between entries.

    Examples
    --------
    >>> path = (DictKey("layers"), SequenceKey(0), GetAttrKey("bias"))
    >>> keystr(path)
    "['layers'][0].bias"
    >>> keystr(path, simple=True, separator="/")
    'layers/0/bias'
    """
    return separator.join(_simple(key) if simple else str(key) for key in keys)


def _simple(key: KeyEntry) -> str:
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)


class UnsortableKeysError(Exception):
    """A dictionary whose keys cannot be sorted; becomes a `PytreeError` once the key path is known."""


Fields = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class NodeKind:
    """How to flatten and rebuild nodes of one type.

    Parameters
    ----------
    type : type
    flatten : callable
        From a node to ``(children, aux)``; `aux` is hashable and comparable.
    unflatten : callable
        From ``(aux, children)`` to a node.
    keys : callable
        From ``(node, aux, n)`` to the `n` key entries of the children.
    show : callable
        From ``(aux, texts of the children)`` to the text in a printed tree structure.
    fields : pair of tuples of str, optional
        The attributes that are the children, and those that are the aux data, if the type is called with all of them
        as keywords.
    """

    type: type
    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Any], Any]
    keys: Callable[[Any, Any, int], Iterable[KeyEntry]]
    show: Callable[[Any, list[str]], str]
    fields: Fields | None = None


def _flat_keys(node: Any, aux: PyTree, n: int) -> Iterable[KeyEntry]:
    return map(FlattenedIndexKey, range(n))


def _sequence_keys(node: PyTree, aux: PyTree, n: int) -> Iterable[KeyEntry]:
    return map(SequenceKey, range(n))


def _show_tuple(aux: PyTree, texts: list[str]) -> str:
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _show_dict(aux: PyTree, texts: list[str]) -> str:
    return "{" + ", ".join(f"{key!r}: {text}" for key, text in zip(aux, texts)) + "}"


def _custom_shower(name: str, label: Callable[[Any], Any] = repr) -> Callable[[Any, list[str]], str]:
    def show(aux: PyTree, texts: list[str]) -> str:
        return f"CustomNode({name}[{label(aux)}], [{', '.join(texts)}])"

    return show


def _sorted_keys(tree: dict) -> tuple:
    try:
        return tuple(sorted(tree))
    except TypeError:
        raise UnsortableKeysError from None


def _flatten_dict(tree: dict) -> tuple[Iterable[Any], Any]:
    keys = _sorted_keys(tree)
    return [tree[key] for key in keys], keys


def _flatten_defaultdict(tree: defaultdict) -> tuple[Iterable[Any], Any]:
    keys = _sorted_keys(tree)
    return [tree[key] for key in keys], (tree.default_factory, keys)


TUPLE = NodeKind(
    tuple, lambda node: (node, None), lambda aux, children: tuple(children), _sequence_keys, _show_tuple
)
LIST = NodeKind(
    list,
    lambda node: (node, None),
    lambda aux, children: list(children),
    _sequence_keys,
    lambda aux, texts: f"[{', '.join(texts)}]",
)
DICT = NodeKind(
    dict,
    _flatten_dict,
    lambda keys, children: dict(zip(keys, children)),
    lambda node, keys, n: map(DictKey, keys),
    _show_dict,
)
NONE = NodeKind(
    type(None), lambda node: ((), None), lambda aux, children: None, _flat_keys, lambda aux, texts: "None"
)
_ORDERED_DICT = NodeKind(
    OrderedDict,
    lambda node: (node.values(), tuple(node)),
    lambda keys, children: OrderedDict(zip(keys, children)),
    lambda node, keys, n: map(DictKey, keys),
    _custom_shower("OrderedDict"),
)
_DEFAULT_DICT = NodeKind(
    defaultdict,
    _flatten_defaultdict,
    lambda aux, children: defaultdict(aux[0], zip(aux[1], children)),
    lambda node, aux, n: map(DictKey, aux[1]),
    _custom_shower("defaultdict"),
)
# All namedtuples share one kind; their class is the aux data.
_NAMEDTUPLE = NodeKind(
    tuple,
    lambda node: (node, type(node)),
    lambda cls, children: cls(*children),
    lambda node, cls, n: map(GetAttrKey, cls._fields),
    _custom_shower("namedtuple", lambda cls: cls.__name__),
)

#: The class attribute through which a registration reaches other processes together with the class.
_REGISTRATION = "__functrans_pytree__"

_KINDS: dict[type, NodeKind] = {
    kind.type: kind for kind in (TUPLE, LIST, DICT, NONE, _ORDERED_DICT, _DEFAULT_DICT)
}

# Types known to be leaves, collected on the way, so that one set operation in C recognises a flat container. Bounded,
# because the set keeps classes alive.
LEAF_TYPES: set[type] = {bool, int, float, complex, str}
_MOST_LEAF_TYPES = 256
_NEVER_NODES = frozenset((*LEAF_TYPES, bytes, np.ndarray))


def kind_of(node: PyTree) -> NodeKind | None:
    """The kind of a node, or None for a leaf."""
    cls = type(node)
    kind = _KINDS.get(cls)
    if kind is not None:
        return kind
    if isinstance(node, tuple) and hasattr(cls, "_fields"):
        return _NAMEDTUPLE
    if cls in LEAF_TYPES:
        return None
    if _REGISTRATION in cls.__dict__:
        return _arrived(cls)
    if len(LEAF_TYPES) < _MOST_LEAF_TYPES:
        LEAF_TYPES.add(cls)
        if cls in _KINDS:  # another thread registered it meanwhile
            LEAF_TYPES.discard(cls)
            return _KINDS[cls]
    return None


def kind_of_type(cls: type) -> NodeKind:
    """The kind of a registered type or of a namedtuple class (used to unpickle a `PyTreeDef`)."""
    kind = _KINDS.get(cls)
    if kind is None and _REGISTRATION in cls.__dict__:
        return _arrived(cls)
    return kind or _NAMEDTUPLE


def is_node_type(cls: type) -> bool:
    """Whether objects of a class are nodes."""
    return (
        cls in _KINDS or _REGISTRATION in cls.__dict__ or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
    )


def is_namedtuple_kind(kind: NodeKind) -> bool:
    """Whether `kind` is the one shared by all namedtuple classes."""
    return kind is _NAMEDTUPLE


def keyed_children(kind: NodeKind, node: PyTree, path: KeyPath) -> tuple[list[tuple[KeyEntry, Any]], Any]:
    """The children of a node with their key-path entries, and the aux data of the node at `path`.

    Raises
    ------
    PytreeError
        If the keys of a dictionary cannot be sorted; the message names its key path.
    """
    try:
        children, aux = kind.flatten(node)
    except UnsortableKeysError:
        types = ", ".join(sorted({type(key).__name__ for key in node}))
        raise PytreeError(
            f"the keys of the dictionary at tree{keystr(path)} cannot be sorted (types met: {types}):"
            f" {list(node)!r}. Use keys of one type, or an OrderedDict, which keeps its own order"
        ) from None
    children = list(children)
    return list(zip(kind.keys(node, aux, len(children)), children)), aux


def in_words(kind: NodeKind, aux: PyTree, n: int) -> str:
    """A node in words: type, number of children, keys."""
    if kind is NONE:
        return "None"
    if kind is TUPLE or kind is LIST:
        return f"a {kind.type.__name__} of length {n}"
    if kind is DICT:
        return f"a dict with keys {list(aux)!r}"
    if is_namedtuple_kind(kind):
        return f"a namedtuple {aux.__name__} of length {n}"
    return f"a {kind.type.__name__} of {n} children with data {aux!r}"


def register_kind(
    cls: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten: Callable[[Any, Any], Any],
    keys: Callable[[Any, Any, int], Iterable[KeyEntry]] | None = None,
    fields: Fields | None = None,
) -> None:
    """Make `cls` a node type of pytrees; see `NodeKind`.

    Raises
    ------
    PytreeError
        If `cls` is not a class, is already registered, or is the type of numbers, text or arrays.
    """
    if not isinstance(cls, type):
        raise PytreeError(f"a pytree node type must be a class, got {cls!r}")
    if cls in _NEVER_NODES:
        raise PytreeError(
            f"cls={cls.__name__} is a type of leaves: register a class of your own, or a subclass"
        )
    if cls in _KINDS:
        raise PytreeError(f"cls={cls.__name__} is a pytree node type already: register each class once")
    _add_kind(cls, flatten, unflatten, keys, fields)
    with contextlib.suppress(TypeError, AttributeError):  # a class written in C exists in every process
        setattr(cls, _REGISTRATION, (flatten, unflatten, keys, fields))


def _arrived(cls: type) -> NodeKind:
    """The kind of a class that another process registered, and that cloudpickle sent here."""
    _add_kind(cls, *cls.__dict__[_REGISTRATION])
    return _KINDS[cls]


def _add_kind(cls: type, flatten: Any, unflatten: Any, keys: Any, fields: Fields | None) -> None:
    def unflatten_from_tuple(aux: PyTree, children: Iterable[Value]) -> Any:
        return unflatten(aux, tuple(children))

    show = _custom_shower(cls.__name__)
    _KINDS[cls] = NodeKind(cls, flatten, unflatten_from_tuple, keys or _flat_keys, show, fields)
    LEAF_TYPES.discard(cls)
