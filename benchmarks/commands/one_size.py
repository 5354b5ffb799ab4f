"""A process that compiles one program of one size, and calls it; prints seconds and bytes as JSON."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np

import functrans as ft

from ..peak import high_water
from ..workloads.sizes import FAMILIES, Family

#: Samples of a call: as many as fill these seconds, but at least three.
SAMPLE = 0.2


def measure(family: Family, size: int) -> dict[str, float]:
    """Seconds to trace, to lower, to compile and to call, and bytes that the process grew by at most."""
    prepare(family)
    f, arguments = family.make(size)
    peak = high_water()
    compiled, times = stages(f, arguments)
    compiled(*arguments)
    times["memory"] = peak()
    clock = perf_counter if family.unit == "threads" else process_time
    times["call"] = warm(lambda: compiled(*arguments), clock)
    return times


def prepare(family: Family) -> None:
    """Load what the first program needs."""
    f, arguments = family.make(family.sizes[0])
    compiled, _ = stages(f, arguments)
    compiled(*arguments)
    ft.clear_caches()


def stages(f: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], dict[str, float]]:
    """The compiled function, and the processor seconds of each stage."""
    gc.collect()
    marks = [process_time()]
    lowered = ft.jit(f).trace(*arguments).lower()
    marks.append(process_time())
    lowered.drawn()
    marks.append(process_time())
    compiled = lowered.compile()
    marks.append(process_time())
    seconds = np.diff(marks).tolist()
    return compiled, dict(zip(("trace", "lowering", "compile"), seconds, strict=True))


def warm(call: Callable[[], Any], clock: Callable[[], float]) -> float:
    """Median seconds of a call."""
    call()
    samples: list[float] = []
    while sum(samples) < SAMPLE or len(samples) < 3:
        count = 1 if not samples or samples[0] > 1e-3 else 100
        start = clock()
        for _ in range(count):
            call()
        samples.append((clock() - start) / count)
        if sum(samples) * count > SAMPLE and len(samples) >= 3:
            break
    return float(np.median(samples))


if __name__ == "__main__":
    name, chosen = sys.argv[1:]
    (found,) = [family for family in FAMILIES if family.name == name]
    ft.config.num_threads = 1
    print(json.dumps(measure(found, int(chosen))))
