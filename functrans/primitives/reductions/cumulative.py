"""Cumulative sums, products, extrema and logsumexp along one axis, and the linear recurrence of their derivatives.

Each takes ``axis``, a non-negative axis, and ``reverse``, which begins at its end. All are folds
``y[i] = step(y[i - 1], x[i])`` that store every value, so the derivative of each is a fold, too. With ``a`` the
derivative of the step in ``y[i - 1]`` and ``b`` the contribution of ``x[i]``, it is ``y'[i] = a[i] y'[i - 1] + b[i]``.
This is `recurrence_p`, linear in ``b``; its derivative in ``a`` and its transpose are recurrences again. Nothing is
divided, so zeros in a product are safe in derivatives of any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from ...core import (
    KEY,
    Aval,
    Block,
    BlockEmitter,
    Buffer,
    Linear,
    Pointwise,
    Primitive,
    Scalar,
    Workload,
    Zero,
    dtype_kind,
    is_inexact,
    refused_keys,
)
from ...core.values import ArrayLike, Params, Tangent, Value
from ...errors import DtypeError, ShapeError
from ..axes import check_axes, same_dtype
from ..elementwise.arithmetic import Pair, max_p, min_p, mul_p, share_p, sub_p
from ..elementwise.exp_log import exp_p
from ..elementwise.trig import log_share, logaddexp_p
from ..families import literal
from ..structure.linear import (
    Rule,
    add_p,
    added,
    batched_first,
    dtype_of,
    instantiate,
    linear_jvp,
    shape_of,
)
from ..structure.shape import lanes, loops, pad_p, slice_along

Step = Callable[..., Scalar]

# --- what the family shares ---------------------------------------------------------------------------------


def _check(name: str, x: Aval, axis: int, kinds: str) -> Aval:
    check_axes(name, (axis,), x.shape)
    if dtype_kind(x.dtype) not in kinds:
        if x.dtype == KEY:
            raise refused_keys(name)
        raise DtypeError(f"{name}: dtype {x.dtype} is not supported; convert the operand with .astype first")
    return x.strong()


def _batch(prim: Callable[[], Primitive]) -> Rule:
    def batch(size: int, args: Sequence[Value], dims: Sequence[int], *, axis: int, reverse: bool) -> Any:
        d = dims[0]
        return prim().bind(*args, axis=axis + (axis >= d), reverse=reverse), d

    return batch


def _accumulated(ufunc: np.ufunc) -> Rule:
    """Return NumPy's ``ufunc.accumulate``, from either end."""

    def impl(x: Value, *, axis: int, reverse: bool) -> np.ndarray:
        if not reverse:
            return ufunc.accumulate(x, axis=axis, dtype=x.dtype)
        return np.ascontiguousarray(
            np.flip(ufunc.accumulate(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)
        )

    return impl


#: Longer cumulative sums are computed in blocks of this many elements.
_BLOCK = 1024


def _sum_in_blocks(
    k: BlockEmitter, x: ArrayLike, out: Buffer, before: list[Any], after: list[Any], reverse: bool
) -> None:
    """Sum within each block, on top of the total of the blocks before. A block's sum joins the total with compensation,
    so the error does not grow with the number of elements.
    """
    zero = k.const(0, out.dtype)
    total, part = k.local(zero), k.local(zero)
    n = out.shape[len(before)]
    with k.loop(-(-n // _BLOCK), reverse=reverse) as block:
        start, old = block * _BLOCK, total.get()
        last = start * 0 + n
        with k.loop(k.where(start + _BLOCK < last, start + _BLOCK, last), start, reverse=reverse) as i:
            index = [*before, i, *after]
            now = part.get() + k.load(x, index)
            part.set(now)
            k.store(out, index, old + now)
        now = part.get()
        total_after = old + now
        rest = total_after - old
        lost = (old - (total_after - rest)) + (now - rest)
        total.set(total_after)
        part.set(k.where(lost.eq(lost), lost, zero))  # NaN if the sum is infinite


def _kernel(begin: Step, step: Step, blocks: bool = False) -> Block:
    """Make the loop of a fold that stores every value; operands are computed where they are read.

    Along the last axis a register carries the previous value. Along another axis the loop carries a whole row of
    values, and vectorises. `blocks` marks sums; long sums are computed in blocks.
    """

    def emit(
        k: BlockEmitter, operands: Sequence[Any], results: Sequence[Buffer], *, axis: int, reverse: bool
    ) -> None:
        (out,) = results
        n, after = out.shape[axis], out.shape[axis + 1 :]
        if not n:
            return
        first, start, stop = (n - 1, 0, n - 1) if reverse else (0, 1, n)
        with lanes(k, out.shape[:axis]) as b:

            def put(i: Any, c: Sequence[Any], before: Any) -> Scalar:
                index = [*b, i, *c]
                read = [k.load(x, index) for x in operands]
                value = begin(k, *read) if before is None else step(k, before, *read)
                k.store(out, index, value)
                return value

            if all(extent == 1 for extent in after):
                c = [0] * len(after)
                if blocks and n > _BLOCK and is_inexact(out.dtype) and not k.in_order:
                    _sum_in_blocks(k, operands[0], out, [*b], c, reverse)
                    return
                running = k.local(put(first, c, None))
                with k.loop(stop, start, reverse=reverse) as i:
                    running.set(put(i, c, running.get()))
                return
            carried = k.scratch(after, out.dtype)
            with loops(k, after) as c:
                k.store(carried, c, put(first, c, None))
            with k.loop(stop, start, reverse=reverse) as i, loops(k, after) as c:
                k.store(carried, c, put(i, c, k.load(carried, c)))

    return Block(emit, streamed_from=0)


def shifted(x: Value, initial: float, axis: int, reverse: bool) -> Value:
    """Return the previous element along an axis, `initial` for the first one."""
    config = [(0, 0, 0)] * len(shape_of(x))
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad_p.bind(x, dtype_of(x).type(initial), padding_config=tuple(config))


def _opened(x: Value, initial: float, axis: int, reverse: bool) -> Value:
    """Return `x` with one more element where the fold begins."""
    config = [(0, 0, 0)] * len(shape_of(x))
    config[axis] = (0, 1, 0) if reverse else (1, 0, 0)
    return pad_p.bind(x, dtype_of(x).type(initial), padding_config=tuple(config))


def _steps(x: Value, y: Value, axis: int, reverse: bool) -> Pair:
    """Return the operands of all steps but the first: the elements, and the previous results."""
    shape = shape_of(x)
    n = shape[axis]
    early, late = slice_along(y, axis, 0, n - 1), slice_along(x, axis, 1, n)
    if reverse:
        early, late = slice_along(y, axis, 1, n), slice_along(x, axis, 0, n - 1)
    return late, early


# --- the linear recurrence ----------------------------------------------------------------------------------


def _recurrence_abstract(a: Aval, b: Aval, *, axis: int, reverse: bool) -> Aval:
    same_dtype("recurrence", (a, b), "iufc")
    if a.shape != b.shape:
        raise ShapeError(
            f"recurrence: the factors a have shape {a.shape}, the terms b have shape {b.shape}: expected equal shapes"
        )
    return _check("recurrence", b, axis, "iufc")


def _recurrence_impl(a: Value, b: Value, *, axis: int, reverse: bool) -> np.ndarray:
    out = np.array(b)
    rows, factors = np.moveaxis(out, axis, 0), np.moveaxis(np.asarray(a), axis, 0)
    if reverse:
        rows, factors = rows[::-1], factors[::-1]
    for i in range(1, len(rows)):
        rows[i] += factors[i] * rows[i - 1]
    return out


def _recurrence_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, axis: int, reverse: bool
) -> Pair:
    (a, b), (s, t) = primals, tangents
    ans = recurrence_p.bind(a, b, axis=axis, reverse=reverse)
    if type(s) is Zero and type(t) is Zero:
        return ans, Zero(ans)
    if type(s) is not Zero:
        # y'[i] = a[i] y'[i - 1] + a'[i] y[i - 1] + b'[i]
        moved = mul_p.bind(s, shifted(ans, 0, axis, reverse))
        t = moved if type(t) is Zero else add_p.bind(moved, t)
    return ans, recurrence_p.bind(a, t, axis=axis, reverse=reverse)


def _recurrence_taylor(
    prim: Primitive, out: Sequence[Any], operands: Sequence[Any], params: Params
) -> Iterator[Any]:
    """``y[k]`` has the terms ``b[k]`` and those of all ``a[j] y[k-j]`` for j > 0, with the factors ``a[0]``."""
    a, b = operands
    for k in count(1):
        terms = b[k]
        for j in range(1, k + 1):
            if type(a[j]) is not Zero and type(out[k - j]) is not Zero:
                terms = added(terms, mul_p.bind(a[j], shifted(out[k - j], 0, **params)))
        yield Zero(out[0]) if type(terms) is Zero else recurrence_p.bind(a[0], terms, **params)


def _recurrence_transpose(ct: Value, a: ArrayLike, b: Value, *, axis: int, reverse: bool) -> list[Tangent]:
    assert type(a) is not Linear, "a recurrence is not linear in its factors"
    # The factor that leads from one term to the next also leads back.
    return [None, recurrence_p.bind(shifted(a, 0, axis, not reverse), ct, axis=axis, reverse=not reverse)]


def _recurrence_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, axis: int, reverse: bool
) -> tuple[Value, int]:
    a, b = (batched_first(size, x, d) for x, d in zip(args, dims))
    return recurrence_p.bind(a, b, axis=axis + 1, reverse=reverse), 0


# ``y[i] = a[i] y[i - 1] + b[i]``; the first factor is not read.
recurrence_p: Primitive = Primitive(
    "recurrence",
    _recurrence_abstract,
    _recurrence_impl,
    in_float32=True,
    jvp=_recurrence_jvp,
    taylor=_recurrence_taylor,
    transpose=_recurrence_transpose,
    batch=_recurrence_batch,
    kernel=_kernel(lambda k, a, b: b, lambda k, y, a, b: a * y + b),
    cost=lambda a, b, **params: Workload(2 * b.size),
)

# --- cumsum -------------------------------------------------------------------------------------------------

cumsum_p: Primitive = Primitive(
    "cumsum",
    lambda x, *, axis, reverse: _check("cumsum", x, axis, "iufc"),
    _accumulated(np.add),
    in_float32=True,
    jvp=linear_jvp(lambda: cumsum_p),
    linear=True,
    transpose=lambda ct, x, *, axis, reverse: [cumsum_p.bind(ct, axis=axis, reverse=not reverse)],
    batch=_batch(lambda: cumsum_p),
    kernel=_kernel(lambda k, x: x, lambda k, y, x: y + x, blocks=True),
    cost=lambda x, **params: Workload(x.size),
)

# --- cumprod, cummax, cummin, cumlogsumexp --------------------------------------------------------------------


def _fold(name: str, kinds: str, impl: Rule, derivative: Rule, step: Step, functions: int = 0) -> Primitive:
    """Make a fold, with so many `functions` of a maths library in each step.

    ``derivative(x, y, t, axis, reverse)`` returns the factors and terms of its tangent's recurrence.
    """

    def jvp(primals: Sequence[Value], tangents: Sequence[Tangent], *, axis: int, reverse: bool) -> Pair:
        (x,), (t,) = primals, tangents
        ans = prim.bind(x, axis=axis, reverse=reverse)
        if type(t) is Zero or not shape_of(x)[axis]:
            return ans, t if type(t) is not Zero else Zero(ans)
        factors, terms = derivative(x, ans, instantiate(t), axis, reverse)
        return ans, recurrence_p.bind(factors, terms, axis=axis, reverse=reverse)

    prim = Primitive(
        name,
        lambda x, *, axis, reverse: _check(name, x, axis, kinds),
        impl,
        in_float32=True,
        jvp=jvp,
        batch=_batch(lambda: prim),
        kernel=_kernel(lambda k, x: x, step),
        cost=lambda x, **params: Workload(x.size, functions * x.size),
    )
    return prim


def _product_derivative(x: Value, y: Value, t: Value, axis: int, reverse: bool) -> Pair:
    return x, mul_p.bind(t, shifted(y, 1, axis, reverse))


def _extremum_derivative(largest: bool) -> Rule:
    def derivative(x: Value, y: Value, t: Value, axis: int, reverse: bool) -> Pair:
        late, early = _steps(x, y, axis, reverse)
        # The derivative in the new element; 1 for the first one.
        share = share_p.bind(late, early) if largest else share_p.bind(early, late)
        share = _opened(share, 1, axis, reverse)
        return sub_p.bind(literal(1.0, share), share), mul_p.bind(t, share)

    return derivative


def _logsumexp_derivative(x: Value, y: Value, t: Value, axis: int, reverse: bool) -> Pair:
    late, early = _steps(x, y, axis, reverse)
    now, _ = _steps(y, y, axis, reverse)
    factors = _opened(exp_p.bind(log_share(early, now)), 0, axis, reverse)
    terms = _opened(exp_p.bind(log_share(late, now)), 1, axis, reverse)
    return factors, mul_p.bind(t, terms)


def _pointwise(prim: Primitive) -> Step:
    """Return the step of an elementwise primitive of two operands."""
    assert isinstance(prim.kernel, Pointwise)
    return prim.kernel.emit


cumprod_p = _fold("cumprod", "iufc", _accumulated(np.multiply), _product_derivative, lambda k, y, x: y * x)
cummax_p = _fold("cummax", "biufc", _accumulated(np.maximum), _extremum_derivative(True), _pointwise(max_p))
cummin_p = _fold("cummin", "biufc", _accumulated(np.minimum), _extremum_derivative(False), _pointwise(min_p))
cumlogsumexp_p = _fold(
    "cumlogsumexp",
    "f",
    _accumulated(np.logaddexp),
    _logsumexp_derivative,
    _pointwise(logaddexp_p),
    2,
)
