"""Quasi-Newton methods as native loops: BFGS and L-BFGS.

J. Nocedal & S. J. Wright: Numerical Optimization, 2nd ed. 2006, algorithms 6.1 and 7.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as fnp
from ...core import finfo
from ...core.values import ArrayLike, Value
from ...frontend.pytree import tree_map
from ...runtime.records import NamedTuple
from .line_search import Point, line_search

CONVERGED, TOO_MANY, NO_STEP = 0, 1, 3


class Memory:
    """An estimate of the inverse Hessian; its arrays travel through the loop."""

    def start(self, n: int, dtype: np.dtype) -> Any:
        """The identity."""
        raise NotImplementedError

    def times(self, memory: Any, gradient: ArrayLike) -> Any:
        """The estimate times a vector."""
        raise NotImplementedError

    def updated(self, memory: Any, first: ArrayLike, step: ArrayLike, change: Any) -> Any:
        """The estimate after a step with this change of the gradient; `first` says whether it is the first one."""
        raise NotImplementedError


class Full(Memory):
    """The matrix itself: BFGS."""

    def start(self, n: int, dtype: np.dtype) -> Value:
        """The identity."""
        return fnp.eye(n, dtype=dtype)

    def times(self, memory: Any, gradient: ArrayLike) -> Any:
        """The estimate times a vector."""
        return memory @ gradient

    def updated(self, memory: Any, first: ArrayLike, step: ArrayLike, change: Any) -> Value:
        """The matrix closest to this one that takes the change to the step (formula 6.17)."""
        product = fnp.vdot(change, step)
        scale = fnp.where(first, product / fnp.vdot(change, change), 1.0)  # (6.20)
        memory = scale * memory
        turned = memory @ change
        rho = 1.0 / product
        own = rho * (1.0 + rho * fnp.vdot(change, turned))
        cross = rho * turned[:, None] * step[None, :]
        return memory + own * step[:, None] * step[None, :] - cross - cross.T


class _LastSteps(NamedTuple):
    """The last steps and changes of the gradient, shape (m, n), the newest last, and one over their products, (m,)."""

    steps: Any
    changes: Any
    rho: Any
    scale: ArrayLike


class Limited(Memory):
    """The last `size` steps: L-BFGS."""

    def __init__(self, size: int):
        self.size = size

    def start(self, n: int, dtype: np.dtype) -> Any:
        """No steps: rows whose `rho` is zero have no effect."""
        rows = fnp.zeros((self.size, n), dtype)
        return _LastSteps(rows, rows, fnp.zeros(self.size, dtype), fnp.ones((), dtype))

    def times(self, memory: Any, gradient: ArrayLike) -> Any:
        """The two-loop recursion."""

        def back(q: Value, row: ArrayLike) -> tuple[Any, Any]:
            step, change, rho = row
            alpha = rho * fnp.vdot(step, q)
            return q - alpha * change, alpha

        def forth(r: ArrayLike, row: ArrayLike) -> tuple[Any, None]:
            step, change, rho, alpha = row
            return r + (alpha - rho * fnp.vdot(change, r)) * step, None

        q, alphas = lax.scan(back, gradient, memory[:3], reverse=True)
        return lax.scan(forth, memory.scale * q, (*memory[:3], alphas))[0]

    def updated(self, memory: Any, first: ArrayLike, step: ArrayLike, change: Any) -> Any:
        """The newest step instead of the oldest."""
        product = fnp.vdot(change, step)

        def push(rows: ArrayLike, row: ArrayLike) -> Value:
            return fnp.concatenate([rows[1:], row[None]])

        return _LastSteps(
            push(memory.steps, step),
            push(memory.changes, change),
            push(memory.rho, 1.0 / product),
            product / fnp.vdot(change, change),
        )


class Minimum(NamedTuple):
    """The state of a minimisation, and its result.

    Attributes
    ----------
    x, gradient : vectors, shape (n,)
    value : float
    memory : tree of arrays
        The estimate of the inverse Hessian.
    nit, nfev : int
        Iterations, and evaluations of the function with its gradient.
    status : int
        -1 while it runs; 0 converged; 1 too many iterations; 3 the line search found no lower point.
    """

    x: ArrayLike
    value: Any
    gradient: Any
    memory: Any
    nit: Any
    nfev: Any
    status: Any


def minimized(
    fun: Callable[[Any], tuple[Any, Any]],
    x0: ArrayLike,
    memory: Memory,
    *,
    maxiter: Any,
    gtol: Any,
    ftol: Any,
    norm: Any,
    maxls: int,
) -> Minimum:
    """Minimise a function by quasi-Newton steps.

    Parameters
    ----------
    fun : callable
        ``fun(x) -> value, gradient``.
    x0 : vector, shape (n,)
    memory : Memory
    maxiter, gtol, ftol, norm, maxls
        As the options of `minimize`.
    """

    def small(gradient: ArrayLike) -> Any:
        return fnp.linalg.norm(gradient, norm) <= gtol

    def body(s: Minimum) -> Minimum:
        direction = -memory.times(s.memory, s.gradient)
        slope = fnp.vdot(s.gradient, direction)
        downhill = slope < 0
        direction = fnp.where(downhill, direction, -s.gradient)
        squared = fnp.vdot(s.gradient, s.gradient)
        start = Point(fnp.zeros_like(s.value), s.value, fnp.where(downhill, slope, -squared), s.gradient)
        a = fnp.where(s.nit == 0, fnp.minimum(1.0, 1.0 / fnp.sqrt(squared)), 1.0)
        point, count = line_search(fun, s.x, direction, start, a, maxls)
        step, change = point.a * direction, point.gradient - s.gradient
        product = fnp.vdot(change, step)
        curved = product > finfo(x0.dtype).eps * fnp.sqrt(fnp.vdot(step, step) * fnp.vdot(change, change))
        updated = memory.updated(s.memory, s.nit == 0, step, change)
        kept = tree_map(lambda new, old: fnp.where(curved, new, old), updated, s.memory)
        gained = s.value - point.value
        close = (gained <= ftol * fnp.maximum(fnp.maximum(fnp.abs(s.value), fnp.abs(point.value)), 1.0)) & (
            ftol > 0
        )
        nit = s.nit + 1
        status = fnp.where(nit >= maxiter, TOO_MANY, -1)
        status = fnp.where(point.a == 0, NO_STEP, status)
        status = fnp.where(small(point.gradient) | (close & (point.a > 0)), CONVERGED, status)
        return Minimum(s.x + step, point.value, point.gradient, kept, nit, s.nfev + count, status)

    value, gradient = fun(x0)
    status = fnp.where(small(gradient), CONVERGED, fnp.where(maxiter <= 0, TOO_MANY, -1))
    one = fnp.asarray(1)
    first = Minimum(x0, value, gradient, memory.start(x0.shape[0], x0.dtype), 0 * one, one, status)
    return lax.while_loop(lambda s: s.status == -1, body, first)
