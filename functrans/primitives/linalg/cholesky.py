"""Cholesky factors, in batches: axes before the last two run in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.aval import Aval, Zero
from ...core.errors import LinAlgError
from ...core.kernel import Block, BlockEmitter, Buffer
from ...core.primitive import Effect, Primitive
from ..elementwise.arithmetic import mul_p, sub_p
from ..elementwise.complexes import conj_p
from ..structure.linear import add_p, dtype_of, move_axis
from ..structure.shape import loops
from .cholesky_derivative import cholesky_slope_p, halved
from .matrices import check_kind, check_square, matrix_product, matrix_transpose, offset_of, triangle
from .triangular import solve, triangular_solve_p

__all__ = ["cholesky_p", "solve", "triangular_solve_p"]

# --- cholesky -----------------------------------------------------------------------------------------------


def _cholesky_abstract(x: Aval, *, on_error: str) -> Aval:
    check_square("cholesky", x)
    check_kind("cholesky", x.dtype)
    return x.strong()


def _cholesky_impl(x: Any, *, on_error: str) -> np.ndarray:
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
    """The factors one by one, NaN where there is none; and the first place where there is none."""
    out = np.full(x.shape, np.nan, x.dtype)
    bad = None
    for place in np.ndindex(x.shape[:-2]):
        try:
            out[place] = np.linalg.cholesky(x[place])
        except np.linalg.LinAlgError:
            bad = place if bad is None else bad
    return out, bad


def _cholesky_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, on_error: str) -> tuple[Any, Any]:
    factor = cholesky_p.bind(*primals, on_error=on_error)
    t = tangents[0]
    if type(t) is Zero:
        return factor, Zero(factor)
    # Only the lower triangle of the matrix is read: its tangent is the symmetric one with that triangle.
    if dtype_of(t).kind == "f":
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


def _cholesky_batch(size: int, args: Sequence[Any], dims: Sequence[int], *, on_error: str) -> tuple[Any, int]:
    return cholesky_p.bind(move_axis(args[0], dims[0], 0), on_error=on_error), 0


def _cholesky_kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer], *, on_error: str) -> None:
    out = results[0]
    *batch, n, _ = out.shape
    k.copy(out, operands[0])
    zero, nan = k.const(0, out.dtype), k.const(np.nan, out.dtype)
    with loops(k, batch) as b:
        info = k.local(k.const(0, np.dtype(np.int32)))
        # Rows are columns to LAPACK: what it takes for the upper triangle is the lower one.
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
)
