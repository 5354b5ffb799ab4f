"""Exploding gradients
===================

Watch gradients explode in a recurrent network, and clip them on their way back, without compiling again.

The network reads a handwritten digit pixel by pixel, 64 steps long. What its last state learns must travel back through
all of them, and grows at every step, until training fails. A hook in the loop sees the cotangent at each step. It has a
name, "on_state", and is chosen when the backward pass runs: first one that writes down norms, then one that clips.

    python examples/gradient_hooks.py
"""

import argparse
from contextlib import suppress
from pathlib import Path

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.scipy.special import logsumexp

DIGITS = Path(__file__).parent / "data" / "digits.csv.gz"
HELD_OUT = 360  # the last images
HIDDEN = 48


# %%
# The network. `cotangent_hook` marks the state; what happens there is decided later.


def logits(params, images, hooks):
    """Shapes: images (n, 64), result (n, 10)."""

    def step(state, pixel):
        state = fnp.tanh(state @ params["recurrent"] + pixel[:, None] * params["input"] + params["bias"])
        return ft.cotangent_hook(state, hooks, "on_state"), None

    start = fnp.zeros((len(images), HIDDEN))
    last, _ = lax.scan(step, start, images.T)
    return last @ params["output"]


def loss(params, images, labels, hooks):
    """Cross-entropy of the labels, (n,) integers."""
    scores = logits(params, images, hooks)
    return fnp.mean(logsumexp(scores, axis=1) - fnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0])


@ft.jit
def step(params, velocity, rate, images, labels, hooks):
    """One step of gradient descent with momentum."""
    value, gradient = ft.value_and_grad(loss)(params, images, labels, hooks)
    velocity = ft.tree.map(lambda v, g: 0.9 * v - rate * g, velocity, gradient)
    return ft.tree.map(fnp.add, params, velocity), velocity, value


def start(rng):
    """Weights, those of the loop so large that cotangents grow by half at each step."""
    return {
        "recurrent": rng.normal(0.0, 1.6 / np.sqrt(HIDDEN), (HIDDEN, HIDDEN)),
        "input": rng.normal(0.0, 1.0, HIDDEN),
        "bias": np.zeros(HIDDEN),
        "output": rng.normal(0.0, 1.0 / np.sqrt(HIDDEN), (HIDDEN, 10)),
    }


# %%
# One hook writes down norms, another clips.


def norms_on_the_way_back(params, images, labels):
    """The norm of the cotangent at each step of the loop, the last one first."""
    norms, hooks = [], ft.BackwardState()
    _, pull = ft.vjp(ft.jit(loss), params, images, labels, hooks)
    hooks.on_state = lambda ct: norms.append(float(fnp.linalg.norm(ct)))  # returns None: nothing changes
    pull(1.0)
    return np.array(norms)


def clip(limit):
    """A hook that shortens the cotangent of each image to `limit` at most."""

    def clipped(ct):
        norm = fnp.sqrt(fnp.sum(ct * ct, axis=1, keepdims=True))
        return ct * fnp.minimum(1.0, limit / (norm + 1e-300))

    return clipped


def train(images, labels, hook, epochs, *, rate=0.1, batch=64, seed=0):
    """Parameters after so many times through the images."""
    rng, hooks = np.random.default_rng(seed), ft.BackwardState()
    hooks.on_state = hook
    params, values = start(rng), []
    velocity = ft.tree.map(np.zeros_like, params)
    for _ in range(epochs):
        for some in np.array_split(rng.permutation(len(images)), len(images) // batch):
            params, velocity, value = step(params, velocity, rate, images[some], labels[some], hooks)
        values.append(float(value))
    return params, values


# %%
# Both trainings call the same compiled step: a hook is an argument of it.


def main():
    parser = argparse.ArgumentParser(description="Exploding gradients")
    parser.add_argument("--epochs", type=int, default=15, help="times to go through the images")
    epochs = parser.parse_args().epochs
    table = np.loadtxt(DIGITS, delimiter=",", dtype=np.int64)
    images, labels = table[:, :-1] / 16.0, table[:, -1]
    norms = norms_on_the_way_back(start(np.random.default_rng(0)), images[:64], labels[:64])
    losses = []
    print(
        "cotangent norm, by steps from the end: " + ", ".join(f"{k}: {norms[k]:.1e}" for k in range(0, 64, 9))
    )
    for name, hook in (("cotangents as they are", []), ("cotangents clipped", clip(1e-3))):
        before = step.cache_info().traces
        params, values = train(images[:-HELD_OUT], labels[:-HELD_OUT], hook, epochs)
        scores = logits(params, fnp.asarray(images[-HELD_OUT:]), ft.BackwardState())
        right = np.argmax(scores, axis=1) == labels[-HELD_OUT:]
        traces = step.cache_info().traces - before
        print(f"{name}: loss {values[-1]:.3f}, held-out accuracy {np.mean(right):.3f}, {traces} new traces")
        losses.append(values)
    return norms, losses


# %%
# Cotangents grow as they go back; clipped, they let the network learn.


def draw(norms, losses):
    import matplotlib.pyplot as plt

    left, right = plt.subplots(1, 2)[1]
    left.semilogy(norms)
    left.set(xlabel="steps from the end", ylabel="norm of the cotangent", title="before training")
    for values, label, color in zip(losses, ("as they are", "clipped"), ("C5", "C1")):
        right.plot(np.arange(1, len(values) + 1), values, color=color, label=label)
    right.set(xlabel="epoch", ylabel="loss of the last batch", title="cotangents")
    right.legend()
    plt.show()


if __name__ == "__main__":
    results = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*results)
