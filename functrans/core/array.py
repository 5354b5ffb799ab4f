"""`Array`: the immutable subclass of ndarray that users receive.

Interpreters and rules work on plain ndarrays, since NumPy is several times slower on a subclass. Public
functions `unwrap` on the way in and `wrap` on the way out.

Operators, methods and indexing of an `Array` give Arrays. NumPy's own functions and ufuncs give plain arrays that
may be written to: libraries compute with what users pass, and write into what they have computed.

Immutable is what is read-only by its flags, as all that `wrap` makes is. An `Array` that NumPy allocates itself
(``np.array(x, subok=True)``, the data of a masked array) is somebody's work space: it can be written to.
"""

from __future__ import annotations

import builtins
import opcode
import operator
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from .errors import ArgumentError, ImmutableArrayError, NoAttributeError
from .trace import Tracer, operators

_ndarray = np.ndarray
_asarray = np.asarray
_view = np.ndarray.view
_setflags = np.ndarray.setflags
_getitem = np.ndarray.__getitem__
_flags = vars(np.ndarray)["flags"].__get__


def wrap(x: Any) -> Any:
    """What a user receives for `x`: an `Array` for an ndarray or a number, anything else as it is.

    The flags of `x` stay as they are: the array is a read-only view of it.
    """
    kind = type(x)
    if kind is not _ndarray:
        if not isinstance(x, np.generic | int | float | complex):
            return x
        x = _asarray(x)
    array = _view(x, Array)
    _setflags(array, False)  # type: ignore[call-arg]  # by position: half the time of write=False
    return array


def wrap_all(x: Any) -> Any:
    """`wrap` inside tuples, named tuples, lists and dicts too, as NumPy's functions return them."""
    if isinstance(x, tuple):
        parts = [wrap_all(part) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if type(x) is list:
        return [wrap_all(part) for part in x]
    if type(x) is dict:
        return {key: wrap_all(part) for key, part in x.items()}
    return wrap(x) if isinstance(x, _ndarray | np.generic) else x


def unwrap(x: Any) -> Any:
    """The plain (read-only) ndarray behind an `Array`; anything else as it is."""
    return _view(x, _ndarray) if type(x) is Array else x


def unwrap_all(x: Any) -> Any:
    """`unwrap` inside tuples, lists and dicts too."""
    kind = type(x)
    if kind is Array:
        return _view(x, _ndarray)
    if kind is tuple or kind is list:
        return kind([unwrap_all(part) for part in x])
    if kind is dict:
        return {key: unwrap_all(part) for key, part in x.items()}
    return x


def secure(x: Any) -> Any:
    """`x`, or a read-only copy where it is (a view of) an array that somebody may still write to."""
    base = x
    while isinstance(base, _ndarray):
        if base.flags.writeable:
            copy = x.copy()
            copy.flags.writeable = False
            return copy
        base = base.base
    return x


def _has_tracer(x: Any) -> bool:
    if isinstance(x, Tracer):
        return True
    if type(x) is tuple or type(x) is list:
        return any(_has_tracer(part) for part in x)
    return type(x) is dict and any(_has_tracer(part) for part in x.values())


def _is_work_space(x: Any) -> bool:
    """Whether an `Array` can be written to, because NumPy allocated it for somebody."""
    return _flags(x).writeable


def _refuse(what: str, instead: str) -> NoReturn:
    raise ImmutableArrayError(f"{what}: an Array of functrans cannot be changed in place. {instead}")


_COPY = "Or take a copy that is yours: np.array(x)"


class _Flags:
    """The flags of an `Array`: to be read, not to be set."""

    __slots__ = ("_flags",)

    def __init__(self, flags: Any):
        object.__setattr__(self, "_flags", flags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flags, name)

    def __getitem__(self, key: str) -> Any:
        return self._flags[key]

    def __setattr__(self, name: str, value: Any) -> None:
        if value:
            _refuse(f"x.flags.{name} = {value}", "Take a copy that is yours: y = np.array(x)")

    def __setitem__(self, key: str, value: Any) -> None:
        self.__setattr__(key.lower(), value)

    def __repr__(self) -> str:
        return repr(self._flags)


class _ArrayType(type):
    """Lets traced values pass for instances of `Array`, so that type checks of user code hold while tracing."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tracer) or type.__instancecheck__(cls, x)


class Array(np.ndarray, metaclass=_ArrayType):
    """An array that never changes: what functions of functrans return.

    It is an ndarray, and NumPy, SciPy, Matplotlib and pandas take it as one. What would change it raises
    `ImmutableArrayError`; ``x += 1`` binds the name to a new array. ``np.array(x)`` is a plain array, yours
    to change, and so is what NumPy's functions and ufuncs compute from an `Array`.

    Make one with `functrans.numpy.asarray` and its like.

    Attributes
    ----------
    at
        Changed copies: ``x.at[i].set(v)``, ``.add``, ``.multiply``, ``.min``, ``.max``, and reads that say
        what an index out of bounds means: ``x.at[i].get(mode="clip")``.

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

    def __new__(cls, *args: Any, **kwargs: Any) -> Array:
        """An `Array` of a list or an ndarray, for libraries that write ``type(x)(y)``."""
        if len(args) == 1 and isinstance(args[0], list | np.ndarray) and not kwargs:
            return wrap(np.array(args[0]))
        raise ArgumentError(
            "Array(...) makes no arrays: write functrans.numpy.asarray(...), or zeros, ones, full"
        )

    # --- NumPy's protocols ----------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = []
        for x in inputs:
            if type(x) is Array:
                plain.append(_view(x, _ndarray))
            elif isinstance(x, Tracer):
                return NotImplemented
            else:
                plain.append(x)
        if kwargs:
            given = kwargs.get("out")
            _check_out(ufunc.__name__, kwargs)
            kwargs = {key: unwrap_all(value) for key, value in kwargs.items()}
            if given is not None:
                out = getattr(ufunc, method)(*plain, **kwargs)
                return given[0] if out is not NotImplemented and len(given) == 1 else out
        if method == "at" and type(inputs[0]) is Array and not _is_work_space(inputs[0]):
            _refuse(
                f"np.{ufunc.__name__}.at(x, ...)", f"Write x = x.at[i].add(v) (or .multiply, .min). {_COPY}"
            )
        out = getattr(ufunc, method)(*plain, **kwargs)
        if isinstance(inputs[0], np.generic) and _calls_operator(sys._getframe(1)):
            return wrap_all(out)
        return out

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(kind, Tracer) for kind in types):
            return NotImplemented
        if func in _WRITERS and args and type(args[0]) is Array and not _is_work_space(args[0]):
            _refuse(f"np.{func.__name__}(x, ...)", f"{_WRITERS[func]}. {_COPY}")
        _check_out(func.__name__, kwargs)
        out = func(*unwrap_all(args), **unwrap_all(kwargs))
        return out if func in _READ_ONLY else _writable(out)

    # --- reading --------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """Refused: what arrays do not have; what to write instead is told, where it is known."""
        hint = operators.absent.get(name)
        if hint is None:
            raise AttributeError(f"'Array' object has no attribute '{name}'")
        raise NoAttributeError(f"an array has no attribute '{name}'{hint}")

    def __getitem__(self, index: Any) -> Any:
        kind = type(index)
        if kind is not int and kind is not slice:
            if _has_tracer(index):
                return operators.operator["getitem"](self, index)
            index = unwrap_all(index)
        part = _getitem(_view(self, _ndarray), index)
        return part if _flags(self).writeable else wrap(part)

    @property
    def at(self) -> Any:
        """Changed copies: ``x.at[i].set(v)`` and its like."""
        return operators.property["at"](self)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """The module `functrans.numpy`, by the array API standard."""
        return operators.method["__array_namespace__"](self, api_version=api_version)

    @property
    def flags(self) -> Any:
        """Memory layout, read-only."""
        return _Flags(_flags(self))

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        """The same memory as another dtype, or as another class of array (``x.view(np.ndarray)``)."""
        plain = _view(self, _ndarray)
        if isinstance(dtype, builtins.type) and issubclass(dtype, _ndarray):
            dtype, type = None, dtype
        plain = plain if dtype is None else plain.view(dtype)
        return wrap(plain) if type is None or type is Array else plain.view(type)

    def copy(self, order: Any = "C") -> Any:
        """A plain array with the same values, the caller's to change."""
        return _view(self, _ndarray).copy(order)

    def __copy__(self) -> Any:
        return self.copy() if _is_work_space(self) else self

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __reduce__(self) -> Any:
        return wrap, (_view(self, _ndarray),)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __repr__(self) -> str:
        # "array(" and "Array(" are of equal length: the lines stay aligned.
        return f"A{repr(_view(self, _ndarray))[1:]}"

    def __round__(self, ndigits: int | None = None) -> Any:
        return wrap(_view(self, _ndarray).round(ndigits or 0))

    def __str__(self) -> str:
        return str(_view(self, _ndarray))

    # --- what would change it -------------------------------------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> None:
        if _is_work_space(self):
            return _view(self, _ndarray).__setitem__(unwrap_all(index), unwrap(value))
        _refuse("x[i] = v", f"Write x = x.at[i].set(v) (or .add, .multiply, .min, .max). {_COPY}")

    def __setattr__(self, name: str, value: Any) -> None:
        _refuse(f"x.{name} = ...", _ATTRIBUTES.get(name, "Make a new array instead"))

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """Refused for ``write=True``."""
        if write:
            _refuse("x.setflags(write=True)", "Take a copy that is yours: y = np.array(x)")


_ATTRIBUTES = {
    "shape": "Write x = x.reshape(shape)",
    "dtype": "Write x = x.view(dtype), or x.astype(dtype) to convert the numbers",
    "real": "Write x = v + 1j * x.imag",
    "imag": "Write x = x.real + 1j * v",
    "flat": "Write x = x.at[...].set(v)",
}

_WRITERS: dict[Any, str] = {
    np.copyto: "Write x = functrans.numpy.broadcast_to(v, x.shape)",
    np.put: "Write x = x.ravel().at[i].set(v).reshape(x.shape)",
    np.place: "Write x = functrans.numpy.where(mask, v, x)",
    np.putmask: "Write x = functrans.numpy.where(mask, v, x)",
    np.fill_diagonal: "Write i = functrans.numpy.arange(len(x)); x = x.at[i, i].set(v)",
    np.put_along_axis: "Write x = x.at[...].set(v) with the indices of all axes",
}

#: What NumPy itself makes read-only, or too large to be copied: elements that occur in it more than once.
_READ_ONLY = frozenset((np.broadcast_to, np.broadcast_arrays, np.lib.stride_tricks.sliding_window_view))


def _writable(x: Any) -> Any:
    """What a function of NumPy returned, in memory that may be written to: not in that of an `Array`."""
    kind = type(x)
    if kind is _ndarray:
        return x if _flags(x).writeable else x.copy(order="K")
    if isinstance(x, tuple):
        parts = [_writable(part) for part in x]
        return kind(*parts) if hasattr(x, "_fields") else kind(parts)
    return [_writable(part) for part in x] if kind is list else x


def _check_out(name: str, kwargs: dict[str, Any]) -> None:
    out = kwargs.get("out")
    if out is None:
        return
    for x in out if type(out) is tuple else (out,):
        if type(x) is Array and not _is_work_space(x):
            _refuse(f"np.{name}(..., out=x)", f"Use the returned value: x = np.{name}(...). {_COPY}")


def _calls_operator(frame: FrameType) -> bool:
    """Whether a frame is at an operator of Python: NumPy's scalars on its left side go by way of the ufunc."""
    return opcode.opname[frame.f_code.co_code[frame.f_lasti]] in _OPERATORS


_OPERATORS = frozenset(("BINARY_OP", "COMPARE_OP"))


# --- operators, without the detour through __array_ufunc__ --------------------------------------------------


def _unary(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Array) -> Any:
        return wrap(op(_view(self, _ndarray)))

    return _named(method, name)


def _binary(name: str, op: Callable[..., Any], swapped: bool) -> Callable[..., Any]:
    generic = getattr(_ndarray, name)

    def method(self: Array, other: Any) -> Any:
        kind = type(other)
        if kind is Array:
            other = _view(other, _ndarray)
        elif kind is not float and kind is not int and not isinstance(other, _ndarray):
            # NotImplemented where the other side knows better: sparse matrices, pandas, classes of users. (Masked
            # arrays and matrices never come here: Python asks the subclass first.)
            return wrap_all(generic(_view(self, _ndarray), other))
        plain = _view(self, _ndarray)
        return wrap(op(other, plain) if swapped else op(plain, other))

    return _named(method, name)


def _divmod(name: str) -> Callable[..., Any]:
    generic = getattr(_ndarray, name)

    def method(self: Array, other: Any) -> Any:
        return wrap_all(generic(_view(self, _ndarray), unwrap(other)))

    return _named(method, name)


def _in_place(name: str) -> Callable[..., Any]:
    """``x += other`` is ``x = x + other``; but work space is changed."""
    generic = getattr(_ndarray, name)
    binary = getattr(Array, name.replace("__i", "__", 1))

    def method(self: Array, other: Any) -> Any:
        if not _flags(self).writeable:
            return binary(self, other)
        out = generic(_view(self, _ndarray), unwrap(other))
        return out if out is NotImplemented else self

    return _named(method, name)


def _named(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    return method


def _refused_method(name: str, instead: str) -> Callable[..., Any]:
    generic = getattr(_ndarray, name)

    def method(self: Array, *args: Any, **kwargs: Any) -> None:
        if not _is_work_space(self):
            _refuse(f"x.{name}(...)", f"{instead}. {_COPY}")
        generic(_view(self, _ndarray), *unwrap_all(args), **unwrap_all(kwargs))

    _named(method, name).__doc__ = f"Refused: an Array cannot be changed. {instead}."
    return method


def _plain_method(name: str) -> Callable[..., Any]:
    """The method of ndarray on the plain array, so that what it returns can be made read-only."""
    generic = getattr(_ndarray, name)

    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        if _has_tracer(args) or (kwargs and _has_tracer(kwargs)):
            return operators.method[name](self, *args, **kwargs)
        _check_out(name, kwargs)
        return wrap_all(generic(_view(self, _ndarray), *unwrap_all(args), **unwrap_all(kwargs)))

    _named(method, name).__doc__ = f"As `numpy.ndarray.{name}`; the result is an `Array`."
    return method


for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift",
):  # fmt: skip
    _op = getattr(operator, f"{_name}_" if _name in ("and", "or") else _name)
    setattr(Array, f"__{_name}__", _binary(f"__{_name}__", _op, swapped=False))
    setattr(Array, f"__r{_name}__", _binary(f"__r{_name}__", _op, swapped=True))
    setattr(Array, f"__i{_name}__", _in_place(f"__i{_name}__"))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Array, f"__{_name}__", _unary(f"__{_name}__", getattr(operator, _name)))
for _name in ("__divmod__", "__rdivmod__"):
    setattr(Array, _name, _divmod(_name))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Array, f"__{_name}__", _binary(f"__{_name}__", getattr(operator, _name), swapped=False))
for _name, _instead in (
    ("sort", "Write x = np.sort(x)"),
    ("partition", "Write x = np.partition(x, k)"),
    ("fill", "Write x = functrans.numpy.full_like(x, v)"),
    ("put", "Write x = x.ravel().at[i].set(v).reshape(x.shape)"),
    ("resize", "Write x = np.resize(x, shape)"),
    ("setfield", "Write x = x.at[i].set(v)"),
):
    setattr(Array, _name, _refused_method(_name, _instead))
for _name in (
    "all", "any", "argmax", "argmin", "argpartition",
    "argsort", "astype", "byteswap", "choose", "clip", "compress", "conj",
    "conjugate", "cumprod", "cumsum", "diagonal", "dot", "flatten", "max", "mean", "min", "nonzero", "prod",
    "ravel", "repeat", "reshape", "round", "searchsorted", "squeeze", "std", "sum",
    "swapaxes", "take", "trace", "transpose", "var",
):  # fmt: skip
    setattr(Array, _name, _plain_method(_name))
del _name, _op, _instead
