"""Eigenvalues and eigenvectors of symmetric and Hermitian matrices, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..core.aval import Aval, Zero, aval_of
from ..core.dtypes import INT32, real_dtype
from ..core.kernel import Block, BlockEmitter, Buffer
from ..core.primitive import Primitive
from .elementwise import mul_p
from .linear import batched_first, dtype_of, shape_of
from .matrices import check_kind, check_square, matrix_product, matrix_transpose
from .shape import loops
from .spectral import (
    cast,
    column_products,
    hermitian,
    load_columns,
    matrix_by_matrix,
    may_raise,
    real_part,
    reciprocal_gaps,
    settle,
    store_columns,
    store_vector,
    wide_dtype,
)


def _abstract(
    x: Aval, *, lower: bool, vectors: bool, on_error: str, strict: bool = False
) -> tuple[Aval, ...]:
    check_square("eigh", x)
    check_kind("eigh", x.dtype)
    values = Aval(x.shape[:-1], real_dtype(x.dtype))
    return (values, x.strong()) if vectors else (values,)


def _impl(
    x: Any, *, lower: bool, vectors: bool, on_error: str, strict: bool = False
) -> tuple[np.ndarray, ...]:
    uplo: Literal["L", "U"] = "L" if lower else "U"

    def function(a: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(np.linalg.eigh(a, uplo)) if vectors else (np.linalg.eigvalsh(a, uplo),)

    avals = _abstract(aval_of(x), lower=lower, vectors=vectors, on_error=on_error)
    return matrix_by_matrix("eigh", "the eigenvalues did not converge", function, (x,), avals, on_error)


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    lower: bool,
    vectors: bool,
    on_error: str,
    strict: bool = False,
) -> tuple[Any, Any]:
    x, t = primals[0], tangents[0]
    if type(t) is Zero:
        outs = eigh_p.bind(x, lower=lower, vectors=vectors, on_error=on_error)
        return outs, tuple([Zero(out) for out in outs])
    w, v = eigh_p.bind(x, lower=lower, vectors=True, on_error=on_error, strict=True)
    if not shape_of(x)[-1]:
        return ((w, v), (Zero(w), Zero(v))) if vectors else ((w,), (Zero(w),))
    # A V = V W gives W' = diag(V^H A' V) and V' = V (F * V^H A' V), F[i, j] = 1 / (w[j] - w[i]) (Giles 2008).
    moved = matrix_product(hermitian(t, lower), v)
    slope = real_part(column_products(v, moved))
    if not vectors:
        return (w,), (slope,)
    gaps = cast(reciprocal_gaps(w, shape_of(x)[-1], strict), dtype_of(v))
    inner = matrix_product(matrix_transpose(v, conjugate=True), moved)
    return (w, v), (slope, matrix_product(v, mul_p.bind(gaps, inner)))


def _batch(size: int, args: Sequence[Any], dims: Sequence[int], **params: Any) -> tuple[Any, Any]:
    outs = eigh_p.bind(batched_first(size, args[0], dims[0]), **params)
    return outs, (0,) * len(outs)


def _workspace(n: int, is_complex: bool, vectors: bool) -> tuple[int, int, int]:
    """LWORK, LRWORK and LIWORK of syevd and heevd, with room for blocks of 32 in the reduction."""
    block = 32 * n
    if vectors:
        integers = 3 + 5 * n
        if is_complex:
            return 2 * n + n * n + block + 1, 1 + 5 * n + 2 * n * n, integers
        return 1 + 6 * n + 2 * n * n + block, 1, integers
    return 2 * n + 1 + block, n + 1, 1


def _kernel(
    k: BlockEmitter,
    operands: Any,
    results: Sequence[Buffer],
    *,
    lower: bool,
    vectors: bool,
    on_error: str,
    strict: bool = False,
) -> None:
    *batch, n, _ = operands[0].shape
    wide = wide_dtype(operands[0].dtype)
    is_complex = wide.kind == "c"
    sizes = _workspace(n, is_complex, vectors)
    a, w = k.scratch((n, n), wide), k.scratch((n,), real_dtype(wide))
    work, rwork, iwork = (
        k.scratch((size,), dtype) for size, dtype in zip(sizes, (wide, real_dtype(wide), INT32))
    )
    real_work: tuple[Any, ...] = (rwork, sizes[1]) if is_complex else ()
    with loops(k, batch) as b:
        load_columns(k, a, operands[0], b)
        info = k.local(k.const(0, INT32))
        k.extern(
            "heevd" if is_complex else "syevd",
            "V" if vectors else "N",
            "L" if lower else "U",
            n,
            a,
            max(n, 1),
            w,
            work,
            sizes[0],
            *real_work,
            iwork,
            sizes[2],
            info,
        )
        store_vector(k, results[0], w, b)
        if vectors:
            store_columns(k, results[1], a, b)
        settle(k, info, results, b, on_error)


eigh_p: Primitive = Primitive(
    "eigh",
    _abstract,
    _impl,
    jvp=_jvp,
    batch=_batch,
    kernel=Block(_kernel),
    effects=may_raise,
    multiple=True,
)
