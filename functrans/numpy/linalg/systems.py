"""Systems of linear equations, inverses, determinants, powers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import ArgumentValueError, LinAlgError, ShapeError, aval_of
from ...core.values import ArrayLike, Value
from ...primitives import ops
from ...primitives.ops import finish, operand, shape_of, strong
from ...runtime.config import config
from ...runtime.records import NamedTuple
from ..dispatch import implements, owned
from .norms import all_inexact, inexact


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Any
    logabsdet: Any


@implements(np.linalg.solve)
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve ``a @ x = b``.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    b : array_like, shape (n,) or (..., n, m)
        One right-hand side if one-dimensional (as in NumPy 2), else matrices of them. Axes before the last two
        broadcast against those of `a`.

    Returns
    -------
    Array, shape (..., n) or (..., n, m)

    Raises
    ------
    LinAlgError
        If a matrix is singular (NaN instead under ``config.patch(linalg_errors="nan")``), or not square.
    ShapeError
        If the shapes of `a` and `b` do not match.

    Notes
    -----
    Uses LAPACK's getrf and substitution. Derivatives reuse the factors: ``x' = a^-1 (b' - a' x)``. An almost singular
    matrix raises no error, and the error of the solution is proportional to ``cond(a)``.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.solve([[2.0, 1.0], [1.0, 3.0]], [3.0, 5.0])
    Array([0.8, 1.4])
    """
    x, right = all_inexact("solve", a, b)
    ops.check_square("solve", x)
    return finish(solved(x, right, "solve"))


def solved(a: Any, b: Value, name: str) -> Any:
    """`solve` for values of one dtype."""
    n, own = shape_of(a)[-1], shape_of(b)
    vector = len(own) == 1
    if not own or own[0 if vector else -2] != n:
        raise ShapeError(
            f"{name}: a right-hand side of shape {own} does not match matrices of shape {shape_of(a)}; expected ({n},) "
            f"or (..., {n}, m), a stack of vectors as b[..., None]"
        )
    columns = ops.reshape_p.bind(b, shape=(n, 1)) if vector else b
    params = {"on_error": config.linalg_errors, "name": name}
    if len(shape_of(a)) == 2 and len(shape_of(columns)) > 2:
        batch = shape_of(columns)[:-2]
        size, matrix = prod(batch), shape_of(columns)[-2:]
        flat = ops.reshape_p.bind(columns, shape=(size, *matrix))
        out, axis = ops.batch_of_systems(ops.solve_p, size, (a, flat), (None, 0), **params)
        assert axis == 1
        return ops.reshape_p.bind(ops.transpose_p.bind(out, permutation=(1, 0, 2)), shape=(*batch, *matrix))
    batch = ops.broadcast_shapes(name, shape_of(a)[:-2], shape_of(columns)[:-2])
    matrix = ops.broadcast_to(a, (*batch, n, n))
    out = ops.solve_p.bind(matrix, ops.broadcast_to(columns, (*batch, *shape_of(columns)[-2:])), **params)
    return ops.reshape_p.bind(out, shape=(*batch, n)) if vector else out


@implements(np.linalg.inv)
def inv(a: ArrayLike) -> Array:
    """The inverse of square matrices.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    Array, shape (..., n, n)

    Raises
    ------
    LinAlgError
        If a matrix is singular (NaN instead under ``config.patch(linalg_errors="nan")``), or not square.

    Notes
    -----
    For a product with the inverse, `solve` is faster and more accurate. The derivative is ``-a^-1 a' a^-1``.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.inv([[2.0, 0.0], [1.0, 1.0]])
    Array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    x = inexact(a, "inv")
    ops.check_square("inv", x)
    return finish(inverse(x, "inv"))


def inverse(x: Value, name: str) -> Any:
    """`inv` of a value."""
    n = shape_of(x)[-1]
    unit = ops.broadcast_to(ops.eye(n, n, 0, x.dtype), shape_of(x))
    return ops.solve_p.bind(x, unit, on_error=config.linalg_errors, name=name)


@implements(np.linalg.det)
def det(a: ArrayLike) -> Array:
    """The determinant of square matrices.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    Array, shape (...)

    Notes
    -----
    The product of the pivots of LAPACK's getrf. The gradient is the cofactor matrix, also for singular matrices.
    Derivatives of all orders are correct if the rank is deficient by at most three (else up to the third). Determinants
    of large matrices overflow: see `slogdet`.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> fnp.linalg.det([[2.0, 1.0], [1.0, 3.0]])
    Array(5.)
    >>> ft.grad(fnp.linalg.det)(fnp.asarray([[1.0, 2.0], [2.0, 4.0]]))
    Array([[ 4., -2.],
           [-2.,  1.]])
    """
    x = inexact(a, "det")
    ops.check_square("det", x)
    return finish(ops.det_p.bind(x))


@implements(np.linalg.slogdet)
def slogdet(a: ArrayLike) -> SlogdetResult:
    """The sign and the logarithm of the absolute value of the determinant.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    sign : Array, shape (...)
        1 or -1; for complex matrices a number of absolute value 1; 0 for singular ones.
    logabsdet : Array, shape (...)
        Real; ``-inf`` for singular matrices.

    Notes
    -----
    The derivative of `logabsdet` is the real part of ``trace(a^-1 a')``, that of `sign` its imaginary part times
    ``1j * sign``. For singular matrices both are infinite or NaN.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> sign, logabsdet = fnp.linalg.slogdet([[0.0, 2.0], [1.0, 0.0]])
    >>> sign, fnp.exp(logabsdet)
    (Array(-1.), Array(2.))
    """
    x = inexact(a, "slogdet")
    ops.check_square("slogdet", x)
    sign, size = ops.slogdet_p.bind(x)
    return SlogdetResult(finish(sign), finish(size))


@implements(np.linalg.tensorsolve)
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Any:
    """The tensor `x` with ``tensordot(a, x, x.ndim) = b``.

    Parameters
    ----------
    a : array_like, shape ``b.shape + x.shape``
        ``prod(b.shape) == prod(x.shape)``.
    b : array_like
    axes : sequence of int, optional
        Axes of `a` to move to the end first.

    Raises
    ------
    LinAlgError
        If `a` is singular, or its shape does not make it square.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.tensorsolve(fnp.eye(4).reshape(2, 2, 4), [[1.0, 2.0], [3.0, 4.0]])
    Array([1., 2., 3., 4.])
    """
    x, right = all_inexact("tensorsolve", a, b)
    ndim = len(shape_of(x))
    if axes is not None:
        last = [operator.index(d) % ndim for d in axes]
        x = ops.transpose_p.bind(x, permutation=(*[d for d in range(ndim) if d not in last], *last))
    rank, shape = len(shape_of(right)), shape_of(x)
    rows, columns = prod(shape[:rank]), prod(shape[rank:])
    if rows != columns:
        raise LinAlgError(
            f"tensorsolve: a of shape {shape} has {rows} equations (the first {rank} axes) for "
            f"{columns} unknowns; expected equal numbers"
        )
    size = prod(shape_of(right))
    if size != rows:
        raise ShapeError(
            f"tensorsolve: b has {size} right-hand sides for the {rows} equations of a, of shape {shape}"
        )
    square = ops.reshape_p.bind(x, shape=(rows, rows))
    out = solved(square, ops.reshape_p.bind(right, shape=(rows,)), "tensorsolve")
    return finish(ops.reshape_p.bind(out, shape=shape[rank:]))


@implements(np.linalg.tensorinv)
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The tensor whose `tensordot` inverts ``tensordot(a, x, ind)``.

    Parameters
    ----------
    a : array_like
        ``prod(a.shape[:ind]) == prod(a.shape[ind:])``.
    ind : int
        The number of leading axes.

    Returns
    -------
    Array, shape ``a.shape[ind:] + a.shape[:ind]``

    Raises
    ------
    LinAlgError
        If `a` is singular, or its shape does not make it square.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.tensorinv(2.0 * fnp.eye(4).reshape(4, 2, 2), ind=1).shape
    (2, 2, 4)
    """
    x = inexact(a, "tensorinv")
    ind = operator.index(ind)
    if ind <= 0:
        raise ArgumentValueError(f"tensorinv: ind must be positive, got {ind}")
    shape = shape_of(x)
    first, rest = shape[:ind], shape[ind:]
    if prod(first) != prod(rest):
        raise LinAlgError(f"tensorinv: axes {first} and {rest} do not make a square matrix")
    out = inverse(ops.reshape_p.bind(x, shape=(prod(first), prod(rest))), "tensorinv")
    return finish(ops.reshape_p.bind(out, shape=(*rest, *first)))


@implements(np.linalg.matrix_power)
def matrix_power(a: ArrayLike, n: int) -> Value:
    """Raise square matrices to an integer power.

    Parameters
    ----------
    a : array_like, shape (..., k, k)
    n : int
        Negative values mean powers of the inverse.

    Raises
    ------
    LinAlgError
        If a matrix is not square, or is singular and `n` is negative.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.matrix_power([[1, 1], [0, 1]], 5)
    Array([[1, 5],
           [0, 1]])
    >>> fnp.linalg.matrix_power([[1, 1], [0, 1]], -2)
    Array([[ 1., -2.],
           [ 0.,  1.]])
    """
    value = operand(a, "matrix_power")
    value = strong(value, aval_of(value).dtype)
    ops.check_square("matrix_power", value)
    shape = shape_of(value)
    exponent = operator.index(n)
    if exponent == 0:
        return finish(ops.broadcast_to(ops.eye(shape[-1], shape[-1], 0, value.dtype), shape))
    if exponent < 0:
        value, exponent = inverse(inexact(value, "matrix_power"), "matrix_power"), -exponent
    out = None
    while exponent:
        if exponent & 1:
            out = value if out is None else ops.matrix_product(out, value)
        exponent >>= 1
        if exponent:
            value = ops.matrix_product(value, value)
    return owned(out, a)
