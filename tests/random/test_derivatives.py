"""Derivatives of samples in their parameters: those of the quantile at a fixed probability."""

import numpy as np
import pytest
import scipy.stats

import functrans as ft
import functrans.numpy as fnp
from functrans import random

KEY = random.key(3)
N = 400


def _quantile_slope(distribution, parameter, x, order=1):
    """Finite differences of SciPy's quantile, from the nearer tail."""
    low, h = distribution(parameter), 1e-4 * parameter
    lower = low.cdf(x) < 0.5
    p = np.where(lower, low.cdf(x), low.sf(x))

    def quantile(a):
        return np.where(lower, distribution(a).ppf(p), distribution(a).isf(p))

    up, down = quantile(parameter + h), quantile(parameter - h)
    return (up - down) / (2 * h) if order == 1 else (up - 2 * quantile(parameter) + down) / h**2


CASES = [
    ("gamma", random.gamma, scipy.stats.gamma, (0.3, 1.0, 2.5, 40.0)),
    ("chisquare", random.chisquare, scipy.stats.chi2, (0.7, 3.0, 50.0)),
    ("wald", random.wald, lambda m: scipy.stats.invgauss(m), (0.2, 2.0, 8.0)),
]


@pytest.mark.parametrize(
    ("name", "sample", "distribution", "parameters"), CASES, ids=lambda c: c if isinstance(c, str) else ""
)
def test_samples_follow_the_quantile(name, sample, distribution, parameters):
    draw = ft.jit(lambda a: sample(KEY, a, (N,)))
    for a in parameters:
        x, slope = ft.jvp(draw, (a,), (1.0,))
        expected = _quantile_slope(distribution, a, np.asarray(x))
        np.testing.assert_allclose(slope, expected, rtol=2e-5, atol=1e-7)


def test_second_derivatives_follow_the_quantile():
    second = ft.jvp(lambda a: ft.jvp(lambda a: random.gamma(KEY, a, (N,)), (a,), (1.0,))[1], (2.5,), (1.0,))[
        1
    ]
    expected = _quantile_slope(scipy.stats.gamma, 2.5, np.asarray(random.gamma(KEY, 2.5, (N,))), order=2)
    np.testing.assert_allclose(second, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_logarithms_follow_where_samples_underflow():
    a = 0.002
    x, slope = ft.jvp(lambda a: random.loggamma(KEY, a, (N,)), (a,), (1.0,))
    assert np.exp(np.min(x)) == 0
    # log x = (log u + lgamma(a + 1)) / a for small x, at fixed u
    u = a * np.asarray(x) - scipy.special.gammaln(a + 1)
    h = 1e-6
    expected = [((u + scipy.special.gammaln(b + 1)) / b) for b in (a + h, a - h)]
    small = np.asarray(x) < -40
    assert small.sum() > 100
    np.testing.assert_allclose(
        np.asarray(slope)[small], ((expected[0] - expected[1]) / (2 * h))[small], rtol=1e-5
    )
    ordinary = ft.jvp(lambda a: fnp.log(random.gamma(KEY, a, (N,))), (3.0,), (1.0,))
    logs = ft.jvp(lambda a: random.loggamma(KEY, a, (N,)), (3.0,), (1.0,))
    np.testing.assert_allclose(logs[1], ordinary[1], rtol=1e-9)


# Gradients of expectations, of which both sides are known: d/da E[f(x)].
MEANS = [
    ("beta", lambda a: random.beta(KEY, a, 3.0, (20000,)), 2.0, lambda a: a / (a + 3)),
    (
        "dirichlet",
        lambda a: random.dirichlet(KEY, fnp.array([a, 1.0, 2.0]), (20000,))[:, 0],
        1.5,
        lambda a: a / (a + 3),
    ),
    ("t", lambda df: random.t(KEY, df, (20000,)) ** 2, 9.0, lambda df: df / (df - 2)),
    ("wald", lambda m: random.wald(KEY, m, (20000,)), 1.2, lambda m: m),
    ("generalized", lambda p: abs(random.generalized_normal(KEY, p, (20000,))) ** p, 2.5, lambda p: 1 / p),
    ("f", lambda d: random.f(KEY, 4.0, d, (20000,)), 12.0, lambda d: d / (d - 2)),
]


@pytest.mark.wide(2)
@pytest.mark.parametrize(("name", "sample", "a", "mean"), MEANS, ids=[m[0] for m in MEANS])
def test_gradients_of_expectations(name, sample, a, mean):
    x, slope = ft.jvp(ft.jit(sample), (a,), (1.0,))
    x, slope = np.asarray(x), np.asarray(slope)
    h = 1e-5
    expected = (mean(a + h) - mean(a - h)) / (2 * h)
    for value, wanted in ((x, mean(a)), (slope, expected)):
        error = 5 * np.std(value) / np.sqrt(value.size)
        assert abs(np.mean(value) - wanted) < error
        assert error < 0.1 * abs(wanted) + 0.02


@pytest.mark.slow
def test_reverse_mode_agrees_and_batches():
    def loss(p):
        drawn = random.gamma(KEY, p["a"], (3, 2)) + random.beta(KEY, p["a"], p["b"], (3, 2))
        return fnp.sum(fnp.log(drawn))

    point = {"a": np.array([0.5, 2.0]), "b": np.array([1.5, 0.7])}
    backward = ft.jit(ft.grad(loss))(point)
    forward = ft.jacfwd(loss)(point)
    for name in point:
        np.testing.assert_allclose(backward[name], forward[name], rtol=1e-10)


def test_bounds_of_truncated_normal_and_uniform():
    x, slope = ft.jvp(lambda b: random.truncated_normal(KEY, -1.0, b, (50,)), (2.0,), (1.0,))
    expected = _quantile_slope(lambda b: scipy.stats.truncnorm(-1.0, b), 2.0, np.asarray(x))
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-8)
    u = random.uniform(KEY, (5,))
    slopes = ft.jacfwd(lambda low: random.uniform(KEY, (5,), minval=low, maxval=3.0))(1.0)
    np.testing.assert_allclose(slopes, 1 - u, rtol=1e-14)
