"""Python functions generated for one tree structure, which read the leaves ten times as fast as `tree_flatten`.

They support tuples, lists, None, dictionaries with string keys and namedtuples; callers use `tree_flatten` for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .definition import PyTreeDef
from .nodes import DICT, LIST, NONE, TUPLE, is_namedtuple_kind


def leaf_reader(treedef: PyTreeDef) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, ...]] | None:
    """``read(args, kwargs)``: the leaves of ``(args, kwargs)``, or an empty tuple if its containers differ.

    Parameters
    ----------
    treedef : PyTreeDef
        The structure of a call, ``(args, kwargs)``, with at least one leaf.

    Returns
    -------
    callable or None
        None if the structure has other nodes. The values at the positions of leaves are not inspected.

    Examples
    --------
    >>> from functrans.tree import structure
    >>> read = leaf_reader(structure((({"a": 1, "b": (2, 3)},), {})))
    >>> read(({"b": (5, 6), "a": 4},), {}), read(({"b": 5},), {})
    ((4, 5, 6), ())
    """
    if not _is_plain(treedef):
        return None
    names: dict[str, Any] = {}
    tests: list[str] = []
    args, kwargs = treedef.children()
    leaves = [*_reading(args, "args", tests, names), *_reading(kwargs, "kwargs", tests, names)]
    lines = [*tests, f"return ({''.join(f'{x}, ' for x in leaves)})"]
    bound = "".join(f", {n}={n}" for n in names)
    body = "\n        ".join(lines)
    source = (
        f"def read(args, kwargs{bound}):\n    try:\n        {body}\n    except KeyError:\n        return ()\n"
    )
    exec(compile(source, "<functrans: leaves of arguments>", "exec"), names)
    return names["read"]


def tree_expression(treedef: PyTreeDef, leaves: Iterator[str], names: dict[str, Any]) -> str | None:
    """Python source that builds the tree with these expressions as leaves; None if it has other nodes.

    `names` receives the names that the source uses, with their values.
    """
    return _expression(treedef, leaves, names) if _is_plain(treedef) else None


def _is_plain(treedef: PyTreeDef) -> bool:
    kind = treedef._kind
    if kind is DICT and not all(type(key) is str for key in treedef._aux):
        return False
    known = kind in (None, TUPLE, LIST, NONE, DICT) or (kind is not None and is_namedtuple_kind(kind))
    return known and all(map(_is_plain, treedef.children()))


def _constant(names: dict[str, Any], value: Any) -> str:
    """A name for `value` that `names` does not have yet: callers keep other names in it."""
    name = f"node{len(names)}"
    while name in names:
        name += "_"
    names[name] = value
    return name


def _reading(treedef: PyTreeDef, place: str, tests: list[str], names: dict[str, Any]) -> list[str]:
    """The names of the leaves of the node in the variable `place`; `tests` receives the lines that unpack it."""
    kind, children = treedef._kind, treedef.children()
    if kind is None:
        return [place]
    if kind is NONE:
        tests.append(f"if {place} is not None: return ()")
        return []
    cls = _constant(names, treedef._aux if is_namedtuple_kind(kind) else kind.type)
    tests.append(f"if type({place}) is not {cls} or len({place}) != {len(children)}: return ()")
    parts = [f"{place}_{i}" for i in range(len(children))]
    if kind is DICT:
        tests += [f"{part} = {place}[{key!r}]" for part, key in zip(parts, treedef._aux)]
    elif parts:
        tests.append(f"{', '.join(parts)}, = {place}")
    return [leaf for child, part in zip(children, parts) for leaf in _reading(child, part, tests, names)]


def _expression(treedef: PyTreeDef, leaves: Iterator[str], names: dict[str, Any]) -> str:
    kind = treedef._kind
    if kind is None:
        return next(leaves)
    parts = [_expression(child, leaves, names) for child in treedef.children()]
    if kind is NONE:
        return "None"
    if kind is DICT:
        return f"{{{', '.join(f'{key!r}: {part}' for key, part in zip(treedef._aux, parts))}}}"
    if kind is LIST:
        return f"[{', '.join(parts)}]"
    called = "" if kind is TUPLE else _constant(names, treedef._aux)
    inside = ", ".join(parts)
    return f"{called}({inside},)" if kind is TUPLE and parts else f"{called}({inside})"
