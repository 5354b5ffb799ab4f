"""What a user's rule returned, fitted to what it is the derivative of: structure, shape, dtype.

This is the strict way: the structure of the arguments and their shapes. Only dtypes are converted, and None stands for
zeros, in the place of a leaf or of a whole part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ..core.array import Array, unwrap
from ..core.aval import Aval, Zero, aval_of
from ..core.config import config
from ..core.dtypes import is_complex, is_float0, is_inexact
from ..core.errors import (
    ArgumentError,
    BackwardError,
    DtypeError,
    FunctionError,
    GradientDtypeError,
    GradientShapeError,
    GradientStructureError,
    PytreeError,
    TangentDtypeError,
    TangentError,
    TangentShapeError,
)
from ..core.pytree import (
    PyTree,
    PyTreeDef,
    first_difference,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_structure,
    tree_unflatten,
)
from ..core.source import last_line
from ..core.trace import concrete
from ..core.tree_nodes import KeyPath, keystr
from ..primitives.identities import check_nans
from ..primitives.operands import strong
from ..transforms.values import value_of


@dataclass(frozen=True)
class Kind:
    """How messages call a derivative, and which errors they are."""

    name: str
    structure: type[FunctionError]
    shape: type[FunctionError]
    dtype: type[FunctionError]
    value: type[FunctionError]


GRADIENT = Kind("gradient", GradientStructureError, GradientShapeError, GradientDtypeError, BackwardError)
TANGENT = Kind("tangent", TangentError, TangentShapeError, TangentDtypeError, TangentError)


@dataclass(frozen=True)
class Returned:
    """What a rule returns: the leaves of a gradient or tangent.

    Attributes
    ----------
    kind : Kind
    title : str
        The rule in words, at the beginning of messages.
    rule : callable
        The user's function; its last line is the place of the error.
    place : callable
        From the key path of a leaf to how messages call it.
    """

    kind: Kind
    title: str
    rule: Callable[..., Any]
    place: Callable[[KeyPath], str]

    def fitted(self, tree: PyTree, treedef: PyTreeDef, avals: Sequence[Aval]) -> list[Any]:
        """The leaves, each a value of its aval, or `Zero`.

        Parameters
        ----------
        tree : pytree
        treedef, avals
            Structure and leaves of what it is the derivative of.
        """
        leaves, found = tree_flatten(tree)
        if found is not treedef and found != treedef:
            leaves = self._completed(tree, treedef)
        out = []
        for i, (x, aval) in enumerate(zip(leaves, avals)):
            if x is None or type(x) is Zero or is_float0(x):
                out.append(Zero(aval))
                continue
            if (
                type(x) is Array
                and x.dtype == aval.dtype
                and x.shape == aval.shape
                and aval.dtype.kind in "fc"
            ):
                x = unwrap(x)
            else:
                x = self._fit(x, aval, partial(leaf_path, treedef, i))
            if config.debug_nans and type(x) is not Zero:
                what = f"the {self.kind.name} of {self.place(leaf_path(treedef, i))} returned by {self.title}"
                x = check_nans(x, what, last_line(self.rule))
            out.append(x)
        return out

    def _completed(self, tree: PyTree, treedef: PyTreeDef) -> list[Any]:
        """The leaves, with None for each leaf of a part that is None."""
        given, found = tree_flatten(tree, is_leaf=lambda x: x is None)
        try:
            parts = found.flatten_up_to(tree_unflatten(treedef, range(treedef.num_leaves)))
        except PytreeError:
            self._wrong_structure(tree, treedef)
        leaves: list[Any] = []
        for x, part in zip(given, parts):
            if x is None:
                leaves += [None] * len(tree_leaves(part))
            elif type(part) is int:
                leaves.append(x)
            else:
                self._wrong_structure(tree, treedef)
        return leaves

    def _wrong_structure(self, tree: PyTree, treedef: PyTreeDef) -> NoReturn:
        found = tree_structure(tree)
        path, wanted, met = first_difference(treedef, found) or ((), str(treedef), str(found))
        raise self.kind.structure(
            f"{self.title} returned a {self.kind.name} of another structure for {self.place(path)}: want "
            f"{wanted}, got {met}. None stands for a zero {self.kind.name} of any part\n"
            f"  wanted:   {treedef}\n"
            f"  returned: {found}",
            last_line(self.rule),
        )

    def _fit(self, x: Any, aval: Aval, path: Callable[[], KeyPath]) -> Any:
        try:
            x = value_of(x, str)
        except (ArgumentError, DtypeError):
            self._fail(
                self.kind.value,
                f"returned {str(x)[:60]!r} of type {type(x).__name__} as the {self.kind.name} of {self.place(path())}. "
                "Return an array, or None for zero",
            )
        own = aval_of(x)
        if not is_inexact(aval.dtype):
            return self._no_derivative(x, own, aval, path)
        if own.shape != aval.shape:
            index = f" at index {path()[0].idx}" if self.kind is GRADIENT else ""
            self._fail(
                self.kind.shape,
                f"returned an invalid {self.kind.name}{index} - got {list(own.shape)} but expected shape compatible "
                f"with {list(aval.shape)}: that of {self.place(path())}",
            )
        if own.dtype == aval.dtype and not own.weak:
            return x
        if is_complex(own.dtype) and not is_complex(aval.dtype):
            self._fail(
                self.kind.dtype,
                f"returned a complex {self.kind.name} for {self.place(path())}, which is of dtype {aval.dtype}: "
                "take .real",
            )
        return strong(x, aval.dtype)

    def _no_derivative(self, x: Any, own: Aval, aval: Aval, path: Callable[[], KeyPath]) -> Zero:
        """Zero for an integer; a gradient is ignored, since rules meant for floats are called with ``f(x, 2)``, too."""
        if self.kind is GRADIENT:
            return Zero(aval)
        known = concrete(x)
        nonzero = known is not None and bool(np.any(known))
        if nonzero or (self.kind is TANGENT and is_inexact(own.dtype)):
            self._fail(
                self.kind.value,
                f"returned a {self.kind.name} {'that is not zero ' if nonzero else ''}for {self.place(path())}, "
                f"which is of dtype {aval.dtype} and has no derivative: return None there",
            )
        return Zero(aval)

    def _fail(self, error: type[FunctionError], text: str) -> NoReturn:
        raise error(f"{self.title} {text}", last_line(self.rule))


def leaf_path(treedef: PyTreeDef, i: int) -> KeyPath:
    """The key path of a leaf."""
    return tree_flatten_with_path(tree_unflatten(treedef, range(treedef.num_leaves)))[0][i][0]


def output_place(path: KeyPath) -> str:
    """How messages call a leaf of a function's result."""
    return f"output {keystr(path)}" if path else "the output"
