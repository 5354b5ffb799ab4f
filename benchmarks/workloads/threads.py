"""Programs that several threads share, for functrans and JAX, and with Numba's ``prange``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np


def chain(x: Any, *, np: Any) -> Any:
    """An elementwise chain."""
    return np.sin(x) * np.exp(-x * x) + np.tanh(x)


def affine(x: Any) -> Any:
    """As little work as there is per element: memory is the limit."""
    return 2.0 * x + 1.0


def sum_exp(x: Any, *, np: Any) -> Any:
    """A sum."""
    return np.sum(np.exp(x))


def energy(p: Any, *, np: Any) -> Any:
    """Softened inverse distances of all pairs of particles."""
    d = p[:, None] - p[None]
    return np.sum(1.0 / np.sqrt(np.sum(d * d, -1) + 1e-2))


def conv_gradient(x: Any, w: Any, *, np: Any, lax: Any, api: Any) -> Any:
    """The gradient of a convolution in the images and the window."""

    def loss(x: Any, w: Any) -> Any:
        return np.sum(np.tanh(lax.conv_general_dilated(x, w, (1, 1), "SAME")))

    return api.grad(loss, (0, 1))(x, w)


def newton_lanes(a: Any, *, lax: Any, api: Any) -> Any:
    """Square roots by Newton's method: each lane stops at its own end."""

    def root(a: Any) -> Any:
        return lax.while_loop(lambda c: abs(c * c - a) > 1e-12 * a, lambda c: 0.5 * (c + a / c), 0.5 + a)

    return api.vmap(root)(a)


def pendulums(a: Any, *, np: Any, lax: Any) -> Any:
    """2000 steps of a pendulum for each starting angle."""

    def swing(angle: Any) -> Any:
        def step(i: Any, state: Any) -> Any:
            q, v = state
            v = v - 0.01 * np.sin(q)
            return q + 0.01 * v, v

        return lax.fori_loop(0, 2000, step, (angle, 0.0 * angle))[0]

    return lax.map(swing, a)


def rows_of_sines(a: Any, *, np: Any, lax: Any) -> Any:
    """A sum for each row, in half a millisecond."""
    return lax.map(lambda row: np.sum(np.sin(row)), a)


def solves(a: Any, b: Any, *, np: Any, api: Any) -> Any:
    """Small linear systems."""
    return api.vmap(np.linalg.solve)(a, b)


def growth(x: Any, *, np: Any) -> Any:
    """The product of all factors."""
    return np.prod(x)


def column_sums(a: Any, *, np: Any) -> Any:
    """Sums along the leading axis."""
    return np.sum(a, axis=0)


def segment_sums(values: Any, places: Any, *, api: Any) -> Any:
    """Sums by index into a hundred places."""
    return api.ops.segment_sum(values, places, num_segments=100)


def lookups(a: Any, x: Any, *, np: Any) -> Any:
    """Where numbers belong in a sorted array."""
    return np.searchsorted(a, x)


def sorted_rows(a: Any, *, np: Any) -> Any:
    """Each row sorted."""
    return np.sort(a, axis=1)


def spectra(a: Any, *, np: Any) -> Any:
    """Eigenvalues of small symmetric matrices."""
    return np.linalg.eigvalsh(a + np.swapaxes(a, 1, 2))


def transforms(a: Any, *, np: Any) -> Any:
    """The spectrum of each row."""
    return np.abs(np.fft.rfft(a, axis=1))


def draws(*, api: Any) -> Any:
    """Normal random numbers."""
    return api.random.normal(api.random.key(0), (1_000_000,), "float64")


def closest(centres: Any, x: Any, *, np: Any, api: Any) -> Any:
    """The gradient of k-means."""

    def total(centres: Any) -> Any:
        return np.sum(np.min(np.sum((x[:, None] - centres) ** 2, axis=-1), axis=1))

    return api.grad(total)(centres)


def product(a: Any, b: Any) -> Any:
    """A matrix product."""
    return a @ b


_prange = numba.njit(parallel=True)


@_prange
def _chain(x: Any) -> Any:
    y = np.empty_like(x)
    for i in numba.prange(len(x)):
        y[i] = np.sin(x[i]) * np.exp(-x[i] * x[i]) + np.tanh(x[i])
    return y


@_prange
def _affine(x: Any) -> Any:
    y = np.empty_like(x)
    for i in numba.prange(len(x)):
        y[i] = 2.0 * x[i] + 1.0
    return y


@_prange
def _sum_exp(x: Any) -> Any:
    total = 0.0
    for i in numba.prange(len(x)):
        total += np.exp(x[i])
    return total


@_prange
def _energy(p: Any) -> Any:
    total = 0.0
    for i in numba.prange(len(p)):
        own = 0.0
        for j in range(len(p)):
            d = 1e-2
            for k in range(p.shape[1]):
                d += (p[i, k] - p[j, k]) ** 2
            own += 1.0 / np.sqrt(d)
        total += own
    return total


@_prange
def _newton_lanes(a: Any) -> Any:
    y = np.empty_like(a)
    for i in numba.prange(len(a)):
        c = 0.5 + a[i]
        while abs(c * c - a[i]) > 1e-12 * a[i]:
            c = 0.5 * (c + a[i] / c)
        y[i] = c
    return y


@_prange
def _pendulums(a: Any) -> Any:
    y = np.empty_like(a)
    for i in numba.prange(len(a)):
        q, v = a[i], 0.0
        for _ in range(2000):
            v -= 0.01 * np.sin(q)
            q += 0.01 * v
        y[i] = q
    return y


@_prange
def _rows_of_sines(a: Any) -> Any:
    y = np.empty(len(a))
    for i in numba.prange(len(a)):
        y[i] = np.sin(a[i]).sum()
    return y


@_prange
def _solves(a: Any, b: Any) -> Any:
    y = np.empty_like(b)
    for i in numba.prange(len(a)):
        y[i] = np.linalg.solve(a[i], b[i])
    return y


@_prange
def _column_sums(a: Any) -> Any:
    total = np.zeros(a.shape[1])
    for i in numba.prange(len(a)):
        total += a[i]
    return total


@_prange
def _lookups(a: Any, x: Any) -> Any:
    y = np.empty(len(x), np.int64)
    for i in numba.prange(len(x)):
        y[i] = np.searchsorted(a, x[i])
    return y


@_prange
def _sorted_rows(a: Any) -> Any:
    y = np.empty_like(a)
    for i in numba.prange(len(a)):
        y[i] = np.sort(a[i])
    return y


def workloads() -> dict[str, tuple[Callable[..., Any], Callable[..., Any] | None, tuple[Any, ...]]]:
    """By name: the program, the same by hand, and the arguments."""
    rng = np.random.default_rng(0)
    x, long = rng.normal(size=1_000_000), rng.normal(size=3_000_000)
    systems = rng.normal(size=(5000, 8, 8)) + 8 * np.eye(8)
    return {
        "elementwise chain, 1e6": (chain, _chain, (x,)),
        "2 x + 1, 1e6": (affine, _affine, (x,)),
        "sum of exp, 1e6": (sum_exp, _sum_exp, (x,)),
        "pairwise energy, 1500 x 3": (energy, _energy, (x[:4500].reshape(1500, 3),)),
        "gradient of a convolution, 8 x 3 x 96 x 96": (
            conv_gradient,
            None,
            (x[: 8 * 3 * 96 * 96].reshape(8, 3, 96, 96), x[: 16 * 3 * 25].reshape(16, 3, 5, 5)),
        ),
        "while_loop in 300,000 lanes": (newton_lanes, _newton_lanes, (np.abs(x[:300_000]) + 0.1,)),
        "lax.map of a loop, 500 rows": (pendulums, _pendulums, (x[:500],)),
        "lax.map of 1000 sums of 1000 sines": (rows_of_sines, _rows_of_sines, (x.reshape(1000, 1000),)),
        "5000 systems of 8": (solves, _solves, (systems, x[:40_000].reshape(5000, 8))),
        "sums of 300 columns of 10,000": (
            column_sums,
            _column_sums,
            (long[:3_000_000].reshape(10_000, 300),),
        ),
        "product of 1e6 numbers": (growth, None, (1 + 1e-3 * x,)),
        "3e6 numbers, summed by index in 100": (segment_sums, None, (long, rng.integers(0, 100, 3_000_000))),
        "searchsorted, 200,000 in 10,000": (lookups, _lookups, (np.sort(x[:10_000]), x[:200_000])),
        "1000 rows of 1000, sorted": (sorted_rows, _sorted_rows, (x.reshape(1000, 1000),)),
        "eigenvalues of 500 of 30 x 30": (spectra, None, (x[:450_000].reshape(500, 30, 30),)),
        "spectra of 1000 rows of 1024": (transforms, None, (long[:1_024_000].reshape(1000, 1024),)),
        "1e6 normal random numbers": (draws, None, ()),
        "gradient of k-means, 50,000 x 16, ten centres": (
            closest,
            None,
            (x[:160].reshape(10, 16), x[:800_000].reshape(50_000, 16)),
        ),
        "matrix product, 600": (
            product,
            None,
            (x[:360_000].reshape(600, 600), x[-360_000:].reshape(600, 600)),
        ),
    }
