"""``functrans.lax.linalg``: decompositions under JAX's names."""

from __future__ import annotations

import operator
from typing import Any

from ..arrays.array import Array
from ..core import LinAlgError, aval_of
from ..core.values import ArrayLike
from ..frontend.checked import checked
from ..primitives import ops
from ..primitives.ops import finish, shape_of
from ..runtime.config import config
from ..runtime.module_getattr import module_attributes as _module_attributes
from .condensed import hessenberg, ormqr, qdwh, schur, tridiagonal, tridiagonal_solve
from .elementwise import operands
from .spectra import (
    EighImplementation,
    EigImplementation,
    SvdAlgorithm,
    eig,
    eigh,
    svd,
    symmetric_product,
)

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_update", "eig", "eigh",
    "hessenberg", "householder_product", "lu", "lu_pivots_to_permutation", "ormqr", "qdwh", "qr", "schur", "svd",
    "symmetric_product", "triangular_solve", "tridiagonal", "tridiagonal_solve",
]  # fmt: skip


@checked
def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """Update the upper Cholesky factor `r` to that of ``r.T.conj() @ r + w w.T.conj()``.

    Parameters
    ----------
    r_matrix : array_like, shape (n, n)
        Upper triangular.
    w_vector : array_like, shape (n,)

    Returns
    -------
    Array, shape (n, n)
        With a positive diagonal.

    Notes
    -----
    By a QR factorization of both stacked, which does not square the condition number, at the order of cost of
    `cholesky`.

    Examples
    --------
    >>> from functrans.lax import linalg
    >>> import numpy as np
    >>> linalg.cholesky_update(np.array([[3.0]]), np.array([4.0]))
    Array([[5.]])
    """
    (r,), (w,) = (operands("linalg.cholesky_update", x) for x in (r_matrix, w_vector))
    ops.same_dtype("linalg.cholesky_update", [aval_of(r), aval_of(w)], "fc")
    shape = shape_of(r)
    if len(shape) != 2 or shape[0] != shape[1] or shape_of(w) != shape[:1]:
        raise LinAlgError(
            f"linalg.cholesky_update: expected shapes (n, n) and (n,), got {shape} and {shape_of(w)}"
        )
    row = ops.reshape_p.bind(ops.conj_p.bind(w) if w.dtype.kind == "c" else w, shape=(1, *shape[:1]))
    _, out = ops.qr_p.bind(ops.concatenate_p.bind(ops.triangle(r, lower=False), row, dimension=0), full=False)
    turn = ops.sign(ops.diagonal_of(out))
    turn = ops.reshape_p.bind(ops.conj_p.bind(turn) if out.dtype.kind == "c" else turn, shape=(*shape[:1], 1))
    return finish(ops.mul_p.bind(turn, out))


@checked
def lu(x: ArrayLike) -> tuple[Any, Any, Any]:
    """LU factors with partial pivoting.

    Parameters
    ----------
    x : array_like, shape (..., m, n)
        float32, float64, complex64 or complex128.

    Returns
    -------
    lu : Array, shape (..., m, n)
        U, and below its diagonal L, whose diagonal is ones.
    pivots : Array, int32, shape (..., min(m, n))
        Row `i` was exchanged with row ``pivots[i]``.
    permutation : Array, int32, shape (..., m)
        ``x[permutation] == L @ U``.

    Notes
    -----
    LAPACK's getrf. Differentiable where the pivots are not zero.

    Examples
    --------
    >>> from functrans.lax import linalg
    >>> import numpy as np
    >>> factors, pivots, permutation = linalg.lu(np.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> factors
    Array([[4.  , 4.  ],
           [0.25, 1.  ]])
    >>> pivots, permutation
    (Array([1, 1], dtype=int32), Array([1, 0], dtype=int32))
    """
    (value,) = operands("linalg.lu", x)
    ops.lu_p.abstract(aval_of(value))
    factors, pivots, permutation = ops.lu_p.bind(value)
    return finish(factors), finish(pivots), finish(permutation)


@checked
def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Array:
    """The permutation made by exchanging row `i` with row ``pivots[i]``, in order.

    Parameters
    ----------
    pivots : array_like of int, shape (..., k)
    permutation_size : int
        At least `k`.

    Returns
    -------
    Array, int32, shape (..., permutation_size)

    Examples
    --------
    >>> from functrans.lax import linalg
    >>> import numpy as np
    >>> linalg.lu_pivots_to_permutation(np.array([1, 2, 2], np.int32), 3)
    Array([1, 2, 0], dtype=int32)
    """
    (value,) = operands("linalg.lu_pivots_to_permutation", pivots)
    size = operator.index(permutation_size)
    ops.permutation_p.abstract(aval_of(value), size=size)
    return finish(ops.permutation_p.bind(value, size=size))


@checked
def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> Any:
    """QR factorization ``x = q @ r``: `q` has orthonormal columns, `r` is upper triangular.

    Parameters
    ----------
    x : array_like, shape (..., m, n)
    pivoting : bool
        Whether to order the columns so that the diagonal of `r` decreases, and to return the order as a third result:
        ``x[:, p] == q @ r``.
    full_matrices : bool
        Whether `q` has m columns instead of min(m, n).
    use_magma : None
        Accepted, without effect.

    Returns
    -------
    q, r : Array
    p : Array, int32, shape (..., n)
        Only if `pivoting`.

    Examples
    --------
    >>> from functrans.lax import linalg
    >>> import numpy as np
    >>> q, r = linalg.qr(np.array([[3.0], [4.0]]), full_matrices=False)
    >>> q @ r
    Array([[3.],
           [4.]])
    """
    (value,) = operands("linalg.qr", x)
    ops.qr_p.abstract(aval_of(value), full=False)
    if not pivoting:
        q, r = ops.qr_p.bind(value, full=bool(full_matrices))
        return finish(q), finish(r)
    order = ops.column_order_p.bind(ops.stop_gradient_p.bind(value))
    q, r = ops.qr_p.bind(ops.columns_taken(value, order), full=bool(full_matrices))
    return finish(q), finish(r), finish(order)


@checked
def householder_product(a: ArrayLike, taus: Any) -> Array:
    """The first n columns of a product of reflections ``I - tau v v.T.conj()``.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        Column `i` holds, below its diagonal, the vector `v` of reflection `i` after its first element, which is one.
    taus : array_like, shape (..., k)
        k <= n <= m.

    Returns
    -------
    Array, shape (..., m, n)

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import lax
    >>> h, taus = np.linalg.qr([[3.0, 1.0], [4.0, 2.0]], mode="raw")
    >>> lax.linalg.householder_product(h.T, taus)
    Array([[-0.6, -0.8],
           [-0.8,  0.6]])
    """
    (x,), (scales,) = (operands("linalg.householder_product", y) for y in (a, taus))
    ops.same_dtype("linalg.householder_product", [aval_of(x), aval_of(scales)], "fc")
    shape = shape_of(x)
    if (
        len(shape) < 2
        or not shape_of(scales)[-1:] <= shape[-1:] <= shape[-2:-1]
        or shape[:-2] != shape_of(scales)[:-1]
    ):
        raise LinAlgError(
            f"linalg.householder_product: expected shapes (..., m, n) and (..., k) with k <= n <= m, got {shape} and "
            f"{shape_of(scales)}"
        )
    return finish(ops.householder_product(x, scales))


__getattr__, __dir__ = _module_attributes("functrans.lax.linalg", globals())


@checked
def cholesky(a: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower factor `L` with ``a = L @ L.T.conj()``.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        float32, float64, complex64 or complex128; positive definite.
    symmetrize_input : bool
        Whether to factor ``(a + a.T.conj()) / 2``; else only the lower triangle is read.

    Returns
    -------
    Array, shape (..., n, n)

    Raises
    ------
    LinAlgError
        If a matrix is not positive definite (NaN instead under ``config.patch(linalg_errors="nan")``).

    Examples
    --------
    >>> from functrans.lax import linalg
    >>> import numpy as np
    >>> linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]])
    """
    (x,) = operands("linalg.cholesky", a)
    ops.same_dtype("linalg.cholesky", [aval_of(x)], "fc")
    x = ops.symmetrized(x) if symmetrize_input else x
    return finish(ops.cholesky_p.bind(x, on_error=config.linalg_errors))


@checked
def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve ``op(a) x = b`` (or ``x op(a) = b``) with a triangular matrix.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Only one triangle is read.
    b : array_like, shape (..., n, m), or (..., m, n) if not `left_side`
    left_side : bool
        Whether the matrix is to the left of the unknown.
    lower : bool
        Which triangle holds the matrix.
    transpose_a, conjugate_a : bool
        Whether ``op`` transposes and conjugates.
    unit_diagonal : bool
        Whether to treat the diagonal as ones.

    Returns
    -------
    Array
        With the shape of `b`. A zero on the diagonal yields infinities and NaN
        (`functrans.scipy.linalg.solve_triangular` raises).

    Examples
    --------
    >>> from functrans.lax import linalg
    >>> import numpy as np
    >>> a, b = np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0], [3.0]])
    >>> linalg.triangular_solve(a, b, left_side=True, lower=True)
    Array([[1.],
           [2.]])
    """
    x, y = operands("linalg.triangular_solve", a)[0], operands("linalg.triangular_solve", b)[0]
    params = {
        "left_side": left_side,
        "lower": lower,
        "transpose_a": transpose_a,
        "conjugate_a": conjugate_a,
        "unit_diagonal": unit_diagonal,
        "check": False,
    }
    ops.triangular_solve_p.abstract(aval_of(x), aval_of(y), **params)  # evaluation does not check shapes
    return finish(ops.triangular_solve_p.bind(x, y, **params))
