"""What Python's operators and NumPy's functions do with traced values: the tables, and the methods that use them."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from .values import ArrayLike, Index, Value

_K = TypeVar("_K")
_V = TypeVar("_V")


class Table(dict[_K, _V]):
    """A table that modules fill when they load: what is missing is looked for in those that have not loaded yet."""

    def __init__(self, load: Callable[[Any], bool]):
        self._load = load

    def __missing__(self, key: _K) -> _V:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def get(self, key: _K, default: Any = None) -> Any:
        """The entry; a default, if there is none in any module."""
        value = dict.get(self, key)
        while value is None and self._load(key):
            value = dict.get(self, key)
        return default if value is None else value

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]


class Operators:
    """How Python's operators, NumPy's ufuncs and functions, methods and properties act on tracers.

    `primitives/` fills `operator` (by special-method name) and `ufunc`; `numpy/` fills `function` and `attribute`,
    whose entries are methods, and `property` objects.
    """

    def __init__(self) -> None:
        #: Loads what may fill the tables for a key, a name or a function of NumPy's, and says whether it did. For
        #: `functrans.numpy` to set.
        self.load: Callable[[Any], bool] = lambda key: False

        def table() -> Table[Any, Any]:
            return Table(lambda key: self.load(key))

        self.operator: Table[str, Callable[..., Any]] = table()
        self.ufunc: Table[np.ufunc, Callable[..., Any]] = table()
        #: Ours for ufuncs of ``scipy.special``, by name: `ufunc` has them once SciPy's module has loaded.
        self.special: dict[str, Callable[..., Any]] = {}
        self.function: Table[Callable[..., Any], Callable[..., Any]] = table()
        self.attribute: Table[str, Any] = table()
        #: Replacements for functions that convert their arguments to arrays, by function name.
        self.converting: Table[str, str] = table()
        #: Replacements for attributes that ndarrays have and tracers do not.
        self.absent: Table[str, str] = table()


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
