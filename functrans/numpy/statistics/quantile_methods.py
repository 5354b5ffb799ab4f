"""Where a quantile stands among n sorted numbers, by the methods of NumPy.

R. J. Hyndman, Y. Fan: Sample Quantiles in Statistical Packages, The American Statistician 50 (1996), counted from 0.
The functions are NumPy's, which takes traced values too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Place = Callable[[Any, Any], Any]


def _between(alpha: float, beta: float) -> Place:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _step_up(index: Any, stays: Any) -> Any:
    """The next place, but the place itself where it is one and stays."""
    low = np.floor(index)
    return np.where((index == low) & stays, low, low + 1)


def _fraction(rest: Any, index: Any) -> Any:
    return rest


class Method(NamedTuple):
    """How a quantile is taken: its place, and from the fraction of that the weight of the upper neighbour; without a
    weight the place is a whole number.
    """

    place: Place
    weight: Callable[[Any, Any], Any] | None = None


METHODS = {
    "inverted_cdf": Method(lambda n, q: _step_up(n * q - 1, True)),
    "averaged_inverted_cdf": Method(lambda n, q: n * q - 1, lambda rest, i: np.where(rest == 0, 0.5, 1.0)),
    "closest_observation": Method(lambda n, q: _step_up(n * q - 1.5, np.floor(n * q - 1.5) % 2 == 1)),
    "interpolated_inverted_cdf": Method(_between(0, 1), _fraction),
    "hazen": Method(_between(0.5, 0.5), _fraction),
    "weibull": Method(_between(0, 0), _fraction),
    "linear": Method(lambda n, q: (n - 1) * q, _fraction),
    "median_unbiased": Method(_between(1 / 3, 1 / 3), _fraction),
    "normal_unbiased": Method(_between(3 / 8, 3 / 8), _fraction),
    "lower": Method(lambda n, q: np.floor((n - 1) * q)),
    "higher": Method(lambda n, q: np.ceil((n - 1) * q)),
    "midpoint": Method(
        lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
        lambda rest, i: np.where(rest == 0, 0.0, 0.5),
    ),
    "nearest": Method(lambda n, q: np.round((n - 1) * q)),
}
