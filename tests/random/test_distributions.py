"""Large samples have the distributions they are named after (Kolmogorov's and chi-square tests, fixed seeds)."""

import numpy as np
import pytest
import scipy.stats as stats

from functrans import random

KEY = random.key(2024)
N = 20000

CONTINUOUS = {
    "uniform": (lambda d: random.uniform(KEY, (N,), d, -1.0, 3.0), stats.uniform(-1, 4)),
    "normal": (lambda d: random.normal(KEY, (N,), d), stats.norm()),
    "truncated_normal": (
        lambda d: random.truncated_normal(KEY, -0.5, 2.0, (N,), d),
        stats.truncnorm(-0.5, 2),
    ),
    "exponential": (lambda d: random.exponential(KEY, (N,), d), stats.expon()),
    "laplace": (lambda d: random.laplace(KEY, (N,), d), stats.laplace()),
    "logistic": (lambda d: random.logistic(KEY, (N,), d), stats.logistic()),
    "cauchy": (lambda d: random.cauchy(KEY, (N,), d), stats.cauchy()),
    "gumbel": (lambda d: random.gumbel(KEY, (N,), d), stats.gumbel_r()),
    "fine gumbel": (lambda d: random.gumbel(KEY, (N,), d, "highest"), stats.gumbel_r()),
    "pareto": (lambda d: random.pareto(KEY, 2.5, (N,), d), stats.pareto(2.5)),
    "rayleigh": (lambda d: random.rayleigh(KEY, 2.0, (N,), d), stats.rayleigh(scale=2)),
    "triangular": (lambda d: random.triangular(KEY, 0.0, 1.0, 4.0, (N,), d), stats.triang(0.25, 0, 4)),
    "weibull_min": (lambda d: random.weibull_min(KEY, 2.0, 1.5, (N,), d), stats.weibull_min(1.5, scale=2)),
    "lognormal": (lambda d: random.lognormal(KEY, 0.5, (N,), d), stats.lognorm(0.5)),
    "maxwell": (lambda d: random.maxwell(KEY, (N,), d), stats.maxwell()),
    "gamma": (lambda d: random.gamma(KEY, 2.5, (N,), d), stats.gamma(2.5)),
    "small gamma": (lambda d: random.gamma(KEY, 0.3, (N,), d), stats.gamma(0.3)),
    "loggamma": (lambda d: random.loggamma(KEY, 0.7, (N,), d), stats.loggamma(0.7)),
    "beta": (lambda d: random.beta(KEY, 0.5, 2.0, (N,), d), stats.beta(0.5, 2)),
    "chisquare": (lambda d: random.chisquare(KEY, 3.0, (N,), d), stats.chi2(3)),
    "t": (lambda d: random.t(KEY, 3.0, (N,), d), stats.t(3)),
    "f": (lambda d: random.f(KEY, 3.0, 5.0, (N,), d), stats.f(3, 5)),
    "wald": (lambda d: random.wald(KEY, 2.0, (N,), d), stats.invgauss(2.0)),
    "generalized_normal": (lambda d: random.generalized_normal(KEY, 1.5, (N,), d), stats.gennorm(1.5)),
}


@pytest.mark.wide(8)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    sample, distribution = CONTINUOUS[name]
    x = np.asarray(sample(np.float64), float)
    assert stats.kstest(x, distribution.cdf).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_in_single_precision(name):
    sample, distribution = CONTINUOUS[name]
    x = np.asarray(sample(np.float32))
    assert x.dtype == np.float32
    assert stats.kstest(x.astype(float), distribution.cdf).pvalue > 1e-3


DISCRETE = {
    "randint": (lambda: random.randint(KEY, (N,), 0, 12), stats.randint(0, 12)),
    "geometric": (lambda: random.geometric(KEY, 0.3, (N,)), stats.geom(0.3)),
    "poisson": (lambda: random.poisson(KEY, 3.0, (N,)), stats.poisson(3)),
    "large poisson": (lambda: random.poisson(KEY, 30.0, (N,)), stats.poisson(30)),
    "binomial": (lambda: random.binomial(KEY, 8, 0.3, (N,)), stats.binom(8, 0.3)),
    "large binomial": (lambda: random.binomial(KEY, 80, 0.6, (N,)), stats.binom(80, 0.6)),
    "bernoulli": (lambda: random.bernoulli(KEY, 0.3, (N,)), stats.bernoulli(0.3)),
    "multinomial": (
        lambda: random.multinomial(KEY, 8, np.broadcast_to([0.5, 0.2, 0.3], (N, 3)))[:, 1],
        stats.binom(8, 0.2),
    ),
    "categorical": (
        lambda: random.categorical(KEY, np.log([0.1, 0.2, 0.7]), shape=(N,)),
        stats.rv_discrete(values=([0, 1, 2], [0.1, 0.2, 0.7])),
    ),
    "choice": (
        lambda: random.choice(KEY, 3, (N,), p=np.array([1.0, 2.0, 7.0])),
        stats.rv_discrete(values=([0, 1, 2], [0.1, 0.2, 0.7])),
    ),
}


@pytest.mark.wide(10)
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    sample, distribution = DISCRETE[name]
    x = np.asarray(sample()).astype(int)
    values = np.arange(x.min(), x.max() + 1)
    expected = N * distribution.pmf(values)
    common = expected >= 5
    seen = np.array([np.count_nonzero(x == v) for v in values[common]])
    rest = N - expected[common].sum()
    seen, expected = np.append(seen, N - seen.sum()), np.append(expected[common], rest)
    kept = expected > 1e-9
    assert stats.chisquare(seen[kept], expected[kept] * seen[kept].sum() / expected[kept].sum()).pvalue > 1e-3
    assert seen[~kept].sum() == 0


@pytest.mark.slow
def test_vectors():
    x = np.asarray(
        random.multivariate_normal(KEY, np.array([1.0, -1.0]), np.array([[2.0, 0.6], [0.6, 1.0]]), (N,))
    )
    np.testing.assert_allclose(np.cov(x.T), [[2.0, 0.6], [0.6, 1.0]], atol=0.05)
    x = np.asarray(random.ball(KEY, 3, 2, (N,)))
    assert stats.kstest(np.linalg.norm(x, axis=-1) ** 3, "uniform").pvalue > 1e-3
    x = np.asarray(random.dirichlet(KEY, np.array([0.5, 1.0, 2.0]), (N,)))
    np.testing.assert_allclose(x.sum(-1), 1.0, rtol=1e-12)
    assert stats.kstest(x[:, 0], stats.beta(0.5, 3.0).cdf).pvalue > 1e-3
    q = np.asarray(random.orthogonal(KEY, 3, (2000,)))
    np.testing.assert_allclose(q @ q.swapaxes(-1, -2), np.broadcast_to(np.eye(3), (2000, 3, 3)), atol=1e-12)
    # Haar's measure: the first entry squared is beta(1/2, 1).
    assert stats.kstest(q[:, 0, 0] ** 2, stats.beta(0.5, 1.0).cdf).pvalue > 1e-3
    x = np.asarray(random.double_sided_maxwell(KEY, 1.0, 2.0, (N,)))
    assert stats.kstest(abs(x - 1.0) / 2.0, stats.maxwell().cdf).pvalue > 1e-3


def test_draws_without_replacement():
    for p in (None, np.array([0.1, 0.4, 0.2, 0.3])):
        drawn = np.sort(np.asarray(random.choice(KEY, 4, (4,), False, p)))
        np.testing.assert_array_equal(drawn, np.arange(4))
