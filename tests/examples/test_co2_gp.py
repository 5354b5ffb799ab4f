"""The Gaussian process: its likelihood and gradient against SciPy, and what the program prints and draws."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

import functrans as ft

EXAMPLE = Path(__file__).parents[2] / "examples" / "co2_gp.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("co2_gp", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(**environment):
    return subprocess.run(
        [sys.executable, EXAMPLE],
        capture_output=True,
        text=True,
        check=False,
        # Tests run side by side: threads of BLAS would wait for each other.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment},
    )


def test_monthly_means(example):
    t, y = example.monthly(example.CO2)
    assert len(t) == len(y) == 521
    assert np.isfinite(y).all()
    assert (np.diff(t) > 0.08).all()
    assert y[0] == pytest.approx(316.1)  # one week of March 1958
    assert y[1] == pytest.approx(np.mean([317.3, 317.6, 317.5, 316.4]))


def test_likelihood_and_gradient(example):
    t, y = example.monthly(example.CO2)
    t, y = t[:40], y[:40] - y[:40].mean()
    logs = np.log(list(example.START.values()))
    value, gradient = ft.jit(ft.value_and_grad(example.negative_log_likelihood))(logs, t, y)
    p = example.START
    cov = np.asarray(example.covariance(p, t, t)) + p["noise"] ** 2 * np.eye(40)
    assert value == pytest.approx(-multivariate_normal.logpdf(y, np.zeros(40), cov), rel=1e-8)
    slopes = approx_fprime(logs, lambda v: float(example.negative_log_likelihood(v, t, y)), 1e-6)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-3, atol=1e-3)


def test_the_forecast_is_near_what_came():
    done = run()
    assert done.returncode == 0, done.stderr
    error = float(re.search(r"forecast of 120 months: root mean square error ([\d.]+) ppmv", done.stdout)[1])
    assert error < 2.0  # while the record rose by 15
    likelihood = float(re.search(r"log likelihood (-[\d.]+)", done.stdout)[1])
    assert likelihood == pytest.approx(-98.68, abs=0.05)


def test_without_matplotlib_it_prints(tmp_path):
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").write_text("raise ImportError")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = run(PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert "forecast of 120 months" in done.stdout
