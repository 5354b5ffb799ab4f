"""Kernels that solve triangular systems in place: loops for small ones, BLAS for all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.kernel import BlockEmitter, Buffer
from .matrices import offset_of

#: Up to this size loops are quicker than two calls of BLAS.
SMALL = 8

Place = tuple[Buffer, Sequence[Any]]
"""A buffer, and the index of a matrix in it (of the axes before the last two)."""


def substitute(
    k: BlockEmitter, factor: Place, out: Place, *, lower: bool, transpose: bool = False, unit: bool = False
) -> None:
    """Solve ``op(factor) x = out`` for one matrix; `out` is overwritten.

    Parameters
    ----------
    factor : Place, shape (..., n, n)
        Only one triangle is read.
    out : Place, shape (..., n, m)
    lower, transpose, unit : bool
        Which triangle is read, whether it is transposed, whether its diagonal is taken for ones.
    """
    n, columns = out[0].shape[-2:]
    if n <= SMALL:
        _by_loops(k, factor, out, lower, transpose, unit)
        return
    matrix, target = [(x, offset_of(at, x.shape)) for x, at in (factor, out)]
    # Rows are columns to BLAS: it sees both matrices transposed.
    uplo, diagonal = "U" if lower else "L", "U" if unit else "N"
    if columns == 1:
        k.extern("trsv", uplo, "N" if transpose else "T", diagonal, n, matrix, n, target, 1)
    else:
        trans = "T" if transpose else "N"
        k.extern("trsm", "R", uplo, trans, diagonal, columns, n, 1.0, matrix, n, target, max(columns, 1))


def _by_loops(k: BlockEmitter, factor: Place, out: Place, lower: bool, transpose: bool, unit: bool) -> None:
    (matrix, own), (x, at) = factor, out
    n, columns = x.shape[-2:]
    forward = lower != transpose
    with k.loop(n, reverse=not forward) as i:
        with k.loop(i if forward else n, 0 if forward else i + 1) as j:
            multiplier = k.load(matrix, [*own, j, i] if transpose else [*own, i, j])
            with k.loop(columns) as c:
                rest = k.load(x, [*at, i, c]) - multiplier * k.load(x, [*at, j, c])
                k.store(x, [*at, i, c], rest)
        if not unit:
            pivot = k.load(matrix, [*own, i, i])
            with k.loop(columns) as c:
                k.store(x, [*at, i, c], k.load(x, [*at, i, c]) / pivot)
