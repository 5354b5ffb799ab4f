"""LU, QR and Cholesky factors, and solutions of systems with them."""

from __future__ import annotations

from typing import Any

from ...arrays.array import Array
from ...core import ArgumentValueError, Aval, real_dtype
from ...core.values import ArrayLike, Value
from ...frontend.checked import checked
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, operand, shape_of
from ...runtime.config import config
from .arguments import inexact, matched


@checked
def lu(
    a: ArrayLike,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> tuple[Any, ...]:
    """LU factors with partial pivoting: ``a = P @ L @ U``.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    permute_l : bool
        Whether to return ``P @ L`` and U.
    check_finite : bool
        Whether to raise for NaN and infinities.
    p_indices : bool
        Whether to return the order of rows `p` with ``a = L[p] @ U`` instead of P.

    Returns
    -------
    p : Array, shape (..., m, m), or int32 and (..., m)
        Omitted if `permute_l`.
    l : Array, shape (..., m, min(m, n))
        Ones on the diagonal.
    u : Array, shape (..., min(m, n), n)

    Examples
    --------
    >>> from functrans.scipy.linalg import lu
    >>> p, l, u = lu([[1.0, 2.0], [2.0, 0.0]])
    >>> l, u
    (Array([[1. , 0. ],
           [0.5, 1. ]]), Array([[2., 0.],
           [0., 2.]]))
    """
    (x,) = inexact("lu", check_finite, a)
    ops.check_matrix("lu", x)
    *batch, m, n = shape_of(x)
    k = min(m, n)
    packed, _, permutation = ops.lu_p.bind(x)
    lower = ops.add_p.bind(
        ops.triangle(ops.columns_of(packed, 0, k), lower=True, strict=True), ops.eye(m, k, 0, dtype_of(x))
    )
    upper = ops.triangle(ops.rows_of(packed, 0, k), lower=False)
    order = ops.convert_element_type_p.bind(ops.argsort(permutation, len(batch)), dtype=permutation.dtype)
    if permute_l:
        return finish(ops.rows_taken(lower, order)), finish(upper)
    if p_indices:
        return finish(order), finish(lower), finish(upper)
    columns = ops.reshape_p.bind(order, shape=(*batch, m, 1))
    p = ops.eq_p.bind(columns, ops.iota((1, m), 1, order.dtype))
    return (
        finish(ops.convert_element_type_p.bind(p, dtype=real_dtype(dtype_of(x)))),
        finish(lower),
        finish(upper),
    )


@checked
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Value, Value]:
    """LU factors with partial pivoting, for `lu_solve`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    check_finite : bool
        Whether to raise for NaN and infinities.

    Returns
    -------
    lu : Array, shape (..., m, n)
        U, and below its diagonal L without its unit diagonal.
    piv : Array, int32, shape (..., min(m, n))
        Row `i` was exchanged with row ``piv[i]``.

    Notes
    -----
    Unlike SciPy, it does not warn if the matrix is singular; U then has a zero on its diagonal.

    Examples
    --------
    >>> from functrans.scipy import linalg
    >>> import numpy as np
    >>> factor = linalg.lu_factor(np.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> linalg.lu_solve(factor, np.array([3.0, 8.0]))
    Array([1., 1.])
    """
    (x,) = inexact("lu_factor", check_finite, a)
    ops.check_matrix("lu_factor", x)
    packed, pivots, _ = ops.lu_p.bind(x)
    return finish(packed), finish(pivots)


@checked
def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution of ``op(a) x = b`` from the factors of `a`.

    Parameters
    ----------
    lu_and_piv : tuple (Array, Array)
        The result of `lu_factor` for a square matrix.
    b : array_like, shape (n,) or (..., n, m)
    trans : {0, 1, 2}
        The operation ``op``: none, transpose, or conjugate transpose.
    check_finite : bool
        Whether to raise for NaN and infinities.

    Returns
    -------
    Array
        With the shape of `b`. Infinities or NaN if the matrix is singular.

    Examples
    --------
    >>> from functrans.scipy.linalg import lu_factor, lu_solve
    >>> lu_solve(lu_factor([[2.0, 1.0], [1.0, 3.0]]), [3.0, 5.0])
    Array([0.8, 1.4])
    """
    if trans not in (0, 1, 2):
        raise ArgumentValueError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}")
    packed, pivots = lu_and_piv
    factors, right = inexact("lu_solve", check_finite, packed, b)
    ops.check_square("lu_solve", factors)
    factors, columns, shape = matched("lu_solve", factors, right)
    order = ops.permutation_p.bind(operand(pivots, "lu_solve"), size=shape_of(factors)[-1])
    order = ops.broadcast_to(order, shape_of(factors)[:-1])
    unit = {"left_side": True, "lower": True, "unit_diagonal": True}
    if trans:
        turn = {"transpose_a": True, "conjugate_a": trans == 2}
        out = ops.solve(factors, columns, left_side=True, lower=False, **turn)
        out = ops.solve(factors, out, **unit, **turn)
        out = ops.rows_taken(out, ops.argsort(order, len(shape_of(order)) - 1))
    else:
        out = ops.solve(factors, ops.rows_taken(columns, order), **unit)
        out = ops.solve(factors, out, left_side=True, lower=False)
    return finish(ops.reshape_p.bind(out, shape=shape) if shape_of(out) != shape else out)


@checked
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """The factors of ``a = Q @ R``: orthonormal columns and an upper triangle.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    lwork : int, optional
        Ignored.
    mode : {'full', 'r', 'economic', 'raw'}
        With ``k = min(m, n)``: Q of shape (..., m, m) and R of shape (..., m, n); only R; Q of shape (..., m, k) and R
        of shape (..., k, n); or LAPACK's reflections ``(qr, tau)`` and R of shape (..., k, n).
    pivoting : bool
        Whether to reorder the columns so that the diagonal of R decreases: ``a[:, P] = Q @ R``.
    check_finite : bool
        Whether to raise for NaN and infinities.

    Returns
    -------
    Q : Array, or tuple of Array
        Omitted if ``mode='r'``.
    R : Array
    P : Array, int32, shape (..., n)
        Returned only if `pivoting`.

    Notes
    -----
    For derivatives see `functrans.numpy.linalg.qr`.

    Examples
    --------
    >>> from functrans.scipy.linalg import qr
    >>> q, r = qr([[3.0], [4.0]], mode="economic")
    >>> r
    Array([[-5.]])
    """
    if mode not in ("full", "r", "economic", "raw"):
        raise ArgumentValueError(f"qr: mode must be 'full', 'r', 'economic' or 'raw', got {mode!r}")
    (x,) = inexact("qr", check_finite, a)
    ops.check_matrix("qr", x)
    order: tuple[Any, ...] = ()
    if pivoting:
        pivots = ops.column_order_p.bind(ops.stop_gradient_p.bind(x))
        x, order = ops.columns_taken(x, pivots), (finish(pivots),)
    if mode == "raw":
        h, taus = ops.geqrf_p.bind(x)
        r = ops.triangle(ops.rows_of(h, 0, min(shape_of(h)[-2:])), lower=False)
        return ((finish(h), finish(taus)), finish(r), *order)
    if mode == "r":
        r = ops.qr_triangle_p.bind(x)
        *batch, m, n = shape_of(x)
        if m > n:
            nothing = ops.zeros(Aval((*batch, m - n, n), dtype_of(x)))
            r = ops.concatenate_p.bind(r, nothing, dimension=len(batch))
        return (finish(r), *order)
    q, r = ops.qr_p.bind(x, full=mode == "full")
    return (finish(q), finish(r), *order)


def lower_factor(x: ArrayLike, lower: bool) -> Any:
    """The lower factor of a matrix from one triangle."""
    x = x if lower else ops.matrix_transpose(x, conjugate=True)
    return ops.cholesky_p.bind(x, on_error=config.linalg_errors)


@checked
def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """The Cholesky factor of a positive definite matrix.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Only one triangle is read: the lower one if `lower`, else the upper one.
    lower : bool
        Whether to return `L` with ``a = L @ L.T.conj()`` or `U` with ``a = U.T.conj() @ U``.
    check_finite : bool
        Whether to raise for NaN and infinities.

    Returns
    -------
    Array, shape (..., n, n)
        Zeros in the other triangle.

    Raises
    ------
    LinAlgError
        If the matrix is not positive definite (NaN instead under ``config.patch(linalg_errors="nan")``), or
        not square.

    Notes
    -----
    The function reads one triangle, so the gradient in `a` is zero in the other. If you symmetrise `a` first, gradients
    with respect to its ingredients are the usual ones.

    Examples
    --------
    >>> import functrans.scipy.linalg
    >>> functrans.scipy.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]], lower=True)
    Array([[2., 0.],
           [1., 2.]])
    """
    (x,) = inexact("cholesky", check_finite, a)
    ops.check_square("cholesky", x)
    factor = lower_factor(x, lower)
    return finish(factor if lower else ops.matrix_transpose(factor, conjugate=True))


@checked
def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Any, bool]:
    """The Cholesky factor for `cho_solve`.

    Returns
    -------
    c : Array, shape (..., n, n)
        The factor, with zeros in the other triangle (where SciPy leaves meaningless numbers).
    lower : bool

    Raises
    ------
    LinAlgError
        See `cholesky`.

    Examples
    --------
    >>> from functrans.scipy import linalg
    >>> import numpy as np
    >>> factor = linalg.cho_factor(np.array([[4.0, 2.0], [2.0, 5.0]]), lower=True)
    >>> linalg.cho_solve(factor, np.array([8.0, 10.0]))
    Array([1.25, 1.5 ])
    """
    return cholesky(a, lower, overwrite_a, check_finite), lower


@checked
def cho_solve(
    c_and_lower: tuple[Any, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The solution of ``a x = b`` from the factor of `a`.

    Parameters
    ----------
    c_and_lower : tuple (Array, bool)
        The result of `cho_factor`.
    b : array_like, shape (n,) or (..., n, m)

    Returns
    -------
    Array
        With the shape of `b`.

    Examples
    --------
    >>> from functrans.scipy.linalg import cho_factor, cho_solve
    >>> cho_solve(cho_factor([[4.0, 2.0], [2.0, 5.0]]), [2.0, 5.0])
    Array([0., 1.])
    """
    c, lower = c_and_lower
    factor, right = inexact("cho_solve", check_finite, c, b)
    ops.check_square("cho_solve", factor)
    factor, columns, shape = matched("cho_solve", factor, right)
    lower = bool(lower)
    inner = ops.solve(
        factor, columns, left_side=True, lower=lower, transpose_a=not lower, conjugate_a=not lower
    )
    out = ops.solve(factor, inner, left_side=True, lower=lower, transpose_a=lower, conjugate_a=lower)
    return finish(ops.reshape_p.bind(out, shape=shape) if shape_of(out) != shape else out)
