"""What functions under SciPy's names ask of their matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.aval import aval_of
from ..core.dtypes import FLOAT64, is_inexact, promote
from ..core.errors import ArgumentValueError, LinAlgError
from ..core.trace import Tracer
from ..primitives.linear import shape_of
from ..primitives.operands import operand, strong


def inexact(name: str, check_finite: bool, *given: Any) -> list[Any]:
    """Operands in one floating point dtype."""
    values = [operand(x, name, i) for i, x in enumerate(given)]
    avals = [aval_of(v) for v in values]
    dtype, _ = promote([(a.dtype, False) for a in avals])
    dtype = dtype if is_inexact(dtype) else FLOAT64
    if check_finite:
        for i, v in enumerate(values):
            known = v.concrete() if isinstance(v, Tracer) else v
            if known is not None and not np.isfinite(known).all():
                raise ArgumentValueError(f"{name}: argument {i} must not contain infs or NaNs")
    return [strong(v, dtype) for v in values]


def check_square(name: str, x: Any) -> None:
    """Refuse what is no square matrix, or no stack of these."""
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise LinAlgError(f"{name}: expected a square matrix, got shape {shape}")
