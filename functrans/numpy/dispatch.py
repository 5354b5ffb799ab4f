"""How the functions of this namespace reach tracers, and what they do with the arrays of a caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..core.array import Array, WeakArray
from ..core.aval import aval_of
from ..core.checked import checked
from ..core.dtypes import canonical, promote
from ..core.errors import ArgumentValueError
from ..core.trace import PYTHON_KEYS, Tracer, current_trace, eval_trace, operators
from ..primitives.axes import one_axis
from ..primitives.operands import WEAK_DTYPES, finish, key_of, operand, strong
from ..primitives.structure.linear import flat, shape_of

F = TypeVar("F", bound=Callable[..., Any])
#: What stands for arguments that were not given where NumPy's functions and methods call each other.
NO_VALUE = getattr(np, "_NoValue", None)


def implements(*functions: Callable[..., Any], method: str | None = None) -> Callable[[F], F]:
    """Register a function, `checked`, as what NumPy's functions, and a method of that name, do to tracers."""

    def register(f: F) -> F:
        f = checked(f)
        for g in functions:
            operators.function[g] = f
        if method is not None:
            operators.method[method] = f
        return f

    return register


def staging() -> bool:
    """Whether arrays should be made by the program: else NumPy makes them at once."""
    return current_trace.get() is not eval_trace


def given(value: Any, default: Any) -> Any:
    """An argument, or its default where it was not given."""
    return default if value is NO_VALUE else value


def on_cpu(device: Any, name: str) -> None:
    """Refuse any device but the one there is."""
    if device is not None and device != "cpu":
        raise ArgumentValueError(f"{name}: device must be 'cpu' or None, got {device!r}: there is no other")


def array_operand(x: Any, name: str, position: int = 0) -> Any:
    """`x` as a value with a dtype of its own: an ndarray, NumPy number or tracer, never weak."""
    if not isinstance(x, Tracer):
        x = operand(x, name, position)
        if type(x) in PYTHON_KEYS:
            return strong(x, aval_of(x).dtype)
    elif x.key() in WEAK_DTYPES:
        return strong(x, x.dtype)
    return x


def in_one_dtype(values: list[Any], dtype: Any, name: str) -> list[Any]:
    """Values in `dtype`, or in their common one. Python numbers are float64, int64, ... here, as NumPy's functions
    other than ufuncs take them.
    """
    if dtype is not None:
        to = canonical(dtype, f"{name}: dtype")
    else:
        keys = {key_of(v) for v in values}
        if len(keys) == 1 and keys.isdisjoint(WEAK_DTYPES) and type(values[0]) is not bool:
            return values
        to, _ = promote([(aval_of(v).dtype, False) for v in values])
    return [strong(v, to) for v in values]


def along(x: Any, axis: Any, name: str) -> tuple[Any, int]:
    """An array and the axis to work along; the flat array for None."""
    if axis is None:
        return flat(x), 0
    return x, one_axis(axis, len(shape_of(x)), name)


def owned(out: Any, *given: Any) -> Any:
    """`finish`, of a copy where `out` is a view of what the caller gave and may still change."""
    if isinstance(out, Tracer):
        return out
    if type(out) is np.ndarray:
        for x in given:
            if type(x) in _SAFE or isinstance(x, Tracer):
                continue
            if np.may_share_memory(out, x if isinstance(x, np.ndarray) else np.asarray(x)):
                return finish(out.copy())
    return finish(out)


_SAFE = frozenset((Array, WeakArray, int, float, complex, bool, list, tuple))
