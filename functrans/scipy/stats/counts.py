"""Distributions of counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...api.vmap import vmap
from ...core.kernel import BlockEmitter, IndexEmitter
from ...core.values import ArrayLike, PyTree, Value
from ...lax.control_flow.while_loops import while_loop
from ...primitives import ops, special_ops
from .betas import betaincc
from .derived import log1mexp, together
from .discrete import Discrete, whole
from .namespaces import Distribution
from .special import in_double as sp

INF = math.inf


def _is_probability(p: ArrayLike) -> Value:
    return (p >= 0) & (p <= 1)


def _log_binomial(n: ArrayLike, k: ArrayLike) -> Any:
    """The logarithm of ``n! / (k! (n - k)!)``."""
    return -sp.betaln(n - k + 1, k + 1) - np.log1p(n)


def _each(function: Callable[..., PyTree], *operands: ArrayLike) -> Any:
    """A function of numbers of each element of the operands, which are broadcast; loops run as long as each needs."""
    arrays = together(*operands)
    shape = np.shape(arrays[0])
    if 0 in shape:
        return arrays[0]
    return np.reshape(vmap(function)(*[np.reshape(x, -1) for x in arrays]), shape)


def _entropy(logpmf: Callable[..., Any], window: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of ``-p * log(p)`` over the integers between the ends, outside of which it is negligible."""

    def of_numbers(*shapes: ArrayLike) -> Any:
        low, high = map(ops.stop_gradient_p.bind, window(*shapes))

        def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
            k, total = state
            log = logpmf(k, *shapes)
            possible = log > -math.inf
            log = np.where(possible, log, 0.0)
            return k + 1, total - np.where(possible, log * np.exp(log), 0.0)

        return while_loop(lambda state: state[0] <= high, step, (np.floor(low), 0.0 * high))[1]

    return lambda *shapes: _each(of_numbers, *shapes)


def _around(mean: Value, deviation: ArrayLike, tail: ArrayLike = 0.0) -> tuple[Any, Any]:
    """Ends far from the mean."""
    return np.maximum(mean - 12 * deviation - 12, 0.0), mean + 12 * deviation + 30 + tail


bernoulli = Distribution(
    Discrete(
        name="bernoulli",
        summary="Bernoulli distribution",
        density="p for k = 1, 1 - p for k = 0",
        shapes=("p",),
        example=(1, 0.3),
        support=lambda p: (0.0, 1.0),
        valid=_is_probability,
        conditions="0 <= p <= 1",
        inside=lambda p: np.where(p < 1, 0.0 * p, 1.0),
        logpmf=lambda k, p: sp.xlogy(k, p) + sp.xlog1py(1 - k, -p),
        pmf=lambda k, p: np.where(k == 0, 1 - p, p),
        cdf=lambda k, p: 1 - p,
        sf=lambda k, p: p,
        ppf=lambda q, p: np.where(q > 1 - p, 1.0, 0.0 * q),
        entropy=lambda p: sp.entr(p) + sp.entr(1 - p),
    )
)


def _binom_logpmf(k: BlockEmitter, n: ArrayLike, p: ArrayLike) -> Any:
    return _log_binomial(n, k) + sp.xlogy(k, p) + sp.xlog1py(n - k, -p)


def _binom_window(n: ArrayLike, p: ArrayLike) -> tuple[Any, Any]:
    low, high = _around(n * p, np.sqrt(n * p * (1 - p)))
    return low, np.minimum(high, n)


binom = Distribution(
    Discrete(
        name="binom",
        summary="Binomial distribution",
        density="n! / (k! (n - k)!) * p**k * (1 - p)**(n - k) for 0 <= k <= n",
        shapes=("n", "p"),
        example=(2, 5, 0.3),
        support=lambda n, p: (0.0, n),
        valid=lambda n, p: (n >= 0) & whole(n) & _is_probability(p),
        conditions="n is an integer >= 0 and 0 <= p <= 1",
        logpmf=_binom_logpmf,
        inside=lambda n, p: np.where(p < 1, 0.0, n),
        cdf=lambda k, n, p: betaincc(k + 1, np.maximum(n - k, 1.0), p),
        sf=lambda k, n, p: sp.betainc(k + 1, np.maximum(n - k, 1.0), p),
        ppf=lambda q, n, p: special_ops.bdtrik_p.bind(q, n, p),
        entropy=_entropy(_binom_logpmf, _binom_window),
    )
)

geom = Distribution(
    Discrete(
        name="geom",
        summary="Geometric distribution",
        density="(1 - p)**(k - 1) * p for k >= 1",
        shapes=("p",),
        example=(2, 0.3),
        support=lambda p: (1.0, INF),
        valid=lambda p: (p > 0) & (p <= 1),
        conditions="0 < p <= 1",
        logpmf=lambda k, p: sp.xlog1py(k - 1, -p) + np.log(p),
        logsf=lambda k, p: np.where(p < 1, k * np.log1p(-np.where(p < 1, p, 0.5)), -INF),
        ppf=lambda q, p: np.log1p(-q) / np.log1p(-p),
        entropy=lambda p: sp.entr(p) / p + sp.entr(1 - p) / p,
    )
)


def _nbinom_logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Any:
    return n * np.log(p) + sp.xlog1py(k, -p) - sp.betaln(n, k + 1) - np.log(n + k)


def _nbinom_window(n: ArrayLike, p: ArrayLike) -> tuple[Any, Any]:
    return _around(n * (1 - p) / p, np.sqrt(n * (1 - p)) / p, 50 / p)


nbinom = Distribution(
    Discrete(
        name="nbinom",
        summary="Negative binomial distribution, of the failures before success number n",
        density="gamma(k + n) / (k! * gamma(n)) * p**n * (1 - p)**k for k >= 0",
        shapes=("n", "p"),
        example=(2, 5, 0.3),
        support=lambda n, p: (0.0, INF),
        valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
        conditions="n > 0 and 0 < p <= 1",
        logpmf=_nbinom_logpmf,
        cdf=lambda k, n, p: sp.betainc(n, k + 1, p),
        sf=lambda k, n, p: betaincc(n, k + 1, p),
        ppf=lambda q, n, p: np.where(p < 1, special_ops.nbdtrik_p.bind(q, n, p), 0.0),
        entropy=_entropy(_nbinom_logpmf, _nbinom_window),
    )
)


def _poisson_logpmf(k: ArrayLike, mu: ArrayLike) -> Any:
    return sp.xlogy(k, mu) - sp.gammaln(k + 1) - mu


poisson = Distribution(
    Discrete(
        name="poisson",
        summary="Poisson distribution",
        density="mu**k * exp(-mu) / k! for k >= 0",
        shapes=("mu",),
        example=(2, 1.7),
        support=lambda mu: (0.0, INF),
        valid=lambda mu: mu >= 0,
        conditions="mu >= 0",
        logpmf=_poisson_logpmf,
        cdf=lambda k, mu: sp.gammaincc(k + 1, mu),
        sf=lambda k, mu: sp.gammainc(k + 1, mu),
        ppf=lambda q, mu: special_ops.pdtrik_p.bind(q, mu),
        entropy=_entropy(_poisson_logpmf, lambda mu: _around(mu, np.sqrt(mu))),
    )
)

# --- beta-binomial --------------------------------------------------------------------------------------------


def _betabinom_logpmf(k: BlockEmitter, n: ArrayLike, a: ArrayLike, b: ArrayLike) -> Any:
    return _log_binomial(n, k) + sp.betaln(k + a, n - k + b) - sp.betaln(a, b)


def _sum_down(k: IndexEmitter, n: ArrayLike, a: ArrayLike, b: ArrayLike) -> Any:
    """The sum of the probabilities of 0 to `k` over that of `k`, of numbers: products of ratios of neighbours."""

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        j, term, total = state
        term = term * (j * (n - j + b) / ((n - j + 1) * (j - 1 + a)))
        return j - 1, term, total + term

    one = np.ones_like(k)
    return while_loop(lambda state: state[0] > 0, step, (ops.stop_gradient_p.bind(k), one, one))[2]


def _betabinom_log(lower: bool) -> Callable[..., Any]:
    """The logarithm of the probability up to `k`, or above it: the sum of the smaller side."""

    def formula(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike) -> Any:
        k, n, a, b = together(k, np.maximum(n, 1.0), a, b)
        below = k * (a + b) < n * a
        # n - k has the same distribution with a and b exchanged.
        near = np.where(below, k, np.maximum(n - k - 1, 0.0))
        first, second = np.where(below, a, b), np.where(below, b, a)
        side = np.log(_each(_sum_down, near, n, first, second)) + _betabinom_logpmf(near, n, first, second)
        return np.where(below == lower, side, log1mexp(np.where(below == lower, -1.0, side)))

    return formula


def _betabinom_ppf(q: Value, n: ArrayLike, a: Value, b: Value) -> Any:
    """By bisection."""
    q, n, a, b = together(q, n, a, b)
    logcdf = _betabinom_log(lower=True)

    def halve(ends: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = ends  # cdf(low) < q <= cdf(high)
        middle = np.floor(0.5 * (low + high))
        inner = np.maximum(np.minimum(middle, n - 1), 0.0)
        enough = (middle >= n) | ((middle >= 0) & (np.exp(logcdf(inner, n, a, b)) >= q))
        return np.where(enough, low, middle), np.where(enough, middle, high)

    def apart(ends: tuple[Any, Any]) -> Any:
        return np.any(ends[1] - ends[0] > 1)

    return while_loop(apart, halve, (np.zeros_like(q) - 1, n))[1]


betabinom = Distribution(
    Discrete(
        name="betabinom",
        summary="Beta-binomial distribution",
        density="n! / (k! (n - k)!) * beta(k + a, n - k + b) / beta(a, b) for 0 <= k <= n",
        shapes=("n", "a", "b"),
        example=(2, 5, 1.3, 2.2),
        support=lambda n, a, b: (0.0, n),
        valid=lambda n, a, b: (n >= 0) & whole(n) & (a > 0) & (b > 0),
        conditions="n is an integer >= 0, a > 0 and b > 0",
        logpmf=_betabinom_logpmf,
        logcdf=_betabinom_log(lower=True),
        logsf=_betabinom_log(lower=False),
        ppf=_betabinom_ppf,
        entropy=_entropy(_betabinom_logpmf, lambda n, a, b: (0.0 * n, n)),
    )
)
