"""Guard words: what stands around memory that native code writes, so that a write beside it can be seen.

The word is a NaN as a float64 and, in each half, as a float32, and no number that programs compute with: memory filled
with it shows where it is read before it is written, and after it is given up.
"""

from __future__ import annotations

import ctypes
import struct

import numpy as np

WORD = 0xFFFDAFE5_FFFDAFE5
#: How many bytes of guard words stand on each side.
GUARD = 128

_PATTERN = struct.pack("=Q", WORD)


def words(nbytes: int, start: int = 0) -> bytes:
    """So many bytes of guard words, as they stand `start` bytes behind the beginning of one."""
    whole = _PATTERN * (nbytes // 8 + 2)
    return whole[start % 8 : start % 8 + nbytes]


def memory(address: int, nbytes: int) -> np.ndarray:
    """The memory at an address, as bytes."""
    if not nbytes:
        return np.empty(0, np.uint8)
    return np.frombuffer((ctypes.c_char * nbytes).from_address(address), np.uint8)


def fill(address: int, nbytes: int) -> None:
    """Fill memory with guard words."""
    memory(address, nbytes)[:] = np.frombuffer(words(nbytes), np.uint8)
