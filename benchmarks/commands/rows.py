"""Tall data: functrans, JAX, NumPy and loops over rows by hand in Numba, beside reading the rows once."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import backends
from ..measure import checked, number, ratio, rounds, shapes, table
from ..workloads import rows_handwritten, rows_numpy
from ..workloads.rows import ROW_PROGRAMS, RowProgram

_CONTESTANTS = ("functrans", "JAX", "NumPy", "by hand", "reading")
_SECONDS = 8.0
"""A contestant whose samples have taken as long leaves the later rounds."""


def main(options: argparse.Namespace) -> int:
    """Print the table; 1 where a contestant failed or disagreed."""
    rows, sizes, faults = [], [], []
    for program in ROW_PROGRAMS:
        if options.only.lower() not in program.name.lower():
            continue
        for count in program.sizes:
            times, its_faults = measure(program, count, options.repeats or 11)
            faults += [f"{program.name}, {count:,} rows: {fault}" for fault in its_faults]
            rows.append([program.name, f"{count:,}", *_cells(times)])
            print(*rows[-1], sep=" | ", flush=True)
        sizes.append([program.name, program.transform or "value", shapes(program.arguments(10))])
    print(
        "\nMedian milliseconds of one call. Reading: the sum of the elements of the matrix that has the rows.\n"
    )
    ratios = ("functrans / JAX", "functrans / by hand", "functrans / reading")
    print(table(("program", "rows", *_CONTESTANTS, *ratios), rows))
    print("\nWhat is called, and its arguments with ten rows.\n")
    print(table(("program", "what", "arguments"), sizes))
    print("", *faults, sep="\n")
    return 1 if faults else 0


def measure(program: RowProgram, count: int, repeats: int) -> tuple[dict[str, float], list[str]]:
    """Median seconds of each contestant, and what went wrong: exceptions, results that differ."""
    arguments = program.arguments(count)
    by_hand, in_numpy = (getattr(module, program.by_hand) for module in (rows_handwritten, rows_numpy))
    makers: dict[str, Callable[[], Callable[[], Any]]] = {
        "functrans": lambda: _compiled(program, backends.functrans(), arguments),
        "JAX": lambda: _compiled(program, backends.jax(), arguments),
        "NumPy": lambda: lambda: in_numpy(*arguments),
    }
    calls, faults = checked(makers, by_hand(*arguments), program.tolerance)
    calls["by hand"] = lambda: by_hand(*arguments)
    if program.matrix is not None:
        matrix = arguments[program.matrix]
        calls["reading"] = lambda: rows_handwritten.read(matrix)
    times = rounds(calls, repeats, limit=_SECONDS)
    for backend in (backends.functrans(), backends.jax()):
        backend.clear()
    gc.collect()
    return {name: float(np.median(samples)) for name, samples in times.items()}, faults


def _compiled(
    program: RowProgram, backend: backends.Backend, arguments: tuple[Any, ...]
) -> Callable[[], Any]:
    """The program or its derivative, compiled as a whole, as a call without arguments."""
    f = backend.bind(program.f)
    if program.transform:
        f = getattr(backend.api, program.transform)(f, program.argnums)
    compiled, own = backend.api.jit(f), backend.arrays(arguments)
    return lambda: backend.wait(compiled(*own))


def _cells(times: dict[str, float]) -> list[str]:
    own, jax, _, hand, reading = [times.get(name) for name in _CONTESTANTS]
    milliseconds = [number(1e3 * times[name] if name in times else None) for name in _CONTESTANTS]
    multiple = None if own is None or reading is None else own / reading
    return [*milliseconds, ratio(own, jax), ratio(own, hand), number(multiple)]
