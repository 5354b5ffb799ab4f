"""Four precisions
===============

Train a network on handwritten digits in four precisions, without touching the network.

The weights are float64 throughout. Under `autocast`, products run in a narrower dtype and what is delicate, here the
loss, in float64; gradients arrive in the dtype of the weights, which is all that the optimizer sees. float32 saves
time: the products are where it goes. float16 and bfloat16 save memory: what the backward pass keeps of the forward
takes two bytes a number, and the products compute in float32. bfloat16 needs the extra `lowp`.

    python examples/autocast.py
"""

import itertools
from contextlib import nullcontext, suppress
from pathlib import Path
from time import perf_counter

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import nn

DIGITS = Path(__file__).parent / "data" / "digits.csv.gz"
PRECISIONS = (None, "float32", "float16", "bfloat16")
TRAINED, STEPS, RATE, MOMENTUM = 1500, 50, 0.1, 0.9


def data():
    """Images (n, 64) with pixels from 0 to 1, and labels (n,), in a random order."""
    table = np.loadtxt(DIGITS, delimiter=",", skiprows=1)
    table = np.random.default_rng(0).permutation(table)
    return table[:, :64] / 16.0, table[:, 64].astype(int)


# %%
# The network and its loss know nothing of precision.


def network(sizes=(64, 256, 256, 128, 10), seed=0):
    """Weights (n, m) of a perceptron from 64 pixels to 10 scores."""
    rng = np.random.default_rng(seed)
    return [rng.normal(0.0, (2 / n) ** 0.5, (n, m)) for n, m in itertools.pairwise(sizes)]


def scores(weights, images):
    """The scores (n, 10) of the digits."""
    h = images
    for w in weights[:-1]:
        h = nn.relu(h @ w)
    return h @ weights[-1]


@ft.jit
def loss(weights, images, labels):
    """The mean cross-entropy."""
    s = scores(weights, images)
    return fnp.mean(nn.logsumexp(s, axis=1) - fnp.take_along_axis(s, labels[:, None], axis=1)[:, 0])


@ft.jit
def step(weights, velocity, images, labels):
    """One step of gradient descent with momentum."""
    gradient = ft.grad(loss)(weights, images, labels)
    velocity = [MOMENTUM * v - RATE * g for v, g in zip(velocity, gradient)]
    return [w + v for w, v in zip(weights, velocity)], velocity


# %%
# The precision is chosen around the calls.


def train(precision, images, labels):
    """Train in a precision (None: all in float64).

    Returns
    -------
    accuracy : float
        Of the scores of the images that training did not see.
    seconds : float
        The median of a step.
    kept : int
        The bytes that the backward pass keeps of the forward.
    """
    seen, unseen = slice(TRAINED), slice(TRAINED, None)
    weights = network()
    velocity, times = [np.zeros_like(w) for w in weights], []
    with nullcontext() if precision is None else ft.autocast(precision):
        kept = ft.vjp(loss, weights, images[seen], labels[seen])[1].residual_bytes
        for _ in range(STEPS):
            start = perf_counter()
            weights, velocity = step(weights, velocity, images[seen], labels[seen])
            times.append(perf_counter() - start)
        digits = np.argmax(scores(weights, images[unseen]), axis=1)
    return float(np.mean(digits == labels[unseen])), float(np.median(times)), kept


def main(precisions=PRECISIONS):
    """Print a row for each precision; return what `train` returns of each."""
    images, labels = data()
    print("products in   accuracy   a step   kept for the backward pass")
    rows = []
    for precision in precisions:
        accuracy, seconds, kept = row = train(precision, images, labels)
        print(f"{precision or 'float64':11}   {accuracy:8.1%} {1e3 * seconds:5.1f} ms {kept / 1e6:6.2f} MB")
        rows.append(row)
    return rows


# %%
# Time and memory of each precision. The accuracy is the same.


def draw(rows, precisions=PRECISIONS):
    import matplotlib.pyplot as plt

    names = [precision or "float64" for precision in precisions]
    accuracy, seconds, kept = np.transpose(rows)
    panels = {
        "milliseconds a step": (1e3 * seconds, "{:.0f}"),
        "MB kept for the backward pass": (kept / 1e6, "{:.1f}"),
        "accuracy (%)": (100 * accuracy, "{:.1f}"),
    }
    for axes, (label, (values, form)) in zip(plt.subplots(1, 3)[1], panels.items()):
        bars = axes.barh(names[::-1], values[::-1], color=["C1", "C1", "C1", "C5"][: len(names)])
        axes.bar_label(bars, fmt=form, padding=3)
        axes.set(
            title=label,
            xlim=(0, 1.25 * max(values)),
            xticks=[],
            yticks=range(len(names)) if axes.get_subplotspec().is_first_col() else [],
        )
        axes.spines[["bottom", "left"]].set_visible(False)
        axes.tick_params(length=0)
    plt.show()


if __name__ == "__main__":
    rows = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(rows)
