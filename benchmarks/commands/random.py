"""Drawing random numbers: functrans beside JAX, which draws the same ones, and NumPy's generator."""

from __future__ import annotations

import argparse
import gc
import statistics
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

import functrans as ft
from functrans import random

from .. import backends
from ..measure import alternate, disagreement, number, ratio, table

MANY, SOME = 10**7, 10**6
F32, F64 = np.float32, np.float64

#: The name, the draw by a module with JAX's names, the same by NumPy's generator, and the largest relative difference.
Draw = tuple[str, Callable[[Any, Any], Any], Callable[[np.random.Generator], Any], float]

DRAWS: tuple[Draw, ...] = (
    ("1e7 normal, float32", lambda r, k: r.normal(k, (MANY,), F32), lambda g: g.standard_normal(MANY, F32), 1e-5),
    ("1e7 normal, float64", lambda r, k: r.normal(k, (MANY,), F64), lambda g: g.standard_normal(MANY), 1e-13),
    ("1e7 uniform, float32", lambda r, k: r.uniform(k, (MANY,), F32), lambda g: g.random(MANY, F32), 0),
    ("1e7 uniform, float64", lambda r, k: r.uniform(k, (MANY,), F64), lambda g: g.random(MANY), 0),
    ("1e7 bits, uint32", lambda r, k: r.bits(k, (MANY,), np.uint32), lambda g: g.bytes(4 * MANY), 0),
    ("1e7 bits, uint64", lambda r, k: r.bits(k, (MANY,), np.uint64), lambda g: g.bytes(8 * MANY), 0),
    ("1e7 exponential", lambda r, k: r.exponential(k, (MANY,)), lambda g: g.standard_exponential(MANY), 1e-12),
    ("1e6 randint below 1000", lambda r, k: r.randint(k, (SOME,), 0, 1000), lambda g: g.integers(0, 1000, SOME), 0),
    ("1e6 bernoulli", lambda r, k: r.bernoulli(k, 0.3, (SOME,)), lambda g: g.random(SOME) < 0.3, 0),
    ("1e6 gumbel", lambda r, k: r.gumbel(k, (SOME,)), lambda g: g.gumbel(size=SOME), 1e-12),
    ("1e6 permutation", lambda r, k: r.permutation(k, SOME), lambda g: g.permutation(SOME), 0),
    ("1e5 gamma, shape 2.5", lambda r, k: r.gamma(k, 2.5, (10**5,)), lambda g: g.gamma(2.5, size=10**5), 1e-10),
    ("1e5 poisson, mean 4", lambda r, k: r.poisson(k, 4.0, (10**5,)), lambda g: g.poisson(4.0, 10**5), 0),
    ("1e5 binomial", lambda r, k: r.binomial(k, 100, 0.3, (10**5,)), lambda g: g.binomial(100, 0.3, 10**5), 0),
)  # fmt: skip

#: The same for draws that reject candidates, whose programs are the longest.
FIRST_DRAWS: tuple[tuple[str, Callable[[Any, Any], Any]], ...] = (
    ("normal", lambda r, k: r.normal(k, (40,))),
    ("gamma", lambda r, k: r.gamma(k, 0.3, (40,))),
    ("beta", lambda r, k: r.beta(k, 0.5, 2.0, (40,))),
    ("t", lambda r, k: r.t(k, 3.0, (40,))),
    ("wald", lambda r, k: r.wald(k, 2.0, (40,))),
    ("ball", lambda r, k: r.ball(k, 3, 2, (10,))),
    ("poisson", lambda r, k: r.poisson(k, 20.0, (40,))),
    ("binomial", lambda r, k: r.binomial(k, 2000, 0.4, (40,))),
)


def main(options: argparse.Namespace) -> int:
    """Print milliseconds of a draw; 1 where the numbers differ from JAX's."""
    jax = backends.jax()
    own_key, jax_key = random.key(1), jax.api.random.key(1)
    generator = np.random.default_rng(1)
    rows, faults = [], []
    for name, draw, by_numpy, most in DRAWS:
        own = ft.jit(lambda key, draw=draw: draw(random, key))
        other = jax.api.jit(lambda key, draw=draw: draw(jax.api.random, key))
        calls = {
            "functrans": lambda own=own: own(own_key),
            "JAX": lambda other=other: jax.wait(other(jax_key)),
            "NumPy": lambda by_numpy=by_numpy: by_numpy(generator),
        }
        difference = disagreement(calls["functrans"](), calls["JAX"]())
        if difference > most:
            faults.append(f"{name}: differs from JAX by {difference:.1e}")
        times = {key: 1e3 * t for key, t in alternate(calls, options.repeats or 7).items()}
        mine = times["functrans"]
        rows.append(
            [name, *map(number, times.values()), ratio(mine, times["JAX"]), ratio(mine, times["NumPy"])]
        )
    print("Median milliseconds of a draw, compiled.\n")
    print(table(("draw", "functrans", "JAX", "NumPy", "functrans / JAX", "functrans / NumPy"), rows), "")
    _first_draws(options.repeats or 7)
    print(*faults, sep="\n")
    return 1 if faults else 0


def _first_draws(repeats: int) -> None:
    """Print milliseconds from a new function to its first draw."""
    contestants = backends.functrans(), backends.jax()
    rows = []
    for name, draw in FIRST_DRAWS:
        times: dict[str, list[float]] = {b.name: [] for b in contestants}
        for r in range(repeats):
            for backend in contestants[:: 1 if r % 2 else -1]:
                key = backend.api.random.key(1)
                backend.clear()
                gc.collect()
                start = process_time()
                backend.wait(backend.api.jit(lambda k, b=backend, draw=draw: draw(b.api.random, k))(key))
                times[backend.name].append(1e3 * (process_time() - start))
        own, other = (statistics.median(times[b.name]) for b in contestants)
        rows.append([name, number(own), number(other), ratio(own, other)])
    print("\nMedian milliseconds of processor time from a new function to its first draw, caches empty.\n")
    print(table(("draw", "functrans", "JAX", "functrans / JAX"), rows), "")
