"""Condensed forms of matrices, and what is computed from them, under JAX's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..core import INT64, DtypeError, LinAlgError, aval_of, is_inexact
from ..core.values import ArrayLike, Value
from ..errors import ArgumentError
from ..frontend.checked import checked
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, shape_of
from ..runtime.config import config
from .elementwise import operands


@checked
def hessenberg(a: ArrayLike) -> tuple[Any, Any]:
    """Reduce square matrices to Hessenberg form by reflections.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        float32, float64, complex64 or complex128.

    Returns
    -------
    h : Array, shape (..., n, n)
        The form, and below its first subdiagonal the vectors of the reflections, without their ones.
    taus : Array, shape (..., n - 1)

    Raises
    ------
    NoRuleError
        When differentiated.

    Notes
    -----
    LAPACK's gehrd. `functrans.scipy.linalg.hessenberg` returns the form and the orthogonal factor.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans import lax
    >>> h, taus = lax.linalg.hessenberg(fnp.asarray([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0], [4.0, 5.0, 6.0]]))
    >>> fnp.round(h[1, 0], 12), taus.shape
    (Array(-5.), (2,))
    """
    (x,) = operands("linalg.hessenberg", a)
    ops.hessenberg_p.abstract(aval_of(x), on_error="raise")
    form, taus = ops.hessenberg_p.bind(x, on_error=config.linalg_errors)
    return finish(form), finish(taus)


@checked
def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Any, Any, Any, Any]:
    """Reduce symmetric or Hermitian matrices to tridiagonal form by reflections.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        float32, float64, complex64 or complex128.
    lower : bool
        Which triangle is read.

    Returns
    -------
    form : Array, shape (..., n, n)
        In the triangle that is read: the tridiagonal form, and the vectors of the reflections.
    d : Array, shape (..., n)
        Its diagonal; real.
    e : Array, shape (..., n - 1)
        The diagonal next to it; real.
    taus : Array, shape (..., n - 1)

    Raises
    ------
    NoRuleError
        When differentiated.

    Notes
    -----
    LAPACK's sytrd and hetrd.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans import lax
    >>> _, d, e, _ = lax.linalg.tridiagonal(fnp.asarray([[2.0, 1.0], [1.0, 3.0]]))
    >>> d, e
    (Array([2., 3.]), Array([1.]))
    """
    (x,) = operands("linalg.tridiagonal", a)
    ops.tridiagonal_p.abstract(aval_of(x), lower=lower, on_error="raise")
    outs = ops.tridiagonal_p.bind(x, lower=lower, on_error=config.linalg_errors)
    return finish(outs[0]), finish(outs[1]), finish(outs[2]), finish(outs[3])


@checked
def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> Any:
    """Schur decomposition ``x = z @ t @ z.T.conj()`` of square matrices.

    Parameters
    ----------
    x : array_like, shape (..., n, n)
        float32, float64, complex64 or complex128.
    compute_schur_vectors : bool
        Whether to return `z`.
    sort_eig_vals : bool
        Whether to move the eigenvalues to the front for which `select_callable` is true.
    select_callable : callable, optional
        Of an eigenvalue; for real matrices, of its real and its imaginary part.

    Returns
    -------
    t : Array, shape (..., n, n)
        Upper triangular; for real matrices with 2 x 2 blocks on the diagonal.
    z : Array, shape (..., n, n)
        Orthonormal columns. Only if `compute_schur_vectors`.

    Raises
    ------
    NoRuleError
        When differentiated.
    LinAlgError
        If the iteration does not converge, or `x` has NaN or infinite elements (NaN instead under
        ``config.patch(linalg_errors="nan")``).

    Notes
    -----
    LAPACK's gees.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans import lax
    >>> t, z = lax.linalg.schur(fnp.asarray([[2.0, 1.0], [1.0, 2.0]]))
    >>> fnp.round(fnp.diagonal(t), 12)
    Array([3., 1.])
    """
    (a,) = operands("linalg.schur", x)
    if sort_eig_vals and select_callable is None:
        raise ArgumentError("linalg.schur: sort_eig_vals needs select_callable, which tells which come first")
    params = {"output": "real", "sort": select_callable if sort_eig_vals else None}
    ops.schur_p.abstract(aval_of(a), on_error="raise", **params)
    form, vectors, _ = ops.schur_p.bind(a, on_error=config.linalg_errors, **params)
    return (finish(form), finish(vectors)) if compute_schur_vectors else finish(form)


@checked
def tridiagonal_solve(
    dl: Any, d: ArrayLike, du: Any, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Solve tridiagonal systems of equations.

    Parameters
    ----------
    dl : array_like, shape (..., n)
        The lower diagonal: ``dl[i] = a[i, i - 1]``. Its first element is not read.
    d : array_like, shape (..., n)
        The diagonal.
    du : array_like, shape (..., n)
        The upper diagonal: ``du[i] = a[i, i + 1]``. Its last element is not read.
    b : array_like, shape (..., n, k)
        All have one dtype.
    perturb_singular : bool
        Whether to add a number of the size of rounding errors to the diagonal of singular matrices, so that the
        solution is large, but finite. Systems are solved twice then.

    Returns
    -------
    Array, shape (..., n, k)
        NaN or infinite for a singular matrix.

    Notes
    -----
    Elimination with partial pivoting, as LAPACK's gtsv. Differentiable in all arguments; derivatives solve once more.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans import lax
    >>> ones = fnp.ones(3)
    >>> lax.linalg.tridiagonal_solve(-ones, 2.0 * ones, -ones, fnp.asarray([[1.0], [0.0], [1.0]]))
    Array([[1.],
           [1.],
           [1.]])
    """
    given = [operands("linalg.tridiagonal_solve", x)[0] for x in (dl, d, du, b)]
    ops.tridiagonal_solve_p.abstract(*map(aval_of, given))
    if perturb_singular and shape_of(given[1])[-1]:
        given[1] = _regularized(*given)
    return finish(ops.tridiagonal_solve_p.bind(*given))


def _regularized(dl: Any, d: ArrayLike, du: Any, b: Value) -> Value:
    """The diagonal; that of a singular matrix moved by about one rounding error of the largest element."""
    axis = len(shape_of(d)) - 1
    dl, at, du, b = [ops.stop_gradient_p.bind(x) for x in (dl, d, du, b)]
    sizes = [ops.reduce_max_p.bind(ops.abs_p.bind(x), axes=(axis,)) for x in (dl, at, du)]
    largest = ops.max_p.bind(ops.max_p.bind(sizes[0], sizes[1]), sizes[2])
    real = dtype_of(largest)
    one = ops.broadcast_to(real.type(1), shape_of(largest))
    largest = ops.select_p.bind(ops.eq_p.bind(largest, real.type(0)), one, largest)
    finite = ops.is_finite_p.bind(ops.tridiagonal_solve_p.bind(dl, at, du, b))
    regular = ops.reduce_and_p.bind(finite, axes=(axis, axis + 1))
    none = ops.broadcast_to(real.type(0), shape_of(largest))
    step = ops.select_p.bind(regular, none, ops.mul_p.bind(largest, real.type(np.finfo(real).eps)))
    return ops.add_p.bind(d, ops.cast(ops.broadcast_to(ops.as_column(step), shape_of(d)), dtype_of(d)))


@checked
def ormqr(a: ArrayLike, taus: Any, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """Multiply matrices by the orthogonal factor of a QR factorization, stored as reflections.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        Column `i` holds, below its diagonal, the vector of reflection `i` after its first element, which is one.
    taus : array_like, shape (..., k)
        k <= n <= m.
    c : array_like, shape (..., m, p), or (..., p, m) if not `left`
    left : bool
        Whether to compute ``q @ c`` instead of ``c @ q``.
    transpose : bool
        Whether to multiply by the conjugate transpose of `q`.

    Returns
    -------
    Array
        With the shape of `c`.

    Notes
    -----
    By the compact form ``q = I - v @ t @ v.T.conj()``, products of matrices, and differentiable.

    References
    ----------
    R. Schreiber, C. Van Loan: A storage-efficient WY representation for products of Householder transformations.
    SIAM J. Sci. Stat. Comput. 10, 1989.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import lax
    >>> h, taus = np.linalg.qr([[3.0], [4.0]], mode="raw")
    >>> lax.linalg.ormqr(h.T, taus, np.array([[5.0], [0.0]]))
    Array([[-3.],
           [-4.]])
    """
    x, scales, y = (operands("linalg.ormqr", v)[0] for v in (a, taus, c))
    shape, count, other = shape_of(x), shape_of(scales)[-1:], shape_of(y)
    if (
        len(shape) < 2
        or len(other) != len(shape)
        or not count <= shape[-1:] <= shape[-2:-1]
        or shape[:-2] != shape_of(scales)[:-1]
        or other[:-2] != shape[:-2]
        or other[-2 if left else -1] != shape[-2]
    ):
        raise LinAlgError(
            "linalg.ormqr: expected a (..., m, n), taus (..., k) and c (..., m, p), or (..., p, m) on the right, with "
            f"k <= n <= m, got {shape}, {shape_of(scales)} and {other}"
        )
    if not dtype_of(x) == dtype_of(scales) == dtype_of(y) or not is_inexact(dtype_of(x)):
        raise DtypeError(
            f"linalg.ormqr: a, taus and c need one float or complex dtype, got {dtype_of(x)}, {dtype_of(scales)}, "
            f"{dtype_of(y)}"
        )
    v, t = ops.compact(ops.columns_of(x, 0, count[0]), scales)
    t = ops.adjoint(t) if transpose else t
    if left:
        moved = ops.matrix_product(v, ops.matrix_product(t, ops.matrix_product(ops.adjoint(v), y)))
    else:
        moved = ops.matrix_product(ops.matrix_product(ops.matrix_product(y, v), t), ops.adjoint(v))
    return finish(ops.sub_p.bind(y, moved))


@checked
def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: ArrayLike = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Polar decomposition ``x = u @ h``, under the name of an algorithm for it.

    Parameters
    ----------
    x : array_like, shape (m, n)
        m >= n.
    is_hermitian : bool
        Accepted for JAX, as are `max_iterations` and `eps`.
    dynamic_shape : None

    Returns
    -------
    u : Array, shape (m, n)
        Orthonormal columns.
    h : Array, shape (n, n)
        Positive semi-definite.
    num_iters : Array, int64
        0: the decomposition is computed from the singular value decomposition, which does not iterate on `u`.
    is_converged : Array, bool
        True.

    Notes
    -----
    See `functrans.scipy.linalg.polar`, also for derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import lax
    >>> u, h, _, _ = lax.linalg.qdwh(np.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> h.round(12)
    Array([[3., 0.],
           [0., 2.]])
    """
    (a,) = operands("linalg.qdwh", x)
    shape = shape_of(a)
    if len(shape) != 2 or shape[0] < shape[1]:
        raise LinAlgError(
            f"linalg.qdwh: expected a matrix with at least as many rows as columns, got shape {shape}"
        )
    if dynamic_shape is not None:
        raise ArgumentError("linalg.qdwh: dynamic_shape must be None: shapes are known while tracing")
    u = ops.polar_p.bind(a, on_error=config.linalg_errors)
    h = ops.matrix_product(ops.adjoint(u), a)
    h = ops.mul_p.bind(dtype_of(h).type(0.5), ops.add_p.bind(h, ops.adjoint(h)))
    return finish(u), finish(h), finish(INT64.type(0)), finish(np.bool_(True))
