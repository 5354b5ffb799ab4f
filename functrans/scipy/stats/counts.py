"""Distributions of counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sp

from ...primitives import special_ops as ops
from .discrete import Discrete, whole
from .namespaces import Distribution

INF = math.inf


def _is_probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def _log_binomial(n: Any, k: Any) -> Any:
    """The logarithm of ``n! / (k! (n - k)!)``."""
    return -sp.betaln(n - k + 1, k + 1) - np.log1p(n)


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
        logpmf=lambda k, p: np.where(k == 0, np.log1p(-p), np.log(p)),
        pmf=lambda k, p: np.where(k == 0, 1 - p, p),
        cdf=lambda k, p: 1 - p,
        sf=lambda k, p: p,
        ppf=lambda q, p: np.where(q > 1 - p, 1.0, 0.0),
        entropy=lambda p: sp.entr(p) + sp.entr(1 - p),
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
        logsf=lambda k, p: k * np.log1p(-p),
        ppf=lambda q, p: np.log1p(-q) / np.log1p(-p),
        entropy=lambda p: sp.entr(p) / p + sp.entr(1 - p) / p,
    )
)

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
        logpmf=lambda k, mu: sp.xlogy(k, mu) - sp.gammaln(k + 1) - mu,
        cdf=lambda k, mu: sp.gammaincc(k + 1, mu),
        sf=lambda k, mu: sp.gammainc(k + 1, mu),
        ppf=lambda q, mu: ops.pdtrik_p.bind(q, mu),
    )
)

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
        logpmf=lambda k, n, a, b: _log_binomial(n, k) + sp.betaln(k + a, n - k + b) - sp.betaln(a, b),
    )
)
