"""Cofactors of square matrices, singular ones included: the determinant's derivative, and the derivatives of these."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...core import INT32, INT64, Aval, Block, BlockEmitter, Buffer, Primitive, Zero, quietly, real_dtype
from ...core.values import ArrayLike, Tangent, Value
from ...runtime.records import NamedTuple
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
from ..structure.linear import add_p, batched_first, broadcast_to, dtype_of, reduce_sum_p, reshape_p, shape_of
from ..structure.shape import concatenate_p, eye, iota, lanes, rev_p
from .lu import lu_p
from .matrices import (
    adjoint,
    columns_of,
    diagonal_of,
    elements,
    matrix_product,
    matrix_transpose,
    per_matrix,
    rows_of,
    small_cofactors,
    substitute,
)
from .qr import column_order_p, qr_p
from .solve import lu_solve_p, solve_p

_REST = 3
"""The largest rank deficiency handled exactly."""


def cofactors_slope(a: Value, t: Value) -> Value:
    """Return the tangent of the cofactors of `a`, which is at least 2 x 2.

    Exact to all orders if the rank deficiency is at most three, else up to the second order (the determinant's third).
    There these derivatives are zero.
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
    slope = _written_out_slope(b, f) if n <= _REST else _bordered_slope(b, f, r)
    q = conj_p.bind(q) if dtype_of(q).kind == "c" else q
    return mul_p.bind(_as_matrices(unit), matrix_product(matrix_product(q, slope), back))


def _as_matrices(x: Value) -> Value:
    """Return numbers as 1 x 1 matrices."""
    return reshape_p.bind(x, shape=(*shape_of(x), 1, 1))


def _total(x: Value) -> Value:
    """Return the sum of the elements of each matrix, as 1 x 1 matrices."""
    rank = len(shape_of(x))
    return _as_matrices(reduce_sum_p.bind(x, axes=(rank - 2, rank - 1)))


def _determinant(x: Value) -> Value:
    """Return the determinant of nonsingular matrices, by their LU factors."""
    lu, pivots, _ = lu_p.bind(x)
    shape, dtype = shape_of(pivots), dtype_of(lu)
    last = len(shape) - 1
    exchanged = ne_p.bind(pivots, iota(shape, last, INT32))
    count = reduce_sum_p.bind(convert_element_type_p.bind(exchanged, dtype=INT32), axes=(last,))
    odd = ne_p.bind(and_p.bind(count, INT32.type(1)), INT32.type(0))
    parity = select_p.bind(odd, dtype.type(-1), dtype.type(1))
    return mul_p.bind(parity, reduce_prod_p.bind(diagonal_of(lu), axes=(last,)))


# --- at most three rows ---------------------------------------------------------------------------------------


def _rolled(x: Value, rows: int, columns: int) -> Value:
    """``y[i, j] = x[i + rows, j + columns]``, indices modulo the size."""
    n, rank = shape_of(x)[-1], len(shape_of(x))
    y = concatenate_p.bind(rows_of(x, rows, n), rows_of(x, 0, rows), dimension=rank - 2)
    return concatenate_p.bind(columns_of(y, columns, n), columns_of(y, 0, columns), dimension=rank - 1)


def _crossed(x: Value, y: Value) -> Value:
    """The bilinear form that gives the cofactors of a 3 x 3 matrix when both arguments are that matrix."""
    return sub_p.bind(
        mul_p.bind(_rolled(x, 1, 1), _rolled(y, 2, 2)), mul_p.bind(_rolled(x, 1, 2), _rolled(y, 2, 1))
    )


def _small(x: Value) -> Value:
    """The cofactors of matrices with two or three rows."""
    return _crossed(x, x) if shape_of(x)[-1] == _REST else _written_out_slope(x, x)


def _written_out_slope(x: Value, t: Value) -> Value:
    """The tangent of `_small`. The cofactors of 2 x 2 matrices are linear."""
    if shape_of(x)[-1] == _REST:
        return add_p.bind(_crossed(x, t), _crossed(t, x))
    rank, dtype = len(shape_of(t)), dtype_of(t)
    odd = ne_p.bind(iota((2, 1), 0), iota((1, 2), 1))
    return mul_p.bind(
        select_p.bind(odd, dtype.type(-1), dtype.type(1)), rev_p.bind(t, dimensions=(rank - 2, rank - 1))
    )


# --- bordered -------------------------------------------------------------------------------------------------


class _Blocks(NamedTuple):
    """A matrix in four blocks, split before its last three rows and columns."""

    head: Any
    right: Any
    below: Any
    rest: Any


def _blocks(x: Value) -> _Blocks:
    n = shape_of(x)[-1]
    m = n - _REST
    top, bottom = rows_of(x, 0, m), rows_of(x, m, n)
    return _Blocks(
        columns_of(top, 0, m), columns_of(top, m, n), columns_of(bottom, 0, m), columns_of(bottom, m, n)
    )


def _joined(b: _Blocks) -> Value:
    rank = len(shape_of(b.head))
    rows = [concatenate_p.bind(*pair, dimension=rank - 1) for pair in (b[:2], b[2:])]
    return concatenate_p.bind(*rows, dimension=rank - 2)


def _product(*factors: Value) -> Value:
    return reduce(matrix_product, factors)


def _sum(*terms: Any) -> Value:
    return reduce(add_p.bind, terms)


def _gaps(r: Value) -> Any:
    """Return 1 where the leading block of a triangular factor has a zero diagonal up to rounding, else 0."""
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


def _bordered_slope(b: ArrayLike, f: Any, r: ArrayLike) -> Value:
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
    t_j = matrix_transpose(_written_out_slope(rest, t_rest))
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


def _limits(dtype: np.dtype) -> tuple[float, float]:
    """Decimal exponents: of the value that replaces a zero pivot, and of the product of all such values."""
    return (100.0, 200.0) if real_dtype(dtype).itemsize == 8 else (12.0, 24.0)


def _abstract(a: Aval, *factors: Aval) -> Aval:
    return a.strong()


@quietly
def _impl(a: Value, *factors_of_a: Any) -> np.ndarray:
    n = a.shape[-1]
    if not factors_of_a:
        out = np.empty_like(a)
        for i, row in enumerate(small_cofactors([[a[..., i, j] for j in range(n)] for i in range(n)], 1)):
            for j, x in enumerate(row):
                out[..., i, j] = x
        return out
    lu, pivots, permutation = factors_of_a
    diagonal = np.diagonal(lu, axis1=-2, axis2=-1)
    largest = np.abs(np.triu(lu)).max((-2, -1), initial=0)[..., None]
    zeros = (diagonal == 0).sum(-1, keepdims=True)
    least, together = _limits(a.dtype)
    tiny = largest * 10.0 ** -np.minimum(least, together / np.maximum(zeros, 1))
    diagonal = np.where(diagonal == 0, np.where(largest == 0, 1, tiny), diagonal).astype(a.dtype)
    factors = lu.copy()
    factors[..., np.arange(n), np.arange(n)] = diagonal
    exchanged = (pivots != np.arange(n)).sum(-1) & 1
    product = np.multiply.reduce(diagonal, -1) * (1 - 2 * exchanged).astype(a.dtype)
    if n > 1:
        product = np.where(largest[..., 0] == 0, a.dtype.type(0), product)
    unit = np.broadcast_to(np.eye(n, dtype=a.dtype), a.shape)
    inverse = lu_solve_p.impl(a, factors, permutation, unit, transpose=True, on_error="ignore", name="")
    return inverse * product[..., None, None]


def _kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer]) -> None:
    (out,) = results
    *batch, n, _ = out.shape
    dtype = out.dtype
    if len(operands) == 1:
        with lanes(k, batch) as b:
            written_out = small_cofactors(elements(k, operands[0], b), k.const(1, dtype))
            for place in np.ndindex(n, n):
                k.store(out, [*b, *place], written_out[place[0]][place[1]])
        return
    _, lu, pivots, permutation = operands
    factors, inner = k.scratch((n, n), dtype), k.scratch((n, n), dtype)
    with lanes(k, batch) as b:
        with k.loop(n) as i, k.loop(n) as j:
            k.store(factors, [i, j], k.load(lu, [*b, i, j]))
            k.store(inner, [i, j], k.const(0, dtype))
        product = _regular(k, factors, inner)
        with k.loop(n) as i, k.if_(k.load(pivots, [*b, i]).ne(k.cast(i, np.dtype(np.int32)))):
            product.set(-product.get())
        substitute(k, (factors, []), (inner, []), lower=False, transpose=True)
        substitute(k, (factors, []), (inner, []), lower=True, transpose=True, unit=True)
        with k.loop(n) as i:
            row = k.cast(k.load(permutation, [*b, i]), INT64)
            with k.loop(n) as j:
                k.store(out, [*b, row, j], k.load(inner, [i, j]) * product.get())


def _regular(k: BlockEmitter, factors: Buffer, inner: Buffer) -> Any:
    """Replace zero pivots by small ones, and the diagonal of `inner` by ones; return the product of the pivots."""
    n, dtype, real = factors.shape[0], factors.dtype, real_dtype(factors.dtype)
    largest, zeros = k.local(k.const(0, real)), k.local(k.const(0, real))
    nothing = k.const(0, dtype)
    with k.loop(n) as i:
        with k.loop(n, i) as j:
            largest.set(k.call("max", largest.get(), k.call("abs", k.load(factors, [i, j]))))
        with k.if_(k.load(factors, [i, i]).eq(nothing)):
            zeros.set(zeros.get() + k.const(1, real))
    least, together = (k.const(x, real) for x in _limits(dtype))
    count = k.call("max", zeros.get(), k.const(1, real))
    power = k.call("pow", k.const(10, real), -k.call("min", least, together / count))
    void = largest.get().eq(k.const(0, real))
    tiny = k.cast(k.where(void, k.const(1, real), largest.get() * power), dtype)
    product = k.local(k.const(1, dtype))
    with k.loop(n) as i:
        pivot = k.load(factors, [i, i])
        pivot = k.where(pivot.eq(nothing), tiny, pivot)
        k.store(factors, [i, i], pivot)
        k.store(inner, [i, i], k.const(1, dtype))
        product.set(product.get() * pivot)
    if n > 1:
        product.set(k.where(void, nothing, product.get()))
    return product


def _jvp(primals: Sequence[Any], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
    ans = cofactors_p.bind(*primals)
    t = tangents[0]
    if type(t) is Zero or shape_of(ans)[-1] < 2:
        return ans, Zero(ans)
    return ans, (_small_slope if len(primals) == 1 else cofactors_slope)(primals[0], t)


class _Dual(NamedTuple):
    """A number and its tangent."""

    x: Any
    t: Tangent

    def __add__(self, other: Any) -> _Dual:
        return _Dual(add_p.bind(self.x, other.x), add_p.bind(self.t, other.t))

    def __sub__(self, other: _Dual) -> _Dual:
        return _Dual(sub_p.bind(self.x, other.x), sub_p.bind(self.t, other.t))

    def __mul__(self, other: Any) -> _Dual:
        t = add_p.bind(mul_p.bind(self.t, other.x), mul_p.bind(self.x, other.t))
        return _Dual(mul_p.bind(self.x, other.x), t)

    def __neg__(self) -> _Dual:
        return _Dual(neg_p.bind(self.x), neg_p.bind(self.t))


def _small_slope(a: Value, t: Value) -> Value:
    """The tangent of cofactors with explicit formulas."""
    rank, n = len(shape_of(a)), shape_of(a)[-1]

    def element(x: Value, i: int, j: int) -> Value:
        return columns_of(rows_of(x, i, i + 1), j, j + 1)

    dual = [[_Dual(element(a, i, j), element(t, i, j)) for j in range(n)] for i in range(n)]
    rows = [[x.t for x in row] for row in small_cofactors(dual, None)]
    return concatenate_p.bind(
        *[concatenate_p.bind(*row, dimension=rank - 1) for row in rows], dimension=rank - 2
    )


def _batch(size: int, args: Sequence[Value], dims: Sequence[int | None]) -> tuple[Value, int]:
    return cofactors_p.bind(*[batched_first(size, x, d) for x, d in zip(args, dims)]), 0


#: Of a matrix and its factors: ``det(A) A^-T``, a polynomial in A. A tiny value replaces a zero pivot (backward stable:
#: the result is exact for a matrix that close). Of a small matrix alone: the polynomial itself.
cofactors_p: Primitive = Primitive(
    "cofactors",
    _abstract,
    _impl,
    jvp=_jvp,
    batch=_batch,
    kernel=Block(_kernel),
    cost=per_matrix(lambda m, n: 2 * n**3),
)
