"""Exchanges: what the examples of a ``vmap`` whose axis has a name, or ranks of a mesh, send to each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..arrays.arguments import shown
from ..control.ranks import collectives as prims
from ..control.ranks.collectives import Groups
from ..core import ArgumentError, ArgumentValueError, ShapeError
from ..core.named_axes import MeshAxes
from ..core.values import AxisName
from ..errors import CollectiveError
from ..frontend.checked import checked
from ..primitives import ops
from ..primitives.ops import dtype_of, one_axis, shape_of
from ..runtime.module_getattr import lazy_import
from .collectives import Axes, countable, each_leaf, groups_of, integers, named_axes_of

__all__ = ["all_gather", "all_to_all", "pcast", "ppermute", "pshuffle", "psum_scatter", "pswapaxes", "pvary"]

#: Loads with the first mesh.
varying = lazy_import("functrans.control.ranks.varying")


@checked
def all_gather(
    x: Any,
    axis_name: AxisName,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """The values of all examples, or ranks of a mesh, in one array, for every one of them.

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
    to : {'varying', 'invariant'}
        In ``shard_map``, whether the result counts as one that each rank has for itself, with a cotangent of its own,
        or as one that all ranks have together: only then it is a result with the spec ``P()``, and the transpose takes
        a part of one cotangent instead of summing those of all ranks.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> x = fnp.asarray([1.0, 2.0, 4.0])
    >>> ft.vmap(lambda x: fnp.median(lax.all_gather(x, "i")) - x, axis_name="i")(x)
    Array([ 1.,  0., -2.])
    """
    axes = named_axes_of("all_gather", axis_name)
    groups = groups_of("all_gather", axes, axis_index_groups)
    size = axes.size if groups is None else len(groups[0])
    if to not in ("varying", "invariant"):
        raise ArgumentValueError(f"all_gather: to must be 'varying' or 'invariant', got {to!r}")

    def gathered(value: Any) -> Any:
        value = _array(value)
        shape = shape_of(value)
        place = one_axis(axis, len(shape) + (not tiled), "all_gather")
        for name, n in reversed(axes.named):
            own = n if groups is None else size
            if to == "invariant" and type(name) is MeshAxes:
                value = prims.all_gather_invariant_p.bind(value, axis_name=name, number=own)
            else:
                value = prims.all_gather_p.bind(value, axis_name=name, groups=groups, number=own)
        value = ops.move_axis(ops.reshape_p.bind(value, shape=(size, *shape)), 0, place)
        return _merged(value, place) if tiled else value

    return each_leaf("all_gather", x, gathered)


def _array(value: Any) -> Any:
    """A value that is not a Python number."""
    return ops.strong(value, dtype_of(value))


def _merged(value: Any, place: int) -> Any:
    """Join the axis at `place` with the next one."""
    shape = shape_of(value)
    return ops.reshape_p.bind(
        value, shape=(*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :])
    )


def _parts(function: str, value: Any, axis: int, axes: Axes, size: int, tiled: bool) -> tuple[Any, int]:
    """The value with an axis in front that has a part for each example, and where the axis was."""
    error, those = (CollectiveError, "ranks") if axes.of_mesh else (ShapeError, "examples")
    value = _array(value)
    shape = shape_of(value)
    place = one_axis(axis, len(shape), function)
    extent = shape[place]
    if tiled and extent % size:
        raise error(f"{function}: axis {place} of extent {extent} cannot be divided among {size} {those}")
    if not tiled and extent != size:
        raise error(
            f"{function}: axis {place} must have an element for each of the {size} {those}, but its extent is "
            f"{extent}; with tiled=True it is divided among them"
        )
    if tiled:
        value = ops.reshape_p.bind(value, shape=(*shape[:place], size, extent // size, *shape[place + 1 :]))
    return ops.move_axis(value, place, 0), place


def _exchanged(value: Any, axes: Axes, groups: Groups) -> Any:
    """Element `k` along axis 0 goes to example `k`; axis 0 of the result holds what came from each example."""
    shape = shape_of(value)
    rest = shape[1:]
    value = ops.reshape_p.bind(value, shape=(*_extents(axes, groups), *rest))
    for d, (name, _) in enumerate(axes.named):
        value = ops.move_axis(value, d, 0)
        value = prims.all_to_all_p.bind(value, axis_name=name, groups=groups)
        value = ops.move_axis(value, 0, d)
    return ops.reshape_p.bind(value, shape=shape)


def _extents(axes: Axes, groups: Groups) -> list[int]:
    return [n for _, n in axes.named] if groups is None else [len(groups[0])]


@checked
def psum_scatter(
    x: Any,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Any:
    """Like `psum`, but each example gets a part of the sum.

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
    axes = named_axes_of("psum_scatter", axis_name)
    groups = groups_of("psum_scatter", axes, axis_index_groups)
    size = prod(_extents(axes, groups))

    def scattered(value: Any) -> Any:
        parts, _ = _parts("psum_scatter", countable(value), scatter_dimension, axes, size, tiled)
        if len(axes.named) == 1 and axes.of_mesh:
            return prims.psum_scatter_p.bind(parts, axis_name=axes.named[0][0])
        return ops.reduce_sum_p.bind(_exchanged(parts, axes, groups), axes=(0,))

    return each_leaf("psum_scatter", x, scattered)


@checked
def all_to_all(
    x: Any,
    axis_name: AxisName,
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
    axes = named_axes_of("all_to_all", axis_name)
    groups = groups_of("all_to_all", axes, axis_index_groups)
    size = prod(_extents(axes, groups))

    def sent(value: Any) -> Any:
        parts, _ = _parts("all_to_all", value, split_axis, axes, size, tiled)
        received = _exchanged(parts, axes, groups)
        place = one_axis(concat_axis, len(shape_of(received)) - tiled, "all_to_all")
        received = ops.move_axis(received, 0, place)
        return _merged(received, place) if tiled else received

    return each_leaf("all_to_all", x, sent)


@checked
def pswapaxes(
    x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: Sequence[Sequence[int]] | None = None
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
def ppermute(x: Any, axis_name: AxisName, perm: Any) -> Any:
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
    axes = named_axes_of("ppermute", axis_name)
    if len(axes.named) != 1:
        raise ArgumentError(f"ppermute: axis_name must be a single name, got {axis_name!r}")
    ((name, size),) = axes.named
    pairs = _pairs(perm)
    for which, numbers in zip(("source", "target"), zip(*pairs) if pairs else ()):
        if len(set(numbers)) < len(numbers) or not all(0 <= i < size for i in numbers):
            raise (CollectiveError if axes.of_mesh else ArgumentValueError)(
                f"ppermute: perm must have each {which} once, from 0 to {size - 1}, got {perm!r}"
            )
    return each_leaf("ppermute", x, lambda v: prims.ppermute_p.bind(_array(v), axis_name=name, perm=pairs))


def _pairs(perm: Any) -> tuple[tuple[int, int], ...]:
    """Pairs of source and target."""
    try:
        numbers = [integers("ppermute", "perm", pair) for pair in perm]
    except TypeError:
        numbers = [()]
    if any(len(pair) != 2 for pair in numbers):
        raise ArgumentError(f"ppermute: perm must be a sequence of pairs (source, target), got {shown(perm)}")
    return tuple([(source, target) for source, target in numbers])


@checked
def pshuffle(x: Any, axis_name: AxisName, perm: Any) -> Any:
    """Reorder the examples: example `i` gets the value of example ``perm[i]``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> x = fnp.asarray([1.0, 2.0, 4.0])
    >>> ft.vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(x)
    Array([4., 1., 2.])
    """
    order = list(integers("pshuffle", "perm", perm))
    size = named_axes_of("pshuffle", axis_name).size
    if sorted(order) != list(range(size)):
        raise ArgumentValueError(f"pshuffle: perm must be a permutation of range({size}), got {perm!r}")
    return ppermute(x, axis_name, [(source, target) for target, source in enumerate(order)])


# --- types ------------------------------------------------------------------------------------------------------


@checked
def pvary(x: Any, axis_name: AxisName) -> Any:
    """The same value, as one that each rank of a mesh has for itself.

    `shard_map` does so itself where a value that all ranks have meets one that differs. Write it where the gradient is
    to be that of one rank: of what all ranks have, it is the sum over ranks.

    Parameters
    ----------
    x : pytree of arrays
    axis_name : hashable, or tuple of them
        Axes of the mesh; that of a ``vmap`` changes nothing.

    Returns
    -------
    pytree

    Raises
    ------
    UnboundAxisError
        If nothing around it names the axis.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> from functrans.distributed import P, make_mesh, shard_map
    >>> mesh = make_mesh((1,), ("i",), backend="self")
    >>> def own_gradients(w, x):
    ...     return ft.grad(lambda w: fnp.sum(w * x))(lax.pvary(w, "i"))
    >>> shard_map(own_gradients, mesh=mesh, in_specs=(P(), P("i")), out_specs=P("i"))(fnp.ones(2), fnp.arange(2.0))
    Array([0., 1.])
    """
    axes = named_axes_of("pvary", axis_name)

    def differing(value: Any) -> Any:
        names = [n for name, _ in axes.named if type(name) is MeshAxes for n in name.names]
        return varying.differ(value, frozenset(names)) if names else value

    return each_leaf("pvary", x, differing)


@checked
def pcast(x: Any, axis_name: AxisName, *, to: str) -> Any:
    """`pvary`, under the name that it has in JAX since 0.9.

    Parameters
    ----------
    x, axis_name
        As of `pvary`.
    to : {'varying'}

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> from functrans.distributed import P, make_mesh, shard_map
    >>> mesh = make_mesh((1,), ("i",), backend="self")
    >>> f = shard_map(lambda x: lax.pcast(x, "i", to="varying"), mesh=mesh, in_specs=P(), out_specs=P("i"))
    >>> f(fnp.arange(2.0))
    Array([0., 1.])
    """
    if to != "varying":
        raise ArgumentValueError(
            f"pcast: to must be 'varying', got {to!r}. For values that all ranks have, use psum"
        )
    return pvary(x, axis_name)
