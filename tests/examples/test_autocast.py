"""The digits are recognised in each precision, and the narrower ones keep less."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# Tests run side by side: threads of BLAS would wait for each other.
ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "FUNCTRANS_CHECKED": "0"}
EXAMPLE = Path(__file__).parents[2] / "examples" / "autocast.py"


@pytest.mark.slow
def test_four_precisions():
    done = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(\w+) +([\d.]+)% +[\d.]+ ms +([\d.]+) MB$", done.stdout, re.M)
    assert [name for name, _, _ in rows] == ["float64", "float32", "float16", "bfloat16"]
    assert all(float(accuracy) > 96 for _, accuracy, _ in rows)
    full, *narrow = [float(kept) for _, _, kept in rows]
    assert narrow[0] < 0.52 * full
    assert max(narrow[1:]) < 0.3 * full
