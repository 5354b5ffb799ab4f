"""``custom_gradient``: a function that returns its own reverse rule with its result."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..core.aval import aval_of
from ..core.errors import FunctionDefinitionError
from ..core.source import last_line
from ..frontend.arguments import flatten_values, name_of
from ..frontend.checked import checked
from ..frontend.pytree import PyTree, PyTreeDef, tree_structure, tree_unflatten
from ..frontend.pytree.nodes import keystr
from .closures import Staged
from .custom_function import CustomFunction
from .jax_call import described

__all__ = ["custom_gradient"]


class _GradientFunction(CustomFunction):
    """A `custom_vjp` of which both rules come from one function."""

    _front = "custom_gradient"
    _transient = frozenset(("_declared",))

    def __init__(self, fun: Callable[..., Any]):
        super().__init__(fun)
        self._made = self._declared
        self._arrived()

    def _arrived(self) -> None:
        fun = self._made.fun

        @functools.wraps(fun, updated=())
        def value(*args: Any) -> Any:
            return self._called(fun, args)[0]

        @functools.wraps(fun, updated=())
        def fwd(*args: Any) -> Any:
            out, pull = self._called(fun, args)
            leaves, tree = flatten_values(out, lambda path: f"the result of {name_of(fun)}{keystr(path)}")
            staged, captured = Staged.of(pull, [aval_of(x).strong() for x in leaves], _one(tree))
            return out, (staged, len(args), captured)

        @functools.wraps(fun, updated=())
        def bwd(residuals: tuple[Staged, int, list[Any]], cotangent: PyTree) -> Any:
            staged, count, captured = residuals
            leaves = flatten_values(cotangent, lambda path: f"the cotangent{keystr(path)}")[0]
            gradients = staged(captured, leaves)
            return (gradients,) if count == 1 and not isinstance(gradients, tuple | list) else gradients

        bwd.__name__ = f"vjp of {name_of(fun)}"
        self._declared = replace(self._made, fun=value, fwd=fwd, bwd=bwd)

    def _called(self, fun: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any]:
        """The result and the reverse rule."""
        pair = fun(*args)
        if isinstance(pair, tuple | list) and len(pair) == 2 and callable(pair[1]):
            return pair[0], pair[1]
        raise FunctionDefinitionError(
            f"{self._positions.where}: the function must return a pair (result, vjp) with a function vjp from "
            f"the cotangent of the result to a tuple of gradients of the arguments, but returned {described(pair)}",
            last_line(fun),
        )


def _one(tree: PyTreeDef) -> PyTreeDef:
    """The structure of a tuple with one tree in it."""
    return tree_structure((tree_unflatten(tree, range(tree.num_leaves)),))


@checked
def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose reverse mode is the rule that it returns with its result: a decorator.

    Parameters
    ----------
    fun : callable
        Of arrays and trees of arrays. It returns a pair ``(result, vjp)``: ``vjp(cotangent)`` takes a cotangent of the
        structure of the result and returns a tuple with a gradient for each argument; for one argument the gradient
        alone will do. None stands for a zero of any part.

    Returns
    -------
    callable
        Returns the result alone.

    Raises
    ------
    FunctionDefinitionError
        When called: `fun` returned no such pair, or arguments do not fit its signature.
    GradientCountError, GradientStructureError, GradientShapeError, GradientDtypeError, BackwardError
        When differentiated: ``vjp`` did not return a gradient of the structure and shapes of each argument.

    Notes
    -----
    ``vjp`` may read what `fun` computed; it is traced where the function is differentiated, and what it read is kept.
    So values inside are known by shape and dtype only, as under `jit`. Otherwise as `custom_vjp`: forward mode
    transposes ``vjp``; derivatives of higher order differentiate `fun` and ``vjp``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> @ft.custom_gradient
    ... def log1pexp(x):
    ...     e = fnp.exp(-x)
    ...     return x + fnp.log1p(e), lambda ct: ct / (1.0 + e)
    >>> log1pexp(100.0), ft.grad(log1pexp)(100.0)
    (Array(100.), Array(1.))
    >>> ft.vmap(ft.grad(log1pexp))(fnp.zeros(2))
    Array([0.5, 0.5])
    """
    return _GradientFunction(fun)
