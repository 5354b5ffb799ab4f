"""Distributions whose functions are elementary."""

from __future__ import annotations

import math

import numpy as np

from ...core.values import Value
from .continuous import Continuous
from .derived import log1mexpexp
from .namespaces import Distribution
from .special import in_double as sp

INF = math.inf
LOG_PI = math.log(math.pi)
EULER = float(np.euler_gamma)

uniform = Distribution(
    Continuous(
        name="uniform",
        summary="Uniform distribution on an interval",
        density="1 for 0 <= x <= 1",
        support=(0.0, 1.0),
        logpdf=lambda x: 0.0 * x,
        cdf=lambda x: x,
        sf=lambda x: 1.0 - x,
        ppf=lambda q: q,
        isf=lambda q: 1.0 - q,
        entropy=lambda: 0.0,
    )
)

expon = Distribution(
    Continuous(
        name="expon",
        summary="Exponential distribution",
        density="exp(-x) for x >= 0",
        support=(0.0, INF),
        logpdf=lambda x: -x,
        logsf=lambda x: -x,
        ppf=lambda q: -np.log1p(-q),
        isf=lambda q: -np.log(q),
        entropy=lambda: 1.0,
    )
)

laplace = Distribution(
    Continuous(
        name="laplace",
        summary="Laplace distribution",
        density="exp(-abs(x)) / 2",
        symmetric=True,
        logpdf=lambda x: -np.abs(x) - math.log(2),
        logcdf=lambda x: np.where(x < 0, x - math.log(2), np.log1p(-0.5 * np.exp(-np.abs(x)))),
        ppf=lambda q: np.where(q < 0.5, np.log(2 * q), -np.log(2 * (1 - q))),
        entropy=lambda: math.log(2) + 1,
    )
)

logistic = Distribution(
    Continuous(
        name="logistic",
        summary="Logistic distribution",
        density="exp(-x) / (1 + exp(-x))**2",
        symmetric=True,
        logpdf=lambda x: -x - 2 * np.logaddexp(0, -x),
        cdf=sp.expit,
        logcdf=lambda x: -np.logaddexp(0, -x),
        ppf=sp.logit,
        entropy=lambda: 2.0,
    )
)

gumbel_r = Distribution(
    Continuous(
        name="gumbel_r",
        summary="Gumbel distribution of maxima",
        density="exp(-x - exp(-x))",
        logpdf=lambda x: -x - np.exp(-x),
        logcdf=lambda x: -np.exp(-x),
        logsf=lambda x: log1mexpexp(-x),
        ppf=lambda q: -np.log(-np.log(q)),
        isf=lambda q: -np.log(-np.log1p(-q)),
        entropy=lambda: EULER + 1,
    )
)

gumbel_l = Distribution(
    Continuous(
        name="gumbel_l",
        summary="Gumbel distribution of minima",
        density="exp(x - exp(x))",
        logpdf=lambda x: x - np.exp(x),
        logsf=lambda x: -np.exp(x),
        logcdf=lambda x: log1mexpexp(x),
        ppf=lambda q: np.log(-np.log1p(-q)),
        isf=lambda q: np.log(-np.log(q)),
        entropy=lambda: EULER + 1,
    )
)


def _cot(q: Value) -> Value:
    """``cot(pi * q)`` for `q` from 0 to 1, accurate near 0, 1/2 and 1."""
    low, high = q < 0.25, q > 0.75
    tan = np.tan(math.pi * np.where(low, q, np.where(high, 1 - q, 0.5 - q)))
    steep = low | high
    steeply = 1 / np.where(steep, tan, 1.0)
    return np.where(steep, np.where(low, steeply, -steeply), tan)


cauchy = Distribution(
    Continuous(
        name="cauchy",
        summary="Cauchy distribution",
        density="1 / (pi * (1 + x**2))",
        symmetric=True,
        logpdf=lambda x: -LOG_PI - 2 * np.log(np.hypot(1.0, x)),
        cdf=lambda x: np.arctan2(1.0, -x) / math.pi,
        ppf=lambda q: -_cot(q),
        entropy=lambda: math.log(4 * math.pi),
    )
)

weibull_min = Distribution(
    Continuous(
        name="weibull_min",
        summary="Weibull distribution of minima",
        density="c * x**(c - 1) * exp(-x**c) for x >= 0",
        shapes=("c",),
        example=(0.7, 1.5),
        support=(0.0, INF),
        at_ends="guarded",
        logpdf=lambda x, c: np.log(c) + sp.xlogy(c - 1, x) - x**c,
        logsf=lambda x, c: -(x**c),
        logcdf=lambda x, c: log1mexpexp(c * np.log(x)),
        ppf=lambda q, c: (-np.log1p(-q)) ** (1 / c),
        isf=lambda q, c: (-np.log(q)) ** (1 / c),
        entropy=lambda c: EULER * (1 - 1 / c) - np.log(c) + 1,
    )
)

rayleigh = Distribution(
    Continuous(
        name="rayleigh",
        summary="Rayleigh distribution",
        density="x * exp(-x**2 / 2) for x >= 0",
        support=(0.0, INF),
        at_ends="zero",
        logpdf=lambda x: np.log(x) - 0.5 * x * x,
        logsf=lambda x: -0.5 * x * x,
        logcdf=lambda x: log1mexpexp(2 * np.log(x) - math.log(2)),
        ppf=lambda q: np.sqrt(-2 * np.log1p(-q)),
        isf=lambda q: np.sqrt(-2 * np.log(q)),
        entropy=lambda: EULER / 2 + 1 - math.log(2) / 2,
    )
)

pareto = Distribution(
    Continuous(
        name="pareto",
        summary="Pareto distribution",
        density="b / x**(b + 1) for x >= 1",
        shapes=("b",),
        example=(1.7, 1.5),
        support=(1.0, INF),
        inside=2.0,
        logpdf=lambda x, b: np.log(b) - (b + 1) * np.log(x),
        logsf=lambda x, b: -b * np.log(x),
        ppf=lambda q, b: np.exp(-np.log1p(-q) / b),
        isf=lambda q, b: np.exp(-np.log(q) / b),
        entropy=lambda b: 1 + 1 / b - np.log(b),
    )
)
