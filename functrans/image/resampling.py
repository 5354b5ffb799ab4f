"""Resampling along axes: each new element is a weighted mean of the old ones near by."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..arrays.array import Array
from ..core import ArgumentError, ArgumentValueError, ShapeError, Tracer, dtype_kind, is_inexact
from ..core.values import ArrayLike, ShapeLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, many_axes, positive_shape, shape_of
from .kernels import KERNELS, ResizeMethod

#: Weights that add up to less are those of no element.
_LEAST = 1000.0 * float(np.finfo(np.float32).eps)


@checked
def resize(
    image: ArrayLike,
    shape: ShapeLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = None,
) -> Array:
    """Resample an image to another shape.

    Parameters
    ----------
    image : array_like, shape (m1, ..., mk)
    shape : sequence of int
        The new shape; axes that keep their extent (examples, channels) stay as they are.
    method : str or ResizeMethod
        ``'nearest'``, ``'linear'`` (``'bilinear'``), ``'cubic'`` (``'bicubic'``), ``'cubic-pytorch'``, ``'lanczos3'``,
        ``'lanczos5'`` or ``'area'``.
    antialias : bool
        Whether to widen the kernel where the image shrinks.
    precision
        Accepted, without effect.

    Returns
    -------
    Array
        Floating point (float32 for uint8), except with ``'nearest'``, which keeps the dtype.

    Raises
    ------
    ArgumentValueError
        If the method is unknown.
    ShapeError
        If the shape has another number of axes.

    Notes
    -----
    Linear in the image. The cost is that of the elements near each new one, also under `jit`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.image import resize
    >>> resize(fnp.arange(4.0), (8,), "linear")
    Array([0.  , 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.  ])
    >>> resize(fnp.arange(4.0), (2,), "linear")
    Array([0.71428571, 2.28571429])
    """
    x, to, chosen = _arguments("resize", image, shape, method)
    own = shape_of(x)
    axes = [d for d, (m, n) in enumerate(zip(own, to)) if m != n]
    if 0 in own and 0 not in to:
        raise ShapeError(f"resize: image has no elements to fill shape {to} with, it has shape {own}")
    if chosen is ResizeMethod.NEAREST:
        for d in axes:
            # In single precision, as JAX rounds.
            places = (
                (np.arange(to[d], dtype=np.float32) + np.float32(0.5))
                * np.float32(own[d])
                / np.float32(to[d])
            )
            index = np.floor(places).astype(np.int64)
            x = ops.move_axis(ops.gather_p.bind(x, index, axes=(d,), mode="promise_in_bounds"), 0, d)
        return fnp.array(finish(x))
    x = _inexact(x)
    for d in sorted(axes, key=lambda d: to[d] / max(own[d], 1)):
        scale = to[d] / own[d] if to[d] else 1.0
        x = _resampled(x, d, to[d], scale, 0.0, chosen, antialias)
    return fnp.array(finish(x))


@checked
def scale_and_translate(
    image: ArrayLike,
    shape: ShapeLike,
    spatial_dims: ArrayLike,
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = None,
) -> Array:
    """Scale and move an image: the element at `x` comes to ``x * scale + translation``.

    Parameters
    ----------
    image : array_like
    shape : sequence of int
        The new shape.
    spatial_dims : sequence of int
        The axes to scale.
    scale, translation : array_like, shape (len(spatial_dims),)
        For each of these axes; may be traced. The centers of elements are at 0.5, 1.5, ...
    method, antialias, precision
        As for `resize`, except ``'nearest'``.

    Returns
    -------
    Array
        Zero where nothing of the image comes to.

    Raises
    ------
    ArgumentValueError
        If the method is unknown or ``'nearest'``.
    ShapeError
        If the arguments do not match.

    Notes
    -----
    Linear in the image; differentiable in scale and translation. If these are traced, each axis is a product with a
    matrix of weights.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.image import scale_and_translate
    >>> scale_and_translate(fnp.arange(1.0, 5.0), (4,), (0,), [1.0], [1.5], "linear")
    Array([0. , 1. , 1.5, 2.5])
    """
    name = "scale_and_translate"
    x, to, chosen = _arguments(name, image, shape, method)
    if chosen is ResizeMethod.NEAREST:
        raise ArgumentValueError(f"{name}: method 'nearest' is not available; use resize, or 'linear'")
    own = shape_of(x)
    axes = many_axes(spatial_dims, len(own), f"{name}: spatial_dims")
    factors = _of_axes(name, "scale", scale, len(axes))
    shifts = _of_axes(name, "translation", translation, len(axes))
    for d, (m, n) in enumerate(zip(own, to)):
        if d not in axes and m != n:
            raise ShapeError(
                f"{name}: axis {d} is not one of spatial_dims, so its extent must stay {m}, got {n}"
            )
    x = _inexact(x)
    for d, factor, shift in zip(axes, factors, shifts):
        x = _resampled(x, d, to[d], factor, shift, chosen, antialias)
    return fnp.array(finish(x))


def _arguments(
    name: str, image: Value, shape: ShapeLike, method: Any
) -> tuple[Any, tuple[int, ...], ResizeMethod]:
    x = array_operand(image, f"{name}: image")
    to = positive_shape(shape, f"{name}: shape")
    if len(to) != len(shape_of(x)):
        raise ShapeError(
            f"{name}: shape {to} must have the {len(shape_of(x))} axes of image, which has shape {shape_of(x)}"
        )
    return x, to, ResizeMethod.from_string(method)


def _inexact(x: Value) -> Value:
    """As floating-point numbers: small integers, such as uint8, in single precision."""
    return x if is_inexact(dtype_of(x)) else ops.convert(x, np.result_type(dtype_of(x), np.float32))


def _of_axes(name: str, what: str, values: ArrayLike, count: int) -> list[Any]:
    """A number for each axis: a Python number, unless it is traced."""
    given = array_operand(values, f"{name}: {what}")
    if shape_of(given) != (count,):
        raise ShapeError(
            f"{name}: {what} must be one number for each of {count} spatial_dims, got shape {shape_of(given)}"
        )
    if dtype_kind(dtype_of(given)) not in "fiu":
        raise ArgumentError(f"{name}: {what} must be real numbers, got {dtype_of(given)}")
    if isinstance(given, Tracer):
        return [given[i] for i in range(count)]
    return [float(v) for v in given]


# --- along one axis -----------------------------------------------------------------------------------------


def _resampled(
    x: ArrayLike,
    axis: int,
    n: int,
    scale: ArrayLike,
    translation: ArrayLike,
    method: ResizeMethod,
    antialias: bool,
) -> Value:
    """One axis, to extent `n`."""
    if method is ResizeMethod.CUBIC_PYTORCH and antialias:
        method = ResizeMethod.CUBIC
    m = shape_of(x)[axis]
    if not (n and m):
        shape = (*shape_of(x)[:axis], n, *shape_of(x)[axis + 1 :])
        return ops.operand(fnp.zeros(shape, dtype_of(x)), "image")
    known = isinstance(scale, float) and isinstance(translation, float)
    if known:
        index, weights = _few(m, n, scale, translation, method, antialias)
    else:
        beyond = KERNELS[method][0] if method is ResizeMethod.CUBIC_PYTORCH else 0
        if beyond:
            pads = [(beyond, beyond) if d == axis else (0, 0) for d in range(len(shape_of(x)))]
            x = ops.operand(fnp.pad(finish(x), pads, "edge"), "image")
        index = np.arange(-beyond, m + beyond)[None, :]
        weights = _weights(index, m, n, scale, translation, method, antialias)
    weights = ops.convert(ops.operand(weights, "image"), dtype_of(x))
    if not known:
        last = ops.move_axis(x, axis, len(shape_of(x)) - 1)
        return ops.move_axis(
            ops.operand(finish(last) @ finish(weights).T, "image"), len(shape_of(x)) - 1, axis
        )
    near = ops.gather_p.bind(x, index, axes=(axis,), mode="promise_in_bounds")
    spread = (*shape_of(index), *(1,) * (len(shape_of(x)) - 1))
    summed = ops.reduce_sum_p.bind(ops.mul_p.bind(near, ops.reshape_p.bind(weights, shape=spread)), axes=(1,))
    return ops.move_axis(summed, 0, axis)


def _few(
    m: int, n: int, scale: float, translation: float, method: ResizeMethod, antialias: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The elements near each new one, and their weights, both of shape (n, few)."""
    if not (scale > 0 and math.isfinite(scale) and math.isfinite(translation)):
        raise ArgumentValueError(
            f"image: scale must be positive and finite, got {scale} (translation {translation})"
        )
    start = np.arange(n) / scale - translation / scale
    if method is ResizeMethod.AREA:
        first, count = np.floor(start), math.ceil(1 / scale) + 1
    else:
        reach = KERNELS[method][0] * (max(1 / scale, 1.0) if antialias else 1.0)
        first, count = np.ceil(start + 0.5 / scale - 0.5 - reach), math.floor(2 * reach) + 1
    # No further from the image than a kernel reaches, so that indices stay small.
    index = (np.clip(first, -count, m)[:, None] + np.arange(count)).astype(np.int64)
    weights = _weights(index, m, n, scale, translation, method, antialias)
    return np.clip(index, 0, m - 1), weights


def _weights(
    index: ArrayLike,
    m: int,
    n: int,
    scale: ArrayLike,
    translation: ArrayLike,
    method: ResizeMethod,
    antialias: bool,
) -> Any:
    """How much each of some elements, shape (n, some), counts for each of the new ones; each row adds up to 1 or 0."""
    inverse = 1.0 / scale
    start = (np.arange(n) * inverse - translation * inverse)[:, None]
    center = start + 0.5 * inverse - 0.5
    repeated = method is ResizeMethod.CUBIC_PYTORCH
    if method is ResizeMethod.AREA:
        weights = np.maximum(0.0, np.minimum(start + inverse, index + 1.0) - np.maximum(start, 1.0 * index))
    else:
        kernel = KERNELS[method][1]
        weights = kernel(np.absolute(center - index) / (np.maximum(inverse, 1.0) if antialias else 1.0))
    beyond = KERNELS[method][0] if repeated else 0
    weights = np.where((index >= -beyond) & (index < m + beyond), weights, 0.0)
    total = np.sum(weights, 1, keepdims=True)
    some = np.absolute(total) > _LEAST
    weights = np.where(some, weights / np.where(some, total, 1.0), 0.0)
    return weights if repeated else np.where((center >= -0.5) & (center <= m - 0.5), weights, 0.0)
