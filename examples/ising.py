"""The critical temperature of the Ising model
===========================================

Magnets on a square lattice lose their order at one temperature, which cluster sampling finds by Binder's cumulants.

Swendsen and Wang (1987) tie equal neighbours together with probability 1 - exp(-2 / T), and turn each cluster of tied
spins as a whole, or not. Near the critical temperature this decorrelates in a few sweeps, where single spins need
thousands. Onsager (1944) found that order vanishes at T = 2 / log(1 + sqrt 2) = 2.2692, and Yang (1952) how the
magnetization falls towards it.

    python examples/ising.py
"""

from contextlib import suppress
from functools import partial
from itertools import pairwise

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax, random

CRITICAL = 2 / np.log(1 + np.sqrt(2))
TEMPERATURES = np.linspace(2.2, 2.34, 8)
WARMUP, SWEEPS = 200, {8: 16_000, 16: 8000, 32: 3000}  # by size of the lattice

# %%
# Clusters are found by passing labels on: each spin takes the least label among its own and those of the neighbours
# that it is tied to, then the label of the spin that its label names, until nothing changes, all in one kernel.


def clusters(right, down):
    """A label for each spin (n, n), the same for all that are tied; right, down: ties to the next column and row."""
    n = len(right)
    first = fnp.arange(n * n).reshape(n, n)

    def spread(state):
        labels, _ = state
        new = labels
        for tied, axis in ((right, 1), (down, 0)):
            new = fnp.minimum(new, fnp.where(tied, fnp.roll(labels, -1, axis), n * n))
            new = fnp.minimum(new, fnp.where(fnp.roll(tied, 1, axis), fnp.roll(labels, 1, axis), n * n))
        new = new.ravel()[new]
        return new, fnp.any(new != labels)

    return lax.while_loop(lambda state: state[1], spread, (first, True))[0]


def sweep(spins, key, temperature):
    """Spins (n, n) of -1.0 and 1.0, clusters of which have been turned."""
    keys = random.split(key, 3)
    tie = 1.0 - fnp.exp(-2.0 / temperature)
    right = (spins == fnp.roll(spins, -1, 1)) & (random.uniform(keys[0], spins.shape) < tie)
    down = (spins == fnp.roll(spins, -1, 0)) & (random.uniform(keys[1], spins.shape) < tie)
    turned = random.bernoulli(keys[2], 0.5, (spins.size,))[clusters(right, down)]
    return fnp.where(turned, -spins, spins)


@partial(ft.jit, static_argnums=2)
@partial(ft.vmap, in_axes=(0, 0, None, None))
def sample(key, temperature, n, sweeps):
    """Means of |m|, m^2 and m^4 over the sweeps after the warm-up, m the magnetization; and the last spins."""

    def step(i, state):
        spins, sums = state
        spins = sweep(spins, random.fold_in(key, i), temperature)
        m = fnp.mean(spins)
        return spins, sums + fnp.where(i < WARMUP, 0.0, 1.0) * fnp.stack([abs(m), m**2, m**4])

    spins, sums = lax.fori_loop(0, WARMUP + sweeps, step, (fnp.ones((n, n)), fnp.zeros(3)))
    return sums / sweeps, spins


# %%
# Binder's cumulant 1 - <m^4> / (3 <m^2>^2) is 2/3 in perfect order and 0 in disorder. At the critical temperature it
# does not depend on the size of a large lattice, so the curves of two sizes cross there.


def crossing(x, small, large):
    """Where parabolas through the cumulants of two lattices meet."""
    roots = np.roots(np.polyfit(x - x.mean(), large - small, 2)) + x.mean()
    return float(np.real(roots[np.argmin(abs(roots - x.mean()))]))


def main():
    magnetization, cumulant = {}, {}
    for n, sweeps in SWEEPS.items():
        moments, _ = sample(random.split(random.key(n), len(TEMPERATURES)), TEMPERATURES, n, sweeps)
        magnetization[n], m2, m4 = np.asarray(moments).T
        cumulant[n] = 1 - m4 / (3 * m2**2)
    for small, large in pairwise(SWEEPS):
        found = crossing(TEMPERATURES, cumulant[small], cumulant[large])
        print(
            f"cumulants of {small} x {small} and {large} x {large} cross at {found:.3f}; exact {CRITICAL:.4f}"
        )
    exact = (1 - np.sinh(2 / TEMPERATURES[0]) ** -4) ** 0.125
    print(f"magnetization at T = 2.2: {magnetization[32][0]:.4f}; exact {exact:.4f}")
    return magnetization, cumulant


# %%
# The cumulants, and what a larger lattice looks like: order below the critical temperature, islands of all sizes at it,
# disorder above.


def draw(magnetization, cumulant):
    import matplotlib.pyplot as plt

    at = np.array([2.0, CRITICAL, 2.8])
    _, pictures = sample(random.split(random.key(0), 3), at, 96, 1)
    panels = plt.figure(figsize=(7.6, 5.2)).subplot_mosaic("aabbcc;lllrrr")
    for name, temperature, spins in zip("abc", at, pictures):
        axes = panels[name]
        axes.imshow(spins, cmap="Blues", vmin=-1.6, vmax=1.6)
        axes.set(xticks=[], yticks=[], title=f"T = {temperature:.3g}")
    left, right = panels["l"], panels["r"]
    for n in SWEEPS:
        left.plot(TEMPERATURES, magnetization[n], "o-", markersize=3, linewidth=1, label=f"{n} x {n}")
        right.plot(TEMPERATURES, cumulant[n], "o-", markersize=3, linewidth=1, label=f"{n} x {n}")
    below = np.linspace(2.2, CRITICAL, 200)
    left.plot(below, np.maximum(1 - np.sinh(2 / below) ** -4, 0) ** 0.125, "k", label="exact, infinite")
    left.set(xlabel="temperature", ylabel="magnetization |m|", ylim=(0, 1))
    right.axvline(CRITICAL, color="gray", linestyle=":", label="exact critical T")
    right.set(xlabel="temperature", ylabel="Binder's cumulant")
    left.legend(fontsize=8)
    right.legend(fontsize=8)
    plt.show()


if __name__ == "__main__":
    sampled = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*sampled)
