"""The geometry of windows (padding, dilation, strides), shared by convolutions and window reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.kernel import BlockEmitter, Buffer, Scalar
from ..structure.shape import loops

Padding = tuple[tuple[int, int], ...]
Placed = tuple[tuple[int, int, int], ...]
"""For each axis its dilation, and the padding before and after (negative values crop)."""


def dilated(n: int, dilation: int) -> int:
    """Return the extent of `n` elements with ``dilation - 1`` others between neighbours."""
    return (n - 1) * dilation + 1 if n else 0


def window_count(n: int, window: int, stride: int, padding: tuple[int, int], base: int, dilation: int) -> int:
    """Return how many windows fit along an axis of extent `n` that is dilated by `base` and then padded."""
    room = dilated(n, base) + sum(padding) - dilated(window, dilation)
    return max(room // stride + 1, 0)


def covered(windows: int, window: int, stride: int, dilation: int) -> int:
    """Return the extent from the first element under the first window to the last under the last one."""
    return (windows - 1) * stride + dilated(window, dilation) if windows and window else 0


def kept(n: int, low: int, step: int, extent: int) -> tuple[int, int]:
    """Return which of `n` elements at positions ``low + step * i`` lie within `extent`: the first, and how many."""
    first = max(0, -(low // step))
    return first, max(0, min(n, -((low - extent) // step)) - first)


def padded_array(x: np.ndarray, filler: Any, placed: Placed) -> np.ndarray:
    """Return a new C-contiguous array with `x` dilated, padded and cropped."""
    extents = [max(dilated(n, base) + low + high, 0) for n, (base, low, high) in zip(x.shape, placed)]
    out = np.full(extents, filler, x.dtype)
    source, target = [], []
    for n, extent, (base, low, _) in zip(x.shape, extents, placed):
        first, count = kept(n, low, base, extent)
        begin = low + first * base
        source.append(slice(first, first + count))
        target.append(slice(begin, begin + dilated(count, base), base))
    out[tuple(target)] = x[tuple(source)]
    return out


def fill(
    k: BlockEmitter,
    target: Buffer,
    filler: Any,
    extents: Sequence[int],
    n: Sequence[int],
    base: Sequence[int],
    low: Sequence[int],
) -> None:
    """Write `filler` where no element will be; it may write elsewhere, too."""
    if any(b != 1 or kept(m, lo, b, extent)[1] != extent for m, b, lo, extent in zip(n, base, low, extents)):
        with loops(k, target.shape) as index:
            k.store(target, index, filler)


def place(
    k: BlockEmitter,
    extents: Sequence[int],
    n: Sequence[int],
    base: Sequence[int],
    low: Sequence[int],
    read: Callable[[list[Any]], Scalar],
    write: Callable[[list[Any], Scalar], None],
) -> None:
    """Write the elements ``read(index)`` to their positions in the padded array of these extents."""
    ranges = [kept(m, lo, b, extent) for m, b, lo, extent in zip(n, base, low, extents)]
    with loops(k, [count for _, count in ranges]) as index:
        source = [i + first for i, (first, _) in zip(index, ranges)]
        to = [i * b + (lo + first * b) for i, (first, _), b, lo in zip(index, ranges, base, low)]
        write(to, read(source))
