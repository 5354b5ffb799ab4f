"""A Lennard-Jones liquid
======================

Molecular dynamics with neighbour lists; the forces are the gradient of the energy, the pressure a derivative too.

864 atoms attract and repel each other in a periodic box, in the units of the potential 4 (r^-12 - r^-6). A list of
neighbours within a skin saves looking at all pairs. It has room for so many a row, so that its shape stays the same.
The state is one for which NIST publishes Monte Carlo results: T = 0.85, density 0.82.

    python examples/lennard_jones.py
"""

from contextlib import suppress

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

DENSITY, TEMPERATURE = 0.82, 0.85
PUBLISHED = {"energy an atom": -5.7947, "pressure": 0.5536}  # NIST Standard Reference Simulation Website
CELLS, CUTOFF, SKIN, ROOM = 6, 3.0, 0.3, 170  # ROOM: neighbours in a row of the list, at most
STEP, EVERY = 0.004, 20  # EVERY: steps between two lists
ATOMS = 4 * CELLS**3
BOX = (ATOMS / DENSITY) ** (1 / 3)
# What the potential beyond the cutoff adds if atoms are spread evenly there.
TAIL_ENERGY = 8 / 9 * np.pi * DENSITY * (CUTOFF**-9 - 3 * CUTOFF**-3)
TAIL_PRESSURE = 32 / 9 * np.pi * DENSITY**2 * (CUTOFF**-9 - 1.5 * CUTOFF**-3)


def nearest(apart):
    """The difference of two places, to the nearest periodic image."""
    return apart - BOX * fnp.round(apart / BOX)


@ft.jit
def neighbours(places):
    """For each atom, the indices (atoms, ROOM) of those near it, filled up with its own; and the longest list."""
    far = fnp.sum(nearest(places[:, None] - places) ** 2, axis=-1) + 1e9 * np.eye(ATOMS)
    near = far < (CUTOFF + SKIN) ** 2
    column = fnp.where(near, fnp.cumsum(near, axis=1) - 1, ROOM)  # out of bounds: dropped
    rows, others = np.indices((ATOMS, ATOMS))
    empty = fnp.tile(fnp.arange(ATOMS)[:, None], (1, ROOM))
    return empty.at[rows, column].set(others, mode="drop"), fnp.max(fnp.sum(near, axis=1))


# %%
# The energy, once for each pair: each list has both. `stretch` scales the box: the derivative with respect to it is the
# virial, and gives the pressure.


def energy(places, lists, stretch=1.0):
    apart = nearest(places[:, None] - places[lists]) * stretch
    square = fnp.sum(apart**2, axis=-1)
    real = (lists != np.arange(ATOMS)[:, None]) & (square < CUTOFF**2)
    s3 = 1.0 / fnp.where(real, square, 1.0) ** 3
    return fnp.sum(fnp.where(real, 2.0 * (s3 * s3 - s3), 0.0))


force = ft.grad(lambda places, lists: -energy(places, lists))
virial = ft.grad(lambda stretch, places, lists: energy(places, lists, stretch))


@ft.jit
def advance(places, speeds, rate):
    """Some steps of velocity Verlet with a weak thermostat; places, speeds, and what was measured in the end."""
    lists, longest = neighbours(places)

    def step(_, state):
        places, speeds, push = state
        speeds = speeds + 0.5 * STEP * push
        places = places + STEP * speeds
        push = force(places, lists)
        return places, speeds + 0.5 * STEP * push, push

    places, speeds, _ = lax.fori_loop(0, EVERY, step, (places, speeds, force(places, lists)))
    temperature = fnp.sum(speeds**2) / (3 * ATOMS - 3)
    pressure = DENSITY * TEMPERATURE - virial(1.0, places, lists) * DENSITY / (3 * ATOMS)
    measured = fnp.stack([energy(places, lists) / ATOMS + TAIL_ENERGY, pressure + TAIL_PRESSURE, temperature])
    speeds = speeds * fnp.sqrt(1.0 + rate * (TEMPERATURE / temperature - 1.0))  # Berendsen 1984
    return places, speeds, measured, longest


def main(warmup=60, rounds=240):
    corners = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]]) / 2
    cells = np.stack(np.indices((CELLS,) * 3), axis=-1).reshape(-1, 1, 3)
    places = fnp.asarray((cells + corners).reshape(-1, 3) * BOX / CELLS)
    speeds = np.random.default_rng(0).normal(0.0, np.sqrt(TEMPERATURE), (ATOMS, 3))
    speeds = fnp.asarray(speeds - speeds.mean(axis=0))
    history, frames = [], []
    for i in range(warmup + rounds):
        places, speeds, measured, longest = advance(places, speeds, 0.5 if i < warmup else 0.05)
        assert longest <= ROOM
        history.append(measured)
        if i >= warmup and i % 10 == 0:
            frames.append(np.asarray(places))
    history = np.array(history)
    for (name, known), values in zip(PUBLISHED.items(), history[warmup:].T):
        error = values.reshape(12, -1).mean(axis=1).std(ddof=1) / np.sqrt(12)
        print(f"{name:15}{values.mean():8.4f} +- {error:.4f}   published {known:.4f}")
    print(f"temperature    {history[warmup:, 2].mean():8.4f}             wanted {TEMPERATURE}")
    return history, np.array(frames)


# %%
# The crystal melts within the first picoseconds (of argon). Around an atom there is a shell of neighbours, then others.


def draw(history, frames):
    import matplotlib.pyplot as plt

    left, right = plt.subplots(1, 2)[1]
    left.plot(STEP * EVERY * np.arange(1, len(history) + 1), history[:, 0])
    left.axhline(PUBLISHED["energy an atom"], color="gray", linestyle="--", linewidth=1, label="published")
    left.set(xlabel="time", ylabel="potential energy an atom", xlim=(0, None))
    left.legend()
    edges, upper = np.linspace(0.0, 4.5, 181), np.triu_indices(ATOMS, 1)
    apart = [np.linalg.norm(nearest(f[:, None] - f), axis=-1)[upper] for f in frames]
    counts = np.histogram(np.concatenate(apart), edges)[0] / len(frames)
    shells = 4 / 3 * np.pi * np.diff(edges**3) * DENSITY * ATOMS / 2
    right.plot((edges[1:] + edges[:-1]) / 2, counts / shells)
    right.axhline(1.0, color="gray", linewidth=0.8)
    right.set(xlabel="distance r", ylabel="radial distribution g(r)", xlim=(0, 4.5), ylim=(0, None))
    plt.show()


if __name__ == "__main__":
    simulated = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*simulated)
