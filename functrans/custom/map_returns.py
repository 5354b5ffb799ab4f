"""What a rule of `custom_vmap` returned: results and flags, held against what the function would return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..control.bodies import Mask
from ..core.aval import Aval, aval_of
from ..core.errors import ArgumentError, DtypeError, PytreeError, VmapRuleError
from ..core.pytree import PyTree, PyTreeDef, first_difference, flatten_axes
from ..core.source import last_line
from ..core.tree_nodes import keystr
from ..primitives.operands import strong
from ..transforms.values import name_of, returned_values


class Types(NamedTuple):
    """What the function returns for one example."""

    tree: PyTreeDef
    avals: list[Aval]


@dataclass(frozen=True)
class MapReturned:
    """Leaves and structure of a rule's results, and which of them are mapped.

    Attributes
    ----------
    fun, rule : callable
        The function and its rule, for messages.
    size : int
        Of the mapped axis.
    leaves, tree, flags
    """

    fun: Callable[..., Any]
    rule: Callable[..., Any]
    size: int
    leaves: list[Any]
    tree: PyTreeDef
    flags: Mask

    @staticmethod
    def of(fun: Callable[..., Any], rule: Callable[..., Any], size: int, out: Any) -> MapReturned:
        """Take apart what the rule returned.

        Raises
        ------
        VmapRuleError
            If it is no pair of arrays and flags.
        """
        if not (isinstance(out, tuple | list) and len(out) == 2):
            met = f"{len(out)} values" if isinstance(out, tuple | list) else type(out).__name__
            refuse(fun, rule, f"must return a pair (out, out_batched), but returned {met}")
        try:
            leaves, tree = returned_values(rule, out[0])
        except (ArgumentError, DtypeError) as error:
            refuse(fun, rule, f"returned what is no tree of arrays: {error.message}")
        return MapReturned(fun, rule, size, leaves, tree, _flags(fun, rule, tree, out[1]))

    def check_axes(self) -> None:
        """Raise where a result that is said to be mapped has no such axis."""
        for i, (x, flag) in enumerate(zip(self.leaves, self.flags)):
            shape = aval_of(x).shape
            if flag and (not shape or shape[0] != self.size):
                self.refuse(
                    f"returned the shape {shape}{self._at(i)}, which has no axis of size {self.size} in front"
                )

    def problem(self, wanted: Types) -> str | None:
        """In what the results differ from those of the function; None where they do not."""
        parted = first_difference(wanted.tree, self.tree)
        if parted is not None:
            path, one, other = parted
            return (
                f"returned another structure than the function{f' at {keystr(path)}' if path else ''}: want {one}, got "
                f"{other}\n  function: {wanted.tree}\n  rule:     {self.tree}"
            )
        for i, (x, aval, flag) in enumerate(zip(self.leaves, wanted.avals, self.flags)):
            own = aval_of(x)
            want = (self.size, *aval.shape) if flag else aval.shape
            if own.shape != want:
                kind = "mapped" if flag else "not mapped"
                return f"returned the shape {own.shape}{self._at(i)}, {kind}, where the function's makes it {want}"
            takes = own.weak and np.can_cast(own.dtype, aval.dtype, "same_kind")
            if own.dtype != aval.dtype and not takes:
                return f"returned the dtype {own.dtype}{self._at(i)}, where the function returns {aval.dtype}"
        return None

    def typed(self, avals: Sequence[Aval]) -> list[Any]:
        """The leaves, numbers in the dtypes that the function returns."""
        return [strong(x, a.dtype) for x, a in zip(self.leaves, avals)]

    def refuse(self, problem: str) -> NoReturn:
        """Raise `VmapRuleError`."""
        refuse(self.fun, self.rule, problem)

    def _at(self, i: int) -> str:
        return "" if self.tree.num_leaves == 1 else f" as result {i} of {self.tree}"


def refuse(fun: Callable[..., Any], rule: Callable[..., Any], problem: str) -> NoReturn:
    """Raise `VmapRuleError` at the end of the rule."""
    raise VmapRuleError(
        f"custom_vmap of {name_of(fun)}: its rule ({name_of(rule)}) {problem}", last_line(rule)
    )


def _flags(fun: Callable[..., Any], rule: Callable[..., Any], tree: PyTreeDef, out_batched: PyTree) -> Mask:
    try:
        flags = flatten_axes("out_batched", tree, out_batched)
    except PytreeError as error:
        refuse(fun, rule, f"returned an out_batched that does not fit its out: {error.message}")
    for flag in flags:
        if not isinstance(flag, bool | np.bool_):
            refuse(fun, rule, f"returned {flag!r} in out_batched; want True or False for each result")
    return tuple([bool(flag) for flag in flags])
