"""False alarms: the default settings of `check` on right rules, those of functrans itself, at many drawn points.

``python tests/testing/alarms.py --examples 50 --coretypes Haswell SkylakeX`` draws so many points for each of 200
functions of the coverage table, in one process for each processor type that OpenBLAS is set to. ``--record`` keeps
the counts for `docs/scripts/generate_testing.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "coverage"))
import coverage_table as table

from functrans.testing import LawViolation, check, is_smooth

RECORD = Path(__file__).with_name("figures.json")
FUNCTIONS = 200
NAMESPACES = (
    "functrans.numpy",
    "functrans.numpy.linalg",
    "functrans.numpy.fft",
    "functrans.scipy.special",
    "functrans.scipy.linalg",
    "functrans.lax",
    "functrans.nn",
)


class Right(NamedTuple):
    """A function that is differentiable to second order, and how its arguments are drawn."""

    name: str
    f: Callable[..., Any]
    draw: Callable[[int], list[np.ndarray]]


def functions() -> Iterator[Right]:
    """Of the coverage table, all kinds alike: each entry's first call with float arguments."""
    for name, entry in table.load().items():
        if (
            entry.namespace not in NAMESPACES
            or entry.differentiable is not True
            or entry.order < 2
            or entry.skip
        ):
            continue
        for call in entry.calls:
            values = call.values(0)
            if not call.eager and values and all(x.dtype.kind in "fc" for x in values):
                yield Right(name, _of(entry, call), call.values)
                break


def _of(entry: Any, call: Any) -> Callable[..., Any]:
    def f(*values: Any) -> Any:
        return call(entry.subject, values)

    f.__name__ = entry.name
    return f


def chosen(count: int = FUNCTIONS) -> list[Right]:
    """So many of them, at equal distances in the table."""
    found = list(functions())
    return [found[round(i * (len(found) - 1) / (count - 1))] for i in range(min(count, len(found)))]


def alarm(right: Right, seed: int) -> str | None:
    """What `check` says of a right rule at a point, empty if the point is a kink, None if nothing."""
    point = right.draw(seed)
    try:
        check(right.f, *point, rng=seed)
    except LawViolation as violation:
        if "non-differentiable (kink)" in str(violation) and _at_kink(right, point):
            return ""
        return str(violation)
    return None


def _at_kink(right: Right, point: list[np.ndarray]) -> bool:
    """Another seed says so, too: the point is one where there is no derivative."""
    try:
        is_smooth(right.f, *point, rng=99)
    except LawViolation:
        return True
    return False


def count(examples: int, seconds: float, first: int = 0) -> dict[str, Any]:
    """Points tried, kinks left out, and alarms; each point of all functions before the next, until time is over."""
    start, found = time.monotonic(), {"functions": 0, "examples": 0, "kinks": 0, "alarms": []}
    rights, coretype = chosen(), os.environ.get("OPENBLAS_CORETYPE", "")
    # In an order of its own for each processor: if time is over early, others were tried there.
    order = np.random.default_rng(zlib.crc32(coretype.encode())).permutation(len(rights))
    for seed in range(first, first + examples):
        for n, right in enumerate([rights[i] for i in order]):
            if time.monotonic() - start > seconds:
                return found
            try:
                said = alarm(right, seed)
            except Exception:
                said = traceback.format_exc(limit=-3)
            found["examples"] += said != ""
            found["kinks"] += said == ""
            found["functions"] = max(found["functions"], n + 1)
            if said:
                found["alarms"].append(f"{right.name}, seed {seed}: {said[:600]}")
    return found


def main() -> int:
    """Count, in a process for each kind of processor; 1 if there is an alarm."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--examples", type=int, default=1, help="points of each function")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed")
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop each process after this time")
    parser.add_argument("--coretypes", nargs="*", default=[], help="values of OPENBLAS_CORETYPE")
    parser.add_argument("--record", action="store_true", help=f"keep the counts in {RECORD.name}")
    options = parser.parse_args()
    if not options.coretypes:
        print(json.dumps(count(options.examples, options.seconds, options.first), indent=1))
        return 0
    failed = 0
    for coretype in options.coretypes:
        command = [sys.executable, __file__, "--examples", str(options.examples)]
        command += ["--seconds", str(options.seconds), "--first", str(options.first)]
        environment = {**os.environ, "OPENBLAS_CORETYPE": coretype, "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            print(
                f"{coretype}: the process ended with {done.returncode}; is it for this processor?\n{done.stderr}"
            )
            continue
        found = json.loads(done.stdout)
        print(coretype, {**found, "alarms": len(found["alarms"])}, *found["alarms"], sep="\n  ", flush=True)
        failed += bool(found["alarms"])
        if options.record:
            kept = json.loads(RECORD.read_text()) if RECORD.exists() else {}
            kept.setdefault("alarms", {})[coretype] = {**found, "alarms": len(found["alarms"])}
            RECORD.write_text(json.dumps(kept, indent=1) + "\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
