"""Libraries of JAX's, unmodified, on functrans and on JAX: one program a library.

It needs two environments, since each has its own ``jax``. That in which it runs has functrans and the libraries
(docs/jax_libraries.md says how to install them without JAX); the other has JAX and the libraries, and the option
``--jax`` names its Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

PROGRAMS = (
    "optax", "blackjax", "numpyro", "jaxopt", "dynamax", "linen", "nnx", "haiku", "distrax", "chex", "equinox",
    "lineax", "optimistix", "tinygp", "diffrax", "tfp",
)  # fmt: skip
#: Programs that draw a chain: rounding parts the paths, so that they are equal in distribution alone.
CHAINS = ("blackjax", "numpyro", "tfp")


def measured(python: str, how: list[str], name: str, samples: int) -> dict[str, Any] | None:
    """What `one` prints of a program in another process; None, and its last line, if it fails."""
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    command = [python, *how, "-m", "benchmarks.libraries.one", name, str(samples)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root)
    if done.returncode:
        print(f"{name}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
        return None
    return json.loads(done.stdout.splitlines()[-1])


def difference(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """The largest difference of the numbers, relative to themselves, or to a thousandth of the largest."""
    a, b = np.array(ours["values"]), np.array(theirs["values"])
    if a.shape != b.shape:
        return float("inf")
    return float(np.max(np.abs(a - b) / np.maximum(np.abs(b), 1e-3 * np.abs(b).max())))


def main(options: Any) -> int:
    """Print a table: how long programs take on functrans, as a share of the time on JAX, and how numbers differ."""
    samples = options.repeats or 10
    ratios: dict[str, list[float]] = {"warm": [], "cold": [], "import": []}
    print(f"{'program':12}{'warm':>8}{'cold':>8}{'import':>8}{'ms warm':>10}{'s cold':>8}{'differ':>10}")
    for name in PROGRAMS:
        if options.only not in name:
            continue
        ours = measured(sys.executable, ["-m", "functrans.as_jax"], name, samples)
        theirs = measured(options.jax, [], name, samples)
        if ours is None or theirs is None:
            continue
        shares = {what: ours[what] / theirs[what] for what in ratios}
        for what, share in shares.items():
            ratios[what].append(share)
        numbers = "chain" if name in CHAINS else f"{difference(ours, theirs):.0e}"
        columns = "".join(f"{share:8.2f}" for share in shares.values())
        print(f"{name:12}{columns}{1e3 * ours['warm']:10.3f}{ours['cold']:8.2f}{numbers:>10}", flush=True)
    if ratios["warm"]:
        means = "".join(f"{np.exp(np.mean(np.log(shares))):8.2f}" for shares in ratios.values())
        print(f"{'geo. mean':12}{means}")
    return 0
