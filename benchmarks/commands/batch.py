"""Fifty further batch sizes of a compiled model: functrans traces each, and should compile none."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from .. import backends
from ..measure import disagreement, number, ratio, table
from ..workloads.typical import logistic, mlp, perceptron

_SIZES = [33 + 7 * k for k in range(51)]
"""The first is compiled beforehand. All are larger than the sizes that kernels are specialized for."""


def logistic_batch(n: int) -> tuple[Any, ...]:
    """Arguments of `logistic` with 20 features."""
    rng = np.random.default_rng(n)
    return rng.normal(size=20), np.array(0.1), rng.normal(size=(n, 20)), rng.integers(0, 2, n).astype(float)


def mlp_batch(n: int) -> tuple[Any, ...]:
    """Arguments of `mlp` with layers 20-30-4."""
    return perceptron(np.random.default_rng(n), (20, 30, 4), n, np.float64)


def main(options: argparse.Namespace) -> int:
    """Print counts and times; 1 where a further size compiled something, or results differ."""
    rows, faults = [], []
    models = (("logistic regression, 20 features", logistic, logistic_batch), ("MLP 20-30-4", mlp, mlp_batch))
    for name, f, arguments in models:
        for order in ("jit(value_and_grad)", "value_and_grad(jit)"):
            row, row_faults = measure(f, arguments, order)
            rows.append([f"{name}, {order}", *row])
            faults += [f"{name}, {order}: {fault}" for fault in row_faults]
    print(f"Batch sizes {_SIZES[1]}, {_SIZES[2]} ... {_SIZES[-1]} (50 of them) after {_SIZES[0]}, float64.")
    print("Median milliseconds of the first call with a size; counts by cache_info().\n")
    counts = ("further traces", "further compiles")
    columns = ("first size", "each further size", "JAX first", "JAX each further", "functrans / JAX")
    print(table(("model", *counts, *columns), rows), "", *faults, sep="\n")
    return 1 if faults else 0


def measure(
    f: Callable[..., Any], arguments: Callable[[int], tuple[Any, ...]], order: str
) -> tuple[list[str], list[str]]:
    """One row of the table, and what went wrong."""
    contestants = (backends.functrans(), backends.jax())
    jitted, calls = {}, {}
    for b in contestants:
        bound = b.bind(f)
        jitted[b.name] = b.api.jit(b.api.value_and_grad(bound) if order.startswith("jit") else bound)
        calls[b.name] = jitted[b.name] if order.startswith("jit") else b.api.value_and_grad(jitted[b.name])
    times: dict[str, list[float]] = {b.name: [] for b in contestants}
    faults, counts = [], []
    for n in _SIZES:
        results = {}
        for b in contestants:
            own = b.arrays(arguments(n))
            start = perf_counter()
            results[b.name] = b.wait(calls[b.name](*own))
            times[b.name].append(1e3 * (perf_counter() - start))
        counts.append(jitted["functrans"].cache_info())
        if not (difference := disagreement(results["functrans"], results["JAX"])) < 1e-9:
            faults.append(f"batch size {n}: functrans and JAX differ by {difference:.1e}")
    before, after = counts[0], counts[-1]
    traces, compiles = after.traces - before.traces, after.compiles - before.compiles
    if compiles:
        faults.append(f"{compiles} kernels compiled for further batch sizes")
    first = {name: t[0] for name, t in times.items()}
    later = {name: statistics.median(t[1:]) for name, t in times.items()}
    row = [str(traces), str(compiles), number(first["functrans"]), number(later["functrans"])]
    row += [number(first["JAX"]), number(later["JAX"]), ratio(later["functrans"], later["JAX"])]
    return row, faults
