"""Methods of NumPy's ufuncs on traced values: ``np.add.reduce(t)``, ``.accumulate``, ``.reduceat``, ``.outer``."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from .. import errors
from ..arrays.autocast import autocasting
from ..core import Primitive, because, canonical, concrete, dtype_kind, is_abstract, operators
from ..core.values import ArrayLike, AxisLike, DTypeLike, Param, PyTree, Value
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, one_axis, operand, reduced_axes, refuse_out, shape_of
from ..runtime.module_getattr import lazy_import
from .dispatch import NO_VALUE, array_operand, given
from .reductions import reductions
from .shaping.joining import stack

#: Loads when autocast is first used.
autocast = lazy_import("functrans.primitives.autocast")
of_arrays = lazy_import("functrans.arrays.ufuncs")

_REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: reductions.sum,
    np.multiply: reductions.prod,
    np.maximum: reductions.max,
    np.minimum: reductions.min,
    np.logical_and: reductions.all,
    np.logical_or: reductions.any,
}
_LOGICAL = (np.logical_and, np.logical_or, np.logical_xor)
_ACCUMULATIONS: dict[np.ufunc, Primitive] = {
    np.add: ops.cumsum_p,
    np.multiply: ops.cumprod_p,
    np.maximum: ops.cummax_p,
    np.minimum: ops.cummin_p,
    np.logaddexp: ops.cumlogsumexp_p,
}
#: Ufuncs that are associative, so that halves can be combined: log(n) operations instead of n.
_ASSOCIATIVE = frozenset(
    (
        np.add,
        np.multiply,
        np.maximum,
        np.minimum,
        np.fmax,
        np.fmin,
        np.logical_and,
        np.logical_or,
        np.logical_xor,
        np.bitwise_and,
        np.bitwise_or,
        np.bitwise_xor,
        np.gcd,
        np.lcm,
        np.hypot,
        np.logaddexp,
        np.logaddexp2,
    )
)
#: Other ufuncs are unrolled, one operation for each element, up to this many.
_LONGEST = 256
_IN_PLACE: dict[np.ufunc, str] = {
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.divide: "divide",
    np.power: "power",
    np.maximum: "max",
    np.minimum: "min",
}


def _ufunc_method(
    function: Callable[..., PyTree], ufunc: np.ufunc, method: str, *args: PyTree, **options: Param
) -> Value:
    name = f"np.{ufunc.__name__}.{method}"
    if method == "at":
        verb = _IN_PLACE.get(ufunc)
        cure = f"x = x.at[i].{verb}(v)" if verb else f"x = x.at[i].set(np.{ufunc.__name__}(x[i], v))"
        raise errors.ImmutableArrayError(f"{name}: a traced value cannot be changed in place: write {cure}")
    refuse_out(name, options.pop("out", None))
    if autocasting.used:
        args = tuple(autocast.adjusted(of_arrays.OF_UFUNCS.get((ufunc, method), ""), *args))
    return _METHODS[method](function, ufunc, name, *args, **options)


def _outer(
    function: Callable[..., PyTree], ufunc: np.ufunc, name: str, a: Value, b: Value, **options: Param
) -> Value:
    x, y = array_operand(a, name), array_operand(b, name, 1)
    return function(ops.reshape_p.bind(x, shape=shape_of(x) + (1,) * len(shape_of(y))), y, **options)


# --- reduce -------------------------------------------------------------------------------------------------


def _reduce(
    function: Callable[..., PyTree],
    ufunc: np.ufunc,
    name: str,
    array: Value,
    axis: AxisLike = 0,
    dtype: DTypeLike = None,
    out: ArrayLike = None,
    keepdims: bool = False,
    initial: ArrayLike = NO_VALUE,
    where: Any = True,
) -> Value:
    refuse_out(name, out)
    x = array_operand(array, name)
    options: dict[str, Any] = {} if given(initial, None) is None else {"initial": initial}
    if dtype is not None and ufunc in (np.add, np.multiply):
        options["dtype"] = dtype
    elif dtype is not None and ufunc not in _LOGICAL:
        x = ops.convert(x, canonical(dtype, f"{name}: dtype"))
    known = _REDUCTIONS.get(ufunc)
    if known is not None and not (options and ufunc in _LOGICAL):
        return known(x, axis=axis, keepdims=keepdims, where=where, **options)
    shape = shape_of(x)
    axes = reduced_axes(axis, len(shape), name)
    if len(axes) > 1 and ufunc not in _ASSOCIATIVE:
        raise errors.ArgumentValueError(
            f"{name}: not reorderable, so at most one axis may be specified, got {axis}"
        )
    x = _masked(ops.truth(x) if ufunc in _LOGICAL else x, where, ufunc, name)
    others = [d for d in range(len(shape)) if d not in axes]
    flat = x
    for place, d in enumerate(axes):
        flat = ops.move_axis(flat, d + sum(e > d for e in axes[:place]), place)
    remaining = tuple([shape[d] for d in others])
    flat = ops.reshape_p.bind(flat, shape=(prod([shape[d] for d in axes]), *remaining))
    total = operand(_folded(function, ufunc, name, flat, initial), name)
    if keepdims:
        remaining = tuple([1 if d in axes else n for d, n in enumerate(shape)])
    return finish(ops.reshape_p.bind(total, shape=remaining))


def _masked(x: Value, where: Any, ufunc: np.ufunc, name: str) -> Value:
    if given(where, True) is True:
        return x
    if ufunc.identity is None:
        raise errors.ArgumentValueError(f"{name}: it has no identity, so where= is not possible")
    mask = ops.truth(operand(where, f"{name}: where"))
    return ops.select_p.bind(ops.broadcast_to(mask, shape_of(x)), x, dtype_of(x).type(ufunc.identity))


def _folded(function: Callable[..., PyTree], ufunc: np.ufunc, name: str, x: Value, initial: Value) -> Any:
    """Combine the rows of `x`."""
    n = shape_of(x)[0]
    total = given(initial, None)
    if not n:
        total = ufunc.identity if total is None else total
        if total is None:
            raise errors.ArgumentValueError(
                f"{name}: cannot reduce a zero-size array, since the ufunc has no identity"
            )
        dtype = dtype_of(operand(function(dtype_of(x).type(0), dtype_of(x).type(0)), name))
        return ops.broadcast_to(dtype.type(total), shape_of(x)[1:])
    if ufunc in _ASSOCIATIVE:
        while shape_of(x)[0] > 1:
            x = _halved(function, x)
        rest = [ops.reshape_p.bind(x, shape=shape_of(x)[1:])]
    else:
        rest = _rows(x, name)
    for row in rest:
        total = finish(row) if total is None else function(total, row)
    return total


def _rows(x: Value, name: str) -> list[Any]:
    shape = shape_of(x)
    if shape[0] > _LONGEST:
        raise errors.NoRuleError(
            f"{name} of {shape[0]} traced elements: functrans unrolls one operation for each, at most {_LONGEST}; "
            "write it as a loop with lax.scan, or use an associative ufunc"
        )
    return [ops.element_along(x, 0, i) for i in range(shape[0])]


def _halved(function: Callable[..., PyTree], x: Value) -> Any:
    """Combine neighbours, which leaves about half as many rows."""
    shape = shape_of(x)
    half = shape[0] // 2
    pairs = ops.reshape_p.bind(ops.slice_along(x, 0, 0, 2 * half), shape=(half, 2, *shape[1:]))
    out = operand(function(ops.element_along(pairs, 1, 0), ops.element_along(pairs, 1, 1)), "reduce")
    if shape[0] % 2 == 0:
        return out
    last = ops.slice_along(x, 0, 2 * half, 2 * half + 1)
    return ops.concatenate_p.bind(out, ops.convert(last, dtype_of(out)), dimension=0)


# --- accumulate ---------------------------------------------------------------------------------------------


def _accumulate(
    function: Callable[..., PyTree],
    ufunc: np.ufunc,
    name: str,
    array: Value,
    axis: AxisLike = 0,
    dtype: DTypeLike = None,
    out: Any = None,
) -> Value:
    refuse_out(name, out)
    x = array_operand(array, name)
    d = one_axis(axis, len(shape_of(x)), name)
    if dtype is not None:
        x = ops.convert(x, canonical(dtype, f"{name}: dtype"))
    elif ufunc in (np.add, np.multiply):
        x = ops.convert(x, reductions.accumulator(dtype_of(x)))
    elif ufunc in _LOGICAL:
        x = ops.truth(x)
    prim = _ACCUMULATIONS.get(ufunc)
    if prim is not None and dtype_kind(dtype_of(x)) in ("f" if ufunc is np.logaddexp else "iuf"):
        return finish(prim.bind(x, axis=d, reverse=False))
    rows = ops.move_axis(x, d, 0)
    rows_out = _scanned(function, rows) if ufunc in _ASSOCIATIVE else _written_out(function, rows, name)
    return finish(ops.move_axis(rows_out, 0, d))


def _scanned(function: Callable[..., PyTree], x: Value) -> Value:
    """Cumulative folds in log(n) steps: combine each row with the one `step` before it, and double `step`."""
    shape = shape_of(x)
    n, step = shape[0], 1
    while step < n:
        after = ops.slice_along(x, 0, step, n)
        before = ops.slice_along(x, 0, 0, n - step)
        combined = operand(function(before, after), "accumulate")
        head = ops.convert(ops.slice_along(x, 0, 0, step), dtype_of(combined))
        x = ops.concatenate_p.bind(head, combined, dimension=0)
        step *= 2
    return x


def _written_out(function: Callable[..., PyTree], x: Value, name: str) -> Value:
    rows = _rows(x, name)
    if not rows:
        return x
    totals = [finish(rows[0])]
    for row in rows[1:]:
        totals.append(function(totals[-1], row))
    return operand(stack(totals), name)


# --- reduceat -----------------------------------------------------------------------------------------------


def _reduceat(
    function: Callable[..., PyTree],
    ufunc: np.ufunc,
    name: str,
    array: Value,
    indices: Value,
    axis: AxisLike = 0,
    dtype: DTypeLike = None,
    out: ArrayLike = None,
) -> Value:
    """Reduce slices: from each index to the next, or only the element itself if the next is not larger."""
    refuse_out(name, out)
    x, i = array_operand(array, name), operand(indices, name, 1)
    if is_abstract(i):
        raise errors.ConcretizationTypeError(
            f"{name}: the values of the indices are unknown while tracing{because(i)}; pass them as constants, or "
            "write zeros(n).at[segment].add(x) with the segment of each element"
        )
    d = one_axis(axis, len(shape_of(x)), name)
    n = shape_of(x)[d]
    starts = [int(s) for s in np.asarray(concrete(i)).ravel()]
    for s in starts:
        if not 0 <= s < n:
            raise errors.IndexOutOfBoundsError(f"{name}: index {s} out-of-bounds in [0, {n})")
    if not starts:
        raise errors.ArgumentError(f"{name}: expected at least one index")
    parts = []
    for s, end in zip(starts, [*starts[1:], n]):
        piece = ops.slice_along(x, d, s, max(end, s + 1))
        parts.append(_reduce(function, ufunc, name, piece, d, dtype))
    return stack(parts, d)


_METHODS: dict[str, Callable[..., Any]] = {
    "reduce": _reduce,
    "accumulate": _accumulate,
    "reduceat": _reduceat,
    "outer": _outer,
}


def ufunc_method(
    method: str, function: Callable[..., PyTree], ufunc: Any, name: str, *args: PyTree, **options: Param
) -> Any:
    """A method of any ufunc: of NumPy, or with its attributes."""
    return _METHODS[method](function, ufunc, name, *args, **options)


operators.function[np.ufunc] = _ufunc_method
