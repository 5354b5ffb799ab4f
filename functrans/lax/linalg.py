"""``functrans.lax.linalg``: decompositions under JAX's names."""

from __future__ import annotations

from typing import Any

from ..core.aval import aval_of
from ..core.checked import checked
from ..core.config import config
from ..core.names import module_attributes as _module_attributes
from ..primitives.elementwise.arithmetic import mul_p
from ..primitives.families import literal
from ..primitives.linalg.cholesky import cholesky_p, triangular_solve_p
from ..primitives.linalg.matrices import matrix_transpose
from ..primitives.operands import finish
from ..primitives.structure.linear import add_p
from .elementwise import operands
from .factors import cholesky_update, householder_product, lu, lu_pivots_to_permutation, qr
from .spectra import eig, eigh, svd, symmetric_product

__all__ = [
    "cholesky", "cholesky_update", "eig", "eigh", "householder_product", "lu", "lu_pivots_to_permutation", "qr",
    "svd", "symmetric_product", "triangular_solve",
]  # fmt: skip
__getattr__, __dir__ = _module_attributes("functrans.lax.linalg", globals())


@checked
def cholesky(a: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower factor `L` with ``a = L @ L.T.conj()``.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        float32, float64, complex64 or complex128; positive definite.
    symmetrize_input : bool
        Factor ``(a + a.T.conj()) / 2``; else only the lower triangle is read.

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
    if symmetrize_input:
        x = mul_p.bind(literal(0.5, x), add_p.bind(x, matrix_transpose(x, conjugate=True)))
    return finish(cholesky_p.bind(x, on_error=config.linalg_errors))


@checked
def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """The solution of ``op(a) x = b`` (or ``x op(a) = b``) for a triangular matrix.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Only one triangle is read.
    b : array_like, shape (..., n, m), or (..., m, n) if not `left_side`
    left_side : bool
        Whether the matrix stands to the left of the unknown.
    lower : bool
        Which triangle holds the matrix.
    transpose_a, conjugate_a : bool
        What ``op`` does.
    unit_diagonal : bool
        Take the diagonal for ones.

    Returns
    -------
    Array
        Of the shape of `b`. A zero on the diagonal gives infinities and NaN
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
    triangular_solve_p.abstract(aval_of(x), aval_of(y), **params)  # evaluation does not check shapes
    return finish(triangular_solve_p.bind(x, y, **params))
