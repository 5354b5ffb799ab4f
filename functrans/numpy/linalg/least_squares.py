"""Pseudo-inverse, least squares, rank and condition number, by singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import FLOAT64, INT64, aval_of, concrete, default_float, is_inexact, promote, real_dtype
from ...core.values import ArrayLike, Value
from ...errors import ArgumentValueError, LinAlgError
from ...primitives import ops
from ...primitives.ops import finish, operand, shape_of, strong
from ...runtime.config import config
from ..dispatch import implements
from .norms import inexact, norm
from .spectra import singular_values

_NOT_GIVEN: Any = object()


def _epsilon(x: Value) -> float:
    """The relative size up to which NumPy treats singular values as zero."""
    return float(max(shape_of(x)[-2:]) * np.finfo(aval_of(x).dtype).eps)


def _real(value: Value, name: str) -> Value:
    """Convert a tolerance to double precision; it has no derivative."""
    tolerance = operand(value, name)
    if aval_of(tolerance).dtype.kind == "c":
        raise ArgumentValueError(f"{name}: a tolerance must be real, got {aval_of(tolerance).dtype}")
    return strong(tolerance, FLOAT64)


# --- pseudo-inverse -----------------------------------------------------------------------------------------


@implements(np.linalg.pinv)
def pinv(
    a: ArrayLike, rcond: ArrayLike = None, hermitian: bool = False, *, rtol: ArrayLike = _NOT_GIVEN
) -> Array:
    """Moore-Penrose pseudo-inverse.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    rcond, rtol : array_like of float, shape (...), optional
        Singular values up to ``rcond * max(s)`` count as zero; by default 1e-15. The two names mean the same, but
        ``rtol=None`` means ``max(m, n) * eps``.
    hermitian : bool
        Whether `a` is symmetric (Hermitian), so that only its lower triangle is read.

    Returns
    -------
    Array, shape (..., n, m)

    Raises
    ------
    LinAlgError
        If the singular values do not converge, as for matrices with NaN (NaN instead under
        ``config.patch(linalg_errors="nan")``).

    Notes
    -----
    ``P' = -P A' P + P P^H A'^H (I - A P) + (I - P A) A'^H P^H P`` [1]_, to any order. It is the derivative among
    matrices of the same rank: if the rank is not full, P is discontinuous in other directions.

    References
    ----------
    .. [1] G. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
       variables separate, 1973.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.pinv([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    Array([[0.5, 0. , 0. ],
           [0. , 0. , 0. ]])
    """
    x = inexact(a, "pinv")
    ops.check_matrix("pinv", x)
    if rcond is not None and rtol is not _NOT_GIVEN:
        raise ArgumentValueError("pinv: rtol and rcond mean the same; pass only one")
    if rcond is None:
        rcond = 1e-15 if rtol is _NOT_GIVEN else _epsilon(x) if rtol is None else rtol
    if hermitian:
        ops.check_square("pinv", x)
        x = ops.hermitian(x, lower=True)
    cutoff = ops.broadcast_to(_real(rcond, "pinv"), shape_of(x)[:-2])
    return finish(ops.pinv_p.bind(x, cutoff, on_error=config.linalg_errors))


# --- least squares ------------------------------------------------------------------------------------------


@implements(np.linalg.lstsq)
def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: ArrayLike = None, *, numpy_resid: bool = True
) -> tuple[Any, Any, Any, Any]:
    """The shortest `x` that minimizes ``|b - a @ x|``.

    Parameters
    ----------
    a : array_like, shape (m, n)
    b : array_like, shape (m,) or (m, k)
    rcond : float, optional
        Singular values up to ``rcond * max(s)`` count as zero; by default ``max(m, n) * eps`` of double precision, and
        `eps` if negative.
    numpy_resid : bool
        Whether `residuals` are empty where NumPy's are; False for JAX's, which never are.

    Returns
    -------
    x : Array, shape (n,) or (n, k)
    residuals : Array, shape (1,) or (k,), or (0,)
        The sums of squares ``|b - a @ x|**2``; empty if ``m <= n`` or the rank is less than `n`. If values are unknown
        (under `jit` and `vmap`), so is the rank: then they are empty only if ``m <= n``. Never empty without
        `numpy_resid`.
    rank : Array of int32, shape ()
    s : Array, shape (min(m, n),)
        Singular values of `a`.

    Raises
    ------
    LinAlgError
        If shapes do not match, or singular values do not converge, as for NaN in `a` (NaN instead under
        ``config.patch(linalg_errors="nan")``).

    Notes
    -----
    Uses the singular value decomposition. Differentiable in `a` and `b`, to any order, among matrices of the same rank,
    as `pinv` is. For batches use `vmap`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> x, residuals, rank, s = fnp.linalg.lstsq([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])
    >>> fnp.round(x, 12), rank
    (Array([1., 2.]), Array(2, dtype=int32))
    """
    values = [operand(v, "lstsq", i) for i, v in enumerate((a, b))]
    dtype, _ = promote([(aval_of(v).dtype, False) for v in values])
    x, y = (strong(v, dtype if is_inexact(dtype) else default_float()) for v in values)
    vector = len(shape_of(y)) == 1
    if len(shape_of(x)) != 2 or len(shape_of(y)) not in (1, 2) or shape_of(x)[0] != shape_of(y)[0]:
        raise LinAlgError(
            f"lstsq: expected a of shape (m, n) and b of shape (m,) or (m, k), got shapes {shape_of(x)} and "
            f"{shape_of(y)}; for batches use vmap"
        )
    y = ops.reshape_p.bind(y, shape=(shape_of(y)[0], 1)) if vector else y
    out, s, rank = ops.lstsq_p.bind(x, y, _cutoff(rcond, shape_of(x)), on_error=config.linalg_errors)
    residuals = _residuals(x, y, out, rank, numpy_resid)
    out = ops.reshape_p.bind(out, shape=shape_of(out)[:1]) if vector else out
    return finish(out), finish(residuals), finish(rank), finish(s)


def _cutoff(rcond: Any, shape: tuple[int, ...]) -> Any:
    eps = np.finfo(FLOAT64).eps
    if rcond is None:
        return FLOAT64.type(max(shape) * eps)
    rcond = _real(rcond, "lstsq")
    return ops.select_p.bind(ops.lt_p.bind(rcond, FLOAT64.type(0)), FLOAT64.type(eps), rcond)


def _residuals(a: Value, b: Value, x: Value, rank: Value, may_be_empty: bool) -> Value:
    m, n = shape_of(a)
    known = concrete(rank)
    if may_be_empty and (m <= n or (known is not None and int(known) != n)):
        return np.zeros(0, real_dtype(aval_of(a).dtype))
    rest = ops.sub_p.bind(b, ops.matrix_product(a, x))
    square = ops.mul_p.bind(rest, ops.conj_p.bind(rest) if aval_of(rest).dtype.kind == "c" else rest)
    return ops.reduce_sum_p.bind(ops.real_part(square), axes=(0,))


# --- rank and condition number ------------------------------------------------------------------------------


@implements(np.linalg.matrix_rank)
def matrix_rank(
    A: ArrayLike, tol: ArrayLike = None, hermitian: bool = False, *, rtol: ArrayLike = None
) -> Array:
    """The number of singular values that are not zero up to rounding.

    Parameters
    ----------
    A : array_like, shape (..., m, n), or a vector or number, of rank 0 if all elements are zero, else 1
    tol : array_like of float, shape (...), optional
        Singular values up to this one count as zero.
    hermitian : bool
        Whether `A` is symmetric (Hermitian), so that its lower triangle is read, and eigenvalues are used.
    rtol : array_like of float, shape (...), optional
        The tolerance relative to the largest singular value; by default ``max(m, n) * eps``.

    Returns
    -------
    Array of int64, shape (...)

    Raises
    ------
    LinAlgError
        See `svd`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])
    Array(1)
    """
    if rtol is not None and tol is not None:
        raise ArgumentValueError("matrix_rank: tol and rtol can't be both set")
    x = inexact(A, "matrix_rank")
    axes = tuple(range(len(shape_of(x))))
    if len(axes) < 2:
        nonzero = ops.ne_p.bind(x, aval_of(x).dtype.type(0))
        return finish(ops.convert_element_type_p.bind(ops.reduce_or_p.bind(nonzero, axes=axes), dtype=INT64))
    if hermitian:
        ops.check_square("matrix_rank", x)
    s = singular_values(x, hermitian)
    last, dtype = len(axes) - 2, aval_of(s).dtype
    if not shape_of(s)[last]:
        return finish(ops.reduce_sum_p.bind(ops.convert_element_type_p.bind(s, dtype=INT64), axes=(last,)))
    if tol is None:
        largest = ops.reduce_max_p.bind(s, axes=(last,))
        relative = dtype.type(_epsilon(x)) if rtol is None else strong(_real(rtol, "matrix_rank"), dtype)
        tol = ops.mul_p.bind(largest, relative)
    else:
        tol = strong(_real(tol, "matrix_rank"), dtype)
    large = ops.gt_p.bind(s, ops.as_column(tol))
    return finish(
        ops.reduce_sum_p.bind(
            ops.convert_element_type_p.bind(large, dtype=INT64), axes=(len(shape_of(large)) - 1,)
        )
    )


@implements(np.linalg.cond)
def cond(x: ArrayLike, p: ArrayLike = None) -> Array:
    """The condition number: the norm of a matrix times the norm of its inverse.

    Parameters
    ----------
    x : array_like, shape (..., m, n); square, unless `p` is None, 2 or -2
    p : {None, 2, -2, 1, -1, inf, -inf, 'fro', 'nuc'}
        The norm, see `norm`. None means 2: the largest singular value divided by the smallest; -2 is the reciprocal.

    Returns
    -------
    Array, shape (...)
        Infinite for singular matrices.

    Raises
    ------
    LinAlgError
        If a matrix is empty or, for norms without singular values, not square; see `svd`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.cond([[3.0, 0.0], [0.0, 4.0]], -2)
    Array(0.75)
    """
    value = inexact(x, "cond")
    ops.check_matrix("cond", value)
    m, n = shape_of(value)[-2:]
    if not (m and n):
        raise LinAlgError(f"cond: an empty matrix, of shape {shape_of(value)}, has no condition number")
    if p is None or p in (2, -2):
        s = singular_values(value)
        first, last = _element(s, 0), _element(s, min(m, n) - 1)
        out = _ratio(last, first) if p == -2 else _ratio(first, last)
    else:
        ops.check_square("cond", value)
        ones = ops.broadcast_to(ops.eye(n, n, 0, aval_of(value).dtype), shape_of(value))
        inverse = ops.solve_p.bind(value, ones, on_error="nan", name="cond")
        norms = [operand(norm(v, p, (-2, -1)), "cond") for v in (value, inverse)]
        out = ops.mul_p.bind(*norms)
    given = ops.reduce_or_p.bind(
        ops.is_nan_p.bind(value), axes=(len(shape_of(value)) - 2, len(shape_of(value)) - 1)
    )
    undefined = ops.logical_and(ops.is_nan_p.bind(out), ops.logical_not(given))
    return finish(ops.select_p.bind(undefined, aval_of(out).dtype.type(np.inf), out))


def _element(s: ArrayLike, place: int) -> Value:
    """One element along the last axis."""
    shape = shape_of(s)
    start = (*(0,) * (len(shape) - 1), place)
    element = ops.slice_p.bind(
        s, start_indices=start, limit_indices=(*shape[:-1], place + 1), strides=(1,) * len(shape)
    )
    return ops.reshape_p.bind(element, shape=shape[:-1])


def _ratio(x: Value, y: Value) -> Value:
    """``x / y``, infinite where `y` is zero."""
    one, infinite = aval_of(y).dtype.type(1), aval_of(y).dtype.type(np.inf)
    zero = ops.eq_p.bind(y, aval_of(y).dtype.type(0))
    return ops.select_p.bind(zero, infinite, ops.div_p.bind(x, ops.select_p.bind(zero, one, y)))
