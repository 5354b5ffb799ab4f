"""The example of sharded training, on one process and on two."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "sharded_training.py"


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2])
def test_sharded_training(n):
    """It finds the parameters of one process, and reads digits."""
    command = [
        sys.executable,
        "-m",
        "functrans.distributed.run",
        "-n",
        n,
        "--timeout",
        120,
        EXAMPLE,
        "--steps",
        150,
    ]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    accuracy = float(re.search(r"accuracy (\S+);", done.stdout).group(1))
    assert accuracy > 0.85
    held = int(re.search(r"each holds (\S+) of 680,016", done.stdout).group(1).replace(",", ""))
    assert held <= 680_016 / n + 1000  # padding
