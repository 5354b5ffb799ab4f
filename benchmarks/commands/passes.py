"""What each optimisation is worth: programs without it, beside all optimisations.

Tracing and lowering a program without a pass says whether the pass changes its kernels. Where their texts are equal the
times are, and nothing is compiled or timed.
"""

from __future__ import annotations

import argparse
import gc
import math
from collections.abc import Callable, Iterator
from time import process_time, thread_time
from typing import Any

from functrans.lowering.backend import Options
from functrans.lowering.llvm.emit import emit_llvm
from functrans.lowering.loops.show import show
from functrans.lowering.lower import LoweredKernel, lower
from functrans.runtime.config import config
from functrans.runtime.passes import LLVM_PASSES, OF_CODE, PASSES

from .. import backends
from ..measure import disagreement, number, rounds, table, within
from ..workloads.array_loop_cases import ARRAY_LOOPS
from ..workloads.loops import LOOP_WORKLOADS
from ..workloads.typical import WORKLOADS
from .array_tables import loss_of

_HEADER = ("pass", "changes", "time without", "slowest without", "", "compile time without")
_Maker = Callable[[], Any]
#: Seconds after which a call ends; it counts as one of this length.
_LIMIT = 5.0


def main(options: argparse.Namespace) -> int:
    """Print the table; 1 where a program fails or has other results without a pass."""
    programs = [(name, f, x) for name, f, x in _programs() if options.only.lower() in name.lower()]
    times: dict[str, dict[str, float]] = {p.name: {} for p in PASSES}
    compiles: dict[str, list[float]] = {p.name: [] for p in PASSES}
    faults: list[str] = []
    for name, make, arguments in programs:
        calls, cold = _without_each(make, arguments)
        reference = calls[""]()
        slow = set()
        for off, call in calls.items():
            try:
                if disagreement(within(_LIMIT, call), reference) > 1e-6:
                    faults.append(f"{name} without {off}: other results")
            except TimeoutError:
                slow.add(off)
        calls = {off: call for off, call in calls.items() if off not in slow}
        gc.collect()
        gc.freeze()  # each sample begins with a collection, which need not visit what is there
        samples = rounds(calls, options.repeats or 9, clock=thread_time, limit=1.0)
        best = {off: min(seconds) for off, seconds in samples.items()} | dict.fromkeys(slow, _LIMIT)
        gc.unfreeze()
        for off in best.keys() - {""}:
            times[off][name] = best[off] / best[""]
            compiles[off].append(cold[off] / cold[""])
        print(f"measured {name}: {number(1e3 * best[''])} ms, {len(best) - 1} passes change it", flush=True)
    print(
        f"\nOf {len(programs)} programs: how many a pass changes, and over these the geometric means of the time of a "
        "call\n(the least of several) and of compiling without it, divided by those with all passes. A call that takes "
        f"longer than\n{_LIMIT} s counts as one of {_LIMIT} s.\n"
    )
    print(table(_HEADER, [_row(off, times[off], compiles[off]) for off in times]), *faults, sep="\n")
    return 1 if faults else 0


def _row(off: str, times: dict[str, float], compiles: list[float]) -> list[str]:
    if not times:
        return [off, "0", "-", "", "-", "-"]
    worst = max(times, key=times.__getitem__)
    return [
        off,
        str(len(times)),
        number(_mean(list(times.values()))),
        worst,
        number(times[worst]),
        number(_mean(compiles)),
    ]


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def _programs() -> Iterator[tuple[str, _Maker, tuple[Any, ...]]]:
    """Names, functions that make a new compiled function, and arguments."""
    own = backends.functrans()
    for w in WORKLOADS:
        yield w.name, lambda w=w: getattr(own.api, w.transform)(own.bind(w.f), w.argnums), w.arguments()
    for loop in LOOP_WORKLOADS:
        yield loop.name, lambda w=loop: own.bind(w.f), loop.arguments()
    for rows in ARRAY_LOOPS:
        yield rows.name, lambda w=rows: own.api.value_and_grad(loss_of(w, own), w.argnums), rows.arguments()


def _without_each(
    make: _Maker, arguments: tuple[Any, ...]
) -> tuple[dict[str, Callable[[], Any]], dict[str, float]]:
    """Calls of a program, and processor times of compiling it: with all passes, and without each that changes it."""
    own = backends.functrans()
    own.clear()
    arrays = own.arrays(arguments)
    kernels: dict[str, str] = {}
    calls: dict[str, Callable[[], Any]] = {}
    cold: dict[str, float] = {}
    for off in ("", *(p.name for p in PASSES)):
        switches = config.patch(without={off} - {""}, cache=False)
        with switches:
            kernels[off] = _kernels(own.api.jit(make()).lower(*arrays).jaxpr)
            if off in ("", LLVM_PASSES.name) or kernels[off] != kernels[""]:
                program = own.api.jit(make())
                start = process_time()
                program.lower(*arrays).compile()
                cold[off] = process_time() - start
                calls[off] = switches(lambda program=program: program(*arrays))
    return calls, cold


def _kernels(jaxpr: Any) -> str:
    """The texts of the kernels of a program, as loops and for LLVM, and its host calls."""
    options = Options(without=frozenset(config.without & OF_CODE))
    parts = []
    for step in lower(jaxpr, options).steps:
        if isinstance(step, LoweredKernel):
            parts += [show(step.kernel), str(step.ints), emit_llvm(step.kernel, options).text]
        else:
            parts.append(str(step.eqn))
    return "\n".join(parts)
