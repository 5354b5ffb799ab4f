"""Tridiagonal matrices, in batches: systems of equations, eigenvalues and eigenvectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import (
    Aval,
    Block,
    BlockEmitter,
    Buffer,
    LinAlgError,
    Linear,
    Primitive,
    Workload,
    Zero,
    aval_of,
    is_float,
    quietly,
)
from ...core.values import ArrayLike, Param, Tangent, Value
from ...errors import DtypeError, ShapeError
from ...runtime.libraries import scipy
from ..axes import same_dtype
from ..elementwise.arithmetic import mul_p, sub_p
from ..structure.linear import add_p, batched_first, dtype_of, instantiate, shape_of, zeros
from ..structure.shape import concatenate_p, lanes, slice_along
from .matrices import check_kind, matrix_product, matrix_transpose, not_of_low
from .spectral import as_column, column_products, may_raise, reciprocal_gaps, values_alone

# --- systems of equations -----------------------------------------------------------------------------------

# By elimination with partial pivoting, as LAPACK's gtsv.


def _abstract(dl: Aval, d: Aval, du: Aval, b: Aval) -> Aval:
    check_kind("tridiagonal_solve", same_dtype("tridiagonal_solve", (dl, d, du, b)))
    if not d.shape or not dl.shape == d.shape == du.shape or b.shape[:-1] != d.shape:
        raise LinAlgError(
            "tridiagonal_solve: expected three diagonals of shape (..., n) and b of shape (..., n, k), got "
            f"{dl.shape}, {d.shape}, {du.shape} and {b.shape}"
        )
    return b.strong()


@not_of_low("tridiagonal_solve")
@quietly
def _impl(dl: Any, d: Value, du: Any, b: Value) -> np.ndarray:
    out = np.array(b, order="C")
    n = d.shape[-1]
    if not b.size:
        return out
    if n == 1:  # LAPACK's wrapper wants diagonals of a positive length
        return np.asarray(b / d[..., None])
    gtsv = scipy.linalg.get_lapack_funcs("gtsv", dtype=b.dtype)
    for place in np.ndindex(d.shape[:-1]):
        *_, x, info = gtsv(dl[place][1:], d[place], du[place][:-1], b[place])
        out[place] = np.nan if info else x
    return out


def _kernel(k: BlockEmitter, operands: ArrayLike, results: Sequence[Buffer]) -> None:
    lower, main, upper, right = operands
    (x,) = results
    *batch, n, columns = right.shape
    if not n:
        return
    # The diagonals of the triangular factor: the main one, and the two above.
    p, q, r = [k.scratch((n,), right.dtype) for _ in range(3)]
    zero = k.const(0, right.dtype)
    with lanes(k, batch) as b:
        with k.loop(n) as i:
            k.store(p, [i], k.load(main, [*b, i]))
            k.store(q, [i], k.load(upper, [*b, i]))
            k.store(r, [i], zero)
            with k.loop(columns) as c:
                k.store(x, [*b, i, c], k.load(right, [*b, i, c]))
        k.store(q, [n - 1], zero)
        with k.loop(n - 1) as i:
            _eliminate(k, (p, q, r), k.load(lower, [*b, i + 1]), x, b, i)
        with k.loop(n, reverse=True) as i:
            pivot, first, second = (k.load(a, [i]) for a in (p, q, r))
            one, two = _at_most(k, i + 1, n), _at_most(k, i + 2, n)
            with k.loop(columns) as c:
                rest = (
                    k.load(x, [*b, i, c]) - first * k.load(x, [*b, one, c]) - second * k.load(x, [*b, two, c])
                )
                k.store(x, [*b, i, c], rest / pivot)


def _eliminate(
    k: BlockEmitter, factor: tuple[Buffer, ...], below: Any, x: Buffer, b: Sequence[Any], i: ArrayLike
) -> None:
    """Eliminate the element `below` the diagonal of column `i`, after an exchange if it is the larger one."""
    p, q, _ = factor
    above = k.load(p, [i]), k.load(q, [i]), k.const(0, x.dtype)
    under = below, k.load(p, [i + 1]), k.load(q, [i + 1])
    exchange = k.call("abs", under[0]) > k.call("abs", above[0])
    pivot = [k.where(exchange, u, a) for a, u in zip(above, under)]
    other = [k.where(exchange, a, u) for a, u in zip(above, under)]
    multiplier = other[0] / pivot[0]
    for buffer, value in zip(factor, pivot):
        k.store(buffer, [i], value)
    k.store(p, [i + 1], other[1] - multiplier * pivot[1])
    k.store(q, [i + 1], other[2] - multiplier * pivot[2])
    with k.loop(x.shape[-1]) as c:
        first, second = k.load(x, [*b, i, c]), k.load(x, [*b, i + 1, c])
        top = k.where(exchange, second, first)
        k.store(x, [*b, i, c], top)
        k.store(x, [*b, i + 1, c], k.where(exchange, first, second) - multiplier * top)


def _at_most(k: BlockEmitter, i: ArrayLike, n: int) -> Any:
    """The index, or the last one: what stands there is multiplied by 0."""
    return k.where(i < n, i, i * 0 + (n - 1))


def tridiagonal_product(dl: Value, d: Value, du: Value, x: Value) -> Value:
    """The product of tridiagonal matrices, as their diagonals, and `x`, shape (..., n, k)."""
    total = mul_p.bind(as_column(d), x)
    total = add_p.bind(total, mul_p.bind(as_column(dl), _shifted(x, 1, len(shape_of(x)) - 2)))
    return add_p.bind(total, mul_p.bind(as_column(du), _shifted(x, -1, len(shape_of(x)) - 2)))


def _shifted(x: Value, by: int, axis: int) -> Value:
    """Move elements along an axis by one place, up (1) or down (-1); zero at the end."""
    shape = shape_of(x)
    n = shape[axis]
    if not n:
        return x
    gap = zeros(Aval((*shape[:axis], 1, *shape[axis + 1 :]), dtype_of(x)))
    kept = slice_along(x, axis, 0, n - 1) if by > 0 else slice_along(x, axis, 1, n)
    return concatenate_p.bind(*((gap, kept) if by > 0 else (kept, gap)), dimension=axis)


def _jvp(primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[Value, Tangent]:
    *diagonals, _ = primals
    *moved, right = tangents
    x = tridiagonal_solve_p.bind(*primals)
    total = None if type(right) is Zero else right
    if any(type(t) is not Zero for t in moved):
        below, main, above = [instantiate(t) for t in moved]
        product = tridiagonal_product(below, main, above, x)
        total = sub_p.bind(zeros(Aval(shape_of(x), dtype_of(x))) if total is None else total, product)
    return x, Zero(x) if total is None else tridiagonal_solve_p.bind(*diagonals, total)


def _transpose(ct: Value, dl: Any, d: ArrayLike, du: Any, b: ArrayLike) -> list[Tangent]:
    assert type(b) is Linear, "the solution is linear in b only"
    axis = len(shape_of(d)) - 1
    return [None, None, None, tridiagonal_solve_p.bind(_shifted(du, 1, axis), d, _shifted(dl, -1, axis), ct)]


#: Of diagonals with n elements each: the first of the lower and the last of the upper one are not read.
tridiagonal_solve_p: Primitive = Primitive(
    "tridiagonal_solve",
    _abstract,
    _impl,
    jvp=_jvp,
    transpose=_transpose,
    batch=lambda size, args, dims: (
        tridiagonal_solve_p.bind(*[batched_first(size, x, d) for x, d in zip(args, dims)]),
        0,
    ),
    kernel=Block(_kernel),
    cost=lambda dl, d, du, b: Workload(8 * b.size),
)


# --- eigenvalues --------------------------------------------------------------------------------------------


def _eigh_abstract(d: Aval, e: Aval, *, vectors: bool, on_error: str) -> tuple[Aval, ...]:
    dtype = same_dtype("eigh_tridiagonal", (d, e))
    check_kind("eigh_tridiagonal", dtype)
    if not is_float(dtype):
        raise DtypeError(
            f"eigh_tridiagonal: the diagonals must be real floats, got dtype {dtype}; for complex ones build the "
            "matrix, and call eigh"
        )
    if not d.shape or not d.shape[-1] or e.shape != (*d.shape[:-1], d.shape[-1] - 1):
        raise ShapeError(
            f"eigh_tridiagonal: expected d of shape (..., n) and e of shape (..., n - 1), got {d.shape} and {e.shape}"
        )
    return (d.strong(), Aval((*d.shape, d.shape[-1]), dtype)) if vectors else (d.strong(),)


@not_of_low("eigh_tridiagonal")
def _eigh_impl(d: Value, e: Value, *, vectors: bool, on_error: str) -> tuple[np.ndarray, ...]:
    avals = _eigh_abstract(aval_of(d), aval_of(e), vectors=vectors, on_error=on_error)
    outs = tuple([np.full(a.shape, np.nan, a.dtype) for a in avals])
    for place in np.ndindex(d.shape[:-1]):
        try:
            if not (np.isfinite(d[place]).all() and np.isfinite(e[place]).all()):
                raise np.linalg.LinAlgError("a diagonal contains NaN or infinity")
            parts = scipy.linalg.eigh_tridiagonal(
                d[place], e[place], eigvals_only=not vectors, check_finite=False
            )
        except np.linalg.LinAlgError as error:
            if on_error == "raise":
                raise LinAlgError(f"eigh_tridiagonal: {error}") from None
            continue
        for out, part in zip(outs, parts if vectors else [parts], strict=True):
            out[place] = part
    return outs


def _eigh_jvp(
    primals: Sequence[Any], tangents: Sequence[Tangent], *, vectors: bool, on_error: str
) -> tuple[Any, Any]:
    d, e = primals
    if all(type(t) is Zero for t in tangents):
        outs = eigh_tridiagonal_p.bind(d, e, vectors=vectors, on_error=on_error)
        return outs, tuple([Zero(out) for out in outs])
    w, v = eigh_tridiagonal_p.bind(d, e, vectors=True, on_error=on_error)
    t_d, t_e = [instantiate(t) for t in tangents]
    gap = zeros(Aval((*shape_of(d)[:-1], 1), dtype_of(d)))
    axis = len(shape_of(d)) - 1
    below, above = (concatenate_p.bind(*pair, dimension=axis) for pair in ((gap, t_e), (t_e, gap)))
    # As of eigh: W' = diag(V^T A' V), V' = V (F * V^T A' V).
    moved = tridiagonal_product(below, t_d, above, v)
    slope = column_products(v, moved)
    if not vectors:
        return (w,), (slope,)
    inner = mul_p.bind(reciprocal_gaps(w, shape_of(d)[-1]), matrix_product(matrix_transpose(v), moved))
    return (w, v), (slope, matrix_product(v, inner))


def _eigh_batch(size: int, args: Sequence[Value], dims: Sequence[Any], **params: Param) -> tuple[Any, Any]:
    outs = eigh_tridiagonal_p.bind(*[batched_first(size, x, d) for x, d in zip(args, dims)], **params)
    return outs, (0,) * len(outs)


#: Of real symmetric matrices, as two diagonals. It calls SciPy.
eigh_tridiagonal_p: Primitive = Primitive(
    "eigh_tridiagonal",
    _eigh_abstract,
    _eigh_impl,
    jvp=_eigh_jvp,
    batch=_eigh_batch,
    effects=may_raise,
    multiple_results=True,
    narrow=values_alone(0),
    cost=lambda d, e, *, vectors, **params: Workload(d.size * (d.shape[-1] * (12 if vectors else 3))),
)
