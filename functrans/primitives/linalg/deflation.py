"""The derivative of cofactors, at singular matrices too.

``det(A) A^-T`` has a derivative everywhere, as a polynomial; but formulas with the inverse divide by zero where A is
singular. So A is first taken apart by constants: with ``A0 P = Q R`` (columns pivoted) and ``B = Q^H A P``, the
leading block of B is regular if A lacks at most three of its rank, and what is left is a matrix of at most three rows,
``S = B22 - B21 B11^-1 B12``, whose cofactors are written out. All of it is differentiable once more.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import INT32, real_dtype
from ..elementwise.arithmetic import (
    convert_element_type_p,
    eq_p,
    le_p,
    mul_p,
    ne_p,
    neg_p,
    select_p,
    stop_gradient_p,
    sub_p,
)
from ..elementwise.bits import and_p
from ..elementwise.complexes import abs_p, conj_p
from ..reductions.reduce import reduce_max_p, reduce_prod_p
from ..structure.create import eye, iota
from ..structure.linear import add_p, broadcast_to, dtype_of, reduce_sum_p, reshape_p, shape_of
from ..structure.shape import concatenate_p, rev_p
from .column_order import column_order_p
from .lu import lu_p
from .matrices import adjoint, columns_of, diagonal_of, matrix_product, matrix_transpose, rows_of
from .qr import qr_p
from .solve import solve_p

_REST = 3
"""How much of the rank may be missing."""


def cofactors_slope(a: Any, t: Any) -> Any:
    """The tangent of the cofactors of `a`, at least 2 x 2.

    Right of all orders if at most three of the rank are missing, else of orders up to the second (those of the
    determinant up to the third; they are zero).
    """
    frozen = stop_gradient_p.bind(a)
    order = column_order_p.bind(frozen)
    n = shape_of(a)[-1]
    rows = reshape_p.bind(order, shape=(*shape_of(order)[:-1], 1, n))
    p = convert_element_type_p.bind(eq_p.bind(iota((n, 1), 0, INT32), rows), dtype=dtype_of(a))
    q, r = qr_p.bind(matrix_product(frozen, p), full=False)
    back = matrix_transpose(p)
    unit = _determinant(matrix_product(q, back))
    left = adjoint(q)
    b, f = [matrix_product(left, matrix_product(x, p)) for x in (a, t)]
    slope = _small_slope(b, f) if n <= _REST else _bordered_slope(b, f, r)
    q = conj_p.bind(q) if dtype_of(q).kind == "c" else q
    return mul_p.bind(_as_matrices(unit), matrix_product(matrix_product(q, slope), back))


def _as_matrices(x: Any) -> Any:
    """Numbers as matrices of one element."""
    return reshape_p.bind(x, shape=(*shape_of(x), 1, 1))


def _total(x: Any) -> Any:
    """The sum of the elements of each matrix, as matrices of one element."""
    rank = len(shape_of(x))
    return _as_matrices(reduce_sum_p.bind(x, axes=(rank - 2, rank - 1)))


def _determinant(x: Any) -> Any:
    """Of regular matrices, by their factors."""
    lu, pivots, _ = lu_p.bind(x)
    shape, dtype = shape_of(pivots), dtype_of(lu)
    last = len(shape) - 1
    exchanged = ne_p.bind(pivots, iota(shape, last, INT32))
    count = reduce_sum_p.bind(convert_element_type_p.bind(exchanged, dtype=INT32), axes=(last,))
    odd = ne_p.bind(and_p.bind(count, INT32.type(1)), INT32.type(0))
    parity = select_p.bind(odd, dtype.type(-1), dtype.type(1))
    return mul_p.bind(parity, reduce_prod_p.bind(diagonal_of(lu), axes=(last,)))


# --- at most three rows ---------------------------------------------------------------------------------------


def _rolled(x: Any, rows: int, columns: int) -> Any:
    """``y[i, j] = x[i + rows, j + columns]``, indices modulo the size."""
    n, rank = shape_of(x)[-1], len(shape_of(x))
    y = concatenate_p.bind(rows_of(x, rows, n), rows_of(x, 0, rows), dimension=rank - 2)
    return concatenate_p.bind(columns_of(y, columns, n), columns_of(y, 0, columns), dimension=rank - 1)


def _crossed(x: Any, y: Any) -> Any:
    """The bilinear form of which the cofactors of 3 x 3 matrices are the values at equal arguments."""
    return sub_p.bind(
        mul_p.bind(_rolled(x, 1, 1), _rolled(y, 2, 2)), mul_p.bind(_rolled(x, 1, 2), _rolled(y, 2, 1))
    )


def _small(x: Any) -> Any:
    """Cofactors of matrices of two or three rows."""
    return _crossed(x, x) if shape_of(x)[-1] == _REST else _small_slope(x, x)


def _small_slope(x: Any, t: Any) -> Any:
    """The tangent of `_small`: of 2 x 2 matrices cofactors are linear."""
    if shape_of(x)[-1] == _REST:
        return add_p.bind(_crossed(x, t), _crossed(t, x))
    rank, dtype = len(shape_of(t)), dtype_of(t)
    odd = ne_p.bind(iota((2, 1), 0), iota((1, 2), 1))
    return mul_p.bind(
        select_p.bind(odd, dtype.type(-1), dtype.type(1)), rev_p.bind(t, dimensions=(rank - 2, rank - 1))
    )


# --- bordered -------------------------------------------------------------------------------------------------


class _Blocks(NamedTuple):
    """A matrix in four: the leading block, and the last three rows and columns."""

    head: Any
    right: Any
    below: Any
    rest: Any


def _blocks(x: Any) -> _Blocks:
    n = shape_of(x)[-1]
    m = n - _REST
    top, bottom = rows_of(x, 0, m), rows_of(x, m, n)
    return _Blocks(
        columns_of(top, 0, m), columns_of(top, m, n), columns_of(bottom, 0, m), columns_of(bottom, m, n)
    )


def _joined(b: _Blocks) -> Any:
    rank = len(shape_of(b.head))
    rows = [concatenate_p.bind(*pair, dimension=rank - 1) for pair in (b[:2], b[2:])]
    return concatenate_p.bind(*rows, dimension=rank - 2)


def _product(*factors: Any) -> Any:
    return reduce(matrix_product, factors)


def _sum(*terms: Any) -> Any:
    return reduce(add_p.bind, terms)


def _gaps(r: Any) -> Any:
    """1 on the diagonal of the leading block where it is zero but for rounding, of a triangular factor; else 0."""
    n, dtype = shape_of(r)[-1], dtype_of(r)
    size = abs_p.bind(diagonal_of(r))
    shape = shape_of(size)
    last, real = len(shape) - 1, real_dtype(dtype)
    largest = reshape_p.bind(reduce_max_p.bind(size, axes=(last,)), shape=(*shape[:-1], 1))
    bound = mul_p.bind(largest, real.type(n * np.finfo(real).eps))
    zero = convert_element_type_p.bind(le_p.bind(size, bound), dtype=dtype)
    zero = reshape_p.bind(zero, shape=(*shape, 1))
    gaps = mul_p.bind(zero, eye(n, n, 0, dtype))
    return _blocks(gaps).head


def _bordered_slope(b: Any, f: Any, r: Any) -> Any:
    """The tangent of the cofactors of a matrix whose leading block is regular.

    The adjugate is ``d [[s B11^-1 + X J Y, -X J], [-J Y, J]]``, where d = det B11, X = B11^-1 B12, Y = B21 B11^-1,
    s = det S, J = adj S.
    """
    gaps = _gaps(r)
    b, f = _blocks(b), _blocks(f)
    one = dtype_of(gaps).type(1)
    alive = select_p.bind(ne_p.bind(_total(gaps), dtype_of(gaps).type(0)), dtype_of(gaps).type(0), one)
    head = add_p.bind(b.head, gaps)
    m = shape_of(head)[-1]
    unit = broadcast_to(eye(m, m, 0, dtype_of(head)), shape_of(head))
    inverse = solve_p.bind(head, unit, on_error="nan", name="det")
    x, y = matrix_product(inverse, b.right), matrix_product(b.below, inverse)
    rest = sub_p.bind(b.rest, matrix_product(b.below, x))
    minors = _small(rest)
    j = matrix_transpose(minors)
    s = _total(mul_p.bind(rows_of(rest, 0, 1), rows_of(minors, 0, 1)))
    t_inverse = neg_p.bind(_product(inverse, f.head, inverse))
    t_x = matrix_product(inverse, sub_p.bind(f.right, matrix_product(f.head, x)))
    t_y = matrix_product(sub_p.bind(f.below, matrix_product(y, f.head)), inverse)
    t_rest = sub_p.bind(f.rest, add_p.bind(matrix_product(f.below, x), matrix_product(b.below, t_x)))
    t_j = matrix_transpose(_small_slope(rest, t_rest))
    t_s = _total(mul_p.bind(minors, t_rest))
    adjugate = _Blocks(
        add_p.bind(mul_p.bind(s, inverse), _product(x, j, y)),
        neg_p.bind(matrix_product(x, j)),
        neg_p.bind(matrix_product(j, y)),
        j,
    )
    slope = _Blocks(
        _sum(
            mul_p.bind(t_s, inverse),
            mul_p.bind(s, t_inverse),
            _product(t_x, j, y),
            _product(x, t_j, y),
            _product(x, j, t_y),
        ),
        neg_p.bind(add_p.bind(matrix_product(t_x, j), matrix_product(x, t_j))),
        neg_p.bind(add_p.bind(matrix_product(t_j, y), matrix_product(j, t_y))),
        t_j,
    )
    growth = _total(mul_p.bind(matrix_transpose(inverse), f.head))
    both = add_p.bind(mul_p.bind(growth, _joined(adjugate)), _joined(slope))
    factor = mul_p.bind(_as_matrices(_determinant(head)), alive)
    return matrix_transpose(mul_p.bind(factor, both))
