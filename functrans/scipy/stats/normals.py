"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

import scipy.special as sp

from .continuous import Continuous
from .namespaces import Distribution

LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


def _logpdf(x: Any) -> Any:
    return -0.5 * x * x - LOG_ROOT_TAU


norm = Distribution(
    Continuous(
        name="norm",
        summary="Normal distribution",
        density="exp(-x**2 / 2) / sqrt(2 * pi)",
        symmetric=True,
        logpdf=_logpdf,
        cdf=sp.ndtr,
        ppf=sp.ndtri,
        entropy=lambda: LOG_ROOT_TAU + 0.5,
    )
)
