"""The normal distribution and its relatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.values import ArrayLike, Value
from .continuous import Continuous
from .derived import inverse, log1mexp
from .namespaces import Distribution
from .special import in_double as sp

INF = math.inf
LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)
ROOT_2 = math.sqrt(2)


def _logpdf(x: Value) -> Value:
    return -0.5 * x * x - LOG_ROOT_TAU


norm = Distribution(
    Continuous(
        name="norm",
        summary="Normal distribution",
        density="exp(-x**2 / 2) / sqrt(2 * pi)",
        symmetric=True,
        logpdf=_logpdf,
        cdf=sp.ndtr,
        logcdf=sp.log_ndtr,
        ppf=sp.ndtri,
        entropy=lambda: LOG_ROOT_TAU + 0.5,
    )
)

lognorm = Distribution(
    Continuous(
        name="lognorm",
        summary="Log-normal distribution",
        density="exp(-log(x)**2 / (2 * s**2)) / (s * x * sqrt(2 * pi)) for x > 0",
        shapes=("s",),
        example=(0.7, 1.5),
        support=(0.0, INF),
        at_ends="zero",
        inside=1.0,
        logpdf=lambda x, s: _logpdf(np.log(x) / s) - np.log(s) - np.log(x),
        cdf=lambda x, s: sp.ndtr(np.log(x) / s),
        sf=lambda x, s: sp.ndtr(-np.log(x) / s),
        logcdf=lambda x, s: sp.log_ndtr(np.log(x) / s),
        logsf=lambda x, s: sp.log_ndtr(-np.log(x) / s),
        ppf=lambda q, s: np.exp(s * sp.ndtri(q)),
        isf=lambda q, s: np.exp(-s * sp.ndtri(q)),
        entropy=lambda s: LOG_ROOT_TAU + 0.5 + np.log(s),
    )
)

halfnorm = Distribution(
    Continuous(
        name="halfnorm",
        summary="Half-normal distribution",
        density="sqrt(2 / pi) * exp(-x**2 / 2) for x >= 0",
        support=(0.0, INF),
        logpdf=lambda x: _logpdf(x) + math.log(2),
        cdf=lambda x: sp.erf(x / ROOT_2),
        sf=lambda x: sp.erfc(x / ROOT_2),
        logsf=lambda x: sp.log_ndtr(-x) + math.log(2),
        ppf=lambda q: ROOT_2 * sp.erfinv(q),
        isf=lambda q: -sp.ndtri(0.5 * q),
        entropy=lambda: LOG_ROOT_TAU + 0.5 - math.log(2),
    )
)

# --- truncated ------------------------------------------------------------------------------------------------


def _log_mass(a: Value, b: Value) -> Value:
    """The logarithm of the probability between `a` and `b`, for ``a < b``."""
    right = a > 0
    a, b = np.where(right, -b, a), np.where(right, -a, b)  # so that most lies below 0
    one_side = b <= 0
    top = sp.log_ndtr(np.where(one_side, b, 0.0))
    below = top + log1mexp(sp.log_ndtr(np.where(one_side, a, -1.0)) - top)
    outside = sp.ndtr(np.where(one_side, -1.0, a)) + sp.ndtr(np.where(one_side, -1.0, -b))
    return np.where(one_side, below, np.log1p(-outside))


def _truncated_log(part: Any, other: ArrayLike, whole: Any) -> Value:
    """``log(part / whole)``, where ``part + other = whole``: accurate near 0."""
    value = part - whole
    near = value > -0.1
    return np.where(near, np.log1p(-np.exp(np.where(near, other - whole, -1.0))), value)


def _truncated_logcdf(x: Value, a: Value, b: Value) -> Value:
    return _truncated_log(_log_mass(a, x), _log_mass(x, b), _log_mass(a, b))


def _truncated_logsf(x: Value, a: Value, b: Value) -> Value:
    return _truncated_log(_log_mass(x, b), _log_mass(a, x), _log_mass(a, b))


def _truncated_ppf(q: Value, a: Value, b: Value) -> Value:
    right = a > 0
    log_q = np.where(right, np.log1p(-q), np.log(q))
    edge = sp.log_ndtr(np.where(right, -b, a))
    x = sp.ndtri_exp(np.logaddexp(edge, log_q + _log_mass(a, b)))
    return np.minimum(np.maximum(np.where(right, -x, x), a), b)


def _truncated_isf(q: Value, a: Value, b: Value) -> Value:
    return -_truncated_ppf(q, -b, -a)


def _between(a: Value, b: Value) -> Value:
    """A point between `a` and `b`, also if they are infinite."""
    low, high = np.maximum(a, np.minimum(b - 1, -1.0)), np.minimum(b, np.maximum(a + 1, 1.0))
    return 0.5 * (low + high)


def _truncated_logpdf(x: Value, a: Value, b: Value) -> Value:
    return _logpdf(x) - _log_mass(a, b)


truncnorm = Distribution(
    Continuous(
        name="truncnorm",
        summary="Truncated normal distribution",
        density="exp(-x**2 / 2) / (sqrt(2 * pi) * (ndtr(b) - ndtr(a))) for a <= x <= b",
        shapes=("a", "b"),
        example=(0.4, -1.5, 2.5),
        support=lambda a, b: (a, b),
        valid=lambda a, b: a < b,
        conditions="``a < b``",
        inside=_between,
        logpdf=_truncated_logpdf,
        logcdf=_truncated_logcdf,
        logsf=_truncated_logsf,
        ppf=inverse(_truncated_ppf, lambda x, a, b: np.exp(_truncated_logcdf(x, a, b)), _truncated_logpdf),
        isf=inverse(
            _truncated_isf, lambda x, a, b: np.exp(_truncated_logsf(x, a, b)), _truncated_logpdf, -1.0
        ),
    )
)
