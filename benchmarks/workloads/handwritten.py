"""Value and gradient as a patient user would write them by hand with Numba.

Loops and BLAS (through `np.dot`), whichever is faster, and derivatives worked out on paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

fast = njit(fastmath=True, error_model="numpy")


@fast
def black_scholes(spot, volatility, strike, years, rate=0.03):
    n = spot.size
    d_spot, d_volatility = np.empty(n), np.empty(n)
    total = 0.0
    for i in range(n):
        root = math.sqrt(years[i])
        deviation = volatility[i] * root
        d1 = (math.log(spot[i] / strike[i]) + (rate + volatility[i] ** 2 / 2) * years[i]) / deviation
        cdf1 = (1 + math.erf(d1 * math.sqrt(0.5))) / 2
        cdf2 = (1 + math.erf((d1 - deviation) * math.sqrt(0.5))) / 2
        total += spot[i] * cdf1 - strike[i] * math.exp(-rate * years[i]) * cdf2
        d_spot[i] = cdf1
        d_volatility[i] = spot[i] * math.exp(-d1 * d1 / 2) / math.sqrt(2 * math.pi) * root
    return total, (d_spot, d_volatility)


@fast
def logistic(weights, bias, x, y):
    n = x.shape[0]
    score = np.dot(x, weights)
    residual = np.empty(n)
    total, d_bias = 0.0, 0.0
    for i in range(n):
        s = score[i] + bias[()]
        e = math.exp(-abs(s))
        total += max(s, 0.0) + math.log1p(e) - y[i] * s
        probability = 1 / (1 + e) if s > 0 else e / (1 + e)
        residual[i] = (probability - y[i]) / n
        d_bias += residual[i]
    return total / n, (np.dot(residual, x), d_bias)


@fast
def logistic_hessian(weights, bias, x, y):
    n, features = x.shape
    score = np.dot(x, weights)
    scaled = np.empty_like(x)
    for i in range(n):
        e = math.exp(-abs(score[i] + bias[()]))
        curvature = e / (1 + e) ** 2 / n
        for j in range(features):
            scaled[i, j] = curvature * x[i, j]
    return np.dot(x.T, scaled)


@fast
def _affine_relu(x, weights, bias, rectify):
    y = np.dot(x, weights)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] += bias[j]
            if rectify:
                y[i, j] = max(y[i, j], np.float32(0))
    return y


@fast
def _softmax_residual(logits, onehot):
    """Mean cross-entropy; its gradient in the logits, written over them."""
    total = np.float32(0)
    n, classes = logits.shape
    for i in range(n):
        top = np.max(logits[i])
        mass = np.float32(0)
        for j in range(classes):
            mass += math.exp(logits[i, j] - top)
        for j in range(classes):
            total += onehot[i, j] * (math.log(mass) + top - logits[i, j])
            logits[i, j] = (math.exp(logits[i, j] - top) / mass - onehot[i, j]) / np.float32(n)
    return total / np.float32(n)


@fast
def _column_sums(x):
    total = np.zeros(x.shape[1], x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total[j] += x[i, j]
    return total


@fast
def _mask(ct, y):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            if y[i, j] <= 0:
                ct[i, j] = 0


@fast
def mlp(layers, x, onehot):
    (w1, b1), (w2, b2), (w3, b3) = layers
    h1 = _affine_relu(x, w1, b1, True)
    h2 = _affine_relu(h1, w2, b2, True)
    ct3 = _affine_relu(h2, w3, b3, False)
    loss = _softmax_residual(ct3, onehot)
    ct2 = np.dot(ct3, w3.T)
    _mask(ct2, h2)
    ct1 = np.dot(ct2, w2.T)
    _mask(ct1, h1)
    first = (np.dot(x.T, ct1), _column_sums(ct1))
    second = (np.dot(h1.T, ct2), _column_sums(ct2))
    return loss, (first, second, (np.dot(h2.T, ct3), _column_sums(ct3)))


@fast
def rosenbrock(x):
    gradient = np.zeros_like(x)
    total = 0.0
    for i in range(x.size - 1):
        a, b = x[i + 1] - x[i] * x[i], 1 - x[i]
        total += 100 * a * a + b * b
        gradient[i] -= 400 * a * x[i] + 2 * b
        gradient[i + 1] += 200 * a
    return total, gradient


@fast
def pairwise(points):
    n = points.shape[0]
    x, y, z = points[:, 0].copy(), points[:, 1].copy(), points[:, 2].copy()
    gradient = np.empty((n, 3))
    total = 0.0
    for i in range(n):
        gx, gy, gz = 0.0, 0.0, 0.0
        for j in range(n):
            dx, dy, dz = x[i] - x[j], y[i] - y[j], z[i] - z[j]
            e = math.exp(-0.5 * (dx * dx + dy * dy + dz * dz))
            total += e
            gx -= e * dx
            gy -= e * dy
            gz -= e * dz
        gradient[i, 0], gradient[i, 1], gradient[i, 2] = gx, gy, gz
    return total / 2, gradient


@fast
def cross_entropy(logits, labels):
    n, classes = logits.shape
    gradient = np.empty_like(logits)
    total = 0.0
    for i in range(n):
        top = logits[i, 0]
        for j in range(1, classes):
            top = max(top, logits[i, j])
        mass = 0.0
        for j in range(classes):
            gradient[i, j] = math.exp(logits[i, j] - top)
            mass += gradient[i, j]
        for j in range(classes):
            gradient[i, j] /= mass * n
        gradient[i, labels[i]] -= 1 / n
        total += math.log(mass) + top - logits[i, labels[i]]
    return total / n, gradient


@fast
def gaussian_process(parameters, x, y):
    n = x.size
    length, amplitude, noise = math.exp(parameters[0]), math.exp(parameters[1]), math.exp(parameters[2])
    kernel = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            scaled = (x[i] - x[j]) / length
            kernel[i, j] = amplitude * math.exp(-0.5 * scaled * scaled)
    covariance = kernel + noise * np.eye(n)
    inverse = np.linalg.inv(covariance)
    weights = np.dot(inverse, y)
    factor = np.linalg.cholesky(covariance)
    value = 0.5 * np.dot(y, weights)
    gradient = np.zeros(3)
    for i in range(n):
        value += math.log(factor[i, i])
        for j in range(n):
            # d value / d covariance = (inverse - weights weights') / 2
            ct = (inverse[i, j] - weights[i] * weights[j]) / 2
            gradient[0] += ct * kernel[i, j] * ((x[i] - x[j]) / length) ** 2
            gradient[1] += ct * kernel[i, j]
        gradient[2] += noise * (inverse[i, i] - weights[i] * weights[i]) / 2
    return value, gradient


@fast
def embedding(table, tokens):
    gradient = np.zeros_like(table)
    total = 0.0
    for k in range(tokens.size):
        for j in range(table.shape[1]):
            row = table[tokens[k], j]
            total += row * row
            gradient[tokens[k], j] += row
    return total / 2, gradient


@fast
def unrolled(x):
    gradient = np.empty_like(x)
    total = 0.0
    for i in range(x.size):
        value, slope = x[i], 1.0
        for k in range(125):
            rate = 1 + k / 200
            slope *= 1 + 0.1 * rate * math.cos(value * rate)
            value += 0.1 * math.sin(value * rate)
        gradient[i] = slope
        total += value
    return total, gradient


HANDWRITTEN: dict[str, Callable[..., Any]] = {
    "Black-Scholes": black_scholes,
    "logistic regression, large": logistic,
    "logistic regression, small": logistic,
    "MLP 784-512-256-10": lambda layers, x, onehot: mlp(tuple(layers), x, onehot),
    "Rosenbrock": rosenbrock,
    "Hessian of logistic regression": logistic_hessian,
    "pairwise Gaussian energy": pairwise,
    "softmax cross-entropy": cross_entropy,
    "GP log marginal likelihood": gaussian_process,
    "embedding lookup": embedding,
    "500-op unrolled graph": unrolled,
}
"""The contestant of each workload of `workloads.WORKLOADS`, by its name."""
