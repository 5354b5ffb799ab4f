"""Slices, of fixed places and of places that the program computes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.aval import aval_of
from ..core.checked import checked
from ..core.errors import ArgumentValueError
from ..core.trace import Tracer
from ..numpy.dispatch import owned
from ..primitives.axes import one_axis
from ..primitives.elementwise.arithmetic import convert, lt_p, select_p
from ..primitives.operands import operand as value_of
from ..primitives.operands import strong
from ..primitives.structure.dynamic import dynamic_slice_p, dynamic_update_slice_p
from ..primitives.structure.linear import add_p, reshape_p, shape_of
from ..primitives.structure.shape import slice_p
from .arrays import bounds, ints, single, squeeze

__all__ = [
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
    "dynamic_update_slice", "dynamic_update_slice_in_dim", "index_in_dim", "slice", "slice_in_dim",
]  # fmt: skip


@checked
def slice(
    operand: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Any:
    """``operand[start:limit:stride]`` along all axes, within bounds.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.slice(np.arange(10), (1,), (8,), (3,))
    Array([1, 4, 7])
    """
    x = single("slice", operand)
    params = {
        "start_indices": ints(start_indices, "slice"),
        "limit_indices": ints(limit_indices, "slice"),
        "strides": (1,) * len(shape_of(x)) if strides is None else ints(strides, "slice"),
    }
    slice_p.abstract(aval_of(x), **params)
    return owned(slice_p.bind(x, **params), operand)


@checked
def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Any:
    """``operand[start:limit:stride]`` along one axis; negative indices count from the end.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.slice_in_dim(np.arange(10), 1, -2, stride=3)
    Array([1, 4, 7])
    """
    shape = shape_of(single("slice_in_dim", operand))
    d = one_axis(axis, len(shape), "lax.slice_in_dim")
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[d], stop, _ = bounds(start_index, limit_index, shape[d])
    limits[d], strides[d] = max(stop, starts[d]), operator.index(stride)
    return slice(operand, starts, limits, strides)


@checked
def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """``operand[index]`` along one axis, which stays with extent 1 if `keepdims`.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.index_in_dim(np.array([[1, 2], [3, 4]]), 1, axis=1, keepdims=False)
    Array([2, 4])
    """
    shape = shape_of(single("index_in_dim", operand))
    d = one_axis(axis, len(shape), "lax.index_in_dim")
    i = one_axis(index, shape[d], "lax.index_in_dim: index")
    out = slice_in_dim(operand, i, i + 1, 1, d)
    return out if keepdims else squeeze(out, (d,))


def _starts(x: Any, start_indices: Any, name: str) -> list[Any]:
    """One start for each axis; negative ones count from the end."""
    shape = shape_of(x)
    if isinstance(start_indices, (Tracer, np.ndarray)):
        start_indices = [start_indices[i] for i in range(shape_of(start_indices)[0])]
    if len(start_indices) != len(shape):
        raise ArgumentValueError(
            f"lax.{name}: start_indices has {len(start_indices)} elements for an operand of {len(shape)} axes"
        )
    found = []
    for s, n in zip(start_indices, shape):
        s = value_of(s, name)
        if isinstance(s, Tracer):
            if s.dtype.kind == "i":
                extent = s.dtype.type(n) if n <= np.iinfo(s.dtype).max else None
                if extent is None:
                    s, extent = convert(s, np.dtype(np.int64)), np.int64(n)
                s = select_p.bind(lt_p.bind(s, s.dtype.type(0)), add_p.bind(s, extent), s)
            found.append(s)
        else:
            i = operator.index(s if not isinstance(s, np.ndarray) else s[()])
            found.append(i + n if i < 0 else i)
    return found


@checked
def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Any:
    """A slice that begins where traced numbers say; the start is clamped so that it fits.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_slice(np.arange(5), (4,), (2,))
    Array([3, 4])
    """
    x = single("dynamic_slice", operand)
    starts = _starts(x, start_indices, "dynamic_slice")
    sizes = ints(slice_sizes, "dynamic_slice")
    dynamic_slice_p.abstract(aval_of(x), *map(aval_of, starts), slice_sizes=sizes)
    return owned(dynamic_slice_p.bind(x, *starts, slice_sizes=sizes), operand)


@checked
def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> Any:
    """`dynamic_slice` along one axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_slice_in_dim(np.arange(10), 8, 4)  # begins at 6
    Array([6, 7, 8, 9])
    """
    shape = shape_of(single("dynamic_slice_in_dim", operand))
    d = one_axis(axis, len(shape), "lax.dynamic_slice_in_dim")
    starts: list[Any] = [0] * len(shape)
    sizes = list(shape)
    starts[d], sizes[d] = start_index, operator.index(slice_size)
    return dynamic_slice(operand, starts, sizes)


@checked
def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    """One element along an axis, at a traced place, which is clamped.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_index_in_dim(np.array([[1, 2], [3, 4]]), 1, keepdims=False)
    Array([3, 4])
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis)
    d = one_axis(axis, len(shape_of(out)), "lax.dynamic_index_in_dim")
    return out if keepdims else squeeze(out, (d,))


@checked
def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Any:
    """`operand` with a slice replaced, which begins where traced numbers say; the start is clamped.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_update_slice(np.zeros(4), np.ones(2), (1,))
    Array([0., 1., 1., 0.])
    """
    x, new = operands_of_update("dynamic_update_slice", operand, update)
    starts = _starts(x, start_indices, "dynamic_update_slice")
    dynamic_update_slice_p.abstract(aval_of(x), aval_of(new), *map(aval_of, starts))
    return owned(dynamic_update_slice_p.bind(x, new, *starts), operand)


def operands_of_update(name: str, operand: Any, update: Any) -> tuple[Any, Any]:
    """Operand and update, which must agree in dtype but not in shape."""
    x = single(name, operand)
    new = value_of(update, name, 1)
    aval = aval_of(new)
    return x, strong(new, aval_of(x).dtype if aval.weak else aval.dtype)


@checked
def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Any:
    """`dynamic_update_slice` along one axis.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_update_slice_in_dim(np.zeros(4), np.ones(2), 1, 0)
    Array([0., 1., 1., 0.])
    """
    ndim = len(shape_of(single("dynamic_update_slice_in_dim", operand)))
    starts: list[Any] = [0] * ndim
    starts[one_axis(axis, ndim, "lax.dynamic_update_slice_in_dim")] = start_index
    return dynamic_update_slice(operand, update, starts)


@checked
def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Any:
    """`operand` with one element along an axis replaced.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.dynamic_update_index_in_dim(np.zeros(3), 1.0, 2, 0)
    Array([0., 0., 1.])
    """
    x, new = operands_of_update("dynamic_update_index_in_dim", operand, update)
    ndim = len(shape_of(x))
    d = one_axis(axis, ndim, "lax.dynamic_update_index_in_dim")
    if len(shape_of(new)) != ndim:
        shape = shape_of(new)
        new = reshape_p.bind(new, shape=(*shape[:d], 1, *shape[d:]))
    return dynamic_update_slice_in_dim(x, new, index, d)
