"""Systems of linear equations, inverses, determinants."""

from __future__ import annotations

from ...arrays.array import Array
from ...core import COMPLEX128, FLOAT64, ArgumentValueError
from ...core.values import ArrayLike, Value
from ...frontend.checked import checked
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, shape_of
from ...runtime.config import config
from .arguments import inexact, matched
from .factors import lower_factor

_GENERAL = (None, "general", "gen", "banded", "tridiagonal")
_FULL = {"symmetric": False, "sym": False, "hermitian": True, "her": True}
_POSITIVE = ("positive definite", "pos")
_TRIANGULAR = {"upper triangular": False, "lower triangular": True}


@checked
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution of ``op(a) x = b`` for a triangular matrix.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Only one triangle is read.
    b : array_like, shape (n,) or (..., n, m)
    trans : {0, 1, 2, 'N', 'T', 'C'}
        The operation ``op``: none, transpose, or conjugate transpose.
    lower : bool
        Which triangle is read.
    unit_diagonal : bool
        Whether to treat the diagonal as ones.
    check_finite : bool
        Whether to raise for NaN and infinities.

    Returns
    -------
    Array
        With the shape of `b`.

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
    ops.check_square("solve_triangular", x)
    x, columns, shape = matched("solve_triangular", x, right)
    out = ops.solve(
        x,
        columns,
        left_side=True,
        lower=bool(lower),
        transpose_a=operation > 0,
        conjugate_a=operation == 2,
        unit_diagonal=bool(unit_diagonal),
        check=config.linalg_errors == "raise" and not unit_diagonal,
    )
    return finish(ops.reshape_p.bind(out, shape=shape) if shape_of(out) != shape else out)


def _solution(
    name: str, a: Value, b: Value, assume_a: str | None, lower: bool, transpose: bool = False
) -> Value:
    """``op(a) x = b`` for matrices with equal leading axes."""
    triangular = {"left_side": True, "check": config.linalg_errors == "raise"}
    if assume_a in _TRIANGULAR:
        return ops.solve(a, b, lower=_TRIANGULAR[assume_a], transpose_a=transpose, **triangular)
    if assume_a == "diagonal":
        n = shape_of(a)[-1]
        a = ops.select_p.bind(ops.diagonal_mask(n, n), a, dtype_of(a).type(0))
        return ops.solve(a, b, lower=True, **triangular)
    if assume_a in _POSITIVE:
        factor = lower_factor(a, lower)
        factor = ops.matrix_transpose(ops.matrix_transpose(factor, conjugate=True)) if transpose else factor
        inner = ops.solve(factor, b, left_side=True, lower=True)
        return ops.solve(factor, inner, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
    if assume_a in _FULL:
        other = ops.matrix_transpose(ops.triangle(a, lower, strict=True), conjugate=_FULL[assume_a])
        a = ops.add_p.bind(ops.triangle(a, lower), other)
    elif assume_a not in _GENERAL:
        raise ArgumentValueError(
            f"{name}: assume_a={assume_a!r} is not recognized; see help(functrans.scipy.linalg.solve) for its values"
        )
    a = ops.matrix_transpose(a) if transpose else a
    return ops.solve_p.bind(a, b, on_error=config.linalg_errors, name=name)


@checked
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Array:
    """The solution of ``a x = b``.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    b : array_like, shape (n,) or (..., n, m)
    lower : bool
        Whether to read the lower triangle of a symmetric, Hermitian or positive definite matrix, or the upper.
    check_finite : bool
        Whether to raise for NaN and infinities.
    assume_a : {None, 'general', 'diagonal', 'tridiagonal', 'banded', 'upper triangular', 'lower triangular', \
            'symmetric', 'hermitian', 'positive definite'}
        The structure of `a` (also 'gen', 'sym', 'her', 'pos'). Elements outside this structure are not read and have no
        gradient. None is 'general'; unlike SciPy, functrans does not inspect the matrix.
    transposed : bool
        Whether to solve ``a.T x = b`` instead.

    Returns
    -------
    Array
        With the shape of `b`.

    Raises
    ------
    LinAlgError
        If a matrix is singular, or not positive definite though assumed so (NaN or infinities instead under
        ``config.patch(linalg_errors="nan")``). Unlike SciPy, it does not warn about nearly singular matrices.

    Notes
    -----
    'tridiagonal' and 'banded' are solved as 'general', and symmetric matrices by LU factors.

    Examples
    --------
    >>> from functrans.scipy.linalg import solve
    >>> solve([[4.0, 0.0], [2.0, 5.0]], [2.0, 6.0], assume_a="pos", lower=True)
    Array([-0.125,  1.25 ])
    """
    x, right = inexact("solve", check_finite, a, b)
    ops.check_square("solve", x)
    x, columns, shape = matched("solve", x, right)
    out = _solution("solve", x, columns, assume_a, bool(lower), bool(transposed))
    return finish(ops.reshape_p.bind(out, shape=shape) if shape_of(out) != shape else out)


@checked
def inv(
    a: ArrayLike,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Array:
    """The inverse of square matrices.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    check_finite : bool
        Whether to raise for NaN and infinities.
    assume_a, lower
        As in `solve`.

    Returns
    -------
    Array, shape (..., n, n)

    Raises
    ------
    LinAlgError
        If a matrix is singular.

    Examples
    --------
    >>> from functrans.scipy.linalg import inv
    >>> inv([[2.0, 0.0], [1.0, 1.0]])
    Array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    (x,) = inexact("inv", check_finite, a)
    ops.check_square("inv", x)
    n = shape_of(x)[-1]
    unit = ops.broadcast_to(ops.eye(n, n, 0, dtype_of(x)), shape_of(x))
    return finish(_solution("inv", x, unit, assume_a, bool(lower)))


@checked
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant of square matrices; see `functrans.numpy.linalg.det`.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    check_finite : bool
        Whether to raise for NaN and infinities.

    Returns
    -------
    Array, shape (...)
        In double precision.

    Examples
    --------
    >>> from functrans.scipy.linalg import det
    >>> det([[2.0, 1.0], [1.0, 3.0]])
    Array(5.)
    """
    (x,) = inexact("det", check_finite, a)
    ops.check_square("det", x)
    return finish(ops.det_p.bind(ops.convert(x, COMPLEX128 if dtype_of(x).kind == "c" else FLOAT64)))
