"""``vmap`` of a `Function` by its own rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from ..core.errors import PytreeError, VmapRuleError
from ..core.pytree import flatten_axes, tree_structure
from ..core.source import last_line
from ..transforms.values import given
from .layout import Arguments, own_value
from .outputs import Outputs


class VmapInfo(NamedTuple):
    """What a ``vmap`` staticmethod is told of the transformation.

    Attributes
    ----------
    batch_size : int
        The size of the mapped axis.
    randomness : str
        Always ``'error'``: there is no hidden random state that examples could share.
    axis_name : None
        Mapped axes have no names.
    """

    batch_size: int
    randomness: str = "error"
    axis_name: str | None = None


def apply_vmap_rule(
    name: str,
    fun: Callable[..., Any],
    size: int,
    arguments: Arguments,
    values: Sequence[Any],
    dims: Sequence[int | None],
) -> tuple[Outputs, list[Any], list[int | None]]:
    """The structure of the outputs, the arrays in them, and their batch axes."""
    args = arguments.filled([given(x) for x in values])
    returned = arguments.call(fun, args, VmapInfo(size), arguments.layout.filled(dims))

    def refuse(problem: str) -> NoReturn:
        raise VmapRuleError(f"{name}: {problem}", last_line(fun))

    base = (
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible "
        "with the output."
    )
    if not isinstance(returned, tuple):
        refuse(f"{base} Got a {type(returned).__name__} instead")
    if len(returned) != 2:
        refuse(f"{base} Got {len(returned)} returns instead")
    output, out_dims = returned
    outputs, arrays = Outputs.of(output)
    found = [own_value(x, lambda: f"{name}: an output of vmap") for x in arrays]
    return outputs, found, _out_dims(outputs, output, out_dims, size, found, refuse)


def _out_dims(
    outputs: Outputs,
    output: Any,
    out_dims: Any,
    size: int,
    arrays: Sequence[Any],
    refuse: Callable[[str], NoReturn],
) -> list[int | None]:
    tree = tree_structure(output)
    try:
        axes = flatten_axes("out_dims", tree, out_dims)
    except PytreeError:
        refuse(
            "The vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims!r} to be compatible with the structure of `output`. `out_dims` has structure "
            f"{tree_structure(out_dims)} but `output` has structure {tree}"
        )
    found = []
    places = [n for part in outputs.layout.parts for n in part.arrays]
    for dim, place in zip(axes, places):
        if place is None:
            continue
        shape = arrays[place].shape
        if dim is not None and (type(dim) is not int or not -len(shape) <= dim < len(shape)):
            refuse(
                f"The vmap staticmethod returned out_dims={out_dims!r}, of which {dim!r} is no axis of an output of "
                f"shape {shape}; each must be an axis or None"
            )
        if dim is not None and shape[dim] != size:
            refuse(
                f"The vmap staticmethod returned an output of shape {shape} with the batch axis at {dim}, where it has "
                f"size {shape[dim]} instead of {size}"
            )
        found.append(None if dim is None else dim % len(shape))
    return found
