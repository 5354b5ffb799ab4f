"""Slices with computed starts: dynamic_slice and dynamic_update_slice.

Starts are clamped so that the slice lies within the array, so no index is ever out of bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...core import INT64, Along, Aval, Block, BlockEmitter, Buffer, Indexed, Linear, Primitive, Shifted
from ...core.ir import Atom, Eqn, Literal
from ...core.kernel import IndexEmitter
from ...core.values import Index, Params, Tangent, Value
from ...errors import DtypeError, ShapeError
from ...passes.rewind import Back, variables
from ...passes.rewriter import Rewriter
from ...passes.toolkit import new_equation
from ..elementwise.arithmetic import convert, ge_p, le_p, max_p, min_p
from ..elementwise.bits import and_p
from ..indexing.gather_scatter import gather_p, scatter_p
from ..series import of_jointly_linear
from .linear import (
    add_p,
    batched_first,
    broadcast_in_dim_p,
    dtype_of,
    linear_jvp,
    shape_of,
    transpose_p,
    zeros,
)
from .shape import iota, jointly_linear_jvp, loops, slice_p


def _check(name: str, x: Aval, starts: Sequence[Aval], sizes: tuple[int, ...]) -> None:
    if len(sizes) != x.ndim or any(not 0 <= m <= n for m, n in zip(sizes, x.shape)):
        raise ShapeError(f"{name}: slice_sizes {sizes} must be within the shape {x.shape} of the operand")
    if len(starts) != x.ndim or any(s.shape != () for s in starts):
        raise ShapeError(
            f"{name}: expected one scalar start for each of the {x.ndim} axes, got {len(starts)}"
        )
    for s in starts:
        if s.dtype.kind not in "iu":
            raise DtypeError(f"{name}: starts must be integers, got {s.dtype}")


def _guard_starts(
    name: str, categories: Sequence[str], shape: Sequence[int], sizes: Sequence[int], starts: Sequence[Any]
) -> list[Any]:
    """What ``checkify`` reports: starts that are clamped."""
    failures = []
    for d, (s, n, m) in enumerate(zip(starts, shape, sizes)):
        if "index" in categories and m:
            start = convert(s, INT64)
            ok = and_p.bind(ge_p.bind(start, np.int64(0)), le_p.bind(start, np.int64(n - m)))
            text = f"{name}: start {{}} is out of bounds for a slice of {m} in axis {d} with size {n}"
            failures.append(("index", ok, text, [start]))
    return failures


def _clamped(starts: Sequence[Value], shape: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    places = [min(max(int(s), 0), n - m) for s, n, m in zip(starts, shape, sizes)]
    return tuple([slice(i, i + m) for i, m in zip(places, sizes)])


def _kernel_start(k: IndexEmitter, start: Any, n: int, m: int) -> Any:
    start = k.cast(start, INT64)
    last = start * 0 + (n - m)
    return k.where(start < 0, k.const(0, INT64), k.where(start < last, start, last))


def _is_batched_start(dims: Sequence[int | None]) -> bool:
    return any(d is not None for d in dims)


def _lane_indices(
    size: int, shape: tuple[int, ...], sizes: tuple[int, ...], starts: Sequence[Any], dims: Sequence[Any]
) -> tuple[list[int], list[Any]]:
    """Return the indexed axes, and for each lane and element the index along them (lane number first)."""
    partial = [d for d, (n, m) in enumerate(zip(shape, sizes)) if m != n]
    common = (size, *[sizes[d] for d in partial])
    indices = [iota(common, 0)]
    for place, d in enumerate(partial):
        start = convert(batched_first(size, starts[d], dims[d]), INT64)
        start = min_p.bind(max_p.bind(start, np.int64(0)), np.int64(shape[d] - sizes[d]))
        start = broadcast_in_dim_p.bind(start, shape=common, broadcast_dimensions=(0,))
        indices.append(add_p.bind(start, iota(common, place + 1)))
    return partial, indices


# --- dynamic_slice ------------------------------------------------------------------------------------------


def _dynamic_slice_abstract(x: Aval, *starts: Aval, slice_sizes: tuple[int, ...]) -> Aval:
    _check("dynamic_slice", x, starts, slice_sizes)
    return Aval(slice_sizes, x.dtype)


def _dynamic_slice_transpose(
    ct: Value, x: Linear, *starts: Value, slice_sizes: tuple[int, ...]
) -> list[Value | None]:
    back = dynamic_update_slice_p.bind(zeros(x.aval), ct, *starts)
    return [back, *[None] * len(starts)]


def _dynamic_slice_accumulate(
    ct: Value, totals: Sequence[Tangent], x: Linear, *starts: Value, slice_sizes: tuple[int, ...]
) -> list[Any]:
    here = dynamic_slice_p.bind(totals[0], *starts, slice_sizes=slice_sizes)
    total = dynamic_update_slice_p.bind(totals[0], add_p.bind(here, ct), *starts)
    return [total, *[None] * len(starts)]


def _dynamic_slice_batch(
    size: int, args: Sequence[Any], dims: Sequence[int | None], *, slice_sizes: tuple[int, ...]
) -> tuple[Any, int]:
    x, *starts = args
    if not _is_batched_start(dims[1:]):
        x = batched_first(size, x, dims[0])
        return dynamic_slice_p.bind(x, 0, *starts, slice_sizes=(size, *slice_sizes)), 0
    shape = shape_of(x)
    if dims[0] is not None:
        x = batched_first(size, x, dims[0])
        shape = shape_of(x)[1:]
    partial, indices = _lane_indices(size, shape, slice_sizes, starts, dims[1:])
    if dims[0] is not None:
        axes = (0, *[d + 1 for d in partial])
    else:
        axes, indices = tuple(partial), indices[1:]
        if not partial:
            return batched_first(size, x, None), 0
    out = gather_p.bind(x, *indices, axes=axes, mode="promise_in_bounds")
    whole = [d for d in range(len(shape)) if d not in partial]
    order = (0, *[1 + (partial + whole).index(d) for d in range(len(shape))])
    return transpose_p.bind(out, permutation=order), 0


def _dynamic_slice_kernel(
    k: IndexEmitter, index: Index, x: Any, *starts: Any, out: Aval, slice_sizes: tuple[int, ...]
) -> Any:
    extents = zip(starts, x.aval.shape, slice_sizes)
    return x[[i if n == m else i + _kernel_start(k, s[()], n, m) for i, (s, n, m) in zip(index, extents)]]


def _dynamic_slice_simplify(rw: Rewriter, eqn: Eqn) -> Eqn | None:
    """A slice, if the starts are known."""
    x, *starts = eqn.invars
    values = [s.value for s in starts if isinstance(s, Literal)]
    if len(values) < len(starts):
        return None
    places = _clamped(values, x.aval.shape, eqn.params["slice_sizes"])
    params = {
        "start_indices": tuple([p.start for p in places]),
        "limit_indices": tuple([p.stop for p in places]),
        "strides": (1,) * len(places),
    }
    return eqn.replace(primitive=slice_p, invars=[x], params=params)


def _dynamic_slice_guard(
    categories: Sequence[str], args: Sequence[Value], params: Params
) -> tuple[list[Any], dict[str, Any]]:
    x, *starts = args
    return _guard_starts("dynamic_slice", categories, shape_of(x), params["slice_sizes"], starts), params


dynamic_slice_p: Primitive = Primitive(
    "dynamic_slice",
    _dynamic_slice_abstract,
    lambda x, *starts, slice_sizes: x[_clamped(starts, x.shape, slice_sizes)],
    jvp=linear_jvp(lambda: dynamic_slice_p),
    linear=True,
    transpose=_dynamic_slice_transpose,
    accumulate=_dynamic_slice_accumulate,
    simplify=_dynamic_slice_simplify,
    batch=_dynamic_slice_batch,
    guard=_dynamic_slice_guard,
    kernel=Indexed(_dynamic_slice_kernel),
)


# --- dynamic_update_slice -----------------------------------------------------------------------------------


def _dynamic_update_slice_abstract(x: Aval, update: Aval, *starts: Aval) -> Aval:
    _check("dynamic_update_slice", x, starts, update.shape)
    if x.dtype != update.dtype:
        raise DtypeError(
            f"dynamic_update_slice: dtypes {x.dtype} and {update.dtype} differ; convert the update"
        )
    return x.strong()


def _dynamic_update_slice_impl(x: Value, update: Value, *starts: Value) -> np.ndarray:
    out = np.array(x, order="C")
    out[_clamped(starts, out.shape, np.shape(update))] = update
    return out


def _dynamic_update_slice_transpose(ct: Value, x: Any, update: Any, *starts: Any) -> list[Value | None]:
    cts: list[Tangent] = [None] * (2 + len(starts))
    shape = update.aval.shape if type(update) is Linear else shape_of(update)
    if type(update) is Linear:  # read first, so that the zeros can overwrite the cotangent in place
        cts[1] = dynamic_slice_p.bind(ct, *starts, slice_sizes=shape)
    if type(x) is Linear:
        cts[0] = dynamic_update_slice_p.bind(ct, zeros(Aval(shape, dtype_of(ct))), *starts)
    return cts


def _dynamic_update_slice_rewind(eqn: Eqn, operand: int, result: int, after: Atom) -> Back | None:
    """The way back: put the elements back."""
    if operand:
        return None
    x, update, *starts = eqn.invars
    params = {"slice_sizes": update.aval.shape}
    log = new_equation(dynamic_slice_p, [x, *starts], params, eqn.source)
    back = new_equation(dynamic_update_slice_p, [after, log.outvars[0], *starts], {}, eqn.source)
    return Back([log, eqn], variables([log.outvars[0], *starts]), [back], back.outvars[0])


def _dynamic_update_slice_batch(
    size: int, args: Sequence[Any], dims: Sequence[int | None]
) -> tuple[Any, int]:
    x = batched_first(size, args[0], dims[0])
    update = batched_first(size, args[1], dims[1])
    starts = args[2:]
    if not _is_batched_start(dims[2:]):
        return dynamic_update_slice_p.bind(x, update, 0, *starts), 0
    shape, sizes = shape_of(x)[1:], shape_of(update)[1:]
    partial, indices = _lane_indices(size, shape, sizes, starts, dims[2:])
    whole = [d for d in range(len(shape)) if d not in partial]
    update = transpose_p.bind(update, permutation=(0, *[d + 1 for d in partial + whole]))
    axes = (0, *[d + 1 for d in partial])
    return scatter_p.bind(x, update, *indices, axes=axes, mode="promise_in_bounds", unique_indices=True), 0


def _dynamic_update_slice_kernel(k: BlockEmitter, operands: Any, results: Sequence[Buffer]) -> None:
    x, update, *starts = operands
    out = results[0]
    begin = [_kernel_start(k, k.load(s, ()), n, m) for s, n, m in zip(starts, x.shape, update.shape)]
    if 2 * prod(update.shape) >= prod(x.shape) and not k.is_same(out, x):
        _copy_around(k, out, x, update, begin, [])
        return
    k.copy(out, x)
    with loops(k, update.shape) as index:
        k.store(out, [i + b for i, b in zip(index, begin)], k.load(update, index))


def _copy_around(
    k: BlockEmitter, out: Buffer, x: Any, update: Any, begin: Sequence[Any], index: list[Any]
) -> None:
    """Write the update, and copy what it leaves of the array, row by row."""
    axis = len(index)
    if axis == len(x.shape):
        place = [i + b for i, b in zip(index, begin)]
        k.store(out, place, k.load(update, index))
        return
    first, n, size = begin[axis], x.shape[axis], update.shape[axis]
    before = [i + b for i, b in zip(index, begin)]

    def copy(start: Any, stop: Any) -> None:
        with k.loop(stop, start) as i, loops(k, x.shape[axis + 1 :]) as rest:
            place = [*before, i, *rest]
            k.store(out, place, k.load(x, place))

    if size < n:
        copy(0, first)
    with k.loop(size) as i:
        _copy_around(k, out, x, update, begin, [*index, i])
    if size < n:
        copy(first + size, n)


def _written(x: Any, update: Any, *starts: Any) -> tuple[Along, ...]:
    """The axes of the update along those of the array, where the start is known."""
    along: list[Along] = []
    for d, (n, m, start) in enumerate(zip(x.aval.shape, update.aval.shape, starts)):
        if n != m and not isinstance(start, Literal):
            along.append(None)
            continue
        first = 0 if n == m else min(max(int(start.value), 0), n - m)
        along.append(Shifted(d, first) if first else d)
    return tuple(along)


def _dynamic_update_slice_guard(
    categories: Sequence[str], args: Sequence[Value], params: Params
) -> tuple[list[Any], dict[str, Any]]:
    x, update, *starts = args
    return _guard_starts("dynamic_update_slice", categories, shape_of(x), shape_of(update), starts), params


dynamic_update_slice_p: Primitive = Primitive(
    "dynamic_update_slice",
    _dynamic_update_slice_abstract,
    _dynamic_update_slice_impl,
    jvp=jointly_linear_jvp(lambda: dynamic_update_slice_p, 2),
    rewind=_dynamic_update_slice_rewind,
    taylor=of_jointly_linear,
    transpose=_dynamic_update_slice_transpose,
    batch=_dynamic_update_slice_batch,
    guard=_dynamic_update_slice_guard,
    kernel=Block(_dynamic_update_slice_kernel, reuse=0, streamed_from=1, written=_written, ascending=True),
    moves_data=True,
)
