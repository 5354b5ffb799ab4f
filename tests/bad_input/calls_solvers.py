"""Valid calls of solvers, which take functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import functrans.numpy as fnp

X = np.array([0.25, 0.5, 0.75])
T = np.array([0.0, 0.1])


def decay(y, t):
    return -y


def square(x):
    return x * x - 0.5


def bowl(x):
    return fnp.sum((x - 1.0) ** 2)


OWN: dict[str, list[tuple[str, Callable[..., Any] | None, tuple[Any, ...], dict[str, Any]]]] = {
    "functrans.experimental.ode": [("odeint", None, (decay, X, T), {})],
    "functrans.scipy.optimize": [
        *[(name, None, (square, 0.0, 5.0), {}) for name in ("bisect", "brenth", "brentq", "ridder")],
        ("fsolve", None, (square, X), {}),
        ("least_squares", None, (square, X), {}),
        ("minimize", None, (bowl, X), {}),
        ("root", None, (square, X), {}),
        ("root_scalar", None, (square,), {"bracket": (0.0, 5.0)}),
    ],
}
LEFT_OUT: dict[str, set[str]] = {"functrans.scipy.optimize": {"OptimizeResults"}}
