"""Factors of matrices: cholesky, qr."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.config import config
from ...core.errors import ArgumentValueError
from ...primitives.linalg.cholesky import cholesky_p
from ...primitives.linalg.matrices import check_matrix, check_square, matrix_transpose
from ...primitives.linalg.qr import geqrf_p, qr_p, qr_triangle_p
from ...primitives.operands import finish
from ..dispatch import implements
from .common import inexact


class QRResult(NamedTuple):
    """What `qr` gives."""

    Q: Any
    R: Any


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
    x = inexact(a, "cholesky")
    check_square("cholesky", x)
    x = matrix_transpose(x, conjugate=True) if upper else x
    factor = cholesky_p.bind(x, on_error=config.linalg_errors)
    return finish(matrix_transpose(factor, conjugate=True) if upper else factor)


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """The factors of ``a = Q @ R``: orthonormal columns, and an upper triangle.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    mode : {'reduced', 'complete', 'r', 'raw'}
        With ``k = min(m, n)``: Q of shape (..., m, k) and R of shape (..., k, n); Q of shape (..., m, m) and R of shape
        (..., m, n); R alone, of shape (..., k, n); or LAPACK's reflections ``(h, tau)``, `h` transposed, of shape
        (..., n, m), and `tau` of shape (..., k).

    Returns
    -------
    QRResult, or Array, or tuple

    Raises
    ------
    LinAlgError
        If `a` has fewer than two axes.

    Notes
    -----
    Signs are LAPACK's (geqrf): the diagonal of R may be negative. Derivatives exist where the first k columns are
    independent (infinities and NaN elsewhere), in all modes and of wide matrices too; with ``C = Q^H a' R^-1``,
    ``R' = (C - W) R`` where W is the skew matrix that has the lower triangle of C.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> q, r = fnp.linalg.qr([[3.0, 1.0], [4.0, 2.0]])
    >>> r
    Array([[-5. , -2.2],
           [ 0. ,  0.4]])
    """
    x = inexact(a, "qr")
    check_matrix("qr", x)
    if mode == "raw":
        h, taus = geqrf_p.bind(x)
        return finish(matrix_transpose(h)), finish(taus)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentValueError(f"qr: mode must be 'reduced', 'complete', 'r' or 'raw', got {mode!r}")
    if mode == "r":
        return finish(qr_triangle_p.bind(x))
    q, r = qr_p.bind(x, full=mode == "complete")
    return QRResult(finish(q), finish(r))
