"""Loops as Python runs them, under ``functrans.disable_jit()``: to print from, and to step through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..api.bodies import check_structure, check_types, joined
from ..core.aval import Aval, aval_of
from ..core.errors import PytreeError
from ..core.pytree import PyTreeDef, tree_unflatten
from ..core.source import last_line
from ..core.tree_nodes import keystr
from ..primitives.operands import stack, strong
from ..transforms.values import flatten_values, given, name_of, result


class Carry:
    """The carry of a loop that runs as Python; the same types are asked of it as of a compiled one."""

    def __init__(self, what: str, fun: Callable[..., Any], leaves: Sequence[Any], tree: PyTreeDef):
        self.what = what
        self.fun = fun
        self.leaves = list(leaves)
        self.tree = tree

    @property
    def value(self) -> Any:
        """What the body is given."""
        return tree_unflatten(self.tree, [given(x) for x in self.leaves])

    @property
    def last(self) -> Any:
        """What the loop returns."""
        return tree_unflatten(self.tree, [result(x) for x in self.leaves])

    def replace(self, value: Any) -> None:
        """Take what the body returned."""
        leaves, tree = flatten_values(value, self._place)
        check_structure(self.what, self.fun, self.tree, tree)
        after = [aval_of(x) for x in leaves]
        before = [joined(aval_of(x), b) for x, b in zip(self.leaves, after)]
        leaves = [_in_dtype(x, a) for x, a in zip(leaves, before)]
        line = last_line(self.fun)
        check_types(self.what, self.fun, tree, before, [aval_of(x) for x in leaves], [line] * len(leaves))
        self.leaves = leaves

    def _place(self, path: Any) -> str:
        return f"the result of {name_of(self.fun)}{keystr(path)}"


def _in_dtype(x: Any, wanted: Aval) -> Any:
    """A Python number in the dtype of the carry, where that is of its kind."""
    aval = aval_of(x)
    mine = aval.weak and not wanted.weak and aval.dtype.kind == wanted.dtype.kind
    return strong(x, wanted.dtype) if mine and aval.shape == wanted.shape else x


class Rows:
    """What a loop stacks; one row of each tree of the same structure."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[list[Any]] = []
        self.tree: PyTreeDef | None = None

    def append(self, value: Any) -> None:
        """Take a row."""
        leaves, tree = flatten_values(value, lambda path: f"{self.name}: y{keystr(path)}")
        self.tree = tree if self.tree is None else self.tree
        if tree != self.tree:
            raise PytreeError(
                f"{self.name}: y has the structure {tree} in one iteration, {self.tree} in another"
            )
        self.rows.append(leaves)

    def stacked(self, reverse: bool) -> Any:
        """The rows along a new first axis."""
        assert self.tree is not None
        rows = self.rows[::-1] if reverse else self.rows
        return tree_unflatten(self.tree, [result(stack(column)) for column in zip(*rows)])
