"""Reductions and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.aval import aval_of
from ..core.checked import checked
from ..core.dtypes import canonical
from ..core.errors import ShapeError
from ..core.primitive import Primitive
from ..numpy.dispatch import owned
from ..primitives.axes import many_axes, one_axis
from ..primitives.elementwise.arithmetic import convert
from ..primitives.operands import finish
from ..primitives.products.dot import dot_general_p
from ..primitives.reductions import reduce
from ..primitives.structure.linear import reduce_sum_p, shape_of
from .arrays import ints, single

__all__ = [
    "argmax", "argmin", "batch_matmul", "dot", "dot_general", "reduce_and", "reduce_max", "reduce_min",
    "reduce_or", "reduce_prod", "reduce_sum",
]  # fmt: skip


# --- reductions ---------------------------------------------------------------------------------------------


def _reduction(name: str, prim: Primitive, doc: str, example: str) -> Callable[..., Any]:
    def function(operand: Any, axes: Sequence[int]) -> Any:
        x = single(name, operand)
        d = many_axes(axes, len(shape_of(x)), f"lax.{name}")
        prim.abstract(aval_of(x), axes=d)
        return owned(prim.bind(x, axes=d), operand)

    function.__name__ = function.__qualname__ = name
    given = "[[True, False], [True, True]]" if name in ("reduce_and", "reduce_or") else "[[1, 2], [3, 4]]"
    function.__doc__ = f"""{doc} along some axes; the dtype stays.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.{name}(np.array({given}), (1,))
    {example}
    """
    return checked(function)


reduce_sum = _reduction("reduce_sum", reduce_sum_p, "The sum", "Array([3, 7])")
reduce_prod = _reduction("reduce_prod", reduce.reduce_prod_p, "The product", "Array([ 2, 12])")
reduce_max = _reduction("reduce_max", reduce.reduce_max_p, "The largest element", "Array([2, 4])")
reduce_min = _reduction("reduce_min", reduce.reduce_min_p, "The smallest element", "Array([1, 3])")
reduce_and = _reduction("reduce_and", reduce.reduce_and_p, "Whether all are true", "Array([False,  True])")
reduce_or = _reduction("reduce_or", reduce.reduce_or_p, "Whether any is true", "Array([ True,  True])")


@checked
def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Where the largest element stands along an axis, the first one of equal ones.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.argmax(np.array([1.0, 3.0, 3.0]), 0, np.int32)
    Array(1, dtype=int32)
    """
    return _argument("argmax", reduce.argmax_p, operand, axis, index_dtype)


@checked
def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Where the smallest element stands along an axis, the first one of equal ones.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.argmin(np.array([[1.0, 0.0], [2.0, 4.0]]), 1, int)
    Array([1, 0])
    """
    return _argument("argmin", reduce.argmin_p, operand, axis, index_dtype)


def _argument(name: str, prim: Primitive, operand: Any, axis: int, index_dtype: Any) -> Any:
    x = single(name, operand)
    d = one_axis(axis, len(shape_of(x)), f"lax.{name}")
    prim.abstract(aval_of(x), axes=(d,))
    return finish(convert(prim.bind(x, axes=(d,)), canonical(index_dtype, f"lax.{name}: index_dtype")))


# --- products -----------------------------------------------------------------------------------------------


def _product_operands(name: str, lhs: Any, rhs: Any, preferred: Any) -> tuple[Any, Any]:
    x, y = single(name, lhs), single(name, rhs)
    if preferred is not None:
        to = canonical(preferred, f"lax.{name}: preferred_element_type")
        x, y = convert(x, to), convert(y, to)
    return x, y


@checked
def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """The product summed over pairs of axes, in parallel over pairs of batch axes.

    Parameters
    ----------
    lhs, rhs : array_like
        Of one dtype.
    dimension_numbers : ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    precision
        Accepted; sums are always taken in the dtype of the result.
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
    x, y = _product_operands("dot_general", lhs, rhs, preferred_element_type)
    (a, b), (c, d) = dimension_numbers
    numbers = (
        (ints(a, "dot_general"), ints(b, "dot_general")),
        (ints(c, "dot_general"), ints(d, "dot_general")),
    )
    dot_general_p.abstract(aval_of(x), aval_of(y), dimension_numbers=numbers)
    return finish(dot_general_p.bind(x, y, dimension_numbers=numbers))


@checked
def dot(lhs: Any, rhs: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
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
        raise ShapeError(f"lax.dot: want vectors or matrices, got {n} and {m} axes; use lax.dot_general")
    return dot_general(lhs, rhs, (((n - 1,), (0,)), ((), ())), precision, preferred_element_type)


@checked
def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """The product of the matrices in the last two axes; the axes before them are equal.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    n = len(shape_of(single("batch_matmul", lhs)))
    if n < 2 or len(shape_of(single("batch_matmul", rhs))) != n:
        raise ShapeError("lax.batch_matmul: want operands with the same number of axes, at least 2")
    batch = tuple(range(n - 2))
    return dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (batch, batch)), precision)
