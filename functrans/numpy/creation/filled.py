"""Create arrays from numbers and lists, or filled with a value."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...arrays.arguments import Casting, Device, Like, Order
from ...arrays.array import Array
from ...core import (
    FLOAT64,
    PYTHON_NUMBERS,
    ArgumentError,
    ArgumentValueError,
    ShapeError,
    aval_of,
    canonical,
    has_jax_semantics,
    narrowed,
    operators,
)
from ...core.values import ArrayLike, DTypeLike, ShapeLike, Value
from ...frontend.structs import described
from ...primitives import ops
from ...primitives.ops import finish, number, operand, positive_shape, shape_of, strong
from ...runtime.unusual import unusual
from ..dispatch import array_operand, implements, on_cpu, owned, staging

__all__ = [
    "array", "asarray", "astype", "copy", "empty", "empty_like", "eye", "full",
    "full_like", "identity", "ones", "ones_like",
    "tri", "zeros", "zeros_like",
]  # fmt: skip


# --- from what there is -------------------------------------------------------------------------------------


@implements(np.asarray)
def asarray(
    a: ArrayLike,
    dtype: DTypeLike = None,
    order: Order | None = None,
    *,
    copy: bool | None = None,
    device: Device = None,
    like: Like = None,
) -> Array:
    """Convert a value to a functrans array.

    Parameters
    ----------
    a : array_like
        May be a nested list that contains traced values. An ndarray is copied, so that later changes to it do not
        affect the result; an `Array` is not copied.
    dtype : dtype-like, optional

    Returns
    -------
    Array

    Raises
    ------
    UnsupportedDtypeError
        If the dtype is longdouble, object, text or dates.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.asarray([1, 2.5])
    Array([1. , 2.5])
    """
    on_cpu(device, "asarray")
    if copy is False and not isinstance(a, Array):
        raise ArgumentValueError(
            f"asarray: copy=False is impossible: functrans arrays never share memory with mutable objects, here a "
            f"{type(a).__name__}"
        )
    if has_jax_semantics() and dtype is None and type(a) in PYTHON_NUMBERS:
        return finish(a)  # stays weak
    if type(a) is int and dtype is not None and (to := canonical(dtype, "asarray: dtype")).kind in "iu":
        return finish(number(a, to))  # not by way of the default dtype, which may hold less
    x = array_operand(a, "asarray")
    if dtype is not None:
        x = ops.convert(x, canonical(dtype, "asarray: dtype"))
    elif unusual.narrow:
        x = ops.convert(x, narrowed(x.dtype))
    return owned(x.copy() if copy and isinstance(x, np.ndarray) else x, a)


@implements(np.array)
def array(
    object: ArrayLike,
    dtype: DTypeLike = None,
    *,
    copy: bool | None = True,
    order: Order = "K",
    ndmin: int = 0,
    like: Like = None,
) -> Any:
    """Like `asarray`; `ndmin` prepends axes of extent 1.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.array([1, 2], dtype=float, ndmin=2)
    Array([[1., 2.]])
    """
    x = asarray(object, dtype, copy=None if copy else copy)  # nothing changes an Array
    missing = ndmin - len(x.shape)
    if missing <= 0:
        return x
    return finish(ops.reshape_p.bind(operand(x, "array"), shape=(*(1,) * missing, *x.shape)))


@implements(np.copy, method="copy")
def copy(a: ArrayLike, order: Order = "K", subok: bool = False) -> Any:
    """Copy an ndarray; an `Array` is immutable, and returned unchanged.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.copy([1.0, 2.0])
    Array([1., 2.])
    """
    return asarray(a)


@implements(*([np.astype] if hasattr(np, "astype") else []))
def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = True, device: Device = None) -> Any:
    """Convert an array to another dtype, by NumPy's casting (casts from complex drop the imaginary part).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.astype(fnp.array([1.7, -1.7]), int)
    Array([ 1, -1])
    """
    return owned(ops.convert(array_operand(x, "astype"), canonical(dtype, "astype: dtype")), x)


def _astype_method(
    x: Value,
    dtype: DTypeLike,
    order: Order = "K",
    casting: Casting = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Value:
    to = canonical(dtype, "astype: dtype")
    if not np.can_cast(x.dtype, to, casting):  # type: ignore[arg-type]
        raise ArgumentError(f"astype: {x.dtype} cannot be cast to {to} by the rule casting={casting!r}")
    return finish(strong(x, to))


operators.attribute["astype"] = _astype_method

# --- filled -------------------------------------------------------------------------------------------------


def _dtype(dtype: DTypeLike, name: str, default: np.dtype = FLOAT64) -> np.dtype:
    return narrowed(default) if dtype is None else canonical(dtype, f"{name}: dtype")


@implements(np.zeros)
def zeros(
    shape: ShapeLike,
    dtype: DTypeLike = float,
    order: Order = "C",
    *,
    device: Device = None,
    like: Like = None,
) -> Any:
    """An array of zeros.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.zeros(2)
    Array([0., 0.])
    """
    on_cpu(device, "zeros")
    return finish(ops.full(positive_shape(shape, "zeros"), 0, _dtype(dtype, "zeros")))


@implements(np.ones)
def ones(
    shape: ShapeLike, dtype: DTypeLike = None, order: Order = "C", *, device: Device = None, like: Like = None
) -> Value:
    """An array of ones.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.ones((1, 2))
    Array([[1., 1.]])
    """
    on_cpu(device, "ones")
    return finish(ops.full(positive_shape(shape, "ones"), 1, _dtype(dtype, "ones")))


@implements(np.empty)
def empty(
    shape: ShapeLike,
    dtype: DTypeLike = float,
    order: Order = "C",
    *,
    device: Device = None,
    like: Like = None,
) -> Any:
    """An array of zeros: functrans has no uninitialized arrays.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.empty((2, 3)).shape
    (2, 3)
    """
    on_cpu(device, "empty")
    return zeros(shape, dtype)


@implements(np.full)
def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    order: Order = "C",
    *,
    device: Device = None,
    like: Like = None,
) -> Any:
    """An array filled with one number (or an array that broadcasts), which may be traced.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.full(2, 7)
    Array([7, 7])
    """
    on_cpu(device, "full")
    value = array_operand(fill_value, "full", 1)
    to = _dtype(dtype, "full", value.dtype)
    return finish(_filled(positive_shape(shape, "full"), _fitting(fill_value, value, to), to))


def _fitting(given: ArrayLike, value: Value, dtype: np.dtype) -> Any:
    """`value`, made from `given`; a Python integer is converted to `dtype`, or raises NumPy's OverflowError."""
    return dtype.type(given) if type(given) is int and dtype.kind in "iu" else value


def _filled(shape: tuple[int, ...], value: Value, dtype: np.dtype) -> Value:
    if not shape_of(value):
        return ops.full(shape, value, dtype)
    if ops.broadcast_shapes("full", shape, shape_of(value)) != shape:
        raise ShapeError(f"full: fill_value of shape {shape_of(value)} does not broadcast to shape {shape}")
    out = ops.broadcast_to(ops.convert(value, dtype), shape)
    return out.copy() if isinstance(out, np.ndarray) else out


def _like(a: Value, dtype: DTypeLike, shape: ShapeLike, name: str) -> tuple[tuple[int, ...], np.dtype]:
    aval = described(a)  # only shape and dtype matter
    aval = aval_of(operand(a, name)) if aval is None else aval
    extents = aval.shape if shape is None else positive_shape(shape, name)
    return extents, _dtype(dtype, name, aval.dtype)


@implements(np.zeros_like)
def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike = None,
    order: Order = "K",
    subok: bool = True,
    shape: ShapeLike = None,
    *,
    device: Device = None,
    like: Like = None,
) -> Any:
    """Zeros with the shape and dtype of `a`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.zeros_like([2.5, 3.5])
    Array([0., 0.])
    """
    on_cpu(device, "zeros_like")
    extents, to = _like(a, dtype, shape, "zeros_like")
    return finish(ops.full(extents, 0, to))


@implements(np.ones_like)
def ones_like(
    a: ArrayLike,
    dtype: DTypeLike = None,
    order: Order = "K",
    subok: bool = True,
    shape: ShapeLike = None,
    *,
    device: Device = None,
    like: Like = None,
) -> Value:
    """Ones with the shape and dtype of `a`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.ones_like([2, 3])
    Array([1, 1])
    """
    on_cpu(device, "ones_like")
    extents, to = _like(a, dtype, shape, "ones_like")
    return finish(ops.full(extents, 1, to))


@implements(np.empty_like)
def empty_like(
    prototype: Any,
    dtype: DTypeLike = None,
    order: Order = "K",
    subok: bool = True,
    shape: ShapeLike = None,
    *,
    device: Device = None,
    like: Like = None,
) -> Any:
    """Zeros with the shape and dtype of `prototype`; see `empty`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.empty_like([1.0, 2.0]).dtype
    dtype('float64')
    """
    on_cpu(device, "empty_like")
    return zeros_like(prototype, dtype, shape=shape)


@implements(np.full_like)
def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    order: Order = "K",
    subok: bool = True,
    shape: ShapeLike = None,
    *,
    device: Device = None,
    like: Like = None,
) -> Any:
    """An array filled with one number, with the shape and dtype of `a`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.full_like([1.0, 2.0], 7)
    Array([7., 7.])
    """
    on_cpu(device, "full_like")
    extents, to = _like(a, dtype, shape, "full_like")
    value = _fitting(fill_value, array_operand(fill_value, "full_like", 1), to)
    return finish(_filled(extents, value, to))


@implements(np.eye)
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike = float,
    order: Order = "C",
    *,
    device: Device = None,
    like: Like = None,
) -> Value:
    """A matrix with ones on diagonal `k`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.eye(2)
    Array([[1., 0.],
           [0., 1.]])
    """
    on_cpu(device, "eye")
    rows, columns = positive_shape((N, N if M is None else M), "eye")
    return finish(ops.eye(rows, columns, operator.index(k), _dtype(dtype, "eye")))


@implements(np.identity)
def identity(n: int, dtype: DTypeLike = None, *, like: Like = None) -> Any:
    """The identity matrix.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.identity(2)
    Array([[1., 0.],
           [0., 1.]])
    """
    return eye(n, dtype=float if dtype is None else dtype)


@implements(np.tri)
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float, *, like: Like = None) -> Any:
    """A matrix with ones on and below diagonal `k`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]])
    """
    rows, columns = positive_shape((N, N if M is None else M), "tri")
    to = _dtype(dtype, "tri")
    if not staging():
        return finish(np.tri(rows, columns, operator.index(k), to))
    row, column = ops.iota((rows, 1), 0), ops.iota((1, columns), 1)
    inside = ops.ge_p.bind(ops.add_p.bind(row, np.int64(operator.index(k))), column)
    return finish(ops.convert_element_type_p.bind(inside, dtype=to))
