"""Systems of linear equations, and what comes of them: powers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...core.aval import aval_of
from ...core.errors import ArgumentError
from ...primitives.create import eye
from ...primitives.linear import broadcast_to, shape_of
from ...primitives.matrices import matrix_product
from ...primitives.operands import finish, operand, strong
from ..dispatch import implements, owned
from .common import want_square


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """Square matrices multiplied with themselves, `n` times in all.

    Parameters
    ----------
    a : array_like, shape (..., k, k)
    n : int
        Not negative.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.matrix_power([[1, 1], [0, 1]], 5)
    Array([[1, 5],
           [0, 1]])
    """
    value = operand(a, "matrix_power")
    value = strong(value, aval_of(value).dtype)
    want_square(value, "matrix_power")
    shape = shape_of(value)
    exponent = operator.index(n)
    if exponent < 0:
        raise ArgumentError(
            f"matrix_power: negative powers need an inverse, which is not there yet; got n={n}"
        )
    if exponent == 0:
        return finish(broadcast_to(eye(shape[-1], shape[-1], 0, value.dtype), shape))
    out = None
    while exponent:
        if exponent & 1:
            out = value if out is None else matrix_product(out, value)
        exponent >>= 1
        if exponent:
            value = matrix_product(value, value)
    return owned(out, a)
