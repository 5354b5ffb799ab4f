"""Distributions of angles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.values import Value
from ...lax.control_flow.while_loops import fori_loop
from ...primitives import ops
from .continuous import Continuous
from .derived import inverse, together
from .namespaces import Distribution
from .special import in_double as sp

TAU = 2 * math.pi
LOG_TAU = math.log(TAU)


def _wrapped_quantile(sine: Any, cosine: Any, c: Value) -> Any:
    return 2 * np.arctan2((1 - c) * sine, (1 + c) * cosine)


wrapcauchy = Distribution(
    Continuous(
        name="wrapcauchy",
        summary="Wrapped Cauchy distribution",
        density="(1 - c**2) / (2 * pi * (1 + c**2 - 2 * c * cos(x))) for 0 <= x <= 2 * pi",
        shapes=("c",),
        example=(0.4, 0.3),
        support=(0.0, TAU),
        valid=lambda c: (c > 0) & (c < 1),
        conditions="``0 < c < 1``",
        logpdf=lambda x, c: np.log1p(-c * c) - LOG_TAU - np.log((1 - c) ** 2 + 4 * c * np.sin(0.5 * x) ** 2),
        cdf=lambda x, c: np.arctan2((1 + c) * np.sin(0.5 * x), (1 - c) * np.cos(0.5 * x)) / math.pi,
        sf=lambda x, c: np.arctan2((1 + c) * np.sin(0.5 * x), (c - 1) * np.cos(0.5 * x)) / math.pi,
        ppf=lambda q, c: _wrapped_quantile(np.sin(math.pi * q), np.cos(math.pi * q), c),
        isf=lambda q, c: _wrapped_quantile(np.sin(math.pi * q), -np.cos(math.pi * q), c),
        entropy=lambda c: LOG_TAU + np.log1p(-c * c),
    )
)

# --- von Mises ------------------------------------------------------------------------------------------------

_ABSCISSAS, _WEIGHTS = (0.5 * x for x in np.polynomial.legendre.leggauss(40))
_DROP = 37.5
"""Integrals end where the density has fallen by ``exp(-_DROP)``."""


def _vonmises_logpdf(x: Value, kappa: Value) -> Value:
    return -2 * kappa * np.sin(0.5 * x) ** 2 - LOG_TAU - np.log(sp.i0e(kappa))


def _log_tail(x: Value, kappa: Value) -> Value:
    """The logarithm of the probability from `x` to pi, for ``0 <= x < pi``, by Gauss's and Legendre's rule."""
    height = np.sin(0.5 * x) ** 2 + 0.5 * _DROP / kappa
    inner = height < 1
    end = np.where(inner, 2 * np.arcsin(np.sqrt(np.where(inner, height, 0.5))), math.pi)
    width = ops.stop_gradient_p.bind(end) - x
    steps = width[..., None] * (0.5 + _ABSCISSAS).astype(ops.dtype_of(width))
    fall = np.sin(0.5 * steps) * np.sin(x[..., None] + 0.5 * steps)
    terms = np.exp(-2 * kappa[..., None] * fall) * _WEIGHTS.astype(ops.dtype_of(width))
    return _vonmises_logpdf(x, kappa) + np.log(width) + np.log(np.sum(terms, axis=-1))


def _turns(x: Value) -> tuple[Any, Any]:
    """The angle from -pi to pi, and the number of turns left out."""
    turns = np.rint(x / TAU)
    angle = x - TAU * turns
    known, still = map(ops.stop_gradient_p.bind, (angle, x))
    # A huge angle is beyond the ends by rounding. Its derivative is kept.
    ends = np.where(known < 0, -math.pi, math.pi).astype(ops.dtype_of(angle)) + (x - still)
    return np.where(np.abs(known) > math.pi, ends, angle), turns


def _vonmises_logcdf(x: Value, kappa: Value) -> Value:
    x, kappa = together(x, kappa)
    angle, turns = _turns(x)
    left = angle < 0
    tail = _log_tail(np.abs(angle), kappa)
    value = np.where(left, tail, np.log1p(-np.exp(np.where(left, -1.0, tail))))
    beyond = turns != 0  # there SciPy's distribution function goes on beyond 0 and 1
    total = np.where(beyond, np.exp(value) + turns, 1.0)
    log = np.where(total == 0, -math.inf, np.log(np.where(total == 0, 1.0, total)))
    return np.where(beyond, log, value)


def _vonmises_cdf(x: Value, kappa: Value) -> Value:
    x, kappa = together(x, kappa)
    angle, turns = _turns(x)
    tail = np.exp(_log_tail(np.abs(angle), kappa))
    return np.where(angle < 0, tail, 1 - tail) + turns


def _vonmises_ppf(q: Value, kappa: Value) -> Value:
    """By bisection, up to rounding."""
    q, kappa = together(q, kappa)
    log_tail = np.log(np.minimum(q, 1 - q))

    def halve(_: object, ends: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = ends
        middle = 0.5 * (low + high)
        above = _log_tail(middle, kappa) > log_tail
        return np.where(above, middle, low), np.where(above, high, middle)

    zero = np.zeros_like(q)
    low, high = fori_loop(0, 54, halve, (zero, zero + math.pi))
    angle = np.where(np.minimum(q, 1 - q) == 0.5, 0.0, 0.5 * (low + high))
    return np.where(q < 0.5, -angle, angle)


vonmises = Distribution(
    Continuous(
        name="vonmises",
        summary="Von Mises distribution",
        density="exp(kappa * cos(x)) / (2 * pi * i0(kappa))",
        shapes=("kappa",),
        example=(0.4, 1.5),
        symmetric=True,
        valid=lambda kappa: kappa >= 0,
        conditions="``kappa >= 0``",
        logpdf=_vonmises_logpdf,
        cdf=_vonmises_cdf,
        logcdf=_vonmises_logcdf,
        ppf=inverse(_vonmises_ppf, _vonmises_cdf, _vonmises_logpdf),
        entropy=lambda kappa: LOG_TAU + np.log(sp.i0e(kappa)) + kappa * (1 - sp.i1e(kappa) / sp.i0e(kappa)),
    )
)
