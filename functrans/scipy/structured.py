"""Structured matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.aval import Aval, aval_of
from ..core.checked import checked
from ..core.dtypes import promote
from ..primitives.elementwise.complexes import conj_p
from ..primitives.indexing.gather_scatter import gather_p
from ..primitives.operands import finish, operand, strong
from ..primitives.structure.linear import (
    broadcast_shapes,
    broadcast_to,
    move_axis,
    reshape_p,
    shape_of,
    zeros,
)
from ..primitives.structure.shape import concatenate_p, rev_p, slice_along


@checked
def block_diag(*arrs: Any) -> Any:
    """A block-diagonal matrix of the given matrices.

    Parameters
    ----------
    *arrs : array_like, shape (..., m, n)
        Numbers and vectors count as matrices of one row. Leading axes broadcast.

    Returns
    -------
    Array, shape (..., sum of m, sum of n)

    Examples
    --------
    >>> from functrans.scipy.linalg import block_diag
    >>> block_diag(1.0, [[2.0, 3.0]])
    Array([[1., 0., 0.],
           [0., 2., 3.]])
    """
    values = [operand(x, "block_diag", i) for i, x in enumerate(arrs)] or [np.zeros((1, 0))]
    dtype, _ = promote([(aval_of(v).dtype, False) for v in values])
    blocks = []
    for v in values:
        shape = shape_of(v)
        v = strong(v, dtype)
        blocks.append(v if len(shape) > 1 else reshape_p.bind(v, shape=(1, math.prod(shape))))
    batch = broadcast_shapes("block_diag", *[shape_of(b)[:-2] for b in blocks])
    width = sum(shape_of(b)[-1] for b in blocks)
    rank, rows, before = len(batch) + 2, [], 0
    for b in blocks:
        m, n = shape_of(b)[-2:]
        left, right = (zeros(Aval((*batch, m, w), dtype)) for w in (before, width - before - n))
        rows.append(concatenate_p.bind(left, broadcast_to(b, (*batch, m, n)), right, dimension=rank - 1))
        before += n
    return finish(concatenate_p.bind(*rows, dimension=rank - 2))


@checked
def toeplitz(c: Any, r: Any = None) -> Any:
    """A matrix with constant diagonals.

    Parameters
    ----------
    c : array_like, shape (..., m)
        The first column.
    r : array_like, shape (..., n), optional
        The first row, whose first element is not read. By default the conjugate of `c`.

    Returns
    -------
    Array, shape (..., m, n)

    Examples
    --------
    >>> from functrans.scipy.linalg import toeplitz
    >>> toeplitz([1, 2, 3], [1, 4, 5, 6])
    Array([[1, 4, 5, 6],
           [2, 1, 4, 5],
           [3, 2, 1, 4]])
    """
    column = operand(c, "toeplitz")
    row = operand(r, "toeplitz", 1) if r is not None else column
    dtype, _ = promote([(aval_of(v).dtype, False) for v in (column, row)])
    column, row = strong(column, dtype), strong(row, dtype)
    if r is None and dtype.kind == "c":
        row = conj_p.bind(row)
    column, row = [reshape_p.bind(v, shape=(1,)) if not shape_of(v) else v for v in (column, row)]
    batch = broadcast_shapes("toeplitz", shape_of(column)[:-1], shape_of(row)[:-1])
    axis, m, n = len(batch), shape_of(column)[-1], shape_of(row)[-1]
    if not m or not n:
        return finish(zeros(Aval((*batch, m, n), dtype)))
    column, row = broadcast_to(column, (*batch, m)), broadcast_to(row, (*batch, n))
    rest = slice_along(row, axis, 1, n)
    values = concatenate_p.bind(rev_p.bind(column, dimensions=(axis,)), rest, dimension=axis)
    places = np.arange(m)[::-1, None] + np.arange(n)
    out = gather_p.bind(values, places, axes=(axis,), mode="promise_in_bounds")
    for _ in range(2):
        out = move_axis(out, 0, axis + 1)
    return finish(out)
