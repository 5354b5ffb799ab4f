"""Gradients on a memory budget
============================

Train a deep network on handwritten digits with less and less memory for its gradient.

Between the forward and the backward program of six layers of 256, with all 1,797 images, there are 138 MB if every
value that the backward program reads is kept. By default a minimum cut keeps 22 MB, which is also faster: what is cheap
is computed again. `config.activation_memory_budget` bounds that further, as a share of the 138 MB. The gradient is the
same at each budget.

    python examples/memory_budget.py
"""

import itertools
from contextlib import suppress
from pathlib import Path
from time import perf_counter

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import nn

DIGITS = Path(__file__).parent / "data" / "digits.csv.gz"
BUDGETS = (1.0, 0.5, 0.2, 0.18, 0.15, 0.12, 0.1, 0.08, 0.05, 0.02, 0.0)


def data():
    """Images (n, 64) with pixels from 0 to 1, and labels (n,)."""
    table = np.loadtxt(DIGITS, delimiter=",", skiprows=1)
    return table[:, :64] / 16.0, table[:, 64].astype(int)


# %%
# The network.


def network(depth=6, width=256, seed=0):
    """Weights of a perceptron from 64 pixels to 10 scores."""
    rng = np.random.default_rng(seed)
    sizes = [64, *[width] * depth, 10]
    return [rng.normal(0.0, n**-0.5, (n, m)) for n, m in itertools.pairwise(sizes)]


def loss(weights, images, labels):
    """The mean cross-entropy."""
    h = images
    for w in weights[:-1]:
        h = nn.gelu(h @ w)
    scores = h @ weights[-1]
    return fnp.mean(nn.logsumexp(scores, axis=1) - fnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0])


# %%
# The budget is an option, read when the gradient is compiled.


def measure(weights, images, labels, repeats=3, **options):
    """The gradient, the bytes that the pullback keeps besides the arguments, and the least seconds of several."""
    with ft.config.patch(**options):
        times = []
        for _ in range(repeats):
            start = perf_counter()
            _, pull = ft.vjp(ft.jit(loss), weights, images, labels)
            kept = pull.residual_bytes
            gradient = pull(1.0)[0]
            times.append(perf_counter() - start)
    return gradient, kept, min(times)


def main():
    """Print a row for each budget; return what is kept at each, in bytes."""
    images, labels = data()
    weights = network()
    reference, kept, seconds = measure(weights, images, labels, partitioner="save_all")
    print("budget      kept     time   largest difference of the gradient")
    print(f"   all {kept / 1e6:6.1f} MB {1e3 * seconds:5.0f} ms")
    sizes = [kept]
    for budget in BUDGETS:
        gradient, kept, seconds = measure(weights, images, labels, activation_memory_budget=budget)
        off = max(float(np.max(abs(a - b))) for a, b in zip(gradient, reference))
        print(f"{budget:6.2f} {kept / 1e6:6.1f} MB {1e3 * seconds:5.0f} ms   {off:.0e}")
        sizes.append(kept)
    return np.array(sizes)


# %%
# What is kept, and what may be. From a budget of 0.16 on, the default is kept: a minimum cut, a sixth of everything.


def draw(sizes):
    import matplotlib.pyplot as plt

    axes, allowed = plt.subplots()[1], np.linspace(0.0, 0.25, 50)
    axes.plot(allowed, allowed * sizes[0] / 1e6, "--", color="C5", label="budget")
    shown = np.array(BUDGETS) <= 0.25
    axes.plot(np.array(BUDGETS)[shown], sizes[1:][shown] / 1e6, "o-", label="kept")
    axes.set(xlabel="budget, as a share of everything (138 MB)", ylabel="kept for the backward pass (MB)")
    axes.set(xlim=(0, 0.25), ylim=(0, None))
    axes.legend()
    plt.show()


if __name__ == "__main__":
    sizes = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(sizes)
