"""Valid calls of what scipy.stats has besides functions of arrays, for `base_calls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

X = np.array([0.25, 0.5, 0.75])


def evaluated(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Make an estimate and evaluate it."""
    return np.asarray(function(*args, **kwargs).logpdf(X))


OWN: dict[str, list[tuple[str, Callable[..., Any] | None, tuple[Any, ...], dict[str, Any]]]] = {
    "functrans.scipy.stats": [("gaussian_kde", evaluated, (X,), {})],
}
LEFT_OUT: dict[str, set[str]] = {}
