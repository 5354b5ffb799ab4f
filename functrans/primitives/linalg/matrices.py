"""Small algebra of matrices in the last two axes, for the rules of the decompositions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.errors import DtypeError, LinAlgError
from ..elementwise.arithmetic import ge_p, gt_p, select_p
from ..elementwise.complexes import conj_p
from ..products.dot import dot_general_p
from ..structure.create import diagonal_mask, iota
from ..structure.linear import dtype_of, reduce_sum_p, shape_of, transpose_p
from ..structure.shape import slice_along


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
