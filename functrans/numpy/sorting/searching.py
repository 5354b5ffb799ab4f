"""Places in sorted arrays: searchsorted, digitize."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ArgumentValueError, ShapeError
from ...core.trace import Tracer, concrete
from ...primitives.elementwise.arithmetic import ge_p, select_p, sub_p
from ...primitives.indexing.gather_scatter import gather_p
from ...primitives.operands import finish
from ...primitives.promotion import common
from ...primitives.sorting.search import searchsorted_p
from ...primitives.structure.linear import broadcast_to, dtype_of, shape_of
from ...primitives.structure.shape import element_along, rev_p
from ..dispatch import array_operand, implements

_SIDES = {"left": "left", "right": "right", "l": "left", "r": "right"}


def places(a: Any, v: Any, side: str) -> Any:
    """Where the numbers `v` belong in the sorted `a`."""
    a, v = common(a, v)
    v = v if isinstance(v, (Tracer, np.ndarray)) else np.asarray(v)
    return searchsorted_p.bind(a, v, side=side)


@implements(np.searchsorted, method="searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str | None = None) -> Any:
    """Where numbers would have to be put into a sorted array to keep it sorted.

    Parameters
    ----------
    a : array_like, shape (n,)
        Sorted, unless `sorter` is given.
    v : array_like, shape (*shape)
    side : {'left', 'right'}
        Before or behind equal elements.
    sorter : array_like of int, shape (n,), optional
        The order that sorts `a`, from `argsort`.
    method : str, optional
        Accepted for the sake of code written for JAX; it is always binary search.

    Returns
    -------
    Array of int64, shape (*shape)

    Raises
    ------
    ShapeError
        If `a` has not one axis.
    ArgumentValueError
        If `side` is something else.

    Notes
    -----
    NaN is larger than all numbers. The result has no derivative.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.searchsorted([1.0, 2.0, 3.0], [0.5, 2.0, 9.0])
    Array([0, 1, 3])
    """
    if not isinstance(side, str) or side not in _SIDES:
        raise ArgumentValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    x, numbers = array_operand(a, "searchsorted"), array_operand(v, "searchsorted", 1)
    if len(shape_of(x)) != 1:
        raise ShapeError(f"searchsorted: want a sorted array with one axis, got shape {shape_of(x)}")
    if sorter is not None:
        order = array_operand(sorter, "searchsorted: sorter")
        if dtype_of(order).kind not in "iu":
            raise ArgumentError(f"searchsorted: sorter must be integers, got dtype {dtype_of(order)}")
        if shape_of(order) != shape_of(x):
            raise ShapeError(f"searchsorted: sorter of shape {shape_of(order)} for {shape_of(x)[0]} elements")
        x = gather_p.bind(x, order, axes=(0,), mode="raise")
    return finish(places(x, numbers, _SIDES[side]))


def _direction(values: np.ndarray) -> int:
    """1 if edges increase, -1 if they decrease; what NaN compares with is no objection."""
    other = values[values != values[0]]
    rising = not other.size or values[0] < other[0]
    wrong = values[1:] < values[:-1] if rising else values[1:] > values[:-1]
    if wrong.any():
        raise ArgumentValueError("digitize: bins must be monotonically increasing or decreasing")
    return 1 if rising else -1


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Any:
    """The number of the bin that each element lies in.

    Parameters
    ----------
    x : array_like, shape (*shape)
    bins : array_like, shape (n,)
        Increasing or decreasing.
    right : bool
        Whether a bin includes its right edge instead of its left one.

    Returns
    -------
    Array of int64, shape (*shape)
        ``i`` with ``bins[i-1] <= x < bins[i]``; 0 and n beyond the edges.

    Raises
    ------
    ArgumentValueError
        If `bins` are known, and not monotonic.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.digitize([0.2, 6.4, 3.0], [0.0, 1.0, 2.5, 4.0])
    Array([1, 4, 3])
    """
    numbers, edges = array_operand(x, "digitize"), array_operand(bins, "digitize", 1)
    if dtype_of(numbers).kind == "c":
        raise ArgumentError("digitize: x may not be complex")
    if len(shape_of(edges)) != 1:
        raise ArgumentValueError(f"digitize: bins must have one axis, got shape {shape_of(edges)}")
    n = shape_of(edges)[0]
    if dtype_of(edges).kind == "c":
        raise ArgumentError("digitize: bins may not be complex")
    values = concrete(edges)
    side = "left" if right else "right"
    direction = 1 if n < 2 else 0 if values is None else _direction(values)
    if direction > 0:
        return finish(places(edges, numbers, side))
    reverse = rev_p.bind(edges, dimensions=(0,))
    falling = sub_p.bind(np.int64(n), places(reverse, numbers, side))
    if direction < 0:
        return finish(falling)
    rising = places(edges, numbers, side)
    first, last = (element_along(edges, 0, i) for i in (0, n - 1))
    ascending = broadcast_to(ge_p.bind(last, first), shape_of(numbers))
    return finish(select_p.bind(ascending, rising, falling))
