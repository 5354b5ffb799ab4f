"""Cholesky factors, and solutions of systems with them."""

from __future__ import annotations

from typing import Any

from ..core.config import config
from ..frontend.checked import checked
from ..primitives import ops
from ..primitives.ops import finish, shape_of
from .arguments import inexact, matched


def lower_factor(x: Any, lower: bool) -> Any:
    """The lower factor of a matrix given by one triangle."""
    x = x if lower else ops.matrix_transpose(x, conjugate=True)
    return ops.cholesky_p.bind(x, on_error=config.linalg_errors)


@checked
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
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
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
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
    c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
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
