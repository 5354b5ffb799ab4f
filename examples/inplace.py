"""A membrane in constant memory
=============================

A vibrating membrane in constant memory: donated states, and a SciPy filter that works in place.

The leapfrog scheme of the wave equation needs the displacement at two times, and writes the next one over the older::

    next = 2 now - before + (c dt/dx)^2 laplacian(now)

With `donate_argnums` the compiled step does just that: both states keep their memory, in turn. Without it, each step
allocates a new array. Now and then a filter of SciPy removes what the grid cannot represent; it writes into its
argument, which `ctx.mark_dirty` declares.

    python examples/inplace.py
"""

import tracemalloc
from contextlib import suppress

import numpy as np
from scipy.ndimage import gaussian_filter

import functrans as ft
import functrans.numpy as fnp

POINTS = 1000  # along each side; the edge does not move
COURANT = 0.5  # c dt/dx


# %%
# A step of the scheme, which `donate_argnums` will let write over its arguments.


def wave(now, before):
    """The displacements (n, n) one step later: the new one, and the one that was the newer."""
    inside = now[1:-1, 1:-1]
    around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
    change = COURANT**2 * fnp.pad(around - 4.0 * inside, 1)
    return 2.0 * now - before + change, now


# %%
# A function that writes over its argument says so.


class Smooth(ft.Function):
    """A Gaussian filter of width `sigma`, written over its argument. It is linear and its own transpose."""

    host = True

    @staticmethod
    def forward(x, sigma):
        gaussian_filter(x, sigma, output=x, mode="wrap")
        return x

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.sigma = inputs
        ctx.mark_dirty(x)

    @staticmethod
    def backward(ctx, g):
        return Smooth.apply(g, ctx.sigma), None

    @staticmethod
    def shape(x, sigma):
        return x


# %%
# A standing wave is the exact solution to compare with.


def mode(n, k=1, m=1):
    """The displacement (n, n) of a standing wave, and its phase in a step of the scheme."""
    x = np.pi * np.arange(n) / (n - 1)
    sines = np.sin(k * x)[:, None] * np.sin(m * x)
    phase = 2 * np.arcsin(COURANT * np.hypot(np.sin(k * x[1] / 2), np.sin(m * x[1] / 2)))
    return sines, phase


def peak(f):
    """What a call returns, and the most bytes that it needs in addition."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    out = f()
    more = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return out, more


def simulate(step, state, steps):
    """The state after so many steps."""
    for _ in range(steps):
        state = step(*state)
    return state


def main():
    """Print the memory of both ways, and what donation means for the arrays involved."""
    shape, phase = mode(POINTS)
    start = (shape * np.cos(0.0), shape * np.cos(-phase))
    for name, step in (("new states", ft.jit(wave)), ("donated", ft.jit(wave, donate_argnums=(0, 1)))):
        state = simulate(step, tuple(map(fnp.asarray, start)), 2)  # compiles
        (now, _), more = peak(lambda step=step, state=state: simulate(step, state, 100))
        error = np.abs(now - shape * np.cos(102 * phase)).max()
        print(f"{name:10}: {more / shape.nbytes:4.1f} arrays more, error {error:.0e} after 102 steps")

    # The memory may be NumPy's: it shows the results.
    step = ft.jit(wave, donate_argnums=(0, 1))
    memory = [np.array(x) for x in start]
    simulate(step, tuple(map(ft.donate, memory)), 10)
    print(f"NumPy's array follows: {np.allclose(memory[0], shape * np.cos(10 * phase), atol=1e-9)}")

    rough = fnp.asarray(shape + 0.1 * np.random.default_rng(0).normal(size=shape.shape))
    smooth = Smooth.apply(rough, 3.0)
    print(f"filtered: {np.std(smooth - shape):.4f} from the mode instead of 0.1")
    try:
        print(rough + smooth)
    except ft.errors.StaleValueError as error:
        print(f"{type(error).__name__}: {error.message.partition(chr(10))[0]}")
    return (shape + 0.1 * np.random.default_rng(0).normal(size=shape.shape), smooth)


# %%
# A pulse spreads and comes back from the edge: 200 points a side, three times. Each frame took no new memory.


def draw(*_):
    import matplotlib.pyplot as plt

    x, step = np.linspace(-1.0, 1.0, 201), ft.jit(wave, donate_argnums=(0, 1))
    pulse = fnp.asarray(np.exp(-((x[:, None] - 0.3) ** 2 + (x + 0.2) ** 2) / 0.005))
    state = (pulse, pulse.copy())
    for axes, steps in zip(plt.subplots(1, 3, figsize=(7.6, 2.9))[1], (60, 100, 200)):
        state = simulate(step, state, steps)
        axes.imshow(state[0], cmap="RdBu_r", vmin=-0.15, vmax=0.15, extent=(-1, 1, -1, 1))
        axes.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    for axes, total in zip(plt.gcf().axes, (60, 160, 360)):
        axes.set_title(f"{total} steps")
    plt.show()


if __name__ == "__main__":
    results = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*results)
