"""The programs, written once: `np`, `special` and `linalg` are the namespaces of the contestant that runs them.

Sizes are those of the table in README.md. Data come from a seeded generator.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy


@dataclass(frozen=True)
class Workload:
    """A scalar function, its data, and which derivative is measured."""

    name: str
    f: Callable[..., Any]
    data: Callable[[numpy.random.Generator], tuple[Any, ...]]
    argnums: int | tuple[int, ...] = 0
    transform: str = "value_and_grad"
    tolerance: float = 1e-9

    def arguments(self) -> tuple[Any, ...]:
        """Fresh data, the same at each call."""
        return self.data(numpy.random.default_rng(0))


def black_scholes(spot, volatility, strike, years, *, np, special, rate=0.03):
    """Sum of the prices of European calls."""
    deviation = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility * volatility / 2) * years) / deviation

    def cdf(x):
        return (1 + special.erf(x * math.sqrt(0.5))) / 2

    return np.sum(spot * cdf(d1) - strike * np.exp(-rate * years) * cdf(d1 - deviation))


def _options(rng):
    n = 1_000_000
    return rng.uniform(80, 120, n), rng.uniform(0.1, 0.5, n), rng.uniform(80, 120, n), rng.uniform(0.2, 2, n)


def logistic(weights, bias, x, y, *, np):
    """Mean negative log likelihood of labels `y` of 0 and 1."""
    score = x @ weights + bias
    return np.mean(np.logaddexp(0.0, score) - y * score)


def _labelled(n, features):
    def data(rng):
        x = rng.normal(size=(n, features))
        y = (rng.uniform(size=n) < 0.5).astype(float)
        return 0.1 * rng.normal(size=features), numpy.array(0.1), x, y

    return data


def mlp(layers, x, onehot, *, np):
    """Mean cross-entropy of a perceptron with rectified layers."""
    for weights, bias in layers[:-1]:
        x = np.maximum(x @ weights + bias, 0)
    weights, bias = layers[-1]
    logits = x @ weights + bias
    top = np.max(logits, axis=1, keepdims=True)
    logsum = np.log(np.sum(np.exp(logits - top), axis=1, keepdims=True)) + top
    return np.mean(np.sum(onehot * (logsum - logits), axis=1))


def perceptron(rng, sizes, batch, dtype):
    """Layers, inputs and one-hot labels for `mlp`."""
    layers = [
        ((rng.normal(size=(m, n)) / math.sqrt(m)).astype(dtype), numpy.zeros(n, dtype))
        for m, n in itertools.pairwise(sizes)
    ]
    onehot = numpy.eye(sizes[-1], dtype=dtype)[rng.integers(0, sizes[-1], batch)]
    return layers, rng.normal(size=(batch, sizes[0])).astype(dtype), onehot


def rosenbrock(x, *, np):
    """The banana valley, chained."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def pairwise(points, *, np):
    """Energy of points that attract by a Gaussian of their distance."""
    difference = points[:, None, :] - points[None, :, :]
    return np.sum(np.exp(-0.5 * np.sum(difference * difference, axis=-1))) / 2


def cross_entropy(logits, labels, *, np):
    """Mean of log-sum-exp minus the logit of the label."""
    top = np.max(logits, axis=1)
    logsum = np.log(np.sum(np.exp(logits - top[:, None]), axis=1)) + top
    return np.mean(logsum - logits[np.arange(len(labels)), labels])


def gaussian_process(parameters, x, y, *, np, linalg):
    """Negative log marginal likelihood of a squared-exponential kernel with noise, up to a constant."""
    length, amplitude, noise = np.exp(parameters[0]), np.exp(parameters[1]), np.exp(parameters[2])
    scaled = (x[:, None] - x[None, :]) / length
    covariance = amplitude * np.exp(-0.5 * scaled * scaled) + noise * np.eye(x.shape[0])
    factor = linalg.cholesky(covariance, lower=True)
    white = linalg.solve_triangular(factor, y, lower=True)
    i = np.arange(x.shape[0])
    return 0.5 * np.sum(white * white) + np.sum(np.log(factor[i, i]))


def _noisy_sine(rng):
    x = numpy.sort(rng.uniform(0, 10, 400))
    return numpy.array([0.0, 0.1, -2.0]), x, numpy.sin(x) + 0.3 * rng.normal(size=400)


def embedding(table, tokens, *, np):
    """Half the sum of squares of the looked-up rows."""
    rows = table[tokens]
    return 0.5 * np.sum(rows * rows)


def unrolled(x, *, np, ops=500):
    """A Python loop that traces to a straight-line program of `ops` operations."""
    for k in range(ops // 4):
        x = x + 0.1 * np.sin(x * (1 + k / 200))
    return np.sum(x)


def elementwise(x, *, np, ops):
    """A chain of `ops` elementwise operations, then a sum."""
    steps = (
        lambda x: x * 1.25,
        np.sin,
        lambda x: x + 0.75,
        np.exp,
        np.tanh,
        lambda x: x - 0.3,
        np.cos,
        lambda x: x / 1.5,
        lambda x: x * x,
        np.log1p,
    )
    for k in range(ops):
        x = steps[k % len(steps)](x)
    return np.sum(x)


def mixed(x, weights, *, np, ops):
    """Rounds of ten operations: a small matmul, row reductions, broadcasts, elementwise functions.

    Constants and functions change from round to round: if rounds were equal, a compiler could translate only one.
    """
    functions = (np.tanh, np.sin, np.arctan, np.cos)
    for k in range(ops // 10):
        x = x @ weights
        x = functions[k % 4](x - (0.04 + 0.01 * k) * np.sum(x, axis=1, keepdims=True))
        x = np.exp(x - np.max(x, axis=1, keepdims=True))
        x = x / np.sum(x, axis=1, keepdims=True)
    return np.sum(x * x)


WORKLOADS = (
    Workload("Black-Scholes", black_scholes, _options, (0, 1)),
    Workload("logistic regression, large", logistic, _labelled(10_000, 50), (0, 1)),
    Workload("logistic regression, small", logistic, _labelled(500, 10), (0, 1)),
    Workload(
        "MLP 784-512-256-10",
        mlp,
        lambda rng: perceptron(rng, (784, 512, 256, 10), 128, numpy.float32),
        tolerance=1e-4,
    ),
    Workload("Rosenbrock", rosenbrock, lambda rng: (rng.normal(size=10),)),
    Workload("Hessian of logistic regression", logistic, _labelled(500, 50), 0, "hessian"),
    Workload("pairwise Gaussian energy", pairwise, lambda rng: (rng.normal(size=(1500, 3)),)),
    Workload(
        "softmax cross-entropy",
        cross_entropy,
        lambda rng: (rng.normal(size=(4096, 1000)), rng.integers(0, 1000, 4096)),
    ),
    Workload("GP log marginal likelihood", gaussian_process, _noisy_sine, tolerance=1e-7),
    Workload(
        "embedding lookup",
        embedding,
        lambda rng: (rng.normal(size=(50_000, 64)), rng.integers(0, 50_000, 20_000)),
    ),
    Workload("500-op unrolled graph", unrolled, lambda rng: (rng.normal(size=1000),)),
)
