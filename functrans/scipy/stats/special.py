"""SciPy's special functions for the formulas of distributions: float32 is computed in float64, as in kernels.

Formulas are evaluated on plain arrays, for which ``scipy.special`` has functions in single precision. Some of these are
poor: ``betainc(1e-45, 1e-45, x)`` is 0 there, and 0.5 in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import scipy.special

from ...core import Tracer
from ...core.values import Value


def _in_double(routine: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(routine)
    def f(*operands: Value) -> Any:
        if any(isinstance(x, Tracer) for x in operands) or np.result_type(*operands) != np.float32:
            return routine(*operands)
        return np.asarray(routine(*[np.asarray(x, np.float64) for x in operands])).astype(np.float32)[()]

    return f


class InDouble:
    """``in_double.ndtr`` is ``scipy.special.ndtr``, computed in float64."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        f = _in_double(getattr(scipy.special, name))
        setattr(self, name, f)
        return f


in_double = InDouble()
