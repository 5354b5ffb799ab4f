"""``functrans.scipy.linalg``: SciPy's names for the decompositions there are, in batches and with
derivatives.

`overwrite_a` and `overwrite_b` are accepted and ignored: no argument is ever changed. `check_finite` looks at
numbers that are known; inside compiled functions NaN is passed on.
"""

from __future__ import annotations

from typing import Any

from ..core.config import config
from ..core.errors import ArgumentValueError, LinAlgError
from ..primitives.linalg import cholesky_p, solve
from ..primitives.linear import broadcast_shapes, broadcast_to, reshape_p, shape_of
from ..primitives.matrices import matrix_transpose
from ..primitives.operands import finish
from .arguments import check_square, inexact
from .spectra import eigh, eigvalsh, pinv, polar, svd, svdvals

__all__ = [
    "cho_factor", "cho_solve", "cholesky", "eigh", "eigvalsh", "pinv", "polar", "solve_triangular", "svd", "svdvals",
]  # fmt: skip


def _lower_factor(x: Any, lower: bool) -> Any:
    """The lower factor of the matrix of which one triangle is given."""
    x = x if lower else matrix_transpose(x, conjugate=True)
    return cholesky_p.bind(x, on_error=config.linalg_errors)


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The Cholesky factor of a positive definite matrix.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Only one triangle is read: the lower one if `lower`, else the upper one.
    lower : bool
        Whether to give `L` with ``a = L @ L.T.conj()``, else `U` with ``a = U.T.conj() @ U``.
    check_finite : bool
        Raise for NaN and infinities.

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
    Derivatives are those of the function of the triangle that is read: the gradient in `a` is zero in the
    other triangle. Where `a` is made symmetric before, gradients in what it is made of are the usual ones.

    Examples
    --------
    >>> import functrans.scipy.linalg
    >>> functrans.scipy.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]], lower=True)
    Array([[2., 0.],
           [1., 2.]])
    """
    (x,) = inexact("cholesky", check_finite, a)
    check_square("cholesky", x)
    factor = _lower_factor(x, lower)
    return finish(factor if lower else matrix_transpose(factor, conjugate=True))


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Any, bool]:
    """The Cholesky factor for `cho_solve`.

    Returns
    -------
    c : Array, shape (..., n, n)
        The factor, with zeros in the other triangle (where SciPy leaves numbers of no meaning).
    lower : bool

    Raises
    ------
    LinAlgError
        See `cholesky`.
    """
    return cholesky(a, lower, overwrite_a, check_finite), lower


def cho_solve(
    c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """The solution of ``a x = b`` from the factor of `a`.

    Parameters
    ----------
    c_and_lower : tuple (Array, bool)
        What `cho_factor` gave.
    b : array_like, shape (n,) or (..., n, m)

    Returns
    -------
    Array
        Of the shape of `b`.

    Examples
    --------
    >>> from functrans.scipy.linalg import cho_factor, cho_solve
    >>> cho_solve(cho_factor([[4.0, 2.0], [2.0, 5.0]]), [2.0, 5.0])
    Array([0., 1.])
    """
    c, lower = c_and_lower
    factor, right = inexact("cho_solve", check_finite, c, b)
    check_square("cho_solve", factor)
    factor, columns, shape = _matched("cho_solve", factor, right)
    lower = bool(lower)
    inner = solve(factor, columns, left_side=True, lower=lower, transpose_a=not lower, conjugate_a=not lower)
    out = solve(factor, inner, left_side=True, lower=lower, transpose_a=lower, conjugate_a=lower)
    return finish(reshape_p.bind(out, shape=shape) if shape_of(out) != shape else out)


def _matched(name: str, a: Any, b: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """Matrix and right-hand side with the same axes before the last two, and the shape of the solution."""
    n, own = shape_of(a)[-1], shape_of(b)
    vector = len(own) == 1
    if not own or own[0 if vector else -2] != n:
        raise LinAlgError(f"{name}: shapes {shape_of(a)} and {own} are incompatible")
    b = reshape_p.bind(b, shape=(n, 1)) if vector else b
    batch = broadcast_shapes(name, shape_of(a)[:-2], shape_of(b)[:-2])
    columns = broadcast_to(b, (*batch, *shape_of(b)[-2:]))
    return broadcast_to(a, (*batch, n, n)), columns, (*batch, n) if vector else shape_of(columns)


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """The solution of ``op(a) x = b`` for a triangular matrix.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Only one triangle is read.
    b : array_like, shape (n,) or (..., n, m)
    trans : {0, 1, 2, 'N', 'T', 'C'}
        What ``op`` does: nothing, transpose, or transpose and conjugate.
    lower : bool
        Which triangle is read.
    unit_diagonal : bool
        Take the diagonal for ones.
    check_finite : bool
        Raise for NaN and infinities.

    Returns
    -------
    Array
        Of the shape of `b`.

    Raises
    ------
    LinAlgError
        If a diagonal element is zero (infinities and NaN instead under
        ``config.patch(linalg_errors="nan")``).

    Examples
    --------
    >>> from functrans.scipy.linalg import solve_triangular
    >>> solve_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0], lower=True)
    Array([1., 2.])
    """
    operation = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}.get(trans)
    if operation is None:
        raise ArgumentValueError(f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    x, right = inexact("solve_triangular", check_finite, a, b)
    check_square("solve_triangular", x)
    x, columns, shape = _matched("solve_triangular", x, right)
    out = solve(
        x,
        columns,
        left_side=True,
        lower=bool(lower),
        transpose_a=operation > 0,
        conjugate_a=operation == 2,
        unit_diagonal=bool(unit_diagonal),
        check=config.linalg_errors == "raise" and not unit_diagonal,
    )
    return finish(reshape_p.bind(out, shape=shape) if shape_of(out) != shape else out)
