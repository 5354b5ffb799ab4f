"""For each pass a program that it changes."""

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 1.5, 400)
M = RNG.uniform(0.5, 1.5, (40, 40))


def loss(f):
    return ft.grad(lambda x: fnp.sum(f(x) ** 2))


def recursion(x):
    return lax.fori_loop(1, 30, lambda i, a: a.at[i].set(fnp.tanh(a[i - 1] * x[i])), x)


def restored(x):
    def body(i, state):
        y, s = state
        return y.at[i].set(x[i] * s), s + fnp.sum(y * y * x)

    return lax.fori_loop(0, 7, body, (x, 0.0))[1]


def leaps(q):
    force = lambda q: fnp.tanh(M @ q) @ M

    def leap(state, _):
        q, p = state
        p = p - 0.05 * force(q)
        q = q + 0.1 * p
        return (q, p - 0.05 * force(q)), p[0]

    return lax.scan(leap, (q, q), None, length=7)[1]


def smoothed(u):
    return lax.fori_loop(0, 3, lambda t, u: u.at[1:-1].add(0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])), u)


def stencil(x):
    padded = fnp.pad(x, 1)
    return padded[2:] - 2.0 * padded[1:-1] + padded[:-2]


def halvings(x):
    return lax.while_loop(lambda v: v > 0.1, lambda v: v * 0.5, x)


def forces(x):
    d = x[:, None] - x[None, :]
    f = d / (1.0 + d * d)
    return fnp.sum(f, 0), fnp.sum(f, 1)


def guarded(x, least):
    step = lambda i, y: lax.cond(y[i] > least, lambda y: y.at[i].set(0.0), lambda y: y, y)
    return lax.fori_loop(0, 9, step, x)


def counted(x):
    step = lambda s: (s[0] + 1, s[1] * x[s[0]])
    return lax.while_loop(lambda s: s[0] < 9, step, (0, 1.0))[1]


def joined(x):
    rows = lax.scan(lambda c, a: (c + a, c * M), 0.0, x)[1]
    return lax.scan(lambda c, r: (c + fnp.sum(r), None), 0.0, rows)[0]


def read_and_written(x, i):
    y = fnp.sin(x)
    return y.at[i].set(1.0), fnp.sum(y * y)


def paths(x):
    cell = lambda i, j, y: y.at[i, j].set(y[i, j] + fnp.maximum(y[i - 1, j], y[i, j - 1]))
    return lax.fori_loop(1, 6, lambda i, y: lax.fori_loop(1, 14, lambda j, y: cell(i, j, y), y), x)


def product(x):
    element = lambda i, j, c: lax.fori_loop(0, 20, lambda k, c: c.at[i, j].add(x[i, k] * x[k, j]), c)
    return lax.fori_loop(0, 20, lambda i, c: lax.fori_loop(0, 20, lambda j, c: element(i, j, c), c), 0.0 * x)


def moved_sum(x):
    return lax.fori_loop(0, 40, lambda i, s: s + x[i] * fnp.sin(x[0]), 0.0)


#: For each pass a function and its arguments.
PROGRAMS = {
    "hoisting": (moved_sum, X),
    "read_back": (loss(recursion), X),
    "economy": (loss(lambda x: lax.scan(lambda c, a: (fnp.sin(c * a) * 0.9 + fnp.exp(a), None), 0.1, x)[0]), X[:40]),
    "rewinding": (ft.grad(restored), X),
    "counting": (ft.grad(counted), X),
    "totals": (loss(lambda x: lax.fori_loop(0, 30, lambda i, s: s + x[i] * s, 1.0)), X),
    "lanes": (ft.vmap(guarded, (0, None)), np.stack([X, X]), 1.0),
    "fused_scans": (joined, X),
    "algebra": (lambda x: x * 1.0 + (2.0 - 2.0), X),
    "carried_values": (leaps, X[:40]),
    "common": (lambda x: fnp.sin(x) + fnp.exp(fnp.sin(x)), X),
    "in_place_sums": (lambda x, i: x + fnp.zeros_like(x).at[i].add(x[3]), X, 2),
    "windows": (lambda x, i: x.at[100:300].set(x[100:300].at[i].set(2.0)), X, 5),
    "narrowing": (lambda x: lax.fori_loop(0, 5, lambda i, s: (fnp.sin(s[0]), s[1] + x[i]), (0.3, 0.0))[1], X),
    "sums_of_windows": (ft.grad(lambda x: x[0] * x[5] * x[7] * x[9] + x[2] * x[11]), X),
    "repeated_sums": (ft.grad(lambda x: fnp.sum(fnp.sin(fnp.tile(x, 3)) ** 2)), X),
    "mirrored_sums": (forces, X),
    "reshapes": (lambda x: fnp.sin(fnp.reshape(fnp.exp(fnp.reshape(x, (20, 20))), (400,))), X),
    "counters": (lambda x: lax.scan(lambda c, i: (c + x[i], None), 0.0, fnp.arange(100) * 2)[0], X),
    "reads_first": (read_and_written, X, 3),
    "fusion": (lambda x: (fnp.sin(x) + 1.0, fnp.cos(x)), X),
    "mirrored_pairs": (ft.grad(lambda x: fnp.sum(fnp.tanh((x[:, None] - x[None, :]) ** 2))), X),
    "sharing": (lambda x, i: (2.0 * x).at[i].set(1.0), X, 3),
    "counted_loops": (lambda x: counted(x) + 1.0, X),
    "groups": (ft.vmap(halvings), X),
    "ranges": (lambda x: lax.fori_loop(1, 400, lambda i, s: s + x[i - 1], 0.0), X),
    "interior": (stencil, X),
    "versions": (lambda x, n: lax.fori_loop(0, n, lambda i, s: s + x[2 * i], 0.0), X, 100),
    "late_reads": (smoothed, X),
    "collapsing": (lambda x: fnp.sin(x) * 2.0, X.reshape(20, 20)),
    "strips": (lambda x: x.T * 2.0, np.ones((64, 64))),
    "hand_on": (ft.grad(lambda x: paths(x)[-1, -1]), M[:6, :14]),
    "holding": (product, M[:20, :20]),
    "row_blocks": (lambda x: fnp.tanh(x @ np.full(20, 0.1)) @ x, RNG.normal(size=(20_000, 20))),
    "teams": (lambda x: fnp.sin(x) * fnp.exp(x), np.ones(1 << 20)),
    "blocks": (fnp.sum, np.ones(100_000)),
    "scratch": (lambda x: fnp.cumsum(fnp.sort(fnp.cumsum(fnp.sort(fnp.sin(x))[::-1])))[::-1] + x, X),
}  # fmt: skip
