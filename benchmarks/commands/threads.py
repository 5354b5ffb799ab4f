"""Programs on one thread and on all cores, beside JAX and Numba's ``prange``; and from which length threads pay."""

from __future__ import annotations

import argparse
import itertools
import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import functrans as ft

from .. import backends
from ..measure import disagreement, number, ratio, table
from ..workloads.threads import chain, workloads

#: Results may differ by so much, relative to the largest element.
_CLOSE = 1e-9
#: Calls in a row.
_TURN = 5
#: Seconds for the samples of one row.
_SECONDS = 2.0


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
