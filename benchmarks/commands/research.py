"""Programs that a researcher writes: functrans beside JAX, warm and cold."""

from __future__ import annotations

import argparse
import gc
import statistics
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from .. import backends
from ..measure import disagreement, number, ratio, rounds, table
from ..programs import PROGRAMS
from ..programs.program import Program

_HEADER = (
    "program",
    "functrans",
    "JAX",
    "functrans / JAX",
    "cold functrans",
    "cold JAX",
    "cold functrans / JAX",
)


def main(options: argparse.Namespace) -> int:
    """Print the table; 1 where a contestant failed or disagreed."""
    contestants = backends.functrans(), backends.jax()
    for backend in contestants:
        cold(
            Program("warm up", lambda x, *, np: np.sum(np.cos(x @ x.T)), lambda rng: (np.ones((5, 6)),)),
            backend,
        )
    rows, faults = [], []
    for program in PROGRAMS:
        if options.only.lower() not in program.name.lower():
            continue
        try:
            warm, first, difference = measure(program, contestants, options.repeats or 7)
        except Exception as error:  # one program's failure must not hide the others' times
            faults.append(f"{program.name} failed: {type(error).__name__}: {error}")
            continue
        if difference > program.tolerance:
            faults.append(f"{program.name}: the results differ by {difference:.1e} (relative)")
        cells = [number(1e3 * t) for t in (*warm, *first)]
        rows.append([program.name, *cells[:2], ratio(*warm), *cells[2:], ratio(*first)])
        print(*rows[-1], sep=" | ", flush=True)
    slow = [
        f"{row[0]}: {row[3]} warm, {row[6]} cold" for row in rows if float(row[3]) > 1 or float(row[6]) > 1
    ]
    print(
        "\nMedian milliseconds of one call, and of processor time from a new Python function to its first result.\n"
    )
    print(table(_HEADER, rows))
    print(
        f"\n{len(rows) - len(slow)} of {len(rows)} programs are at or below JAX, warm and cold. The others:",
        *slow,
        sep="\n",
    )
    print("", *faults, sep="\n")
    return 1 if faults else 0


def measure(
    program: Program, contestants: tuple[backends.Backend, ...], repeats: int
) -> tuple[list[float], list[float], float]:
    """Seconds of a call and of a first call for each contestant, and how far the results differ."""
    first: dict[str, list[float]] = {b.name: [] for b in contestants}
    calls = {}
    for r in range(3):
        for backend in contestants[:: 1 if r % 2 else -1]:
            calls[backend.name], seconds = cold(program, backend)
            first[backend.name].append(seconds)
    results = [calls[b.name]() for b in contestants]
    times = rounds(calls, repeats)
    return (
        [float(np.median(times[b.name])) for b in contestants],
        [statistics.median(first[b.name]) for b in contestants],
        disagreement(*results),
    )


def cold(program: Program, backend: backends.Backend) -> tuple[Callable[[], Any], float]:
    """A newly compiled function as a call without arguments, and the processor seconds of its first call."""
    backend.clear()
    gc.collect()
    compiled = backend.api.jit(backend.bind(program.f))
    arguments = backend.arrays(program.arguments())

    def call() -> Any:
        return backend.wait(compiled(*arguments))

    start = process_time()
    call()
    return call, process_time() - start
