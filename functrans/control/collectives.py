"""Collectives: operations that combine the examples of a named batch axis.

Only their batch rules compute. Under the ``vmap`` that names the axis, `psum` is a sum along the batch axis,
`all_gather` the batched value itself, and so on; any other ``vmap`` passes them through. So a compiled program contains
no collectives. The names and sizes are checked where users call ``functrans.lax.psum`` and the others; the equations
hold what their types depend on.

All operate along axis 0 of an example, where they refer to one of its axes. With `groups`, which partition the
examples, each group is an axis of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ..core import INT64, Aval, Linear, Primitive, Zero, aval_of
from ..core.named_axes import axis_name as name_of_axis
from ..errors import UnboundAxisError
from ..primitives.elementwise.arithmetic import convert, div_p, eq_p, mul_p, select_p
from ..primitives.indexing.gather_scatter import gather_p
from ..primitives.reductions.reduce import reduce_max_p, reduce_min_p
from ..primitives.structure.linear import (
    batched_first,
    linear_jvp,
    move_axis,
    reduce_sum_p,
    reshape_p,
    shape_of,
    transpose_p,
)
from ..primitives.structure.shape import iota
from ..transforms.batch import batch

Groups = tuple[tuple[int, ...], ...] | None
#: ``front(x, **params) -> (out, batched)``: the result for a value with the examples along axis 0.
Front = Callable[..., tuple[Any, bool]]
_INT32 = np.dtype(np.int32)


def _unbound(*args: Any, axis_name: Hashable, **params: Any) -> Any:
    raise UnboundAxisError(f"no vmap binds the axis name {axis_name!r} where the program runs")


def _batch_rule(
    prim: Callable[[], Primitive], front: Front, shared: Callable[[Any, int], Any] | None = None
) -> Callable[..., tuple[Any, int | None]]:
    """Batching: the work itself along the axis of this name, and a pass along any other.

    `shared`, if any, gives the result for a value that all examples share, from it and the number of examples.
    """

    def rule(
        size: int, args: Sequence[Any], dims: Sequence[int | None], *, axis_name: Hashable, **params: Any
    ) -> tuple[Any, int | None]:
        (x,), (d,) = args, dims
        if name_of_axis(size) != axis_name:
            if d is None:
                return prim().bind(x, axis_name=axis_name, **params), None
            last = move_axis(x, d, len(shape_of(x)) - 1)
            out = prim().bind(last, axis_name=axis_name, **params)
            return out, len(shape_of(out)) - 1
        groups = params.pop("groups", None)
        if d is None and shared is not None:
            return shared(x, int(size) if groups is None else len(groups[0])), None
        x = batched_first(int(size), x, d)
        out, batched = front(x, **params) if groups is None else _in_groups(front, x, groups, params)
        return out, 0 if batched else None

    return rule


def _in_groups(
    front: Front, x: Any, groups: tuple[tuple[int, ...], ...], params: dict[str, Any]
) -> tuple[Any, bool]:
    """Each group of examples as an axis of its own."""
    count, each = len(groups), len(groups[0])
    order = np.array(groups, INT64).ravel()
    rows = _rows(x, order)
    grouped = reshape_p.bind(rows, shape=(count, each, *shape_of(rows)[1:]))

    def one(group: Any) -> list[Any]:
        out, batched = front(group, **params)
        return [batched_first(each, out, 0 if batched else None)]

    (out,), (d,) = batch(one, count, [grouped], [0])
    out = batched_first(count, out, d)
    flat = reshape_p.bind(out, shape=(count * each, *shape_of(out)[2:]))
    return _rows(flat, np.argsort(order)), True


def _rows(x: Any, order: np.ndarray) -> Any:
    return gather_p.bind(x, order, axes=(0,), mode="clip")


# --- sums and extremes --------------------------------------------------------------------------------------


def _times(x: Any, number: int) -> Any:
    return mul_p.bind(x, aval_of(x).dtype.type(number))


psum_p: Primitive = Primitive(
    "psum",
    lambda x, *, axis_name, groups: x.strong(),
    _unbound,
    jvp=linear_jvp(lambda: psum_p),
    linear=True,
    transpose=lambda ct, x, **params: [psum_p.bind(ct, **params)],
    batch=_batch_rule(lambda: psum_p, lambda x: (reduce_sum_p.bind(x, axes=(0,)), False), _times),
    each_lane=True,
)


def _extreme(name: str, reduce: Primitive) -> Primitive:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        ans = prim.bind(x, **params)
        if type(t) is Zero:
            return ans, Zero(ans)
        chosen = eq_p.bind(x, ans)
        number = psum_p.bind(convert(chosen, aval_of(t).dtype), **params)  # ties share the derivative
        own = select_p.bind(chosen, div_p.bind(t, number), aval_of(t).dtype.type(0))
        return ans, psum_p.bind(own, **params)

    prim = Primitive(
        name,
        lambda x, *, axis_name, groups: x.strong(),
        _unbound,
        jvp=jvp,
        batch=_batch_rule(lambda: prim, lambda x: (reduce.bind(x, axes=(0,)), False), lambda x, _: x),
        each_lane=True,
    )
    return prim


pmax_p = _extreme("pmax", reduce_max_p)
pmin_p = _extreme("pmin", reduce_min_p)

# --- exchanges ----------------------------------------------------------------------------------------------


def _gather_transpose(ct: Any, x: Linear, *, number: int, **params: Any) -> list[Any]:
    return [reduce_sum_p.bind(all_to_all_p.bind(ct, **params), axes=(0,))]


#: The values of all examples along a new axis 0, for every example.
all_gather_p: Primitive = Primitive(
    "all_gather",
    lambda x, *, axis_name, groups, number: Aval((number, *x.shape), x.dtype),
    _unbound,
    jvp=linear_jvp(lambda: all_gather_p),
    linear=True,
    transpose=_gather_transpose,
    batch=_batch_rule(lambda: all_gather_p, lambda x, number: (x, False)),
    each_lane=True,
)


def _exchange(x: Any) -> tuple[Any, bool]:
    order = (1, 0, *range(2, len(shape_of(x))))
    return transpose_p.bind(x, permutation=order), True


#: Element `k` along axis 0 of example `i` becomes element `i` of example `k`.
all_to_all_p: Primitive = Primitive(
    "all_to_all",
    lambda x, *, axis_name, groups: x.strong(),
    _unbound,
    jvp=linear_jvp(lambda: all_to_all_p),
    linear=True,
    transpose=lambda ct, x, **params: [all_to_all_p.bind(ct, **params)],
    batch=_batch_rule(lambda: all_to_all_p, _exchange),
    each_lane=True,
)


def _permute(x: Any, perm: tuple[tuple[int, int], ...]) -> tuple[Any, bool]:
    size = shape_of(x)[0]
    sources = np.full(size, size, INT64)  # out of bounds: zero
    for source, target in perm:
        sources[target] = source
    if (sources < size).all():
        return _rows(x, sources), True
    return gather_p.bind(x, sources, axes=(0,), mode="fill", fill_value=0), True


#: The value of example `source` becomes that of `target`, for each pair; zero for elements without a pair.
ppermute_p: Primitive = Primitive(
    "ppermute",
    lambda x, *, axis_name, perm: x.strong(),
    _unbound,
    jvp=linear_jvp(lambda: ppermute_p),
    linear=True,
    transpose=lambda ct, x, *, axis_name, perm: [
        ppermute_p.bind(ct, axis_name=axis_name, perm=tuple([(j, i) for i, j in perm]))
    ],
    batch=_batch_rule(lambda: ppermute_p, _permute),
    each_lane=True,
)


def _index_batch(
    size: int, args: Sequence[Any], dims: Sequence[Any], *, axis_name: Hashable
) -> tuple[Any, int | None]:
    if name_of_axis(size) == axis_name:
        return iota((int(size),), 0, _INT32), 0
    return axis_index_p.bind(axis_name=axis_name), None


#: The number of the example.
axis_index_p: Primitive = Primitive(
    "axis_index",
    lambda *, axis_name: Aval((), _INT32),
    _unbound,
    batch=_index_batch,
    each_lane=True,
)
