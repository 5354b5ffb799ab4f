"""Guard words: they surround the memory that native code writes, so that a stray write can be detected.

The word is a NaN as a float64 and, in each half, as a float32, and is a number that programs do not compute with:
memory filled with it shows reads before the first write, and reads after release.
"""

from __future__ import annotations

import ctypes
import struct

import numpy as np

WORD = 0xFFFDAFE5_FFFDAFE5
#: The number of bytes of guard words on each side.
GUARD = 128

_PATTERN = struct.pack("=Q", WORD)


def words(nbytes: int, start: int = 0) -> bytes:
    """`nbytes` bytes of guard words, beginning `start` bytes into a word."""
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
