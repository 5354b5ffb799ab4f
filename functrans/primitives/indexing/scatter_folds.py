"""Scatters whose derivative depends on the values: products, quotients, minima and maxima."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...core import Workload
from ...core.aval import Aval, Zero, aval_of
from ...core.dtypes import INT64
from ...core.kernel import Block, BlockEmitter, Buffer
from ...core.primitive import Primitive
from ...core.trace import Tracer, eval_trace, tracing
from ...core.values import ArrayLike, Param, Params, Tangent, Value
from ...errors import ShapeError
from ...runtime.records import NamedTuple
from ..elementwise.arithmetic import (
    Pair,
    convert_element_type_p,
    div_p,
    dual_product,
    eq_p,
    ge_p,
    max_p,
    min_p,
    mul_p,
    neg_p,
    select_p,
    sub_p,
)
from ..reductions.cumulative import cummax_p
from ..sorting.sort import argsort
from ..structure.linear import (
    Rule,
    add_p,
    batched_first,
    broadcast_in_dim_p,
    dtype_of,
    instantiate,
    move_axis,
    reshape_p,
    shape_of,
    zeros,
)
from ..structure.shape import iota, loops, pad_p, rev_p
from .gather_scatter import (
    gathered,
    scatter_abstract,
    scatter_add_p,
    scatter_batch,
    scatter_impl,
    scatter_kernel,
    scatter_p,
    scatter_rewind,
)
from .index_shapes import guard, raises, resolve


def flat_places(shape: tuple[int, ...], indices: Sequence[Any], axes: tuple[int, ...], mode: str) -> Any:
    """Return the flat position in the indexed axes of each index, in row-major order; -1 if it is dropped."""
    extents = tuple([shape[d] for d in axes])
    numbers = reshape_p.bind(iota((prod(extents),), 0), shape=extents)
    return gathered(numbers, indices, tuple(range(len(axes))), mode, -1)


def all_different(shape: tuple[int, ...], indices: Sequence[Any], axes: tuple[int, ...], mode: str) -> bool:
    """Whether all indices are known and distinct."""
    if any(isinstance(i, Tracer) for i in indices):
        return False
    if np.size(indices[0]) < 2 or not prod([shape[d] for d in axes]):
        return True
    resolved, valid = resolve(indices, shape, axes, mode)
    places = np.ravel_multi_index(tuple(resolved), tuple([shape[d] for d in axes]), mode="wrap")
    places = np.sort(places[valid] if valid is not None else places, axis=None)
    return not (places[1:] == places[:-1]).any()


class SortedUpdates(NamedTuple):
    """Updates in the order of their positions; updates of one position keep their order.

    Attributes
    ----------
    order : array of int64, shape (n,)
        The number of each update, in sorted order.
    places : array of int64, shape (n,)
        Their positions, ascending.
    """

    order: Any
    places: Any

    def restored(self, x: Value) -> Any:
        """Return sorted rows to the order of the updates."""
        empty = zeros(Aval(shape_of(x), dtype_of(x)))
        return scatter_p.bind(empty, x, self.order, axes=(0,), mode="promise_in_bounds", unique_indices=True)


def sorted_updates(places: ArrayLike) -> SortedUpdates:
    """Sort updates by the positions that `flat_places` gives."""
    places = reshape_p.bind(places, shape=(prod(shape_of(places)),))
    order = argsort(places, 0)
    return SortedUpdates(order, gathered(places, [order], (0,), "promise_in_bounds"))


def ranks(places: ArrayLike) -> Value:
    """Return for each update the number of earlier ones at the same position."""
    updates = sorted_updates(places)
    position = iota(shape_of(updates.places), 0)
    joins = _joins(updates.places, 1)
    start = cummax_p.bind(select_p.bind(joins, np.int64(0), position), axis=0, reverse=False)
    return reshape_p.bind(updates.restored(sub_p.bind(position, start)), shape=shape_of(places))


# --- products of all but one --------------------------------------------------------------------------------


def products_of_others(updates: Value, places: ArrayLike, size: int) -> Value:
    """Return for each update the product of all others at its position; there are `size` positions.

    It does not divide, so zeros are safe in derivatives of any order.
    """
    n = prod(shape_of(places))
    shape = shape_of(updates)
    places = reshape_p.bind(places, shape=(n,))
    places = select_p.bind(ge_p.bind(places, np.int64(0)), places, np.int64(size))
    rows = reshape_p.bind(updates, shape=(n, prod(shape) // n))
    return reshape_p.bind(others_at_p.bind(rows, places, size=size + 1), shape=shape)


def _others_abstract(rows: Aval, places: Aval, *, size: int) -> Aval:
    if places.shape != rows.shape[:1] or places.dtype != INT64:
        raise ShapeError(
            f"others_at: places must be int64[{rows.shape[0]}] for rows of type {rows}, got {places}"
        )
    return rows.strong()


def _others_kernel(
    k: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer], *, size: int
) -> None:
    (rows, places), (out,) = operands, results
    n, rest = rows.shape[0], rows.shape[1:]
    product = k.scratch((size, *rest), rows.dtype)
    for reverse in (False, True):
        with loops(k, product.shape) as index:
            k.store(product, index, k.const(1, rows.dtype))
        with k.loop(n, reverse=reverse) as i:
            place = k.load(places, [i])
            with loops(k, rest) as index:
                before = k.load(product, [place, *index])
                k.store(out, [i, *index], k.load(out, [i, *index]) * before if reverse else before)
                k.store(product, [place, *index], before * k.load(rows, [i, *index]))


def _others_jvp(primals: Sequence[Any], tangents: Sequence[Tangent], *, size: int) -> tuple[Any, Any]:
    (rows, places), t = primals, tangents[0]
    ans = others_at_p.bind(rows, places, size=size)
    return (ans, Zero(ans)) if type(t) is Zero else (ans, _doubled(rows, t, places)[1])


def _others_batch(
    lanes: int, args: Sequence[Any], dims: Sequence[int | None], *, size: int
) -> tuple[Any, int]:
    (rows, places), (d, e) = args, dims
    if e is None:
        assert d is not None
        return others_at_p.bind(move_axis(rows, d, 1), places, size=size), 1
    rows, places = batched_first(lanes, rows, d), batched_first(lanes, places, e)
    shape = shape_of(rows)
    lane = mul_p.bind(iota(shape[:2], 0), np.int64(size))
    places = reshape_p.bind(add_p.bind(places, lane), shape=(lanes * shape[1],))
    rows = reshape_p.bind(rows, shape=(lanes * shape[1], *shape[2:]))
    return reshape_p.bind(others_at_p.bind(rows, places, size=lanes * size), shape=shape), 0


def _doubled(rows: ArrayLike, t: ArrayLike, places: ArrayLike) -> Pair:
    """Return the products of others and their tangents by products alone. Each of ``2 log2(n)`` passes doubles the
    number of factors in a product.
    """
    updates = sorted_updates(places)
    first, second = [gathered(x, [updates.order], (0,), "promise_in_bounds") for x in (rows, t)]
    sorted_rows = first, second
    ahead = _before(sorted_rows, updates.places)
    after = _before(_reversed(sorted_rows), rev_p.bind(updates.places, dimensions=(0,)))
    value, tangent = dual_product(ahead, _reversed(after))
    return updates.restored(value), updates.restored(tangent)


def _before(rows: Pair, places: ArrayLike) -> Pair:
    """Return for each row the product of the earlier rows at the same position."""
    n = shape_of(places)[0]
    product = _shifted(rows, places, 1)
    distance = 1
    while distance < n - 1:
        product = dual_product(product, _shifted(product, places, distance))
        distance *= 2
    return product


def _reversed(x: Pair) -> Pair:
    return rev_p.bind(x[0], dimensions=(0,)), rev_p.bind(x[1], dimensions=(0,))


def _shifted(rows: Pair, places: ArrayLike, distance: int) -> Pair:
    """Return the row `distance` before each one; where that has another position, 1 with tangent 0."""
    shape = shape_of(rows[0])
    config = ((distance, -distance, 0), *[(0, 0, 0)] * (len(shape) - 1))
    joins = broadcast_in_dim_p.bind(_joins(places, distance), shape=shape, broadcast_dimensions=(0,))
    value, tangent = (
        select_p.bind(
            joins, pad_p.bind(x, dtype_of(x).type(0), padding_config=config), dtype_of(x).type(fill)
        )
        for x, fill in zip(rows, (1, 0))
    )
    return value, tangent


def _joins(places: ArrayLike, distance: int) -> Value:
    """Return whether the element `distance` before each one exists and is equal."""
    earlier = pad_p.bind(places, np.int64(-2), padding_config=((distance, -distance, 0),))
    return eq_p.bind(places, earlier)


def _others_impl(rows: ArrayLike, places: ArrayLike, *, size: int) -> np.ndarray:
    return np.asarray(tracing(eval_trace, _doubled, rows, np.zeros_like(rows), places)[0])


# For each row, the product of all others at the same position.
others_at_p: Primitive = Primitive(
    "others_at",
    _others_abstract,
    _others_impl,
    in_float32=True,
    jvp=_others_jvp,
    batch=_others_batch,
    kernel=Block(_others_kernel),
    cost=lambda rows, places, **params: Workload(3 * rows.size),
)


def _distinct(x: Value, indices: Sequence[Any], params: Params) -> bool:
    """Whether it is known that no two updates have the same position."""
    if params.get("unique_indices") or prod(shape_of(indices[0])) <= 1:
        return True
    return all_different(shape_of(x), indices, params["axes"], params["mode"])


def _others(x: Value, updates: Value, indices: Sequence[Any], params: Params) -> Any:
    """Return the factor of each update's tangent: the product of everything else at its position."""
    axes, mode = params["axes"], params["mode"]
    if _distinct(x, indices, params):
        return gathered(x, indices, axes, mode)
    places = flat_places(shape_of(x), indices, axes, mode)
    size = prod([shape_of(x)[d] for d in axes])
    return mul_p.bind(gathered(x, indices, axes, mode), products_of_others(updates, places, size))


def _scatter_mul_jvp(primals: Sequence[Any], tangents: Sequence[Tangent], **params: Param) -> tuple[Any, Any]:
    x, updates, *indices = primals
    t_x, t_u = tangents[:2]
    ans = scatter_mul_p.bind(x, updates, *indices, **params)
    if type(t_x) is Zero and type(t_u) is Zero:
        return ans, Zero(ans)
    t = zeros(aval_of(ans)) if type(t_x) is Zero else scatter_mul_p.bind(t_x, updates, *indices, **params)
    if type(t_u) is not Zero:
        t = scatter_add_p.bind(t, mul_p.bind(_others(x, updates, indices, params), t_u), *indices, **params)
    return ans, t


def _scatter_mul_transpose(
    ct: Value, x: Value, updates: Value, *indices: ArrayLike, **params: Param
) -> list[Any]:
    return [scatter_mul_p.bind(ct, updates, *indices, **params), None, *[None] * len(indices)]


scatter_mul_p: Primitive = Primitive(
    "scatter_mul",
    scatter_abstract("scatter_mul"),
    scatter_impl(np.multiply),
    in_float32=True,
    jvp=_scatter_mul_jvp,
    rewind=scatter_rewind,
    transpose=_scatter_mul_transpose,
    batch=scatter_batch(lambda: scatter_mul_p),
    kernel=scatter_kernel(mul_p),
    cost=lambda x, updates, *indices, **params: Workload(updates.size),
    effects=raises,
    guard=guard,
)


def _scatter_div_jvp(primals: Sequence[Any], tangents: Sequence[Tangent], **params: Param) -> tuple[Any, Any]:
    """A divisor contributes ``-result / divisor``, whatever the order of the divisors at a position."""
    x, updates, *indices = primals
    t_x, t_u = tangents[:2]
    ans = scatter_div_p.bind(x, updates, *indices, **params)
    if type(t_x) is Zero and type(t_u) is Zero:
        return ans, Zero(ans)
    t = zeros(aval_of(ans)) if type(t_x) is Zero else scatter_div_p.bind(t_x, updates, *indices, **params)
    if type(t_u) is not Zero:
        quotients = gathered(ans, indices, params["axes"], params["mode"])
        slope = neg_p.bind(div_p.bind(quotients, updates))
        t = scatter_add_p.bind(t, mul_p.bind(slope, t_u), *indices, **params)
    return ans, t


def _scatter_div_transpose(
    ct: Value, x: Value, updates: Value, *indices: ArrayLike, **params: Param
) -> list[Any]:
    return [scatter_div_p.bind(ct, updates, *indices, **params), None, *[None] * len(indices)]


scatter_div_p: Primitive = Primitive(
    "scatter_div",
    scatter_abstract("scatter_div"),
    scatter_impl(np.divide),
    in_float32=True,
    jvp=_scatter_div_jvp,
    rewind=scatter_rewind,
    transpose=_scatter_div_transpose,
    batch=scatter_batch(lambda: scatter_div_p),
    kernel=scatter_kernel(div_p),
    cost=lambda x, updates, *indices, **params: Workload(updates.size),
    effects=raises,
    guard=guard,
)


def _extremal_jvp(prim: Callable[[], Primitive], combine: Primitive) -> Rule:
    """Return the jvp: the tangent of the extreme element. Equal ones share it evenly.

    Where each position has one update, only those elements are looked at: a loop writes them in place.
    """
    rule = combine.jvp
    assert rule is not None

    def jvp(primals: Sequence[Any], tangents: Sequence[Tangent], **params: Param) -> tuple[Any, Any]:
        x, updates, *indices = primals
        ans = prim().bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return ans, Zero(ans)
        t_x, t_u = map(instantiate, tangents[:2])
        if _distinct(x, indices, params):
            before, t = (gathered(y, indices, params["axes"], params["mode"]) for y in (x, t_x))
            _, t = rule((before, updates), (t, t_u))
            return ans, scatter_p.bind(t_x, t, *indices, **params)
        dtype = dtype_of(ans)
        extremes = gathered(ans, indices, params["axes"], params["mode"])
        here = convert_element_type_p.bind(eq_p.bind(x, ans), dtype=dtype)
        there = convert_element_type_p.bind(eq_p.bind(updates, extremes), dtype=dtype)
        number = scatter_add_p.bind(here, there, *indices, **params)
        t = scatter_add_p.bind(mul_p.bind(t_x, here), mul_p.bind(t_u, there), *indices, **params)
        return ans, div_p.bind(t, number)

    return jvp


def _extremal(name: str, ufunc: np.ufunc, combine: Primitive) -> Primitive:
    prim: Primitive = Primitive(
        name,
        scatter_abstract(name),
        scatter_impl(ufunc),
        jvp=_extremal_jvp(lambda: prim, combine),
        rewind=scatter_rewind,
        batch=scatter_batch(lambda: prim),
        kernel=scatter_kernel(combine),
        cost=lambda x, updates, *indices, **params: Workload(updates.size),
        effects=raises,
        guard=guard,
    )
    return prim


scatter_min_p = _extremal("scatter_min", np.minimum, min_p)
scatter_max_p = _extremal("scatter_max", np.maximum, max_p)
