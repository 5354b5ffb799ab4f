"""Accelerated failure times, run as a newcomer does: the fits of another library (lifelines), SciPy's densities."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

EXAMPLE = Path(__file__).parents[2] / "examples" / "survival_regression.py"
#: Weibull's model, and the logarithms of the likelihoods of all three.
PUBLISHED = {
    "intercept": (3.9901, 0.4191),
    "fin": (0.2722, 0.1380),
    "age": (0.0407, 0.0160),
    "race": (-0.2248, 0.2202),
    "wexp": (0.1066, 0.1515),
    "mar": (0.3113, 0.2733),
    "paro": (0.0588, 0.1396),
    "prio": (-0.0658, 0.0209),
}
LIKELIHOODS = {"Weibull": -319.38, "log-logistic": -319.40, "log-normal": -322.69}


def run(*options):
    return subprocess.run(
        [sys.executable, EXAMPLE, *options],
        capture_output=True,
        text=True,
        cwd=EXAMPLE.parents[1],
        check=False,
    )


@pytest.mark.slow
def test_the_fits_are_the_published_ones():
    done = run("--json")
    assert done.returncode == 0, done.stderr
    fits = json.loads(done.stdout)
    for name, (coefficient, error) in PUBLISHED.items():
        assert fits["Weibull"]["coef"][name] == pytest.approx(coefficient, abs=6e-5)
        assert fits["Weibull"]["se"][name] == pytest.approx(error, abs=6e-5)
    for name, likelihood in LIKELIHOODS.items():
        assert fits[name]["log_likelihood"] == pytest.approx(likelihood, abs=5.1e-3)


def test_likelihood():
    """That of SciPy, for weeks instead of their logarithms: they differ by a constant."""
    spec = importlib.util.spec_from_file_location("survival_regression", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    x, log_week, arrested = example.read(example.ROSSI)
    model = {"intercept": 4.0, "beta": np.linspace(-0.1, 0.1, 7), "log_scale": -0.3}
    got = example.log_likelihood(model, example.FAMILIES["Weibull"], x, log_week, arrested)
    weibull = scipy.stats.weibull_min(np.exp(0.3), 0, np.exp(4.0 + x @ model["beta"]))
    density = weibull.logpdf(np.exp(log_week)) + log_week
    assert got == pytest.approx(np.where(arrested, density, weibull.logsf(np.exp(log_week))).sum(), rel=1e-12)
