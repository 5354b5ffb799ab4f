"""Calls of jitted gradients in `@njit` code, and the same code with the gradient by hand.

Each entry of `CALLS` makes two programs without arguments, which return equal numbers, and says how many calls each
makes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from scipy import LowLevelCallable
from scipy.integrate import quad

import functrans as ft
import functrans.numpy as fnp

Programs = tuple[Callable[[], Any], Callable[[], Any], int]
_CALLS = 20_000


def array_to_array() -> Programs:
    """The gradient of Rosenbrock's function of 10 numbers, in a loop that uses its result."""

    def rosenbrock(x: Any) -> Any:
        return fnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    gradient = ft.jit(ft.grad(rosenbrock))
    start = np.linspace(0.0, 0.9, 10)
    gradient(start)

    @numba.njit
    def by_hand(x: Any) -> Any:
        out = np.zeros(len(x))
        for i in range(len(x) - 1):
            d = x[i + 1] - x[i] ** 2
            out[i] += -400.0 * x[i] * d - 2.0 * (1.0 - x[i])
            out[i + 1] += 200.0 * d
        return out

    return _looped(gradient, start), _looped(by_hand, start), _CALLS


def _looped(gradient: Any, start: np.ndarray) -> Callable[[], Any]:
    """Steps of descent with a gradient that is a global of the loop."""

    @numba.njit
    def descend(x: Any, count: int) -> Any:
        total = 0.0
        for i in range(count):
            total += gradient(x)[i % len(x)]
        return total

    return lambda: descend(start, _CALLS)


def scalar() -> Programs:
    """The derivative of a function of a number; each call needs the result of the one before."""
    slope = ft.jit(ft.grad(lambda x: fnp.exp(-x * x) * fnp.sin(3.0 * x)))

    @numba.njit
    def by_hand(x: float) -> float:
        return math.exp(-x * x) * (3.0 * math.cos(3.0 * x) - 2.0 * x * math.sin(3.0 * x))

    return _chained(slope), _chained(by_hand), _CALLS


def _chained(slope: Any) -> Callable[[], Any]:
    @numba.njit
    def climb(x: float, count: int) -> float:
        for _ in range(count):
            x += 1e-3 * slope(x)
        return x

    return lambda: climb(0.3, _CALLS)


def each_number() -> Programs:
    """The derivative of a quotient at each number of an array."""
    slope = ft.jit(ft.grad(lambda x: x**3 / (1.0 + x * x)))

    @numba.njit
    def by_hand(x: float) -> float:
        d = 1.0 + x * x
        return (3.0 * x * x * d - 2.0 * x**4) / (d * d)

    return _mapped(slope), _mapped(by_hand), _CALLS


def _mapped(slope: Any) -> Callable[[], Any]:
    x, y = np.linspace(-3.0, 3.0, _CALLS), np.empty(_CALLS)

    @numba.njit
    def run(x: Any, y: Any) -> Any:
        for i in range(len(x)):
            y[i] = slope(x[i])
        return y

    return lambda: run(x, y)


def by_cfunc() -> Programs:
    """`scipy.integrate.quad` of a derivative as a C function."""
    slope = ft.jit(ft.grad(lambda x: fnp.exp(-x * x) * fnp.sin(30.0 * x)))
    own = LowLevelCallable(slope.cfunc("float64(float64)").ctypes)

    @numba.cfunc("float64(float64)")
    def by_hand(x: float) -> float:
        return math.exp(-x * x) * (30.0 * math.cos(30.0 * x) - 2.0 * x * math.sin(30.0 * x))

    hand = LowLevelCallable(by_hand.ctypes)
    return lambda: quad(own, 0.0, 3.0)[0], lambda: quad(hand, 0.0, 3.0)[0], 1


CALLS: dict[str, Callable[[], Programs]] = {
    "call: 10 numbers, array out": array_to_array,
    "call: a number": scalar,
    "call: each number of an array": each_number,
    "`quad` by `cfunc`": by_cfunc,
}
