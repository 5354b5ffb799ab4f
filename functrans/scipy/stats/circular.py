"""Distributions of angles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sp

from .continuous import Continuous
from .namespaces import Distribution

TAU = 2 * math.pi
LOG_TAU = math.log(TAU)


def _wrapped_quantile(sine: Any, cosine: Any, c: Any) -> Any:
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
        conditions="is between 0 and 1",
        logpdf=lambda x, c: np.log1p(-c * c) - LOG_TAU - np.log((1 - c) ** 2 + 4 * c * np.sin(0.5 * x) ** 2),
        cdf=lambda x, c: np.arctan2((1 + c) * np.sin(0.5 * x), (1 - c) * np.cos(0.5 * x)) / math.pi,
        sf=lambda x, c: np.arctan2((1 + c) * np.sin(0.5 * x), (c - 1) * np.cos(0.5 * x)) / math.pi,
        ppf=lambda q, c: _wrapped_quantile(np.sin(math.pi * q), np.cos(math.pi * q), c),
        isf=lambda q, c: _wrapped_quantile(np.sin(math.pi * q), -np.cos(math.pi * q), c),
        entropy=lambda c: LOG_TAU + np.log1p(-c * c),
    )
)

vonmises = Distribution(
    Continuous(
        name="vonmises",
        summary="Von Mises distribution",
        density="exp(kappa * cos(x)) / (2 * pi * i0(kappa))",
        shapes=("kappa",),
        example=(0.4, 1.5),
        symmetric=True,
        valid=lambda kappa: kappa >= 0,
        conditions="is not negative",
        logpdf=lambda x, kappa: -2 * kappa * np.sin(0.5 * x) ** 2 - LOG_TAU - np.log(sp.i0e(kappa)),
    )
)
