"""The programs with loops, written once, as in `workloads`; `lax` and `api` are namespaces as well.

Each is compiled as a whole; programs whose derivative is measured take it themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy


@dataclass(frozen=True)
class LoopWorkload:
    """A function to compile, its data, and how far its result may be from the hand-written one (relative).

    The rows of the arguments with numbers in `rows` are the steps of a loop: `growth` repeats them.
    """

    name: str
    f: Callable[..., Any]
    data: Callable[[numpy.random.Generator], tuple[Any, ...]]
    tolerance: float = 1e-9
    rows: tuple[int, ...] = ()

    def arguments(self) -> tuple[Any, ...]:
        """Fresh data, the same at each call."""
        return self.data(numpy.random.default_rng(0))


#: The simulated time of the Lorenz system: short enough for rounding errors to stay small.
DURATION = 10.0


def _lorenz_slope(state, parameters):
    x, y, z = state
    sigma, rho, beta = parameters
    return sigma * (y - x), x * (rho - z) - y, x * y - beta * z


def _moved(state, slope, h):
    return tuple(x + h * k for x, k in zip(state, slope, strict=True))


def lorenz(state, parameters, *, lax, steps):
    """The Lorenz system after a number of steps of the classical Runge-Kutta method."""
    h = DURATION / steps

    def step(_, s):
        k1 = _lorenz_slope(s, parameters)
        k2 = _lorenz_slope(_moved(s, k1, h / 2), parameters)
        k3 = _lorenz_slope(_moved(s, k2, h / 2), parameters)
        k4 = _lorenz_slope(_moved(s, k3, h), parameters)
        return tuple(
            x + h / 6 * (a + 2 * b + 2 * c + d) for x, a, b, c, d in zip(s, k1, k2, k3, k4, strict=True)
        )

    return lax.fori_loop(0, steps, step, state)


def lorenz_array(state, parameters, *, np, lax, steps):
    """The same with the state in one array."""
    h = DURATION / steps

    def slope(s):
        return np.stack(_lorenz_slope((s[0], s[1], s[2]), parameters))

    def step(s, _):
        k1 = slope(s)
        k2 = slope(s + h / 2 * k1)
        k3 = slope(s + h / 2 * k2)
        k4 = slope(s + h * k3)
        return s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return lax.scan(step, np.stack(state), None, length=steps)[0]


def lorenz_forward(state, parameters, *, lax):
    return lorenz(state, parameters, lax=lax, steps=100_000)


def lorenz_array_forward(state, parameters, *, np, lax):
    return lorenz_array(state, parameters, np=np, lax=lax, steps=100_000)


def lorenz_gradient(state, parameters, *, api, lax):
    def loss(p):
        x, y, z = lorenz(state, p, lax=lax, steps=10_000)
        return x + y + z

    return api.value_and_grad(loss)(parameters)


def lorenz_array_gradient(state, parameters, *, api, np, lax):
    return api.value_and_grad(lambda p: np.sum(lorenz_array(state, p, np=np, lax=lax, steps=10_000)))(
        parameters
    )


def _lorenz_data(rng):
    return tuple(map(numpy.array, (1.0, 1.0, 1.0))), tuple(map(numpy.array, (10.0, 28.0, 8.0 / 3.0)))


def gru(weights, x, target, *, api, np, lax):
    """Mean squared error of the last state of a gated recurrent unit, and its gradient."""

    def sigmoid(a):
        return 1 / (1 + np.exp(-a))

    def loss(weights):
        w_in, w_state, bias = weights
        n = w_state.shape[0]

        def step(h, row):
            a, b = row @ w_in + bias, h @ w_state
            reset = sigmoid(a[:, :n] + b[:, :n])
            update = sigmoid(a[:, n : 2 * n] + b[:, n : 2 * n])
            proposal = np.tanh(a[:, 2 * n :] + reset * b[:, 2 * n :])
            return (1 - update) * proposal + update * h, None

        last, _ = lax.scan(step, np.zeros((x.shape[1], n)), x)
        return np.mean((last - target) ** 2)

    return api.value_and_grad(loss)(weights)


def _gru_data(rng, steps=200, batch=16, inputs=16, hidden=32):
    weights = (
        rng.normal(size=(inputs, 3 * hidden)) / inputs**0.5,
        rng.normal(size=(hidden, 3 * hidden)) / hidden**0.5,
        numpy.zeros(3 * hidden),
    )
    return weights, rng.normal(size=(steps, batch, inputs)), rng.normal(size=(batch, hidden))


#: For each trajectory of the sampler.
LEAPS, LEAP = 10, 0.15


def hmc(precision, start, momenta, uniforms, *, api, np, lax):
    """Hamiltonian Monte Carlo: the samples of a normal distribution, and the acceptance rate."""

    def potential(q):
        return 0.5 * np.sum(q * (precision @ q))

    force = api.grad(potential)

    def leap(_, state):
        q, p = state
        p = p - LEAP / 2 * force(q)
        q = q + LEAP * p
        return q, p - LEAP / 2 * force(q)

    def trajectory(q, draws):
        p, uniform = draws
        q_new, p_new = lax.fori_loop(0, LEAPS, leap, (q, p))
        before, after = potential(q) + 0.5 * np.sum(p * p), potential(q_new) + 0.5 * np.sum(p_new * p_new)
        accepted = np.log(uniform) < before - after
        q = np.where(accepted, q_new, q)
        return q, (q, accepted)

    _, (samples, accepted) = lax.scan(trajectory, start, (momenta, uniforms))
    return samples, np.sum(accepted) / len(uniforms)


def _hmc_data(rng, trajectories=1000, dimension=10):
    root = rng.normal(size=(dimension, dimension)) / dimension**0.5
    precision = root @ root.T + numpy.eye(dimension)
    momenta = rng.normal(size=(trajectories, dimension))
    return precision, numpy.zeros(dimension), momenta, rng.uniform(size=trajectories)


def kepler(anomaly, eccentricity, *, api, np, lax):
    """Kepler's equation for many orbits by Newton's method, each until it converges."""

    def solve(m, e):
        def going(state):
            return np.abs(state[1]) > 1e-12

        def newton(state):
            x = state[0]
            change = (x - e * np.sin(x) - m) / (1 - e * np.cos(x))
            return x - change, change

        return lax.while_loop(going, newton, (m + e, np.ones(())))[0]

    return api.vmap(solve)(anomaly, eccentricity)


def _kepler_data(rng, n=10_000):
    return rng.uniform(0.1, 3.1, n), rng.uniform(0.0, 0.9, n)


def logistic_map(x, rate, *, lax, steps=20_000):
    """The logistic map in its stable range."""
    return lax.fori_loop(0, steps, lambda _, x: rate * x * (1 - x), x)


def _map_data(rng):
    return numpy.array(0.3), numpy.array(3.5)


LOOP_WORKLOADS = [
    LoopWorkload("Lorenz, RK4, 100k steps", lorenz_forward, _lorenz_data, 1e-6),
    LoopWorkload("Lorenz as array, RK4, 100k steps", lorenz_array_forward, _lorenz_data, 1e-6),
    LoopWorkload("gradient of Lorenz, 10k steps", lorenz_gradient, _lorenz_data, 1e-6),
    LoopWorkload("gradient of Lorenz as array, 10k steps", lorenz_array_gradient, _lorenz_data, 1e-6),
    LoopWorkload("gradient of GRU", gru, _gru_data, rows=(1,)),
    LoopWorkload("HMC, 1000 trajectories", hmc, _hmc_data, rows=(2, 3)),
    LoopWorkload("Newton under vmap, 10,000 solves", kepler, _kepler_data, rows=(0, 1)),
    LoopWorkload("logistic map, 20k iterations", logistic_map, _map_data),
]
