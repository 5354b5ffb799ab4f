"""NumPy's ufuncs and functions of Arrays that functrans computes: for autocast, and for bfloat16.

NumPy would give bfloat16 another dtype than traced values have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import is_bfloat16, operators
from ..core.values import ArrayLike, Value
from .autocast import casts_here
from .refusals import writable

#: The operations that methods of ufuncs are.
OF_UFUNCS: dict[tuple[np.ufunc, str], str] = {
    (np.add, "reduce"): "sum",
    (np.multiply, "reduce"): "prod",
    (np.add, "accumulate"): "cumsum",
    (np.multiply, "accumulate"): "cumprod",
}


def taken_over(ufunc: np.ufunc, method: str, inputs: Sequence[ArrayLike], kwargs: dict[str, Any]) -> bool:
    """Whether functrans computes a ufunc, or one of its methods."""
    if ufunc not in operators.ufunc or kwargs.get("out") is not None:
        return False
    name = ufunc.__name__ if method == "__call__" else OF_UFUNCS.get((ufunc, method), "")
    return casts_here(name) or (not kwargs and method == "__call__" and _has_bfloat16(inputs))


def function_taken_over(func: Callable[..., Any], args: Sequence[ArrayLike]) -> bool:
    """Whether functrans computes one of NumPy's functions."""
    return func in operators.function and (casts_here(func.__name__) or _has_bfloat16(args))


def by_functrans(ufunc: np.ufunc, method: str, inputs: Sequence[ArrayLike], kwargs: dict[str, Any]) -> Value:
    """What a ufunc of traced values does."""
    function = operators.ufunc[ufunc]
    if method == "__call__":
        return function(*inputs, **kwargs)
    return operators.function[np.ufunc](function, ufunc, method, *inputs, **kwargs)


def as_of_numpy(out: ArrayLike) -> ArrayLike:
    """A plain result in the form in which NumPy's functions return it: writable, or a number."""
    out = writable(out)
    return out[()] if type(out) is np.ndarray and not out.ndim else out


def _has_bfloat16(x: object) -> bool:
    """Whether a value, or an element of a sequence, is an array of bfloat16."""
    if isinstance(x, tuple | list):
        return any(map(_has_bfloat16, x))
    return isinstance(x, np.ndarray) and is_bfloat16(x.dtype)
