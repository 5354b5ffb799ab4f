"""Joining and taking apart, and other small things of `functrans.lax`."""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.checked import checked
from ..core.errors import ArgumentValueError, ShapeError
from ..core.pytree import tree_map
from ..numpy.dispatch import array_operand, owned
from ..primitives.axes import as_shape, one_axis
from ..primitives.elementwise.identities import barrier_p
from ..primitives.operands import finish
from ..primitives.structure.linear import broadcast_in_dim_p, reshape_p, shape_of
from ..primitives.structure.shape import concatenate_p, element_along, slice_along
from .arrays import full
from .elementwise import operands

__all__ = [
    "Precision", "RoundingMethod", "broadcast_to_rank", "empty", "optimization_barrier", "split", "stack",
    "tile", "unstack",
]  # fmt: skip


class Precision(enum.Enum):
    """How precise products should be; accepted for the sake of code written for JAX, and without effect."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


class RoundingMethod(enum.IntEnum):
    """Where `round` takes numbers half-way between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


@checked
def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """The array in pieces of these sizes along an axis.

    Raises
    ------
    ArgumentValueError
        If the sizes do not add up to the extent of the axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.split(np.arange(4), (1, 3))
    [Array([0]), Array([1, 2, 3])]
    """
    (x,) = operands("split", operand)
    shape = shape_of(x)
    d = one_axis(axis, len(shape), "lax.split")
    extents = as_shape(sizes, "lax.split: sizes")
    if min(extents, default=0) < 0 or sum(extents) != shape[d]:
        raise ArgumentValueError(
            f"lax.split: sizes {extents} do not add up to {shape[d]}, the extent of axis {d}"
        )
    stops = np.cumsum(extents).tolist()
    return [owned(slice_along(x, d, stop - n, stop), operand) for n, stop in zip(extents, stops)]


@checked
def stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    """Arrays of one shape and dtype along a new axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.stack([np.arange(2), np.arange(2)], axis=1)
    Array([[0, 0],
           [1, 1]])
    """
    if not len(arrays):
        raise ArgumentValueError("lax.stack: want at least one array")
    values = operands("stack", *arrays)
    shapes = {shape_of(v) for v in values}
    if len(shapes) > 1:
        raise ShapeError(f"lax.stack: arrays have different shapes ({', '.join(map(str, sorted(shapes)))})")
    (shape,) = shapes
    d = one_axis(axis, len(shape) + 1, "lax.stack")
    rows = [reshape_p.bind(v, shape=(*shape[:d], 1, *shape[d:])) for v in values]
    return finish(concatenate_p.bind(*rows, dimension=d))


@checked
def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The parts along an axis, which they lack.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.unstack(np.arange(2))
    (Array(0), Array(1))
    """
    value = array_operand(x, "lax.unstack")
    d = one_axis(axis, len(shape_of(value)), "lax.unstack")
    return tuple([owned(element_along(value, d, i), x) for i in range(shape_of(value)[d])])


@checked
def tile(operand: Any, reps: Sequence[int]) -> Any:
    """The array repeated so often along each axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.tile(np.arange(2), (2,))
    Array([0, 1, 0, 1])
    """
    (x,) = operands("tile", operand)
    shape, counts = shape_of(x), as_shape(reps, "lax.tile: reps")
    if len(counts) != len(shape) or min(counts, default=0) < 0:
        raise ArgumentValueError(f"lax.tile: want {len(shape)} repetitions for shape {shape}, got {counts}")
    spread = tuple([n for pair in zip(counts, shape) for n in pair])
    kept = tuple(range(1, 2 * len(shape), 2))
    out = broadcast_in_dim_p.bind(x, shape=spread, broadcast_dimensions=kept)
    return owned(reshape_p.bind(out, shape=tuple([n * m for n, m in zip(counts, shape)])), operand)


@checked
def broadcast_to_rank(x: Any, rank: int) -> Any:
    """With axes of extent 1 in front, until there are so many.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.broadcast_to_rank(np.arange(2), 2)
    Array([[0, 1]])
    """
    value = array_operand(x, "lax.broadcast_to_rank")
    shape, count = shape_of(value), operator.index(rank)
    if count < len(shape):
        raise ArgumentValueError(f"lax.broadcast_to_rank: shape {shape} has more axes than {count}")
    return owned(reshape_p.bind(value, shape=(1,) * (count - len(shape)) + shape), x)


@checked
def empty(shape: Sequence[int], dtype: Any) -> Any:
    """A new array whose numbers do not matter; they are zeros.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.empty((2,), float).shape
    (2,)
    """
    return full(shape, 0, dtype)


@checked
def optimization_barrier(operand: Any) -> Any:
    """The tree of arrays as it is; what is computed from it is computed apart, and not before.

    Equal computations from a value and from the same value behind a barrier are both done in a compiled function, each
    in loops of its own: so one of them can be given up and done again, to save memory. Costs nothing itself.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.optimization_barrier((1.0, 2.0))
    (Array(1.), Array(2.))
    """
    return tree_map(lambda x: owned(barrier_p.bind(array_operand(x, "lax.optimization_barrier")), x), operand)
