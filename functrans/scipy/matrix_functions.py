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
        **Always complex** (SciPy's is real where all imaginary parts are zero, which depends on numbers): of a positive
        semi-definite matrix take the real part.

    Raises
    ------
    LinAlgError
        If a matrix is not square.

    Notes
    -----
    The derivative solves ``root @ root' + root' @ root = A'`` [1]_. It is right at equal eigenvalues, where that of
    ``v @ diag(sqrt(w)) @ v.T`` is not; that of a singular matrix is NaN. A host call of
    SciPy.

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
        If shapes do not fit. For batches use `vmap`.

    Notes
    -----
    There is one solution unless `a` and ``-b`` have an eigenvalue in common: then the result is NaN. A host call of
    SciPy, which calls LAPACK's trsyl.

    Examples
    --------
    >>> from functrans.scipy.linalg import solve_sylvester
    >>> solve_sylvester([[1.0]], [[2.0]], [[6.0]])
    Array([[2.]])
    """
    values = inexact("solve_sylvester", False, a, b, q)
    shapes = [shape_of(v) for v in values]
    if any(len(s) != 2 for s in shapes):
        raise LinAlgError(f"solve_sylvester: want three matrices, got shapes {', '.join(map(str, shapes))}")
    (m, _), (n, _) = shapes[:2]
    if shapes != [(m, m), (n, n), (m, n)]:
        raise LinAlgError(
            f"solve_sylvester: shapes {', '.join(map(str, shapes))} do not fit: `a` and `b` are square, "
            "with the rows and the columns of `q`"
        )
    return finish(solution_of_sylvester(*values))
