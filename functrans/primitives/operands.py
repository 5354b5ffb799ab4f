"""Convert what a user passes (arrays, numbers, nested lists, also with tracers inside) to what interpreters take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ..arrays.arguments import too_large
from ..arrays.array import Array, WeakArray, wrap
from ..arrays.protocols import has_protocol, is_array_like, is_jax_array
from ..arrays.traced_parts import has_tracer, holds_tracers
from ..core import (
    HELD,
    PYTHON_KEYS,
    Tracer,
    aval_of,
    check_supported,
    is_too_wide,
    narrow_array,
    narrowed,
    native,
    promote,
    promotes_as_jax,
)
from ..core.values import ArrayLike, Value
from ..errors import ArgumentError, DtypeError, FunctransError, IntegerRangeError, ShapeError
from ..runtime.context import pass_on
from ..runtime.unusual import unusual
from .elementwise.arithmetic import convert, convert_element_type_p
from .structure.linear import broadcast_in_dim_p, dtype_of, shape_of
from .structure.shape import concatenate_p

WEAK_DTYPES: dict[type, np.dtype] = {kind: np.dtype(kind) for kind in (int, float, complex)}
_view = np.ndarray.view


def operand(x: Any, name: str, position: int = 0) -> Any:
    """Return `x` as a value that interpreters take: ndarray, NumPy or Python number, or tracer.

    Parameters
    ----------
    x : array_like
        Anything that NumPy converts to an array, also a nested list or tuple with tracers among its elements, or an
        object with ``__jax_array__``.
    name : str
        The function's name, for messages.
    position : int
        The argument's number.

    Raises
    ------
    ArgumentError
        If `x` cannot become an array.
    UnsupportedDtypeError
        If its dtype is not supported.
    """
    kind = type(x)
    if kind is Array:
        x = _view(x, np.ndarray)
    elif kind in PYTHON_KEYS or isinstance(x, Tracer):
        return x
    elif kind is WeakArray:
        return x.item()
    elif isinstance(x, list | tuple):
        return stacked(x, name, position)
    elif kind is not np.ndarray and not isinstance(x, np.generic):
        if is_jax_array(x):
            return operand(x.__jax_array__(), name, position)
        if not is_array_like(x):
            _not_an_array(x, name, position)
        if not (isinstance(x, np.ndarray) or has_protocol(x)):
            return stacked(list(x), name, position)
        x = plain(x, f"{name}: argument {position}")
    if x.dtype in HELD:
        return narrow_array(x) if unusual.narrow else x
    if holds_tracers(x):
        return stacked(x.tolist(), name, position)
    return narrow_array(native(x, f"{name}: argument {position}"))


def plain(x: Any, where: str) -> np.ndarray:
    """Convert an ndarray of a subclass, or any other object that NumPy accepts, to a plain ndarray.

    Raises
    ------
    ArgumentError
        If the conversion fails, or would lose a mask.
    """
    if isinstance(x, np.ma.MaskedArray):
        raise ArgumentError(
            f"{where} is a masked array, and its mask would be lost: fill it (x.filled(0.0)) and pass the mask as an "
            "array of its own, or choose the elements with where"
        )
    try:
        return np.asarray(x)
    except FunctransError:
        raise
    except Exception as error:  # whatever the user's object does
        pass_on(error)
        raise ArgumentError(
            f"{where} of type {type(x).__name__} cannot be converted to an array: {type(error).__name__}: {error}"
        ) from error


def _not_an_array(x: Value, name: str, position: int) -> NoReturn:
    raise ArgumentError(
        f"{name}: argument {position} is {_shown(x)} of type {type(x).__name__}; expected an array, a number "
        "or a nested list of numbers"
    )


def _shown(x: Value) -> str:
    text = repr(x)
    return text if len(text) <= 40 else f"{text[:37]}..."


def stacked(x: Sequence[Any], name: str, position: int = 0) -> Value:
    """Convert a nested list to an array; tracers among its elements are joined by ``concatenate``.

    Raises
    ------
    ShapeError
        If the elements have different shapes.
    """
    if not has_tracer(x) and not (promotes_as_jax() and _has_arrays(x)):
        try:
            array = np.array(x)
        except ValueError as error:
            raise ShapeError(f"{name}: argument {position} is not a valid array: {error}") from None
        check_supported(array.dtype, f"{name}: argument {position}")
        return narrow_array(array)
    parts = [operand(part, name, position) for part in x]
    shapes = {shape_of(part) for part in parts}
    if len(shapes) != 1:
        listed = ", ".join(map(str, sorted(shapes)))
        raise ShapeError(
            f"{name}: argument {position} is a list whose elements have different shapes ({listed}); all elements "
            "must have one shape"
        )
    return stack(parts)


def _has_arrays(x: Sequence[Any]) -> bool:
    """Whether a nested list has elements with a dtype, beside which JAX leaves Python numbers weak."""
    return any(_has_arrays(part) if isinstance(part, list | tuple) else hasattr(part, "dtype") for part in x)


def stack(parts: Sequence[Value]) -> Any:
    """Stack values of one shape along a new first axis, in their common dtype."""
    avals = [aval_of(part) for part in parts]
    dtype, _ = promote(
        [(a.dtype, a.weak and promotes_as_jax()) for a in avals]
    )  # to NumPy, not weak in lists
    shape = avals[0].shape
    axes = tuple(range(1, len(shape) + 1))
    rows = [
        broadcast_in_dim_p.bind(strong(part, dtype), shape=(1, *shape), broadcast_dimensions=axes)
        for part in parts
    ]
    return concatenate_p.bind(*rows, dimension=0)


def strong(x: ArrayLike, dtype: np.dtype) -> Any:
    """Cast `x` to a dtype; the result is not weak.

    Raises
    ------
    IntegerRangeError, DtypeError
        If it is a Python number that the dtype does not hold; if it is the tracer of a complex one and the dtype that
        of real numbers (a complex number has a truth value).
    """
    if type(x) in PYTHON_KEYS:
        return number(x, dtype)
    if isinstance(x, Tracer) and x.aval.weak:
        if x.aval.dtype.kind == "c" and dtype.kind not in "cb":
            raise DtypeError(
                f"a complex number cannot be converted to {dtype}: convert the array with .astype(complex)"
            )
        return convert_element_type_p.bind(x, dtype=dtype, weak=False)
    return convert(x, dtype)


def stored(x: Value, dtype: np.dtype, name: str) -> Value:
    """Cast a value to the dtype of the array that a function writes it to.

    Raises
    ------
    DtypeError
        If it is complex and the array real: NumPy drops the imaginary part, with a warning.
    """
    refuse_complex(dtype_of(x), dtype, name)
    return convert(x, dtype)


def refuse_complex(source: np.dtype, target: np.dtype, name: str) -> None:
    """Raise `DtypeError` for a complex value that is to be written into an array of numbers that are not complex."""
    if source.kind == "c" and target.kind not in "cb":
        raise DtypeError(
            f"{name}: a complex value cannot be written into an array of dtype {target}: take its real part, or "
            "convert the array with .astype(complex)"
        )


def number(x: Any, dtype: np.dtype) -> Value:
    """Convert a Python number to a NumPy scalar.

    Raises
    ------
    IntegerRangeError
        If it is an integer out of the dtype's range.
    DtypeError
        If it is complex and the dtype real, or not a whole number and the dtype integer.
    """
    try:
        return dtype.type(x)
    except OverflowError as error:
        if isinstance(x, float):
            raise DtypeError(f"the number {x} cannot be converted to {dtype}: {error}") from None
        raise (IntegerRangeError(str(error)) if -(2**63) <= x < 2**64 else too_large(x)) from None
    except (TypeError, ValueError):
        raise DtypeError(
            f"the number {x} cannot be converted to {dtype}: convert the array with .astype({type(x).__name__})"
        ) from None


def finish(x: ArrayLike) -> Any:
    """Return what the user receives: tracers unchanged, anything else as an `Array`, weak for a Python number."""
    if isinstance(x, Tracer):
        return narrow(x) if unusual.narrow else x
    return wrap(x)


def narrow(x: Value) -> Value:
    """A value without 64-bit elements while these are off."""
    if isinstance(x, Tracer):
        dtype = x.aval.dtype
        if is_too_wide(dtype):
            return convert_element_type_p.bind(x, dtype=narrowed(dtype), weak=x.aval.weak)
        return x
    return narrow_array(x) if hasattr(x, "dtype") else x
