"""Every public function with one bad argument after another: a typed error that names it, or NumPy's result.

What a call does is judged in `probing`, in processes of their own: one that dies or hangs is an outcome, too.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from versions import has

import functrans

sys.path.insert(0, str(Path(__file__).parent))

import base_calls
import probing
from known import KNOWN, KNOWN_BEFORE

#: Outcomes that there are none of.
NEVER = ("internal", "internal while tracing", "hang", "hang while tracing", "memory", "crash")
QUIET = 90.0
WHERE = {**os.environ, "PYTHONPATH": str(Path(functrans.__file__).parents[1])}


def outcomes(path, first, step):
    """Judge every `step`-th call in processes that are begun again after each that dies or falls silent."""
    number = len(probing.probes())
    while first < number:
        command = [sys.executable, str(Path(probing.__file__)), str(path), str(first), str(number), str(step)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=WHERE)
        size, since = -1, time.monotonic()
        while process.poll() is None:
            time.sleep(0.2)
            now = path.stat().st_size if path.exists() else 0
            if now != size:
                size, since = now, time.monotonic()
            if time.monotonic() - since > QUIET:
                process.kill()
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        if process.returncode == 0:
            return rows
        assert process.returncode < 0, "the probes do not run"
        first = max(first, rows[-1]["i"] + step if rows else first)
        row = {"i": first, "id": probing.probes()[first].id, "kind": "crash", "text": str(process.returncode)}
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        first += step
    return [json.loads(line) for line in path.read_text().splitlines()]


def is_known(row):
    """Whether `known` lists the function and the parameter for this kind of disagreement."""
    name, _, rest = row["id"].partition("(")
    parameter = rest.partition("=")[0].rpartition(":")[2]
    tables = [KNOWN, *[table for release, table in KNOWN_BEFORE.items() if not has(release)]]
    return any(
        parameter in table.get(row["kind"], {}).get(name.removeprefix("functrans."), "").split()
        for table in tables
    )


def listed(rows):
    """The outcomes, one a line."""
    return "\n".join(f"{row['kind']}: {row['id']}: {row['text']}" for row in rows[:60])


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("first", "step"), [(11, 230), pytest.param(1, 30, marks=SLOW), pytest.param(16, 30, marks=SLOW)]
)
def test_bad_arguments(tmp_path, first, step):
    """About 60 values are tried for each parameter. Of these the quick test takes one of 230, those of each fourth
    parameter; the slow ones together four. All are 326,000 calls, twenty minutes: see `probing`.
    """
    rows = outcomes(tmp_path / "outcomes.jsonl", first, step)
    assert len(rows) > len(probing.probes()) // (step + 1)
    wrong = [row for row in rows if row["kind"] in NEVER and not is_known(row)]
    assert not wrong, listed(wrong)
    others = [row for row in rows if row["kind"] and not is_known(row)]
    # Some depend on the machine: on its memory, its BLAS.
    assert len(others) <= len(rows) // 5000, f"{Counter(row['kind'] for row in others)}\n{listed(others)}"


def test_every_public_function_is_called():
    assert not base_calls.missing()
