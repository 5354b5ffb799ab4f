"""Functions without captured values: what they captured becomes arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.aval import Aval, aval_of
from ..core.checked import checked
from ..core.errors import ArgumentError, DtypeError, PytreeError, ShapeError
from ..core.ir import Jaxpr
from ..core.pytree import PyTree, PyTreeDef, first_difference, tree_flatten, tree_unflatten
from ..core.tree_nodes import KeyPath, keystr
from ..primitives.elementwise import convert_element_type_p
from ..transforms.evaluate import evaluate
from ..transforms.stage import close, stage
from ..transforms.values import (
    Flat,
    argument_name,
    check_function,
    flatten_values,
    given,
    name_of,
    struct_aval,
)
from .fitting import leaf_path

__all__ = ["closure_convert"]


@dataclass(frozen=True, eq=False)
class Staged:
    """A function traced for arguments of certain types.

    Attributes
    ----------
    name : str
    jaxpr : Jaxpr
        From traced values that the function captured, and the leaves of its arguments.
    in_tree, out_tree : PyTreeDef
        Of the tuple of arguments, and of the result.
    """

    name: str
    jaxpr: Jaxpr
    in_tree: PyTreeDef
    out_tree: PyTreeDef

    @staticmethod
    def of(fun: Callable[..., Any], args: Sequence[Aval], treedef: PyTreeDef) -> tuple[Staged, list[Any]]:
        """The function, and the traced values that it captured."""
        flat = Flat(fun, treedef, lambda f, tree: f(*tree))
        jaxpr, captured = close(stage(flat, args, name_of(fun)))
        return Staged(name_of(fun), jaxpr, treedef, flat.out_tree), list(captured)

    def __call__(self, captured: Sequence[Any], leaves: Sequence[Any]) -> PyTree:
        """The result, for leaves of the right types."""
        outs = evaluate(self.jaxpr, [*captured, *leaves])
        return tree_unflatten(self.out_tree, [given(x) for x in outs])


@checked
def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """The same function without what it captured, and that apart: so that it may be passed to a rule as an argument.

    Parameters
    ----------
    fun : callable
        Of arrays and trees of arrays. It may read values that are being differentiated, mapped, or traced.
    *example_args
        Its arguments, of which structure, shapes and dtypes are used; `ShapeDtypeStruct` will do for an array.

    Returns
    -------
    converted : callable
        ``converted(*args, *consts)`` is ``fun(*args)``.
    consts : list of arrays
        The traced values that `fun` captured. Arrays of known numbers stay where they are.

    Raises
    ------
    ArgumentError
        If `fun` is no function; when called: if the number of arguments is wrong.
    PytreeError, ShapeError, DtypeError
        When called: arguments of another structure, shape, or kind of dtype than the example.

    Notes
    -----
    A function with a rule may not read values that are being differentiated unless they are its arguments. Where such a
    function takes another function, as a solver does, convert that one, and pass on what it captured. `fun` is traced
    once, here.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functools import partial
    >>> def minimize(loss, x):  # one that takes Newton steps
    ...     converted, consts = ft.closure_convert(loss, x)
    ...     return minimizer(converted, x, *consts)
    >>> @partial(ft.custom_vjp, nondiff_argnums=0)
    ... def minimizer(loss, x, *consts):
    ...     for _ in range(5):
    ...         x = x - ft.grad(loss)(x, *consts) / ft.grad(ft.grad(loss))(x, *consts)
    ...     return x
    >>> def fwd(loss, x, *consts):
    ...     best = minimizer(loss, x, *consts)
    ...     return best, (best, consts)
    >>> def bwd(loss, residuals, ct):  # the implicit function theorem
    ...     best, consts = residuals
    ...     scale = -ct / ft.grad(ft.grad(loss))(best, *consts)
    ...     slope = ft.vjp(lambda *consts: ft.grad(loss)(best, *consts), *consts)[1]
    ...     return None, *slope(scale)
    >>> minimizer.defvjp(fwd, bwd)
    >>> ft.grad(lambda a: minimize(lambda x: fnp.cosh(x - a * a), 1.0))(0.5)
    Array(1.)
    """
    check_function("closure_convert", fun)
    leaves, in_tree = tree_flatten(example_args)
    name = f"closure_convert of {name_of(fun)}"
    avals = [struct_aval(x, lambda: f"{name}: an example argument") for x in leaves]
    staged, captured = Staged.of(fun, avals, in_tree)
    count, extra = len(example_args), len(captured)
    places = [f"{name}: {argument_name(fun, i)}" for i in range(count)]

    def converted(*args: Any) -> Any:  # holds neither `fun` nor what that captured
        if len(args) != count + extra:
            raise ArgumentError(
                f"{name}: it was converted for {count} arguments and captured {extra} values, so it takes "
                f"{count + extra}, but was called with {len(args)}: converted(*args, *consts)"
            )
        values = _fitted(args[:count], in_tree, avals, places)
        consts = flatten_values(list(args[count:]), lambda path: f"{name}: consts{keystr(path)}")[0]
        return staged(consts, values)

    return converted, [given(x) for x in captured]


def _fitted(
    args: tuple[Any, ...], treedef: PyTreeDef, avals: Sequence[Aval], places: Sequence[str]
) -> list[Any]:
    """The leaves of arguments, in the types that the function was traced for."""

    def place(path: KeyPath) -> str:
        return f"{places[path[0].idx]}{keystr(path[1:])}"

    values, found = flatten_values(args, place)
    if found != treedef:
        path, wanted, met = first_difference(treedef, found) or ((), str(treedef), str(found))
        raise PytreeError(f"{place(path)} is {met}, but it was converted for {wanted}")
    out = []
    for i, (x, aval) in enumerate(zip(values, avals)):
        own = aval_of(x)
        if own.shape == aval.shape and own.dtype == aval.dtype:
            out.append(x)
            continue
        what = f"{place(leaf_path(treedef, i))} has"
        if own.shape != aval.shape:
            raise ShapeError(f"{what} shape {own.shape}, but it was converted for shape {aval.shape}")
        if not np.can_cast(own.dtype, aval.dtype, "same_kind"):
            raise DtypeError(
                f"{what} dtype {own.dtype}, but it was converted for {aval.dtype}; convert with .astype"
            )
        out.append(convert_element_type_p.bind(x, dtype=aval.dtype))
    return out
