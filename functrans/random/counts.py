"""Counts: the Poisson, binomial and multinomial distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lax
from .. import numpy as fnp
from ..core import FLOAT32, aval_of, is_float
from ..core.jax_dtypes import default_float
from ..core.values import ArrayLike, DTypeLike, ShapeLike, Value
from ..errors import ShapeError
from ..frontend.checked import checked
from . import stream
from .arguments import (
    cast,
    compiled,
    float_dtype,
    integer_dtype,
    one_key,
    parameter,
    shape_of_result,
    shapes_broadcast,
    spread,
    words,
)
from .sampler import Real, sampler

__all__ = ["binomial", "multinomial", "poisson"]


# --- Poisson ----------------------------------------------------------------------------------------------------


def _poisson_by_products(word: ArrayLike, rate: Value, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    """How many uniform numbers to multiply for a product below ``exp(-rate)`` (D. E. Knuth)."""

    def step(state: Any) -> Any:
        count, word, total = state
        word, own = stream.children(word)
        count = fnp.where(total > -rate, count + 1, count)
        return count, word, total + fnp.log(stream.uniform(own, shape, FLOAT32))

    first = (fnp.zeros(shape, dtype), word, fnp.zeros(shape, FLOAT32))
    count, _, _ = lax.while_loop(lambda state: fnp.any(state[2] > -rate), step, first)
    return count - 1


def _poisson_by_rejection(
    word: ArrayLike, rate: Value, unused: Any, shape: tuple[int, ...], dtype: np.dtype
) -> Value:
    """W. Hörmann's transformed rejection (PTRS, 1993).

    As in JAX, a number may be replaced until all are accepted; only if every number is unused, there is nothing to do.
    """
    log_rate = fnp.log(rate)
    b = 0.931 + 2.53 * fnp.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def step(state: Any) -> Any:
        value, done, word = state
        word, first, second = stream.children(word, 3)
        u = stream.uniform(first, shape, FLOAT32) - np.float32(0.5)
        v = stream.uniform(second, shape, FLOAT32)
        us = 0.5 - fnp.abs(u)
        k = fnp.floor((2 * a / us + b) * u + rate + 0.43)
        s = fnp.log(v * inverse_alpha / (a / (us * us) + b))
        bound = -rate + k * log_rate - lax.lgamma(k + 1)
        outside = (k < 0) | ((us < 0.013) & (v > us))
        accept = ((us >= 0.07) & (v <= v_r)) | (~outside & (s <= bound))
        return fnp.where(accept, k, value), done | accept, word

    first = (fnp.full(shape, -1.0, FLOAT32), fnp.broadcast_to(fnp.all(unused), shape), word)
    value, _, _ = lax.while_loop(lambda state: fnp.any(~state[1]), step, first)
    return fnp.astype(value, dtype)


@sampler(
    Real("lam", "The mean, not negative. It is rounded to float32, as in JAX.", low=0.0), dtype=integer_dtype
)
def poisson(word: ArrayLike, lam: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw Poisson counts.

    Examples
    --------
    >>> from functrans import random
    >>> random.poisson(random.key(0), 4.0, 5)
    Array([0, 1, 5, 5, 2])
    """
    word, rate = word, spread(lam, shape, FLOAT32)
    small = fnp.isnan(rate) | (rate < 10)
    few = _poisson_by_products(word, fnp.where(small, rate, np.float32(0)), shape, dtype)
    many = _poisson_by_rejection(word, fnp.where(small, np.float32(1e5), rate), small, shape, dtype)
    return fnp.where(rate == 0, 0, fnp.where(small, few, many))


# --- binomial ---------------------------------------------------------------------------------------------------

#: The error of Stirling's formula for log k!, k from 0 to 9.
_STIRLING = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _stirling_error(k: ArrayLike, dtype: np.dtype) -> Any:
    place = fnp.astype(fnp.floor(fnp.clip(k, 0.0, 9.0)), np.int32)
    square = (fnp.clip(k, 0.0, 9.0) + 1) * (fnp.clip(k, 0.0, 9.0) + 1)
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (fnp.clip(k, 0.0, 9.0) + 1)
    return fnp.where(k <= 9, fnp.take(np.array(_STIRLING, dtype), place), series)


def _binomial_by_gaps(word: ArrayLike, n: ArrayLike, p: ArrayLike, shape: tuple[int, ...]) -> Value:
    """The number of geometric gaps that fit into `n` trials."""
    dtype = aval_of(p).dtype
    failure = fnp.log1p(-p)

    def step(state: Any) -> Any:
        gaps, total, word = state
        own, word = stream.children(word)
        gaps = fnp.where(total <= n, gaps + 1, gaps)
        return gaps, total + fnp.ceil(fnp.log(stream.uniform(own, shape, dtype)) / failure), word

    first = (fnp.zeros(shape, dtype), fnp.zeros(shape, dtype), word)
    gaps, _, _ = lax.while_loop(lambda state: fnp.any(state[1] <= n), step, first)
    return gaps - 1


def _binomial_by_rejection(
    word: ArrayLike, n: ArrayLike, p: ArrayLike, unused: Any, shape: tuple[int, ...]
) -> Any:
    """W. Hörmann's transformed rejection (BTRS, 1993), with the same treatment of unused numbers."""
    dtype = aval_of(p).dtype
    deviation = fnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = fnp.floor((n + 1) * p)

    def step(state: Any) -> Any:
        value, done, word = state
        word, first, second = stream.children(word, 3)
        u = stream.uniform(first, shape, dtype) - dtype.type(0.5)
        v = stream.uniform(second, shape, dtype)
        us = 0.5 - fnp.abs(u)
        k = fnp.floor((2 * a / us + b) * u + c)
        quick = (us >= 0.07) & (v <= v_r)
        outside = (k < 0) | (k > n)
        bound = (
            (m + 0.5) * fnp.log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * fnp.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * fnp.log(r * (n - k + 1) / (k + 1))
            + _stirling_error(m, dtype)
            + _stirling_error(n - m, dtype)
            - _stirling_error(k, dtype)
            - _stirling_error(n - k, dtype)
        )
        accept = quick | (~outside & (fnp.log(v * alpha / (a / (us * us) + b)) <= bound))
        return fnp.where(accept, k, value), done | accept, word

    first = (fnp.full(shape, -1.0, dtype), fnp.broadcast_to(fnp.all(unused), shape), word)
    return lax.while_loop(lambda state: fnp.any(~state[1]), step, first)[0]


def binomial_of(
    word: ArrayLike, n: ArrayLike, p: ArrayLike, shape: tuple[int, ...], dtype: np.dtype
) -> Value:
    """Binomial counts as floats; NaN for parameters that are NaN or negative, infinity for infinitely many trials."""
    kind = aval_of(p).dtype
    n, p = spread(n, shape, kind), spread(p, shape, kind)
    low = p < 0.5
    q = fnp.where(low, p, 1.0 - p)
    impossible, endless = fnp.isnan(n) | (n < 0.0), fnp.isinf(n)
    invalid = fnp.isnan(q) | (q < 0.0) | impossible
    few_p = fnp.where(fnp.isnan(q) | (q < 0.0), kind.type(0.01), q)
    few = impossible | (n * few_p <= 10.0)
    n = fnp.floor(n)
    counts = fnp.where(
        few,
        fnp.astype(_binomial_by_gaps(word, fnp.where(few, n, 0.0), few_p, shape), dtype),
        fnp.astype(
            _binomial_by_rejection(word, fnp.where(few, 1e4, n), fnp.where(few, 0.5, few_p), few, shape),
            dtype,
        ),
    )
    counts = fnp.where(invalid, dtype.type(np.nan), counts)
    counts = fnp.where(endless & ~invalid, dtype.type(np.inf), counts)
    return fnp.where(low | impossible | fnp.isnan(q) | endless, counts, fnp.astype(n, dtype) - counts)


@sampler(
    Real("n", "The number of trials, not negative.", low=0.0),
    Real("p", "The probability of success, in ``[0, 1]``.", low=0.0, high=1.0, computes=True),
    sharded=False,
)
def binomial(word: ArrayLike, n: ArrayLike, p: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw how many of `n` trials succeed; floats by default, as in JAX.

    Examples
    --------
    >>> from functrans import random
    >>> random.binomial(random.key(0), 10, 0.3, 5)
    Array([4., 1., 3., 4., 3.])
    """
    return binomial_of(word, n, cast(p, aval_of(p).dtype), shape, dtype)


@compiled
def _multinomial(key: Value, n: ArrayLike, p: ArrayLike, *, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    kind = np.result_type(
        *[aval_of(x).dtype if is_float(aval_of(x).dtype) else default_float() for x in (n, p)]
    )
    shares = fnp.moveaxis(spread(p, shape, kind), -1, 0)
    rest = fnp.flip(fnp.cumsum(fnp.flip(shares, 0), 0), 0)
    ratios = shares / fnp.where(rest == 0, 1.0, rest)
    categories = aval_of(ratios).shape[0]

    def step(left: ArrayLike, row: ArrayLike) -> Any:
        ratio, word = row
        count = binomial_of(word, left, fnp.clip(ratio, 0.0, 1.0), shape[:-1], kind)
        return left - count, count

    keys = stream.split(words(key, "multinomial"), categories)
    _, counts = lax.scan(step, spread(n, shape[:-1], kind), (ratios, keys))
    return fnp.astype(fnp.moveaxis(counts, 0, -1), dtype)


@checked
def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: ShapeLike = None,
    dtype: DTypeLike = None,
    unroll: int | bool = 1,
) -> Any:
    """Draw how many of `n` trials have each outcome.

    Parameters
    ----------
    key : key
    n : array_like
        The number of trials; it broadcasts to the axes of the result in front of the last one.
    p : array_like, shape (..., k)
        The probabilities of the outcomes, or numbers proportional to them.
    shape : int or tuple of int, optional
        The shape of the result, by default that of `p`, which must broadcast to it.
    dtype : dtype-like
        A float dtype, by default float64.
    unroll : int or bool
        Accepted for JAX's sake; the loop over outcomes is compiled anyway.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> random.multinomial(random.key(0), 10, np.array([0.2, 0.3, 0.5]))
    Array([1., 4., 5.])
    """
    kind = float_dtype(dtype, "multinomial")
    n, p = parameter(n, "multinomial", "n", low=0.0), parameter(p, "multinomial", "p", low=0.0)
    own = aval_of(p).shape
    if not own:
        raise ShapeError("random.multinomial: p must have at least one axis, got a number")
    extents = shapes_broadcast(
        own if shape is None else shape_of_result(shape, "multinomial"), "multinomial", p=own
    )
    shapes_broadcast(extents[:-1], "multinomial", n=aval_of(n).shape)
    return _multinomial(one_key(key, "multinomial"), n, p, shape=extents, dtype=kind)
