"""``minimize``: SciPy's solvers with compiled derivatives, and quasi-Newton methods as native loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as fnp
from ...api.grad import grad, value_and_grad
from ...api.vmap import vmap
from ...arrays.arguments import one_of, shown
from ...core import aval_of, boundary, current_trace, eval_trace
from ...core.evaluation import evaluate
from ...core.values import ArrayLike, PyTree
from ...errors import ArgumentError
from ...frontend.arguments import name_of
from ...frontend.checked import checked
from ...numpy.linalg import solve
from ...passes.toolkit import lift_tracers
from ...runtime.records import NamedTuple
from ...transforms.stage import stage
from .drivers import METHODS, Minimization
from .quasi_newton import CONVERGED, Full, Limited, minimized
from .trees import Vector, scalar

_LIMITED = ("l-bfgs", "l-bfgs-experimental-do-not-rely-on-this")
#: The options of native loops, with their defaults; that of `maxiter` is 200 for each element of `x`.
_OPTIONS = {"maxiter": None, "gtol": 1e-5, "norm": np.inf, "line_search_maxiter": 20}
_LIMITED_OPTIONS = {**_OPTIONS, "ftol": 2.220446049250313e-09, "maxcor": 10, "maxls": None}


class OptimizeResults(NamedTuple):
    """What `minimize` returns from a native loop.

    Attributes
    ----------
    x : array or pytree of Array
        The minimiser, like `x0`. It has derivatives.
    success : bool
    status : int
        0 converged; 1 too many iterations; 3 the line search found no lower point.
    fun : float
        The minimum. It has derivatives.
    jac : array or pytree of Array
        The gradient at `x`, like `x0`.
    hess_inv : array, shape (n, n), or None
        The estimate of the inverse Hessian; None for L-BFGS.
    nfev, njev, nit : int
        The numbers of evaluations of the function, of its gradient, and of iterations.
    """

    x: ArrayLike
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


@boundary
@checked
def minimize(
    fun: Callable[..., PyTree],
    x0: ArrayLike,
    args: ArrayLike = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: ArrayLike = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., PyTree] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """``scipy.optimize.minimize``: a minimum of a function of a tree of arrays, with compiled derivatives.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns a real number. It may read traced values.
    x0 : array or pytree of arrays
        The initial guess, real. A list or tuple of numbers is a vector, as in SciPy.
    args : tuple
        Further arguments of `fun` and of the derivatives, which may be traced.
    method : str or callable, optional
        As in SciPy. Under transformations, ``'BFGS'`` (the default without bounds and constraints) is a native loop.
        ``'L-BFGS'`` is a native loop always; JAX's name for it, ``'l-bfgs-experimental-do-not-rely-on-this'``, is
        accepted.
    jac, hess, hessp : callable, optional
        As in SciPy, with trees like `x0` for vectors, and a matrix of shape (n, n) from `hess`. By default functrans
        derives and compiles what the method needs: the gradient, the Hessian, or products with it.
        ``jac='2-point'`` asks for SciPy's differences, for functions that cannot be traced.
    bounds : sequence or Bounds, optional
        As in SciPy; for a tree, also a pair ``(lower, upper)`` of trees like it or numbers.
    constraints : dict, LinearConstraint, NonlinearConstraint, or a list of them, optional
        As in SciPy, of functions of a tree like `x0`. Their Jacobians (and Hessians) are compiled unless you pass them.
    tol : float, optional
        As in SciPy; for native loops, the largest element of the gradient at the end.
    callback : callable, optional
        As in SciPy, with a tree like `x0`.
    options : dict, optional
        As in SciPy. Native loops take `maxiter`, `gtol`, `norm` (of the gradient), `line_search_maxiter`, and L-BFGS
        also `ftol`, `maxcor`, `maxls`. BFGS with `line_search_maxiter` is a native loop.

    Returns
    -------
    OptimizeResult or OptimizeResults
        SciPy's, with ``x`` and ``jac`` like `x0`; under `jit` and `vmap` with ``x`` and ``fun`` only. From native
        loops, an `OptimizeResults`.

    Raises
    ------
    ArgumentError, ArgumentValueError, DtypeError
        If `fun` does not return a real number, `x0` is not real, or an option cannot be combined with the method.
    SolverError
        If SciPy finds no minimum and a traced value is involved.
    LinAlgError
        If a derivative is needed and the Hessian at the minimum is singular.

    See Also
    --------
    least_squares : for sums of squares.

    Notes
    -----
    ``x`` has derivatives in all traced values that `fun` reads: those of the root of the gradient, by the implicit
    function theorem, with the Hessian at the minimum as a matrix. They are zero in the guess, and for elements at a
    bound. A minimiser under other constraints has none. ``fun`` has derivatives, too; all else has none. Both modes, to
    any order. The error of a derivative is that of the minimiser, to first order: pass a small `tol`.

    Under `vmap` the steps of each lane of a native loop are independent. Other methods run as a host call, one example
    after the other. The native loops search lines for the strong Wolfe conditions [1]_; see `OptimizeResults` for their
    result. If one does not converge, ``success`` is False and the derivatives have no meaning.

    A call outside transformations traces and compiles `fun` once.

    References
    ----------
    .. [1] J. Nocedal & S. J. Wright: Numerical Optimization, 2nd ed. 2006, algorithms 3.5, 6.1 and 7.5.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans.scipy.optimize import minimize
    >>> def rosenbrock(p):
    ...     return (1.0 - p["x"]) ** 2 + 100.0 * (p["y"] - p["x"] ** 2) ** 2
    >>> found = minimize(rosenbrock, {"x": -1.0, "y": 2.0}, tol=1e-9)
    >>> found.success, found.x["x"].round(6), found.x["y"].round(6)
    (True, Array(1.), Array(1.))

    A compiled minimisation for each of several problems, and the derivative of the minimiser:

    >>> def lowest(a):
    ...     return minimize(lambda x: fnp.sum((x - a) ** 2 + x**4), fnp.zeros(1), tol=1e-9).x[0]
    >>> a = fnp.asarray([0.0, 3.0, 18.0])
    >>> ft.jit(ft.vmap(lowest))(a).round(6)  # 2 x**3 + x = a
    Array([0., 1., 2.])
    """
    x = Vector("minimize", x0)
    arguments = args if isinstance(args, tuple) else (args,)
    if method is not None and not callable(method):
        method = method.lower() if isinstance(method, str) else method
        one_of(method, (*METHODS, *_LIMITED), "minimize: method")
    settings = dict(options or {})
    others = {"jac": jac, "hess": hess, "hessp": hessp, "bounds": bounds, "constraints": constraints or None}
    tracing = current_trace.get() is not eval_trace
    default = method is None and bounds is None and not constraints
    if method in _LIMITED or "line_search_maxiter" in settings or (tracing and (method == "bfgs" or default)):
        for name, value in {**others, "callback": callback}.items():
            if value is not None:
                raise ArgumentError(
                    f"minimize: {name} is not available in a native loop (method {method or 'BFGS'!r}, under "
                    f"transformations): leave it out, or choose another method"
                )
        return _native(x, fun, arguments, method in _LIMITED, tol, settings)
    problem = Minimization(x, fun, arguments, method, tol, callback, settings, **others)
    return problem.traced() if tracing else problem.eager()


def _native(
    x: Vector,
    fun: Callable[..., PyTree],
    args: tuple[Any, ...],
    limited: bool,
    tol: float | None,
    options: Any,
) -> OptimizeResults:
    """The minimum by a native loop; the minimiser as the root of the gradient, which gives its derivatives."""
    known = _LIMITED_OPTIONS if limited else _OPTIONS
    for name in options:
        one_of(name, tuple(known), "minimize: an option of a native loop")
    chosen = {**known, **({} if tol is None else {"gtol": tol, "ftol": 0.0}), **options}
    for name, number in chosen.items():
        if not (number is None or isinstance(number, int | float | np.number)):
            raise ArgumentError(f"minimize: the option {name} must be a number, got {shown(number)}")

    def flat(v: ArrayLike) -> list[Any]:
        return [scalar("minimize", fun, fun(x.unravel(v), *args)).astype(x.flat.dtype)]

    jaxpr, captured = lift_tracers(stage(flat, [aval_of(x.flat)], name_of(fun)))

    def value(v: ArrayLike) -> Any:
        return evaluate(jaxpr, [*captured, v])[0]

    def search(gradient: Callable[[Any], Any], start: ArrayLike) -> Any:
        n = start.shape[0]
        found = minimized(
            value_and_grad(value),
            start,
            Limited(int(chosen["maxcor"])) if limited else Full(),
            maxiter=200 * n if chosen["maxiter"] is None else chosen["maxiter"],
            gtol=chosen["gtol"],
            ftol=chosen.get("ftol", 0.0),
            norm=chosen["norm"],
            maxls=chosen.get("maxls") or chosen["line_search_maxiter"],
        )
        return found.x, found._replace(memory=None if limited else found.memory)

    best, found = lax.custom_root(grad(value), x.flat, search, _newton_step, has_aux=True)
    return OptimizeResults(
        x.unravel(best), found.status == CONVERGED, found.status, value(best), x.unravel(found.gradient),
        found.memory, found.nfev, found.nfev, found.nit,
    )  # fmt: skip


def _newton_step(hessian: Callable[[Any], Any], right: ArrayLike) -> Any:
    """The solution of the system with the Hessian, which is computed as a matrix."""
    return solve(vmap(hessian)(fnp.eye(right.shape[0], dtype=right.dtype)), right)
