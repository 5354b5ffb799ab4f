"""Timing in alternation, comparison of results, and tables."""

from __future__ import annotations

import gc
import math
import signal
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def alternate(
    calls: Mapping[str, Callable[[], object]],
    repeats: int = 15,
    sample: float = 0.005,
    clock: Callable[[], float] = perf_counter,
) -> dict[str, float]:
    """Median seconds of one call of each contestant."""
    return {name: float(np.median(t)) for name, t in rounds(calls, repeats, sample, clock).items()}


def rounds(
    calls: Mapping[str, Callable[[], object]],
    repeats: int = 15,
    sample: float = 0.005,
    clock: Callable[[], float] = perf_counter,
    limit: float = math.inf,
) -> dict[str, list[float]]:
    """Seconds of one call of each contestant, in each round.

    Contestants take turns, so that a slow moment of the machine affects all alike; the order changes from round to
    round. A sample is one call, or as many as fill `sample` seconds of `clock`. Use ``time.thread_time`` to measure
    differences smaller than the disturbance by other processes. A contestant whose samples have taken `limit` seconds
    leaves the later rounds.
    """
    counts = {name: _count(call, sample, clock) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for r in range(repeats):
        turn = r % len(names)
        for name in names[turn:] + names[:turn]:
            if counts[name] * sum(times[name]) < limit:
                times[name].append(_sample(calls[name], counts[name], clock))
    return times


def within(seconds: float, call: Callable[[], T]) -> T:
    """The result of a call, or `TimeoutError` after these seconds of processor time; kernels stop, too."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return call()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _count(call: Callable[[], object], sample: float, clock: Callable[[], float]) -> int:
    """How many calls fill a sample. The first ones take longer, so more and more are made until they do."""
    call()
    count = 1
    while (spent := _spent(call, count, clock)) < sample / 2:
        count *= 2
    return max(1, math.ceil(count * sample / spent))


def _spent(call: Callable[[], object], count: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(count):
        call()
    return clock() - start


def _sample(call: Callable[[], object], count: int, clock: Callable[[], float]) -> float:
    """Mean seconds of `count` calls, with the garbage collector off."""
    gc.collect()
    gc.disable()
    try:
        return _spent(call, count, clock) / count
    finally:
        gc.enable()


def leaves(tree: Any) -> list[np.ndarray]:
    """The arrays of nested tuples, lists and dictionaries, in order, as NumPy arrays."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in leaves(part)]
    return [np.asarray(tree)]


def disagreement(result: Any, reference: Any) -> float:
    """Largest difference of two results, each array relative to the largest element of the reference."""
    a, b = leaves(result), leaves(reference)
    if [x.shape for x in a] != [x.shape for x in b]:
        return math.inf
    worst = 0.0
    for x, y in zip(a, b, strict=True):
        size = np.abs(y).max(initial=0.0) or 1.0
        difference = np.abs(x.astype(float) - y.astype(float)).max(initial=0.0) / size
        worst = max(worst, float(difference) if np.isfinite(difference) else math.inf)
    return worst


def checked(
    makers: Mapping[str, Callable[[], Callable[[], Any]]], reference: Any, tolerance: float
) -> tuple[dict[str, Callable[[], Any]], list[str]]:
    """The calls of contestants, and what went wrong: exceptions, in whose place there is no call, and differences."""
    calls: dict[str, Callable[[], Any]] = {}
    faults: list[str] = []
    for name, make in makers.items():
        try:
            call = make()
            difference = disagreement(call(), reference)
        except Exception as error:  # one contestant's failure must not hide the others' times
            faults.append(f"{name} failed: {type(error).__name__}: {error}")
            continue
        if difference > tolerance:
            faults.append(f"{name} differs from the hand-written result by {difference:.1e} (relative)")
        calls[name] = call
    return calls, faults


def shapes(arguments: Any) -> str:
    """Dtypes and shapes of the arguments of a workload, such as ``float64 (3, 4), int64 (7,)``."""
    return ", ".join(f"{a.dtype} {a.shape}" for a in leaves(arguments))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns: text left, numbers right."""
    widths = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]
    left = [any(row[k][:1].isalpha() for row in rows) for k in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [c.ljust(w) if lt else c.rjust(w) for c, w, lt in zip(cells, widths, left, strict=True)]
        return f"| {' | '.join(padded)} |"

    rule = "|".join("-" * (w + 2) if lt else "-" * (w + 1) + ":" for w, lt in zip(widths, left, strict=True))
    return "\n".join([line(header), f"|{rule}|", *(line(row) for row in rows)])


def number(value: float | None) -> str:
    """Three significant digits; a dash for None."""
    if value is None:
        return "-"
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 2
    return f"{value:.{digits}f}"


def ratio(a: float | None, b: float | None) -> str:
    """The ratio of `a` to `b`."""
    return "-" if a is None or b is None else f"{a / b:.2f}"
