"""Determinants in batches: by LU factors, and by explicit formulas up to four rows.

Both primitives take the matrix, or the matrix and its factors from `lu_p`. They are differentiated with respect to the
matrix, so one factorization serves values and derivatives of all orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import (
    INT32,
    Aval,
    Block,
    BlockEmitter,
    Buffer,
    Local,
    Primitive,
    Zero,
    is_float,
    quietly,
    real_dtype,
)
from ...core.values import ArrayLike, ShapeLike, Tangent, Value
from ..elementwise.arithmetic import mul_p, stop_gradient_p
from ..elementwise.complexes import complex_p, imag_p, real_p
from ..families import literal
from ..structure.linear import batched_first, reduce_sum_p, shape_of
from ..structure.shape import lanes
from .cofactors import cofactors_p
from .lu import factored, lu_p
from .matrices import (
    LARGEST,
    check_kind,
    check_square,
    diagonal_of,
    elements,
    not_of_low,
    per_matrix,
    small_determinant,
)
from .solve import lu_solve


def parity_of(pivots: np.ndarray) -> np.ndarray:
    """Return 1 for an even number of row exchanges, -1 for an odd one."""
    exchanged = pivots != np.arange(pivots.shape[-1])
    return 1 - 2 * (exchanged.sum(-1) & 1)


def _with_factors(k: BlockEmitter, operands: Any) -> Any:
    """Return a function of the batch index that gives the place of the LU factors, and the parity of the exchanges."""
    a = operands[0]
    n = a.shape[-1]
    if len(operands) > 1:
        _, lu, pivots, _ = operands
    else:
        lu, pivots = k.scratch((n, n), a.dtype), k.scratch((n,), INT32)

    def at(b: Sequence[Any]) -> tuple[Any, Any]:
        own = list(b) if len(operands) > 1 else []
        if not own and len(operands) == 1:
            factored(k, a, b, lu, pivots)
        parity = k.local(k.const(1, a.dtype))
        first = 0 if len(operands) > 1 else 1  # LAPACK's indices start at 1
        with k.loop(n) as i, k.if_(k.load(pivots, [*own, i]).ne(k.cast(i + first, INT32))):
            parity.set(-parity.get())
        return (lu, own), parity

    return at


# --- det ----------------------------------------------------------------------------------------------------


def _det_abstract(a: Aval, *factors: Aval) -> Aval:
    check_square("det", a)
    check_kind("det", a.dtype)
    return Aval(a.shape[:-2], a.dtype)


@not_of_low("det")
def _det_impl(a: Value, *factors: Any) -> np.ndarray:
    return _det_of_factors(a, *factors) if factors else np.linalg.det(a)


@quietly
def _det_of_factors(a: Value, lu: Value, pivots: Any, permutation: Any) -> np.ndarray:
    out = np.multiply.reduce(np.diagonal(lu, axis1=-2, axis2=-1), -1) * parity_of(pivots).astype(a.dtype)
    reliable = np.isfinite(out) & (out != 0)
    if reliable.all():
        return out
    sign, size = _slogdet_impl(a, lu, pivots, permutation)
    return np.where(reliable, out, sign * np.exp(size))


def _factors(a: Value, given: Sequence[Any]) -> Sequence[Value]:
    return given if given else lu_p.bind(stop_gradient_p.bind(a))


def _det_jvp(primals: Sequence[Any], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
    a, t = primals[0], tangents[0]
    if type(t) is Zero or not shape_of(a)[-1]:
        ans = det_p.bind(*primals)
        return ans, Zero(ans)
    factors = primals[1:] if shape_of(a)[-1] <= LARGEST else _factors(a, primals[1:])
    ans = det_p.bind(a, *factors)
    rank = len(shape_of(a))
    terms = mul_p.bind(cofactors_p.bind(a, *factors), t)
    return ans, reduce_sum_p.bind(terms, axes=(rank - 2, rank - 1))


def _det_batch(size: int, args: Sequence[Value], dims: Sequence[int | None]) -> tuple[Value, int]:
    return det_p.bind(*[batched_first(size, x, d) for x, d in zip(args, dims)]), 0


def _det_kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer]) -> None:
    (out,), a = results, operands[0]
    *batch, n, _ = a.shape
    explicit = 0 < n <= LARGEST and len(operands) == 1
    at = _with_factors(k, operands)
    with lanes(k, batch) as b:
        if explicit:
            value = small_determinant(elements(k, a, b), k.const(1, a.dtype))
            k.store(out, b, value)
            with k.if_(_is_doubtful(k, value, a, b)):
                k.store(out, b, _by_logarithms(k, *at(b)))
        else:
            factors, parity = at(b)
            product = k.local(parity.get())
            with k.loop(n) as i:
                product.set(product.get() * _pivot(k, factors, i))
            value = product.get()
            k.store(out, b, value)
            with k.if_(~_is_finite(k, value) | value.eq(k.const(0, a.dtype))):
                k.store(out, b, _by_logarithms(k, factors, parity))


def _is_finite(k: BlockEmitter, x: Any) -> Any:
    parts = [k.call("real", x), k.call("imag", x)] if x.dtype.kind == "c" else [x]
    ordinary = [k.call("abs", part) < k.const(np.inf, part.dtype) for part in parts]
    return ordinary[0] & ordinary[-1]


def _is_doubtful(k: BlockEmitter, value: Any, a: Buffer, batch: Sequence[Any]) -> Any:
    """Return whether products of elements may have overflowed, or underflowed to a determinant of zero."""
    n = a.shape[-1]
    doubtful = k.local(~_is_finite(k, value))
    with k.if_(value.eq(k.const(0, a.dtype))), k.loop(n) as i, k.loop(n) as j:
        size = k.call("abs", k.load(a, [*batch, i, j]))
        least = k.const(float(np.finfo(a.dtype).tiny) ** (1 / n), size.dtype)
        doubtful.set(doubtful.get() | ((size > 0.0) & (size < least)))
    return doubtful.get()


def _by_logarithms(k: BlockEmitter, factors: Any, parity: Local) -> Any:
    """Return the determinant from the logarithms of the pivots, as NumPy does: only the result itself can overflow."""
    sign, size = _sign_and_logarithm(k, factors, parity)
    return sign * k.cast(k.call("exp", size), sign.dtype)


def _sign_and_logarithm(k: BlockEmitter, factors: Any, parity: Local) -> tuple[Any, Any]:
    sign = k.local(parity.get())
    total = k.local(k.const(0, real_dtype(factors[0].dtype)))
    with k.loop(factors[0].shape[-1]) as i:
        pivot = _pivot(k, factors, i)
        size = k.call("abs", pivot)
        total.set(total.get() + k.call("log", size))
        sign.set(sign.get() * _unit(k, pivot, size))
    return sign.get(), total.get()


def _pivot(k: BlockEmitter, factors: Any, i: Any) -> Any:
    lu, batch = factors
    return k.load(lu, [*batch, i, i])


det_p: Primitive = Primitive(
    "det",
    _det_abstract,
    _det_impl,
    jvp=_det_jvp,
    batch=_det_batch,
    kernel=Block(_det_kernel),
    cost=per_matrix(lambda m, n: 2 * n**3 / 3),
)


# --- slogdet ------------------------------------------------------------------------------------------------


def _slogdet_abstract(a: Aval, *factors: Aval) -> tuple[Aval, Aval]:
    check_square("slogdet", a)
    check_kind("slogdet", a.dtype)
    return Aval(a.shape[:-2], a.dtype), Aval(a.shape[:-2], real_dtype(a.dtype))


@not_of_low("slogdet")
@quietly
def _slogdet_impl(a: Value, *factors: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    if not factors:
        sign, size = np.linalg.slogdet(a)
        return sign, size
    lu, pivots, _ = factors
    diagonal = np.diagonal(lu, axis1=-2, axis2=-1)
    signs = np.sign(diagonal)
    if is_float(a.dtype):
        signs[np.isnan(signs)] = 1  # as in NumPy
    signs = np.multiply.reduce(signs, -1) * parity_of(pivots).astype(a.dtype)
    return signs, np.add.reduce(np.log(np.abs(diagonal)), -1)


def _slogdet_jvp(primals: Sequence[Any], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
    a, t = primals[0], tangents[0]
    if type(t) is Zero or not shape_of(a)[-1]:
        sign, size = slogdet_p.bind(*primals)
        return (sign, size), (Zero(sign), Zero(size))
    factors = _factors(a, primals[1:])
    sign, size = slogdet_p.bind(a, *factors)
    lu, _, permutation = factors
    terms = diagonal_of(lu_solve(a, lu, permutation, t))
    trace = reduce_sum_p.bind(terms, axes=(len(shape_of(terms)) - 1,))
    if sign.dtype.kind != "c":
        return (sign, size), (Zero(sign), trace)
    turn = imag_p.bind(trace)
    turn = mul_p.bind(sign, complex_p.bind(literal(0.0, turn), turn))
    return (sign, size), (turn, real_p.bind(trace))


def _slogdet_batch(size: int, args: Sequence[Value], dims: Sequence[int | None]) -> tuple[Any, Any]:
    return slogdet_p.bind(*[batched_first(size, x, d) for x, d in zip(args, dims)]), (0, 0)


def _slogdet_kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer]) -> None:
    at, (signs, sizes) = _with_factors(k, operands), results
    batch = operands[0].shape[:-2]
    with lanes(k, batch) as b:
        sign, size = _sign_and_logarithm(k, *at(b))
        k.store(signs, b, sign)
        k.store(sizes, b, size)


def _unit(k: BlockEmitter, x: Any, size: ShapeLike) -> Any:
    """Return the sign of a number; 1 for a real NaN, as in NumPy."""
    zero, one = k.const(0, size.dtype), k.const(1, size.dtype)
    if x.dtype.kind == "c":
        return x / k.cast(k.where(size.eq(zero), one, size), x.dtype)
    return k.where(x < zero, -one, k.where(x.eq(zero), zero, one))


slogdet_p: Primitive = Primitive(
    "slogdet",
    _slogdet_abstract,
    _slogdet_impl,
    jvp=_slogdet_jvp,
    batch=_slogdet_batch,
    kernel=Block(_slogdet_kernel),
    multiple_results=True,
    cost=per_matrix(lambda m, n: 2 * n**3 / 3),
)
