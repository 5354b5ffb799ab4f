"""Sorting along an axis: several operands at once, the largest elements of rows, and binary search.

`sort_p` moves all operands alike, ordered by the first `num_keys` of them; an argsort sorts an array together with an
iota. `top_k_p` is for a few of many elements. Both are stable. The kernels are in `sort_kernel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import INT64, Aval, Block, BlockEmitter, Buffer, Primitive, Scalar, Workload, Zero, is_inexact
from ...core.values import ArrayLike, Index, Tangent, Value
from ...errors import ArgumentValueError, ShapeError
from ..axes import check_axes, same_dtype
from ..indexing.gather_scatter import gather_p
from ..structure.linear import batched_first, move_axis, shape_of
from ..structure.shape import iota, lanes, rev_p, slice_along
from .sort_kernel import before, sort_kernel


def take_along(x: Value, index: Index, dimension: int) -> Value:
    """Return the elements of `x` at indices along one axis, like ``np.take_along_axis``; indices must be in bounds."""
    shape = shape_of(index)
    places = [index if d == dimension else iota(shape, d) for d in range(len(shape))]
    return gather_p.bind(x, *places, axes=tuple(range(len(shape))), mode="promise_in_bounds")


def argsort(x: Value, dimension: int) -> Value:
    """Return the stable order of the elements along an axis, as int64."""
    return sort_p.bind(x, iota(shape_of(x), dimension), dimension=dimension, num_keys=1)[1]


# --- sort -----------------------------------------------------------------------------------------------------


def _sort_abstract(*avals: Aval, dimension: int, num_keys: int) -> tuple[Aval, ...]:
    shape = avals[0].shape
    check_axes("sort", (dimension,), shape)
    if any(a.shape != shape for a in avals):
        listed = ", ".join(str(a.shape) for a in avals)
        raise ShapeError(f"sort: operands have different shapes ({listed}); broadcast them first")
    if not 1 <= num_keys <= len(avals):
        raise ArgumentValueError(f"sort: num_keys must be from 1 to {len(avals)}, got {num_keys}")
    return tuple([a.strong() for a in avals])


def _sort_impl(*xs: ArrayLike, dimension: int, num_keys: int) -> tuple[np.ndarray, ...]:
    if len(xs) == 1:
        return (_sorted(xs[0], dimension),)
    if num_keys == 1:
        order = np.argsort(xs[0], axis=dimension, kind="stable")
    else:
        order = np.lexsort(xs[num_keys - 1 :: -1], axis=dimension)
    return tuple([np.take_along_axis(x, order, dimension) for x in xs])


def _sorted(x: np.ndarray, axis: int) -> np.ndarray:
    """Sort by NumPy's fastest algorithm, or by its stable one where the two can differ: in the signs of zeros."""
    if is_inexact(x.dtype):
        zeros = x == 0
        signed = np.signbit(x.real) | np.signbit(x.imag) if x.dtype.kind == "c" else np.signbit(x)
        if x.dtype.kind == "c" or (zeros & signed).any():
            return np.sort(x, axis=axis, kind="stable")
    return np.sort(x, axis=axis)


def _sort_jvp(
    primals: Sequence[Any], tangents: Sequence[Tangent], *, dimension: int, num_keys: int
) -> tuple[Any, Any]:
    if all(type(t) is Zero for t in tangents):
        outs = sort_p.bind(*primals, dimension=dimension, num_keys=num_keys)
        return outs, tuple([Zero(y) for y in outs])
    number = iota(shape_of(primals[0]), dimension)
    *outs, order = sort_p.bind(*primals, number, dimension=dimension, num_keys=num_keys)
    permuted = [
        Zero(y) if type(t) is Zero else take_along(t, order, dimension) for y, t in zip(outs, tangents)
    ]
    return tuple(outs), tuple(permuted)


def _sort_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, dimension: int, num_keys: int
) -> tuple[Any, Any]:
    moved = [batched_first(size, x, d) for x, d in zip(args, dims)]
    outs = sort_p.bind(*moved, dimension=dimension + 1, num_keys=num_keys)
    return outs, (0,) * len(outs)


sort_p: Primitive = Primitive(
    "sort",
    _sort_abstract,
    _sort_impl,
    jvp=_sort_jvp,
    batch=_sort_batch,
    kernel=Block(sort_kernel, streamed_from=0),
    multiple_results=True,
    moves_data=True,
    cost=lambda x, *more, dimension, **params: Workload(x.size * x.shape[dimension].bit_length()),
)


# --- top_k ----------------------------------------------------------------------------------------------------

#: Up to this many elements are collected in a sorted list in one pass over a row; more are taken from the sorted row.
_LISTED = 32


def top_k(x: Value, k: int) -> tuple[Value, Value]:
    """Return the `k` largest elements along the last axis in descending order, and their indices. NaN counts as
    largest; of equal elements the first comes first.
    """
    if k <= _LISTED:
        return tuple(top_k_p.bind(x, k=k))
    shape = shape_of(x)
    last = len(shape) - 1
    operands = [rev_p.bind(a, dimensions=(last,)) for a in (x, iota(shape, last))]
    values, places = sort_p.bind(*operands, dimension=last, num_keys=1)
    n = shape[last]
    taken = [rev_p.bind(slice_along(a, last, n - k, n), dimensions=(last,)) for a in (values, places)]
    return taken[0], taken[1]


def _top_k_abstract(x: Aval, *, k: int) -> tuple[Aval, Aval]:
    if not x.ndim or not 0 <= k <= x.shape[-1]:
        raise ArgumentValueError(
            f"top_k: k must be from 0 to the extent of the last axis, got {k} for shape {x.shape}"
        )
    shape = (*x.shape[:-1], k)
    return Aval(shape, x.dtype), Aval(shape, INT64)


def _top_k_impl(x: Value, *, k: int) -> tuple[np.ndarray, np.ndarray]:
    n = x.shape[-1]
    order = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., n - k :]
    places = n - 1 - order[..., ::-1]
    return np.take_along_axis(x, places, -1), places


def _top_k_jvp(primals: Sequence[Any], tangents: Sequence[Tangent], *, k: int) -> tuple[Any, Any]:
    values, places = top_k_p.bind(*primals, k=k)
    t = tangents[0]
    moved = Zero(values) if type(t) is Zero else take_along(t, places, len(shape_of(t)) - 1)
    return (values, places), (moved, Zero(places))


def _top_k_batch(size: int, args: Sequence[Value], dims: Sequence[int], *, k: int) -> tuple[Any, Any]:
    return top_k_p.bind(batched_first(size, args[0], dims[0]), k=k), (0, 0)


def _top_k_kernel(k_: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer], *, k: int) -> None:
    (x,), (values, places) = operands, results
    with lanes(k_, x.shape[:-1]) as row:
        with k_.loop(k) as slot:
            k_.store(values, (*row, slot), k_.const(0, x.dtype))
            k_.store(places, (*row, slot), k_.const(-1, INT64))
        with k_.loop(x.shape[-1]) as i:
            _insert(k_, k_.load(x, (*row, i)), i, values, places, row)


def _insert(k: BlockEmitter, x: Any, i: Any, values: Buffer, places: Buffer, row: Sequence[Any]) -> None:
    """Insert `x` into the list of the largest elements so far, whose empty slots have index -1."""
    last = values.shape[-1] - 1

    def wins(slot: Any) -> tuple[Any, Any, Any]:
        value, place = k.load(values, (*row, slot)), k.load(places, (*row, slot))
        return value, place, (place < 0) | before(k, [value], [x])

    if last < 0:
        return
    with k.if_(wins(last)[2]):
        with k.loop(last + 1, 1, reverse=True) as slot:
            _, _, here = wins(slot)
            value, place, above = wins(slot - 1)
            with k.if_(here):
                k.store(values, (*row, slot), k.where(above, value, x))
                k.store(places, (*row, slot), k.where(above, place, i))
        with k.if_(wins(0)[2]):
            k.store(values, (*row, 0), x)
            k.store(places, (*row, 0), i)


top_k_p: Primitive = Primitive(
    "top_k",
    _top_k_abstract,
    _top_k_impl,
    jvp=_top_k_jvp,
    batch=_top_k_batch,
    kernel=Block(_top_k_kernel, streamed_from=0),
    multiple_results=True,
    moves_data=True,
    cost=lambda x, *, k: Workload(x.size * k.bit_length()),
)


def _search_abstract(a: Aval, v: Aval, *, side: str) -> Aval:
    same_dtype("searchsorted", (a, v))
    lead = a.shape[:-1]
    if not a.ndim or v.shape[: len(lead)] != lead:
        raise ShapeError(
            f"searchsorted: expected a sorted array with at least one axis, and values whose shape begins with {lead}, "
            f"got shapes {a.shape} and {v.shape}"
        )
    if side not in ("left", "right"):
        raise ArgumentValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    return Aval(v.shape, INT64)


def _search_impl(a: Value, v: Value, *, side: Any) -> np.ndarray:
    if a.ndim == 1:
        return np.asarray(np.searchsorted(a, v, side))
    out = np.empty(v.shape, INT64)
    for row in np.ndindex(a.shape[:-1]):
        out[row] = np.searchsorted(a[row], v[row], side)
    return out


def _search_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], *, side: str) -> tuple[Any, Zero]:
    ans = searchsorted_p.bind(*primals, side=side)
    return ans, Zero(ans)


def _search_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, side: str
) -> tuple[Value, int]:
    (a, v), (d, e) = args, dims
    if d is None:
        assert e is not None
        last = len(shape_of(v)) - 1  # after the axes shared with the sorted array
        return searchsorted_p.bind(a, move_axis(v, e, last), side=side), last
    rows, numbers = batched_first(size, a, d), batched_first(size, v, e)
    return searchsorted_p.bind(rows, numbers, side=side), 0


def _search_kernel(
    k: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer], *, side: str
) -> None:
    (a, v), (out,) = operands, results
    n = a.shape[-1]
    rank = len(a.shape) - 1
    with lanes(k, out.shape) as index:
        x = k.load(v, index)
        # The answer is among the `left` positions from `place` on, or just after them. `left` does not depend on the
        # data, so the halving is unrolled and has no branch: the processor searches for several values at once.
        place, left = k.const(0, INT64), n

        def further(at: Scalar) -> Scalar:
            y = k.load(a, (*index[:rank], at))
            return before(k, [y], [x]) if side == "left" else ~before(k, [x], [y])

        while left > 1:
            half = left // 2
            place = k.where(further(place + (half - 1)), place + half, place)
            left -= half
        if left:
            place = k.where(further(place), place + 1, place)
        k.store(out, index, place)


# The sorted array's rows correspond to the first axes of the values; each value is read once.
searchsorted_p: Primitive = Primitive(
    "searchsorted",
    _search_abstract,
    _search_impl,
    jvp=_search_jvp,
    batch=_search_batch,
    kernel=Block(_search_kernel, streamed_from=1),
    cost=lambda a, v, **params: Workload(v.size * a.shape[-1].bit_length()),
)
