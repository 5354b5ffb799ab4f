"""What tracing, lowering, compiling and calling a program cost by its size, and memory: the powers of the growth.

Each program is measured in a process of its own, so that memory is its own. `docs/scripts/generate_growth.py`
draws the tables.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from time import perf_counter

from ..measure import number, table
from ..workloads.sizes import FAMILIES, Family

#: Costs grow as this power of the size at most, between the two largest sizes.
BOUND = 1.1
#: The stages, with their unit and its size.
STAGES = {
    "trace": ("ms", 1e-3),
    "lowering": ("ms", 1e-3),
    "compile": ("ms", 1e-3),
    "call": ("ms", 1e-3),
    "memory": ("MB", 1e6),
}
#: A program is measured again as long as all of its runs have taken less than these seconds.
PATIENCE = 8.0

_COLLECTOR = "Python's garbage collector takes half of the time, while function calls grow with the power 1.0"
_CACHES = "the memory is larger than the processor's caches"
_LEVELS = "each level looks at all inside"
_NESTS = (
    "nested cond, gradient",
    "nested scan, gradient",
    "branch in a loop, Hessian",
    "branch in a loop that writes, Hessian",
    "branch in a while loop, Hessian",
)
_FLAT = (
    "elementwise operations, gradient",
    "mixed operations, gradient",
    "branches, gradient",
    "elements written, gradient",
    "body of a scan, gradient",
    "leaves, gradient",
)

#: Costs that grow faster, with the reason.
KNOWN: dict[tuple[str, str], str] = {
    **{(name, stage): _COLLECTOR for name in _FLAT for stage in ("trace", "lowering")},
    **{(name, stage): _LEVELS for name in _NESTS for stage in ("trace", "lowering", "compile")},
    **{
        (name, stage): "loops of two and four steps in each level"
        for name in _NESTS[2:]
        for stage in ("call", "memory")
    },
    ("branches, gradient", "compile"): "LLVM's passes go over the whole function for each of its branches",
    ("mixed operations, gradient", "compile"): _COLLECTOR,
    ("body of a scan, gradient", "compile"): "LLVM's code generator, for one large loop",
    ("body of a scan, gradient", "memory"): "LLVM's, for one large loop",
    ("elementwise operations, gradient", "call"): _CACHES,
    ("mixed operations, gradient", "call"): _CACHES,
    ("an array, value and gradient", "call"): _CACHES,
    ("leaves, gradient", "call"): _CACHES,
}


def main(options: argparse.Namespace) -> int:
    """Print a table for each family; 1 where a cost grows faster than it may."""
    grown, unknown = [], 0
    for family in FAMILIES:
        if options.only.lower() not in family.name.lower():
            continue
        found = [measured(family, size, options.repeats or 3) for size in family.sizes]
        rows = []
        for stage, (unit, scale) in STAGES.items():
            values = [sample[stage] for sample in found]
            exponent = power(values, family.sizes)
            rows.append([f"{stage}, {unit}", *[number(v / scale) for v in values], f"{exponent:.2f}"])
            if exponent > BOUND:
                reason = KNOWN.get((family.name, stage))
                unknown += reason is None
                line = f"{family.name}: {stage} grows with the power {exponent:.2f}"
                grown.append(line + (f" ({reason})" if reason else ""))
        sizes = [f"{n:,}" for n in family.sizes]
        print(f"\n{table((f'{family.name}; {family.unit}', *sizes, 'power'), rows)}", flush=True)
    print(f"\nMore than {BOUND}:", *grown, sep="\n")
    return 1 if unknown else 0


def measured(family: Family, size: int, repeats: int) -> dict[str, float]:
    """Medians of the seconds of each stage, and of the bytes, of several processes."""
    samples: list[dict[str, float]] = []
    end = perf_counter() + PATIENCE
    while len(samples) < repeats and (not samples or perf_counter() < end):
        command = [sys.executable, "-m", "benchmarks.commands.one_size", family.name, str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{family.name}, {size}:\n{done.stderr}")
        samples.append(json.loads(done.stdout.splitlines()[-1]))
    return {stage: statistics.median(s[stage] for s in samples) for stage in STAGES}


def power(values: list[float], sizes: tuple[int, ...]) -> float:
    """The power of the growth between the two largest sizes."""
    if min(values[-2:]) <= 0:
        return 0.0
    return math.log(values[-1] / values[-2]) / math.log(sizes[-1] / sizes[-2])
