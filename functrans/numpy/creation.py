"""New arrays: from numbers and lists, filled, counted, on a mesh."""

from __future__ import annotations

import math
import operator
from math import prod
from typing import Any

import numpy as np

from ..core.aval import aval_of
from ..core.dtypes import canonical
from ..core.errors import ArgumentError, ArgumentValueError
from ..core.trace import Tracer, current_trace, eval_trace, operators
from ..primitives.axes import one_axis, positive_shape
from ..primitives.create import eye as eye_of
from ..primitives.create import full as full_of
from ..primitives.create import iota
from ..primitives.elementwise import (
    convert,
    convert_element_type_p,
    div_p,
    eq_p,
    ge_p,
    mul_p,
    select_p,
    sub_p,
)
from ..primitives.exp_log import exp2_p, log2_p, pow_p
from ..primitives.linear import (
    add_p,
    broadcast_shapes,
    broadcast_to,
    move_batch_axis,
    reshape_p,
    shape_of,
    transpose_p,
)
from ..primitives.operands import finish, operand, strong
from ..primitives.rounding import floor_p
from ..primitives.shape import concatenate_p
from .dispatch import array_operand, implements, in_one_dtype, owned

__all__ = [
    "arange", "array", "asarray", "astype", "copy", "empty", "empty_like", "eye", "full",
    "full_like", "geomspace", "identity", "indices", "linspace", "logspace", "meshgrid", "ones", "ones_like",
    "tri", "zeros", "zeros_like",
]  # fmt: skip

_INT64 = np.dtype(np.int64)
_FLOAT64 = np.dtype(np.float64)


def _staged() -> bool:
    """Whether arrays should be made by the program: else NumPy makes them at once."""
    return current_trace.get() is not eval_trace


# --- from what there is -------------------------------------------------------------------------------------


@implements(np.asarray)
def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: bool | None = None, **kwargs: Any) -> Any:
    """An array of functrans.

    Parameters
    ----------
    a : array_like
        Also a nested list with traced values among its elements. An ndarray is copied, so that changing it
        later does not change the result; an `Array` is not.
    dtype : dtype-like, optional

    Returns
    -------
    Array

    Raises
    ------
    UnsupportedDtypeError
        float16, longdouble, object, text, dates.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.asarray([1, 2.5])
    Array([1. , 2.5])
    """
    x = array_operand(a, "asarray")
    if dtype is not None:
        x = convert(x, canonical(dtype, "asarray: dtype"))
    return owned(x.copy() if copy and isinstance(x, np.ndarray) else x, a)


@implements(np.array)
def array(object: Any, dtype: Any = None, *, copy: bool = True, order: Any = "K", ndmin: int = 0) -> Any:
    """Like `asarray`; `ndmin` puts axes of extent 1 in front.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.array([1, 2], dtype=float, ndmin=2)
    Array([[1., 2.]])
    """
    x = asarray(object, dtype)
    missing = ndmin - len(x.shape)
    if missing <= 0:
        return x
    return finish(reshape_p.bind(operand(x, "array"), shape=(*(1,) * missing, *x.shape)))


@implements(np.copy, method="copy")
def copy(a: Any, order: Any = "K", subok: bool = False) -> Any:
    """The array itself, as no array of functrans changes; a copy of an ndarray."""
    return asarray(a)


@implements(*([np.astype] if hasattr(np, "astype") else []))
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The array in another dtype, cast as NumPy casts (the imaginary part of complex numbers is dropped).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.astype(fnp.array([1.7, -1.7]), int)
    Array([ 1, -1])
    """
    return owned(convert(array_operand(x, "astype"), canonical(dtype, "astype: dtype")), x)


def _astype_method(
    x: Any, dtype: Any, order: Any = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    to = canonical(dtype, "astype: dtype")
    if not np.can_cast(x.dtype, to, casting):  # type: ignore[arg-type]
        raise ArgumentError(f"astype: {x.dtype} cannot be cast to {to} by the rule casting={casting!r}")
    return finish(strong(x, to))


operators.method["astype"] = _astype_method

# --- filled -------------------------------------------------------------------------------------------------


def _dtype(dtype: Any, name: str, default: np.dtype = _FLOAT64) -> np.dtype:
    return default if dtype is None else canonical(dtype, f"{name}: dtype")


@implements(np.zeros)
def zeros(shape: Any, dtype: Any = float, order: str = "C", **kwargs: Any) -> Any:
    """Zeros.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.zeros(2)
    Array([0., 0.])
    """
    return finish(full_of(positive_shape(shape, "zeros"), 0, _dtype(dtype, "zeros")))


@implements(np.ones)
def ones(shape: Any, dtype: Any = None, order: str = "C", **kwargs: Any) -> Any:
    """Ones."""
    return finish(full_of(positive_shape(shape, "ones"), 1, _dtype(dtype, "ones")))


@implements(np.empty)
def empty(shape: Any, dtype: Any = float, order: str = "C", **kwargs: Any) -> Any:
    """Zeros: no array of functrans holds what nobody wrote."""
    return zeros(shape, dtype)


@implements(np.full)
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **kwargs: Any) -> Any:
    """One number (or an array that broadcasts) everywhere; the number may be traced.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.full(2, 7)
    Array([7, 7])
    """
    value = array_operand(fill_value, "full", 1)
    to = _dtype(dtype, "full", value.dtype)
    return finish(_filled(positive_shape(shape, "full"), value, to))


def _filled(shape: tuple[int, ...], value: Any, dtype: np.dtype) -> Any:
    if not shape_of(value):
        return full_of(shape, value, dtype)
    broadcast_shapes("full", shape, shape_of(value))
    out = broadcast_to(convert(value, dtype), shape)
    return out.copy() if isinstance(out, np.ndarray) else out


def _like(a: Any, dtype: Any, shape: Any, name: str) -> tuple[tuple[int, ...], np.dtype]:
    aval = aval_of(operand(a, name))
    return (
        aval.shape if shape is None else positive_shape(shape, name),
        _dtype(dtype, name, aval.dtype),
    )


@implements(np.zeros_like)
def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **kwargs: Any
) -> Any:
    """Zeros of the shape and dtype of `a`."""
    extents, to = _like(a, dtype, shape, "zeros_like")
    return finish(full_of(extents, 0, to))


@implements(np.ones_like)
def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **kwargs: Any
) -> Any:
    """Ones of the shape and dtype of `a`."""
    extents, to = _like(a, dtype, shape, "ones_like")
    return finish(full_of(extents, 1, to))


@implements(np.empty_like)
def empty_like(
    prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **kwargs: Any
) -> Any:
    """Zeros of the shape and dtype of `prototype`; see `empty`."""
    return zeros_like(prototype, dtype, shape=shape)


@implements(np.full_like)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    **kwargs: Any,
) -> Any:
    """One number everywhere, in the shape and dtype of `a`."""
    extents, to = _like(a, dtype, shape, "full_like")
    return finish(_filled(extents, array_operand(fill_value, "full_like", 1), to))


@implements(np.eye)
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, order: str = "C", **kwargs: Any) -> Any:
    """Ones on diagonal `k`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.eye(2)
    Array([[1., 0.],
           [0., 1.]])
    """
    rows, columns = positive_shape((N, N if M is None else M), "eye")
    return finish(eye_of(rows, columns, operator.index(k), _dtype(dtype, "eye")))


@implements(np.identity)
def identity(n: int, dtype: Any = None, **kwargs: Any) -> Any:
    """The identity matrix."""
    return eye(n, dtype=float if dtype is None else dtype)


@implements(np.tri)
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float, **kwargs: Any) -> Any:
    """Ones on and below diagonal `k`."""
    rows, columns = positive_shape((N, N if M is None else M), "tri")
    to = _dtype(dtype, "tri")
    if not _staged():
        return finish(np.tri(rows, columns, operator.index(k), to))
    row, column = iota((rows, 1), 0), iota((1, columns), 1)
    inside = ge_p.bind(add_p.bind(row, np.int64(operator.index(k))), column)
    return finish(convert_element_type_p.bind(inside, dtype=to))


# --- counted ------------------------------------------------------------------------------------------------


@implements(np.arange)
def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None, **kwargs: Any) -> Any:
    """Numbers from `start` (default 0) in steps of `step` (default 1), before `stop`.

    All must be known while tracing, since the shape depends on them.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.arange(3), fnp.arange(0.0, 1.0, 0.5)
    (Array([0, 1, 2]), Array([0. , 0.5]))
    """
    given = [_known(a, "arange") for a in (start, stop, step)]
    to = None if dtype is None else canonical(dtype, "arange: dtype")
    if given[1] is None:
        given[:2] = [0, given[0]]
    values = np.arange(given[0], given[1], 1 if given[2] is None else given[2], to)  # type: ignore[call-overload]
    if not _staged() or values.size < 2 or values.dtype.kind == "b":
        return finish(values)
    return finish(_counted(len(values), values[0], values[1] - values[0]))


def _known(a: Any, name: str) -> Any:
    """A number that shapes may depend on."""
    if not isinstance(a, Tracer):
        return a
    found = a.concrete()
    if found is None:
        return float(a) if a.dtype.kind == "f" else operator.index(a)  # raises, and says why
    return found


def _counted(count: int, first: Any, step: Any) -> Any:
    """``first + step * i``, made by the program."""
    numbers = convert(iota((count,), 0), first.dtype)
    if step != 1:
        numbers = mul_p.bind(numbers, step)
    return add_p.bind(numbers, first) if first else numbers


@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    **kwargs: Any,
) -> Any:
    """Numbers evenly spaced from `start` to `stop`, which may be arrays and traced; derivatives flow through
    both.

    Parameters
    ----------
    start, stop : array_like
        They broadcast together.
    num : int
        How many.
    endpoint : bool
        Whether `stop` is the last of them.
    retstep : bool
        Return the step too.
    axis : int
        Where the numbers lie in the result, if `start` or `stop` are arrays.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linspace(0, 1, 3)
    Array([0. , 0.5, 1. ])
    """
    count = operator.index(_known(num, "linspace"))
    if count < 0:
        raise ArgumentValueError(f"linspace: num must not be negative, got {count}")
    x, y = operand(start, "linspace", 0), operand(stop, "linspace", 1)
    if not _staged() and not isinstance(x, Tracer) and not isinstance(y, Tracer):
        to = None if dtype is None else canonical(dtype, "linspace: dtype")
        values, step = np.linspace(x, y, count, endpoint, True, to, axis)  # type: ignore[call-overload]
        return (finish(values), finish(np.asarray(step))) if retstep else finish(values)
    inner = np.result_type(*[0.0 if a.weak else a.dtype for a in (aval_of(x), aval_of(y))], 0.0)
    values, step = _spaced(strong(x, inner), strong(y, inner), count, endpoint)
    to = inner if dtype is None else canonical(dtype, "linspace: dtype")
    if to.kind in "iu":
        values = floor_p.bind(values)
    ndim = len(shape_of(values))
    values = move_batch_axis(convert(values, to), 0, one_axis(axis, ndim, "linspace"))
    return (finish(values), finish(step)) if retstep else finish(values)


def _spaced(x: Any, y: Any, count: int, endpoint: bool) -> tuple[Any, Any]:
    dtype = x.dtype
    delta = sub_p.bind(y, x)
    shape = (count, *shape_of(delta))
    intervals = count - 1 if endpoint else count
    i = convert(iota((count,) + (1,) * (len(shape) - 1), 0), dtype)
    if intervals <= 0:
        return broadcast_to(x, shape), full_of(shape_of(delta), math.nan, dtype)
    step = div_p.bind(delta, dtype.type(intervals))
    values = add_p.bind(mul_p.bind(i, step), x)
    if endpoint:  # the last is `stop` itself, not what rounding makes of it
        values = select_p.bind(eq_p.bind(i, dtype.type(intervals)), y, values)
    return values, step


@implements(np.logspace)
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Powers of `base` with exponents evenly spaced from `start` to `stop`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.logspace(0, 2, 3)
    Array([  1.,  10., 100.])
    """
    exponents = operand(linspace(start, stop, num, endpoint, axis=axis), "logspace")
    powers = pow_p.bind(strong(operand(base, "logspace", 4), exponents.dtype), exponents)
    return finish(powers if dtype is None else convert(powers, canonical(dtype, "logspace: dtype")))


@implements(np.geomspace)
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """Numbers in geometric progression from `start` to `stop`, which are positive.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.geomspace(1, 8, 4)
    Array([1., 2., 4., 8.])
    """
    x, y = in_one_dtype([operand(start, "geomspace", 0), operand(stop, "geomspace", 1)], None, "geomspace")
    if x.dtype.kind not in "f":
        x, y = convert(x, _FLOAT64), convert(y, _FLOAT64)
    known = [a.concrete() if isinstance(a, Tracer) else a for a in (x, y)]
    if any(a is not None and np.any(np.asarray(a) <= 0) for a in known):
        raise ArgumentValueError("geomspace: start and stop must be positive")
    ends = log2_p.bind(x), log2_p.bind(y)
    powers = exp2_p.bind(operand(linspace(*ends, num, endpoint, axis=axis), "geomspace"))
    return finish(powers if dtype is None else convert(powers, canonical(dtype, "geomspace: dtype")))


# --- meshes -------------------------------------------------------------------------------------------------


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Any, ...]:
    """Coordinate arrays of the mesh of all combinations.

    Parameters
    ----------
    *xi : array_like, shape (n_i,)
    sparse : bool
        Leave extents of 1 to broadcasting.
    indexing : {'xy', 'ij'}
        With 'xy' the first two axes of the results are exchanged: rows are the second vector's.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> [x.shape for x in fnp.meshgrid(fnp.arange(2), fnp.arange(3))]
    [(3, 2), (3, 2)]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    ndim = len(xi)
    values = []
    for d, a in enumerate(xi):
        x = array_operand(a, "meshgrid", d)
        size = prod(shape_of(x))
        values.append(reshape_p.bind(x, shape=tuple([size if e == d else 1 for e in range(ndim)])))
    if indexing == "xy" and ndim > 1:
        order = (1, 0, *range(2, ndim))
        values = [transpose_p.bind(x, permutation=order) for x in values]
    if not sparse and values:
        shape = broadcast_shapes("meshgrid", *map(shape_of, values))
        values = [broadcast_to(x, shape) for x in values]
    return tuple([owned(x, a) for x, a in zip(values, xi)])


@implements(np.indices)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """The index along each axis, at every place of an array of the shape `dimensions`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.indices((2, 2))[1]
    Array([[0, 1],
           [0, 1]])
    """
    shape = positive_shape(dimensions, "indices")
    to = canonical(dtype, "indices: dtype")
    ndim = len(shape)
    if sparse:
        rows = [tuple([n if e == d else 1 for e in range(ndim)]) for d, n in enumerate(shape)]
        return tuple([finish(iota(row, d, to)) for d, row in enumerate(rows)])
    if not _staged():
        return finish(np.indices(shape, to))
    return finish(_stacked([iota((1, *shape), d + 1, to) for d in range(ndim)], shape, to))


def _stacked(rows: list[Any], shape: tuple[int, ...], dtype: np.dtype) -> Any:
    if not rows:
        return full_of((0,), 0, dtype)
    return concatenate_p.bind(*rows, dimension=0)
