"""functrans and Numba in one program, beside the same program by hand in Numba alone: ratios of their times."""

from __future__ import annotations

import argparse
import statistics
from time import thread_time

from ..measure import disagreement, number, ratio, rounds, table
from .numba_calls import CALLS
from .numba_gradients import GRADIENTS

_HEADER = ("program", "functrans, µs", "Numba by hand, µs", "ratio")


def main(options: argparse.Namespace) -> int:
    """Print the table; 1 where results differ."""
    rows, faults = [], []
    for name, make in {**CALLS, **GRADIENTS}.items():
        own, by_hand, count = make()
        difference = disagreement(own(), by_hand())
        if difference > 1e-9:
            faults.append(f"{name}: differs from the program by hand by {difference:.1e} (relative)")
        # Processor time: other processes would disturb differences of a few nanoseconds.
        sampled = rounds({"own": own, "by hand": by_hand}, options.repeats or 41, clock=thread_time)
        times = {who: statistics.median(seconds) for who, seconds in sampled.items()}
        cells = [number(1e6 * times[who] / count) for who in ("own", "by hand")]
        rows.append([name, *cells, ratio(times["own"], times["by hand"])])
        print(f"measured {name}", flush=True)
    print("\nMedian microseconds of one call.\n")
    print(table(_HEADER, rows))
    print("", *faults, sep="\n")
    return 1 if faults else 0
