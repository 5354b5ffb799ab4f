"""Tuples of arguments or results partitioned: which of their leaves are arrays, and which are not.

Arrays are operands of a rule; everything else (numbers, strings, None, any object) is *static*: it is handed on as it
is, and has no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays.array import Array, read_only_copy, unwrap
from ..core import PytreeError, Tracer
from ..core.values import ArrayLike, PyTree, Value
from ..passes.masks import chosen
from ..runtime.records import NamedTuple
from .arguments import value_of
from .pytree import LEAF, PyTreeDef, leaf_path, tree_flatten, tree_structure, tree_unflatten
from .pytree.nodes import KeyPath, keystr

_MOST = 4096


class _ArrayTypes(dict[type, bool | None]):
    """Which types are arrays of numbers, filled in as types occur; None: it depends on the dtype."""

    def __missing__(self, kind: type) -> bool | None:
        if issubclass(kind, Array | Tracer):
            self[kind] = True
        elif issubclass(kind, np.ndarray | np.generic):
            self[kind] = None
        else:
            return False
        return self[kind]


_array_types = _ArrayTypes()


def is_array(x: Any) -> bool:
    """Whether `x` is an array; one of strings, dates or objects is an object like any other."""
    known = _array_types[type(x)]
    return x.dtype.kind not in "OSUMm" if known is None else known


def own_value(x: Value, where: Callable[[], str]) -> Value | None:
    """What users' rules return or save as a value that flows through interpreters; `where` names it in messages.

    Arrays that users may still write to are copied.
    """
    if type(x) is Array:
        return unwrap(x)
    value = value_of(x, where)
    return read_only_copy(value) if type(value) is np.ndarray else value


class Part(NamedTuple):
    """One element of the tuple.

    Attributes
    ----------
    tree : PyTreeDef
    leaves : slice
        Which leaves of the whole are its.
    arrays : tuple of (int or None)
        For each of its leaves, which of the arrays it is; None where it is static.
    first, last : int
        Its arrays are those from `first` to `last` (excluded).
    """

    tree: PyTreeDef
    leaves: slice
    arrays: tuple[int | None, ...]
    first: int
    last: int

    @property
    def is_array(self) -> bool:
        """Whether it is an array, not a tree that holds some."""
        return self.tree is LEAF and self.last > self.first

    @property
    def is_static(self) -> bool:
        """Whether it holds no array."""
        return self.first == self.last

    def place(self, leaf: int) -> str:
        """The key path of a leaf, for messages."""
        return keystr(leaf_path(self.tree, leaf))


class Static(NamedTuple):
    """What of one particular tuple is not arrays.

    Attributes
    ----------
    leaves : list
        All leaves, None for arrays.
    parts : list
        All elements that hold no array, unchanged; None for others.
    """

    leaves: list[Any]
    parts: list[Any]


#: Python's numbers: to a `Function` they are what they are, not arrays.
NUMBERS = frozenset((bool, int, float, complex))
#: Types of values that hold nothing.
SIMPLE = NUMBERS | {str}
NO_STATIC = Static([], [])


class Layout:
    """Where the arrays of a tuple stand. Shared by all tuples of one structure; compared by identity.

    Attributes
    ----------
    count : int
        The number of arrays.
    parts : tuple of Part
    plain : bool
        Whether each element is an array.
    arguments : Arguments
        A tuple of arrays alone, passed by position.
    """

    __slots__ = ("arguments", "count", "parts", "plain")

    def __init__(self, tree: PyTreeDef, mask: tuple[bool, ...]):
        parts = []
        leaf = array = 0
        for child in tree.children():
            first = array
            numbers: list[int | None] = []
            for m in mask[leaf : leaf + child.num_leaves]:
                numbers.append(array if m else None)
                array += m
            leaves = slice(leaf, leaf + child.num_leaves)
            parts.append(Part(child, leaves, tuple(numbers), first, array))
            leaf += child.num_leaves
        self.count = array
        self.parts = tuple(parts)
        self.plain = all(p.is_array for p in parts)
        self.arguments = Arguments(self, NO_STATIC, ())

    def filled(self, arrays: Sequence[Any], static: Static | None = None) -> tuple[Any, ...]:
        """The tuple with these arrays; without `static`, with None for everything else."""
        if self.plain:
            return tuple(arrays)
        elements = []
        for i, p in enumerate(self.parts):
            if p.is_array:
                elements.append(arrays[p.first])
            elif p.is_static:
                elements.append(None if static is None else static.parts[i])
            else:
                others = (None,) * len(p.arrays) if static is None else static.leaves[p.leaves]
                leaves = [x if n is None else arrays[n] for n, x in zip(p.arrays, others)]
                elements.append(tree_unflatten(p.tree, leaves))
        return tuple(elements)

    def any_of(self, mask: Sequence[bool]) -> tuple[bool, ...]:
        """For each element, whether one of its arrays is marked."""
        return tuple([any(mask[p.first : p.last]) for p in self.parts])


class Arguments(NamedTuple):
    """The arguments of one call, without their arrays.

    Attributes
    ----------
    layout : Layout
    static : Static
    keywords : tuple of str
        The last arguments go by these keywords.
    """

    layout: Layout
    static: Static
    keywords: tuple[str, ...]

    def filled(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """All arguments, with these arrays."""
        return self.layout.filled(arrays, self.static)

    def call(self, fun: Callable[..., PyTree], args: Sequence[Any], *leading: Any) -> Any:
        """``fun(*leading, *args)``, the last arguments by keyword."""
        if not self.keywords:
            return fun(*leading, *args)
        n = len(args) - len(self.keywords)
        return fun(*leading, *args[:n], **dict(zip(self.keywords, args[n:])))


_layouts: dict[Any, Layout] = {}
_plain_layouts: dict[int, Layout] = {}


def taken_apart(elements: tuple[Any, ...]) -> tuple[Layout, list[Any], Static]:
    """The layout of a tuple, its arrays, and what is not arrays."""
    for x in elements:
        if _array_types[type(x)] is not True and not is_array(x):
            break
    else:  # the short way
        plain = _plain_layouts.get(len(elements))
        return plain or _plain_layout(len(elements)), list(elements), NO_STATIC
    try:
        leaves, tree = tree_flatten(elements)
    except PytreeError:
        leaves, tree = tree_flatten(elements, is_leaf=_is_opaque)
    mask = tuple(map(is_array, leaves))
    layout = _layouts.get((tree, mask))
    if layout is None:
        if len(_layouts) >= _MOST:
            _layouts.clear()
        layout = _layouts.setdefault((tree, mask), Layout(tree, mask))
    static = Static(
        [None if m else x for x, m in zip(leaves, mask)],
        [x if p.is_static else None for x, p in zip(elements, layout.parts)],
    )
    return layout, chosen(leaves, mask), static


def _is_opaque(x: Any) -> bool:
    """Whether `x` is a dictionary whose keys have no order, without arrays: an object like any other."""
    if not isinstance(x, dict) or _holds_arrays(x):
        return False
    try:
        sorted(x)
    except TypeError:
        return True
    return False


def _holds_arrays(x: Any) -> bool:
    if isinstance(x, dict):
        x = tuple(x.values())
    return any(map(_holds_arrays, x)) if isinstance(x, tuple | list) else is_array(x)


def _plain_layout(count: int) -> Layout:
    layout = Layout(tree_structure((0,) * count), (True,) * count)
    return _plain_layouts.setdefault(count, layout)


class Outputs:
    """The structure of what a function returned, without the arrays.

    Attributes
    ----------
    layout : Layout
        Of the tuple of outputs.
    static : Static
    many : bool
        Whether a tuple was returned; a tuple of one is one.
    """

    __slots__ = ("_kind", "layout", "many", "static")

    def __init__(self, layout: Layout, static: Static, kind: type | None):
        self.layout = layout
        self.static = static
        self.many = kind is not None
        self._kind = kind

    @staticmethod
    def of(returned: ArrayLike) -> tuple[Outputs, list[Any]]:
        """The structure of what a function returned, and the arrays in it."""
        kind: type | None = None
        if isinstance(returned, tuple):
            kind = type(returned) if hasattr(returned, "_fields") else tuple
        layout, arrays, static = taken_apart((returned,) if kind is None else tuple(returned))
        return Outputs(layout, static, kind), arrays

    def filled(self, arrays: list[Value]) -> Any:
        """What the function returned, with these arrays."""
        parts = self.layout.filled(arrays, self.static)
        if self._kind is None:
            return parts[0]
        return parts if self._kind is tuple else self._kind(*parts)

    def __str__(self) -> str:
        """The structure, with ``*`` for arrays."""
        parts = [
            "*" if p.is_array else str(p.tree) if p.last > p.first else repr(x)
            for p, x in zip(self.layout.parts, self.static.parts or [None] * len(self.layout.parts))
        ]
        if not self.many:
            return parts[0]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"

    def place_of(self, path: KeyPath) -> str:
        """How messages call a leaf: ``output 1``, ``the output['a']`` of a function that has one."""
        return f"{f'output {path[0].idx}' if self.many else 'the output'}{keystr(path[1:])}"


#: The structure of one array.
SINGLE = Outputs(_plain_layout(1), NO_STATIC, None)
