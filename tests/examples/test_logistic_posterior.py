"""O-rings of the Challenger: the sampler and the variational fit against a posterior on a grid, published estimates."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_expit
from scipy.stats import norm

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name):
    done = subprocess.run(
        [sys.executable, EXAMPLES / name], capture_output=True, text=True, cwd=EXAMPLES.parent, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def moments():
    """Posterior means and standard deviations of a and b, and the mean risk at 31 degrees, by summation on a grid."""
    table = np.loadtxt(EXAMPLES / "data" / "challenger.csv", delimiter=",", skiprows=1)
    x, damaged = table[:, 0] - 70, table[:, 1] == 1
    a, b = np.meshgrid(np.linspace(-6, 3, 601), np.linspace(-1.5, 0.4, 601), indexing="ij")
    logits = a[..., None] + b[..., None] * x
    logs = (
        np.where(damaged, log_expit(logits), log_expit(-logits)).sum(-1)
        + norm.logpdf(a, 0, 5)
        + norm.logpdf(b)
    )
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    means = [np.sum(weights * q) for q in (a, b)]
    spreads = [np.sqrt(np.sum(weights * (q - m) ** 2)) for q, m in zip((a, b), means)]
    return means, spreads, np.sum(weights * np.exp(log_expit(a - 39 * b)))


def numbers(text, name):
    line = re.search(rf"^{name} (.*)$", text, re.M).group(1)
    return [float(n) for n in re.findall(r"-?\d+\.\d+", line)]


@pytest.mark.slow
def test_the_sampler(moments):
    text = run("logistic_hmc.py")
    estimate = re.search(r"maximum likelihood +(\S+) +(\S+)", text).groups()
    np.testing.assert_allclose(
        [float(n) for n in estimate], (15.0429, -0.2322), atol=6e-5
    )  # Dalal et al. 1989
    means, spreads, risk = moments
    for name, mean, spread in zip("ab", means, spreads):
        got, error, deviation = numbers(text, name)
        assert error < 0.02 * spread
        assert abs(got - mean) < 5 * error
        assert deviation == pytest.approx(spread, rel=0.05)
    assert float(re.search(r"31 degrees: (\S+),", text).group(1)) == pytest.approx(risk, abs=2e-3)


def test_the_variational_fit(moments):
    """A normal distribution is not the posterior, but its mean is near, and its spread at most as large."""
    text = run("variational_fit.py")
    for name, mean, spread in zip("ab", *moments[:2]):
        got, deviation = numbers(text, name)
        assert got == pytest.approx(mean, abs=0.15 * spread)
        assert 0.8 * spread < deviation < 1.05 * spread
    before, after = map(float, re.search(r"bound (\S+) -> (\S+)", text).groups())
    assert before < after
