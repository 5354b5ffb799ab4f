"""Batching over axes of the arguments: `vmap`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .. import errors
from ..arrays.ref import refs_among
from ..core import AxisSize, StateAval, Tracer, Transformed, aval_of
from ..core.values import AxisLike, PyTree, Value
from ..frontend.arguments import (
    Flat,
    argument_at,
    argument_place,
    check_function,
    flatten_values,
    name_of,
    results,
)
from ..frontend.checked import checked
from ..frontend.pytree import flatten_axes, tree_flatten_with_path, tree_leaves, tree_map, tree_structure
from ..primitives.structure.linear import batched_first, move_axis, shape_of
from ..transforms.batch import batch
from .refs import has_refs, with_values


@checked
def vmap(
    fun: Callable[..., PyTree],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[..., PyTree]:
    """A function that applies `fun` to every example along an axis, without a loop.

    Parameters
    ----------
    fun : callable
    in_axes : int, None, or tuple or list of them (or of pytrees of them)
        The axis to map over for each positional argument, or None for an argument that all examples share, which may
        be anything: an array, a function, another object. A single
        value applies to all arguments; for a pytree argument, a prefix pytree of axes. Keyword arguments are mapped
        over axis 0.
    out_axes : int, None, or pytree of them
        The position of the mapped axis in the results; None for results that do not depend on the example.
    axis_name : hashable, optional
        A name of the mapped axis, for collectives in `fun`: ``lax.psum(x, axis_name)`` is the sum over all examples.
    axis_size : int, optional
        The number of examples; needed only if no argument is mapped.
    spmd_axis_name : hashable, optional
        How JAX shards the mapped axis over devices. Without effect: functrans has one device.

    Returns
    -------
    callable

    Raises
    ------
    ArgumentValueError
        When called: sizes of mapped axes differ, or nothing is mapped and `axis_size` is missing.
    AxisError
        When called: an argument lacks the axis.
    PytreeError
        When called: `in_axes` or `out_axes` is not a prefix of the pytree that it describes.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> x = fnp.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> ft.vmap(fnp.dot, in_axes=(0, None))(x, fnp.asarray([1.0, 1.0]))
    Array([3., 7.])

    Over columns, with the results as columns; and over part of a pytree:

    >>> ft.vmap(lambda column: column / fnp.sum(column), in_axes=1, out_axes=1)(x)
    Array([[0.25      , 0.33333333],
           [0.75      , 0.66666667]])
    >>> ft.vmap(lambda p: p["scale"] * p["x"], in_axes=({"scale": None, "x": 0},))({"scale": 10.0, "x": x[0]})
    Array([10., 20.])

    Examples that see each other:

    >>> ft.vmap(lambda x: x - ft.lax.pmean(x, "batch"), axis_name="batch")(fnp.asarray([1.0, 2.0, 6.0]))
    Array([-2., -1.,  3.])
    """
    check_function("vmap", fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    in_axes, out_axes = _axes(in_axes), _axes(out_axes)
    if not (in_axes is None or isinstance(in_axes, int | tuple)):
        raise errors.ArgumentError(
            f"vmap of {name_of(fun)}: in_axes must be an int, None, or a tuple with one entry per "
            f"positional argument, got {in_axes!r}"
        )

    if isinstance(axis_name, int) or not isinstance(axis_name, Hashable):
        raise errors.ArgumentError(
            f"vmap of {name_of(fun)}: axis_name must be a string or another hashable object that is not an integer "
            f"(integers are positions of axes), got {axis_name!r}"
        )
    return _Mapped(fun, in_axes, out_axes, axis_name, axis_size)


def _axes(axes: AxisLike) -> Any:
    """Axes that are integers of another class, such as NumPy's or arrays without axes, as ints."""
    return axes if type(axes) is int else tree_map(_axis, axes)


def _axis(entry: Any) -> Any:
    if isinstance(entry, int | Tracer):
        return entry
    try:
        return operator.index(entry)
    except TypeError:
        return entry


class _Mapped(Transformed):
    def __init__(
        self, fun: Callable[..., PyTree], in_axes: Any, out_axes: Any, axis_name: Any, axis_size: int | None
    ):
        super().__init__("vmap", fun)
        self._in_axes = in_axes
        self._out_axes = out_axes
        self._axis_name = axis_name
        self._axis_size = axis_size

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """The results for all examples."""
        fun, in_axes = self._fun, self._in_axes
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise errors.ArgumentValueError(
                f"vmap of {name_of(fun)}: in_axes has {len(in_axes)} entries for {len(args)} positional arguments"
            )
        if has_refs((args, kwargs)):
            return self._with_refs(args, kwargs)
        axes = _argument_axes(fun, args, kwargs, in_axes)
        values, treedef = flatten_values(
            (args, kwargs), partial(argument_at, "vmap", fun), [a is None for a in axes]
        )
        places = partial(_places, fun, (args, kwargs))
        dims = [_checked_axis(fun, x, d, places, i) for i, (x, d) in enumerate(zip(values, axes))]
        size = _batch_size(fun, values, dims, places, self._axis_size)
        flat = Flat(fun, treedef, lambda f, tree: f(*tree[0], **tree[1]))
        axis = size if self._axis_name is None else AxisSize(size, self._axis_name)
        outs, out_dims = batch(flat, axis, values, dims, flat.argument)
        axes_out = flatten_axes(f"vmap of {name_of(fun)}: out_axes", flat.out_tree, self._out_axes)
        ids = {id(x) for x in values}
        return results(flat.out_tree, [_placed(fun, size, *p) for p in zip(outs, out_dims, axes_out)], ids)

    def _with_refs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results of a function of refs: each example has a part of a ref that is mapped."""
        leaves = tree_leaves((args, kwargs))
        axes = _argument_axes(self._fun, args, kwargs, self._in_axes)
        places = refs_among(leaves)
        for i in places:
            if axes[i] is not None and not -leaves[i].ndim <= axes[i] < leaves[i].ndim:
                _checked_axis(
                    self._fun, leaves[i].get(), axes[i], partial(_places, self._fun, (args, kwargs)), i
                )
        mapped = [axes[i] for i in places if axes[i] is not None]

        def transform(fun: Callable[..., PyTree], _: object) -> _Mapped:
            name, size = self._axis_name, self._axis_size
            return _Mapped(fun, self._in_axes, (self._out_axes, mapped), name, size)

        shared = [i for i in places if axes[i] is None]
        return with_values("vmap", self._fun, transform, args, kwargs, shared)


def _argument_axes(
    fun: Callable[..., PyTree], args: tuple[Any, ...], kwargs: dict[str, Any], in_axes: Any
) -> list[Any]:
    axes = flatten_axes(f"vmap of {name_of(fun)}: in_axes", tree_structure(args), in_axes)
    return axes + [0] * tree_structure(kwargs).num_leaves


def _places(fun: Callable[..., PyTree], tree: PyTree) -> list[str]:
    """The name of each argument leaf in messages: ``argument 1 ('w')['bias']``."""
    return [argument_place(fun, path) for path, _ in tree_flatten_with_path(tree)[0]]


def _checked_axis(
    fun: Callable[..., PyTree], x: Value, axis: AxisLike, places: Callable[[], list[str]], leaf: int
) -> int | None:
    if axis is None:
        return None
    if type(aval_of(x)) is StateAval:
        raise errors.BackwardStateError(
            f"vmap of {name_of(fun)}: {places()[leaf]} is a BackwardState, which all examples share; its entry in "
            "in_axes must be None"
        )
    rank = len(shape_of(x))
    if type(axis) is not int:
        raise errors.ArgumentError(f"vmap of {name_of(fun)}: axes must be ints or None, got {axis!r}")
    if not -rank <= axis < rank:
        raise errors.AxisError(
            f"vmap of {name_of(fun)}: in_axes asks for axis {axis} of {places()[leaf]} of shape {shape_of(x)}; use "
            "None for an argument that is not mapped"
        )
    return axis % rank


def _batch_size(
    fun: Callable[..., PyTree],
    values: Sequence[Value],
    dims: Sequence[int | None],
    places: Callable[[], list[str]],
    axis_size: int | None,
) -> int:
    sizes = {shape_of(x)[d] for x, d in zip(values, dims) if d is not None}
    if axis_size is not None:
        if not isinstance(axis_size, int | np.integer) or axis_size < 0:
            raise errors.ArgumentValueError(
                f"vmap of {name_of(fun)}: axis_size must be an integer of at least 0, got {axis_size!r}"
            )
        sizes.add(int(axis_size))
    if len(sizes) == 1:
        return sizes.pop()
    if not sizes:
        raise errors.ArgumentValueError(
            f"vmap of {name_of(fun)}: no argument is mapped (in_axes are all None); pass axis_size, or an axis"
        )
    listed = ", ".join(
        f"axis {d} of {place} of shape {shape_of(x)}"
        for x, d, place in zip(values, dims, places())
        if d is not None
    )
    explicit = f" and axis_size={axis_size}" if axis_size is not None else ""
    raise errors.ArgumentValueError(
        f"vmap of {name_of(fun)}: the mapped axes differ in size: {listed}{explicit}"
    )


def _placed(fun: Callable[..., PyTree], size: int, x: Value, dim: int | None, axis: AxisLike) -> Value:
    """The result with its batch axis at the position in `out_axes`."""
    if axis is None:
        if dim is not None:
            raise errors.ArgumentValueError(
                f"vmap of {name_of(fun)}: out_axes is None for a result that differs between examples (one example has "
                f"shape {shape_of(x)[:dim] + shape_of(x)[dim + 1 :]}); pass an axis for it"
            )
        return x
    rank = len(shape_of(x)) + (dim is None)
    if type(axis) is not int or not -rank <= axis < rank:
        raise errors.AxisError(
            f"vmap of {name_of(fun)}: out_axes asks for axis {axis!r} of a result with {rank} axes"
        )
    first = x if dim is not None else batched_first(size, x, None)
    return move_axis(first, dim or 0, axis % rank)
