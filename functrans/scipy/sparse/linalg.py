"""``functrans.scipy.sparse.linalg``: systems of linear equations, solved with products only.

The matrix is a function of a vector or a tree of arrays, an array, or a sparse matrix of SciPy. Compiled, a solver is
one native loop; under `vmap` the number of steps differs by lane. Derivatives solve one more system.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ... import numpy as fnp
from ...arrays.arguments import one_of
from ...core import ArgumentValueError, boundary, is_float
from ...core.values import ArrayLike, PyTree
from ...frontend.checked import checked
from ...lax.elementwise import stop_gradient
from ...lax.equations.solving import custom_linear_solve
from ...runtime.module_getattr import module_attributes as _module_attributes
from . import krylov
from .operators import Vectors, in_dtype_of, matvec_of

__all__ = ["bicgstab", "cg", "gmres"]

_DOC = """{summary}

    Parameters
    ----------
    A : callable, array_like of shape (n, n), or sparse matrix of SciPy
        {matrix} A function gets and returns trees like `b`; it may capture values that are differentiated.
    b : array_like or tree of them
        The right-hand side; integers become float64.
    x0 : tree like `b`, optional
        Where to start; by default zeros. The solution has no derivative in it.
    tol, atol : float
        Stop when ``norm(A x - b) <= max(tol * norm(b), atol)``.
{restart}    maxiter : int, optional
        The largest number of {counted}; by default 10 for each unknown.
    M : like `A`, optional
        An approximation of the inverse of `A`, which saves steps{side}.
{method}
    Returns
    -------
    x : Array, or tree like `b`
    info : Array, int64
        0, or if the tolerance is not reached, the number of {counted}. (JAX returns None.)

    Raises
    ------
    ArgumentError, ArgumentValueError, ShapeError, LinAlgError
        If the arguments do not fit together.

    See Also
    --------
    functrans.lax.custom_linear_solve : with a solver of your own.
    functrans.numpy.linalg.solve : for a dense matrix.

    Notes
    -----
    In derivatives of any order and mode the same method solves a system with the same or the transposed matrix, to
    the same relative tolerance; they are as accurate as these solutions. {note}

    References
    ----------
    {reference}

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans.scipy.sparse.linalg import {name}
    >>> def product(x):  # a tridiagonal matrix that is never built
    ...     d = fnp.diff(x)
    ...     return x + fnp.pad(d, (1, 0)) - fnp.pad(d, (0, 1))
    >>> x, info = {name}(product, fnp.asarray([0.0, 4.0, 0.0]), tol=1e-12)
    >>> fnp.round(x, 9), info
    (Array([1., 2., 1.]), Array(0))
    >>> slope = ft.grad(lambda b: {name}(product, b, tol=1e-12)[0][1])(fnp.asarray([0.0, 4.0, 0.0]))
    >>> fnp.round(slope, 9)
    Array([0.25, 0.5 , 0.25])
    """


def _unchanged(x: ArrayLike) -> Any:
    return x


def _solved(
    name: str,
    method: Callable[..., PyTree],
    A: ArrayLike,
    b: ArrayLike,
    x0: ArrayLike,
    tol: ArrayLike,
    atol: ArrayLike,
    maxiter: int | None,
    M: ArrayLike,
    symmetric: bool,
) -> tuple[Any, Any]:
    """The solution by a method of `krylov`, and whether it was reached."""
    matvec = matvec_of(A, f"{name}: A")
    vectors, right = Vectors.of(name, in_dtype_of(A, b))
    guess = None if x0 is None else stop_gradient(vectors.guess(name, x0))
    if maxiter is not None and maxiter < 0:
        raise ArgumentValueError(f"{name}: maxiter must not be negative, got {maxiter}")
    most = 10 * vectors.size if maxiter is None else maxiter
    inverse = _unchanged if M is None else matvec_of(M, f"{name}: M")
    transposed = _unchanged if M is None else vectors.transposed(M, f"{name}: M")

    def solve(product: Callable[[Any], Any], right: Any, m: Callable[[Any], Any]) -> tuple[Any, Any]:
        flat = vectors.flat(right)
        start = fnp.zeros_like(flat) if guess is None else vectors.flat(guess)
        norm = fnp.sqrt(krylov.square(flat))
        limit = fnp.maximum(tol * norm, atol) ** 2
        x, count, rest = method(vectors.linear(product), vectors.linear(m), flat, start, limit, most)
        return vectors.unravel(x), fnp.where(rest <= limit, 0, fnp.maximum(count, 1))

    return custom_linear_solve(
        matvec,
        right,
        partial(solve, m=inverse),
        partial(solve, m=inverse if symmetric else transposed),
        symmetric=symmetric and all(is_float(a.dtype) for a in vectors.spec.avals),
        has_aux=True,
    )


def _published(function: Callable[..., PyTree], name: str, **text: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(name=name, **text)
    return boundary(checked(function))


def _in_steps(name: str, method: Callable[..., PyTree], symmetric: bool, **text: str) -> Callable[..., Any]:
    """A solver without restarts."""

    def function(
        A: ArrayLike,
        b: ArrayLike,
        x0: ArrayLike = None,
        *,
        tol: float = 1e-5,
        atol: float = 0.0,
        maxiter: int | None = None,
        M: ArrayLike = None,
    ) -> tuple[Any, Any]:
        return _solved(name, method, A, b, x0, tol, atol, maxiter, M, symmetric)

    return _published(function, name, restart="", method="", counted="steps", **text)


def _gmres(
    A: ArrayLike,
    b: ArrayLike,
    x0: ArrayLike = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: ArrayLike = None,
    solve_method: str = "batched",
) -> tuple[Any, Any]:
    one_of(solve_method, ("batched", "incremental"), "gmres: solve_method")
    if restart < 1:
        raise ArgumentValueError(f"gmres: restart must be positive, got {restart}")
    size = Vectors.of("gmres", b)[0].size
    method = partial(krylov.gmres, restart=max(min(restart, size), 1))
    return _solved("gmres", method, A, b, x0, tol, atol, maxiter, M, False)


cg = _in_steps(
    "cg",
    krylov.cg,
    True,
    summary="Solve ``A x = b`` by conjugate gradients, for a symmetric (Hermitian) positive definite matrix.",
    matrix="Symmetric (Hermitian) and positive definite.",
    side="; also symmetric and positive definite",
    note="The iterates are SciPy's.",
    reference="M. R. Hestenes, E. Stiefel: Methods of conjugate gradients for solving linear systems. J. Res. NBS 49, "
    "1952.",
)
bicgstab = _in_steps(
    "bicgstab",
    krylov.bicgstab,
    False,
    summary="Solve ``A x = b`` by stabilized biconjugate gradients, for any invertible matrix.",
    matrix="Invertible.",
    side="",
    note="A breakdown of the method shows in `info`.",
    reference="H. A. van der Vorst: Bi-CGSTAB. SIAM J. Sci. Stat. Comput. 13, 1992.",
)
gmres = _published(
    _gmres,
    "gmres",
    summary="Solve ``A x = b`` by generalized minimal residuals, for any invertible matrix.",
    matrix="Invertible.",
    side="; applied from the right, so that `tol` is that of the residual itself",
    note="Memory: `restart` + 1 vectors.",
    reference="Y. Saad, M. H. Schultz: GMRES. SIAM J. Sci. Stat. Comput. 7, 1986.",
    counted="starts",
    restart="    restart : int\n        The number of steps before the method starts again from where it is.\n",
    method="    solve_method : {'batched', 'incremental'}\n        Accepted for JAX, without effect.\n",
)

__getattr__, __dir__ = _module_attributes("functrans.scipy.sparse.linalg", globals())
