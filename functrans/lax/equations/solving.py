"""Equations with user-defined solvers, differentiated by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.values import ArrayLike, PyTree
from ...frontend.checked import checked
from ...runtime.tracebacks import boundary
from .implicit import linear_solve, root

__all__ = ["custom_linear_solve", "custom_root"]


@boundary
@checked
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: ArrayLike,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    r"""Solve a linear system with your own solver; derivatives are computed by solving again.

    Parameters
    ----------
    matvec : callable
        ``matvec(x) -> A x``, linear, from a pytree like `b` to another. Values it captures may be differentiated.
    b : array or pytree of arrays
        The right-hand side, float or complex; integers are converted to float64.
    solve : callable
        ``solve(matvec, b) -> x``, a pytree like `b`. It may be a loop, call SciPy (outside compiled functions), and use
        knowledge of the matrix: it is never differentiated.
    transpose_solve : callable, optional
        ``transpose_solve(vecmat, b) -> x`` for the transposed system; `vecmat` is `matvec` transposed. Needed in
        reverse mode, unless the matrix is symmetric.
    symmetric : bool
        A promise that the matrix equals its transpose (for complex ones, without conjugation); `solve` solves both.
    has_aux : bool
        Whether the solvers return a pair. Its second part is returned unchanged: iteration counts, residual norms. It
        has no derivative.

    Returns
    -------
    x : pytree of Array
        With the structure, shapes and dtypes of `b`.
    aux : pytree
        Returned with `x` in a tuple, if `has_aux`.

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        If `matvec` or a solver returns another structure, or other shapes or dtypes, than `b` has; Python numbers are
        converted.
    MissingRuleError
        In reverse mode, without `transpose_solve` or `symmetric`.
    GradientError
        In reverse mode, if `matvec` is not linear.

    See Also
    --------
    custom_root : the same for equations that are not linear.
    functrans.numpy.linalg.solve : for a matrix that is available as an array.

    Notes
    -----
    For :math:`A x = b`

    .. math:: A\,\dot x = \dot b - \dot A\,x, \qquad A^T \bar b = \bar x, \qquad \bar A = -\bar b\,x^T,

    where :math:`\dot A\,x` is the derivative of `matvec` with respect to captured values [1]_. So a derivative of any
    order and mode costs one more solve of the same or the transposed system, and its error is that of the solvers. With
    `symmetric`, derivatives in directions that are not symmetric are those of the symmetric problem.

    In a call that is differentiated, mapped or compiled, `matvec` is traced once, and `solve` gets a function that runs
    the trace. Solvers that need concrete numbers (Python's ``while``, SciPy) also work in eager derivatives, but not
    under `jit` and `vmap`; loops of `functrans.lax` work everywhere.

    References
    ----------
    .. [1] M. B. Giles: Collected matrix derivative results for forward and reverse mode algorithmic differentiation.
       Advances in Automatic Differentiation, LNCSE 64, 35-44, 2008, section 2.3.1.

    Examples
    --------
    Conjugate gradients for a matrix that is never built:

    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> def cg(matvec, b):
    ...     def step(state):
    ...         x, r, p, rr = state
    ...         q = matvec(p)
    ...         alpha = rr / fnp.vdot(p, q)
    ...         x, r = x + alpha * p, r - alpha * q
    ...         new = fnp.vdot(r, r)
    ...         return x, r, r + new / rr * p, new
    ...     start = fnp.zeros_like(b), b, b, fnp.vdot(b, b)
    ...     return lax.while_loop(lambda state: state[3] > 1e-20, step, start)[0]
    >>> def smoothed(weight, b):
    ...     def matvec(x):
    ...         d = fnp.diff(x)
    ...         return x + weight * (fnp.pad(d, (1, 0)) - fnp.pad(d, (0, 1)))
    ...     return lax.custom_linear_solve(matvec, b, cg, symmetric=True)
    >>> b = fnp.asarray([0.0, 4.0, 0.0])
    >>> smoothed(1.0, b)
    Array([1., 2., 1.])
    >>> ft.jit(ft.jacrev(smoothed))(1.0, b)
    Array([ 0.25, -0.5 ,  0.25])

    A solver that was made for one matrix, in a library that knows nothing of derivatives:

    >>> import numpy as np, scipy.linalg
    >>> a = np.array([[4.0, 1.0], [2.0, 3.0]])
    >>> factors = scipy.linalg.lu_factor(a)
    >>> def energy(b):
    ...     x = lax.custom_linear_solve(
    ...         lambda x: a @ x,
    ...         b,
    ...         solve=lambda _, b: scipy.linalg.lu_solve(factors, b),
    ...         transpose_solve=lambda _, b: scipy.linalg.lu_solve(factors, b, trans=1),
    ...     )
    ...     return fnp.sum(x * x)
    >>> ft.grad(energy)(fnp.asarray([5.0, 5.0]))
    Array([0.2, 0.6])
    """
    return linear_solve(matvec, b, solve, transpose_solve, bool(symmetric), bool(has_aux))


@boundary
@checked
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> PyTree:
    r"""Find a root with your own solver; derivatives come from the equation.

    Parameters
    ----------
    f : callable
        ``f(x)``, whose root is found: from a pytree like `initial_guess` to another. Values it captures may be
        differentiated.
    initial_guess : array or pytree of arrays
        Float or complex; integers are converted to float64. The root has no derivative in it.
    solve : callable
        ``solve(f, initial_guess) -> x``, a pytree like `initial_guess`. It is never differentiated.
    tangent_solve : callable
        ``tangent_solve(g, y) -> x`` with ``g(x) = y``, for a linear `g`: the derivative of `f` at the root. Use
        ``lambda g, y: y / g(1.0)`` for a scalar, ``lambda g, y: fnp.linalg.solve(ft.jacfwd(g)(y), y)`` for a vector, or
        an iteration.
    has_aux : bool
        Whether `solve` returns a pair. Its second part is returned unchanged, and has no derivative.

    Returns
    -------
    x : pytree of Array
        With the structure, shapes and dtypes of `initial_guess`.
    aux : pytree
        Returned with `x` in a tuple, if `has_aux`.

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        If `f` or a solver returns another structure, or other shapes or dtypes, than `initial_guess` has; Python
        numbers are converted.
    MissingRuleError
        In reverse mode, if `tangent_solve` cannot be transposed and does not use `g`.

    See Also
    --------
    custom_linear_solve : the same for linear equations.

    Notes
    -----
    For :math:`f(x, c) = 0`, where :math:`c` is captured by `f`, the implicit function theorem [1]_ states

    .. math:: \partial_x f\,\dot x = -\partial_c f\,\dot c, \qquad
              \bar c = -(\partial_c f)^T (\partial_x f)^{-T}\,\bar x

    where :math:`\partial_x f` is not singular. So forward mode solves one linear system with `tangent_solve`, and does
    not differentiate `solve`; higher-order derivatives solve again. They are exact at a root: if `solve` stops at a
    distance from it, their error is of the same order.

    Reverse mode transposes the operations of `tangent_solve`, which is linear in `y`. A loop in it cannot be
    transposed: then `tangent_solve` runs on the transpose of `g`. So an iteration should use only `g` for its knowledge
    of the matrix.

    Solvers that need concrete numbers (Python's ``while``, SciPy) work eagerly, also in derivatives, but not under
    `jit` and `vmap`; loops of `functrans.lax` work everywhere.

    References
    ----------
    .. [1] S. G. Krantz, H. R. Parks: The Implicit Function Theorem. Birkhäuser, 2003. For programs: M. Blondel et al.:
       Efficient and modular implicit differentiation. NeurIPS 2022, section 2.1.

    Examples
    --------
    Square roots by Newton's method, a loop of unknown length:

    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> def newton(f, x):
    ...     return lax.while_loop(lambda x: abs(f(x)) > 1e-12, lambda x: x - f(x) / ft.grad(f)(x), x)
    >>> def square_root(a):
    ...     return lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> square_root(4.0), ft.grad(square_root)(4.0), ft.grad(ft.grad(square_root))(4.0)
    (Array(2.), Array(0.25), Array(-0.03125))
    >>> ft.jit(ft.vmap(ft.grad(square_root)))(fnp.asarray([1.0, 4.0, 16.0]))
    Array([0.5  , 0.25 , 0.125])

    A system of equations, solved by SciPy:

    >>> import scipy.optimize
    >>> def meeting(r):  # where the circle of radius r meets the parabola y = x**2
    ...     def f(p):
    ...         x, y = p
    ...         return fnp.stack([x * x + y * y - r * r, y - x * x])
    ...     def solve(f, guess):
    ...         return scipy.optimize.fsolve(f, guess)
    ...     return lax.custom_root(
    ...         f, fnp.ones(2), solve, lambda g, y: fnp.linalg.solve(ft.jacfwd(g)(y), y)
    ...     )
    >>> fnp.round(meeting(fnp.sqrt(2.0)), 6)
    Array([1., 1.])
    >>> fnp.round(ft.jacrev(meeting)(fnp.sqrt(2.0)), 6)
    Array([0.471405, 0.942809])
    """
    return root(f, initial_guess, solve, tangent_solve, bool(has_aux))
