"""Eigenvalues and singular values under SciPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import FLOAT64, INT64, ArgumentValueError, LinAlgError, aval_of
from ...core.values import ArrayLike, Value
from ...frontend.checked import checked
from ...primitives import ops
from ...primitives.ops import finish, operand, shape_of, strong
from ...runtime.config import config
from .arguments import inexact

# --- symmetric and Hermitian matrices -----------------------------------------------------------------------


@checked
def eigh(
    a: ArrayLike,
    b: ArrayLike = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices, including the generalised problem.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    b : array_like, shape (..., n, n), optional
        Positive definite.
    lower : bool
        Whether to read the lower triangle of `a` and `b`, or the upper.
    eigvals_only : bool
        Whether to return only the eigenvalues.
    type : {1, 2, 3}
        The problem: 1 is ``a @ v = w * b @ v``, 2 is ``a @ b @ v = w * v``, 3 is ``b @ a @ v = w * v``.
    check_finite : bool
        Whether to raise for NaN and infinities.
    subset_by_index : pair of int, optional
        The first and last index to return. Unlike a slice of the full result, this has well-defined gradients if the
        other eigenvalues are equal.

    Returns
    -------
    w : Array, shape (..., n)
        Real, in ascending order.
    v : Array, shape (..., n, n)
        In columns, with ``v.T.conj() @ b @ v = 1`` (for type 3, with the inverse of `b`).

    Raises
    ------
    LinAlgError
        If the iteration does not converge, or `b` is not positive definite (NaN instead under
        ``config.patch(linalg_errors="nan")``), or a matrix is not square.

    Notes
    -----
    With the Cholesky factor of ``b = L @ L.T.conj()`` the problem becomes an ordinary one, and derivatives in `a` and
    `b` follow; see `functrans.numpy.linalg.eigh` for equal eigenvalues.

    Examples
    --------
    >>> from functrans.scipy.linalg import eigh
    >>> eigh([[2.0, 0.0], [0.0, 3.0]], [[2.0, 0.0], [0.0, 1.0]], eigvals_only=True)
    Array([1., 3.])
    """
    x, factor = _problem("eigh", a, b, lower, type, check_finite)
    vectors = not eigvals_only
    count = shape_of(x)[-1]
    first, last = _subset(subset_by_index, count)
    columns = None if eigvals_only or (first, last) == (0, count) else (first, last)
    w, *v = ops.eigh_p.bind(x, lower=lower, vectors=vectors, on_error=config.linalg_errors, columns=columns)
    w = finish(_part(w, first, last))
    if eigvals_only:
        return w
    (eigenvectors,) = v
    if factor is not None:
        if type == 3:
            eigenvectors = ops.matrix_product(factor, eigenvectors)
        else:
            eigenvectors = ops.solve(
                factor, eigenvectors, left_side=True, lower=True, transpose_a=True, conjugate_a=True
            )
    return w, finish(eigenvectors)


def _problem(name: str, a: Value, b: Value, lower: bool, type: int, check_finite: bool) -> tuple[Any, Any]:
    """The matrix of an ordinary problem, and the factor of `b`."""
    if type not in (1, 2, 3):
        raise ArgumentValueError(f"{name}: type must be 1, 2 or 3, got {type!r}")
    if b is None:
        (x,) = inexact(name, check_finite, a)
        ops.check_square(name, x)
        return x, None
    x, y = inexact(name, check_finite, a, b)
    ops.check_square(name, x)
    ops.check_square(name, y)
    if shape_of(x)[-1] != shape_of(y)[-1]:
        raise LinAlgError(f"{name}: matrices of shapes {shape_of(x)} and {shape_of(y)} do not match")
    shape = ops.broadcast_shapes(name, shape_of(x), shape_of(y))
    x, y = ops.hermitian(ops.broadcast_to(x, shape), lower), ops.broadcast_to(y, shape)
    y = y if lower else ops.matrix_transpose(y, conjugate=True)
    factor = ops.cholesky_p.bind(y, on_error=config.linalg_errors)
    if type > 1:
        adjoint = ops.matrix_transpose(factor, conjugate=True)
        return ops.matrix_product(ops.matrix_product(adjoint, x), factor), factor
    inner = ops.solve(factor, x, left_side=True, lower=True)
    return ops.solve(factor, inner, left_side=False, lower=True, transpose_a=True, conjugate_a=True), factor


def _subset(given: tuple[int, int] | None, count: int) -> tuple[int, int]:
    """The first, and the one after the last."""
    first, last = (0, count - 1) if given is None else given
    if given is not None and not 0 <= first <= last < count:
        raise ArgumentValueError(
            f"eigh: subset_by_index={given} is not a range within the indices 0 to {count - 1}"
        )
    return first, last + 1


def _part(x: Value, first: int, last: int) -> Value:
    shape = shape_of(x)
    if (first, last) == (0, shape[-1]):
        return x
    start = (*(0,) * (len(shape) - 1), first)
    return ops.slice_p.bind(
        x, start_indices=start, limit_indices=(*shape[:-1], last), strides=(1,) * len(shape)
    )


@checked
def eigvalsh(
    a: ArrayLike,
    b: ArrayLike = None,
    *,
    lower: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> Array:
    """Eigenvalues of symmetric or Hermitian matrices; see `eigh`.

    Returns
    -------
    Array, shape (..., n)

    Raises
    ------
    LinAlgError
        See `eigh`.

    Examples
    --------
    >>> from functrans.scipy.linalg import eigvalsh
    >>> eigvalsh([[2.0, 1.0], [1.0, 2.0]])
    Array([1., 3.])
    """
    return eigh(
        a,
        b,
        lower=lower,
        eigvals_only=True,
        type=type,
        check_finite=check_finite,
        subset_by_index=subset_by_index,
    )


# --- singular values ----------------------------------------------------------------------------------------


def _matrices(name: str, a: Value, check_finite: bool) -> Value:
    (x,) = inexact(name, check_finite, a)
    ops.check_matrix(name, x)
    return x


@checked
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Any:
    """Singular value decomposition: ``a = (U * s) @ Vh``.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    full_matrices : bool
        Whether `U` and `Vh` are square; otherwise they have ``k = min(m, n)`` columns and rows.
    compute_uv : bool
        Whether to compute `U` and `Vh`, and not only the singular values.
    check_finite : bool
        Whether to raise for NaN and infinities.

    Returns
    -------
    U : Array, shape (..., m, m) or (..., m, k)
    s : Array, shape (..., k)
        Descending. The only result if not `compute_uv`.
    Vh : Array, shape (..., n, n) or (..., k, n)

    Raises
    ------
    LinAlgError
        If the iteration does not converge (NaN instead under ``config.patch(linalg_errors="nan")``).

    Notes
    -----
    For derivatives see `functrans.numpy.linalg.svd`.

    Examples
    --------
    >>> from functrans.scipy.linalg import svd
    >>> svd([[3.0, 0.0], [0.0, 4.0]], compute_uv=False)
    Array([4., 3.])
    """
    x = _matrices("svd", a, check_finite)
    outs = ops.svd_p.bind(
        x,
        full_matrices=bool(full_matrices and compute_uv),
        vectors=bool(compute_uv),
        on_error=config.linalg_errors,
    )
    return tuple(map(finish, outs)) if compute_uv else finish(outs[0])


@checked
def svdvals(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Singular values of matrices, in descending order.

    Returns
    -------
    Array, shape (..., min(m, n))

    Raises
    ------
    LinAlgError
        See `svd`.

    Examples
    --------
    >>> from functrans.scipy.linalg import svdvals
    >>> svdvals([[3.0, 0.0], [0.0, 4.0]])
    Array([4., 3.])
    """
    return svd(a, compute_uv=False, check_finite=check_finite)


@checked
def pinv(
    a: ArrayLike,
    *,
    atol: ArrayLike = None,
    rtol: ArrayLike = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """The Moore-Penrose pseudo-inverse.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    atol, rtol : array_like of float, shape (...), optional
        Singular values up to ``atol + rtol * max(s)`` count as zero; by default 0 and ``max(m, n) * eps``.
    return_rank : bool
        Whether to return the number of the others, too.
    check_finite : bool
        Whether to raise for NaN and infinities.

    Returns
    -------
    Array, shape (..., n, m)
    rank : Array of int64, shape (...)
        Returned only if `return_rank`.

    Raises
    ------
    LinAlgError
        If the iteration does not converge (NaN instead under ``config.patch(linalg_errors="nan")``).

    Notes
    -----
    For derivatives see `functrans.numpy.linalg.pinv`.

    Examples
    --------
    >>> from functrans.scipy.linalg import pinv
    >>> pinv([[2.0, 0.0], [0.0, 0.0]])
    Array([[0.5, 0. ],
           [0. , 0. ]])
    """
    x = _matrices("pinv", a, check_finite)
    batch = shape_of(x)[:-2]
    eps = max(shape_of(x)[-2:]) * np.finfo(aval_of(x).dtype).eps
    relative = _tolerance(eps if rtol is None else rtol, batch)
    if atol is not None or return_rank:
        s = ops.svd_p.bind(x, full_matrices=False, vectors=False, on_error=config.linalg_errors)[0]
        s = ops.convert_element_type_p.bind(s, dtype=FLOAT64)
        largest = (ops.reduce_max_p if shape_of(s)[-1] else ops.reduce_sum_p).bind(s, axes=(len(batch),))
        if atol is not None:
            zero, one = ops.eq_p.bind(largest, FLOAT64.type(0)), FLOAT64.type(1)
            scale = ops.select_p.bind(zero, one, largest)
            relative = ops.add_p.bind(relative, ops.div_p.bind(_tolerance(atol, batch), scale))
    inverse = finish(ops.pinv_p.bind(x, relative, on_error=config.linalg_errors))
    if not return_rank:
        return inverse
    large = ops.gt_p.bind(s, ops.as_column(ops.mul_p.bind(relative, largest)))
    return inverse, finish(
        ops.reduce_sum_p.bind(ops.convert_element_type_p.bind(large, dtype=INT64), axes=(len(batch),))
    )


def _tolerance(value: Value, batch: tuple[int, ...]) -> Value:
    return ops.broadcast_to(strong(operand(value, "pinv"), FLOAT64), batch)


@checked
def polar(a: ArrayLike, side: str = "right") -> tuple[Value, Value]:
    """Polar decomposition: ``a = u @ p`` (or ``p @ u``) with orthonormal `u` and positive semi-definite `p`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    side : {'right', 'left'}
        The side of `p` in the product.

    Returns
    -------
    u : Array, shape (..., m, n)
    p : Array, shape (..., n, n), or (..., m, m) on the left

    Raises
    ------
    LinAlgError
        If the iteration does not converge (NaN instead under ``config.patch(linalg_errors="nan")``).

    Notes
    -----
    Uses the singular value decomposition. At equal singular values, first derivatives are correct and second
    derivatives are NaN. If `a` has less than full rank, `u` is not determined, and its derivative is NaN.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.scipy.linalg import polar
    >>> u, p = polar([[0.0, -2.0], [3.0, 0.0]])
    >>> fnp.round(u, 12), fnp.round(p, 12)
    (Array([[ 0., -1.],
           [ 1.,  0.]]), Array([[3., 0.],
           [0., 2.]]))
    """
    if side not in ("right", "left"):
        raise ArgumentValueError(f"polar: side must be 'right' or 'left', got {side!r}")
    x = _matrices("polar", a, False)
    u = ops.polar_p.bind(x, on_error=config.linalg_errors)
    adjoint = ops.matrix_transpose(u, conjugate=True)
    p = ops.matrix_product(adjoint, x) if side == "right" else ops.matrix_product(x, adjoint)
    half = aval_of(p).dtype.type(0.5)
    p = ops.mul_p.bind(half, ops.add_p.bind(p, ops.matrix_transpose(p, conjugate=True)))
    return finish(u), finish(p)
