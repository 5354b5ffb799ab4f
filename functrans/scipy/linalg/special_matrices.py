"""Matrices of a structure, from vectors (differentiable, in batches) or of some order, under SciPy's names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import numpy as fnp
from ...arrays.arguments import one_of
from ...arrays.array import Array
from ...core import ArgumentValueError, ShapeError, canonical, concrete
from ...core.values import ArrayLike, DTypeLike, Param, PyTree, Value
from ...frontend.checked import checked
from ...numpy.dispatch import array_operand
from ...primitives.ops import finish, shape_of
from ...runtime.libraries import scipy
from .matrix_functions import toeplitz


def _vector(x: Value, name: str, position: int = 0, number: bool = True) -> Value:
    """An array with at least one axis; a number is one of length 1, where SciPy takes it."""
    value = array_operand(x, name, position)
    if not number and not shape_of(value):
        raise ShapeError(f"{name}: argument {position} must have at least one axis")
    return value if shape_of(value) else fnp.reshape(value, (1,))


def _taken(values: ArrayLike, places: np.ndarray) -> Value:
    """Elements along the last axis, at places known while tracing."""
    return fnp.take(values, places, axis=-1)


@checked
def circulant(c: ArrayLike) -> Array:
    """A matrix whose columns are rotations of a vector.

    Parameters
    ----------
    c : array_like, shape (..., n)
        The first column.

    Returns
    -------
    Array, shape (..., n, n)

    Examples
    --------
    >>> from functrans.scipy.linalg import circulant
    >>> circulant([1, 2, 3])
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]])
    """
    column = _vector(c, "circulant")
    n = shape_of(column)[-1]
    return finish(_taken(column, np.subtract.outer(np.arange(n), np.arange(n)) % max(n, 1)))


@checked
def hankel(c: ArrayLike, r: ArrayLike = None) -> Array:
    """A matrix with constant antidiagonals.

    Parameters
    ----------
    c : array_like, shape (..., m)
        The first column.
    r : array_like, shape (..., n), optional
        The last row, whose first element is not read. By default m zeros.

    Returns
    -------
    Array, shape (..., m, n)

    Examples
    --------
    >>> from functrans.scipy.linalg import hankel
    >>> hankel([1, 2, 3], [3, 4])
    Array([[1, 2],
           [2, 3],
           [3, 4]])
    """
    column = _vector(c, "hankel", number=False)
    row = fnp.zeros_like(column) if r is None else _vector(r, "hankel", 1, number=False)
    m, n = shape_of(column)[-1], shape_of(row)[-1]
    batch = np.broadcast_shapes(shape_of(column)[:-1], shape_of(row)[:-1])
    parts = [fnp.broadcast_to(x, (*batch, shape_of(x)[-1])) for x in (column, row[..., 1:])]
    values = fnp.concatenate(parts, axis=-1)
    return finish(_taken(values, np.add.outer(np.arange(m), np.arange(n))))


@checked
def companion(a: ArrayLike) -> Array:
    """A matrix whose eigenvalues are the roots of a polynomial.

    Parameters
    ----------
    a : array_like, shape (..., n)
        Coefficients of the polynomial, highest degree first; n >= 2.

    Returns
    -------
    Array, shape (..., n - 1, n - 1)

    Raises
    ------
    ArgumentValueError
        If there are fewer than two coefficients, or the first is known to be zero.

    Examples
    --------
    >>> from functrans.scipy.linalg import companion
    >>> companion([1.0, -3.0, 2.0])
    Array([[ 3., -2.],
           [ 1.,  0.]])
    """
    value = finish(_vector(a, "companion"))
    n = shape_of(value)[-1]
    if n < 2:
        raise ArgumentValueError(f"companion: a needs at least two coefficients, got shape {shape_of(value)}")
    _check_leading(value, "companion")
    row = -value[..., 1:] / (1.0 * value[..., :1])
    out = fnp.zeros((*shape_of(value)[:-1], n - 1, n - 1), row.dtype)
    below = np.arange(n - 2)
    return finish(out.at[..., 0, :].set(row).at[..., below + 1, below].set(1))


def _check_leading(value: Value, name: str) -> None:
    known = concrete(value)
    if known is not None and np.any(np.asarray(known)[..., 0] == 0):
        raise ArgumentValueError(f"{name}: the first coefficient of a must not be zero")


@checked
def fiedler(a: ArrayLike) -> Array:
    """The matrix of distances ``|a[i] - a[j]|``.

    Parameters
    ----------
    a : array_like, shape (..., n)

    Returns
    -------
    Array, shape (..., n, n)

    Examples
    --------
    >>> from functrans.scipy.linalg import fiedler
    >>> fiedler([1.0, 4.0, 6.0])
    Array([[0., 3., 5.],
           [3., 0., 2.],
           [5., 2., 0.]])
    """
    value = _vector(a, "fiedler")
    if not math.prod(shape_of(value)):
        return fnp.zeros((0,))
    if math.prod(shape_of(value)) == 1:
        return fnp.zeros((1, 1))
    return finish(fnp.abs(value[..., :, None] - value[..., None, :]))


@checked
def fiedler_companion(a: ArrayLike) -> Array:
    """A matrix with five diagonals whose eigenvalues are the roots of a polynomial.

    Parameters
    ----------
    a : array_like, shape (..., n)
        Coefficients of the polynomial, highest degree first.

    Returns
    -------
    Array, shape (..., n - 1, n - 1)
        Empty for fewer than two coefficients.

    Raises
    ------
    ArgumentValueError
        If the first coefficient is known to be zero.

    References
    ----------
    M. Fiedler: A note on companion matrices. Linear Algebra and its Applications 372, 2003.

    Examples
    --------
    >>> from functrans.scipy.linalg import fiedler_companion
    >>> fiedler_companion([1.0, -6.0, 11.0, -6.0])
    Array([[  6., -11.,   1.],
           [  1.,   0.,   0.],
           [  0.,   6.,   0.]])
    """
    value = _vector(a, "fiedler_companion")
    size = shape_of(value)[-1]
    if size < 2:
        return fnp.zeros((0,), value.dtype)
    if size > 2:
        _check_leading(value, "fiedler_companion")
    value = value / value[..., :1]
    n = size - 1
    out = fnp.zeros((*shape_of(value)[:-1], n, n), value.dtype)
    if size > 2:
        out = out.at[..., np.arange(3, n, 2), np.arange(1, n - 2, 2)].set(1.0)
        out = out.at[..., np.arange(2, n, 2), np.arange(1, n - 1, 2)].set(-value[..., 3::2])
        out = out.at[..., np.arange(0, n - 2, 2), np.arange(2, n, 2)].set(1.0)
        out = out.at[..., np.arange(0, n - 1, 2), np.arange(1, n, 2)].set(-value[..., 2::2])
        out = out.at[..., 1, 0].set(1.0)
    return finish(out.at[..., 0, 0].set(-value[..., 1]))


@checked
def leslie(f: Any, s: ArrayLike) -> Array:
    """The matrix of a population by age: births in the first row, survival below the diagonal.

    Parameters
    ----------
    f : array_like, shape (..., n)
        Births for each individual of an age.
    s : array_like, shape (..., n - 1)
        The share that survives to the next age; n >= 2.

    Returns
    -------
    Array, shape (..., n, n)

    Raises
    ------
    ArgumentValueError
        If the lengths do not match.

    Examples
    --------
    >>> from functrans.scipy.linalg import leslie
    >>> leslie([0.1, 2.0, 1.0], [0.2, 0.8])
    Array([[0.1, 2. , 1. ],
           [0.2, 0. , 0. ],
           [0. , 0.8, 0. ]])
    """
    births, survival = _vector(f, "leslie"), _vector(s, "leslie", 1)
    n = shape_of(births)[-1]
    if shape_of(survival)[-1] != n - 1 or n < 2:
        raise ArgumentValueError(
            f"leslie: f must have one more element than s, which needs at least one, got shapes {shape_of(births)} and "
            f"{shape_of(survival)}"
        )
    dtype = np.result_type(births.dtype, survival.dtype)
    batch = np.broadcast_shapes(shape_of(births)[:-1], shape_of(survival)[:-1])
    below = np.arange(n - 1)
    out = fnp.zeros((*batch, n, n), dtype).at[..., 0, :].set(births)
    return finish(out.at[..., below + 1, below].set(survival))


@checked
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix whose product with a vector of length n is the convolution with `a`.

    Parameters
    ----------
    a : array_like, shape (..., m)
    n : int
        The number of columns; positive.
    mode : {'full', 'same', 'valid'}
        Which part of the convolution, as in `functrans.numpy.convolve`.

    Returns
    -------
    Array, shape (..., k, n)
        k is m + n - 1, max(m, n), or ``max(m, n) - min(m, n) + 1``.

    Raises
    ------
    ArgumentValueError
        If `a` is empty, or `n` is not positive.

    Examples
    --------
    >>> from functrans.scipy.linalg import convolution_matrix
    >>> convolution_matrix([1, 2], 3)
    Array([[1, 0, 0],
           [2, 1, 0],
           [0, 2, 1],
           [0, 0, 2]])
    """
    value = _vector(a, "convolution_matrix", number=False)
    one_of(mode, ("full", "same", "valid"), "convolution_matrix: mode")
    size = shape_of(value)[-1]
    if n <= 0 or not math.prod(shape_of(value)):
        raise ArgumentValueError(
            f"convolution_matrix: n must be positive and a must not be empty, got {n} and shape {shape_of(value)}"
        )
    gap = fnp.zeros((*shape_of(value)[:-1], n - 1), value.dtype)
    column = fnp.concatenate([value, gap], axis=-1)
    row = fnp.concatenate([value[..., :1], gap], axis=-1)
    out = toeplitz(column, row)
    trimmed = 0 if mode == "full" else min(n, size) - 1
    first = trimmed // 2 if mode == "same" else trimmed
    last = trimmed - first if mode == "same" else trimmed
    return finish(out[..., first : size + n - 1 - last, :])


# --- of some order -----------------------------------------------------------------------------------------


def _known(name: str, *args: PyTree, **kwargs: Any) -> Value:
    """SciPy's matrix, a constant of the program."""
    return finish(np.asarray(getattr(scipy.linalg, name)(*args, **kwargs)))


@checked
def dft(n: int, scale: str | None = None, *, dtype: DTypeLike = None) -> Array:
    """The matrix of the discrete Fourier transform.

    Parameters
    ----------
    n : int
    scale : {None, 'sqrtn', 'n'}
        Whether to divide by ``sqrt(n)`` or by `n`.
    dtype : dtype, optional
        Complex; by default complex128.

    Returns
    -------
    Array, shape (n, n)

    Examples
    --------
    >>> from functrans.scipy.linalg import dft
    >>> dft(2).real
    Array([[ 1.,  1.],
           [ 1., -1.]])
    """
    return _known("dft", n, scale).astype(canonical(complex if dtype is None else dtype, "dft: dtype"))


@checked
def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """A Hadamard matrix: its elements are 1 and -1, its rows are orthogonal.

    Parameters
    ----------
    n : int
        A power of 2.
    dtype : dtype

    Returns
    -------
    Array, shape (n, n)

    Examples
    --------
    >>> from functrans.scipy.linalg import hadamard
    >>> hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]])
    """
    if n < 1 or n & (n - 1):
        raise ArgumentValueError(f"hadamard: n must be a power of 2, got {n}")
    places = np.arange(n, dtype=np.uint64)
    odd = np.bitwise_count(places[:, None] & places) & 1
    return finish(
        (1 - 2 * odd.astype(np.int8)).astype(canonical(int if dtype is None else dtype, "hadamard: dtype"))
    )


@checked
def helmert(n: int, full: bool = False) -> Any:
    """A Helmert matrix: orthonormal rows, each of which except the first adds up to zero.

    Parameters
    ----------
    n : int
    full : bool
        Whether to include the first row.

    Returns
    -------
    Array, shape (n - 1, n), or (n, n) if `full`

    Examples
    --------
    >>> from functrans.scipy.linalg import helmert
    >>> helmert(2)
    Array([[ 0.70710678, -0.70710678]])
    """
    return _known("helmert", n, full)


@checked
def hilbert(n: int) -> Any:
    """The matrix of elements ``1 / (i + j + 1)``.

    Parameters
    ----------
    n : int

    Returns
    -------
    Array, shape (n, n)

    Examples
    --------
    >>> from functrans.scipy.linalg import hilbert
    >>> hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333333]])
    """
    return _known("hilbert", n)


@checked
def invhilbert(n: int, exact: bool = False) -> Any:
    """The inverse of `hilbert`, whose elements are integers.

    Parameters
    ----------
    n : int
        At most 14 if `exact`: larger elements do not fit into 64 bits.
    exact : bool
        Whether to return integers.

    Returns
    -------
    Array, shape (n, n)

    Examples
    --------
    >>> from functrans.scipy.linalg import invhilbert
    >>> invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]])
    """
    return _of_integers("invhilbert", n, exact=exact)


@checked
def pascal(n: int, kind: str | None = "symmetric", exact: bool = True) -> Any:
    """The matrix of binomial coefficients.

    Parameters
    ----------
    n : int
    kind : {'symmetric', 'lower', 'upper'}
        The whole matrix, or one of its triangular factors. None is 'symmetric'.
    exact : bool
        Whether to return integers, which fit into 64 bits for `n` up to 34.

    Returns
    -------
    Array, shape (n, n)

    Examples
    --------
    >>> from functrans.scipy.linalg import pascal
    >>> pascal(3)
    Array([[1, 1, 1],
           [1, 2, 3],
           [1, 3, 6]], dtype=uint64)
    """
    return _of_integers("pascal", n, kind="symmetric" if kind is None else kind, exact=exact)


@checked
def invpascal(n: int, kind: str | None = "symmetric", exact: bool = True) -> Any:
    """The inverse of `pascal`, whose elements are integers.

    Parameters
    ----------
    n : int
    kind : {'symmetric', 'lower', 'upper'}
        Of `pascal`. None is 'symmetric'.
    exact : bool
        Whether to return integers, which fit into 64 bits for `n` up to 34.

    Returns
    -------
    Array, shape (n, n)

    Examples
    --------
    >>> from functrans.scipy.linalg import invpascal
    >>> invpascal(2)
    Array([[ 2, -1],
           [-1,  1]])
    """
    return _of_integers("invpascal", n, kind="symmetric" if kind is None else kind, exact=exact)


def _of_integers(name: str, n: int, **options: Param) -> Value:
    if "kind" in options:
        one_of(options["kind"], ("symmetric", "lower", "upper"), f"{name}: kind")
    out = np.asarray(getattr(scipy.linalg, name)(n, **options))
    if out.dtype.kind == "O":
        raise ArgumentValueError(f"{name}: the integers for n={n} do not fit into 64 bits; pass exact=False")
    return finish(out)
