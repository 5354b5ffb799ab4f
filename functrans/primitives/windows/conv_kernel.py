"""The kernel of a convolution: direct loops over rows, or BLAS on unrolled windows.

Both first write the left operand with its padding and dilation, so that no loop tests bounds, and store the right one
contiguously; operands are computed as they are read. There are three algorithms:

* `_by_rows`: rows of the result are sums of shifted rows, several taps of the window per loop. It supports every dtype,
and is fastest for few channels. Short rows are joined first (`_by_images`).
* `_by_columns`: the elements under the windows become columns of a matrix, for BLAS; fastest for many channels.
* `_by_windows`: the same with windows as rows, for large windows at few positions: the derivative in the right operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from math import prod
from typing import Any

from ...core import is_inexact
from ...core.kernel import BlockEmitter, Buffer, Scalar
from ...core.values import ArrayLike
from ...runtime.records import NamedTuple
from ..structure.shape import lanes, loops
from .window_geometry import Padding, covered, fill, place

Ints = tuple[int, ...]
Index = Sequence[Any]

_UNROLLED = 32
"""Loops over windows of at most this many taps are unrolled; larger windows are unrolled in parts."""
_TAPS = 8
_CHAINS, _TOGETHER = 3, 2
"""Partial sums per element, and output channels computed together: they keep several additions in flight."""
_SHORT = 128
"""Shorter rows are joined."""
_ROW = 2048
"""Elements of a row processed at a time under long windows, so that they stay in the cache."""
_COLUMNS = 1 << 18
"""The approximate number of elements written as columns at a time."""
_CHANNELS = 512
_MANY_CHANNELS = 8192
"""Products of input and output channels from which BLAS is faster than loops over rows; the second, than loops over
joined rows, where matrix products of the dtype are slow.
"""
_NARROW = 32
"""Joined rows of at most this many bytes are still short: vector loops leave a large remainder, BLAS does not."""


class _ConvExtents(NamedTuple):
    """Extents: examples, groups, input and output channels, the window, its positions, the elements under them."""

    n: int
    g: int
    i: int
    o: int
    window: Ints
    places: Ints
    under: Ints
    strides: Ints
    dilation: Ints

    def at(self, p: Sequence[Any], k: Sequence[Any]) -> list[Any]:
        """Return where tap `k` of the window at position `p` reads."""
        return [a * s + b * d for a, s, b, d in zip(p, self.strides, k, self.dilation)]

    def has_short_rows(self) -> bool:
        """Whether rows are too short for vector loops, and can be joined."""
        joined = len(self.places) > 1 and self.strides[-2:] == (1, 1)
        return joined and self.places[-1] < _SHORT and prod(self.window) <= _UNROLLED


def conv_kernel(
    k: BlockEmitter,
    operands: Any,
    results: Sequence[Buffer],
    *,
    window_strides: Ints,
    padding: Padding,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
) -> None:
    """The `Block` rule of a convolution."""
    (x, w), (out,) = operands, results
    n, g, i, *spatial = x.shape
    window, places = w.shape[3:], out.shape[3:]
    under = tuple(map(covered, places, window, window_strides, rhs_dilation))
    plan = _ConvExtents(n, g, i, w.shape[1], window, places, under, window_strides, rhs_dilation)
    if not prod(out.shape):
        return
    if not prod(w.shape):
        with loops(k, out.shape) as index:
            k.store(out, index, k.const(0, out.dtype))
        return
    base, low = lhs_dilation, tuple(lo for lo, _ in padding)
    source = _PaddedOperand(x, tuple(spatial), base, low)
    blas = is_inexact(out.dtype)
    joined = plan.has_short_rows() and places[-1] * out.dtype.itemsize > _NARROW
    slow = joined and prod(window) > 1 and not (blas and k.has_quick_products(out.dtype))
    if blas and window and places[-1] < window[-1] and prod(window) > _UNROLLED:
        _by_windows(k, source, w, out, plan)
    elif blas and plan.i * plan.o >= (_MANY_CHANNELS if slow else _CHANNELS):
        _by_columns(k, source, w, out, plan)
    elif plan.has_short_rows():
        _by_images(k, source, w, out, plan)
    else:
        _by_rows(k, source, w, out, plan)


class _PaddedOperand(NamedTuple):
    """The left operand, and the positions of its elements in the padded array."""

    x: Any
    spatial: Ints
    base: Ints
    low: Ints

    def prepare(self, k: BlockEmitter, target: Buffer, extents: Ints | None = None) -> None:
        """Write zeros where no element goes; `target` has one more axis in front."""
        zero = k.const(0, target.dtype)
        sizes = target.shape if extents is None else extents
        fill(k, target, zero, sizes, (sizes[0], *self.spatial), (1, *self.base), (0, *self.low))

    def write_channels(
        self, k: BlockEmitter, target: Buffer, n: Scalar, g: Scalar, extents: Ints | None = None
    ) -> None:
        """Write all channels of one example and group; with `extents`, flatten their last two axes."""
        self._write(k, target, lambda at: k.load(self.x, [n, g, *at]), extents)

    def write_examples(self, k: BlockEmitter, target: Buffer, g: Scalar, i: Scalar) -> None:
        """Write one channel of all examples."""
        self._write(k, target, lambda at: k.load(self.x, [at[0], g, i, *at[1:]]))

    def _write(
        self,
        k: BlockEmitter,
        target: Buffer,
        read: Callable[[Index], Scalar],
        extents: Ints | None = None,
    ) -> None:
        def write(at: list[Any], value: Scalar) -> None:
            k.store(target, at if extents is None else [*at[:-2], at[-2] * extents[-1] + at[-1]], value)

        sizes = target.shape if extents is None else extents
        place(k, sizes, (sizes[0], *self.spatial), (1, *self.base), (0, *self.low), read, write)


def _weights(k: BlockEmitter, w: Any) -> Buffer:
    """Return the right operand in memory."""
    packed = k.scratch(w.shape, w.dtype)
    with loops(k, w.shape) as index:
        k.store(packed, index, k.load(w, index))
    return packed


def _sum(terms: Sequence[Scalar]) -> Scalar:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _at_most(k: BlockEmitter, x: Scalar, n: int) -> Scalar:
    """Return the smaller of a scalar and an extent."""
    over = x - n
    return k.where(over > 0, x - over, x)


# --- loops over rows ----------------------------------------------------------------------------------------


def _by_rows(k: BlockEmitter, source: _PaddedOperand, w: Any, out: Buffer, plan: _ConvExtents) -> None:
    weights = _weights(k, w)
    padded = k.scratch((plan.i, *plan.under), out.dtype)
    source.prepare(k, padded)
    with lanes(k, (plan.n, plan.g)) as (n, g):
        source.write_channels(k, padded, n, g)
        with lanes(k, (plan.o, *plan.places[:-1])) as (o, *p):

            def under(i: Any, q: Index, tap: Index) -> Scalar:
                return k.load(padded, [i, *plan.at([*p, *q], tap)])

            row = _Rows(k, weights, g, [(o, out, [n, g, o, *p])], plan.places[-1:], under)
            if prod(plan.window) <= _UNROLLED:
                _add_channels(k, plan, row)
            else:
                _under_long_windows(k, plan, row)


def _by_images(k: BlockEmitter, source: _PaddedOperand, w: Any, out: Buffer, plan: _ConvExtents) -> None:
    """Join short rows into a single one, in which windows also move by 1. Drop the positions in between, where windows
    reach past the end of a row.
    """
    weights = _weights(k, w)
    *_, height, width = plan.places
    *above, rows, pitch = plan.under
    extents = (plan.i, *plan.under)
    padded = k.scratch((plan.i, *above, rows * pitch), out.dtype)
    source.prepare(k, padded, extents)
    with lanes(k, (plan.n, plan.g)) as (n, g):
        source.write_channels(k, padded, n, g, extents)

        def some(channels: Sequence[Any]) -> None:
            images = [k.scratch(((height - 1) * pitch + width,), out.dtype) for _ in channels]
            with loops(k, plan.places[:-2]) as p:

                def under(i: Any, q: Index, tap: Index) -> Scalar:
                    *at, down, right = plan.at([*p, 0, 0], tap)
                    return k.load(padded, [i, *at, q[0] + (down * pitch + right)])

                rows: list[tuple[Any, Buffer, Index]] = [(o, image, []) for o, image in zip(channels, images)]
                _add_channels(k, plan, _Rows(k, weights, g, rows, images[0].shape, under))
                with k.loop(height) as h, k.loop(width) as v:
                    for o, image, _ in rows:
                        k.store(out, [n, g, o, *p, h, v], k.load(image, [h * pitch + v]))

        # Output channels computed together share their reads.
        blocks = plan.o // _TOGETHER
        with k.loop(blocks, separate=True) as block:
            some([block * _TOGETHER + j for j in range(_TOGETHER)])
        with k.loop(plan.o, blocks * _TOGETHER) as o:
            some([o])


class _Rows(NamedTuple):
    """Rows of the result for some output channels: each channel with a buffer and the row's offset in it; and a
    function that reads the elements under the window at a position of the row.
    """

    k: BlockEmitter
    weights: Buffer
    g: Scalar
    rows: Sequence[tuple[Any, Buffer, Index]]
    extent: Ints
    under: Callable[[Any, Index, Index], Scalar]

    def add(self, i: Any, taps: Sequence[Index], part: Any = None, begin: bool = False) -> None:
        """Add some taps of one input channel to a part of the rows (start, stop)."""
        k = self.k
        factors = [[k.load(self.weights, [self.g, o, i, *tap]) for tap in taps] for o, _, _ in self.rows]
        with self._loop(part) as q:
            under = [self.under(i, q, tap) for tap in taps]
            for (_, buffer, start), own in zip(self.rows, factors):
                terms = [factor * x for factor, x in zip(own, under)]
                # Short independent chains of additions run in parallel.
                total = _sum([_sum(terms[j::_CHAINS]) for j in range(min(_CHAINS, len(terms)))])
                k.store(buffer, [*start, *q], total if begin else k.load(buffer, [*start, *q]) + total)

    def clear(self, part: Any) -> None:
        """Set a part of the rows to zero."""
        for _, buffer, start in self.rows:
            with self._loop(part) as q:
                self.k.store(buffer, [*start, *q], self.k.const(0, buffer.dtype))

    @contextmanager
    def _loop(self, part: Any) -> Iterator[list[Any]]:
        if part is None:
            with loops(self.k, self.extent) as q:
                yield q
        else:
            with self.k.loop(part[1], part[0]) as i:
                yield [i]


def _add_channels(k: BlockEmitter, plan: _ConvExtents, row: _Rows) -> None:
    taps = list(product(*map(range, plan.window)))
    row.add(0, taps, begin=True)
    with k.loop(plan.i, 1) as i:
        row.add(i, taps)


def _under_long_windows(k: BlockEmitter, plan: _ConvExtents, row: _Rows) -> None:
    length, count = plan.places[-1], plan.window[-1]
    with k.loop(-(-length // _ROW)) as tile:
        first = tile * _ROW
        part = first, _at_most(k, first + _ROW, length)
        row.clear(part)
        with k.loop(plan.i) as i, loops(k, plan.window[:-1]) as t:
            if count <= _UNROLLED // 2:
                row.add(i, [[*t, j] for j in range(count)], part)
                return
            with k.loop(count // _TAPS) as block:
                row.add(i, [[*t, block * _TAPS + j] for j in range(_TAPS)], part)
            with k.loop(count, count // _TAPS * _TAPS) as last:
                row.add(i, [[*t, last]], part)


# --- BLAS ---------------------------------------------------------------------------------------------------


def _by_columns(
    k: BlockEmitter, source: _PaddedOperand, w: ArrayLike, out: Buffer, plan: _ConvExtents
) -> None:
    weights = _weights(k, w)
    padded = k.scratch((plan.i, *plan.under), out.dtype)
    source.prepare(k, padded)
    depth, inner = plan.i * prod(plan.window), prod(plan.places[1:])
    # Process some rows of positions at a time.
    rows = plan.places[0] if plan.places else 1
    some = min(max(_COLUMNS // (depth * inner), 1), rows)
    columns = k.scratch((plan.i, *plan.window, some * inner), out.dtype)
    with lanes(k, (plan.n, plan.g)) as (n, g):
        source.write_channels(k, padded, n, g)
        with k.loop(-(-rows // some)) as tile:
            first = tile * some
            count = _at_most(k, first + some, rows) - first
            with loops(k, (plan.i, *plan.window)) as it, k.loop(count) as r, loops(k, plan.places[1:]) as p:
                at = plan.at([first + r, *p][: len(plan.places)], it[1:])
                k.store(columns, [*it, _flat([r, *p], plan.places[1:])], k.load(padded, [it[0], *at]))
            # BLAS is column-major: it sees rows as columns.
            target = ((n * plan.g + g) * (plan.o * rows) + first) * inner
            # fmt: off
            k.extern(
                "gemm", "N", "N", count * inner, plan.o, depth, 1.0, (columns, 0), some * inner,
                (weights, g * (plan.o * depth)), depth, 0.0, (out, target), rows * inner,
            )
            # fmt: on


def _flat(index: Index, extents: Sequence[int]) -> Any:
    """Return the row-major position; `extents` are those of all axes but the first."""
    total = index[0]
    for i, n in zip(index[1:], extents):
        total = total * n + i
    return total


def _by_windows(
    k: BlockEmitter, source: _PaddedOperand, w: ArrayLike, out: Buffer, plan: _ConvExtents
) -> None:
    weights = _weights(k, w)
    padded = k.scratch((plan.n, *plan.under), out.dtype)
    source.prepare(k, padded)
    columns, inner = plan.n * prod(plan.places), prod(plan.window[1:])
    # Process some rows of the window at a time.
    rows = plan.window[0]
    some = min(max(_COLUMNS // (columns * inner), 1), rows)
    windows = k.scratch((plan.n, *plan.places, some * inner), out.dtype)
    sums = k.scratch((plan.n, *plan.places, plan.o), out.dtype)
    zero = k.const(0, out.dtype)
    with k.loop(plan.g) as g:
        with loops(k, sums.shape) as index:
            k.store(sums, index, zero)
        with k.loop(plan.i, adds=not k.in_order) as i:
            source.write_examples(k, padded, g, i)
            with k.loop(-(-rows // some)) as tile:
                first = tile * some
                count = _at_most(k, first + some, rows) - first
                with (
                    lanes(k, (plan.n, *plan.places)) as (n, *p),
                    k.loop(count) as r,
                    loops(k, plan.window[1:]) as t,
                ):
                    value = k.load(padded, [n, *plan.at(p, [first + r, *t])])
                    k.store(windows, [n, *p, _flat([r, *t], plan.window[1:])], value)
                start = ((g * (plan.o * plan.i) + i) * rows + first) * inner
                # fmt: off
                k.extern(
                    "gemm", "T", "N", plan.o, columns, count * inner, 1.0, (weights, start), plan.i * rows * inner,
                    (windows, 0), some * inner, 1.0, (sums, 0), plan.o,
                )
                # fmt: on
        with lanes(k, (plan.n, plan.o, *plan.places)) as (n, o, *p):
            k.store(out, [n, g, o, *p], k.load(sums, [n, *p, o]))
