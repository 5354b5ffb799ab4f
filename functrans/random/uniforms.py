"""Bits, uniform numbers, integers, and coins."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..core import aval_of, finfo, is_float
from ..core.values import ArrayLike, DTypeLike, ShapeLike, Value
from ..frontend.checked import checked
from ..primitives import ops
from ..primitives.ops import operand
from . import stream
from .arguments import (
    bits_dtype,
    cast,
    choice_of,
    compiled,
    float_dtype,
    integer_dtype,
    number_dtype,
    one_key,
    parameter,
    shape_of_result,
    shape_with,
    words,
)
from .sampler import sampler

__all__ = ["bernoulli", "bits", "rademacher", "randint", "uniform"]


@sampler(dtype=bits_dtype)
def bits(word: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw random bits, as unsigned integers.

    Examples
    --------
    >>> from functrans import random
    >>> random.bits(random.key(0), 3, "uint8")
    Array([167, 146,  40], dtype=uint8)
    """
    return stream.bits(word, shape, dtype)


@partial(compiled, draws_low=True)
def _uniform(key: Value, minval: Value, maxval: Value, *, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    return stream.uniform(words(key, "uniform"), shape, dtype, minval, maxval)


@partial(compiled, draws_low=True)
def _unit(key: Value, *, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    return stream.uniform(words(key, "uniform"), shape, dtype)


@checked
def uniform(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: None = None,
) -> Array:
    """Draw uniform numbers in ``[minval, maxval)``.

    Parameters
    ----------
    key : key
    shape : int or tuple of int
    dtype : dtype-like
        A float dtype, by default float64.
    minval, maxval : array_like
        They broadcast to `shape`, and have derivatives.

    Returns
    -------
    Array
        Multiples of 2**-52 (float32: 2**-23) of the range.

    Examples
    --------
    >>> from functrans import random
    >>> random.uniform(random.key(0), 3, minval=10.0, maxval=20.0)
    Array([14.18457112, 12.16295455, 19.65321461])
    """
    key, kind = one_key(key, "uniform"), float_dtype(dtype, "uniform")
    if type(minval) is float and type(maxval) is float and (minval, maxval) == (0.0, 1.0):
        return _unit(key, shape=shape_of_result(shape, "uniform"), dtype=kind)
    low, high = parameter(minval, "uniform", "minval"), parameter(maxval, "uniform", "maxval")
    extents = shape_with(shape, "uniform", minval=low, maxval=high)
    return _uniform(key, low, high, shape=extents, dtype=kind)


# --- integers -----------------------------------------------------------------------------------------------


def _clipped(x: Value, dtype: np.dtype) -> Value:
    """Integers in another dtype, clipped to its range."""
    own, new = np.iinfo(aval_of(x).dtype), np.iinfo(dtype)
    low, high = own.dtype.type(max(own.min, new.min)), own.dtype.type(min(own.max, new.max))
    clipped = ops.min_p.bind(ops.max_p.bind(x, low), high)
    return ops.convert_element_type_p.bind(clipped, dtype=dtype)


@compiled
def _randint(key: Value, minval: Value, maxval: Value, *, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    low, high = (cast(x, aval_of(x).dtype) for x in (minval, maxval))
    return integers(words(key, "randint"), low, high, shape, dtype)


def integers(word: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    """Integers in ``[low, high)``; the ends are clipped to the range of the dtype."""
    drawn = dtype
    if dtype.itemsize < 4:  # in int32, where the range's end fits
        drawn, info = np.dtype(np.int32), np.iinfo(dtype)
        low, high = (
            ops.min_p.bind(
                ops.max_p.bind(ops.convert_element_type_p.bind(x, dtype=drawn), np.int32(info.min)), end
            )
            for x, end in ((low, np.int32(info.max)), (high, np.int32(int(info.max) + 1)))
        )
    most = aval_of(high).dtype.type(min(np.iinfo(drawn).max, np.iinfo(aval_of(high).dtype).max))
    beyond = ops.gt_p.bind(high, most)
    low, high = _clipped(low, drawn), _clipped(high, drawn)
    unsigned = np.dtype(f"u{drawn.itemsize}")
    first, second = stream.children(word)
    upper, lower = (stream.bits(w, shape, unsigned) for w in (first, second))
    span = ops.convert_element_type_p.bind(ops.sub_p.bind(high, low), dtype=unsigned)
    one = unsigned.type(1)
    rising = ops.gt_p.bind(high, low)
    span = ops.select_p.bind(rising, span, ops.broadcast_to(one, aval_of(span).shape))
    span = ops.select_p.bind(ops.and_p.bind(beyond, rising), ops.add_p.bind(span, one), span)
    # (upper * 2**n + lower) modulo span; JAX's product wraps at n bits, and a span of 2**n is 0.
    half = unsigned.type(1 << (4 * unsigned.itemsize))
    multiplier = _rem(half, span)
    multiplier = _rem(ops.mul_p.bind(multiplier, multiplier), span)
    offset = ops.add_p.bind(ops.mul_p.bind(_rem(upper, span), multiplier), _rem(lower, span))
    offset = ops.convert_element_type_p.bind(_rem(offset, span), dtype=drawn)
    return ops.convert_element_type_p.bind(ops.add_p.bind(low, offset), dtype=dtype)


def _rem(x: Value, span: Any) -> Value:
    """The remainder, and `x` where the span is 0, which stands for all numbers."""
    rest = ops.fmod_p.bind(x, span)
    shape = aval_of(rest).shape
    none = ops.eq_p.bind(span, aval_of(span).dtype.type(0))
    return ops.select_p.bind(ops.broadcast_to(none, shape), ops.broadcast_to(x, shape), rest)


@checked
def randint(
    key: ArrayLike,
    shape: ShapeLike,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike = None,
    *,
    out_sharding: None = None,
) -> Any:
    """Draw integers in ``[minval, maxval)``.

    Parameters
    ----------
    key : key
    shape : int or tuple of int
    minval, maxval : array_like of int
        They broadcast to `shape`. An empty range gives `minval`.
    dtype : dtype-like
        An integer dtype, by default int64. The ends of the range are clipped to its range.

    Examples
    --------
    >>> from functrans import random
    >>> random.randint(random.key(0), 5, 0, 10)
    Array([5, 1, 5, 7, 3])
    """
    key, kind = one_key(key, "randint"), integer_dtype(dtype, "randint")
    ends = []
    for x, argument in ((minval, "minval"), (maxval, "maxval")):
        value = parameter(x, "randint", argument)
        if aval_of(value).dtype.kind not in "iu":
            value = ops.convert_element_type_p.bind(operand(value, "random.randint"), dtype=np.dtype(int))
        ends.append(value)
    extents = shape_with(shape, "randint", minval=ends[0], maxval=ends[1])
    return _randint(key, *ends, shape=extents, dtype=kind)


# --- coins ----------------------------------------------------------------------------------------------------


@compiled
def _bernoulli(key: Value, p: ArrayLike, *, shape: tuple[int, ...], mode: str) -> Value:
    dtype = aval_of(p).dtype
    p = cast(p, dtype)
    if mode == "low":
        return ops.lt_p.bind(stream.uniform(words(key, "bernoulli"), shape, dtype), p)
    pairs = stream.uniform(words(key, "bernoulli"), (2, *shape), dtype)
    coarse, fine = (ops.element_along(pairs, 0, i) for i in range(2))
    fine = ops.mul_p.bind(fine, dtype.type(2.0 ** -finfo(dtype).nmant))
    return ops.lt_p.bind(fine, ops.sub_p.bind(p, coarse))


@checked
def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: ShapeLike = None,
    mode: str = "low",
    *,
    out_sharding: None = None,
) -> Any:
    """Draw True with probability `p`.

    Parameters
    ----------
    key : key
    p : array_like of float
        In ``[0, 1]``.
    shape : int or tuple of int, optional
        By default that of `p`, which must broadcast to it.
    mode : {'low', 'high'}
        'high' draws twice as many bits, for probabilities below 2**-23 in float32.

    Examples
    --------
    >>> from functrans import random
    >>> random.bernoulli(random.key(0), 0.3, 4)
    Array([False,  True, False, False])
    """
    key, p = one_key(key, "bernoulli"), parameter(p, "bernoulli", "p", low=0.0, high=1.0)
    if not is_float(aval_of(p).dtype):
        p = ops.convert_element_type_p.bind(p, dtype=np.dtype(float))
    extents = shape_with(shape, "bernoulli", p=p)
    return _bernoulli(key, p, shape=extents, mode=choice_of(mode, ("low", "high"), "bernoulli", "mode"))


@sampler(dtype=number_dtype)
def rademacher(word: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw 1 or -1, with equal probability.

    Examples
    --------
    >>> from functrans import random
    >>> random.rademacher(random.key(0), 4)
    Array([ 1,  1, -1, -1])
    """
    return stream.random_sign(word, shape, dtype)
