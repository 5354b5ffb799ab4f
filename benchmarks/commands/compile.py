"""Cold compile time: the first call of a new function, tracing included, caches empty."""

from __future__ import annotations

import argparse
import gc
import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from .. import backends
from ..measure import number, ratio, shapes, table
from ..workloads.typical import elementwise, mixed, unrolled
from .start_up import print_first_compiles, start_up


def main(options: argparse.Namespace) -> int:
    """Print start-up and cold compile times; 1 where functrans did not really compile."""
    print_first_compiles(start_up(("functrans", "jax"), options.repeats or 7))
    print()
    contestants = backends.functrans(), backends.jax()
    for backend in contestants:
        _warm_up(backend)
    programs: list[tuple[str, Callable[..., Any], tuple[np.ndarray, ...], dict[str, int]]] = []
    rng = np.random.default_rng(0)
    row, matrices = (rng.normal(size=1000),), (rng.normal(size=(32, 24)), rng.normal(size=(24, 24)) / 5)
    for ops in (20, 100, *((500,) if options.long else ())):
        programs.append((f"elementwise chain, {ops} ops", elementwise, row, {"ops": ops}))
        programs.append((f"mixed, {ops} ops", mixed, matrices, {"ops": ops}))
    if options.long:
        programs.append(("unrolled graph, 500 ops", unrolled, row, {}))
    rows, warm = [], []
    for name, f, data, extra in programs:
        if options.only.lower() not in name.lower():
            continue
        for derivative in ("forward", "gradient"):
            times: dict[str, list[float]] = {b.name: [] for b in contestants}
            for r in range(options.repeats or 7):
                for backend in contestants[:: 1 if r % 2 else -1]:
                    seconds, compiles = cold(backend, f, data, extra, derivative)
                    times[backend.name].append(seconds)
                    if compiles == 0:
                        warm.append(f"{name}, {derivative}: {backend.name} compiled nothing")
            own, jax = (1e3 * statistics.median(times[b.name]) for b in contestants)
            rows.append([f"{name}, {derivative}", shapes(data), number(own), number(jax), ratio(own, jax)])
        print(f"measured {name}", flush=True)
    print("\nMedian milliseconds from a new Python function to its first result.\n")
    print(table(("program", "arguments", "functrans", "JAX", "functrans / JAX"), rows))
    print(*warm, sep="\n")
    return 1 if warm else 0


def _warm_up(backend: backends.Backend) -> None:
    """Compile something else first: a matmul, a reduction and an elementwise function, with gradient."""

    def f(x: Any, *, np: Any) -> Any:
        return np.sum(np.cos(x @ x.T) * 3.0)

    cold(backend, f, (np.ones((5, 6)),), {}, "gradient")


def cold(
    backend: backends.Backend,
    f: Callable[..., Any],
    data: tuple[np.ndarray, ...],
    extra: dict[str, int],
    what: str,
) -> tuple[float, int]:
    """Seconds of the first call of a new function with empty caches, and how many kernels it compiled."""
    backend.clear()
    gc.collect()
    bound = backend.bind(f, **extra)
    compiled = backend.api.jit(bound if what == "forward" else backend.api.grad(bound))
    arguments = backend.arrays(data)
    start = perf_counter()
    backend.wait(compiled(*arguments))
    seconds = perf_counter() - start
    return seconds, compiled.cache_info().compiles if hasattr(compiled, "cache_info") else 1
