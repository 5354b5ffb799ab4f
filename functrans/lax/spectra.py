"""Eigenvalues and singular values under JAX's names."""

from __future__ import annotations

import enum
from typing import Any

from ..arrays.array import Array
from ..core.values import ArrayLike, Value
from ..errors import ArgumentValueError
from ..frontend.checked import checked
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, literal, shape_of
from ..runtime.config import config
from .elementwise import operands


class EigImplementation(enum.Enum):
    """JAX's names of routines for `eig`; the result does not depend on it."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """JAX's names of algorithms for `eigh`; the result does not depend on it."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """JAX's names of algorithms for `svd`; the result does not depend on it."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


@checked
def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> tuple[Value, Value]:
    """Eigenvectors and eigenvalues (**in this order**) of symmetric or Hermitian matrices.

    Parameters
    ----------
    x : array_like, shape (..., n, n)
        float32, float64, complex64 or complex128.
    lower : bool
        Whether to read the lower triangle, if not `symmetrize_input`.
    symmetrize_input : bool
        Whether to decompose ``(x + x.T.conj()) / 2``, so that the gradient is symmetric, too.
    sort_eigenvalues : bool
        Accepted, without effect; eigenvalues are always ascending.
    subset_by_index : pair of int, optional
        Return only those from the first index up to but not including the second.

    Returns
    -------
    v : Array, shape (..., n, n)
        Orthonormal columns.
    w : Array, shape (..., n)

    Raises
    ------
    LinAlgError
        If the iteration does not converge (NaN instead under ``config.patch(linalg_errors="nan")``).

    Notes
    -----
    For derivatives see `functrans.numpy.linalg.eigh`.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> v, w = ft.lax.linalg.eigh(fnp.asarray([[2.0, 1.0], [1.0, 2.0]]))
    >>> w
    Array([1., 3.])
    """
    (a,) = operands("linalg.eigh", x)
    a = ops.symmetrized(a) if symmetrize_input else a
    count = shape_of(a)[-1]
    first, last = _range("eigh", subset_by_index, count)
    columns = None if (first, last) == (0, count) else (first, last)
    w, v = ops.eigh_p.bind(a, lower=lower, vectors=True, on_error=config.linalg_errors, columns=columns)
    return finish(v), finish(_part(w, first, last))


def _range(name: str, subset: tuple[int, int] | None, count: int) -> tuple[int, int]:
    first, last = (0, count) if subset is None else subset
    if not 0 <= first <= last <= count:
        raise ArgumentValueError(
            f"linalg.{name}: subset_by_index={subset} is not a range within 0 to {count}"
        )
    return first, last


def _part(x: Value, first: int, last: int, axis: int = -1) -> Value:
    shape = shape_of(x)
    axis %= len(shape)
    if (first, last) == (0, shape[axis]):
        return x
    start, stop = [0] * len(shape), list(shape)
    start[axis], stop[axis] = first, last
    return ops.slice_p.bind(
        x, start_indices=tuple(start), limit_indices=tuple(stop), strides=(1,) * len(shape)
    )


@checked
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Singular value decomposition: ``x = (u * s) @ vh``.

    Parameters
    ----------
    x : array_like, shape (..., m, n)
        float32, float64, complex64 or complex128.
    full_matrices : bool
        Whether to make `u` and `vh` square.
    compute_uv : bool
        Whether to compute `u` and `vh`, or only the singular values.
    subset_by_index : pair of int, optional
        Return only those from the first index up to but not including the second, with their vectors; requires
        ``full_matrices=False``.

    Returns
    -------
    u : Array, shape (..., m, m) or (..., m, k)
    s : Array, shape (..., k)
        Descending. The only result, if not `compute_uv`.
    vh : Array, shape (..., n, n) or (..., k, n)

    Raises
    ------
    LinAlgError
        If the iteration does not converge (NaN instead under ``config.patch(linalg_errors="nan")``).

    Notes
    -----
    For derivatives see `functrans.numpy.linalg.svd`.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.lax.linalg.svd(fnp.asarray([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.])
    """
    (a,) = operands("linalg.svd", x)
    outs = ops.svd_p.bind(
        a, full_matrices=full_matrices and compute_uv, vectors=compute_uv, on_error=config.linalg_errors
    )
    s = outs[len(outs) // 2]
    first, last = _range("svd", subset_by_index, shape_of(s)[-1])
    s = finish(_part(s, first, last))
    if not compute_uv:
        return s
    if subset_by_index is None:
        return finish(outs[0]), s, finish(outs[2])
    if full_matrices:
        raise ArgumentValueError("linalg.svd: subset_by_index requires full_matrices=False")
    return finish(_part(outs[0], first, last)), s, finish(_part(outs[2], first, last, -2))


@checked
def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
) -> list[Any]:
    """Eigenvalues and eigenvectors of square matrices; always complex.

    Parameters
    ----------
    x : array_like, shape (..., n, n)
        float32, float64, complex64 or complex128.
    compute_left_eigenvectors : bool
        Whether to return them. They are computed from the inverse of the right ones, and are NaN if it does not exist.
    compute_right_eigenvectors : bool

    Returns
    -------
    list of Array
        Eigenvalues, shape (..., n), then, if requested, left eigenvectors (``v.T.conj() @ x = w * v.T.conj()``) and
        right ones (``x @ v = w * v``), in columns of norm 1, shape (..., n, n).

    Raises
    ------
    LinAlgError
        If the iteration does not converge, or `x` has NaN or infinite elements (NaN instead under
        ``config.patch(linalg_errors="nan")``).

    Notes
    -----
    For derivatives, which eigenvectors also have, see `functrans.numpy.linalg.eig`.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> w, left, right = ft.lax.linalg.eig(fnp.asarray([[2.0, 1.0], [0.0, 3.0]]))
    >>> w
    Array([2.+0.j, 3.+0.j])
    """
    (a,) = operands("linalg.eig", x)
    vectors = compute_left_eigenvectors or compute_right_eigenvectors
    w, *right = ops.eig_p.bind(a, vectors=vectors, on_error=config.linalg_errors)
    left = [_left(right[0])] if compute_left_eigenvectors else []
    return [finish(y) for y in (w, *left, *(right if compute_right_eigenvectors else []))]


def _left(right: ArrayLike) -> Any:
    """Left eigenvectors of norm 1, with their largest element real, as in LAPACK."""
    shape, dtype = shape_of(right), dtype_of(right)
    if not shape[-1]:
        return right
    ones = ops.broadcast_to(ops.eye(shape[-1], shape[-1], 0, dtype), shape)
    adjoint = ops.matrix_transpose(right, conjugate=True)
    left = ops.solve_p.bind(adjoint, ones, on_error="nan", name="eig")
    size = ops.sqrt_p.bind(ops.real_p.bind(ops.column_products(left, left)))
    left = ops.div_p.bind(left, ops.cast(ops.as_row(size), dtype))
    axis = len(shape) - 2
    place = ops.as_row(ops.argmax_p.bind(ops.abs_p.bind(ops.stop_gradient_p.bind(left)), axes=(axis,)))
    largest = ops.take_along(left, place, axis)
    return ops.mul_p.bind(
        left, ops.div_p.bind(ops.conj_p.bind(largest), ops.cast(ops.abs_p.bind(largest), dtype))
    )


@checked
def symmetric_product(
    a_matrix: Any,
    c_matrix: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """``alpha * a @ a.T + beta * c`` for a symmetric `c`.

    Parameters
    ----------
    a_matrix : array_like, shape (..., n, k)
    c_matrix : array_like, shape (..., n, n)
        Must have the same dtype.
    alpha, beta : float
    symmetrize_output : bool
        Whether to copy the lower triangle to the upper one.

    Returns
    -------
    Array, shape (..., n, n)

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.lax.linalg.symmetric_product(fnp.ones((2, 3)), fnp.eye(2), beta=2.0)
    Array([[5., 3.],
           [3., 5.]])
    """
    a, c = (operands("linalg.symmetric_product", x)[0] for x in (a_matrix, c_matrix))
    product = ops.mul_p.bind(literal(alpha, a), ops.matrix_product(a, ops.matrix_transpose(a)))
    out = ops.add_p.bind(product, ops.mul_p.bind(literal(beta, c), c))
    if symmetrize_output:
        below = ops.triangle(out, lower=True, strict=True)
        out = ops.add_p.bind(ops.triangle(out, lower=True), ops.matrix_transpose(below))
    return finish(out)
