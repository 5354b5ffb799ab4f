"""General functions of matrices, and directional derivatives of the exponential, under SciPy's names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ... import numpy as fnp
from ...arrays.arguments import one_of
from ...core import LinAlgError, ShapeError, complex_dtype, finfo
from ...core.values import ArrayLike, PyTree, Value
from ...custom.closures import closure_convert
from ...custom.custom_function import custom_jvp
from ...frontend.checked import checked
from ...frontend.structs import ShapeDtypeStruct
from ...lax.control_flow.while_loops import fori_loop
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, shape_of
from ...runtime.config import config
from ...transforms import jvp as forward
from .arguments import inexact
from .matrix_functions import expm


@checked
def expm_frechet(
    A: ArrayLike, E: Any, method: str | None = None, compute_expm: bool = True, check_finite: bool = True
) -> Any:
    """The exponential of a square matrix, and its derivative in a direction.

    Parameters
    ----------
    A : array_like, shape (..., n, n)
    E : array_like, shape (..., n, n)
        The direction.
    method : {None, 'SPS', 'blockEnlarge'}
        Accepted, without effect.
    compute_expm : bool
        Whether to return the exponential.
    check_finite : bool
        Whether to raise for NaN and infinities.

    Returns
    -------
    exponential : Array, shape (..., n, n)
        Only if `compute_expm`.
    derivative : Array, shape (..., n, n)

    Raises
    ------
    LinAlgError
        If the matrices are not square, or their shapes differ.

    Notes
    -----
    The tangent of `expm`, exact up to rounding, and differentiable itself.

    References
    ----------
    A. H. Al-Mohy, N. J. Higham: Computing the Fréchet derivative of the matrix exponential. SIAM J. Matrix Anal. Appl.
    30, 2009.

    Examples
    --------
    >>> from functrans.scipy.linalg import expm_frechet
    >>> expm_frechet([[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]], compute_expm=False)
    Array([[1., 2.],
           [3., 4.]])
    """
    if method is not None:
        one_of(method, ("SPS", "blockEnlarge"), "expm_frechet: method")
    x, t = inexact("expm_frechet", check_finite, A, E)
    ops.check_square("expm_frechet", x)
    ops.check_square("expm_frechet", t)
    if shape_of(x) != shape_of(t):
        raise LinAlgError(f"expm_frechet: A and E must have one shape, got {shape_of(x)} and {shape_of(t)}")
    (value,), (derivative,) = forward.jvp(lambda y: [expm(y)], [x], [t])
    return (finish(value), finish(derivative)) if compute_expm else finish(derivative)


# --- any function -------------------------------------------------------------------------------------------


@checked
def funm(A: ArrayLike, func: Callable[[Any], Any], disp: bool = True) -> PyTree:
    r"""A function of a square matrix.

    Parameters
    ----------
    A : array_like, shape (n, n)
        For batches use `vmap`.
    func : callable
        An analytic function of complex numbers, elementwise: ``func(w)`` of an array w, shape (n,). Values that it
        captures may be differentiated.
    disp : bool
        Whether to return the result alone. (SciPy also prints a warning, if its error estimate is large.)

    Returns
    -------
    F : Array, shape (n, n)
        **Always complex**. (SciPy's result is real if all imaginary parts are small, which depends on the numbers.)
    error : Array
        An estimate of the relative error in the 1-norm. Only if not `disp`.

    Raises
    ------
    LinAlgError
        If `A` is not a square matrix.

    Notes
    -----
    Parlett's recurrence on the Schur form [1]_, inaccurate for eigenvalues that are close but not equal to each other;
    for `expm` and `sqrtm` there are better algorithms. Where it needs higher derivatives of `func` (Jordan blocks of
    three rows and more), the result is NaN. It calls LAPACK through SciPy.

    The derivative is that of Daleckii and Krein, for diagonalizable matrices: with ``A = V diag(w) V^-1`` and the
    divided differences :math:`f[w_i, w_j]`, which are :math:`f'(w_i)` for equal eigenvalues,

    .. math:: \dot F = V\,\bigl(f[w_i, w_j] \circ V^{-1} \dot A\, V\bigr)\,V^{-1}.

    Second derivatives need distinct eigenvalues.

    References
    ----------
    .. [1] G. H. Golub, C. F. Van Loan: Matrix Computations, 4th ed., 2013, algorithm 9.1.1.
    .. [2] N. J. Higham: Functions of Matrices, 2008, theorem 3.11.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.scipy.linalg import funm
    >>> fnp.round(funm([[4.0, 0.0], [5.0, 9.0]], fnp.sqrt).real, 12)
    Array([[2., 0.],
           [1., 3.]])
    """
    (x,) = inexact("funm", False, A)
    if len(shape_of(x)) != 2 or shape_of(x)[0] != shape_of(x)[1]:
        raise LinAlgError(f"funm: expected a square matrix, got shape {shape_of(x)}")
    dtype = dtype_of(x) if dtype_of(x).kind == "c" else complex_dtype(dtype_of(x))
    converted, captured = closure_convert(
        lambda w: _same_shape(func(w), w), ShapeDtypeStruct(shape_of(x)[:1], dtype)
    )
    value, error = _function(converted, ops.cast(x, dtype), *captured)
    return finish(value) if disp else (finish(value), finish(error))


def _same_shape(out: Value, w: Value) -> Value:
    if np.shape(out) != shape_of(w):
        raise ShapeError(
            f"funm: func must keep the shape of its argument, {shape_of(w)}, but returned {np.shape(out)}"
        )
    return fnp.asarray(out).astype(dtype_of(w))


@partial(custom_jvp, nondiff_argnums=0)
def _function(func: Callable[..., PyTree], x: Value, *captured: Any) -> tuple[ArrayLike, ArrayLike]:
    """The function of a complex matrix, and the estimate of its error."""
    t, z, _ = ops.schur_p.bind(x, output="complex", sort=None, on_error=config.linalg_errors)
    t, z = fnp.asarray(t), fnp.asarray(z)
    n = shape_of(x)[0]
    w = fnp.diagonal(t)
    (f,), (slope,) = forward.jvp(lambda y: [func(y, *captured)], [w], [fnp.ones_like(w)])
    out, least = _parlett(t, fnp.asarray(f), fnp.asarray(slope))
    real = out.real.dtype.type
    upper = fnp.sum(fnp.abs(fnp.triu(t, 1)), axis=0)
    norm = fnp.max(upper, initial=real(0))
    eps = real(finfo(real).eps)
    error = fnp.minimum(real(1), fnp.maximum(eps, eps / fnp.where(least == 0, eps, least) * norm))
    return z @ out @ fnp.conj(z.T), error if n else real(0)


def _parlett(t: ArrayLike, f: ArrayLike, slope: ArrayLike) -> tuple[Any, Any]:
    """The function of an upper triangular matrix, from value and slope at each eigenvalue; the smallest gap.

    Between equal eigenvalues the recurrence has no solution. The slope gives it for neighbours; for others it takes
    higher derivatives, unless no element of the matrix links them.
    """
    n = shape_of(t)[0]
    places = fnp.arange(n)
    noise = n * float(finfo(dtype_of(t)).eps) * fnp.max(fnp.abs(t), initial=0.0) ** 2

    def column(j: Value, state: PyTree) -> PyTree:
        def element(m: Value, state: PyTree) -> PyTree:
            out, least = state
            i = j - 1 - m
            between = (places > i) & (places < j)
            total = t[i, j] * (out[j, j] - out[i, i])
            total = total + fnp.sum(fnp.where(between, t[i] * out[:, j] - out[i] * t[:, j], 0.0))
            gap = t[j, j] - t[i, i]
            equal = gap == 0
            quotient = total / fnp.where(equal, gap.dtype.type(1), gap)
            links = fnp.sum(fnp.where(between, fnp.abs(t[i] * t[:, j]), 0.0))
            limit = fnp.where(links > noise, t.dtype.type(np.nan), t[i, j] * slope[i])
            out = out.at[i, j].set(fnp.where(equal, limit, quotient))
            return out, fnp.where(equal, least, fnp.minimum(least, fnp.abs(gap)))

        return fori_loop(0, j, element, state)

    start = fnp.diag(f), fnp.abs(t[0, 0]) if n else t.real.dtype.type(0)
    return fori_loop(1, n, column, start) if n > 1 else start


@_function.defjvp
def _function_jvp(
    func: Callable[..., PyTree], primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, Any]:
    x, *captured = primals
    t, *moved = tangents
    value, error = _function(func, x, *captured)
    w, v = fnp.linalg.eig(x)
    one = fnp.ones_like(w)
    (f,), (slope,) = forward.jvp(lambda y: [func(y, *captured)], [w], [one])
    inner = fnp.linalg.solve(v, t @ v) * _divided(w, f, slope)
    if captured:
        (change,) = forward.jvp(lambda *c: [func(w, *c)], captured, moved)[1]
        inner = inner + fnp.diag(ops.instantiate(change))
    return (value, error), (fnp.linalg.solve(v.T, (v @ inner).T).T, fnp.zeros_like(error))


def _divided(w: Value, f: Any, slope: Any) -> Value:
    """The divided differences of a function, with error ``gap**2`` where eigenvalues are close."""
    gap = w[:, None] - w[None, :]
    size = fnp.maximum(fnp.abs(w)[:, None], fnp.abs(w)[None, :])
    real = fnp.finfo(dtype_of(w))
    close = fnp.abs(gap) <= float(real.eps) ** (1 / 3) * size
    quotient = (f[:, None] - f[None, :]) / fnp.where(close, gap.dtype.type(1), gap)
    return fnp.where(close, 0.5 * (slope[:, None] + slope[None, :]), quotient)
