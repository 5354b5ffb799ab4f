"""SciPy's special functions for the formulas of distributions: float32 is computed in float64, as in kernels.

Formulas are evaluated on plain arrays, for which ``scipy.special`` has functions in single precision. Some of these are
poor: ``betainc(1e-45, 1e-45, x)`` is 0 there, and 0.5 in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import Tracer
from ...core.values import Value
from ...runtime.libraries import scipy
from .. import special


def _in_double(name: str) -> Callable[..., Any]:
    def f(*operands: Value) -> Any:
        if any(isinstance(x, Tracer) for x in operands):
            return getattr(special, name)(*operands)
        routine = getattr(scipy.special, name)
        if np.result_type(*operands) != np.float32:
            return routine(*operands)
        return np.asarray(routine(*[np.asarray(x, np.float64) for x in operands])).astype(np.float32)[()]

    f.__name__ = name
    return f


class InDouble:
    """``in_double.ndtr`` is ``scipy.special.ndtr``, computed in float64."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        f = _in_double(name)
        setattr(self, name, f)
        return f


in_double = InDouble()
