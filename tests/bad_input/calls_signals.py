"""Valid calls of the classes for grids and rotations, for `base_calls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.scipy.spatial.transform import Rotation

GRID = (np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.5]))
VALUES = np.arange(6.0).reshape(3, 2)
TURNS = Rotation([[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]])


def interpolated(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Interpolate at two positions."""
    return function(*args, **kwargs)([[0.25, 0.25], [2.0, 0.5]])


#: name in the namespace -> (through, args, kwargs)
OWN: dict[str, list[tuple[str, Callable[..., Any] | None, tuple[Any, ...], dict[str, Any]]]] = {
    "functrans.scipy.interpolate": [("RegularGridInterpolator", interpolated, (GRID, VALUES), {})],
    "functrans.scipy.spatial.transform": [
        ("Rotation", None, ([[0.0, 0.0, 1.0, 1.0]],), {}),
        ("Slerp", None, ([0.0, 2.0], TURNS), {}),
    ],
}
LEFT_OUT: dict[str, set[str]] = {}
