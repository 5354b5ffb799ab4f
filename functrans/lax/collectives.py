"""Collectives: sums, means and extremes over the examples of a named axis of ``vmap``, or over ranks of a mesh."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..arrays.arguments import shown
from ..control.ranks import collectives as prims
from ..control.ranks.collectives import Groups
from ..core import ArgumentError, ArgumentValueError, Tracer, named_axes
from ..core.named_axes import MeshAxes, mesh_in_scope
from ..core.values import ArrayLike, AxisName, Index
from ..errors import CollectiveError, UnboundAxisError
from ..frontend.checked import checked
from ..frontend.pytree import tree_flatten, tree_unflatten
from ..primitives import ops
from ..primitives.ops import dtype_of, finish, one_axis, operand, shape_of
from ..runtime.records import NamedTuple

__all__ = ["axis_index", "axis_size", "pbroadcast", "pmax", "pmean", "pmin", "psum"]


class Axes(NamedTuple):
    """The axes that a collective names, and positions among the axes of the operand.

    Attributes
    ----------
    named : list of (hashable, int)
        Names with their sizes. Neighbouring axes of a mesh are one `MeshAxes`.
    positions : list of int
    """

    named: list[tuple[Any, int]]
    positions: list[int]

    @property
    def of_mesh(self) -> bool:
        return any(type(name) is MeshAxes for name, _ in self.named)

    @property
    def size(self) -> int:
        return prod([n for _, n in self.named])


def named_axes_of(function: str, axis_name: AxisName, positions: bool = False) -> Axes:
    bound = named_axes()
    mesh = mesh_in_scope.get()
    names = list(axis_name) if isinstance(axis_name, tuple | list) else [axis_name]
    named: list[tuple[Any, int]] = []
    places: list[int] = []
    for i, name in enumerate(names):
        if positions and isinstance(name, int):
            places.append(name)
        elif isinstance(name, int) or not isinstance(name, Hashable):
            raise ArgumentError(f"{function}: axis_name must be a name of a mapped axis, got {name!r}")
        elif name in names[:i]:
            raise ArgumentValueError(f"{function}: axis_name contains {name!r} twice")
        elif name in bound:
            named.append((name, bound[name]))
        elif mesh is not None and name in mesh.shape:
            before = named.pop()[0].names if named and type(named[-1][0]) is MeshAxes else ()
            axes = MeshAxes(mesh, (*before, str(name)))
            named.append((axes, axes.size))
        else:
            raise _unbound(function, name, [*bound, *([] if mesh is None else mesh.shape)])
    return Axes(named, places)


def _unbound(function: str, name: Any, bound: Sequence[Hashable]) -> UnboundAxisError:
    listed = (
        f"bound are: {', '.join(map(repr, bound))}"
        if bound
        else "no vmap or shard_map around it names its axes"
    )
    return UnboundAxisError(
        f"{function}: the axis name {name!r} is not bound here; {listed}. Name the axis where it is mapped: "
        f"vmap(f, axis_name={name!r}), or shard_map(f, mesh=...) over a mesh that has it"
    )


def groups_of(function: str, axes: Axes, groups: Any) -> Groups:
    """Checked groups of examples: a partition of them into groups of one size."""
    if groups is None:
        return None
    if len(axes.named) != 1 or axes.positions:
        raise ArgumentError(f"{function}: axis_index_groups needs a single axis name")
    if axes.of_mesh:
        raise CollectiveError(
            f"{function}: ranks of a mesh have no axis_index_groups. Give the mesh another axis, as in "
            "make_mesh((groups, size), ('group', 'member')), and name that one"
        )
    checked_groups = tuple([integers(function, "axis_index_groups", group) for group in groups])
    ((_, size),) = axes.named
    if sorted([i for group in checked_groups for i in group]) != list(range(size)):
        raise ArgumentValueError(
            f"{function}: axis_index_groups must contain each of the {size} examples once, got {groups!r}"
        )
    if len({len(group) for group in checked_groups}) != 1:
        raise ArgumentValueError(f"{function}: the axis_index_groups must have one length, got {groups!r}")
    return checked_groups


def integers(function: str, parameter: str, values: ArrayLike) -> tuple[int, ...]:
    try:
        return tuple([operator.index(i) for i in values])
    except TypeError:
        raise ArgumentError(f"{function}: {parameter} must contain integers, got {shown(values)}") from None


def each_leaf(function: str, x: ArrayLike, apply: Callable[[Any], Any]) -> Any:
    """Apply to each leaf of a pytree."""
    leaves, tree = tree_flatten(x)
    return tree_unflatten(tree, [finish(apply(operand(leaf, function))) for leaf in leaves])


def _known(x: ArrayLike, axes: Axes) -> bool:
    """Whether all examples have this value. Ranks may have captured different arrays."""
    return not isinstance(x, np.ndarray if axes.of_mesh else ()) and not isinstance(x, Tracer)


# --- sums and extremes --------------------------------------------------------------------------------------


@checked
def psum(
    x: ArrayLike, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> Any:
    """The sum over all examples of a mapped axis, or over the ranks of a mesh, for every one of them.

    Parameters
    ----------
    x : pytree of arrays
        A value that is the same for all examples, such as the number 1, is multiplied by their number.
    axis_name : hashable, or tuple of them
        The name that ``vmap(f, axis_name=...)`` gives to the axis, or an axis of the mesh of the `shard_map` around it.
        Integers are positions of axes of `x`.
    axis_index_groups : sequence of sequences of int, optional
        A partition of the examples into groups of one size: sums within each group. Not for a mesh.

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
    Under ``vmap`` the derivative is that of the sum over the batch: the cotangent of each example is the sum of the
    cotangents of all results. So ``vmap(grad(f))`` with a `psum` in `f` is the gradient of the sum of `f` over the
    batch. In compiled code, these collectives are plain operations along the batch axis.

    In ``shard_map`` all ranks have the result together, so it has one cotangent, which is that of `x` on each rank.

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
    axes = named_axes_of("psum", axis_name, positions=True)
    groups = groups_of("psum", axes, axis_index_groups)
    number = axes.size if groups is None else len(groups[0])

    def total(value: ArrayLike) -> Any:
        value = countable(value)
        if axes.positions:
            value = ops.reduce_sum_p.bind(value, axes=_positions("psum", value, axes))
        if _known(value, axes):
            return (
                value * number
                if type(value) in ops.PYTHON_KEYS
                else ops.mul_p.bind(value, _as(number, value))
            )
        for name, _ in axes.named:
            value = prims.psum_p.bind(value, axis_name=name, groups=groups)
        return value

    return each_leaf("psum", x, total)


def countable(value: ArrayLike) -> Any:
    """What is summed: bools count as integers."""
    if type(value) is bool:
        return int(value)
    return ops.convert(value, np.dtype(np.int64)) if dtype_of(value).kind == "b" else value


def _as(number: int, like: Any) -> Any:
    return dtype_of(like).type(number)


def _positions(function: str, value: Any, axes: Axes) -> tuple[int, ...]:
    rank = len(shape_of(value))
    return tuple(sorted({one_axis(d, rank, function) for d in axes.positions}))


@checked
def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The mean over all examples of a mapped axis, for every example; arguments as for `psum`.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> ft.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(fnp.asarray([1.0, 2.0, 6.0]))
    Array([-2., -1.,  3.])
    """
    sums = psum(x, axis_name, axis_index_groups=axis_index_groups)
    axes = named_axes_of("pmean", axis_name, positions=True)
    groups = groups_of("pmean", axes, axis_index_groups)
    shapes = iter([shape_of(operand(leaf, "pmean")) for leaf in tree_flatten(x)[0]])

    def divided(total: Any) -> Any:
        shape = next(shapes)
        number = axes.size if groups is None else len(groups[0])
        number *= prod([shape[one_axis(d, len(shape), "pmean")] for d in axes.positions])
        return total / number

    leaves, tree = tree_flatten(sums)
    return tree_unflatten(tree, [divided(leaf) for leaf in leaves])


def _extreme(function: str, x: Any, axis_name: AxisName, groups: Any) -> Any:
    axes = named_axes_of(function, axis_name, positions=True)
    checked_groups = groups_of(function, axes, groups)
    prim, reduce = (
        (prims.pmax_p, ops.reduce_max_p) if function == "pmax" else (prims.pmin_p, ops.reduce_min_p)
    )

    def extreme(value: Any) -> Any:
        if axes.positions:
            value = reduce.bind(value, axes=_positions(function, value, axes))
        if _known(value, axes):
            return value
        for name, _ in axes.named:
            value = prim.bind(value, axis_name=name, groups=checked_groups)
        return value

    return each_leaf(function, x, extreme)


@checked
def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
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
def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The minimum over all examples of a mapped axis; see `pmax`.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> ft.vmap(lambda x: x - lax.pmin(x, "i"), axis_name="i")(fnp.asarray([1.0, 2.0, 4.0]))
    Array([0., 1., 3.])
    """
    return _extreme("pmin", x, axis_name, axis_index_groups)


# --- of one example -------------------------------------------------------------------------------------------


@checked
def pbroadcast(x: Any, axis_name: AxisName, source: int) -> Any:
    """The value of one example, for every example.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> x = fnp.asarray([1.0, 2.0, 4.0])
    >>> ft.vmap(lambda x: lax.pbroadcast(x, "i", 2), axis_name="i")(x)
    Array([4., 4., 4.])
    """
    axes = named_axes_of("pbroadcast", axis_name)
    if not 0 <= source < axes.size:
        raise ArgumentValueError(f"pbroadcast: source must be from 0 to {axes.size - 1}, got {source}")
    chosen = ops.eq_p.bind(_index(axes), np.int32(source))

    def broadcast(value: Any) -> Any:
        if _known(value, axes):
            return value
        value = ops.strong(value, dtype_of(value))
        own = ops.select_p.bind(chosen, value, dtype_of(value).type(0))
        return psum(own, axis_name) if dtype_of(own).kind != "b" else pmax(own, axis_name)

    return each_leaf("pbroadcast", x, broadcast)


# --- where an example is ------------------------------------------------------------------------------------


def _index(axes: Axes) -> Any:
    index: Index = np.int32(0)
    for name, size in axes.named:
        own = _own_index(name, size)
        index = own if len(axes.named) == 1 else ops.add_p.bind(ops.mul_p.bind(index, np.int32(size)), own)
    return index


def _own_index(name: Any, size: int) -> Any:
    if type(name) is not MeshAxes:
        return prims.axis_index_p.bind(axis_name=name)
    return prims.own_block_p.bind(ops.iota((size,), 0, np.dtype(np.int32)), axis_name=name)


@checked
def axis_index(axis_name: AxisName) -> Any:
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
    return finish(_index(named_axes_of("axis_index", axis_name)))


@checked
def axis_size(axis_name: AxisName) -> int:
    """The number of examples of a mapped axis; of several, their product.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import lax
    >>> ft.vmap(lambda x: x / lax.axis_size("i"), axis_name="i")(fnp.ones(4))
    Array([0.25, 0.25, 0.25, 0.25])
    """
    return named_axes_of("axis_size", axis_name).size
