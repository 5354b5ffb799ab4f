"""Waveform inversion
==================

What lies under the ground? The speed of sound, point by point, from the echoes of five bangs at the surface.

The pressure obeys the wave equation, here by finite differences on a grid of 60 x 60 with edges that absorb. Sources
and receivers are just below the surface. The misfit between recorded and simulated waves is a function of 3,600 speeds;
its gradient comes from reverse mode through all 360 time steps; `checkpoint` bounds what they keep. This is what
seismologists derive by hand as the adjoint-state method (Tarantola 1984).

    python examples/wave_inversion.py
"""

from contextlib import suppress

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.optimize import minimize

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

N, SPACING, STEP, STEPS = 60, 20.0, 0.003, 360  # points a side, m, s, time steps
SLOW, FAST, FREQUENCY = 1500.0, 3000.0, 7.0  # m/s, m/s, Hz
DEPTH, SOURCES = 4, np.array([5, 17, 30, 42, 54])
TIMES = STEP * np.arange(STEPS)


def ricker(t):
    """The bang: a wavelet with a peak at its frequency."""
    a = (np.pi * FREQUENCY * (t - 1.2 / FREQUENCY)) ** 2
    return (1.0 - 2.0 * a) * np.exp(-a)


def absorber(width=8):
    """Damping a step (N, N), near the left, right and lower edges."""
    edge = np.clip(1.0 - np.arange(N) / width, 0.0, None) ** 2
    sides = np.maximum(edge, edge[::-1])
    return 0.25 * np.maximum(sides[None, :], edge[::-1][:, None])


DAMPING = absorber()

# %%
# A shot: the waves of one source, recorded at all points of the receivers' depth. One is written, `vmap` fires all.


def shot(speed, source):
    """The record (STEPS, N) of a shot at a column of the grid; speed (N, N)."""
    factor = (speed * STEP / SPACING) ** 2

    def step(state, push):
        now, before = state
        around = fnp.pad(now, 1)
        laplacian = around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:] - 4.0 * now
        after = (2.0 * now - (1.0 - DAMPING) * before + factor * laplacian) / (1.0 + DAMPING)
        after = after.at[DEPTH, source].add(push)
        return (after, now), after[DEPTH]

    zero = fnp.zeros((N, N))
    return lax.scan(ft.checkpoint(step), (zero, zero), ricker(TIMES))[1]


shots = ft.jit(ft.vmap(shot, in_axes=(None, 0)))


def speeds(free):
    """Speeds (N, N) between the slowest and the fastest, of free numbers; what is above the receivers is known."""
    inside = SLOW + (FAST - SLOW) / (1.0 + fnp.exp(-free.reshape(N, N)))
    return fnp.where(np.arange(N)[:, None] <= DEPTH + 1, SLOW + 100.0, inside)


def misfit(free, records):
    return 0.5 * fnp.sum((shots(speeds(free), SOURCES) - records) ** 2)


# %%
# The ground, and what is assumed of it at the start: that it gets faster with depth.


def ground():
    """The true speeds, and those at the start."""
    down, right = np.indices((N, N)) / N
    layers = 1600.0 + 350.0 * (down > 0.30 + 0.06 * np.sin(6 * right)) + 350.0 * (down > 0.62 - 0.12 * right)
    lens = 450.0 * (((right - 0.55) / 0.16) ** 2 + ((down - 0.48) / 0.08) ** 2 < 1)
    start = 1600.0 + 800.0 * np.clip(down - 0.15, 0, 1)
    return gaussian_filter(layers - lens, 1.0), start


def free_of(speed):
    share = (np.clip(speed, SLOW + 20, FAST - 20) - SLOW) / (FAST - SLOW)
    return np.log(share / (1.0 - share)).ravel()


def main(iterations=60):
    true, start = ground()
    true = np.asarray(speeds(free_of(true)))
    records = shots(true, SOURCES)
    objective = ft.jit(ft.value_and_grad(misfit))
    free = free_of(start)
    first, slope = objective(free, records)
    way = np.random.default_rng(0).normal(size=free.shape)
    numeric = (objective(free + 1e-5 * way, records)[0] - objective(free - 1e-5 * way, records)[0]) / 2e-5
    print(f"slope along a random direction: {slope @ way:.6f}, by differences {numeric:.6f}")
    options = {"maxiter": iterations, "maxcor": 20}
    found = minimize(objective, free, (records,), jac=True, method="L-BFGS-B", options=options)
    start, result = np.asarray(speeds(free)), np.asarray(speeds(found.x))
    print(f"misfit {first:.2f} -> {found.fun:.4f} in {found.nit} iterations")
    lit = np.s_[DEPTH + 2 : 45, 6:-6]
    wrong = [np.sqrt(np.mean((speed[lit] - true[lit]) ** 2)) for speed in (start, result)]
    print(f"error of the speed where waves go: {wrong[0]:.0f} m/s -> {wrong[1]:.0f} m/s")
    return true, start, result


# %%
# The ground, what was assumed, and what the waves revealed: the layers and the slow lens are back where they are.


def draw(true, start, result):
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(7.6, 2.9), sharey=True)
    titles = "the ground", "at the start", "found"
    for axes, speed, title in zip(panels, (true, start, result), titles):
        side = N * SPACING / 1000
        image = axes.imshow(speed / 1000, vmin=1.4, vmax=2.5, extent=(0, side, side, 0))
        axes.plot(
            (SOURCES + 0.5) * SPACING / 1000,
            np.full(len(SOURCES), DEPTH * SPACING / 1000),
            "*",
            color="white",
        )
        axes.set(title=title, xlabel="km")
    panels[0].set(ylabel="depth (km)")
    figure.colorbar(image, ax=panels, label="speed (km/s)", shrink=0.8)
    plt.show()


if __name__ == "__main__":
    inverted = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*inverted)
