"""``cache=True`` on code that calls jitted functions: another process loads it, and calls its own functions."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import functrans as ft

MODEL = """
import functrans as ft
import functrans.numpy as fnp

def f(x):
    return fnp.sum(x**2)

g = ft.jit(ft.grad(f))
doubled, tripled = ft.jit(lambda x: 2.0 * x), ft.jit(lambda x: 3.0 * x)
"""
SOLVER = """
import numba
from model import doubled, g, tripled

@numba.njit(cache=True)
def call(x):
    return g(x)

@numba.njit(cache=True)
def passed(f, x):
    return f(x)

@numba.njit(cache=True)
def into(out, x):
    g.into(out, x)

@numba.njit(cache=True)
def chosen(first, x):
    f = doubled if first else tripled
    return f(x)
"""
RUN = """
import sys
import numpy as np
import model, solver

x = np.arange(3.0)
if "known" in sys.argv:
    model.g(x)
local = model.ft.jit(lambda x: 7.0 * x)  # its code is compiled now, and must not be taken for cached code
assert solver.numba.njit(lambda x: local(x))(1.0) == 7.0
out = np.zeros(3)
print(solver.call(x).tolist(), solver.passed(model.g, x).tolist(), solver.into(out, x), out.tolist())
print(solver.chosen(True, 1.0), solver.chosen(False, 1.0))
print([len(f.stats.cache_hits) for f in (solver.call, solver.passed, solver.into, solver.chosen)])
"""


def run(folder, *words):
    """The lines that the program prints in another process, or its error."""
    path = os.pathsep.join([str(folder), str(Path(ft.__file__).parents[1])])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-W", "ignore", folder / "run.py", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else done.stderr


@pytest.mark.slow
def test_another_process_calls_its_own_function(tmp_path):
    for name, text in [("model", MODEL), ("solver", SOLVER), ("run", RUN)]:
        (tmp_path / f"{name}.py").write_text(text)
    slopes = "[0.0, 2.0, 4.0]"
    assert run(tmp_path, "known") == [f"{slopes} {slopes} None {slopes}", "2.0 3.0", "[0, 0, 0, 0]"]
    assert run(tmp_path) == [f"{slopes} {slopes} None {slopes}", "2.0 3.0", "[1, 1, 1, 1]"]
    (tmp_path / "model.py").write_text(MODEL.replace("x**2", "x**3"))  # an edit that Numba does not see
    slopes = "[0.0, 3.0, 12.0]"
    assert run(tmp_path) == [f"{slopes} {slopes} None {slopes}", "2.0 3.0", "[1, 1, 1, 1]"]
    (tmp_path / "model.py").write_text(MODEL.replace("2.0 * x", "5.0 * x"))  # of a program that was inlined
    assert run(tmp_path)[1:] == ["5.0 3.0", "[1, 1, 1, 1]"]
    (tmp_path / "model.py").write_text(MODEL.replace("ft.grad(f)", "f"))
    error = run(tmp_path)
    assert "ArgumentError: jit of f returns float64" in error
    assert "compiled by Numba for array(float64, 1d, C)" in error
    (tmp_path / "model.py").write_text(MODEL.replace("g = ", "g = None; other = "))
    assert "module model, which is not there now" in run(tmp_path)


def test_a_function_that_is_no_global_is_not_cached(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path))
    local = ft.jit(lambda x: 2.0 * x)

    @numba.njit(cache=True)
    def call(x):
        return local(x)

    with pytest.warns(numba.errors.NumbaWarning, match='Cannot cache compiled function "call"'):
        assert call(3.0) == 6.0
    assert not list(tmp_path.rglob("*.nbi"))
