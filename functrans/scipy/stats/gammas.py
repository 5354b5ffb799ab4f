"""The gamma distribution and its relatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.values import ArrayLike, Value
from ...lax.control_flow.branching import cond
from ...primitives import ops
from .continuous import Continuous
from .derived import inverse, log_of_probability, together, with_density
from .namespaces import Distribution
from .special import in_double as sp

INF = math.inf
LOG_2 = math.log(2)


_LARGE = 30.0
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _by_stirling(y: Value, a: Value) -> Value:
    """The logarithm of ``y**a * exp(-y) / gamma(a)`` for large `a`, whose three terms cancel (DLMF 5.11.1)."""
    outside = (y <= 0) | (y >= INF)
    y = np.where(outside, a, y)
    near = np.abs(y - a) < 0.5 * a
    apart = (np.where(near, y, a) - a) / a
    far = a * (np.log(y) - np.log(a)) + (a - y)
    r = 1 / a
    rest = r * (1 / 12 - r * r * (1 / 360 - r * r * (1 / 1260 - r * r / 1680)))
    value = np.where(near, a * (np.log1p(apart) - apart), far) + 0.5 * np.log(a) - _HALF_LOG_TAU - rest
    return np.where(outside, -INF, value)


def _gamma_logpdf(x: Value, a: Value) -> Value:
    large = a > _LARGE
    few, many = np.where(large, 1.0, a), np.where(large, a, _LARGE)
    series = _by_stirling(x, many) - np.log(np.where(large & (x > 0), x, 1.0))
    return np.where(large, series, sp.xlogy(few - 1, x) - x - sp.gammaln(few))


def _invgamma_logpdf(x: Value, a: Value) -> Value:
    large = a > _LARGE
    few, many = np.where(large, 1.0, a), np.where(large, a, _LARGE)
    log = np.log(x)
    return np.where(large, _by_stirling(1 / x, many) - log, -(few + 1) * log - sp.gammaln(few) - 1 / x)


_STIRLING = (-1 / 3, -1 / 12, -1 / 90, 1 / 120, 1 / 210, -1 / 252, -1 / 210, 1 / 240)


def gamma_entropy(a: ArrayLike, more: int = 0) -> Any:
    """``a + gammaln(a) + (1 + more - a) * psi(a)``; where these cancel, by their series (DLMF 5.11.1 and 5.11.2)."""
    large = a > 30
    x, y = np.where(large, 1.0, a), 1 / np.where(large, a, 1.0)
    series = 0 * y
    for term in reversed(_STIRLING):
        series = (series + term) * y
    series = series + 0.5 * (1 + math.log(2 * math.pi) - np.log(y))
    if more:
        series = series + more * sp.psi(np.where(large, a, 1.0))
    return np.where(large, series, x + sp.gammaln(x) + (1 + more - x) * sp.psi(x))


# --- logarithms of tails --------------------------------------------------------------------------------------

_ABSCISSAS, _WEIGHTS = (0.5 * x for x in np.polynomial.legendre.leggauss(40))
_DROP = 37.5
"""Integrals end where the integrand has fallen by ``exp(-_DROP)`` or more."""
_LOST = 1e-290
"""Probabilities below this have lost digits, or all of them."""


def _log_tail(exponent: Callable[..., Any], rate: Value, x: Value, a: Value) -> Value:
    """The logarithm of the integral of ``exp(exponent(s))`` for positive `s`, which falls at least at a rate at 0."""
    end = ops.stop_gradient_p.bind(_DROP / rate)
    s = end[..., None] * (0.5 + _ABSCISSAS).astype(ops.dtype_of(end))
    total = np.sum(
        np.exp(exponent(s, x[..., None], a[..., None])) * _WEIGHTS.astype(ops.dtype_of(end)), axis=-1
    )
    return np.log(end) + np.log(total)


def _log_above(x: Value, a: Value) -> Value:
    """The logarithm of ``gammaincc(a, x)`` far above `a` (DLMF 8.2.2, with ``t = x + s``)."""
    log = _log_tail(lambda s, x, a: (a - 1) * np.log1p(s / x) - s, np.minimum((x - a + 1) / x, 1.0), x, a)
    return _gamma_logpdf(x, a) + log


def _log_below(x: Value, a: Value) -> Value:
    """The logarithm of ``gammainc(a, x)`` far below `a` (DLMF 8.2.1, with ``t = x * exp(-s)``)."""
    log = _log_tail(lambda s, x, a: -a * s - x * np.expm1(-s), a - x, x, a)
    return _gamma_logpdf(x, a) + np.log(x) + log


def _log_probability(
    small: Callable[..., Any], large: Callable[..., Any], tail: Callable[..., Any], far: Callable[..., Any]
) -> Callable[..., Any]:
    """The logarithm of `small`, computed as that of its `tail` if one of the values has lost digits."""
    log_of = log_of_probability(small, large)

    def formula(x: ArrayLike, a: ArrayLike) -> Any:
        x, a = together(x, a)
        value = log_of(x, a)
        lost = small(*map(ops.stop_gradient_p.bind, (x, a))) < _LOST
        safe = np.where(lost, x, far(a))
        return np.where(lost, cond(np.any(lost), tail, lambda x, a: 0 * x * a, safe, a), value)

    return formula


def _cdf(x: Value, a: Value) -> Any:
    return sp.gammainc(a, x)


def _sf(x: Value, a: Value) -> Any:
    return sp.gammaincc(a, x)


_logcdf = _log_probability(_cdf, _sf, _log_below, lambda a: 0.5 * a)
_logsf = _log_probability(_sf, _cdf, _log_above, lambda a: 2 * a + 1)

gamma = Distribution(
    Continuous(
        name="gamma",
        summary="Gamma distribution",
        density="x**(a - 1) * exp(-x) / gamma(a) for x >= 0",
        shapes=("a",),
        example=(0.7, 1.5),
        support=(0.0, INF),
        at_ends="guarded",
        logpdf=_gamma_logpdf,
        cdf=_cdf,
        sf=_sf,
        logcdf=_logcdf,
        logsf=_logsf,
        ppf=lambda q, a: sp.gammaincinv(a, q),
        isf=lambda q, a: sp.gammainccinv(a, q),
        entropy=lambda a: gamma_entropy(a),
    )
)

chi2 = Distribution(
    Continuous(
        name="chi2",
        summary="Chi-squared distribution",
        density="x**(df / 2 - 1) * exp(-x / 2) / (2**(df / 2) * gamma(df / 2)) for x >= 0",
        shapes=("df",),
        example=(0.7, 2.5),
        support=(0.0, INF),
        at_ends="guarded",
        logpdf=lambda x, df: _gamma_logpdf(0.5 * x, 0.5 * df) - LOG_2,
        cdf=lambda x, df: sp.gammainc(0.5 * df, 0.5 * x),
        sf=lambda x, df: sp.gammaincc(0.5 * df, 0.5 * x),
        logcdf=lambda x, df: _logcdf(0.5 * x, 0.5 * df),
        logsf=lambda x, df: _logsf(0.5 * x, 0.5 * df),
        ppf=lambda q, df: 2 * sp.gammaincinv(0.5 * df, q),
        isf=lambda q, df: 2 * sp.gammainccinv(0.5 * df, q),
        entropy=lambda df: gamma_entropy(0.5 * df) + LOG_2,
    )
)


def _like(number: float, x: Value) -> Value:
    """A number with the dtype and shape of an array: special functions take Python numbers as float64."""
    return np.full_like(x, number)


def _maxwell_logcdf(x: Value) -> Value:
    """Squares of numbers below 1e-162 are 0, and above 1e154 infinite: one term of DLMF 8.7.1, and a logarithm of 1."""
    small = x < 1e-8
    series = 0.5 * math.log(2 / math.pi) - math.log(3) + 3 * np.log(x)
    half = 0.5 * np.square(np.where(small, 1.0, np.minimum(x, 1e15)))
    return np.where(small, series, _logcdf(half, _like(1.5, half)))


def _maxwell_logsf(x: Value) -> Value:
    """The logarithm of ``erfc(x / sqrt(2)) + x * norm.pdf(x) * 2``, by parts; far out, of the exponential."""
    far = x > 1e15
    y = np.where(far, 1.0, x)
    second = 0.5 * math.log(2 / math.pi) + np.log(y) - 0.5 * y * y
    return np.where(far, -0.5 * x * x, np.logaddexp(LOG_2 + sp.log_ndtr(-y), second))


maxwell = Distribution(
    Continuous(
        name="maxwell",
        summary="Maxwell distribution, of the lengths of three-dimensional standard normal vectors",
        density="sqrt(2 / pi) * x**2 * exp(-x**2 / 2) for x >= 0",
        support=(0.0, INF),
        at_ends="zero",
        logpdf=lambda x: 0.5 * math.log(2 / math.pi) + 2 * np.log(x) - 0.5 * x * x,
        cdf=lambda x: _cdf(0.5 * x * x, _like(1.5, x)),
        sf=lambda x: _sf(0.5 * x * x, _like(1.5, x)),
        logcdf=_maxwell_logcdf,
        logsf=_maxwell_logsf,
        ppf=lambda q: np.sqrt(2 * sp.gammaincinv(_like(1.5, q), q)),
        isf=lambda q: np.sqrt(2 * sp.gammainccinv(_like(1.5, q), q)),
        entropy=lambda: float(np.euler_gamma) + 0.5 * math.log(2 * math.pi) - 0.5,
    )
)

invgamma = Distribution(
    Continuous(
        name="invgamma",
        summary="Inverse gamma distribution",
        density="x**(-a - 1) * exp(-1 / x) / gamma(a) for x > 0",
        shapes=("a",),
        example=(0.7, 1.5),
        support=(0.0, INF),
        at_ends="zero",
        logpdf=_invgamma_logpdf,
        cdf=lambda x, a: sp.gammaincc(a, 1 / x),
        sf=lambda x, a: sp.gammainc(a, 1 / x),
        logcdf=lambda x, a: _logsf(1 / x, a),
        logsf=lambda x, a: _logcdf(1 / x, a),
        ppf=lambda q, a: 1 / sp.gammainccinv(a, q),
        isf=lambda q, a: 1 / sp.gammaincinv(a, q),
        entropy=lambda a: gamma_entropy(a, -2),
    )
)


def _power(x: ArrayLike, beta: Value) -> Value:
    """``abs(x)**beta``, whose derivative in `beta` is 0 at 0."""
    zero = x == 0
    return np.where(zero, 0.0, np.abs(np.where(zero, 1.0, x)) ** beta)


def _gennorm_logpdf(x: Value, beta: Value) -> Value:
    return np.log(0.5 * beta) - sp.gammaln(1 / beta) - _power(x, beta)


def _gennorm_cdf(x: Value, beta: Value) -> Value:
    far = beta * np.log(np.abs(x)) > 20  # the tail is 0
    tail = np.where(far, 0.0, 0.5 * sp.gammaincc(1 / beta, _power(np.where(far, 1.0, x), beta)))
    return np.where(x < 0, tail, 1 - tail)


def _gennorm_ppf(q: Value, beta: Value) -> Value:
    size = sp.gammainccinv(1 / beta, 2 * np.minimum(q, 1 - q)) ** (1 / beta)
    return np.where(q < 0.5, -size, size)


_gennorm_smooth_cdf = with_density(_gennorm_cdf, _gennorm_logpdf)

gennorm = Distribution(
    Continuous(
        name="gennorm",
        summary="Generalised normal distribution",
        density="beta / (2 * gamma(1 / beta)) * exp(-abs(x)**beta)",
        shapes=("beta",),
        example=(0.7, 1.5),
        symmetric=True,
        logpdf=_gennorm_logpdf,
        cdf=_gennorm_smooth_cdf,
        ppf=inverse(_gennorm_ppf, _gennorm_smooth_cdf, _gennorm_logpdf),
        entropy=lambda beta: 1 / beta - np.log(0.5 * beta) + sp.gammaln(1 / beta),
    )
)
