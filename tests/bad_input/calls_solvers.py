"""Valid calls of solvers, which take functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

X = np.array([0.25, 0.5, 0.75])
T = np.array([0.0, 0.1])


def decay(y, t):
    return -y


OWN: dict[str, list[tuple[str, Callable[..., Any] | None, tuple[Any, ...], dict[str, Any]]]] = {
    "functrans.experimental.ode": [("odeint", None, (decay, X, T), {})],
}
LEFT_OUT: dict[str, set[str]] = {}
