"""What rules get for an argument when they ask for symbolic zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.aval import Zero, aval_of
from ..core.checked import checked
from ..core.errors import ArgumentError
from ..core.pytree import PyTree, tree_map
from ..primitives.linear import zeros
from ..transforms.values import given, value_of


@dataclass(frozen=True, eq=False)
class CustomVJPPrimal:
    """An argument as ``fwd`` gets it with ``symbolic_zeros=True``.

    Attributes
    ----------
    value : array
    perturbed : bool
        Whether it is being differentiated. Where it is not, its gradient is never used, and may be None.

    Examples
    --------
    >>> import functrans as ft
    >>> @ft.custom_vjp
    ... def product(x, y):
    ...     return x * y
    >>> def fwd(x, y):  # keeps only what will be needed
    ...     return x.value * y.value, (x.value if y.perturbed else None, y.value if x.perturbed else None)
    >>> def bwd(kept, ct):
    ...     x, y = kept
    ...     return (None if y is None else ct * y), (None if x is None else ct * x)
    >>> product.defvjp(fwd, bwd, symbolic_zeros=True)
    >>> ft.grad(product)(2.0, 3.0)
    Array(3.)
    """

    value: Any
    perturbed: bool


@checked
def custom_vjp_primal_tree_values(tree: PyTree) -> PyTree:
    """The values in a tree of `CustomVJPPrimal`.

    Parameters
    ----------
    tree : tree of CustomVJPPrimal

    Returns
    -------
    tree of arrays, of the same structure

    Raises
    ------
    ArgumentError
        If a leaf is none.

    Examples
    --------
    >>> from functrans.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
    >>> custom_vjp_primal_tree_values({"x": CustomVJPPrimal(2.0, perturbed=True)})
    {'x': 2.0}
    """

    def value(leaf: Any) -> Any:
        if not isinstance(leaf, CustomVJPPrimal):
            raise ArgumentError(
                f"custom_vjp_primal_tree_values: want a tree of CustomVJPPrimal, got {str(leaf)[:60]!r} of type "
                f"{type(leaf).__name__} in it. A fwd rule gets them with defvjp(..., symbolic_zeros=True)"
            )
        return leaf.value

    return tree_map(value, tree)


@checked
def zero_from_primal(x: Any, symbolic_zeros: bool = False) -> Any:
    """The zero that is the tangent of a value.

    Parameters
    ----------
    x : array
    symbolic_zeros : bool
        Whether to return a `SymbolicZero`, which rules with ``symbolic_zeros=True`` may return.

    Returns
    -------
    array of zeros of the shape and dtype of `x`, or SymbolicZero

    Examples
    --------
    >>> from functrans.custom_derivatives import zero_from_primal
    >>> zero_from_primal([1.0, 2.0][0]), zero_from_primal(2.0, symbolic_zeros=True)
    (Array(0.), Zero(f64[]))
    """
    aval = aval_of(value_of(x, lambda: "zero_from_primal: x")).strong()
    return Zero(aval) if symbolic_zeros else given(zeros(aval))
