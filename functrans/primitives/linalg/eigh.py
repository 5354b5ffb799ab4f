"""Eigenvalues and eigenvectors of symmetric and Hermitian matrices, in batches."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import INT32, Aval, Block, BlockEmitter, Buffer, Primitive, Zero, aval_of, real_dtype
from ...core.values import ArrayLike, Param, Value
from ..elementwise.arithmetic import mul_p
from ..structure.linear import batched_first, dtype_of, shape_of
from ..structure.shape import lanes
from . import spectral
from .matrices import (
    check_kind,
    check_square,
    columns_of,
    matrix_product,
    matrix_transpose,
    nan_instead,
    not_of_low,
    per_matrix,
)

Columns = tuple[int, int] | None
"""The range of eigenvectors to compute, by default all.

A slice of all eigenvectors differs in its derivative: equal eigenvalues outside the slice make its gradient NaN.
"""


def _abstract(
    x: Aval, *, lower: bool, vectors: bool, on_error: str, columns: Columns = None
) -> tuple[Aval, ...]:
    check_square("eigh", x)
    check_kind("eigh", x.dtype)
    values = Aval(x.shape[:-1], real_dtype(x.dtype))
    if not vectors:
        return (values,)
    return values, (
        x.strong() if columns is None else Aval((*x.shape[:-1], columns[1] - columns[0]), x.dtype)
    )


@not_of_low("eigh")
def _impl(
    x: ArrayLike, *, lower: bool, vectors: bool, on_error: str, columns: Columns = None
) -> tuple[np.ndarray, ...]:
    uplo: typing.Literal["L", "U"] = "L" if lower else "U"

    def function(a: np.ndarray) -> tuple[np.ndarray, ...]:
        if not vectors:
            return (np.linalg.eigvalsh(a, uplo),)
        w, v = np.linalg.eigh(a, uplo)
        return w, v if columns is None else v[..., columns[0] : columns[1]].copy()

    avals = _abstract(aval_of(x), lower=lower, vectors=vectors, on_error=on_error, columns=columns)
    return spectral.matrix_by_matrix(
        "eigh", "the eigenvalues did not converge", function, (x,), avals, on_error
    )


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    lower: bool,
    vectors: bool,
    on_error: str,
    columns: Columns = None,
) -> tuple[Any, Any]:
    x, t = primals[0], tangents[0]
    if type(t) is Zero or not shape_of(x)[-1]:
        outs = eigh_p.bind(x, lower=lower, vectors=vectors, on_error=on_error, columns=columns)
        return outs, tuple([Zero(out) for out in outs])
    w, v = eigh_p.bind(x, lower=lower, vectors=True, on_error=on_error)
    # A V = V W gives W' = diag(V^H A' V) and V' = V (F * V^H A' V), F[i, j] = 1 / (w[j] - w[i]) (Giles 2008).
    moved = matrix_product(spectral.hermitian(t, lower), v)
    slope = spectral.real_part(spectral.column_products(v, moved))
    if not vectors:
        return (w,), (slope,)
    gaps = spectral.cast(spectral.reciprocal_gaps(w, shape_of(x)[-1]), dtype_of(v))
    given = v
    if columns is not None:
        given, gaps, moved = (columns_of(a, *columns) for a in (v, gaps, moved))
    inner = matrix_product(matrix_transpose(v, conjugate=True), moved)
    return (w, given), (slope, matrix_product(v, mul_p.bind(gaps, inner)))


def _batch(size: int, args: Sequence[Value], dims: Sequence[int], **params: Param) -> tuple[Any, Any]:
    outs = eigh_p.bind(batched_first(size, args[0], dims[0]), **params)
    return outs, (0,) * len(outs)


def _workspace(n: int, is_complex: bool, vectors: bool) -> tuple[int, int, int]:
    """Return LWORK, LRWORK and LIWORK of syevd and heevd, with room for blocks of 32 in the reduction."""
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
    columns: Columns = None,
) -> None:
    *batch, n, _ = operands[0].shape
    wide = spectral.wide_dtype(operands[0].dtype)
    is_complex = wide.kind == "c"
    sizes = _workspace(n, is_complex, vectors)
    a, w = k.scratch((n, n), wide), k.scratch((n,), real_dtype(wide))
    work, rwork, iwork = (
        k.scratch((size,), dtype) for size, dtype in zip(sizes, (wide, real_dtype(wide), INT32))
    )
    real_work: tuple[Any, ...] = (rwork, sizes[1]) if is_complex else ()
    with lanes(k, batch) as b:
        spectral.load_columns(k, a, operands[0], b)
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
        spectral.store_vector(k, results[0], w, b)
        if vectors:
            spectral.store_columns(k, results[1], a, b, columns[0] if columns else 0)
        spectral.settle(k, info, results, b, on_error)


eigh_p: Primitive = Primitive(
    "eigh",
    _abstract,
    _impl,
    jvp=_jvp,
    batch=_batch,
    kernel=Block(_kernel),
    effects=spectral.may_raise,
    guard=nan_instead,
    multiple_results=True,
    narrow=spectral.values_alone(0),
    cost=per_matrix(lambda m, n: 9 * n**3, values=lambda m, n: 4 * n**3 / 3),
)
