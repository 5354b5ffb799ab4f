"""``x.at[index]``: updated copies, and reads with a choice for indices out of bounds.

Updates of one element that must run in sequence, as for ``np.<ufunc>.at`` with any function, run in rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...api.bodies import trace_body
from ...arrays.array import unwrap, wrap
from ...arrays.autocast import autocasting
from ...arrays.traced_parts import has_tracer
from ...control import scan
from ...core import INT64, Aval, Tracer, aval_of, concrete, is_abstract, is_inexact, operators
from ...core.values import ArrayLike, Index, Param, Params, Value
from ...errors import DtypeError, InvalidIndexError, NonConcreteBooleanIndexError, ShapeError
from ...frontend.pytree import tree_structure
from ...primitives import ops
from ...primitives.ops import dtype_of
from ...primitives.structure.linear import shape_of
from ...runtime.module_getattr import lazy_import
from ...transforms.stage import attach_to

#: Loads when autocast is first used.
autocast = lazy_import("functrans.primitives.autocast")

Step = Callable[[Any], Any]

#: Rounds unrolled in a traced function; more of them, or a number that depends on data, make a loop.
_WRITTEN_OUT = 2


def one_by_one(
    step: Step,
    x: Value,
    indices: Sequence[ArrayLike],
    axes: tuple[int, ...],
    mode: str,
    idle: ArrayLike = None,
    unique: bool = False,
) -> Any:
    """Replace elements of `x` by a function of themselves, once for each time that an element is indexed.

    Parameters
    ----------
    step : callable
        Maps the elements at all indices, shape ``S + rest``, to their replacements. Elementwise.
    x : array
    indices : sequence of int arrays of shape ``S``
    axes : tuple of int
        The indexed axes of `x`.
    mode : str
        See `primitives.bounds`.
    idle : scalar of the dtype of `x`, optional
        The argument of `step` where its result is dropped; by default the original element.
    unique : bool
        A promise that no element is indexed twice.

    Notes
    -----
    Round `r` applies the updates that `r` earlier updates of the same element precede. Results of `step` for the others
    are dropped; so that they cannot harm derivatives, `step` does not get the current values there, for which it may be
    undefined.
    """
    common, shape = shape_of(indices[0]), shape_of(x)
    if prod(common) == 0:
        return x
    if unique or ops.all_different(shape, indices, axes, mode):
        new = step(ops.gathered(x, indices, axes, mode))
        return ops.scatter_p.bind(x, new, *indices, axes=axes, mode=mode, unique_indices=True)
    rest = ops.rest_of(shape, axes)
    order = (*axes, *[d for d in range(len(shape)) if d not in axes])
    moved = ops.arranged(x, order)
    size = prod([shape[d] for d in axes])
    places = ops.flat_places(shape, indices, axes, mode)
    rank = ops.select_p.bind(ops.ge_p.bind(places, np.int64(0)), ops.ranks(places), np.int64(-1))
    rows = ops.reshape_p.bind(moved, shape=(size, *rest))
    if not size:  # every index was dropped
        return x
    first = ops.gathered(rows, [places], (0,), "clip")
    resting = ops.stop_gradient_p.bind(first) if idle is None else idle

    def turn(rows: ArrayLike, r: ArrayLike) -> Value:
        now = ops.eq_p.bind(rank, r)
        active = ops.broadcast_in_dim_p.bind(
            now, shape=shape_of(first), broadcast_dimensions=tuple(range(len(common)))
        )
        new = step(ops.select_p.bind(active, ops.gathered(rows, [places], (0,), "clip"), resting))
        target = ops.select_p.bind(now, places, np.int64(size))
        return ops.scatter_p.bind(rows, new, target, axes=(0,), mode="drop", unique_indices=True)

    count = ops.add_p.bind(ops.reduce_max_p.bind(rank, axes=tuple(range(len(common)))), np.int64(1))
    known, done = concrete(count), 0
    while known is not None and done < known and (done < _WRITTEN_OUT or not is_abstract(rows)):
        rows, done = turn(rows, np.int64(done)), done + 1
    if known is None or done < known:
        rows = _loop(turn, rows, np.int64(done), count)
    return ops.arranged(ops.reshape_p.bind(rows, shape=shape_of(moved)), ops.inverse(order))


def _loop(turn: Callable[[Any, Any], Any], rows: ArrayLike, start: ArrayLike, count: Any) -> Any:
    """The rounds from `start` on, as a loop of `count` iterations."""

    def call(fun: Callable[[Any, Any], Any], carry: tuple[Any, Any]) -> tuple[Any, Any]:
        return fun(*carry), ops.add_p.bind(carry[1], np.int64(1))

    avals = [aval_of(rows).strong(), Aval((), INT64)]
    body = trace_body(turn, avals, tree_structure((0, 0)), call)
    attach_to(body.hooks)
    number = ops.sub_p.bind(count, start)
    return scan.bind(body.jaxpr, body.consts, [rows, start], [], length=None, count=number)[0]


class At:
    """The value of ``x.at``: index it to select elements."""

    __slots__ = ("_x",)

    def __init__(self, x: Value):
        self._x = x

    def __getitem__(self, index: Index) -> AtIndex:
        return AtIndex(self._x, index)

    def __repr__(self) -> str:
        return f"At({self._x!r})"


class AtIndex:
    """Elements of an array selected by an index expression: read them, or get an updated copy of the array.

    All methods accept `mode`, which says what happens to an index out of bounds, after negative ones are counted from
    the end:

    * ``"raise"`` (the default): `IndexOutOfBoundsError`, also from a compiled function.
    * ``"clip"``: the nearest element (``"promise_in_bounds"`` means the same).
    * ``"wrap"``: the index modulo the size of the axis.
    * ``"fill"``, ``"drop"``: `get` returns `fill_value` for it, the other methods skip it.

    ``wrap_negative_indices=False`` does not count negative indices from the end, so that they are out of bounds (or
    wrapped, by ``mode="wrap"``). Slices are not affected.

    `unique_indices` promises that no element is indexed twice, which makes derivatives of `set` and `multiply` cheaper.
    `indices_are_sorted` is accepted for compatibility with JAX, without effect.

    Notes
    -----
    If index arrays select an element repeatedly, all methods apply every value, one after the other (as ``np.add.at``
    does). Only `set` uses just the last one, as NumPy's assignment does, and its derivative is that of this value. So
    `power` raises to one exponent after the other, and `apply` applies its function repeatedly. Values are cast to the
    dtype of the array as by NumPy: `set` casts any real value; the others raise `DtypeError` if the kind of the result
    does not match the array's (``int`` array, ``float`` value). So do all for a complex value and a real array.

    A boolean mask as the only index also accepts values with the shape of the whole array, of which those under the
    mask are used. This works for a traced mask, too, which otherwise accepts only a scalar.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> x = fnp.zeros(3)
    >>> x.at[1].set(5.0)
    Array([0., 5., 0.])
    >>> x.at[fnp.array([0, 0, 2])].add(1.0)
    Array([2., 0., 1.])
    >>> x.at[7].get(mode="fill", fill_value=-1.0)
    Array(-1.)
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Value, index: Index):
        self._x = x
        self._index = index

    def __repr__(self) -> str:
        return f"AtIndex({self._x!r}, {self._index!r})"

    def get(
        self,
        *,
        mode: str | None = None,
        fill_value: ArrayLike = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """Read the elements. `fill_value` defaults to NaN, the lowest signed or highest unsigned integer, or True."""
        x = unwrap(self._x)
        plan = _plan(x, _index(self._index, mode, wrap_negative_indices), mode, "clip")
        if fill_value is not None:
            ops.refuse_complex(np.result_type(fill_value), dtype_of(x), "x.at[...].get: fill_value")
        fill = None if fill_value is None or fill_value != fill_value else fill_value
        return wrap(ops.take(x, plan, fill))

    def set(self, values: ArrayLike, **options: Param) -> Any:
        """Return the array after ``x[index] = values``."""
        return self._changed(values, None, ops.scatter_p, options)

    def add(self, values: ArrayLike, **options: Param) -> Value:
        """Return the array after ``x[index] += values``, applied for each repeated index."""
        return self._changed(values, ops.add_p, ops.scatter_add_p, options)

    def subtract(self, values: ArrayLike, **options: Param) -> Any:
        """Return the array after ``x[index] -= values``, applied for each repeated index."""
        return self._changed(values, ops.sub_p, ops.scatter_add_p, options)

    def multiply(self, values: ArrayLike, **options: Param) -> Value | None:
        """Return the array after ``x[index] *= values``, applied for each repeated index."""
        return self._changed(values, ops.mul_p, ops.scatter_mul_p, options)

    mul = multiply

    def divide(self, values: ArrayLike, **options: Param) -> Any:
        """Return the array after ``x[index] /= values``, applied for each repeated index."""
        return self._changed(values, ops.div_p, ops.scatter_div_p, options)

    def power(self, values: Value, **options: Param) -> Value:
        """Return the array after ``x[index] **= values``, applied in order for each repeated index."""
        return self._changed(values, ops.pow_p, None, options)

    def min(self, values: ArrayLike, **options: Param) -> Any:
        """Return the array after ``x[index] = minimum(x[index], values)``; ties share the derivative evenly."""
        return self._changed(values, ops.min_p, ops.scatter_min_p, options)

    def max(self, values: ArrayLike, **options: Param) -> Any:
        """Return the array after ``x[index] = maximum(x[index], values)``; ties share the derivative evenly."""
        return self._changed(values, ops.max_p, ops.scatter_max_p, options)

    def apply(self, func: Callable[[Any], Any], **options: Param) -> Any:
        """Return the array after ``x[index] = func(x[index])``; `func` is elementwise, and applied for each repeated
        index, as by ``np.<ufunc>.at(x, index)``.
        """
        x = unwrap(self._x)
        mode, unique, index = self._options(**options)
        mask = _lone_mask(index)
        if mask is not None and is_abstract(mask):
            return wrap(_where_mask(x, mask, _updates(x, unwrap(func(self._x)), None), None, whole=True))
        plan = _plan(x, index, mode)
        if not plan.axes or unique or mask is not None:
            same = AtIndex(self._x, index)
            return same.set(func(same.get(mode=mode)), mode=mode, unique_indices=unique)

        def changed(taken: Any) -> Value:
            return _fitted(_updates(x, unwrap(func(wrap(_placed(taken, plan)))), None), plan.shape)

        view = ops.take_view(x, plan)
        new = one_by_one(
            lambda taken: _canonical(changed(taken), plan), view, plan.indices, plan.axes, plan.mode
        )
        return wrap(_put(x, plan, new))

    def _options(
        self,
        *,
        mode: str | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        wrap_negative_indices: bool = True,
    ) -> tuple[str | None, bool, Any]:
        return mode, unique_indices, _index(self._index, mode, wrap_negative_indices)

    def _changed(self, values: Value, op: Any, scatter: Any, options: Params) -> Value:
        x, values = unwrap(self._x), unwrap(values)
        if autocasting.used:
            x, values = autocast.adjusted("scatter", x, values)
        mode, unique, index = self._options(**options)
        values = _updates(x, values, op)
        mask = _lone_mask(index)
        if mask is not None:
            whole = shape_of(values) == shape_of(x) != () and len(shape_of(mask)) > 0
            if whole or is_abstract(mask):
                return wrap(_where_mask(x, mask, values, op, whole))
        plan = _plan(x, index, mode)
        if not plan.axes:
            if op is not None:
                values = op.bind(ops.take(x, plan), values)
            return wrap(_put(x, plan, _fitted(values, plan.shape)))
        unique = unique or mask is not None
        return wrap(_scattered(x, plan, _fitted(values, plan.shape), op, scatter, unique))


def _index(index: Index, mode: str | None, wraps: bool) -> Any:
    """An index expression, without negative integers unless they count from the end."""
    if wraps:
        return index
    parts = index if isinstance(index, tuple) else (index,)
    plain = tuple([_not_negative(part, mode) for part in parts])
    return plain if isinstance(index, tuple) else plain[0]


def _not_negative(part: Any, mode: str | None) -> Any:
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    i = unwrap(part) if isinstance(part, np.ndarray | np.generic | Tracer) else np.asarray(part)
    return ops.negative_outside(i, mode or ops.default_mode("drop")) if dtype_of(i).kind == "i" else part


def _plan(x: Value, index: Index, mode: str | None, default: str = "drop") -> ops.Plan:
    mode = ops.default_mode(default) if mode is None else ops.checked_mode(mode)
    # A user's promise must not endanger memory: reads outside the array are clipped.
    mode = "clip" if mode == "promise_in_bounds" else mode
    return ops.plan_index(unwrap(index), shape_of(x), mode, is_abstract(x))


# --- values -------------------------------------------------------------------------------------------------


def _updates(x: Value, values: ArrayLike, op: Any) -> Value:
    """Convert values to the dtype of the array, by NumPy's rules of assignment."""
    dtype = x.dtype
    if has_tracer(values):
        values = ops.operand(values, "x.at[...]: values")
    if isinstance(values, Tracer):
        update_type: Any = values.dtype.type(0).item() if values.weak_type else values.dtype
    elif type(values) in (int, float, complex):
        update_type = values
    else:
        values = np.asarray(values)
        update_type = values.dtype
    if op is not None:
        key = type(update_type) if type(update_type) in (int, float, complex) else update_type
        result, _ = ops.common_dtype((dtype, key))
        if op is ops.div_p and not is_inexact(result):
            result = np.dtype(float)
        if not np.can_cast(result, dtype, "same_kind"):
            raise DtypeError(
                f"x.at[...] of an array of dtype {dtype}: with {_described(update_type)} the result is {result}, "
                "which cannot be stored. Convert the array (x.astype(...)) or the values first"
            )
    ops.refuse_complex(np.result_type(update_type), dtype, "x.at[...]")
    if isinstance(values, Tracer):
        return ops.convert(values, dtype)
    # Convert a Python number directly: one beyond the range of the dtype is an OverflowError, as in NumPy.
    return values.astype(dtype, copy=False) if isinstance(values, np.ndarray) else np.asarray(values, dtype)


def _described(update_type: Any) -> str:
    return (
        f"values of dtype {update_type}"
        if isinstance(update_type, np.dtype)
        else f"the value {update_type!r}"
    )


def _fitted(values: Value, shape: tuple[int, ...]) -> Value:
    """Broadcast values to the shape assigned to; as in NumPy, extra leading axes of extent 1 are allowed."""
    own = shape_of(values)
    extra = len(own) - len(shape)
    if extra > 0 and own[:extra] == (1,) * extra:
        values, own = ops.reshape_p.bind(values, shape=own[extra:]), own[extra:]
    if len(own) > len(shape) or any(n not in (1, m) for n, m in zip(own[::-1], shape[::-1])):
        raise ShapeError(
            f"x.at[...]: values of shape {own} do not broadcast to shape {shape}, that of the indexed elements"
        )
    return ops.broadcast_to(values, shape)


# --- writing ------------------------------------------------------------------------------------------------


def _put(x: Value, plan: ops.Plan, values: Value) -> Value:
    """Replace the elements of `x` that slices select by equally many values."""
    shape, sizes = shape_of(x), plan.sliced_shape()
    if shape_of(values) != sizes:
        values = ops.reshape_p.bind(values, shape=sizes)
    if plan.flipped:
        values = ops.rev_p.bind(values, dimensions=plan.flipped)
    if sizes == shape:
        return values.copy() if isinstance(values, np.ndarray) else values
    if all(step == 1 for step in plan.strides):
        return ops.dynamic_update_slice_p.bind(x, values, *plan.starts)
    axes = tuple([d for d, (n, m) in enumerate(zip(shape, sizes)) if n != m])
    common = tuple([sizes[d] for d in axes])
    indices = [
        ops.add_p.bind(
            ops.mul_p.bind(ops.iota(common, i), np.int64(plan.strides[d])), np.int64(plan.starts[d])
        )
        for i, d in enumerate(axes)
    ]
    order = (*axes, *[d for d in range(len(shape)) if d not in axes])
    values = ops.transpose_p.bind(values, permutation=order)
    return ops.scatter_p.bind(x, values, *indices, axes=axes, mode="promise_in_bounds", unique_indices=True)


def _scattered(x: Value, plan: ops.Plan, values: Value, op: Any, scatter: Any, unique: bool) -> Value:
    """Combine values into the elements of `x` that index arrays select."""
    view, values, unique = ops.take_view(x, plan), _canonical(values, plan), unique or plan.distinct
    if plan.mode == "promise_in_bounds":  # constants, checked while tracing
        unique = unique or ops.all_different(plan.view, plan.indices, plan.axes, plan.mode)
    if scatter is None:

        def step(taken: Value) -> Value:
            return op.bind(taken, values)

        one = x.dtype.type(1)
        return _put(x, plan, one_by_one(step, view, plan.indices, plan.axes, plan.mode, one, unique))
    if op is ops.sub_p:
        values = ops.neg_p.bind(values)
    params = {"axes": plan.axes, "mode": plan.mode, "unique_indices": unique}
    return _put(x, plan, scatter.bind(view, values, *plan.indices, **params))


def _canonical(values: Value, plan: ops.Plan) -> Value:
    """Move the axes of the index arrays to the front of values with the result's shape."""
    order = plan.order()
    return values if order is None else ops.arranged(values, ops.inverse(order))


def _placed(values: ArrayLike, plan: ops.Plan) -> Value:
    """The reverse of `_canonical`."""
    order = plan.order()
    return values if order is None else ops.arranged(values, order)


def _lone_mask(index: Index) -> Any:
    """The mask if the index is one boolean array, else None."""
    index = unwrap(index[0] if type(index) is tuple and len(index) == 1 else index)
    return index if isinstance(index, (Tracer, np.ndarray)) and index.dtype.kind == "b" else None


def _where_mask(x: Value, mask: Value, values: Value, op: Any, whole: bool = False) -> Value:
    """Update elements under a mask by selection, not gathering, since their number is unknown. `values` go to each
    element under it, or are those of the `whole` array.
    """
    rows = shape_of(mask)
    shape = shape_of(x)
    if shape[: len(rows)] != rows:
        raise InvalidIndexError(f"boolean index of shape {rows} did not match indexed array of shape {shape}")
    if not whole and len(shape_of(values)) > len(shape) - len(rows):
        raise NonConcreteBooleanIndexError(
            f"x.at[mask] with a traced mask accepts a scalar, values of shape {shape[len(rows) :]}, or values of shape "
            f"{shape} (of which those under the mask are used), got shape {shape_of(values)}: the number "
            "of elements under the mask is unknown. Use where(mask, values, x)"
        )
    values = _fitted(values, shape if whole else shape[len(rows) :])
    new = values if op is None else op.bind(x, values)
    mask = ops.reshape_p.bind(mask, shape=rows + (1,) * (len(shape) - len(rows)))
    return ops.select_p.bind(mask, new, x)


operators.attribute["at"] = property(At)
