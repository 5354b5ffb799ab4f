"""Shapes and dtypes of operations, as numbers: no array is computed."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import ArgumentError, ArgumentValueError, ShapeError, Tracer, canonical
from ..core.values import ArrayLike, ShapeLike
from ..frontend.checked import checked
from ..frontend.structs import described
from ..numpy.dispatch import array_operand, owned
from ..primitives import ops
from ..primitives.ops import as_shape, dtype_of, finish, operand, shape_of
from .convolution import ConvDimensionNumbers, conv_dimension_numbers, transposed_padding
from .windows import given_padding, of_rank, padding_in_words

__all__ = [
    "AccuracyMode", "DotDimensionNumbers", "Tolerance", "broadcast_like", "conv_general_permutations",
    "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose_shape_tuple", "dtype",
    "reduce_window_shape_tuple", "shape_as_value",
]  # fmt: skip

#: The axes that `dot_general` contracts, and its batch axes: each a pair of sequences, of the left and right operand.
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]],
    tuple[Sequence[int], Sequence[int]],
]
Ints = tuple[int, ...]


class AccuracyMode(enum.Enum):
    """How exact an elementwise function must be: the values of `accuracy`, beside `Tolerance`, without effect.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.exp(1.0, accuracy=lax.AccuracyMode.HIGHEST)
    Array(2.71828183)
    """

    HIGHEST = 1
    DEFAULT = 2


@dataclass(frozen=True)
class Tolerance:
    """How exact an elementwise function must be; functrans's functions are exact to rounding, whatever it says.

    Parameters
    ----------
    atol, rtol : float
        Absolute and relative errors.
    ulps : int
        Errors in units of the last place.

    Raises
    ------
    ArgumentValueError
        If one is negative, or all are zero.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.Tolerance(rtol=1e-6)
    Tolerance(atol=0.0, rtol=1e-06, ulps=0)
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        given = (self.atol, self.rtol, self.ulps)
        if not all(isinstance(v, (int, float)) and v >= 0 for v in given) or not any(given):
            raise ArgumentValueError(
                f"Tolerance: atol, rtol and ulps must be numbers, not negative, and one of them positive, got {given}"
            )


@checked
def broadcast_like(arr: ArrayLike, like_arr: Any) -> Any:
    """Broadcast an array to the shape of another, as NumPy does.

    Raises
    ------
    ShapeError
        If the shapes do not match.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.broadcast_like(np.array([1, 2]), np.zeros((2, 2)))
    Array([[1, 2],
           [1, 2]])
    """
    x = array_operand(arr, "lax.broadcast_like")
    shape = shape_of(operand(like_arr, "lax.broadcast_like", 1))
    if ops.broadcast_shapes("lax.broadcast_like", shape_of(x), shape) != shape:
        raise ShapeError(f"lax.broadcast_like: arr of shape {shape_of(x)} does not broadcast to {shape}")
    return owned(ops.broadcast_to(x, shape), arr)


@checked
def dtype(x: ArrayLike) -> np.dtype:
    """The dtype of an array, a number, a type of numbers, or a `ShapeDtypeStruct`.

    Raises
    ------
    ArgumentError
        If it is neither.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.dtype(1.5), lax.dtype("int8")
    (dtype('float64'), dtype('int8'))
    """
    if isinstance(x, (type, str, np.dtype)):
        return canonical(x, "lax.dtype: x")
    if isinstance(x, Tracer | np.ndarray | np.generic | bool | int | float | complex):
        return dtype_of(array_operand(x, "lax.dtype: x"))
    aval = described(x)
    if aval is not None:
        return aval.dtype
    raise ArgumentError(f"lax.dtype: x must be an array, a number or a dtype, got {x!r}")


@checked
def shape_as_value(shape: ShapeLike) -> Any:
    """A shape as a vector of integers.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.shape_as_value((2, 3))
    Array([2, 3])
    """
    return finish(np.asarray(as_shape(shape, "lax.shape_as_value"), np.int64))


# --- windows ------------------------------------------------------------------------------------------------


def _strided(extents: Sequence[int], window: Sequence[int], strides: Sequence[int]) -> Ints:
    """How many positions a window has along each axis."""
    return tuple([max((n - k) // s + 1, 0) for n, k, s in zip(extents, window, strides)])


@checked
def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of the result of `reduce_window`; padding in numbers.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.reduce_window_shape_tuple((10,), (3,), (2,), [(1, 1)])
    (5,)
    """
    name = "lax.reduce_window_shape_tuple"
    shape = as_shape(operand_shape, f"{name}: operand_shape")
    rank = len(shape)
    window = of_rank(window_dimensions, rank, f"{name}: window_dimensions")
    strides = of_rank(window_strides, rank, f"{name}: window_strides")
    base = of_rank(base_dilation, rank, f"{name}: base_dilation")
    dilation = of_rank(window_dilation, rank, f"{name}: window_dilation")
    pads = given_padding(padding, rank, name)
    extents = [ops.dilated(n, b) + low + high for n, b, (low, high) in zip(shape, base, pads)]
    return _strided(extents, [ops.dilated(k, d) for k, d in zip(window, dilation)], strides)


@checked
def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Any,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """The shape of the result of `conv`, in the default layout.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.conv_shape_tuple((1, 3, 10), (4, 3, 3), (2,), "SAME")
    (1, 4, 5)
    """
    name = "lax.conv_shape_tuple"
    lhs, rhs = as_shape(lhs_shape, f"{name}: lhs_shape"), as_shape(rhs_shape, f"{name}: rhs_shape")
    rank = len(lhs) - 2
    if len(rhs) != len(lhs) or rank < 0:
        raise ShapeError(
            f"{name}: lhs_shape {lhs} and rhs_shape {rhs} must have the same number of axes, at least 2"
        )
    steps = of_rank(strides, rank, f"{name}: strides")
    if isinstance(pads, str):
        padding = padding_in_words(lhs[2:], rhs[2:], steps, pads, name)
    else:
        padding = given_padding(pads, rank, name)
    extents = [n + low + high for n, (low, high) in zip(lhs[2:], padding)]
    if any(n < 0 for n in extents):
        raise ArgumentValueError(f"{name}: pads {padding} crop more than there is of lhs_shape {lhs}")
    if batch_group_count < 1 or lhs[0] % batch_group_count:
        raise ArgumentValueError(
            f"{name}: batch_group_count={batch_group_count} must divide {lhs[0]} examples"
        )
    return (lhs[0] // batch_group_count, rhs[0], *_strided(extents, rhs[2:], steps))


def _layout(name: str, dimension_numbers: Any, lhs: Ints, rhs: Ints) -> ConvDimensionNumbers:
    if len(lhs) != len(rhs):
        raise ShapeError(f"{name}: lhs_shape {lhs} and rhs_shape {rhs} must have the same number of axes")
    return conv_dimension_numbers(lhs, rhs, dimension_numbers)


def _placed(shape: Sequence[int], spec: Sequence[int]) -> Ints:
    """A shape in the default layout, in the layout of `spec`."""
    out = [0] * len(shape)
    for n, d in zip(shape, spec):
        out[d] = n
    return tuple(out)


@checked
def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """The shape of the result of `conv_general_dilated`, in any layout, without dilation.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.conv_general_shape_tuple((1, 10, 3), (3, 3, 4), (2,), "VALID", ("NHC", "HIO", "NHC"))
    (1, 4, 4)
    """
    name = "lax.conv_general_shape_tuple"
    lhs, rhs = as_shape(lhs_shape, f"{name}: lhs_shape"), as_shape(rhs_shape, f"{name}: rhs_shape")
    layout = _layout(name, dimension_numbers, lhs, rhs)
    out = conv_shape_tuple(
        [lhs[d] for d in layout.lhs_spec], [rhs[d] for d in layout.rhs_spec], window_strides, padding
    )
    return _placed(out, layout.out_spec)


@checked
def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """The shape of the result of `conv_transpose`, without dilation.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.conv_transpose_shape_tuple((1, 10, 3), (3, 3, 4), (2,), "SAME", ("NHC", "HIO", "NHC"))
    (1, 20, 4)
    """
    name = "lax.conv_transpose_shape_tuple"
    lhs, rhs = as_shape(lhs_shape, f"{name}: lhs_shape"), as_shape(rhs_shape, f"{name}: rhs_shape")
    layout = _layout(name, dimension_numbers, lhs, rhs)
    spatial, window = [lhs[d] for d in layout.lhs_spec[2:]], [rhs[d] for d in layout.rhs_spec[2:]]
    steps = of_rank(window_strides, len(spatial), f"{name}: window_strides")
    if isinstance(padding, str):
        pads: Any = [transposed_padding(k, s, padding) for k, s in zip(window, steps)]
    else:
        pads = given_padding(padding, len(spatial), name)
    extents = [(n - 1) * s - k + 2 + low + high for n, k, s, (low, high) in zip(spatial, window, steps, pads)]
    return _placed((lhs[layout.lhs_spec[0]], rhs[layout.rhs_spec[0]], *extents), layout.out_spec)


@checked
def conv_general_permutations(dimension_numbers: Any) -> tuple[tuple[int, ...], ...]:
    """The axes of both operands and the result of a convolution, from a layout in letters.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.conv_general_permutations(("NHC", "HIO", "NHC"))
    ((0, 2, 1), (2, 1, 0), (0, 2, 1))
    """
    if not isinstance(dimension_numbers, tuple | list) or len(dimension_numbers) != 3:
        raise ArgumentError(
            f"lax.conv_general_permutations: dimension_numbers must be three strings, got {dimension_numbers!r}"
        )
    if not all(
        isinstance(spec, str) and len(spec) == len(dimension_numbers[0]) for spec in dimension_numbers
    ):
        raise ArgumentError(
            "lax.conv_general_permutations: dimension_numbers must be three strings of one length, got "
            f"{dimension_numbers!r}"
        )
    ones = (1,) * len(dimension_numbers[0])
    return tuple([tuple(spec) for spec in conv_dimension_numbers(ones, ones, tuple(dimension_numbers))])
