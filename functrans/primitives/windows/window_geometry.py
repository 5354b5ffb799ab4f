"""The geometry of windows (padding, dilation, strides), shared by convolutions and window reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.kernel import BlockEmitter, Buffer, Scalar
from ...core.values import ArrayLike
from ..structure.shape import elements_within, loops

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


def padded_array(x: np.ndarray, filler: ArrayLike, placed: Placed) -> np.ndarray:
    """Return a new C-contiguous array with `x` dilated, padded and cropped."""
    extents = [max(dilated(n, base) + low + high, 0) for n, (base, low, high) in zip(x.shape, placed)]
    out = np.full(extents, filler, x.dtype)
    source, target = [], []
    for n, extent, (base, low, _) in zip(x.shape, extents, placed):
        first, stop = elements_within(extent, n, low, base)
        begin = low + first * base
        source.append(slice(first, stop))
        target.append(slice(begin, begin + dilated(stop - first, base), base))
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
    ranges = map(elements_within, extents, n, low, base)
    if any(b != 1 or stop - first != extent for (first, stop), b, extent in zip(ranges, base, extents)):
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
    ranges = list(map(elements_within, extents, n, low, base))
    with loops(k, [stop - first for first, stop in ranges]) as index:
        source = [i + first for i, (first, _) in zip(index, ranges)]
        to = [i * b + (lo + first * b) for i, (first, _), b, lo in zip(index, ranges, base, low)]
        write(to, read(source))
