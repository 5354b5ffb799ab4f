"""The bootstrap agrees with the curvature, and does not depend on the number of processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "bootstrap_map.py"
ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def printed(*before):
    command = [sys.executable, *before, EXAMPLE, "--samples", "200"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "bootstrap" in done.stderr
    return done.stdout


@pytest.mark.slow
def test_one_and_two_processes():
    alone = printed()
    assert "The two errors agree." in alone
    assert [line.split()[0] for line in alone.splitlines()[1:5]] == ["constant", "fin", "age", "prio"]
    assert printed("-m", "functrans.distributed.run", "-n", "2", "--timeout", "100") == alone
