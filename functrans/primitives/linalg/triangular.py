"""Triangular systems of equations, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from ...core import Aval, Block, BlockEmitter, Buffer, Effect, LinAlgError, Linear, Primitive, Workload, Zero
from ...core.values import ArrayLike, Param, Params, Tangent, Value
from ...runtime.libraries import scipy
from ..axes import same_dtype
from ..elementwise.arithmetic import neg_p, sub_p
from ..elementwise.complexes import conj_p
from ..structure.linear import batched_first, dtype_of, move_axis, reshape_p, shape_of
from ..structure.shape import lanes, loops
from . import matrices
from .matrices import not_of_low


def solve(
    a: Value,
    b: Value,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
    check: bool = False,
) -> Value:
    """Bind `triangular_solve` with defaults."""
    return triangular_solve_p.bind(
        a,
        b,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
        check=check,
    )


def _solve_abstract(a: Aval, b: Aval, *, left_side: bool, **params: Param) -> Aval:
    dtype = same_dtype("triangular_solve", (a, b))
    matrices.check_square("triangular_solve", a)
    matrices.check_kind("triangular_solve", dtype)
    matrices.check_right_side("triangular_solve", a, b, left_side)
    return b.strong()


@not_of_low("triangular_solve")
def _solve_impl(
    a: ArrayLike,
    b: Value,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
    check: bool,
) -> np.ndarray:
    if check:
        _check_diagonal(a)
    if conjugate_a and not transpose_a:
        a = np.conj(a)
    trsm = scipy.linalg.blas.get_blas_funcs("trsm", dtype=a.dtype)
    trans = 2 if conjugate_a and transpose_a else int(transpose_a)
    out = np.empty(b.shape, b.dtype)
    if not out.size:
        return out
    for place in np.ndindex(b.shape[:-2]):
        # BLAS takes the transpose of a C-ordered matrix without a copy: X op(A) = B.
        out[place] = trsm(
            1.0, a[place].T, b[place].T, side=left_side, lower=not lower, trans_a=trans, diag=unit_diagonal
        ).T
    return out


def _check_diagonal(a: np.ndarray) -> None:
    singular = np.diagonal(a, axis1=-2, axis2=-1) == 0
    if singular.any():
        *batch, row = np.argwhere(singular)[0].tolist()
        where = f" of matrix {tuple(batch) if len(batch) != 1 else batch[0]} of the batch" if batch else ""
        raise LinAlgError(f"solve_triangular: singular matrix: diagonal element {row}{where} is zero")


def _solve_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param
) -> tuple[Value, Tangent]:
    a, b = primals
    t_a, t_b = tangents
    ans = triangular_solve_p.bind(a, b, **params)
    right = t_b if type(t_a) is Zero else _moved(t_a, t_b, ans, params)
    if type(right) is Zero:
        return ans, Zero(ans)
    return ans, triangular_solve_p.bind(a, right, **{**params, "check": False})


def _moved(t_a: Value, t_b: Tangent, ans: Value, params: Params) -> Value:
    """Return ``B' - op(A') X``; elements outside the triangle are not read."""
    t_a = matrices.triangle(t_a, params["lower"], strict=params["unit_diagonal"])
    if params["transpose_a"]:
        t_a = matrices.matrix_transpose(t_a)
    if params["conjugate_a"] and dtype_of(t_a).kind == "c":
        t_a = conj_p.bind(t_a)
    moved = matrices.matrix_product(t_a, ans) if params["left_side"] else matrices.matrix_product(ans, t_a)
    return neg_p.bind(moved) if type(t_b) is Zero else sub_p.bind(t_b, moved)


def _solve_taylor(
    prim: Primitive, out: Sequence[Any], operands: Sequence[Any], params: Params
) -> Iterator[Any]:
    """``op(A) X = B`` gives ``op(A[0]) X[k] = B[k] - op(A[1]) X[k-1] - ... - op(A[k]) X[0]``."""
    a, b = operands
    for k in count(1):
        right = b[k]
        for j in range(1, k + 1):
            if type(a[j]) is not Zero and type(out[k - j]) is not Zero:
                right = _moved(a[j], right, out[k - j], params)
        yield Zero(out[0]) if type(right) is Zero else prim.bind(a[0], right, **{**params, "check": False})


def _guard(categories: Sequence[str], args: Sequence[Value], params: Params) -> tuple[Any, Any]:
    """Where NaN is an error, a singular matrix gives it instead of raising."""
    return [], {**params, "check": False} if "nan" in categories else params


def _solve_transpose(
    ct: Value, a: ArrayLike, b: Value, *, transpose_a: bool, **params: Param
) -> list[Tangent]:
    assert type(a) is not Linear, "triangular_solve is not linear in the matrix"
    back = {**params, "transpose_a": not transpose_a, "check": False}
    return [None, triangular_solve_p.bind(a, ct, **back)]


def _solve_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, left_side: bool, **params: Param
) -> tuple[Value, int]:
    a, b = args
    if dims[0] is not None:
        a, b = batched_first(size, a, dims[0]), batched_first(size, b, dims[1])
        return triangular_solve_p.bind(a, b, left_side=left_side, **params), 0
    # All lanes share one matrix, so they become columns of one right-hand side (rows if X is left of A).
    ndim = len(shape_of(b))
    place = ndim - 2 if left_side else ndim - 3
    assert dims[1] is not None
    b = move_axis(b, dims[1], place)
    shape = shape_of(b)
    merged = (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :])
    out = triangular_solve_p.bind(a, reshape_p.bind(b, shape=merged), left_side=left_side, **params)
    return reshape_p.bind(out, shape=shape), place


def _solve_kernel(
    k: BlockEmitter,
    operands: Any,
    results: Sequence[Buffer],
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
    check: bool,
) -> None:
    a, out = operands[0], results[0]
    *batch, rows, columns = out.shape
    n = a.shape[-1]
    k.copy(out, operands[1])
    if check:
        with lanes(k, batch) as b, k.loop(n) as i:
            k.fail_if(k.load(a, [*b, i, i]).eq(k.const(0, a.dtype)))
    if out.dtype.kind == "c" and conjugate_a and not transpose_a:
        conjugate = k.scratch(a.shape, a.dtype)
        with loops(k, a.shape) as index:
            k.store(conjugate, index, k.call("conj", k.load(a, index)))
        a, conjugate_a = conjugate, False
    with lanes(k, batch) as b:
        # BLAS is column-major: it solves the transposed system from the other side.
        k.extern(
            "trsm",
            "R" if left_side else "L",
            "U" if lower else "L",
            ("C" if conjugate_a else "T") if transpose_a else "N",
            "U" if unit_diagonal else "N",
            columns,
            rows,
            1.0,
            (a, matrices.offset_of(b, a.shape)),
            max(n, 1),
            (out, matrices.offset_of(b, out.shape)),
            max(columns, 1),
        )


triangular_solve_p: Primitive = Primitive(
    "triangular_solve",
    _solve_abstract,
    _solve_impl,
    jvp=_solve_jvp,
    taylor=_solve_taylor,
    transpose=_solve_transpose,
    batch=_solve_batch,
    kernel=Block(_solve_kernel, reuse=1),
    effects=lambda *, check, **params: Effect.RAISE if check else Effect.NONE,
    guard=_guard,
    cost=lambda a, b, **params: Workload(b.size * a.shape[-1]),
)
