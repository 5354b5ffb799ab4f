"""Solutions of ordinary differential equations, by SciPy's solvers, with the derivatives of the variational equation.

The tangent `s` of the solution of ``dy/dt = f(t, y, c)``, ``y(t0) = y0`` in a direction solves ::

    ds/dt = (df/dy) s + (df/dc) dc,   s(t0) = dy0 - f(t0, y0) dt0

and the tangent of ``y(t)`` is ``s(t) + f(t, y) dt``. Both are solved together as one system, by the same method at
the same tolerances. Forward mode solves it for its direction. Reverse mode needs the Jacobian of the solution, so it
solves for all directions at once. (The adjoint equation would be cheaper for many parameters, but it needs `y`
backward in time, which is unstable wherever the equation is stable.) Both systems have the form of the first, so one
`Function` serves derivatives of any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import ArgumentError, ShapeError, SolverError, Zero, aval_of
from ...core.values import ArrayLike, PyTree, Value
from ...custom.closures import Sealed
from ...custom.function import Function
from ...frontend.structs import ShapeDtypeStruct
from ...numpy.creation.filled import asarray
from ...numpy.shaping.joining import concatenate, stack
from ...numpy.shaping.reshaping import broadcast_to
from ...passes.masks import scatter
from ...primitives import ops
from ...runtime.libraries import scipy
from ...runtime.records import dataclass
from ...transforms.jvp import jvp
from ...transforms.linearize import linearize
from ...transforms.transpose import backward
from ..patched import unpatched
from .callbacks import Callback, as_array, is_differentiable

#: Options that describe the user's function to a solver, and do not apply to its derivatives.
_OF_THE_FUNCTION = ("jac", "jac_sparsity", "lband", "uband", "first_step")
_SMALLEST_RTOL = 100 * np.finfo(float).eps


class OdeSystem:
    """The right-hand side of a system of equations: a function of a number, a vector, and flat operands."""

    def slope(self, t: Value, y: Value, operands: Sequence[Any]) -> Any:
        """The derivative of `y`."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class UserOde(OdeSystem):
    """The user's."""

    callback: Callback
    vectorized: bool

    def slope(self, t: Value, y: Value, operands: Sequence[Value]) -> Value:
        """The derivative of the whole system."""
        result = self.callback(operands, t, y[:, None] if self.vectorized else y)
        slope = as_array(result).reshape(-1)
        if slope.shape == y.shape:
            return slope
        if slope.shape == (1,):  # one number for all equations, which SciPy accepts
            return broadcast_to(slope, y.shape)
        raise ShapeError(
            f"solve_ivp: the function returned {slope.size} derivatives for {y.size} equations. Return one for "
            "each element of y"
        )


@dataclass(frozen=True, eq=False)
class TangentOde(OdeSystem):
    """A system followed by its tangent in one direction; the tangents of marked operands follow the operands."""

    of: OdeSystem
    has_tangent: tuple[bool, ...]

    def slope(self, t: Value, y: Value, operands: Sequence[Any]) -> Value:
        """The derivative of the whole system."""
        n, count = y.shape[0] // 2, len(self.has_tangent)
        tangents = scatter(self.has_tangent, operands[count:])
        values = [y[:n], *operands[:count]]
        outs, moved = jvp(
            lambda x, *cs: [self.of.slope(t, x, cs)], values, [y[n:], *_zeros(values[1:], tangents)]
        )
        return concatenate([outs[0], ops.instantiate(moved[0])])


@dataclass(frozen=True, eq=False)
class Jacobian(OdeSystem):
    """A system of `n` equations followed by its derivatives in `y` and the marked operands, row by row."""

    of: OdeSystem
    n: int
    has_tangent: tuple[bool, ...]

    def slope(self, t: Value, y: Value, operands: Sequence[ArrayLike]) -> Value:
        """The derivative of the whole system."""
        n = self.n
        own = y[n:].reshape(n, -1)
        linear = linearize(
            lambda x, *cs: [self.of.slope(t, x, cs)], [y[:n], *operands], [True, *self.has_tangent]
        )
        rows = []
        for unit in np.eye(n):
            back = backward(linear.tape, linear.tangents, [unit], linear.inputs)
            rows.append([ops.instantiate(ct).reshape(-1) for ct in back if ct is not None])
        in_y = stack([row[0] for row in rows]) @ own
        in_c = stack([concatenate([np.zeros(n), *row[1:]]) for row in rows])
        return concatenate([linear.outs[0], (in_y + in_c).reshape(-1)])


@dataclass(frozen=True, eq=False)
class Problem(Sealed):
    """A system and the options of its solver.

    Attributes
    ----------
    system : OdeSystem
    n : int
        The number of equations.
    options : dict
        Arguments of ``scipy.integrate.solve_ivp``.
    details : list
        Holds SciPy's latest result.
    """

    system: OdeSystem
    n: int
    options: dict[str, Any]
    details: list[Any]

    def of(self, system: OdeSystem, directions: int) -> Problem:
        """The problem for a system with derivatives in a number of directions.

        Solvers control the mean square error of all equations, so the tolerances are tightened until the error in each
        direction, and in the solution itself, is within the original ones.
        """
        options = {k: v for k, v in self.options.items() if k not in _OF_THE_FUNCTION}

        def narrowed(tolerance: ArrayLike, least: float = 0.0) -> Any:
            narrow = np.maximum(np.asarray(tolerance) / np.sqrt(1 + directions), least)
            return np.concatenate([narrow, np.repeat(narrow, directions)]) if narrow.ndim else float(narrow)

        rtol = narrowed(options.get("rtol", 1e-3), _SMALLEST_RTOL)
        atol = narrowed(options.get("atol", 1e-6))
        return Problem(system, self.n * (1 + directions), {**options, "rtol": rtol, "atol": atol}, [])

    def solved(
        self, span: Sequence[ArrayLike], y0: Value, times: ArrayLike, operands: Sequence[ArrayLike]
    ) -> tuple[Any, Any]:
        """The times of the solution (all steps if `t_eval` is None), and the solution there."""
        span = (float(span[0]), float(span[1]))
        options = {"t_eval": times, **self.options}
        system = self.system
        solver = unpatched(scipy.integrate.solve_ivp)
        if isinstance(system, UserOde):
            callback, vectorized = system.callback, system.vectorized

            def use(for_scipy: Any) -> Any:
                if "jac" in options:
                    options["jac"] = for_scipy(options["jac"])
                return solver(for_scipy(callback.fun), span, y0, vectorized=vectorized, **options)

            solution = callback.reading(operands, use)
        else:
            solution = solver(lambda t, y: system.slope(t, y, operands), span, y0, **options)
        if not solution.success:
            raise SolverError(f"solve_ivp: no solution was found: {solution.message}")
        self.details[:] = [solution]
        return solution.t, solution.y


class Flow(Function):
    """Solutions of initial value problems, differentiable in times, initial values, and what the equations read."""

    host = True
    vmap_method = "sequential"

    @staticmethod
    def forward(
        problem: Problem, t0: ArrayLike, tf: ArrayLike, y0: Value, times: Value, *operands: ArrayLike
    ) -> PyTree:
        """The solution."""
        return problem.solved((t0, tf), y0, times, operands)

    @staticmethod
    def shape(
        problem: Problem, t0: ArrayLike, tf: ArrayLike, y0: ArrayLike, times: Any, *operands: ArrayLike
    ) -> Any:
        """Its shape and dtype."""
        if times is None:
            raise ArgumentError(
                "solve_ivp: pass t_eval under jit and vmap: the number of steps is unknown while tracing"
            )
        dtype = np.dtype(float)
        return ShapeDtypeStruct(times.shape, dtype), ShapeDtypeStruct((problem.n, *times.shape), dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: ArrayLike) -> None:
        """Save the values that the rules need."""
        ctx.problem, ctx.t0, ctx.tf, ctx.y0, ctx.times, *operands = inputs
        ctx.operands = tuple(operands)
        ctx.t, ctx.y = output
        ctx.mark_non_differentiable(output[0])
        ctx.set_materialize_grads(False)

    @staticmethod
    def jvp(ctx: Any, _: object, t0: Any, tf: Any, y0: Value, times: ArrayLike, *tangents: Any) -> Any:
        """Forward mode."""
        problem, operands = ctx.problem, ctx.operands
        n = problem.n
        start = np.zeros(n) if y0 is None else y0
        if t0 is not None:
            start = start - t0 * problem.system.slope(ctx.t0, ctx.y0, operands)
        push = problem.of(TangentOde(problem.system, tuple([t is not None for t in tangents])), 1)
        given = [t for t in tangents if t is not None]
        z0 = concatenate([ctx.y0, start])
        moved = Flow.apply(push, ctx.t0, ctx.tf, z0, _times(ctx), *operands, *given)[1][n:]
        shifts = {0: t0, -1: tf} if ctx.times is None else {} if times is None else dict(enumerate(times))
        for k, shift in shifts.items():
            if shift is not None:
                moved = asarray(moved).at[:, k].add(shift * _slope(ctx, k))
        return None, moved

    @staticmethod
    def backward(ctx: Any, _: object, ct: Value) -> tuple[Value, ...]:
        """Reverse mode."""
        problem, operands = ctx.problem, ctx.operands
        if ct is None:
            return (None,) * (5 + len(operands))
        n = problem.n
        needs_t0, needs_tf, needs_y0, needs_times, *needs = ctx.needs_input_grad[1:]
        has_tangent = tuple([m and is_differentiable(x) for m, x in zip(needs, operands)])
        at_start = np.zeros(n)
        back: list[Any] = [None] * len(operands)
        if needs_t0 or needs_y0 or any(has_tangent):
            at_start, back = _pulled(ctx, ct, has_tangent)
        in_t0 = -(at_start @ problem.system.slope(ctx.t0, ctx.y0, operands)) if needs_t0 else None
        in_tf = in_times = None
        if ctx.times is None:
            in_t0 = None if in_t0 is None else in_t0 + ct[:, 0] @ _slope(ctx, 0)
            in_tf = ct[:, -1] @ _slope(ctx, -1) if needs_tf else None
        elif needs_times:
            in_times = stack([ct[:, k] @ _slope(ctx, k) for k in range(ctx.t.shape[0])])
        return (None, in_t0, in_tf, at_start if needs_y0 else None, in_times, *back)


def _times(ctx: Any) -> Value:
    """The times of the solution, with their derivatives."""
    if ctx.times is not None:
        return ctx.times
    return concatenate([asarray(ctx.t0).reshape(1), ctx.t[1:-1], asarray(ctx.tf).reshape(1)])


def _slope(ctx: Any, k: int) -> Any:
    """The derivative of the solution in time, at one of its times."""
    return ctx.problem.system.slope(_times(ctx)[k], ctx.y[:, k], ctx.operands)


def _pulled(ctx: Any, ct: Value, has_tangent: tuple[bool, ...]) -> tuple[Any, list[Any]]:
    """The cotangents of the initial values and the marked operands, from the Jacobian of the solution."""
    problem, operands = ctx.problem, ctx.operands
    n = problem.n
    avals = [aval_of(x) for x in operands]
    directions = n + sum([a.size for a, m in zip(avals, has_tangent) if m])
    system = problem.of(Jacobian(problem.system, n, has_tangent), directions)
    z0 = concatenate([ctx.y0, np.eye(n, directions).reshape(-1)])
    adjoint = Flow.apply(system, ctx.t0, ctx.tf, z0, _times(ctx), *operands)[1]
    total = (ct[:, None, :] * adjoint[n:].reshape(n, directions, -1)).sum(axis=(0, 2))
    back: list[Any] = []
    place = n
    for a, m in zip(avals, has_tangent):
        back.append(total[place : place + a.size].reshape(a.shape) if m else None)
        place += a.size if m else 0
    return total[:n], back


def _zeros(values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    return [Zero(x) if t is None else t for x, t in zip(values, tangents)]
