"""Small algebra of matrices in the last two axes, for the rules of decompositions; triangular solves in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.errors import DtypeError, LinAlgError
from ...core.kernel import BlockEmitter, Buffer
from ..elementwise.arithmetic import ge_p, gt_p, select_p
from ..elementwise.complexes import conj_p
from ..products.dot import dot_general_p
from ..structure.linear import dtype_of, reduce_sum_p, shape_of, transpose_p
from ..structure.shape import diagonal_mask, iota, slice_along


def matrix_transpose(x: Any, conjugate: bool = False) -> Any:
    """The last two axes exchanged; complex conjugate too if asked for."""
    n = len(shape_of(x))
    x = transpose_p.bind(x, permutation=(*range(n - 2), n - 1, n - 2))
    return conj_p.bind(x) if conjugate and dtype_of(x).kind == "c" else x


def matrix_product(x: Any, y: Any) -> Any:
    """``x @ y`` of arrays with the same axes before the last two."""
    n = len(shape_of(x))
    batch = tuple(range(n - 2))
    return dot_general_p.bind(x, y, dimension_numbers=(((n - 1,), (n - 2,)), (batch, batch)))


def triangle(x: Any, lower: bool, strict: bool = False) -> Any:
    """`x` with zeros outside one triangle; also on the diagonal if `strict`."""
    n, m = shape_of(x)[-2:]
    rows, columns = iota((n, 1), 0), iota((1, m), 1)
    first, second = (rows, columns) if lower else (columns, rows)
    inside = (gt_p if strict else ge_p).bind(first, second)
    return select_p.bind(inside, x, dtype_of(x).type(0))


def check_matrix(name: str, a: Any) -> None:
    """Refuse what has fewer than two axes."""
    if a.ndim < 2:
        raise LinAlgError(
            f"{name}: expected matrices (at least two axes), got shape {a.shape}; add an axis with x[:, None]"
        )


def check_square(name: str, a: Any) -> None:
    """Refuse what is no square matrix, or no stack of these."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise LinAlgError(f"{name}: the last two axes must be equal (square matrices), got shape {a.shape}")


def check_kind(name: str, dtype: np.dtype) -> None:
    """Refuse integers and booleans."""
    if dtype.kind not in "fc":
        raise DtypeError(f"{name}: dtype {dtype} is not supported; convert to float with .astype(float)")


def offset_of(index: Sequence[Any], shape: Sequence[int]) -> Any:
    """Where in memory the matrix at a batch index begins, in elements."""
    total: Any = 0
    for d, i in enumerate(index):
        step = 1
        for n in shape[d + 1 :]:
            step *= n
        total = i * step + total
    return total


def columns_of(x: Any, start: int, stop: int) -> Any:
    """Some columns of matrices."""
    shape = shape_of(x)
    return x if (start, stop) == (0, shape[-1]) else slice_along(x, len(shape) - 1, start, stop)


def rows_of(x: Any, start: int, stop: int) -> Any:
    """Some rows of matrices."""
    shape = shape_of(x)
    return x if (start, stop) == (0, shape[-2]) else slice_along(x, len(shape) - 2, start, stop)


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return matrix_transpose(x, conjugate=True)


def diagonal_of(x: Any) -> Any:
    """The main diagonals of square matrices."""
    n = shape_of(x)[-1]
    chosen = select_p.bind(diagonal_mask(n, n), x, dtype_of(x).type(0))
    return reduce_sum_p.bind(chosen, axes=(len(shape_of(x)) - 1,))


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
