"""Each budget is kept, and the gradient stays the same."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# Tests run side by side: threads of BLAS would wait for each other.
ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "FUNCTRANS_CHECKED": "0"}
EXAMPLE = Path(__file__).parents[2] / "examples" / "memory_budget.py"


@pytest.mark.slow
def test_less_budget_keeps_less():
    done = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ *(all|[\d.]+) +([\d.]+) MB +\d+ ms *(\S*)$", done.stdout, re.M)
    assert len(rows) == 12
    (_, everything, _), *budgets = rows
    sizes = [float(kept) for _, kept, _ in budgets]
    assert sizes == sorted(sizes, reverse=True)
    assert all(
        size <= float(budget) * float(everything) + 0.05 for (budget, _, _), size in zip(budgets, sizes)
    )
    assert sizes[0] < 0.25 * float(everything)
    assert sizes[-1] == 0.0
    assert all(float(off) < 1e-14 for _, _, off in budgets)
