"""LU factors with partial pivoting, in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import (
    INT32,
    Aval,
    Block,
    BlockEmitter,
    Buffer,
    LinAlgError,
    Primitive,
    ShapeError,
    Zero,
    is_float,
)
from ...core.values import ArrayLike, Tangent, Value
from ...runtime.libraries import scipy
from ..elementwise.arithmetic import sub_p
from ..indexing.gather_scatter import gather_p
from ..structure.linear import add_p, dtype_of, move_axis, shape_of
from ..structure.shape import concatenate_p, eye, iota, lanes, slice_along
from .cholesky import solve as solve_triangular
from .matrices import check_kind, elements, matrix_product, matrix_transpose, not_of_low, per_matrix, triangle

# --- lu -----------------------------------------------------------------------------------------------------


def _lu_abstract(x: Aval) -> tuple[Aval, Aval, Aval]:
    if x.ndim < 2:
        raise LinAlgError(f"lu: expected matrices (at least two axes), got shape {x.shape}")
    check_kind("lu", x.dtype)
    *batch, m, n = x.shape
    return x.strong(), Aval((*batch, min(m, n)), INT32), Aval((*batch, m), INT32)


@not_of_low("lu")
def _lu_impl(x: Value) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    *batch, m, n = x.shape
    lu, pivots = np.empty(x.shape, x.dtype), np.empty((*batch, min(m, n)), INT32)
    if lu.size:
        getrf = scipy.linalg.lapack.get_lapack_funcs("getrf", dtype=x.dtype)
        for place in np.ndindex(*batch):
            lu[place], pivots[place], _ = getrf(x[place])
    return lu, pivots, permutation_of(pivots, m)


def permutation_of(pivots: np.ndarray, size: int) -> np.ndarray:
    """Return the permutation that results from exchanging row ``i`` with row ``pivots[i]``, in order."""
    flat = pivots.reshape(-1, pivots.shape[-1]) if pivots.size else np.empty((0, 0), INT32)
    out = np.empty((*pivots.shape[:-1], size), INT32)
    out[...] = np.arange(size, dtype=INT32)
    rows = out.reshape(-1, size) if out.size else out
    for row, swaps in zip(rows, flat.tolist()):
        order = list(range(size))
        for i, p in enumerate(swaps):
            order[i], order[p] = order[p], order[i]
        row[:] = order
    return out


def _lu_jvp(primals: Sequence[Any], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
    lu, pivots, permutation = outs = lu_p.bind(*primals)
    t = tangents[0]
    if type(t) is Zero:
        return outs, tuple([Zero(y) for y in outs])
    *_, m, n = shape_of(lu)
    t = rows_taken(t, permutation)
    tangent = _slope(lu, t, m, n) if min(m, n) else t
    return outs, (tangent, Zero(pivots), Zero(permutation))


def _slope(lu: ArrayLike, t: Value, m: int, n: int) -> Value:
    """Return the tangent of both factors, packed like them.

    With ``X = L1^-1 A1' U1^-1`` for the leading square blocks, ``L1' = L1 tril(X, -1)`` and ``U1' = triu(X) U1`` (Giles
    2008, An extended collection of matrix derivative results). Below them A2 = L2 U1, so
    ``L2' = (A2' - L2 U1') U1^-1``. To the right of them A2 = L1 U2, so ``U2' = L1^-1 (A2' - L1' U2)``.
    """
    k, rank = min(m, n), len(shape_of(lu))
    axis = rank - 2 if m > n else rank - 1

    def split(x: Value) -> tuple[Any, Any]:
        shape = shape_of(x)
        return slice_along(x, axis, 0, k), slice_along(x, axis, k, shape[axis])

    (head, tail), (t_head, t_tail) = (split(lu), split(t)) if m != n else ((lu, None), (t, None))
    inner = solve_triangular(head, t_head, left_side=True, lower=True, unit_diagonal=True)
    inner = solve_triangular(head, inner, left_side=False, lower=False)
    strict = triangle(inner, lower=True, strict=True)
    upper = triangle(head, lower=False)
    unit = add_p.bind(sub_p.bind(head, upper), eye(k, k, 0, dtype_of(lu)))
    t_lower = matrix_product(unit, strict)
    t_upper = matrix_product(sub_p.bind(inner, strict), upper)
    out = add_p.bind(t_lower, t_upper)
    if m == n:
        return out
    if m > n:
        rest = sub_p.bind(t_tail, matrix_product(tail, t_upper))
        rest = solve_triangular(head, rest, left_side=False, lower=False)
    else:
        rest = sub_p.bind(t_tail, matrix_product(t_lower, tail))
        rest = solve_triangular(head, rest, left_side=True, lower=True, unit_diagonal=True)
    return concatenate_p.bind(out, rest, dimension=axis)


def columns_taken(x: Value, order: Any) -> Value:
    """Permute the columns of matrices, each batch element by a different permutation."""
    return matrix_transpose(rows_taken(matrix_transpose(x), order))


def rows_taken(x: Value, permutation: Value) -> Value:
    """Permute the rows of matrices, each batch element by a different permutation."""
    *batch, n, _ = shape_of(x)
    shape = (*batch, n)
    places = [iota(shape, d) for d in range(len(batch))]
    axes = tuple(range(len(batch) + 1))
    return gather_p.bind(x, *places, permutation, axes=axes, mode="promise_in_bounds")


def _lu_batch(size: int, args: Sequence[Value], dims: Sequence[int]) -> tuple[Any, Any]:
    return lu_p.bind(move_axis(args[0], dims[0], 0)), (0, 0, 0)


def factored(k: BlockEmitter, a: Buffer, batch: Sequence[Any], work: Buffer, swaps: Buffer) -> None:
    """Factorize the matrix at a batch index by LAPACK, in its column-major order: `work` has shape (n, m)."""
    m, n = a.shape[-2:]

    def by_lapack() -> None:
        with k.loop(n) as j, k.loop(m) as i:
            k.store(work, [j, i], k.load(a, [*batch, i, j]))
        info = k.local(k.const(0, INT32))
        k.extern("getrf", m, n, work, max(m, 1), swaps, info)

    if m == n == 2 and is_float(a.dtype):
        _two_rows(k, elements(k, a, batch), work, swaps, by_lapack)
    else:
        by_lapack()


def _two_rows(k: BlockEmitter, rows: Any, work: Buffer, swaps: Buffer, by_lapack: Callable[[], None]) -> None:
    """Factorize a matrix of two rows by explicit formulas, which takes a sixth of the time of a call.

    They round as LAPACK does, so the same matrices are singular, to the last bit. LAPACK handles infinities, NaN, and
    pivots whose reciprocal overflows.
    """
    (p, q), (r, s) = rows
    swapped = k.call("abs", r) > k.call("abs", p)
    pivot, other = k.where(swapped, r, p), k.where(swapped, p, r)
    right, last = k.where(swapped, s, q), k.where(swapped, q, s)
    size = (k.call("abs", p) + k.call("abs", q)) + (k.call("abs", r) + k.call("abs", s))
    limits = np.finfo(pivot.dtype)
    ordinary = (k.call("abs", pivot) >= k.const(limits.tiny, pivot.dtype)) & (
        size <= k.const(limits.max, pivot.dtype)
    )
    with k.if_(ordinary):
        factor = k.call("multiply", other, k.const(1, pivot.dtype) / pivot)
        k.store(work, [0, 0], pivot)
        k.store(work, [1, 0], right)
        k.store(work, [0, 1], factor)
        # The sum begins with zero, which decides the sign of a zero.
        product = k.call("multiply", factor, right) + 0.0
        k.store(work, [1, 1], last - product)
        k.store(swaps, [0], k.cast(swapped, INT32) + 1)
        k.store(swaps, [1], k.const(2, INT32))
    with k.if_(~ordinary):
        by_lapack()


def exchange(k: BlockEmitter, x: Buffer, batch: Sequence[Any], i: Any, j: Any) -> None:
    """Exchange two elements of a vector."""
    mine, theirs = k.load(x, [*batch, i]), k.load(x, [*batch, j])
    k.store(x, [*batch, i], theirs)
    k.store(x, [*batch, j], mine)


def _lu_kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer]) -> None:
    (a,), (lu, pivots, permutation) = operands, results
    *batch, m, n = a.shape
    work, swaps = k.scratch((n, m), a.dtype), k.scratch((min(m, n),), INT32)
    with lanes(k, batch) as b:
        factored(k, a, b, work, swaps)
        with k.loop(m) as i, k.loop(n) as j:
            k.store(lu, [*b, i, j], k.load(work, [j, i]))
        with k.loop(m) as i:
            k.store(permutation, [*b, i], k.cast(i, INT32))
        with k.loop(min(m, n)) as i:
            place = k.load(swaps, [i]) - 1
            k.store(pivots, [*b, i], place)
            exchange(k, permutation, b, i, k.cast(place, np.dtype(np.int64)))


lu_p: Primitive = Primitive(
    "lu",
    _lu_abstract,
    _lu_impl,
    jvp=_lu_jvp,
    batch=_lu_batch,
    kernel=Block(_lu_kernel),
    multiple_results=True,
    cost=per_matrix(lambda m, n: max(m, n) * min(m, n) ** 2 - min(m, n) ** 3 / 3),
)


# --- permutation --------------------------------------------------------------------------------------------


def _permutation_abstract(pivots: Aval, *, size: int) -> Aval:
    if not pivots.ndim or pivots.dtype.kind not in "iu" or pivots.shape[-1] > size:
        raise ShapeError(
            f"lu_pivots_to_permutation: expected at most {size} integers (of shape (..., k)), got {pivots.dtype} "
            f"{pivots.shape}"
        )
    return Aval((*pivots.shape[:-1], size), INT32)


def _permutation_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, size: int
) -> tuple[Value, Tangent]:
    ans = permutation_p.bind(*primals, size=size)
    return ans, Zero(ans)


def _permutation_batch(
    lanes: int, args: Sequence[Value], dims: Sequence[int], *, size: int
) -> tuple[Value, int]:
    return permutation_p.bind(move_axis(args[0], dims[0], 0), size=size), 0


def _permutation_kernel(
    k: BlockEmitter, operands: ArrayLike, results: Sequence[Buffer], *, size: int
) -> None:
    (pivots,), (out,) = operands, results
    *batch, count = pivots.shape
    with lanes(k, batch) as b:
        with k.loop(size) as i:
            k.store(out, [*b, i], k.cast(i, INT32))
        with k.loop(count) as i:
            exchange(k, out, b, i, k.cast(k.load(pivots, [*b, i]), np.dtype(np.int64)))


#: The order of rows that results from exchanging row i with row ``pivots[i]``, in order.
permutation_p: Primitive = Primitive(
    "lu_pivots_to_permutation",
    _permutation_abstract,
    lambda pivots, *, size: permutation_of(pivots, size),
    jvp=_permutation_jvp,
    batch=_permutation_batch,
    kernel=Block(_permutation_kernel),
)
