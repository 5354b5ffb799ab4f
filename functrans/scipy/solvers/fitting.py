"""``least_squares``: SciPy's solvers with compiled Jacobians."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ... import numpy as fnp
from ...api.compiled.jit import jit
from ...arrays.arguments import one_of
from ...core import boundary, current_trace, eval_trace
from ...core.values import ArrayLike, PyTree
from ...frontend.checked import checked
from ...runtime.libraries import scipy
from ..patched import unpatched
from .callbacks import Callback, is_traced, numbers_only
from .drivers import Wrap, as_it_is, compiled_jacobian, numbers
from .roots import FindRoot, MinimumProblem, check_found, results_of
from .trees import Vector, vector

#: SciPy's losses of squared residuals in units of `f_scale`.
_LOSSES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2.0 * (fnp.sqrt(1.0 + z) - 1.0),
    "huber": lambda z: fnp.where(z <= 1.0, z, 2.0 * fnp.sqrt(fnp.maximum(z, 1.0)) - 1.0),
    "cauchy": fnp.log1p,
    "arctan": fnp.arctan,
}


@boundary
@checked
def least_squares(
    fun: Callable[..., PyTree],
    x0: ArrayLike,
    jac: Any = None,
    bounds: ArrayLike = (-np.inf, np.inf),
    method: str = "trf",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: float = 1.0,
    diff_step: Any = None,
    tr_solver: str | None = None,
    tr_options: Mapping[str, Any] | None = None,
    jac_sparsity: Any = None,
    max_nfev: int | None = None,
    verbose: int = 0,
    args: ArrayLike = (),
    kwargs: Mapping[str, Any] | None = None,
    callback: Callable[..., PyTree] | None = None,
) -> Any:
    """``scipy.optimize.least_squares``: the least sum of squares of residuals, with a compiled Jacobian.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args, **kwargs)`` returns the residuals: an real array or a tree of real arrays. It may read traced
        values.
    x0 : array or pytree of arrays
        The initial guess, real. A list or tuple of numbers is a vector, as in SciPy.
    jac : callable or str, optional
        By default `fun` and its Jacobian are compiled. Otherwise as in SciPy, with `fun` called as it is:
        ``'2-point'``, ``'3-point'`` and ``'cs'`` are SciPy's differences; a function returns the matrix of derivatives
        of all residuals in all elements of `x`, in the order of `functrans.flatten_util.ravel_pytree`.
    bounds : (lower, upper) or Bounds
        As in SciPy; for a tree, also a pair of trees like it or numbers.
    loss : str or callable
        As in SciPy: ``'linear'``, ``'soft_l1'``, ``'huber'``, ``'cauchy'``, ``'arctan'``, or a function.
    args, kwargs
        Further arguments of `fun`, which may be traced.
    method, ftol, xtol, gtol, x_scale, f_scale, diff_step, tr_solver, tr_options, jac_sparsity, max_nfev, verbose, \
callback
        As in SciPy; `callback` requires a version that has it.

    Returns
    -------
    OptimizeResult
        As SciPy's, but ``x`` and ``grad`` are like `x0`. Under `jit` and `vmap` it has only ``x`` and ``cost``.

    Raises
    ------
    ArgumentError, DtypeError
        If `x0` or a residual is not real; if an option cannot be combined with traced values.
    SolverError
        If no minimum is found and a traced value is involved.

    See Also
    --------
    minimize : for functions that are not sums of squares.

    Notes
    -----
    ``x`` has derivatives in all traced values that `fun` reads: those of the root of the gradient of the cost, with its
    whole Hessian. An element at a bound has zero derivative. ``cost`` is ``0.5 * sum(rho(residual**2))`` and has
    derivatives, too. Supports both modes, to any order, for all losses but functions. The error of a derivative is that
    of the minimiser, to first order: pass small tolerances. Under `jit` and `vmap` SciPy runs as a host call, one
    example after the other.

    Examples
    --------
    A line through points:

    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans.scipy.optimize import least_squares
    >>> t = fnp.asarray([0.0, 1.0, 2.0])
    >>> def line(p, y):
    ...     return p["slope"] * t + p["start"] - y
    >>> fit = lambda y: least_squares(line, {"slope": 0.0, "start": 0.0}, args=(y,)).x["slope"]
    >>> y = fnp.asarray([1.0, 3.0, 5.0])
    >>> fit(y).round(9), ft.grad(fit)(y).round(9) + 0.0
    (Array(2.), Array([-0.5,  0. ,  0.5]))
    """
    problem = _Fit(
        Vector("least_squares", x0), fun, args if isinstance(args, tuple) else (args,), dict(kwargs or {})
    )
    if isinstance(loss, str):
        one_of(loss, tuple(_LOSSES), "least_squares: loss")
    settings = {
        "bounds": problem.x.bounds(bounds, scipy.optimize.Bounds), "method": method, "ftol": ftol, "xtol": xtol,
        "gtol": gtol, "loss": loss, "f_scale": f_scale, "diff_step": diff_step, "tr_solver": tr_solver,
        "tr_options": dict(tr_options or {}), "jac_sparsity": jac_sparsity, "max_nfev": max_nfev, "verbose": verbose,
    }  # fmt: skip
    given = {"x_scale": x_scale, "callback": problem.x.called_back(callback)}
    settings.update({k: v for k, v in given.items() if v is not None})
    if current_trace.get() is eval_trace:
        return problem.eager(jac, settings)
    return problem.traced(jac, settings)


class _Fit:
    """The arguments of `least_squares`."""

    def __init__(self, x: Vector, fun: Callable[..., PyTree], args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.x, self.fun, self.args, self.kwargs = x, fun, args, kwargs

    def residuals(self, v: ArrayLike) -> Any:
        """The residuals for a vector."""
        return vector("least_squares", self.fun, self.fun(self.x.unravel(v), *self.args, **self.kwargs))

    def eager(self, jac: Any, settings: dict[str, Any]) -> Any:
        """SciPy's result, with trees for vectors."""
        found = self.by_scipy(jac, settings, as_it_is, np.array(self.x.flat, float))
        found.update(x=self.x.filled(found.x), grad=self.x.filled(found.grad))
        return found

    def by_scipy(self, jac: Any, settings: dict[str, Any], wrap: Wrap, start: np.ndarray) -> Any:
        """SciPy's result; `wrap` is applied to each of the user's functions."""
        rows = wrap(self.residuals)
        if callable(jac):
            own = wrap(jac)
            jac = lambda v: own(self.x.filled(v), *self.args, **self.kwargs)  # noqa: E731
        elif jac is None:
            rows = jit(rows)
            jac = compiled_jacobian(rows, start)
        return unpatched(scipy.optimize.least_squares)(numbers(rows), start, jac, **settings)

    def traced(self, jac: Any, settings: dict[str, Any]) -> Any:
        """SciPy's result under transformations: a host call, with the derivatives of the root of the gradient."""
        start, loss, scale = self.x.flat, settings["loss"], settings["f_scale"]
        rho = (lambda z: fnp.asarray(loss(z))[0]) if callable(loss) else _LOSSES[loss]

        def cost(v: ArrayLike) -> Any:
            return 0.5 * scale**2 * fnp.sum(rho((self.residuals(v) / scale) ** 2))

        callback = Callback("least_squares", cost, (), [jac])
        if not (callback.operands or is_traced(start)):
            return numbers_only("least_squares", lambda: self.eager(jac, settings))

        def find(for_scipy: Wrap, start: ArrayLike) -> tuple[Any, Any]:
            found = self.by_scipy(jac, settings, for_scipy, np.array(start, float))
            check_found("least_squares", found.success, found.message, "minimum")
            return found.x, found

        bounds = settings["bounds"]
        lower, upper = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
        ends = np.broadcast_to(lower, start.shape), np.broadcast_to(upper, start.shape)
        problem = MinimumProblem(callback, find, start.shape, ends)
        best = FindRoot.apply(problem, (start,), *callback.operands)
        found = results_of(problem, callback, (start,), x=self.x.filled(best), cost=cost(best))
        if "grad" in found:
            found.grad = self.x.filled(found.grad)
        return found
