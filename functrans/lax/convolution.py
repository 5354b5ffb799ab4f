"""Convolutions in machine learning's sense (the window is not reversed), in any layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays.array import Array
from ..core import ArgumentError, ArgumentValueError, DtypeError, ShapeError, aval_of, canonical
from ..core.values import ArrayLike, DTypeLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import as_shape, dtype_of, finish, shape_of
from ..runtime.records import NamedTuple
from .windows import given_padding, of_rank, padding_in_words

__all__ = [
    "ConvDimensionNumbers", "conv", "conv_dimension_numbers", "conv_general_dilated", "conv_transpose",
    "conv_with_general_padding",
]  # fmt: skip

Ints = tuple[int, ...]


class ConvDimensionNumbers(NamedTuple):
    """The meaning of each axis of the operands and the result of a convolution.

    Attributes
    ----------
    lhs_spec, out_spec : tuple of int
        The axes of examples, of channels, and the spatial ones.
    rhs_spec : tuple of int
        The axes of channels out, of channels in, and the spatial ones.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


# --- layouts ------------------------------------------------------------------------------------------------


@checked
def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Convert a layout to axes.

    Parameters
    ----------
    lhs_shape, rhs_shape : sequence of int
    dimension_numbers : None, three strings, three sequences of int, or ConvDimensionNumbers
        None is ``("NCHW", "OIHW", "NCHW")`` for any number of spatial axes. A string has a letter for each axis: N
        is for examples, C for channels, O and I for channels out and in, and any others for spatial axes.

    Returns
    -------
    ConvDimensionNumbers

    Raises
    ------
    ArgumentError, ArgumentValueError, ShapeError
        If the layout does not match operands of these shapes.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 16), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    rank = len(lhs_shape)
    if len(rhs_shape) != rank or rank < 2:
        raise ShapeError(
            f"lax.conv: expected operands with the same number of axes, at least 2, got shapes {tuple(lhs_shape)} and "
            f"{tuple(rhs_shape)}"
        )
    if dimension_numbers is None:
        axes = tuple(range(rank))
        return ConvDimensionNumbers(axes, axes, axes)
    if not isinstance(dimension_numbers, tuple | list) or len(dimension_numbers) != 3:
        raise ArgumentError(
            "lax.conv: dimension_numbers must be None, ConvDimensionNumbers, or a tuple of three strings like "
            f"('NCHW', 'OIHW', 'NCHW'), got {dimension_numbers!r}"
        )
    if all(isinstance(spec, str) for spec in dimension_numbers):
        lhs, rhs, out = dimension_numbers
        specs = [_axes(lhs, "NC", rhs), _axes(rhs, "OI", rhs), _axes(out, "NC", rhs)]
    else:
        specs = [as_shape(spec, "lax.conv: dimension_numbers") for spec in dimension_numbers]
    if any(sorted(spec) != list(range(rank)) for spec in specs):
        raise ArgumentValueError(
            f"lax.conv: dimension_numbers {dimension_numbers!r} do not name the {rank} axes of operands of shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}, each once"
        )
    return ConvDimensionNumbers(*specs)


def _axes(spec: str, channels: str, rhs: str) -> Ints:
    """The axes of a layout in letters; spatial axes in the order of the right operand's."""
    spatial = sorted(c for c in spec if c not in channels)
    expected = sorted(c for c in rhs if c not in "OI")
    if any(spec.count(c) != 1 for c in channels) or len(set(spec)) != len(spec) or spatial != expected:
        raise ArgumentValueError(
            f"lax.conv: the layout {spec!r} must have {channels[0]} and {channels[1]} once, and the spatial letters "
            f"of {rhs!r} once each"
        )
    return (
        spec.index(channels[0]),
        spec.index(channels[1]),
        *[spec.index(c) for c in rhs if c not in "OI"],
    )


def permuted(x: Value, order: Sequence[int]) -> Any:
    return (
        x if tuple(order) == tuple(range(len(order))) else ops.transpose_p.bind(x, permutation=tuple(order))
    )


# --- the general function -----------------------------------------------------------------------------------


@checked
def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: None = None,
) -> Array:
    r"""Convolution over any number of spatial axes, with strides, padding and dilation; the window is not reversed.

    Parameters
    ----------
    lhs : array_like
        By default of shape (examples, channels in, \*spatial).
    rhs : array_like
        By default of shape (channels out, channels in, \*window). Must have the dtype of `lhs`.
    window_strides : sequence of int
        How far the window moves along each spatial axis.
    padding : {'SAME', 'SAME_LOWER', 'VALID'} or sequence of (int, int)
        Zeros before and after along each spatial axis; negative numbers crop. ``SAME`` pads so that the result has
        extent ``ceil(n / stride)``, with an odd zero after (``SAME_LOWER``: before).
    lhs_dilation, rhs_dilation : sequence of int, optional
        The distance of neighbouring elements of `lhs` (zeros between them), and of the window.
    dimension_numbers
        The layout, see `conv_dimension_numbers`.
    feature_group_count : int
        The number of groups that channels in and out are divided into; each group is convolved separately.
    batch_group_count : int
        The same for examples and channels out.
    precision, out_sharding
        Accepted, without effect.
    preferred_element_type : dtype-like, optional
        The dtype to compute in.

    Returns
    -------
    Array

    Raises
    ------
    ShapeError
        If channels or groups do not match.
    DtypeError
        If the operands have different dtypes, or are boolean.

    Notes
    -----
    ``out[n, o, p] = sum_{i, k} lhs[n, i, p * stride + k * rhs_dilation - low] rhs[o, i, k]``. Linear in either
    operand; both derivatives are convolutions.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.conv_general_dilated(np.ones((1, 1, 4)), np.ones((1, 1, 3)), (1,), "SAME")
    Array([[[2., 3., 3., 2.]]])
    """
    x, w = array_operand(lhs, "lax.conv"), array_operand(rhs, "lax.conv", 1)
    if preferred_element_type is not None:
        to = canonical(preferred_element_type, "lax.conv: preferred_element_type")
        x, w = ops.convert(x, to), ops.convert(w, to)
    if dtype_of(x) != dtype_of(w) or dtype_of(x).kind == "b":
        raise DtypeError(
            f"lax.conv: operands have dtypes {dtype_of(x)} and {dtype_of(w)}; expected one numeric dtype: convert one "
            "with .astype"
        )
    layout = conv_dimension_numbers(shape_of(x), shape_of(w), dimension_numbers)
    x, w = permuted(x, layout.lhs_spec), permuted(w, layout.rhs_spec)
    rank = len(shape_of(x)) - 2
    strides = of_rank(window_strides, rank, "lax.conv: window_strides")
    base = of_rank(lhs_dilation, rank, "lax.conv: lhs_dilation")
    dilation = of_rank(rhs_dilation, rank, "lax.conv: rhs_dilation")
    if isinstance(padding, str):
        if any(d != 1 for d in base) and padding.upper() != "VALID":
            raise ArgumentValueError(
                f"lax.conv: padding {padding!r} has no meaning with lhs_dilation={base}: give the padding in numbers, "
                "or use lax.conv_transpose"
            )
        window = tuple(map(ops.dilated, shape_of(w)[2:], dilation))
        inner = tuple(map(ops.dilated, shape_of(x)[2:], base))
        pads = padding_in_words(inner, window, strides, padding, "lax.conv")
    else:
        pads = given_padding(padding, rank, "lax.conv")
    out = _grouped(x, w, feature_group_count, batch_group_count, strides, pads, base, dilation)
    order = sorted(range(rank + 2), key=tuple(layout.out_spec).__getitem__)
    return finish(permuted(out, order))


def _grouped(x: Value, w: Value, features: int, batches: int, *params: Any) -> Value:
    """Bind the primitive to operands in the default layout."""
    (n, c, *spatial), (o, i, *window) = shape_of(x), shape_of(w)
    if features < 1 or batches < 1 or (features > 1 and batches > 1):
        raise ArgumentValueError(
            f"lax.conv: feature_group_count={features} and batch_group_count={batches} must be positive, and one of "
            "them 1"
        )
    groups = max(features, batches)
    if c != i * features or o % groups or n % batches:
        raise ShapeError(
            f"lax.conv: {n} examples of {c} channels do not match {o} channels out and {i} channels in of the window, "
            f"with feature_group_count={features} and batch_group_count={batches}: the channels of lhs must be "
            "feature_group_count times the channels in of rhs, and the channels out a multiple of the groups"
        )
    if batches > 1:
        x = ops.reshape_p.bind(x, shape=(batches, n // batches, c, *spatial))
        x = ops.transpose_p.bind(x, permutation=(1, 0, *range(2, len(spatial) + 3)))
    else:
        x = ops.reshape_p.bind(x, shape=(n, features, i, *spatial))
    w = ops.reshape_p.bind(w, shape=(groups, o // groups, i, *window))
    names = ("window_strides", "padding", "lhs_dilation", "rhs_dilation")
    chosen = dict(zip(names, params))
    aval = ops.conv_p.abstract(aval_of(x), aval_of(w), **chosen)
    out = ops.conv_p.bind(x, w, **chosen)
    return ops.reshape_p.bind(out, shape=(aval.shape[0], o, *aval.shape[3:]))


# --- special cases ------------------------------------------------------------------------------------------


@checked
def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
) -> Any:
    """`conv_general_dilated` in the default layout, without dilation.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.conv(np.arange(4.0).reshape(1, 1, 4), np.ones((1, 1, 2)), (1,), "VALID")
    Array([[[1., 3., 5.]]])
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, preferred_element_type=preferred_element_type
    )


@checked
def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
) -> Any:
    """`conv_general_dilated` in the default layout.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> signal, kernel = np.arange(4.0).reshape(1, 1, 4), np.ones((1, 1, 2))
    >>> lax.conv_with_general_padding(signal, kernel, (1,), [(1, 0)], None, None)
    Array([[[0., 1., 3., 5.]]])
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        preferred_element_type=preferred_element_type,
    )


_CHANNELS_LAST = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


@checked
def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Convolve `lhs` dilated by the strides: this restores the shape before a convolution with these strides.

    Parameters
    ----------
    lhs, rhs : array_like
        By default channels are last: ``("NHWC", "HWIO", "NHWC")``.
    strides : sequence of int
        Those of the convolution that is transposed.
    padding : {'SAME', 'VALID'} or sequence of (int, int)
        A string means the padding of the convolution that is transposed: ``SAME`` returns extent ``n * stride``, and
        ``VALID`` includes partial overlaps. Numbers apply to the dilated `lhs`, or to the transposed convolution if
        `use_consistent_padding`.
    rhs_dilation : sequence of int, optional
    dimension_numbers
        The layout, see `conv_dimension_numbers`.
    transpose_kernel : bool
        Whether to reverse the window and exchange channels in and out, as the transpose of a convolution does.
    precision
        Accepted, without effect.
    preferred_element_type : dtype-like, optional
        The dtype to compute in.

    Returns
    -------
    Array

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.conv_transpose(np.ones((1, 3, 1)), np.ones((2, 1, 1)), (2,), "SAME").ravel()
    Array([1., 1., 1., 1., 1., 1.])
    """
    x, w = array_operand(lhs, "lax.conv_transpose"), array_operand(rhs, "lax.conv_transpose", 1)
    ndim = len(shape_of(x))
    if dimension_numbers is None:
        if ndim not in _CHANNELS_LAST:
            raise ArgumentValueError(
                f"lax.conv_transpose: there is no default layout of {ndim} axes; give dimension_numbers"
            )
        dimension_numbers = _CHANNELS_LAST[ndim]
    layout = conv_dimension_numbers(shape_of(x), shape_of(w), dimension_numbers)
    dilation = of_rank(rhs_dilation, ndim - 2, "lax.conv_transpose: rhs_dilation")
    steps = of_rank(strides, ndim - 2, "lax.conv_transpose: strides")
    window = [ops.dilated(shape_of(w)[d], e) for d, e in zip(layout.rhs_spec[2:], dilation)]
    if isinstance(padding, str):
        pads: Any = tuple([transposed_padding(k, s, padding) for k, s in zip(window, steps)])
    else:
        pads = given_padding(padding, ndim - 2, "lax.conv_transpose")
        if use_consistent_padding:
            pads = tuple([(k - 1 - low, k - 1 - high) for k, (low, high) in zip(window, pads)])
    if transpose_kernel:
        out_axis, in_axis, *spatial = layout.rhs_spec
        if spatial:
            w = ops.rev_p.bind(w, dimensions=tuple(spatial))
        order = list(range(ndim))
        order[out_axis], order[in_axis] = in_axis, out_axis
        w = ops.transpose_p.bind(w, permutation=tuple(order))
    ones = (1,) * (ndim - 2)
    return conv_general_dilated(
        x, w, ones, pads, steps, dilation, layout, preferred_element_type=preferred_element_type
    )


def transposed_padding(window: int, stride: int, padding: str) -> tuple[int, int]:
    """Padding before and after, from the padding string of the convolution that is transposed."""
    if padding.upper() == "SAME":
        total = window + stride - 2
        first = window - 1 if stride > window - 1 else -(-total // 2)
    elif padding.upper() == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        first = window - 1
    else:
        raise ArgumentValueError(
            f"lax.conv_transpose: padding must be 'SAME', 'VALID' or pairs of numbers, got {padding!r}"
        )
    return first, total - first
