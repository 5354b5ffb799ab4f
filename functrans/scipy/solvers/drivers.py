"""SciPy's minimisers, driven with compiled gradients, Hessians and their products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import numpy as fnp
from ...api.compiled.jit import jit
from ...api.derivatives import jvp
from ...api.grad import grad, value_and_grad
from ...api.jacobian import hessian, jacfwd, jacrev
from ...arrays.arguments import shown
from ...core.values import ArrayLike, Params, PyTree, Value
from ...errors import ArgumentError
from ...runtime.libraries import scipy
from ..patched import unpatched
from .callbacks import Callback, is_traced, numbers_only
from .roots import FindRoot, MinimumProblem, check_found, results_of
from .trees import Vector, scalar, vector

#: SciPy's methods by what they need besides values: gradients, products with the Hessian, the Hessian.
_GRADIENTS = (
    "bfgs", "cg", "dogleg", "l-bfgs-b", "newton-cg", "slsqp", "tnc", "trust-constr", "trust-exact", "trust-krylov",
    "trust-ncg",
)  # fmt: skip
_PRODUCTS = ("newton-cg", "trust-constr", "trust-krylov", "trust-ncg")
_MATRICES = ("dogleg", "trust-exact")
METHODS = (*_GRADIENTS, "cobyla", "cobyqa", "nelder-mead", "powell")

#: The largest element of a gradient at a minimum.
_SMALL = 1e-5

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def as_it_is(fun: Callable[..., PyTree]) -> Callable[..., Any]:
    """The `Wrap` outside transformations."""
    return fun


class Minimization:
    """The arguments of `minimize`.

    Functions that are differentiated are compiled; all others are called with numbers, as they are.
    """

    def __init__(
        self,
        x: Vector,
        fun: Callable[..., PyTree],
        args: tuple[Value, ...],
        method: str | None,
        tol: float | None,
        callback: Callable[..., PyTree] | None,
        options: Params,
        **others: Any,
    ):
        self.x, self.fun, self.args, self.method = x, fun, args, method
        self.tol, self.callback, self.options = tol, callback, options
        self.jac, self.hess, self.hessp = others["jac"], others["hess"], others["hessp"]
        single = scipy.optimize.Bounds
        self.bounds = _checked_bounds(x.bounds(others["bounds"], single))
        constraints = others["constraints"]
        listed = constraints if isinstance(constraints, list | tuple) else [constraints]
        self.constraints = [] if constraints is None else list(listed)

    def value(self, v: Value) -> Value:
        """The objective of a vector."""
        out = self.fun(self.x.unravel(v), *self.args)
        if self.jac is True:
            if not (isinstance(out, tuple | list) and len(out) == 2):
                raise ArgumentError(
                    f"minimize: jac=True, so fun must return a pair (value, gradient), but it returned {shown(out)}"
                )
            out = out[0]
        return scalar("minimize", self.fun, out)

    # --- by SciPy -------------------------------------------------------------------------------------------

    def eager(self) -> Any:
        """SciPy's result, with trees for vectors."""
        found = self.by_scipy(as_it_is, np.array(self.x.flat, float))
        found.update(self._trees(found))
        return found

    def by_scipy(self, wrap: Wrap, start: np.ndarray) -> Any:
        """SciPy's result; `wrap` is applied to each of the user's functions."""
        return unpatched(scipy.optimize.minimize)(
            x0=start,
            **self._first_derivatives(wrap),
            **self._second_derivatives(wrap),
            constraints=[self._constraint(c, wrap, start) for c in self.constraints],
            callback=self.x.called_back(self.callback),
            method=self.method,
            bounds=self.bounds,
            tol=self.tol,
            options=self.options or None,
        )

    def _trees(self, found: Any) -> dict[str, Any]:
        """The parts of a result that are like `x0`."""
        parts = {"x": found.x, "jac": found.get("jac"), "grad": found.get("grad")}
        return {
            k: self.x.filled(v)
            for k, v in parts.items()
            if np.shape(v) == self.x.flat.shape and v is not None
        }

    def _first_derivatives(self, wrap: Wrap) -> dict[str, Any]:
        """The objective and its gradient."""
        value = wrap(self.value)
        if self.jac is None and (self.method is None or callable(self.method) or self.method in _GRADIENTS):
            both = jit(value_and_grad(value))

            def fun(v: Value) -> tuple[float, np.ndarray]:
                y, gradient = both(fnp.asarray(v))
                return float(y), np.array(gradient, float)

            return {"fun": fun, "jac": True}
        if self.jac is True:

            def pair(v: ArrayLike) -> tuple[float, np.ndarray]:
                y, gradient = wrap(self.fun)(self.x.filled(v), *self.args)
                return float(scalar("minimize", self.fun, y)), self.x.raveled(gradient, "the gradient")

            return {"fun": pair, "jac": True}
        jac = self.jac
        if callable(jac):
            own = wrap(jac)
            jac = lambda v: self.x.raveled(own(self.x.filled(v), *self.args), "the result of jac")  # noqa: E731
        return {"fun": lambda v: float(value(fnp.asarray(v))), "jac": jac}

    def _second_derivatives(self, wrap: Wrap) -> dict[str, Any]:
        """The Hessian, or its products with vectors, for the methods that need them."""
        x, args, n = self.x, self.args, self.x.flat.size
        if callable(self.hess):
            own = wrap(self.hess)
            return {"hess": lambda v: _matrix(own(x.filled(v), *args), n)}
        if callable(self.hessp):
            of = wrap(self.hessp)
            return {
                "hessp": lambda v, p: x.raveled(of(x.filled(v), x.filled(p), *args), "the result of hessp")
            }
        if self.hess is not None or isinstance(self.jac, str):
            return {"hess": self.hess}
        value = wrap(self.value)
        if self.method in _MATRICES:
            matrix = jit(hessian(value))
            return {"hess": lambda v: np.array(matrix(fnp.asarray(v)), float)}
        if self.method in _PRODUCTS:
            times = jit(lambda v, p: jvp(grad(value), (v,), (p,))[1])
            return {"hessp": lambda v, p: np.array(times(fnp.asarray(v), fnp.asarray(p)), float)}
        return {}

    def _constraint(self, c: ArrayLike, wrap: Wrap, start: np.ndarray) -> Any:
        """A constraint on the tree as one on the vector, with a compiled Jacobian if it has none."""
        nonlinear = scipy.optimize.NonlinearConstraint
        if isinstance(c, nonlinear):
            rows = self._rows(c.fun, (), wrap)
            jac = compiled_jacobian(rows, start) if c.jac == "2-point" else self._plainly(c.jac, (), wrap)
            curved = jit(hessian(lambda v, weights: fnp.vdot(weights, rows(v))))
            hess = c.hess
            if hess is None:
                hess = lambda v, weights: np.array(curved(fnp.asarray(v), fnp.asarray(weights)), float)  # noqa: E731
            return nonlinear(numbers(rows), c.lb, c.ub, jac, hess, c.keep_feasible)
        if not isinstance(c, dict) or not callable(c.get("fun")):
            return c
        given = c.get("args", ())
        rows = self._rows(c["fun"], given, wrap)
        jac = self._plainly(c["jac"], given, wrap) if callable(c.get("jac")) else c.get("jac")
        if jac is None and self.method not in ("cobyla", "cobyqa"):
            jac = compiled_jacobian(rows, start)
        return {"type": c.get("type"), "fun": numbers(rows), "jac": jac}

    def _rows(self, fun: Callable[..., PyTree], args: ArrayLike, wrap: Wrap) -> Callable[[Any], Any]:
        return wrap(lambda v: vector("minimize: a constraint", fun, fun(self.x.unravel(v), *args)))

    def _plainly(self, fun: Any, args: ArrayLike, wrap: Wrap) -> Any:
        if not callable(fun):
            return fun
        own = wrap(fun)
        return lambda v: np.asarray(own(self.x.filled(v), *args), float)

    # --- under transformations ------------------------------------------------------------------------------

    def traced(self) -> Any:
        """SciPy's result under transformations: a host call, with the derivatives of the root of the gradient."""
        others = (self.jac, self.hess, self.hessp, self.constraints)
        callback = Callback("minimize", self.value, (), [lambda: others])
        start = self.x.flat
        if not (callback.operands or is_traced(start)):
            return numbers_only("minimize", self.eager)

        def find(for_scipy: Wrap, start: Value) -> tuple[Any, Any]:
            found = self.by_scipy(for_scipy, np.array(start, float))
            check_found("minimize", found.success or _flat(found), found.message, "minimum")
            return found.x, found

        problem = MinimumProblem(
            callback, find, start.shape, limits(self.bounds, start.size), bool(self.constraints)
        )
        best = FindRoot.apply(problem, (start,), *callback.operands)
        found = results_of(problem, callback, (start,), x=best)
        found.update(self._trees(found), fun=self.value(best))
        return found


def _flat(found: Any) -> bool:
    """Whether the gradient is small where a solver gave up, as it does where rounding hides further progress."""
    jac = found.get("jac")
    return jac is not None and bool(np.max(np.abs(jac), initial=0.0) <= _SMALL)


def _checked_bounds(bounds: ArrayLike) -> Any:
    if bounds is None or hasattr(bounds, "lb"):
        return bounds
    pairs = bounds.tolist() if isinstance(bounds, np.ndarray) else bounds
    if isinstance(pairs, list | tuple | zip):
        pairs = list(pairs)
        if all(isinstance(pair, list | tuple | np.ndarray) and len(pair) == 2 for pair in pairs):
            return pairs
    raise ArgumentError(
        "minimize: bounds must be pairs (lower, upper), one for each element, or scipy.optimize.Bounds; for a tree, "
        f"(lower, upper) of trees or numbers. Got {shown(bounds)}"
    )


def limits(bounds: ArrayLike, n: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Lower and upper bounds as vectors."""
    if bounds is None:
        return None
    if hasattr(bounds, "lb"):
        return np.broadcast_to(bounds.lb, n), np.broadcast_to(bounds.ub, n)
    pairs = [(-np.inf if low is None else low, np.inf if up is None else up) for low, up in bounds]
    return np.array(pairs, float)[:, 0], np.array(pairs, float)[:, 1]


def numbers(fun: Callable[[Any], Any]) -> Callable[[Any], np.ndarray]:
    """A function of a vector as SciPy calls it: it may write into the result."""
    return lambda v: np.array(fun(fnp.asarray(v)), float)


def compiled_jacobian(fun: Callable[[Any], Any], start: np.ndarray) -> Callable[[Any], np.ndarray]:
    """The compiled Jacobian of a function of a vector, by the mode that needs fewer passes."""
    many = fun(fnp.asarray(start)).size
    return numbers(jit((jacfwd if many >= start.size else jacrev)(fun)))


def _matrix(x: ArrayLike, n: int) -> Any:
    """A Hessian by the user: a matrix, or an operator that SciPy takes."""
    return np.asarray(x, float).reshape(n, n) if isinstance(x, np.ndarray | list) else x
