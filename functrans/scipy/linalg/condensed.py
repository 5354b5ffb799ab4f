"""Schur and Hessenberg forms, products with orthogonal factors, tridiagonal eigenproblems, under SciPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.arguments import one_of
from ...arrays.array import Array
from ...core import ArgumentError, ArgumentValueError, Aval, LinAlgError, aval_of, concrete
from ...core.values import ArrayLike, PyTree, Value
from ...frontend.checked import checked
from ...lax.linalg import qr as lax_qr
from ...numpy.indexing.nonzero import need_size
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, shape_of
from ...runtime.config import config
from .arguments import inexact

_SORTS = ("lhp", "rhp", "iuc", "ouc")


@checked
def schur(
    a: ArrayLike,
    output: str = "real",
    lwork: int | None = None,
    overwrite_a: bool = False,
    sort: Any = None,
    check_finite: bool = True,
) -> Any:
    """Schur decomposition ``a = z @ t @ z.T.conj()`` of square matrices.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    output : {'real', 'complex'}
        Whether `t` of a real matrix is real, with 2 x 2 blocks on the diagonal, or complex and triangular.
    lwork : None
        Accepted, without effect.
    sort : {'lhp', 'rhp', 'iuc', 'ouc'} or callable, optional
        Which eigenvalues come first: those in the left or right half-plane, inside or outside the unit circle, or those
        for which the function is true.
    check_finite : bool
        Whether to raise for NaN and infinities.

    Returns
    -------
    t : Array, shape (..., n, n)
    z : Array, shape (..., n, n)
        Orthonormal columns.
    sdim : Array, int64, shape (...)
        The number of eigenvalues that `sort` moved to the front. Only with `sort`.

    Raises
    ------
    NoRuleError
        When differentiated: the vectors that LAPACK chooses are not a smooth function of the matrix. (JAX has no rule,
        either.)
    LinAlgError
        If the iteration does not converge (NaN instead under ``config.patch(linalg_errors="nan")``), or a matrix is not
        square.

    Notes
    -----
    Compiled to a host call of SciPy, which calls LAPACK's gees.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.scipy.linalg import schur
    >>> t, z = schur([[2.0, 1.0], [1.0, 2.0]])
    >>> fnp.round(fnp.diagonal(t), 12)
    Array([3., 1.])
    """
    if output in ("r", "c"):
        output = {"r": "real", "c": "complex"}[output]
    one_of(output, ("real", "complex"), "schur: output")
    if sort is not None and not callable(sort):
        one_of(sort, _SORTS, "schur: sort")
    (x,) = inexact("schur", check_finite, a)
    params = {"output": output, "sort": sort}
    ops.schur_p.abstract(aval_of(x), on_error="raise", **params)
    form, vectors, count = ops.schur_p.bind(x, on_error=config.linalg_errors, **params)
    results = finish(form), finish(vectors)
    return results if sort is None else (*results, finish(count))


@checked
def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """Convert a real Schur form to a complex one.

    Parameters
    ----------
    T, Z : array_like, shape (..., n, n)
        The real form and its vectors, from `schur`.
    check_finite : bool
        Whether to raise for NaN and infinities.

    Returns
    -------
    T, Z : Array, shape (..., n, n)
        Complex; T is upper triangular.

    Raises
    ------
    NoRuleError
        When differentiated.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.scipy.linalg import rsf2csf, schur
    >>> t, z = rsf2csf(*schur([[0.0, -2.0], [2.0, 0.0]]))
    >>> fnp.round(fnp.diagonal(t), 12)
    Array([0.+2.j, 0.-2.j])
    """
    t, z = inexact("rsf2csf", check_finite, T, Z)
    for x in (t, z):
        ops.check_square("rsf2csf", x)
    shape = ops.broadcast_shapes("rsf2csf", shape_of(t), shape_of(z))
    t, z = ops.broadcast_to(t, shape), ops.broadcast_to(z, shape)
    form, vectors = ops.complex_schur_p.bind(t, z, on_error=config.linalg_errors)
    return finish(form), finish(vectors)


@checked
def hessenberg(
    a: ArrayLike, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> PyTree:
    """Hessenberg form of square matrices: ``a = q @ h @ q.T.conj()``, `h` with zeros below the first subdiagonal.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    calc_q : bool
        Whether to return `q`.
    check_finite : bool
        Whether to raise for NaN and infinities.

    Returns
    -------
    h : Array, shape (..., n, n)
    q : Array, shape (..., n, n)
        Orthonormal columns. Only if `calc_q`.

    Raises
    ------
    NoRuleError
        When differentiated.
    LinAlgError
        If a matrix is not square.

    Notes
    -----
    Compiled to a host call of LAPACK's gehrd.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.scipy.linalg import hessenberg
    >>> h = hessenberg([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0], [4.0, 5.0, 6.0]])
    >>> fnp.round(h[:, 0], 12)
    Array([ 1., -5.,  0.])
    """
    (x,) = inexact("hessenberg", check_finite, a)
    ops.check_square("hessenberg", x)
    *batch, n, _ = shape_of(x)
    if n < 3:  # it has this form already
        unit = ops.broadcast_to(ops.eye(n, n, 0, dtype_of(x)), (*batch, n, n))
        return (finish(x), finish(unit)) if calc_q else finish(x)
    form, taus = ops.hessenberg_p.bind(x, on_error=config.linalg_errors)
    rank = len(batch) + 2
    main = ops.triangle(form, lower=False)
    below = ops.select_p.bind(np.eye(n, k=-1, dtype=bool), form, dtype_of(x).type(0))
    h = finish(ops.add_p.bind(main, below))
    if not calc_q:
        return h
    inner = ops.householder_product(ops.columns_of(ops.rows_of(form, 1, n), 0, n - 1), taus)
    top = ops.zeros(Aval((*batch, 1, n - 1), dtype_of(x)))
    first = ops.broadcast_to(ops.eye(n, 1, 0, dtype_of(x)), (*batch, n, 1))
    rest = ops.concatenate_p.bind(top, inner, dimension=rank - 2)
    return h, finish(ops.concatenate_p.bind(first, rest, dimension=rank - 1))


@checked
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Any, ...]:
    """QR factorization, and the product of the orthogonal factor with a matrix.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    c : array_like, shape (..., k, p) on the left, (..., p, m) on the right, or a vector
        k is min(m, n).
    mode : {'left', 'right'}
        Whether to compute ``q @ c`` or ``c @ q``, where `q` has k columns.
    pivoting : bool
        Whether to order the columns of `a` so that the diagonal of `r` decreases.
    conjugate : bool
        Whether to multiply by the complex conjugate of `q`.

    Returns
    -------
    product : Array
        With one axis if `c` has one.
    r : Array, shape (..., k, n)
    p : Array, int32, shape (..., n)
        The order of the columns. Only if `pivoting`.

    Raises
    ------
    LinAlgError
        If shapes do not match.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.scipy.linalg import qr_multiply
    >>> product, r = qr_multiply([[3.0], [4.0]], [5.0, 0.0])
    >>> fnp.round(product, 12), fnp.round(r, 12)
    (Array([-3.]), Array([[-5.]]))
    """
    one_of(mode, ("left", "right"), "qr_multiply: mode")
    x, y = inexact("qr_multiply", True, a, c)
    ops.check_matrix("qr_multiply", x)
    vector = len(shape_of(y)) == 1
    if vector:
        y = (ops.as_column if mode == "left" else ops.as_row)(y)
    m, n = shape_of(x)[-2:]
    expected = min(m, n) if mode == "left" else m
    if len(shape_of(y)) < 2 or shape_of(y)[-2 if mode == "left" else -1] != expected:
        raise LinAlgError(
            f"qr_multiply: c has shape {shape_of(y)}, which does not match q of shape {(m, min(m, n))} on the {mode}"
        )
    batch = ops.broadcast_shapes("qr_multiply", shape_of(x)[:-2], shape_of(y)[:-2])
    q, r, *order = lax_qr(ops.broadcast_to(x, (*batch, m, n)), pivoting=pivoting, full_matrices=False)
    q = ops.conj_p.bind(q) if conjugate and dtype_of(q).kind == "c" else q
    y = ops.broadcast_to(y, (*batch, *shape_of(y)[-2:]))
    out = ops.matrix_product(q, y) if mode == "left" else ops.matrix_product(y, q)
    if vector:
        flat = shape_of(out)
        out = ops.reshape_p.bind(out, shape=(*flat[:-2], flat[-2] * flat[-1]))
    return (finish(out), r, *order)


# --- tridiagonal --------------------------------------------------------------------------------------------


@checked
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: ArrayLike = None,
    check_finite: bool = True,
    tol: float | None = 0.0,
    lapack_driver: str = "auto",
    *,
    key: ArrayLike = None,
) -> Any:
    """Eigenvalues and eigenvectors of real symmetric tridiagonal matrices.

    Parameters
    ----------
    d : array_like, shape (..., n)
        The diagonal.
    e : array_like, shape (..., n - 1)
        The diagonal next to it.
    eigvals_only : bool
        Whether to return only eigenvalues.
    select : {'a', 'i', 'v'}
        All, those with the indices in `select_range`, or those with the values in it. The last needs known numbers.
    select_range : pair, optional
        The first and the last index, which is included; or the ends of a half-open interval (low, high] of values.
    check_finite : bool
        Whether to raise for NaN and infinities.
    tol, lapack_driver, key
        Accepted for SciPy and JAX, without effect.

    Returns
    -------
    w : Array, shape (..., m)
        Ascending.
    v : Array, shape (..., n, m)
        Orthonormal columns. Only unless `eigvals_only`.

    Raises
    ------
    ShapeError, DtypeError, ArgumentValueError
        If shapes, dtypes or `select_range` do not fit.
    LinAlgError
        If the iteration does not converge (NaN instead under ``config.patch(linalg_errors="nan")``).

    Notes
    -----
    For derivatives see `functrans.numpy.linalg.eigh`. Compiled to a host call of SciPy.

    Examples
    --------
    >>> from functrans.scipy.linalg import eigh_tridiagonal
    >>> eigh_tridiagonal([2.0, 2.0], [1.0], eigvals_only=True)
    Array([1., 3.])
    """
    one_of(select, ("a", "i", "v", "all", "index", "value"), "eigh_tridiagonal: select")
    one_of(
        lapack_driver, ("auto", "stemr", "stebz", "sterf", "stev", "stevd"), "eigh_tridiagonal: lapack_driver"
    )
    main, beside = inexact("eigh_tridiagonal", check_finite, d, e)
    batch = ops.broadcast_shapes("eigh_tridiagonal", shape_of(main)[:-1], shape_of(beside)[:-1])
    main, beside = (ops.broadcast_to(x, (*batch, *shape_of(x)[-1:])) for x in (main, beside))
    params = {"vectors": not eigvals_only, "on_error": config.linalg_errors}
    ops.eigh_tridiagonal_p.abstract(aval_of(main), aval_of(beside), **params)
    outs = ops.eigh_tridiagonal_p.bind(main, beside, **params)
    first, stop = _selected(outs[0], select[0], select_range)
    w, *v = [finish(ops.slice_along(y, len(shape_of(y)) - 1, first, stop)) for y in outs]
    return w if eigvals_only else (w, v[0])


def _selected(w: Value, select: str, given: ArrayLike) -> tuple[int, int]:
    """The first eigenvalue, and the one after the last."""
    count = shape_of(w)[-1]
    if select == "a":
        return 0, count
    try:
        low, high = given
    except (TypeError, ValueError):
        raise ArgumentError(
            f"eigh_tridiagonal: select_range must be a pair of numbers, got {given!r}"
        ) from None
    if select == "i":
        try:
            first, last = (np.asarray(x).__index__() for x in (low, high))
        except TypeError:
            raise ArgumentError(
                f"eigh_tridiagonal: select_range must be a pair of integers, got {given!r}"
            ) from None
        if not 0 <= first <= last < count:
            raise ArgumentValueError(
                f"eigh_tridiagonal: select_range={given!r} is not a range of indices from 0 to {count - 1}"
            )
        return first, last + 1
    known = concrete(w)
    if known is None:
        need_size("eigh_tridiagonal with select='v'", w, "select='i'")
    if np.ndim(known) != 1:
        raise ArgumentValueError(
            "eigh_tridiagonal: select='v' takes one matrix: batches differ in their counts"
        )
    inside = np.flatnonzero((known > low) & (known <= high))
    return (int(inside[0]), int(inside[-1]) + 1) if inside.size else (0, 0)


@checked
def eigvalsh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    select: str = "a",
    select_range: ArrayLike = None,
    check_finite: bool = True,
    tol: float | None = 0.0,
    lapack_driver: str = "auto",
) -> Array:
    """Eigenvalues of real symmetric tridiagonal matrices; see `eigh_tridiagonal`.

    Parameters
    ----------
    d : array_like, shape (..., n)
    e : array_like, shape (..., n - 1)
    select, select_range, check_finite, tol, lapack_driver
        As in `eigh_tridiagonal`.

    Returns
    -------
    Array, shape (..., m)

    Examples
    --------
    >>> from functrans.scipy.linalg import eigvalsh_tridiagonal
    >>> eigvalsh_tridiagonal([2.0, 2.0], [1.0])
    Array([1., 3.])
    """
    return eigh_tridiagonal(
        d, e, True, select, select_range, check_finite=check_finite, tol=tol, lapack_driver=lapack_driver
    )
