"""What Python's operators and NumPy's functions do with traced values: the tables, and the methods that use them."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from .values import ArrayLike, Index, Value


class Operators:
    """How Python's operators, NumPy's ufuncs and functions, and methods act on tracers.

    `primitives/` fills `operator` (by special-method name) and `ufunc`; `numpy/` fills `function` and `method`.
    """

    def __init__(self) -> None:
        self.operator: dict[str, Callable[..., Any]] = {}
        self.ufunc: dict[np.ufunc, Callable[..., Any]] = {}
        self.function: dict[Callable[..., Any], Callable[..., Any]] = {}
        self.method: dict[str, Callable[..., Any]] = {}
        self.property: dict[str, Callable[..., Any]] = {}
        #: Replacements for functions that convert their arguments to arrays, by function name.
        self.converting: dict[str, str] = {}
        #: The module that finds operations of all rooms by name, `functrans.api.autocast`.
        self.operations: Any = None
        #: Replacements for attributes that ndarrays have and tracers do not.
        self.absent: dict[str, str] = {}


operators = Operators()
_operator = operators.operator


def _quotient_and_rest(x: Any, y: Any) -> Any:
    quotient = _operator["floordiv"](x, y)
    return quotient if quotient is NotImplemented else (quotient, _operator["mod"](x, y))


class OperatorMethods:
    """Python's operators as methods: a table look-up, filled by `primitives/`. They are written out, for speed."""

    __slots__ = ()

    def __add__(self, other: ArrayLike) -> Any:
        return _operator["add"](self, other)

    def __radd__(self, other: ArrayLike) -> Value:
        return _operator["add"](other, self)

    def __sub__(self, other: ArrayLike) -> Any:
        return _operator["sub"](self, other)

    def __rsub__(self, other: ArrayLike) -> Value:
        return _operator["sub"](other, self)

    def __mul__(self, other: ArrayLike) -> Any:
        return _operator["mul"](self, other)

    def __rmul__(self, other: ArrayLike) -> Value:
        return _operator["mul"](other, self)

    def __truediv__(self, other: ArrayLike) -> Value:
        return _operator["truediv"](self, other)

    def __rtruediv__(self, other: ArrayLike) -> Value:
        return _operator["truediv"](other, self)

    def __floordiv__(self, other: ArrayLike) -> Any:
        return _operator["floordiv"](self, other)

    def __rfloordiv__(self, other: ArrayLike) -> Any:
        return _operator["floordiv"](other, self)

    def __mod__(self, other: ArrayLike) -> Value:
        return _operator["mod"](self, other)

    def __rmod__(self, other: ArrayLike) -> Value:
        return _operator["mod"](other, self)

    def __divmod__(self, other: ArrayLike) -> Any:
        return _quotient_and_rest(self, other)

    def __rdivmod__(self, other: ArrayLike) -> Any:
        return _quotient_and_rest(other, self)

    def __pow__(self, other: ArrayLike) -> Value:
        return _operator["pow"](self, other)

    def __rpow__(self, other: ArrayLike) -> Any:
        return _operator["pow"](other, self)

    def __matmul__(self, other: ArrayLike) -> Value:
        return _operator["matmul"](self, other)

    def __rmatmul__(self, other: ArrayLike) -> Any:
        return _operator["matmul"](other, self)

    def __and__(self, other: ArrayLike) -> Value:
        return _operator["and"](self, other)

    def __rand__(self, other: ArrayLike) -> Any:
        return _operator["and"](other, self)

    def __or__(self, other: ArrayLike) -> Value:
        return _operator["or"](self, other)

    def __ror__(self, other: ArrayLike) -> Any:
        return _operator["or"](other, self)

    def __xor__(self, other: ArrayLike) -> Any:
        return _operator["xor"](self, other)

    def __rxor__(self, other: ArrayLike) -> Any:
        return _operator["xor"](other, self)

    def __lshift__(self, other: ArrayLike) -> Any:
        return _operator["lshift"](self, other)

    def __rlshift__(self, other: ArrayLike) -> Any:
        return _operator["lshift"](other, self)

    def __rshift__(self, other: ArrayLike) -> Any:
        return _operator["rshift"](self, other)

    def __rrshift__(self, other: ArrayLike) -> Any:
        return _operator["rshift"](other, self)

    def __neg__(self) -> Value | None:
        return _operator["neg"](self)

    def __pos__(self) -> Any:
        return _operator["pos"](self)

    def __abs__(self) -> Any:
        return _operator["abs"](self)

    def __invert__(self) -> Any:
        return _operator["invert"](self)

    def __round__(self, ndigits: int | None = None) -> Any:
        return _operator["round"](self, ndigits)

    def __lt__(self, other: ArrayLike) -> Value:
        return _operator["lt"](self, other)

    def __le__(self, other: ArrayLike) -> Value:
        return _operator["le"](self, other)

    def __gt__(self, other: ArrayLike) -> Value:
        return _operator["gt"](self, other)

    def __ge__(self, other: ArrayLike) -> Value:
        return _operator["ge"](self, other)

    def __eq__(self, other: ArrayLike) -> Any:
        return _operator["eq"](self, other)

    def __ne__(self, other: ArrayLike) -> Any:
        return _operator["ne"](self, other)

    def __getitem__(self, index: Index) -> Any:
        return _operator["getitem"](self, index)


# --- np.r_ and np.c_ ------------------------------------------------------------------------------------------


class TracedRow(np.ndarray):
    """What ``np.r_[...]`` and ``np.c_[...]`` join instead of a traced value.

    They convert every row by ``np.array`` before they call ``np.concatenate``, which dispatches. So `Tracer.__array__`
    gives them an array without numbers, of the shape and dtype of the traced value, which remembers it through what
    they do to it: they add axes of extent 1, and cast to the common dtype.
    """

    value: Any = None

    def __array_finalize__(self, obj: Any) -> None:
        self.value = getattr(obj, "value", None)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        rows = [x.traced() if isinstance(x, TracedRow) else x for x in args[0]]
        return operators.function[func](rows, *args[1:], **kwargs)

    def traced(self) -> Any:
        """The traced value in the shape and dtype that this array has by now."""
        return self.value.reshape(self.shape).astype(self.dtype)


def asked_to_join(frame: FrameType) -> bool:
    """Whether the code that asks for an array is that of ``np.r_`` or ``np.c_``."""
    return frame.f_code.co_qualname == "AxisConcatenator.__getitem__"


def traced_row(tracer: Any) -> TracedRow:
    """The array that stands for a traced value."""
    row = np.broadcast_to(np.zeros((), tracer.dtype), tracer.shape).view(TracedRow)
    row.value = tracer
    return row
