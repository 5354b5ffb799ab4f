"""Reductions, products, and cumulative sums, products and extrema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..arrays.array import Array
from ..core import DtypeError, Primitive, ShapeError, aval_of, canonical, promote
from ..core.values import ArrayLike, DTypeLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand, owned
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, many_axes, one_axis, shape_of
from .arrays import ints, single

__all__ = [
    "argmax", "argmin", "batch_matmul", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "dot",
    "dot_general", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum",
]  # fmt: skip


# --- reductions ---------------------------------------------------------------------------------------------


def _reduction(name: str, prim: Primitive, doc: str, example: str) -> Callable[..., Any]:
    def function(operand: Value, axes: Sequence[int]) -> Value:
        x = single(name, operand)
        d = many_axes(axes, len(shape_of(x)), f"lax.{name}")
        prim.abstract(aval_of(x), axes=d)
        return owned(prim.bind(x, axes=d), operand)

    function.__name__ = function.__qualname__ = name
    given = "[[True, False], [True, True]]" if name in ("reduce_and", "reduce_or") else "[[1, 2], [3, 4]]"
    function.__doc__ = f"""{doc} along some axes; the dtype does not change.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.{name}(np.array({given}), (1,))
    {example}
    """
    return checked(function)


reduce_sum = _reduction("reduce_sum", ops.reduce_sum_p, "The sum", "Array([3, 7])")
reduce_prod = _reduction("reduce_prod", ops.reduce_prod_p, "The product", "Array([ 2, 12])")
reduce_max = _reduction("reduce_max", ops.reduce_max_p, "The largest element", "Array([2, 4])")
reduce_min = _reduction("reduce_min", ops.reduce_min_p, "The smallest element", "Array([1, 3])")
reduce_and = _reduction(
    "reduce_and", ops.reduce_and_p, "Whether all elements are true", "Array([False,  True])"
)
reduce_or = _reduction("reduce_or", ops.reduce_or_p, "Whether any element is true", "Array([ True,  True])")


@checked
def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Any:
    """The index of the largest element along an axis; of equal ones, the first.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.argmax(np.array([1.0, 3.0, 3.0]), 0, np.int32)
    Array(1, dtype=int32)
    """
    return _argument("argmax", ops.argmax_p, operand, axis, index_dtype)


@checked
def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Any:
    """The index of the smallest element along an axis; of equal ones, the first.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.argmin(np.array([[1.0, 0.0], [2.0, 4.0]]), 1, int)
    Array([1, 0])
    """
    return _argument("argmin", ops.argmin_p, operand, axis, index_dtype)


def _argument(name: str, prim: Primitive, operand: Value, axis: int, index_dtype: DTypeLike) -> Value:
    x = single(name, operand)
    d = one_axis(axis, len(shape_of(x)), f"lax.{name}")
    prim.abstract(aval_of(x), axes=(d,))
    dtype = canonical(index_dtype, f"lax.{name}: index_dtype")
    if dtype.kind not in "iu":
        raise DtypeError(f"lax.{name}: index_dtype must be an integer dtype, got {dtype}")
    return finish(ops.convert(prim.bind(x, axes=(d,)), dtype))


# --- products -----------------------------------------------------------------------------------------------


def product_operands(name: str, lhs: Value, rhs: Value, preferred: Any) -> tuple[Value, Value]:
    x, y = single(name, lhs), single(name, rhs)
    if preferred is not None:
        to = canonical(preferred, f"lax.{name}: preferred_element_type")
    else:
        to, _ = promote([(dtype_of(x), False), (dtype_of(y), False)])
    return ops.convert(x, to), ops.convert(y, to)


@checked
def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: ArrayLike,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """Multiply arrays and sum over pairs of axes, for each index of pairs of batch axes.

    Parameters
    ----------
    lhs, rhs : array_like
        Different dtypes are promoted.
    dimension_numbers : ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    precision
        Accepted, without effect; sums are always computed in the dtype of the result.
    preferred_element_type : dtype-like, optional
        The dtype to compute in.

    Returns
    -------
    Array
        Axes: batch, free axes of `lhs`, free axes of `rhs`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> x, y = np.ones((5, 2, 3)), np.ones((5, 3, 4))
    >>> lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape  # a matrix product for each of 5
    (5, 2, 4)
    """
    x, y = product_operands("dot_general", lhs, rhs, preferred_element_type)
    (a, b), (c, d) = dimension_numbers
    numbers = (
        (ints(a, "dot_general"), ints(b, "dot_general")),
        (ints(c, "dot_general"), ints(d, "dot_general")),
    )
    ops.dot_general_p.abstract(aval_of(x), aval_of(y), dimension_numbers=numbers)
    return finish(ops.dot_general_p.bind(x, y, dimension_numbers=numbers))


@checked
def dot(
    lhs: ArrayLike, rhs: ArrayLike, precision: Any = None, preferred_element_type: DTypeLike = None
) -> Any:
    """The product of vectors and matrices.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dot(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
    Array([3., 7.])
    """
    n, m = len(shape_of(single("dot", lhs))), len(shape_of(single("dot", rhs)))
    if not (1 <= n <= 2 and 1 <= m <= 2):
        raise ShapeError(f"lax.dot: expected vectors or matrices, got {n} and {m} axes; use lax.dot_general")
    return dot_general(lhs, rhs, (((n - 1,), (0,)), ((), ())), precision, preferred_element_type)


@checked
def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: Any = None) -> Array:
    """Multiply the matrices in the last two axes; the axes before them must be equal.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    n = len(shape_of(single("batch_matmul", lhs)))
    if n < 2 or len(shape_of(single("batch_matmul", rhs))) != n:
        raise ShapeError("lax.batch_matmul: expected operands with the same number of axes, at least 2")
    batch = tuple(range(n - 2))
    return dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (batch, batch)), precision)


def _function(name: str, prim: Primitive, doc: str, notes: str, example: str) -> Callable[..., Any]:
    def function(operand: Value, axis: int = 0, reverse: bool = False) -> Value:
        x = array_operand(operand, f"lax.{name}")
        d = one_axis(axis, len(shape_of(x)), f"lax.{name}")
        prim.abstract(aval_of(x), axis=d, reverse=bool(reverse))
        return finish(prim.bind(x, axis=d, reverse=bool(reverse)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doc} along one axis; the dtype does not change.

    Parameters
    ----------
    operand : array_like
    axis : int
    reverse : bool
        Whether to start at the end of the axis.

    Returns
    -------
    Array
        The shape and dtype of `operand`.

    Raises
    ------
    AxisError
        If the axis is out of bounds.
    DtypeError
        If the dtype is not supported.

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
    ops.cumsum_p,
    "Cumulative sums",
    "Linear; the transpose sums from the other end.",
    "lax.cumsum([1, 2, 3], reverse=True)\n    Array([6, 5, 3])",
)
cumprod = _function(
    "cumprod",
    ops.cumprod_p,
    "Cumulative products",
    "The derivative never divides: it is correct if elements are 0, to any order.",
    "lax.cumprod([1, 2, 3])\n    Array([1, 2, 6])",
)
cummax = _function(
    "cummax",
    ops.cummax_p,
    "Cumulative maxima (NaN propagates)",
    "The derivative is that of repeated ``max``: an element equal to the largest before it gets half.",
    "lax.cummax([1, 3, 2])\n    Array([1, 3, 3])",
)
cummin = _function(
    "cummin",
    ops.cummin_p,
    "Cumulative minima (NaN propagates)",
    "The derivative is that of repeated ``min``: an element equal to the smallest before it gets half.",
    "lax.cummin([3, 1, 2])\n    Array([3, 1, 1])",
)
cumlogsumexp = _function(
    "cumlogsumexp",
    ops.cumlogsumexp_p,
    "Logarithms of cumulative sums of exponentials",
    "Repeated ``logaddexp``: it does not overflow or lose small numbers, and -inf adds nothing.",
    "lax.cumlogsumexp([0.0, 0.0]).round(4)\n    Array([0.    , 0.6931])",
)
