"""Over which axes of a mesh a value differs, said by the user."""

from __future__ import annotations

from typing import Any

from ..control import collectives as prims
from ..core import ArgumentValueError
from ..core.named_axes import MeshAxes
from ..frontend.checked import checked
from .collectives import each_leaf, named_axes_of

__all__ = ["pcast", "pvary"]


@checked
def pvary(x: Any, axis_name: Any) -> Any:
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

    def varying(value: Any) -> Any:
        for name, _ in axes.named:
            if type(name) is MeshAxes:
                value = prims.pvary_p.bind(value, axis_name=name)
        return value

    return each_leaf("pvary", x, varying)


@checked
def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """`pvary`, under the name that it has in JAX since 0.9.

    Parameters
    ----------
    x, axis_name
        As of `pvary`.
    to : {'varying'}
    """
    if to != "varying":
        raise ArgumentValueError(
            f"pcast: to must be 'varying', got {to!r}. For values that all ranks have, use psum"
        )
    return pvary(x, axis_name)
