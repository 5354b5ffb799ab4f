"""What the functions of this namespace ask of their arguments."""

from __future__ import annotations

from typing import Any

from ...core.aval import aval_of
from ...core.dtypes import FLOAT64, is_inexact
from ...core.errors import LinAlgError
from ...primitives.linear import shape_of
from ...primitives.operands import operand, strong


def inexact(x: Any, name: str, position: int = 0) -> Any:
    """An argument as a value of a floating point or complex dtype: integers become float64."""
    value = operand(x, name, position)
    dtype = aval_of(value).dtype
    return strong(value, dtype if is_inexact(dtype) else FLOAT64)


def want_matrices(x: Any, name: str) -> None:
    """Refuse what has fewer than two axes."""
    if len(shape_of(x)) < 2:
        raise LinAlgError(
            f"{name}: want matrices (at least two axes), got shape {shape_of(x)}; add an axis with x[:, None]"
        )


def want_square(x: Any, name: str) -> None:
    """Refuse what is no square matrix, or no stack of these."""
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise LinAlgError(f"{name}: the last two axes must be equal (square matrices), got shape {shape}")
