"""Compiled value and gradient: functrans, JAX and hand-written Numba in alternation."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from .. import backends
from ..measure import alternate, checked, number, ratio, shapes, table
from ..workloads.handwritten import HANDWRITTEN
from ..workloads.typical import WORKLOADS, Workload

_HEADER = ("workload", "functrans t(jit)", "functrans jit(t)", "JAX t(jit)", "JAX jit(t)", "Numba by hand")


def main(options: argparse.Namespace) -> int:
    """Print the table; 1 where a contestant failed or disagreed."""
    rows, sizes, faults = [], [], []
    for workload in WORKLOADS:
        if options.only.lower() not in workload.name.lower():
            continue
        times, its_faults = measure(workload, options.repeats or 11)
        faults += [f"{workload.name}: {fault}" for fault in its_faults]
        own = [times.get(name) for name in _HEADER[1:3]]
        best = min((t for t in (times.get("JAX t(jit)"), times.get("JAX jit(t)")) if t), default=None)
        hand = times.get("Numba by hand")
        milliseconds = [number(1e3 * times[name] if name in times else None) for name in _HEADER[1:]]
        rows.append([workload.name, *milliseconds, *(ratio(t, best) for t in own), ratio(own[1], hand)])
        sizes.append([workload.name, workload.transform, shapes(workload.arguments())])
        print(f"measured {workload.name}", flush=True)
    print("\nMedian milliseconds of one call. t: value_and_grad, or hessian where the name says so.")
    print("The ratios are to the better JAX column, and of jit(t) to Numba.\n")
    ratios = ("t(jit) / JAX", "jit(t) / JAX", "jit(t) / Numba")
    print(table((*_HEADER, *ratios), rows), table(("workload", "t", "arguments"), sizes), sep="\n\n")
    print("", *faults, sep="\n")
    return 1 if faults else 0


def measure(workload: Workload, repeats: int) -> tuple[dict[str, float], list[str]]:
    """Median seconds of each contestant, and what went wrong: exceptions, results that differ."""
    by_hand = _handwritten(workload)
    makers = {
        f"{backend.name} {order}": partial(_transformed, workload, backend, order)
        for backend in (backends.functrans(), backends.jax())
        for order in ("t(jit)", "jit(t)")
    }
    calls, faults = checked(makers, by_hand(), workload.tolerance)
    return alternate({"Numba by hand": by_hand, **calls}, repeats), faults


def _handwritten(workload: Workload) -> Callable[[], Any]:
    call, arguments = HANDWRITTEN[workload.name], workload.arguments()
    return lambda: call(*arguments)


def _transformed(workload: Workload, backend: backends.Backend, order: str) -> Callable[[], Any]:
    """The derivative of the workload as a call without arguments, jit inside or outside."""
    f, transform, jit = backend.bind(workload.f), getattr(backend.api, workload.transform), backend.api.jit
    inner = transform(jit(f) if order == "t(jit)" else f, workload.argnums)
    compiled = inner if order == "t(jit)" else jit(inner)
    arguments = backend.arrays(workload.arguments())
    return lambda: backend.wait(compiled(*arguments))
