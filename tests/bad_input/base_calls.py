"""A valid call of every public function, of which one argument after another is then replaced by a bad one."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "coverage"))

import coverage_table as table

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Base:
    """A call that is valid: the arguments by their names in the signature, and how they are handed over.

    `traced` names those that are arrays which a compiled function may be given.
    """

    name: str
    function: Callable[..., Any]
    counterpart: Callable[..., Any] | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    traceable: bool
    through: Callable[..., Any]

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The function called."""
        return self.through(function, *args, **kwargs)


def _plainly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Of the signature; none where Python knows of none."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def places(base: Base) -> Iterator[tuple[str, int | str]]:
    """The arguments that can be replaced: name of the parameter, and position or keyword."""
    kinds = inspect.Parameter
    found = parameters(base.function)
    if base.through is not _plainly and not any(
        p.kind is kinds.VAR_KEYWORD for p in parameters(base.through)
    ):
        found = parameters(base.through)[1 : 1 + len(base.args)]  # what the table hands over, and no more
    positional = [p for p in found if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in found if p.kind is kinds.VAR_POSITIONAL), "x")
    for i in range(len(base.args)):
        yield positional[i].name if i < len(positional) else rest, i
    for p in found:
        named = p.kind is kinds.KEYWORD_ONLY or (
            p.kind is kinds.POSITIONAL_OR_KEYWORD and positional.index(p) >= len(base.args)
        )
        if named:
            yield p.name, p.name
    for name in base.kwargs:
        if name not in [p.name for p in found]:
            yield name, name
    if isinstance(base.counterpart, np.ufunc) and found[-1].kind is kinds.VAR_KEYWORD:
        yield from ((name, name) for name in ("dtype", "out", "where", "casting", "order", "subok"))


def _modules() -> list[Any]:
    return [importlib.import_module(path.stem) for path in sorted(HERE.glob("calls_*.py"))]


def _own_calls() -> dict[str, Any]:
    """The calls of the files ``calls_*.py``, by namespace."""
    calls: dict[str, Any] = {}
    for module in _modules():
        for namespace, rows in module.OWN.items():
            calls.setdefault(namespace, []).extend(rows)
    return calls


def _own() -> Iterator[Base]:
    for namespace, rows in _own_calls().items():
        module = importlib.import_module(namespace)
        for name, through, args, kwargs in rows:
            yield Base(
                f"{namespace}.{name}",
                getattr(module, name),
                None,
                args,
                kwargs,
                False,
                _plainly if through is None else through,
            )


def _tabled() -> Iterator[Base]:
    stood_for: set[str] = set()
    for entry in table.load().values():
        if entry.slow and entry.namespace in stood_for:
            continue  # it shares its code with the first slow one of its namespace
        if entry.slow:
            stood_for.add(entry.namespace)
        # SciPy's statistics convert what they are given to double precision.
        own = "lax" in entry.namespace or "scipy.stats" in entry.namespace
        theirs = None if own else table.NAMESPACES[entry.namespace]
        for call in entry.calls[:2]:
            values = iter(call.values(entry.seed()))
            args, kwargs = table._filled((call.args, call.kwargs), values)
            yield Base(
                f"{entry.namespace}.{entry.name}",
                entry.function,
                getattr(theirs, entry.name, None),
                args,
                kwargs,
                not call.eager,
                _plainly if entry.through is None else entry.through,
            )


def bases() -> list[Base]:
    """All of them, in a fixed order."""
    return [*_tabled(), *_own()]


def missing() -> list[str]:
    """Public functions without a base call."""
    covered = {id(b.function) for b in bases()}
    out = []
    left_out = {(k, name) for module in _modules() for k, names in module.LEFT_OUT.items() for name in names}
    for namespace in _own_calls():
        module = importlib.import_module(namespace)
        for name in module.__all__:
            if (namespace, name) in left_out:
                continue
            value = getattr(module, name)
            if callable(value) and not isinstance(value, ModuleType) and id(value) not in covered:
                out.append(f"{namespace}.{name}")
    return out
