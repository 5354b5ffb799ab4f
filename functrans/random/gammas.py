"""The gamma distribution, and those that follow from it; with derivatives in their parameters."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as fnp
from ..arrays.array import unwrap
from ..core import aval_of
from ..core.values import ArrayLike, DTypeLike, ShapeLike, Value
from ..errors import ArgumentValueError, ShapeError
from ..frontend.checked import checked
from ..primitives import ops
from ..primitives import random as random_ops
from . import stream
from .arguments import (
    cast,
    compiled,
    float_dtype,
    one_key,
    parameter,
    shape_of_result,
    shapes_broadcast,
    spread,
    words,
)
from .sampler import Real, sampler

__all__ = [
    "ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t", "wald",
]  # fmt: skip


# --- gamma ------------------------------------------------------------------------------------------------------


def _accepted(word: ArrayLike, d: ArrayLike, dtype: np.dtype) -> Any:
    """The cube ``v**3`` of G. Marsaglia's and W. W. Tsang's method (2000), for shape ``d + 1 / 3``."""
    scale = dtype.type(1 / 3) / fnp.sqrt(d)
    one = dtype.type(1)

    def rejected(state: Any) -> Value:
        _, square, cube, u = state
        slow = fnp.log(u) >= square * 0.5 + d * (one - cube + fnp.log(cube))
        return (u >= one - dtype.type(0.0331) * (square * square)) & slow

    def draw(state: Any) -> Any:
        word, own, second = stream.children(state[0], 3)
        _, x, v = lax.while_loop(lambda s: s[2] <= 0, positive, (own, dtype.type(0), dtype.type(-1)))
        return word, x * x, v * v * v, stream.uniform(second, (), dtype)

    def positive(state: Any) -> Any:
        word, own = stream.children(state[0])
        x = stream.normal(own, (), dtype)
        return word, x, one + x * scale

    return lax.while_loop(rejected, draw, (word, dtype.type(0), one, dtype.type(2)))[2]


def _one_gamma(word: ArrayLike, a: Value, dtype: np.dtype, log: bool) -> Value:
    boosted = a < 1
    d = fnp.where(boosted, a + dtype.type(1), a) - dtype.type(1 / 3)
    word, own = stream.children(word)
    cube = _accepted(word, d, dtype)
    # A sample for shape a + 1 times a power of a uniform number is one for shape a.
    if log:
        exponent = -stream.exponential(own, (), dtype)
        boost = fnp.where(~boosted | (exponent == 0), dtype.type(0), exponent * (dtype.type(1) / a))
        return fnp.log(d) + fnp.log(cube) + boost
    u = dtype.type(1) - stream.uniform(own, (), dtype)
    return d * cube * fnp.where(boosted, fnp.power(u, dtype.type(1) / a), dtype.type(1))


def gamma_of(word: ArrayLike, a: Value, shape: tuple[int, ...], dtype: np.dtype, log: bool = False) -> Any:
    """Samples of the gamma distribution, or their logarithms, with derivatives in the parameter.

    With several keys, the first axis of the shape is theirs: one loop draws from all, as it takes long to compile.
    """
    a = spread(a, shape, dtype)
    fixed = ops.stop_gradient_p.bind(a)
    size, streams = prod(shape), aval_of(word).shape
    keys = stream.split(ops.reshape_p.bind(word, shape=(*streams, 1)), size // prod(streams))
    drawn = lax.map(
        lambda pair: _one_gamma(pair[0], pair[1], dtype, log),
        (fnp.reshape(keys, (size,)), fnp.reshape(fixed, (size,))),
    )
    samples = fnp.reshape(drawn, shape)
    return (random_ops.log_gamma_sample_p if log else random_ops.gamma_sample_p).bind(a, unwrap(samples))


@sampler(Real("a", "Positive. It has derivatives.", low=0.0))
def gamma(word: ArrayLike, a: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw gamma numbers of shape `a` and scale 1.

    Notes
    -----
    By the method of G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables" (2000). The
    derivative in `a` is that of the quantile at a fixed probability (M. Figurnov, S. Mohamed, A. Mnih, "Implicit
    reparameterization gradients", 2018), see `functrans.lax.random_gamma_grad`. It may be taken twice.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans import random
    >>> random.gamma(random.key(0), 3.0, 3)
    Array([2.26291139, 1.96213947, 5.13055813])
    >>> ft.grad(lambda a: random.gamma(random.key(0), a))(3.0)
    Array(0.91461171)
    """
    return gamma_of(word, a, shape, dtype)


@sampler(Real("a", "Positive. It has derivatives, as that of `gamma`.", low=0.0))
def loggamma(word: ArrayLike, a: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw logarithms of gamma numbers, which do not underflow where `a` is small.

    Examples
    --------
    >>> from functrans import random
    >>> random.loggamma(random.key(0), 1e-4, 3)
    Array([-11123.58601393, -22795.89144003,  -8540.69551995])
    """
    return gamma_of(word, a, shape, dtype, log=True)


# --- ratios -----------------------------------------------------------------------------------------------------


@sampler(Real("a, b", "Positive. They have derivatives, through two gamma numbers (see `gamma`).", low=0.0))
def beta(word: ArrayLike, a: ArrayLike, b: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw beta numbers.

    Examples
    --------
    >>> from functrans import random
    >>> random.beta(random.key(0), 2.0, 3.0, 3)
    Array([0.32795607, 0.61380901, 0.76013421])
    """
    both = ops.stack([spread(p, shape, dtype) for p in (a, b)])
    x, y = gamma_of(stream.split(word), both, (2, *shape), dtype, log=True)
    largest = fnp.maximum(x, y)
    x, y = fnp.exp(x - largest), fnp.exp(y - largest)
    return x / (x + y)


@compiled
def _dirichlet(key: Value, alpha: Value, *, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    logs = gamma_of(words(key, "dirichlet"), alpha, (*shape, aval_of(alpha).shape[-1]), dtype, log=True)
    shares = fnp.exp(logs - fnp.max(logs, axis=-1, keepdims=True))
    return shares / fnp.sum(shares, axis=-1, keepdims=True)


@checked
def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: ShapeLike = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: None = None,
) -> Any:
    """Draw vectors of positive numbers that add up to 1.

    Parameters
    ----------
    key : key
    alpha : array_like, shape (..., n)
        Positive. It has derivatives, through gamma numbers (see `gamma`).
    shape : int or tuple of int, optional
        The axes of the result in front of the last one; by default those of `alpha`, which must broadcast to them.
    dtype : dtype-like
        A float dtype, by default float64.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> random.dirichlet(random.key(0), np.array([1.0, 2.0, 3.0]))
    Array([0.07065346, 0.16705569, 0.76229085])
    """
    kind, alpha = float_dtype(dtype, "dirichlet"), parameter(alpha, "dirichlet", "alpha", low=0.0)
    own = aval_of(alpha).shape
    if not own:
        raise ShapeError("random.dirichlet: alpha must have at least one axis, got a number")
    extents = shapes_broadcast(shape, "dirichlet", alpha=own[:-1])
    return _dirichlet(one_key(key, "dirichlet"), alpha, shape=extents, dtype=kind)


# --- chi-square, t, f -------------------------------------------------------------------------------------------


_DEGREES = Real(
    "df", "Degrees of freedom, positive. It has derivatives, through gamma numbers (see `gamma`).", above=0.0
)


@sampler(_DEGREES)
def chisquare(word: ArrayLike, df: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw chi-square numbers.

    Examples
    --------
    >>> from functrans import random
    >>> random.chisquare(random.key(0), 4.0, 3)
    Array([2.70406159, 2.2487189 , 7.46480832])
    """
    half = cast(df, dtype) / dtype.type(2)
    return fnp.exp(gamma_of(word, half, shape, dtype, log=True)) * dtype.type(2)


@sampler(_DEGREES)
def t(word: ArrayLike, df: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw numbers of Student's t distribution.

    Examples
    --------
    >>> from functrans import random
    >>> random.t(random.key(0), 4.0, 3)
    Array([ 1.43881401, -0.57618965,  0.90480371])
    """
    first, second = stream.children(word)
    half = cast(df, dtype) / dtype.type(2)
    return stream.normal(first, shape, dtype) * fnp.sqrt(half / gamma_of(second, half, shape, dtype))


@sampler(
    Real(
        "dfnum, dfden",
        "Degrees of freedom of the numerator and the denominator, positive. They have derivatives, as `df` of `t`.",
        above=0.0,
    )
)
def f(word: ArrayLike, dfnum: ArrayLike, dfden: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw numbers of the F distribution.

    Examples
    --------
    >>> from functrans import random
    >>> random.f(random.key(0), 3.0, 10.0, 3)
    Array([1.57375366, 0.40850782, 0.1016132 ])
    """
    both = [spread(df, shape, dtype) for df in (dfden, dfnum)]
    halves = ops.div_p.bind(ops.stack(both), dtype.type(2))
    logs = gamma_of(stream.split(word), halves, (2, *shape), dtype, log=True)
    denominator, numerator = (fnp.exp(x) * dtype.type(2) / df for x, df in zip(logs, both))
    return numerator / denominator


# --- others -----------------------------------------------------------------------------------------------------


@sampler(Real("mean", "Positive. It has derivatives.", above=0.0))
def wald(word: ArrayLike, mean: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw numbers of Wald's (the inverse Gaussian) distribution of scale 1.

    Notes
    -----
    By the method of J. R. Michael, W. R. Schucany, R. W. Haas (1976). It chooses between two roots, and the choice
    depends on `mean`, so the derivative is that at a fixed probability, as for `gamma`:
    ``2 x**1.5 / mean**2`` times Mills's ratio at ``(x / mean + 1) / sqrt(x)``. (JAX differentiates the chosen root.)

    Examples
    --------
    >>> from functrans import random
    >>> random.wald(random.key(0), 2.0, 3)
    Array([0.22327945, 3.90085525, 3.56995724])
    """
    first, second = stream.children(word)
    mean = spread(mean, shape, dtype)
    m = ops.stop_gradient_p.bind(mean)
    y = stream.normal(first, shape, dtype) ** 2
    u = stream.uniform(second, shape, dtype)
    x = m + m**2 * y / 2 - m / 2 * fnp.sqrt(4 * m * y + m**2 * y**2)
    return random_ops.wald_sample_p.bind(mean, unwrap(fnp.where(u <= m / (m + x), x, m**2 / x)))


def _generalized_normal_of(word: ArrayLike, p: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    first, second = stream.children(word)
    inverse = dtype.type(1) / cast(p, dtype)
    size = gamma_of(first, inverse, shape, dtype)
    return stream.random_sign(second, shape, dtype) * fnp.power(size, inverse)


@sampler(Real("p", "Positive. It has derivatives.", above=0.0), shape=())
def generalized_normal(word: ArrayLike, p: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw numbers of density proportional to ``exp(-abs(x)**p)``.

    Examples
    --------
    >>> from functrans import random
    >>> random.generalized_normal(random.key(0), 3.0, 3)
    Array([ 0.74663734, -1.07920374, -0.1386478 ])
    """
    return _generalized_normal_of(word, p, shape, dtype)


@compiled
def _ball(key: Value, p: ArrayLike, *, d: int, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    first, second = stream.children(words(key, "ball"))
    p = cast(p, dtype)
    g = _generalized_normal_of(first, p, (*shape, d), dtype)
    e = stream.exponential(second, shape, dtype)
    return g / fnp.power(fnp.sum(fnp.power(fnp.abs(g), p), axis=-1) + e, dtype.type(1) / p)[..., None]


@checked
def ball(
    key: ArrayLike,
    d: int,
    p: ArrayLike = 2,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: None = None,
) -> Any:
    """Draw points of the unit ball, uniformly.

    Parameters
    ----------
    key : key
    d : int
        The dimension.
    p : float
        Which norm makes the ball; positive, may be traced.
    shape : int or tuple of int
        The axes in front of the vectors.
    dtype : dtype-like
        A float dtype, by default float64.

    Examples
    --------
    >>> from functrans import random
    >>> random.ball(random.key(0), 2)
    Array([-0.87015073, -0.45473046])
    """
    kind, p = float_dtype(dtype, "ball"), parameter(p, "ball", "p", above=0.0)
    if d < 0:
        raise ArgumentValueError(f"random.ball: d must not be negative, got {d}")
    shapes_broadcast((), "ball", p=aval_of(p).shape)
    return _ball(one_key(key, "ball"), p, d=d, shape=shape_of_result(shape, "ball"), dtype=kind)
