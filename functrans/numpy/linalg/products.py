"""Products, diagonals and traces in the forms of ``numpy.linalg``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.values import ArrayLike, DTypeLike, Value
from ...errors import ArgumentValueError, LinAlgError, ShapeError
from ...primitives.ops import operand, shape_of
from ..dispatch import implements
from ..indexing.take import diagonal as diagonal_of
from ..indexing.take import trace as trace_of
from ..products import dot
from ..products import outer as outer_of


@implements(np.linalg.outer)
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """The outer product of two vectors.

    Examples
    --------
    >>> from functrans.lax import linalg
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.linalg.outer([1, 2], [3, 4])
    Array([[3, 4],
           [6, 8]])
    """
    for i, x in enumerate((x1, x2)):
        if len(shape_of(operand(x, "outer", i))) != 1:
            raise ShapeError("linalg.outer: x1 and x2 must be vectors; numpy.outer flattens")
    return outer_of(x1, x2)


@implements(np.linalg.diagonal)
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Any:
    """The diagonals of the matrices in the last two axes.

    Examples
    --------
    >>> from functrans.lax import linalg
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.linalg.diagonal([[1, 2], [3, 4]])
    Array([1, 4])
    """
    return diagonal_of(x, offset, -2, -1)


@implements(np.linalg.trace)
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike = None) -> Any:
    """The traces of the matrices in the last two axes.

    Examples
    --------
    >>> from functrans.lax import linalg
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.linalg.trace([[1, 2], [3, 4]])
    Array(5)
    """
    return trace_of(x, offset, -2, -1, dtype)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: None = None) -> Any:
    """The product of several matrices, in the cheapest order; the first and the last may be vectors.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.multi_dot([fnp.ones((2, 3)), fnp.ones((3, 4)), fnp.ones(4)])
    Array([12., 12.])
    """
    values = [operand(a, "multi_dot", i) for i, a in enumerate(arrays)]
    if len(values) < 2:
        raise ArgumentValueError(f"multi_dot: expected at least 2 arrays, got {len(values)}")
    if len(values) == 2:
        return dot(*values)
    for i, v in enumerate(values):
        if len(shape_of(v)) != 2 and (len(shape_of(v)) != 1 or 0 < i < len(values) - 1):
            raise LinAlgError(
                f"multi_dot: array {i} has shape {shape_of(v)}; expected a matrix (the first and the last may "
                "be vectors)"
            )
    sizes = [shape_of(v)[0] if len(shape_of(v)) > 1 else 1 for v in values[:1]]
    sizes += [shape_of(v)[0] for v in values[1:]]
    sizes.append(shape_of(values[-1])[1] if len(shape_of(values[-1])) > 1 else 1)
    order = _cheapest(tuple(sizes))
    return _product(values, order, 0, len(values) - 1)


def _cheapest(sizes: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """The position at which to split each run of factors to minimize the number of multiplications."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = {
                s: cost[i, s] + cost[s + 1, j] + sizes[i] * sizes[s + 1] * sizes[j + 1] for s in range(i, j)
            }
            split[i, j] = min(options, key=options.__getitem__)
            cost[i, j] = options[split[i, j]]
    return split


def _product(values: list[Any], split: dict[tuple[int, int], int], i: int, j: int) -> Value:
    if i == j:
        return values[i]
    s = split[i, j]
    return dot(_product(values, split, i, s), _product(values, split, s + 1, j))
