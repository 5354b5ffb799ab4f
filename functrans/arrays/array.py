"""`Array`: the immutable subclass of ndarray that users receive.

Interpreters and rules work on plain ndarrays, since NumPy is several times slower on a subclass. Public functions
`unwrap` their arguments and `wrap` their results.

Operators, methods and indexing of an `Array` return Arrays. NumPy's own functions and ufuncs return plain writable
arrays: libraries compute with what users pass, and modify their results.

An `Array` is immutable if its flags make it read-only, as `wrap` always does. An `Array` that NumPy allocates itself
(``np.array(x, subok=True)``, the data of a masked array) is a work buffer, and writable.
"""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core import (
    KEY,
    PYTHON_NUMBERS,
    ArgumentError,
    Aval,
    NoAttributeError,
    TracedRow,
    Tracer,
    is_held,
    is_low,
    memory_dtype,
    narrow_array,
    operators,
)
from ..core.low_precision import as_dtype
from ..core.values import ArrayLike, DTypeLike, Index, Param, Value
from ..runtime.config import config
from ..runtime.device import OnDevice
from ..runtime.module_getattr import lazy_import
from ..runtime.unusual import unusual
from . import refusals
from .protocols import is_jax_array, taken_over
from .traced_parts import PLAIN, has_tracer, holds_tracers

#: Loads when functrans first computes what NumPy mostly does.
ufuncs = lazy_import("functrans.arrays.ufuncs")

_ndarray = np.ndarray
_asarray = np.asarray
_view = np.ndarray.view
_setflags = np.ndarray.setflags
_getitem = np.ndarray.__getitem__
_flags = vars(np.ndarray)["flags"].__get__


#: The dtypes of Python's numbers, with 64 bits or without.
_NUMBER_DTYPES = frozenset(map(np.dtype, (*PYTHON_NUMBERS, np.int32, np.float32, np.complex64)))


def wrap(x: ArrayLike) -> Any:
    """The user's form of `x`: an `Array` for an ndarray or a number, anything else unchanged.

    A Python number becomes weak: it takes part in further operations as the number does.

    The flags of `x` do not change: the array is a read-only view of it.
    """
    kind = type(x)
    if kind is not _ndarray:
        if kind in PYTHON_NUMBERS:
            return weak(_asarray(x))
        if not isinstance(x, np.generic | bool):
            return x
        x = _asarray(x)
    if unusual.narrow:
        x = narrow_array(x)
    array = _view(x, Array)
    _setflags(array, False)  # type: ignore[call-arg]  # by position: half the time of write=False
    return array


def weak(x: np.ndarray) -> Any:
    """A value that promotes like a Python number, as the user's `WeakArray` without axes."""
    if x.dtype not in _NUMBER_DTYPES:
        return wrap(x)
    if unusual.narrow:
        x = _asarray(narrow_array(x))
    array = _view(x, WeakArray)
    _setflags(array, False)  # type: ignore[call-arg]
    return array


def wrap_all(x: Any) -> Any:
    """`wrap`, also inside the tuples, named tuples, lists and dicts that NumPy's functions return."""
    if isinstance(x, tuple):
        parts = [wrap_all(part) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if type(x) is list:
        return [wrap_all(part) for part in x]
    if type(x) is dict:
        return {key: wrap_all(part) for key, part in x.items()}
    return wrap(x) if isinstance(x, _ndarray | np.generic) else x


def unwrap(x: ArrayLike) -> Any:
    """The plain (read-only) ndarray of an `Array`, the number of a weak one; anything else unchanged."""
    kind = type(x)
    if kind is Array:
        return _view(x, _ndarray)
    return x.item() if kind is WeakArray else x


def unwrap_all(x: Any) -> Any:
    """`unwrap`, also inside tuples, lists and dicts."""
    kind = type(x)
    if kind is Array:
        return _view(x, _ndarray)
    if kind is tuple or kind is list:
        return kind([unwrap_all(part) for part in x])
    if kind is dict:
        return {key: unwrap_all(part) for key, part in x.items()}
    return x.item() if kind is WeakArray else x


def read_only_copy(x: ArrayLike) -> Any:
    """`x`, or a read-only copy if `x` is (a view of) an array that somebody may still write to."""
    base = x
    while isinstance(base, _ndarray):
        if base.flags.writeable:
            copy = x.copy()
            copy.flags.writeable = False
            return copy
        base = base.base
    return x


def is_work_space(x: Value) -> bool:
    """Whether an `Array` is writable, because NumPy allocated it as a work buffer."""
    return _flags(x).writeable


def is_immutable(x: Any) -> bool:
    """Whether `x` is an `Array` that never changes."""
    kind = type(x)
    return (kind is Array or kind is WeakArray) and not is_work_space(x)


def check_out(name: str, kwargs: dict[str, Any]) -> None:
    """Raise if a NumPy function is asked to write into an `Array`."""
    out = kwargs.get("out")
    if out is None:
        return
    for x in out if type(out) is tuple else (out,):
        if is_immutable(x):
            refusals.refuse(
                f"np.{name}(..., out=x)", f"Use the returned value: x = np.{name}(...). {refusals.COPY}"
            )


class _ArrayType(type):
    """Makes traced values instances of `Array`, so that type checks in user code hold while tracing."""

    def __instancecheck__(cls, x: Value) -> bool:
        return isinstance(x, Tracer) or type.__instancecheck__(cls, x)


class Array(OnDevice, np.ndarray, metaclass=_ArrayType):  # type: ignore[misc]
    """An immutable array, as functions of functrans return it.

    It is an ndarray, and NumPy, SciPy, Matplotlib and pandas accept it as one. Operations that would modify it raise
    `ImmutableArrayError`; ``x += 1`` binds the name to a new array. ``np.array(x)`` is a plain array for you to modify,
    and so are the results of NumPy's functions and ufuncs.

    Create one with `functrans.numpy.asarray` and similar functions.

    Attributes
    ----------
    at
        Modified copies: ``x.at[i].set(v)``, ``.add``, ``.multiply``, ``.min``, ``.max``, and reads with a mode for
        indices out of bounds: ``x.at[i].get(mode="clip")``.
    weak_type : bool
        Whether it was computed only from Python numbers, and so yields to the dtypes of other operands, as they do.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> x = fnp.array([1.0, 2.0])
    >>> y = x
    >>> y += 1.0
    >>> x, y
    (Array([1., 2.]), Array([2., 3.]))
    """

    __slots__ = ()
    __hash__ = None
    weak_type = False

    def __new__(cls, *args: Any, **kwargs: Param) -> Array:
        """An `Array` from a list or an ndarray, for libraries that write ``type(x)(y)``."""
        if len(args) == 1 and isinstance(args[0], list | np.ndarray) and not kwargs:
            return wrap(np.array(args[0]))
        raise ArgumentError(
            "Array(...) does not create arrays: write functrans.numpy.asarray(...), or zeros, ones, full"
        )

    # --- NumPy's protocols ----------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: ArrayLike, **kwargs: Param) -> Any:
        if unusual.used and ufuncs.taken_over(ufunc, method, inputs, kwargs):
            out = ufuncs.by_functrans(ufunc, method, inputs, kwargs)
            of_number = isinstance(inputs[0], np.generic) and refusals.calls_operator(sys._getframe(1))
            return out if of_number else ufuncs.as_of_numpy(unwrap_all(out))
        plain = []
        for x in inputs:
            if type(x) is Array:
                plain.append(_view(x, _ndarray))
            elif isinstance(x, Tracer):
                return NotImplemented
            else:
                plain.append(unwrap(x))
        if kwargs:
            targets = kwargs.get("out")
            check_out(ufunc.__name__, kwargs)
            kwargs = {key: unwrap_all(value) for key, value in kwargs.items()}
            if targets is not None:
                out = getattr(ufunc, method)(*plain, **kwargs)
                return targets[0] if out is not NotImplemented and len(targets) == 1 else out
        if method == "at" and is_immutable(inputs[0]):
            refusals.refuse(
                f"np.{ufunc.__name__}.at(x, ...)",
                f"Write x = x.at[i].add(v) (or .multiply, .min). {refusals.COPY}",
            )
        if not (isinstance(inputs[0], np.generic) and refusals.calls_operator(sys._getframe(1))):
            return getattr(ufunc, method)(*plain, **kwargs)
        try:
            return wrap_all(ufunc(*plain, **kwargs))
        except (ValueError, TypeError) as error:
            raise refusals.refused(error, ufunc.__name__, operators.ufunc[ufunc], *plain) from None

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(kind, Tracer | TracedRow) for kind in types):
            return NotImplemented
        if func in refusals.WRITERS and args and is_immutable(args[0]):
            refusals.refuse(f"np.{func.__name__}(x, ...)", f"{refusals.WRITERS[func]}. {refusals.COPY}")
        check_out(func.__name__, kwargs)
        if unusual.used and ufuncs.function_taken_over(func, args):
            return ufuncs.as_of_numpy(unwrap_all(operators.function[func](*args, **kwargs)))
        if func in refusals.PRINTERS:
            return func(np.asarray(args[0]), *args[1:], **kwargs)
        args, kwargs = unwrap_all(args), unwrap_all(kwargs)
        # What an Array in an unknown container dispatched, it would dispatch again.
        if _OWN.issuperset(types):
            out = _ndarray.__array_function__(self, func, types, args, kwargs)
        else:
            out = func(*args, **kwargs)
        return out if func in refusals.READ_ONLY else refusals.writable(out)

    # --- reading --------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """Raise for a missing attribute; suggest a replacement if one is known."""
        hint = None if name.startswith("_") else operators.absent.get(name)
        if hint is None:
            raise AttributeError(f"'Array' object has no attribute '{name}'")
        raise NoAttributeError(f"an array has no attribute '{name}'{hint}")

    def __getitem__(self, index: Index) -> Any:
        kind = type(index)
        if kind is not int and kind is not slice:
            if has_tracer(index):
                return operators.operator["getitem"](self, index)
            index = unwrap_all(index)
        plain = _view(self, _ndarray)
        try:
            part = _getitem(plain, index)
        except (IndexError, MemoryError) as error:
            if holds_tracers(index):
                return operators.operator["getitem"](self, index)
            if config.index_errors == "clamp":
                return wrap(operators.operator["getitem"](plain, index))
            raise refusals.refused(error, "getitem", operators.operator["getitem"], plain, index) from None
        return part if _flags(self).writeable else wrap(part)

    def __iter__(self) -> Iterator[Any]:
        """The parts along the first axis."""
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return map(self.__getitem__, range(len(self)))

    @property
    def at(self) -> Any:
        """Modified copies: ``x.at[i].set(v)`` and similar."""
        return operators.attribute["at"].fget(self)

    @property
    def aval(self) -> Aval:
        """Shape, dtype and weakness, as tracing sees them."""
        return Aval(self.shape, self.dtype, self.weak_type)

    def unsafe_buffer_pointer(self) -> int:
        """The address of the first element; it must not be written to."""
        return int(_view(self, _ndarray).ctypes.data)

    def block_until_ready(self) -> Any:
        """The array itself, which is ready when the call that computed it returns."""
        return self

    def is_deleted(self) -> bool:
        """Whether the array was donated to a call, as by ``jit(..., donate_argnums=0)``: it can no longer be used."""
        return False

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """The module `functrans.numpy`, as the array API standard requires."""
        return operators.attribute["__array_namespace__"](self, api_version=api_version)

    @property
    def flags(self) -> Any:
        """Memory layout, read-only."""
        return refusals.Flags(_flags(self))

    def view(self, dtype: DTypeLike = None, type: Any = None) -> Any:
        """The same memory with another dtype, or as another class of array (``x.view(np.ndarray)``)."""
        plain = _view(self, _ndarray)
        if isinstance(dtype, builtins.type) and issubclass(dtype, _ndarray):
            dtype, type = None, dtype
        plain = plain if dtype is None else plain.view(as_dtype(dtype))
        return wrap(plain) if type is None or type is Array else plain.view(type)

    def __dlpack__(self, **options: Param) -> Any:
        """The memory for another library, which keeps it alive, and not the `Array`, which may be donated; a copy for
        those who do not know that memory may be read-only.
        """
        plain = _view(self, _ndarray)
        if (options.get("max_version") or (0,))[0] < 1 and options.get("copy") is None:
            plain = plain.copy()
        return plain.__dlpack__(**options)

    def copy(self, order: Any = "C") -> Any:
        """A plain array with the same values, which the caller may modify."""
        return _view(self, _ndarray).copy(order)

    def __copy__(self) -> Any:
        return self.copy() if is_work_space(self) else self

    def __deepcopy__(self, memo: object) -> Any:
        return self.__copy__()

    def __reduce__(self) -> Any:
        return _wrap_low if is_low(self.dtype) else wrap, (_view(self, _ndarray),)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __repr__(self) -> str:
        if self.dtype == KEY:  # as their numbers, which is what `key` takes
            numbers = _view(self, _ndarray).view(memory_dtype(KEY))
            return f"A{repr(numbers)[1:].replace('uint64', 'key<fry>')}"
        # "array(" and "Array(" have the same length, so the lines stay aligned.
        return f"A{repr(_view(self, _ndarray))[1:]}"

    def __divmod__(self, other: ArrayLike) -> Any:
        out = taken_over("__rdivmod__", self, other)
        if out is not NotImplemented:
            return out
        if is_jax_array(other):
            return self // other, self % other
        try:
            return wrap_all(divmod(_view(self, _ndarray), unwrap(other)))
        except (ValueError, TypeError, MemoryError) as error:
            raise refusals.operator_refused(error, operator.floordiv, self, other) from None

    def __rdivmod__(self, other: ArrayLike) -> Any:
        if is_jax_array(other):
            return other // self, other % self
        try:
            return wrap_all(divmod(unwrap(other), _view(self, _ndarray)))
        except (ValueError, TypeError, MemoryError) as error:
            raise refusals.operator_refused(error, operator.floordiv, other, self) from None

    def __round__(self, ndigits: int | None = None) -> Any:
        return wrap(_view(self, _ndarray).round(ndigits or 0))

    def __str__(self) -> str:
        return str(
            _view(self, _ndarray).view(memory_dtype(KEY)) if self.dtype == KEY else _view(self, _ndarray)
        )

    # --- what would change it -------------------------------------------------------------------------------

    def __setitem__(self, index: Index, value: Any) -> None:
        if not is_work_space(self):
            refusals.refuse(
                "x[i] = v", f"Write x = x.at[i].set(v) (or .add, .multiply, .min, .max). {refusals.COPY}"
            )
        _view(self, _ndarray)[unwrap_all(index)] = unwrap(value)

    def __setattr__(self, name: str, value: Any) -> None:
        refusals.refuse(f"x.{name} = ...", refusals.ATTRIBUTES.get(name, "Make a new array instead"))

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """Raise for ``write=True``."""
        if write:
            refusals.refuse("x.setflags(write=True)", "Make a copy to modify: y = np.array(x)")


def _wrap_low(x: np.ndarray) -> Any:
    """`wrap`, in a process that may not yet have met the dtype."""
    is_held(x.dtype)
    return wrap(x)


class WeakArray(Array):
    """The user's form of a weak value: an `Array` without axes that promotes like a Python number.

    It is a separate class so that tests for the type of an `Array` stay cheap.
    """

    __slots__ = ()
    __hash__ = None
    weak_type = True

    def __reduce__(self) -> Any:
        return wrap, (self.item(),)

    def __divmod__(self, other: ArrayLike) -> Any:
        out = taken_over("__rdivmod__", self, other)
        return (self // other, self % other) if out is NotImplemented else out

    def __rdivmod__(self, other: ArrayLike) -> Any:
        return other // self, other % self

    def __round__(self, ndigits: int | None = None) -> Any:
        return wrap(_view(self, _ndarray).round(ndigits or 0).item())

    def __getitem__(self, index: Index) -> Any:
        part = super().__getitem__(index)
        return weak(_view(part, _ndarray)) if type(part) is Array and not part.ndim else part


WeakArray.__name__ = WeakArray.__qualname__ = "Array"


#: Classes whose arrays NumPy's functions compute with directly.
_OWN = frozenset((_ndarray, Array, WeakArray))
PLAIN.add(Array)  # it holds nothing
