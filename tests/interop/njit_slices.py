"""Programs with slices of a length that depends on the run."""

import math

import numpy as np

import functrans as ft

from .njit_programs import register

SLICES = {}
rng = np.random.default_rng(0)
X = rng.normal(size=6)
SYMMETRIC = np.eye(6) * 6 + rng.uniform(0, 1, (6, 6))


def prog(*args):
    """Register a function with example arguments."""
    return register(SLICES, args)


@prog(X)
def prefix(x):
    """Reductions of both ends."""
    y = np.zeros(len(x))
    s = 0.0
    for i in range(len(x)):
        y[i] = x[:i].sum() + np.sum(x[i:] ** 2)
        s += np.dot(x[:i], x[:i]) + x[: i + 1].mean() * np.max(x[: i + 1]) + x[i:].min()
    return y, s


@prog(SYMMETRIC)
def cholesky_dot(a):
    """Cholesky by inner products of rows."""
    n = a.shape[0]
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            L[i, j] = (a[i, j] - np.dot(L[i, :j], L[j, :j])) / L[j, j]
        L[i, i] = math.sqrt(a[i, i] - np.dot(L[i, :i], L[i, :i]))
    return L


@prog(SYMMETRIC)
def lu_outer(a):
    """LU by outer products."""
    a = a.copy()
    n = len(a)
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


@prog(SYMMETRIC, X)
def back(a, b):
    """Back substitution."""
    n = len(b)
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


@prog(SYMMETRIC)
def householder(a):
    """QR: reflections of the lower right corner."""
    r = a.copy()
    n = r.shape[1]
    for k in range(n - 1):
        v = r[k:, k].copy()
        v[0] += np.sign(v[0]) * math.sqrt((v * v).sum())
        v /= np.sqrt(np.dot(v, v))
        r[k:, k:] -= 2.0 * np.outer(v, v @ r[k:, k:])
    return r


@prog(np.array([2.0, 0.9, 0.4, 0.2, 0.1, 0.05]))
def durbin(r):
    """Durbin, with slices."""
    n = len(r) - 1
    a = np.zeros(n + 1)
    a[0] = 1.0
    e = r[0]
    for i in range(1, n + 1):
        k = -np.dot(a[:i], r[1 : i + 1][::-1]) / e
        a[1:i] = a[1:i] + k * a[1:i][::-1]
        a[i] = k
        e *= 1 - k * k
    return a, e


@prog(X, 2, 5)
def windows(x, lo, hi):
    """Writes, steps, loops over slices, elements from their end."""
    y = x.copy()
    for j in range(lo, hi):
        y[lo:j] *= 2.0
        y[j:] = np.sin(y[j:])
        y[:j:2] = 0.5
        y[j::-2] += x[j::-2]
    t = 0.0
    for i in range(len(x)):
        for v in x[:i]:
            t += v * v
        for k, (u, w) in enumerate(zip(x[i:], y[:i])):
            t += k * u * w
        t += len(x[:i]) + x[:i].size
        w = x[i:]
        t += w[0] + w[-1] * y[i]
    return y, t


@ft.njit
def squares_and_sum(v):
    s = 0.0
    for q in v:
        s += q * q
    return s + v.sum()


@prog(X)
def callee(x):
    """Slices as arguments."""
    t = 0.0
    for i in range(len(x)):
        t += squares_and_sum(x[i:]) * squares_and_sum(x[:i])
    return t


@prog(rng.normal(size=(4, 6)))
def twod(m):
    """Two axes, one or both sliced."""
    s = np.zeros(6)
    o = np.zeros((4, 6))
    for i in range(4):
        s += m[:i].sum(axis=0)
        o[:i] += m[i]
        o[i, i:] = m[:, 0].sum()
        o[:i, i] = m[:i, i + 1] * 3.0
        s[:i] += np.abs(m[:i, :i]).sum(1)
        s[1] += np.linalg.norm(m[i, : i + 1]) + np.std(m[i, : i + 2]) + np.var(m[i, i:])
        s[0] += np.argmax(m[i, i:]) + np.argmin(m[i, : i + 1])
        s[2] += (m[i, :i] > 0).any() + np.all(m[i, :i] > 0)
        s[: i + 1] += np.cumsum(m[i, : i + 1])
        s[3] += np.where(m[i, :i] > 0, m[i, :i], 0.0).sum()
        s[i:] = m[i, i:].T.copy() + np.zeros_like(m[i, i:])
    return s, o


@prog(np.abs(X) + 0.1, 3)
def whileslice(x, k):
    """Bounds that a while loop changes, in a branch."""
    n = len(x)
    t = 0.0
    while k > 0:
        t += np.log(x[:k]).sum() * np.prod(x[k - 1 : n])
        if x[:k].sum() > 1.0:
            t += np.sqrt(x[:k]).sum()
        k -= 1
    return t


@prog(np.array([-1.0, -2.0, 5.0]))
def empty_log(x):
    """What is outside of a slice has no finite derivative here."""
    t = 0.0
    for i in range(3):
        t += np.log(x[:i] + 6.0).sum() + (1.0 / (x[2:i] - 5.0)).sum()
    return t


@prog(X)
def long_body(x):
    """Long enough for bytecode with extended arguments."""
    s = 0.0
    for i in range(3):
        s += x[i] * (x[0] + 1.0) * (x[1] + 2.0) * (x[2] + 3.0) * (x[3] + 4.0) * (x[4] + 5.0) * (x[5] + 6.0)
        s += x[i] / (x[0] + 7.0) / (x[1] + 8.0) / (x[2] + 9.0) / (x[3] + 7.0) / (x[4] + 6.0) / (x[5] + 5.0)
        s -= x[i] * (x[0] - 1.0) * (x[1] - 2.0) * (x[2] - 3.0) * (x[3] - 4.0) * (x[4] - 5.0) * (x[5] - 6.0)
        s -= x[i] / (x[0] - 7.0) / (x[1] - 8.0) / (x[2] - 9.0) / (x[3] - 7.0) / (x[4] - 6.0) / (x[5] - 5.0)
    return s
