"""Padding and strides of windows, as users write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.checked import checked
from ..core.errors import ArgumentError, ArgumentValueError
from ..primitives.axes import as_shape

__all__ = ["padtype_to_pads"]

Ints = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]


def of_rank(numbers: Sequence[int] | None, rank: int, name: str) -> Ints:
    """Positive integers, one for each axis; None is 1 everywhere."""
    if numbers is None:
        return (1,) * rank
    found = as_shape(numbers, name)
    if len(found) != rank or any(n < 1 for n in found):
        raise ArgumentValueError(f"{name} must be {rank} positive integers, one for each axis, got {found}")
    return found


def given_padding(padding: Any, rank: int, name: str) -> Pads:
    """Pairs of integers, one for each axis."""
    try:
        found = tuple([as_shape(pair, f"{name}: padding") for pair in padding])
    except TypeError:
        found = ()
    if len(found) != rank or any(len(pair) != 2 for pair in found):
        raise ArgumentError(
            f"{name}: padding must be 'SAME', 'SAME_LOWER', 'VALID' or {rank} pairs of integers, one for each axis, "
            f"got {padding!r}"
        )
    return tuple([(low, high) for low, high in found])


def padding_in_words(shape: Ints, window: Ints, strides: Ints, padding: str, name: str) -> Pads:
    """The padding that a word stands for."""
    word = padding.upper()
    if word == "VALID":
        return ((0, 0),) * len(shape)
    if word not in ("SAME", "SAME_LOWER"):
        raise ArgumentValueError(
            f"{name}: padding must be 'SAME', 'SAME_LOWER', 'VALID' or pairs of integers, got {padding!r}"
        )
    totals = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(shape, window, strides)]
    halves = [(t // 2, t - t // 2) for t in totals]
    return tuple([(high, low) for low, high in halves] if word == "SAME_LOWER" else halves)


@checked
def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: Any
) -> list[tuple[int, int]]:
    """Padding in words as numbers, before and behind along each axis.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.padtype_to_pads((10,), (3,), (2,), "SAME")
    [(0, 1)]
    """
    shape = as_shape(in_shape, "lax.padtype_to_pads")
    window = as_shape(window_shape, "lax.padtype_to_pads")
    strides = of_rank(window_strides, len(shape), "lax.padtype_to_pads: window_strides")
    if isinstance(padding, str):
        return list(padding_in_words(shape, window, strides, padding, "lax.padtype_to_pads"))
    return list(given_padding(padding, len(shape), "lax.padtype_to_pads"))
