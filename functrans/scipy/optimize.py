"""``scipy.optimize``: SciPy's own root finders and minimisers, with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..api.compiled.jit import jit
from ..api.grad import grad
from ..core import ArgumentError, SolverError, boundary, current_trace, eval_trace
from ..core.values import ArrayLike, PyTree
from ..frontend.checked import checked
from ..primitives import ops
from ..runtime.libraries import scipy
from ..runtime.module_getattr import module_attributes as _module_attributes
from .patched import unpatched
from .solvers.callbacks import Callback, as_array, is_traced, numbers_only
from .solvers.drivers import compiled_jacobian, numbers
from .solvers.fitting import least_squares
from .solvers.minima import OptimizeResults, minimize
from .solvers.roots import FindRoot, RootProblem, check_found, results_of
from .solvers.trees import Vector, is_tree, vector

__all__ = [
    "OptimizeResults", "bisect", "brenth", "brentq", "fsolve", "least_squares", "minimize", "ridder", "root",
    "root_scalar",
]  # fmt: skip

_RTOL = 4 * np.finfo(float).eps
#: Solvers whose root is a Python float.
_IN_C = ("bisect", "brenth", "brentq", "ridder")


def _bracketed(name: str, doc: str) -> Callable[..., Any]:
    """A solver with the signature that SciPy's bracketing solvers share."""

    def solver(
        f: Callable[..., PyTree],
        a: ArrayLike,
        b: ArrayLike,
        args: ArrayLike = (),
        xtol: float = 2e-12,
        rtol: float = _RTOL,
        maxiter: int = 100,
        full_output: bool = False,
        disp: bool = True,
    ) -> Any:
        options = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter, "disp": disp}
        own = unpatched(getattr(scipy.optimize, name))
        callback = Callback(name, f, args)
        if not (callback.operands or is_traced(a, b)):
            try:
                return numbers_only(name, lambda: own(f, a, b, args, full_output=full_output, **options))
            except RuntimeError as error:
                if "converge" not in str(error):
                    raise
                raise SolverError(f"{name}: {error}") from error

        def find(for_scipy: Any, a: ArrayLike, b: ArrayLike) -> tuple[Any, Any]:
            x, details = own(for_scipy(f), a, b, full_output=True, **{**options, "disp": False})
            check_found(name, details.converged, details.flag)
            return x, details

        equation = RootProblem(callback, find)
        x = ops.weakly(FindRoot.apply(equation, (a, b), *callback.operands))
        return (x, results_of(equation, callback, (a, b), root=x)) if full_output else x

    solver.__name__ = solver.__qualname__ = name
    solver.__doc__ = doc
    return boundary(checked(solver))


bisect = _bracketed(
    "bisect",
    """``scipy.optimize.bisect``: a root between `a` and `b`, by bisection; see `brentq`.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.scipy.optimize import bisect
    >>> round(float(ft.grad(lambda a: bisect(lambda x: x**2 - a, 0.0, 5.0))(4.0)), 6)
    0.25
    """,
)
brentq = _bracketed(
    "brentq",
    """``scipy.optimize.brentq``: a root of a function of one variable between `a` and `b`, by Brent's method.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` returns a number. It may read traced values.
    a, b : float
        The bracket, which may be traced.
    args : tuple
        Further arguments of `f`, which may be traced.
    xtol, rtol, maxiter, full_output, disp
        As in SciPy.

    Returns
    -------
    root : float
        An `Array` of float64 if a traced value is involved.
    r : RootResults
        With `full_output`; under `jit` and `vmap` only its ``root`` is known.

    Raises
    ------
    SolverError
        If no root is found and a traced value is involved, for any `disp`. It is a `RuntimeError`, as in SciPy.

    Notes
    -----
    The derivative is that of the implicit function: ``dx = -(df/dc) dc / (df/dx)`` at the root, for all values that `f`
    reads. It is zero in the bracket. Supports both modes, to any order. Derivatives call `f` with a traced `x`, so it
    must then use `functrans.numpy`, not `math`. The error of a derivative is that of the root (`xtol`), to first order.
    A multiple root has no derivative: the result is infinite or NaN. Under `jit` and `vmap`, SciPy runs as a host call,
    one example after the other.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.scipy.optimize import brentq
    >>> ft.grad(lambda a: brentq(lambda x: x**2 - a, 0.0, 5.0))(4.0)
    Array(0.25)
    """,
)
brenth = _bracketed(
    "brenth",
    """``scipy.optimize.brenth``: a root between `a` and `b`, by hyperbolic extrapolation; see `brentq`.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.scipy.optimize import brenth
    >>> round(float(ft.grad(lambda a: brenth(lambda x: x**2 - a, 0.0, 5.0))(4.0)), 6)
    0.25
    """,
)
ridder = _bracketed(
    "ridder",
    """``scipy.optimize.ridder``: a root between `a` and `b`, by Ridder's method; see `brentq`.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.scipy.optimize import ridder
    >>> round(float(ft.grad(lambda a: ridder(lambda x: x**2 - a, 0.0, 5.0))(4.0)), 6)
    0.25
    """,
)


def _slope(f: Callable[..., PyTree]) -> Callable[..., Any]:
    """The derivative of a function of one variable and further arguments, as SciPy calls it."""
    return lambda x, *args: grad(lambda y: as_array(f(y, *args)).reshape(()))(x)


@boundary
@checked
def root_scalar(
    f: Callable[..., PyTree],
    args: ArrayLike = (),
    method: str | None = None,
    bracket: ArrayLike = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: ArrayLike = None,
    x1: ArrayLike = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """``scipy.optimize.root_scalar``: a root of a function of one variable, by the method of your choice.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` returns a number. It may read traced values, and so may `fprime` and `fprime2`.
    args, bracket, x0, x1
        They may be traced.
    fprime, fprime2 : callable or bool, optional
        As in SciPy. For ``'halley'`` they may be left out: functrans differentiates `f`.
    method, xtol, rtol, maxiter, options
        As in SciPy.

    Returns
    -------
    RootResults
        Its ``root`` is an `Array` if a traced value is involved; under `jit` and `vmap` it has only this field.

    Raises
    ------
    SolverError
        If no root is found and a traced value is involved.

    Notes
    -----
    For derivatives see `brentq`, whatever the method; only the method uses `fprime`.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.scipy.optimize import root_scalar
    >>> ft.grad(lambda a: root_scalar(lambda x: x**2 - a, bracket=(0.0, 5.0)).root)(4.0)
    Array(0.25)
    """
    if method == "halley" and callable(f) and not fprime:
        fprime = _slope(f)
    if method == "halley" and callable(fprime) and not fprime2:
        fprime2 = _slope(fprime)
    given = {"x0": x0, "x1": x1}
    if bracket is not None:
        given.update(zip(("a", "b"), bracket))
    starts = {name: x for name, x in given.items() if x is not None}
    settings = {"method": method, "xtol": xtol, "rtol": rtol, "maxiter": maxiter, "options": options}
    callback = Callback("root_scalar", f, args, [fprime, fprime2])
    if not (callback.operands or is_traced(*starts.values())):
        return numbers_only(
            "root_scalar",
            lambda: unpatched(scipy.optimize.root_scalar)(
                f, args, bracket=bracket, fprime=fprime, fprime2=fprime2, x0=x0, x1=x1, **settings
            ),
        )

    def find(for_scipy: Any, *values: ArrayLike) -> tuple[Any, Any]:
        start: dict[str, Any] = {name: float(x) for name, x in zip(starts, values)}
        if "a" in start:
            start["bracket"] = (start.pop("a"), start.pop("b"))
        derivatives = {"fprime": for_scipy(fprime), "fprime2": for_scipy(fprime2)}
        details = unpatched(scipy.optimize.root_scalar)(for_scipy(f), **start, **derivatives, **settings)
        check_found("root_scalar", details.converged, details.flag)
        return details.root, details

    equation = RootProblem(callback, find, paired=fprime is True or fprime2 is True)
    x = FindRoot.apply(equation, tuple(starts.values()), *callback.operands)
    if method in _IN_C or (method is None and bracket is not None):
        x = ops.weakly(x)
    return results_of(equation, callback, starts.values(), root=x)


@boundary
@checked
def root(
    fun: Callable[..., PyTree],
    x0: ArrayLike,
    args: ArrayLike = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Callable[..., PyTree] | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """``scipy.optimize.root``: a root of a system of equations, with a compiled Jacobian.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns an array or a list with one number per element of `x`; if `x0` is a tree, any tree
        with as many numbers. It may read traced values, and so may `jac`.
    x0 : array_like, or pytree of arrays
        The initial guess, which may be traced.
    args : tuple
        Further arguments of `fun` and `jac`, which may be traced.
    jac : callable or bool, optional
        As in SciPy. By default MINPACK's methods (``'hybr'``, ``'lm'``) get a compiled Jacobian outside
        transformations. False asks for SciPy's differences, for functions that cannot be traced.
    method, tol, callback, options
        As in SciPy.

    Returns
    -------
    OptimizeResult
        Its ``x`` is a tree if `x0` is one, and an `Array` of float64 if a traced value is involved. Under `jit` and
        `vmap` it has only this field.

    Raises
    ------
    SolverError
        If no root is found and a traced value is involved. (SciPy returns ``success=False``.)
    LinAlgError
        If a derivative is needed and the Jacobian at the root is singular.

    Notes
    -----
    The derivative is that of the implicit function: ``dx = -inv(J) (df/dc) dc`` with the Jacobian J at the root, for
    all values that `fun` reads. It is zero in the guess. Forward mode computes J, whatever `jac` is, and a direct
    solver inverts it. For very large systems use ``lax.custom_root``, where you choose the linear solver. Derivatives
    call `fun` with a traced `x`. Supports both modes, to any order. The error of a derivative is that of the root, to
    first order.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.scipy.optimize import root
    >>> def solution(a):
    ...     return root(lambda x: [x[0] + x[1] - a, x[0] * x[1] - 1.0], [2.0, 0.1]).x
    >>> ft.jacfwd(solution)(2.5).round(9)
    Array([ 1.33333333, -0.33333333])
    """
    if is_tree(x0):
        x = Vector("root", x0)
        inner = root(
            x.rows_of(fun), x.flat, args, method, x.function(jac), tol, x.called_back(callback), options
        )
        inner.x = x.filled(inner.x)
        return inner
    settings = {"method": method, "tol": tol, "callback": callback, "options": options}
    if jac is None and method in ("hybr", "lm") and current_trace.get() is eval_trace:
        rest = args if isinstance(args, tuple) else (args,)
        rows = jit(lambda v: vector("root", fun, fun(v, *rest)))
        start = np.array(x0, float).reshape(-1)
        return unpatched(scipy.optimize.root)(
            numbers(rows), start, jac=compiled_jacobian(rows, start), **settings
        )
    equations = Callback("root", fun, args, [jac])
    if not (equations.operands or is_traced(x0)):
        return numbers_only(
            "root", lambda: unpatched(scipy.optimize.root)(fun, x0, args, jac=jac, **settings)
        )

    def find(for_scipy: Any, start: ArrayLike) -> tuple[Any, Any]:
        details = unpatched(scipy.optimize.root)(for_scipy(fun), start, jac=for_scipy(jac), **settings)
        check_found("root", details.success, details.message)
        return details.x, details

    start = as_array(x0)
    flat = method in ("hybr", "lm") or not start.shape
    start = start.reshape(-1) if flat else start
    equation = RootProblem(equations, find, start.shape, paired=jac is True)
    x = FindRoot.apply(equation, (start,), *equations.operands)
    return results_of(equation, equations, (start,), x=x)


@boundary
@checked
def fsolve(
    func: Callable[..., PyTree],
    x0: ArrayLike,
    args: ArrayLike = (),
    fprime: Callable[..., Any] | None = None,
    full_output: ArrayLike = 0,
    col_deriv: ArrayLike = 0,
    xtol: float = 1.49012e-8,
    maxfev: int = 0,
    band: Any = None,
    epsfcn: Any = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """``scipy.optimize.fsolve``: a root of a system of equations, by MINPACK; see `root`.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` returns an array or a list with one number per element of `x`. It may read traced values, and
        so may `fprime`.
    x0 : array_like
        The initial guess, which may be traced.
    args : tuple
        Further arguments of `func` and `fprime`, which may be traced.
    fprime, full_output, col_deriv, xtol, maxfev, band, epsfcn, factor, diag
        As in SciPy. If a traced value is involved, `full_output` must be False.

    Returns
    -------
    x : ndarray, shape (n,)
        An `Array` if a traced value is involved.
    infodict, ier, mesg
        With `full_output`.

    Raises
    ------
    SolverError
        If no root is found and a traced value is involved. (SciPy warns.)

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.scipy.optimize import fsolve
    >>> ft.jacfwd(lambda a: fsolve(lambda x: [x[0] + x[1] - a, x[0] - x[1]], [1.0, 1.0]))(3.0).round(12)
    Array([0.5, 0.5])
    """
    options = {
        "col_deriv": col_deriv, "xtol": xtol, "maxfev": maxfev, "band": band, "epsfcn": epsfcn, "factor": factor,
        "diag": diag,
    }  # fmt: skip
    callback = Callback("fsolve", func, args, [fprime])
    if not (callback.operands or is_traced(x0)):
        return numbers_only(
            "fsolve", lambda: unpatched(scipy.optimize.fsolve)(func, x0, args, fprime, full_output, **options)
        )
    if full_output:
        raise ArgumentError("fsolve: full_output is not available if a traced value is involved; use root")

    def find(for_scipy: Any, start: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
        x, _, status, message = unpatched(scipy.optimize.fsolve)(
            for_scipy(func), start, fprime=for_scipy(fprime), full_output=True, **options
        )
        check_found("fsolve", status in (1, 3), message)  # 3: no better root in floating point
        return x, None

    start = as_array(x0).reshape(-1)
    return FindRoot.apply(RootProblem(callback, find, start.shape), (start,), *callback.operands)


__getattr__, __dir__ = _module_attributes("functrans.scipy.optimize", globals())
