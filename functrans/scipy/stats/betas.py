"""The beta distribution and its relatives: F, Student's t."""

from __future__ import annotations

import math

import numpy as np

from ...core.values import ArrayLike, Value
from ...primitives import special_ops
from .continuous import Continuous
from .derived import inverse, with_density
from .gammas import gamma_entropy
from .namespaces import Distribution
from .special import in_double as sp

INF = math.inf
LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


def betaincc(a: Value, b: Value, x: Value) -> Value:
    """``1 - betainc(a, b, x)``, accurate where it is tiny, in a tenth of the time of SciPy's function."""
    high = x > np.minimum(0.01, a / (a + b))  # elsewhere 1 - x would lose digits of x
    part = sp.betainc(np.where(high, b, a), np.where(high, a, b), np.where(high, 1 - x, x))
    return np.where(high, part, 1 - part)


def _beta_logpdf(x: Value, a: Value, b: Value) -> Value:
    return sp.xlog1py(b - 1, -x) + sp.xlogy(a - 1, x) - sp.betaln(a, b)


def _small_quantile(q: Value, a: Value, b: Value) -> tuple[Value, Value]:
    """Whether the quantile is so small that ``x**a / (a * beta(a, b)) = q``, and that `x`."""
    log = (np.log(q) + np.log(a) + sp.betaln(a, b)) / a
    small = log + np.log(np.maximum(b, 1.0)) < -40
    return small, np.exp(np.where(small, log, 0.0))


def _betaincinv(q: Value, a: Value, b: Value) -> Value:
    """The inverse of `betainc`, which SciPy does not find if it is tiny."""
    small, x = _small_quantile(q, a, b)
    return np.where(small, x, sp.betaincinv(a, b, np.where(small, 0.5, q)))


def _betainccinv(q: Value, a: Value, b: Value) -> Value:
    small, x = _small_quantile(q, b, a)
    return np.where(small, 1 - x, sp.betainccinv(a, b, np.where(small, 0.5, q)))


beta = Distribution(
    Continuous(
        name="beta",
        summary="Beta distribution",
        density="x**(a - 1) * (1 - x)**(b - 1) / beta(a, b) for 0 <= x <= 1",
        shapes=("a", "b"),
        example=(0.4, 1.5, 2.5),
        support=(0.0, 1.0),
        at_ends="guarded",
        logpdf=_beta_logpdf,
        cdf=lambda x, a, b: sp.betainc(a, b, x),
        sf=lambda x, a, b: betaincc(a, b, x),
        ppf=inverse(_betaincinv, lambda x, a, b: sp.betainc(a, b, x), _beta_logpdf),
        isf=inverse(_betainccinv, lambda x, a, b: betaincc(a, b, x), _beta_logpdf, -1.0),
        entropy=lambda a, b: gamma_entropy(a) + gamma_entropy(b) - gamma_entropy(a + b, 1),
    )
)

# --- F --------------------------------------------------------------------------------------------------------


def _f_logpdf(x: Value, m: Value, n: Value) -> Value:
    ratio = m * x / n
    high = ratio > 1  # the powers of a large ratio cancel
    low = np.where(high, 1.0, ratio)
    inverse = n / (m * np.where(high, x, n / m))
    powers = sp.xlogy(0.5 * m - 1, low) - 0.5 * (m + n) * np.log1p(low)
    far = -0.5 * (m + n) * np.log1p(inverse) + (0.5 * n + 1) * np.log(inverse)
    return np.where(high, far, powers) + np.log(m / n) - sp.betaln(0.5 * m, 0.5 * n)


def _f_cdf(x: Value, m: Value, n: Value) -> Value:
    return sp.betainc(0.5 * m, 0.5 * n, m * x / (n + m * x))


def _f_sf(x: Value, m: Value, n: Value) -> Value:
    return sp.betainc(0.5 * n, 0.5 * m, n / (n + m * x))


def _f_quantile(q: Value, rest: Value, m: Value, n: Value) -> Value:
    """The value with probability `q` below and `rest` above, of which the smaller is accurate."""
    low = q < rest
    a, b = np.where(low, m, n), np.where(low, n, m)
    part = _betaincinv(np.where(low, q, rest), 0.5 * a, 0.5 * b)
    return n / m * np.where(low, part / (1 - part), (1 - part) / part)


f = Distribution(
    Continuous(
        name="f",
        summary="F distribution",
        density="(dfn / dfd)**(dfn / 2) * x**(dfn / 2 - 1) * (1 + dfn * x / dfd)**(-(dfn + dfd) / 2)"
        " / beta(dfn / 2, dfd / 2) for x >= 0",
        shapes=("dfn", "dfd"),
        example=(0.7, 3.5, 4.5),
        support=(0.0, INF),
        at_ends="guarded",
        logpdf=_f_logpdf,
        cdf=_f_cdf,
        sf=_f_sf,
        ppf=inverse(lambda q, m, n: _f_quantile(q, 1 - q, m, n), _f_cdf, _f_logpdf),
        isf=inverse(lambda q, m, n: _f_quantile(1 - q, q, m, n), _f_sf, _f_logpdf, -1.0),
    )
)

# --- Student's t ------------------------------------------------------------------------------------------------


def _t_logpdf(x: Value, df: Value) -> Value:
    finite = df < INF
    n = np.where(finite, df, 1.0)
    huge = np.abs(x) > 1e100  # the square would overflow
    size = np.where(huge, 1.0, x)
    log = np.where(huge, 2 * np.log(np.where(huge, np.abs(x), 1.0)) - np.log(n), np.log1p(size * size / n))
    power = 0.5 * (n + 1) * log
    return np.where(
        finite, -sp.betaln(0.5 * n, 0.5 + 0 * n) - 0.5 * np.log(n) - power, -0.5 * x * x - LOG_ROOT_TAU
    )


def _t_smooth_cdf(x: ArrayLike, df: Value) -> Value:
    """The distribution function, by functions that have derivatives in `df`."""
    inner = (x != 0) & (np.abs(x) < 1e100)
    square = np.where(inner, x * x, df)
    near = square < df
    half = np.where(near, 0.5, 0.5 * df)
    part = sp.betainc(half, np.where(near, 0.5 * df, 0.5), np.where(near, square, df) / (df + square))
    tail = np.where(inner, 0.5 * np.where(near, 1 - part, part), np.where(x == 0, 0.5, 0.0))
    return np.where(x < 0, tail, 1 - tail)


_t_cdf = with_density(
    lambda x, df: special_ops.stdtr_p.bind(df, x),
    _t_logpdf,
    smooth=lambda x, df: _t_smooth_cdf(x, np.where(df < INF, df, 1e300)),
)


def _t_ppf(q: Value, df: Value) -> Value:
    side = np.minimum(q, 1 - q)
    small, part = _small_quantile(2 * side, np.where(df < INF, 0.5 * df, 1e300), 0.5 + 0 * df)
    far = np.sqrt(df / np.where(small, part, 1.0))
    value = special_ops.stdtrit_p.bind(df, np.where(small, 0.5, q))
    return np.where(small, np.where(q < 0.5, -far, far), value)


t = Distribution(
    Continuous(
        name="t",
        summary="Student's t distribution",
        density="(1 + x**2 / df)**(-(df + 1) / 2) / (sqrt(df) * beta(df / 2, 1 / 2))",
        shapes=("df",),
        example=(0.7, 3.5),
        symmetric=True,
        logpdf=_t_logpdf,
        cdf=_t_cdf,
        ppf=inverse(_t_ppf, _t_cdf, _t_logpdf),
    )
)
