"""Trees that must have the structure, shapes and dtypes of another: solutions, and what an equation makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ..arrays.array import read_only_copy
from ..control.body_cache import interned
from ..core.aval import Aval, aval_of
from ..core.dtypes import is_complex, is_inexact
from ..core.errors import ArgumentError, DtypeError, ShapeError
from ..core.ir import Jaxpr
from ..core.source import Source, last_line
from ..frontend.arguments import flatten_values, given, name_of, result
from ..frontend.pytree import PyTree, PyTreeDef, first_difference, leaf_path, tree_unflatten
from ..frontend.pytree.nodes import keystr
from ..passes.toolkit import evaluate, lift_constants
from ..primitives.operands import strong
from ..transforms.stage import stage

_FLOAT = np.dtype(np.float64)


@dataclass(frozen=True)
class TreeSpec:
    """What other trees must look like.

    Attributes
    ----------
    what : str
        The public function, for messages.
    name : str
        The argument whose types others must have: ``"b"``.
    tree : PyTreeDef
    avals : tuple of Aval
        The types of its leaves, float or complex, not weak.
    """

    what: str
    name: str
    tree: PyTreeDef
    avals: tuple[Aval, ...]

    @staticmethod
    def of(what: str, name: str, tree: PyTree) -> tuple[TreeSpec, list[Any]]:
        """The spec of an argument, and its leaves as values; integers become floats."""
        values, treedef = flatten_values(tree, lambda path: f"{what}: {name}{keystr(path)}")
        for i, x in enumerate(values):
            dtype = aval_of(x).dtype
            values[i] = strong(x, dtype if is_inexact(dtype) else _FLOAT)
        return TreeSpec(what, name, treedef, tuple([aval_of(x) for x in values])), values

    def filled(self, values: Sequence[Any]) -> PyTree:
        """A tree of this structure, as users' functions get it."""
        return tree_unflatten(self.tree, [given(x) for x in values])

    def handed_out(self, values: Sequence[Any]) -> PyTree:
        """A tree of this structure, as the caller gets it."""
        return tree_unflatten(self.tree, [result(x) for x in values])

    def leaves(self, tree: PyTree, who: str, source: Source | None) -> list[Any]:
        """The leaves of what `who` returned, as values of the very types.

        Raises
        ------
        ArgumentError
            If the structure differs.
        ShapeError, DtypeError
            If a leaf differs; Python numbers take on the dtype.
        """
        words = (f"what {who} returned", f"{who} must return", "it returned", f"{who} returned")
        values = self._checked(tree, words, source, _same)
        return [read_only_copy(x) for x in values]

    def arguments(self, tree: PyTree, who: str) -> list[Any]:
        """The leaves of an argument for `who`, as values of the very types; other real dtypes are converted."""
        words = (f"the argument of {who}", f"{who} takes", "it was given", f"{who} was given")
        return self._checked(tree, words, None, _fits)

    def _checked(
        self,
        tree: PyTree,
        words: tuple[str, str, str, str],
        source: Source | None,
        takes: Callable[[Aval, Aval], bool],
    ) -> list[Any]:
        """The leaves in the very types; `words` name the tree, what is wanted, and what was met: all of it, a leaf."""
        what, wants, met, met_leaf = words
        values, treedef = flatten_values(tree, lambda path: f"{self.what}: {what}{keystr(path)}")
        self._check_structure(treedef, wants, met, source)
        for i, (x, aval) in enumerate(zip(values, self.avals)):
            own = aval_of(x)
            self._check_shape(own, i, met_leaf, source)
            if not takes(own, aval):
                self._refuse_dtype(own, i, met_leaf, source)
            values[i] = strong(x, aval.dtype)
        return values

    def _check_structure(self, found: PyTreeDef, wants: str, met: str, source: Source | None) -> None:
        parted = first_difference(self.tree, found)
        if parted is not None:
            path, mine, other = parted
            raise ArgumentError(
                f"{self.what}: {wants} the structure of {self.name}{keystr(path)}: expected {mine}, got {other}\n"
                f"  {self.name}: {self.tree}\n"
                f"  {met}: {found}",
                source,
            )

    def _check_shape(self, own: Aval, i: int, met: str, source: Source | None) -> None:
        wanted = self.avals[i].shape
        if own.shape != wanted:
            raise ShapeError(
                f"{self.what}: {met} the shape {own.shape}{self._at(i)}, where {self.name} has {wanted}; they must be "
                "equal",
                source,
            )

    def _refuse_dtype(self, own: Aval, i: int, met: str, source: Source | None) -> NoReturn:
        wanted = self.avals[i].dtype
        cure = f"Convert one of them: .astype({str(wanted)!r})"
        if is_complex(own.dtype) and not is_complex(wanted):
            cure = f"Where the solution is complex, {self.name} must be: convert it by .astype(complex)"
        raise DtypeError(
            f"{self.what}: {met} the dtype {own.dtype}{self._at(i)}, where {self.name} has {wanted}; they must be "
            f"equal. {cure}",
            source,
        )

    def _at(self, i: int) -> str:
        path = leaf_path(self.tree, i)
        return f" at {keystr(path)}" if path else ""


def _fits(own: Aval, aval: Aval) -> bool:
    """Whether a value of one type can take on the dtype of another without losing the imaginary part."""
    return is_complex(aval.dtype) or not is_complex(own.dtype)


def _same(own: Aval, aval: Aval) -> bool:
    """Whether it has that dtype; Python numbers take it on."""
    return own.dtype == aval.dtype or (own.weak and _fits(own, aval))


# --- equations as jaxprs -------------------------------------------------------------------------------------


def trace_map(fun: Callable[..., Any], who: str, spec: TreeSpec) -> tuple[Jaxpr, tuple[Any, ...]]:
    """A user's function from a tree to a tree of the same types as a jaxpr, and what it captured: leading operands."""

    def flat(*values: Any) -> list[Any]:
        return spec.leaves(fun(spec.filled(values)), f"{who} ({name_of(fun)})", last_line(fun))

    jaxpr, captured = lift_constants(stage(flat, spec.avals, name_of(fun)))
    return interned(jaxpr), captured


class TracedTree:
    """A traced function of one tree, as users' solvers get it: they may call it any number of times.

    Attributes
    ----------
    called : bool
        Whether it has been.
    """

    __slots__ = ("__name__", "called", "captured", "jaxpr", "spec")

    def __init__(self, name: str, jaxpr: Jaxpr, captured: Sequence[Any], spec: TreeSpec):
        self.__name__ = name
        self.jaxpr = jaxpr
        self.captured = captured
        self.spec = spec
        self.called = False

    def __call__(self, x: PyTree) -> PyTree:
        """The function at `x`."""
        self.called = True
        values = self.spec.arguments(x, self.__name__)
        return self.spec.filled(evaluate(self.jaxpr, [*self.captured, *values]))


class Checked:
    """A user's function itself, as his solvers get it where nothing is traced: the first result is checked."""

    __slots__ = ("__name__", "checked", "fun", "spec")

    def __init__(self, name: str, fun: Callable[..., Any], spec: TreeSpec):
        self.__name__ = name
        self.fun = fun
        self.spec = spec
        self.checked = False

    def __call__(self, x: PyTree) -> PyTree:
        """The function at `x`."""
        out = self.fun(x)
        if not self.checked:
            self.spec.leaves(out, f"{self.__name__} ({name_of(self.fun)})", last_line(self.fun))
            self.checked = True
        return out
