"""Ranges of numbers and meshes: arange, linspace, logspace, geomspace, meshgrid, indices."""

from __future__ import annotations

import math
import operator
from math import prod
from typing import Any

import numpy as np

from ...arrays.arguments import Device, Like
from ...core import (
    COMPLEX128,
    FLOAT64,
    PYTHON_KEYS,
    ArgumentValueError,
    Tracer,
    aval_of,
    canonical,
    concrete,
    is_bfloat16,
    is_float,
    promote,
    run_quietly,
)
from ...core.jax_dtypes import default_float
from ...core.values import ArrayLike, DTypeLike, Value
from ...primitives import ops, ufuncs
from ...primitives.ops import finish, one_axis, operand, positive_shape, shape_of, strong
from ..dispatch import array_operand, implements, in_one_dtype, on_cpu, owned, staging

__all__ = ["arange", "geomspace", "indices", "linspace", "logspace", "meshgrid"]


@implements(np.arange)
def arange(
    start: ArrayLike,
    stop: ArrayLike = None,
    step: ArrayLike = None,
    dtype: DTypeLike = None,
    *,
    device: Device = None,
    like: Like = None,
) -> Any:
    """Numbers from `start` (default 0) in steps of `step` (default 1), up to but not including `stop`.

    All must be known while tracing, since the shape depends on them.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.arange(3), fnp.arange(0.0, 1.0, 0.5)
    (Array([0, 1, 2]), Array([0. , 0.5]))
    """
    on_cpu(device, "arange")
    given = [_number(a, "arange") for a in (start, stop, step)]
    to = None if dtype is None else canonical(dtype, "arange: dtype")
    if given[1] is None:
        given[:2] = [0, given[0]]
    values = np.arange(given[0], given[1], 1 if given[2] is None else given[2], to)  # type: ignore[call-overload]
    if not staging() or values.size < 2 or values.dtype.kind == "b":
        return finish(values)
    return finish(_counted(len(values), values[0], values[1] - values[0]))


def _number(a: ArrayLike, name: str) -> Any:
    """Convert to a number that shapes may depend on."""
    if not isinstance(a, Tracer):
        return a
    number = a.concrete()
    if number is None:
        return float(a) if is_float(a.dtype) else operator.index(a)  # raises an error that explains itself
    return number


def _counted(count: int, first: ArrayLike, step: ArrayLike) -> Value:
    """``first + step * i``, computed in the traced program."""
    numbers = ops.convert(ops.iota((count,), 0), first.dtype)
    if step != 1:
        numbers = ops.mul_p.bind(numbers, step)
    return ops.add_p.bind(numbers, first) if first else numbers


def _is_numpys(x: Value) -> bool:
    """Whether NumPy can compute with a value."""
    return type(x) in PYTHON_KEYS or not (isinstance(x, Tracer) or is_bfloat16(x.dtype))


@implements(np.linspace)
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike = None,
    axis: int = 0,
    *,
    device: Device = None,
    like: Like = None,
) -> Any:
    """Numbers evenly spaced from `start` to `stop`, which may be arrays, traced, and differentiated.

    Parameters
    ----------
    start, stop : array_like
        They broadcast together.
    num : int
        The number of points.
    endpoint : bool
        Whether `stop` is the last point.
    retstep : bool
        Whether to return the step, too.
    axis : int
        The axis of the points in the result, if `start` or `stop` are arrays.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linspace(0, 1, 3)
    Array([0. , 0.5, 1. ])
    """
    on_cpu(device, "linspace")
    count = operator.index(_number(num, "linspace"))
    if count < 0:
        raise ArgumentValueError(f"linspace: num must not be negative, got {count}")
    x, y = operand(start, "linspace", 0), operand(stop, "linspace", 1)
    if not staging() and _is_numpys(x) and _is_numpys(y):
        to = None if dtype is None else canonical(dtype, "linspace: dtype")
        if axis:
            one_axis(axis, 1 + max(np.ndim(x), np.ndim(y)), "linspace")
        values, step = np.linspace(x, y, count, endpoint, True, to, axis)  # type: ignore[call-overload]
        return (finish(values), finish(np.asarray(step))) if retstep else finish(values)
    inner, _ = promote([(FLOAT64, True), *[(a.dtype, a.weak) for a in (aval_of(x), aval_of(y))]])
    values, step = _spaced(strong(x, inner), strong(y, inner), count, endpoint)
    to = inner if dtype is None else canonical(dtype, "linspace: dtype")
    if to.kind in "iu":
        values = ops.floor_p.bind(values)
    ndim = len(shape_of(values))
    values = ops.move_axis(ops.convert(values, to), 0, one_axis(axis, ndim, "linspace"))
    return (finish(values), finish(step)) if retstep else finish(values)


def _spaced(x: ArrayLike, y: ArrayLike, count: int, endpoint: bool) -> tuple[Any, Any]:
    dtype = x.dtype
    delta = ops.sub_p.bind(y, x)
    shape = (count, *shape_of(delta))
    intervals = count - 1 if endpoint else count
    i = ops.convert(ops.iota((count,) + (1,) * (len(shape) - 1), 0), dtype)
    if intervals <= 0:
        return ops.broadcast_to(x, shape), ops.full(shape_of(delta), math.nan, dtype)
    step = ops.div_p.bind(delta, dtype.type(intervals))
    values = ops.add_p.bind(ops.mul_p.bind(i, step), x)
    if endpoint:  # the last is `stop` itself, not what rounding makes of it
        values = ops.select_p.bind(ops.eq_p.bind(i, dtype.type(intervals)), y, values)
    return values, step


@implements(np.logspace)
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: DTypeLike = None,
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
    powers = ops.pow_p.bind(strong(operand(base, "logspace", 4), exponents.dtype), exponents)
    return finish(powers if dtype is None else ops.convert(powers, canonical(dtype, "logspace: dtype")))


@implements(np.geomspace)
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Value:
    """Numbers in geometric progression from `start` to `stop`, which must have one sign, or be complex.

    Raises
    ------
    ArgumentValueError
        If `start` or `stop` is known to be 0.

    Notes
    -----
    Real ends with different signs yield NaN.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.geomspace(1, 8, 4), fnp.geomspace(-8, -1, 4)
    (Array([1., 2., 4., 8.]), Array([-8., -4., -2., -1.]))
    """
    x, y = in_one_dtype([operand(start, "geomspace", 0), operand(stop, "geomspace", 1)], None, "geomspace")
    inner = COMPLEX128 if x.dtype.kind == "c" else default_float()  # whatever the ends are, as NumPy
    x, y = ops.convert(x, inner), ops.convert(y, inner)
    known = [concrete(a) for a in (x, y)]
    if any(a is not None and np.any(np.asarray(a) == 0) for a in known):
        raise ArgumentValueError(
            "geomspace: start and stop must not be zero: a geometric progression cannot include zero"
        )
    sign = ufuncs.sign(x)
    first, last = (
        run_quietly(lambda a: ufuncs.log2(ufuncs.divide(a, sign)), a, invalid="ignore") for a in (x, y)
    )
    powers = operand(ufuncs.multiply(sign, ufuncs.exp2(linspace(first, last, num, endpoint))), "geomspace")
    values = _with_ends(powers, x, y if endpoint else None)
    values = values if dtype is None else ops.convert(values, canonical(dtype, "geomspace: dtype"))
    return finish(ops.move_axis(values, 0, one_axis(axis, len(shape_of(values)), "geomspace")))


def _with_ends(values: ArrayLike, first: ArrayLike, last: ArrayLike) -> Value:
    """Replace the first and the last value by the exact ends, without rounding."""
    shape = shape_of(values)
    i = ops.broadcast_to(ops.iota((shape[0],) + (1,) * (len(shape) - 1), 0), shape)
    for place, end in ((shape[0] - 1, last), (0, first)):
        if end is not None:
            chosen = ops.eq_p.bind(i, ops.broadcast_to(np.int64(place), shape))
            values = ops.select_p.bind(chosen, ops.broadcast_to(end, shape), values)
    return values


# --- meshes -------------------------------------------------------------------------------------------------


@implements(np.meshgrid)
def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Any, ...]:
    """Coordinate arrays of the mesh of all combinations.

    Parameters
    ----------
    *xi : array_like, shape (n_i,)
    sparse : bool
        Whether to leave axes of extent 1 to broadcasting.
    indexing : {'xy', 'ij'}
        With 'xy', the first two axes of the results are exchanged: rows follow the second vector.

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
        values.append(ops.reshape_p.bind(x, shape=tuple([size if e == d else 1 for e in range(ndim)])))
    if indexing == "xy" and ndim > 1:
        order = (1, 0, *range(2, ndim))
        values = [ops.transpose_p.bind(x, permutation=order) for x in values]
    if not sparse and values:
        shape = ops.broadcast_shapes("meshgrid", *map(shape_of, values))
        values = [ops.broadcast_to(x, shape) for x in values]
    return tuple([owned(x, a) for x, a in zip(values, xi)])


@implements(np.indices)
def indices(dimensions: Any, dtype: DTypeLike = int, sparse: bool = False) -> Any:
    """The index along each axis of every element of an array with the shape `dimensions`.

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
        return tuple([finish(ops.iota(row, d, to)) for d, row in enumerate(rows)])
    if not staging():
        return finish(np.indices(shape, to))
    return finish(_stacked([ops.iota((1, *shape), d + 1, to) for d in range(ndim)], shape, to))


def _stacked(rows: list[Any], shape: tuple[int, ...], dtype: np.dtype) -> Value:
    if not rows:
        return ops.full((0,), 0, dtype)
    return ops.concatenate_p.bind(*rows, dimension=0)
