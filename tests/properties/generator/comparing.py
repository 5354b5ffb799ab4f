"""Comparisons: of one array with what an oracle or another route gives. They are counted."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import tree


class Counter:
    """How many arrays were compared."""

    arrays = 0


class Mismatch(AssertionError):
    """An array is not what it should be."""


def compare(found: Any, expected: Any, tolerance: float = 1e-9, what: str = "", skip: Any = ()) -> None:
    """Equal shapes and dtypes, and numbers relative to the largest of each array.

    Parameters
    ----------
    found, expected : pytree of arrays
    tolerance : float
        Zero for equal bits.
    what : str
        The route, for the message.
    skip : collection of int
        Numbers of arrays that are not compared.
    """
    found, expected = tree.leaves(found), tree.leaves(expected)
    if len(found) != len(expected):
        raise Mismatch(f"{what}: {len(found)} arrays instead of {len(expected)}")
    for k, (a, b) in enumerate(zip(found, expected)):
        if k in skip:
            continue
        a, b = np.asarray(a), np.asarray(b)
        Counter.arrays += 1
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise Mismatch(f"{what}, array {k}: {a.dtype}{a.shape} instead of {b.dtype}{b.shape}")
        if not _close(a, b, tolerance):
            raise Mismatch(f"{what}, array {k}: {a!r} instead of {b!r}, tolerance {tolerance}")


def _close(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    if a.size == 0:
        return True
    if tolerance == 0 or b.dtype.kind not in "fc":
        return np.array_equal(a, b, equal_nan=b.dtype.kind in "fc")
    if b.dtype.itemsize == (4 if b.dtype.kind == "f" else 8):
        tolerance = max(tolerance, 5e-4)
    difference = a - b
    size = np.abs(b).max()
    if np.isfinite(size):
        return bool(np.abs(difference).max() <= tolerance * max(1.0, size))
    finite = np.isfinite(b)
    same = np.array_equal(a[~finite], b[~finite], equal_nan=True)
    size = np.abs(b[finite]).max(initial=1.0)
    return same and bool(np.abs(difference[finite]).max(initial=0.0) <= tolerance * size)
