"""The programs with loops as a patient user would write them by hand with Numba; gradients are adjoint loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .handwritten import fast
from .loops import DURATION, LEAP, LEAPS


@fast
def _slope(x, y, z, sigma, rho, beta):
    return sigma * (y - x), x * (rho - z) - y, x * y - beta * z


@fast
def _runge_kutta(x, y, z, sigma, rho, beta, h):
    a1, b1, c1 = _slope(x, y, z, sigma, rho, beta)
    a2, b2, c2 = _slope(x + h / 2 * a1, y + h / 2 * b1, z + h / 2 * c1, sigma, rho, beta)
    a3, b3, c3 = _slope(x + h / 2 * a2, y + h / 2 * b2, z + h / 2 * c2, sigma, rho, beta)
    a4, b4, c4 = _slope(x + h * a3, y + h * b3, z + h * c3, sigma, rho, beta)
    return (
        x + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4),
        y + h / 6 * (b1 + 2 * b2 + 2 * b3 + b4),
        z + h / 6 * (c1 + 2 * c2 + 2 * c3 + c4),
    )


@fast
def _lorenz(state, parameters, steps):
    x, y, z = state[0][()], state[1][()], state[2][()]
    sigma, rho, beta = parameters[0][()], parameters[1][()], parameters[2][()]
    for _ in range(steps):
        x, y, z = _runge_kutta(x, y, z, sigma, rho, beta, DURATION / steps)
    return x, y, z


@fast
def lorenz_forward(state, parameters):
    return _lorenz(state, parameters, 100_000)


@fast
def lorenz_array_forward(state, parameters):
    return np.array(_lorenz(state, parameters, 100_000))


@fast
def _slope_adjoint(x, y, z, sigma, rho, beta, a, b, c):
    """The cotangents of the state and the parameters, given the cotangents a, b, c of the slope."""
    return (
        b * (rho - z) - a * sigma + c * y,
        a * sigma - b + c * x,
        -b * x - c * beta,
        a * (y - x),
        b * x,
        -c * z,
    )


@fast
def lorenz_gradient(state, parameters):
    steps = 10_000
    h = DURATION / steps
    x, y, z = state[0][()], state[1][()], state[2][()]
    sigma, rho, beta = parameters[0][()], parameters[1][()], parameters[2][()]
    path = np.empty((steps, 3))
    for i in range(steps):
        path[i, 0], path[i, 1], path[i, 2] = x, y, z
        x, y, z = _runge_kutta(x, y, z, sigma, rho, beta, h)
    value = x + y + z
    dx, dy, dz, d_sigma, d_rho, d_beta = 1.0, 1.0, 1.0, 0.0, 0.0, 0.0
    for i in range(steps - 1, -1, -1):
        x1, y1, z1 = path[i, 0], path[i, 1], path[i, 2]
        k, m, n = _slope(x1, y1, z1, sigma, rho, beta)
        x2, y2, z2 = x1 + h / 2 * k, y1 + h / 2 * m, z1 + h / 2 * n
        k, m, n = _slope(x2, y2, z2, sigma, rho, beta)
        x3, y3, z3 = x1 + h / 2 * k, y1 + h / 2 * m, z1 + h / 2 * n
        k, m, n = _slope(x3, y3, z3, sigma, rho, beta)
        x4, y4, z4 = x1 + h * k, y1 + h * m, z1 + h * n
        w = h / 6
        p4, q4, r4, s4, t4, u4 = _slope_adjoint(x4, y4, z4, sigma, rho, beta, w * dx, w * dy, w * dz)
        w = h / 3
        p3, q3, r3, s3, t3, u3 = _slope_adjoint(
            x3, y3, z3, sigma, rho, beta, w * dx + h * p4, w * dy + h * q4, w * dz + h * r4
        )
        p2, q2, r2, s2, t2, u2 = _slope_adjoint(
            x2, y2, z2, sigma, rho, beta, w * dx + h / 2 * p3, w * dy + h / 2 * q3, w * dz + h / 2 * r3
        )
        v = h / 6
        p1, q1, r1, s1, t1, u1 = _slope_adjoint(
            x1, y1, z1, sigma, rho, beta, v * dx + h / 2 * p2, v * dy + h / 2 * q2, v * dz + h / 2 * r2
        )
        dx, dy, dz = dx + p1 + p2 + p3 + p4, dy + q1 + q2 + q3 + q4, dz + r1 + r2 + r3 + r4
        d_sigma += s1 + s2 + s3 + s4
        d_rho += t1 + t2 + t3 + t4
        d_beta += u1 + u2 + u3 + u4
    return value, (d_sigma, d_rho, d_beta)


@fast
def gru(weights, x, target):
    w_in, w_state, bias = weights
    steps, batch, inputs = x.shape
    n = w_state.shape[0]
    a = np.dot(x.reshape(steps * batch, inputs), w_in).reshape(steps, batch, 3 * n)
    states, gates, hidden = np.zeros((steps + 1, batch, n)), np.empty_like(a), np.empty((steps, batch, n))
    for t in range(steps):
        b = np.dot(states[t], w_state)
        for i in range(batch):
            for j in range(n):
                r = 1 / (1 + math.exp(-(a[t, i, j] + bias[j] + b[i, j])))
                u = 1 / (1 + math.exp(-(a[t, i, n + j] + bias[n + j] + b[i, n + j])))
                c = math.tanh(a[t, i, 2 * n + j] + bias[2 * n + j] + r * b[i, 2 * n + j])
                gates[t, i, j], gates[t, i, n + j], gates[t, i, 2 * n + j] = r, u, c
                hidden[t, i, j] = b[i, 2 * n + j]
                states[t + 1, i, j] = (1 - u) * c + u * states[t, i, j]
    value = 0.0
    d_state = np.empty((batch, n))
    for i in range(batch):
        for j in range(n):
            e = states[steps, i, j] - target[i, j]
            value += e * e / (batch * n)
            d_state[i, j] = 2 * e / (batch * n)
    d_a, d_b = np.empty_like(a), np.empty_like(a)
    transposed = np.ascontiguousarray(w_state.T)
    for t in range(steps - 1, -1, -1):
        for i in range(batch):
            for j in range(n):
                r, u, c = gates[t, i, j], gates[t, i, n + j], gates[t, i, 2 * n + j]
                d = d_state[i, j]
                d_u = d * (states[t, i, j] - c) * u * (1 - u)
                d_c = d * (1 - u) * (1 - c * c)
                d_r = d_c * hidden[t, i, j] * r * (1 - r)
                d_a[t, i, j], d_a[t, i, n + j], d_a[t, i, 2 * n + j] = d_r, d_u, d_c
                d_b[t, i, j], d_b[t, i, n + j], d_b[t, i, 2 * n + j] = d_r, d_u, d_c * r
                d_state[i, j] = d * u
        d_state += np.dot(d_b[t], transposed)
    rows = d_a.reshape(steps * batch, 3 * n)
    d_in = np.dot(x.reshape(steps * batch, inputs).T, rows)
    d_w = np.dot(states[:steps].reshape(steps * batch, n).T, d_b.reshape(steps * batch, 3 * n))
    return value, (d_in, d_w, rows.sum(axis=0))


@fast
def _matvec(matrix, x, out):
    for i in range(x.size):
        total = 0.0
        for j in range(x.size):
            total += matrix[i, j] * x[j]
        out[i] = total


@fast
def _energy(precision, q, p, work):
    _matvec(precision, q, work)
    total = 0.0
    for i in range(q.size):
        total += q[i] * work[i] + p[i] * p[i]
    return total / 2


@fast
def hmc(precision, start, momenta, uniforms):
    trajectories, n = momenta.shape
    samples = np.empty((trajectories, n))
    current, q, p, force = start.copy(), np.empty(n), np.empty(n), np.empty(n)
    count = 0
    for t in range(trajectories):
        for i in range(n):
            q[i], p[i] = current[i], momenta[t, i]
        before = _energy(precision, q, p, force)
        for _ in range(LEAPS):
            for i in range(n):
                p[i] -= LEAP / 2 * force[i]
                q[i] += LEAP * p[i]
            _matvec(precision, q, force)
            for i in range(n):
                p[i] -= LEAP / 2 * force[i]
        if math.log(uniforms[t]) < before - _energy(precision, q, p, force):
            count += 1
            for i in range(n):
                current[i] = q[i]
        for i in range(n):
            samples[t, i] = current[i]
    return samples, count / trajectories


@fast
def kepler(anomaly, eccentricity):
    roots = np.empty_like(anomaly)
    for i in range(anomaly.size):
        m, e = anomaly[i], eccentricity[i]
        x, change = m + e, 1.0
        while abs(change) > 1e-12:
            change = (x - e * math.sin(x) - m) / (1 - e * math.cos(x))
            x -= change
        roots[i] = x
    return roots


@fast
def logistic_map(x, rate):
    state, r = x[()], rate[()]
    for _ in range(20_000):
        state = r * state * (1 - state)
    return state


LOOPS_BY_HAND: dict[str, Callable[..., Any]] = {
    "Lorenz, RK4, 100k steps": lorenz_forward,
    "Lorenz as array, RK4, 100k steps": lorenz_array_forward,
    "gradient of Lorenz, 10k steps": lorenz_gradient,
    "gradient of Lorenz as array, 10k steps": lorenz_gradient,
    "gradient of GRU": gru,
    "HMC, 1000 trajectories": hmc,
    "Newton under vmap, 10,000 solves": kepler,
    "logistic map, 20k iterations": logistic_map,
}
