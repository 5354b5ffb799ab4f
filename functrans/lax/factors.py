"""``functrans.lax.linalg``: LU and QR factors."""

from __future__ import annotations

import operator
from typing import Any

from ..core.aval import aval_of
from ..core.checked import checked
from ..core.errors import LinAlgError
from ..primitives.elementwise.arithmetic import mul_p, stop_gradient_p
from ..primitives.elementwise.complexes import conj_p
from ..primitives.elementwise.composed import sign as sign_of
from ..primitives.linalg.column_order import column_order_p
from ..primitives.linalg.lu import columns_taken, lu_p, permutation_p
from ..primitives.linalg.matrices import diagonal_of, triangle
from ..primitives.linalg.qr import qr_p
from ..primitives.linalg.reflections import householder_product as reflections_product
from ..primitives.operands import finish
from ..primitives.structure.linear import reshape_p, same_dtype, shape_of
from ..primitives.structure.shape import concatenate_p
from .elementwise import operands


@checked
def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """The upper factor of ``r.T.conj() @ r + w w.T.conj()`` from that of ``r.T.conj() @ r``.

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
    By QR of both on top of each other, which squares no condition number; of the same order of cost as `cholesky`.

    Examples
    --------
    >>> from functrans.lax import linalg
    >>> import numpy as np
    >>> linalg.cholesky_update(np.array([[3.0]]), np.array([4.0]))
    Array([[5.]])
    """
    (r,), (w,) = (operands("linalg.cholesky_update", x) for x in (r_matrix, w_vector))
    same_dtype("linalg.cholesky_update", [aval_of(r), aval_of(w)], "fc")
    shape = shape_of(r)
    if len(shape) != 2 or shape[0] != shape[1] or shape_of(w) != shape[:1]:
        raise LinAlgError(
            f"linalg.cholesky_update: want shapes (n, n) and (n,), got {shape} and {shape_of(w)}"
        )
    row = reshape_p.bind(conj_p.bind(w) if w.dtype.kind == "c" else w, shape=(1, *shape[:1]))
    _, out = qr_p.bind(concatenate_p.bind(triangle(r, lower=False), row, dimension=0), full=False)
    turn = sign_of(diagonal_of(out))
    turn = reshape_p.bind(conj_p.bind(turn) if out.dtype.kind == "c" else turn, shape=(*shape[:1], 1))
    return finish(mul_p.bind(turn, out))


@checked
def lu(x: Any) -> tuple[Any, Any, Any]:
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
    lu_p.abstract(aval_of(value))
    factors, pivots, permutation = lu_p.bind(value)
    return finish(factors), finish(pivots), finish(permutation)


@checked
def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The permutation that exchanging row `i` with row ``pivots[i]``, one after the other, makes.

    Parameters
    ----------
    pivots : array_like of int, shape (..., k)
    permutation_size : int
        Of at least `k`.

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
    permutation_p.abstract(aval_of(value), size=size)
    return finish(permutation_p.bind(value, size=size))


@checked
def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> Any:
    """The factors of ``x = q @ r``: orthonormal columns, and an upper triangle.

    Parameters
    ----------
    x : array_like, shape (..., m, n)
    pivoting : bool
        Take the columns in an order that makes the diagonal of `r` fall, and return it as a third result: then
        ``x[:, p] == q @ r``.
    full_matrices : bool
        Whether `q` has m columns, else min(m, n).
    use_magma : None
        Accepted, ignored.

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
    qr_p.abstract(aval_of(value), full=False)
    if not pivoting:
        q, r = qr_p.bind(value, full=bool(full_matrices))
        return finish(q), finish(r)
    order = column_order_p.bind(stop_gradient_p.bind(value))
    q, r = qr_p.bind(columns_taken(value, order), full=bool(full_matrices))
    return finish(q), finish(r), finish(order)


@checked
def householder_product(a: Any, taus: Any) -> Any:
    """The first n columns of a product of reflections ``I - tau v v.T.conj()``.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        Column `i` has, below its diagonal, the rest of the vector `v` of reflection `i`, which begins with a one.
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
    shape = shape_of(x)
    if (
        len(shape) < 2
        or not shape_of(scales)[-1:] <= shape[-1:] <= shape[-2:-1]
        or shape[:-2] != shape_of(scales)[:-1]
    ):
        raise LinAlgError(
            f"linalg.householder_product: want shapes (..., m, n) and (..., k) with k <= n <= m, got {shape} and "
            f"{shape_of(scales)}"
        )
    return finish(reflections_product(x, scales))
