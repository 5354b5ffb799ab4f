"""Solvers: differential equations by adaptive steps, minima by BFGS."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy

from .program import Program, value_and_grad

RATES = numpy.array([0.55, 0.028, 0.8, 0.024])


def odeint(api: Any) -> Any:
    """The library's solver."""
    return import_module(f"{api.__name__}.experimental.ode").odeint


def predators(rates, times, *, np, api):
    """The Lotka-Volterra equations."""

    def slope(y, t, rates):
        return np.stack([(rates[0] - rates[1] * y[1]) * y[0], (-rates[2] + rates[3] * y[0]) * y[1]])

    return np.sum(odeint(api)(slope, np.array([30.0, 4.0]), times, rates)[-1])


def linear(matrix, times, *, np, api):
    """A linear system."""
    start = np.ones(matrix.shape[0])
    return np.sum(odeint(api)(lambda y, t, a: a @ y, start, times, matrix)[-1])


def many_predators(rates, times, *, np, api):
    """Values and gradients for each of many rates, which need different steps."""
    both = api.value_and_grad(lambda r: predators(r, times, np=np, api=api))
    return api.vmap(both)(rates)


def valleys(starts, *, np, api):
    """Minima of Himmelblau's function from many starts."""

    def height(x):
        return (x[0] ** 2 + x[1] - 11.0) ** 2 + (x[0] + x[1] ** 2 - 7.0) ** 2

    minimize = import_module(f"{api.__name__}.scipy.optimize").minimize
    return api.vmap(lambda x: minimize(height, x, method="BFGS", options={"gtol": 1e-8}).fun + 1.0)(starts)


def _matrix(rng):
    return rng.normal(size=(100, 100)) / 10 - 2 * numpy.eye(100), numpy.linspace(0.0, 1.0, 11)


SOLVERS = [
    Program("Lotka-Volterra, adaptive", predators, lambda rng: (RATES, numpy.linspace(0, 20, 21)), 1e-5),
    Program(
        "Lotka-Volterra, adaptive, gradient",
        value_and_grad(predators),
        lambda rng: (RATES, numpy.linspace(0, 20, 21)),
        1e-5,
    ),
    Program("linear equations, 100, adaptive, gradient", value_and_grad(linear), _matrix, 1e-5),
    Program(
        "Lotka-Volterra, adaptive, 100 under vmap, gradient",
        many_predators,
        lambda rng: (RATES * (1 + 0.1 * rng.normal(size=(100, 4))), numpy.linspace(0, 20, 21)),
        1e-4,
    ),
    Program("BFGS, 100 under vmap", valleys, lambda rng: (rng.normal(size=(100, 2)),), 1e-6),
]
