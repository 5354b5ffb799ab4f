"""What the functions of this namespace ask of their arguments."""

from __future__ import annotations

from typing import Any

from ...core.aval import aval_of
from ...core.dtypes import FLOAT64, is_inexact, promote
from ...primitives.operands import operand, strong


def inexact(x: Any, name: str, position: int = 0) -> Any:
    """An argument as a value of a floating point or complex dtype: integers become float64."""
    value = operand(x, name, position)
    dtype = aval_of(value).dtype
    return strong(value, dtype if is_inexact(dtype) else FLOAT64)


def all_inexact(name: str, *given: Any) -> list[Any]:
    """Arguments in one floating point or complex dtype."""
    values = [inexact(x, name, i) for i, x in enumerate(given)]
    dtype, _ = promote([(aval_of(v).dtype, False) for v in values])
    return [strong(v, dtype) for v in values]
