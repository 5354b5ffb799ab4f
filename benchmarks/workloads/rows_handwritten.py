"""The programs of `rows` in Numba, as loops that read each row once, with derivatives worked out by hand.

The lengths of inner loops come from the arrays: LLVM unrolls loops of a constant length, and then makes no vectors of
them.
"""

from __future__ import annotations

import ctypes
import math

import numpy as np
from numba.extending import get_cython_function_address

from .handwritten import fast

_BLOCK = 256
"""Rows for products of blocks, which stay in the cache."""


@fast
def read(x):
    """Only the sum: the time to read the rows once."""
    flat, total = x.reshape(-1), 0.0
    for i in range(flat.size):
        total += flat[i]
    return total


@fast
def _dot(a, b):
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@fast
def _add(total, factor, row):
    for j in range(total.size):
        total[j] += factor * row[j]


@fast
def linear(weights, x, y):
    n, gradient, total = x.shape[0], np.zeros_like(weights), 0.0
    for i in range(n):
        residual = _dot(x[i], weights) - y[i]
        total += residual * residual
        _add(gradient, residual, x[i])
    return total / (2 * n), gradient / n


@fast
def logistic(weights, x, y):
    n, gradient, total = x.shape[0], np.zeros_like(weights), 0.0
    for i in range(n):
        score = _dot(x[i], weights)
        e = math.exp(-abs(score))
        total += max(score, 0.0) + math.log(1 + e) - y[i] * score
        _add(gradient, (1.0 if score > 0 else e) / (1 + e) - y[i], x[i])
    return total / n, gradient / n


@fast
def poisson(weights, x, y):
    n, gradient, total = x.shape[0], np.zeros_like(weights), 0.0
    for i in range(n):
        score = _dot(x[i], weights)
        rate = math.exp(score)
        total += rate - y[i] * score
        _add(gradient, rate - y[i], x[i])
    return total / n, gradient / n


@fast
def cox(weights, x, event):
    """With sums over the rows so far, relative to the largest score so far."""
    n, gradient, total = x.shape[0], np.zeros_like(weights), 0.0
    at_risk, hazards, top = np.zeros_like(weights), 0.0, _dot(x[0], weights)
    for i in range(n):
        score = _dot(x[i], weights)
        if score > top:
            shrink = math.exp(top - score)
            hazards *= shrink
            at_risk *= shrink
            top = score
        hazard = math.exp(score - top)
        hazards += hazard
        _add(at_risk, hazard, x[i])
        if event[i] != 0:
            total -= event[i] * (score - math.log(hazards) - top)
            share = event[i] / hazards
            for j in range(gradient.size):
                gradient[j] += share * at_risk[j] - event[i] * x[i, j]
    return total / n, gradient / n


@fast
def softmax(weights, x, labels):
    """BLAS multiplies blocks of rows, in half of the time of loops."""
    n, classes = x.shape[0], weights.shape[1]
    gradient, total = np.zeros_like(weights), 0.0
    for start in range(0, n, _BLOCK):
        rows = x[start : start + _BLOCK]
        scores = np.dot(rows, weights)
        for i in range(rows.shape[0]):
            label, top, mass = labels[start + i], scores[i, 0], 0.0
            for k in range(1, classes):
                top = max(top, scores[i, k])
            total += top - scores[i, label]
            for k in range(classes):
                scores[i, k] = math.exp(scores[i, k] - top)
                mass += scores[i, k]
            total += math.log(mass)
            for k in range(classes):
                scores[i, k] /= mass
            scores[i, label] -= 1
        gradient += np.dot(rows.T, scores)
    return total / n, gradient / n


@fast
def _normal(x, direction):
    """``x.T @ (x @ direction)``."""
    image = np.zeros_like(direction)
    for i in range(x.shape[0]):
        _add(image, _dot(x[i], direction), x[i])
    return image


@fast
def ridge(x, y):
    penalty = 0.1 * x.shape[0]
    weights, residual = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for i in range(x.shape[0]):
        _add(residual, y[i], x[i])
    direction, square = residual.copy(), _dot(residual, residual)
    for _ in range(10):
        image = _normal(x, direction)
        _add(image, penalty, direction)
        length = square / _dot(direction, image)
        _add(weights, length, direction)
        _add(residual, -length, image)
        before, square = square, _dot(residual, residual)
        direction = residual + square / before * direction
    return weights


_dsyrk = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 10)(
    get_cython_function_address("scipy.linalg.cython_blas", "dsyrk")
)


@fast
def logistic_hessian(weights, x, y):
    """By BLAS's product of a matrix with its own transpose, half of a general one."""
    n, features = x.shape
    scaled, hessian = np.empty((_BLOCK, features)), np.zeros((features, features))
    letters = np.array([ord("L"), ord("N")], np.int8)
    sizes = np.array([features, 0], np.int32)
    one = np.ones(1)
    for start in range(0, n, _BLOCK):
        rows = x[start : start + _BLOCK]
        for i in range(rows.shape[0]):
            e = math.exp(-abs(_dot(rows[i], weights)))
            root = math.sqrt(e) / (1 + e)
            for j in range(features):
                scaled[i, j] = root * rows[i, j]
        sizes[1] = rows.shape[0]
        # In columns, as BLAS has them, `scaled` is its transpose, and the lower half the upper one.
        _dsyrk(
            letters.ctypes,
            letters[1:].ctypes,
            sizes.ctypes,
            sizes[1:].ctypes,
            one.ctypes,
            scaled.ctypes,
            sizes.ctypes,
            one.ctypes,
            hessian.ctypes,
            sizes.ctypes,
        )
    for j in range(features):
        for k in range(j):
            hessian[j, k] = hessian[k, j]
    return hessian / n


@fast
def k_means(centres, x):
    n, dimensions = x.shape
    sums, counts, total = np.zeros_like(centres), np.zeros(len(centres)), 0.0
    for i in range(n):
        least, closest = 1e300, 0
        for k in range(len(centres)):
            square = 0.0
            for j in range(dimensions):
                square += (x[i, j] - centres[k, j]) ** 2
            if square < least:
                least, closest = square, k
        total += least
        counts[closest] += 1
        _add(sums[closest], 1.0, x[i])
    return total, 2 * (counts.reshape(-1, 1) * centres - sums)


@fast
def mixture(parameters, x):
    logits, means, scales = parameters
    n, dimensions = x.shape
    precision = np.exp(-2 * scales)
    prior = np.exp(logits - np.max(logits))
    prior /= np.sum(prior)
    constant = np.log(prior) - np.sum(scales, axis=1)
    each, share, first, second = (
        np.empty_like(prior),
        np.zeros_like(prior),
        np.zeros_like(means),
        np.zeros_like(means),
    )
    total = 0.0
    for i in range(n):
        for k in range(prior.size):
            square = 0.0
            for j in range(dimensions):
                square += (x[i, j] - means[k, j]) ** 2 * precision[k, j]
            each[k] = constant[k] - 0.5 * square
        top, mass = np.max(each), 0.0
        for k in range(prior.size):
            each[k] = math.exp(each[k] - top)
            mass += each[k]
        total -= math.log(mass) + top
        for k in range(prior.size):
            weight = each[k] / mass
            share[k] += weight
            for j in range(dimensions):
                difference = x[i, j] - means[k, j]
                first[k, j] += weight * difference
                second[k, j] += weight * difference * difference
    d_scales = (share.reshape(-1, 1) - precision * second) / n
    return total / n, (prior - share / n, -precision * first / n, d_scales)


@fast
def kernel_sums(parameters, x, centres, y):
    weights, log_width = parameters
    n, count = x.shape[0], weights.size
    precision = math.exp(-2 * log_width[()])
    a, b, c = centres[:, 0].copy(), centres[:, 1].copy(), centres[:, 2].copy()
    kernel, gradient, d_width, total = np.empty(count), np.zeros(count), 0.0, 0.0
    for i in range(n):
        residual, slope = -y[i], 0.0
        for k in range(count):
            square = ((x[i, 0] - a[k]) ** 2 + (x[i, 1] - b[k]) ** 2 + (x[i, 2] - c[k]) ** 2) * precision
            kernel[k] = math.exp(-0.5 * square)
            residual += weights[k] * kernel[k]
            slope += weights[k] * kernel[k] * square
        total += residual * residual
        d_width += residual * slope
        for k in range(count):
            gradient[k] += residual * kernel[k]
    return total / (2 * n), (gradient / n, d_width / n)


@fast
def attention(q, k, v):
    """A block of queries at a time: its weights, and then what they pass on to the three gradients."""
    n, columns = q.shape
    scale, block = 1 / math.sqrt(columns), 128
    d_q, d_k, d_v = np.empty_like(q), np.zeros_like(k), np.zeros_like(v)
    total, turned_k, turned_v = 0.0, k.T, v.T
    for start in range(0, n, block):
        queries = q[start : start + block] * scale
        weights = np.dot(queries, turned_k)
        for i in range(weights.shape[0]):
            top, mass = weights[i, 0], 0.0
            for j in range(1, n):
                top = max(top, weights[i, j])
            for j in range(n):
                weights[i, j] = math.exp(weights[i, j] - top)
                mass += weights[i, j]
            weights[i] *= 1 / mass
        out = np.dot(weights, v)
        d_out = out / (n * columns)
        d_weights = np.dot(d_out, turned_v)
        d_v += np.dot(weights.T, d_out)
        for i in range(weights.shape[0]):
            mean = 0.0
            for j in range(columns):
                total += out[i, j] * out[i, j]
                mean += out[i, j] * d_out[i, j]
            for j in range(n):
                d_weights[i, j] = weights[i, j] * (d_weights[i, j] - mean)
        d_q[start : start + block] = np.dot(d_weights, k) * scale
        d_k += np.dot(d_weights.T, queries)
    return total / (2 * n * columns), (d_q, d_k, d_v)


@fast
def attention_heads(q, k, v):
    """One head after the other."""
    heads = q.shape[0]
    d_q, d_k, d_v = np.empty_like(q), np.empty_like(k), np.empty_like(v)
    total = 0.0
    for h in range(heads):
        part, (of_q, of_k, of_v) = attention(q[h], k[h], v[h])
        total += part / heads
        d_q[h], d_k[h], d_v[h] = of_q / heads, of_k / heads, of_v / heads
    return total, (d_q, d_k, d_v)
