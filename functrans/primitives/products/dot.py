"""dot_general: products of arrays that contract some axes and batch over others.

``dimension_numbers = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))``. The result has the batch axes, then the
free axes of the left operand, then those of the right one. The kernel is in `dot_kernel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ...core import (
    KEY,
    Atom,
    Aval,
    Block,
    Eqn,
    Linear,
    Literal,
    Primitive,
    ShapeError,
    Workload,
    Zero,
    dtype_kind,
    refused_keys,
)
from ...core.values import ArrayLike, Param, Tangent, Value
from ...passes.rewriter import Rewriter
from ...runtime.records import NamedTuple
from ..axes import check_axes, same_dtype
from ..families import mul_p, of_product
from ..structure.linear import add_p, broadcast_in_dim_p, reshape_p, shape_of, transpose_p
from .dot_kernel import dot_kernel

Axes = tuple[int, ...]
DimensionNumbers = tuple[tuple[Axes, Axes], tuple[Axes, Axes]]


@lru_cache(maxsize=4096)
def free_axes(ndim: int, contract: Axes, batch: Axes) -> Axes:
    """The axes that are neither contracted nor batch axes."""
    return tuple([d for d in range(ndim) if d not in contract and d not in batch])


def _dot_abstract(x: Aval, y: Aval, *, dimension_numbers: DimensionNumbers) -> Aval:
    dtype = x.dtype if x.dtype is y.dtype else same_dtype("dot_general", (x, y))
    if dtype == KEY:
        raise refused_keys("a matrix product")
    return Aval(_dot_shape(x.shape, y.shape, dimension_numbers), dtype)


@lru_cache(maxsize=4096)
def _dot_shape(x_shape: Axes, y_shape: Axes, dimension_numbers: DimensionNumbers) -> Axes:
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    for own, contract, batch in ((x_shape, x_contract, x_batch), (y_shape, y_contract, y_batch)):
        check_axes("dot_general: dimension_numbers", contract + batch, own)
    for kind, ds, es in (("contracted", x_contract, y_contract), ("batch", x_batch, y_batch)):
        if [x_shape[d] for d in ds] != [y_shape[e] for e in es]:
            raise ShapeError(
                f"dot_general: shapes {x_shape} and {y_shape} differ along the {kind} axes {ds} and {es}; "
                "transpose or reshape one of the operands"
            )
    shape = [x_shape[d] for d in x_batch]
    shape += [x_shape[d] for d in free_axes(len(x_shape), x_contract, x_batch)]
    shape += [y_shape[d] for d in free_axes(len(y_shape), y_contract, y_batch)]
    return tuple(shape)


# --- NumPy --------------------------------------------------------------------------------------------------


class _DotLayout(NamedTuple):
    """How NumPy computes a product: permutations, and the numbers of batch, free and contracted axes.

    `flat`: `np.dot` of the operands, transposed or not, is all that is needed.
    """

    x_order: Axes | None
    y_order: Axes | None
    batch: int
    x_free: int
    y_free: int
    contract: int
    flat: bool


@lru_cache(maxsize=4096)
def _plan(x_ndim: int, y_ndim: int, dimension_numbers: DimensionNumbers) -> _DotLayout:
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    x_free = free_axes(x_ndim, x_contract, x_batch)
    y_free = free_axes(y_ndim, y_contract, y_batch)
    x_order = (*x_batch, *x_free, *x_contract)
    y_order = (*y_batch, *y_contract, *y_free)
    return _DotLayout(
        None if x_order == tuple(range(x_ndim)) else x_order,
        None if y_order == tuple(range(y_ndim)) else y_order,
        len(x_batch),
        len(x_free),
        len(y_free),
        len(x_contract),
        not x_batch and len(x_contract) == 1 and len(x_free) <= 1 and len(y_free) <= 1,
    )


def _dot_impl(x: ArrayLike, y: ArrayLike, *, dimension_numbers: DimensionNumbers) -> Value:
    if x.dtype.kind == "V":  # bfloat16 comes as float32
        raise refused_keys("a matrix product")
    plan = _plan(x.ndim, y.ndim, dimension_numbers)
    if plan.x_order is not None:
        x = x.transpose(plan.x_order)
    if plan.y_order is not None:
        y = y.transpose(plan.y_order)
    if plan.flat:
        return np.dot(x, y)
    batch, x_free, y_free, contract = plan.batch, plan.x_free, plan.y_free, plan.contract
    # Merge or insert axes until each operand has one free and one contracted axis: matmul then calls BLAS without
    # copies.
    left, right = x.shape[: batch + x_free], y.shape[batch + contract :]
    x3 = x if x_free == contract == 1 else _merged(x, batch, x_free)
    y3 = y if y_free == contract == 1 else _merged(y, batch, contract)
    out = np.matmul(x3, y3)
    return out if x_free == y_free == 1 else out.reshape(left + right)


def _merged(a: np.ndarray, batch: int, first: int) -> np.ndarray:
    """Merge the axes after the batch axes into two: the next `first` axes, and the rest."""
    shape = a.shape
    middle, last = shape[batch : batch + first], shape[batch + first :]
    return a.reshape(*shape[:batch], prod(middle), prod(last))


# --- derivatives --------------------------------------------------------------------------------------------


def _dot_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param) -> tuple[Value, Tangent]:
    x, y = primals
    s, t = tangents
    ans = dot_general_p.bind(x, y, **params)
    if type(s) is Zero:
        return ans, Zero(ans) if type(t) is Zero else dot_general_p.bind(x, t, **params)
    left = dot_general_p.bind(s, y, **params)
    if type(t) is Zero:
        return ans, left
    return ans, add_p.bind(left, dot_general_p.bind(x, t, **params))


class _Back(NamedTuple):
    """The product that maps the output's cotangent to an operand's, and a final transposition.

    For the right operand's cotangent, the left operand comes first, so matrix products need no transposition.
    """

    dimension_numbers: DimensionNumbers
    order: Axes | None


@lru_cache(maxsize=4096)
def _back(ndim: int, other_ndim: int, dimension_numbers: DimensionNumbers, operand: int) -> _Back:
    """Return the product that contracts the cotangent with the other operand along the other's free axes."""
    contracts, batches = dimension_numbers
    contract, other_contract = contracts[operand], contracts[1 - operand]
    batch, other_batch = batches[operand], batches[1 - operand]
    free = free_axes(ndim, contract, batch)
    other_free = free_axes(other_ndim, other_contract, other_batch)
    start = len(batch) + (0 if operand else len(free))
    ct_contract = tuple(range(start, start + len(other_free)))
    ct_batch = tuple(range(len(batch)))
    # The product's axes: batch, the operand's free axes, and the contracted axes in the order of the other operand.
    contracted = [contract[i] for i in sorted(range(len(contract)), key=other_contract.__getitem__)]
    if operand:
        dims = ((other_free, ct_contract), (other_batch, ct_batch))
        axes = (*batch, *contracted, *free)
    else:
        dims = ((ct_contract, other_free), (ct_batch, other_batch))
        axes = (*batch, *free, *contracted)
    order = tuple(sorted(range(ndim), key=axes.__getitem__))
    return _Back(dims, None if order == tuple(range(ndim)) else order)


def _dot_transpose(ct: Value, x: Any, y: Any, *, dimension_numbers: DimensionNumbers) -> list[Value | None]:
    cts: list[Tangent] = [None, None]
    for i, (a, other) in enumerate(((x, y), (y, x))):
        if type(a) is Linear:
            back = _back(a.aval.ndim, len(shape_of(other)), dimension_numbers, i)
            pair = (other, ct) if i else (ct, other)
            out = dot_general_p.bind(*pair, dimension_numbers=back.dimension_numbers)
            cts[i] = out if back.order is None else transpose_p.bind(out, permutation=back.order)
    return cts


# --- batching -----------------------------------------------------------------------------------------------


def _shifted(axes: Axes, d: int) -> Axes:
    return tuple([a + (a >= d) for a in axes])


def _dot_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, dimension_numbers: DimensionNumbers
) -> tuple[Value, int]:
    x, y = args
    d, e = dims
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    if d is not None:
        x_contract, x_batch = _shifted(x_contract, d), _shifted(x_batch, d)
    if e is not None:
        y_contract, y_batch = _shifted(y_contract, e), _shifted(y_batch, e)
    if d is not None and e is not None:
        place = 0
        x_batch, y_batch = (d, *x_batch), (e, *y_batch)
    elif d is not None:
        place = len(x_batch) + free_axes(len(shape_of(x)), x_contract, x_batch).index(d)
    else:
        x_free = free_axes(len(shape_of(x)), x_contract, x_batch)
        y_free = free_axes(len(shape_of(y)), y_contract, y_batch)
        place = len(x_batch) + len(x_free) + y_free.index(e)
    dims_new = ((x_contract, y_contract), (x_batch, y_batch))
    return dot_general_p.bind(x, y, dimension_numbers=dims_new), place


def _dot_simplify(rw: Rewriter, eqn: Eqn) -> Eqn | None:
    """Read transposed operands in place, which costs BLAS nothing, and turn outer products into multiplications.

    An operand shared by a whole batch is multiplied once, with the other operand's batch as a free axis.
    """
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    if all(eqn.invars[0].aval.shape[d] == 1 for d in lc) and dtype_kind(eqn.outvars[0].aval.dtype) in "iuf":
        return _outer(rw, eqn)
    x, lc, lb = _untransposed(rw, eqn.invars[0], lc, lb)
    y, rc, rb = _untransposed(rw, eqn.invars[1], rc, rb)
    if x is eqn.invars[0] and y is eqn.invars[1]:
        return _with_shared_operand(rw, eqn)
    params = {**eqn.params, "dimension_numbers": ((lc, rc), (lb, rb))}
    return eqn.replace(invars=[x, y], params=params)


def _outer(rw: Rewriter, eqn: Eqn) -> Eqn:
    """Rewrite a product that sums one term per element as an elementwise one, which fuses with its consumers."""
    (x, y), out = eqn.invars, eqn.outvars[0]
    contracts, batches = eqn.params["dimension_numbers"]
    first = len(batches[0])
    factors = []
    for a, contract, batch in zip((x, y), contracts, batches):
        remaining = [d for d in range(a.aval.ndim) if d not in contract]
        free = [d for d in remaining if d not in batch]
        place = {**{d: i for i, d in enumerate(batch)}, **{d: first + i for i, d in enumerate(free)}}
        first += len(free)
        thin = rw.new(reshape_p, a, shape=tuple([a.aval.shape[d] for d in remaining]))
        dims = tuple([place[d] for d in remaining])
        factors.append(rw.new(broadcast_in_dim_p, thin, shape=out.aval.shape, broadcast_dimensions=dims))
    product = rw.new(mul_p, *factors)
    # A sum starts from zero, so a single product of -0.0 gives 0.0.
    zero = Literal(out.aval.dtype.type(0))
    return eqn.replace(primitive=add_p, invars=[product, zero], params={})


def _with_shared_operand(rw: Rewriter, eqn: Eqn) -> Eqn | None:
    """The product without the batch axes along which one operand is a broadcast; they are free axes of the other."""
    batches = eqn.params["dimension_numbers"][1]
    for i in (0, 1):
        inner = rw.made_by(eqn.invars[i], broadcast_in_dim_p)
        if inner is None:
            continue
        source, axes = inner.invars[0], inner.params["broadcast_dimensions"]
        shape = eqn.invars[i].aval.shape
        unshared = tuple([k for k, d in enumerate(batches[i]) if d in axes])
        added = {d for d in range(len(shape)) if d not in axes}
        whole = source.aval.shape == tuple([shape[d] for d in axes]) and list(axes) == sorted(axes)
        if added and whole and added.issubset(batches[i]):
            return _once(rw, eqn, i, source, axes, unshared)
    return None


def _once(rw: Rewriter, eqn: Eqn, i: int, source: Atom, axes: Axes, unshared: Axes) -> Eqn:
    contracts, batches = eqn.params["dimension_numbers"]
    operands = list(eqn.invars)
    operands[i] = source
    contract, batch = list(contracts), [tuple([own[k] for k in unshared]) for own in batches]
    contract[i] = tuple([axes.index(d) for d in contract[i]])
    batch[i] = tuple([axes.index(d) for d in batch[i]])
    # The axes of the result by name: a batch axis by its number, a free one by operand and axis.
    frees = [free_axes(a.aval.ndim, c, b) for a, c, b in zip(eqn.invars, contracts, batches)]
    expected: list[Any] = [*range(len(batches[0])), *[(k, d) for k in (0, 1) for d in frees[k]]]
    other = 1 - i
    names: list[list[Any]] = [[], []]
    names[i] = [(i, d) for d in frees[i]]
    places = {d: k for k, d in enumerate(batches[other])}
    free = free_axes(operands[other].aval.ndim, contract[other], batch[other])
    names[other] = [places.get(d, (other, d)) for d in free]
    labels = [*unshared, *names[0], *names[1]]
    params = {"dimension_numbers": ((contract[0], contract[1]), (batch[0], batch[1]))}
    if labels == expected:
        return eqn.replace(invars=operands, params=params)
    product = rw.new(dot_general_p, *operands, **params)
    order = tuple([labels.index(name) for name in expected])
    return eqn.replace(primitive=transpose_p, invars=[product], params={"permutation": order})


def _untransposed(
    rw: Rewriter, x: Atom, contracted: tuple[int, ...], batch: tuple[int, ...]
) -> tuple[Atom, tuple[int, ...], tuple[int, ...]]:
    inner = rw.made_by(x, transpose_p)
    if inner is None:
        return x, contracted, batch
    order = inner.params["permutation"]
    free = [order[d] for d in range(len(order)) if d not in contracted and d not in batch]
    if free != sorted(free):  # the result's axes would change their order
        return x, contracted, batch
    return inner.invars[0], tuple(order[d] for d in contracted), tuple(order[d] for d in batch)


def _dot_transposed(turn: Eqn, dot: Eqn) -> Eqn | None:
    """Rewrite ``transpose(dot(x, y))`` as ``dot(y, x)`` if it only swaps the free axes of the two."""
    (lc, rc), (lb, rb) = dot.params["dimension_numbers"]
    x, y = dot.invars
    nb, nx, ny = len(lb), x.aval.ndim - len(lc) - len(lb), y.aval.ndim - len(rc) - len(rb)
    swapped = (*range(nb), *range(nb + nx, nb + nx + ny), *range(nb, nb + nx))
    if turn.params["permutation"] != swapped:
        return None
    params = {**dot.params, "dimension_numbers": ((rc, lc), (rb, lb))}
    return turn.replace(primitive=dot_general_p, invars=[y, x], params=params)


def _dot_cost(x: Aval, y: Aval, *, dimension_numbers: DimensionNumbers) -> Workload:
    """BLAS takes half an addition for a multiplication and the addition of its result."""
    out = _dot_abstract(x, y, dimension_numbers=dimension_numbers)
    products = out.size * prod(x.shape[d] for d in dimension_numbers[0][0])
    return Workload(2 * products, additions=products * out.dtype.itemsize // 16)


dot_general_p: Primitive = Primitive(
    "dot_general",
    _dot_abstract,
    _dot_impl,
    in_float32=True,
    jvp=_dot_jvp,
    taylor=of_product,
    transpose=_dot_transpose,
    batch=_dot_batch,
    kernel=Block(dot_kernel),
    simplify=_dot_simplify,
    transposed=_dot_transposed,
    cost=_dot_cost,
)
