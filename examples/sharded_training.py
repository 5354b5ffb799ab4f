"""Training on several processes
=============================

Train a network of which each process holds a share: parameters, gradients and Adam's averages are divided by rows.

`fully_shard` gathers the weights of a layer just before they are used, and frees them afterwards; the next layer is on
its way meanwhile. The gradient leaves as sums of which each process receives its rows, so Adam runs on rows alone. A
step is one compiled function. Each process reads its part of a batch of handwritten digits.

    python examples/sharded_training.py                                              one process
    python -m functrans.distributed.run -n 2 examples/sharded_training.py            two of them
"""

import argparse
import itertools
from contextlib import suppress
from pathlib import Path

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import distributed, nn

DIGITS = Path(__file__).parent / "data" / "digits.csv.gz"
HELD_OUT = 357  # the last images
LAYERS = (64, 256, 256, 10)


def first_parameters(seed=0):
    """The same on all processes."""
    rng = np.random.default_rng(seed)
    return [
        {"w": rng.normal(0.0, np.sqrt(2 / n), (n, m)), "b": np.zeros(m)}
        for n, m in itertools.pairwise(LAYERS)
    ]


# %%
# The loss of one process, and a step of Adam.


def loss(params, images, labels):
    """Cross-entropy of the labels, (n,) integers, for images (n, 64)."""
    x = images
    for layer in params[:-1]:
        x = nn.relu(x @ layer["w"] + layer["b"])
    scores = x @ params[-1]["w"] + params[-1]["b"]
    chosen = fnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
    return fnp.mean(nn.logsumexp(scores, axis=1) - chosen)


def make_step(function, rate=2e-3):
    """A step of Adam (Kingma & Ba 2015): the same for whole parameters and for rows."""

    @ft.jit
    def step(params, mean, square, count, images, labels):
        value, gradient = ft.value_and_grad(function)(params, images, labels)
        mean = ft.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = ft.tree.map(lambda s, g: 0.999 * s + 0.001 * g**2, square, gradient)
        size = rate * fnp.sqrt(1.0 - 0.999**count) / (1.0 - 0.9**count)
        params = ft.tree.map(lambda p, m, s: p - size * m / (fnp.sqrt(s) + 1e-8), params, mean, square)
        return params, mean, square, value

    return step


# %%
# The same training for whole parameters and for shards.


def train(step, params, batches):
    """The parameters, or rows of them, after a step for each batch, and the losses."""
    mean = square = ft.tree.map(lambda p: np.zeros_like(p), params)
    values = []
    for count, (images, labels) in enumerate(batches, start=1):
        params, mean, square, value = step(params, mean, square, count, images, labels)
        values.append(float(value))
    return params, values


# %%
# `fully_shard` turns the loss into one of shards.


def main():
    """Train on all processes and, for comparison, on one; the losses, on the first process."""
    parser = argparse.ArgumentParser(description="Training on several processes")
    parser.add_argument("--steps", type=int, default=300)
    steps = parser.parse_args().steps
    table = np.loadtxt(DIGITS, delimiter=",", dtype=np.int64)
    images, labels = table[:, :-1] / 16.0, table[:, -1]
    rng = np.random.default_rng(1)
    chosen = [rng.choice(len(table) - HELD_OUT, 120, replace=False) for _ in range(steps)]
    whole = first_parameters()
    with distributed.make_mesh(ft.process_count(), "dp") as mesh:
        mine = [np.array_split(some, mesh.size)[mesh.rank] for some in chosen]
        groups = [(i,) for i in range(len(whole))]
        model = distributed.fully_shard(loss, mesh, groups=groups)
        shards, losses = train(make_step(model), model.init(whole), [(images[i], labels[i]) for i in mine])
        trained = model.full(shards)
        if mesh.rank:
            return None
        held = sum(x.nbytes for x in ft.tree.leaves(shards))
        first = [f"{event} {group}" for event, group in model.events if group != "root"][:6]
    total = sum(x.nbytes for x in ft.tree.leaves(whole))
    print(f"{ft.process_count()} processes; each holds {held:,} of {total:,} bytes of parameters")
    print(f"the first things that happen: {', '.join(first)}, ...")
    alone, _ = train(make_step(loss), whole, [(images[i], labels[i]) for i in chosen])
    pairs = zip(ft.tree.leaves(trained), ft.tree.leaves(alone), strict=True)
    difference = max(np.max(np.abs(a - b)) for a, b in pairs)
    scores = images[-HELD_OUT:]
    for layer in trained[:-1]:
        scores = np.maximum(scores @ np.asarray(layer["w"]) + np.asarray(layer["b"]), 0.0)
    scores = scores @ np.asarray(trained[-1]["w"]) + np.asarray(trained[-1]["b"])
    right = np.argmax(scores, axis=1) == labels[-HELD_OUT:]
    print(f"held-out accuracy {np.mean(right):.4f}; the parameters of one process differ by {difference:.1e}")
    if difference >= 1e-6:
        raise SystemExit("the parameters differ")
    return losses


# %%
# The loss of each batch, and its mean over twenty.


def draw(losses):
    import matplotlib.pyplot as plt

    axes = plt.subplots(figsize=(7.6, 3.0))[1]
    axes.plot(losses, color="C0", alpha=0.35, linewidth=1)
    axes.plot(np.arange(10, len(losses) - 9), np.convolve(losses, np.ones(20) / 20, "valid"), color="C0")
    axes.set(xlabel="step", ylabel="cross-entropy", yscale="log", xlim=(0, len(losses)))
    plt.show()


if __name__ == "__main__":
    if losses := main():
        with suppress(ImportError):  # Matplotlib is optional
            draw(losses)
