"""The operators and methods of `Array` and `WeakArray`: those of ndarray on the plain array, with immutable results.

Operators do not go through ``__array_ufunc__``, which would take several times as long.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import (
    PYTHON_NUMBERS,
    Tracer,
    has_jax_semantics,
    is_held,
    is_inexact,
    is_low,
    operators,
    promotes_as_jax,
)
from ..core.debug_nans import looks_for_faults
from ..core.low_precision import bfloat16
from ..core.values import ArrayLike, Param, Value
from ..runtime.unusual import unusual
from .array import (
    Array,
    WeakArray,
    check_out,
    has_tracer,
    is_work_space,
    unwrap,
    unwrap_all,
    weak,
    wrap,
    wrap_all,
)
from .autocast import casts_here
from .casts import cast, numpy_agrees
from .protocols import is_jax_array, reflected_name, taken_over
from .refusals import COPY, METHODS, operator_refused, refuse, refused

_ndarray = np.ndarray
_asarray = np.asarray
_view = np.ndarray.view
_flags = vars(np.ndarray)["flags"].__get__


#: The methods that NumPy rounds at every step where a float16 or bfloat16 is the result.
_SUMS = frozenset(("sum", "prod", "mean", "std", "var", "cumsum", "cumprod", "dot", "trace", "clip", "round"))


def _by_functrans(called: str, *operands: ArrayLike) -> bool:
    """Whether functrans computes an operator, not NumPy: for autocast, to look for NaN and infinities, to promote as
    JAX does, and for float16 and bfloat16, beside which Python numbers are not weak in ml_dtypes, and of which NumPy
    has slow products.
    """
    asked = casts_here(called) or looks_for_faults()
    if (
        not asked and promotes_as_jax()
    ):  # NumPy agrees on floating point of one dtype, and on Python numbers beside it
        dtypes = {x.dtype for x in operands if isinstance(x, _ndarray | np.generic | Tracer)}
        asked = len(dtypes) > 1 or not all(map(is_inexact, dtypes)) or any(type(x) is list for x in operands)
    if asked and all(type(x) in _KNOWN or isinstance(x, np.generic | Tracer) for x in operands):
        return True
    return any(is_low(x.dtype) for x in operands if isinstance(x, _ndarray | np.generic))


#: Operands of operators; other classes, such as matrices and data frames, define operators too.
_KNOWN = frozenset((Array, WeakArray, _ndarray, int, float, complex, bool, list, tuple))


# --- operators ----------------------------------------------------------------------------------------------


def _unary(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    stem = name.strip("_")
    called = OPERATIONS.get(stem, stem)

    def method(self: Array) -> Value | None:
        if unusual.used and _by_functrans(called, self):
            return operators.operator[stem](self)
        plain = _view(self, _ndarray)
        try:
            return wrap(op(plain))
        except (TypeError, MemoryError) as error:
            raise operator_refused(error, op, plain) from None

    return _named(method, name)


def _binary(name: str, op: Callable[..., Any], swapped: bool) -> Callable[..., Any]:
    generic = getattr(_ndarray, name)
    stem, called = _operator_of(name, swapped)
    reflected = reflected_name(stem)

    def method(self: Array, other: ArrayLike) -> Any:
        kind = type(other)
        if unusual.used and _by_functrans(called, self, other):
            return operators.operator[stem](*((other, self) if swapped else (self, other)))
        if not (swapped or kind in _KNOWN):
            out = taken_over(reflected, self, other)
            if out is not NotImplemented:
                return out
        if kind not in _KNOWN and is_jax_array(other):
            return operators.operator[stem](*((other, self) if swapped else (self, other)))
        if kind is Array:
            other = _view(other, _ndarray)
        plain = _view(self, _ndarray)
        try:
            if kind is float or kind is int or isinstance(other, _ndarray):
                return wrap(op(other, plain) if swapped else op(plain, other))
            # NotImplemented if the other side has an operator: sparse matrices, pandas, users' classes. (Masked
            # arrays and matrices never get here: Python asks the subclass first.)
            return wrap_all(generic(plain, other))
        except (ValueError, TypeError, MemoryError) as error:
            raise operator_refused(error, op, *((other, plain) if swapped else (plain, other))) from None

    return _named(method, name)


def _weakly_unary(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Array) -> Any:
        plain = _view(self, _ndarray)
        try:
            return weak(_asarray(op(plain)))
        except TypeError as error:
            raise operator_refused(error, op, self.item()) from None

    return _named(method, name)


def _weakly_binary(name: str, op: Callable[..., Any], swapped: bool) -> Callable[..., Any]:
    """Weak with numbers and weak arrays; with anything else it acts as the number."""
    stem, called = _operator_of(name, swapped)

    def method(self: Array, other: ArrayLike) -> Any:
        kind = type(other)
        if unusual.used and _by_functrans(called, self, other):
            return operators.operator[stem](*((other, self) if swapped else (self, other)))
        if kind not in _KNOWN and is_jax_array(other):
            return operators.operator[stem](*((other, self) if swapped else (self, other)))
        try:
            if kind is Array or kind is _ndarray:
                number, array = self.item(), _view(other, _ndarray)
                return wrap(op(array, number) if swapped else op(number, array))
            if kind in PYTHON_NUMBERS or kind is WeakArray:
                plain, other = _view(self, _ndarray), unwrap(other)
                return weak(_asarray(op(other, plain) if swapped else op(plain, other)))
            # Sequences and bools are combined with an array, as for traced numbers.
            own = _view(self, _ndarray) if isinstance(other, bool | list | tuple | str) else self.item()
            return wrap_all(op(other, own) if swapped else op(own, other))
        except (ValueError, TypeError, MemoryError) as error:
            number = self.item()
            raise operator_refused(error, op, *((other, number) if swapped else (number, other))) from None

    return _named(method, name)


def _in_place(name: str, kind: type = Array) -> Callable[..., Any]:
    """``x += other`` means ``x = x + other``; but a work buffer is modified."""
    generic = getattr(_ndarray, name)
    binary = getattr(kind, name.replace("__i", "__", 1))

    def method(self: Array, other: ArrayLike) -> Any:
        if not _flags(self).writeable:
            return binary(self, other)
        out = generic(_view(self, _ndarray), unwrap(other))
        return out if out is NotImplemented else self

    return _named(method, name)


#: The operations that operators are, by the names of their methods, where these differ.
OPERATIONS = {
    "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "power", "neg": "negative", "pos": "positive", "abs": "absolute", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip


def _operator_of(name: str, swapped: bool) -> tuple[str, str]:
    """The operator in `operators.operator`, and the operation that autocast may cast for."""
    stem = name.strip("_").removeprefix("r") if swapped else name.strip("_")
    return stem, OPERATIONS.get(stem, stem)


def _named(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    return method


# --- methods and attributes ---------------------------------------------------------------------------------


def _refused_method(name: str, instead: str) -> Callable[..., Any]:
    generic = getattr(_ndarray, name)

    def method(self: Array, *args: Any, **kwargs: Param) -> None:
        if not is_work_space(self):
            refuse(f"x.{name}(...)", f"{instead}. {COPY}")
        generic(_view(self, _ndarray), *unwrap_all(args), **unwrap_all(kwargs))

    _named(method, name).__doc__ = f"Raises an error: an Array is immutable. {instead}."
    return method


def _plain_method(name: str) -> Callable[..., Any]:
    """The ndarray method applied to the plain array, so that its result can be made read-only."""
    generic = getattr(_ndarray, name)
    sums, casts = name in _SUMS, name == "astype"

    def method(self: Array, *args: Any, **kwargs: Param) -> Value:
        if (
            has_tracer(args)
            or (kwargs and has_tracer(kwargs))
            or (unusual.used and (casts_here(name) or (sums and _computes_sums(self.dtype))))
        ):
            return operators.attribute[name](self, *args, **kwargs)
        check_out(name, kwargs)
        if kwargs and kwargs.get("where", True) is None:  # all elements, as in JAX; to NumPy's methods, none
            kwargs = {**kwargs, "where": True}
        plain = _view(self, _ndarray)
        if casts or kwargs:
            _load_dtypes(args, kwargs)
        try:
            out = generic(plain, *unwrap_all(args), **unwrap_all(kwargs))
            return wrap_all(_cast(plain, out) if casts else out)
        except (ValueError, LookupError, TypeError, MemoryError) as error:
            raise refused(error, name, operators.attribute[name], plain, *args, **kwargs) from None

    _named(method, name).__doc__ = f"Like `numpy.ndarray.{name}`; the result is an `Array`."
    return method


def _computes_sums(dtype: np.dtype) -> bool:
    """Whether functrans computes sums, not NumPy, which rounds at each step, or has other dtypes than JAX."""
    return is_low(dtype) or looks_for_faults() or has_jax_semantics()


def _load_dtypes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Load the package of bfloat16 if it is named: only then does NumPy know the name."""
    for x in (*args, *kwargs.values()):
        if type(x) is str and x == "bfloat16":
            bfloat16()


def _cast(plain: np.ndarray, out: np.ndarray) -> Value:
    """The result of NumPy's cast, or that of `arrays.casts` where NumPy's depends on the machine."""
    is_held(out.dtype)
    if out.dtype.kind in "iu" and is_inexact(plain.dtype):
        real = plain.real if plain.dtype.kind == "c" else plain
        return out if numpy_agrees(real.dtype, out.dtype) else cast(real, out.dtype)
    return out


def _plain_attribute(name: str, wrapped: Callable[[Any], Any] = wrap) -> property:
    """The attribute of the plain array: views must hold the memory, not the `Array`, which may be donated."""
    get = getattr(_ndarray, name).__get__
    return property(lambda self: wrapped(get(_view(self, _ndarray))), doc=f"Like `numpy.ndarray.{name}`.")


# --- their installation --------------------------------------------------------------------------------------

for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift",
):  # fmt: skip
    _op = getattr(operator, f"{_name}_" if _name in ("and", "or") else _name)
    setattr(Array, f"__{_name}__", _binary(f"__{_name}__", _op, swapped=False))
    setattr(Array, f"__r{_name}__", _binary(f"__r{_name}__", _op, swapped=True))
    setattr(Array, f"__i{_name}__", _in_place(f"__i{_name}__"))
    setattr(WeakArray, f"__{_name}__", _weakly_binary(f"__{_name}__", _op, swapped=False))
    setattr(WeakArray, f"__r{_name}__", _weakly_binary(f"__r{_name}__", _op, swapped=True))
    setattr(WeakArray, f"__i{_name}__", _in_place(f"__i{_name}__", WeakArray))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Array, f"__{_name}__", _unary(f"__{_name}__", getattr(operator, _name)))
    setattr(WeakArray, f"__{_name}__", _weakly_unary(f"__{_name}__", getattr(operator, _name)))
for _name in ("conj", "conjugate"):
    setattr(WeakArray, _name, _weakly_unary(_name, np.conjugate))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _op = getattr(operator, _name)
    setattr(Array, f"__{_name}__", _binary(f"__{_name}__", _op, swapped=False))
    setattr(WeakArray, f"__{_name}__", _weakly_binary(f"__{_name}__", _op, swapped=False))
for _name in ("T", "mT", "real", "imag", "flat", "data", "ctypes", "__array_struct__"):
    setattr(Array, _name, _plain_attribute(_name))
for _name in ("T", "real", "imag"):
    setattr(WeakArray, _name, _plain_attribute(_name, weak))
for _name, _instead in METHODS:
    if hasattr(_ndarray, _name):
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
