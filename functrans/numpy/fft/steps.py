"""Common parts of the transforms (operands, lengths, scaling, the sequence of primitives), and frequencies."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...arrays.arguments import Device
from ...arrays.array import Array
from ...core.dtypes import (
    FLOAT32,
    canonical,
    complex_dtype,
    is_complex,
    is_float,
    is_inexact,
    is_low,
)
from ...core.jax_dtypes import default_float
from ...core.values import ArrayLike, AxisLike, DTypeLike, Value
from ...errors import ArgumentError, ArgumentValueError, AxisError, DtypeError, ShapeError
from ...frontend.checked import checked
from ...primitives import ops
from ...primitives.ops import axes_or_all, finish, one_axis, shape_of, strong
from ..dispatch import array_operand, implements, owned
from ..shaping.moving import roll


def operand_of(name: str, a: Value, out: ArrayLike) -> Value:
    """Convert the array to transform to floats (at least float32) or complex numbers."""
    if out is not None:
        raise ArgumentError(f"{name}: out= is not supported: arrays are immutable; use the returned value")
    x = array_operand(a, name)
    if is_low(x.dtype):
        return ops.convert(x, FLOAT32)
    return x if is_inexact(x.dtype) else strong(x, default_float())


def conjugated(x: Value) -> Value:
    """The complex conjugate; real numbers are unchanged."""
    return ops.conj_p.bind(x) if is_complex(x.dtype) else x


def length(name: str, n: ArrayLike) -> int:
    """Check a number of points."""
    try:
        points = operator.index(n)
    except TypeError as error:
        if isinstance(error, ArgumentError) or type(error) is not TypeError:
            raise
        raise ArgumentError(
            f"{name}: the number of points (n or s) along an axis must be an integer, got {n!r}"
        ) from None
    if points < 1:
        raise ArgumentValueError(
            f"{name}: the number of points (n or s) along an axis must be at least 1, got {points}"
        )
    return points


def resized(x: Value, axis: int, n: int) -> Value:
    """The first `n` elements along an axis, padded with zeros."""
    shape = shape_of(x)
    if shape[axis] > n:
        return ops.slice_along(x, axis, 0, n)
    if shape[axis] == n:
        return x
    pads = [(0, 0, 0)] * len(shape)
    pads[axis] = (0, n - shape[axis], 0)
    return ops.pad_p.bind(x, x.dtype.type(0), padding_config=tuple(pads))


def scaling(name: str, norm: Any) -> str:
    """Check which direction is scaled."""
    if norm is None:
        return "backward"
    if not (isinstance(norm, str) and norm in ops.SWAPPED):
        raise ArgumentValueError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    return norm


def swapped(name: str, norm: Any) -> str:
    """The scaling of a transform computed by its inverse."""
    return ops.SWAPPED[scaling(name, norm)]


def transform(
    name: str, kind: str, x: Value, axes: Sequence[int], lengths: Sequence[int], norm: Any
) -> Value:
    """Bind the primitive to an array cropped and padded to `lengths`; `axes` are distinct, and not negative."""
    if kind == "rfft" and is_complex(x.dtype):
        raise DtypeError(
            f"{name}: expected real numbers, got {x.dtype}; use the transform of complex numbers, or .real"
        )
    if kind == "irfft" and not is_complex(x.dtype):
        x = ops.convert(x, complex_dtype(x.dtype))
    for place, (d, n) in enumerate(zip(axes, lengths)):
        halved = kind == "irfft" and place == len(axes) - 1
        x = resized(x, d, n // 2 + 1 if halved else n)
    return ops.fft_p.bind(x, kind=kind, axes=tuple(axes), lengths=tuple(lengths), norm=scaling(name, norm))


def along_one(name: str, kind: str, x: ArrayLike, n: ArrayLike, axis: AxisLike, norm: Any) -> Value:
    """Transform along one axis."""
    d = one_axis(axis, len(shape_of(x)), name)
    if n is None:
        n = 2 * (shape_of(x)[d] - 1) if kind == "irfft" else shape_of(x)[d]
    return transform(name, kind, x, (d,), (length(name, n),), norm)


def places_and_sizes(
    name: str, shape: tuple[int, ...], s: ArrayLike, axes: AxisLike
) -> tuple[list[int], list[int | None]]:
    """The axes to transform, and the numbers of points along each: None and -1 mean all."""
    for what, given in (("s", s), ("axes", axes)):
        if not (given is None or isinstance(given, Iterable)):
            raise ArgumentError(f"{name}: {what} must be a sequence of integers, got {given!r}")
    sizes = None if s is None else list(s)
    if axes is None:
        axes = range(-len(shape if sizes is None else sizes), 0)
    places = [one_axis(d, len(shape), name) for d in axes]
    if sizes is None:
        sizes = [None] * len(places)
    if len(sizes) != len(places):
        raise ArgumentValueError(
            f"{name}: s and axes have different lengths ({len(sizes)} and {len(places)})"
        )
    return places, sizes


def along_many(name: str, kind: str, x: Value, s: ArrayLike, axes: AxisLike, norm: Any) -> Value:
    """Transform along several axes; twice along an axis that occurs twice."""
    shape = shape_of(x)
    places, sizes = places_and_sizes(name, shape, s, axes)
    if not places:
        if kind in ("fft", "ifft"):
            return x
        raise AxisError(f"{name}: at least one axis must be transformed, got shape {shape} and axes {axes}")
    whole = [n is None or n == -1 for n in sizes]
    if kind == "irfft" and s is None:
        whole[-1], sizes[-1] = False, 2 * (shape[places[-1]] - 1)
    lengths = [length(name, shape[d] if w else n) for d, n, w in zip(places, sizes, whole)]
    if len(set(places)) == len(places):
        return transform(name, kind, x, places, lengths, norm)
    *others, last = zip(places, lengths)
    complex_kind = {"rfft": "fft", "irfft": "ifft"}.get(kind, kind)
    order = [(complex_kind, *step) for step in reversed(others)]
    order.insert(len(order) if kind == "irfft" else 0, (kind, *last))
    for step, d, n in order:
        x = transform(name, step, x, (d,), (n,), norm)
    return x


@checked
def fftfreq(n: int, d: ArrayLike = 1.0, device: Device = None, *, dtype: DTypeLike = None) -> Array:
    """The frequencies of the results of `fft` of `n` points, in cycles per unit of `d`.

    Parameters
    ----------
    n : int
    d : number
        The distance of the points; may be traced.
    device : {None, 'cpu'}
    dtype : dtype, optional
        float64 by default.

    Returns
    -------
    Array, shape (n,)
        ``[0, 1, ..., (n-1)//2, -(n//2), ..., -1] / (n * d)``

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.fftfreq(5, 0.1)
    Array([ 0.,  2.,  4., -4., -2.])
    """
    count = length("fftfreq", n)
    k = ops.iota((count,), 0)
    positive = ops.lt_p.bind(k, np.int64((count - 1) // 2 + 1))
    return _spaced(
        "fftfreq", ops.select_p.bind(positive, k, ops.sub_p.bind(k, np.int64(count))), count, d, device, dtype
    )


@checked
def rfftfreq(n: int, d: ArrayLike = 1.0, device: Device = None, *, dtype: DTypeLike = None) -> Array:
    """The frequencies of the results of `rfft` of `n` points, in cycles per unit of `d`.

    Parameters as for `fftfreq`.

    Returns
    -------
    Array, shape (n // 2 + 1,)
        ``[0, 1, ..., n // 2] / (n * d)``

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.rfftfreq(5, 0.1)
    Array([0., 2., 4.])
    """
    count = length("rfftfreq", n)
    return _spaced("rfftfreq", ops.iota((count // 2 + 1,), 0), count, d, device, dtype)


def _spaced(name: str, k: ArrayLike, n: int, d: ArrayLike, device: Any, dtype: DTypeLike) -> Any:
    if device not in (None, "cpu"):
        raise ArgumentValueError(
            f"{name}: there is one device only: device must be None or 'cpu', got {device!r}"
        )
    to = default_float() if dtype is None else canonical(dtype, f"{name}: dtype")
    if not is_float(to):
        raise DtypeError(f"{name}: frequencies are float numbers, got dtype {to}")
    distance = operand_of(name, d, None)
    if shape_of(distance):
        raise ShapeError(
            f"{name}: the distance d must be a number, got an array of shape {shape_of(distance)}"
        )
    step = ops.div_p.bind(distance.dtype.type(1), ops.mul_p.bind(distance.dtype.type(n), distance))
    return finish(ops.convert(ops.mul_p.bind(ops.convert(k, step.dtype), step), to))


@implements(np.fft.fftshift)
def fftshift(x: ArrayLike, axes: AxisLike = None) -> Value:
    """Move frequency 0 to the middle by rolling each axis by half of its length.

    Parameters
    ----------
    x : array_like
    axes : int or sequence of int, optional
        By default all.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.fftshift(fnp.fft.fftfreq(5, 0.1))
    Array([-4., -2.,  0.,  2.,  4.])
    """
    return _rolled("fftshift", x, axes, 1)


@implements(np.fft.ifftshift)
def ifftshift(x: ArrayLike, axes: AxisLike = None) -> Any:
    """The inverse of `fftshift`, for odd lengths too.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.fft.ifftshift(fnp.fft.fftshift([0.0, 1.0, 2.0]))
    Array([0., 1., 2.])
    """
    return _rolled("ifftshift", x, axes, -1)


def _rolled(name: str, x: Value, axes: AxisLike, sign: int) -> Value:
    value = array_operand(x, name)
    shape = shape_of(value)
    places = axes_or_all(axes, len(shape), name)
    if not places:
        return owned(value, x)
    return roll(x, tuple([sign * (shape[d] // 2) for d in places]), places)
