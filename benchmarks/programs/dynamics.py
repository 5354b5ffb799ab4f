"""Differential equations, mechanics, quantum circuits, robots."""

from __future__ import annotations

import math

import numpy

from .networks import dense, perceptron
from .program import Program, value_and_grad


def runge_kutta(slope, y, h):
    """One classical step."""
    k1 = slope(y)
    k2 = slope(y + h / 2 * k1)
    k3 = slope(y + h / 2 * k2)
    k4 = slope(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def neural_ode(layers, start, targets, *, np, lax):
    """Squared distance of a network's flow from a path, by Runge and Kutta."""

    def step(y, target):
        y = runge_kutta(lambda y: perceptron(layers, y, np=np), y, 0.05)
        return y, np.mean((y - target) ** 2)

    return np.mean(lax.scan(step, start, targets)[1])


def _flow(sizes, batch, steps=20):
    shape = (*(() if batch is None else (batch,)), sizes[0])
    return lambda rng: (dense(rng, sizes), rng.normal(size=shape), rng.normal(size=(steps, *shape)))


def circuit(angles, *, np):
    """Energy of a variational circuit on six qubits: rotations and controlled gates in three layers."""
    qubits = angles.shape[1]
    state = np.zeros((2,) * qubits, complex).at[(0,) * qubits].set(1.0)
    controlled = numpy.array([[1.0, 1.0], [1.0, -1.0]])

    def apply(state, gate, q):
        return np.moveaxis(np.tensordot(gate, state, axes=((1,), (q,))), 0, q)

    for layer in angles:
        for q in range(qubits):
            c, s = np.cos(layer[q, 0] / 2), np.sin(layer[q, 0] / 2)
            state = apply(state, np.stack([np.stack([c, -s]), np.stack([s, c])]) + 0j, q)
            phase = np.exp(0.5j * layer[q, 1])
            state = apply(
                state, np.stack([np.stack([1 / phase, 0 * phase]), np.stack([0 * phase, phase])]), q
            )
        for q in range(qubits - 1):
            shape = [1] * qubits
            shape[q] = shape[q + 1] = 2
            state = state * np.reshape(controlled, shape)
    weights = numpy.add.outer([1.0, -1.0], [0.5, -0.5])
    shape = [2, 2] + [1] * (qubits - 2)
    return np.sum(np.real(state * np.conj(state)) * np.reshape(weights, shape))


def arm(angles, target, *, np):
    """Squared distance of the hand of a seven-jointed arm, 4x4 matrices multiplied along it."""
    pose = np.eye(4)
    for j in range(7):
        c, s, zero, one = np.cos(angles[j]), np.sin(angles[j]), 0.0 * angles[j], 0.0 * angles[j] + 1
        rows = [
            [c, -s, zero, one * 0.3],
            [s, c, zero, zero],
            [zero, zero, one, one * 0.1],
            [zero, zero, zero, one],
        ]
        turn = np.stack([np.stack(row) for row in rows])
        tilt = numpy.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
        pose = pose @ turn @ tilt
    return np.sum((pose[:3, 3] - target) ** 2)


def arms(angles, targets, *, np, api):
    """Value and gradient for many arms at once."""
    return api.vmap(api.value_and_grad(lambda a, t: arm(a, t, np=np)))(angles, targets)


def lennard_jones(positions, *, np):
    """The energy of particles, pair by pair."""
    difference = positions[:, None] - positions[None]
    square = np.sum(difference**2, axis=-1) + np.eye(positions.shape[0])
    sixth = 1 / square**3
    return 2 * np.sum((sixth * sixth - sixth) * (1 - np.eye(positions.shape[0])))


def molecular_dynamics(positions, *, np, lax, api):
    """Two hundred steps of velocity Verlet."""
    force = api.grad(lambda x: -lennard_jones(x, np=np))

    def step(state, _):
        x, v, f = state
        v = v + 0.5e-3 * f
        x = x + 1e-3 * v
        f = force(x)
        return (x, v + 0.5e-3 * f, f), None

    return lax.scan(step, (positions, np.zeros_like(positions), force(positions)), None, length=200)[0][0]


def _crystal(rng):
    grid = numpy.stack(numpy.meshgrid(*[numpy.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
    return (1.2 * grid + 0.02 * rng.normal(size=grid.shape),)


def diffusion(conductivity, start, *, np, lax):
    """Heat in a plate with a conductivity to be found: 100 explicit steps, mean square at the end."""

    def step(_, u):
        east, north = conductivity[:, 1:] * (u[:, 1:] - u[:, :-1]), conductivity[1:] * (u[1:] - u[:-1])
        return u + 0.1 * (
            np.pad(east, ((0, 0), (0, 1)))
            - np.pad(east, ((0, 0), (1, 0)))
            + np.pad(north, ((0, 1), (0, 0)))
            - np.pad(north, ((1, 0), (0, 0)))
        )

    return np.mean(lax.fori_loop(0, 100, step, start) ** 2)


def _plate(rng):
    return rng.uniform(0.5, 1.0, size=(64, 64)), rng.normal(size=(64, 64))


def wave(speed, source, *, np, lax):
    """The acoustic wave equation in one dimension, recorded at one end: 400 steps."""

    def step(state, s):
        now, before = state
        curvature = np.concatenate([now[1:], now[-1:]]) - 2 * now + np.concatenate([now[:1], now[:-1]])
        new = (2 * now - before + speed**2 * curvature).at[50].add(s)
        return (new, now), new[-5]

    zero = np.zeros_like(speed)
    return np.sum(lax.scan(step, (zero, zero), source)[1] ** 2)


def _seismogram(rng):
    t = numpy.arange(400) / 40 - 2
    return rng.uniform(0.3, 0.6, size=200), (1 - 2 * t**2) * numpy.exp(-(t**2))


def pendulum(controls, *, np, lax):
    """The cost of swinging up a pendulum by given torques."""

    def step(state, torque):
        angle, velocity = state
        velocity = velocity + 0.05 * (-9.8 * np.sin(angle) + torque)
        angle = angle + 0.05 * velocity
        return (angle, velocity), (angle - math.pi) ** 2 + 0.1 * velocity**2 + 0.001 * torque**2

    return np.sum(lax.scan(step, (0.0 * controls[0], 0.0 * controls[0]), controls)[1])


def optimal_control(controls, *, np, lax, api):
    """A Newton step: gradient and Hessian of the cost."""

    def cost(u):
        return pendulum(u, np=np, lax=lax)

    return controls - np.linalg.solve(
        api.hessian(cost)(controls) + np.eye(controls.shape[0]), api.grad(cost)(controls)
    )


def sensitivities(rates, *, np, lax, api):
    """The Jacobian of a chemical reaction (Robertson's, made mild) in its rates."""

    def slope(y, k):
        first, second, third = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] ** 2
        return np.stack([-first + second, first - second - third, third])

    def solution(k):
        return lax.fori_loop(
            0, 500, lambda _, y: runge_kutta(lambda y: slope(y, k), y, 0.01), np.array([1.0, 0, 0])
        )

    return api.jacfwd(solution)(rates)


DYNAMICS = [
    Program("neural ODE 2-16-16-2, batch 30", neural_ode, _flow((2, 16, 16, 2), 30)),
    Program(
        "neural ODE 2-16-16-2, batch 30, gradient", value_and_grad(neural_ode), _flow((2, 16, 16, 2), 30)
    ),
    Program("neural ODE 3-64-64-64-64-3", neural_ode, _flow((3, 64, 64, 64, 64, 3), None)),
    Program(
        "neural ODE 3-64-64-64-64-3, gradient",
        value_and_grad(neural_ode),
        _flow((3, 64, 64, 64, 64, 3), None),
    ),
    Program("neural ODE 3-8-8-3, gradient", value_and_grad(neural_ode), _flow((3, 8, 8, 3), None), rows=(2,)),
    Program(
        "quantum circuit, 6 qubits, gradient",
        value_and_grad(circuit),
        lambda rng: (rng.normal(size=(3, 6, 2)),),
    ),
    Program(
        "robot arm, 500 under vmap, gradient",
        arms,
        lambda rng: (rng.normal(size=(500, 7)), rng.normal(size=(500, 3))),
    ),
    Program("molecular dynamics, 64 particles, 200 steps", molecular_dynamics, _crystal, 1e-6),
    Program("diffusion, 64x64, 100 steps, gradient", value_and_grad(diffusion), _plate),
    Program("wave equation, 200 points, 400 steps, gradient", value_and_grad(wave), _seismogram, rows=(1,)),
    Program(
        "optimal control, 50 torques, Newton step",
        optimal_control,
        lambda rng: (0.1 * rng.normal(size=50),),
        1e-6,
    ),
    Program(
        "chemical reaction, jacfwd, 500 steps", sensitivities, lambda rng: (numpy.array([0.04, 3.0, 2.0]),)
    ),
]
