"""Plain NumPy, unchanged
======================

Five functions written for NumPy alone, differentiated and compiled without a change.

The functions use only NumPy, whose `np.sort`, `np.linalg.solve` and so on call functrans when an argument is traced.
The table compares values with plain NumPy, and gradients with finite differences of plain NumPy.

    python examples/plain_numpy.py
"""

import timeit
from contextlib import suppress

import numpy as np

# %%
# The functions. None of them has heard of functrans.


def huber(coef, x, y):
    """Robust regression: squares of small residuals, absolute values of large ones."""
    residual = np.abs(y - np.polyval(coef, x))
    return np.mean(np.where(residual < 1.0, 0.5 * residual**2, residual - 0.5))


def shortfall(weights, returns, cost=0.01):
    """Mean of the worst tenth of a portfolio's days, and a penalty for ending below the peak."""
    daily = returns @ weights
    wealth, worst = np.exp(np.cumsum(daily)), np.sort(daily)[: len(daily) // 10]
    return -worst.mean() + cost * (wealth.max() - wealth[-1])


def kalman(log_noise, seen, step=0.1):
    """Negative log likelihood of noisy positions (n,) of a body whose velocity drifts; log_noise: (2,)."""
    push, blur = np.exp(log_noise)
    move, look = np.array([[1.0, step], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    drift = push * np.array([[step**3 / 3, step**2 / 2], [step**2 / 2, step]])
    state, cov, total = np.zeros(2), np.eye(2), 0.0
    for position in seen:
        state, cov = move @ state, move @ cov @ move.T + drift
        spread = look @ cov @ look.T + blur * np.eye(1)
        gain, error = np.linalg.solve(spread, look @ cov).T, position - look @ state
        total = total + 0.5 * (
            error @ np.linalg.solve(spread, error) + np.linalg.slogdet(2 * np.pi * spread)[1]
        )
        state, cov = state + gain @ error, cov - gain @ look @ cov
    return total


def orbit(start, steps=40, dt=0.05):
    """Squared distance from home after a leapfrog flight in the field of a sun and a planet; start: (4,)."""
    mass, centre = np.array([1.0, 0.1]), np.array([[0.0, 0.0], [1.5, 0.5]])

    def pull(place):
        away = centre - place
        return np.einsum("b,bi->i", mass / np.linalg.norm(away, axis=1) ** 3, away)

    place, speed = start[:2], start[2:]
    for _ in range(steps):
        half = speed + 0.5 * dt * pull(place)
        place = place + dt * half
        speed = half + 0.5 * dt * pull(place)
    return np.sum((place - start[:2]) ** 2)


def calibration(counts, dose, knots):
    """Misfit of measured doses to a curve through (knots, counts), with a penalty on its curvature."""
    curve = np.interp(dose, knots, np.concatenate([[0.0], np.cumsum(counts**2)]))
    return np.median((curve - np.sqrt(dose)) ** 2) + 0.01 * np.sum(np.diff(counts, 2) ** 2)


# %%
# Finite differences with NumPy alone, to compare with.


def slopes(f, x, *rest, h=1e-5):
    """Gradient by central differences of fourth order, with NumPy alone."""
    near, far = ([f(x + k * d, *rest) - f(x - k * d, *rest) for d in h * np.eye(len(x))] for k in (1, 2))
    return (8 * np.array(near) - np.array(far)) / (12 * h)


def milliseconds(f, args):
    return min(timeit.repeat(lambda: f(*args), number=5, repeat=20)) / 5e-3


def main():
    import functrans as ft

    rng, x = np.random.default_rng(0), np.linspace(-2.0, 2.0, 1000)
    examples = {
        huber: (np.array([0.5, 1.0, -0.5]), x, x**2 + rng.standard_t(2, 1000)),
        shortfall: (np.array([0.5, 0.3, 0.2]), 0.02 * rng.standard_normal((1000, 3))),
        kalman: (np.array([0.0, -1.0]), np.sin(x[::40]) + 0.3 * rng.standard_normal(25)),
        orbit: (np.array([1.0, 0.0, 0.0, 1.0]),),
        calibration: (np.array([0.5, 0.4, 0.3, 0.3]), rng.uniform(0.0, 1.0, 301), np.linspace(0.0, 1.0, 5)),
    }
    ratios = {}
    print("                 value   error of value and gradient    NumPy: value   compiled: both")
    for f, args in examples.items():
        compiled = ft.jit(ft.value_and_grad(f))
        (value, gradient), known, near = compiled(*args), f(*args), slopes(f, *args)
        wrong = abs(value - known) / abs(known), np.abs(gradient - near).max() / np.abs(near).max()
        print(f"{f.__name__:12}{known:10.6f}{wrong[0]:18.1e}{wrong[1]:13.1e}", end="")
        plain, both = milliseconds(f, args), milliseconds(compiled, args)
        print(f"{plain:13.4f} ms{both:14.4f} ms")
        ratios[f.__name__] = plain / both
    return ratios


# %%
# Value and gradient, compiled, against NumPy's value alone.


def draw(ratios):
    import matplotlib.pyplot as plt

    axes = plt.subplots(figsize=(7.6, 2.9))[1]
    bars = axes.barh(list(ratios)[::-1], list(ratios.values())[::-1])
    axes.bar_label(bars, fmt=" {:.3g}x")
    axes.axvline(1.0, color="gray", linewidth=0.8)
    axes.set(xscale="log", xlabel="how many times faster than the value alone in NumPy", xlim=(0.5, 5000))
    plt.show()


if __name__ == "__main__":
    ratios = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(ratios)
