"""A second process with the same programs, beside JAX with its persistent cache.

The parent starts processes, each of which runs all programs once with the cache of one contestant; run as a module with
a contestant's name, this file is such a process.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from .. import backends
from ..measure import number, ratio, table
from ..workloads.typical import WORKLOADS, elementwise, mixed

_OF_JAX = {
    "JAX_ENABLE_COMPILATION_CACHE": "1",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
_WORKLOADS = ("logistic regression, small", "Black-Scholes", "MLP 784-512-256-10")
_FIRST = "import and first call"


def main(options: argparse.Namespace) -> int:
    """Print both tables; 1 where a second process compiled."""
    times: dict[tuple[str, str], list[dict[str, float]]] = {}
    faults = []
    with tempfile.TemporaryDirectory() as directory:
        for r in range(options.repeats or 5):
            for name in ("functrans", "JAX")[:: 1 if r % 2 else -1]:
                own = os.path.join(directory, f"{name}{r}")
                for which in ("cold", "warm"):
                    seconds, compiles = _process(name, own)
                    times.setdefault((name, which), []).append(seconds)
                    if which == "warm" and compiles:
                        faults.append(f"the second process of {name} compiled {compiles} kernels")
    rows = []
    for program in times["functrans", "cold"][0]:
        cells = [
            1e3 * statistics.median(t[program] for t in times[name, which])
            for name in ("functrans", "JAX")
            for which in ("cold", "warm")
        ]
        rows.append(
            [program, *map(number, cells), ratio(cells[1], cells[3]), ratio(cells[1], cells[0])],
        )
    header = (
        "program",
        "functrans, cold",
        "cached",
        "JAX, cold",
        "cached",
        "functrans / JAX, cached",
        "cached / cold",
    )
    print(
        "Median milliseconds from a new Python function to its first result, in a first and a second process.\n"
    )
    print(table(header, rows))
    print(*faults, sep="\n")
    return 1 if faults else 0


def _process(name: str, directory: str) -> tuple[dict[str, float], int]:
    """The seconds that a new process needs for each program, and how many kernels it compiled."""
    own = {"FUNCTRANS_CACHE": "1", "FUNCTRANS_CACHE_DIR": directory}
    theirs = {**_OF_JAX, "JAX_COMPILATION_CACHE_DIR": directory}
    done = subprocess.run(
        [sys.executable, "-m", __name__, name],
        env={**os.environ, **(own if name == "functrans" else theirs)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout.splitlines()[-1])
    return report["seconds"], report["compiles"]


def _programs() -> Iterator[tuple[str, Callable[..., Any], Any, dict[str, int], Any]]:
    """Names, functions, arguments, options, and what to differentiate in: None for the function itself."""
    rng = np.random.default_rng(0)
    row, matrices = (rng.normal(size=1000),), (rng.normal(size=(32, 24)), rng.normal(size=(24, 24)) / 5)
    for ops in (20, 100):
        for name, f, data in (("elementwise chain", elementwise, row), ("mixed", mixed, matrices)):
            for what, argnums in (("forward", None), ("gradient", 0)):
                yield f"{name}, {ops} ops, {what}", f, data, {"ops": ops}, argnums
    for workload in WORKLOADS:
        if workload.name in _WORKLOADS:
            yield f"{workload.name}, gradient", workload.f, workload.arguments(), {}, workload.argnums


def _run(name: str) -> None:
    """Run every program once, and print the seconds."""
    programs = list(_programs())
    seconds, compiles = {_FIRST: _first(name.lower())}, 0
    backend = backends.functrans() if name == "functrans" else backends.jax()
    for title, f, data, options, argnums in programs:
        bound = backend.bind(f, **options)
        compiled = backend.api.jit(bound if argnums is None else backend.api.grad(bound, argnums))
        arguments = backend.arrays(data)
        start = perf_counter()
        backend.wait(compiled(*arguments))
        seconds[title] = perf_counter() - start
        if hasattr(compiled, "cache_info"):
            compiles += compiled.cache_info().compiles
    print(json.dumps({"seconds": seconds, "compiles": compiles}))


def _first(package: str) -> float:
    """Seconds of the import and of one small program (NumPy is imported already)."""
    x, w = np.ones((5, 6)), np.ones((6, 6))
    start = perf_counter()
    api, numpy = importlib.import_module(package), importlib.import_module(f"{package}.numpy")
    np.asarray(api.jit(api.grad(lambda x: mixed(x, w, np=numpy, ops=3)))(x))
    return perf_counter() - start


if __name__ == "__main__":
    _run(sys.argv[1])
