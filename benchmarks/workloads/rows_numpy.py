"""The programs of `rows` as formulas over whole arrays in NumPy, with derivatives worked out by hand."""

from __future__ import annotations

import numpy as np
from scipy.special import expit


def linear(weights, x, y):
    residual = x @ weights - y
    return residual @ residual / (2 * y.size), residual @ x / y.size


def logistic(weights, x, y):
    score = x @ weights
    return np.mean(np.logaddexp(0.0, score) - y * score), (expit(score) - y) @ x / y.size


def logistic_hessian(weights, x, y):
    probability = expit(x @ weights)
    curvature = probability * (1 - probability) / y.size
    return x.T @ (curvature[:, None] * x)


def poisson(weights, x, y):
    score = x @ weights
    rate = np.exp(score)
    return np.mean(rate - y * score), (rate - y) @ x / y.size


def cox(weights, x, event):
    risk = x @ weights
    top = np.max(risk)
    hazard = np.exp(risk - top)
    at_risk = np.cumsum(hazard)
    share = np.cumsum((event / at_risk)[::-1])[::-1]
    return -np.mean(event * (risk - np.log(at_risk) - top)), (hazard * share - event) @ x / event.size


def softmax(weights, x, labels):
    scores, rows = x @ weights, np.arange(labels.size)
    scores -= scores.max(axis=1, keepdims=True)
    chosen = scores[rows, labels]
    mass = np.exp(scores)
    total = mass.sum(axis=1, keepdims=True)
    mass /= total
    mass[rows, labels] -= 1
    return np.mean(np.log(total[:, 0]) - chosen), x.T @ mass / labels.size


def ridge(x, y, steps=10):
    penalty = 0.1 * x.shape[0]
    residual = direction = y @ x
    weights, square = np.zeros_like(residual), residual @ residual
    for _ in range(steps):
        image = (x @ direction) @ x + penalty * direction
        length = square / (direction @ image)
        weights, residual = weights + length * direction, residual - length * image
        square, before = residual @ residual, square
        direction = residual + square / before * direction
    return weights


def k_means(centres, x):
    squares = np.sum(centres * centres, axis=1) - 2 * (x @ centres.T)
    closest = np.argmin(squares, axis=1)
    difference = x - centres[closest]
    counts = np.bincount(closest, minlength=len(centres))
    sums = np.eye(len(centres))[closest].T @ x
    return np.sum(difference * difference), 2 * (counts[:, None] * centres - sums)


def mixture(parameters, x):
    logits, means, scales = parameters
    precision = np.exp(-2 * scales)
    shift = logits - np.max(logits)
    prior = np.exp(shift) / np.sum(np.exp(shift))
    squared = x * x
    each = x @ (means * precision).T - 0.5 * (squared @ precision.T)
    each += np.log(prior) - np.sum(scales + 0.5 * precision * means * means, axis=1)
    top = each.max(axis=1, keepdims=True)
    each -= top
    np.exp(each, out=each)
    mass = each.sum(axis=1, keepdims=True)
    each /= mass
    share, first, second = each.sum(axis=0), each.T @ x, each.T @ squared
    n, count = len(x), share[:, None]
    spread = second - 2 * means * first + means * means * count
    return -np.mean(np.log(mass) + top), (
        prior - share / n,
        -precision * (first - count * means) / n,
        (count - precision * spread) / n,
    )


def kernel_sums(parameters, x, centres, y):
    weights, log_width = parameters
    precision = np.exp(-2 * log_width)
    squares = np.sum(x * x, axis=1)[:, None] - 2 * (x @ centres.T) + np.sum(centres * centres, axis=1)
    squares *= precision
    kernel = np.exp(-0.5 * squares)
    residual = kernel @ weights - y
    squares *= kernel
    n = len(x)
    return residual @ residual / (2 * n), (residual @ kernel / n, residual @ (squares @ weights) / n)


def attention(q, k, v):
    scale = q.shape[1] ** -0.5
    weights = (scale * q) @ k.T
    weights -= weights.max(axis=1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=1, keepdims=True)
    out = weights @ v
    d_out = out / out.size
    d_v = weights.T @ d_out
    d_scores = d_out @ v.T
    d_scores -= np.sum(d_out * out, axis=1, keepdims=True)
    d_scores *= weights
    return np.sum(out * out) / (2 * out.size), (scale * (d_scores @ k), scale * (d_scores.T @ q), d_v)


def attention_heads(q, k, v):
    parts, gradients = zip(*[attention(*of_head) for of_head in zip(q, k, v)])
    return np.mean(parts), tuple(np.stack(g) / len(q) for g in zip(*gradients))
