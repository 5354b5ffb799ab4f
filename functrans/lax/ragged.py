"""Products of rows in groups: each group of rows of one operand has a matrix of its own.

The rows are moved into tiles of equally many rows, none of which has rows of two groups, so that one loop of matrix
products over the tiles does all of them: the work grows with the rows and with the groups, not with their product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ..api.vmap import vmap
from ..arrays.array import Array
from ..core import ArgumentValueError, DtypeError, NoRuleError, ShapeError, aval_of
from ..core.values import ArrayLike, DTypeLike, Value
from ..frontend.checked import checked
from ..numpy.creation.filled import zeros
from ..numpy.creation.ranges import arange
from ..numpy.elementwise.selection import clip, where
from ..numpy.shaping.reshaping import moveaxis
from ..numpy.sorting.sorting import searchsorted
from ..primitives import ops
from ..primitives.ops import as_shape, dtype_of, finish, shape_of
from ..runtime.records import NamedTuple
from .arrays import concatenate, reshape, transpose
from .control_flow.loops import scan
from .elementwise import convert_element_type
from .reducing import cumsum, dot_general, product_operands
from .slicing import dynamic_index_in_dim, dynamic_update_index_in_dim

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general"]

#: The most rows of a tile: with fewer, products are slow; with more, there are more empty rows.
_TILE = 64


class RaggedDotDimensionNumbers(NamedTuple):
    """The meaning of each axis of the operands of `ragged_dot_general`.

    Attributes
    ----------
    dot_dimension_numbers : ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
        As for `dot_general`.
    lhs_ragged_dimensions : tuple of int
        The one axis of the left operand that is divided into groups.
    rhs_group_dimensions : tuple of int
        The axis of the right operand with an index for each group, where the ragged axis is neither contracted nor a
        batch axis; else ``()``.
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


@checked
def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply each group of consecutive rows by the matrix of the group.

    Parameters
    ----------
    lhs : array_like, shape (m, k)
        Different dtypes are promoted.
    rhs : array_like, shape (g, k, n)
        A matrix for each group.
    group_sizes : array_like of int, shape (g,)
        How many rows each group has; the first has the first rows. None of them may be negative.
    precision
        Accepted, without effect.
    preferred_element_type : dtype-like, optional
        The dtype to compute in.
    group_offset : None
        Not supported, as in JAX on a CPU.
    out_sharding : optional
        Accepted, without effect, if it names the CPU.

    Returns
    -------
    Array, shape (m, n)
        Rows after those of the last group are zero. Groups end with the last row of `lhs`.

    Raises
    ------
    ShapeError, DtypeError
        If shapes do not fit together, or the sizes are not integers.
    NoRuleError
        If `group_offset` is given.

    Notes
    -----
    The cost is that of a product of ``m + t * g`` rows with one matrix, where `t` is the number of rows of a tile: half
    of those that a group has on average, and at most 64. Differentiable in both operands, to any order.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> rows, matrices = np.arange(8.0).reshape(4, 2), np.array([[[1.0], [1.0]], [[10.0], [0.0]]])
    >>> lax.ragged_dot(rows, matrices, np.array([1, 2]))
    Array([[ 1.],
           [20.],
           [40.],
           [ 0.]])
    """
    x, y, sizes = _ragged_operands("ragged_dot", lhs, rhs, group_sizes, preferred_element_type, group_offset)
    if (len(shape_of(x)), len(shape_of(y)), len(shape_of(sizes))) != (2, 3, 1):
        raise ShapeError(
            f"lax.ragged_dot: expected shapes (m, k), (g, k, n) and (g,), got {shape_of(x)}, {shape_of(y)} and "
            f"{shape_of(sizes)}; see lax.ragged_dot_general for other axes"
        )
    return _by_group(_read("ragged_dot", x, y, sizes, (((1,), (1,)), ((), ())), (0,), (0,)), x, y, sizes)


@checked
def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply arrays as `dot_general` does, where one axis of the left operand is divided into groups.

    Parameters
    ----------
    lhs, rhs : array_like
        Different dtypes are promoted.
    group_sizes : array_like of int, shape (g,) or (..., g)
        The sizes of consecutive groups along the ragged axis, none negative. There may be other sizes for each index of
        the axes before it: the batch axes and those axes of its kind (free or contracted) that come before.
    ragged_dot_dimension_numbers : RaggedDotDimensionNumbers
        It says which of these the ragged axis is. A *free* axis: the right operand has an axis of `g`, and each group
        is multiplied by its part, as in `ragged_dot`. A *contracted* axis: a sum for each group, along a new first
        axis of the result. A *batch* axis: `dot_general`, whatever the groups are.
    precision
        Accepted, without effect.
    preferred_element_type : dtype-like, optional
        The dtype to compute in.
    group_offset : None
        Not supported, as in JAX on a CPU.
    out_sharding : optional
        Accepted, without effect, if it names the CPU.

    Returns
    -------
    Array
        With the axes of `dot_general`: batch, free axes of `lhs`, free axes of `rhs`, without that of the groups.

    Raises
    ------
    ArgumentError, ArgumentValueError, ShapeError, DtypeError
        If dimension numbers or shapes do not fit together, or the sizes are not integers.
    NoRuleError
        If `group_offset` is given.

    Notes
    -----
    For cost and derivatives see `ragged_dot`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> rows = np.arange(8.0).reshape(4, 2)
    >>> contracted = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> lax.ragged_dot_general(rows, rows[:, :1], np.array([1, 2]), contracted)  # sums over rows: 0, and 1 with 2
    Array([[[ 0.],
            [ 0.]],
    <BLANKLINE>
           [[20.],
            [26.]]])
    """
    name = "ragged_dot_general"
    x, y, sizes = _ragged_operands(name, lhs, rhs, group_sizes, preferred_element_type, group_offset)
    groups = _read(name, x, y, sizes, *ragged_dot_dimension_numbers)
    if groups.kind == "batch":
        return dot_general(x, y, groups.numbers)
    return (_by_group if groups.kind == "free" else _sum_by_group)(groups, x, y, sizes)


# --- reading the arguments ----------------------------------------------------------------------------------


def _ragged_operands(
    name: str, lhs: Any, rhs: Any, group_sizes: Any, preferred: Any, group_offset: Any
) -> tuple[Value, Value, Value]:
    if group_offset is not None:
        raise NoRuleError(
            f"lax.{name}: group_offset is not supported (nor is it by JAX on a CPU): pass the sizes and matrices of "
            "the groups to compute"
        )
    x, y = product_operands(name, lhs, rhs, preferred)
    sizes = ops.operand(group_sizes, f"lax.{name}", 2)
    if dtype_of(sizes).kind not in "iu":
        raise DtypeError(f"lax.{name}: group_sizes must be integers, got {dtype_of(sizes)}")
    if not shape_of(sizes):
        raise ShapeError(f"lax.{name}: group_sizes must have an axis, with the size of each group")
    return x, y, convert_element_type(sizes, int)


class _Axes(NamedTuple):
    """Which axes are what. `kind` is that of the ragged axis; `before` are those of its kind that come before it."""

    kind: str
    numbers: Any
    ragged: int
    before: tuple[int, ...]
    group: tuple[int, ...]
    out: tuple[int, ...]


def _read(name: str, x: Value, y: Value, sizes: Value, dot: Any, ragged: Any, group: Any) -> _Axes:
    where = f"lax.{name}: ragged_dot_dimension_numbers"
    try:
        (a, b), (c, d) = dot
    except (TypeError, ValueError):
        raise ArgumentValueError(
            f"{where}: dot_dimension_numbers must be two pairs of axes, got {dot!r}"
        ) from None
    numbers = ((as_shape(a, where), as_shape(b, where)), (as_shape(c, where), as_shape(d, where)))
    (contract, _), (batch, _) = numbers
    out = ops.dot_general_p.abstract(aval_of(x), aval_of(y), dimension_numbers=numbers).shape
    kinds = {"batch": batch, "contracted": contract}
    kinds["free"] = tuple([i for i in range(len(shape_of(x))) if i not in (*batch, *contract)])
    (axis,) = _axes_of(where, "lhs_ragged_dimensions", ragged, 1, len(shape_of(x)))
    kind = next(k for k, axes in kinds.items() if axis in axes)
    group_axis = _axes_of(where, "rhs_group_dimensions", group, int(kind == "free"), len(shape_of(y)))
    before = kinds[kind][: kinds[kind].index(axis)]
    outer = (*(() if kind == "batch" else batch), *before)
    *given, count = shape_of(sizes)
    if given and given != [shape_of(x)[i] for i in outer]:
        raise ShapeError(
            f"lax.{name}: expected group_sizes of shape ({count},) or "
            f"{(*[shape_of(x)[i] for i in outer], count)}, got {shape_of(sizes)}"
        )
    if group_axis:
        out = _without_groups(name, shape_of(y), numbers, group_axis[0], count, out)
    return _Axes(kind, numbers, axis, before, group_axis, out)


def _axes_of(where: str, field: str, given: Any, count: int, ndim: int) -> tuple[int, ...]:
    axes = as_shape(given, f"{where}: {field}")
    if len(axes) != count or any(not 0 <= i < ndim for i in axes):
        raise ArgumentValueError(
            f"{where}: {field} must be {'one axis' if count else 'no axis'} of {ndim}, got {axes}"
        )
    return axes


def _without_groups(
    name: str, shape: tuple[int, ...], numbers: Any, group: int, count: int, out: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape of the result, without the axis of the groups."""
    (_, contract), (_, batch) = numbers
    if group in (*contract, *batch):
        raise ArgumentValueError(
            f"lax.{name}: the axis {group} of groups of rhs must neither be contracted nor a batch axis"
        )
    if shape[group] != count:
        raise ShapeError(
            f"lax.{name}: group_sizes has {count} groups, rhs of shape {shape} has {shape[group]} along axis {group}"
        )
    free = [i for i in range(len(shape)) if i not in (*contract, *batch)]
    place = len(out) - len(free) + free.index(group)
    return out[:place] + out[place + 1 :]


# --- tiles --------------------------------------------------------------------------------------------------


class _Tiles(NamedTuple):
    """How the rows of groups fill tiles of equally many rows, each with rows of one group.

    `rows`, of shape (tiles, rows of a tile), are the rows in them, and the number of rows where there is none; `groups`
    the group of each tile, and `places` the place of each row among all of the tiles, their number where it has none.
    """

    rows: Value
    groups: Value
    places: Value


def _tiles(sizes: Value, count: int, width: int) -> _Tiles:
    """Tiles for `count` rows, each of which is `width` rows of the products."""
    (groups,) = shape_of(sizes)
    size = max(1, min(count // (2 * groups), _TILE // width))
    tiles = (count + min(groups, count) * (size - 1)) // size  # enough, whatever the sizes are
    ends = clip(cumsum(clip(sizes, 0, count)), 0, count)
    starts = concatenate([zeros(1, ends.dtype), ends[:-1]], 0)
    last_tiles = cumsum((ends - starts + (size - 1)) // size)
    first_tiles = concatenate([zeros(1, ends.dtype), last_tiles[:-1]], 0)
    tile, row = arange(tiles), arange(count)
    own = clip(searchsorted(last_tiles, tile, side="right"), 0, groups - 1)
    rows = (starts[own] + (tile - first_tiles[own]) * size)[:, None] + arange(size)
    of_row = clip(searchsorted(ends, row, side="right"), 0, groups - 1)
    places = first_tiles[of_row] * size + row - starts[of_row]
    return _Tiles(
        where(rows < ends[own][:, None], rows, count), own, where(row < ends[-1], places, tiles * size)
    )


def _in_tiles(x: Value, tiles: _Tiles) -> Value:
    """The rows of `x`, of shape (m, r, k), in tiles, of shape (tiles, rows, k)."""
    count, size = shape_of(tiles.rows)
    _, width, last = shape_of(x)
    moved = finish(x).at[tiles.rows].get(mode="fill", fill_value=0)
    return reshape(moved, (count, size * width, last))


def _rows_times_matrices(x: Value, y: Value, sizes: Value) -> Value:
    """Products (m, r, n) of rows (m, r, k) with the matrices (g, k, n) of their groups."""
    count, width, _ = shape_of(x)
    tiles = _tiles(sizes, count, width)

    def product(_: None, tile: tuple[Value, Value]) -> tuple[None, Value]:
        rows, group = tile
        matrix = dynamic_index_in_dim(y, group, 0, keepdims=False)
        return None, dot_general(rows, matrix, (((1,), (0,)), ((), ())))

    out = scan(product, None, (_in_tiles(x, tiles), tiles.groups))[1]
    out = reshape(out, (prod(shape_of(tiles.rows)), width, shape_of(y)[2]))
    return out.at[tiles.places].get(mode="fill", fill_value=0)


def _sums_over_rows(x: Value, y: Value, sizes: Value) -> Value:
    """For each group, the sum (k, n) over its rows, in (m, r, k) and (m, r, n), of their outer products."""
    count, width, k = shape_of(x)
    tiles = _tiles(sizes, count, width)

    def add(sums: Value, tile: tuple[Value, Value, Value]) -> tuple[Value, None]:
        own, other, group = tile
        total = dynamic_index_in_dim(sums, group, 0, keepdims=False)
        total = total + dot_general(own, other, (((0,), (0,)), ((), ())))
        return dynamic_update_index_in_dim(sums, total, group, 0), None

    start = zeros((shape_of(sizes)[0], k, shape_of(y)[2]), dtype_of(x))
    return scan(add, start, (_in_tiles(x, tiles), _in_tiles(y, tiles), tiles.groups))[0]


# --- the axes of the operands -------------------------------------------------------------------------------


def _free(x: Value, used: Sequence[int]) -> list[int]:
    return [i for i in range(len(shape_of(x))) if i not in used]


def _arranged(x: Value, outer: Sequence[Sequence[int]], *axes: Sequence[int]) -> Value:
    """`x` with an axis for each of these sequences of axes; none for an empty one of `outer`."""
    parts = [*filter(None, outer), *axes]
    shape = [prod([shape_of(x)[i] for i in own]) for own in parts]
    return reshape(transpose(x, [i for own in parts for i in own]), shape)


def _mapped(f: Callable[..., Any], x: Value, y: Value, sizes: Value, of_y: Sequence[int | None]) -> Value:
    """`f` for each index of the first axes of `x`; `of_y` are the axes of `y` that run along."""
    single = len(shape_of(sizes)) == 1
    if not single:
        sizes = reshape(sizes, (*shape_of(x)[: len(of_y)], shape_of(sizes)[-1]))
    for axis in reversed(of_y):
        f = vmap(f, in_axes=(0, axis, None if single else 0))
    return f(x, y, sizes)


def _by_group(axes: _Axes, x: Value, y: Value, sizes: Value) -> Array:
    """The product where the ragged axis is free."""
    if 0 in (*shape_of(x), *shape_of(y)):
        return zeros(axes.out, dtype_of(x))
    (x_contract, y_contract), (x_batch, y_batch) = axes.numbers
    used = (*x_batch, *x_contract, *axes.before, axes.ragged)
    rest = _free(x, used)
    free = _free(y, y_batch + y_contract + axes.group)
    x = _arranged(x, (x_batch, axes.before), (axes.ragged,), rest, x_contract)
    y = _arranged(y, (y_batch,), axes.group, y_contract, free)
    of_y = [0] * bool(x_batch) + [None] * bool(axes.before)
    return reshape(_mapped(_rows_times_matrices, x, y, sizes, of_y), axes.out)


def _sum_by_group(axes: _Axes, x: Value, y: Value, sizes: Value) -> Array:
    """The products where the ragged axis is contracted, one for each group."""
    out = (shape_of(sizes)[-1], *axes.out)
    if 0 in (*shape_of(x), *shape_of(y), *out):
        return zeros(out, dtype_of(x))
    (x_contract, y_contract), (x_batch, y_batch) = axes.numbers
    place = len(axes.before)
    x = _arranged(
        x, (x_batch, axes.before), (axes.ragged,), x_contract[place + 1 :], _free(x, x_batch + x_contract)
    )
    before, ragged, after = y_contract[:place], y_contract[place : place + 1], y_contract[place + 1 :]
    y = _arranged(y, (y_batch, before), ragged, after, _free(y, y_batch + y_contract))
    sums = _mapped(_sums_over_rows, x, y, sizes, [0] * bool(x_batch) + [0] * bool(before))
    if before:
        sums = ops.reduce_sum_p.bind(sums, axes=(len(shape_of(sums)) - 4,))
    return reshape(moveaxis(sums, -3, 0), out)
