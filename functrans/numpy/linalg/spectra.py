"""Eigenvalues and singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core.values import ArrayLike, Value
from ...errors import ArgumentValueError
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, shape_of
from ...runtime.config import config
from ...runtime.records import NamedTuple
from ..dispatch import implements
from .norms import inexact


class EigResult(NamedTuple):
    """Eigenvalues, shape (..., n), and eigenvectors in columns, shape (..., n, n), of `eig`."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """Eigenvalues, shape (..., n), and eigenvectors in columns, shape (..., n, n), of `eigh`."""

    eigenvalues: Any
    eigenvectors: Any


class SVDResult(NamedTuple):
    """The factors of `svd`: ``U @ diag(S) @ Vh``."""

    U: Any
    S: Any
    Vh: Any


# --- symmetric and Hermitian matrices -----------------------------------------------------------------------


def _is_lower(name: str, uplo: str) -> bool:
    lower = {"L": True, "U": False}.get(uplo.upper() if isinstance(uplo, str) else uplo)
    if lower is None:
        raise ArgumentValueError(f"{name}: UPLO must be 'L' or 'U', got {uplo!r}")
    return lower


def _hermitian(
    name: str, a: Value, uplo: str, vectors: bool, symmetrize_input: bool = False
) -> tuple[Any, ...]:
    lower = _is_lower(name, uplo)
    x = inexact(a, name)
    ops.check_square(name, x)
    x = ops.symmetrized(x) if symmetrize_input else x
    return ops.eigh_p.bind(x, lower=lower, vectors=vectors, on_error=config.linalg_errors)


@implements(np.linalg.eigh)
def eigh(a: ArrayLike, UPLO: str = "L", symmetrize_input: bool = False) -> EighResult:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    UPLO : {'L', 'U'}
        Whether to read the lower or the upper triangle. Of the diagonal of a complex matrix, only the real part is
        read.
    symmetrize_input : bool
        Whether to decompose ``(a + a.T.conj()) / 2``, so that the gradient is symmetric.

    Returns
    -------
    eigenvalues : Array, shape (..., n)
        Real, in ascending order.
    eigenvectors : Array, shape (..., n, n)
        Orthonormal columns: ``a @ v[:, i] = w[i] * v[:, i]``.

    Raises
    ------
    LinAlgError
        If the iteration does not converge, as for matrices with NaN (NaN instead under
        ``config.patch(linalg_errors="nan")``), or a matrix is not square.

    Notes
    -----
    Derivatives are those of the function of the triangle that is read: the gradient in `a` is zero in the other
    triangle. If you symmetrize `a` first, gradients in its inputs are the usual ones.

    With ``V^H A' V = X`` they are ``w' = diag(X)`` and ``V' = V (F * X)``, ``F[i, j] = 1 / (w[j] - w[i])`` [1]_.
    Eigenvectors are determined only up to sign or, for complex matrices, phase, which is taken as constant
    (``diag(V^H V') = 0``): differentiate functions that do not depend on it.

    For equal eigenvalues (closer than ``n * eps * max |w|``), only the space of their eigenvectors is determined: the
    tangents of these eigenvectors are NaN, and so is the gradient of any function of `V`. (Omitting the terms would
    yield finite numbers that are wrong for ``V @ diag(g(w)) @ V.T``.) Functions of the eigenvalues alone have
    derivatives, which are correct for symmetric functions of equal ones, such as their sum; their second derivatives
    are NaN. For close but unequal eigenvalues, derivatives are correct, and as large as ``1 / (w[j] - w[i])``.

    For the gradient of some eigenvectors while others belong to equal eigenvalues (the principal axes of few points),
    use `functrans.scipy.linalg.eigh` with `subset_by_index`.

    Kernels call LAPACK's syevd and heevd, in double precision as NumPy does.

    References
    ----------
    .. [1] M. Giles, An extended collection of matrix derivative results for forward and reverse mode algorithmic
       differentiation, 2008.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> w, v = fnp.linalg.eigh([[2.0, 1.0], [1.0, 2.0]])
    >>> w
    Array([1., 3.])
    >>> fnp.allclose(v @ fnp.diag(w) @ v.T, [[2.0, 1.0], [1.0, 2.0]])
    Array(True)
    """
    return EighResult(*map(finish, _hermitian("eigh", a, UPLO, True, symmetrize_input)))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: ArrayLike, UPLO: str = "L", *, symmetrize_input: bool = False) -> Array:
    """Eigenvalues of symmetric or Hermitian matrices, in ascending order; cheaper than `eigh`.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    UPLO : {'L', 'U'}
        Whether to read the lower or the upper triangle.
    symmetrize_input : bool
        See `eigh`.

    Returns
    -------
    Array, shape (..., n)

    Raises
    ------
    LinAlgError
        See `eigh`.

    Notes
    -----
    The derivative needs eigenvectors, and so costs as much as `eigh`; at equal eigenvalues it is correct for symmetric
    functions of them.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> fnp.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]])
    Array([1., 3.])
    >>> ft.grad(lambda a: fnp.linalg.eigvalsh(a)[-1])(fnp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    Array([[1., 0.],
           [0., 0.]])
    """
    return finish(_hermitian("eigvalsh", a, UPLO, False, symmetrize_input)[0])


# --- matrices of any kind -----------------------------------------------------------------------------------


@implements(np.linalg.eig)
def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and right eigenvectors of square matrices.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    eigenvalues : Array, shape (..., n)
        **Always complex** (NumPy's are real if all imaginary parts are zero, which depends on values). In LAPACK's
        order; conjugate pairs of a real matrix are adjacent.
    eigenvectors : Array, shape (..., n, n)
        In columns with 2-norm 1, whose largest element is real.

    Raises
    ------
    LinAlgError
        If the iteration does not converge, or `a` has NaN or infinite elements (NaN instead under
        ``config.patch(linalg_errors="nan")``), or is not square.

    Notes
    -----
    With ``V^-1 A' V = X`` the derivatives are ``w' = diag(X)`` and ``V' = V (F * X + D)``,
    ``F[i, j] = 1 / (w[j] - w[i])`` [1]_, with the diagonal matrix `D` that preserves the normalization. At equal
    eigenvalues `F` is NaN, as in `eigh`. A matrix that is not diagonalizable has no derivative: it is NaN, or very
    large if rounding makes the matrix diagonalizable.

    Runs as a host call to LAPACK's geev between kernels.

    References
    ----------
    .. [1] M. Giles, An extended collection of matrix derivative results for forward and reverse mode algorithmic
       differentiation, 2008.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.eig([[0.0, 1.0], [-1.0, 0.0]]).eigenvalues
    Array([0.+1.j, 0.-1.j])
    """
    x = inexact(a, "eig")
    ops.check_square("eig", x)
    return EigResult(*map(finish, ops.eig_p.bind(x, vectors=True, on_error=config.linalg_errors)))


@implements(np.linalg.eigvals)
def eigvals(a: ArrayLike) -> Array:
    """Eigenvalues of square matrices; **always complex**. See `eig`.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    Array, shape (..., n)

    Raises
    ------
    LinAlgError
        See `eig`.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> fnp.linalg.eigvals([[2.0, 1.0], [0.0, 3.0]])
    Array([2.+0.j, 3.+0.j])
    >>> ft.grad(lambda a: fnp.linalg.eigvals(a)[0].real)(fnp.asarray([[2.0, 1.0], [0.0, 3.0]]))
    Array([[ 1.,  0.],
           [-1.,  0.]])
    """
    x = inexact(a, "eigvals")
    ops.check_square("eigvals", x)
    return finish(ops.eig_p.bind(x, vectors=False, on_error=config.linalg_errors)[0])


# --- singular values ----------------------------------------------------------------------------------------


def singular_values(x: Value, hermitian: bool = False) -> Value:
    """The singular values of matrices; in the order of eigenvalues, if `hermitian`."""
    if hermitian:
        return ops.abs_p.bind(ops.eigh_p.bind(x, lower=True, vectors=False, on_error=config.linalg_errors)[0])
    return ops.svd_p.bind(x, full_matrices=False, vectors=False, on_error=config.linalg_errors)[0]


def _descending(s: Value) -> Value:
    """Indices of the elements along the last axis, from the largest to the smallest."""
    axis = len(shape_of(s)) - 1
    return ops.rev_p.bind(ops.argsort(s, axis), dimensions=(axis,))


def _taken(x: Value, places: ArrayLike) -> Value:
    """Take the elements, or the columns of matrices, at the indices."""
    shape = shape_of(x)
    index = places if len(shape_of(places)) == len(shape) else ops.broadcast_to(ops.as_row(places), shape)
    return ops.take_along(x, index, len(shape) - 1)


def thin_hermitian_svd(x: Value) -> tuple[Value, Value, Value]:
    """The factors of symmetric (Hermitian) matrices, by eigenvalues; only the lower triangle is read."""
    w, v = ops.eigh_p.bind(x, lower=True, vectors=True, on_error=config.linalg_errors)
    order = _descending(ops.abs_p.bind(w))
    w = _taken(w, order)
    u = _taken(v, order)
    sign = ops.copysign_p.bind(dtype_of(w).type(1), ops.stop_gradient_p.bind(w))
    vh = ops.matrix_transpose(ops.mul_p.bind(u, ops.cast(ops.as_row(sign), dtype_of(u))), conjugate=True)
    return u, ops.abs_p.bind(w), vh


@implements(np.linalg.svd)
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Singular value decomposition: ``a = (U * S) @ Vh`` with orthonormal columns of `U` and rows of `Vh`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    full_matrices : bool
        Whether to make `U` and `Vh` square; else they have ``k = min(m, n)`` columns and rows.
    compute_uv : bool
        Whether to compute `U` and `Vh`, or only the singular values, which is cheaper.
    hermitian : bool
        Whether `a` is symmetric (Hermitian), so that its lower triangle is read, and eigenvalues are used.
    subset_by_index : pair of int, optional
        Return only the singular values from the first index up to but not including the second, and their vectors.

    Returns
    -------
    U : Array, shape (..., m, m) or (..., m, k)
    S : Array, shape (..., k)
        Real, in descending order.
    Vh : Array, shape (..., n, n) or (..., k, n)
        A named tuple of the three, or only `S` if not `compute_uv`.

    Raises
    ------
    LinAlgError
        If the iteration does not converge, as for matrices with NaN (NaN instead under
        ``config.patch(linalg_errors="nan")``), or `a` has fewer than two axes.

    Notes
    -----
    With ``X = U^H A' V``, and H and K its Hermitian and skew parts: ``S' = diag(H)``, and the factors
    rotate by ``H / (s[j] - s[i]) ± K / (s[j] + s[i])`` within their span (+ for U, - for V) and by the part of
    ``A' V / s`` outside it [1]_ [2]_. The phases of complex factors, and the columns of a full factor beyond the thin
    one, are not determined: their rotation is the smallest possible. Differentiate functions that do not depend on
    them.

    Quotients by numbers that are zero up to rounding (``max(m, n) * eps * max(s)``) are NaN: the tangents of singular
    vectors of equal singular values, and of several zero ones. Functions of the singular values alone have derivatives,
    which are correct for symmetric functions of equal ones, such as their sum (at zero ones, the nuclear norm has many
    subgradients, of which this is one); their second derivatives are NaN. Use `functrans.scipy.linalg.polar` for
    ``U @ Vh``, which has a derivative there, and `pinv` for the pseudo-inverse.

    Kernels call LAPACK's gesdd, in double precision as NumPy does.

    References
    ----------
    .. [1] J. Townsend, Differentiating the singular value decomposition, 2016.
    .. [2] M. Seeger, A. Hetzel, Z. Dai, E. Meissner, N. Lawrence, Auto-differentiating linear algebra, 2017.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> a = fnp.asarray([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    >>> u, s, vh = fnp.linalg.svd(a, full_matrices=False)
    >>> s
    Array([4., 3.])
    >>> fnp.allclose((u * s) @ vh, a)
    Array(True)
    """
    if subset_by_index is not None:
        return _part_of_svd(a, compute_uv, hermitian, subset_by_index)
    x = inexact(a, "svd")
    if hermitian:
        ops.check_square("svd", x)
        if compute_uv:
            return SVDResult(*map(finish, thin_hermitian_svd(x)))
        s = singular_values(x, True)
        return finish(_taken(s, _descending(s)))
    ops.check_matrix("svd", x)
    if not compute_uv:
        return finish(singular_values(x))
    outs = ops.svd_p.bind(x, full_matrices=bool(full_matrices), vectors=True, on_error=config.linalg_errors)
    return SVDResult(*map(finish, outs))


def _part_of_svd(a: ArrayLike, compute_uv: bool, hermitian: bool, subset: tuple[int, int]) -> Any:
    out = svd(a, False, compute_uv, hermitian)
    s = out.S if compute_uv else out
    first, last = subset
    if not 0 <= first <= last <= s.shape[-1]:
        raise ArgumentValueError(f"svd: subset_by_index must be within 0 and {s.shape[-1]}, got {subset}")
    chosen = slice(first, last)
    if not compute_uv:
        return s[..., chosen]
    return SVDResult(out.U[..., chosen], s[..., chosen], out.Vh[..., chosen, :])


@implements(np.linalg.svdvals)
def svdvals(x: ArrayLike, /) -> Array:
    """Singular values of matrices, in descending order.

    Parameters
    ----------
    x : array_like, shape (..., m, n)

    Returns
    -------
    Array, shape (..., min(m, n))

    Raises
    ------
    LinAlgError
        See `svd`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]])
    Array([4., 3.])
    """
    return svd(x, compute_uv=False)
