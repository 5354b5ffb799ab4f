"""Norms and condition numbers; Cholesky and QR factors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import ArgumentValueError, aval_of, default_float, is_inexact, promote, real_dtype
from ...core.values import ArrayLike, AxisLike, Value
from ...primitives import ops
from ...primitives.ops import axes_or_all, finish, many_axes, operand, shape_of, strong
from ...runtime.config import config
from ...runtime.records import NamedTuple
from ..dispatch import implements


def inexact(x: Value, name: str, position: int = 0) -> Value:
    """Convert an argument to a floating-point or complex dtype: integers become float64."""
    value = operand(x, name, position)
    dtype = aval_of(value).dtype
    return strong(value, dtype if is_inexact(dtype) else default_float())


def all_inexact(name: str, *given: Any) -> list[Value]:
    """Convert arguments to one floating-point or complex dtype."""
    values = [inexact(x, name, i) for i, x in enumerate(given)]
    dtype, _ = promote([(aval_of(v).dtype, False) for v in values])
    return [strong(v, dtype) for v in values]


@implements(np.linalg.norm)
def norm(x: ArrayLike, ord: Any = None, axis: AxisLike = None, keepdims: bool = False) -> Value:
    """The norm of vectors or matrices.

    Parameters
    ----------
    x : array_like
    ord : {None, 'fro', 'nuc', inf, -inf, 1, -1, 2, -2} or, for vectors, any number
        None is the 2-norm of vectors and the Frobenius norm of matrices (of all elements, if `axis` is None, too). For
        matrices, 2, -2 and 'nuc' are the largest singular value, the smallest, and the sum of all.
    axis : int or pair of int, optional
        The axis of the vectors, or the two axes of the matrices.
    keepdims : bool
        Whether to keep those axes with extent 1.

    Notes
    -----
    The 2-norm has no derivative at 0: its gradient there is NaN.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.norm([3.0, 4.0])
    Array(5.)
    """
    value = inexact(x, "norm")
    ndim = len(shape_of(value))
    if axis is None:
        axes = tuple(range(ndim))
        if ord is None:
            return finish(_keep_dims(_two(value, axes), value, axes, keepdims))
        if ndim not in (1, 2):
            raise ArgumentValueError(
                f"norm: ord={ord!r} requires a vector or a matrix, got {ndim} axes; pass axis="
            )
    else:
        axes = many_axes(axis, ndim, "norm")
    if len(axes) == 1:
        return finish(_keep_dims(_vector(value, ord, axes), value, axes, keepdims))
    if len(axes) == 2:
        return finish(_keep_dims(_matrix(value, ord, axes), value, axes, keepdims))
    raise ArgumentValueError(f"norm: axis must be one axis or a pair, got {axis!r}")


def _keep_dims(out: Value, x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    if not keepdims:
        return out
    return ops.reshape_p.bind(out, shape=tuple([1 if d in axes else n for d, n in enumerate(shape_of(x))]))


def _two(x: Value, axes: tuple[int, ...]) -> Value:
    if x.dtype.kind == "c":
        squares = ops.real_p.bind(ops.mul_p.bind(x, ops.conj_p.bind(x)))
    else:
        squares = ops.integer_pow_p.bind(x, y=2)
    return ops.sqrt_p.bind(ops.reduce_sum_p.bind(squares, axes=axes))


def _vector(x: Value, ord: ArrayLike, axes: tuple[int, ...]) -> Value:
    if ord is None or ord == 2:
        return _two(x, axes)
    if isinstance(ord, str):
        raise ArgumentValueError(f"norm: ord={ord!r} is not a vector norm")
    size = ops.abs_p.bind(x)
    if ord == math.inf:
        return ops.reduce_max_p.bind(size, axes=axes)
    if ord == -math.inf:
        return ops.reduce_min_p.bind(size, axes=axes)
    if ord == 1:
        return ops.reduce_sum_p.bind(size, axes=axes)
    dtype = real_dtype(x.dtype)
    if ord == 0:
        nonzero = ops.convert_element_type_p.bind(ops.ne_p.bind(x, x.dtype.type(0)), dtype=dtype)
        return ops.reduce_sum_p.bind(nonzero, axes=axes)
    powers = ops.reduce_sum_p.bind(ops.pow_p.bind(size, dtype.type(ord)), axes=axes)
    return ops.pow_p.bind(powers, ops.div_p.bind(dtype.type(1), dtype.type(ord)))


def _matrix(x: Value, ord: Any, axes: tuple[int, ...]) -> Value:
    if ord in (None, "fro", "f"):
        return _two(x, axes)
    rows, columns = axes
    if ord in (1, -1, math.inf, -math.inf):
        summed, extremal = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = ops.reduce_sum_p.bind(ops.abs_p.bind(x), axes=(summed,))
        return _extremum(sums, extremal - (summed < extremal), ord > 0)
    if ord in (2, -2, "nuc"):
        return _spectral(x, ord, axes)
    raise ArgumentValueError(f"norm: ord={ord!r} is not a matrix norm")


def _spectral(x: Value, ord: Any, axes: tuple[int, ...]) -> Value:
    """The largest (2) or smallest (-2) singular value, or their sum ('nuc')."""
    others = tuple([d for d in range(len(shape_of(x))) if d not in axes])
    x = ops.transpose_p.bind(x, permutation=(*others, *axes))
    (s,) = ops.svd_p.bind(x, full_matrices=False, vectors=False, on_error=config.linalg_errors)
    if ord == "nuc":
        return ops.reduce_sum_p.bind(s, axes=(len(others),))
    return _extremum(s, len(others), ord == 2)


def _extremum(x: Value, axis: int, largest: bool) -> Value:
    """The largest (0 if empty) or smallest of nonnegative numbers."""
    if largest:
        return (ops.reduce_max_p if shape_of(x)[axis] else ops.reduce_sum_p).bind(x, axes=(axis,))
    return ops.reduce_min_p.bind(x, axes=(axis,))


@implements(np.linalg.vector_norm)
def vector_norm(x: ArrayLike, /, *, axis: AxisLike = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors along `axis` (any number of axes; None means all).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.vector_norm([3.0, 4.0])
    Array(5.)
    """
    value = inexact(x, "vector_norm")
    ndim = len(shape_of(value))
    axes = axes_or_all(axis, ndim, "vector_norm")
    return finish(_keep_dims(_vector(value, ord, axes), value, axes, keepdims))


@implements(np.linalg.matrix_norm)
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two axes; see `norm`.

    Examples
    --------
    >>> from functrans.lax import linalg
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]])
    Array(5.)
    """
    return norm(x, ord, (-2, -1), keepdims)


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Any
    R: Any


@implements(np.linalg.cholesky)
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = False) -> Array:
    """The Cholesky factor of positive definite matrices.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Only one triangle is read: the lower one, or the upper one if `upper`.
    upper : bool
        Whether to return `U` with ``a = U.T.conj() @ U`` instead of `L` with ``a = L @ L.T.conj()``.
    symmetrize_input : bool
        Whether to factor ``(a + a.T.conj()) / 2``, so that the gradient is symmetric.

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
    Derivatives are those of the function of the triangle that is read: the gradient in `a` is zero in the other
    triangle. If you symmetrize `a` first, gradients in its inputs are the usual ones.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    Array([[2., 0.],
           [1., 2.]])
    """
    x = inexact(a, "cholesky")
    ops.check_square("cholesky", x)
    x = ops.symmetrized(x) if symmetrize_input else x
    x = ops.matrix_transpose(x, conjugate=True) if upper else x
    factor = ops.cholesky_p.bind(x, on_error=config.linalg_errors)
    return finish(ops.matrix_transpose(factor, conjugate=True) if upper else factor)


@implements(np.linalg.qr)
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """QR factorization ``a = Q @ R``: Q has orthonormal columns, R is upper triangular.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    mode : {'reduced', 'complete', 'r', 'raw'}
        With ``k = min(m, n)``: 'reduced' returns Q of shape (..., m, k) and R of shape (..., k, n); 'complete' Q of
        shape (..., m, m) and R of shape (..., m, n); 'r' only R, of shape (..., k, n); 'raw' LAPACK's reflections
        ``(h, tau)``, with `h` transposed, of shape (..., n, m), and `tau` of shape (..., k).

    Returns
    -------
    QRResult, or Array, or tuple

    Raises
    ------
    LinAlgError
        If `a` has fewer than two axes.

    Notes
    -----
    Signs are LAPACK's (geqrf): the diagonal of R may be negative. Derivatives exist if the first k columns
    are linearly independent (else they are infinite or NaN), in all modes, also for wide matrices. With
    ``C = Q^H a' R^-1``, ``R' = (C - W) R``, where W is the skew matrix that has the lower triangle of C.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> q, r = fnp.linalg.qr([[3.0, 1.0], [4.0, 2.0]])
    >>> r
    Array([[-5. , -2.2],
           [ 0. ,  0.4]])
    """
    x = inexact(a, "qr")
    ops.check_matrix("qr", x)
    if mode == "raw":
        h, taus = ops.geqrf_p.bind(x)
        return finish(ops.matrix_transpose(h)), finish(taus)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentValueError(f"qr: mode must be 'reduced', 'complete', 'r' or 'raw', got {mode!r}")
    if mode == "r":
        return finish(ops.qr_triangle_p.bind(x))
    q, r = ops.qr_p.bind(x, full=mode == "complete")
    return QRResult(finish(q), finish(r))
