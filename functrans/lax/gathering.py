"""Gather and scatter in their general form: windows of an array at places that are data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.aval import aval_of
from ..core.errors import ArgumentError, ArgumentValueError, DtypeError, ShapeError
from ..core.primitive import Primitive
from ..numpy.dispatch import array_operand
from ..primitives.axes import as_shape, many_axes, one_axis
from ..primitives.bounds import GatherScatterMode, checked_mode
from ..primitives.elementwise import neg_p
from ..primitives.index import (
    gather_p,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
)
from ..primitives.linear import broadcast_to, reshape_p, shape_of
from ..primitives.operands import finish
from ..primitives.placed_windows import Axis, Windows, arranged, check_sizes, index_arrays, inverse
from .elementwise import operands

__all__ = [
    "GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers", "gather", "index_take", "scatter",
    "scatter_add", "scatter_apply", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub",
]  # fmt: skip


class GatherDimensionNumbers(NamedTuple):
    """Which axes are what in a gather.

    Attributes
    ----------
    offset_dims : tuple of int
        Where the axes of the windows stand in the result, in ascending order.
    collapsed_slice_dims : tuple of int
        Axes of the operand that windows have extent 1 in, and that are dropped.
    start_index_map : tuple of int
        The axis of the operand for each column of the start indices.
    operand_batching_dims : tuple of int
        Axes of the operand along which the index runs with an axis of the start indices; they are dropped, too.
    start_indices_batching_dims : tuple of int
        Those axes of the start indices.
    """

    offset_dims: Sequence[int]
    collapsed_slice_dims: Sequence[int]
    start_index_map: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    start_indices_batching_dims: Sequence[int] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which axes are what in a scatter.

    Attributes
    ----------
    update_window_dims : tuple of int
        The axes of the updates that are those of the windows, in ascending order.
    inserted_window_dims : tuple of int
        Axes of the operand that windows have extent 1 in, and that the updates lack.
    scatter_dims_to_operand_dims : tuple of int
        The axis of the operand for each column of the indices.
    operand_batching_dims : tuple of int
        Axes of the operand along which the index runs with an axis of the indices; the updates lack them, too.
    scatter_indices_batching_dims : tuple of int
        Those axes of the indices.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


# --- reading dimension numbers ------------------------------------------------------------------------------


class _Numbers(NamedTuple):
    """Either kind of dimension numbers, checked."""

    places: tuple[int, ...]
    dropped: tuple[int, ...]
    columns: tuple[int, ...]
    own_batch: tuple[int, ...]
    index_batch: tuple[int, ...]


def _numbers(name: str, given: Any, kind: type, ndim: int, index: tuple[int, ...]) -> _Numbers:
    if not isinstance(given, kind):
        raise ArgumentError(f"{name}: dimension_numbers must be {kind.__name__}, got {type(given).__name__}")
    places, dropped, columns, own, other = given
    found = _Numbers(
        as_shape(places, name),
        many_axes(dropped, ndim, name),
        many_axes(columns, ndim, name),
        many_axes(own, ndim, name),
        many_axes(other, len(index) - 1, name),
    )
    if list(found.places) != sorted(set(found.places)):
        raise ArgumentValueError(f"{name}: {kind._fields[0]} must ascend, got {found.places}")  # type: ignore[attr-defined]
    if len(found.columns) != index[-1]:
        raise ArgumentValueError(
            f"{name}: indices of shape {index} have {index[-1]} columns along their last axis, but "
            f"{kind._fields[2]} names {len(found.columns)} axes"  # type: ignore[attr-defined]
        )
    if {*found.dropped, *found.columns} & {*found.own_batch}:
        raise ArgumentValueError(
            f"{name}: operand_batching_dims {found.own_batch} are named for something else, too"
        )
    if len(found.own_batch) != len(found.index_batch):
        raise ArgumentValueError(
            f"{name}: {found.own_batch} and {found.index_batch}: want as many batching axes"
        )
    return found


def _windows(
    name: str, shape: tuple[int, ...], index: tuple[int, ...], numbers: _Numbers, sizes: tuple[int, ...]
) -> Windows:
    """The windows, if their extents fit."""
    kept = [d for d in range(len(shape)) if d not in numbers.dropped and d not in numbers.own_batch]
    count = len(index) - 1 + len(kept)
    if len(numbers.places) != len(kept) or any(not 0 <= p < count for p in numbers.places):
        raise ArgumentValueError(
            f"{name}: windows of an operand of shape {shape} keep the axes {tuple(kept)}; want as many places among "
            f"the {count} axes, got {numbers.places}"
        )
    for d, (n, size) in enumerate(zip(shape, sizes)):
        if d not in kept and size > 1:
            raise ShapeError(f"{name}: axis {d} is dropped, so windows have extent 1 there, got {size}")
        if not 0 <= size <= n:
            raise ShapeError(f"{name}: windows of extent {size} along axis {d} do not fit shape {shape}")
    for d, i in zip(numbers.own_batch, numbers.index_batch):
        if shape[d] != index[i]:
            raise ShapeError(f"{name}: batching axes {d} and {i} have extents {shape[d]} and {index[i]}")
    axes = [
        Axis(
            numbers.columns.index(d) if d in numbers.columns else None,
            numbers.index_batch[numbers.own_batch.index(d)] if d in numbers.own_batch else None,
            sizes[d],
            kept.index(d) if d in kept else None,
        )
        for d in range(len(shape))
    ]
    return Windows(shape, tuple(axes), index[:-1], numbers.places)


def _some_index(x: Any, windows: Windows) -> tuple[Any, Windows]:
    """With an axis of extent 1 in front, where no axis needs an index array."""
    if windows.indexed():
        return x, windows
    axes = (Axis(None, None, 1, None), *windows.axes)
    return reshape_p.bind(x, shape=(1, *windows.shape)), windows._replace(
        shape=(1, *windows.shape), axes=axes
    )


def _indices(name: str, given: Any) -> Any:
    value = array_operand(given, name, 1)
    aval = aval_of(value)
    if aval.dtype.kind not in "iu":
        raise DtypeError(f"{name}: indices must be integers, got {aval.dtype}")
    if not aval.shape:
        raise ShapeError(f"{name}: indices need a last axis, with a column for each axis they index")
    return value


# --- gather -------------------------------------------------------------------------------------------------


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: GatherScatterMode | str | None = None,
    fill_value: Any = None,
) -> Any:
    """Windows of an array, which begin where data says.

    Parameters
    ----------
    operand : array_like
    start_indices : array_like of int, shape (..., k)
        Each row is where a window begins, in the axes ``dimension_numbers.start_index_map``; it begins at 0 in others.
    dimension_numbers : GatherDimensionNumbers
    slice_sizes : sequence of int
        The extents of the windows, one for each axis of `operand`.
    unique_indices, indices_are_sorted : bool
        Promises, which make no difference.
    mode : GatherScatterMode or str, optional
        Of windows that do not lie within the array as a whole. ``"fill"`` (the default): they are `fill_value`.
        ``"clip"`` and ``"promise_in_bounds"``: they are moved until they do. Negative indices are out of bounds in
        these modes. ``"raise"``: `IndexOutOfBoundsError`, where negative indices count from the end. ``"wrap"``:
        every index modulo the extent.
    fill_value : optional
        NaN, the lowest signed or the highest unsigned integer, or True by default.

    Returns
    -------
    Array
        The axes ``dimension_numbers.offset_dims`` are those of the windows, the others those of `start_indices` but
        the last.

    Raises
    ------
    ArgumentError, ArgumentValueError, ShapeError
        If the dimension numbers do not fit.
    IndexOutOfBoundsError
        In mode ``"raise"``, from a kernel too.

    Notes
    -----
    Differentiable in `operand`, to any order; a window that is filled depends on nothing. For index expressions there
    are ``x[i, j]`` and ``x.at[i, j].get(mode=...)``, which are easier to read.

    References
    ----------
    Gather of XLA's operation semantics, https://openxla.org/xla/operation_semantics#gather

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> rows = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(), start_index_map=(0,))
    >>> lax.gather(np.arange(6.0), np.array([[0], [3], [5]]), rows, (2,), mode="clip")
    Array([[0., 1.],
           [3., 4.],
           [4., 5.]])
    """
    (x,) = operands("gather", operand)
    indices = _indices("lax.gather", start_indices)
    sizes = as_shape(slice_sizes, "lax.gather: slice_sizes")
    shape = shape_of(x)
    if len(sizes) != len(shape):
        raise ShapeError(f"lax.gather: want {len(shape)} slice_sizes for shape {shape}, got {sizes}")
    numbers = _numbers("lax.gather", dimension_numbers, GatherDimensionNumbers, len(shape), shape_of(indices))
    return finish(_gathered(x, indices, numbers, sizes, mode, fill_value))


def _gathered(
    x: Any, indices: Any, numbers: _Numbers, sizes: tuple[int, ...], mode: Any, fill_value: Any
) -> Any:
    way = checked_mode("fill" if mode is None else mode)
    x, windows = _some_index(x, _windows("lax.gather", shape_of(x), shape_of(indices), numbers, sizes))
    arrays, way = index_arrays(windows, indices, way)
    if way not in ("fill", "drop"):
        check_sizes("lax.gather", windows)
    fill = {"fill_value": fill_value} if way in ("fill", "drop") else {}
    out = gather_p.bind(x, *arrays, axes=windows.indexed(), mode=way, **fill)
    return arranged(out, windows.order())


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Any:
    """Elements at indices along some axes, the other axes whole and behind.

    Parameters
    ----------
    src : array_like
    idxs : sequence of array_like of int, shape (n,)
        One for each of `axes`; taken modulo the extent.
    axes : sequence of int

    Returns
    -------
    Array, shape (n, ...)

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.index_take(np.arange(6).reshape(2, 3), (np.array([0, 1, 2]),), (1,))
    Array([[0, 3],
           [1, 4],
           [2, 5]])
    """
    (x,) = operands("index_take", src)
    places = many_axes(axes, len(shape_of(x)), "lax.index_take")
    arrays = [array_operand(i, "index_take", 1) for i in idxs]
    gather_p.abstract(aval_of(x), *map(aval_of, arrays), axes=places, mode="wrap")
    return finish(gather_p.bind(x, *arrays, axes=places, mode="wrap"))


# --- scatter ------------------------------------------------------------------------------------------------


def _window_sizes(
    name: str, shape: tuple[int, ...], updates: tuple[int, ...], numbers: _Numbers
) -> tuple[int, ...]:
    """The extents of the windows, which are those of the updates."""
    extents = iter([updates[one_axis(p, len(updates), name)] for p in numbers.places])
    dropped = {*numbers.dropped, *numbers.own_batch}
    return tuple([1 if d in dropped else next(extents, 1) for d in range(len(shape))])


def _scattered(
    name: str,
    prim: Primitive,
    given: Sequence[Any],
    dimension_numbers: Any,
    unique_indices: bool,
    mode: Any,
) -> Any:
    """`prim` of operand and updates, at the places that the indices say."""
    name = f"lax.{name}"
    x, updates, indices = given
    shape = shape_of(x)
    numbers = _numbers(name, dimension_numbers, ScatterDimensionNumbers, len(shape), shape_of(indices))
    sizes = _window_sizes(name, shape, shape_of(updates), numbers)
    x, windows = _some_index(x, _windows(name, shape, shape_of(indices), numbers, sizes))
    arrays, way = index_arrays(windows, indices, checked_mode("fill" if mode is None else mode))
    expected = [*windows.batch]
    for place, window in zip(numbers.places, [a.size for a in windows.axes if a.window is not None]):
        expected.insert(place, window)
    if shape_of(updates) != tuple(expected):
        raise ShapeError(f"{name}: updates have shape {shape_of(updates)}, want {tuple(expected)}")
    updates = arranged(updates, inverse(windows.order()))
    axes = windows.indexed()
    out = prim.bind(x, updates, *arrays, axes=axes, mode=way, unique_indices=bool(unique_indices))
    return reshape_p.bind(out, shape=shape) if shape_of(out) != shape else out


def _given(name: str, operand: Any, scatter_indices: Any, updates: Any) -> tuple[Any, Any, Any]:
    """Operand and updates in the dtype they share, and the indices."""
    x, new = array_operand(operand, name), array_operand(updates, name, 2)
    if x.dtype != new.dtype:
        raise DtypeError(
            f"lax.{name}: operand and updates have different dtypes ({x.dtype}, {new.dtype}); convert one with "
            "lax.convert_element_type"
        )
    return x, new, _indices(f"lax.{name}", scatter_indices)


_DOC = """{summary}

    Parameters
    ----------
    operand : array_like
    scatter_indices : array_like of int, shape (..., k)
        Each row is where a window begins, in the axes ``dimension_numbers.scatter_dims_to_operand_dims``; it begins at
        0 in others.
    updates : array_like
        Of the dtype of `operand`. The axes ``dimension_numbers.update_window_dims`` are those of the windows, the
        others those of `scatter_indices` but the last.
    dimension_numbers : ScatterDimensionNumbers
    indices_are_sorted : bool
        A promise, which makes no difference.
    unique_indices : bool
        A promise that no element is named twice, which makes derivatives cheaper.
    mode : GatherScatterMode or str, optional
        Of windows that do not lie within the array as a whole. ``"fill"`` or ``"drop"`` (the default): they are left
        out. ``"clip"`` and ``"promise_in_bounds"``: they are moved until they do. Negative indices are out of bounds in
        these modes. ``"raise"``: `IndexOutOfBoundsError`, where negative indices count from the end. ``"wrap"``:
        every index modulo the extent.

    Returns
    -------
    Array
        Of the shape and dtype of `operand`.

    Raises
    ------
    ArgumentError, ArgumentValueError, ShapeError, DtypeError
        If dimension numbers, shapes or dtypes do not fit.
    IndexOutOfBoundsError
        In mode ``"raise"``, from a kernel too.

    Notes
    -----
    {notes} Differentiable in `operand` and `updates`, to any order.
    For index expressions there is ``x.at[i, j].{method}(...)``, which is easier to read.

    References
    ----------
    Scatter of XLA's operation semantics, https://openxla.org/xla/operation_semantics#scatter
    """


def _scatter(
    name: str, prim: Primitive, method: str, summary: str, notes: str, negated: bool = False
) -> Callable[..., Any]:
    def function(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: GatherScatterMode | str | None = None,
    ) -> Any:
        x, new, indices = _given(name, operand, scatter_indices, updates)
        new = neg_p.bind(new) if negated else new
        return finish(_scattered(name, prim, (x, new, indices), dimension_numbers, unique_indices, mode))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(summary=summary, notes=notes, method=method)
    return function


_TIES = "Where elements are equal the derivative is shared evenly."
scatter = _scatter(
    "scatter", scatter_p, "set", "The array with windows replaced by updates.",
    "Of several updates of one element the last one stays (in row-major order of the indices, then within the window), "
    "and the derivative is its.",
)  # fmt: skip
scatter_add = _scatter(
    "scatter_add",
    scatter_add_p,
    "add",
    "The array with updates added to windows.",
    "Repeated indices add up.",
)
scatter_sub = _scatter(
    "scatter_sub", scatter_add_p, "subtract", "The array with updates subtracted from windows.",
    "Repeated indices subtract each time.", negated=True,
)  # fmt: skip
scatter_mul = _scatter(
    "scatter_mul", scatter_mul_p, "multiply", "The array with windows multiplied by updates.",
    "Repeated indices multiply each time.",
)  # fmt: skip
scatter_min = _scatter(
    "scatter_min",
    scatter_min_p,
    "min",
    "The array with the smaller of elements and updates in windows.",
    _TIES,
)
scatter_max = _scatter(
    "scatter_max",
    scatter_max_p,
    "max",
    "The array with the larger of elements and updates in windows.",
    _TIES,
)


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode | str | None = None,
) -> Any:
    """The array with a function applied to its elements in windows.

    Parameters
    ----------
    operand : array_like
    scatter_indices : array_like of int, shape (..., k)
    func : callable
        Elementwise, keeping the dtype. Applied once to each element, also where it is named repeatedly.
    dimension_numbers : ScatterDimensionNumbers
    update_shape : sequence of int
        The shape that updates would have. By default the windows have one element.
    indices_are_sorted, unique_indices, mode
        See `scatter`.

    Returns
    -------
    Array
        Of the shape and dtype of `operand`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> one = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_apply(np.arange(4.0), np.array([[1], [3]]), lambda x: x**2 + 10, one)
    Array([ 0., 11.,  2., 19.])
    """
    x = array_operand(operand, "scatter_apply")
    indices = _indices("lax.scatter_apply", scatter_indices)
    shape, index = shape_of(x), shape_of(indices)
    numbers = _numbers("lax.scatter_apply", dimension_numbers, ScatterDimensionNumbers, len(shape), index)
    updates = as_shape(update_shape, "lax.scatter_apply: update_shape") or index[:-1] + (1,) * len(
        numbers.places
    )
    sizes = _window_sizes("lax.scatter_apply", shape, updates, numbers)
    taken = _gathered(x, indices, numbers, sizes, mode, None)
    new = array_operand(func(finish(taken)), "scatter_apply")
    if new.dtype != x.dtype:
        raise DtypeError(f"lax.scatter_apply: the function makes {new.dtype} of {x.dtype}")
    new = broadcast_to(new, shape_of(taken))
    return finish(
        _scattered("scatter_apply", scatter_p, (x, new, indices), dimension_numbers, unique_indices, mode)
    )
