"""Five of JAX's libraries, unmodified, on functrans: programs of ``benchmarks/libraries``, with JAX's numbers.

The libraries depend on JAX, so that no extra can install them without it. The test makes an environment for them, as
``python -m benchmarks libraries`` does, or uses that of the variable ``LIBRARIES_ENVIRONMENTS``.
"""

import importlib
import json
import math
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: The number of values of each program, their sum, their norm, the first and the last, by JAX 0.10.2 with 64 bits.
RECORDED = {
    "optax": (626, 13.644093880633129, 6.698773529508881, -0.1069480789566181, 0.0725256204648166),
    "equinox": (1490, 38.40066592373725, 35.64369110326365, 35.1893476790288, 0.09330419738798278),
    "lineax": (21, 0.9223194041093252, 0.6881783039941144, -0.13717250037465334, 0.027011722507901004),
    "jaxopt": (2, 1.5239098220264062, 1.3323197921912784, 1.315997082616744, 0.2079127394096623),
    "distrax": (41, 4.134375021287148, 7.629126726387715, 3.089708686920984, 1.1089800034801227),
}


def faults(name, values):
    """What differs from JAX's numbers."""
    values = [x for part in values for x in part]
    count, total, norm, first, last = RECORDED[name]
    if len(values) != count:
        return f"{name}: {len(values)} values instead of {count}"
    found = (math.fsum(values), math.sqrt(math.fsum(x * x for x in values)), values[0], values[-1])
    if found != pytest.approx((total, norm, first, last), rel=1e-9, abs=1e-9 * norm):
        return f"{name}: {found} instead of {RECORDED[name][1:]}"
    return None


@pytest.mark.slow
def test_programs_of_libraries_give_jaxs_numbers(monkeypatch):
    """One test, since all use the environment that it makes."""
    monkeypatch.syspath_prepend(ROOT)  # the sources need not be on the path of the tests
    try:
        side = importlib.import_module("benchmarks.libraries.environments").functrans_side()
    except SystemExit as error:
        pytest.skip(f"{error} (is there a network?)")
    found = []
    for name in RECORDED:
        done = side.run("benchmarks.libraries.one", name, "1", timeout=600)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout.splitlines()[-1])
        assert result["on"] == "functrans"
        found.append(faults(name, result["values"]))
    assert found == [None] * len(RECORDED)
