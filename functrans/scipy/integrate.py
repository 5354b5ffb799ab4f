"""``scipy.integrate``: SciPy's own integrators, with derivatives, and integrals of samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import ArgumentError, aval_of, is_abstract, is_inexact
from ..core.values import ArrayLike, Param, PyTree
from ..numpy.creation.filled import asarray
from ..numpy.shaping.joining import concatenate
from ..numpy.signal.differences import trapezoid
from ..primitives import ops
from ..runtime.libraries import scipy
from ..runtime.module_getattr import module_attributes as _module_attributes
from .patched import unpatched
from .sampled import cumulative_trapezoid, simpson
from .solvers import quadrature
from .solvers.callbacks import Callback, as_array, is_traced, known, numbers_only
from .solvers.flows import Flow, Problem, UserOde
from .solvers.quadrature import Integral, Quad

__all__ = ["cumulative_trapezoid", "quad", "simpson", "solve_ivp", "trapezoid"]


def quad(
    func: Callable[..., PyTree],
    a: ArrayLike,
    b: ArrayLike,
    args: ArrayLike = (),
    full_output: ArrayLike = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: ArrayLike = None,
    weight: str | None = None,
    wvar: Any = None,
    wopts: Any = None,
    maxp1: int = 50,
    limlst: int = 50,
    complex_func: bool = False,
) -> PyTree:
    """``scipy.integrate.quad``: the integral of a function from `a` to `b`, by QUADPACK.

    Parameters
    ----------
    func : callable
        ``func(t, *args)`` returns a number. It is called with Python floats, and may read traced values.
    a, b : float
        Limits, which may be traced, and infinite where they are not.
    args : tuple
        Further arguments of `func`, which may be traced.
    full_output, epsabs, epsrel, limit, points, weight, wvar, wopts, maxp1, limlst, complex_func
        As in SciPy. These must not be traced. For a traced integral, `full_output` and `complex_func` must keep their
        defaults, and limits with a `weight` must not be traced.

    Returns
    -------
    y : float
        An `Array` of float64 if a traced value is involved.
    abserr : float
        SciPy's estimate of the error of `y`; its derivative is zero.

    Raises
    ------
    ArgumentError
        If an option cannot be combined with traced values.

    Notes
    -----
    The derivative in the limits is the integrand there. The derivative in the values that `func` reads is the
    integral of the integrand's derivative (Leibniz's rule), by the same method with the same options. So its error is
    about `epsabs` or `epsrel`, too. If the derivative is harder to integrate, say singular where `func` is not, SciPy
    warns as it would for any integral. Supports both modes, to any order. Reverse mode computes the integrals for all
    numbers that `func` reads from the same points. Second derivatives in a limit call `func` with a traced limit, so
    it must then use `functrans.numpy`. Under `jit` and `vmap`, SciPy runs as a host call, one example after the
    other.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.scipy.integrate import quad
    >>> ft.grad(lambda a: quad(lambda t: a * t**2, 0.0, 3.0)[0])(1.0)
    Array(9.)
    >>> ft.grad(lambda b: quad(lambda t: t**2, 0.0, b)[0])(3.0)
    Array(9.)
    """
    options = {
        "epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": points, "weight": weight, "wvar": wvar,
        "wopts": wopts, "maxp1": maxp1, "limlst": limlst,
    }  # fmt: skip
    callback = Callback("quad", func, args)
    traced_limits = is_traced(a, b)
    if not (callback.operands or traced_limits):
        return numbers_only(
            "quad",
            lambda: unpatched(scipy.integrate.quad)(
                func, a, b, args, full_output, complex_func=complex_func, **options
            ),
        )
    if full_output or complex_func:
        which = "full_output" if full_output else "complex_func"
        raise ArgumentError(f"quad: {which} is not available if a traced value is involved")
    if traced_limits and weight is not None:
        raise ArgumentError(
            f"quad: limits with weight={weight!r} must not be traced: the weight depends on them"
        )
    for name in ("points", "wvar"):
        if is_traced(options[name]):
            options[name] = known("quad", name, options[name])
    (y,), error = Quad.apply(Integral(quadrature.UserIntegrand(callback), options), a, b, *callback.operands)
    return ops.weakly(y), ops.weakly(error)  # SciPy returns floats


def solve_ivp(
    fun: Callable[..., PyTree],
    t_span: ArrayLike,
    y0: ArrayLike,
    method: Any = "RK45",
    t_eval: ArrayLike = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: ArrayLike = None,
    **options: Param,
) -> Any:
    """``scipy.integrate.solve_ivp``: the solution of ``dy/dt = fun(t, y)`` from an initial value.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, *args)`` returns an array or a list with one number per element of `y`. It may read traced values,
        and so may a callable ``jac`` in `options`.
    t_span : (float, float)
        The start and end times, which may be traced.
    y0 : array_like, shape (n,)
        The initial value, which may be traced.
    method, vectorized, **options
        As in SciPy.
    t_eval : array_like, shape (m,), optional
        The times of the solution, which may be traced; by default all steps. Required under `jit` and `vmap`.
    dense_output, events
        As in SciPy. If a traced value is involved, they must keep their defaults.
    args : tuple, optional
        Further arguments of `fun`, which may be traced.

    Returns
    -------
    OdeResult
        Its ``y``, of shape (n, m), is an `Array` if a traced value is involved, and so is ``t`` if the times are
        traced. Under `jit` and `vmap` it has only these two.

    Raises
    ------
    ArgumentError
        If an argument cannot be combined with traced values.
    SolverError
        If the solver fails, and a traced value is involved. (SciPy returns ``success=False``.)

    Notes
    -----
    Derivatives solve the variational equation together with the equation itself, by the same method at the same
    tolerances, so their relative error is about `rtol`, by default 0.001. **Set `rtol` to the accuracy that your
    derivatives need.** Forward mode solves 2n equations. Reverse mode solves n (1 + n + p), where p is the number of
    traced numbers that `fun` reads, and is stable for stiff equations, too. For hundreds of parameters, or long
    solutions, write the steps with ``lax.scan`` or ``lax.while_loop``, which compile and have reverse mode.
    Derivatives call `fun` with a traced `y`, so it must then use `functrans.numpy`. Only the solver uses ``jac``. If
    the steps are returned, they are constants, except for the ends of `t_span`.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.scipy.integrate import solve_ivp
    >>> def last(a):
    ...     return solve_ivp(lambda t, y: -a * y, (0.0, 1.0), [2.0], rtol=1e-9, atol=1e-9).y[0, -1]
    >>> ft.grad(last)(1.0).round(6)  # -2 / e
    Array(-0.735759)
    """
    settings = {**options, "method": method}
    arguments = () if args is None else args
    callback = Callback("solve_ivp", fun, arguments, [options.get("jac")])
    t0, tf = t_span
    if not (callback.operands or is_traced(t0, tf, y0, t_eval)):
        return numbers_only("solve_ivp", lambda: unpatched(scipy.integrate.solve_ivp)(
            fun, t_span, y0, t_eval=t_eval, dense_output=dense_output, events=events, vectorized=vectorized,
            args=args, **settings,
        ))  # fmt: skip
    if dense_output or events is not None:
        which = "events" if events is not None else "dense_output"
        raise ArgumentError(f"solve_ivp: {which} is not available if a traced value is involved; pass t_eval")
    y0 = as_array(y0)
    if not is_inexact(y0.dtype):
        y0 = y0.astype(float)
    if y0.dtype.kind == "c" or y0.ndim != 1:
        raise ArgumentError(
            f"solve_ivp: y0 must be a vector of real numbers if a traced value is involved, got {aval_of(y0)}"
        )
    times = None if t_eval is None else as_array(t_eval)
    problem = Problem(UserOde(callback, vectorized), y0.shape[0], settings, [])
    t, y = Flow.apply(problem, t0, tf, y0, times, *callback.operands)
    if times is not None:
        t = times
    elif is_traced(t0, tf):
        t = concatenate([asarray(t0).reshape(1), t[1:-1], asarray(tf).reshape(1)])
    everything = [t0, tf, y0, *callback.operands]
    if not problem.details or any(map(is_abstract, everything)):
        return scipy.optimize.OptimizeResult(t=t, y=y)
    solution = problem.details[0]
    solution.update(t=t, y=y)
    return solution


__getattr__, __dir__ = _module_attributes("functrans.scipy.integrate", globals())
