"""Libraries of JAX's, unmodified, on functrans and on JAX: one program a library."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from .chains import LIMIT, columns, deviation
from .environments import Side, sides

PROGRAMS = (
    "optax", "blackjax", "numpyro", "jaxopt", "dynamax", "linen", "nnx", "haiku", "distrax", "chex", "equinox",
    "lineax", "optimistix", "tinygp", "diffrax", "tfp",
)  # fmt: skip
#: Programs that draw a chain, and the number of samples: rounding may part the paths.
CHAINS = {"blackjax": 100, "numpyro": 200, "tfp": 100}
#: The largest relative difference of numbers; one program computes with single precision.
TOLERANCE = 1e-10
SINGLE = {"linen": 1e-4, "nnx": 1e-3}
#: What the shares of JAX's time should be: geometric means, and each.
GOALS = {"warm": 0.3, "cold": 0.6, "start": float("inf")}


class Row(NamedTuple):
    """What was measured of a program."""

    shares: dict[str, float]
    ours: dict[str, Any]
    numbers: str
    agree: bool


def measured(side: Side, name: str) -> dict[str, Any] | None:
    """What `one` prints of a program in another process; None, and its last line, if it fails."""
    done = side.run("benchmarks.libraries.one", name)
    if done.returncode:
        print(f"{name} on {side.name}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
        return None
    return json.loads(done.stdout.splitlines()[-1])


def difference(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """The largest difference of the numbers, relative to themselves, or to a thousandth of the largest."""
    a, b = (np.array([v for leaf in side["values"] for v in leaf]) for side in (ours, theirs))
    if a.shape != b.shape:
        return float("inf")
    return float(np.max(np.abs(a - b) / np.maximum(np.abs(b), 1e-3 * np.abs(b).max())))


def compared(name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[str, bool]:
    """How the numbers of both sides differ, in words, and whether they are equal; those of a chain in distribution."""
    found = difference(ours, theirs)
    tolerance = SINGLE.get(name, TOLERANCE)
    if found <= tolerance or name not in CHAINS:
        return f"{found:.0e}", found <= tolerance
    moved = deviation(*(columns(side["values"], CHAINS[name]) for side in (ours, theirs)))
    return f"{moved:.1f} sd", moved <= LIMIT


def row(name: str, both: tuple[Side, Side], rounds: int) -> Row | None:
    """A program on both sides in turn, each in `rounds` processes, of which the least times count."""
    times: list[list[dict[str, Any]]] = [[], []]
    for _ in range(rounds):
        for side, found in zip(both, times):
            result = measured(side, name)
            if result is None:
                return None
            found.append(result)
    ours, theirs = ({what: min(r[what] for r in found) for what in GOALS} for found in times)
    numbers, agree = compared(name, times[0][0], times[1][0])
    return Row({what: ours[what] / theirs[what] for what in GOALS}, ours, numbers, agree)


def main(options: Any) -> int:
    """Print a table: how long programs take on functrans, as a share of the time on JAX, and how numbers differ."""
    both = sides(options.environments)
    rows: dict[str, Row | None] = {}
    print(f"{'program':12}{'warm':>8}{'cold':>8}{'start':>8}{'ms warm':>10}{'s cold':>8}{'differ':>10}")
    for name in PROGRAMS:
        if options.only in name:
            found = rows[name] = row(name, both, options.repeats or 2)
            if found is not None:
                columns_ = "".join(f"{share:8.2f}" for share in found.shares.values())
                times = f"{1e3 * found.ours['warm']:10.3f}{found.ours['cold']:8.2f}"
                print(f"{name:12}{columns_}{times}{found.numbers:>10}", flush=True)
    return summarised(rows)


def summarised(rows: dict[str, Row | None]) -> int:
    """Print geometric means, and what misses a goal; 1 if a program failed, or numbers differ."""
    known = {name: found for name, found in rows.items() if found is not None}
    for what, goal in GOALS.items() if known else ():
        shares = {name: found.shares[what] for name, found in known.items()}
        mean = float(np.exp(np.mean(np.log(list(shares.values())))))
        slow = [f"{name} {share:.2f}" for name, share in shares.items() if share > 1]
        words = [f"goal {goal}"] if np.isfinite(goal) else []
        words += [f"slower than JAX: {', '.join(slow)}"] if slow else []
        print(f"{what}: geometric mean {mean:.2f}{' (' * bool(words)}{'; '.join(words)}{')' * bool(words)}")
    wrong = [name for name, found in rows.items() if found is None or not found.agree]
    if wrong:
        print(f"failed, or other numbers: {', '.join(wrong)}")
    return bool(wrong)
