"""What the transforms share: operands, lengths, scaling, and the sequence of primitives."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from ...core.dtypes import FLOAT64, complex_dtype, is_complex, is_inexact
from ...core.errors import ArgumentError, ArgumentValueError, AxisError, DtypeError
from ...primitives.axes import one_axis
from ...primitives.elementwise.arithmetic import convert
from ...primitives.elementwise.complexes import conj_p
from ...primitives.fft import SWAPPED, fft_p
from ...primitives.operands import strong
from ...primitives.structure.linear import shape_of
from ...primitives.structure.shape import pad_p, slice_along
from ..dispatch import array_operand


def operand_of(name: str, a: Any, out: Any) -> Any:
    """The array to transform, in float or complex numbers."""
    if out is not None:
        raise ArgumentError(f"{name}: out= is not supported: arrays never change; use the returned value")
    x = array_operand(a, name)
    return x if is_inexact(x.dtype) else strong(x, FLOAT64)


def conjugated(x: Any) -> Any:
    """The complex conjugate; real numbers as they are."""
    return conj_p.bind(x) if is_complex(x.dtype) else x


def length(name: str, n: Any) -> int:
    """A number of points, checked."""
    try:
        found = operator.index(n)
    except TypeError as error:
        if isinstance(error, ArgumentError) or type(error) is not TypeError:
            raise
        raise ArgumentError(
            f"{name}: the number of points (n or s) along an axis must be an integer, got {n!r}"
        ) from None
    if found < 1:
        raise ArgumentValueError(
            f"{name}: the number of points (n or s) along an axis must be at least 1, got {found}"
        )
    return found


def resized(x: Any, axis: int, n: int) -> Any:
    """The first `n` elements along an axis; zeros where there are fewer."""
    shape = shape_of(x)
    if shape[axis] > n:
        return slice_along(x, axis, 0, n)
    if shape[axis] == n:
        return x
    pads = [(0, 0, 0)] * len(shape)
    pads[axis] = (0, n - shape[axis], 0)
    return pad_p.bind(x, x.dtype.type(0), padding_config=tuple(pads))


def scaling(name: str, norm: Any) -> str:
    """Which direction is scaled, checked."""
    if norm is None:
        return "backward"
    if not (isinstance(norm, str) and norm in SWAPPED):
        raise ArgumentValueError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    return norm


def swapped(name: str, norm: Any) -> str:
    """The scaling of a transform that is written as its inverse."""
    return SWAPPED[scaling(name, norm)]


def transform(name: str, kind: str, x: Any, axes: Sequence[int], lengths: Sequence[int], norm: Any) -> Any:
    """The primitive on an array that is cut and padded to fit; `axes` are distinct, and counted from the front."""
    if kind == "rfft" and is_complex(x.dtype):
        raise DtypeError(
            f"{name}: want real numbers, got {x.dtype}; use the transform of complex numbers, or .real"
        )
    if kind == "irfft" and not is_complex(x.dtype):
        x = convert(x, complex_dtype(x.dtype))
    for place, (d, n) in enumerate(zip(axes, lengths)):
        halved = kind == "irfft" and place == len(axes) - 1
        x = resized(x, d, n // 2 + 1 if halved else n)
    return fft_p.bind(x, kind=kind, axes=tuple(axes), lengths=tuple(lengths), norm=scaling(name, norm))


def along_one(name: str, kind: str, x: Any, n: Any, axis: Any, norm: Any) -> Any:
    """A transform along one axis."""
    d = one_axis(axis, len(shape_of(x)), name)
    if n is None:
        n = 2 * (shape_of(x)[d] - 1) if kind == "irfft" else shape_of(x)[d]
    return transform(name, kind, x, (d,), (length(name, n),), norm)


def along_many(name: str, kind: str, x: Any, s: Any, axes: Any, norm: Any) -> Any:
    """A transform along several axes; along one that is named twice, twice."""
    shape = shape_of(x)
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
