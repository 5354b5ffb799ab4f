"""How `fully_shard` divides parameters: groups by key paths, rows by ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays.array import wrap
from ..core.values import PyTree
from ..errors import ArgumentError, ShardingError
from ..frontend.pytree import PyTreeDef, tree_flatten, tree_flatten_with_path, tree_unflatten
from ..frontend.pytree.nodes import keystr
from ..runtime.records import dataclass
from .gathering import CommContext, Group, Ways
from .shards import rows, rows_each
from .states import FSDPState

ROOT = "root"
Prefix = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class ShardLayout:
    """What is known of the parameters once `FullySharded.init` has seen them.

    Attributes
    ----------
    treedef : PyTreeDef
    paths : tuple of str
        The key path of each leaf.
    shapes : tuple of tuple of int
        The shape of each leaf, as a whole.
    dtypes : tuple of np.dtype
    groups : tuple of Group
        The root first. It may have no leaves.
    """

    treedef: PyTreeDef
    paths: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]
    groups: tuple[Group, ...]

    def shard_shape(self, i: int, ranks: int) -> tuple[int, ...]:
        """The shape of a leaf on each rank."""
        shape = self.shapes[i]
        return (rows_each(shape[0], ranks), *shape[1:]) if shape else ()


def checked_prefixes(groups: Any) -> tuple[Prefix, ...]:
    """`groups` as the user wrote it, as tuples."""
    if groups is None:
        return ()
    if not isinstance(groups, list | tuple):
        raise ArgumentError(
            "fully_shard: groups must be a list of key-path prefixes such as [('blocks', 0), ('blocks', 1)], got "
            f"{groups!r}"
        )
    prefixes = tuple([(g,) if isinstance(g, str | int) else tuple(g) for g in groups])
    for i, prefix in enumerate(prefixes):
        if not prefix:
            raise ShardingError(
                "fully_shard: a group is an empty prefix. Leave it out: what is in no group is the root's"
            )
        for other in prefixes[:i]:
            short = min(len(prefix), len(other))
            if prefix[:short] == other[:short]:
                raise ShardingError(
                    f"fully_shard: the groups {other!r} and {prefix!r} have the same parameters. Put each into one"
                )
    return prefixes


def make_layout(
    params: Any,
    shapes: Sequence[tuple[int, ...]] | None,
    prefixes: Sequence[Prefix],
    ways: Callable[[np.dtype], Ways],
    context: CommContext,
) -> tuple[ShardLayout, list[Any]]:
    """The layout of a tree of whole arrays, and its leaves. With `shapes`, it is one of shards of such arrays."""
    pairs, treedef = tree_flatten_with_path(params)
    keys = [tuple([_entry(key) for key in path]) for path, _ in pairs]
    names = [keystr(path) for path, _ in pairs]
    leaves = [np.asarray(x) for _, x in pairs]
    known = tuple([x.shape for x in leaves]) if shapes is None else tuple(shapes)
    of_leaf = [_group_of(k, prefixes) for k in keys]
    members = [[i for i, g in enumerate(of_leaf) if g == number] for number in range(len(prefixes) + 1)]
    for prefix, mine in zip(prefixes, members[1:]):
        if not mine:
            begin = list(dict.fromkeys([keystr(path[: len(prefix)]) for path, _ in pairs]))
            listed = ", ".join(begin[:20]) + (", ..." if len(begin) > 20 else "")
            raise ShardingError(
                f"fully_shard: no parameter is in the group {prefix!r}. Their key paths begin with {listed}"
            )
    _check_tied(pairs, of_leaf, names)
    groups, states = [], []
    for number, mine in enumerate(members):
        title = ROOT if number == 0 else keystr(pairs[mine[0]][0][: len(prefixes[number - 1])])
        _check_dtypes(title, mine, leaves, names)
        lengths = tuple([known[i][0] if known[i] else None for i in mine])
        dtype = leaves[mine[0]].dtype if mine else np.dtype(float)
        groups.append(Group(number, tuple(mine), lengths, ways(dtype), context))
        states.append(FSDPState(title, number == 0, [names[i] for i in mine], context))
    context.states[:] = states
    layout = ShardLayout(treedef, tuple(names), known, tuple([x.dtype for x in leaves]), tuple(groups))
    return layout, leaves


def described(tree: PyTree) -> Any:
    """The structure of a tree of dicts, lists and tuples, for JSON: an int for each leaf. None for other trees."""
    leaves, treedef = tree_flatten(tree)
    numbered = tree_unflatten(treedef, list(range(len(leaves))))

    def describe(x: Any) -> Any:
        if type(x) is int or x is None:
            return x
        if type(x) is dict and all(type(key) is str for key in x):
            return {"dict": {key: describe(value) for key, value in x.items()}}
        if type(x) in (list, tuple):
            return {type(x).__name__: [describe(value) for value in x]}
        raise TypeError

    try:
        return describe(numbered)
    except TypeError:
        return None


def rebuilt(description: Any, leaves: Sequence[Any]) -> Any:
    """The tree of which `described` gave the description, with these leaves."""
    if description is None:
        return None
    if type(description) is int:
        return leaves[description]
    ((kind, parts),) = description.items()
    if kind == "dict":
        return {key: rebuilt(part, leaves) for key, part in parts.items()}
    return (list if kind == "list" else tuple)([rebuilt(part, leaves) for part in parts])


def _entry(key: Any) -> Any:
    """What a user writes for an entry of a key path."""
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return getattr(key, attribute)
    return key


def _group_of(keys: tuple[Any, ...], prefixes: Sequence[Prefix]) -> int:
    for number, prefix in enumerate(prefixes, start=1):
        if keys[: len(prefix)] == prefix:
            return number
    return 0


def _check_tied(pairs: Sequence[tuple[Any, Any]], of_leaf: Sequence[int], names: Sequence[str]) -> None:
    seen: dict[int, int] = {}
    for i, (_, x) in enumerate(pairs):
        first = seen.setdefault(id(x), i)
        if isinstance(x, np.ndarray) and x.ndim and of_leaf[first] != of_leaf[i]:
            raise ShardingError(
                f"fully_shard: {names[first]} and {names[i]} are one array in two groups. Put them into one group, or "
                "pass copies"
            )


def _check_dtypes(
    title: str, mine: Sequence[int], leaves: Sequence[np.ndarray], names: Sequence[str]
) -> None:
    for i in mine[1:]:
        if leaves[i].dtype != leaves[mine[0]].dtype:
            raise ShardingError(
                f"fully_shard: the group {title} has parameters of different dtypes: {names[mine[0]]} is "
                f"{leaves[mine[0]].dtype}, {names[i]} is {leaves[i].dtype}. Cast them, or make a group for each"
            )


def rows_of_rank(x: np.ndarray, rank: int, ranks: int) -> Any:
    """This rank's rows of a whole array, padded with zeros; a number as it is."""
    if not x.ndim:
        return wrap(x.copy())
    each = rows_each(len(x), ranks)
    out = np.zeros((each, *x.shape[1:]), x.dtype)
    mine = rows(len(x), ranks, rank)
    own = x[mine.start : mine.stop]
    out[: len(own)] = own
    return wrap(out)


def sharded_tree(layout: ShardLayout, leaves: Sequence[np.ndarray], rank: int, ranks: int) -> Any:
    """The parameters with this rank's rows."""
    return tree_unflatten(layout.treedef, [rows_of_rank(x, rank, ranks) for x in leaves])
