"""Functions written for NumPy: they know nothing else, and their derivatives and kernels are right."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "plain_numpy.py"
# Tests run side by side: threads of BLAS would wait for each other.
ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
FUNCTIONS = ["huber", "shortfall", "kalman", "orbit", "calibration"]


@pytest.mark.slow
def test_values_and_gradients():
    done = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, text=True, check=False, env=ONE_THREAD
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == FUNCTIONS
    for name, value, compiled, gradient, *_ in rows:
        assert abs(float(value)) > 1e-3, name
        assert float(compiled) < 1e-13, name
        assert float(gradient) < 1e-8, name


def test_the_functions_know_numpy_only():
    tree = ast.parse(EXAMPLE.read_text())
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [name.name for node in imports for name in node.names] == ["timeit", "suppress", "numpy"]
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name in FUNCTIONS:
            names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            assert names.isdisjoint({"ft", "fnp", "functrans"}), function.name
