"""Collectives: operations that combine the examples of a named batch axis, or the ranks along axes of a mesh.

Of a batch axis, only the batch rules compute. Under the ``vmap`` that names the axis, `psum` is a sum along the batch
axis, `all_gather` the batched value itself, and so on; any other ``vmap`` passes them through. So a compiled program
contains no such collectives. Of a mesh (`axis_name` is a `MeshAxes`), they are host calls, on the buffers of kernels.

The names and sizes are checked where users call ``functrans.lax.psum`` and the others; the equations hold what their
types depend on. All operate along axis 0 of an example, where they refer to one of its axes. With `groups`, which
partition the examples, each group is a separate axis.

The transposes differ. The examples of a batch are one program's, whose results are summed: psum's transpose is psum.
The ranks of a mesh have a program each; what is the same on all of them has one cotangent. Pairs of transposes::

    psum                 differs -> same       pvary           same -> differs
    all_gather_invariant differs -> same       own_block       same -> differs
    all_gather           differs -> differs    psum_scatter    differs -> differs
    ppermute             differs -> differs    its inverse     differs -> differs
    all_to_all           differs -> differs    itself          differs -> differs
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ...core import INT64, Aval, CallRules, Effect, Jaxpr, Linear, Primitive, Reshape, Zero, aval_of
from ...core.named_axes import MeshAxes
from ...core.named_axes import axis_name as name_of_axis
from ...core.values import ArrayLike, AxisName, Param, Params, Tangent, Value
from ...errors import UnboundAxisError
from ...passes.rewriter import identity
from ...primitives.elementwise.arithmetic import convert, div_p, eq_p, mul_p, select_p
from ...primitives.indexing.gather_scatter import gather_p
from ...primitives.reductions.reduce import reduce_max_p, reduce_min_p
from ...primitives.structure.linear import (
    batched_first,
    linear_jvp,
    move_axis,
    reduce_sum_p,
    reshape_p,
    shape_of,
    transpose_p,
)
from ...primitives.structure.shape import iota, slice_p
from ...transforms.batch import batch
from ...transforms.stage import stage
from ..callbacks.callback import Replay, made_before

Groups = tuple[tuple[int, ...], ...] | None
#: ``front(x, **params) -> (out, batched)``: the result for a value with the examples along axis 0.
Front = Callable[..., tuple[Any, bool]]
_INT32 = np.dtype(np.int32)


#: Carries out a collective: ``call(axes, send, recv, **params)``.
Call = Callable[..., None]


def _unbound(*args: Value, axis_name: Hashable, **params: Param) -> Any:
    raise UnboundAxisError(f"no vmap binds the axis name {axis_name!r} where the program runs")


def _of_mesh(call: Call, abstract: Callable[..., Aval]) -> dict[str, Any]:
    """The slots of a collective that concern meshes."""

    def impl(x: Value, *, axis_name: AxisName, **params: Param) -> Any:
        if type(axis_name) is not MeshAxes:
            _unbound(axis_name=axis_name)
        log = made_before.get()
        if type(log) is Replay and log:  # ranks do not wait for each other again while an error is explained
            return log.popleft()[0]
        send = np.asarray(x, order="C")
        aval = abstract(aval_of(send), axis_name=axis_name, **params)
        recv = np.empty(aval.shape, aval.dtype)
        call(axis_name, send, recv, **params)
        return recv

    def into(arrays: Sequence[Any], outs: Sequence[Value], *, axis_name: AxisName, **params: Param) -> None:
        call(axis_name, arrays[0], outs[0], **params)

    return {"abstract": abstract, "impl": impl, "into": into, "effects": _effects, "vary": _differs}


def _effects(*, axis_name: AxisName, **params: Param) -> Effect:
    return Effect.COLLECTIVE if type(axis_name) is MeshAxes else Effect.NONE


def axes_of(params: Params) -> frozenset[str]:
    """The axes of a mesh that a collective combines; none for those of a ``vmap``."""
    axes = params.get("axis_name")
    return frozenset(axes.names) if type(axes) is MeshAxes else frozenset()


def _differs(axes: Sequence[frozenset[str]], params: Params) -> tuple[Any, dict[str, Any]]:
    """The operands must differ over the axes."""
    return [a | axes_of(params) for a in axes], params


def _more(axes: frozenset[str], params: Params) -> frozenset[str]:
    return axes | axes_of(params)


def _less(axes: frozenset[str], params: Params) -> frozenset[str]:
    return axes - axes_of(params)


def _same_shape(x: Aval, **params: Param) -> Aval:
    return x.strong()


def _first_row(x: Aval, **params: Param) -> Aval:
    return x.strong().with_shape(x.shape[1:])


def _rows_of(x: Aval, *, number: int, **params: Param) -> Aval:
    return x.strong().with_shape((number, *x.shape))


def _batch_rule(
    prim: Callable[[], Primitive], front: Front | None = None, shared: Callable[[Any, int], Any] | None = None
) -> Callable[..., tuple[Any, int | None]]:
    """Batching: the work itself along the axis of this name, and a pass along any other.

    `shared`, if any, gives the result for a value that all examples share, from it and the number of examples.
    """

    def rule(
        size: int, args: Sequence[Value], dims: Sequence[int | None], *, axis_name: Hashable, **params: Param
    ) -> tuple[Any, int | None]:
        (x,), (d,) = args, dims
        if name_of_axis(size) != axis_name:
            if d is None:
                return prim().bind(x, axis_name=axis_name, **params), None
            last = move_axis(x, d, len(shape_of(x)) - 1)
            out = prim().bind(last, axis_name=axis_name, **params)
            return out, len(shape_of(out)) - 1
        assert front is not None
        groups = params.pop("groups", None)
        if d is None and shared is not None:
            return shared(x, int(size) if groups is None else len(groups[0])), None
        x = batched_first(int(size), x, d)
        out, batched = front(x, **params) if groups is None else _in_groups(front, x, groups, params)
        return out, 0 if batched else None

    return rule


def _in_groups(
    front: Front, x: Value, groups: tuple[tuple[int, ...], ...], params: Params
) -> tuple[Any, bool]:
    """Each group of examples as a separate axis."""
    count, each = len(groups), len(groups[0])
    order = np.array(groups, INT64).ravel()
    rows = _rows(x, order)
    grouped = reshape_p.bind(rows, shape=(count, each, *shape_of(rows)[1:]))

    def one(group: ArrayLike) -> list[Any]:
        out, batched = front(group, **params)
        return [batched_first(each, out, 0 if batched else None)]

    (out,), (d,) = batch(one, count, [grouped], [0])
    out = batched_first(count, out, d)
    flat = reshape_p.bind(out, shape=(count * each, *shape_of(out)[2:]))
    return _rows(flat, np.argsort(order)), True


def _rows(x: Value, order: np.ndarray) -> Any:
    return gather_p.bind(x, order, axes=(0,), mode="clip")


# --- sums and extremes --------------------------------------------------------------------------------------


def _times(x: Value, number: int) -> Any:
    return mul_p.bind(x, aval_of(x).dtype.type(number))


def _reduced(op: str) -> Call:
    def call(axes: MeshAxes, send: np.ndarray, recv: np.ndarray, **params: Param) -> None:
        axes.communicator.all_reduce(send, recv, op)

    return call


def _sum_transpose(ct: Value, x: Linear, *, axis_name: AxisName, groups: Groups) -> list[Value | None]:
    if type(axis_name) is MeshAxes:
        return [pvary_p.bind(ct, axis_name=axis_name)]
    return [psum_p.bind(ct, axis_name=axis_name, groups=groups)]


psum_p: Primitive = Primitive(
    "psum",
    **_of_mesh(_reduced("sum"), _same_shape),
    varies=_less,
    jvp=linear_jvp(lambda: psum_p),
    linear=True,
    transpose=_sum_transpose,
    batch=_batch_rule(lambda: psum_p, lambda x: (reduce_sum_p.bind(x, axes=(0,)), False), _times),
    each_lane=True,
)


def _over_missing(axes: Sequence[frozenset[str]], params: Params) -> tuple[Any, dict[str, Any]]:
    """Where a program is evaluated on values that differ already, its cotangents must not be summed."""
    named = params["axis_name"]
    missing = tuple([name for name in named.names if name not in axes[0]])
    return axes, {"axis_name": MeshAxes(named.mesh, missing)}


def _pvary_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, axis_name: MeshAxes
) -> tuple[Any, int | None]:
    return pvary_p.bind(*args, axis_name=axis_name), dims[0]


#: The operand, as a value that may differ between ranks. What differs has a cotangent on each rank; that of the operand
#: is their sum.
pvary_p: Primitive = Primitive(
    "pvary",
    lambda x, *, axis_name: x,
    lambda x, *, axis_name: x,
    vary=_over_missing,
    varies=_more,
    jvp=linear_jvp(lambda: pvary_p),
    linear=True,
    transpose=lambda ct, x, *, axis_name: [
        psum_p.bind(ct, axis_name=axis_name, groups=None) if axis_name.names else ct
    ],
    batch=_pvary_batch,
    kernel=Reshape(),
    simplify=identity,
)


def _unvary_transpose(ct: Value, x: Linear, *, axis_name: MeshAxes) -> list[Value | None]:
    return [mul_p.bind(pvary_p.bind(ct, axis_name=axis_name), x.aval.dtype.type(1 / axis_name.size))]


def _unvary_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, axis_name: MeshAxes
) -> tuple[Any, int | None]:
    return unvary_p.bind(*args, axis_name=axis_name), dims[0]


#: The operand, of which the user says that all ranks have the same.
unvary_p: Primitive = Primitive(
    "unvary",
    lambda x, *, axis_name: x,
    lambda x, *, axis_name: x,
    jvp=linear_jvp(lambda: unvary_p),
    linear=True,
    transpose=_unvary_transpose,
    batch=_unvary_batch,
    kernel=Reshape(),
    simplify=identity,
)


def _extreme(name: str, reduce: Primitive) -> Primitive:
    def jvp(primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param) -> tuple[Any, Any]:
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
        **_of_mesh(_reduced(name[1:]), _same_shape),
        varies=_less,
        jvp=jvp,
        batch=_batch_rule(lambda: prim, lambda x: (reduce.bind(x, axes=(0,)), False), lambda x, _: x),
        each_lane=True,
    )
    return prim


pmax_p = _extreme("pmax", reduce_max_p)
pmin_p = _extreme("pmin", reduce_min_p)

# --- exchanges ----------------------------------------------------------------------------------------------


def _gathered(axes: MeshAxes, send: np.ndarray, recv: np.ndarray, **params: Param) -> None:
    axes.communicator.all_gather(send, recv)


def _gather_transpose(
    ct: Value, x: Linear, *, axis_name: AxisName, groups: Groups, number: int
) -> list[Value | None]:
    if type(axis_name) is MeshAxes:
        return [psum_scatter_p.bind(ct, axis_name=axis_name)]
    return [reduce_sum_p.bind(all_to_all_p.bind(ct, axis_name=axis_name, groups=groups), axes=(0,))]


#: The values of all examples along a new axis 0, for every example.
all_gather_p: Primitive = Primitive(
    "all_gather",
    **_of_mesh(_gathered, _rows_of),
    varies=_more,
    jvp=linear_jvp(lambda: all_gather_p),
    linear=True,
    transpose=_gather_transpose,
    batch=_batch_rule(lambda: all_gather_p, lambda x, number: (x, False)),
    each_lane=True,
)


def _scattered(axes: MeshAxes, send: np.ndarray, recv: np.ndarray) -> None:
    axes.communicator.reduce_scatter(send, recv)


#: Of a mesh only: rank `k` gets element `k` along axis 0 of the sum. Of a ``vmap`` it is made of other operations.
psum_scatter_p: Primitive = Primitive(
    "psum_scatter",
    **_of_mesh(_scattered, _first_row),
    varies=_more,
    jvp=linear_jvp(lambda: psum_scatter_p),
    linear=True,
    transpose=lambda ct, x, *, axis_name: [
        all_gather_p.bind(ct, axis_name=axis_name, groups=None, number=axis_name.size)
    ],
    batch=_batch_rule(lambda: psum_scatter_p),
)

#: Of a mesh only: as `all_gather`, of which all ranks have the same result, and so one cotangent.
all_gather_invariant_p: Primitive = Primitive(
    "all_gather_invariant",
    **_of_mesh(_gathered, _rows_of),
    varies=_less,
    jvp=linear_jvp(lambda: all_gather_invariant_p),
    linear=True,
    transpose=lambda ct, x, *, axis_name, number: [own_block_p.bind(ct, axis_name=axis_name)],
    batch=_batch_rule(lambda: all_gather_invariant_p),
)


def _own_block(*avals: Aval, axis_name: MeshAxes) -> Jaxpr:
    (aval,) = avals
    start = (axis_name.index, *(0,) * (aval.ndim - 1))
    limit = (axis_name.index + 1, *aval.shape[1:])

    def block(x: Value) -> list[Any]:
        row = slice_p.bind(x, start_indices=start, limit_indices=limit, strides=(1,) * aval.ndim)
        return [reshape_p.bind(row, shape=aval.shape[1:])]

    return stage(block, avals, "own_block")


#: Of a mesh only: element `k` along axis 0 of a value that all ranks have, on rank `k`.
own_block_p: Primitive = Primitive(
    "own_block",
    _first_row,
    lambda x, *, axis_name: x[axis_name.index],
    vary=lambda axes, params: (axes, params),
    varies=_more,
    jvp=linear_jvp(lambda: own_block_p),
    linear=True,
    transpose=lambda ct, x, *, axis_name: [
        all_gather_invariant_p.bind(ct, axis_name=axis_name, number=axis_name.size)
    ],
    batch=_batch_rule(lambda: own_block_p),
    call=CallRules(opaque=True, expand=_own_block),
    moves_data=True,
)


def _exchange(x: Value) -> tuple[Any, bool]:
    order = (1, 0, *range(2, len(shape_of(x))))
    return transpose_p.bind(x, permutation=order), True


def _exchanged(axes: MeshAxes, send: np.ndarray, recv: np.ndarray, **params: Param) -> None:
    axes.communicator.all_to_all(send, recv)


#: Element `k` along axis 0 of example `i` becomes element `i` of example `k`.
all_to_all_p: Primitive = Primitive(
    "all_to_all",
    **_of_mesh(_exchanged, _same_shape),
    varies=_more,
    jvp=linear_jvp(lambda: all_to_all_p),
    linear=True,
    transpose=lambda ct, x, **params: [all_to_all_p.bind(ct, **params)],
    batch=_batch_rule(lambda: all_to_all_p, _exchange),
    each_lane=True,
)


def _permute(x: Value, perm: tuple[tuple[int, int], ...]) -> tuple[Any, bool]:
    size = shape_of(x)[0]
    sources = np.full(size, size, INT64)  # out of bounds: zero
    for source, target in perm:
        sources[target] = source
    if (sources < size).all():
        return _rows(x, sources), True
    return gather_p.bind(x, sources, axes=(0,), mode="fill", fill_value=0), True


def _permuted(
    axes: MeshAxes, send: np.ndarray, recv: np.ndarray, *, perm: tuple[tuple[int, int], ...]
) -> None:
    axes.communicator.permute(send, recv, perm)


#: The value of example `source` becomes that of `target`, for each pair; zero for elements without a pair.
ppermute_p: Primitive = Primitive(
    "ppermute",
    **_of_mesh(_permuted, _same_shape),
    varies=_more,
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
