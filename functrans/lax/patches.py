"""Windows of an array as channels, and convolutions with a different window at each position."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..core import ArgumentValueError, DtypeError, ShapeError, canonical
from ..core.values import ArrayLike, DTypeLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..numpy.products import einsum
from ..primitives import ops
from ..primitives.ops import as_shape, dtype_of, finish, shape_of
from .convolution import conv_dimension_numbers, permuted
from .windows import given_padding, of_rank, padding_in_words

__all__ = ["conv_general_dilated_local", "conv_general_dilated_patches"]


@checked
def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """The windows that a convolution would see, each as the channels of its position.

    Parameters
    ----------
    lhs : array_like
        By default of shape (examples, channels, ...).
    filter_shape : sequence of int
        The extents of a window.
    window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
        As for `conv_general_dilated`.
    precision
        Accepted, without effect.
    preferred_element_type : dtype-like, optional
        The dtype of the result.

    Returns
    -------
    Array
        In the layout of the result, with ``channels * prod(filter_shape)`` channels: those of `lhs` vary slowest.

    Raises
    ------
    ArgumentValueError, ShapeError
        If numbers or shapes do not fit together.

    Notes
    -----
    Elements are moved, not multiplied. Linear in `lhs`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.conv_general_dilated_patches(np.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]])
    """
    name = "lax.conv_general_dilated_patches"
    x = array_operand(lhs, name)
    window = as_shape(filter_shape, f"{name}: filter_shape")
    layout = conv_dimension_numbers(shape_of(x), (1, 1, *window), dimension_numbers)
    if preferred_element_type is not None:
        x = ops.convert(x, canonical(preferred_element_type, f"{name}: preferred_element_type"))
    out = _patches(
        name, permuted(x, layout.lhs_spec), window, window_strides, padding, lhs_dilation, rhs_dilation
    )
    order = sorted(range(len(window) + 2), key=tuple(layout.out_spec).__getitem__)
    return finish(permuted(out, order))


def _patches(
    name: str,
    x: Value,
    window: tuple[int, ...],
    strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
) -> Value:
    """In the default layout."""
    n, c, *spatial = shape_of(x)
    rank = len(window)
    if any(k < 1 for k in window):
        raise ArgumentValueError(f"{name}: filter_shape must be positive, got {window}")
    steps = of_rank(strides, rank, f"{name}: window_strides")
    base = of_rank(lhs_dilation, rank, f"{name}: lhs_dilation")
    dilation = of_rank(rhs_dilation, rank, f"{name}: rhs_dilation")
    inner = [ops.dilated(m, b) for m, b in zip(spatial, base)]
    whole = tuple([ops.dilated(k, d) for k, d in zip(window, dilation)])
    if isinstance(padding, str):
        if any(b != 1 for b in base) and padding.upper() != "VALID":
            raise ArgumentValueError(
                f"{name}: padding {padding!r} has no meaning with lhs_dilation={base}: give it in numbers"
            )
        pads = padding_in_words(tuple(inner), whole, steps, padding, name)
    else:
        pads = given_padding(padding, rank, name)
    config = ((0, 0, 0), (0, 0, 0), *[(low, high, b - 1) for (low, high), b in zip(pads, base)])
    x = ops.pad_p.bind(x, dtype_of(x).type(0), padding_config=config)
    extents = shape_of(x)[2:]
    out = [max((m - k) // s + 1, 0) for m, k, s in zip(extents, whole, steps)]
    shape = (*window, *out)
    indices = []
    for d in range(rank):
        offset = ops.mul_p.bind(ops.iota(shape, d), np.int64(dilation[d]))
        start = ops.mul_p.bind(ops.iota(shape, rank + d), np.int64(steps[d]))
        indices.append(ops.add_p.bind(offset, start))
    if rank:
        near = ops.gather_p.bind(x, *indices, axes=tuple(range(2, rank + 2)), mode="promise_in_bounds")
    else:
        near = x
    order = (2 * rank, 2 * rank + 1, *range(2 * rank))
    return ops.reshape_p.bind(permuted(near, order), shape=(n, c * prod(window), *out))


@checked
def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Array:
    """A convolution with weights that differ from position to position (a locally connected layer).

    Parameters
    ----------
    lhs : array_like
    rhs : array_like
        In the layout of a window: channels out, ``channels in * prod(filter_shape)`` channels in, and the spatial axes
        of the result.
    window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
        As for `conv_general_dilated`.
    filter_shape : sequence of int
        The extents of a window.
    precision
        Accepted, without effect.

    Returns
    -------
    Array

    Raises
    ------
    DtypeError
        If the operands have different dtypes.
    ShapeError
        If `rhs` does not match the windows.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.conv_general_dilated_local(np.ones((1, 1, 3)), np.arange(4.0).reshape(1, 2, 2), (1,), "VALID", (2,))
    Array([[[2., 4.]]])
    """
    name = "lax.conv_general_dilated_local"
    x, w = array_operand(lhs, name), array_operand(rhs, name, 1)
    if dtype_of(x) != dtype_of(w):
        raise DtypeError(
            f"{name}: operands have dtypes {dtype_of(x)} and {dtype_of(w)}; convert one with .astype"
        )
    window = as_shape(filter_shape, f"{name}: filter_shape")
    layout = conv_dimension_numbers(shape_of(x), (1, 1, *window), dimension_numbers)
    near = _patches(
        name, permuted(x, layout.lhs_spec), window, window_strides, padding, lhs_dilation, rhs_dilation
    )
    if len(shape_of(w)) != len(shape_of(x)):
        raise ShapeError(f"{name}: rhs must have {len(shape_of(x))} axes, as lhs, got shape {shape_of(w)}")
    w = permuted(w, layout.rhs_spec)
    if shape_of(w)[1:] != shape_of(near)[1:]:
        raise ShapeError(
            f"{name}: rhs must have {shape_of(near)[1]} channels in and spatial axes {shape_of(near)[2:]}, got "
            f"{shape_of(w)[1]} and {shape_of(w)[2:]}"
        )
    letters = "abcdefgh"[: len(window)]
    out = ops.operand(einsum(f"ni{letters},oi{letters}->no{letters}", finish(near), finish(w)), name)
    order = sorted(range(len(window) + 2), key=tuple(layout.out_spec).__getitem__)
    return finish(permuted(out, order))
