"""Differences of neighbours, and the sum that undoes them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...core.errors import ArgumentValueError, ShapeError
from ...primitives import ufuncs
from ...primitives.axes import one_axis
from ...primitives.elementwise.arithmetic import ne_p, sub_p
from ...primitives.operands import finish, operand
from ...primitives.structure.linear import broadcast_to, reduce_sum_p, reshape_p, shape_of
from ...primitives.structure.shape import neighbours
from ..dispatch import array_operand, implements, owned
from ..shaping.joining import joined

__all__ = ["diff", "trapezoid"]


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, `n` times over; of booleans whether they differ.

    Parameters
    ----------
    a : array_like
    n : int
        How often; 0 gives `a`.
    axis : int
    prepend, append : array_like, optional
        Put before and behind `a` first; a number stands for a slice of it.

    Returns
    -------
    Array
        Shorter by `n` along the axis.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.diff([1, 2, 4, 7])
    Array([1, 2, 3])
    """
    x = array_operand(a, "diff")
    times = operator.index(n)
    if times < 0:
        raise ArgumentValueError(f"diff: n must not be negative, got {times}")
    if not times:
        return owned(x, a)
    d = one_axis(axis, len(shape_of(x)), "diff")
    parts = [_slab(prepend, x, d)] if prepend is not None else []
    parts += [x] + ([_slab(append, x, d)] if append is not None else [])
    if len(parts) > 1:
        x = joined(parts, d, "diff")
    for _ in range(min(times, shape_of(x)[d])):
        x = (ne_p if x.dtype.kind == "b" else sub_p).bind(*neighbours(x, d))
    return finish(x)


def _slab(value: Any, x: Any, axis: int) -> Any:
    """What is put before or behind: a number as one slice."""
    value = array_operand(value, "diff")
    if shape_of(value):
        return value
    shape = shape_of(x)
    return broadcast_to(value, (*shape[:axis], 1, *shape[axis + 1 :]))


@implements(*([np.trapezoid] if hasattr(np, "trapezoid") else []))
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by the trapezoidal rule.

    Parameters
    ----------
    y : array_like
        The samples along `axis`.
    x : array_like, optional
        Where they were taken: a vector, or of the shape of `y`.
    dx : number
        Their distance, if `x` is not given.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.trapezoid([1.0, 2.0, 3.0])
    Array(4.)
    """
    values = array_operand(y, "trapezoid")
    shape = shape_of(values)
    d = one_axis(axis, len(shape), "trapezoid")
    if x is None:
        step = operand(dx, "trapezoid", 2)
    else:
        places = operand(x, "trapezoid", 1)
        if len(shape_of(places)) == 1:
            if shape_of(places)[0] != shape[d]:
                raise ShapeError(
                    f"trapezoid: {shape_of(places)[0]} places for {shape[d]} samples along axis {d}"
                )
            spread = tuple([shape[d] if e == d else 1 for e in range(len(shape))])
            places = reshape_p.bind(places, shape=spread)
        step = operand(diff(places, axis=d), "trapezoid")
    # Integers are added, and multiplied by integers, in their own dtype, as in NumPy: there they may wrap.
    products = ufuncs.multiply(step, ufuncs.add(*neighbours(values, d)))
    areas = operand(ufuncs.true_divide(products, 2.0), "trapezoid")
    return finish(reduce_sum_p.bind(areas, axes=(d,)))
