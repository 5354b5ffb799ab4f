"""Permutations, and choices among the elements of an array or among categories."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as fnp
from ..arrays.array import Array, wrap
from ..core import INT64, Tracer, aval_of, default_float, is_float, narrowed
from ..core.values import ArrayLike, ShapeLike, Value
from ..errors import ArgumentError, ArgumentValueError, ShapeError, TracerIntegerConversionError
from ..frontend.checked import checked
from ..primitives.ops import one_axis, operand
from . import stream
from .arguments import U32, cast, choice_of, compiled, one_key, parameter, shape_of_result, words
from .inversion import MODES, gumbel_of
from .uniforms import integers

__all__ = ["categorical", "choice", "permutation"]


def _shuffled(word: Value, x: Value, axis: int) -> Value:
    """Elements in random order: sorted by random bits, several times for long arrays, whose bits may be equal."""
    size = math.prod(aval_of(x).shape)
    rounds = int(np.ceil(3 * np.log(max(1, size)) / np.log(2**32 - 1)))
    for _ in range(rounds):
        word, own = stream.children(word)
        _, x = lax.sort_key_val(stream.bits(own, aval_of(x).shape, U32), x, axis)
    return x


def _permuted(word: Value, x: Value, axis: int, independent: bool) -> Value:
    if independent or aval_of(x).ndim == 1:
        return _shuffled(word, x, axis)
    return fnp.take(x, _shuffled(word, np.arange(aval_of(x).shape[axis]), 0), axis)


@compiled
def _permutation(key: Value, x: Value, *, axis: int, independent: bool) -> Value:
    return _permuted(words(key, "permutation"), x, axis, independent)


@compiled
def _permutation_of_range(key: Value, *, n: int) -> Value:
    return _shuffled(words(key, "permutation"), np.arange(n), 0)


def _count(x: Value, name: str, argument: str) -> int:
    """A known integer."""
    if isinstance(x, Tracer):
        raise TracerIntegerConversionError(
            f"random.{name}: {argument} is a traced number of type {x.aval}, but the number of elements must be known "
            "while tracing: mark it static, or pass an array"
        )
    number = np.asarray(x)
    if number.dtype.kind not in "iu":
        raise ArgumentError(
            f"random.{name}: {argument} must be an integer or an array with an axis, got {x!r}"
        )
    return int(number)


@checked
def permutation(
    key: ArrayLike, x: ArrayLike, axis: int = 0, independent: bool = False, *, out_sharding: None = None
) -> Value:
    """Permute the elements of an array along an axis, or the numbers below an integer.

    Parameters
    ----------
    key : key
    x : int or array_like
        An integer stands for ``arange(x)``.
    axis : int
    independent : bool
        Whether each line along the axis is permuted independently, instead of all in the same way.

    Examples
    --------
    >>> from functrans import random
    >>> random.permutation(random.key(0), 5)
    Array([0, 1, 4, 3, 2])
    """
    key, value = one_key(key, "permutation"), operand(x, "random.permutation: x")
    ndim = aval_of(value).ndim
    axis = one_axis(axis, ndim or 1, "random.permutation")
    if not ndim:
        return _permutation_of_range(key, n=_count(value, "permutation", "x"))
    return _permutation(key, value, axis=axis, independent=independent)


# --- choice -----------------------------------------------------------------------------------------------------


def _places(word: ArrayLike, p: ArrayLike, n: int, draws: tuple[int, ...], replace: bool, mode: str) -> Value:
    """Indices drawn with probabilities `p`."""
    dtype = aval_of(p).dtype
    p = cast(p, dtype)
    if replace:
        total = fnp.cumsum(p)
        return fnp.searchsorted(total, total[-1] * (1 - stream.uniform(word, draws, dtype)))
    score = gumbel_of(word, (n,), dtype, mode) + fnp.log(p)
    return lax.top_k(score, math.prod(draws))[1].astype(int)


@compiled
def _choice(
    key: Value, a: Value, p: ArrayLike, *, n: int, shape: tuple[int, ...], axis: int, replace: bool, mode: str
) -> Value:
    word = words(key, "choice")
    if p is not None:
        places = _places(word, p, n, shape, replace, mode)
        chosen = places if a is None else fnp.take(a, places, axis)
    elif replace:
        places = fnp.astype(_below(word, n, shape), np.int64)
        chosen = places if a is None else fnp.take(a, places, axis)
    else:
        count = math.prod(shape)
        line = _shuffled(word, np.arange(n), 0) if a is None else _permuted(word, a, axis, False)
        chosen = lax.slice_in_dim(line, 0, count, axis=axis)
    rest = () if a is None else aval_of(a).shape
    return fnp.reshape(chosen, (*rest[:axis], *shape, *rest[axis + 1 :]))


def _below(word: ArrayLike, n: int, shape: tuple[int, ...]) -> Value:
    dtype = narrowed(INT64)
    return integers(word, dtype.type(0), dtype.type(n), shape, dtype)


@checked
def choice(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike = (),
    replace: bool = True,
    p: ArrayLike = None,
    axis: int = 0,
    mode: str | None = None,
) -> Any:
    """Draw elements of an array.

    Parameters
    ----------
    key : key
    a : int or array_like
        An integer stands for ``arange(a)``.
    shape : int or tuple of int
        The number of draws along each of the new axes, which take the place of `axis`.
    replace : bool
        Whether an element may be drawn several times.
    p : array_like, shape (n,), optional
        Probabilities, or weights proportional to them; by default all are equal.
    axis : int
        The axis of `a` along which to choose.
    mode : {'low', 'high', 'highest'}, optional
        As in `gumbel`, which draws without replacement.

    Raises
    ------
    ArgumentValueError
        If there are fewer elements than draws without replacement, no elements, or negative probabilities.
    ShapeError
        If `p` does not have one number for each element.

    Examples
    --------
    >>> from functrans import random
    >>> random.choice(random.key(0), 10, (4,), replace=False)
    Array([0, 1, 8, 5])
    """
    key, value = one_key(key, "choice"), operand(a, "random.choice: a")
    draws, mode = shape_of_result(shape, "choice"), choice_of(mode or "low", MODES, "choice", "mode")
    aval = aval_of(value)
    axis = one_axis(axis, aval.ndim or 1, "random.choice")
    n = aval.shape[axis] if aval.ndim else _count(value, "choice", "a")
    count = math.prod(draws)
    if not count:
        rest = aval.shape
        return wrap(np.zeros((*rest[:axis], *draws, *rest[axis + 1 :]), aval.dtype))
    if n <= 0:
        raise ArgumentValueError(f"random.choice: a must have elements to draw from, got {n}")
    if not replace and count > n:
        raise ArgumentValueError(
            f"random.choice: {count} draws without replacement from the {n} elements of a: draw fewer, or replace=True"
        )
    if p is not None:
        p = _weights(p, n)
    elements = value if aval.ndim else None
    return _choice(key, elements, p, n=n, shape=draws, axis=axis, replace=replace, mode=mode)


def _weights(p: ArrayLike, n: int) -> Any:
    value = parameter(p, "choice", "p", low=0.0)
    aval = aval_of(value)
    if aval.shape != (n,):
        raise ShapeError(
            f"random.choice: p must have shape ({n},), one number for each element, got {aval.shape}"
        )
    return value if is_float(aval.dtype) else cast(value, default_float())


# --- categories -------------------------------------------------------------------------------------------------


@compiled
def _categorical(
    key: Value, logits: Value, *, axis: int, shape: tuple[int, ...], replace: bool, mode: str
) -> Value:
    word, aval = words(key, "categorical"), aval_of(logits)
    prefix = shape[: len(shape) - (aval.ndim - 1)]
    if replace:
        own = list(shape[len(prefix) :])
        own.insert(axis, aval.shape[axis])
        noise = gumbel_of(word, (*prefix, *own), aval.dtype, mode)
        scores = noise + fnp.reshape(logits, (*(1,) * len(prefix), *aval.shape))
        return fnp.argmax(scores, axis - aval.ndim)
    scores = logits + gumbel_of(word, aval.shape, aval.dtype, mode)
    best = lax.top_k(fnp.moveaxis(scores, axis, -1), math.prod(prefix))[1].astype(int)
    return fnp.reshape(fnp.moveaxis(best, -1, 0), shape)


@checked
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: ShapeLike = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Draw categories by their logarithmic probabilities.

    Parameters
    ----------
    key : key
    logits : array_like
        Logarithms of probabilities, up to a constant, along `axis`.
    axis : int
    shape : int or tuple of int, optional
        The shape of the result: that of `logits` without `axis`, which is the default, with any axes in front.
    replace : bool
        Whether a category may be drawn several times along the axes in front.
    mode : {'low', 'high', 'highest'}, optional
        As in `gumbel`.

    Notes
    -----
    The largest sum of a logit and a Gumbel number wins; without replacement, the `k` largest (W. Kool, H. van Hoof,
    M. Welling, "Stochastic beams and where to find them", 2019).

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> random.categorical(random.key(0), np.log([0.1, 0.2, 0.7]), shape=(6,))
    Array([2, 2, 2, 1, 1, 2])
    """
    key, logits = one_key(key, "categorical"), parameter(logits, "categorical", "logits")
    aval = aval_of(logits)
    logits = logits if is_float(aval.dtype) and not aval.weak else cast(logits, default_float())
    axis = one_axis(axis, aval.ndim, "random.categorical")
    batch = (*aval.shape[:axis], *aval.shape[axis + 1 :])
    wanted = batch if shape is None else shape_of_result(shape, "categorical")
    front = len(wanted) - len(batch)
    try:
        fits = front >= 0 and np.broadcast_shapes(wanted, batch) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"random.categorical: shape {wanted} must end in {batch}, the shape of logits without axis {axis}"
        )
    draws = math.prod(wanted[:front])
    if not replace and draws > aval.shape[axis]:
        raise ArgumentValueError(
            f"random.categorical: {draws} draws without replacement from {aval.shape[axis]} categories"
        )
    mode = choice_of(mode or "low", MODES, "categorical", "mode")
    return _categorical(key, logits, axis=axis, shape=wanted, replace=replace, mode=mode)
