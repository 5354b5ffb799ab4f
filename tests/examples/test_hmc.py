"""Eight schools: gradient and energy of the sampler, and the posterior mean against numbers found by integration."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import cauchy, norm

import functrans as ft

EXAMPLE = Path(__file__).parents[2] / "examples" / "hmc.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("hmc", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def means_by_integration(example):
    """Posterior means of mu and tau: schools are integrated out exactly, mu and tau on a grid."""
    mu = np.linspace(-25, 35, 601)[:, None, None]
    tau = np.exp(np.linspace(np.log(1e-4), np.log(300), 1500))[None, :, None]
    logs = norm.logpdf(example.EFFECT, mu, np.hypot(tau, example.SIGMA)).sum(-1)
    mu, tau = mu[..., 0], tau[..., 0]
    logs += (
        norm.logpdf(mu, 0, 5) + cauchy.logpdf(tau, 0, 5) + np.log(tau)
    )  # the last: the grid is one of log tau
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    return np.sum(weights * mu), np.sum(weights * tau)


def test_density_and_gradient(example):
    q = np.random.default_rng(0).normal(size=(2, 10))

    def expected(q):
        mu, tau, z = q[0], np.exp(q[1]), q[2:]
        found = norm.logpdf(example.EFFECT, mu + tau * z, example.SIGMA).sum() + norm.logpdf(z).sum()
        return found + norm.logpdf(mu, 0, 5) + cauchy.logpdf(tau, 0, 5) + q[1]

    difference = float(example.log_posterior(q[0]) - example.log_posterior(q[1]))
    assert difference == pytest.approx(expected(q[0]) - expected(q[1]))
    slopes = approx_fprime(q[0], expected, 1e-7)
    np.testing.assert_allclose(ft.grad(example.log_posterior)(q[0]), slopes, rtol=1e-4, atol=1e-4)


def test_trajectories_run_backwards_and_keep_energy(example):
    rng = np.random.default_rng(1)
    q, p = rng.normal(size=(2, 10))
    there = example.trajectory(q, p, 0.01, 30)
    energy = [float(example.log_posterior(q) - 0.5 * p @ p) for q, p in [(q, p), there]]
    assert energy[0] == pytest.approx(energy[1], abs=1e-3)
    back = example.trajectory(there[0], -there[1], 0.01, 30)
    np.testing.assert_allclose(back[0], q, atol=1e-9)
    np.testing.assert_allclose(back[1], -p, atol=1e-9)


@pytest.mark.slow
def test_means_within_their_errors(example):
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name, expected in zip(("mu", "tau"), means_by_integration(example)):
        mean, error = map(float, re.search(rf"^{name} +(-?[\d.]+) \+- ([\d.]+)", done.stdout, re.M).groups())
        assert error < 0.1
        assert abs(mean - expected) < 5 * error
    assert means_by_integration(example) == pytest.approx((4.4, 3.6), abs=0.1)  # as is well known
