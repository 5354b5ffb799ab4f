"""Iota, full and eye; concatenate, pad, reverse, slice: create or move elements, without arithmetic.

The moves are linear. Reshape, transpose and broadcast, which every family uses, are in `linear`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from ...core import Workload
from ...core.aval import Aval, Zero
from ...core.dtypes import INT64
from ...core.ir import Atom, Eqn
from ...core.kernel import Block, BlockEmitter, Buffer, Indexed, IndexEmitter, Operand, Scalar, ScalarEmitter
from ...core.primitive import Linear, Primitive
from ...core.trace import current_trace, eval_trace
from ...core.values import ArrayLike, Index, Param, ShapeLike, Tangent, Value
from ...errors import ArgumentValueError, DtypeError, ShapeError
from ...passes.rewriter import Rewriter
from ..axes import MOVED, check_axes, same_dtype
from ..elementwise.arithmetic import convert_element_type_p, eq_p, select_p, sub_p
from ..series import of_jointly_linear
from .linear import (
    Rule,
    add_p,
    batched_first,
    broadcast_in_dim_p,
    broadcast_to,
    dtype_of,
    instantiate,
    linear_jvp,
    move_axis,
    reduce_sum_p,
    reshape_p,
    shape_of,
    zeros,
)

PaddingConfig = tuple[tuple[int, int, int], ...]


def jointly_linear_jvp(prim: Rule, operands: int | None = None) -> Rule:
    """Return the jvp of an operation that is jointly linear in its first `operands` (by default in all)."""

    def jvp(primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param) -> tuple[Any, Any]:
        ans = prim().bind(*primals, **params)
        linear = tangents[:operands]
        if all(type(t) is Zero for t in linear):
            return ans, Zero(ans)
        return ans, prim().bind(*map(instantiate, linear), *primals[len(linear) :], **params)

    return jvp


@contextmanager
def loops(
    k: BlockEmitter, extents: Sequence[int], *, separate: bool = False, adds: bool = False
) -> Iterator[list[Any]]:
    """Open a loop nest over all extents; the context value is the list of indices."""
    if not extents:
        yield []
        return
    with (
        k.loop(extents[0], separate=separate, adds=adds) as i,
        loops(k, extents[1:], separate=separate, adds=adds) as inner,
    ):
        yield [i, *inner]


def lanes(k: BlockEmitter, extents: Sequence[int]) -> AbstractContextManager[list[Any]]:
    """The same for batch axes: lanes are `separate`, and may run in several threads."""
    return loops(k, extents, separate=True)


# --- concatenate --------------------------------------------------------------------------------------------


def _concatenate_abstract(*avals: Aval, dimension: int) -> Aval:
    dtype = same_dtype("concatenate", avals, MOVED)
    first = avals[0].shape
    check_axes("concatenate", (dimension,), first)
    before, after = first[:dimension], first[dimension + 1 :]
    for a in avals:
        if len(a.shape) != len(first) or a.shape[:dimension] != before or a.shape[dimension + 1 :] != after:
            listed = ", ".join(str(b.shape) for b in avals)
            raise ShapeError(
                f"concatenate: shapes {listed} must agree on all axes except axis {dimension}. "
                "Reshape, or concatenate along another axis"
            )
    return Aval((*before, sum(a.shape[dimension] for a in avals), *after), dtype)


def _concatenate_transpose(ct: Value, *args: Any, dimension: int) -> list[Value | None]:
    cts: list[Tangent] = []
    start = 0
    for a in args:
        stop = start + (a.aval.shape if type(a) is Linear else shape_of(a))[dimension]
        cts.append(slice_along(ct, dimension, start, stop) if type(a) is Linear else None)
        start = stop
    return cts


def slice_along(x: Value, axis: int, start: int, stop: int) -> Value:
    """``x[start:stop]`` along one axis."""
    shape = shape_of(x)
    starts, limits = [0] * len(shape), list(shape)
    starts[axis], limits[axis] = start, stop
    return slice_p.bind(
        x, start_indices=tuple(starts), limit_indices=tuple(limits), strides=(1,) * len(shape)
    )


def element_along(x: Value, axis: int, i: int) -> Value:
    """``x[i]`` along one axis, which is dropped."""
    shape = shape_of(x)
    return reshape_p.bind(slice_along(x, axis, i, i + 1), shape=shape[:axis] + shape[axis + 1 :])


def neighbours(x: Value, axis: int) -> tuple[Value, Value]:
    """Return all elements along one axis but the first, and all but the last."""
    n = shape_of(x)[axis]
    count = max(n - 1, 0)
    return slice_along(x, axis, n - count, n), slice_along(x, axis, 0, count)


def _concatenate_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, dimension: int
) -> tuple[Value, int]:
    moved = [batched_first(size, x, d) for x, d in zip(args, dims)]
    return concatenate_p.bind(*moved, dimension=dimension + 1), 0


def _concatenate_kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer], *, dimension: int) -> None:
    """Write the rows of all operands beside each other, so that each row of the result is written once."""
    with lanes(k, results[0].shape[:dimension]) as row:
        start = 0
        for x in operands:
            with lanes(k, x.shape[dimension:]) as index:
                k.store(results[0], [*row, index[0] + start, *index[1:]], k.load(x, [*row, *index]))
            start += x.shape[dimension]


concatenate_p: Primitive = Primitive(
    "concatenate",
    _concatenate_abstract,
    lambda *xs, dimension: np.concatenate(xs, dimension),
    jvp=jointly_linear_jvp(lambda: concatenate_p),
    taylor=of_jointly_linear,
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
    kernel=Block(_concatenate_kernel, streamed_from=0),
    moves_data=True,
    cost=lambda *avals, **params: Workload(additions=_concatenate_abstract(*avals, **params).size),
)


# --- pad ----------------------------------------------------------------------------------------------------


def _pad_abstract(x: Aval, value: Aval, *, padding_config: PaddingConfig) -> Aval:
    dtype = same_dtype("pad", (x, value), MOVED)
    if value.shape != () or len(padding_config) != x.ndim or any(i < 0 for _, _, i in padding_config):
        raise ShapeError(
            f"pad: padding_config {padding_config} must have one (low, high, interior >= 0) for each axis of "
            f"an array of shape {x.shape}, and padding_value must be a scalar, got shape {value.shape}"
        )
    return Aval(_padded_shape(x.shape, padding_config), dtype)


def _padded_shape(shape: tuple[int, ...], padding_config: PaddingConfig) -> tuple[int, ...]:
    extents = tuple(lo + hi + n + max(n - 1, 0) * i for n, (lo, hi, i) in zip(shape, padding_config))
    if any(n < 0 for n in extents):
        raise ShapeError(f"pad: negative padding {padding_config} crops more elements than {shape} has")
    return extents


def elements_within(extent: int, n: int, lo: int, step: int) -> tuple[int, int]:
    """Return which of `n` elements, at positions ``lo + step * i``, lie in an extent: the first, and where to stop."""
    first = max(0, -(lo // step))
    return first, max(first, min(n, -((lo - extent) // step)))


def _pad_impl(x: Value, value: Value, *, padding_config: PaddingConfig) -> np.ndarray:
    out = np.full(_padded_shape(x.shape, padding_config), value, x.dtype)
    source, target = [], []
    for n, extent, (lo, _, interior) in zip(x.shape, out.shape, padding_config):
        step = interior + 1
        first, stop = elements_within(extent, n, lo, step)
        source.append(slice(first, stop))
        begin = lo + first * step
        target.append(slice(begin, begin + max(0, (stop - first - 1) * step + (stop > first)), step))
    out[tuple(target)] = x[tuple(source)]
    return out


def _pad_transpose(ct: Value, x: Any, value: ArrayLike, *, padding_config: PaddingConfig) -> list[Tangent]:
    zero = dtype_of(ct).type(0)
    cropped = pad_p.bind(ct, zero, padding_config=tuple([(-lo, -hi, 0) for lo, hi, _ in padding_config]))
    shape = shape_of(cropped)
    inner = cropped
    if any(i for _, _, i in padding_config):
        inner = slice_p.bind(
            cropped,
            start_indices=(0,) * len(shape),
            limit_indices=shape,
            strides=tuple([i + 1 for _, _, i in padding_config]),
        )
    ct_value = None
    if type(value) is Linear:
        everything = reduce_sum_p.bind(ct, axes=tuple(range(len(shape))))
        ct_value = sub_p.bind(everything, reduce_sum_p.bind(inner, axes=tuple(range(len(shape)))))
    return [inner if type(x) is Linear else None, ct_value]


def _pad_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, padding_config: PaddingConfig
) -> tuple[Value, int]:
    x, value = args
    config = ((0, 0, 0), *padding_config)
    x = batched_first(size, x, dims[0])
    if dims[1] is None:
        return pad_p.bind(x, value, padding_config=config), 0
    # The padding value differs by lane: pad with zeros, and select the value at a mask of the padding.
    filled = pad_p.bind(x, dtype_of(x).type(0), padding_config=config)
    padded = pad_p.bind(zeros(Aval(shape_of(x), np.dtype(bool))), np.True_, padding_config=config)
    lanes = broadcast_in_dim_p.bind(value, shape=shape_of(filled), broadcast_dimensions=(0,))
    return select_p.bind(padded, lanes, filled), 0


def _pad_kernel(
    k: BlockEmitter, operands: ArrayLike, results: Sequence[Buffer], *, padding_config: PaddingConfig
) -> None:
    x, value = operands
    out = results[0]
    if any(config != (0, 0, 0) for config in padding_config):
        filler = k.load(value, ())
        with loops(k, out.shape) as index:
            k.store(out, index, filler)
    ranges = [
        (*elements_within(extent, n, lo, i + 1), lo, i + 1)
        for n, extent, (lo, _, i) in zip(x.shape, out.shape, padding_config)
    ]
    with loops(k, [stop - first for first, stop, _, _ in ranges]) as index:
        source = [i + first for i, (first, _, _, _) in zip(index, ranges)]
        target = [i * step + (lo + first * step) for i, (first, _, lo, step) in zip(index, ranges)]
        k.store(out, target, k.load(x, source))


def _pad_simplify(rw: Rewriter, eqn: Eqn) -> Atom | Eqn | None:
    """Rewrite a pad without gaps as `pad_window`: an index and a condition."""
    config = eqn.params["padding_config"]
    if all(c == (0, 0, 0) for c in config):
        return eqn.invars[0]
    if any(interior for _, _, interior in config):
        return None
    return eqn.replace(primitive=window_p)


pad_p: Primitive = Primitive(
    "pad",
    _pad_abstract,
    _pad_impl,
    jvp=jointly_linear_jvp(lambda: pad_p),
    taylor=of_jointly_linear,
    transpose=_pad_transpose,
    batch=_pad_batch,
    kernel=Block(_pad_kernel, streamed_from=0),
    moves_data=True,
    cost=lambda *avals, **params: Workload(additions=_pad_abstract(*avals, **params).size),
    simplify=_pad_simplify,
)


def _window_kernel(
    k: IndexEmitter,
    index: Sequence[Scalar],
    x: Operand,
    value: Operand,
    *,
    out: Aval,
    padding_config: tuple[tuple[int, int, int], ...],
) -> Scalar:
    inside: Scalar | None = None
    place = []
    for i, n, (lo, hi, _) in zip(index, x.aval.shape, padding_config):
        j = i - lo if lo else i
        place.append(j)
        for needed, condition in ((lo > 0, lambda j=j: j >= 0), (hi > 0, lambda j=j, n=n: j < n)):
            if needed:
                inside = condition() if inside is None else inside & condition()
    return x[place] if inside is None else k.guarded(inside, lambda: x[place], value[()])


#: ``pad`` without gaps between elements, read through its index: it fuses, and a sum of pads takes one pass.
window_p = Primitive("window", pad_p.abstract, pad_p.impl, kernel=Indexed(_window_kernel))


# --- rev ----------------------------------------------------------------------------------------------------


def _rev_abstract(x: Aval, *, dimensions: tuple[int, ...]) -> Aval:
    check_axes("rev", dimensions, x.shape)
    return x.strong()


def _rev_batch(
    size: int, args: Sequence[Value], dims: Sequence[int], *, dimensions: tuple[int, ...]
) -> tuple[Value, int]:
    d = dims[0]
    return rev_p.bind(args[0], dimensions=tuple([i + (i >= d) for i in dimensions])), d


def _rev_kernel(k: ScalarEmitter, index: Index, x: Any, *, out: Aval, dimensions: tuple[int, ...]) -> Any:
    return x[[-i + (out.shape[d] - 1) if d in dimensions else i for d, i in enumerate(index)]]


rev_p: Primitive = Primitive(
    "rev",
    _rev_abstract,
    lambda x, *, dimensions: np.flip(x, dimensions),
    jvp=linear_jvp(lambda: rev_p),
    linear=True,
    transpose=lambda ct, x, *, dimensions: [rev_p.bind(ct, dimensions=dimensions)],
    batch=_rev_batch,
    kernel=Indexed(_rev_kernel),
)


# --- slice --------------------------------------------------------------------------------------------------


def _slice_abstract(
    x: Aval, *, start_indices: tuple[int, ...], limit_indices: tuple[int, ...], strides: tuple[int, ...]
) -> Aval:
    if not len(start_indices) == len(limit_indices) == len(strides) == x.ndim or any(
        not 0 <= start <= limit <= n or step < 1
        for start, limit, step, n in zip(start_indices, limit_indices, strides, x.shape)
    ):
        raise ArgumentValueError(
            f"slice: start_indices {start_indices}, limit_indices {limit_indices} and strides {strides} need "
            f"0 <= start <= limit <= extent and stride >= 1 for each axis of an array of shape {x.shape}"
        )
    extents = zip(start_indices, limit_indices, strides)
    return Aval(tuple([(limit - start + step - 1) // step for start, limit, step in extents]), x.dtype)


def _slice_transpose(
    ct: Value, x: Linear, *, start_indices: tuple[int, ...], limit_indices: Any, strides: tuple[int, ...]
) -> list[Value | None]:
    config = []
    for n, m, start, step in zip(x.aval.shape, shape_of(ct), start_indices, strides):
        covered = (m - 1) * step + 1 if m else 0
        config.append((start, n - start - covered, step - 1))
    return [pad_p.bind(ct, dtype_of(ct).type(0), padding_config=tuple(config))]


def _slice_batch(
    size: int,
    args: Sequence[Value],
    dims: Sequence[int],
    *,
    start_indices: tuple[int, ...],
    limit_indices: tuple[int, ...],
    strides: tuple[int, ...],
) -> tuple[Value, int]:
    x = move_axis(args[0], dims[0], 0)
    return slice_p.bind(
        x, start_indices=(0, *start_indices), limit_indices=(size, *limit_indices), strides=(1, *strides)
    ), 0


def _slice_kernel(
    k: ScalarEmitter, index: Index, x: Any, *, out: Aval, start_indices: Any, limit_indices: Any, strides: Any
) -> Any:
    # Leave an unshifted index as it is, so that its reader recognises the axis it runs along.
    shifted = [i if step == 1 else i * step for i, step in zip(index, strides)]
    return x[[i + start if start else i for i, start in zip(shifted, start_indices)]]


slice_p: Primitive = Primitive(
    "slice",
    _slice_abstract,
    lambda x, *, start_indices, limit_indices, strides: x[
        tuple(map(slice, start_indices, limit_indices, strides))
    ],
    jvp=linear_jvp(lambda: slice_p),
    linear=True,
    transpose=_slice_transpose,
    batch=_slice_batch,
    kernel=Indexed(_slice_kernel),
)


def _iota_abstract(*, dtype: np.dtype, shape: tuple[int, ...], dimension: int) -> Aval:
    check_axes("iota", (dimension,), shape)
    if dtype.kind == "b":
        raise DtypeError("iota: dtype bool is not supported; use an integer or float dtype")
    return Aval(shape, dtype)


def _iota_impl(*, dtype: np.dtype, shape: tuple[int, ...], dimension: int) -> np.ndarray:
    spread = [1] * len(shape)
    spread[dimension] = shape[dimension]
    # Count in int64, then cast: a small dtype wraps, where NumPy's arange would raise.
    return np.broadcast_to(np.arange(shape[dimension]).astype(dtype).reshape(spread), shape)


def _iota_kernel(
    k: ScalarEmitter, index: Index, *, out: Aval, dtype: np.dtype, shape: ShapeLike, dimension: int
) -> Any:
    return k.cast(index[dimension], dtype)


iota_p: Primitive = Primitive("iota", _iota_abstract, _iota_impl, kernel=Indexed(_iota_kernel))


def iota(shape: tuple[int, ...], dimension: int, dtype: np.dtype = INT64) -> Value:
    """Return the index along one axis, for every element of an array of `shape`."""
    return iota_p.bind(dtype=dtype, shape=shape, dimension=dimension)


def full(shape: tuple[int, ...], value: ArrayLike, dtype: np.dtype) -> Any:
    """Return an array filled with a number (of any kind, possibly traced) cast to `dtype`."""
    if current_trace.get() is eval_trace and not hasattr(value, "aval"):
        return np.full(shape, value, dtype)
    if not hasattr(value, "aval"):
        return broadcast_to(np.asarray(value).astype(dtype)[()], shape)
    return broadcast_to(convert_element_type_p.bind(value, dtype=dtype), shape)


def eye(rows: int, columns: int, offset: int, dtype: np.dtype) -> Value:
    """Return ones on one diagonal, above the main one if `offset` is positive."""
    if current_trace.get() is eval_trace:
        return np.eye(rows, columns, offset, dtype)
    return convert_element_type_p.bind(diagonal_mask(rows, columns, offset), dtype=dtype)


def diagonal_mask(rows: int, columns: int, offset: int = 0) -> Value:
    """Return True where ``column - row == offset``."""
    row = iota((rows, 1), 0)
    return eq_p.bind(add_p.bind(row, np.int64(offset)) if offset else row, iota((1, columns), 1))
