"""Convolution as in machine learning (correlation: the window is not reversed), with strides, padding and dilation.

``out[n, g, o, p] = sum over i, k of lhs[n, g, i, p * stride + k * rhs_dilation - low] * rhs[g, o, i, k]``, where `p`
and `k` are indices along any number of spatial axes. The left operand has ``lhs_dilation - 1`` zeros between elements,
and zeros around. `n` counts examples, `g` groups, `i` and `o` input and output channels of a group. The public
functions convert other layouts, and groups of channels or of examples, to this one.

It is linear in either operand, and both transposes are convolutions. The kernel is in `conv_kernel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...core import ArgumentValueError, Aval, Block, Linear, Primitive, ShapeError, Workload, Zero
from ...core.values import ArrayLike, Param, Tangent, Value
from ...runtime.records import NamedTuple
from ..axes import same_dtype
from ..families import of_product
from ..structure.linear import add_p, move_axis, reshape_p, shape_of, transpose_p
from ..structure.shape import rev_p
from .conv_kernel import conv_kernel
from .window_geometry import Padding, dilated, padded_array, window_count

Ints = tuple[int, ...]


class _Params(NamedTuple):
    window_strides: Ints
    padding: Padding
    lhs_dilation: Ints
    rhs_dilation: Ints


# --- types --------------------------------------------------------------------------------------------------


def _abstract(x: Aval, w: Aval, **params: Param) -> Aval:
    p = _Params(**params)
    dtype = same_dtype("conv", (x, w), "iufc")
    rank = x.ndim - 3
    if rank < 0 or w.ndim != x.ndim or x.shape[1] != w.shape[0] or x.shape[2] != w.shape[2]:
        raise ShapeError(
            f"conv: expected operands (batch, groups, in, *spatial) and (groups, out, in, *window), got shapes "
            f"{x.shape} and {w.shape}"
        )
    if any(len(part) != rank for part in p) or any(
        n < 1 for n in (*p.window_strides, *p.lhs_dilation, *p.rhs_dilation)
    ):
        raise ArgumentValueError(
            f"conv: window_strides {p.window_strides}, padding {p.padding}, lhs_dilation {p.lhs_dilation} and "
            f"rhs_dilation {p.rhs_dilation} need {rank} entries each (spatial axes); strides and dilations must be >= 1"
        )
    return Aval((x.shape[0], x.shape[1], w.shape[1], *_positions(x.shape, w.shape, p)), dtype)


def _positions(x: Ints, w: Ints, p: _Params) -> Ints:
    """Return the spatial extents of the result."""
    return tuple(map(window_count, x[3:], w[3:], p.window_strides, p.padding, p.lhs_dilation, p.rhs_dilation))


# --- NumPy --------------------------------------------------------------------------------------------------


def _impl(x: ArrayLike, w: Value, **params: Param) -> np.ndarray:
    p = _Params(**params)
    n, g, i = x.shape[:3]
    o, window = w.shape[1], w.shape[3:]
    positions = _positions(x.shape, w.shape, p)
    if not prod(positions) * prod(window) * n * g * i * o:
        return np.zeros((n, g, o, *positions), x.dtype)
    ones = ((1, 0, 0),) * 3
    x = padded_array(x, 0, (*ones, *((d, *pad) for d, pad in zip(p.lhs_dilation, p.padding))))
    steps = x.strides[3:]
    windows = as_strided(
        x,
        (n, g, i, *window, *positions),
        (
            *x.strides[:3],
            *(step * d for step, d in zip(steps, p.rhs_dilation)),
            *(step * s for step, s in zip(steps, p.window_strides)),
        ),
        writeable=False,
    )
    columns = windows.reshape(n, g, i * prod(window), prod(positions))
    return np.matmul(w.reshape(g, o, i * prod(window)), columns).reshape(n, g, o, *positions)


# --- derivatives --------------------------------------------------------------------------------------------


def _jvp(primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param) -> tuple[Value, Tangent]:
    (x, w), (s, t) = primals, tangents
    ans = conv_p.bind(x, w, **params)
    if type(s) is Zero:
        return ans, Zero(ans) if type(t) is Zero else conv_p.bind(x, t, **params)
    left = conv_p.bind(s, w, **params)
    return ans, left if type(t) is Zero else add_p.bind(left, conv_p.bind(x, t, **params))


def _exchanged(x: Value, i: int, j: int) -> Value:
    """Exchange two axes."""
    order = list(range(len(shape_of(x))))
    order[i], order[j] = j, i
    return transpose_p.bind(x, permutation=tuple(order))


def _transpose(ct: Value, x: Any, w: Any, **params: Param) -> list[Value | None]:
    p = _Params(**params)
    if type(x) is Linear:
        return [_transpose_lhs(ct, x.aval.shape, w, p), None]
    return [None, _transpose_rhs(ct, x, w.aval.shape, p)]


def _transpose_lhs(ct: Value, x: Ints, w: Value, p: _Params) -> Value:
    """Convolve the cotangent, dilated by the strides, with the reversed window."""
    window = shape_of(w)[3:]
    padding = []
    for n, out, k, step, (low, _), d, e in zip(
        x[3:], shape_of(ct)[3:], window, p.window_strides, p.padding, p.lhs_dilation, p.rhs_dilation
    ):
        first = dilated(k, e) - 1 - low
        padding.append((first, dilated(n, d) + dilated(k, e) - 1 - dilated(out, step) - first))
    back = _exchanged(w, 1, 2)
    if window:
        back = rev_p.bind(back, dimensions=tuple(range(3, 3 + len(window))))
    q = _Params(p.lhs_dilation, tuple(padding), p.window_strides, p.rhs_dilation)
    return conv_p.bind(ct, back, **q._asdict())


def _transpose_rhs(ct: Value, x: Value, w: Ints, p: _Params) -> Value:
    """Convolve the left operand with the cotangent as the window; the sum runs over examples."""
    padding = []
    for n, out, k, step, (low, _), d, e in zip(
        shape_of(x)[3:], shape_of(ct)[3:], w[3:], p.window_strides, p.padding, p.lhs_dilation, p.rhs_dilation
    ):
        padding.append((low, dilated(out, step) + dilated(k, e) - 1 - dilated(n, d) - low))
    ndim = len(w)
    window = transpose_p.bind(ct, permutation=(1, 2, 0, *range(3, ndim)))
    q = _Params(p.rhs_dilation, tuple(padding), p.lhs_dilation, p.window_strides)
    out = conv_p.bind(_exchanged(x, 0, 2), window, **q._asdict())
    return transpose_p.bind(out, permutation=(1, 2, 0, *range(3, ndim)))


# --- batching -----------------------------------------------------------------------------------------------


def _merged(x: Value, dim: int, axis: int) -> Value:
    """Merge the batch axis into `axis` of the rest, in front of it."""
    x = move_axis(x, dim, axis)
    shape = shape_of(x)
    return reshape_p.bind(x, shape=(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], **params: Param
) -> tuple[Value, int]:
    """Lanes become examples, output channels, or (if both operands are batched) groups."""
    (x, w), (d, e) = args, dims
    if e is None:
        assert d is not None
        place, x = 0, _merged(x, d, 0)
    elif d is None:
        place, w = 2, _merged(w, e, 1)
    else:
        place, x, w = 1, _merged(x, d, 1), _merged(w, e, 0)
    out = conv_p.bind(x, w, **params)
    shape = shape_of(out)
    split = (*shape[:place], size, shape[place] // size if size else 0, *shape[place + 1 :])
    return reshape_p.bind(out, shape=split), place


def _cost(x: Aval, w: Aval, **params: Param) -> Workload:
    """As for a product of matrices."""
    out = _abstract(x, w, **params)
    products = out.size * prod(w.shape[2:])
    return Workload(2 * products, additions=products * out.dtype.itemsize // 16)


conv_p: Primitive = Primitive(
    "conv",
    _abstract,
    _impl,
    in_float32=True,
    jvp=_jvp,
    taylor=of_product,
    transpose=_transpose,
    batch=_batch,
    kernel=Block(conv_kernel, streamed_from=0),
    cost=_cost,
)
