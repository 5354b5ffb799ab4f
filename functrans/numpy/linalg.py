"""``functrans.numpy.linalg``: what there is of NumPy's linear algebra, with derivatives."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.aval import aval_of
from ..core.config import config
from ..core.dtypes import FLOAT64, is_inexact, real_dtype
from ..core.errors import ArgumentError, ArgumentValueError, LinAlgError, NoRuleError, ShapeError
from ..primitives.axes import many_axes
from ..primitives.complexes import abs_p, conj_p, real_p
from ..primitives.create import eye
from ..primitives.elementwise import convert_element_type_p, div_p, mul_p, ne_p
from ..primitives.exp_log import integer_pow_p, pow_p, sqrt_p
from ..primitives.linalg import cholesky_p, matrix_product
from ..primitives.linalg import matrix_transpose as transposed
from ..primitives.linear import broadcast_to, reduce_sum_p, reshape_p, shape_of
from ..primitives.operands import finish, operand, strong
from ..primitives.products import matmul, vecdot
from ..primitives.reduce import reduce_max_p, reduce_min_p
from .dispatch import implements, owned
from .indexing import diagonal as diagonal_of
from .indexing import trace as trace_of
from .products import cross, dot, tensordot
from .products import outer as outer_of
from .shaping import matrix_transpose

__all__ = [
    "LinAlgError", "cholesky", "cross", "diagonal", "matmul", "matrix_norm", "matrix_power",
    "matrix_transpose", "multi_dot", "norm", "outer", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def _inexact(x: Any, name: str) -> Any:
    value = operand(x, name)
    dtype = aval_of(value).dtype
    return strong(value, dtype if is_inexact(dtype) else FLOAT64)


# --- decompositions -----------------------------------------------------------------------------------------


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """The Cholesky factor of positive definite matrices.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Only one triangle is read: the lower one, or the upper one if `upper`.
    upper : bool
        Give `U` with ``a = U.T.conj() @ U`` instead of `L` with ``a = L @ L.T.conj()``.

    Returns
    -------
    Array, shape (..., n, n)

    Raises
    ------
    LinAlgError
        If a matrix is not positive definite (NaN instead under ``config.patch(linalg_errors="nan")``), or not
        square.

    Notes
    -----
    Derivatives are those of the function of the triangle that is read: the gradient in `a` is zero in the
    other triangle. Where `a` is made symmetric before, gradients in what it is made of are the usual ones.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    Array([[2., 0.],
           [1., 2.]])
    """
    x = _inexact(a, "cholesky")
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise LinAlgError(f"cholesky: the last two axes must be equal (square matrices), got shape {shape}")
    x = transposed(x, conjugate=True) if upper else x
    factor = cholesky_p.bind(x, on_error=config.linalg_errors)
    return finish(transposed(factor, conjugate=True) if upper else factor)


# --- norms --------------------------------------------------------------------------------------------------


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors or matrices.

    Parameters
    ----------
    x : array_like
    ord : {None, 'fro', inf, -inf, 1, -1} or, of vectors, any number
        None is the 2-norm of vectors and the Frobenius norm of matrices (of all elements, if `axis` is None
        too). Norms of matrices by singular values (2, -2, 'nuc') are missing.
    axis : int or pair of int, optional
        Along which vectors, or matrices, lie.
    keepdims : bool
        Leave those axes with extent 1.

    Notes
    -----
    The 2-norm has no derivative at 0: its gradient there is NaN.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.norm([3.0, 4.0])
    Array(5.)
    """
    value = _inexact(x, "norm")
    ndim = len(shape_of(value))
    if axis is None:
        axes = tuple(range(ndim))
        if ord is None:
            return finish(_kept(_two(value, axes), value, axes, keepdims))
        if ndim not in (1, 2):
            raise ArgumentValueError(
                f"norm: ord={ord!r} is for vectors and matrices, got {ndim} axes; give axis="
            )
    else:
        axes = many_axes(axis, ndim, "norm")
    if len(axes) == 1:
        return finish(_kept(_vector(value, ord, axes), value, axes, keepdims))
    if len(axes) == 2:
        return finish(_kept(_matrix(value, ord, axes), value, axes, keepdims))
    raise ArgumentValueError(f"norm: axis must be one axis or a pair, got {axis!r}")


def _kept(out: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if not keepdims:
        return out
    return reshape_p.bind(out, shape=tuple([1 if d in axes else n for d, n in enumerate(shape_of(x))]))


def _two(x: Any, axes: tuple[int, ...]) -> Any:
    if x.dtype.kind == "c":
        squares = real_p.bind(mul_p.bind(x, conj_p.bind(x)))
    else:
        squares = integer_pow_p.bind(x, y=2)
    return sqrt_p.bind(reduce_sum_p.bind(squares, axes=axes))


def _vector(x: Any, ord: Any, axes: tuple[int, ...]) -> Any:
    if ord is None or ord == 2:
        return _two(x, axes)
    if isinstance(ord, str):
        raise ArgumentValueError(f"norm: ord={ord!r} is no norm of vectors")
    size = abs_p.bind(x)
    if ord == math.inf:
        return reduce_max_p.bind(size, axes=axes)
    if ord == -math.inf:
        return reduce_min_p.bind(size, axes=axes)
    if ord == 1:
        return reduce_sum_p.bind(size, axes=axes)
    dtype = real_dtype(x.dtype)
    if ord == 0:
        nonzero = convert_element_type_p.bind(ne_p.bind(x, x.dtype.type(0)), dtype=dtype)
        return reduce_sum_p.bind(nonzero, axes=axes)
    powers = reduce_sum_p.bind(pow_p.bind(size, dtype.type(ord)), axes=axes)
    return pow_p.bind(powers, div_p.bind(dtype.type(1), dtype.type(ord)))


def _matrix(x: Any, ord: Any, axes: tuple[int, ...]) -> Any:
    if ord is None or ord == "fro":
        return _two(x, axes)
    rows, columns = axes
    if ord in (1, -1, math.inf, -math.inf):
        summed, kept = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = reduce_sum_p.bind(abs_p.bind(x), axes=(summed,))
        prim = reduce_max_p if ord > 0 else reduce_min_p
        return prim.bind(sums, axes=(kept - (summed < kept),))
    if ord in (2, -2, "nuc"):
        raise NoRuleError(
            f"norm: ord={ord!r} of matrices needs singular values, which are not there yet; use 'fro'"
        )
    raise ArgumentValueError(f"norm: ord={ord!r} is no norm of matrices")


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors, which lie along `axis` (any number of axes; all, if None).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.vector_norm([3.0, 4.0])
    Array(5.)
    """
    value = _inexact(x, "vector_norm")
    ndim = len(shape_of(value))
    axes = tuple(range(ndim)) if axis is None else many_axes(axis, ndim, "vector_norm")
    return finish(_kept(_vector(value, ord, axes), value, axes, keepdims))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two axes; see `norm`."""
    return norm(x, ord, (-2, -1), keepdims)


# --- products -----------------------------------------------------------------------------------------------


def outer(x1: Any, x2: Any, /) -> Any:
    """All products of elements of two vectors."""
    for i, x in enumerate((x1, x2)):
        if len(shape_of(operand(x, "outer", i))) != 1:
            raise ShapeError("linalg.outer: want vectors; numpy.outer flattens")
    return outer_of(x1, x2)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of the matrices in the last two axes."""
    return diagonal_of(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The traces of the matrices in the last two axes."""
    return trace_of(x, offset, -2, -1, dtype)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: None = None) -> Any:
    """The product of several matrices, in the cheapest order; the first and the last may be vectors.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.multi_dot([fnp.ones((2, 3)), fnp.ones((3, 4)), fnp.ones(4)])
    Array([12., 12.])
    """
    values = [operand(a, "multi_dot", i) for i, a in enumerate(arrays)]
    if len(values) < 2:
        raise ArgumentValueError(f"multi_dot: want at least 2 arrays, got {len(values)}")
    sizes = [shape_of(v)[0] if len(shape_of(v)) > 1 else 1 for v in values[:1]]
    sizes += [shape_of(v)[0] for v in values[1:]]
    sizes.append(shape_of(values[-1])[1] if len(shape_of(values[-1])) > 1 else 1)
    order = _cheapest(tuple(sizes))
    return _product(values, order, 0, len(values) - 1)


def _cheapest(sizes: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Where to split each run of factors so that the multiplications are fewest."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = {
                s: cost[i, s] + cost[s + 1, j] + sizes[i] * sizes[s + 1] * sizes[j + 1] for s in range(i, j)
            }
            split[i, j] = min(options, key=options.__getitem__)
            cost[i, j] = options[split[i, j]]
    return split


def _product(values: list[Any], split: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return values[i]
    s = split[i, j]
    return dot(_product(values, split, i, s), _product(values, split, s + 1, j))


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """Square matrices multiplied with themselves, `n` times in all.

    Parameters
    ----------
    a : array_like, shape (..., k, k)
    n : int
        Not negative.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.matrix_power([[1, 1], [0, 1]], 5)
    Array([[1, 5],
           [0, 1]])
    """
    value = operand(a, "matrix_power")
    value = strong(value, aval_of(value).dtype)
    shape = shape_of(value)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise LinAlgError(
            f"matrix_power: the last two axes must be equal (square matrices), got shape {shape}"
        )
    exponent = operator.index(n)
    if exponent < 0:
        raise ArgumentError(
            f"matrix_power: negative powers need an inverse, which is not there yet; got n={n}"
        )
    if exponent == 0:
        return finish(broadcast_to(eye(shape[-1], shape[-1], 0, value.dtype), shape))
    out = None
    while exponent:
        if exponent & 1:
            out = value if out is None else matrix_product(out, value)
        exponent >>= 1
        if exponent:
            value = matrix_product(value, value)
    return owned(out, a)
