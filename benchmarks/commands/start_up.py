"""What a process pays once: the import, and the first function that it compiles.

Processes are started in turn, each of which imports one library (`one_start`).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from ..measure import number, ratio, table

_STEPS = ("import", "first compile", "second compile")
#: functrans in a process that is not the first one on its machine: other programs are in the cache on disk.
_LATER = "functrans, later"
_LIBRARIES = ("numpy", "numba", "functrans", "jax")


def main(options: argparse.Namespace) -> int:
    """Print both tables; 1 where the import is slower than it must be."""
    times = start_up(_LIBRARIES, options.repeats or 9)
    print_imports(times)
    print()
    print_first_compiles(times)
    own, numba, jax = (times[name]["import"] for name in ("functrans", "numba", "jax"))
    return 1 if own > 1.2 * numba or own > jax else 0


def start_up(libraries: Sequence[str], repeats: int) -> dict[str, dict[str, float]]:
    """Medians of what `one_start` prints, for each library."""
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in libraries}
    samples[_LATER] = []
    with tempfile.TemporaryDirectory() as directory:
        used = os.path.join(directory, "used")
        _start("functrans", directory, used, "sin")
        for r in range(repeats + 1):
            measured = {name: _start(name, directory) for name in libraries[:: 1 if r % 2 else -1]}
            with tempfile.TemporaryDirectory() as copy:
                shutil.copytree(used, os.path.join(copy, "cache"))
                measured[_LATER] = _start("functrans", directory, os.path.join(copy, "cache"))
            for name, times in measured.items() if r else ():  # the first round writes the bytecode
                samples[name].append(times)
    return {
        name: {step: statistics.median(s[step] for s in rows) for step in rows[0]}
        for name, rows in samples.items()
    }


def _start(name: str, bytecode: str, cache: str = "", function: str = "cos") -> dict[str, float]:
    """What `one_start` prints in a new process, with or without functrans's cache on disk."""
    # All find their bytecode, as installed packages do, whatever the environment says.
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    own = {"FUNCTRANS_CACHE": "1", "FUNCTRANS_CACHE_DIR": cache} if cache else {"FUNCTRANS_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", f"{__package__}.one_start", name, function],
        env={**inherited, **own, "PYTHONPYCACHEPREFIX": bytecode},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def print_imports(times: dict[str, dict[str, float]]) -> None:
    """Print what an import costs, NumPy's included, and how many modules it loads."""
    rows = []
    for name, steps in [(name, times[name]) for name in _LIBRARIES]:
        milliseconds, modules = steps["import"], f"{steps['modules']:.0f}"
        others = [ratio(milliseconds, times[other]["import"]) for other in ("numba", "jax")]
        rows.append([f"import {name}", number(milliseconds), modules, *others])
    print("Median milliseconds of processor time of an import in a new process, that of NumPy included.\n")
    print(table(("", "ms", "modules", "/ import numba", "/ import jax"), rows))


def print_first_compiles(times: dict[str, dict[str, float]]) -> None:
    """Print what the first compiled function of a process costs, and the next one."""
    contestants = [times["functrans"], times[_LATER], times["jax"]]
    steps = [(step, [t[step] for t in contestants]) for step in _STEPS]
    steps.insert(2, ("import and first compile", [t["import"] + t["first compile"] for t in contestants]))
    rows = [[step, *map(number, (a, b, c)), ratio(a, c), ratio(b, c)] for step, (a, b, c) in steps]
    print(
        "Median milliseconds of processor time in a new process, of programs that no process compiled before."
    )
    print("'Later': functrans has compiled other programs on this machine, with its cache on disk.\n")
    header = ("", "functrans", "functrans, later", "JAX", "functrans / JAX", "later / JAX")
    print(table(header, rows))
