"""Collectives: operations that combine the examples of a ``vmap`` whose axis has a name."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..arrays.arguments import shown
from ..control import collectives as prims
from ..control.collectives import Groups
from ..core import ArgumentError, ArgumentValueError, ShapeError, Tracer, named_axes
from ..core.errors import UnboundAxisError
from ..frontend.checked import checked
from ..frontend.pytree import tree_flatten, tree_unflatten
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, one_axis, operand, shape_of

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pmax", "pmean", "pmin", "ppermute",
    "pshuffle", "psum", "psum_scatter", "pswapaxes",
]  # fmt: skip


class _Axes(NamedTuple):
    """The axes that a collective names: names with their sizes, and positions among the axes of the operand."""

    named: list[tuple[Hashable, int]]
    positions: list[int]

    @property
    def size(self) -> int:
        return prod([n for _, n in self.named])


def _axes(function: str, axis_name: Any, positions: bool = False) -> _Axes:
    bound = named_axes()
    names = list(axis_name) if isinstance(axis_name, tuple | list) else [axis_name]
    named: list[tuple[Hashable, int]] = []
    places = []
    for name in names:
        if positions and isinstance(name, int):
            places.append(name)
        elif isinstance(name, int) or not isinstance(name, Hashable):
            raise ArgumentError(f"{function}: axis_name must be a name of a mapped axis, got {name!r}")
        elif name not in bound:
            listed = (
                f"bound are: {', '.join(map(repr, bound))}" if bound else "no vmap around it names its axis"
            )
            raise UnboundAxisError(
                f"{function}: the axis name {name!r} is not bound here; {listed}. Name the axis where it is mapped: "
                f"vmap(f, axis_name={name!r})"
            )
        elif name in [other for other, _ in named]:
            raise ArgumentValueError(f"{function}: axis_name contains {name!r} twice")
        else:
            named.append((name, bound[name]))
    return _Axes(named, places)


def _groups(function: str, axes: _Axes, groups: Any) -> Groups:
    """Checked groups of examples: a partition of them into groups of one size."""
    if groups is None:
        return None
    if len(axes.named) != 1 or axes.positions:
        raise ArgumentError(f"{function}: axis_index_groups needs a single axis name")
    checked_groups = tuple([_integers(function, "axis_index_groups", group) for group in groups])
    ((_, size),) = axes.named
    if sorted([i for group in checked_groups for i in group]) != list(range(size)):
        raise ArgumentValueError(
            f"{function}: axis_index_groups must contain each of the {size} examples once, got {groups!r}"
        )
    if len({len(group) for group in checked_groups}) != 1:
        raise ArgumentValueError(f"{function}: the axis_index_groups must have one length, got {groups!r}")
    return checked_groups


def _each(function: str, x: Any, apply: Callable[[Any], Any]) -> Any:
    """Apply to each leaf of a pytree."""
    leaves, tree = tree_flatten(x)
    return tree_unflatten(tree, [finish(apply(operand(leaf, function))) for leaf in leaves])


def _known(x: Any) -> bool:
    return not isinstance(x, Tracer)


# --- sums and extremes --------------------------------------------------------------------------------------


@checked
def psum(x: Any, axis_name: Any, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The sum over all examples of a mapped axis, for every example.

    Parameters
    ----------
    x : pytree of arrays
        A value that is the same for all examples, such as the number 1, is multiplied by their number.
    axis_name : hashable, or tuple of them
        The name that ``vmap(f, axis_name=...)`` gives to the axis. Integers are positions of axes of `x`.
    axis_index_groups : sequence of sequences of int, optional
        A partition of the examples into groups of one size: sums within each group.

    Returns
    -------
    pytree
        With the structure, shapes and dtypes of `x`; bools count as int64.

    Raises
    ------
    UnboundAxisError
        If no enclosing `vmap` has an axis of this name.

    Notes
    -----
    The derivative is that of the sum over the batch: the cotangent of each example is the sum of the cotangents of
    all results. So ``vmap(grad(f))`` with a `psum` in `f` is the gradient of the sum of `f` over the batch. In
    compiled code, collectives are plain operations along the batch axis.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> x = fnp.asarray([1.0, 2.0, 5.0])
    >>> ft.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(x)
    Array([0.125, 0.25 , 0.625])
    >>> ft.vmap(lambda x: lax.psum(1, "i"), axis_name="i", out_axes=None)(x)
    Array(3)
    """
    axes = _axes("psum", axis_name, positions=True)
    groups = _groups("psum", axes, axis_index_groups)
    number = axes.size if groups is None else len(groups[0])

    def total(value: Any) -> Any:
        if type(value) is bool:
            value = int(value)
        elif dtype_of(value).kind == "b":
            value = ops.convert(value, np.dtype(np.int64))
        if axes.positions:
            value = ops.reduce_sum_p.bind(value, axes=_positions("psum", value, axes))
        if _known(value):
            return (
                value * number
                if type(value) in ops.PYTHON_KEYS
                else ops.mul_p.bind(value, _as(number, value))
            )
        for name, _ in axes.named:
            value = prims.psum_p.bind(value, axis_name=name, groups=groups)
        return value

    return _each("psum", x, total)


def _as(number: int, like: Any) -> Any:
    return dtype_of(like).type(number)


def _positions(function: str, value: Any, axes: _Axes) -> tuple[int, ...]:
    rank = len(shape_of(value))
    return tuple(sorted({one_axis(d, rank, function) for d in axes.positions}))


@checked
def pmean(x: Any, axis_name: Any, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The mean over all examples of a mapped axis, for every example; arguments as for `psum`.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> ft.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(fnp.asarray([1.0, 2.0, 6.0]))
    Array([-2., -1.,  3.])
    """
    sums = psum(x, axis_name, axis_index_groups=axis_index_groups)
    axes = _axes("pmean", axis_name, positions=True)
    groups = _groups("pmean", axes, axis_index_groups)
    shapes = iter([shape_of(operand(leaf, "pmean")) for leaf in tree_flatten(x)[0]])

    def divided(total: Any) -> Any:
        shape = next(shapes)
        number = axes.size if groups is None else len(groups[0])
        number *= prod([shape[one_axis(d, len(shape), "pmean")] for d in axes.positions])
        return total / number

    leaves, tree = tree_flatten(sums)
    return tree_unflatten(tree, [divided(leaf) for leaf in leaves])


def _extreme(function: str, x: Any, axis_name: Any, groups: Any) -> Any:
    axes = _axes(function, axis_name, positions=True)
    checked_groups = _groups(function, axes, groups)
    prim, reduce = (
        (prims.pmax_p, ops.reduce_max_p) if function == "pmax" else (prims.pmin_p, ops.reduce_min_p)
    )

    def extreme(value: Any) -> Any:
        if axes.positions:
            value = reduce.bind(value, axes=_positions(function, value, axes))
        if _known(value):
            return value
        for name, _ in axes.named:
            value = prim.bind(value, axis_name=name, groups=checked_groups)
        return value

    return _each(function, x, extreme)


@checked
def pmax(x: Any, axis_name: Any, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The maximum over all examples of a mapped axis, for every example; arguments as for `psum`.

    Differentiable, unlike JAX's; examples that attain the maximum together share its derivative.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> ft.vmap(lambda x: x / lax.pmax(x, "i"), axis_name="i")(fnp.asarray([1.0, 2.0, 4.0]))
    Array([0.25, 0.5 , 1.  ])
    """
    return _extreme("pmax", x, axis_name, axis_index_groups)


@checked
def pmin(x: Any, axis_name: Any, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The minimum over all examples of a mapped axis; see `pmax`.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> ft.vmap(lambda x: x - lax.pmin(x, "i"), axis_name="i")(fnp.asarray([1.0, 2.0, 4.0]))
    Array([0., 1., 3.])
    """
    return _extreme("pmin", x, axis_name, axis_index_groups)


# --- exchanges ----------------------------------------------------------------------------------------------


@checked
def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    axis: int = 0,
    tiled: bool = False,
) -> Any:
    """The values of all examples in one array, for every example.

    Parameters
    ----------
    x : pytree of arrays
    axis_name : hashable, or tuple of them
        The name of the mapped axis. Of several, the last one varies fastest.
    axis_index_groups : sequence of sequences of int, optional
        A partition of the examples: each gets the values of its group.
    axis : int
        The position of the examples in the result.
    tiled : bool
        Whether to concatenate along this axis of `x`, instead of stacking along a new one.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> x = fnp.asarray([1.0, 2.0, 4.0])
    >>> ft.vmap(lambda x: fnp.median(lax.all_gather(x, "i")) - x, axis_name="i")(x)
    Array([ 1.,  0., -2.])
    """
    axes = _axes("all_gather", axis_name)
    groups = _groups("all_gather", axes, axis_index_groups)
    size = axes.size if groups is None else len(groups[0])

    def gathered(value: Any) -> Any:
        value = _array(value)
        shape = shape_of(value)
        place = one_axis(axis, len(shape) + (not tiled), "all_gather")
        for name, n in reversed(axes.named):
            own = n if groups is None else size
            value = prims.all_gather_p.bind(value, axis_name=name, groups=groups, number=own)
        value = ops.move_axis(ops.reshape_p.bind(value, shape=(size, *shape)), 0, place)
        return _merged(value, place) if tiled else value

    return _each("all_gather", x, gathered)


def _array(value: Any) -> Any:
    """A value that is not a Python number."""
    return ops.strong(value, dtype_of(value))


def _merged(value: Any, place: int) -> Any:
    """Join the axis at `place` with the next one."""
    shape = shape_of(value)
    return ops.reshape_p.bind(
        value, shape=(*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :])
    )


def _parts(function: str, value: Any, axis: int, size: int, tiled: bool) -> tuple[Any, int]:
    """The value with an axis in front that has a part for each example, and where the axis was."""
    value = _array(value)
    shape = shape_of(value)
    place = one_axis(axis, len(shape), function)
    extent = shape[place]
    if tiled and extent % size:
        raise ShapeError(
            f"{function}: axis {place} of extent {extent} cannot be divided among {size} examples"
        )
    if not tiled and extent != size:
        raise ShapeError(
            f"{function}: axis {place} must have an element for each of the {size} examples, but its extent is "
            f"{extent}; with tiled=True it is divided among them"
        )
    if tiled:
        value = ops.reshape_p.bind(value, shape=(*shape[:place], size, extent // size, *shape[place + 1 :]))
    return ops.move_axis(value, place, 0), place


def _exchanged(value: Any, axes: _Axes, groups: Groups) -> Any:
    """Element `k` along axis 0 goes to example `k`; axis 0 of the result holds what came from each example."""
    shape = shape_of(value)
    rest = shape[1:]
    value = ops.reshape_p.bind(value, shape=(*_extents(axes, groups), *rest))
    for d, (name, _) in enumerate(axes.named):
        value = ops.move_axis(value, d, 0)
        value = prims.all_to_all_p.bind(value, axis_name=name, groups=groups)
        value = ops.move_axis(value, 0, d)
    return ops.reshape_p.bind(value, shape=shape)


def _extents(axes: _Axes, groups: Groups) -> list[int]:
    return [n for _, n in axes.named] if groups is None else [len(groups[0])]


@checked
def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Any:
    """Like `psum`, but each example gets its own part of the sum.

    Parameters
    ----------
    x : pytree of arrays
    axis_name : hashable, or tuple of them
    scatter_dimension : int
        The axis whose element `k` example `k` gets. The result lacks it.
    axis_index_groups : sequence of sequences of int, optional
        A partition of the examples: sums within each group, divided among its members.
    tiled : bool
        Whether to divide the axis into equal blocks instead, which the results keep.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> x = fnp.asarray([[1.0, 2.0], [10.0, 20.0]])
    >>> ft.vmap(lambda row: lax.psum_scatter(row, "i"), axis_name="i")(x)
    Array([11., 22.])
    """
    axes = _axes("psum_scatter", axis_name)
    groups = _groups("psum_scatter", axes, axis_index_groups)
    size = prod(_extents(axes, groups))

    def scattered(value: Any) -> Any:
        parts, _ = _parts("psum_scatter", value, scatter_dimension, size, tiled)
        return ops.reduce_sum_p.bind(_exchanged(parts, axes, groups), axes=(0,))

    return _each("psum_scatter", x, scattered)


@checked
def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Any:
    """Send part `k` of each example to example `k`.

    Parameters
    ----------
    x : pytree of arrays
    axis_name : hashable, or tuple of them
    split_axis : int
        The axis with a part for each example.
    concat_axis : int
        Where the results have the parts that they receive.
    axis_index_groups : sequence of sequences of int, optional
        A partition of the examples: exchanges within each group.
    tiled : bool
        Whether to divide `split_axis` into equal blocks, and to concatenate them along `concat_axis`. Otherwise the
        first one disappears, and the second one is new.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> x = fnp.arange(9).reshape(3, 3)
    >>> ft.vmap(lambda row: lax.all_to_all(row, "i", 0, 0), axis_name="i")(x)
    Array([[0, 3, 6],
           [1, 4, 7],
           [2, 5, 8]])
    """
    axes = _axes("all_to_all", axis_name)
    groups = _groups("all_to_all", axes, axis_index_groups)
    size = prod(_extents(axes, groups))

    def sent(value: Any) -> Any:
        parts, _ = _parts("all_to_all", value, split_axis, size, tiled)
        received = _exchanged(parts, axes, groups)
        place = one_axis(concat_axis, len(shape_of(received)) - tiled, "all_to_all")
        received = ops.move_axis(received, 0, place)
        return _merged(received, place) if tiled else received

    return _each("all_to_all", x, sent)


@checked
def pswapaxes(
    x: Any, axis_name: Any, axis: int, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> Any:
    """Exchange the mapped axis with an axis of the operand: `all_to_all` with both axes equal.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> x = fnp.arange(4).reshape(2, 2)
    >>> ft.vmap(lambda row: lax.pswapaxes(row, "i", 0), axis_name="i")(x)
    Array([[0, 2],
           [1, 3]])
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


@checked
def ppermute(x: Any, axis_name: Any, perm: Any) -> Any:
    """Send values between examples.

    Parameters
    ----------
    x : pytree of arrays
    axis_name : hashable
    perm : sequence of (int, int)
        Pairs of source and target, with no source and no target twice. Examples that are not targets get zeros.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> x = fnp.asarray([1.0, 2.0, 4.0])
    >>> ft.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(x)
    Array([0., 1., 2.])
    """
    axes = _axes("ppermute", axis_name)
    if len(axes.named) != 1:
        raise ArgumentError(f"ppermute: axis_name must be a single name, got {axis_name!r}")
    ((name, size),) = axes.named
    pairs = _pairs(perm)
    for which, numbers in zip(("source", "target"), zip(*pairs) if pairs else ()):
        if len(set(numbers)) < len(numbers) or not all(0 <= i < size for i in numbers):
            raise ArgumentValueError(
                f"ppermute: perm must have each {which} once, from 0 to {size - 1}, got {perm!r}"
            )
    return _each("ppermute", x, lambda v: prims.ppermute_p.bind(_array(v), axis_name=name, perm=pairs))


def _pairs(perm: Any) -> tuple[tuple[int, int], ...]:
    """Pairs of source and target."""
    try:
        numbers = [_integers("ppermute", "perm", pair) for pair in perm]
    except TypeError:
        numbers = [()]
    if any(len(pair) != 2 for pair in numbers):
        raise ArgumentError(f"ppermute: perm must be a sequence of pairs (source, target), got {shown(perm)}")
    return tuple([(source, target) for source, target in numbers])


def _integers(function: str, parameter: str, values: Any) -> tuple[int, ...]:
    try:
        return tuple([operator.index(i) for i in values])
    except TypeError:
        raise ArgumentError(f"{function}: {parameter} must contain integers, got {shown(values)}") from None


@checked
def pshuffle(x: Any, axis_name: Any, perm: Any) -> Any:
    """Reorder the examples: example `i` gets the value of example ``perm[i]``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> x = fnp.asarray([1.0, 2.0, 4.0])
    >>> ft.vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(x)
    Array([4., 1., 2.])
    """
    order = list(_integers("pshuffle", "perm", perm))
    size = _axes("pshuffle", axis_name).size
    if sorted(order) != list(range(size)):
        raise ArgumentValueError(f"pshuffle: perm must be a permutation of range({size}), got {perm!r}")
    return ppermute(x, axis_name, [(source, target) for target, source in enumerate(order)])


@checked
def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value of one example, for every example.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> x = fnp.asarray([1.0, 2.0, 4.0])
    >>> ft.vmap(lambda x: lax.pbroadcast(x, "i", 2), axis_name="i")(x)
    Array([4., 4., 4.])
    """
    axes = _axes("pbroadcast", axis_name)
    if not 0 <= source < axes.size:
        raise ArgumentValueError(f"pbroadcast: source must be from 0 to {axes.size - 1}, got {source}")
    chosen = ops.eq_p.bind(_index(axes), np.int32(source))

    def broadcast(value: Any) -> Any:
        if _known(value):
            return value
        value = _array(value)
        own = ops.select_p.bind(chosen, value, dtype_of(value).type(0))
        return psum(own, axis_name) if dtype_of(own).kind != "b" else pmax(own, axis_name)

    return _each("pbroadcast", x, broadcast)


# --- where an example is ------------------------------------------------------------------------------------


def _index(axes: _Axes) -> Any:
    index: Any = np.int32(0)
    for name, size in axes.named:
        own = prims.axis_index_p.bind(axis_name=name)
        index = own if len(axes.named) == 1 else ops.add_p.bind(ops.mul_p.bind(index, np.int32(size)), own)
    return index


@checked
def axis_index(axis_name: Any) -> Any:
    """The number of the example along a mapped axis; of several, the last one varies fastest.

    Returns
    -------
    Array, int32

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> ft.vmap(lambda x: x * lax.axis_index("i"), axis_name="i")(fnp.ones(3))
    Array([0., 1., 2.])
    """
    return finish(_index(_axes("axis_index", axis_name)))


@checked
def axis_size(axis_name: Any) -> int:
    """The number of examples of a mapped axis; of several, their product.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> ft.vmap(lambda x: x / lax.axis_size("i"), axis_name="i")(fnp.ones(4))
    Array([0.25, 0.25, 0.25, 0.25])
    """
    return _axes("axis_size", axis_name).size
