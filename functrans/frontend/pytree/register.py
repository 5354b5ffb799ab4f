"""Register classes as node types of pytrees: by functions, by methods, by the fields of a dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from ...core.values import PyTree
from ...errors import ArgumentError, PytreeError
from ..checked import checked
from .nodes import GetAttrKey, KeyEntry, register_kind

_Class = TypeVar("_Class", bound=type)


@checked
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
        The exact type; subclasses must be registered separately.
    flatten_func : callable
        From an object to ``(children, aux_data)``; `aux_data` must be comparable, and hashable under `jit`, which also
        takes lists, dicts, sets and arrays of hashable values, and compares their contents.
    unflatten_func : callable
        From ``(aux_data, children)`` to an object. The children may be any objects, including tracers: do not check or
        convert them.
    flatten_with_keys_func : callable, optional
        From an object to ``(((key, child), ...), aux_data)``, for key paths.

    Raises
    ------
    PytreeError
        If `nodetype` is not a class, or is already registered.

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

    def keys(node: Any, aux: PyTree, n: int) -> list[KeyEntry]:
        return [key for key, _ in flatten_with_keys(node)[0]]

    return keys


@checked
def register_pytree_node_class(cls: _Class) -> _Class:
    """Register a class by its methods ``tree_flatten(self)`` and ``tree_unflatten(cls, aux_data, children)``.

    Use as a decorator; `tree_unflatten` is a class method.

    Raises
    ------
    ArgumentError
        If the class has no such methods.

    Examples
    --------
    >>> import functrans as ft
    >>> @ft.tree_util.register_pytree_node_class
    ... class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    ...     def tree_flatten(self):
    ...         return (self.low, self.high), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux_data, children):
    ...         return cls(*children)
    >>> ft.tree.map(lambda x: x + 1, Interval(1, 2)).high
    3
    """
    _check_methods("register_pytree_node_class", cls, "tree_flatten")
    register_kind(cls, lambda node: node.tree_flatten(), _by_method(cls))
    return cls


def _check_methods(name: str, cls: type, flatten: str) -> None:
    for method in (flatten, "tree_unflatten"):
        if not hasattr(cls, method):
            raise ArgumentError(
                f"{name}: {cls.__name__} has no method {method}. Write {flatten}(self), and the class method "
                "tree_unflatten(cls, aux_data, children)"
            )


def _by_method(cls: type) -> Callable[[Any, Any], Any]:
    return lambda aux, children: cls.tree_unflatten(aux, children)  # type: ignore[attr-defined]


@checked
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
        From an object to ``(children, aux_data)``, if that is faster.

    Raises
    ------
    PytreeError
        If `nodetype` is not a class, or is already registered.

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


@checked
def register_pytree_with_keys_class(cls: _Class) -> _Class:
    """Register a class by its methods ``tree_flatten_with_keys`` and ``tree_unflatten``.

    Use as a decorator. If there is a method ``tree_flatten``, it is used when keys are not needed.

    Raises
    ------
    ArgumentError
        If the class has no such methods.

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
    _check_methods("register_pytree_with_keys_class", cls, "tree_flatten_with_keys")
    flatten = (lambda node: node.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, lambda node: node.tree_flatten_with_keys(), _by_method(cls), flatten)
    return cls


@checked
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
        A dataclass. Objects are rebuilt by calling its constructor with all fields as keywords.
    data_fields : sequence of str, optional
        Fields that are children. If both are omitted, all constructor fields whose metadata do not have
        ``static=True``.
    meta_fields : sequence of str, optional
        Fields that belong to the structure; they must be hashable and comparable.
    drop_fields : sequence of str
        All other fields; they need a default.

    Returns
    -------
    type
        `nodetype`, so that this function serves as a decorator.

    Raises
    ------
    PytreeError
        If the named fields are not those of the constructor, or the class is not a dataclass.

    Examples
    --------
    >>> from dataclasses import dataclass, field
    >>> import functrans as ft
    >>> @ft.tree_util.register_dataclass
    ... @dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = field(metadata=dict(static=True))
    >>> ft.tree.structure(Layer(1.0, "first"))
    PyTreeDef(CustomNode(Layer[('first',)], [*]))
    """
    if not dataclasses.is_dataclass(nodetype):
        raise PytreeError(f"register_dataclass: {nodetype!r} is not a dataclass; decorate it with @dataclass")
    fields = {field.name: field for field in dataclasses.fields(nodetype) if field.init}
    if data_fields is None and meta_fields is None:
        remaining = [name for name in fields if name not in drop_fields]
        data_fields = [name for name in remaining if not fields[name].metadata.get("static", False)]
        meta_fields = [name for name in remaining if fields[name].metadata.get("static", False)]
    elif data_fields is None or meta_fields is None:
        raise PytreeError("register_dataclass: pass both data_fields and meta_fields, or omit both")
    listed = [*data_fields, *meta_fields, *drop_fields]
    if sorted(listed) != sorted(fields):
        raise PytreeError(
            f"register_dataclass: the constructor of {nodetype.__name__} has the fields {sorted(fields)},"
            f" but data_fields, meta_fields and drop_fields name {sorted(listed)}"
        )
    _register_fields(nodetype, tuple(data_fields), tuple(meta_fields))
    return nodetype


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple]:
    """A function that reads these attributes of an object, into a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda node: (getattr(node, names[0]),)) if names else lambda node: ()


def _register_fields(cls: type, data: tuple[str, ...], meta: tuple[str, ...]) -> None:
    keys = tuple(GetAttrKey(name) for name in data)

    children_of, aux_of = _getter(data), _getter(meta)

    def flatten(node: Any) -> tuple[tuple, tuple]:
        return children_of(node), aux_of(node)

    names = (*meta, *data)

    def unflatten(aux: tuple, children: Iterable[Any]) -> Any:
        return cls(**dict(zip(names, (*aux, *children))))

    register_kind(cls, flatten, unflatten, lambda node, aux, n: keys, (data, meta))


@checked
def register_static(cls: _Class) -> _Class:
    """Treat objects of a class as part of the structure: nodes without children.

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
