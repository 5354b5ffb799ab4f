"""Build arrays by concise notation: block, r_, c_; the meshes mgrid and ogrid."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import ArgumentError, ArgumentValueError, is_abstract
from ...core.values import ArrayLike, Value
from ...primitives import ops
from ...primitives.ops import finish, operand, shape_of
from ..dispatch import array_operand, implements
from ..shaping.joining import concatenate
from .filled import array
from .ranges import arange, linspace

__all__ = ["block", "c_", "mgrid", "ogrid", "r_"]

# --- block --------------------------------------------------------------------------------------------------


def _depth(arrays: ArrayLike, place: str = "arrays") -> int:
    """The nesting depth of lists, which must be the same everywhere."""
    if isinstance(arrays, tuple):
        raise ArgumentError(f"block: {place} is a tuple; only lists can be used to arrange blocks")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ArgumentValueError(f"block: list at {place} cannot be empty")
    depths = [_depth(part, f"{place}[{i}]") for i, part in enumerate(arrays)]
    if len(set(depths)) != 1:
        raise ArgumentValueError(f"block: list depths are mismatched in {place}: {depths}")
    return depths[0] + 1


def _joined(arrays: ArrayLike, axes: int, depth: int) -> Value:
    if not isinstance(arrays, list):
        return array(arrays, ndmin=axes)
    return concatenate([_joined(part, axes, depth - 1) for part in arrays], axis=-depth)


def _leaves(arrays: ArrayLike) -> list[Value]:
    return [leaf for part in arrays for leaf in _leaves(part)] if isinstance(arrays, list) else [arrays]


@implements(np.block)
def block(arrays: ArrayLike) -> Value | None:
    """Join arrays as arranged in nested lists: the innermost lists along the last axis, and so on outwards.

    Parameters
    ----------
    arrays : nested list of array_like

    Raises
    ------
    ShapeError, ArgumentValueError
        If shapes or depths do not match.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.block([[fnp.eye(2), fnp.zeros((2, 1))], [fnp.ones((1, 3))]])
    Array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 1.]])
    """
    depth = _depth(arrays)
    axes = max([depth, *[len(shape_of(operand(leaf, "block"))) for leaf in _leaves(arrays)]])
    return _joined(arrays, axes, depth)


# --- r_ and c_ ----------------------------------------------------------------------------------------------


def _count(step: ArrayLike) -> int | None:
    """The number of points that a slice such as ``0:1:5j`` asks for, if any."""
    return int(abs(step)) if isinstance(step, complex) else None


class _Joiner:
    """``r_[...]`` joins arrays, numbers and slices along an axis."""

    def __init__(self, name: str, axis: int, ndmin: int, trans1d: int, doc: str):
        self._name, self._setting = name, (axis, ndmin, trans1d)
        self.__doc__ = doc

    def __repr__(self) -> str:
        return f"functrans.numpy.{self._name}"

    def __getitem__(self, key: ArrayLike) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans1d = self._setting
        if items and isinstance(items[0], str):
            axis, ndmin, trans1d = self._directive(items.pop(0))
        if not items:
            raise ArgumentValueError(f"{self._name}: need at least one array to join")
        return concatenate([self._part(item, ndmin, trans1d) for item in items], axis=axis)

    def _directive(self, text: str) -> tuple[int, int, int]:
        """``'axis,ndmin,trans1d'``, whose last parts may be missing."""
        try:
            given = tuple([int(part) for part in text.split(",")])
            return (given + self._setting[len(given) :])[:3]  # type: ignore[return-value]
        except ValueError:
            raise ArgumentValueError(
                f"{self._name}: unknown directive {text!r}; expected 'axis', 'axis,ndmin' or 'axis,ndmin,trans1d'; "
                "matrices ('r', 'c') are not supported"
            ) from None

    def _part(self, item: Any, ndmin: int, trans1d: int) -> Value:
        if isinstance(item, slice):
            start = 0 if item.start is None else item.start
            count = _count(item.step)
            x = (
                linspace(start, item.stop, count)
                if count is not None
                else arange(start, item.stop, item.step)
            )
        else:
            x = item
        value = array_operand(x, self._name)
        shape = shape_of(value)
        missing = ndmin - len(shape)
        if missing > 0:
            # The axes of the array begin at `trans1d`; if negative, `trans1d` is the position of the last one.
            first = trans1d if trans1d >= 0 else missing + trans1d + 1
            shape = (1,) * first + shape + (1,) * (missing - first)
        return finish(ops.reshape_p.bind(value, shape=shape or (1,)))


r_ = _Joiner(
    "r_",
    0,
    1,
    -1,
    """Joins arrays, numbers and slices along the first axis: ``r_[1:4, 0, x]``.

Examples
--------
>>> import functrans.numpy as fnp
>>> fnp.r_[1:4, 0, fnp.array([7, 8])]
Array([1, 2, 3, 0, 7, 8])
""",
)
c_ = _Joiner(
    "c_",
    -1,
    2,
    0,
    """Joins vectors as columns, and matrices along their last axis.

Examples
--------
>>> import functrans.numpy as fnp
>>> fnp.c_[fnp.array([1, 2]), fnp.array([3, 4])]
Array([[1, 3],
       [2, 4]])
""",
)

# --- meshes -------------------------------------------------------------------------------------------------


class _Mesh:
    """``mgrid[0:2, 0:3]``: the coordinates of the points of a mesh."""

    def __init__(self, name: str, made_by: Any, doc: str):
        self._name, self._made_by = name, made_by
        self.__doc__ = doc

    def __repr__(self) -> str:
        return f"functrans.numpy.{self._name}"

    def __getitem__(self, key: ArrayLike) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        bounds = [b for part in parts if isinstance(part, slice) for b in (part.start, part.stop, part.step)]
        if any(is_abstract(b) for b in bounds):
            raise ArgumentError(
                f"{self._name}: a bound is a traced value, but the shape depends on it; use linspace and meshgrid"
            )
        made = self._made_by[key]
        return tuple([finish(part) for part in made]) if isinstance(made, tuple) else finish(made)


mgrid = _Mesh(
    "mgrid",
    np.mgrid,
    """The coordinates of a mesh, in one array with a row for each axis: ``mgrid[0:2, 0:1:5j]``.

Examples
--------
>>> import functrans.numpy as fnp
>>> fnp.mgrid[0:2, 0:2]
Array([[[0, 0],
        [1, 1]],
<BLANKLINE>
       [[0, 1],
        [0, 1]]])
""",
)
ogrid = _Mesh(
    "ogrid",
    np.ogrid,
    """The coordinates of a mesh, one array for each axis, that broadcast together.

Examples
--------
>>> import functrans.numpy as fnp
>>> fnp.ogrid[0:2, 0:3]
(Array([[0],
       [1]]), Array([[0, 1, 2]]))
""",
)
