"""Swing-up of a cart and pole
===========================

Find the force that swings up a pole with the least effort, by Newton's method on Lagrange's conditions.

A pole hangs from a cart on a rail. In two seconds it shall stand upright, with the cart one metre further on (numbers
as in Kelly, "An Introduction to Trajectory Optimization", SIAM Review 2017, section 6). The state and the force at 61
times are the unknowns, a Runge-Kutta step from each time to the next the constraints. Newton's method on Lagrange's
conditions needs the Jacobian of the constraints and the Hessian of the Lagrangian: two transformations.

    python examples/cart_pole.py
"""

from contextlib import suppress

import numpy as np
from scipy.integrate import solve_ivp

import functrans as ft
import functrans.numpy as fnp

CART, POLE, LENGTH, GRAVITY = 1.0, 0.3, 0.5, 9.81  # kg, kg, m, m/s^2
DURATION, DISTANCE = 2.0, 1.0  # s, m
NODES = 61
H = DURATION / (NODES - 1)
FIRST, LAST = np.zeros(4), np.array([DISTANCE, np.pi, 0.0, 0.0])


def motion(state, force):
    """The time derivative of a state (4,): place, angle from hanging down, speed, rate."""
    _, angle, speed, rate = state
    sin, cos = fnp.sin(angle), fnp.cos(angle)
    centrifugal = LENGTH * POLE * sin * rate**2
    mass = CART + POLE * sin**2
    push = (centrifugal + force + POLE * GRAVITY * cos * sin) / mass
    turn = -(centrifugal * cos + force * cos + (CART + POLE) * GRAVITY * sin) / (LENGTH * mass)
    return fnp.stack([speed, rate, push, turn])


# %%
# What is minimised, and what must be zero, as functions of all unknowns in one vector.


def split(z):
    """States (NODES, 4) and forces (NODES,)."""
    return z[: 4 * NODES].reshape(NODES, 4), z[4 * NODES :]


def effort(z):
    """The integral of the square of the force."""
    _, force = split(z)
    return 0.5 * H * fnp.sum(force[1:] ** 2 + force[:-1] ** 2)


def step(state, force, next_force):
    """The state after a Runge-Kutta step in which the force changes linearly."""
    middle = 0.5 * (force + next_force)
    k1 = motion(state, force)
    k2 = motion(state + 0.5 * H * k1, middle)
    k3 = motion(state + 0.5 * H * k2, middle)
    k4 = motion(state + H * k3, next_force)
    return state + H / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def defects(z):
    """What the equations of motion and the two ends leave: (4 NODES + 4,)."""
    states, force = split(z)
    reached = ft.vmap(step)(states[:-1], force[:-1], force[1:])
    return fnp.concatenate([(states[1:] - reached).ravel(), states[0] - FIRST, states[-1] - LAST])


# %%
# A Newton step solves for the unknowns and the multipliers together. It is shortened until effort and defects fall, and
# damped (Levenberg) as long as it has to be shortened.


@ft.jit
def newton_step(z, multipliers, damping):
    """New unknowns and multipliers, and by how much the conditions fail now."""
    lagrangian = lambda z: effort(z) + multipliers @ defects(z)
    gap, jacobian = defects(z), ft.jacrev(defects)(z)
    curvature = ft.hessian(lagrangian)(z) + damping * np.eye(len(z))
    matrix = fnp.block([[curvature, jacobian.T], [jacobian, np.zeros((len(gap), len(gap)))]])
    change = fnp.linalg.solve(matrix, -fnp.concatenate([ft.grad(effort)(z), gap]))
    wrong = fnp.max(abs(fnp.concatenate([ft.grad(lagrangian)(z), gap])))
    return z + change[: len(z)], change[len(z) :], wrong


@ft.jit
def merit(z):
    return effort(z) + 300.0 * fnp.sum(abs(defects(z)))


def optimise():
    """The best states and forces, and the number of steps, from a straight line without force."""
    z = np.concatenate([np.linspace(FIRST, LAST, NODES).ravel(), np.zeros(NODES)])
    multipliers, damping = np.zeros(4 * NODES + 4), 0.1
    for count in range(100):
        new, new_multipliers, wrong = newton_step(z, multipliers, damping)
        if wrong < 1e-8:
            return *split(z), count
        part, before = 1.0, merit(z)
        while merit(z + part * (new - z)) > before and part > 1e-3:
            part *= 0.5
        z, multipliers = z + part * (new - z), multipliers + part * (new_multipliers - multipliers)
        damping *= 0.3 if part == 1.0 else 2.0
    raise SystemExit("no convergence in 100 steps")


def simulate(force):
    """The last state by an independent solver, driven by the forces that were found."""
    times = np.linspace(0.0, DURATION, NODES)
    fly = lambda t, state: np.asarray(motion(state, np.interp(t, times, force)))
    return solve_ivp(fly, (0.0, DURATION), FIRST, rtol=1e-9, atol=1e-9, max_step=H).y[:, -1]


def main():
    states, force, count = map(np.asarray, optimise())
    z = np.concatenate([states.ravel(), force])
    print(f"effort {effort(z):.3f} N^2 s after {count} steps, largest defect {abs(defects(z)).max():.0e}")
    print(f"strongest force {abs(force).max():.1f} N, farthest place {states[:, 0].max():.2f} m")
    print("         place   angle   speed    rate at the end")
    for name, last in ("wanted", LAST), ("flown", simulate(force)):
        print(f"{name:8}" + "".join(f"{value:6.3f}  " for value in last))
    return states, force


# %%
# The swing-up in eleven pictures, from light to dark, and the force that makes it.


def draw(states, force):
    import matplotlib.pyplot as plt

    top, bottom = plt.subplots(2, 1, height_ratios=(3, 2), figsize=(7.6, 5.0))[1]
    colors = plt.get_cmap("viridis")(np.linspace(0.9, 0.1, 11))
    for color, (place, angle, *_) in zip(colors, states[:: (NODES - 1) // 10]):
        tip = place + LENGTH * np.sin(angle), -LENGTH * np.cos(angle)
        top.plot([place, tip[0]], [0.0, tip[1]], color=color, linewidth=2)
        top.plot(*tip, "o", color=color, markersize=9)
        top.plot(place, 0.0, "s", color=color, markersize=8)
    paths = states[:, 0] + LENGTH * np.sin(states[:, 1]), -LENGTH * np.cos(states[:, 1])
    top.plot(*paths, color="gray", linewidth=0.8, zorder=0)
    top.axhline(0.0, color="gray", linewidth=0.8, zorder=0)
    top.set(aspect="equal", xlabel="place (m)", ylabel="height (m)")
    bottom.plot(np.linspace(0.0, DURATION, NODES), force, color="C1")
    bottom.axhline(0.0, color="gray", linewidth=0.8)
    bottom.set(xlabel="time (s)", ylabel="force (N)", xlim=(0, DURATION))
    plt.show()


if __name__ == "__main__":
    path = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*path)
