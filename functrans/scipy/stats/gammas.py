"""The gamma distribution and its relatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sp

from .continuous import Continuous
from .derived import inverse, with_density
from .namespaces import Distribution

INF = math.inf
LOG_2 = math.log(2)


def _gamma_logpdf(x: Any, a: Any) -> Any:
    return sp.xlogy(a - 1, x) - x - sp.gammaln(a)


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
        cdf=lambda x, a: sp.gammainc(a, x),
        sf=lambda x, a: sp.gammaincc(a, x),
        ppf=lambda q, a: sp.gammaincinv(a, q),
        isf=lambda q, a: sp.gammainccinv(a, q),
        entropy=lambda a: a + sp.gammaln(a) + (1 - a) * sp.psi(a),
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
        ppf=lambda q, df: 2 * sp.gammaincinv(0.5 * df, q),
        isf=lambda q, df: 2 * sp.gammainccinv(0.5 * df, q),
        entropy=lambda df: 0.5 * df + LOG_2 + sp.gammaln(0.5 * df) + (1 - 0.5 * df) * sp.psi(0.5 * df),
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
        logpdf=lambda x, a: -(a + 1) * np.log(x) - sp.gammaln(a) - 1 / x,
        cdf=lambda x, a: sp.gammaincc(a, 1 / x),
        sf=lambda x, a: sp.gammainc(a, 1 / x),
        ppf=lambda q, a: 1 / sp.gammainccinv(a, q),
        isf=lambda q, a: 1 / sp.gammaincinv(a, q),
        entropy=lambda a: a - (a + 1) * sp.psi(a) + sp.gammaln(a),
    )
)


def _power(x: Any, beta: Any) -> Any:
    """``abs(x)**beta``, whose derivative in `beta` is 0 at 0."""
    zero = x == 0
    return np.where(zero, 0.0, np.abs(np.where(zero, 1.0, x)) ** beta)


def _gennorm_logpdf(x: Any, beta: Any) -> Any:
    return np.log(0.5 * beta) - sp.gammaln(1 / beta) - _power(x, beta)


def _gennorm_cdf(x: Any, beta: Any) -> Any:
    far = beta * np.log(np.abs(x)) > 20  # the tail is 0
    tail = np.where(far, 0.0, 0.5 * sp.gammaincc(1 / beta, _power(np.where(far, 1.0, x), beta)))
    return np.where(x < 0, tail, 1 - tail)


def _gennorm_ppf(q: Any, beta: Any) -> Any:
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
