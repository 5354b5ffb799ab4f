"""Singular value decomposition, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.aval import Aval, Zero, aval_of
from ...core.dtypes import INT32, real_dtype
from ...core.kernel import Block, BlockEmitter, Buffer, Local, Scalar
from ...core.primitive import Primitive
from ...core.values import ArrayLike, Param, Tangent, Value
from ...runtime.records import NamedTuple
from ..elementwise.arithmetic import mul_p, sub_p
from ..structure.linear import add_p, batched_first, dtype_of, shape_of
from ..structure.shape import concatenate_p, lanes, slice_p
from . import spectral
from .matrices import (
    check_kind,
    check_matrix,
    matrix_product,
    matrix_transpose,
    nan_instead,
    not_of_low,
    per_matrix,
    singular_values,
    singular_vectors,
)


def _abstract(x: Aval, *, full_matrices: bool, vectors: bool, on_error: str) -> tuple[Aval, ...]:
    check_matrix("svd", x)
    check_kind("svd", x.dtype)
    *batch, m, n = x.shape
    values = Aval((*batch, min(m, n)), real_dtype(x.dtype))
    if not vectors:
        return (values,)
    left, right = (m, n) if full_matrices else (min(m, n), min(m, n))
    return Aval((*batch, m, left), x.dtype), values, Aval((*batch, right, n), x.dtype)


@not_of_low("svd")
def _impl(x: ArrayLike, *, full_matrices: bool, vectors: bool, on_error: str) -> tuple[np.ndarray, ...]:
    def function(a: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(np.linalg.svd(a, full_matrices)) if vectors else (np.linalg.svd(a, compute_uv=False),)

    avals = _abstract(aval_of(x), full_matrices=full_matrices, vectors=vectors, on_error=on_error)
    return spectral.matrix_by_matrix(
        "svd", "the singular values did not converge", function, (x,), avals, on_error
    )


# --- derivative ---------------------------------------------------------------------------------------------


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Tangent],
    *,
    full_matrices: bool,
    vectors: bool,
    on_error: str,
) -> tuple[Any, Any]:
    x, t = primals[0], tangents[0]
    m, n = shape_of(x)[-2:]
    if type(t) is Zero or not (m and n):
        outs = svd_p.bind(x, full_matrices=full_matrices, vectors=vectors, on_error=on_error)
        return outs, tuple([Zero(out) for out in outs])
    full = full_matrices and vectors
    u, s, vh = svd_p.bind(x, full_matrices=full, vectors=True, on_error=on_error)
    rank = min(m, n)
    v = matrix_transpose(vh, conjugate=True)
    u_thin, v_thin = (_columns(a, 0, rank) if full else a for a in (u, v))
    moved = matrix_product(t, v_thin)
    slope = spectral.real_part(spectral.column_products(u_thin, moved))
    if not vectors:
        return (s,), (slope,)
    inner = matrix_product(matrix_transpose(u_thin, conjugate=True), moved)
    even, odd = _parts(inner, s, max(m, n))
    t_u = matrix_product(u_thin, add_p.bind(even, odd))
    t_v = matrix_product(v_thin, sub_p.bind(even, odd))
    inverse = spectral.cast(spectral.as_row(_inverse(s, max(m, n))), dtype_of(x))
    if m > n:
        t_u = add_p.bind(t_u, mul_p.bind(_outside(u_thin, moved), inverse))
    if n > m:
        back = matrix_product(matrix_transpose(t, conjugate=True), u_thin)
        t_v = add_p.bind(t_v, mul_p.bind(_outside(v_thin, back), inverse))
    if full:
        t_u, t_v = _completed(u, t_u), _completed(v, t_v)
    return (u, s, vh), (t_u, slope, matrix_transpose(t_v, conjugate=True))


def _parts(inner: Value, s: Value, order: int) -> tuple[Value, Value]:
    """Return the two parts of the rotations within the span of the thin factors, from ``U^H A' V``.

    With its Hermitian part H and skew part K (each doubled), ``U^H U'`` and ``V^H V'`` are
    ``(H / (s[j] - s[i]) ± K / (s[j] + s[i])) / 2``: Townsend (2016), Seeger et al. (2017). On the diagonal only the
    difference of the two is determined; each gets half of it.
    """
    dtype = dtype_of(inner)
    half = dtype.type(0.5)
    adjoint = matrix_transpose(inner, conjugate=True)
    outer = spectral.cast(
        spectral.reciprocal_matrix(add_p.bind(spectral.as_row(s), spectral.as_column(s)), s, order), dtype
    )
    gaps = spectral.cast(spectral.reciprocal_gaps(s, order), dtype)
    even = mul_p.bind(mul_p.bind(half, add_p.bind(inner, adjoint)), gaps)
    odd = mul_p.bind(mul_p.bind(half, sub_p.bind(inner, adjoint)), outer)
    return even, odd


def _inverse(s: Value, order: int) -> Value:
    """Return ``1 / s``, and NaN where `s` is zero up to rounding."""
    return spectral.safe_reciprocal(s, spectral.negligible(s, order), dtype_of(s).type(np.nan))


def _outside(u: Value, x: Value) -> Value:
    """Return the part of the columns of `x` that is orthogonal to those of `u`."""
    return sub_p.bind(x, matrix_product(u, matrix_product(matrix_transpose(u, conjugate=True), x)))


def _columns(x: Value, start: int, stop: int) -> Value:
    shape = shape_of(x)
    first, last = (*(0,) * (len(shape) - 1), start), (*shape[:-1], stop)
    return slice_p.bind(x, start_indices=first, limit_indices=last, strides=(1,) * len(shape))


def _completed(u: Value, t_thin: Any) -> Value:
    """Return the tangent of an orthogonal matrix from that of its first columns; the others move minimally."""
    rank, size = shape_of(t_thin)[-1], shape_of(u)[-1]
    if rank == size:
        return t_thin
    rest = _columns(u, rank, size)
    turned = matrix_product(matrix_transpose(t_thin, conjugate=True), rest)
    t_rest = matrix_product(_columns(u, 0, rank), turned)
    zero = dtype_of(u).type(0)
    return concatenate_p.bind(t_thin, sub_p.bind(zero, t_rest), dimension=len(shape_of(u)) - 1)


def _batch(size: int, args: Sequence[Value], dims: Sequence[int], **params: Param) -> tuple[Any, Any]:
    outs = svd_p.bind(batched_first(size, args[0], dims[0]), **params)
    return outs, (0,) * len(outs)


# --- kernel -------------------------------------------------------------------------------------------------


class Workspace(NamedTuple):
    """Scratch memory for one matrix and its singular value decomposition by gesdd, in Fortran order: each buffer has
    shape (columns, rows).
    """

    job: str
    a: Buffer
    s: Buffer
    u: Buffer
    vh: Buffer
    work: Buffer
    rwork: Buffer
    iwork: Buffer

    @classmethod
    def make(cls, k: BlockEmitter, m: int, n: int, dtype: np.dtype, job: str) -> Workspace:
        """Allocate for `m` rows and `n` columns; `job` is 'A' (square factors), 'S' (thin ones) or 'N' (none)."""
        wide = spectral.wide_dtype(dtype)
        real, rank = real_dtype(wide), min(m, n)
        left, right = {"A": (m, n), "S": (rank, rank), "N": (0, 0)}[job]
        size, real_size = workspace(m, n, wide.kind == "c", job)
        return cls(
            job,
            k.scratch((n, m), wide),
            k.scratch((rank,), real),
            k.scratch((left, m), wide),
            k.scratch((n, right), wide),
            k.scratch((size,), wide),
            k.scratch((real_size,), real),
            k.scratch((max(8 * rank, 1),), INT32),
        )

    def decompose(self, k: BlockEmitter, source: Buffer, batch: Sequence[Scalar]) -> Local:
        """Decompose the matrix at a batch index; return LAPACK's `info`."""
        m, n = source.shape[-2:]
        spectral.load_columns(k, self.a, source, batch)
        info = k.local(k.const(0, INT32))
        real_work = (self.rwork,) if self.a.dtype.kind == "c" else ()
        k.extern(
            "gesdd",
            self.job,
            m,
            n,
            self.a,
            max(m, 1),
            self.s,
            self.u,
            max(m, 1),
            self.vh,
            max(self.vh.shape[1], 1),
            self.work,
            self.work.shape[0],
            *real_work,
            self.iwork,
            info,
        )
        return info


def workspace(m: int, n: int, is_complex: bool, job: str) -> tuple[int, int]:
    """Return LWORK and LRWORK of gesdd, with room for blocks of 64."""
    large, rank = max(m, n), max(min(m, n), 1)
    block = 64 * (m + n)
    if is_complex:
        size = {"N": 2 * rank + large, "S": rank * rank + 3 * rank, "A": rank * rank + 2 * rank + large}[job]
        spare = 5 * rank * rank + 5 * rank
        real = 7 * rank if job == "N" else max(spare, 2 * large * rank + 2 * rank * rank + rank)
        return size + block + 1, real
    size = {
        "N": 3 * rank + max(large, 7 * rank),
        "S": 4 * rank * rank + 7 * rank,
        "A": 4 * rank * rank + 6 * rank + large,
    }[job]
    return size + block, 1


def _kernel(
    k: BlockEmitter,
    operands: Any,
    results: Sequence[Buffer],
    *,
    full_matrices: bool,
    vectors: bool,
    on_error: str,
) -> None:
    *batch, m, n = operands[0].shape
    if not (m and n):
        _empty_kernel(k, results)
        return
    w = Workspace.make(k, m, n, operands[0].dtype, ("A" if full_matrices else "S") if vectors else "N")
    with lanes(k, batch) as b:
        info = w.decompose(k, operands[0], b)
        if vectors:
            spectral.store_columns(k, results[0], w.u, b)
            spectral.store_columns(k, results[2], w.vh, b)
        spectral.store_vector(k, results[len(results) // 2], w.s, b)
        spectral.settle(k, info, results, b, on_error)


def _empty_kernel(k: BlockEmitter, results: Sequence[Buffer]) -> None:
    """Handle matrices without rows or columns: the factor that has elements is the identity."""
    for out in (results[0], results[-1]) if len(results) > 1 else ():
        *batch, rows, columns = out.shape
        with lanes(k, batch) as b, k.loop(rows) as i, k.loop(columns) as j:
            one, zero = k.const(1, out.dtype), k.const(0, out.dtype)
            k.store(out, [*b, i, j], k.where(i.eq(j), one, zero))


svd_p: Primitive = Primitive(
    "svd",
    _abstract,
    _impl,
    jvp=_jvp,
    batch=_batch,
    kernel=Block(_kernel),
    effects=spectral.may_raise,
    guard=nan_instead,
    multiple_results=True,
    narrow=spectral.values_alone(1),
    cost=per_matrix(singular_vectors, values=singular_values),
)


# --- polar factor -------------------------------------------------------------------------------------------


@not_of_low("polar")
def _polar_impl(x: Value, *, on_error: str) -> np.ndarray:
    u, _, vh = _impl(x, full_matrices=False, vectors=True, on_error=on_error)
    return np.asarray(np.matmul(u, vh), x.dtype)


def _polar_jvp(primals: Sequence[Any], tangents: Sequence[Tangent], *, on_error: str) -> tuple[Any, Any]:
    x, t = primals[0], tangents[0]
    ans = polar_p.bind(x, on_error=on_error)
    m, n = shape_of(x)[-2:]
    if type(t) is Zero or not (m and n):
        return ans, Zero(ans)
    u, s, vh = svd_p.bind(x, full_matrices=False, vectors=True, on_error=on_error)
    v = matrix_transpose(vh, conjugate=True)
    moved = matrix_product(t, v)
    _, odd = _parts(matrix_product(matrix_transpose(u, conjugate=True), moved), s, max(m, n))
    inverse = spectral.cast(spectral.as_row(_inverse(s, max(m, n))), dtype_of(x))
    known = add_p.bind(mul_p.bind(inverse, dtype_of(x).type(0)), dtype_of(x).type(2))  # NaN where s is zero
    turned = matrix_product(u, mul_p.bind(odd, known))
    if m > n:
        turned = add_p.bind(turned, mul_p.bind(_outside(u, moved), inverse))
    out = matrix_product(turned, vh)
    if n > m:
        back = matrix_product(matrix_transpose(t, conjugate=True), u)
        rest = mul_p.bind(_outside(v, back), inverse)
        out = add_p.bind(out, matrix_product(u, matrix_transpose(rest, conjugate=True)))
    return ans, out


def _polar_kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer], *, on_error: str) -> None:
    (a,), (out,) = operands, results
    *batch, m, n = a.shape
    if not (m and n):
        return
    w = Workspace.make(k, m, n, a.dtype, "S")
    product = k.scratch((n, m), w.a.dtype)
    with lanes(k, batch) as b:
        info = w.decompose(k, a, b)
        rank = min(m, n)
        k.extern("gemm", "N", "N", m, n, rank, 1.0, w.u, m, w.vh, rank, 0.0, product, m)
        spectral.store_columns(k, out, product, b)
        spectral.settle(k, info, results, b, on_error)


def _polar_abstract(x: Aval, *, on_error: str) -> Aval:
    check_matrix("polar", x)
    check_kind("polar", x.dtype)
    return x.strong()


#: ``U @ Vh``, differentiable even at equal singular values: the terms with their differences cancel.
polar_p: Primitive = Primitive(
    "polar",
    _polar_abstract,
    _polar_impl,
    jvp=_polar_jvp,
    batch=lambda size, args, dims, **params: (
        polar_p.bind(batched_first(size, args[0], dims[0]), **params),
        0,
    ),
    kernel=Block(_polar_kernel),
    effects=spectral.may_raise,
    guard=nan_instead,
    cost=per_matrix(singular_vectors),
)
