"""Polynomials as vectors of coefficients, highest power first; roots, and fits to points."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..core import (
    ArgumentError,
    ArgumentValueError,
    NoRuleError,
    ShapeError,
    complex_dtype,
    concrete,
    is_abstract,
    is_inexact,
)
from ..core.values import ArrayLike, Value
from ..primitives import ufuncs
from ..primitives.ops import dtype_of, finish, shape_of
from . import linalg
from .creation.filled import asarray, eye, ones, zeros, zeros_like
from .creation.ranges import arange
from .dispatch import array_operand, implements, owned
from .elementwise import selection
from .products import outer
from .reductions import reductions
from .reductions.cumulative import cumprod
from .shaping.joining import concatenate, stack
from .sorting.sorting import argsort

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval",
    "roots", "vander",
]  # fmt: skip


def coefficients(p: ArrayLike, name: str, position: int = 0) -> Any:
    """Convert coefficients to a vector; a number is a constant polynomial."""
    x = array_operand(p, name, position)
    if len(shape_of(x)) > 1:
        raise ShapeError(f"{name}: coefficients must be 1-dimensional, got shape {shape_of(x)}")
    return owned(x.reshape(1) if not shape_of(x) else x, p)


def _trimmed(p: ArrayLike) -> Any:
    """Remove leading zeros if the values are known; else return `p` unchanged."""
    if is_abstract(p):
        return p
    (places,) = np.nonzero(np.asarray(concrete(p)))
    return p[int(places[0]) :] if len(places) else p[:0]


def _one_at_least(p: ArrayLike) -> Value:
    return p if p.shape[0] else zeros(1, p.dtype)


# --- sums and products --------------------------------------------------------------------------------------


def _aligned(a1: ArrayLike, a2: ArrayLike, name: str) -> tuple[Any, Any]:
    p, q = coefficients(a1, name), coefficients(a2, name, 1)
    n = max(p.shape[0], q.shape[0])
    return tuple(concatenate([zeros(n - v.shape[0], v.dtype), v]) if v.shape[0] < n else v for v in (p, q))


@implements(np.polyadd)
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Any:
    """The sum of two polynomials.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polyadd([1, 2], [9, 5, 4])
    Array([9, 6, 6])
    """
    return ufuncs.add(*_aligned(a1, a2, "polyadd"))


@implements(np.polysub)
def polysub(a1: ArrayLike, a2: ArrayLike) -> Any:
    """The difference of two polynomials.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polysub([2, 10], [1, 1])
    Array([1, 9])
    """
    return ufuncs.subtract(*_aligned(a1, a2, "polysub"))


def _product(p: ArrayLike, q: Value) -> Value:
    """Multiply all pairs of coefficients, and sum those of each power."""
    n, m = p.shape[0], q.shape[0]
    table = outer(p, q)
    # Rows are one element longer than n + m - 1: read in rows of n + m - 1, each is shifted by one.
    table = concatenate([table, zeros((n, n), table.dtype)], axis=1).reshape(-1)[: n * (n + m - 1)]
    return reductions.sum(table.reshape(n, n + m - 1), 0, dtype=table.dtype)


@implements(np.polymul)
def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = True) -> Any:
    """The product of two polynomials.

    Notes
    -----
    As in NumPy, leading zeros of the factors are removed if their values are known. Under ``jit``, or without
    `trim_leading_zeros`, they remain, also in the product.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polymul([1, 2], [1, 3])
    Array([1, 5, 6])
    """
    p, q = (coefficients(a, "polymul", i) for i, a in enumerate((a1, a2)))
    if trim_leading_zeros:
        p, q = _trimmed(p), _trimmed(q)
    return _product(_one_at_least(p), _one_at_least(q))


@implements(np.polydiv)
def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = True) -> tuple[Any, Any]:
    """Quotient and remainder of two polynomials.

    Parameters
    ----------
    u, v : array_like, shape (n,), (m,)
        The first coefficient of `v` must not be 0.

    Notes
    -----
    As in NumPy, leading zeros of the remainder are removed if its values are known. Under ``jit``, or without
    `trim_leading_zeros`, it has one coefficient less than the divisor (but at least one).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
    (Array([1.5 , 1.75]), Array([0.25]))
    """
    p, q = coefficients(u, "polydiv"), coefficients(v, "polydiv", 1)
    if not p.shape[0] or not q.shape[0]:
        raise ArgumentValueError("polydiv: u and v must have at least one coefficient")
    rest = p + q[:1] * 0.0
    n, m = p.shape[0], q.shape[0]
    scale = 1.0 / q[0]
    quotient = []
    for k in range(n - m + 1):
        d = scale * rest[k]
        quotient.append(d)
        rest = rest.at[k : k + m].add(-d * q)
    quotients = stack(quotient) if quotient else zeros(1, rest.dtype)
    left = min(n, max(m - 1, 1))
    remainder = rest if n < m else rest[n - left :]
    if is_abstract(rest) or not trim_leading_zeros:
        return quotients, remainder
    numbers = np.asarray(concrete(rest))
    first = 0
    while first < n - 1 and np.isclose(numbers[first], 0.0, rtol=1e-14):
        first += 1
    return quotients, rest[first:]


# --- values, derivatives, integrals -------------------------------------------------------------------------


@implements(np.polyval)
def polyval(p: ArrayLike, x: ArrayLike) -> Any:
    """The value of a polynomial, by Horner's rule.

    Parameters
    ----------
    p : array_like, shape (n,)
    x : array_like
        An array of any shape.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polyval([3, 0, 1], 5)
    Array(76)
    """
    weights = array_operand(p, "polyval")
    point = finish(array_operand(x, "polyval", 1))
    if not shape_of(weights):
        raise ShapeError("polyval: coefficients must have an axis, got a number")
    total: ArrayLike = zeros_like(point)
    for c in finish(weights):
        total = total * point + c
    return total


@implements(np.polyder)
def polyder(p: ArrayLike, m: int = 1) -> Array | None:
    """The `m`-th derivative of a polynomial.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polyder([1, 1, 1, 1])
    Array([3, 2, 1])
    """
    times = operator.index(m)
    if times < 0:
        raise ArgumentValueError(f"polyder: order of derivative must be positive, got {times}")
    derivative = coefficients(p, "polyder")
    for _ in range(min(times, derivative.shape[0])):
        n = derivative.shape[0] - 1
        derivative = derivative[:-1] * np.arange(max(n, 0), 0, -1)
    return derivative


_MOST_TIMES = 1 << 16


@implements(np.polyint)
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike = None) -> Any:
    """The `m`-th integral of a polynomial.

    Parameters
    ----------
    p : array_like, shape (n,)
    m : int
    k : array_like, shape (m,), or number, optional
        The constants of integration, in the order of integration; a number is used for all. By default 0.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.polyint([6.0, 2.0, 1.0])
    Array([2., 1., 1., 0.])
    """
    times = operator.index(m)
    if times < 0:
        raise ArgumentValueError(f"polyint: order of integral must be positive, got {times}")
    if times > _MOST_TIMES:
        raise ArgumentValueError(f"polyint: m={times}: more integrals than {_MOST_TIMES}")
    constants = zeros(times, float) if k is None else coefficients(k, "polyint", 2)
    if constants.shape[0] == 1 and times > 1:
        constants = constants * np.ones(times)
    if constants.shape[0] < times:
        raise ArgumentValueError(
            f"polyint: k must be a scalar or of length 1 or >m, got {constants.shape[0]}"
        )
    integral = coefficients(p, "polyint")
    for i in range(times):
        integral = concatenate([integral / np.arange(integral.shape[0], 0, -1), constants[i : i + 1]])
    return integral


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    """The polynomial with these roots, or the characteristic polynomial of a square matrix.

    Notes
    -----
    Roots in conjugate pairs yield real coefficients if the values are known. Under ``jit``, complex roots yield complex
    ones.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.poly([1.0, 2.0])
    Array([ 1., -3.,  2.])
    """
    z: ArrayLike = finish(array_operand(seq_of_zeros, "poly"))
    shape = shape_of(z)
    if len(shape) == 2 and shape[0] == shape[1] and shape[0]:
        z = _eigenvalues(z)
    elif len(shape) > 1:
        raise ShapeError(f"poly: input must be 1d or non-empty square 2d array, got shape {shape}")
    elif not shape:
        z = z.reshape(1)
    if not is_inexact(z.dtype):
        z = asarray(z, float)
    if not z.shape[0]:
        return finish(np.float64(1.0))
    product = ones(1, z.dtype)
    for i in range(z.shape[0]):
        product = concatenate([product, zeros(1, z.dtype)]) - concatenate([zeros(1, z.dtype), product * z[i]])
    if z.dtype.kind == "c" and not is_abstract(z):
        numbers = np.asarray(concrete(z))
        if np.all(np.sort(numbers) == np.sort(numbers.conjugate())):
            return selection.real(product)
    return product


def _eigenvalues(matrix: ArrayLike) -> Any:
    """The eigenvalues, real if they are known to be, as in NumPy."""
    values = linalg.eigvals(matrix)
    if matrix.dtype.kind == "c" or is_abstract(values) or np.any(np.imag(concrete(values))):
        return values
    return selection.real(values)


@implements(np.roots)
def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Any:
    """The roots of a polynomial: the eigenvalues of its companion matrix.

    Notes
    -----
    The roots are complex numbers, as in JAX (NumPy makes real ones of them if all are real).

    As in NumPy, leading and trailing zeros are removed if the values are known. Under ``jit``, or without
    `strip_zeros`, there is a root for each coefficient after the first: for each leading zero a NaN at the end.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.roots([1.0, -3.0, 2.0])
    Array([2.+0.j, 1.+0.j])
    >>> fnp.roots([0.0, 1.0, -3.0, 2.0], strip_zeros=False)
    Array([ 1. +0.j,  2. +0.j, nan+nanj])
    """
    c = coefficients(p, "roots")
    if not is_inexact(c.dtype):
        c = asarray(c, float)
    dtype = complex_dtype(c.dtype)
    if is_abstract(c) or not strip_zeros:
        return _all_roots(c) if c.shape[0] > 1 else zeros(0, dtype)
    (places,) = np.nonzero(np.asarray(concrete(c)))
    if not len(places):
        return zeros(0, dtype)
    zero_roots = c.shape[0] - int(places[-1]) - 1
    c = c[int(places[0]) : int(places[-1]) + 1]
    if c.shape[0] < 2:
        return zeros(zero_roots, dtype)
    found = linalg.eigvals(_companion(c))
    return concatenate([found, zeros(zero_roots, dtype)]) if zero_roots else found


def _companion(c: Value) -> Any:
    n = c.shape[0]
    return concatenate([(-c[1:] / c[0])[None], eye(n - 2, n - 1, dtype=c.dtype)])


def _all_roots(c: ArrayLike) -> Any:
    """The roots for coefficients of which any may be zero; NaN for each leading zero."""
    n = c.shape[0]
    leading = reductions.sum(cumprod(c == 0, dtype=int))
    c = selection.where(leading == n, ones(n, c.dtype), c)
    places = (arange(n) + leading) % n  # the leading zeros become trailing ones, whose roots are 0
    found = linalg.eigvals(_companion(c[places]))
    zeros_last = found[argsort(found == 0, stable=True)]
    found = selection.where(leading > 0, zeros_last, found)
    return selection.where(
        arange(n - 1) < n - 1 - leading, found, asarray(complex(np.nan, np.nan), found.dtype)
    )


_MOST_COLUMNS = 1 << 20


@implements(np.vander)
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Any:
    """Make a matrix whose columns are powers of a vector (a Vandermonde matrix).

    Parameters
    ----------
    x : array_like, shape (n,)
    N : int, optional
        The number of columns; by default `n`.
    increasing : bool
        Whether the powers increase from left to right.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.vander([1, 2, 3], 2)
    Array([[1, 1],
           [2, 1],
           [3, 1]])
    """
    v = array_operand(x, "vander")
    if len(shape_of(v)) != 1:
        raise ShapeError(f"vander: x must be a one-dimensional array or sequence, got shape {shape_of(v)}")
    count = shape_of(v)[0] if N is None else operator.index(N)
    if count < 0:
        raise ArgumentValueError(f"vander: negative dimensions are not allowed, got N={count}")
    value = finish(v)
    dtype = np.promote_types(dtype_of(v), int)
    if not count:
        return zeros((shape_of(v)[0], 0), dtype)
    if count > _MOST_COLUMNS:
        raise ArgumentValueError(f"vander: N={count}: more columns than {_MOST_COLUMNS}")
    base: Any = asarray(value, dtype)
    columns = [ones(base.shape, dtype)]
    for _ in range(count - 1):
        columns.append(columns[-1] * base)
    return stack(columns if increasing else columns[::-1], axis=1)


@implements(np.polyfit)
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: Any,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike = None,
    cov: ArrayLike = False,
) -> Any:
    """Fit a polynomial to points by least squares.

    Parameters
    ----------
    x : array_like, shape (n,)
    y : array_like, shape (n,) or (n, k)
    deg : int
        The degree.
    rcond : float, optional
        Singular values below this times the largest count as 0; by default ``n`` times the precision.
    full : bool
        Whether to return the results of `lstsq`, too.
    w : array_like, shape (n,), optional
        Factors of the residuals, applied before they are squared.
    cov : bool or 'unscaled'
        Whether to return the covariance of the coefficients, too.

    Returns
    -------
    Array, shape (deg + 1,) or (deg + 1, k), or a tuple

    Raises
    ------
    ArgumentError, ShapeError
        If `x` is empty, or `x`, `y` and `w` differ in length.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.round(fnp.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1), 6) + 0.0
    Array([2., 1.])
    """
    if np.ndim(deg):
        raise NoRuleError("polyfit: deg must be one integer; a list of powers is not supported")
    degree = operator.index(deg)
    if degree < 0:
        raise ArgumentValueError(f"polyfit: expected deg >= 0, got {degree}")
    points, values = (_float(v, i) for i, v in enumerate((x, y)))
    if len(points.shape) != 1 or not points.shape[0]:
        raise ArgumentError(f"polyfit: expected non-empty vector for x, got shape {points.shape}")
    if len(values.shape) not in (1, 2) or values.shape[0] != points.shape[0]:
        raise ArgumentError(
            f"polyfit: expected x and y to have same length, got shapes {points.shape} and {values.shape}"
        )
    matrix = vander(points, degree + 1)
    if w is not None:
        weights = _float(w, 5)
        if weights.shape != points.shape:
            raise ArgumentError(f"polyfit: expected w of shape {points.shape}, got {weights.shape}")
        matrix = matrix * weights[:, None]
        values = values * (weights if len(values.shape) == 1 else weights[:, None])
    if rcond is None:
        rcond = points.shape[0] * float(np.finfo(points.dtype).eps)
    scale = ufuncs.sqrt(reductions.sum(matrix * matrix, 0))
    fit, residuals, rank, singular = linalg.lstsq(matrix / scale, values, rcond)
    fit = fit / (scale if len(values.shape) == 1 else scale[:, None])
    if full:
        return fit, residuals, rank, singular, rcond
    if not cov:
        return fit
    base = linalg.inv((matrix / scale).T @ (matrix / scale))
    base = base / outer(scale, scale)
    factor: Any = 1.0
    if cov != "unscaled":
        if points.shape[0] <= degree + 1:
            raise ArgumentValueError(
                "polyfit: the number of data points must exceed order to scale the covariance matrix; or cov='unscaled'"
            )
        factor = residuals / (points.shape[0] - (degree + 1))
    if len(values.shape) == 1:
        return fit, base * factor
    return fit, base[:, :, None] * factor


def _float(v: Value, position: int) -> Any:
    x = array_operand(v, "polyfit", position)
    return finish(x) if is_inexact(dtype_of(x)) else asarray(x, float)
