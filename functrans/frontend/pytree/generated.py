"""Python functions generated for one tree structure, which read the leaves ten times as fast as `tree_flatten`.

Tuples, lists, None, dictionaries with string keys, namedtuples and registered dataclasses are read by the generated
code itself. Nodes of other types go through the functions with which they were registered. Callers use `tree_flatten`
where aux data cannot be hashed: lists and arrays may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .definition import PyTreeDef, same_aux, same_types
from .held import Held
from .nodes import DICT, LIST, NONE, TUPLE, is_namedtuple_kind

#: Values of these classes are equal where ``==`` says so and their classes are the same.
_PLAIN = (str, int, bool)


def leaf_reader(treedef: PyTreeDef) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, ...]] | None:
    """``read(args, kwargs)``: the leaves of ``(args, kwargs)``, or an empty tuple if its containers differ.

    Parameters
    ----------
    treedef : PyTreeDef
        The structure of a call, ``(args, kwargs)``, with at least one leaf.

    Returns
    -------
    callable or None
        None if the aux data of a node cannot be hashed. The values at the positions of leaves are not inspected.

    Examples
    --------
    >>> from functrans.tree import structure
    >>> read = leaf_reader(structure((({"a": 1, "b": (2, 3)},), {})))
    >>> read(({"b": (5, 6), "a": 4},), {}), read(({"b": 5},), {})
    ((4, 5, 6), ())
    """
    if not _is_hashable(treedef):
        return None
    names: dict[str, Any] = {}
    tests: list[str] = []
    args, kwargs = treedef.children()
    leaves = [*_reading(args, "args", tests, names), *_reading(kwargs, "kwargs", tests, names)]
    lines = [*tests, f"return ({''.join(f'{x}, ' for x in leaves)})"]
    bound = "".join(f", {n}={n}" for n in names)
    body = "\n        ".join(lines)
    # What a registered function raises, the caller meets again when it flattens the arguments.
    source = f"def read(args, kwargs{bound}):\n    try:\n        {body}\n    except Exception:\n        return ()\n"
    exec(compile(source, "<functrans: leaves of arguments>", "exec"), names)
    return names["read"]


def tree_expression(treedef: PyTreeDef, leaves: Iterator[str], names: dict[str, Any]) -> str | None:
    """Python source that builds the tree with these expressions as leaves; None if there is aux data without a hash.

    `names` receives the names that the source uses, with their values.
    """
    return _expression(treedef, leaves, names) if _is_hashable(treedef) else None


def _is_hashable(treedef: PyTreeDef) -> bool:
    try:
        hash(treedef._aux)
    except TypeError:
        return False
    return type(treedef._aux) is not Held and all(map(_is_hashable, treedef.children()))


def _is_written_out(treedef: PyTreeDef) -> bool:
    """Whether the generated code reads and builds the node itself."""
    kind = treedef._kind
    if kind is DICT:
        return all(type(key) is str for key in treedef._aux)
    return kind in (None, TUPLE, LIST, NONE) or (kind is not None and is_namedtuple_kind(kind))


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
    parts = [f"{place}_{i}" for i in range(len(children))]
    if kind.fields is not None:
        data, meta = kind.fields
        tests.append(f"if type({place}) is not {cls}: return ()")
        tests += [f"{part} = {place}.{name}" for part, name in zip(parts, data)]
        for name, aux in zip(meta, treedef._aux):
            tests.append(f"{place}_aux = {place}.{name}")
            tests += [f"if not ({test}): return ()" for test in _same(aux, f"{place}_aux", names)]
        return [leaf for child, part in zip(children, parts) for leaf in _reading(child, part, tests, names)]
    if not _is_written_out(treedef):
        flatten, unpacked = _constant(names, kind.flatten), "".join(f"{part}, " for part in parts)
        tests.append(f"if type({place}) is not {cls}: return ()")
        tests.append(f"{place}_all, {place}_aux = {flatten}({place})")
        tests.append(f"{unpacked}= {place}_all" if parts else f"() = {place}_all")
        tests += [f"if not ({test}): return ()" for test in _same(treedef._aux, f"{place}_aux", names)]
        return [leaf for child, part in zip(children, parts) for leaf in _reading(child, part, tests, names)]
    tests.append(f"if type({place}) is not {cls} or len({place}) != {len(children)}: return ()")
    if kind is DICT:
        tests += [f"{part} = {place}[{key!r}]" for part, key in zip(parts, treedef._aux)]
    elif parts:
        tests.append(f"{', '.join(parts)}, = {place}")
    return [leaf for child, part in zip(children, parts) for leaf in _reading(child, part, tests, names)]


def _same(aux: Any, place: str, names: dict[str, Any]) -> Iterator[str]:
    """Conditions under which aux data in a variable are those of a structure, as `PyTreeDef` compares them."""
    if type(aux) is tuple:
        yield f"type({place}) is tuple and len({place}) == {len(aux)}"
        for i, part in enumerate(aux):
            yield from _same(part, f"{place}[{i}]", names)
    elif aux is None:
        yield f"{place} is None"
    elif type(aux) in _PLAIN:
        value = _constant(names, aux)
        yield f"type({place}) is {type(aux).__name__} and {place} == {value}"
    else:
        value = _constant(names, aux)
        yield f"{place} is {value} or {_constant(names, _is_same)}({place}, {value})"


def _is_same(a: Any, b: Any) -> bool:
    return same_aux(a, b) and same_types(a, b)


def _expression(treedef: PyTreeDef, leaves: Iterator[str], names: dict[str, Any]) -> str:
    kind = treedef._kind
    if kind is None:
        return next(leaves)
    parts = [_expression(child, leaves, names) for child in treedef.children()]
    if kind.fields is not None:
        data, meta = kind.fields
        given = [f"{name}={_constant(names, aux)}" for name, aux in zip(meta, treedef._aux)]
        given += [f"{name}={part}" for name, part in zip(data, parts)]
        return f"{_constant(names, kind.type)}({', '.join(given)})"
    if not _is_written_out(treedef):
        build, aux = _constant(names, kind.unflatten), _constant(names, treedef._aux)
        return f"{build}({aux}, [{', '.join(parts)}])"
    if kind is NONE:
        return "None"
    if kind is DICT:
        return f"{{{', '.join(f'{key!r}: {part}' for key, part in zip(treedef._aux, parts))}}}"
    if kind is LIST:
        return f"[{', '.join(parts)}]"
    called = "" if kind is TUPLE else _constant(names, treedef._aux)
    inside = ", ".join(parts)
    return f"{called}({inside},)" if kind is TUPLE and parts else f"{called}({inside})"
