"""What users' solvers take and return: solutions, which must look like an argument, and equations as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...arrays.array import read_only_copy
from ...arrays.autocast import ambient
from ...control.bodies.cache import interned
from ...core import Aval, Jaxpr, Source, Tracer, aval_of, is_inexact, last_line
from ...core.evaluation import evaluate
from ...core.values import ArrayLike, Value
from ...errors import ArgumentError, DtypeError, ShapeError
from ...frontend.arguments import flatten_values, given, name_of, result, results, value_of
from ...frontend.pytree import PyTree, PyTreeDef, tree_flatten, tree_unflatten
from ...frontend.pytree.nodes import keystr
from ...frontend.tree_spec import Accepts, TreeSpec, real_for_real
from ...passes.toolkit import lift_constants
from ...primitives.operands import strong
from ...runtime.records import dataclass
from ...transforms.stage import stage

Solver = Callable[[Callable[[PyTree], PyTree], PyTree], PyTree]
_FLOAT = np.dtype(np.float64)


def _same(own: Aval, aval: Aval) -> bool:
    """Whether it takes on that dtype: a Python number, or what autocast gave another one."""
    return (own.weak or ambient() is not None) and real_for_real(own, aval)


@dataclass(frozen=True)
class SolutionSpec:
    """What a solution must look like: an argument of the public function.

    Attributes
    ----------
    what : str
        The public function, for messages.
    name : str
        The argument: ``"b"``.
    tree : PyTreeDef
    avals : tuple of Aval
        The types of its leaves, float or complex, not weak.
    """

    what: str
    name: str
    tree: PyTreeDef
    avals: tuple[Aval, ...]

    @staticmethod
    def of(what: str, name: str, tree: PyTree) -> tuple[SolutionSpec, list[Any]]:
        """The spec of an argument, and its leaves as values; integers become floats."""
        values, treedef = flatten_values(tree, lambda path: f"{what}: {name}{keystr(path)}")
        dtypes = [aval_of(x).dtype for x in values]
        values = [strong(x, d if is_inexact(d) else _FLOAT) for x, d in zip(values, dtypes)]
        return SolutionSpec(what, name, treedef, tuple(map(aval_of, values))), values

    def filled(self, values: Sequence[Value]) -> PyTree:
        """A tree of this structure, as users' functions get it."""
        return tree_unflatten(self.tree, [given(x) for x in values])

    def leaves(self, tree: PyTree, who: str, source: Source | None, accepts: Accepts = _same) -> list[Value]:
        """The leaves of what `who` returned, as values of exactly these types.

        Raises
        ------
        ArgumentError
            If the structure differs.
        ShapeError, DtypeError
            If a leaf differs; Python numbers take on the dtype.
        """
        values = self._checked(tree, f"{who} returned", f"{who} must return", source, accepts)
        return [read_only_copy(x) for x in values]

    def arguments(self, tree: PyTree, who: str) -> list[Value]:
        """The leaves of an argument for `who`, as values of exactly these types; other real dtypes are converted."""
        return self._checked(tree, f"{who} was given", f"{who} takes", None, real_for_real)

    def _checked(
        self, tree: PyTree, got: str, expected: str, source: Source | None, accepts: Accepts
    ) -> list[Value]:
        values, treedef = flatten_values(tree, lambda path: f"{self.what}: what {got}{keystr(path)}")
        mismatch = TreeSpec(self.tree, self.avals).mismatch(treedef, map(aval_of, values), accepts)
        if mismatch is None:
            return [strong(x, aval.dtype) for x, aval in zip(values, self.avals)]
        if mismatch.aspect == "structure":
            raise ArgumentError(
                f"{self.what}: {expected} the structure of {self.name}{keystr(mismatch.path)}: expected "
                f"{mismatch.expected}, got {mismatch.got}\n"
                f"  {self.name}: {self.tree}\n"
                f"  {got}: {treedef}",
                source,
            )
        aspect, aval, own = mismatch.aspect, mismatch.expected, mismatch.got
        text = (
            f"{self.what}: {got} the {aspect} {getattr(own, aspect)}{mismatch.at}, where {self.name} has "
            f"{getattr(aval, aspect)}; they must be equal"
        )
        if aspect == "shape":
            raise ShapeError(text, source)
        cure = f"Convert one of them: .astype({str(aval.dtype)!r})"
        if not real_for_real(own, aval):
            cure = f"Where the solution is complex, {self.name} must be: convert it by .astype(complex)"
        raise DtypeError(f"{text}. {cure}", source)


class Solution:
    """Takes apart what a solver returned: the leaves of the solution and, with `has_aux`, of auxiliary data.

    Attributes
    ----------
    count : int
        The number of leaves of the solution; those of auxiliary data that are arrays or numbers follow.
    """

    def __init__(self, spec: SolutionSpec, who: str, solver: Callable[..., Any], has_aux: bool):
        self.spec = spec
        self.who = f"{who} ({name_of(solver)})"
        self.solver = solver
        self.has_aux = has_aux
        self.count = len(spec.avals)
        self._aux: tuple[PyTreeDef, list[Any]] | None = None  # structure, and leaves that are not arrays

    def leaves(self, out: PyTree) -> list[ArrayLike]:
        """All leaves, as values."""
        source = last_line(self.solver)
        if not self.has_aux:
            return self.spec.leaves(out, self.who, source)
        if not (isinstance(out, tuple | list) and len(out) == 2):
            raise ArgumentError(
                f"{self.spec.what}: has_aux=True, so {self.who} must return a pair (solution, auxiliary data), but it "
                f"returned {type(out).__name__}",
                source,
            )
        leaves = self.spec.leaves(out[0], self.who, source)
        aux, tree = tree_flatten(out[1])
        self._aux = tree, [None if _is_array(x) else x for x in aux]
        arrays = [value_of(x, lambda: f"{self.spec.what}: auxiliary data") for x in aux if _is_array(x)]
        return leaves + [read_only_copy(strong(x, aval_of(x).dtype)) for x in arrays]

    def solved(self, name: str, fun: Callable[[PyTree], PyTree], values: Sequence[ArrayLike]) -> list[Any]:
        """What the solver returns for a function and an argument, as values; what that function returns is checked."""
        checked = Checked(name, fun, self.spec)
        found = self.leaves(self.solver(checked, self.spec.filled(values)))
        if not checked.checked:  # the solver did not call it
            trace_map(fun, name, self.spec)
        return found

    def handed_out(self, outs: Sequence[Value]) -> PyTree:
        """What the caller gets."""
        x = results(self.spec.tree, outs[: self.count])
        if self._aux is None:
            return x
        tree, others = self._aux
        arrays = iter(outs[self.count :])
        return x, tree_unflatten(tree, [result(next(arrays)) if y is None else y for y in others])


def _is_array(x: ArrayLike) -> bool:
    return isinstance(x, Tracer | np.ndarray | np.generic | int | float | complex)


# --- equations as jaxprs -------------------------------------------------------------------------------------


def trace_map(fun: Callable[..., PyTree], who: str, spec: SolutionSpec) -> tuple[Jaxpr, tuple[Any, ...]]:
    """A user's function from a tree to a tree of the same types as a jaxpr, and what it captured: leading operands."""

    def flat(*values: ArrayLike) -> list[Any]:
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

    def __init__(self, name: str, jaxpr: Jaxpr, captured: Sequence[Value], spec: SolutionSpec):
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
    """A user's function itself, as solvers get it where nothing is traced; its first result is checked."""

    __slots__ = ("__name__", "checked", "fun", "spec")

    def __init__(self, name: str, fun: Callable[..., PyTree], spec: SolutionSpec):
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
