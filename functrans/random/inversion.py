"""Distributions by inversion: a function of one uniform number for each draw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..core import aval_of, finfo
from ..core.values import ArrayLike, DTypeLike, ShapeLike, Value
from ..frontend.checked import checked
from . import stream
from .arguments import (
    cast,
    choice_of,
    compiled,
    float_dtype,
    integer_dtype,
    one_key,
    parameter,
    shape_of_result,
    spread,
    words,
)
from .sampler import Real, sampler

__all__ = [
    "cauchy", "exponential", "geometric", "gumbel", "laplace", "logistic", "pareto", "rayleigh", "triangular",
    "weibull_min",
]  # fmt: skip


@sampler()
def exponential(word: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw exponential numbers of mean 1.

    Examples
    --------
    >>> from functrans import random
    >>> random.exponential(random.key(0), 3)
    Array([0.54207056, 0.24372319, 3.36163426])
    """
    return stream.exponential(word, shape, dtype)


def gumbel_of(word: Any, shape: tuple[int, ...], dtype: np.dtype, mode: str = "low") -> Any:
    """Standard Gumbel numbers; see `gumbel`."""
    limits = finfo(dtype)
    if mode == "highest" and dtype == np.float32:
        return _fine_gumbel(word, shape)
    if mode == "low":
        return -fnp.log(-fnp.log(stream.uniform(word, shape, dtype, float(limits.tiny), 1.0)))
    high, low = stream.uniform(word, (2, *shape), dtype)
    x = fnp.where(high >= 0.5, high, high + dtype.type(2.0**-limits.nmant) * low + limits.tiny)
    return -fnp.log(-fnp.log1p(-x))


def _fine_gumbel(word: ArrayLike, shape: tuple[int, ...]) -> Any:
    """float32 numbers from 64 bits each, which are read as a fixed-point number or its distance from 1."""
    unsigned = np.dtype(np.uint32)
    high, low = stream.bits(word, (2, *shape), unsigned)
    flip = high < np.uint32(1 << 31)
    last = fnp.astype(low == np.uint32(2**32 - 1), unsigned)
    x = _from_fixed_point(
        fnp.where(flip, high, fnp.bitwise_not(high) + last),
        fnp.where(flip, low, fnp.bitwise_not(low) + np.uint32(1)),
    )
    return fnp.where(flip, -fnp.log(-fnp.log1p(-x)), -fnp.log(-fnp.log(x)))


def _from_fixed_point(high: ArrayLike, low: ArrayLike) -> Any:
    """``(high + low / 2**32) / 2**32`` as float32, rounded towards zero."""
    number = (fnp.astype(high, np.uint64) << np.uint64(32)) | fnp.astype(low, np.uint64)
    kept = fnp.bitwise_count(_below_highest_bit(number))
    # The 24 highest bits that are set, which float32 holds exactly.
    shift = fnp.astype(fnp.maximum(kept - 24, 0), np.uint64)
    cut = fnp.astype((number >> shift) << shift, np.float64) * 2.0**-64
    return fnp.astype(cut, np.float32)


def _below_highest_bit(x: ArrayLike) -> Value:
    """All bits up to the highest one that is set."""
    for distance in (1, 2, 4, 8, 16, 32):
        x = x | (x >> np.uint64(distance))
    return x


@compiled
def _gumbel(key: Value, *, shape: tuple[int, ...], dtype: np.dtype, mode: str) -> Value:
    return gumbel_of(words(key, "gumbel"), shape, dtype, mode)


MODES = ("low", "high", "highest")


@checked
def gumbel(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    mode: str | None = None,
    *,
    out_sharding: None = None,
) -> Any:
    """Draw standard Gumbel numbers.

    Parameters
    ----------
    key : key
    shape : int or tuple of int
    dtype : dtype-like
        A float dtype, by default float64.
    mode : {'low', 'high', 'highest'}, optional
        How many bits make a number. The largest float32 number is 16 with 'low', which is the default, and above 32
        with 'high', at twice the cost.

    Examples
    --------
    >>> from functrans import random
    >>> random.gumbel(random.key(0), 3)
    Array([ 0.13790566, -0.42599294,  3.34403911])
    """
    kind, mode = float_dtype(dtype, "gumbel"), choice_of(mode or "low", MODES, "gumbel", "mode")
    return _gumbel(one_key(key, "gumbel"), shape=shape_of_result(shape, "gumbel"), dtype=kind, mode=mode)


@sampler()
def laplace(word: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw standard Laplace numbers, of density ``exp(-abs(x)) / 2``.

    Examples
    --------
    >>> from functrans import random
    >>> random.laplace(random.key(0), 3)
    Array([ 0.17803369,  0.83796278, -2.66848708])
    """
    low = float(dtype.type(-1) + finfo(dtype).epsneg)
    u = stream.uniform(word, shape, dtype, low, 1.0)
    return fnp.sign(u) * fnp.log1p(-fnp.abs(u))


@sampler()
def logistic(word: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw standard logistic numbers.

    Examples
    --------
    >>> from functrans import random
    >>> random.logistic(random.key(0), 3)
    Array([-0.32911032, -1.28738678,  3.32634015])
    """
    u = stream.uniform(word, shape, dtype, float(finfo(dtype).tiny), 1.0)
    return fnp.log(u) - fnp.log1p(-u)


@sampler()
def cauchy(word: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw standard Cauchy numbers.

    Examples
    --------
    >>> from functrans import random
    >>> random.cauchy(random.key(0), 3)
    Array([-0.26192951, -1.23784602,  9.14252843])
    """
    u = stream.uniform(word, shape, dtype, float(finfo(dtype).eps), 1.0)
    return fnp.tan(dtype.type(math.pi) * (u - dtype.type(0.5)))


# --- with parameters --------------------------------------------------------------------------------------------


@sampler(Real("b", "Positive. It has derivatives.", above=0.0))
def pareto(word: Any, b: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw Pareto numbers: at least 1, of density ``b / x**(b + 1)``.

    Examples
    --------
    >>> from functrans import random
    >>> random.pareto(random.key(0), 2.0, 3)
    Array([1.31132133, 1.12959775, 5.36994212])
    """
    return fnp.exp(stream.exponential(word, shape, dtype) / cast(b, dtype))


@sampler(
    Real("scale", "The standard deviation of the vectors' parts, not negative. It has derivatives.", low=0.0)
)
def rayleigh(word: Any, scale: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw Rayleigh numbers: lengths of two-dimensional normal vectors.

    Examples
    --------
    >>> from functrans import random
    >>> random.rayleigh(random.key(0), 1.0, 3)
    Array([1.31998551, 1.74991998, 0.26568445])
    """
    u = stream.uniform(word, shape, dtype)
    return spread(scale, shape, dtype) * fnp.sqrt(fnp.log(u) * dtype.type(-2))


@sampler(Real("left, mode, right", "In this order. They have derivatives."))
def triangular(
    word: Any, left: ArrayLike, mode: Any, right: ArrayLike, shape: tuple[int, ...], dtype: np.dtype
) -> Any:
    """Draw numbers whose density is a triangle over ``[left, right]``, highest at `mode`.

    Examples
    --------
    >>> from functrans import random
    >>> random.triangular(random.key(0), 0.0, 1.0, 4.0, 3)
    Array([1.35831216, 0.9301515 , 3.35490895])
    """
    left, mode, right = (spread(x, shape, dtype) for x in (left, mode, right))
    u = stream.uniform(word, shape, dtype)
    rising = left + fnp.sqrt(u * (right - left) * (mode - left))
    falling = right - fnp.sqrt((1 - u) * (right - left) * (right - mode))
    return fnp.where(u < (mode - left) / (right - left), rising, falling)


@compiled
def _weibull_min(
    key: Value, scale: Value, concentration: Value, *, shape: tuple[int, ...], dtype: np.dtype
) -> Value:
    u = stream.uniform(words(key, "weibull_min"), shape, dtype)
    return fnp.power(-fnp.log1p(-u), 1.0 / cast(concentration, dtype)) * cast(scale, dtype)


@checked
def weibull_min(
    key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike = None
) -> Any:
    """Draw Weibull numbers.

    Parameters
    ----------
    key : key
    scale, concentration : array_like
        Positive. They have derivatives, and broadcast with `shape`.
    shape : int or tuple of int
    dtype : dtype-like
        A float dtype, by default float64.

    Examples
    --------
    >>> from functrans import random
    >>> random.weibull_min(random.key(0), 1.0, 2.0, 3)
    Array([0.73625441, 0.49368328, 1.833476  ])
    """
    kind = float_dtype(dtype, "weibull_min")
    scale = parameter(scale, "weibull_min", "scale", above=0.0)
    concentration = parameter(concentration, "weibull_min", "concentration", above=0.0)
    extents = shape_of_result(shape, "weibull_min")
    return _weibull_min(one_key(key, "weibull_min"), scale, concentration, shape=extents, dtype=kind)


@sampler(
    Real("p", "The probability of success, in ``(0, 1]``.", above=0.0, high=1.0, computes=True),
    dtype=integer_dtype,
)
def geometric(word: Any, p: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw the number of trials up to the first success.

    Examples
    --------
    >>> from functrans import random
    >>> random.geometric(random.key(0), 0.2, 5)
    Array([4, 7, 1, 3, 3])
    """
    kind = aval_of(p).dtype
    u = stream.uniform(word, shape, kind)
    u = fnp.where(u == 0, kind.type(1), u)
    return fnp.astype(fnp.floor(fnp.log(u) / fnp.log1p(-cast(p, kind))) + 1, dtype)
