"""Random bits: the Threefry-2x32 hash of a key and a counter.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", Proceedings of SC11
(2011), https://doi.org/10.1145/2063384.2063405, with 20 rounds. All random numbers are functions of these bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import Aval, Indexed, Primitive
from .families import elementwise

#: How far the second word rotates, in rounds 1 to 4 and 5 to 8; then again from the first.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_U32 = np.dtype(np.uint32)
_U64 = np.dtype(np.uint64)


def _rounds(key: Sequence[Any], x: Any, y: Any, rotate: Any) -> tuple[Any, Any]:
    """The two words of the hash, from three words of the key and two of the counter, modulo 2**32."""
    x, y = x + key[0], y + key[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x = x + y
            y = rotate(y, distance) ^ x
        x = x + key[(group + 1) % 3]
        y = y + key[(group + 2) % 3] + (group + 1)
    return x, y


def _threefry(key: Any, counter: Any) -> Any:
    def rotate(y: Any, distance: int) -> Any:
        return (y << np.uint32(distance)) | (y >> np.uint32(32 - distance))

    (first, second), (high, low) = [
        ((z >> np.uint64(32)).astype(_U32), z.astype(_U32)) for z in map(np.asarray, (key, counter))
    ]
    with np.errstate(over="ignore"):
        x, y = _rounds((first, second, first ^ second ^ np.uint32(_PARITY)), high, low, rotate)
    return (x.astype(_U64) << np.uint64(32)) | y


def _threefry_kernel(k: Any, key: Any, counter: Any) -> Any:
    def rotate(y: Any, distance: int) -> Any:
        return (y << distance) | (y >> (32 - distance))

    (first, second), (high, low) = [(k.cast(z >> 32, _U32), k.cast(z, _U32)) for z in (key, counter)]
    x, y = _rounds((first, second, first ^ second ^ _PARITY), high, low, rotate)
    return (k.cast(x, _U64) << 32) | k.cast(y, _U64)


#: 64 random bits from a key and a counter, each of 64 bits; the first word of the pair is the upper half.
threefry_p = elementwise("threefry2x32", _threefry, kernel=_threefry_kernel, kinds="u")


def _counter_kernel(k: Any, index: Any, *, out: Aval, shape: tuple[int, ...]) -> Any:
    place: Any = None
    for i, n in zip(index, shape):
        place = i if place is None else place * n + i
    return k.const(0, _U64) if place is None else k.cast(place, _U64)


#: The number of each element of an array of `shape`, in row-major order, as uint64.
counter_p = Primitive(
    "counter",
    lambda *, shape: Aval(shape, _U64),
    lambda *, shape: np.arange(np.prod(shape, dtype=np.int64), dtype=_U64).reshape(shape),
    kernel=Indexed(_counter_kernel),
    cheap=True,
)
