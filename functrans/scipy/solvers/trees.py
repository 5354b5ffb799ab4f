"""Trees as the vectors that SciPy's solvers know."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import numpy as fnp
from ...arrays.arguments import shown
from ...arrays.array import Array
from ...core import Tracer, aval_of, is_complex, last_line
from ...core.values import ArrayLike, PyTree, Value
from ...errors import ArgumentError, DtypeError, PytreeError, ShapeError
from ...flatten_util import ravel_pytree
from ...frontend.arguments import flatten_values, name_of
from ...frontend.pytree import LEAF, tree_structure
from ...lax.equations.solution import SolutionSpec


class Vector:
    """An initial guess, a tree of real arrays, as a vector.

    Attributes
    ----------
    name : str
        The solver, for messages.
    flat : array, shape (n,)
    unravel : callable
        From a vector to the tree.
    is_tree : bool
        Whether it is more than one array.
    """

    def __init__(self, name: str, x0: Value):
        self.name = name
        guess = fnp.asarray(x0) if isinstance(x0, list | tuple) and not is_tree(x0) else x0
        spec, values = SolutionSpec.of(name, "x0", guess)
        if any(is_complex(a.dtype) for a in spec.avals):
            raise DtypeError(f"{name}: x0 must be real; split complex numbers into real and imaginary parts")
        self.tree = spec.tree
        self.flat, self.unravel = ravel_pytree(spec.filled(values))
        self.is_tree = self.tree != LEAF

    def filled(self, x: Value) -> Array:
        """The tree with the elements of a vector."""
        return self.unravel(fnp.asarray(x))

    def raveled(self, tree: PyTree, what: str) -> np.ndarray:
        """A tree of this structure as a vector of numbers; it also accepts a vector."""
        if self.is_tree and tree_structure(tree) != self.tree:
            raise PytreeError(
                f"{self.name}: {what} must be a tree like x0, {self.tree}, got {tree_structure(tree)}"
            )
        vector = np.array(ravel_pytree(tree)[0] if self.is_tree else np.ravel(tree), float)
        if vector.shape != self.flat.shape:
            raise ShapeError(f"{self.name}: {what} has {vector.size} elements, where x0 has {self.flat.size}")
        return vector

    def rows_of(self, fun: Callable[..., PyTree]) -> Callable[..., Any]:
        """A function of the tree and further arguments as one of the vector, whose result is a vector."""
        return lambda v, *args: vector(self.name, fun, fun(self.filled(v), *args))

    def function(self, fun: Any) -> Any:
        """The same for a function whose result is a matrix; what is not callable stays."""
        return (lambda v, *args: fun(self.filled(v), *args)) if callable(fun) else fun

    def bounds(self, bounds: ArrayLike, single: Any) -> PyTree:
        """Bounds in SciPy's form: a pair of trees becomes one of vectors."""
        if not (self.is_tree and isinstance(bounds, tuple) and len(bounds) == 2):
            return bounds
        full = np.ones(self.flat.size)
        return single(*[full * b if _is_number(b) else self.raveled(b, "a bound") for b in bounds])

    def called_back(self, own: Callable[..., Any] | None) -> Callable[..., Any] | None:
        """The user's callback, with a tree for the vector; SciPy looks at the name of its argument."""
        if own is None:
            return None
        if set(inspect.signature(own).parameters) != {"intermediate_result"}:
            return lambda v, *state: own(self.filled(v), *state)

        def with_result(intermediate_result: Any) -> Any:
            result = type(intermediate_result)(intermediate_result)
            result["x"] = self.filled(result["x"])
            return own(intermediate_result=result)

        return with_result


def is_tree(x: ArrayLike) -> bool:
    """Whether a guess is a tree, and no array; a list or tuple of numbers is an array, as for SciPy."""
    if isinstance(x, list | tuple):
        return not x or not all(map(_is_number, x))
    return tree_structure(x) != LEAF


def _is_number(x: ArrayLike) -> bool:
    if isinstance(x, Tracer | np.ndarray):
        return not x.shape
    return isinstance(x, int | float | np.number)


def scalar(name: str, fun: Callable[..., PyTree], value: ArrayLike) -> Value:
    """The result of an objective, which must be one real number."""
    leaves, tree = flatten_values(value, lambda path: f"{name}: the result of {name_of(fun)}")
    aval = aval_of(leaves[0]) if tree == LEAF else None
    if aval is None or aval.size != 1 or is_complex(aval.dtype):
        got = shown(value) if aval is None else f"a value of type {aval}"
        raise ArgumentError(
            f"{name}: fun ({name_of(fun)}) must return a real number, but returned {got}", last_line(fun)
        )
    return fnp.asarray(leaves[0]).reshape(())


def vector(name: str, fun: Callable[..., PyTree], value: ArrayLike) -> Array:
    """The result of a function of residuals: the elements of a tree of real arrays."""
    leaves, _ = flatten_values(value, lambda path: f"{name}: the result of {name_of(fun)}")
    if any(is_complex(aval_of(x).dtype) for x in leaves):
        raise DtypeError(
            f"{name}: fun ({name_of(fun)}) must return real numbers; return real and imaginary parts",
            last_line(fun),
        )
    return ravel_pytree(leaves)[0]
