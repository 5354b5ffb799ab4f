"""Five of JAX's libraries, unmodified, on functrans: programs of ``benchmarks/libraries``, with JAX's numbers.

The libraries depend on JAX, so that no extra can install them without it. Into an environment without JAX::

    pip install 'functrans[libraries]'
    pip install --no-deps optax==0.2.8 chex==0.1.92 equinox==0.13.8 lineax==0.1.1 jaxopt==0.8.5

and for distrax ``dm-haiku distrax tfp-nightly`` and what they import. ``LIBRARIES_PYTHON=path`` names an environment
other than that of the tests; functrans's folder is on its path.
"""

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: The number of values of each program, their sum, their norm, the first and the last, by JAX 0.10.2 with 64 bits.
RECORDED = {
    "optax": (626, 13.644093880633129, 6.698773529508881, -0.1069480789566181, 0.0725256204648166),
    "equinox": (1490, 38.40066592373725, 35.64369110326365, 35.1893476790288, 0.09330419738798278),
    "lineax": (21, 0.9223194041093252, 0.6881783039941144, -0.13717250037465334, 0.027011722507901004),
    "jaxopt": (2, 1.5239098220264062, 1.3323197921912784, 1.315997082616744, 0.2079127394096623),
    "distrax": (41, 4.134375021287148, 7.629126726387715, 3.089708686920984, 1.1089800034801227),
}
PYTHON = os.environ.get("LIBRARIES_PYTHON", sys.executable)
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDED)
def test_a_program_of_a_library_gives_jaxs_numbers(name):
    if "LIBRARIES_PYTHON" not in os.environ and importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed: pip install --no-deps {name}, in an environment without JAX")
    done = subprocess.run(
        [PYTHON, "-m", "functrans.as_jax", "-m", "benchmarks.libraries.one", name, "1"],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["on"] == "functrans"
    values = result["values"]
    count, total, norm, first, last = RECORDED[name]
    assert len(values) == count
    found = (math.fsum(values), math.sqrt(math.fsum(x * x for x in values)), values[0], values[-1])
    assert found == pytest.approx((total, norm, first, last), rel=1e-9, abs=1e-9 * norm)
