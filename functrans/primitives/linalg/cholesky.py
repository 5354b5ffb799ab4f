"""Cholesky factors in batches. The derivative of real factors and its transpose work in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import Aval, Block, BlockEmitter, Buffer, Effect, LinAlgError, Linear, Primitive, Zero, is_float
from ...core.values import ArrayLike, Tangent, Value
from ..axes import same_dtype
from ..elementwise.arithmetic import mul_p, neg_p, sub_p
from ..elementwise.complexes import conj_p
from ..structure.linear import add_p, batched_first, dtype_of, move_axis
from ..structure.shape import lanes
from .matrices import (
    check_kind,
    check_square,
    matrix_product,
    matrix_transpose,
    nan_instead,
    not_of_low,
    offset_of,
    per_matrix,
    triangle,
)
from .triangular import solve, triangular_solve_p

__all__ = [
    "cholesky_p", "solve", "triangular_solve_p",
]  # fmt: skip


_BLOCK = 32
"""Rows of one block. Loops work within a block, BLAS between blocks."""


def halved(x: Value) -> Value:
    """Return the strict lower triangle and half of the diagonal."""
    both = add_p.bind(triangle(x, lower=True), triangle(x, lower=True, strict=True))
    return mul_p.bind(dtype_of(x).type(0.5), both)


def _mirrored(x: Value) -> Value:
    """Return the symmetric matrix with this lower triangle."""
    return add_p.bind(triangle(x, lower=True), matrix_transpose(triangle(x, lower=True, strict=True)))


def _folded(x: Value) -> Any:
    """Return the transpose of `_mirrored`: the upper triangle added to the lower one."""
    return add_p.bind(triangle(x, lower=True), triangle(matrix_transpose(x), lower=True, strict=True))


def _abstract(factor: Aval, t: Aval, *, back: bool) -> Aval:
    check_square("cholesky_slope", factor)
    same_dtype("cholesky_slope", (factor, t), "f")
    return t.strong()


def _left(factor: Value, x: Value, transpose: bool = False) -> Value:
    return solve(factor, x, left_side=True, lower=True, transpose_a=transpose)


def _right(factor: Value, x: Value, transpose: bool = False) -> Value:
    return solve(factor, x, left_side=False, lower=True, transpose_a=transpose)


def _impl(factor: ArrayLike, t: Value, *, back: bool) -> np.ndarray:
    factor = np.tril(factor)
    if back:
        inner = halved(np.swapaxes(factor, -1, -2) @ np.tril(t))
        return _folded(_right(factor, _left(factor, inner, True)))
    return factor @ halved(_left(factor, _right(factor, _mirrored(t), True)))


def _jvp(primals: Sequence[Value], tangents: Sequence[Tangent], *, back: bool) -> tuple[Value, Tangent]:
    (factor, t), (e, t_t) = primals, tangents
    ans = cholesky_slope_p.bind(factor, t, back=back)
    out = None if type(t_t) is Zero else cholesky_slope_p.bind(factor, t_t, back=back)
    if type(e) is not Zero:
        moved = (_moved_back if back else _moved)(triangle(factor, lower=True), t, triangle(e, lower=True))
        out = moved if out is None else add_p.bind(out, moved)
    return ans, Zero(ans) if out is None else out


def _moved(factor: Value, t: Value, e: Value) -> Value:
    """The derivative of ``L phi(M)``, ``M = L^-1 S L^-T``, in L: ``M' = -(F M + M F^T)`` where ``F = L^-1 L'``."""
    m = _left(factor, _right(factor, _mirrored(t), True))
    f = matrix_product(_left(factor, e), m)
    change = neg_p.bind(add_p.bind(f, matrix_transpose(f)))
    return add_p.bind(matrix_product(e, halved(m)), matrix_product(factor, halved(change)))


def _moved_back(factor: Value, ct: Value, e: Value) -> Value:
    """The derivative of ``S = L^-T phi(L^T C) L^-1`` in L, folded."""
    ct = triangle(ct, lower=True)
    inner = halved(matrix_product(matrix_transpose(factor), ct))
    s = _right(factor, _left(factor, inner, True))
    growth = halved(matrix_product(matrix_transpose(e), ct))
    out = _right(factor, _left(factor, growth, True))
    out = sub_p.bind(out, _left(factor, matrix_product(matrix_transpose(e), s), True))
    return _folded(sub_p.bind(out, _right(factor, matrix_product(s, e))))


def _transpose(ct: Value, factor: ArrayLike, t: Value, *, back: bool) -> list[Tangent]:
    assert type(factor) is not Linear, "cholesky_slope is not linear in the factor"
    return [None, cholesky_slope_p.bind(factor, ct, back=not back)]


def _batch(size: int, args: Sequence[Value], dims: Sequence[int | None], *, back: bool) -> tuple[Value, int]:
    factor, t = [batched_first(size, x, d) for x, d in zip(args, dims)]
    return cholesky_slope_p.bind(factor, t, back=back), 0


# --- kernels ------------------------------------------------------------------------------------------------


def _kernel(k: BlockEmitter, operands: ArrayLike, results: Sequence[Buffer], *, back: bool) -> None:
    (factor, _), (out,) = operands, results
    *batch, n, _ = out.shape
    k.copy(out, operands[1])
    if back:
        square = k.scratch((_BLOCK, _BLOCK), out.dtype)
        with lanes(k, batch) as b:
            blocks = -(-n // _BLOCK)
            with k.loop(blocks, reverse=True) as q:
                first = q * _BLOCK
                width = k.call("min", -first + n, k.const(_BLOCK, first.dtype))
                _back_block(k, factor, out, b, first, width, square)
            with k.loop(n) as i, k.loop(n, i + 1) as j:
                k.store(out, [*b, i, j], k.const(0, out.dtype))
        return
    size = max(n, 1)
    with lanes(k, batch) as b:
        with k.loop(n) as i, k.loop(i) as j:
            k.store(out, [*b, j, i], k.load(out, [*b, i, j]))
        lower, target = (factor, offset_of(b, factor.shape)), (out, offset_of(b, out.shape))
        # BLAS is column-major: it sees all matrices transposed.
        k.extern("trsm", "L", "U", "T", "N", n, n, 1.0, lower, size, target, size)
        k.extern("trsm", "R", "U", "N", "N", n, n, 1.0, lower, size, target, size)
        with k.loop(n) as i:
            k.store(out, [*b, i, i], k.load(out, [*b, i, i]) * 0.5)
            with k.loop(n, i + 1) as j:
                k.store(out, [*b, i, j], k.const(0, out.dtype))
        k.extern("trmm", "R", "U", "N", "N", n, n, 1.0, lower, size, target, size)


def _back_block(
    k: BlockEmitter, factor: Buffer, out: Buffer, b: Sequence[Any], j: ArrayLike, width: Any, square: Buffer
) -> None:
    """Process the rows of one block from j on: ``[R D]`` of the factor with ``[B C]`` below, and the same of `out`."""
    n = out.shape[-1]
    after = j + width
    rows = -after + n
    start = offset_of(b, out.shape)

    def at(x: Buffer, i: ArrayLike, column: Any) -> tuple[Buffer, Any]:
        return x, i * n + column + start

    # BLAS is column-major: it sees all matrices transposed.
    c = at(out, after, j)
    k.extern("trsm", "L", "U", "N", "N", width, rows, 1.0, at(factor, j, j), n, c, n)
    k.extern("gemm", "N", "N", j, rows, width, -1.0, at(factor, j, 0), n, c, n, 1.0, at(out, after, 0), n)
    k.extern("gemm", "N", "T", width, width, rows, -1.0, at(factor, after, j), n, c, n, 1.0, at(out, j, j), n)
    _back_rows(k, factor, out, b, j, width)
    with k.loop(width) as p, k.loop(p + 1) as q:
        value = k.load(out, [*b, j + p, j + q])
        k.store(square, [p, q], value)
        k.store(square, [q, p], value)
    with k.loop(width) as p:
        k.store(square, [p, p], k.load(square, [p, p]) * 2.0)
    k.extern("gemm", "N", "T", j, width, rows, -1.0, at(factor, after, 0), n, c, n, 1.0, at(out, j, 0), n)
    k.extern(
        "gemm", "N", "N", j, width, width, -1.0, at(factor, j, 0), n, square, _BLOCK, 1.0, at(out, j, 0), n
    )


def _back_rows(
    k: BlockEmitter, factor: Buffer, out: Buffer, b: Sequence[Any], first: ArrayLike, width: Any
) -> None:
    """Process a diagonal block, row by row from the last."""
    after = first + width
    with k.loop(after, first, reverse=True) as j:
        pivot = k.load(factor, [*b, j, j])
        inner = k.local(k.const(0, out.dtype))
        with k.loop(after, j + 1) as i:
            inner.set(inner.get() + k.load(factor, [*b, i, j]) * k.load(out, [*b, i, j]))
            k.store(out, [*b, i, j], k.load(out, [*b, i, j]) / pivot)
        corner = (k.load(out, [*b, j, j]) - inner.get() / pivot) / pivot
        with k.loop(j, first) as c:
            k.store(out, [*b, j, c], k.load(out, [*b, j, c]) - corner * k.load(factor, [*b, j, c]))
        with k.loop(after, j + 1) as i:
            column = k.load(out, [*b, i, j])
            with k.loop(j, first) as c:
                k.store(out, [*b, j, c], k.load(out, [*b, j, c]) - column * k.load(factor, [*b, i, c]))
                k.store(out, [*b, i, c], k.load(out, [*b, i, c]) - column * k.load(factor, [*b, j, c]))
        k.store(out, [*b, j, j], corner * 0.5)


cholesky_slope_p: Primitive = Primitive(
    "cholesky_slope",
    _abstract,
    _impl,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    kernel=Block(_kernel, reuse=1),
    cost=per_matrix(lambda m, n: 3 * n**3),
)


# --- cholesky -----------------------------------------------------------------------------------------------


def _cholesky_abstract(x: Aval, *, on_error: str) -> Aval:
    check_square("cholesky", x)
    check_kind("cholesky", x.dtype)
    return x.strong()


@not_of_low("cholesky")
def _cholesky_impl(x: ArrayLike, *, on_error: str) -> np.ndarray:
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        if x.ndim == 2:
            bad: tuple[int, ...] | None = ()
            out = np.full(x.shape, np.nan, x.dtype)
        else:
            out, bad = _each(x)
    if on_error == "raise":
        which = f"matrix {bad if len(bad) != 1 else bad[0]} of the batch" if bad else "the matrix"
        raise LinAlgError(
            f"cholesky: {which} is not positive definite. Add a small multiple of the identity, or use "
            'config.patch(linalg_errors="nan") to get NaN instead'
        )
    return out


def _each(x: np.ndarray) -> tuple[np.ndarray, tuple[int, ...] | None]:
    """Factorize one by one, NaN where it fails. Also return the index of the first failure."""
    out = np.full(x.shape, np.nan, x.dtype)
    bad = None
    for place in np.ndindex(x.shape[:-2]):
        try:
            out[place] = np.linalg.cholesky(x[place])
        except np.linalg.LinAlgError:
            bad = place if bad is None else bad
    return out, bad


def _cholesky_jvp(primals: Sequence[Any], tangents: Sequence[Tangent], *, on_error: str) -> tuple[Any, Any]:
    factor = cholesky_p.bind(*primals, on_error=on_error)
    t = tangents[0]
    if type(t) is Zero:
        return factor, Zero(factor)
    # Only the lower triangle of the matrix counts, so its tangent is the symmetric matrix with the tangent's triangle.
    if is_float(dtype_of(t)):
        return factor, cholesky_slope_p.bind(factor, t, back=False)
    below = triangle(t, lower=True, strict=True)
    diagonal = sub_p.bind(triangle(t, lower=True), below)
    half = dtype_of(t).type(0.5)
    diagonal = mul_p.bind(half, add_p.bind(diagonal, conj_p.bind(diagonal)))
    symmetric = add_p.bind(add_p.bind(below, matrix_transpose(below, conjugate=True)), diagonal)
    # L' = L phi(L^-1 A' L^-H), where phi takes the lower triangle and half of the diagonal.
    inner = solve(factor, symmetric, left_side=False, lower=True, transpose_a=True, conjugate_a=True)
    inner = solve(factor, inner, left_side=True, lower=True)
    return factor, matrix_product(factor, halved(inner))


def _cholesky_batch(
    size: int, args: Sequence[Value], dims: Sequence[int], *, on_error: str
) -> tuple[Value, int]:
    return cholesky_p.bind(move_axis(args[0], dims[0], 0), on_error=on_error), 0


def _cholesky_kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer], *, on_error: str) -> None:
    out = results[0]
    *batch, n, _ = out.shape
    k.copy(out, operands[0])
    zero, nan = k.const(0, out.dtype), k.const(np.nan, out.dtype)
    with lanes(k, batch) as b:
        info = k.local(k.const(0, np.dtype(np.int32)))
        # LAPACK is column-major: its upper triangle is our lower one.
        k.extern("potrf", "U", n, (out, offset_of(b, out.shape)), max(n, 1), info)
        failed = info.get().ne(0)
        if on_error == "raise":
            k.fail_if(failed)
        with k.loop(n) as i, k.loop(n, i + 1) as j:
            k.store(out, [*b, i, j], zero)
        if on_error == "nan":
            with k.if_(failed), k.loop(n) as i, k.loop(n) as j:
                k.store(out, [*b, i, j], nan)


cholesky_p: Primitive = Primitive(
    "cholesky",
    _cholesky_abstract,
    _cholesky_impl,
    jvp=_cholesky_jvp,
    batch=_cholesky_batch,
    kernel=Block(_cholesky_kernel, reuse=0),
    effects=lambda *, on_error: Effect.RAISE if on_error == "raise" else Effect.NONE,
    guard=nan_instead,
    cost=per_matrix(lambda m, n: n**3 / 3),
)
