"""Hares and lynxes: the solver against SciPy's, the gradient against differences, the fit against the published one."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import approx_fprime

import functrans as ft

EXAMPLE = Path(__file__).parents[2] / "examples" / "lotka_volterra.py"
LOGS = np.log([0.6, 0.03, 0.7, 0.02, 30.0, 6.0, 0.3, 0.2])


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("lotka_volterra", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_solver(example):
    alpha, beta, gamma, delta = rates = np.exp(LOGS[:4])
    first = np.exp(LOGS[4:6])

    def slope(_, z):
        return [(alpha - beta * z[1]) * z[0], (-gamma + delta * z[0]) * z[1]]

    expected = solve_ivp(slope, (0, 20), first, t_eval=np.arange(21), rtol=1e-11, atol=1e-11).y.T
    np.testing.assert_allclose(example.populations(rates, first, 21), expected, rtol=1e-5)


def test_gradient(example):
    gradient = ft.jit(ft.grad(example.negative_log_posterior))(LOGS)
    slopes = approx_fprime(LOGS, lambda v: float(example.negative_log_posterior(v)), 1e-7)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-4, atol=1e-3)


def test_rates_are_the_published_ones():
    done = subprocess.run(
        [sys.executable, EXAMPLE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [float(re.search(rf"^{name} +([\d.]+)$", done.stdout, re.M)[1]) for name in ("alpha", "gamma")]
    assert found == pytest.approx([0.55, 0.80], rel=0.05)
    apart = re.search(r"relative difference from the published rates: (.*)", done.stdout)[1].split()
    assert all(abs(float(x)) < 0.05 for x in apart)
