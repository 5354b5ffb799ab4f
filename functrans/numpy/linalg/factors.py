"""Factors of matrices: cholesky."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.config import config
from ...primitives.linalg import cholesky_p
from ...primitives.matrices import matrix_transpose
from ...primitives.operands import finish
from ..dispatch import implements
from .common import inexact, want_square


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
    want_square(x, "cholesky")
    x = matrix_transpose(x, conjugate=True) if upper else x
    factor = cholesky_p.bind(x, on_error=config.linalg_errors)
    return finish(matrix_transpose(factor, conjugate=True) if upper else factor)
