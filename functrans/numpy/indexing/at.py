"""``x.at[index]``: changed copies, and reads that say what an index out of bounds means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.array import unwrap, wrap
from ...core.errors import DtypeError, InvalidIndexError, NonConcreteBooleanIndexError, ShapeError
from ...core.trace import Tracer, is_abstract, operators
from ...primitives.elementwise.arithmetic import (
    convert,
    div_p,
    max_p,
    min_p,
    mul_p,
    neg_p,
    select_p,
    sub_p,
)
from ...primitives.elementwise.exp_log import pow_p
from ...primitives.indexing.bounds import checked_mode
from ...primitives.indexing.expressions import Plan, plan_index, take, take_view
from ...primitives.indexing.gather_scatter import scatter_add_p, scatter_p
from ...primitives.indexing.placed_windows import arranged, inverse
from ...primitives.indexing.repeated import all_different
from ...primitives.indexing.scatter_folds import (
    scatter_div_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
)
from ...primitives.structure.create import iota
from ...primitives.structure.dynamic import dynamic_update_slice_p
from ...primitives.structure.linear import add_p, broadcast_to, reshape_p, shape_of, transpose_p
from ...primitives.structure.shape import rev_p
from .rounds import one_by_one


class At:
    """What ``x.at`` gives: index it to name elements."""

    __slots__ = ("_x",)

    def __init__(self, x: Any):
        self._x = x

    def __getitem__(self, index: Any) -> AtIndex:
        return AtIndex(self._x, index)

    def __repr__(self) -> str:
        return f"At({self._x!r})"


class AtIndex:
    """Elements of an array named by an index expression: read them, or get a copy of the array that has them
    changed.

    All methods take `mode`, which says what happens to an index out of bounds, negative ones counted from the
    end first:

    * ``"raise"`` (the default): `IndexOutOfBoundsError`, from a compiled function too.
    * ``"clip"``: the nearest element (``"promise_in_bounds"`` is taken as this).
    * ``"wrap"``: the index modulo the size of the axis.
    * ``"fill"``, ``"drop"``: `get` gives `fill_value` for it, the others leave it out.

    `unique_indices`: promises that no element is named twice, which makes derivatives of `set` and `multiply`
    cheaper. `indices_are_sorted` is accepted for the sake of code written for JAX, and makes no difference.

    Notes
    -----
    Where index arrays name an element repeatedly, all methods take every value, one after the other (as
    ``np.add.at`` does); only `set` keeps the last one, as NumPy's assignment does, and its derivative is that of the
    value kept. So `power` raises to one exponent after the other, and `apply` applies its function again. Values are
    cast to the dtype of the array as by NumPy: `set` casts any value, the others raise `DtypeError` if the result does
    not fit the array's kind (``int`` array, ``float`` value).

    A boolean mask as the only index also takes values of the shape of the whole array, of which those under the mask
    count; so it does where the mask is traced, which else takes a scalar.

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

    def __init__(self, x: Any, index: Any):
        self._x = x
        self._index = index

    def __repr__(self) -> str:
        return f"AtIndex({self._x!r}, {self._index!r})"

    def get(
        self,
        *,
        mode: str | None = None,
        fill_value: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Any:
        """The elements. `fill_value` defaults to NaN, the lowest signed or the highest unsigned integer, or
        True.
        """
        x = unwrap(self._x)
        plan = _plan(x, self._index, mode)
        fill = None if fill_value is None or fill_value != fill_value else fill_value
        return wrap(take(x, plan, fill))

    def set(self, values: Any, **options: Any) -> Any:
        """The array with ``x[index] = values``."""
        return self._changed(values, None, scatter_p, options)

    def add(self, values: Any, **options: Any) -> Any:
        """The array with ``x[index] += values``, repeated indices added each time."""
        return self._changed(values, add_p, scatter_add_p, options)

    def subtract(self, values: Any, **options: Any) -> Any:
        """The array with ``x[index] -= values``, repeated indices subtracted each time."""
        return self._changed(values, sub_p, scatter_add_p, options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """The array with ``x[index] *= values``, repeated indices multiplied each time."""
        return self._changed(values, mul_p, scatter_mul_p, options)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Any:
        """The array with ``x[index] /= values``, repeated indices divided each time."""
        return self._changed(values, div_p, scatter_div_p, options)

    def power(self, values: Any, **options: Any) -> Any:
        """The array with ``x[index] **= values``, repeated indices raised each time, one after the other."""
        return self._changed(values, pow_p, None, options)

    def min(self, values: Any, **options: Any) -> Any:
        """The array with ``x[index] = minimum(x[index], values)``; at ties the derivative is shared
        evenly.
        """
        return self._changed(values, min_p, scatter_min_p, options)

    def max(self, values: Any, **options: Any) -> Any:
        """The array with ``x[index] = maximum(x[index], values)``; at ties the derivative is shared
        evenly.
        """
        return self._changed(values, max_p, scatter_max_p, options)

    def apply(self, func: Callable[[Any], Any], **options: Any) -> Any:
        """The array with ``x[index] = func(x[index])``; `func` is elementwise, and applied again each time that an
        element is named, as by ``np.<ufunc>.at(x, index)``.
        """
        x = unwrap(self._x)
        mode, unique = _options(**options)
        mask = _lone_mask(self._index)
        if mask is not None and is_abstract(mask):
            return wrap(_where_mask(x, mask, convert(unwrap(func(self._x)), x.dtype), None, whole=True))
        plan = _plan(x, self._index, mode)
        if not plan.axes or unique or mask is not None:
            return self.set(func(self.get(mode=mode)), mode=mode, unique_indices=unique)

        def changed(taken: Any) -> Any:
            return _fitted(_updates(x, unwrap(func(wrap(_placed(taken, plan)))), None), plan.shape)

        view = take_view(x, plan)
        new = one_by_one(
            lambda taken: _canonical(changed(taken), plan), view, plan.indices, plan.axes, plan.mode
        )
        return wrap(_put(x, plan, new))

    def _changed(self, values: Any, op: Any, scatter: Any, options: dict[str, Any]) -> Any:
        x = unwrap(self._x)
        mode, unique = _options(**options)
        values = _updates(x, unwrap(values), op)
        mask = _lone_mask(self._index)
        if mask is not None:
            whole = shape_of(values) == shape_of(x) != () and len(shape_of(mask)) > 0
            if whole or is_abstract(mask):
                return wrap(_where_mask(x, mask, values, op, whole))
        plan = _plan(x, self._index, mode)
        if not plan.axes:
            if op is not None:
                values = op.bind(take(x, plan), values)
            return wrap(_put(x, plan, _fitted(values, plan.shape)))
        unique = unique or mask is not None
        return wrap(_scattered(x, plan, _fitted(values, plan.shape), op, scatter, unique))


def _options(
    *, mode: str | None = None, indices_are_sorted: bool = False, unique_indices: bool = False
) -> tuple[str | None, bool]:
    return mode, unique_indices


def _plan(x: Any, index: Any, mode: str | None) -> Plan:
    mode = "raise" if mode is None else checked_mode(mode)
    # A promise of the user is not trusted with memory: what would read beside the array is clipped.
    mode = "clip" if mode == "promise_in_bounds" else mode
    return plan_index(unwrap(index), shape_of(x), mode, is_abstract(x))


# --- values -------------------------------------------------------------------------------------------------


def _updates(x: Any, values: Any, op: Any) -> Any:
    """The values in the dtype of the array, by NumPy's rules of assignment."""
    dtype = x.dtype
    if isinstance(values, Tracer):
        met: Any = values.dtype.type(0).item() if values.weak_type else values.dtype
    elif type(values) in (int, float, complex):
        met = values
    else:
        values = np.asarray(values)
        met = values.dtype
    if op is not None:
        result = np.result_type(dtype, met)
        if op is div_p and result.kind not in "fc":
            result = np.dtype(float)
        if not np.can_cast(result, dtype, "same_kind"):
            raise DtypeError(
                f"x.at[...] of an array of dtype {dtype}: with {_described(met)} the result is {result}, "
                "which does not fit. Convert the array (x.astype(...)) or the values first"
            )
    if isinstance(values, Tracer):
        return convert(values, dtype)
    # From a Python number at once: one that does not fit into the dtype is an OverflowError, as in NumPy.
    return values.astype(dtype, copy=False) if isinstance(values, np.ndarray) else np.asarray(values, dtype)


def _described(met: Any) -> str:
    return f"values of dtype {met}" if isinstance(met, np.dtype) else f"the value {met!r}"


def _fitted(values: Any, shape: tuple[int, ...]) -> Any:
    """Values broadcast to what is assigned to; leading axes of extent 1 may be too many, as in NumPy."""
    own = shape_of(values)
    extra = len(own) - len(shape)
    if extra > 0 and own[:extra] == (1,) * extra:
        values, own = reshape_p.bind(values, shape=own[extra:]), own[extra:]
    if len(own) > len(shape) or any(n not in (1, m) for n, m in zip(own[::-1], shape[::-1])):
        raise ShapeError(
            f"x.at[...]: values of shape {own} do not broadcast to shape {shape}, that of the elements named"
        )
    return broadcast_to(values, shape)


# --- writing ------------------------------------------------------------------------------------------------


def _put(x: Any, plan: Plan, values: Any) -> Any:
    """`x` with what its slices take replaced by values of as many elements."""
    shape, sizes = shape_of(x), plan.sliced_shape()
    if shape_of(values) != sizes:
        values = reshape_p.bind(values, shape=sizes)
    if plan.flipped:
        values = rev_p.bind(values, dimensions=plan.flipped)
    if sizes == shape:
        return values.copy() if isinstance(values, np.ndarray) else values
    if all(step == 1 for step in plan.strides):
        return dynamic_update_slice_p.bind(x, values, *plan.starts)
    axes = tuple([d for d, (n, m) in enumerate(zip(shape, sizes)) if n != m])
    common = tuple([sizes[d] for d in axes])
    indices = [
        add_p.bind(mul_p.bind(iota(common, i), np.int64(plan.strides[d])), np.int64(plan.starts[d]))
        for i, d in enumerate(axes)
    ]
    order = (*axes, *[d for d in range(len(shape)) if d not in axes])
    values = transpose_p.bind(values, permutation=order)
    return scatter_p.bind(x, values, *indices, axes=axes, mode="promise_in_bounds", unique_indices=True)


def _scattered(x: Any, plan: Plan, values: Any, op: Any, scatter: Any, unique: bool) -> Any:
    """`x` with values combined into the elements that index arrays name."""
    view, values = take_view(x, plan), _canonical(values, plan)
    if plan.mode == "promise_in_bounds":  # constants, looked at while tracing
        unique = unique or all_different(plan.view, plan.indices, plan.axes, plan.mode)
    if scatter is None:

        def step(taken: Any) -> Any:
            return op.bind(taken, values)

        one = x.dtype.type(1)
        return _put(x, plan, one_by_one(step, view, plan.indices, plan.axes, plan.mode, one, unique))
    if op is sub_p:
        values = neg_p.bind(values)
    params = {"axes": plan.axes, "mode": plan.mode, "unique_indices": unique}
    return _put(x, plan, scatter.bind(view, values, *plan.indices, **params))


def _canonical(values: Any, plan: Plan) -> Any:
    """Values of the result's shape with the axes of the index arrays first."""
    order = plan.order()
    return values if order is None else arranged(values, inverse(order))


def _placed(values: Any, plan: Plan) -> Any:
    """The reverse of `_canonical`."""
    order = plan.order()
    return values if order is None else arranged(values, order)


def _lone_mask(index: Any) -> Any:
    """The mask, where the index is one boolean array; else None."""
    index = unwrap(index[0] if type(index) is tuple and len(index) == 1 else index)
    return index if isinstance(index, (Tracer, np.ndarray)) and index.dtype.kind == "b" else None


def _where_mask(x: Any, mask: Any, values: Any, op: Any, whole: bool = False) -> Any:
    """Elements under a mask: chosen, not gathered, since how many they are is unknown. `values` go to each element
    under it, or are those of the `whole` array.
    """
    rows = shape_of(mask)
    shape = shape_of(x)
    if shape[: len(rows)] != rows:
        raise InvalidIndexError(f"boolean index of shape {rows} did not match indexed array of shape {shape}")
    if not whole and len(shape_of(values)) > len(shape) - len(rows):
        raise NonConcreteBooleanIndexError(
            f"x.at[mask] with a traced mask takes a scalar, values of shape {shape[len(rows) :]}, or values of shape "
            f"{shape} (of which those under the mask count), got shape {shape_of(values)}: how many elements the mask "
            "names is unknown. Use where(mask, values, x)"
        )
    values = _fitted(values, shape if whole else shape[len(rows) :])
    new = values if op is None else op.bind(x, values)
    mask = reshape_p.bind(mask, shape=rows + (1,) * (len(shape) - len(rows)))
    return select_p.bind(mask, new, x)


operators.property["at"] = At
