"""Running sums, products, extrema and logsumexp; the dtype stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.aval import aval_of
from ..core.checked import checked
from ..core.primitive import Primitive
from ..numpy.dispatch import array_operand
from ..primitives.axes import one_axis
from ..primitives.operands import finish
from ..primitives.reductions import cumulative
from ..primitives.structure.linear import shape_of

__all__ = ["cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum"]


def _function(name: str, prim: Primitive, doc: str, notes: str, example: str) -> Callable[..., Any]:
    def function(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
        x = array_operand(operand, f"lax.{name}")
        d = one_axis(axis, len(shape_of(x)), f"lax.{name}")
        prim.abstract(aval_of(x), axis=d, reverse=bool(reverse))
        return finish(prim.bind(x, axis=d, reverse=bool(reverse)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doc} along one axis; the dtype stays.

    Parameters
    ----------
    operand : array_like
    axis : int
    reverse : bool
        Begin at the end of the axis.

    Returns
    -------
    Array
        The shape and dtype of `operand`.

    Raises
    ------
    AxisError
        If there is no such axis.
    DtypeError
        If the dtype is not taken.

    Notes
    -----
    {notes}

    Examples
    --------
    >>> from functrans import lax
    >>> {example}
    """
    return checked(function)


cumsum = _function(
    "cumsum",
    cumulative.cumsum_p,
    "Sums of the elements up to each one",
    "Linear; its transpose begins at the other end.",
    "lax.cumsum([1, 2, 3], reverse=True)\n    Array([6, 5, 3])",
)
cumprod = _function(
    "cumprod",
    cumulative.cumprod_p,
    "Products of the elements up to each one",
    "The derivative divides by nothing, and is right where elements are 0, to any order.",
    "lax.cumprod([1, 2, 3])\n    Array([1, 2, 6])",
)
cummax = _function(
    "cummax",
    cumulative.cummax_p,
    "The largest of the elements up to each one (NaN wins)",
    "The derivative is that of repeated ``max``: an element equal to the largest before it takes half.",
    "lax.cummax([1, 3, 2])\n    Array([1, 3, 3])",
)
cummin = _function(
    "cummin",
    cumulative.cummin_p,
    "The smallest of the elements up to each one (NaN wins)",
    "The derivative is that of repeated ``min``: an element equal to the smallest before it takes half.",
    "lax.cummin([3, 1, 2])\n    Array([3, 1, 1])",
)
cumlogsumexp = _function(
    "cumlogsumexp",
    cumulative.cumlogsumexp_p,
    "The logarithm of the sum of exponentials of the elements up to each one",
    "``logaddexp`` repeated: neither overflows nor loses small numbers, and -inf stands for nothing.",
    "lax.cumlogsumexp([0.0, 0.0]).round(4)\n    Array([0.    , 0.6931])",
)
