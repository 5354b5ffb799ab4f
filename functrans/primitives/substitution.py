"""Kernels that solve triangular systems in place: loops for small ones, BLAS for all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.kernel import BlockEmitter, Buffer
from .matrices import offset_of

#: Up to this size loops are quicker than two calls of BLAS.
SMALL = 8


def substitute(
    k: BlockEmitter,
    factor: Buffer,
    out: Buffer,
    batch: Sequence[Any],
    *,
    lower: bool,
    transpose: bool = False,
    unit: bool = False,
    shared: bool = False,
) -> None:
    """Solve ``op(factor) x = out`` for the matrices at a batch index; `out` is overwritten.

    Parameters
    ----------
    factor : Buffer, shape (..., n, n)
        Only one triangle is read.
    out : Buffer, shape (..., n, m)
    batch : sequence of Scalar
        The index of the axes before the last two.
    lower, transpose, unit : bool
        Which triangle is read, whether it is transposed, whether its diagonal is taken for ones.
    shared : bool
        Whether `factor` is one matrix without axes before the last two.
    """
    own = [] if shared else list(batch)
    if out.shape[-2] <= SMALL:
        _by_loops(k, factor, own, out, batch, lower, transpose, unit)
        return
    n, columns = out.shape[-2:]
    matrix = (factor, offset_of(own, factor.shape)) if own else (factor, 0)
    target = (out, offset_of(batch, out.shape))
    # Rows are columns to BLAS: it sees both matrices transposed.
    uplo, diagonal = "U" if lower else "L", "U" if unit else "N"
    if columns == 1:
        k.extern("trsv", uplo, "N" if transpose else "T", diagonal, n, matrix, n, target, 1)
    else:
        trans = "T" if transpose else "N"
        k.extern("trsm", "R", uplo, trans, diagonal, columns, n, 1.0, matrix, n, target, max(columns, 1))


def _by_loops(
    k: BlockEmitter,
    factor: Buffer,
    own: Sequence[Any],
    out: Buffer,
    batch: Sequence[Any],
    lower: bool,
    transpose: bool,
    unit: bool,
) -> None:
    n, columns = out.shape[-2:]

    def element(i: Any, j: Any) -> Any:
        return k.load(factor, [*own, j, i] if transpose else [*own, i, j])

    forward = lower != transpose
    with k.loop(n, reverse=not forward) as i:
        with k.loop(i if forward else n, 0 if forward else i + 1) as j:
            multiplier = element(i, j)
            with k.loop(columns) as c:
                rest = k.load(out, [*batch, i, c]) - multiplier * k.load(out, [*batch, j, c])
                k.store(out, [*batch, i, c], rest)
        if not unit:
            pivot = element(i, i)
            with k.loop(columns) as c:
                k.store(out, [*batch, i, c], k.load(out, [*batch, i, c]) / pivot)
