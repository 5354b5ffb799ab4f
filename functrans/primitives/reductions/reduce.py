"""Reductions along axes: prod, max, min, all, any, argmax, argmin. reduce_sum is in ``linear.py``.

Each takes ``axes``, a tuple of non-negative axes, and preserves the operand's dtype (argmax and argmin return int64).
The public functions widen sums and products of small integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ...core import Workload, dtype_kind, is_float
from ...core.aval import Aval, Zero
from ...core.dtypes import BOOL, INT64, KEY, refused_keys
from ...core.ir import Eqn
from ...core.kernel import Block, BlockEmitter, Buffer, Indexed, IndexEmitter, Operand, Reduction, Scalar
from ...core.primitive import Primitive
from ...core.values import ArrayLike, Tangent, Value
from ...errors import DtypeError, ShapeError
from ...passes.rewriter import Rewriter
from ..axes import reduced_shape
from ..elementwise.arithmetic import Pair, convert, convert_element_type_p, div_p, dual_product, eq_p, mul_p
from ..families import literal
from ..structure.linear import (
    Rule,
    batched_first,
    broadcast_in_dim_p,
    broadcast_to,
    dtype_of,
    reduce_sum_p,
    reduction_batch,
    reduction_simplify,
    reshape_p,
    shape_of,
    transpose_p,
)
from ..structure.shape import concatenate_p, lanes, loops, slice_along
from .long_product import long_product


def _abstract(name: str, kinds: str, out: np.dtype | None = None, identity: bool = True) -> Rule:
    def abstract(x: Aval, *, axes: tuple[int, ...]) -> Aval:
        shape = reduced_shape(name, x, axes)
        if dtype_kind(x.dtype) not in kinds:
            if x.dtype == KEY:
                raise refused_keys(name)
            raise DtypeError(
                f"{name}: dtype {x.dtype} is not supported; convert the operand with .astype first"
            )
        if not identity and any(x.shape[d] == 0 for d in axes):
            raise ShapeError(
                f"{name}: an array of shape {x.shape} has no elements along axes {axes}, and the reduction has no "
                "identity. Pass `initial=`, or handle empty arrays separately"
            )
        return Aval(shape, x.dtype if out is None else out)

    return abstract


def _no_jvp(prim: Callable[[], Primitive]) -> Rule:
    def jvp(primals: Sequence[Value], tangents: Sequence[Value], *, axes: tuple[int, ...]) -> tuple[Any, Any]:
        ans = prim().bind(*primals, axes=axes)
        return ans, Zero(ans)

    return jvp


# --- prod ---------------------------------------------------------------------------------------------------


#: A product of so many factors is unrolled, for one element of the others after the other.
_FEW = 8


def _others_impl(x: ArrayLike, *, axis: int) -> np.ndarray:
    """Return for each element the product of those before it times the product of those after it."""
    along = np.moveaxis(x, axis, 0)
    n = len(along)
    out, after = np.ones_like(x), np.ones_like(along)
    before = np.moveaxis(out, axis, 0)
    np.multiply.accumulate(along[: n - 1], 0, out=before[1:])
    np.multiply.accumulate(along[:0:-1], 0, out=after[1:])
    np.multiply(before, after[::-1], out=before)
    return out


def _others_kernel(
    k: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer], *, axis: int
) -> None:
    """Multiply forward, then backward: in a register, or for a long other axis in a row of products."""
    (x,), (out,) = operands, results
    n, after = x.shape[axis], x.shape[axis + 1 :]
    one = k.const(1, x.dtype)

    def step(index: list[Any], before: Scalar, reverse: bool) -> Scalar:
        k.store(out, index, k.load(out, index) * before if reverse else before)
        return before * k.load(x, index)

    with lanes(k, x.shape[:axis]) as b:
        if n <= _FEW or all(extent == 1 for extent in after):
            with lanes(k, after) as c:
                for reverse in (False, True):
                    product = k.local(one)
                    with k.loop(n, reverse=reverse) as i:
                        product.set(step([*b, i, *c], product.get(), reverse))
            return
        products = k.scratch(after, x.dtype)
        for reverse in (False, True):
            with loops(k, after) as c:
                k.store(products, c, one)
            with k.loop(n, reverse=reverse) as i, loops(k, after) as c:
                k.store(products, c, step([*b, i, *c], k.load(products, c), reverse))


def _others_of(x: Pair, axis: int) -> Pair:
    """Compute `others_p` with its tangent by halving: the others of `a` are the others in ``a * b``, times `b`."""

    def part(pair: Pair, start: int, stop: int) -> Pair:
        value, tangent = (slice_along(a, axis, start, stop) for a in pair)
        return value, tangent

    n = shape_of(x[0])[axis]
    if n == 1:
        return broadcast_to(literal(1.0, x[0]), shape_of(x[0])), mul_p.bind(x[1], literal(0.0, x[0]))
    half = n // 2
    a, b = part(x, 0, half), part(x, half, 2 * half)
    both = dual_product(a, b)
    rest = _others_of(both, axis)
    parts = [dual_product(rest, b), dual_product(rest, a)]
    if n % 2:
        last = part(x, n - 1, n)
        whole = dual_product(part(rest, 0, 1), part(both, 0, 1))
        parts = [dual_product(side, last) for side in parts] + [whole]
    value, tangent = (concatenate_p.bind(*side, dimension=axis) for side in zip(*parts))
    return value, tangent


def _others_jvp(primals: Sequence[Any], tangents: Sequence[Tangent], *, axis: int) -> Pair:
    (x,), (t,) = primals, tangents
    ans = others_p.bind(x, axis=axis)
    return (ans, Zero(ans)) if type(t) is Zero else (ans, _others_of((x, t), axis)[1])


def _others_batch(size: int, args: Sequence[Value], dims: Sequence[int], *, axis: int) -> tuple[Value, int]:
    d = dims[0]
    return others_p.bind(args[0], axis=axis + (axis >= d)), d


# For each element, the product of all others along an axis. It does not divide, so zeros are safe.
others_p: Primitive = Primitive(
    "others",
    lambda x, *, axis: x.strong(),
    _others_impl,
    in_float32=True,
    jvp=_others_jvp,
    batch=_others_batch,
    kernel=Block(_others_kernel),
    cost=lambda x, *, axis: Workload(3 * x.size),
)


def _prod_jvp(
    primals: Sequence[Any], tangents: Sequence[Tangent], *, axes: tuple[int, ...]
) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    ans = reduce_prod_p.bind(x, axes=axes)
    shape = shape_of(x)
    if type(t) is Zero or 0 in [shape[d] for d in axes]:
        return ans, Zero(ans)
    if not axes:
        return ans, t
    # The axes become one, and stay where they are if they are adjacent.
    side_by_side = axes == tuple(range(axes[0], axes[-1] + 1))
    first = axes[0] if side_by_side else 0
    rest = [d for d in range(len(shape)) if d not in axes]
    order = (*rest[:first], *axes, *rest[first:])
    straight = order == tuple(range(len(shape)))
    flat = x if straight else transpose_p.bind(x, permutation=order)
    moved = shape_of(flat)
    merged = (*moved[:first], prod([shape[d] for d in axes]), *moved[first + len(axes) :])
    flat = flat if merged == moved else reshape_p.bind(flat, shape=merged)
    factor = others_p.bind(flat, axis=first)
    factor = factor if merged == moved else reshape_p.bind(factor, shape=moved)
    if not straight:
        factor = transpose_p.bind(factor, permutation=tuple(sorted(range(len(order)), key=order.__getitem__)))
    return ans, reduce_sum_p.bind(mul_p.bind(t, factor), axes=axes)


reduce_prod_p: Primitive = Primitive(
    "reduce_prod",
    _abstract("reduce_prod", "iufc"),
    lambda x, *, axes: np.multiply.reduce(x, axis=axes, dtype=x.dtype),
    in_float32=True,
    jvp=_prod_jvp,
    batch=reduction_batch(lambda: reduce_prod_p),
    kernel=Reduction("prod"),
    simplify=lambda rw, eqn: reduction_simplify(rw, eqn) or long_product(rw, eqn),
)


# --- max and min --------------------------------------------------------------------------------------------


def _extremum(name: str, ufunc: np.ufunc, fold: str) -> Primitive:
    def jvp(primals: Sequence[Any], tangents: Sequence[Tangent], *, axes: tuple[int, ...]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        ans = prim.bind(x, axes=axes)
        if type(t) is Zero:
            return ans, Zero(ans)
        shape = shape_of(x)
        remaining = tuple([d for d in range(len(shape)) if d not in axes])
        spread = broadcast_in_dim_p.bind(ans, shape=shape, broadcast_dimensions=remaining)
        chosen = convert(eq_p.bind(x, spread), dtype_of(x))
        total = reduce_sum_p.bind(mul_p.bind(t, chosen), axes=axes)
        return ans, div_p.bind(total, reduce_sum_p.bind(chosen, axes=axes))

    prim = Primitive(
        name,
        _abstract(name, "biufc", identity=False),
        lambda x, *, axes: ufunc.reduce(x, axis=axes),
        jvp=jvp,
        batch=reduction_batch(lambda: prim),
        kernel=Reduction(fold),
        simplify=reduction_simplify,
    )
    return prim


reduce_max_p = _extremum("reduce_max", np.maximum, "max")
reduce_min_p = _extremum("reduce_min", np.minimum, "min")

# --- without derivative -------------------------------------------------------------------------------------


def _place_impl(x: Value, extreme: Any, *, axis: int) -> np.ndarray:
    n = x.shape[axis]
    equal = (x == extreme) | ((x != x) & (extreme != extreme))
    places = np.arange(n).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    return np.where(equal, places, n)


def _place_kernel(
    k: IndexEmitter, index: Sequence[Scalar], x: Operand, extreme: Operand, *, out: Aval, axis: int
) -> Scalar:
    a, b = x[index], extreme[index]
    equal = a.eq(b)
    if is_float(a.dtype):
        equal = equal | (a.ne(a) & b.ne(b))
    return k.where(equal, index[axis], index[axis] * 0 + out.shape[axis])


def _place_jvp(primals: Sequence[Any], tangents: Sequence[Tangent], *, axis: int) -> Pair:
    ans = place_p.bind(*primals, axis=axis)
    return ans, Zero(ans)


def _place_batch(size: int, args: Sequence[Any], dims: Sequence[int | None], *, axis: int) -> tuple[Any, int]:
    x, extreme = [batched_first(size, a, d) for a, d in zip(args, dims)]
    return place_p.bind(x, extreme, axis=axis + 1), 0


#: The index along ``axis`` where an element equals the extreme one (or both are NaN), else the axis's extent.
place_p: Primitive = Primitive(
    "place",
    lambda x, extreme, *, axis: Aval(x.shape, np.dtype(np.int64)),
    _place_impl,
    jvp=_place_jvp,
    batch=_place_batch,
    kernel=Indexed(_place_kernel),
    tests_equality=True,
)


def _place_of_extreme(reduce_p: Primitive, rw: Rewriter, eqn: Eqn) -> Eqn | None:
    """Rewrite ``argmax`` as the first position that equals the maximum: two reductions, which vectorise."""
    x, axes = eqn.invars[0], eqn.params["axes"]
    if x.aval.dtype.kind == "c":
        return None
    if x.aval.dtype.kind == "b":
        x = rw.new(convert_element_type_p, x, dtype=np.dtype(np.int8))
    extreme = rw.new(reduce_p, x, axes=axes)
    remaining = tuple(d for d in range(x.aval.ndim) if d not in axes)
    spread = rw.new(broadcast_in_dim_p, extreme, shape=x.aval.shape, broadcast_dimensions=remaining)
    places = rw.new(place_p, x, spread, axis=axes[0])
    return eqn.replace(primitive=reduce_min_p, invars=[places], params={"axes": axes})


def _discrete(
    name: str, impl: Rule, fold: str, kinds: str, out: np.dtype, identity: bool, simplify: Rule
) -> Primitive:
    prim = Primitive(
        name,
        _abstract(name, kinds, out, identity),
        impl,
        jvp=_no_jvp(lambda: prim),
        batch=reduction_batch(lambda: prim),
        kernel=Reduction(fold),
        simplify=simplify,
    )
    return prim


reduce_and_p = _discrete(
    "reduce_and",
    lambda x, *, axes: np.logical_and.reduce(x, axis=axes),
    "all",
    "b",
    BOOL,
    identity=True,
    simplify=reduction_simplify,
)
reduce_or_p = _discrete(
    "reduce_or",
    lambda x, *, axes: np.logical_or.reduce(x, axis=axes),
    "any",
    "b",
    BOOL,
    identity=True,
    simplify=reduction_simplify,
)
# argmax and argmin take one axis: the public functions flatten first where NumPy does.
argmax_p = _discrete(
    "argmax",
    lambda x, *, axes: np.argmax(x, axis=axes[0]),
    "argmax",
    "biufc",
    INT64,
    identity=False,
    simplify=partial(_place_of_extreme, reduce_max_p),
)
argmin_p = _discrete(
    "argmin",
    lambda x, *, axes: np.argmin(x, axis=axes[0]),
    "argmin",
    "biufc",
    INT64,
    identity=False,
    simplify=partial(_place_of_extreme, reduce_min_p),
)
