"""Reductions over sliding windows: sum, prod, max, min, argmax, argmin.

All take ``window_dimensions``, ``window_strides``, ``padding`` (before and after, for each axis), ``base_dilation``
(the distance of neighbouring elements of the operand) and ``window_dilation`` (the same in the window), with one number
(or pair) for each axis. Padding and the gaps of a dilation hold the neutral element, so they do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...core import (
    INT64,
    Aval,
    Block,
    BlockEmitter,
    Buffer,
    Linear,
    Pointwise,
    Primitive,
    Scalar,
    Workload,
    Zero,
    dtype_kind,
)
from ...core.values import ArrayLike, Param, Tangent, Value
from ...errors import ArgumentValueError, DtypeError
from ...runtime.records import NamedTuple
from ..elementwise.arithmetic import Pair, dual_product, max_p, min_p, mul_p, sub_p
from ..indexing.gather_scatter import gather_p
from ..structure.linear import Rule, dtype_of, flat, linear_jvp, move_axis, shape_of, zeros
from ..structure.shape import iota, lanes, loops, pad_p, slice_p
from .window_geometry import Padding, Placed, covered, dilated, fill, padded_array, place, window_count

Ints = tuple[int, ...]

_UNROLLED = 32
"""Loops over windows of at most this many elements are unrolled."""


class Windows(NamedTuple):
    """The parameters of a window reduction."""

    window_dimensions: Ints
    window_strides: Ints
    padding: Padding
    base_dilation: Ints
    window_dilation: Ints

    def places(self, shape: Ints) -> Ints:
        """Return how many windows there are along each axis."""
        return tuple(
            map(
                window_count,
                shape,
                self.window_dimensions,
                self.window_strides,
                self.padding,
                self.base_dilation,
                self.window_dilation,
            )
        )

    def placed(self) -> Placed:
        """Return dilation and padding of the operand."""
        return tuple([(base, low, high) for base, (low, high) in zip(self.base_dilation, self.padding)])

    def padded(self, shape: Ints) -> Ints:
        """Return the shape of the padded operand."""
        return tuple([dilated(n, base) + low + high for n, (base, low, high) in zip(shape, self.placed())])

    def taps(self) -> list[Ints]:
        """Return the elements of the window, in row-major order."""
        return list(product(*map(range, self.window_dimensions)))

    def at(self, p: Sequence[Any], tap: Sequence[Any]) -> list[Any]:
        """Return the index in the padded operand of a tap of the window at `p`."""
        return [i * s + j * d for i, s, j, d in zip(p, self.window_strides, tap, self.window_dilation)]


def neutral(fold: str, dtype: np.dtype) -> Value:
    """Return the neutral element of a fold."""
    if fold in ("sum", "prod"):
        return dtype.type(fold == "prod")
    if dtype_kind(dtype) in "fb":
        return dtype.type((fold == "min") if dtype.kind == "b" else (np.inf if fold == "min" else -np.inf))
    return dtype.type(np.iinfo(dtype).max if fold == "min" else np.iinfo(dtype).min)


def _abstract(name: str, kinds: str, out: np.dtype | None = None) -> Rule:
    def abstract(x: Aval, **params: Param) -> Aval:
        w = Windows(**params)
        if dtype_kind(x.dtype) not in kinds:
            raise DtypeError(
                f"{name}: dtype {x.dtype} is not supported; convert the operand with .astype first"
            )
        positive = (*w.window_dimensions, *w.window_strides, *w.base_dilation, *w.window_dilation)
        if any(len(part) != x.ndim for part in w) or any(n < 1 for n in positive):
            raise ArgumentValueError(
                f"{name}: window_dimensions {w.window_dimensions}, window_strides {w.window_strides}, padding "
                f"{w.padding}, base_dilation {w.base_dilation} and window_dilation {w.window_dilation} must be "
                f"positive, one for each axis of an array of shape {x.shape}"
            )
        return Aval(w.places(x.shape), x.dtype if out is None else out)

    return abstract


def _one_axis_more(w: Windows) -> Windows:
    """Return the same windows for an array with another axis in front."""
    size, strides, padding, base, dilation = w
    return Windows((1, *size), (1, *strides), ((0, 0), *padding), (1, *base), (1, *dilation))


def _batch(prim: Callable[[], Primitive]) -> Rule:
    def batch(size: int, args: Sequence[Value], dims: Sequence[int], **params: Param) -> tuple[Value, int]:
        more = _one_axis_more(Windows(**params))
        return prim().bind(move_axis(args[0], dims[0], 0), **more._asdict()), 0

    return batch


# --- NumPy --------------------------------------------------------------------------------------------------


def _views(x: np.ndarray, filler: ArrayLike, w: Windows) -> np.ndarray:
    """Return all windows as a view of the padded operand: axes of positions, then axes of elements."""
    count = w.places(x.shape)
    if not prod(count):
        return np.empty((*count, *w.window_dimensions), x.dtype)
    x = padded_array(x, filler, w.placed())
    steps = [step * s for step, s in zip(x.strides, w.window_strides)]
    steps += [step * d for step, d in zip(x.strides, w.window_dilation)]
    return as_strided(x, (*count, *w.window_dimensions), steps, writeable=False)


def _impl(fold: str, ufunc: np.ufunc) -> Rule:
    def impl(x: ArrayLike, **params: Param) -> np.ndarray:
        w = Windows(**params)
        axes = tuple(range(x.ndim, 2 * x.ndim))
        views = _views(x, neutral(fold, x.dtype), w)
        return np.asarray(ufunc.reduce(views, axis=axes, dtype=x.dtype, initial=neutral(fold, x.dtype)))

    return impl


# --- kernels ------------------------------------------------------------------------------------------------

Step = Callable[[Any, Scalar, Scalar], Scalar]


def _reader(k: BlockEmitter, x: Any, w: Windows, out: Buffer, filler: Value) -> Callable[..., Scalar]:
    """Return a reader of the padded operand. It computes elements of disjoint windows, and reads others from memory."""
    apart = all(
        s >= n and d == 1 for n, s, d in zip(w.window_dimensions, w.window_strides, w.window_dilation)
    )
    if apart and all(placed == (1, 0, 0) for placed in w.placed()):
        return lambda at: k.load(x, at)
    low = [lo for lo, _ in w.padding]
    under = tuple(map(covered, out.shape, w.window_dimensions, w.window_strides, w.window_dilation))
    padded = k.scratch(under, x.dtype)
    fill(k, padded, k.const(filler, x.dtype), under, x.shape, w.base_dilation, low)
    place(
        k,
        under,
        x.shape,
        w.base_dilation,
        low,
        lambda at: k.load(x, at),
        lambda at, value: k.store(padded, at, value),
    )
    return lambda at: k.load(padded, at)


def _kernel(fold: str, step: Step) -> Block:
    def emit(k: BlockEmitter, operands: Any, results: Sequence[Buffer], **params: Param) -> None:
        w, (out,) = Windows(**params), results
        if not prod(out.shape):
            return
        filler = neutral(fold, out.dtype)
        read = _reader(k, operands[0], w, out, filler)
        if prod(w.window_dimensions) <= _UNROLLED:
            with lanes(k, out.shape) as p:
                first, *rest = w.taps()
                total = read(w.at(p, first))
                for tap in rest:
                    total = step(k, total, read(w.at(p, tap)))
                k.store(out, p, total)
            return
        # Process a row of windows at a time, a loop that vectorises.
        with lanes(k, out.shape[:-1]) as rows:
            with loops(k, out.shape[-1:]) as q:
                k.store(out, [*rows, *q], k.const(filler, out.dtype))
            with loops(k, w.window_dimensions) as at, loops(k, out.shape[-1:]) as q:
                p = [*rows, *q]
                k.store(out, p, step(k, k.load(out, p), read(w.at(p, at))))

    return Block(emit, streamed_from=0)


def fold_work(x: Aval, **params: Param) -> Workload:
    """The slot `cost` of a fold of windows: an operation for each element of each window."""
    w = Windows(**{name: params[name] for name in Windows._fields})
    return Workload(prod(w.places(x.shape)) * prod(w.window_dimensions))


# --- sum ----------------------------------------------------------------------------------------------------


def _sum_transpose(ct: Value, x: Linear, **params: Param) -> list[Value | None]:
    """Sum the cotangent, dilated by the strides, over the windows that contain an element."""
    w = Windows(**params)
    padding = []
    for n, out, window, step, (low, _), base, dilation in zip(x.aval.shape, shape_of(ct), *w):
        first = dilated(window, dilation) - 1 - low
        padding.append((first, dilated(n, base) + dilated(window, dilation) - 1 - dilated(out, step) - first))
    back = w._replace(window_strides=w.base_dilation, padding=tuple(padding), base_dilation=w.window_strides)
    return [reduce_window_sum_p.bind(ct, **back._asdict())]


reduce_window_sum_p: Primitive = Primitive(
    "reduce_window_sum",
    _abstract("reduce_window_sum", "iufc"),
    _impl("sum", np.add),
    in_float32=True,
    jvp=linear_jvp(lambda: reduce_window_sum_p),
    linear=True,
    transpose=_sum_transpose,
    batch=_batch(lambda: reduce_window_sum_p),
    kernel=_kernel("sum", lambda k, x, y: x + y),
    cost=fold_work,
)

# --- prod ---------------------------------------------------------------------------------------------------


def under_windows(x: Value, filler: Any, w: Windows) -> list[Any]:
    """Return for each tap of the window an array with its elements in all windows."""
    count = w.places(shape_of(x))
    if not prod(count):
        return [zeros(Aval(count, dtype_of(x)))] * prod(w.window_dimensions)
    config = tuple([(low, high, base - 1) for base, low, high in w.placed()])
    if any(part != (0, 0, 0) for part in config):
        x = pad_p.bind(x, filler, padding_config=config)
    elements = []
    for tap in w.taps():
        start = tuple(w.at((0,) * len(count), tap))
        limit = tuple([a + (n - 1) * s + 1 for a, n, s in zip(start, count, w.window_strides)])
        elements.append(slice_p.bind(x, start_indices=start, limit_indices=limit, strides=w.window_strides))
    return elements


def _prod_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param) -> Pair:
    (x,), (t,) = primals, tangents
    ans = reduce_window_prod_p.bind(x, **params)
    if type(t) is Zero or not prod(shape_of(ans)):
        return ans, Zero(ans)
    # Multiply factor by factor: no division, so zeros are safe.
    w, dtype = Windows(**params), dtype_of(x)
    factors = under_windows(x, dtype.type(1), w)
    first, *rest = zip(factors, under_windows(t, dtype.type(0), w))
    total: Pair = first
    for factor in rest:
        total = dual_product(total, factor)
    return ans, total[1]


reduce_window_prod_p: Primitive = Primitive(
    "reduce_window_prod",
    _abstract("reduce_window_prod", "iufc"),
    _impl("prod", np.multiply),
    in_float32=True,
    jvp=_prod_jvp,
    batch=_batch(lambda: reduce_window_prod_p),
    kernel=_kernel("prod", lambda k, x, y: x * y),
    cost=fold_work,
)

# --- max and min --------------------------------------------------------------------------------------------


def _position_impl(x: ArrayLike, *, largest: bool, **params: Param) -> np.ndarray:
    w = Windows(**params)
    views = _views(x, neutral("max" if largest else "min", x.dtype), w)
    count = w.places(x.shape)
    flat = views.reshape(*count, prod(w.window_dimensions))
    if not flat.size:
        return np.zeros(count, np.int64)
    tap = np.unravel_index((np.argmax if largest else np.argmin)(flat, -1), w.window_dimensions)
    place = w.at(list(np.indices(count)), tap)
    return np.asarray(np.ravel_multi_index(place, w.padded(x.shape)) if place else np.int64(0))


def _position_kernel(
    k: BlockEmitter, operands: Any, results: Sequence[Buffer], *, largest: bool, **params: Param
) -> None:
    w, (x,), (out,) = Windows(**params), operands, results
    if not prod(out.shape):
        return
    read = _reader(k, x, w, out, neutral("max" if largest else "min", x.dtype))
    extents = w.padded(x.shape)
    first, *rest = w.taps() if prod(w.window_dimensions) <= _UNROLLED else [(0,) * len(extents)]
    with lanes(k, out.shape) as p:

        def place_of(tap: Sequence[Any]) -> Any:
            total: Any = 0
            for i, n in zip(w.at(p, tap), extents):
                total = total * n + i
            return total

        def better(value: Scalar, best: Scalar) -> Scalar:
            ahead = value > best if largest else value < best
            return ahead | (value.ne(value) & best.eq(best))

        best, position = read(w.at(p, first)), k.cast(k.const(0, INT64), INT64) + place_of(first)
        if rest or prod(w.window_dimensions) == 1:
            for tap in rest:
                value = read(w.at(p, tap))
                ahead = better(value, best)
                best, position = (
                    k.where(ahead, value, best),
                    k.where(ahead, place_of(tap) + k.const(0, INT64), position),
                )
            k.store(out, p, position)
            return
        best_yet, position_yet = k.local(best), k.local(position)
        with loops(k, w.window_dimensions) as at:
            value = read(w.at(p, at))
            with k.if_(better(value, best_yet.get())):
                best_yet.set(value)
                position_yet.set(place_of(at))
        k.store(out, p, position_yet.get())


def _position_batch(
    size: int, args: Sequence[Value], dims: Sequence[int], *, largest: bool, **params: Param
) -> tuple[Value, int]:
    w = Windows(**params)
    x = move_axis(args[0], dims[0], 0)
    positions = window_position_p.bind(x, largest=largest, **_one_axis_more(w)._asdict())
    # The indices count through all lanes; convert them to indices within each lane.
    lanes = iota((size, *(1,) * len(w.padding)), 0)
    return sub_p.bind(positions, mul_p.bind(lanes, np.int64(prod(w.padded(shape_of(x)[1:]))))), 0


# The flat index in the padded operand of the first extreme element of each window; of the first NaN, if any.
window_position_p: Primitive = Primitive(
    "window_position",
    lambda x, *, largest, **params: _abstract("window_position", "biuf", INT64)(x, **params),
    _position_impl,
    jvp=lambda primals, tangents, **params: _without_tangent(window_position_p.bind(*primals, **params)),
    batch=_position_batch,
    kernel=Block(_position_kernel, streamed_from=0),
    cost=fold_work,
)


def _without_tangent(ans: Value) -> Pair:
    return ans, Zero(ans)


def _extremum(name: str, fold: str, ufunc: np.ufunc, step: Primitive) -> Primitive:
    def jvp(primals: Sequence[Any], tangents: Sequence[Tangent], **params: Param) -> Pair:
        (x,), (t,) = primals, tangents
        ans = prim.bind(x, **params)
        if type(t) is Zero or not prod(shape_of(ans)):
            return ans, Zero(ans)
        position = window_position_p.bind(x, largest=fold == "max", **params)
        config = tuple([(low, high, base - 1) for base, low, high in Windows(**params).placed()])
        if any(part != (0, 0, 0) for part in config):
            t = pad_p.bind(t, dtype_of(t).type(0), padding_config=config)
        return ans, gather_p.bind(flat(t), position, axes=(0,), mode="promise_in_bounds")

    assert isinstance(step.kernel, Pointwise)
    prim = Primitive(
        name,
        _abstract(name, "biuf"),
        _impl(fold, ufunc),
        in_float32=True,
        jvp=jvp,
        batch=_batch(lambda: prim),
        kernel=_kernel(fold, step.kernel.emit),
        cost=fold_work,
    )
    return prim


reduce_window_max_p = _extremum("reduce_window_max", "max", np.maximum, max_p)
reduce_window_min_p = _extremum("reduce_window_min", "min", np.minimum, min_p)
