"""Handwritten digits
==================

Read handwritten digits with two layers of weights, trained by Adam in a few seconds on one core.

The parameters are a dict of arrays. The gradient is a dict with the same keys, and so are Adam's two averages;
`tree.map` walks through them in parallel. A training step (gradient and update) is one compiled kernel. There are only
1,437 images, so each epoch rotates, stretches and shifts them differently: `warp` transforms one image, and `vmap`
extends it to all.

    python examples/digits_mlp.py
"""

import argparse
from contextlib import suppress
from pathlib import Path

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import nn

DIGITS = Path(__file__).parent / "data" / "digits.csv.gz"
HELD_OUT = 360  # the last images


# %%
# Another eight by eight pixels of the same digit: bilinear interpolation at turned places.


def warp(pixels, angle, stretch, shift):
    """Rotate one image, (64,), by an angle, stretch and shift it; stretch and shift: (2,), shift in pixels."""
    grid = np.indices((8, 8)) - 3.5
    turn = fnp.stack([fnp.cos(angle), -fnp.sin(angle), fnp.sin(angle), fnp.cos(angle)]).reshape(2, 2)
    place = fnp.tensordot(stretch[:, None] * turn, grid, 1) + shift[:, None, None] + 3.5
    down, right = fnp.maximum(0.0, 1.0 - abs(place[..., None] - np.arange(8)))  # bilinear interpolation
    return fnp.einsum("ijv,vw,ijw->ij", down, pixels.reshape(8, 8), right).ravel()


warp_all = ft.jit(ft.vmap(warp))


# %%
# The network, its loss, and a step of Adam, which `jit` makes one kernel.


def logits(params, images):
    """Shapes: images (..., 64), result (..., 10)."""
    hidden = nn.relu(images @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss(params, images, labels):
    """Cross-entropy of the labels, (n,) integers, plus a little weight decay."""
    scores = logits(params, images)
    chosen = fnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
    weights = fnp.sum(params["w1"] ** 2) + fnp.sum(params["w2"] ** 2)
    return fnp.mean(nn.logsumexp(scores, axis=1) - chosen) + 1e-4 * weights


@ft.jit
def step(params, mean, square, count, rate, images, labels):
    """One step of Adam (Kingma & Ba 2015), with their constants."""
    value, gradient = ft.value_and_grad(loss)(params, images, labels)
    mean = ft.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    square = ft.tree.map(lambda s, g: 0.999 * s + 0.001 * g**2, square, gradient)
    rate = rate * fnp.sqrt(1.0 - 0.999**count) / (1.0 - 0.9**count)
    params = ft.tree.map(lambda p, m, s: p - rate * m / (fnp.sqrt(s) + 1e-8), params, mean, square)
    return params, mean, square, value


# %%
# Training: each epoch sees all images, warped again.


def train(images, labels, epochs, *, hidden=512, batch=64, seed=0):
    """Train for a number of epochs with a learning rate that falls to zero; return the parameters."""
    rng, n = np.random.default_rng(seed), len(images)
    params = {"w1": rng.normal(0.0, np.sqrt(2 / 64), (64, hidden)), "b1": np.zeros(hidden),
              "w2": rng.normal(0.0, np.sqrt(2 / hidden), (hidden, 10)), "b2": np.zeros(10)}  # fmt: skip
    mean = square = ft.tree.map(np.zeros_like, params)
    count = 0
    for epoch in range(epochs):
        stretch, shift = np.exp(rng.normal(0.0, 0.15, (n, 2))), rng.normal(0.0, 0.5, (n, 2))
        warped = warp_all(images, rng.normal(0.0, 0.2, n), stretch, shift)
        losses = []
        for some in np.array_split(rng.permutation(n), n // batch):
            count += 1
            rate = 0.006 * (1.0 - epoch / epochs)  # numbers are arguments of the kernel, so they may change
            params, mean, square, value = step(params, mean, square, count, rate, warped[some], labels[some])
            losses.append(value)
        if (epoch + 1) % 25 in (0, 1):
            print(f"epoch {epoch + 1:3} of {epochs}, loss {np.mean(losses):.4f}", flush=True)
    return params


def main():
    parser = argparse.ArgumentParser(description="Handwritten digits")
    parser.add_argument("--epochs", type=int, default=150, help="passes through the images")
    epochs = parser.parse_args().epochs
    table = np.loadtxt(DIGITS, delimiter=",", dtype=np.int64)
    images, labels = table[:, :-1] / 16.0, table[:, -1]
    params = train(images[:-HELD_OUT], labels[:-HELD_OUT], epochs)
    right = np.argmax(logits(params, images[-HELD_OUT:]), axis=1) == labels[-HELD_OUT:]
    wrong = np.flatnonzero(~right)
    print(f"held-out accuracy {np.mean(right):.4f}: {np.sum(right)} of {HELD_OUT} digits are read right")
    return images[-HELD_OUT:][wrong], labels[-HELD_OUT:][wrong], logits(params, images[-HELD_OUT:][wrong])


# %%
# What it reads wrongly, most surely first: the label, and what it takes it for.


def draw(images, labels, scores):
    import matplotlib.pyplot as plt

    sure = np.exp(scores - nn.logsumexp(scores, axis=1, keepdims=True))
    order = np.argsort(-sure.max(axis=1))[:8]
    panels = plt.subplots(2, 4, figsize=(6.4, 3.7))[1].ravel()
    for axes in panels:
        axes.set_axis_off()
    for axes, i in zip(panels, order):
        axes.imshow(images[i].reshape(8, 8), cmap="gray_r")
        axes.set(title=f"{labels[i]}, read as {sure[i].argmax()} ({sure[i].max():.0%})")
        axes.title.set_size(8.5)
    plt.show()


if __name__ == "__main__":
    results = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*results)
