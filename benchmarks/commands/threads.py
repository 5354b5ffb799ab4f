"""Programs on one thread and on all cores, beside JAX and Numba's ``prange``; and from which length threads pay."""

from __future__ import annotations

import argparse
import itertools
import math
import os
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import functrans as ft

from .. import backends
from ..measure import disagreement, number, ratio, table

#: Results may differ by so much, relative to the largest element.
_CLOSE = 1e-9
#: Calls in a row.
_TURN = 5
#: Seconds for the samples of one row.
_SECONDS = 2.0


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


def workloads() -> dict[str, tuple[Callable[..., Any], Callable[..., Any] | None, tuple[Any, ...]]]:
    """By name: the program, the same by hand, and the arguments."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=1_000_000)
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
        "matrix product, 600": (
            product,
            None,
            (x[:360_000].reshape(600, 600), x[-360_000:].reshape(600, 600)),
        ),
    }


def main(options: argparse.Namespace) -> int:
    """Print the tables; 1 if results differ."""
    cores, repeats = ft.config.num_threads, options.repeats
    rows, faults = [], []
    for name, (f, by_hand, arguments) in workloads().items():
        if options.only not in name:
            continue
        calls, results = {}, {}
        for b in (backends.functrans(), backends.jax()):
            arrays = tuple(b.arrays(arguments))
            for threads in (1, cores) if b.name == "functrans" else (0,):
                call = _on(threads, b, b.bind(f), arrays)
                label = f"{b.name} {threads}" if threads else b.name
                calls[label], results[label] = call, call()
        if by_hand is not None:
            calls["Numba"] = lambda by_hand=by_hand, arguments=arguments: by_hand(*arguments)
            results["Numba"] = calls["Numba"]()
        first = results["functrans 1"]
        faults += [f"{name}: {k} differs" for k, r in results.items() if not disagreement(r, first) < _CLOSE]
        best = {k: t * 1e3 for k, t in _least(calls, repeats).items()}
        one, all_cores = best["functrans 1"], best[f"functrans {cores}"]
        others = [best.get(k) for k in ("Numba", "JAX")]
        rows.append(
            [name, number(one), number(all_cores), ratio(one, all_cores)]
            + [number(x) for x in others]
            + [ratio(all_cores, x) for x in others]
        )
        print(f"measured {name}", flush=True)
    print(f"\nLeast milliseconds of one call, on {cores} threads of {os.cpu_count()} cores.\n")
    header = (
        "program",
        "one thread",
        f"{cores} threads",
        "speed-up",
        "Numba prange",
        "JAX",
        "/ Numba",
        "/ JAX",
    )
    print(table(header, rows), "", sep="\n")
    if not options.only:
        print("The chain by length, microseconds: short ones stay in one thread.\n")
        print(table(("elements", "one thread", f"{cores} threads", "speed-up"), _by_length(cores, repeats)))
    print("", *faults, sep="\n")
    return 1 if faults else 0


def _on(threads: int, b: backends.Backend, f: Callable[..., Any], arrays: Any) -> Callable[[], Any]:
    """A call of the compiled program; `threads` is zero for a library that decides itself."""
    compiled = b.api.jit(f)
    if not threads:
        return lambda: b.wait(compiled(*arrays))

    def call() -> Any:
        with ft.config.patch(num_threads=threads):  # it counts when a program is called
            return compiled(*arrays)

    return call


def _least(calls: dict[str, Callable[[], Any]], repeats: int | None) -> dict[str, float]:
    """The least seconds of one call of each contestant: its time in a moment when all cores are free.

    Contestants take turns of a few calls, so that the threads of one do not spin while another one runs: `repeats`
    calls of each, or as many as `_SECONDS` allow.
    """
    least = dict.fromkeys(calls, math.inf)
    turns, end = (-(-repeats // _TURN), 0.0) if repeats else (2, time.perf_counter() + _SECONDS)
    for turn in itertools.count():
        if turn >= turns and time.perf_counter() > end:
            break
        for name, call in calls.items():
            time.sleep(0.001)
            for _ in range(_TURN):
                start = time.perf_counter()
                call()
                least[name] = min(least[name], time.perf_counter() - start)
    return least


def _by_length(cores: int, repeats: int | None) -> list[list[str]]:
    """The chain for one and for all threads."""
    b, rows = backends.functrans(), []
    for n in (1000, 10_000, 20_000, 30_000, 50_000, 100_000, 300_000, 1_000_000, 3_000_000):
        x = (b.asarray(np.random.default_rng(0).normal(size=n)),)
        calls = {str(t): _on(t, b, b.bind(chain), x) for t in (1, cores)}
        one, all_cores = (t * 1e6 for t in _least(calls, repeats).values())
        rows.append([f"{n:,}", number(one), number(all_cores), ratio(one, all_cores)])
    return rows
