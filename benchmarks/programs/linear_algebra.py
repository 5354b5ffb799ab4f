"""Determinants, matrix functions, factorizations and their derivatives."""

from __future__ import annotations

import numpy

from .program import Program, value_and_grad


def determinants(a, *, np):
    return np.linalg.det(a)


def sum_of_determinants(a, *, np):
    return np.sum(np.linalg.det(a))


def log_determinants(a, *, np):
    return np.sum(np.linalg.slogdet(np.matmul(a, np.swapaxes(a, -1, -2)) + np.eye(a.shape[-1]))[1])


def inverses(a, *, np):
    return np.sum(np.linalg.inv(a) ** 2)


def _matrices(count, n):
    return lambda rng: (rng.normal(size=(count, n, n)) + 2 * numpy.eye(n),)


def exponential(a, *, linalg):
    return linalg.expm(a)


def propagated(a, *, np, linalg):
    return np.sum(linalg.expm(a) @ np.ones(a.shape[0]))


def _generator(n, norm):
    def data(rng):
        a = rng.normal(size=(n, n))
        return (a * (norm / numpy.abs(a).sum(axis=0).max()),)

    return data


def orthogonality(a, *, np):
    q, r = np.linalg.qr(a)
    return np.sum(q[0] * r[:, 0]) + np.sum(np.abs(np.diagonal(r)))


def nuclear_norm(a, *, np):
    return np.sum(np.linalg.svd(a, compute_uv=False))


def ridge(x, y, strength, *, np):
    """Leave-one-out error of ridge regression by the diagonal of the hat matrix."""
    gram = x.T @ x + np.exp(strength) * np.eye(x.shape[1])
    solved = np.linalg.solve(gram, x.T)
    residual = y - x @ (solved @ y)
    leverage = np.sum(x.T * solved, axis=0)
    return np.mean((residual / (1 - leverage)) ** 2)


def _regression(n, features):
    def data(rng):
        x = rng.normal(size=(n, features))
        return x, x @ rng.normal(size=features) + rng.normal(size=n), numpy.array(0.5)

    return data


def power_iteration(a, *, np, lax):
    """Largest eigenvalue of a symmetric matrix."""

    def step(_, v):
        w = a @ v
        return w / np.sqrt(np.sum(w * w))

    v = lax.fori_loop(0, 50, step, np.ones(a.shape[0]))
    return v @ a @ v


def _symmetric(n):
    def data(rng):
        a = rng.normal(size=(n, n))
        return (a @ a.T / n,)

    return data


def conjugate_gradients(a, b, *, np, lax):
    """Solve a @ x = b in at most 60 steps, as a while loop."""

    def unfinished(state):
        _, r, _, count = state
        return (np.sum(r * r) > 1e-16) & (count < 60)

    def step(state):
        x, r, p, count = state
        ap = a @ p
        alpha = np.sum(r * r) / np.sum(p * ap)
        rest = r - alpha * ap
        return x + alpha * p, rest, rest + np.sum(rest * rest) / np.sum(r * r) * p, count + 1

    return lax.while_loop(unfinished, step, (np.zeros_like(b), b, b, 0))[0]


def _system(n):
    def data(rng):
        a = rng.normal(size=(n, n))
        return a @ a.T / n + numpy.eye(n), rng.normal(size=n)

    return data


LINEAR_ALGEBRA = [
    Program("det, 5000 of 3x3", determinants, _matrices(5000, 3)),
    Program("det, 5000 of 3x3, gradient", value_and_grad(sum_of_determinants), _matrices(5000, 3)),
    Program("det, 5000 of 4x4, gradient", value_and_grad(sum_of_determinants), _matrices(5000, 4)),
    Program("slogdet, 5000 of 2x2, gradient", value_and_grad(log_determinants), _matrices(5000, 2)),
    Program("inv, 5000 of 3x3, gradient", value_and_grad(inverses), _matrices(5000, 3)),
    Program("expm 400x400, norm 1", exponential, _generator(400, 1.0)),
    Program("expm 400x400, norm 20", exponential, _generator(400, 20.0)),
    Program("expm 100x100, gradient", value_and_grad(propagated), _generator(100, 2.0)),
    Program(
        "qr 150x150, gradient", value_and_grad(orthogonality), lambda rng: (rng.normal(size=(150, 150)),)
    ),
    Program(
        "nuclear norm 100x60, gradient",
        value_and_grad(nuclear_norm),
        lambda rng: (rng.normal(size=(100, 60)),),
    ),
    Program("ridge, leave one out, 2000x50, gradient", value_and_grad(ridge, 2), _regression(2000, 50)),
    Program("power iteration 200x200, gradient", value_and_grad(power_iteration), _symmetric(200)),
    Program("conjugate gradients 300x300", conjugate_gradients, _system(300)),
]
