"""Distributions of vectors: normal, Dirichlet, multinomial."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import LinAlgError, ShapeError, finfo, quietly
from ...core.values import ArrayLike, Value
from ...frontend.checked import checked
from ...numpy.linalg import cholesky, eigh
from ...primitives import ops
from ...primitives.ops import finish, shape_of
from ..linalg import solve_triangular
from .frozen import PACKAGE, Namespace
from .gammas import gamma_entropy
from .namespaces import floats
from .special import in_double as sp

LOG_TAU = math.log(2 * math.pi)


def _namespace(name: str, summary: str, *functions: Any) -> Namespace:
    """The functions of a distribution, named ``<distribution>_<function>`` in this file."""
    for function in functions:
        short = function.__name__.removeprefix(f"{name}_")
        function.__module__, function.__name__, function.__qualname__ = PACKAGE, short, f"{name}.{short}"
    return Namespace(name, summary, [checked(f) for f in functions])


# --- normal ---------------------------------------------------------------------------------------------------


@quietly
def multivariate_normal_logpdf(
    x: ArrayLike, mean: ArrayLike = None, cov: ArrayLike = 1, allow_singular: bool = False
) -> Value:
    """Logarithm of the probability density of the multivariate normal distribution.

    Parameters
    ----------
    x : array_like, shape (..., d)
        Points. If `d` is 1, the last axis may be missing.
    mean : array_like, shape (..., d), optional
        By default 0.
    cov : array_like, shape (..., d, d), (d,) or ()
        The covariance, positive definite; or its diagonal; or a number that multiplies the identity. Leading axes of
        `x`, `mean` and `cov` broadcast together.
    allow_singular : bool
        Whether `cov` may be singular: then the density is that on its column space, ``-inf`` elsewhere.

    Returns
    -------
    Array, shape (...)

    Raises
    ------
    ShapeError
        If the shapes do not fit together.
    LinAlgError
        If `cov` is not positive definite, unless `allow_singular`.

    Notes
    -----
    By Cholesky's decomposition; by that of eigenvalues for `allow_singular`. The mean of `cov` and its transpose is
    used, so that the derivative in `cov` is symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.stats import multivariate_normal
    >>> multivariate_normal.logpdf([1.0, 2.0], np.zeros(2), np.eye(2))
    Array(-4.33787707)
    """
    label = "multivariate_normal.logpdf"
    x, mean, cov = _vectors(label, x, 0.0 if mean is None else mean, cov)
    return finish(_singular_logpdf(x - mean, cov) if allow_singular else _regular_logpdf(x - mean, cov))


def multivariate_normal_pdf(
    x: ArrayLike, mean: ArrayLike = None, cov: ArrayLike = 1, allow_singular: bool = False
) -> Value:
    """Probability density of the multivariate normal distribution; see `logpdf` for the arguments.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.stats import multivariate_normal
    >>> multivariate_normal.pdf([1.0, 2.0], np.zeros(2), np.eye(2))
    Array(0.01306423)
    """
    return finish(np.exp(multivariate_normal.logpdf(x, mean, cov, allow_singular)))


def multivariate_normal_entropy(mean: ArrayLike = None, cov: ArrayLike = 1) -> Value:
    """Entropy of the multivariate normal distribution, in nats; see `logpdf` for the arguments.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.stats import multivariate_normal
    >>> multivariate_normal.entropy(np.zeros(2), np.eye(2))
    Array(2.83787707)
    """
    mean = 0.0 if mean is None else mean
    _, _, cov = _vectors("multivariate_normal.entropy", mean, mean, cov)
    n = shape_of(cov)[-1]
    return finish(0.5 * n * (LOG_TAU + 1) + _log_diagonal(_factor(cov)))


def _vectors(name: str, x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> tuple[Any, Any, Any]:
    """Operands in one dtype; points of shape (..., d), mean (d,) or (..., d), covariance (..., d, d)."""
    x, mean, cov = floats(name, x, mean, cov, broadcast=False)
    d = max(shape_of(mean)[-1] if shape_of(mean) else 1, shape_of(cov)[-1] if shape_of(cov) else 1)
    if not shape_of(cov):
        cov = cov * np.eye(d, dtype=ops.dtype_of(cov))
    elif len(shape_of(cov)) == 1:
        cov = cov[:, None] * np.eye(d, dtype=ops.dtype_of(cov))
    if d == 1 and (not shape_of(x) or shape_of(x)[-1] != 1):
        x = x[..., None]
    if shape_of(cov)[-2:] != (d, d):
        raise ShapeError(
            f"{name}: cov must have shape (..., d, d), (d,) or () with d = {d}, got {shape_of(cov)}"
        )
    if (
        not shape_of(x)
        or shape_of(x)[-1] not in (d, 1)
        or (shape_of(mean) and shape_of(mean)[-1] not in (d, 1))
    ):
        raise ShapeError(
            f"{name}: the last axes of x and mean must have the {d} components of cov, got shapes {shape_of(x)} and "
            f"{shape_of(mean)}"
        )
    ops.broadcast_shapes(name, shape_of(x)[:-1], shape_of(mean)[:-1], shape_of(cov)[:-2])
    return x, mean, 0.5 * (cov + np.swapaxes(cov, -1, -2))


def _factor(cov: Value) -> Value:
    try:
        return cholesky(cov)
    except LinAlgError:
        raise LinAlgError(
            "multivariate_normal: cov is not positive definite. With allow_singular=True it may be singular"
        ) from None


def _log_diagonal(factor: ArrayLike) -> Value:
    return np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)


def _regular_logpdf(deviation: Any, cov: Value) -> Value:
    factor, n = _factor(cov), shape_of(cov)[-1]
    return (
        -0.5 * n * LOG_TAU
        - _log_diagonal(factor)
        - 0.5 * np.sum(np.square(_solved(factor, deviation)), axis=-1)
    )


def _solved(factor: ArrayLike, deviation: Any) -> Any:
    """The solutions of the triangular systems, in the last axis."""
    if len(shape_of(factor)) == 2:  # one factor, all points in one call
        rows = np.reshape(deviation, (-1, shape_of(factor)[-1]))
        return np.reshape(
            solve_triangular(factor, rows.T, lower=True, check_finite=False).T, shape_of(deviation)
        )
    return solve_triangular(factor, deviation[..., None], lower=True, check_finite=False)[..., 0]


def _singular_logpdf(deviation: Any, cov: Value) -> Value:
    values, vectors = eigh(cov)
    largest = np.max(np.abs(values), axis=-1, keepdims=True)
    tiny = finfo(ops.dtype_of(values)).eps * (1e3 if ops.dtype_of(values) == np.float32 else 1e6) * largest
    kept = values > tiny
    safe = np.where(kept, values, 1.0)
    parts = np.sum(deviation[..., None] * vectors, axis=-2)
    energy = np.sum(np.where(kept, parts * parts / safe, 0.0), axis=-1)
    rank = np.sum(np.where(kept, 1.0, 0.0), axis=-1)
    log = -0.5 * (rank * LOG_TAU + np.sum(np.log(safe), axis=-1) + energy)
    outside = np.sqrt(np.sum(np.where(kept, 0.0, parts * parts), axis=-1)) > 1e3 * tiny[..., 0]
    return np.where(outside, -math.inf, log)


multivariate_normal = _namespace(
    "multivariate_normal",
    "Multivariate normal distribution",
    multivariate_normal_logpdf,
    multivariate_normal_pdf,
    multivariate_normal_entropy,
)

# --- Dirichlet ------------------------------------------------------------------------------------------------


@quietly
def dirichlet_logpdf(x: Value, alpha: Value) -> Value:
    """Logarithm of the probability density of the Dirichlet distribution.

    Parameters
    ----------
    x : array_like, shape (k, ...) or (k - 1, ...)
        Proportions along the first axis; with one less than `alpha` has, the last is what is missing to 1.
    alpha : array_like, shape (k,)
        Positive.

    Returns
    -------
    Array, shape (...)
        ``-inf`` where the proportions are not positive, or do not sum to 1; NaN if `alpha` is not positive.

    Raises
    ------
    ShapeError
        If the shapes do not fit together.

    Notes
    -----
    SciPy raises an error for points outside of the support, which a compiled function cannot do for some of many.

    Examples
    --------
    >>> from functrans.scipy.stats import dirichlet
    >>> dirichlet.logpdf([0.2, 0.3, 0.5], [1.0, 2.0, 3.0])
    Array(1.50407740)
    """
    x, alpha = floats("dirichlet.logpdf", x, alpha, broadcast=False)
    (k, *others), shape = shape_of(alpha) or (0,), shape_of(x)
    if others or not k or not shape or shape[0] not in (k, k - 1):
        raise ShapeError(
            f"dirichlet: alpha must have shape (k,) and x (k, ...) or (k - 1, ...), got {shape_of(alpha)} and {shape}"
        )
    if shape[0] == k - 1:
        x = np.concatenate([x, 1 - np.sum(x, axis=0, keepdims=True)])
    inside = np.all(x >= 0, axis=0) & (np.abs(np.sum(x, axis=0) - 1) < 1e-6)
    inside = inside & ~np.any((x == 0) & (np.reshape(alpha, (k, *[1] * (len(shape) - 1))) < 1), axis=0)
    valid = np.all(alpha > 0)
    a = np.where(valid, alpha, 1.0)
    column = np.reshape(a, (k, *[1] * (len(shape) - 1)))
    value = np.sum(sp.xlogy(column - 1, np.where(inside, x, 1 / k)), axis=0)
    value = value + sp.gammaln(np.sum(a)) - np.sum(sp.gammaln(a))
    return finish(np.where(valid, np.where(inside, value, -math.inf), math.nan))


def dirichlet_pdf(x: ArrayLike, alpha: ArrayLike) -> Value:
    """Probability density of the Dirichlet distribution; see `logpdf` for the arguments.

    Examples
    --------
    >>> from functrans.scipy.stats import dirichlet
    >>> dirichlet.pdf([0.2, 0.3, 0.5], [1.0, 2.0, 3.0])
    Array(4.5)
    """
    return finish(np.exp(dirichlet.logpdf(x, alpha)))


@quietly
def dirichlet_entropy(alpha: ArrayLike) -> Value:
    """Entropy of the Dirichlet distribution, in nats; `alpha` has shape (k,).

    Raises
    ------
    ShapeError
        If `alpha` has another shape.

    Examples
    --------
    >>> from functrans.scipy.stats import dirichlet
    >>> dirichlet.entropy([1.0, 1.0])
    Array(0.)
    """
    (a,) = floats("dirichlet.entropy", alpha)
    if len(shape_of(a)) != 1:
        raise ShapeError(f"dirichlet.entropy: alpha must have shape (k,), got {shape_of(a)}")
    total = np.sum(a)
    value = np.sum(gamma_entropy(a)) - gamma_entropy(total, len(a) - 1)
    return finish(np.where(np.all(a > 0), value, math.nan))


dirichlet = _namespace(
    "dirichlet", "Dirichlet distribution", dirichlet_logpdf, dirichlet_pdf, dirichlet_entropy
)

# --- multinomial ----------------------------------------------------------------------------------------------


@quietly
def multinomial_logpmf(x: Value, n: ArrayLike, p: ArrayLike) -> Value:
    """Logarithm of the probability of counts under the multinomial distribution.

    Parameters
    ----------
    x : array_like, shape (..., k)
        Counts.
    n : array_like, shape (...)
        The number of trials.
    p : array_like, shape (..., k)
        The probabilities of the outcomes. They are used as they are, also if they do not sum to 1.

    Returns
    -------
    Array, shape (...)
        ``-inf`` where the counts are not integers from 0, or do not sum to `n`; NaN where `n` is not an integer from 0,
        or a probability is not between 0 and 1.

    Notes
    -----
    SciPy replaces the last probability by what is missing to 1. Here it is an argument like the others, also for
    derivatives, as in JAX.

    Examples
    --------
    >>> from functrans.scipy.stats import multinomial
    >>> multinomial.logpmf([1, 2, 3], 6, [0.2, 0.3, 0.5])
    Array(-2.00248050)
    """
    x, n, p = floats("multinomial.logpmf", x, n, p, broadcast=False)
    if not shape_of(x) or not shape_of(p) or shape_of(x)[-1] != shape_of(p)[-1]:
        raise ShapeError(
            f"multinomial: the last axes of x and p must have the same k outcomes, got shapes {shape_of(x)} and "
            f"{shape_of(p)}"
        )
    ops.broadcast_shapes("multinomial.logpmf", shape_of(x)[:-1], shape_of(n), shape_of(p)[:-1])
    k = np.floor(x)
    inside = np.all((x >= 0) & (k == x), axis=-1)
    k = np.where(inside[..., None], k, 0.0)
    valid = np.all((p >= 0) & (p <= 1), axis=-1) & (n >= 0) & (np.floor(n) == n)
    p = np.where(np.all((p >= 0) & (p <= 1), axis=-1)[..., None], p, 0.5)
    value = sp.gammaln(np.where(valid, n, 1.0) + 1) + np.sum(sp.xlogy(k, p) - sp.gammaln(k + 1), axis=-1)
    inside = inside & (np.sum(k, axis=-1) == n)
    return finish(np.where(valid, np.where(inside, value, -math.inf), math.nan))


def multinomial_pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Value:
    """Probability of counts under the multinomial distribution; see `logpmf` for the arguments.

    Examples
    --------
    >>> from functrans.scipy.stats import multinomial
    >>> multinomial.pmf([1, 2, 3], 6, [0.2, 0.3, 0.5])
    Array(0.135)
    """
    return finish(np.exp(multinomial.logpmf(x, n, p)))


multinomial = _namespace("multinomial", "Multinomial distribution", multinomial_logpmf, multinomial_pmf)
