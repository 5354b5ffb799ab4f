"""Valid calls of the classes for grids and rotations, for `base_calls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans.scipy.spatial.transform import Rotation

GRID = (np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.5]))
VALUES = np.arange(6.0).reshape(3, 2)
X = np.array([0.25, 0.5])
TURNS = Rotation([[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]])


def plus(x, y):
    return x + y


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
    "functrans.test_util": [
        ("check_grads", None, (fnp.sin, (X,), 1), {}),
        ("check_jvp", None, (fnp.sin, lambda x, t: ft.jvp(fnp.sin, x, t), (X,)), {}),
        ("check_vjp", None, (fnp.sin, lambda x: ft.vjp(fnp.sin, x), (X,)), {}),
    ],
    "functrans.tree_util": [
        ("tree_reduce_associative", None, (plus, (1.0, 2.0)), {}),
        ("flatten_one_level", None, ((1.0, 2.0),), {}),
        ("flatten_one_level_with_keys", None, ((1.0, 2.0),), {}),
        ("is_tree_node", None, (list,), {}),
    ],
}
LEFT_OUT: dict[str, set[str]] = {}
