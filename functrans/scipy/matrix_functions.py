"""Square roots of matrices and Sylvester's equation under SciPy's names."""

from __future__ import annotations

from typing import Any

from ..core.checked import checked
from ..core.errors import LinAlgError
from ..primitives.linalg.matrices import check_square
from ..primitives.linalg.sylvester import solve_sylvester as solution_of_sylvester
from ..primitives.linalg.sylvester import sqrtm_p
from ..primitives.operands import finish
from ..primitives.structure.linear import shape_of
from .arguments import inexact


@checked
def sqrtm(A: Any) -> Any:
    """The principal square root of matrices: ``root @ root = A``, with eigenvalues of non-negative real part.

    Parameters
    ----------
    A : array_like, shape (..., n, n)

    Returns
    -------
    Array, shape (..., n, n)
        **Always complex**. (SciPy's result is real if all imaginary parts are zero, which depends on the numbers.)
        For a positive semi-definite matrix, take the real part.

    Raises
    ------
    LinAlgError
        If a matrix is not square.

    Notes
    -----
    The derivative solves ``root @ root' + root' @ root = A'`` [1]_. It is correct at equal eigenvalues, unlike that of
    ``v @ diag(sqrt(w)) @ v.T``. At a singular matrix it is NaN. Compiled to a host call of SciPy.

    References
    ----------
    .. [1] N. Higham, Functions of Matrices, 2008, section 6.1.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans.scipy.linalg import sqrtm
    >>> sqrtm([[4.0, 0.0], [0.0, 9.0]]).real
    Array([[2., 0.],
           [0., 3.]])
    >>> ft.grad(lambda a: fnp.sum(sqrtm(a).real))(fnp.eye(2))
    Array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    (x,) = inexact("sqrtm", False, A)
    check_square("sqrtm", x)
    return finish(sqrtm_p.bind(x))


@checked
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The solution of Sylvester's equation ``a @ x + x @ b = q``.

    Parameters
    ----------
    a : array_like, shape (m, m)
    b : array_like, shape (n, n)
    q : array_like, shape (m, n)

    Returns
    -------
    Array, shape (m, n)

    Raises
    ------
    LinAlgError
        If shapes do not match. For batches use `vmap`.

    Notes
    -----
    The solution is unique unless `a` and ``-b`` share an eigenvalue, in which case the result is NaN. Compiled to a
    host call of SciPy, which calls LAPACK's trsyl.

    Examples
    --------
    >>> from functrans.scipy.linalg import solve_sylvester
    >>> solve_sylvester([[1.0]], [[2.0]], [[6.0]])
    Array([[2.]])
    """
    values = inexact("solve_sylvester", False, a, b, q)
    shapes = [shape_of(v) for v in values]
    if any(len(s) != 2 for s in shapes):
        raise LinAlgError(
            f"solve_sylvester: expected three matrices, got shapes {', '.join(map(str, shapes))}"
        )
    (m, _), (n, _) = shapes[:2]
    if shapes != [(m, m), (n, n), (m, n)]:
        raise LinAlgError(
            f"solve_sylvester: shapes {', '.join(map(str, shapes))} do not match: `a` and `b` must be "
            "square, with as many rows as `q` has rows and columns respectively"
        )
    return finish(solution_of_sylvester(*values))
