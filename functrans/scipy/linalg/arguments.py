"""Checks and conversions of matrix arguments of SciPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import FLOAT32, ArgumentValueError, LinAlgError, concrete, is_low
from ...core.values import ArrayLike, Value
from ...numpy.linalg.norms import all_inexact
from ...primitives import ops
from ...primitives.structure.linear import shape_of


def inexact(name: str, check_finite: bool, *given: Any) -> list[Value]:
    """Operands in one floating point dtype, float32 instead of float16 and bfloat16, as SciPy computes."""
    values = [ops.convert(v, FLOAT32) if is_low(ops.dtype_of(v)) else v for v in all_inexact(name, *given)]
    if check_finite:
        for i, v in enumerate(values):
            known = concrete(v)
            if known is not None and not np.isfinite(known).all():
                raise ArgumentValueError(f"{name}: argument {i} must not contain infs or NaNs")
    return values


def matched(name: str, a: ArrayLike, b: ArrayLike) -> tuple[Any, Any, tuple[int, ...]]:
    """A matrix and a right-hand side with equal leading axes, and the shape of the solution."""
    n, own = shape_of(a)[-1], shape_of(b)
    vector = len(own) == 1
    if not own or own[0 if vector else -2] != n:
        raise LinAlgError(f"{name}: shapes {shape_of(a)} and {own} are incompatible")
    b = ops.reshape_p.bind(b, shape=(n, 1)) if vector else b
    batch = ops.broadcast_shapes(name, shape_of(a)[:-2], shape_of(b)[:-2])
    columns = ops.broadcast_to(b, (*batch, *shape_of(b)[-2:]))
    return ops.broadcast_to(a, (*batch, n, n)), columns, (*batch, n) if vector else shape_of(columns)
