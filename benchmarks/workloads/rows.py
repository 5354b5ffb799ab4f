"""Programs over tall data, written once: `np`, `special` and `lax` are the namespaces of the contestant that runs them.

The rows are the data, ten thousand to a million of them; parameters are few. Data come from a seeded generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

FEATURES, CLASSES, DIMENSIONS = 40, 10, 16
SIZES = (10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class RowProgram:
    """A function of parameters and of data in rows, and what is measured of it."""

    name: str
    f: Callable[..., Any]
    data: Callable[[numpy.random.Generator, int], tuple[Any, ...]]
    matrix: int | None = 1
    """Which argument has the rows, if they are all that is read."""
    argnums: int | tuple[int, ...] = 0
    transform: str = "value_and_grad"
    """The derivative that is measured; the function itself where it is empty."""
    sizes: tuple[int, ...] = SIZES
    tolerance: float = 1e-9

    @property
    def by_hand(self) -> str:
        """The name of the same with derivatives worked out, in `rows_numpy` and `rows_handwritten`."""
        return self.f.__name__ + ("_hessian" if self.transform == "hessian" else "")

    def arguments(self, rows: int) -> tuple[Any, ...]:
        """Fresh data of this many rows, the same at each call."""
        return self.data(numpy.random.default_rng(0), rows)


def linear(weights, x, y, *, np):
    """Half the mean of the squared residuals."""
    residual = x @ weights - y
    return np.mean(residual * residual) / 2


def logistic(weights, x, y, *, np):
    """Mean negative log likelihood of labels `y` of 0 and 1."""
    score = x @ weights
    return np.mean(np.logaddexp(0.0, score) - y * score)


def poisson(weights, x, y, *, np):
    """Mean negative log likelihood of counts, up to a constant."""
    score = x @ weights
    return np.mean(np.exp(score) - y * score)


def cox(weights, x, event, *, np):
    """Mean negative log partial likelihood, rows by falling time."""
    risk = x @ weights
    top = np.max(risk)
    return -np.mean(event * (risk - (np.log(np.cumsum(np.exp(risk - top))) + top)))


def softmax(weights, x, labels, *, np, special):
    """Mean cross-entropy of integer labels."""
    scores = x @ weights
    return np.mean(special.logsumexp(scores, axis=1) - scores[np.arange(labels.shape[0]), labels])


def ridge(x, y, *, np, lax, steps=10):
    """Ridge regression by conjugate gradients, a fixed number of steps."""
    penalty = 0.1 * x.shape[0]

    def step(_, state):
        weights, residual, direction, square = state
        image = x.T @ (x @ direction) + penalty * direction
        length = square / (direction @ image)
        weights, residual = weights + length * direction, residual - length * image
        new = residual @ residual
        return weights, residual, residual + new / square * direction, new

    start = x.T @ y
    return lax.fori_loop(0, steps, step, (np.zeros_like(start), start, start, start @ start))[0]


def k_means(centres, x, *, np):
    """Sum of the squared distances to the closest centre."""
    difference = x[:, None] - centres
    return np.sum(np.min(np.sum(difference * difference, axis=-1), axis=1))


def mixture(parameters, x, *, np, special):
    """Mean negative log likelihood of a mixture of Gaussians with diagonal covariances, up to a constant."""
    logits, means, scales = parameters
    z = (x[:, None] - means) * np.exp(-scales)
    each = logits - special.logsumexp(logits) - np.sum(scales, axis=-1) - 0.5 * np.sum(z * z, axis=-1)
    return -np.mean(special.logsumexp(each, axis=1))


def kernel_sums(parameters, x, centres, y, *, np):
    """Half the mean of the squared residuals of a sum of Gaussian kernels around fixed centres."""
    weights, log_width = parameters
    difference = (x[:, None] - centres) * np.exp(-log_width)
    residual = np.exp(-0.5 * np.sum(difference * difference, axis=-1)) @ weights - y
    return np.mean(residual * residual) / 2


def attention(q, k, v, *, np, special):
    """Half the mean square of what attention returns."""
    weights = special.softmax(q @ k.T / q.shape[1] ** 0.5, axis=1)
    out = weights @ v
    return np.mean(out * out) / 2


def attention_heads(q, k, v, *, np, special):
    """The same for several heads, the first axis."""
    weights = special.softmax(q @ np.swapaxes(k, 1, 2) / q.shape[2] ** 0.5, axis=2)
    out = weights @ v
    return np.mean(out * out) / 2


def _regression(answer):
    def data(rng, rows):
        x = rng.standard_normal((rows, FEATURES))
        weights = rng.normal(size=FEATURES) / FEATURES**0.5
        return 0.1 * rng.normal(size=FEATURES), x, answer(rng, x @ weights)

    return data


def _classes(rng, rows):
    x = rng.standard_normal((rows, FEATURES))
    return 0.1 * rng.normal(size=(FEATURES, CLASSES)), x, rng.integers(0, CLASSES, rows)


def _clusters(rng, rows):
    centres = 2 * rng.normal(size=(CLASSES, DIMENSIONS))
    x = rng.standard_normal((rows, DIMENSIONS))
    x += centres[rng.integers(0, CLASSES, rows)]
    return centres + 0.5 * rng.normal(size=centres.shape), x


def _components(rng, rows):
    means, x = _clusters(rng, rows)
    return (0.1 * rng.normal(size=CLASSES), means, 0.1 * rng.normal(size=means.shape)), x


def _points(rng, rows):
    x, centres = rng.uniform(size=(rows, 3)), rng.uniform(size=(64, 3))
    return (rng.normal(size=64), numpy.array(-1.2)), x, centres, numpy.sin(5 * x[:, 0])


def _labels(rng, score):
    return (rng.uniform(size=score.size) < 1 / (1 + numpy.exp(-score))).astype(float)


ROW_PROGRAMS = (
    RowProgram(
        "linear regression", linear, _regression(lambda rng, score: score + rng.normal(size=score.size))
    ),
    RowProgram("logistic regression", logistic, _regression(_labels)),
    RowProgram(
        "Poisson regression",
        poisson,
        _regression(lambda rng, score: rng.poisson(numpy.exp(score)).astype(float)),
    ),
    RowProgram(
        "Cox regression",
        cox,
        _regression(lambda rng, score: (rng.uniform(size=score.size) < 0.6).astype(float)),
    ),
    RowProgram("softmax regression, ten classes", softmax, _classes),
    RowProgram(
        "ridge, ten conjugate gradients",
        ridge,
        lambda rng, rows: _regression(lambda rng, score: score + rng.normal(size=score.size))(rng, rows)[1:],
        matrix=0,
        transform="",
    ),
    RowProgram("Hessian of logistic regression", logistic, _regression(_labels), transform="hessian"),
    RowProgram("k-means", k_means, _clusters),
    RowProgram("Gaussian mixture", mixture, _components),
    RowProgram("kernel sums, 64 centres", kernel_sums, _points),
    RowProgram(
        "attention, 64 columns",
        attention,
        lambda rng, rows: tuple(rng.normal(size=(rows, 64)) for _ in range(3)),
        matrix=None,
        argnums=(0, 1, 2),
        sizes=(2048, 8192),
    ),
    RowProgram(
        "attention, 8 heads",
        attention_heads,
        lambda rng, rows: tuple(rng.normal(size=(8, rows, 64)) for _ in range(3)),
        matrix=None,
        argnums=(0, 1, 2),
        sizes=(256, 2048),
    ),
)
