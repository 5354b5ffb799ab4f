"""Cofactors of square matrices, singular ones too: the derivative of the determinant, and theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.aval import Aval, Zero
from ...core.context import quietly
from ...core.dtypes import INT64, real_dtype
from ...core.kernel import Block, BlockEmitter, Buffer
from ...core.primitive import Primitive
from ..elementwise.arithmetic import mul_p, neg_p, sub_p
from ..structure.linear import add_p, batched_first, shape_of
from ..structure.shape import concatenate_p, loops
from .deflation import cofactors_slope
from .matrices import columns_of, rows_of
from .small_det import elements, small_cofactors
from .solve import lu_solve_p
from .substitution import substitute


def _limits(dtype: np.dtype) -> tuple[float, float]:
    """Decimal exponents: of what stands for a zero pivot, and of the product of all that do."""
    return (100.0, 200.0) if real_dtype(dtype).itemsize == 8 else (12.0, 24.0)


def _abstract(a: Aval, *factors: Aval) -> Aval:
    return a.strong()


@quietly
def _impl(a: Any, *factors_of_a: Any) -> np.ndarray:
    n = a.shape[-1]
    if not factors_of_a:
        out = np.empty_like(a)
        for i, row in enumerate(small_cofactors([[a[..., i, j] for j in range(n)] for i in range(n)], 1)):
            for j, x in enumerate(row):
                out[..., i, j] = x
        return out
    lu, pivots, permutation = factors_of_a
    diagonal = np.diagonal(lu, axis1=-2, axis2=-1)
    largest = np.abs(np.triu(lu)).max((-2, -1), initial=0)[..., None]
    zeros = (diagonal == 0).sum(-1, keepdims=True)
    least, together = _limits(a.dtype)
    tiny = largest * 10.0 ** -np.minimum(least, together / np.maximum(zeros, 1))
    diagonal = np.where(diagonal == 0, np.where(largest == 0, 1, tiny), diagonal).astype(a.dtype)
    factors = lu.copy()
    factors[..., np.arange(n), np.arange(n)] = diagonal
    exchanged = (pivots != np.arange(n)).sum(-1) & 1
    product = np.multiply.reduce(diagonal, -1) * (1 - 2 * exchanged).astype(a.dtype)
    if n > 1:
        product = np.where(largest[..., 0] == 0, a.dtype.type(0), product)
    unit = np.broadcast_to(np.eye(n, dtype=a.dtype), a.shape)
    inverse = lu_solve_p.impl(a, factors, permutation, unit, transpose=True, on_error="ignore", name="")
    return inverse * product[..., None, None]


def _kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer]) -> None:
    (out,) = results
    *batch, n, _ = out.shape
    dtype = out.dtype
    if len(operands) == 1:
        with loops(k, batch) as b:
            written_out = small_cofactors(elements(k, operands[0], b), k.const(1, dtype))
            for place in np.ndindex(n, n):
                k.store(out, [*b, *place], written_out[place[0]][place[1]])
        return
    _, lu, pivots, permutation = operands
    factors, inner = k.scratch((n, n), dtype), k.scratch((n, n), dtype)
    with loops(k, batch) as b:
        with k.loop(n) as i, k.loop(n) as j:
            k.store(factors, [i, j], k.load(lu, [*b, i, j]))
            k.store(inner, [i, j], k.const(0, dtype))
        product = _regular(k, factors, inner)
        with k.loop(n) as i, k.if_(k.load(pivots, [*b, i]).ne(k.cast(i, np.dtype(np.int32)))):
            product.set(-product.get())
        substitute(k, (factors, []), (inner, []), lower=False, transpose=True)
        substitute(k, (factors, []), (inner, []), lower=True, transpose=True, unit=True)
        with k.loop(n) as i:
            row = k.cast(k.load(permutation, [*b, i]), INT64)
            with k.loop(n) as j:
                k.store(out, [*b, row, j], k.load(inner, [i, j]) * product.get())


def _regular(k: BlockEmitter, factors: Buffer, inner: Buffer) -> Any:
    """Put small pivots in the place of zeros, and ones on the diagonal of `inner`; gives the product of the pivots."""
    n, dtype, real = factors.shape[0], factors.dtype, real_dtype(factors.dtype)
    largest, zeros = k.local(k.const(0, real)), k.local(k.const(0, real))
    nothing = k.const(0, dtype)
    with k.loop(n) as i:
        with k.loop(n, i) as j:
            largest.set(k.call("max", largest.get(), k.call("abs", k.load(factors, [i, j]))))
        with k.if_(k.load(factors, [i, i]).eq(nothing)):
            zeros.set(zeros.get() + k.const(1, real))
    least, together = (k.const(x, real) for x in _limits(dtype))
    count = k.call("max", zeros.get(), k.const(1, real))
    power = k.call("pow", k.const(10, real), -k.call("min", least, together / count))
    void = largest.get().eq(k.const(0, real))
    tiny = k.cast(k.where(void, k.const(1, real), largest.get() * power), dtype)
    product = k.local(k.const(1, dtype))
    with k.loop(n) as i:
        pivot = k.load(factors, [i, i])
        pivot = k.where(pivot.eq(nothing), tiny, pivot)
        k.store(factors, [i, i], pivot)
        k.store(inner, [i, i], k.const(1, dtype))
        product.set(product.get() * pivot)
    if n > 1:
        product.set(k.where(void, nothing, product.get()))
    return product


def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    ans = cofactors_p.bind(*primals)
    t = tangents[0]
    if type(t) is Zero or shape_of(ans)[-1] < 2:
        return ans, Zero(ans)
    return ans, (_small_slope if len(primals) == 1 else cofactors_slope)(primals[0], t)


class _Dual(NamedTuple):
    """A number and its tangent."""

    x: Any
    t: Any

    def __add__(self, other: Any) -> _Dual:
        return _Dual(add_p.bind(self.x, other.x), add_p.bind(self.t, other.t))

    def __sub__(self, other: _Dual) -> _Dual:
        return _Dual(sub_p.bind(self.x, other.x), sub_p.bind(self.t, other.t))

    def __mul__(self, other: Any) -> _Dual:
        t = add_p.bind(mul_p.bind(self.t, other.x), mul_p.bind(self.x, other.t))
        return _Dual(mul_p.bind(self.x, other.x), t)

    def __neg__(self) -> _Dual:
        return _Dual(neg_p.bind(self.x), neg_p.bind(self.t))


def _small_slope(a: Any, t: Any) -> Any:
    """The tangent of cofactors that are written out."""
    rank, n = len(shape_of(a)), shape_of(a)[-1]

    def element(x: Any, i: int, j: int) -> Any:
        return columns_of(rows_of(x, i, i + 1), j, j + 1)

    dual = [[_Dual(element(a, i, j), element(t, i, j)) for j in range(n)] for i in range(n)]
    rows = [[x.t for x in row] for row in small_cofactors(dual, None)]
    return concatenate_p.bind(
        *[concatenate_p.bind(*row, dimension=rank - 1) for row in rows], dimension=rank - 2
    )


def _batch(size: int, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, int]:
    return cofactors_p.bind(*[batched_first(size, x, d) for x, d in zip(args, dims)]), 0


#: Of a matrix and its factors: ``det(A) A^-T``, which is a polynomial in A. A zero pivot is given a tiny value instead
#: (backward stable: the cofactors are those of a matrix that close). Of a small matrix alone: the polynomial itself.
cofactors_p: Primitive = Primitive(
    "cofactors", _abstract, _impl, jvp=_jvp, batch=_batch, kernel=Block(_kernel)
)
