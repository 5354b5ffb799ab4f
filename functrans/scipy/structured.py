"""Functions of matrices, and matrices of a structure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.aval import Aval, aval_of
from ..core.checked import checked
from ..core.dtypes import promote, real_dtype
from ..core.trace import concrete
from ..primitives.complexes import abs_p, conj_p
from ..primitives.create import eye
from ..primitives.elementwise import (
    convert_element_type_p,
    div_p,
    gt_p,
    max_p,
    mul_p,
    neg_p,
    select_p,
    stop_gradient_p,
    sub_p,
)
from ..primitives.exp_log import exp2_p, log2_p
from ..primitives.index import gather_p
from ..primitives.linear import (
    add_p,
    broadcast_shapes,
    broadcast_to,
    dtype_of,
    move_axis,
    reduce_sum_p,
    reshape_p,
    shape_of,
    zeros,
)
from ..primitives.matrices import check_square, matrix_product
from ..primitives.operands import finish, operand, strong
from ..primitives.reduce import reduce_max_p
from ..primitives.rounding import ceil_p, is_finite_p
from ..primitives.shape import concatenate_p, rev_p, slice_along
from ..primitives.solve import solve_p
from .arguments import inexact

_THETA = 5.371920351148152
"""Up to this 1-norm the Pade approximant of degree 13 is exact to double precision (Higham 2005, table 2.3)."""
_SQUARINGS = 16
"""How often a matrix is squared at most where its norm is not known while tracing."""
# fmt: off
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)
# fmt: on


@checked
def expm(A: Any) -> Any:
    """The exponential of square matrices.

    Parameters
    ----------
    A : array_like, shape (..., n, n)

    Returns
    -------
    Array, shape (..., n, n)

    Notes
    -----
    Scaling and squaring around the Pade approximant of degree 13 (Higham 2005, The scaling and squaring method for the
    matrix exponential revisited), with derivatives of all orders through its operations. Where the norm is not known
    while tracing (in `jit` and `vmap`) there are 16 squarings, of which those not needed are thrown away; matrices with
    a 1-norm above 3.5e5 then give NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.scipy.linalg import expm
    >>> expm([[0.0, np.pi], [-np.pi, 0.0]]).round(12)
    Array([[-1.,  0.],
           [-0., -1.]])
    """
    (x,) = inexact("expm", False, A)
    if shape_of(x) in ((), (1,)):  # a number is a matrix of one element to SciPy
        x = reshape_p.bind(x, shape=(1, 1))
    check_square("expm", x)
    if 0 in shape_of(x):
        return finish(x)
    frozen = stop_gradient_p.bind(x)
    rank = len(shape_of(x))
    norm = reduce_max_p.bind(reduce_sum_p.bind(abs_p.bind(frozen), axes=(rank - 2,)), axes=(rank - 2,))
    real = real_dtype(dtype_of(x))
    steps = ceil_p.bind(log2_p.bind(max_p.bind(div_p.bind(norm, real.type(_THETA)), real.type(1))))
    steps = select_p.bind(is_finite_p.bind(steps), steps, real.type(0))
    known = concrete(steps)
    most = _SQUARINGS if known is None else int(np.max(known))
    every = known is not None and np.min(known) == most
    steps = reshape_p.bind(steps, shape=(*shape_of(steps), 1, 1))
    scale = convert_element_type_p.bind(exp2_p.bind(neg_p.bind(steps)), dtype=dtype_of(x))
    out = _pade(mul_p.bind(x, scale))
    for i in range(most):
        out = matrix_product(out, out) if every else _squared(out, gt_p.bind(steps, real.type(i)))
    if known is None:
        beyond = gt_p.bind(steps, real.type(most))
        out = select_p.bind(broadcast_to(beyond, shape_of(out)), dtype_of(out).type(np.nan), out)
    return finish(out)


def _squared(x: Any, wanted: Any) -> Any:
    """The square where it is wanted; elsewhere no large number arises, in derivatives neither."""
    wanted = broadcast_to(wanted, shape_of(x))
    safe = select_p.bind(wanted, x, dtype_of(x).type(0))
    return select_p.bind(wanted, matrix_product(safe, safe), x)


def _pade(x: Any) -> Any:
    dtype = dtype_of(x)
    unit = eye(shape_of(x)[-1], shape_of(x)[-1], 0, dtype)
    two = matrix_product(x, x)
    four = matrix_product(two, two)
    six = matrix_product(four, two)
    powers = (unit, two, four, six)

    def combined(first: int, *chosen: Any) -> Any:
        total = mul_p.bind(dtype.type(_PADE[first]), chosen[0])
        for i, power in enumerate(chosen[1:], 1):
            total = add_p.bind(total, mul_p.bind(dtype.type(_PADE[first + 2 * i]), power))
        return total

    odd = add_p.bind(matrix_product(six, combined(9, *powers[1:])), combined(1, *powers))
    even = add_p.bind(matrix_product(six, combined(8, *powers[1:])), combined(0, *powers))
    odd = matrix_product(x, odd)
    return solve_p.bind(sub_p.bind(even, odd), add_p.bind(even, odd), on_error="nan", name="expm")


@checked
def block_diag(*arrs: Any) -> Any:
    """A matrix with the given ones along its diagonal, zeros elsewhere.

    Parameters
    ----------
    *arrs : array_like, shape (..., m, n)
        Numbers and vectors count as matrices of one row. Axes before the last two broadcast.

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
    """A matrix that is constant along its diagonals.

    Parameters
    ----------
    c : array_like, shape (..., m)
        The first column.
    r : array_like, shape (..., n), optional
        The first row, whose first element is not read. The conjugate of `c` if not given.

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
