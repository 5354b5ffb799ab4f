"""What each optimisation is worth: programs without it, beside all optimisations."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

from functrans.runtime.config import config
from functrans.runtime.passes import PASSES

from . import backends
from .array_loop_workloads import ARRAY_LOOPS
from .array_tables import loss_of
from .loop_workloads import LOOP_WORKLOADS
from .measure import alternate, disagreement, number, table
from .workloads import WORKLOADS

_HEADER = ("pass", "changes", "time without", "slowest without", "", "compile time without")


def main(options: argparse.Namespace) -> int:
    """Print the table; 1 where a program fails or has other results without a pass."""
    programs = [(name, f, x) for name, f, x in _programs() if options.only.lower() in name.lower()]
    times: dict[str, dict[str, float]] = {p.name: {} for p in PASSES}
    compiles: dict[str, list[float]] = {p.name: [] for p in PASSES}
    faults = []
    for name, f, arguments in programs:
        calls, cold, kernels = {}, {}, {}
        for off in ("", *times):
            with config.patch(cache=False):
                call, kernels[off], cold[off] = _compiled(f, arguments, {off} if off else set())
            if not off:
                reference = call()
            elif disagreement(call(), reference) > 1e-6:
                faults.append(f"{name} without {off}: other results")
            calls[off] = call
        changed = [p.name for p in PASSES if p.stage == "code" or kernels[p.name] != kernels[""]]
        measured = alternate({off: calls[off] for off in ("", *changed)}, options.repeats or 5)
        for off in changed:
            times[off][name] = measured[off] / measured[""]
        for off in times:
            compiles[off].append(cold[off] / cold[""])
        print(f"measured {name}: {number(1e3 * measured[''])} ms", flush=True)
    rows = [_row(off, times[off], compiles[off]) for off in times]
    print(
        f"\nOver {len(programs)} programs: how many a pass changes, and the geometric mean of their times without it"
    )
    print("(of all compile times), divided by those with all passes.\n")
    print(table(_HEADER, rows), *faults, sep="\n")
    return 1 if faults else 0


def _row(off: str, times: dict[str, float], compiles: list[float]) -> list[str]:
    worst = max(times, key=times.__getitem__, default="")
    return [
        off,
        str(len(times)),
        number(_mean(list(times.values()))) if times else "-",
        worst,
        number(times[worst]) if times else "-",
        number(_mean(compiles)),
    ]


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def _programs() -> Iterator[tuple[str, Callable[[], Any], tuple[Any, ...]]]:
    """Names, functions that make a new compiled function, and arguments."""
    own = backends.functrans()
    for w in WORKLOADS:
        yield w.name, lambda w=w: getattr(own.api, w.transform)(own.bind(w.f), w.argnums), w.arguments()
    for w in LOOP_WORKLOADS:
        yield w.name, lambda w=w: own.bind(w.f), w.arguments()
    for w in ARRAY_LOOPS:
        yield w.name, lambda w=w: own.api.value_and_grad(loss_of(w, own), w.argnums), w.arguments()


def _compiled(
    make: Callable[[], Any], arguments: tuple[Any, ...], without: set[str]
) -> tuple[Callable[[], Any], str, float]:
    """A call of a new program, the text of its kernels, and the processor time of compiling it."""
    own = backends.functrans()
    own.clear()
    arrays = own.arrays(arguments)
    program = own.api.jit(make())
    with config.patch(without=without):
        start = process_time()
        compiled = program.lower(*arrays).compile()
        spent = process_time() - start
        text = compiled.as_text()
    return config.patch(without=without, cache=False)(lambda: program(*arrays)), text, spent
