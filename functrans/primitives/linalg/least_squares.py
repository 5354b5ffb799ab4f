"""Pseudo-inverses, and minimum-norm least squares, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.aval import Aval, Zero, aval_of
from ...core.dtypes import FLOAT64, INT32, real_dtype
from ...core.kernel import Block, BlockEmitter, Buffer, Scalar
from ...core.primitive import Primitive
from ...core.values import ArrayLike, Param, Tangent, Value
from ...errors import LinAlgError
from ..axes import same_dtype
from ..elementwise.arithmetic import neg_p, sub_p
from ..structure.linear import add_p, batched_first, shape_of
from ..structure.shape import lanes, loops
from . import spectral
from .matrices import (
    check_kind,
    check_matrix,
    check_right_side,
    matrix_product,
    matrix_transpose,
    nan_instead,
    not_of_low,
    per_matrix,
    singular_vectors,
)
from .svd import Workspace, svd_p

_PROBLEM = "the singular values did not converge"


def _check_cutoff(name: str, a: Aval, rtol: Aval) -> None:
    if rtol.shape != a.shape[:-2] or rtol.dtype != FLOAT64:
        raise LinAlgError(
            f"{name}: rtol must be float64 with the axes of the batch {a.shape[:-2]}, got {rtol}"
        )


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(spectral.wide_dtype(x.dtype))


def _thin_svd(a: np.ndarray, rtol: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return ``U^H``, the singular values, their reciprocals (0 for negligible ones), and ``V``."""
    u, s, vh = np.linalg.svd(_wide(a), full_matrices=False)
    large = s > rtol[..., None] * s.max(-1, keepdims=True, initial=0)
    inverse = np.divide(1, s, where=large, out=np.zeros_like(s))
    return np.swapaxes(u, -1, -2).conj(), s, inverse, np.swapaxes(vh, -1, -2).conj()


# --- pinv ---------------------------------------------------------------------------------------------------


def _pinv_abstract(a: Aval, rtol: Aval, *, on_error: str) -> Aval:
    check_matrix("pinv", a)
    check_kind("pinv", a.dtype)
    _check_cutoff("pinv", a, rtol)
    *batch, m, n = a.shape
    return Aval((*batch, n, m), a.dtype)


@not_of_low("pinv")
def _pinv_impl(a: ArrayLike, rtol: ArrayLike, *, on_error: str) -> np.ndarray:
    rtol = np.asarray(rtol)

    def function(a: np.ndarray, rtol: np.ndarray) -> tuple[np.ndarray, ...]:
        uh, _, inverse, v = _thin_svd(a, rtol)
        return ((v * inverse[..., None, :] @ uh).astype(a.dtype),)

    aval = _pinv_abstract(aval_of(a), aval_of(rtol), on_error=on_error)
    return spectral.matrix_by_matrix("pinv", _PROBLEM, function, (a, rtol), (aval,), on_error)[0]


def _pinv_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, on_error: str
) -> tuple[Value, Tangent]:
    a, rtol = primals
    t = tangents[0]
    p = pinv_p.bind(a, rtol, on_error=on_error)
    if type(t) is Zero:
        return p, Zero(p)
    # P' = -P A' P + P P^H A'^H (I - A P) + (I - P A) A'^H P^H P, at constant rank (Golub & Pereyra 1973).
    m, n = shape_of(a)[-2:]
    t_h, p_h = matrix_transpose(t, conjugate=True), matrix_transpose(p, conjugate=True)
    if m >= n:  # multiply by the smaller matrices
        inner = matrix_product(p, t)
        first = matrix_product(inner, p)
        rows = matrix_product(matrix_product(p, p_h), t_h)
        columns = matrix_product(matrix_transpose(inner, conjugate=True), p)
    else:
        inner = matrix_product(t, p)
        first = matrix_product(p, inner)
        rows = matrix_product(p, matrix_transpose(inner, conjugate=True))
        columns = matrix_product(t_h, matrix_product(p_h, p))
    rows = sub_p.bind(rows, matrix_product(matrix_product(rows, a), p))
    columns = sub_p.bind(columns, matrix_product(p, matrix_product(a, columns)))
    return p, sub_p.bind(add_p.bind(rows, columns), first)


def _pinv_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], **params: Param
) -> tuple[Value, int]:
    return pinv_p.bind(*[batched_first(size, x, d) for x, d in zip(args, dims)], **params), 0


def _cutoff(k: BlockEmitter, w: Workspace, rtol: Buffer, batch: Sequence[Scalar]) -> Scalar:
    """Return the cutoff: smaller singular values are negligible."""
    return k.load(rtol, batch) * k.load(w.s, [0])


def _zeros(k: BlockEmitter, out: Buffer) -> None:
    with loops(k, out.shape) as index:
        k.store(out, index, k.const(0, out.dtype))


def _reciprocal(k: BlockEmitter, w: Workspace, cutoff: Scalar, j: Scalar) -> Scalar:
    s = k.load(w.s, [j])
    large = s > cutoff
    one, zero = k.const(1, s.dtype), k.const(0, s.dtype)
    return k.cast(k.where(large, one / k.where(large, s, one), zero), w.u.dtype)


def _pinv_kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer], *, on_error: str) -> None:
    a, rtol = operands
    *batch, m, n = a.shape
    rank = min(m, n)
    if not rank:
        _zeros(k, results[0])
        return
    w = Workspace.make(k, m, n, a.dtype, "S")
    product = k.scratch((n, m), w.a.dtype)
    with lanes(k, batch) as b:
        info = w.decompose(k, a, b)
        cutoff = _cutoff(k, w, rtol, b)
        with k.loop(rank) as j, k.loop(m) as i:
            k.store(w.u, [j, i], k.load(w.u, [j, i]) * _reciprocal(k, w, cutoff, j))
        # U and V^H in Fortran order are U^T and conj(V) in C order: this is the conjugate of V S^-1 U^H.
        k.extern("gemm", "N", "N", m, n, rank, 1.0, w.u, m, w.vh, rank, 0.0, product, m)
        with k.loop(n) as i, k.loop(m) as j:
            value = k.call("conj", k.load(product, [i, j]))
            k.store(results[0], [*b, i, j], k.cast(value, a.dtype))
        spectral.settle(k, info, results, b, on_error)


pinv_p: Primitive = Primitive(
    "pinv",
    _pinv_abstract,
    _pinv_impl,
    jvp=_pinv_jvp,
    batch=_pinv_batch,
    kernel=Block(_pinv_kernel),
    effects=spectral.may_raise,
    guard=nan_instead,
    cost=per_matrix(singular_vectors),
)


# --- lstsq --------------------------------------------------------------------------------------------------


def _lstsq_abstract(a: Aval, b: Aval, rtol: Aval, *, on_error: str) -> tuple[Aval, Aval, Aval]:
    check_matrix("lstsq", a)
    check_kind("lstsq", a.dtype)
    same_dtype("lstsq", (a, b))
    _check_cutoff("lstsq", a, rtol)
    *batch, m, n = a.shape
    check_right_side("lstsq", a, b)
    values = Aval((*batch, min(m, n)), real_dtype(a.dtype))
    return Aval((*batch, n, b.shape[-1]), a.dtype), values, Aval(tuple(batch), INT32)


@not_of_low("lstsq")
def _lstsq_impl(a: ArrayLike, b: ArrayLike, rtol: ArrayLike, *, on_error: str) -> tuple[np.ndarray, ...]:
    rtol = np.asarray(rtol)

    def function(a: np.ndarray, b: np.ndarray, rtol: np.ndarray) -> tuple[np.ndarray, ...]:
        uh, s, inverse, v = _thin_svd(a, rtol)
        x = v @ ((uh @ _wide(b)) * inverse[..., None])
        rank = np.count_nonzero(inverse, axis=-1)
        return x.astype(a.dtype), s.astype(real_dtype(a.dtype)), np.asarray(rank, INT32)

    avals = _lstsq_abstract(aval_of(a), aval_of(b), aval_of(rtol), on_error=on_error)
    return spectral.matrix_by_matrix("lstsq", _PROBLEM, function, (a, b, rtol), avals, on_error)


def _lstsq_jvp(primals: Sequence[Any], tangents: Sequence[Tangent], *, on_error: str) -> tuple[Any, Any]:
    a, b, rtol = primals
    t_a, t_b = tangents[:2]
    x, s, rank = lstsq_p.bind(a, b, rtol, on_error=on_error)
    if type(t_a) is Zero and type(t_b) is Zero:
        return (x, s, rank), (Zero(x), Zero(s), Zero(rank))
    p = pinv_p.bind(a, rtol, on_error=on_error)
    if type(t_a) is Zero:
        return (x, s, rank), (matrix_product(p, t_b), Zero(s), Zero(rank))
    # P' b, with P' of `pinv` above: X' = P (B' - A' X) + P P^H A'^H R + (I - P A) A'^H P^H X, R = B - A X.
    t_h, p_h = matrix_transpose(t_a, conjugate=True), matrix_transpose(p, conjugate=True)
    residual = sub_p.bind(b, matrix_product(a, x))
    right = neg_p.bind(matrix_product(t_a, x))
    right = right if type(t_b) is Zero else add_p.bind(right, t_b)
    right = add_p.bind(right, matrix_product(p_h, matrix_product(t_h, residual)))
    free = matrix_product(t_h, matrix_product(p_h, x))
    free = sub_p.bind(free, matrix_product(p, matrix_product(a, free)))
    t_x = add_p.bind(matrix_product(p, right), free)
    return (x, s, rank), (t_x, _slope_of_values(a, t_a, on_error), Zero(rank))


def _slope_of_values(a: Value, t: Value, on_error: str) -> Value:
    """Return the tangents of the singular values."""
    u, _, vh = svd_p.bind(a, full_matrices=False, vectors=True, on_error=on_error)
    return spectral.real_part(
        spectral.column_products(u, matrix_product(t, matrix_transpose(vh, conjugate=True)))
    )


def _lstsq_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], **params: Param
) -> tuple[Any, tuple[int, ...]]:
    return lstsq_p.bind(*[batched_first(size, x, d) for x, d in zip(args, dims)], **params), (0, 0, 0)


def _lstsq_kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer], *, on_error: str) -> None:
    a, right, rtol = operands
    *batch, m, n = a.shape
    rank, count = min(m, n), right.shape[-1]
    if not rank:
        _zeros(k, results[0])
        _zeros(k, results[2])
        return
    w = Workspace.make(k, m, n, a.dtype, "S")
    # LAPACK is column-major and reads right-hand sides in C order as rows: it computes transposed products.
    given, turned, solved = (k.scratch((size, count), w.a.dtype) for size in (m, rank, n))
    with lanes(k, batch) as b:
        info = w.decompose(k, a, b)
        cutoff = _cutoff(k, w, rtol, b)
        with k.loop(m) as i, k.loop(count) as j:
            k.store(given, [i, j], k.cast(k.load(right, [*b, i, j]), given.dtype))
        _conjugate(k, w.u)
        if count:
            k.extern("gemm", "N", "N", count, rank, m, 1.0, given, count, w.u, m, 0.0, turned, count)
        numerical_rank = k.local(k.const(0, INT32))
        with k.loop(rank) as i:
            numerical_rank.set(numerical_rank.get() + k.cast(k.load(w.s, [i]) > cutoff, INT32))
            inverse = _reciprocal(k, w, cutoff, i)
            with k.loop(count) as j:
                k.store(turned, [i, j], k.load(turned, [i, j]) * inverse)
        _conjugate(k, w.vh)
        if count:
            k.extern("gemm", "N", "N", count, n, rank, 1.0, turned, count, w.vh, rank, 0.0, solved, count)
        with k.loop(n) as i, k.loop(count) as j:
            k.store(results[0], [*b, i, j], k.cast(k.load(solved, [i, j]), a.dtype))
        spectral.store_vector(k, results[1], w.s, b)
        k.store(results[2], list(b), numerical_rank.get())
        spectral.settle(k, info, results, b, on_error)


def _conjugate(k: BlockEmitter, x: Buffer) -> None:
    if x.dtype.kind == "c":
        with loops(k, x.shape) as index:
            k.store(x, index, k.call("conj", k.load(x, index)))


lstsq_p: Primitive = Primitive(
    "lstsq",
    _lstsq_abstract,
    _lstsq_impl,
    jvp=_lstsq_jvp,
    batch=_lstsq_batch,
    kernel=Block(_lstsq_kernel),
    effects=spectral.may_raise,
    guard=nan_instead,
    multiple_results=True,
    cost=per_matrix(singular_vectors),
)
