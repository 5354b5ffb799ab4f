"""Valid calls of iterative solvers, for `base_calls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

A = np.array([[3.0, 1.0], [1.0, 2.0]])
B = np.array([1.0, 2.0])

OWN: dict[str, list[tuple[str, Callable[..., Any] | None, tuple[Any, ...], dict[str, Any]]]] = {
    "functrans.scipy.sparse.linalg": [(n, None, (A, B), {}) for n in ("cg", "bicgstab", "gmres")],
}
LEFT_OUT: dict[str, set[str]] = {}
