"""QR factors by Householder reflections, in batches.

The signs are LAPACK's: the diagonal of R can be negative.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ...core import INT32, Atom, Aval, Block, BlockEmitter, Buffer, Eqn, Primitive, Zero, real_dtype
from ...core.values import ArrayLike, Tangent, Value
from ...errors import LinAlgError
from ...runtime.libraries import scipy
from ..elementwise.arithmetic import eq_p, mul_p, neg_p, select_p, sub_p
from ..elementwise.complexes import complex_p, imag_p
from ..families import literal
from ..structure.linear import add_p, dtype_of, move_axis, reshape_p, shape_of, zeros
from ..structure.shape import concatenate_p, diagonal_mask, eye, lanes
from .cholesky import solve
from .matrices import (
    adjoint,
    check_kind,
    columns_of,
    diagonal_of,
    matrix_product,
    not_of_low,
    per_matrix,
    rows_of,
    triangle,
    triangle_of,
)


def _as_rows(x: Value) -> Value:
    """Return vectors as matrices of one row."""
    shape = shape_of(x)
    return reshape_p.bind(x, shape=(*shape[:-1], 1, shape[-1]))


def with_unit_diagonal(x: Value) -> Value:
    """Return the strict lower triangle with ones on the diagonal."""
    m, n = shape_of(x)[-2:]
    return add_p.bind(triangle(x, lower=True, strict=True), eye(m, n, 0, dtype_of(x)))


def compact(vectors: Value, taus: Value) -> tuple[Value, Value]:
    """Return V and T of ``H1 H2 ... Hk = I - V T V^H`` (Schreiber and Van Loan 1989)."""
    v = with_unit_diagonal(vectors)
    # T^-1 = D^-1 + triu(V^H V, 1); in a form that allows zeros among the taus.
    inner = triangle(matrix_product(adjoint(v), v), lower=False, strict=True)
    inner = mul_p.bind(inner, _as_rows(taus))
    k = shape_of(taus)[-1]
    scale = select_p.bind(diagonal_mask(k, k), _as_rows(taus), dtype_of(v).type(0))
    return v, solve(inner, scale, left_side=False, lower=False, unit_diagonal=True)


def householder_product(vectors: Value, taus: Value) -> Value:
    """Return the first n columns of ``H1 H2 ... Hk``; the vectors are below the diagonal of an (m, n) matrix."""
    m, n = shape_of(vectors)[-2:]
    k = shape_of(taus)[-1]
    v, t = compact(columns_of(vectors, 0, k), taus)
    product = matrix_product(matrix_product(v, t), adjoint(rows_of(v, 0, n)))
    return sub_p.bind(eye(m, n, 0, dtype_of(product)), product)


def reflections_slope(vectors: Any, taus: Any, t_q: Any) -> tuple[Any, Any, Any]:
    """Return the tangents of V, T and ``W = T V1^H``, from that of the first k columns of Q.

    ``E - Q = V W`` is an LU factorization without pivoting (Ballard et al. 2015), whose derivative is known.
    """
    v, t = compact(vectors, taus)
    m, k = shape_of(v)[-2:]
    top = rows_of(v, 0, k)
    w = matrix_product(t, adjoint(top))
    # If the last reflection is the identity, its tau is 0, and nothing depends on it.
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


_BLOCK = 32
"""Columns that LAPACK reflects at once, with workspace for this many per column."""


def _check(name: str, x: Aval) -> None:
    if x.ndim < 2:
        raise LinAlgError(f"{name}: expected matrices (at least two axes), got shape {x.shape}")
    check_kind(name, x.dtype)


# --- geqrf: reflections ---------------------------------------------------------------------------------------


def _geqrf_abstract(x: Aval) -> tuple[Aval, Aval]:
    _check("geqrf", x)
    *batch, m, n = x.shape
    return x.strong(), Aval((*batch, min(m, n)), x.dtype)


@not_of_low("qr")
def _geqrf_impl(x: Value) -> tuple[np.ndarray, np.ndarray]:
    h, taus = np.linalg.qr(x, mode="raw")
    return np.ascontiguousarray(np.swapaxes(h, -1, -2)), taus


def reflected(k: BlockEmitter, a: Buffer, b: Sequence[Any], work: Buffer, taus: Any, memory: Buffer) -> None:
    """Call LAPACK's geqrf on the matrix at a batch index, in column-major order: `work` has at least n rows."""
    m, n = a.shape[-2:]
    with k.loop(n) as j, k.loop(m) as i:
        k.store(work, [j, i], k.load(a, [*b, i, j]))
    info = k.local(k.const(0, INT32))
    k.extern("geqrf", m, n, work, max(m, 1), taus, memory, memory.shape[0], info)


def _geqrf_kernel(k: BlockEmitter, operands: ArrayLike, results: Sequence[Buffer]) -> None:
    (a,), (out, taus) = operands, results
    *batch, m, n = a.shape
    work, memory = k.scratch((n, m), a.dtype), k.scratch((_BLOCK * max(n, 1),), a.dtype)
    some = k.scratch((max(min(m, n), 1),), a.dtype)
    with lanes(k, batch) as b:
        reflected(k, a, b, work, some, memory)
        with k.loop(m) as i, k.loop(n) as j:
            k.store(out, [*b, i, j], k.load(work, [j, i]))
        with k.loop(min(m, n)) as i:
            k.store(taus, [*b, i], k.load(some, [i]))


def _geqrf_jvp(primals: Sequence[Any], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
    h, taus = geqrf_p.bind(*primals)
    t = tangents[0]
    if type(t) is Zero:
        return (h, taus), (Zero(h), Zero(taus))
    *batch, m, n = shape_of(h)
    k = min(m, n)
    if not k:
        return (h, taus), (t, Zero(taus))
    vectors = columns_of(h, 0, k)
    t_q, t_r = slopes(householder_product(vectors, taus), rows_of(h, 0, k), primals[0], t)
    t_v, _, t_w = reflections_slope(vectors, taus, t_q)
    t_h = triangle(t_v, lower=True, strict=True)
    rank = len(batch) + 2
    if n > k:
        t_h = concatenate_p.bind(t_h, zeros(Aval((*batch, m, n - k), t_h.dtype)), dimension=rank - 1)
    if m > k:
        t_r = concatenate_p.bind(t_r, zeros(Aval((*batch, m - k, n), t_h.dtype)), dimension=rank - 2)
    return (h, taus), (add_p.bind(t_h, t_r), diagonal_of(t_w))


def slopes(q: Value, r: Value, x: Value, t: Value) -> tuple[Value, Value]:
    """Return the tangents of q and r in ``x = q r``, where q has k = min(m, n) columns. Only the upper triangle of r is
    read.

    With ``C = Q^H X' R^-1`` and skew ``W = tril(C, -1) - tril(C, -1)^H + i diag(Im C)``, since the diagonal of R stays
    real: ``Q' = Q (W - C) + X' R^-1``, ``R' = (C - W) R`` (Walter and Lehmann 2010). In a wide matrix [X1 X2] the first
    columns determine Q, and ``R2 = Q^H X2`` (Roberts and Roberts 2020).
    """
    *_, m, n = shape_of(x)
    k = min(m, n)
    head, t_head = columns_of(r, 0, k), columns_of(t, 0, k)
    quotient = solve(head, t_head, left_side=False, lower=False)
    inner = matrix_product(adjoint(q), quotient)
    strict = triangle(inner, lower=True, strict=True)
    skew = sub_p.bind(strict, adjoint(strict))
    if dtype_of(inner).kind == "c":
        turn = imag_p.bind(diagonal_of(inner))
        turn = complex_p.bind(literal(0.0, turn), turn)
        chosen = select_p.bind(diagonal_mask(k, k), _as_columns(turn), dtype_of(inner).type(0))
        skew = add_p.bind(skew, chosen)
    change = sub_p.bind(inner, skew)
    t_q = sub_p.bind(quotient, matrix_product(q, change))
    t_r = matrix_product(change, triangle(head, lower=False))
    if n > k:
        tail, t_tail = columns_of(x, k, n), columns_of(t, k, n)
        right = add_p.bind(matrix_product(adjoint(t_q), tail), matrix_product(adjoint(q), t_tail))
        t_r = concatenate_p.bind(t_r, right, dimension=len(shape_of(x)) - 1)
    return t_q, t_r


def _as_columns(x: Value) -> Value:
    """Return vectors as matrices of one column."""
    return reshape_p.bind(x, shape=(*shape_of(x), 1))


def _geqrf_batch(size: int, args: Sequence[Value], dims: Sequence[int]) -> tuple[Any, Any]:
    return geqrf_p.bind(move_axis(args[0], dims[0], 0)), (0, 0)


geqrf_p: Primitive = Primitive(
    "geqrf",
    _geqrf_abstract,
    _geqrf_impl,
    jvp=_geqrf_jvp,
    batch=_geqrf_batch,
    kernel=Block(_geqrf_kernel),
    multiple_results=True,
    cost=per_matrix(triangle_of),
)


# --- qr -----------------------------------------------------------------------------------------------------


def _qr_abstract(x: Aval, *, full: bool) -> tuple[Aval, Aval]:
    _check("qr", x)
    *batch, m, n = x.shape
    k = m if full else min(m, n)
    return Aval((*batch, m, k), x.dtype), Aval((*batch, k, n), x.dtype)


@not_of_low("qr")
def _qr_impl(x: Value, *, full: bool) -> tuple[np.ndarray, np.ndarray]:
    q, r = np.linalg.qr(x, mode="complete" if full else "reduced")
    return q, r


def _qr_jvp(primals: Sequence[Any], tangents: Sequence[Tangent], *, full: bool) -> tuple[Any, Any]:
    x, t = primals[0], tangents[0]
    q, r = qr_p.bind(x, full=full)
    *batch, m, n = shape_of(x)
    k = min(m, n)
    if type(t) is Zero or not k:
        return (q, r), (Zero(q), Zero(r))
    t_q, t_r = slopes(columns_of(q, 0, k), rows_of(r, 0, k), x, t)
    if not full or m <= n:
        return (q, r), (t_q, t_r)
    rank = len(batch) + 2
    t_r = concatenate_p.bind(t_r, zeros(Aval((*batch, m - k, n), t_r.dtype)), dimension=rank - 2)
    return (q, r), (concatenate_p.bind(t_q, _complement_slope(x, t_q), dimension=rank - 1), t_r)


def _complement_slope(x: Value, t_q: Any) -> Value:
    """Return the tangent of those columns of Q that complete the basis: the reflections determine it."""
    h, taus = geqrf_p.bind(x)
    v, t = compact(h, taus)
    t_v, t_t, _ = reflections_slope(h, taus, t_q)
    m, n = shape_of(v)[-2:]
    below, t_below = adjoint(rows_of(v, n, m)), adjoint(rows_of(t_v, n, m))
    inner = add_p.bind(matrix_product(t_v, t), matrix_product(v, t_t))
    out = matrix_product(inner, below)
    return neg_p.bind(add_p.bind(out, matrix_product(matrix_product(v, t), t_below)))


def _qr_batch(size: int, args: Sequence[Value], dims: Sequence[int], *, full: bool) -> tuple[Any, Any]:
    return qr_p.bind(move_axis(args[0], dims[0], 0), full=full), (0, 0)


def _qr_kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer], *, full: bool) -> None:
    (a,), (q, r) = operands, results
    *batch, m, n = a.shape
    count, columns = min(m, n), q.shape[-1]
    work = k.scratch((max(n, columns, 1), m), a.dtype)
    memory = k.scratch((_BLOCK * max(n, columns, 1),), a.dtype)
    taus = k.scratch((max(count, 1),), a.dtype)
    zero = k.const(0, a.dtype)
    with lanes(k, batch) as b:
        reflected(k, a, b, work, taus, memory)
        with k.loop(columns) as i:
            with k.loop(n) as j:
                k.store(r, [*b, i, j], zero)
            with k.loop(n, i) as j:
                k.store(r, [*b, i, j], k.load(work, [j, i]))
        info = k.local(k.const(0, INT32))
        make = "ungqr" if a.dtype.kind == "c" else "orgqr"
        k.extern(make, m, columns, count, work, max(m, 1), taus, memory, memory.shape[0], info)
        with k.loop(m) as i, k.loop(columns) as j:
            k.store(q, [*b, i, j], k.load(work, [j, i]))


def _qr_narrow(eqn: Eqn, needed: Collection[Atom], strict: bool) -> Eqn | None:
    """Compute R without Q, which gives identical values."""
    (x,), (q, r) = eqn.invars, eqn.outvars
    rows, columns = x.aval.shape[-2:]
    if q in needed or r not in needed or (eqn.params["full"] and rows > columns):
        return None
    return eqn.replace(primitive=qr_triangle_p, outvars=[r], params={})


qr_p: Primitive = Primitive(
    "qr",
    _qr_abstract,
    _qr_impl,
    jvp=_qr_jvp,
    batch=_qr_batch,
    kernel=Block(_qr_kernel),
    multiple_results=True,
    narrow=_qr_narrow,
    cost=per_matrix(lambda m, n: 2 * triangle_of(m, n)),
)


# --- the triangle alone ---------------------------------------------------------------------------------------


def _triangle_abstract(x: Aval) -> Aval:
    _check("qr", x)
    *batch, m, n = x.shape
    return Aval((*batch, min(m, n), n), x.dtype)


def _triangle_jvp(primals: Sequence[Any], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
    x, t = primals[0], tangents[0]
    if type(t) is Zero or 0 in shape_of(x)[-2:]:
        ans = qr_triangle_p.bind(x)
        return ans, Zero(ans)
    q, r = qr_p.bind(x, full=False)
    return r, slopes(q, r, x, t)[1]


def _triangle_kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer]) -> None:
    (a,), (out,) = operands, results
    *batch, m, n = a.shape
    work, memory = k.scratch((n, m), a.dtype), k.scratch((_BLOCK * max(n, 1),), a.dtype)
    taus, zero = k.scratch((max(min(m, n), 1),), a.dtype), k.const(0, a.dtype)
    with lanes(k, batch) as b:
        reflected(k, a, b, work, taus, memory)
        with k.loop(min(m, n)) as i:
            with k.loop(i) as j:
                k.store(out, [*b, i, j], zero)
            with k.loop(n, i) as j:
                k.store(out, [*b, i, j], k.load(work, [j, i]))


#: R without Q, at half the cost.
qr_triangle_p: Primitive = Primitive(
    "qr_triangle",
    _triangle_abstract,
    not_of_low("qr")(lambda x: np.linalg.qr(x, mode="r")),
    jvp=_triangle_jvp,
    batch=lambda size, args, dims: (qr_triangle_p.bind(move_axis(args[0], dims[0], 0)), 0),
    kernel=Block(_triangle_kernel),
    cost=per_matrix(triangle_of),
)


def _abstract(x: Aval) -> Aval:
    if x.ndim < 2:
        raise LinAlgError(f"qr: expected matrices (at least two axes), got shape {x.shape}")
    check_kind("qr", x.dtype)
    return Aval((*x.shape[:-2], x.shape[-1]), INT32)


@not_of_low("qr")
def _impl(x: Value) -> np.ndarray:
    n = x.shape[-1]
    out = np.empty((*x.shape[:-2], n), INT32)
    out[...] = np.arange(n)
    if x.size:
        geqp3 = scipy.linalg.lapack.get_lapack_funcs("geqp3", dtype=x.dtype)
        for place in np.ndindex(x.shape[:-2]):
            out[place] = geqp3(x[place])[1] - 1
    return out


def _jvp(primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[Value, Tangent]:
    ans = column_order_p.bind(*primals)
    return ans, Zero(ans)


def _kernel(k: BlockEmitter, operands: ArrayLike, results: Sequence[Buffer]) -> None:
    (a,), (out,) = operands, results
    *batch, m, n = a.shape
    work, taus = k.scratch((n, m), a.dtype), k.scratch((max(min(m, n), 1),), a.dtype)
    memory = k.scratch(((_BLOCK + 2) * n + _BLOCK,), a.dtype)
    order = k.scratch((n,), INT32)
    reals = (k.scratch((2 * n,), real_dtype(a.dtype)),) if a.dtype.kind == "c" else ()
    with lanes(k, batch) as b:
        with k.loop(n) as j:
            k.store(order, [j], k.const(0, INT32))
            with k.loop(m) as i:
                k.store(work, [j, i], k.load(a, [*b, i, j]))
        info = k.local(k.const(0, INT32))
        k.extern("geqp3", m, n, work, max(m, 1), order, taus, memory, memory.shape[0], *reals, info)
        with k.loop(n) as j:
            # LAPACK leaves the order unchanged if the matrix has no rows.
            k.store(out, [*b, j], k.load(order, [j]) - 1 if m else k.cast(j, INT32))


column_order_p: Primitive = Primitive(
    "column_order",
    _abstract,
    _impl,
    jvp=_jvp,
    batch=lambda size, args, dims: (column_order_p.bind(move_axis(args[0], dims[0], 0)), 0),
    kernel=Block(_kernel),
    cost=per_matrix(triangle_of),
)
