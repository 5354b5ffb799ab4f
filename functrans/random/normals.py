"""Normal numbers and what follows from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..arrays.array import Array
from ..core import aval_of, finfo, is_float
from ..core.jax_dtypes import default_float
from ..core.values import ArrayLike, DTypeLike, ShapeLike, Value
from ..errors import ArgumentValueError, ShapeError
from ..frontend.checked import checked
from ..primitives import ops
from ..primitives.special.inverse_erf import quick_erfinv_p
from . import stream
from .arguments import (
    cast,
    choice_of,
    compiled,
    float_dtype,
    inexact_dtype,
    one_key,
    parameter,
    shape_of_result,
    shape_with,
    shapes_broadcast,
    words,
)
from .sampler import Real, sampler

__all__ = [
    "double_sided_maxwell", "lognormal", "maxwell", "multivariate_normal", "normal", "orthogonal", "truncated_normal",
]  # fmt: skip


def normal_of(word: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Real or complex standard normal numbers."""
    if is_float(dtype):
        return stream.normal(word, shape, dtype)
    real = finfo(dtype).dtype
    parts = [stream.normal(w, shape, real) for w in stream.children(word)]
    return ops.div_p.bind(ops.complex_p.bind(*parts), dtype.type(math.sqrt(2)))


@sampler(dtype=inexact_dtype)
def normal(word: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw standard normal numbers. Complex ones have variance 1, half of it in each part.

    Notes
    -----
    By inversion: ``sqrt(2) erfinv(u)``, with M. B. Giles's approximation of erfinv (2012).

    Examples
    --------
    >>> from functrans import random
    >>> random.normal(random.key(1), (2, 2))
    Array([[-1.18428442, -0.11617041],
           [ 0.17269028,  0.95730718]])
    """
    return normal_of(word, shape, dtype)


@sampler(Real("lower, upper", "They have derivatives."))
def truncated_normal(
    word: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: tuple[int, ...], dtype: np.dtype
) -> Array:
    """Draw standard normal numbers between two bounds.

    Returns
    -------
    Array
        Numbers strictly between the bounds.

    Examples
    --------
    >>> from functrans import random
    >>> random.truncated_normal(random.key(0), -1.0, 1.0, 3)
    Array([...
    """
    root = dtype.type(math.sqrt(2))
    ends = [cast(x, dtype) for x in (lower, upper)]
    low, high = (ops.erf_p.bind(ops.div_p.bind(x, root)) for x in ends)
    u = stream.uniform(word, shape, dtype, low, high)
    drawn = ops.mul_p.bind(root, quick_erfinv_p.bind(u))
    fixed = [ops.stop_gradient_p.bind(x) for x in ends]
    above = ops.nextafter_p.bind(fixed[0], dtype.type(np.inf))
    below = ops.nextafter_p.bind(fixed[1], dtype.type(-np.inf))
    return ops.min_p.bind(ops.max_p.bind(drawn, above), below)


# --- from several normal numbers --------------------------------------------------------------------------------


@sampler(Real("sigma", "The standard deviation of the logarithm. It has derivatives.", default=1.0))
def lognormal(word: ArrayLike, sigma: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw numbers whose logarithm is normal, of mean 0.

    Examples
    --------
    >>> from functrans import random
    >>> random.lognormal(random.key(0), 0.5, 3)
    Array([0.90219818, 0.67544544, 2.4794663 ])
    """
    return fnp.exp(stream.normal(word, shape, dtype) * cast(sigma, dtype))


def _lengths(word: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    return fnp.sqrt(fnp.sum(stream.normal(word, (*shape, 3), dtype) ** 2, axis=-1))


@sampler()
def maxwell(word: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Draw Maxwell numbers: lengths of three-dimensional standard normal vectors.

    Examples
    --------
    >>> from functrans import random
    >>> random.maxwell(random.key(0), 3)
    Array([1.98906991, 0.42460738, 1.24030791])
    """
    return _lengths(word, shape, dtype)


@compiled
def _double_sided_maxwell(
    key: Value, loc: Value, scale: Value, *, shape: tuple[int, ...], dtype: np.dtype
) -> Value:
    first, second = stream.children(words(key, "double_sided_maxwell"))
    signed = stream.random_sign(second, shape, dtype) * _lengths(first, shape, dtype)
    return signed * cast(scale, dtype) + cast(loc, dtype)


@checked
def double_sided_maxwell(
    key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike = None
) -> Any:
    """Draw Maxwell numbers with random signs, scaled and shifted.

    Parameters
    ----------
    key : key
    loc, scale : array_like
        They have derivatives.
    shape : int or tuple of int
        The axes in front of those of the parameters. Without any, and with parameters that have axes, these appear
        twice, as in JAX.
    dtype : dtype-like
        A float dtype, by default float64.

    Examples
    --------
    >>> from functrans import random
    >>> random.double_sided_maxwell(random.key(0), 1.0, 2.0, 3)
    Array([ 4.96922408, -3.9564148 , -2.26696301])
    """
    kind = float_dtype(dtype, "double_sided_maxwell")
    loc = parameter(loc, "double_sided_maxwell", "loc")
    scale = parameter(scale, "double_sided_maxwell", "scale")
    own = shape_with(None, "double_sided_maxwell", loc=loc, scale=scale)
    extents = (*(shape_of_result(shape, "double_sided_maxwell") or own), *own)
    return _double_sided_maxwell(one_key(key, "double_sided_maxwell"), loc, scale, shape=extents, dtype=kind)


@compiled
def _multivariate_normal(
    key: ArrayLike, mean: ArrayLike, cov: ArrayLike, *, shape: tuple[int, ...], dtype: np.dtype, method: str
) -> Any:
    kind = np.result_type(aval_of(mean).dtype, aval_of(cov).dtype)
    mean, cov = cast(mean, kind), cast(cov, kind)
    if method == "svd":
        u, s, _ = fnp.linalg.svd(cov)
        factor = u * fnp.sqrt(s[..., None, :])
    elif method == "eigh":
        w, v = fnp.linalg.eigh(cov)
        factor = v * fnp.sqrt(w[..., None, :])
    else:
        factor = fnp.linalg.cholesky(cov)
    drawn = stream.normal(words(key, "multivariate_normal"), (*shape, aval_of(mean).shape[-1]), dtype)
    return mean + fnp.einsum("...ij,...j->...i", factor, drawn)


@checked
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: ShapeLike = None,
    dtype: DTypeLike = None,
    method: str = "cholesky",
    *,
    out_sharding: None = None,
) -> Any:
    """Draw normal vectors.

    Parameters
    ----------
    key : key
    mean : array_like, shape (..., n)
    cov : array_like, shape (..., n, n)
        Positive definite; for 'svd' and 'eigh' it may be singular. Both have derivatives.
    shape : int or tuple of int, optional
        The axes of the result in front of the last one; by default those of the parameters, which must broadcast to
        them.
    dtype : dtype-like
        A float dtype, by default that of the parameters.
    method : {'cholesky', 'svd', 'eigh'}
        How the covariance is factored.

    Raises
    ------
    ShapeError
        If the parameters do not have these shapes.
    LinAlgError
        If `cov` is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> random.multivariate_normal(random.key(0), np.zeros(2), np.array([[2.0, 1.0], [1.0, 2.0]]))
    Array([-0.29110475, -1.10669023])
    """
    name = "multivariate_normal"
    mean, cov = parameter(mean, name, "mean"), parameter(cov, name, "cov")
    mean, cov = (x if is_float(aval_of(x).dtype) else cast(x, default_float()) for x in (mean, cov))
    of_mean, of_cov = aval_of(mean).shape, aval_of(cov).shape
    if not of_mean or of_cov[-2:] != (of_mean[-1], of_mean[-1]):
        raise ShapeError(
            f"random.{name}: mean must have shape (..., n) and cov (..., n, n), got {of_mean} and {of_cov}"
        )
    kind = (
        np.result_type(aval_of(mean).dtype, aval_of(cov).dtype) if dtype is None else float_dtype(dtype, name)
    )
    extents = shapes_broadcast(shape, name, mean=of_mean[:-1], cov=of_cov[:-2])
    choice_of(method, ("cholesky", "svd", "eigh"), name, "method")
    return _multivariate_normal(one_key(key, name), mean, cov, shape=extents, dtype=kind, method=method)


@compiled
def _orthogonal(key: Value, *, n: int, m: int, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    drawn = normal_of(words(key, "orthogonal"), (*shape, max(n, m), min(n, m)), dtype)
    q, r = fnp.linalg.qr(drawn)
    x = q * fnp.sign(fnp.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return fnp.swapaxes(x, -1, -2) if n < m else x


@checked
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    m: int | None = None,
    *,
    out_sharding: None = None,
) -> Any:
    """Draw orthogonal matrices, uniformly (by Haar's measure).

    Parameters
    ----------
    key : key
    n, m : int
        Rows and columns; by default the matrices are square. Otherwise the shorter of rows and columns are orthonormal.
    shape : int or tuple of int
        The axes in front of the matrices.
    dtype : dtype-like
        A float or complex dtype (for unitary matrices), by default float64.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> q = random.orthogonal(random.key(0), 3)
    >>> np.allclose(q @ q.T, np.eye(3))
    True
    """
    columns = n if m is None else m
    if n < 0 or columns < 0:
        raise ArgumentValueError(f"random.orthogonal: n and m must not be negative, got {n} and {columns}")
    extents, kind = shape_of_result(shape, "orthogonal"), inexact_dtype(dtype, "orthogonal")
    return _orthogonal(one_key(key, "orthogonal"), n=n, m=columns, shape=extents, dtype=kind)
