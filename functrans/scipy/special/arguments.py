"""Arguments of special functions that are not ufuncs, and the choice between real and complex primitives."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import (
    ArgumentError,
    ArgumentValueError,
    DtypeError,
    Primitive,
    default_float,
    is_float,
    is_inexact,
)
from ...core.values import ArrayLike, Param, PyTree, Value
from ...numpy.dispatch import array_operand
from ...primitives import ops
from ...primitives.ops import common, dtype_of, finish, shape_of


def real_float(x: Value, name: str, position: int = 0) -> Value:
    """A value of a float dtype; float64 for integers."""
    value = array_operand(x, name, position)
    if dtype_of(value).kind == "c":
        raise DtypeError(f"{name}: argument {position} is complex; take its real part, or its absolute value")
    return value if is_float(dtype_of(value)) else ops.convert(value, default_float(dtype_of(value)))


def inexact_operand(x: Value, name: str, position: int = 0) -> Value:
    """A value of a float or complex dtype; float64 for integers."""
    value = array_operand(x, name, position)
    return value if is_inexact(dtype_of(value)) else ops.convert(value, default_float(dtype_of(value)))


def of_parameters(name: str, prim: Primitive, *given: ArrayLike, **params: Param) -> Value:
    """A primitive of real numbers, in their common dtype."""
    values = common(*[real_float(x, name, i) for i, x in enumerate(given)])
    ops.broadcast_shapes(name, *map(shape_of, values))
    return finish(prim.bind(*values, **params))


def count_of(n: ArrayLike, name: str, argument: str) -> int:
    """A known integer from 0 to the largest of C's."""
    try:
        count = operator.index(n)
    except TypeError:
        raise ArgumentError(f"{name}: {argument} must be a known integer, got {n!r}") from None
    if count < 0:
        raise ArgumentValueError(f"{name}: {argument} must not be negative, got {count}")
    if count >= 2**31:
        raise ArgumentValueError(f"{name}: {argument} must be less than 2**31, got {count}")
    return count


def by_kind(real_p: Primitive, complex_p: Primitive) -> Callable[..., Any]:
    """The real primitive or the complex one, by the dtype of the last operand."""

    def body(*operands: Value) -> Value:
        dtype = dtype_of(operands[-1])
        if dtype.kind != "c":
            return real_p.bind(*operands)
        return complex_p.bind(*[ops.convert(x, dtype) for x in operands])

    return body


def of_floats(body: Callable[..., PyTree]) -> Callable[..., Any]:
    """`body` of operands in the dtype of the last: SciPy's orders may be integers."""

    def converted(*operands: ArrayLike) -> Value:
        dtype = dtype_of(operands[-1])
        known = [np.int64(x) if type(x) is int else x for x in operands]  # raises OverflowError
        return body(*[x if dtype_of(x) == dtype else ops.convert(x, dtype) for x in known])

    return converted
