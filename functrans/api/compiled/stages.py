"""Inspect a function without running it: `make_jaxpr`, `eval_shape`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...core import Jaxpr, Transformed, boundary
from ...core.values import ArrayLike
from ...frontend.arguments import Flat, check_function, given, name_of, struct_aval
from ...frontend.checked import checked
from ...frontend.pytree import PyTree, tree_flatten, tree_map, tree_unflatten
from ...frontend.structs import described, struct_of
from ...primitives.structure.linear import zeros
from ...transforms.stage import stage
from .static import SplitArguments, StaticArguments


def _shapes(split: SplitArguments, fun: Callable[..., PyTree], tree: PyTree) -> PyTree:
    """The result, in which a `ShapeDtypeStruct` stands for an array."""
    return tree_map(_array_of_struct, split.call(fun, tree))


def _array_of_struct(x: ArrayLike) -> PyTree:
    aval = described(x)
    return x if aval is None else given(zeros(aval))


def _staged(
    fun: Callable[..., PyTree],
    signature: StaticArguments,
    args: Any,
    kwargs: Any,
    call: Callable[..., PyTree] = SplitArguments.call,
) -> tuple[Jaxpr, Any]:
    split = signature.split(fun, args, kwargs)
    leaves, treedef = tree_flatten(split.dynamic)
    avals = [struct_aval(x, lambda: f"an argument of {name_of(fun)}") for x in leaves]
    flat = Flat(fun, treedef, partial(call, split))
    return stage(flat, avals, name_of(fun), argument=flat.argument), flat.out_tree


@checked
def make_jaxpr(
    fun: Callable[..., PyTree], static_argnums: int | Sequence[int] | None = None, return_shape: bool = False
) -> Callable[..., PyTree]:
    """A function that returns the jaxpr of `fun`.

    Parameters
    ----------
    fun : callable
    static_argnums : int or sequence of int
        As for `jit`.
    return_shape : bool
        Whether to return the pytree of output shapes as well.

    Returns
    -------
    callable
        Takes `fun`'s arguments (arrays, numbers or `ShapeDtypeStruct`s) and returns a `Jaxpr`, which prints one
        equation per line (``.pretty_print(source_info=True)`` adds your file and line).

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> print(ft.make_jaxpr(lambda x: fnp.sin(x) * 2.0)(1.0))
    lambda a:f64[]*.
      b:f64[] = convert_element_type[dtype=float64, weak=False] a
      c:f64[] = sin b
      d:f64[] = mul c 2.0
      return (d,)
    """
    check_function("make_jaxpr", fun)
    return _JaxprOf(fun, StaticArguments(fun, static_argnums, None), return_shape)


class _JaxprOf(Transformed):
    def __init__(self, fun: Callable[..., PyTree], signature: StaticArguments, return_shape: bool):
        super().__init__("make_jaxpr", fun)
        self._signature = signature
        self._return_shape = return_shape

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """The jaxpr, and the shapes of the results."""
        jaxpr, out_tree = _staged(self._fun, self._signature, args, kwargs)
        if self._return_shape:
            return jaxpr, tree_unflatten(out_tree, [struct_of(a) for a in jaxpr.out_avals])
        return jaxpr


@boundary
@checked
def eval_shape(fun: Callable[..., PyTree], *args: Any, **kwargs: PyTree) -> PyTree:
    """Compute the shapes and dtypes of a function's results without running it.

    Parameters
    ----------
    fun : callable
    *args, **kwargs
        Its arguments: arrays, numbers or `ShapeDtypeStruct`s. `fun` may also return such.

    Returns
    -------
    pytree of ShapeDtypeStruct

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.eval_shape(lambda x: fnp.sum(x, axis=0), ft.ShapeDtypeStruct((10, 3), "float32"))
    ShapeDtypeStruct(shape=(3,), dtype=dtype('float32'), weak_type=False)
    """
    check_function("eval_shape", fun)
    jaxpr, out_tree = _staged(fun, StaticArguments(fun, None, None), args, kwargs, _shapes)
    return tree_unflatten(out_tree, [struct_of(a) for a in jaxpr.out_avals])
