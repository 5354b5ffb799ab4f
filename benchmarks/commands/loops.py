"""Loops inside compiled functions: functrans, JAX and hand-written Numba in alternation; compile times."""

from __future__ import annotations

import argparse
import gc
import statistics
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from .. import backends
from ..measure import alternate, checked, number, ratio, shapes, table
from ..workloads.loops import LOOP_WORKLOADS, LoopWorkload
from ..workloads.loops_handwritten import LOOPS_BY_HAND
from . import array_tables

_HEADER = ("workload", "functrans", "JAX", "Numba by hand")


def main(options: argparse.Namespace) -> int:
    """Print the tables; 1 where a contestant failed or disagreed."""
    rows, compiles, faults = [], [], []
    for workload in LOOP_WORKLOADS:
        if options.only.lower() not in workload.name.lower():
            continue
        times, first, its_faults = measure(workload, options.repeats or 11)
        faults += [f"{workload.name}: {fault}" for fault in its_faults]
        own, jax, hand = [times.get(name) for name in _HEADER[1:]]
        cells = [number(None if t is None else 1e3 * t) for t in (own, jax, hand)]
        rows.append([workload.name, *cells, ratio(own, jax), ratio(own, hand)])
        cold = [first.get(name) for name in _HEADER[1:3]]
        cells = [number(None if t is None else 1e3 * t) for t in cold]
        compiles.append([workload.name, shapes(workload.arguments()), *cells, ratio(*cold)])
        print(f"measured {workload.name}", flush=True)
    if rows:
        print("\nMedian milliseconds of one call.\n")
        print(table((*_HEADER, "functrans / JAX", "functrans / Numba"), rows))
        print("\nMedian milliseconds from a new Python function to its first result.\n")
        print(table(("workload", "arguments", "functrans", "JAX", "functrans / JAX"), compiles))
    faults += array_tables.report(options.only, options.repeats or 5)
    print("", *faults, sep="\n")
    return 1 if faults else 0


def measure(workload: LoopWorkload, repeats: int) -> tuple[dict[str, float], dict[str, float], list[str]]:
    """Median seconds of a call and of a first call of each contestant, and what went wrong."""
    by_hand, arguments = LOOPS_BY_HAND[workload.name], workload.arguments()
    first: dict[str, float] = {}

    def make(backend: backends.Backend) -> Callable[[], Any]:
        first[backend.name] = statistics.median(cold(workload, backend)[1] for _ in range(3))
        return cold(workload, backend)[0]

    makers = {backend.name: partial(make, backend) for backend in (backends.functrans(), backends.jax())}
    calls, faults = checked(makers, by_hand(*arguments), workload.tolerance)
    calls["Numba by hand"] = lambda: by_hand(*arguments)
    return alternate(calls, repeats), first, faults


def cold(workload: LoopWorkload, backend: backends.Backend) -> tuple[Callable[[], Any], float]:
    """A newly compiled function as a call without arguments, and the seconds of its first call."""
    backend.clear()
    gc.collect()
    compiled = backend.api.jit(backend.bind(workload.f))
    arguments = backend.arrays(workload.arguments())

    def call() -> Any:
        return backend.wait(compiled(*arguments))

    start = perf_counter()
    call()
    return call, perf_counter() - start
