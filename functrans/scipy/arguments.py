"""What functions under SciPy's names ask of their matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.aval import aval_of
from ..core.dtypes import FLOAT64, is_inexact, promote
from ..core.errors import ArgumentValueError, LinAlgError
from ..core.trace import concrete
from ..primitives.linear import broadcast_shapes, broadcast_to, reshape_p, shape_of
from ..primitives.operands import operand, strong


def inexact(name: str, check_finite: bool, *given: Any) -> list[Any]:
    """Operands in one floating point dtype."""
    values = [operand(x, name, i) for i, x in enumerate(given)]
    avals = [aval_of(v) for v in values]
    dtype, _ = promote([(a.dtype, False) for a in avals])
    dtype = dtype if is_inexact(dtype) else FLOAT64
    if check_finite:
        for i, v in enumerate(values):
            known = concrete(v)
            if known is not None and not np.isfinite(known).all():
                raise ArgumentValueError(f"{name}: argument {i} must not contain infs or NaNs")
    return [strong(v, dtype) for v in values]


def check_square(name: str, x: Any) -> None:
    """Refuse what is no square matrix, or no stack of these."""
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise LinAlgError(f"{name}: expected a square matrix, got shape {shape}")


def check_matrix(name: str, x: Any) -> None:
    """Refuse what has fewer than two axes."""
    if len(shape_of(x)) < 2:
        raise LinAlgError(f"{name}: expected a matrix, got shape {shape_of(x)}")


def matched(name: str, a: Any, b: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """Matrix and right-hand side with the same axes before the last two, and the shape of the solution."""
    n, own = shape_of(a)[-1], shape_of(b)
    vector = len(own) == 1
    if not own or own[0 if vector else -2] != n:
        raise LinAlgError(f"{name}: shapes {shape_of(a)} and {own} are incompatible")
    b = reshape_p.bind(b, shape=(n, 1)) if vector else b
    batch = broadcast_shapes(name, shape_of(a)[:-2], shape_of(b)[:-2])
    columns = broadcast_to(b, (*batch, *shape_of(b)[-2:]))
    return broadcast_to(a, (*batch, n, n)), columns, (*batch, n) if vector else shape_of(columns)
