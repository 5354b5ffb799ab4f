"""Exponentials and square roots of matrices, Sylvester's equation, matrices of a structure, under SciPy's names."""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import INT64, Aval, LinAlgError, aval_of, concrete, promote
from ...core.values import ArrayLike, Value
from ...frontend.checked import checked
from ...lax.control_flow.branching import switch
from ...lax.control_flow.loops import map as map_matrices
from ...lax.control_flow.while_loops import fori_loop
from ...primitives import ops
from ...primitives.ops import dtype_of, finish, operand, shape_of, strong
from .arguments import inexact


@checked
def sqrtm(A: ArrayLike) -> Array:
    """The principal square root of matrices: ``root @ root = A``, with eigenvalues of non-negative real part.

    Parameters
    ----------
    A : array_like, shape (..., n, n)

    Returns
    -------
    Array, shape (..., n, n)
        **Always complex**. (SciPy's result is real if all imaginary parts are zero, which depends on the numbers.)
        For a positive semi-definite matrix, take the real part.

    Raises
    ------
    LinAlgError
        If a matrix is not square.

    Warns
    -----
    scipy.linalg.LinAlgWarning
        From SciPy, if a matrix is singular or ill-conditioned, so that its root may be inaccurate.

    Notes
    -----
    The derivative solves ``root @ root' + root' @ root = A'`` [1]_. It is correct at equal eigenvalues, unlike that of
    ``v @ diag(sqrt(w)) @ v.T``. At a singular matrix it is NaN. Compiled to a host call of SciPy.

    References
    ----------
    .. [1] N. Higham, Functions of Matrices, 2008, section 6.1.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans.scipy.linalg import sqrtm
    >>> sqrtm([[4.0, 0.0], [0.0, 9.0]]).real
    Array([[2., 0.],
           [0., 3.]])
    >>> ft.grad(lambda a: fnp.sum(sqrtm(a).real))(fnp.eye(2))
    Array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    (x,) = inexact("sqrtm", False, A)
    ops.check_square("sqrtm", x)
    return finish(ops.sqrtm_p.bind(x))


@checked
def solve_sylvester(a: ArrayLike, b: ArrayLike, q: ArrayLike) -> Array:
    """The solution of Sylvester's equation ``a @ x + x @ b = q``.

    Parameters
    ----------
    a : array_like, shape (..., m, m)
    b : array_like, shape (..., n, n)
    q : array_like, shape (..., m, n)
        Leading axes broadcast.

    Returns
    -------
    Array, shape (..., m, n)

    Raises
    ------
    LinAlgError
        If shapes do not match.
    ShapeError
        If leading axes do not broadcast.

    Notes
    -----
    The solution is unique unless `a` and ``-b`` share an eigenvalue, in which case the result is NaN. Compiled to a
    host call of SciPy, which calls LAPACK's trsyl.

    Examples
    --------
    >>> from functrans.scipy.linalg import solve_sylvester
    >>> solve_sylvester([[1.0]], [[2.0]], [[6.0]])
    Array([[2.]])
    """
    values = inexact("solve_sylvester", False, a, b, q)
    shapes = [shape_of(v) for v in values]
    if any(len(s) < 2 for s in shapes):
        raise LinAlgError(
            f"solve_sylvester: expected three matrices, got shapes {', '.join(map(str, shapes))}"
        )
    (*_, m, _), (*_, n, _) = shapes[:2]
    if [s[-2:] for s in shapes] != [(m, m), (n, n), (m, n)]:
        raise LinAlgError(
            f"solve_sylvester: shapes {', '.join(map(str, shapes))} do not match: `a` and `b` must be "
            "square, with as many rows as `q` has rows and columns respectively"
        )
    batch = ops.broadcast_shapes("solve_sylvester", *[s[:-2] for s in shapes])
    return finish(
        ops.solve_sylvester(*[ops.broadcast_to(v, (*batch, *s[-2:])) for v, s in zip(values, shapes)])
    )


_THETAS = {
    3: 1.495585217958292e-2,
    5: 2.539398330063230e-1,
    7: 9.504178996162932e-1,
    9: 2.097847961257068,
    13: 5.371920351148152,
}
"""Largest 1-norm for which the Pade approximant of a degree is exact in double precision (Higham 2005, table 2.3)."""


@checked
def expm(A: ArrayLike) -> Array:
    """The exponential of square matrices.

    Parameters
    ----------
    A : array_like, shape (..., n, n)

    Returns
    -------
    Array, shape (..., n, n)

    Notes
    -----
    Scaling and squaring around a Pade approximant (Higham 2005, The scaling and squaring method for the matrix
    exponential revisited), with derivatives of all orders through its operations. The 1-norm determines the degree and
    the number of squarings; for a traced matrix, at run time.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.linalg import expm
    >>> expm([[0.0, np.pi], [-np.pi, 0.0]]).round(12)
    Array([[-1.,  0.],
           [-0., -1.]])
    """
    (x,) = inexact("expm", False, A)
    if shape_of(x) in ((), (1,)):  # SciPy treats a number as a matrix of one element
        x = ops.reshape_p.bind(x, shape=(1, 1))
    ops.check_square("expm", x)
    if 0 in shape_of(x):
        return finish(x)
    norm = _norm(x)
    known = concrete(norm)
    if known is None:
        *batch, n, _ = shape_of(x)
        if not batch:
            return finish(_by_norm(x))
        out = map_matrices(_by_norm, ops.reshape_p.bind(x, shape=(math.prod(batch), n, n)))
        return finish(ops.reshape_p.bind(out, shape=(*batch, n, n)))
    steps = _steps(norm)
    largest = np.max(known)
    out = _pade(_scaled(x, steps), next((d for d, theta in _THETAS.items() if not largest > theta), 13))
    most, every = int(np.max(concrete(steps))), np.min(concrete(steps)) == np.max(concrete(steps))
    steps = ops.reshape_p.bind(steps, shape=(*shape_of(steps), 1, 1))
    for i in range(most):
        out = (
            ops.matrix_product(out, out)
            if every
            else _squared(out, ops.gt_p.bind(steps, dtype_of(steps).type(i)))
        )
    return finish(out)


def _norm(x: Value) -> Value:
    """The 1-norms of matrices, for decisions only."""
    rank = len(shape_of(x))
    sums = ops.reduce_sum_p.bind(ops.abs_p.bind(ops.stop_gradient_p.bind(x)), axes=(rank - 2,))
    return ops.reduce_max_p.bind(sums, axes=(rank - 2,))


def _steps(norm: Any) -> Value:
    """How often the exponential of the scaled matrix is squared; never where the norm is infinite or NaN."""
    real = dtype_of(norm)
    excess = ops.max_p.bind(ops.div_p.bind(norm, real.type(_THETAS[13])), real.type(1))
    steps = ops.ceil_p.bind(ops.log2_p.bind(excess))
    return ops.select_p.bind(ops.is_finite_p.bind(steps), steps, real.type(0))


def _scaled(x: Value, steps: Any) -> Value:
    scale = ops.convert_element_type_p.bind(ops.exp2_p.bind(ops.neg_p.bind(steps)), dtype=dtype_of(x))
    return ops.mul_p.bind(x, ops.reshape_p.bind(scale, shape=(*shape_of(scale), 1, 1)))


def _by_norm(x: Value) -> Any:
    """The exponential of one matrix whose norm is known only at run time."""
    norm = _norm(x)
    steps, real = _steps(norm), dtype_of(norm)
    above = [ops.gt_p.bind(norm, real.type(theta)) for theta in list(_THETAS.values())[:-1]]
    which = reduce(ops.add_p.bind, [ops.convert_element_type_p.bind(a, dtype=INT64) for a in above])
    out = switch(which, [partial(_pade, degree=d) for d in _THETAS], _scaled(x, steps))
    count = ops.convert_element_type_p.bind(steps, dtype=INT64)
    return fori_loop(0, count, lambda _, y: ops.matrix_product(y, y), out)


def _squared(x: Value, mask: ArrayLike) -> Value:
    """The square where `wanted`; elsewhere the square of zero, so that values and derivatives do not overflow."""
    mask = ops.broadcast_to(mask, shape_of(x))
    safe = ops.select_p.bind(mask, x, dtype_of(x).type(0))
    return ops.select_p.bind(mask, ops.matrix_product(safe, safe), x)


def _coefficients(degree: int) -> list[float]:
    """Of the numerator of the diagonal Pade approximant, lowest first, the highest one 1."""
    f, m = math.factorial, degree
    return [float(f(2 * m - k) // (f(k) * f(m - k))) for k in range(m + 1)]


def _pade(x: Value, degree: int) -> Value:
    dtype, c = dtype_of(x), _coefficients(degree)
    unit = ops.eye(shape_of(x)[-1], shape_of(x)[-1], 0, dtype)
    two = ops.matrix_product(x, x)
    powers = [unit, two]
    while len(powers) <= min(degree // 2, 4 if degree < 13 else 3):
        powers.append(ops.matrix_product(powers[-1], two))

    def combined(first: int, chosen: list[Any]) -> Value:
        """Every second coefficient from one on, times even powers."""
        terms = [ops.mul_p.bind(dtype.type(c[first + 2 * i]), power) for i, power in enumerate(chosen)]
        return reduce(ops.add_p.bind, terms)

    odd, even = combined(1, powers), combined(0, powers)
    if degree == 13:
        odd = ops.add_p.bind(ops.matrix_product(powers[3], combined(9, powers[1:])), odd)
        even = ops.add_p.bind(ops.matrix_product(powers[3], combined(8, powers[1:])), even)
    odd = ops.matrix_product(x, odd)
    return ops.solve_p.bind(ops.sub_p.bind(even, odd), ops.add_p.bind(even, odd), on_error="nan", name="expm")


@checked
def block_diag(*arrs: ArrayLike) -> Array:
    """A block-diagonal matrix of several matrices.

    Parameters
    ----------
    *arrs : array_like, shape (..., m, n)
        Numbers and vectors count as matrices of one row. Leading axes broadcast.

    Returns
    -------
    Array, shape (..., sum of m, sum of n)

    Examples
    --------
    >>> from functrans.scipy.linalg import block_diag
    >>> block_diag(1.0, [[2.0, 3.0]])
    Array([[1., 0., 0.],
           [0., 2., 3.]])
    """
    values = [operand(x, "block_diag", i) for i, x in enumerate(arrs)] or [np.zeros((1, 0))]
    dtype, _ = promote([(aval_of(v).dtype, False) for v in values])
    blocks = []
    for v in values:
        shape = shape_of(v)
        v = strong(v, dtype)
        blocks.append(v if len(shape) > 1 else ops.reshape_p.bind(v, shape=(1, math.prod(shape))))
    batch = ops.broadcast_shapes("block_diag", *[shape_of(b)[:-2] for b in blocks])
    width = sum(shape_of(b)[-1] for b in blocks)
    rank, rows, before = len(batch) + 2, [], 0
    for b in blocks:
        m, n = shape_of(b)[-2:]
        left, right = (ops.zeros(Aval((*batch, m, w), dtype)) for w in (before, width - before - n))
        rows.append(
            ops.concatenate_p.bind(left, ops.broadcast_to(b, (*batch, m, n)), right, dimension=rank - 1)
        )
        before += n
    return finish(ops.concatenate_p.bind(*rows, dimension=rank - 2))


@checked
def toeplitz(c: ArrayLike, r: ArrayLike = None) -> Array:
    """A matrix with constant diagonals.

    Parameters
    ----------
    c : array_like, shape (..., m)
        The first column.
    r : array_like, shape (..., n), optional
        The first row, whose first element is not read. By default the conjugate of `c`.

    Returns
    -------
    Array, shape (..., m, n)

    Examples
    --------
    >>> from functrans.scipy.linalg import toeplitz
    >>> toeplitz([1, 2, 3], [1, 4, 5, 6])
    Array([[1, 4, 5, 6],
           [2, 1, 4, 5],
           [3, 2, 1, 4]])
    """
    column = operand(c, "toeplitz")
    row = operand(r, "toeplitz", 1) if r is not None else column
    dtype, _ = promote([(aval_of(v).dtype, False) for v in (column, row)])
    column, row = strong(column, dtype), strong(row, dtype)
    if r is None and dtype.kind == "c":
        row = ops.conj_p.bind(row)
    column, row = [ops.reshape_p.bind(v, shape=(1,)) if not shape_of(v) else v for v in (column, row)]
    batch = ops.broadcast_shapes("toeplitz", shape_of(column)[:-1], shape_of(row)[:-1])
    axis, m, n = len(batch), shape_of(column)[-1], shape_of(row)[-1]
    if not m or not n:
        return finish(ops.zeros(Aval((*batch, m, n), dtype)))
    column, row = ops.broadcast_to(column, (*batch, m)), ops.broadcast_to(row, (*batch, n))
    rest = ops.slice_along(row, axis, 1, n)
    values = ops.concatenate_p.bind(ops.rev_p.bind(column, dimensions=(axis,)), rest, dimension=axis)
    places = np.arange(m)[::-1, None] + np.arange(n)
    out = ops.gather_p.bind(values, places, axes=(axis,), mode="promise_in_bounds")
    for _ in range(2):
        out = ops.move_axis(out, 0, axis + 1)
    return finish(out)
