"""The memory of a call of each program of `run` and `research`, beside what its arrays need."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys

from ..measure import number, ratio, table
from .one_memory import programs

#: Programs with fewer bytes of arrays are left out: Linux counts pages, and a call has some kB of its own.
LEAST = 1_000_000
#: The peak is this many times what the arrays need, at most, and that of `memory_analysis` within this part.
MOST, WITHIN = 1.3, 0.05

_HEADER = (
    "program",
    "arguments",
    "results",
    "kept for reverse mode",
    "measured",
    "`memory_analysis`",
    "measured / needed",
    "measured / analysis",
)


def main(options: argparse.Namespace) -> int:
    """Print the table, and what is beyond the bounds."""
    rows, small, beyond = [], [], []
    for name in programs():
        if options.only.lower() not in name.lower():
            continue
        samples = [_one(name) for _ in range(options.repeats or 3)]
        found = samples[0] | {"measured": statistics.median(s["measured"] for s in samples)}
        needed = found["arguments"] + found["results"] + found["residuals"]
        if found["measured"] < LEAST:
            small.append(name)
            continue
        kinds = ("arguments", "results", "residuals", "measured", "analysis")
        ratios = ratio(found["measured"], needed), ratio(found["measured"], found["analysis"])
        rows.append([name, *[number(found[kind] / 1e6) for kind in kinds], *ratios])
        print(*rows[-1], sep=" | ", flush=True)
        if found["measured"] > MOST * needed:
            beyond.append(f"{name}: {ratios[0]} of what its arrays need")
        if abs(found["measured"] / found["analysis"] - 1) > WITHIN:
            beyond.append(f"{name}: {ratios[1]} of what memory_analysis says")
    print("\nMB: arguments, results, what reverse mode keeps between them, and the peak of a call.\n")
    print(table(_HEADER, rows))
    print(f"\nWith less than {LEAST / 1e6:.0f} MB, and left out: {', '.join(small) or 'none'}.")
    print(f"\nMore than {MOST} of what is needed, or {WITHIN:.0%} beside the analysis:", *beyond, sep="\n")
    return 0


def _one(name: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.commands.one_memory", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))
