"""A solver of the user's in Numba, run as a newcomer runs it, against the published fit (lifelines)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "njit_gradient_inside_solver.py"
#: Estimates and standard errors of Weibull's model: intercept, fin, age, race, wexp, mar, paro, prio.
PUBLISHED = [3.9901, 0.2722, 0.0407, -0.2248, 0.1066, 0.3113, 0.0588, -0.0658]
ERRORS = [0.4191, 0.1380, 0.0160, 0.2202, 0.1515, 0.2733, 0.1396, 0.0209]


@pytest.mark.slow
def test_the_fit_is_the_published_one():
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    command = [sys.executable, EXAMPLE, "--json", "--samples", "400"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    fit = json.loads(done.stdout)
    np.testing.assert_allclose(fit["coef"][:-1], PUBLISHED, atol=6e-5)
    # The bootstrap estimates these errors otherwise than the Hessian does: somewhat larger in a sample with 114 events.
    assert (np.abs(np.divide(fit["se"][:-1], ERRORS) - 1.0) < 0.3).all()
