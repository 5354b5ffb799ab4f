"""Batching rules in the form of ``jax.interpreters.batching``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..arrays.array import wrap
from ..numpy import broadcast_to, moveaxis
from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.records import dataclass
from ..transforms.batch import BatchTracer
from .primitive import ExtendedPrimitive
from .registries import Registry, primitive_example

__all__ = [
    "AxisData", "BatchTracer", "axis_primitive_batchers", "bdim_at_front", "defvectorized", "fancy_primitive_batchers",
    "not_mapped", "primitive_batchers",
]  # fmt: skip
__getattr__, __dir__ = _module_attributes("functrans.extend.batching", globals())

#: The batch axis of a value that has none.
not_mapped = None


@dataclass(frozen=True)
class AxisData:
    """What a rule in `fancy_primitive_batchers` learns of the axis that `vmap` adds."""

    size: int
    name: Any = None
    spmd_name: Any = None
    explicit_mesh_axis: Any = None


def _result(prim: ExtendedPrimitive, found: tuple[Any, Any]) -> tuple[Any, Any]:
    out, dims = found
    if not prim.multiple_results:
        return prim._results(out), dims
    outs = prim._results(out)
    return outs, list(dims) if isinstance(dims, tuple | list) else [dims] * len(outs)


def _batch(prim: ExtendedPrimitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    def batch(size: int, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return _result(prim, rule(tuple(map(wrap, args)), tuple(dims), **params))

    return batch


def _axis_batch(prim: ExtendedPrimitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    def batch(size: int, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return _result(prim, rule(AxisData(size), tuple(map(wrap, args)), tuple(dims), **params))

    return batch


#: ``rule(args, dims, **params) -> (out, dim)``; a dim is the batch axis of an argument, or `not_mapped`.
primitive_batchers = Registry("batching.primitive_batchers", "batch", _batch)
#: ``rule(axis, args, dims, **params)``, where ``axis.size`` is the number of lanes.
fancy_primitive_batchers = Registry("batching.fancy_primitive_batchers", "batch", _axis_batch)
axis_primitive_batchers = fancy_primitive_batchers


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """The array with its batch axis first; one that has none is repeated.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans import extend
    >>> extend.batching.bdim_at_front(fnp.ones((2, 3)), 1, 3).shape
    (3, 2)
    """
    if bdim is None:
        return broadcast_to(x, (size, *x.shape))
    return moveaxis(x, bdim, 0)


@primitive_example
def defvectorized(prim: ExtendedPrimitive) -> None:
    """Declare a primitive elementwise in its one argument: batched, it is itself.

    Examples
    --------
    >>> extend.batching.defvectorized(p)
    >>> ft.vmap(p.bind)(ft.numpy.arange(3.0))
    Array([0., 1., 8.])
    """

    def rule(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        out = prim.bind(*args, **params)
        return out, ([dims[0]] * len(out) if prim.multiple_results else dims[0])

    primitive_batchers[prim] = rule
