"""General scatter: change windows of an array at positions that are data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..arrays.array import Array
from ..core import DtypeError, Primitive, ShapeError
from ..core.values import ArrayLike, Value
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..numpy.indexing.at import one_by_one
from ..primitives import ops
from ..primitives.ops import as_shape, finish, one_axis, shape_of
from . import gathering

__all__ = [
    "scatter", "scatter_add", "scatter_apply", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub",
]  # fmt: skip


def _window_sizes(
    name: str, shape: tuple[int, ...], updates: tuple[int, ...], numbers: gathering.GatherScatterNumbers
) -> tuple[int, ...]:
    """The extents of the windows, read from the updates."""
    extents = iter([updates[one_axis(p, len(updates), name)] for p in numbers.places])
    dropped = {*numbers.dropped, *numbers.own_batch}
    return tuple([1 if d in dropped else next(extents, 1) for d in range(len(shape))])


def _scattered(
    name: str,
    prim: Primitive,
    given: Sequence[Value],
    dimension_numbers: Any,
    unique_indices: bool,
    mode: str | None,
) -> Value:
    """Bind `prim` to operand and updates at these indices."""
    name = f"lax.{name}"
    x, updates, indices = given
    shape = shape_of(x)
    numbers = gathering.read_numbers(
        name, dimension_numbers, gathering.ScatterDimensionNumbers, len(shape), shape_of(indices)
    )
    sizes = _window_sizes(name, shape, shape_of(updates), numbers)
    x, windows = gathering.with_some_index(
        x, gathering.windows_of(name, shape, shape_of(indices), numbers, sizes)
    )
    arrays, way = ops.index_arrays(windows, indices, ops.checked_mode("fill" if mode is None else mode))
    expected = [*windows.batch]
    for place, window in zip(numbers.places, [a.size for a in windows.axes if a.window is not None]):
        expected.insert(place, window)
    if shape_of(updates) != tuple(expected):
        raise ShapeError(f"{name}: updates have shape {shape_of(updates)}, expected {tuple(expected)}")
    updates = ops.arranged(updates, ops.inverse(windows.order()))
    axes = windows.indexed()
    out = prim.bind(x, updates, *arrays, axes=axes, mode=way, unique_indices=bool(unique_indices))
    return ops.reshape_p.bind(out, shape=shape) if shape_of(out) != shape else out


def _given(name: str, operand: Value, scatter_indices: Value, updates: Value) -> tuple[Value, Value, Value]:
    """Check that operand and updates have one dtype; return them and the indices."""
    x, new = array_operand(operand, name), array_operand(updates, name, 2)
    if x.dtype != new.dtype:
        raise DtypeError(
            f"lax.{name}: operand and updates have different dtypes ({x.dtype}, {new.dtype}); convert one with "
            "lax.convert_element_type"
        )
    return x, new, gathering.index_operand(f"lax.{name}", scatter_indices)


_DOC = """{summary}

    Parameters
    ----------
    operand : array_like
    scatter_indices : array_like of int, shape (..., k)
        Each row is the start of a window in the axes ``dimension_numbers.scatter_dims_to_operand_dims``; it starts at
        0 in others.
    updates : array_like
        Must have the dtype of `operand`. The axes ``dimension_numbers.update_window_dims`` are the window axes; the
        others are those of `scatter_indices` except the last.
    dimension_numbers : ScatterDimensionNumbers
    indices_are_sorted : bool
        A promise that has no effect.
    unique_indices : bool
        A promise that no element occurs twice, which makes derivatives cheaper.
    mode : GatherScatterMode or str, optional
        What to do with windows that are not entirely in bounds. ``"fill"`` or ``"drop"`` (the default) skips them.
        ``"clip"`` and ``"promise_in_bounds"`` move them into bounds. In these modes negative indices are out of bounds.
        ``"raise"`` raises `IndexOutOfBoundsError`, and negative indices count from the end. ``"wrap"`` takes every
        index modulo the extent.

    Returns
    -------
    Array
        With the shape and dtype of `operand`.

    Raises
    ------
    ArgumentError, ArgumentValueError, ShapeError, DtypeError
        If dimension numbers, shapes or dtypes do not match.
    IndexOutOfBoundsError
        In mode ``"raise"``, also from a compiled kernel.

    Notes
    -----
    {notes} Differentiable in `operand` and `updates`, to any order.
    Where it suffices, an index expression, ``x.at[i, j].{method}(...)``, is easier to read.

    References
    ----------
    Scatter of XLA's operation semantics, https://openxla.org/xla/operation_semantics#scatter

    Examples
    --------
    Scatter single elements:

    >>> from functrans import lax
    >>> import numpy as np
    >>> elements = lax.ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> places, updates = np.array([[0], [2]]), np.array([5.0, 2.0])
    >>> lax.{name}(np.array([1.0, 2.0, 3.0]), places, updates, elements)
    {example}
    """


def _scatter(
    name: str, prim: Primitive, method: str, summary: str, notes: str, example: str, negated: bool = False
) -> Callable[..., Any]:
    def function(
        operand: Value,
        scatter_indices: Value,
        updates: Value,
        dimension_numbers: gathering.ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: ops.GatherScatterMode | str | None = None,
    ) -> Value:
        x, new, indices = _given(name, operand, scatter_indices, updates)
        new = ops.neg_p.bind(new) if negated else new
        return finish(_scattered(name, prim, (x, new, indices), dimension_numbers, unique_indices, mode))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(name=name, summary=summary, notes=notes, method=method, example=example)
    return checked(function)


_TIES = "Ties share the derivative evenly."
scatter = _scatter(
    "scatter", ops.scatter_p, "set", "Replace windows of an array by updates.",
    "Of several updates of one element the last one is used (in row-major order of the indices, then within the "
    "window), also by the derivative.",
    "Array([5., 2., 2.])",
)  # fmt: skip
scatter_add = _scatter(
    "scatter_add",
    ops.scatter_add_p,
    "add",
    "Add updates to windows of an array.",
    "Updates of repeated indices add up.",
    "Array([6., 2., 5.])",
)
scatter_sub = _scatter(
    "scatter_sub", ops.scatter_add_p, "subtract", "Subtract updates from windows of an array.",
    "Updates of repeated indices are all subtracted.", "Array([-4.,  2.,  1.])", negated=True,
)  # fmt: skip
scatter_mul = _scatter(
    "scatter_mul", ops.scatter_mul_p, "multiply", "Multiply windows of an array by updates.",
    "Updates of repeated indices are all multiplied.", "Array([5., 2., 6.])",
)  # fmt: skip
scatter_min = _scatter(
    "scatter_min",
    ops.scatter_min_p,
    "min",
    "Replace elements in windows of an array by smaller updates.",
    _TIES,
    "Array([1., 2., 2.])",
)
scatter_max = _scatter(
    "scatter_max",
    ops.scatter_max_p,
    "max",
    "Replace elements in windows of an array by larger updates.",
    _TIES,
    "Array([5., 2., 3.])",
)


@checked
def scatter_apply(
    operand: ArrayLike,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: gathering.ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: ops.GatherScatterMode | str | None = None,
) -> Array:
    """Apply a function to the elements of an array in windows.

    Parameters
    ----------
    operand : array_like
    scatter_indices : array_like of int, shape (..., k)
    func : callable
        Elementwise, with a result of the same dtype. Applied once for each time that an element occurs.
    dimension_numbers : ScatterDimensionNumbers
    update_shape : sequence of int
        The shape that updates would have. By default, windows have one element.
    indices_are_sorted, unique_indices, mode
        See `scatter`.

    Returns
    -------
    Array
        With the shape and dtype of `operand`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> one = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_apply(np.arange(4.0), np.array([[1], [3]]), lambda x: x**2 + 10, one)
    Array([ 0., 11.,  2., 19.])
    """
    x = array_operand(operand, "scatter_apply")
    indices = gathering.index_operand("lax.scatter_apply", scatter_indices)
    shape, index = shape_of(x), shape_of(indices)
    numbers = gathering.read_numbers(
        "lax.scatter_apply", dimension_numbers, gathering.ScatterDimensionNumbers, len(shape), index
    )
    updates = as_shape(update_shape, "lax.scatter_apply: update_shape") or index[:-1] + (1,) * len(
        numbers.places
    )
    sizes = _window_sizes("lax.scatter_apply", shape, updates, numbers)
    way = ops.checked_mode("fill" if mode is None else mode)
    x, windows = gathering.with_some_index(
        x, gathering.windows_of("lax.scatter_apply", shape, index, numbers, sizes)
    )
    arrays, way = ops.index_arrays(windows, indices, way)
    order = windows.order()

    def step(taken: Any) -> Any:
        new = array_operand(func(finish(ops.arranged(taken, order))), "scatter_apply")
        if new.dtype != x.dtype:
            raise DtypeError(
                f"lax.scatter_apply: the function must preserve the dtype {x.dtype}, but returned {new.dtype}"
            )
        return ops.arranged(
            ops.broadcast_to(new, tuple([shape_of(taken)[d] for d in order])), ops.inverse(order)
        )

    axes = windows.indexed()
    out = one_by_one(step, x, arrays, axes, way, unique=unique_indices)
    return finish(ops.reshape_p.bind(out, shape=shape))
