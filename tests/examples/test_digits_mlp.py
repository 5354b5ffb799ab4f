"""The network reads held-out digits, and says how far it is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_mlp.py"
# Tests run side by side: threads of BLAS would wait for each other.
ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}


@pytest.mark.slow
def test_it_reads_held_out_digits():
    done = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, text=True, check=False, env=ONE_THREAD
    )
    assert done.returncode == 0, done.stderr
    assert "epoch   1 of 150, loss" in done.stdout
    assert "epoch 150 of 150, loss" in done.stdout
    accuracy, right, of = re.search(r"accuracy ([\d.]+): (\d+) of (\d+) digits", done.stdout).groups()
    assert of == "360"
    assert abs(float(accuracy) - int(right) / 360) < 1e-4
    assert int(right) >= 0.96 * 360
