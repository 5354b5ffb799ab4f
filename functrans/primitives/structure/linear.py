"""The linear operations that every rule rests on: reshape, transpose, broadcast_in_dim, reduce_sum, add.

Rules of all families sum over broadcast axes, move batch axes and add contributions. The records and helpers for that
are here, below the families.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core import is_inexact
from ...core.aval import Aval, Zero, aval_of
from ...core.dtypes import KEY, refused_keys
from ...core.ir import Atom, Eqn, Var
from ...core.kernel import Block, BlockEmitter, Indexed, Pointwise, Reduction, Reshape, ScalarEmitter
from ...core.primitive import Linear, Primitive
from ...core.tape import Tape, TapeAval, new_pool
from ...core.trace import current_trace, eval_trace
from ...core.values import ArrayLike, Index, Param, ShapeLike, Tangent, Value
from ...errors import ShapeError
from ...passes.rewriter import Hole, Rewriter, Yields
from ..axes import broadcast_shapes, reduced_shape, same_dtype
from ..series import of_jointly_linear

Rule = Callable[..., Any]


def shape_of(x: ArrayLike) -> tuple[int, ...]:
    """Return the shape of any value that interpreters pass on."""
    return getattr(x, "shape", ())


def dtype_of(x: ArrayLike) -> np.dtype:
    """Return the dtype of any value that interpreters pass on."""
    dtype = getattr(x, "dtype", None)
    return aval_of(x).dtype if dtype is None else dtype


def unbroadcast(ct: Value, aval: Aval) -> Value:
    """Sum `ct` over the axes along which an operand of type `aval` was broadcast."""
    shape = shape_of(ct)
    if shape == aval.shape:
        return ct
    extra = len(shape) - len(aval.shape)
    ones = tuple(i for i, n in enumerate(aval.shape) if n == 1 and shape[extra + i] != 1)
    axes = tuple(range(extra)) + tuple(extra + i for i in ones)
    ct = reduce_sum_p.bind(ct, axes=axes)
    return reshape_p.bind(ct, shape=aval.shape) if ones else ct


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` broadcast to `shape` as NumPy does (trailing axes aligned)."""
    own = shape_of(x)
    if own == shape:
        return x
    axes = tuple(range(len(shape) - len(own), len(shape)))
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=axes)


def zeros(aval: Aval, bind: Callable[..., Any] = Primitive.bind) -> Any:
    """Return zeros of a type as a broadcast scalar, never a large constant in a jaxpr; for tapes, empty ones.

    ``bind(primitive, *operands, **params)`` may be a `JaxprBuilder`'s.
    """
    if isinstance(aval, TapeAval):
        return bind(empty_tape_p, aval=aval)
    if bind is Primitive.bind and current_trace.get() is eval_trace:
        return np.zeros(aval.shape, aval.dtype)
    zero = aval.dtype.type(0) if aval.dtype != KEY else np.zeros((), KEY)
    if not aval.shape:
        return zero
    return bind(broadcast_in_dim_p, zero, shape=aval.shape, broadcast_dimensions=())


def instantiate(x: Any, aval: Aval | None = None) -> Any:
    """Return a tangent or cotangent as a value. A `Zero` becomes zeros; so does None, which needs `aval`."""
    if type(x) is Zero:
        return zeros(x.aval)
    if x is None:
        assert aval is not None
        return zeros(aval)
    return x


def added(s: Any, t: Any) -> Value:
    """Add two tangents or cotangents of one type, each a value or a `Zero`."""
    if type(s) is Zero or type(t) is Zero:
        return t if type(s) is Zero else s
    return add_p.bind(s, t)


def flat(x: Value) -> Value:
    """Return all elements in row-major order, along one axis."""
    shape = shape_of(x)
    return x if len(shape) == 1 else reshape_p.bind(x, shape=(math.prod(shape),))


def move_axis(x: Value, source: int, target: int) -> Value:
    """Move one axis of `x` to another position."""
    if source == target:
        return x
    order = [i for i in range(len(shape_of(x))) if i != source]
    order.insert(target, source)
    return transpose_p.bind(x, permutation=tuple(order))


def batched_first(size: int, x: Value, dim: int | None) -> Value:
    """Return `x` with its batch axis first, broadcast along a new one if it has none."""
    if dim is not None:
        return move_axis(x, dim, 0)
    shape = shape_of(x)
    return broadcast_in_dim_p.bind(
        x, shape=(size, *shape), broadcast_dimensions=tuple(range(1, len(shape) + 1))
    )


def elementwise_batch(
    prim: Primitive, args: Sequence[Any], dims: Sequence[int | None], **params: Param
) -> tuple[Any, int]:
    """Move batch axes to the front and insert unit axes after them, so the other axes stay aligned."""
    ranks = [len(shape_of(x)) - (d is not None) for x, d in zip(args, dims)]
    rank = max(ranks)
    aligned = []
    for x, d, r in zip(args, dims, ranks):
        if d is not None:
            x = move_axis(x, d, 0)
            if r < rank:
                shape = shape_of(x)
                x = reshape_p.bind(x, shape=(shape[0], *(1,) * (rank - r), *shape[1:]))
        aligned.append(x)
    return prim.bind(*aligned, **params), 0


def linear_jvp(prim: Callable[[], Primitive]) -> Rule:
    """Return the jvp of an operation that is linear in its first operand and constant in all others."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Param) -> tuple[Any, Any]:
        ans = prim().bind(*primals, **params)
        t = tangents[0]
        return ans, Zero(ans) if type(t) is Zero else prim().bind(t, *primals[1:], **params)

    return jvp


# --- add ---------------------------------------------------------------------------------------------------------


def _add_abstract(x: Aval, y: Aval) -> Aval:
    dtype = same_dtype("add", (x, y))
    return Aval(broadcast_shapes("add", x.shape, y.shape), dtype, x.weak and y.weak)


def _add_jvp(primals: Sequence[Any], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
    ans = add_p.bind(*primals)
    s, t = tangents
    if type(s) is Zero:
        return ans, t if type(t) is Zero else broadcast_to(t, shape_of(ans))
    if type(t) is Zero:
        return ans, broadcast_to(s, shape_of(ans))
    return ans, add_p.bind(s, t)


def _add_transpose(ct: Any, *args: Any) -> list[Any]:
    return [unbroadcast(ct, a.aval) if type(a) is Linear else None for a in args]


add_p: Primitive = Primitive(
    "add",
    _add_abstract,
    np.add,
    jvp=_add_jvp,
    taylor=of_jointly_linear,
    transpose=_add_transpose,
    batch=lambda size, args, dims: elementwise_batch(add_p, args, dims),
    kernel=Pointwise(lambda k, x, y: x + y if x.dtype.kind != "b" else x | y),
    weak=True,
    # -0.0 is the neutral element of float addition; integers have a single zero.
    simplify=Yields(-0.0, Hole("x")),
    commutes=True,
)


# --- reshape -----------------------------------------------------------------------------------------------------


def _reshape_abstract(x: Aval, *, shape: tuple[int, ...]) -> Aval:
    size = 1
    for n in shape:
        size *= n
    if size != x.size:
        raise ShapeError(
            f"reshape: cannot reshape array of shape {x.shape} ({x.size} elements) into shape {shape} ({size} elements)"
        )
    return x.with_shape(shape) if shape else Aval(shape, x.dtype)


def _reshape_batch(
    size: int, args: Sequence[Any], dims: Sequence[int], *, shape: tuple[int, ...]
) -> tuple[Any, int]:
    return reshape_p.bind(move_axis(args[0], dims[0], 0), shape=(size, *shape)), 0


def _reshape_simplify(rw: Rewriter, eqn: Eqn) -> Atom | Eqn | None:
    x, shape = eqn.invars[0], eqn.outvars[0].aval.shape
    if x.aval.shape == shape:
        return x
    inner = rw.made_by(x, reshape_p)
    if inner is not None:
        return eqn.replace(invars=[inner.invars[0]])
    spread = rw.made_by(x, broadcast_in_dim_p)
    if spread is not None and not spread.invars[0].aval.shape:
        return _broadcast_of(eqn, spread.invars[0], ())
    if not x.aval.shape:
        return _broadcast_of(eqn, x, ())
    return None


def _broadcast_of(eqn: Eqn, x: Atom, axes: tuple[int, ...]) -> Eqn:
    shape = eqn.outvars[0].aval.shape
    params = {"shape": shape, "broadcast_dimensions": axes}
    return eqn.replace(primitive=broadcast_in_dim_p, invars=[x], params=params)


reshape_p: Primitive = Primitive(
    "reshape",
    _reshape_abstract,
    lambda x, *, shape: x.reshape(shape) if isinstance(x, np.ndarray) else np.reshape(x, shape),
    jvp=linear_jvp(lambda: reshape_p),
    linear=True,
    transpose=lambda ct, x, *, shape: [reshape_p.bind(ct, shape=x.aval.shape)],
    batch=_reshape_batch,
    kernel=Reshape(),
    simplify=_reshape_simplify,
)


# --- transpose ---------------------------------------------------------------------------------------------------


def _transpose_abstract(x: Aval, *, permutation: tuple[int, ...]) -> Aval:
    if sorted(permutation) != list(range(x.ndim)):
        raise ShapeError(
            f"transpose: {permutation} is not a permutation of the axes of an array of shape {x.shape}"
        )
    return Aval(tuple([x.shape[i] for i in permutation]), x.dtype)


def _transpose_batch(
    size: int, args: Sequence[Any], dims: Sequence[int], *, permutation: tuple[int, ...]
) -> tuple[Any, int]:
    d = dims[0]
    order = tuple(i + (i >= d) for i in permutation)
    return transpose_p.bind(args[0], permutation=(d, *order)), 0


@lru_cache(maxsize=1024)
def _inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def _transpose_simplify(rw: Rewriter, eqn: Eqn) -> Atom | Eqn | None:
    x, order = eqn.invars[0], eqn.params["permutation"]
    if order == tuple(range(len(order))):
        return x
    long = [d for d in order if x.aval.shape[d] != 1]
    if long == sorted(long):  # only unit axes move
        return eqn.replace(primitive=reshape_p, invars=[x], params={"shape": eqn.outvars[0].aval.shape})
    inner = rw.made_by(x, transpose_p)
    if inner is not None:
        first = inner.params["permutation"]
        order = tuple(first[d] for d in order)
        return eqn.replace(invars=inner.invars, params={"permutation": order})
    spread = rw.made_by(x, broadcast_in_dim_p)
    if spread is not None:
        place = {d: i for i, d in enumerate(order)}
        return _broadcast_of(
            eqn, spread.invars[0], tuple(place[d] for d in spread.params["broadcast_dimensions"])
        )
    made = rw.producer.get(x) if isinstance(x, Var) else None
    return None if made is None or made.primitive.transposed is None else made.primitive.transposed(eqn, made)


transpose_p: Primitive = Primitive(
    "transpose",
    _transpose_abstract,
    lambda x, *, permutation: (x if isinstance(x, np.ndarray) else np.asarray(x)).transpose(permutation),
    jvp=linear_jvp(lambda: transpose_p),
    linear=True,
    transpose=lambda ct, x, *, permutation: [transpose_p.bind(ct, permutation=_inverse(permutation))],
    batch=_transpose_batch,
    kernel=Indexed(lambda k, index, x, *, out, permutation: x[[index[i] for i in _inverse(permutation)]]),
    simplify=_transpose_simplify,
)


# --- broadcast_in_dim --------------------------------------------------------------------------------------------


def _broadcast_abstract(x: Aval, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> Aval:
    one_each = len(broadcast_dimensions) == x.ndim == len({*broadcast_dimensions})
    if not one_each or not all(0 <= d < len(shape) for d in broadcast_dimensions):
        raise ShapeError(
            f"broadcast_in_dim: broadcast_dimensions must name a different axis of shape {shape} for each of the "
            f"{x.ndim} axes of the array, got {broadcast_dimensions}"
        )
    if not all(n in (1, shape[d]) for n, d in zip(x.shape, broadcast_dimensions)):
        raise ShapeError(f"broadcast: cannot broadcast array of shape {x.shape} to shape {shape}")
    return Aval(shape, x.dtype)


def _broadcast_impl(x: Value, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> np.ndarray:
    x = np.asarray(x)
    if x.flags.c_contiguous and x.size:
        # Like np.broadcast_to, in half the time.
        strides = [0] * len(shape)
        for n, step, d in zip(x.shape, x.strides, broadcast_dimensions):
            if n != 1:
                strides[d] = step
        out: np.ndarray = np.ndarray(shape, x.dtype, x, 0, strides)
        out.flags.writeable = False
        return out
    spread = [1] * len(shape)
    for n, d in zip(x.shape, broadcast_dimensions):
        spread[d] = n
    return np.broadcast_to(x.reshape(spread), shape)


def _broadcast_transpose(
    ct: Value, x: Linear, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> list[Any]:
    own = dict(zip(broadcast_dimensions, x.aval.shape))
    axes = tuple(d for d, n in enumerate(shape) if d not in own or own[d] != n)
    ct = reduce_sum_p.bind(ct, axes=axes) if axes else ct
    return [ct if shape_of(ct) == x.aval.shape else reshape_p.bind(ct, shape=x.aval.shape)]


def _broadcast_batch(
    size: int,
    args: Sequence[Any],
    dims: Sequence[int],
    *,
    shape: tuple[int, ...],
    broadcast_dimensions: tuple[int, ...],
) -> tuple[Any, int]:
    x = move_axis(args[0], dims[0], 0)
    axes = (0, *[d + 1 for d in broadcast_dimensions])
    return broadcast_in_dim_p.bind(x, shape=(size, *shape), broadcast_dimensions=axes), 0


def _broadcast_kernel(
    k: ScalarEmitter, index: Index, x: Any, *, out: Aval, shape: ShapeLike, broadcast_dimensions: Any
) -> Any:
    return x[[0 if n == 1 else index[d] for n, d in zip(x.aval.shape, broadcast_dimensions)]]


def _broadcast_simplify(rw: Rewriter, eqn: Eqn) -> Atom | Eqn | None:
    x, axes = eqn.invars[0], eqn.params["broadcast_dimensions"]
    if x.aval.shape == eqn.outvars[0].aval.shape and axes == tuple(range(x.aval.ndim)):
        return x
    inner = rw.made_by(x, broadcast_in_dim_p)
    if inner is None:
        return None
    return _broadcast_of(eqn, inner.invars[0], tuple(axes[d] for d in inner.params["broadcast_dimensions"]))


broadcast_in_dim_p: Primitive = Primitive(
    "broadcast_in_dim",
    _broadcast_abstract,
    _broadcast_impl,
    jvp=linear_jvp(lambda: broadcast_in_dim_p),
    linear=True,
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
    kernel=Indexed(_broadcast_kernel),
    simplify=_broadcast_simplify,
    repeats=True,
)


# --- reduce_sum --------------------------------------------------------------------------------------------------


def _reduce_sum_transpose(ct: Value, x: Linear, *, axes: tuple[int, ...]) -> list[Any]:
    remaining = tuple(d for d in range(x.aval.ndim) if d not in axes)
    return [broadcast_in_dim_p.bind(ct, shape=x.aval.shape, broadcast_dimensions=remaining)]


def reduction_batch(prim: Callable[[], Primitive]) -> Rule:
    """Batching of a reduction along ``axes``: shift them past the batch axis."""

    def batch(
        size: int, args: Sequence[Any], dims: Sequence[int], *, axes: tuple[int, ...], **params: Param
    ) -> Any:
        x = move_axis(args[0], dims[0], 0)
        return prim().bind(x, axes=tuple(d + 1 for d in axes), **params), 0

    return batch


def reduction_simplify(rw: Rewriter, eqn: Eqn) -> Atom | Eqn | None:
    """A reduction of a transpose reduces the other axes of the operand, if the kept ones stay in order.

    One along axes of extent 1 is a reshape.
    """
    x, out = eqn.invars[0], eqn.outvars[0]
    if x.aval.size == out.aval.size > 0 and x.aval.dtype == out.aval.dtype:
        return eqn.replace(primitive=reshape_p, invars=[x], params={"shape": out.aval.shape})
    inner = rw.made_by(eqn.invars[0], transpose_p)
    if inner is None or not eqn.params["axes"]:
        return None
    order, axes = inner.params["permutation"], eqn.params["axes"]
    remaining = [order[d] for d in range(len(order)) if d not in axes]
    if remaining != sorted(remaining):
        return None
    params = {**eqn.params, "axes": tuple(sorted(order[d] for d in axes))}
    return eqn.replace(invars=inner.invars, params=params)


def _sum_simplify(rw: Rewriter, eqn: Eqn) -> Atom | Eqn | None:
    """The sum of ``x + x``, the derivative of a square, is twice the sum of `x`: doubling does not round."""
    inner = rw.made_by(eqn.invars[0], add_p)
    if inner is None or inner.invars[0] is not inner.invars[1] or not is_inexact(eqn.outvars[0].aval.dtype):
        return reduction_simplify(rw, eqn)
    once = rw.new(reduce_sum_p, inner.invars[0], **eqn.params)
    return eqn.replace(primitive=add_p, invars=[once, once], params={})


def _reduce_sum_abstract(x: Aval, *, axes: tuple[int, ...]) -> Aval:
    if x.dtype == KEY:
        raise refused_keys("reduce_sum")
    return Aval(reduced_shape("reduce_sum", x, axes), x.dtype)


reduce_sum_p: Primitive = Primitive(
    "reduce_sum",
    _reduce_sum_abstract,
    lambda x, *, axes: np.add.reduce(x, axis=axes, dtype=x.dtype),
    in_float32=True,
    jvp=linear_jvp(lambda: reduce_sum_p),
    linear=True,
    transpose=_reduce_sum_transpose,
    batch=reduction_batch(lambda: reduce_sum_p),
    kernel=Reduction("sum"),
    simplify=_sum_simplify,
)


# --- empty_tape --------------------------------------------------------------------------------------------------


def _empty_tape_impl(*, aval: TapeAval) -> Tape:
    pools = tuple([new_pool() for _ in range(aval.levels)])
    return Tape(np.zeros(aval.shape, np.int64), pools, aval)


def _empty_tape_kernel(
    k: BlockEmitter, operands: Sequence[Any], results: Sequence[Any], *, aval: TapeAval
) -> None:
    zero = k.const(0, aval.dtype)

    def fill(index: list[Any]) -> None:
        if len(index) == len(aval.shape):
            k.store(results[0].spans, index, zero)
        else:
            with k.loop(aval.shape[len(index)]) as i:
                fill([*index, i])

    fill([])


#: Tapes without records: the zero of a tape, what a branch gives where another one gives a tape.
empty_tape_p = Primitive(
    "empty_tape", lambda *, aval: aval, _empty_tape_impl, kernel=Block(_empty_tape_kernel)
)
