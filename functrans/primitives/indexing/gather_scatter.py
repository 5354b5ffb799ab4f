"""Gather and scatter, in one canonical form.

The operand has `k` integer index arrays of one common shape ``S``, which index its `k` axes ``axes``; full slices take
the other axes. So a gather has shape ``S + rest``, and a scatter takes updates of that shape. `expressions` adds the
rest of NumPy's indexing (slices, new axes, the position of the result's axes). ``mode`` says how indices out of bounds
behave, see `GatherScatterMode`.

Gathering, replacing and adding are here; they are each other's transposes. `scatter_folds` has products, minima and
maxima.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import prod
from typing import Any

import numpy as np

from ...core import Workload
from ...core.aval import Aval, Zero, aval_of
from ...core.dtypes import INT64
from ...core.ir import Atom, Eqn
from ...core.kernel import CACHE_LINE, Block, BlockEmitter, Buffer, Indexed, IndexEmitter, Pointwise
from ...core.primitive import Linear, Primitive
from ...core.values import ArrayLike, Index, Param, Tangent, Value
from ...errors import ShapeError
from ...passes.rewind import Back, variables
from ...passes.toolkit import new_equation
from ..elementwise.arithmetic import eq_p, lt_p, select_p
from ..elementwise.bits import and_p, not_p
from ..reductions.reduce import reduce_or_p
from ..series import of_jointly_linear
from ..structure.linear import (
    Rule,
    add_p,
    batched_first,
    broadcast_in_dim_p,
    dtype_of,
    move_axis,
    reshape_p,
    shape_of,
    zeros,
)
from ..structure.shape import iota, jointly_linear_jvp, loops
from . import index_shapes


def scatter_abstract(name: str) -> Rule:
    """Return the rule for the result's type: the operand's, if the updates have the expected type."""

    def abstract(
        x: Aval, updates: Aval, *indices: Aval, axes: tuple[int, ...], mode: str, unique_indices: bool = False
    ) -> Aval:
        expected = index_shapes.indexed_shape(name, x, indices, axes, mode)
        if updates.shape != expected or updates.dtype != x.dtype:
            raise ShapeError(
                f"{name}: updates have type {updates.strong()}, expected {Aval(expected, x.dtype)} for an "
                f"operand of type {x}"
            )
        return x.strong()

    return abstract


_FEW = 256
"""Up to this many updates ``ufunc.at`` on several axes is fast enough."""


def scatter_impl(ufunc: np.ufunc | None) -> Rule:
    """Return the evaluation by NumPy. With None, updates replace the elements."""

    def impl(
        x: Value,
        updates: ArrayLike,
        *indices: ArrayLike,
        axes: tuple[int, ...],
        mode: str,
        unique_indices: bool = False,
    ) -> np.ndarray:
        out = np.array(x, order="C")
        updates = np.asarray(updates)
        view = index_shapes.with_leading(out, axes)
        if mode == "raise" and updates.size <= _FEW:
            try:
                return _write(ufunc, out, view, updates, indices, unique_indices)
            except IndexError:
                index_shapes.resolve(indices, out.shape, axes, mode)  # names the bad index
                raise
        resolved, valid = index_shapes.resolve(indices, out.shape, axes, mode)
        if valid is not None and not valid.all():
            resolved, updates = [i[valid] for i in resolved], updates[valid]
        if ufunc is None or unique_indices or updates.size <= _FEW:
            return _write(ufunc, out, view, updates, resolved, unique_indices)
        _accumulate(ufunc, out, updates, resolved, axes)
        return out

    return impl


def _write(
    ufunc: np.ufunc | None,
    out: np.ndarray,
    view: np.ndarray,
    updates: np.ndarray,
    indices: Sequence[Any],
    unique: bool,
) -> np.ndarray:
    place = tuple(indices)
    if ufunc is None:
        view[place] = updates
    elif unique or np.size(indices[0]) == 1:
        view[place] = ufunc(view[place], updates)
    elif view.ndim > 32:  # ``ufunc.at`` would crash
        for i in np.ndindex(np.shape(indices[0])):
            spot = tuple([index[i] for index in indices])
            view[spot] = ufunc(view[spot], updates[i])
    else:
        ufunc.at(view, place, updates)
    return out


def _accumulate(
    ufunc: np.ufunc, out: np.ndarray, updates: np.ndarray, indices: list[np.ndarray], axes: tuple[int, ...]
) -> None:
    """Call ``ufunc.at`` on a flat view, where NumPy is ten times faster than with several axes."""
    steps = [s // out.itemsize for s in out.strides]
    flat = np.zeros(indices[0].shape, np.int64)
    for d, i in zip(axes, indices):
        flat = flat + i * steps[d]
    rest = [d for d in range(out.ndim) if d not in axes]
    for d in rest:
        flat = np.add.outer(flat, np.arange(0, out.shape[d] * steps[d], steps[d]))
    ufunc.at(out.reshape(-1), flat.reshape(-1), updates.reshape(-1))


def scatter_batch(prim: Callable[[], Primitive]) -> Rule:
    """Batch a scatter: a full slice takes the batch axis, or the lane number indexes it."""

    def batch(
        size: int,
        args: Sequence[Value],
        dims: Sequence[int | None],
        *,
        axes: tuple[int, ...],
        **params: Param,
    ) -> tuple[Value, int]:
        x = batched_first(size, args[0], dims[0])
        updates = batched_first(size, args[1], dims[1])
        axes = tuple([a + 1 for a in axes])
        indices = args[2:]
        if all(d is None for d in dims[2:]):
            updates = move_axis(updates, 0, len(shape_of(indices[0])))
        else:
            indices = index_shapes.batched_indices(size, indices, dims[2:], False)
            axes = (0, *axes)
            if prod(shape_of(indices[0])[1:]) == 1:  # each lane writes one element, and no two the same
                params["unique_indices"] = True
        return prim().bind(x, updates, *indices, axes=axes, **params), 0

    return batch


def scatter_rewind(eqn: Eqn, operand: int, result: int, after: Atom) -> Back | None:
    """Return the way back over a scatter of any kind: put the elements back.

    The way back reports no index out of bounds: the scatter did. If an index occurs twice, the element is the same.
    """
    if operand:
        return None
    x, _, *indices = eqn.invars
    axes, mode = eqn.params["axes"], eqn.params["mode"]
    fill = {"fill_value": 0} if mode in ("fill", "drop") else {}
    log = new_equation(gather_p, [x, *indices], {"axes": axes, "mode": mode} | fill, eqn.source)
    (old,) = log.outvars
    options = {"axes": axes, "mode": "drop" if mode == "raise" else mode, "unique_indices": False}
    back = new_equation(scatter_p, [after, old, *indices], options, eqn.source)
    return Back([log, eqn], variables([old, *indices]), [back], back.outvars[0])


def scatter_kernel(combination: Primitive | None) -> Block:
    """Return the kernel, which combines each element with its update; with None the update replaces it."""
    rule = None if combination is None else combination.kernel
    combine = rule.emit if isinstance(rule, Pointwise) else None

    def emit(
        k: BlockEmitter,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        *,
        axes: tuple[int, ...],
        mode: str,
        unique_indices: bool = False,
    ) -> None:
        x, updates, *indices = operands
        out = results[0]
        k.copy(out, x)
        common = indices[0].shape
        adds = combination is add_p and not (k.in_order and out.dtype.kind in "fc")
        rows = prod(index_shapes.rest_of(x.shape, axes)) * out.dtype.itemsize
        with loops(k, common, separate=unique_indices and rows >= CACHE_LINE, adds=adds) as at:
            place: list[Any] = [None] * len(x.shape)
            valid = None
            for d, array in zip(axes, indices):
                place[d], inside = index_shapes.kernel_index(k, k.load(array, at), x.shape[d], mode)
                if inside is not None:
                    valid = inside if valid is None else valid & inside
            if valid is not None and mode == "raise":
                k.fail_if(~valid)
            with (
                nullcontext() if valid is None else k.if_(valid),
                loops(k, index_shapes.rest_of(x.shape, axes)) as others,
            ):
                left = iter(others)
                target = [next(left) if i is None else i for i in place]
                value = k.load(updates, [*at, *others])
                k.store(out, target, value if combine is None else combine(k, k.load(out, target), value))

    def written(
        x: ArrayLike, updates: ArrayLike, index: Index, *others: Any, axes: tuple[int, ...], **params: Param
    ) -> Any:
        rest = iter(range(index.aval.ndim, updates.aval.ndim))
        return tuple([None if d in axes else next(rest) for d in range(x.aval.ndim)])

    return Block(emit, reuse=0, streamed_from=1, written=written)


# --- gather -------------------------------------------------------------------------------------------------


def _gather_abstract(
    x: Aval, *indices: Aval, axes: tuple[int, ...], mode: str, fill_value: ArrayLike = None
) -> Aval:
    return Aval(index_shapes.indexed_shape("gather", x, indices, axes, mode), x.dtype)


def _gather_impl(
    x: ArrayLike, *indices: ArrayLike, axes: tuple[int, ...], mode: str, fill_value: Any = None
) -> np.ndarray:
    if mode == "raise":
        try:
            return _take(x, indices, axes)
        except IndexError:
            index_shapes.resolve(indices, x.shape, axes, mode)  # names the bad index
            raise
    resolved, valid = index_shapes.resolve(indices, x.shape, axes, mode)
    if valid is None or valid.all():
        return _take(x, resolved, axes)
    fill = index_shapes.fill_for(x.dtype, fill_value)
    if x.size == 0:
        return np.full(valid.shape + index_shapes.rest_of(x.shape, axes), fill, x.dtype)
    taken = _take(x, resolved, axes)
    return np.where(valid.reshape(valid.shape + (1,) * (taken.ndim - valid.ndim)), taken, fill)


def _take(x: np.ndarray, indices: Sequence[Any], axes: tuple[int, ...]) -> np.ndarray:
    i = indices[0]
    if axes == (0,) and type(i) is np.ndarray and i.dtype == INT64 and x.flags.c_contiguous:
        return x.take(i, 0)  # three times faster than x[i]
    return index_shapes.with_leading(x, axes)[tuple(indices)]


def _gather_transpose(
    ct: Value, x: Linear, *indices: Value, axes: tuple[int, ...], mode: str, fill_value: Any = None
) -> list[Value | None]:
    back = scatter_add_p.bind(zeros(x.aval), ct, *indices, axes=axes, mode=mode)
    return [back, *[None] * len(indices)]


def _gather_accumulate(
    ct: Value,
    totals: Sequence[Tangent],
    x: Linear,
    *indices: ArrayLike,
    axes: tuple[int, ...],
    mode: str,
    fill_value: ArrayLike = None,
) -> list[Any]:
    return [scatter_add_p.bind(totals[0], ct, *indices, axes=axes, mode=mode), *[None] * len(indices)]


def _gather_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, axes: tuple[int, ...], **params: Param
) -> tuple[Value, int]:
    x, d = args[0], dims[0]
    if all(e is None for e in dims[1:]):
        assert d is not None
        shifted = tuple([a + (a >= d) for a in axes])
        before = d - sum(a < d for a in shifted)  # among the axes that are not indexed
        out = gather_p.bind(x, *args[1:], axes=shifted, **params)
        return out, len(shape_of(args[1])) + before
    indices = index_shapes.batched_indices(size, args[1:], dims[1:], d is None)
    if d is not None:
        x = move_axis(x, d, 0)
        axes = (0, *[a + 1 for a in axes])
    return gather_p.bind(x, *indices, axes=axes, **params), 0


def _gather_kernel(
    k: IndexEmitter,
    index: Index,
    x: Any,
    *indices: Any,
    out: Aval,
    axes: tuple[int, ...],
    mode: str,
    fill_value: Any = None,
) -> Any:
    common = indices[0].aval.ndim
    place: list[Any] = [None] * x.aval.ndim
    valid = None
    for d, array in zip(axes, indices):
        place[d], inside = index_shapes.kernel_index(k, array[index[:common]], x.aval.shape[d], mode)
        if inside is not None and mode == "raise":
            k.fail_if(~inside)
            place[d] = k.where(inside, place[d], k.const(0, place[d].dtype))
        elif inside is not None:
            valid = inside if valid is None else valid & inside
    rest = iter(index[common:])
    place = [next(rest) if i is None else i for i in place]
    if valid is None:
        return x[place]
    return k.guarded(
        valid, lambda: x[place], k.const(index_shapes.fill_for(out.dtype, fill_value), out.dtype)
    )


def _gather_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param
) -> tuple[Value, Tangent]:
    ans = gather_p.bind(*primals, **params)
    t = tangents[0]
    if type(t) is Zero:
        return ans, Zero(ans)
    if params["mode"] in ("fill", "drop"):
        params = {**params, "fill_value": 0}  # elements out of bounds do not depend on x
    return ans, gather_p.bind(t, *primals[1:], **params)


gather_p: Primitive = Primitive(
    "gather",
    _gather_abstract,
    _gather_impl,
    jvp=_gather_jvp,
    taylor=of_jointly_linear,
    transpose=_gather_transpose,
    accumulate=_gather_accumulate,
    batch=_gather_batch,
    kernel=Indexed(_gather_kernel),
    effects=index_shapes.raises,
    guard=index_shapes.guard,
)


# --- scatter ------------------------------------------------------------------------------------------------


def gathered(
    x: Value, indices: Sequence[Value], axes: tuple[int, ...], mode: str, fill_value: Any = 0
) -> Value:
    """Return the elements at a scatter's indices, and `fill_value` where the scatter drops the update."""
    fill = {"fill_value": fill_value} if mode in ("fill", "drop") else {}
    return gather_p.bind(x, *indices, axes=axes, mode=mode, **fill)


def _as_rows(condition: Value, shape: tuple[int, ...]) -> Value:
    """Broadcast a condition per index to one per update."""
    return broadcast_in_dim_p.bind(
        condition, shape=shape, broadcast_dimensions=tuple(range(len(shape_of(condition))))
    )


def _is_last(shape: tuple[int, ...], indices: Sequence[Value], axes: tuple[int, ...], mode: str) -> Value:
    """Return for each index whether its update wins, as the last at its position."""
    common, extents = shape_of(indices[0]), tuple([shape[d] for d in axes])
    count, every = prod(common), tuple(range(len(axes)))
    if count * count <= prod(extents):  # compare each with each: the array may be large
        order = reshape_p.bind(iota((prod(extents),), 0), shape=extents)
        place = reshape_p.bind(gathered(order, indices, every, mode, -1), shape=(count,))
        rows, columns = [
            broadcast_in_dim_p.bind(place, shape=(count, count), broadcast_dimensions=(d,)) for d in (0, 1)
        ]
        later = lt_p.bind(iota((count, count), 0), iota((count, count), 1))
        again = reduce_or_p.bind(and_p.bind(eq_p.bind(rows, columns), later), axes=(1,))
        return reshape_p.bind(not_p.bind(again), shape=common)
    number = iota((count,), 0)
    number = number if len(common) == 1 else reshape_p.bind(number, shape=common)
    places = zeros(Aval(extents, np.dtype(np.int64)))
    winner = scatter_p.bind(places, number, *indices, axes=every, mode=mode)
    return eq_p.bind(gathered(winner, indices, every, mode, -1), number)


def _scatter_transpose(
    ct: Value,
    x: Any,
    updates: Any,
    *indices: Value,
    axes: tuple[int, ...],
    mode: str,
    unique_indices: bool = False,
) -> list[Value | None]:
    """The cotangent is read before zeros are written, so that these can overwrite it in place."""
    cts: list[Tangent] = [None] * (2 + len(indices))
    common = shape_of(indices[0])
    if type(updates) is Linear:
        back = gathered(ct, indices, axes, mode)
        if not unique_indices and prod(common) > 1:
            last = _as_rows(_is_last(shape_of(ct), indices, axes, mode), shape_of(back))
            back = select_p.bind(last, back, zeros(aval_of(back)))
        cts[1] = back
    if type(x) is Linear:
        nothing = zeros(Aval(common + index_shapes.rest_of(shape_of(ct), axes), dtype_of(ct)))
        cts[0] = scatter_p.bind(ct, nothing, *indices, axes=axes, mode=mode, unique_indices=unique_indices)
    return cts


scatter_p: Primitive = Primitive(
    "scatter",
    scatter_abstract("scatter"),
    scatter_impl(None),
    # The last update at a position wins, for tangents as for values. So the operation is linear, even with repeated
    # indices.
    jvp=jointly_linear_jvp(lambda: scatter_p, 2),
    rewind=scatter_rewind,
    taylor=of_jointly_linear,
    transpose=_scatter_transpose,
    batch=scatter_batch(lambda: scatter_p),
    kernel=scatter_kernel(None),
    effects=index_shapes.raises,
    guard=index_shapes.guard,
    moves_data=True,
)


def _scatter_add_transpose(
    ct: Value,
    x: Any,
    updates: Any,
    *indices: Value,
    axes: tuple[int, ...],
    mode: str,
    unique_indices: bool = False,
) -> list[Value | None]:
    back = gathered(ct, indices, axes, mode) if type(updates) is Linear else None
    return [ct if type(x) is Linear else None, back, *[None] * len(indices)]


scatter_add_p: Primitive = Primitive(
    "scatter_add",
    scatter_abstract("scatter_add"),
    scatter_impl(np.add),
    in_float32=True,
    jvp=jointly_linear_jvp(lambda: scatter_add_p, 2),
    rewind=scatter_rewind,
    taylor=of_jointly_linear,
    transpose=_scatter_add_transpose,
    batch=scatter_batch(lambda: scatter_add_p),
    kernel=scatter_kernel(add_p),
    cost=lambda x, updates, *indices, **params: Workload(updates.size),
    effects=index_shapes.raises,
    guard=index_shapes.guard,
)
