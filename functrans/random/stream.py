"""The streams of numbers that all samplers draw from, as functions of a key's 64-bit number and of positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core import finfo
from ..core.values import ArrayLike, Value
from ..primitives import ops
from ..primitives import random as random_ops
from ..primitives.special.inverse_erf import quick_erfinv_p
from .arguments import U32, U64


def split(word: Any, shape: int | tuple[int, ...] = 2) -> Any:
    """New keys, along new last axes."""
    shape = (shape,) if isinstance(shape, int) else shape
    return random_ops.threefry_p.bind(word, random_ops.counter_p.bind(shape=shape))


def children(word: ArrayLike, n: int = 2) -> list[Value]:
    """The same, one by one."""
    return [random_ops.threefry_p.bind(word, np.uint64(i)) for i in range(n)]


def fold(word: ArrayLike, data: Value) -> Value:
    """A new key from a key and the lower 32 bits of an integer."""
    low = ops.convert_element_type_p.bind(data, dtype=U32)
    return random_ops.threefry_p.bind(word, ops.convert_element_type_p.bind(low, dtype=U64))


def bits(word: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Random bits as unsigned integers."""
    pairs = random_ops.threefry_p.bind(word, random_ops.counter_p.bind(shape=shape))
    if dtype == U64:
        return pairs
    mixed = ops.xor_p.bind(ops.shift_right_p.bind(pairs, np.uint64(32)), pairs)
    return ops.convert_element_type_p.bind(mixed, dtype=dtype)


def fraction(word: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    """Random numbers in ``[0, 1)``: the upper bits as the fraction of a number between 1 and 2, less 1."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    fraction_bits = finfo(dtype).nmant
    kept = ops.shift_right_p.bind(
        bits(word, shape, unsigned), unsigned.type(8 * dtype.itemsize - fraction_bits)
    )
    one = dtype.type(1)
    above = ops.bitcast_p.bind(ops.or_p.bind(kept, one.view(unsigned)), dtype=dtype)
    return ops.sub_p.bind(above, one)


def uniform(
    word: ArrayLike, shape: tuple[int, ...], dtype: np.dtype, low: ArrayLike = 0.0, high: ArrayLike = 1.0
) -> Any:
    """Random numbers in ``[low, high)``."""
    unit = fraction(word, shape, dtype)
    if type(low) is float and type(high) is float and (low, high) == (0.0, 1.0):
        return unit
    low, high = (dtype.type(x) if type(x) is float else ops.strong(x, dtype) for x in (low, high))
    scaled = ops.add_p.bind(ops.mul_p.bind(unit, ops.sub_p.bind(high, low)), low)
    return ops.max_p.bind(low, scaled)


def normal(word: Any, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    """Standard normal random numbers, by inversion."""
    low = float(np.nextafter(dtype.type(-1), dtype.type(0)))
    u = uniform(word, shape, dtype, low, 1.0)
    return ops.mul_p.bind(dtype.type(math.sqrt(2)), quick_erfinv_p.bind(u))


def exponential(word: Any, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    """Exponential random numbers of mean 1, by inversion."""
    return ops.neg_p.bind(ops.log1p_p.bind(ops.neg_p.bind(uniform(word, shape, dtype))))


def random_sign(word: Any, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    """1 or -1."""
    heads = ops.lt_p.bind(uniform(word, shape, np.dtype(float)), 0.5)
    one = np.ones((), dtype)[()]
    return ops.select_p.bind(heads, ops.broadcast_to(one, shape), ops.broadcast_to(-one, shape))
