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
class Model:
    """What other trees must look like.

    Attributes
    ----------
    what : str
        The public function, for messages.
    name : str
        The argument that is the model: ``"b"``.
    tree : PyTreeDef
    avals : tuple of Aval
        The types of its leaves, float or complex, not weak.
    """

    what: str
    name: str
    tree: PyTreeDef
    avals: tuple[Aval, ...]

    @staticmethod
    def of(what: str, name: str, tree: PyTree) -> tuple[Model, list[Any]]:
        """The model that an argument is, and its leaves as values; integers become floats."""
        values, treedef = flatten_values(tree, lambda path: f"{what}: {name}{keystr(path)}")
        for i, x in enumerate(values):
            dtype = aval_of(x).dtype
            values[i] = strong(x, dtype if is_inexact(dtype) else _FLOAT)
        return Model(what, name, treedef, tuple([aval_of(x) for x in values])), values

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
        values, found = flatten_values(tree, lambda path: f"{self.what}: what {who} returned{keystr(path)}")
        self._check_structure(found, f"{who} must return", "it returned", source)
        for i, (x, aval) in enumerate(zip(values, self.avals)):
            own = aval_of(x)
            self._check_shape(own, i, f"{who} returned", source)
            if own.dtype != aval.dtype and not (own.weak and _fits(own.dtype, aval.dtype)):
                self._refuse_dtype(own, i, f"{who} returned", source)
            values[i] = read_only_copy(strong(x, aval.dtype))
        return values

    def arguments(self, tree: PyTree, who: str) -> list[Any]:
        """The leaves of an argument for `who`, as values of the very types; other real dtypes are converted."""
        values, found = flatten_values(tree, lambda path: f"{self.what}: the argument of {who}{keystr(path)}")
        self._check_structure(found, f"{who} takes", "it was given", None)
        for i, (x, aval) in enumerate(zip(values, self.avals)):
            own = aval_of(x)
            self._check_shape(own, i, f"{who} was given", None)
            if not _fits(own.dtype, aval.dtype):
                self._refuse_dtype(own, i, f"{who} was given", None)
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


def _fits(given: np.dtype, dtype: np.dtype) -> bool:
    """Whether one dtype can become another without losing the imaginary part."""
    return is_complex(dtype) or not is_complex(given)


# --- equations as jaxprs -------------------------------------------------------------------------------------


def trace_map(fun: Callable[..., Any], who: str, model: Model) -> tuple[Jaxpr, tuple[Any, ...]]:
    """A user's function from a tree to a tree of the same types as a jaxpr, and what it captured: leading operands."""

    def flat(*values: Any) -> list[Any]:
        return model.leaves(fun(model.filled(values)), f"{who} ({name_of(fun)})", last_line(fun))

    jaxpr, captured = lift_constants(stage(flat, model.avals, name_of(fun)))
    return interned(jaxpr), captured


class TracedTree:
    """A traced function of one tree, as users' solvers get it: they may call it any number of times.

    Attributes
    ----------
    called : bool
        Whether it has been.
    """

    __slots__ = ("__name__", "called", "captured", "jaxpr", "model")

    def __init__(self, name: str, jaxpr: Jaxpr, captured: Sequence[Any], model: Model):
        self.__name__ = name
        self.jaxpr = jaxpr
        self.captured = captured
        self.model = model
        self.called = False

    def __call__(self, x: PyTree) -> PyTree:
        """The function at `x`."""
        self.called = True
        values = self.model.arguments(x, self.__name__)
        return self.model.filled(evaluate(self.jaxpr, [*self.captured, *values]))


class Checked:
    """A user's function itself, as his solvers get it where nothing is traced: the first result is checked."""

    __slots__ = ("__name__", "checked", "fun", "model")

    def __init__(self, name: str, fun: Callable[..., Any], model: Model):
        self.__name__ = name
        self.fun = fun
        self.model = model
        self.checked = False

    def __call__(self, x: PyTree) -> PyTree:
        """The function at `x`."""
        out = self.fun(x)
        if not self.checked:
            self.model.leaves(out, f"{self.__name__} ({name_of(self.fun)})", last_line(self.fun))
            self.checked = True
        return out
