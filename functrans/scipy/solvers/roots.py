"""Roots of equations, by SciPy's solvers, with the derivatives of the implicit function theorem.

``f(x, c) = 0`` implies ``J dx = -(df/dc) dc`` with the Jacobian ``J = df/dx`` at the root. So the derivatives of the
root depend only on `f`, not on the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...api.jacobian import jacfwd
from ...core import ArgumentError, SolverError, is_abstract
from ...core.values import ArrayLike, Value
from ...custom.closures import Sealed
from ...custom.function import Function
from ...frontend.structs import ShapeDtypeStruct
from ...numpy.elementwise.selection import where
from ...numpy.linalg import diagonal, solve
from ...passes.masks import scatter
from ...runtime.libraries import scipy
from .callbacks import Callback, as_array, is_differentiable, pulled, pushed


class RootProblem(Sealed):
    """An equation and the solver that finds its root.

    Parameters
    ----------
    callback : Callback
    find : callable
        ``find(for_scipy, *guesses)`` returns the root and the rest of SciPy's result; see
        `Callback.reading`.
    shape : tuple of int
        The shape of the root.
    paired : bool
        Whether the function returns a pair whose second part is a derivative.

    Attributes
    ----------
    details : object
        The rest of SciPy's latest result.
    """

    __slots__ = ("callback", "details", "find", "paired", "shape")

    def __init__(
        self,
        callback: Callback,
        find: Callable[..., tuple[Any, Any]],
        shape: tuple[int, ...] = (),
        paired: bool = False,
    ):
        self.callback, self.find, self.shape, self.paired = callback, find, shape, paired
        self.details: Any = None

    def root(self, operands: Sequence[Value], guesses: Sequence[Value]) -> np.ndarray:
        """The root, for values of the operands."""
        x, self.details = self.callback.reading(operands, lambda for_scipy: self.find(for_scipy, *guesses))
        return np.asarray(x, float).reshape(self.shape)

    def residual(self, x: Value, operands: Sequence[Value]) -> Value:
        """The residual of the equation, zero at the root, as a vector."""
        result = self.callback(operands, x)
        return as_array(result[0] if self.paired else result).reshape(-1)

    def solved(
        self, x: ArrayLike, operands: Sequence[ArrayLike], right: ArrayLike, transposed: bool = False
    ) -> Any:
        """The solution of the system with the Jacobian (transposed) at the root."""
        if right.size == 1:
            (slope,) = pushed(lambda y: [self.residual(y, operands)], [x], [np.ones_like(x)])
            return right / slope
        jacobian = jacfwd(lambda y: self.residual(y, operands))(x).reshape(right.size, right.size)
        return solve(jacobian.T if transposed else jacobian, right)


class FindRoot(Function):
    """Roots, differentiable in the values that the equation reads. They do not depend on guesses and brackets."""

    host = True
    vmap_method = "sequential"

    @staticmethod
    def forward(equation: RootProblem, guesses: Sequence[Value], *operands: ArrayLike) -> Value | None:
        """The solution."""
        return equation.root(operands, guesses)

    @staticmethod
    def shape(equation: RootProblem, guesses: Sequence[Any], *operands: ArrayLike) -> Any:
        """Its shape and dtype."""
        return ShapeDtypeStruct(equation.shape, np.dtype(float))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Value) -> None:
        """Save the values that the rules need."""
        ctx.equation, _, *operands = inputs
        ctx.operands, ctx.root = tuple(operands), output
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, ct: ArrayLike) -> tuple[ArrayLike, ...]:
        """Reverse mode."""
        equation, x, operands = ctx.equation, ctx.root, ctx.operands
        has_tangent = [n and is_differentiable(c) for n, c in zip(ctx.needs_input_grad[2:], operands)]
        if ct is None or not any(has_tangent):
            return (None,) * (2 + len(operands))
        right = equation.solved(x, operands, -ct.reshape(-1), transposed=True)
        back = pulled(lambda *cs: [equation.residual(x, cs)], operands, has_tangent, [right])
        return (None, None, *scatter(has_tangent, back))

    @staticmethod
    def jvp(ctx: Any, _: object, guesses: Any, *tangents: Any) -> Any:
        """Forward mode."""
        equation, x, operands = ctx.equation, ctx.root, ctx.operands
        if all(t is None for t in tangents):
            return None
        (moved,) = pushed(lambda *cs: [equation.residual(x, cs)], operands, tangents)
        return equation.solved(x, operands, -moved).reshape(x.shape)


class MinimumProblem(RootProblem):
    """A minimum of a function: a root of its gradient, where no bound holds it.

    Parameters
    ----------
    callback, find, shape
        As for a root; the callback's function returns the value.
    bounds : (array, array) or None
        The lower and the upper ones. Elements of the minimiser at a bound stay there.
    constrained : bool
        Whether other constraints hold it; then it has no derivative.
    """

    __slots__ = ("bounds", "constrained")

    def __init__(
        self,
        callback: Callback,
        find: Callable[..., tuple[Any, Any]],
        shape: tuple[int, ...],
        bounds: tuple[np.ndarray, np.ndarray] | None = None,
        constrained: bool = False,
    ):
        super().__init__(callback, find, shape)
        self.bounds, self.constrained = bounds, constrained

    def residual(self, x: Value, operands: Sequence[Value]) -> Value:
        """The gradient."""
        return pulled(lambda y: [self.callback(operands, y)], [x], [True], [np.ones(())])[0]

    def solved(
        self, x: ArrayLike, operands: Sequence[ArrayLike], right: ArrayLike, transposed: bool = False
    ) -> Any:
        """The solution of the system with the Hessian at the minimum; zero for elements at a bound."""
        if self.constrained:
            raise ArgumentError(
                f"{self.callback.name}: a minimiser under constraints has no derivative here. Write them as bounds, or "
                "eliminate variables; functrans.scipy.optimize.root solves the equations of Lagrange, with derivatives"
            )
        hessian = jacfwd(lambda y: self.residual(y, operands))(x)
        if self.bounds is not None:
            lower, upper = self.bounds
            curvature = abs(diagonal(hessian))
            # Interior methods end near a bound, with a gradient that would lead across it.
            beyond = x - self.residual(x, operands) / where(curvature > 0, curvature, 1.0)
            free = (beyond > lower) & (beyond < upper)
            hessian = where(free[:, None] & free[None, :], hessian, np.eye(right.size))
            right = where(free, right, 0.0)
        return solve(hessian, right)


def check_found(name: str, converged: bool, why: str, what: str = "root") -> None:
    """Raise `SolverError` if SciPy found no solution."""
    if not converged:
        raise SolverError(
            f"{name}: no {what} was found: {why}. Without a {what} the derivative does not exist"
        )


def results_of(equation: RootProblem, callback: Callback, guesses: Any, **parts: Any) -> Any:
    """SciPy's results with a traced root; their other fields are known only where numbers are."""
    if equation.details is None or any(map(is_abstract, (*callback.operands, *guesses))):
        return scipy.optimize.OptimizeResult(**parts)
    details = equation.details
    details = type(details)(details) if type(details) is scipy.optimize.OptimizeResult else details
    details.update(parts)
    return details
