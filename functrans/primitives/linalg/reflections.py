"""Products of Householder reflections, and how they change with the orthonormal columns that they make."""

from __future__ import annotations

from typing import Any

from ..elementwise.arithmetic import eq_p, mul_p, neg_p, select_p, sub_p
from ..structure.create import diagonal_mask, eye
from ..structure.linear import add_p, dtype_of, reshape_p, shape_of
from ..structure.shape import concatenate_p
from .cholesky import solve
from .matrices import adjoint, columns_of, matrix_product, rows_of, triangle


def _as_rows(x: Any) -> Any:
    """Vectors as matrices of one row."""
    shape = shape_of(x)
    return reshape_p.bind(x, shape=(*shape[:-1], 1, shape[-1]))


def with_unit_diagonal(x: Any) -> Any:
    """What is below the diagonal, and ones on it."""
    m, n = shape_of(x)[-2:]
    return add_p.bind(triangle(x, lower=True, strict=True), eye(m, n, 0, dtype_of(x)))


def compact(vectors: Any, taus: Any) -> tuple[Any, Any]:
    """V and T of ``H1 H2 ... Hk = I - V T V^H`` (Schreiber and Van Loan 1989)."""
    v = with_unit_diagonal(vectors)
    # T^-1 = D^-1 + triu(V^H V, 1); written so that zeros among the taus do no harm.
    inner = triangle(matrix_product(adjoint(v), v), lower=False, strict=True)
    inner = mul_p.bind(inner, _as_rows(taus))
    k = shape_of(taus)[-1]
    scale = select_p.bind(diagonal_mask(k, k), _as_rows(taus), dtype_of(v).type(0))
    return v, solve(inner, scale, left_side=False, lower=False, unit_diagonal=True)


def householder_product(vectors: Any, taus: Any) -> Any:
    """The first n columns of ``H1 H2 ... Hk``, of the vectors below the diagonal of an (m, n) matrix."""
    m, n = shape_of(vectors)[-2:]
    k = shape_of(taus)[-1]
    v, t = compact(columns_of(vectors, 0, k), taus)
    product = matrix_product(matrix_product(v, t), adjoint(rows_of(v, 0, n)))
    return sub_p.bind(eye(m, n, 0, dtype_of(product)), product)


def reflections_slope(vectors: Any, taus: Any, t_q: Any) -> tuple[Any, Any, Any]:
    """The tangents of V, of T, and of ``W = T V1^H`` from that of the first k columns of Q.

    ``E - Q = V W`` is an LU factorisation without pivoting (Ballard et al. 2015), of which the derivative is known.
    """
    v, t = compact(vectors, taus)
    m, k = shape_of(v)[-2:]
    top = rows_of(v, 0, k)
    w = matrix_product(t, adjoint(top))
    # A last reflection that is the identity has tau = 0, and nothing depends on it.
    unit = select_p.bind(diagonal_mask(k, k), dtype_of(w).type(1), dtype_of(w).type(0))
    regular = select_p.bind(eq_p.bind(w, dtype_of(w).type(0)), unit, w)
    moved = neg_p.bind(t_q)
    inner = solve(top, rows_of(moved, 0, k), left_side=True, lower=True, unit_diagonal=True)
    inner = solve(regular, inner, left_side=False, lower=False)
    t_w = matrix_product(triangle(inner, lower=False), w)
    t_top = matrix_product(top, triangle(inner, lower=True, strict=True))
    t_t = sub_p.bind(t_w, matrix_product(t, adjoint(t_top)))
    t_t = solve(adjoint(top), t_t, left_side=False, lower=False, unit_diagonal=True)
    if m == k:
        return t_top, t_t, t_w
    rest = sub_p.bind(rows_of(moved, k, m), matrix_product(rows_of(v, k, m), t_w))
    rest = solve(regular, rest, left_side=False, lower=False)
    return concatenate_p.bind(t_top, rest, dimension=len(shape_of(v)) - 2), t_t, t_w
