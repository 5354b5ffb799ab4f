"""Systems of linear equations, by LU factors, in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from ...core import INT32, Aval, Block, BlockEmitter, Buffer, Effect, Linear, Primitive, Workload, Zero
from ...core.values import ArrayLike, Param, Params, Tangent, Value
from ...errors import LinAlgError, NoRuleError
from ..axes import same_dtype
from ..elementwise.arithmetic import neg_p, stop_gradient_p, sub_p
from ..structure.linear import batched_first, move_axis, reshape_p, shape_of
from ..structure.shape import lanes
from .cholesky import triangular_solve_p
from .lu import factored, lu_p
from .matrices import (
    check_kind,
    check_right_side,
    check_square,
    matrix_product,
    matrix_transpose,
    nan_instead,
    not_of_low,
    substitute,
)

# --- lu_solve -----------------------------------------------------------------------------------------------


def check_system(name: str, a: Aval, b: Aval) -> None:
    """Check the operands of a system of linear equations."""
    check_square(name, a)
    check_kind(name, same_dtype(name, (a, b)))
    check_right_side(name, a, b)


def singular(name: str, place: tuple[int, ...]) -> LinAlgError:
    """Return the error for the matrix at a batch index."""
    which = f"matrix {place if len(place) != 1 else place[0]} of the batch" if place else "the matrix"
    return LinAlgError(
        f"{name}: singular matrix: {which} has no inverse. Solve by least squares, add a small multiple of the "
        'identity, or use config.patch(linalg_errors="nan") to get NaN instead'
    )


def _zero_pivots(lu: np.ndarray) -> np.ndarray:
    return (np.diagonal(lu, axis1=-2, axis2=-1) == 0).any(-1)


def _lu_solve_abstract(a: Aval, lu: Aval, permutation: Aval, b: Aval, **params: Param) -> Aval:
    check_system("lu_solve", a, b)
    return b.strong()


@not_of_low("lu_solve")
def _lu_solve_impl(
    a: Value, lu: ArrayLike, permutation: ArrayLike, b: Value, *, transpose: bool, on_error: str, name: str
) -> np.ndarray:
    bad = _zero_pivots(lu) if on_error != "ignore" else None
    if bad is not None and on_error == "raise" and bad.any():
        raise singular(name, tuple(np.argwhere(bad)[0].tolist()))
    first = {"left_side": True, "conjugate_a": False, "check": False, "transpose_a": transpose}
    lower, upper = (
        {**first, "lower": True, "unit_diagonal": True},
        {**first, "lower": False, "unit_diagonal": False},
    )
    order = permutation[..., None]
    if transpose:
        inner = triangular_solve_p.impl(lu, triangular_solve_p.impl(lu, b, **upper), **lower)
        out = np.empty_like(inner)
        np.put_along_axis(out, np.broadcast_to(order, inner.shape), inner, -2)
    else:
        inner = np.take_along_axis(b, np.broadcast_to(order, b.shape), -2)
        out = triangular_solve_p.impl(lu, triangular_solve_p.impl(lu, inner, **lower), **upper)
    if bad is not None:
        out[bad] = np.nan
    return out


def lu_solve(
    a: Value,
    lu: Value,
    permutation: Value,
    b: Value,
    *,
    transpose: bool = False,
    on_error: str = "ignore",
    name: str = "",
) -> Value:
    """Solve ``op(a) x = b`` with the factors of `a`. The derivative is in `a`, not in the factors."""
    return lu_solve_p.bind(a, lu, permutation, b, transpose=transpose, on_error=on_error, name=name)


def _lu_solve_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, transpose: bool, **params: Param
) -> tuple[Value, Tangent]:
    a, lu, permutation, b = primals
    t_a, _, _, t_b = tangents
    ans = lu_solve_p.bind(a, lu, permutation, b, transpose=transpose, **params)
    right = _moved(t_a, t_b, ans, transpose)
    if right is None:
        return ans, Zero(ans)
    return ans, lu_solve(a, lu, permutation, right, transpose=transpose)


def _moved(t_a: Tangent, t_b: Tangent, ans: Value, transpose: bool = False) -> Any:
    """Return ``B' - op(A') X``, or None if both tangents are zero."""
    right = None if type(t_b) is Zero else t_b
    if type(t_a) is Zero:
        return right
    moved = matrix_product(matrix_transpose(t_a) if transpose else t_a, ans)
    return neg_p.bind(moved) if right is None else sub_p.bind(right, moved)


def _solution_taylor(
    solve: Callable[[Any], Any], out: Sequence[Any], a: Sequence[Any], b: Sequence[Any], transpose: bool
) -> Iterator[Any]:
    """``op(A) X = B`` gives ``op(A[0]) X[k] = B[k] - op(A[1]) X[k-1] - ... - op(A[k]) X[0]``."""
    for k in count(1):
        right = b[k]
        for j in range(1, k + 1):
            if type(a[j]) is not Zero and type(out[k - j]) is not Zero:
                right = _moved(a[j], right, out[k - j], transpose)
        yield Zero(out[0]) if type(right) is Zero else solve(right)


def _lu_solve_taylor(
    prim: Primitive, out: Sequence[Any], operands: Sequence[Any], params: Params
) -> Iterator[Any]:
    a, lu, permutation, b = operands
    transpose = params["transpose"]
    solve = partial(lu_solve, a[0], lu[0], permutation[0], transpose=transpose)
    return _solution_taylor(solve, out, a, b, transpose)


def _solve_taylor(
    prim: Primitive, out: Sequence[Any], operands: Sequence[Any], params: Params
) -> Iterator[Any]:
    a, b = operands
    lu, _, permutation = lu_p.bind(a[0])
    yield from _solution_taylor(partial(lu_solve, a[0], lu, permutation), out, a, b, transpose=False)


def _lu_solve_transpose(
    ct: Value, a: Value, lu: ArrayLike, permutation: ArrayLike, b: Value, *, transpose: bool, **params: Param
) -> Any:
    assert type(lu) is not Linear, "lu_solve is not linear in the matrix"
    return [None, None, None, lu_solve(a, lu, permutation, ct, transpose=not transpose)]


def _lu_solve_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], **params: Param
) -> tuple[Value, int]:
    return batch_of_systems(lu_solve_p, size, args, dims, **params)


def batch_of_systems(
    prim: Primitive, size: int, args: Sequence[Value], dims: Sequence[int | None], **params: Param
) -> tuple[Value, int]:
    """Batch a solver whose last operand is the right-hand side."""
    *matrix, b = args
    if any(d is not None for d in dims[:-1]):
        return prim.bind(*[batched_first(size, x, d) for x, d in zip(args, dims)], **params), 0
    # All lanes share one matrix, so they become columns of one right-hand side.
    place = len(shape_of(b)) - 2
    assert dims[-1] is not None
    b = move_axis(b, dims[-1], place)
    shape = shape_of(b)
    merged = reshape_p.bind(b, shape=(*shape[:place], shape[place] * shape[place + 1]))
    return reshape_p.bind(prim.bind(*matrix, merged, **params), shape=shape), place


def _lu_solve_kernel(
    k: BlockEmitter, operands: Any, results: Sequence[Buffer], *, transpose: bool, on_error: str, name: str
) -> None:
    _, lu, permutation, right = operands
    (out,) = results
    *batch, n, columns = out.shape
    index = np.dtype(np.int64)
    inner = k.scratch((n, columns), out.dtype) if transpose else None
    with lanes(k, batch) as b:
        if on_error == "raise":
            with k.loop(n) as i:
                k.fail_if(k.load(lu, [*b, i, i]).eq(k.const(0, lu.dtype)))
        if inner is None:
            with k.loop(n) as i:
                source = k.cast(k.load(permutation, [*b, i]), index)
                with k.loop(columns) as c:
                    k.store(out, [*b, i, c], k.load(right, [*b, source, c]))
            substitute(k, (lu, b), (out, b), lower=True, unit=True)
            substitute(k, (lu, b), (out, b), lower=False)
        else:
            with k.loop(n) as i, k.loop(columns) as c:
                k.store(inner, [i, c], k.load(right, [*b, i, c]))
            substitute(k, (lu, b), (inner, []), lower=False, transpose=True)
            substitute(k, (lu, b), (inner, []), lower=True, transpose=True, unit=True)
            with k.loop(n) as i:
                target = k.cast(k.load(permutation, [*b, i]), index)
                with k.loop(columns) as c:
                    k.store(out, [*b, target, c], k.load(inner, [i, c]))
        if on_error == "nan":
            _nan_where_singular(k, lu, b, out, b)


def _nan_where_singular(
    k: BlockEmitter, lu: Buffer, at: Sequence[Any], out: Buffer, b: Sequence[Any]
) -> None:
    n, columns = out.shape[-2:]
    bad = k.local(k.const(0, INT32))
    with k.loop(n) as i, k.if_(k.load(lu, [*at, i, i]).eq(k.const(0, lu.dtype))):
        bad.set(k.const(1, INT32))
    with k.if_(bad.get().ne(0)), k.loop(n) as i, k.loop(columns) as c:
        k.store(out, [*b, i, c], k.const(np.nan, out.dtype))


lu_solve_p: Primitive = Primitive(
    "lu_solve",
    _lu_solve_abstract,
    _lu_solve_impl,
    jvp=_lu_solve_jvp,
    taylor=_lu_solve_taylor,
    transpose=_lu_solve_transpose,
    batch=_lu_solve_batch,
    kernel=Block(_lu_solve_kernel),
    effects=lambda *, on_error, **params: Effect.RAISE if on_error == "raise" else Effect.NONE,
    guard=nan_instead,
    cost=lambda a, lu, permutation, b, **params: Workload(2 * b.size * a.shape[-1]),
)


# --- solve --------------------------------------------------------------------------------------------------


def _solve_abstract(a: Aval, b: Aval, *, on_error: str, name: str) -> Aval:
    check_system(name, a, b)
    return b.strong()


@not_of_low("solve")
def _solve_impl(a: Value, b: Value, *, on_error: str, name: str) -> np.ndarray:
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        # Solve one by one, with NaN for singular matrices.
        out = np.full(b.shape, np.nan, b.dtype)
        for place in np.ndindex(a.shape[:-2]):
            try:
                out[place] = np.linalg.solve(a[place], b[place])
            except np.linalg.LinAlgError:
                if on_error == "raise":
                    raise singular(name, place) from None
        return out


def _solve_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, on_error: str, name: str
) -> tuple[Value, Tangent]:
    a, b = primals
    lu, _, permutation = lu_p.bind(stop_gradient_p.bind(a))
    ans = lu_solve(a, lu, permutation, b, on_error=on_error, name=name)
    t_a, t_b = tangents
    right = _moved(t_a, t_b, ans)
    return ans, Zero(ans) if right is None else lu_solve(a, lu, permutation, right)


def _solve_transpose(ct: Value, a: ArrayLike, b: Value, **params: Param) -> list[Tangent]:
    """Transpose in the right-hand side, for programs that are linear in it alone, as in `linear_transpose`."""
    if type(a) is Linear:
        raise NoRuleError("solve is linear in the right-hand side, not in the matrix")
    return [None, solve_p.bind(matrix_transpose(a), ct, **params)]


def _solve_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], **params: Param
) -> tuple[Value, int]:
    return batch_of_systems(solve_p, size, args, dims, **params)


def _solve_kernel(
    k: BlockEmitter, operands: Any, results: Sequence[Buffer], *, on_error: str, name: str
) -> None:
    (a, right), (out,) = operands, results
    *batch, n, columns = out.shape
    k.copy(out, right)
    work, swaps = k.scratch((n, n), a.dtype), k.scratch((n,), INT32)
    with lanes(k, batch) as b:
        factored(k, a, b, work, swaps)
        if on_error == "raise":
            with k.loop(n) as i:
                k.fail_if(k.load(work, [i, i]).eq(k.const(0, a.dtype)))
        with k.loop(n) as i:
            other = k.cast(k.load(swaps, [i]) - 1, np.dtype(np.int64))
            with k.loop(columns) as c:
                mine, theirs = k.load(out, [*b, i, c]), k.load(out, [*b, other, c])
                k.store(out, [*b, i, c], theirs)
                k.store(out, [*b, other, c], mine)
        substitute(k, (work, []), (out, b), lower=False, transpose=True, unit=True)
        substitute(k, (work, []), (out, b), lower=True, transpose=True)
        if on_error == "nan":
            _nan_where_singular(k, work, [], out, b)


#: Its derivative rule replaces it by lu and lu_solve, so one factorization serves values and all derivatives.
solve_p: Primitive = Primitive(
    "solve",
    _solve_abstract,
    _solve_impl,
    jvp=_solve_jvp,
    taylor=_solve_taylor,
    transpose=_solve_transpose,
    batch=_solve_batch,
    kernel=Block(_solve_kernel, reuse=1),
    effects=lambda *, on_error, **params: Effect.RAISE if on_error == "raise" else Effect.NONE,
    guard=nan_instead,
    cost=lambda a, b, **params: Workload(a.size * a.shape[-1] * 2 // 3 + 2 * b.size * a.shape[-1]),
)
