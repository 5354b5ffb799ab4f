"""Check axes, shapes and dtypes: as users write them (negative axes, a single number for a tuple, ``-1`` in a shape),
and those of a primitive's operands.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..arrays.protocols import is_sequence
from ..core import KEY, Aval, Tracer, dtype_kind, is_abstract, refused_keys
from ..core.values import ArrayLike, AxisLike, ShapeLike


def one_axis(axis: AxisLike, ndim: int, name: str) -> int:
    """Return the axis, counted from the front.

    Raises
    ------
    AxisError
        If the axis is out of bounds.
    ArgumentError
        If it is not an integer.
    TracerIntegerConversionError
        If it is traced: axes must be known while tracing.
    """
    if is_abstract(axis):
        raise errors.TracerIntegerConversionError(
            f"{name}: the axis is a traced value of type {axis.aval}, and axes must be known while tracing. Mark the "
            "argument static: jit(f, static_argnames='axis')"
        )
    try:
        d = operator.index(axis)
    except TypeError:
        raise errors.ArgumentError(f"{name}: axis must be an integer, got {axis!r}") from None
    if not -ndim <= d < ndim:
        raise errors.AxisError(f"{name}: axis {d} is out of bounds for array of dimension {ndim}")
    return d + ndim if d < 0 else d


def many_axes(axes: AxisLike, ndim: int, name: str) -> tuple[int, ...]:
    """Return distinct axes, counted from the front. A single integer counts as a tuple of one."""
    listed = _listed(axes, f"{name}: axis")
    normalized = tuple([one_axis(a, ndim, name) for a in listed])
    if len(set(normalized)) != len(normalized):
        raise errors.ArgumentValueError(f"{name}: duplicate axis in {tuple(listed)}")
    return normalized


def axes_or_all(axes: AxisLike, ndim: int, name: str) -> tuple[int, ...]:
    """Like `many_axes`; None means all axes."""
    return tuple(range(ndim)) if axes is None else many_axes(axes, ndim, name)


def reduced_axes(axes: AxisLike, ndim: int, name: str) -> tuple[int, ...]:
    """Like `axes_or_all`, but a 0-d array accepts the axes 0 and -1, as in NumPy."""
    if ndim == 0 and type(axes) is int and axes in (0, -1):
        return ()
    return axes_or_all(axes, ndim, name)


def _listed(value: ArrayLike, where: str) -> Sequence[Any]:
    """Return the elements of a sequence; a single integer counts as a sequence of one."""
    if type(value) is tuple or type(value) is list:
        return value
    if isinstance(value, np.ndarray) and value.ndim > 0:
        if value.dtype.kind not in "iu":
            raise errors.ArgumentError(f"{where} must be integers, got an array of dtype {value.dtype}")
        return tuple(value)
    if (isinstance(value, Iterable) or is_sequence(value)) and getattr(value, "ndim", 1) > 0:
        if not (isinstance(value, Tracer) or is_sequence(value)):
            raise errors.ArgumentError(
                f"{where} must be integers, got {value!r} of type {type(value).__name__}"
            )
        return tuple(value)
    return (value,)


def as_shape(shape: ShapeLike, name: str) -> tuple[int, ...]:
    """Return a shape as a tuple of ints; a single integer is a shape of one axis.

    Raises
    ------
    ArgumentError
        If an element is not an integer.
    TracerIntegerConversionError
        If an element is traced: shapes must be known while tracing.
    """
    if type(shape) is tuple and all(type(n) is int for n in shape):
        return shape
    extents = []
    for n in _listed(shape, f"{name}: shape"):
        if isinstance(n, bool):
            raise errors.ArgumentError(f"{name}: shape must be integers, got {n} of type bool")
        try:
            extents.append(operator.index(n))
        except TypeError as error:
            if isinstance(error, errors.ArgumentError) or type(error) is not TypeError:
                raise
            raise errors.ArgumentError(
                f"{name}: shape must be integers, got {n!r} of type {type(n).__name__}"
            ) from None
        if abs(extents[-1]) >= 2**63:
            raise errors.ArgumentValueError(
                f"{name}: shape has an extent of {extents[-1]}, which exceeds int64"
            )
    return tuple(extents)


def positive_shape(shape: ShapeLike, name: str) -> tuple[int, ...]:
    """Like `as_shape`, but reject negative extents."""
    extents = as_shape(shape, name)
    if any(n < 0 for n in extents):
        raise errors.ArgumentValueError(f"{name}: negative dimensions are not allowed, got shape {extents}")
    return extents


def filled_shape(shape: tuple[int, ...], size: int, name: str, own: tuple[int, ...]) -> tuple[int, ...]:
    """Replace the ``-1`` of a shape by the extent that gives it `size` elements."""
    known = 1
    for n in shape:
        if n != -1:
            known *= n
    if shape.count(-1) > 1:
        raise errors.ArgumentValueError(f"{name}: only one axis can be -1, got shape {shape}")
    if -1 in shape and known > 0 and size % known == 0:
        return tuple([size // known if n == -1 else n for n in shape])
    if -1 in shape or known != size or any(n < 0 for n in shape):
        raise errors.ShapeError(
            f"{name}: cannot reshape array of shape {own} and size {size} into shape {shape}"
        )
    return shape


# --- operands of primitives ---------------------------------------------------------------------------------


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    ndim = max(map(len, shapes))
    if ndim <= 32:  # NumPy's function accepts no more
        return np.broadcast_shapes(*shapes)
    rows = [(1,) * (ndim - len(s)) + s for s in shapes]
    return tuple([np.broadcast_shapes(*[(n,) for n in column])[0] for column in zip(*rows)])


def broadcast_shapes(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Broadcast shapes as NumPy does; a `ShapeError` names the operation and all shapes."""
    first = shapes[0]
    if all(s == first or not s for s in shapes):
        return first
    try:
        return _broadcast(shapes)
    except ValueError:
        listed = " and ".join(map(str, shapes)) if len(shapes) == 2 else ", ".join(map(str, shapes))
        raise errors.ShapeError(
            f"{name}: shapes {listed} do not broadcast together: extents, aligned from the last axis, must be equal or "
            "1. Insert an axis (x[:, None]), transpose or reshape one of them"
        ) from None


#: The kinds of dtypes whose elements can be moved: numbers and keys.
MOVED = "biufcV"


def same_dtype(name: str, avals: Sequence[Aval], kinds: str = "biufc") -> np.dtype:
    """Return the common dtype of the operands; raise `DtypeError` if dtypes differ."""
    dtype = avals[0].dtype
    for a in avals:
        if a.dtype != dtype:
            listed = ", ".join(str(b.dtype) for b in avals)
            raise errors.DtypeError(f"{name}: operands have different dtypes ({listed}); convert them first")
    if dtype_kind(dtype) not in kinds:
        if dtype == KEY:
            raise refused_keys(name)
        raise errors.DtypeError(
            f"{name}: dtype {dtype} is not supported; convert the operand with .astype first"
        )
    return dtype


def check_axes(name: str, axes: Sequence[int], shape: tuple[int, ...]) -> None:
    """Refuse axes that are repeated, or not within ``[0, ndim)``."""
    for d in axes:
        if not 0 <= d < len(shape):
            raise errors.ShapeError(f"{name}: axis {d} is out of bounds for an array of shape {shape}")
    if len(set(axes)) != len(axes):
        raise errors.ShapeError(f"{name}: duplicate axis in {tuple(axes)}, for an array of shape {shape}")


def reduced_shape(name: str, x: Aval, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape without the reduced axes, which must be distinct and within bounds."""
    check_axes(name, axes, x.shape)
    return tuple([n for d, n in enumerate(x.shape) if d not in axes])
