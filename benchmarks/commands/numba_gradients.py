"""Loops of the user's `@njit` code and their derivatives, beside the plain loop.

Each entry of `GRADIENTS` makes two programs without arguments, which return equal numbers, and says how many calls each
makes. Both compute the same value; that of functrans computes the gradient as well, where its name says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import functrans as ft

Programs = tuple[Callable[[], Any], Callable[[], Any], int]


@numba.njit
def tridiagonal(lower: Any, diagonal: Any, upper: Any, right: Any) -> Any:
    """Elimination without pivots (Thomas)."""
    n = diagonal.shape[0]
    c = np.empty(n)
    d = np.empty(n)
    c[0] = upper[0] / diagonal[0]
    d[0] = right[0] / diagonal[0]
    for i in range(1, n):
        m = diagonal[i] - lower[i] * c[i - 1]
        c[i] = upper[i] / m
        d[i] = (right[i] - lower[i] * d[i - 1]) / m
    x = np.empty(n)
    x[n - 1] = d[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


@numba.njit
def sum_of_tridiagonal(lower: Any, diagonal: Any, upper: Any, right: Any) -> float:
    """A number to differentiate."""
    return tridiagonal(lower, diagonal, upper, right).sum()


@numba.njit
def adaptive(rate: float, y: float) -> float:
    """Bogacki and Shampine's method with step control, for logistic growth."""
    t, h = 0.0, 1e-4
    while t < 1.0:
        k1 = rate * y * (1.0 - y)
        z = y + 0.5 * h * k1
        k2 = rate * z * (1.0 - z)
        z = y + 0.75 * h * k2
        k3 = rate * z * (1.0 - z)
        new = y + h * (2.0 * k1 + 3.0 * k2 + 4.0 * k3) / 9.0
        k4 = rate * new * (1.0 - new)
        error = abs(h * (-5.0 * k1 / 72.0 + k2 / 12.0 + k3 / 9.0 - k4 / 8.0))
        if error < 3e-14:
            t += h
            y = new
        h = min(2.0 * h, max(0.5 * h, 0.9 * h * (3e-14 / (error + 1e-30)) ** (1.0 / 3.0)))
        h = min(h, 1.0 - t + 1e-12)
    return y


@numba.njit
def alignment(score: Any, gap: float) -> float:
    """Needleman and Wunsch's global alignment."""
    n, m = score.shape
    best = np.zeros((n + 1, m + 1))
    for i in range(1, n + 1):
        best[i, 0] = -gap * i
    for j in range(1, m + 1):
        best[0, j] = -gap * j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            best[i, j] = max(
                best[i - 1, j - 1] + score[i - 1, j - 1], best[i - 1, j] - gap, best[i, j - 1] - gap
            )
    return best[n, m]


def _tridiagonal_arguments() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    n = 1000
    return rng.uniform(-1, 0, n), rng.uniform(3, 4, n), rng.uniform(-1, 0, n), rng.normal(size=n)


def _adaptive_arguments() -> tuple[Any, ...]:
    return 3.0, 0.01


def _alignment_arguments() -> tuple[Any, ...]:
    return np.random.default_rng(0).normal(size=(500, 500)), 0.5


def forward(f: Any, arguments: Callable[[], tuple[Any, ...]], calls: int) -> Callable[[], Programs]:
    """The loop under `jit` alone."""

    def make() -> Programs:
        args = arguments()
        own = ft.jit(ft.numba_call(f))
        return _repeated(lambda: own(*args), calls), _repeated(lambda: f(*args), calls), calls

    return make


def with_gradient(f: Any, arguments: Callable[[], tuple[Any, ...]], calls: int) -> Callable[[], Programs]:
    """The value of a loop and its gradient with respect to all arguments, beside the loop."""

    def make() -> Programs:
        args = arguments()
        loop = ft.numba_call(f)
        own = ft.jit(ft.value_and_grad(loop, argnums=tuple(range(len(args)))))
        return _repeated(lambda: own(*args)[0], calls), _repeated(lambda: f(*args), calls), calls

    return make


def _repeated(f: Callable[[], Any], calls: int) -> Callable[[], Any]:
    def run() -> Any:
        for _ in range(calls - 1):
            f()
        return f()

    return run


GRADIENTS: dict[str, Callable[[], Programs]] = {
    "forward: tridiagonal, n=1000": forward(tridiagonal, _tridiagonal_arguments, 100),
    "forward: adaptive ODE, 9,000 steps": forward(adaptive, _adaptive_arguments, 2),
    "forward: 500x500 alignment": forward(alignment, _alignment_arguments, 2),
    "value and gradient: tridiagonal, n=1000": with_gradient(sum_of_tridiagonal, _tridiagonal_arguments, 50),
    "value and gradient: adaptive ODE, 9,000 steps": with_gradient(adaptive, _adaptive_arguments, 2),
    "value and gradient: 500x500 alignment": with_gradient(alignment, _alignment_arguments, 2),
}
