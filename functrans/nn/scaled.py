"""Products of matrices whose elements are stored with one scale for each block."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lax
from .. import numpy as fnp
from ..arrays.array import Array
from ..core import ArgumentValueError, ShapeError, canonical
from ..core.values import ArrayLike, DTypeLike
from ..frontend.checked import checked
from ..numpy.dispatch import array_operand
from ..primitives import ops
from ..primitives.ops import finish, shape_of

_QUANTIZED = (
    "products that quantize their operands to 8 or 4 bits need Nvidia's devices. Round the operands yourself, and "
    "multiply them with nn.scaled_matmul, or pass configs=None"
)


@checked
def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: Any,
    rhs_scales: Any,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """Product of the rows of two stacks of matrices, whose elements have one scale for each block of a row.

    Parameters
    ----------
    lhs : array_like, shape (b, m, k)
    rhs : array_like, shape (b, n, k)
    lhs_scales : array_like, shape (b, m, j)
        The factor of each of the `j` blocks of a row; `j` divides `k`.
    rhs_scales : array_like, shape (b, n, j)
    preferred_element_type : dtype
        Of the result.

    Returns
    -------
    Array, shape (b, m, n)

    Raises
    ------
    ShapeError
        If the shapes do not match.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import nn
    >>> a, b, scale = np.array([[[1, 2, 3]]]), np.array([[[4, 5, 6]]]), np.array([[[0.5]]])
    >>> nn.scaled_matmul(a, b, scale, scale)
    Array([[[8.]]], dtype=float32)
    """
    given = [array_operand(x, "scaled_matmul", i) for i, x in enumerate((lhs, rhs, lhs_scales, rhs_scales))]
    shapes = [shape_of(x) for x in given]
    if any(len(s) != 3 for s in shapes) or not (
        shapes[0][0] == shapes[1][0]
        and shapes[0][2] == shapes[1][2]
        and shapes[2][2] == shapes[3][2]
        and shapes[2][:2] == shapes[0][:2]
        and shapes[3][:2] == shapes[1][:2]
        and (shapes[2][2] and shapes[0][2] % shapes[2][2] == 0)
    ):
        raise ShapeError(
            "scaled_matmul: expected lhs (b, m, k), rhs (b, n, k), lhs_scales (b, m, j) and rhs_scales (b, n, j), "
            f"where j divides k, got {', '.join(map(str, shapes))}"
        )
    to = canonical(preferred_element_type, "scaled_matmul: preferred_element_type")
    size = shapes[0][2] // shapes[2][2]
    a, b = [x * fnp.repeat(scale, size, axis=-1) for x, scale in zip(given[:2], given[2:])]
    return finish(ops.convert(fnp.einsum("bmk,bnk->bmn", a, b), to))


@checked
def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: DTypeLike = np.float32,
    configs: Any = None,
    implementation: None = None,
) -> Array:
    """`lax.dot_general` with a dtype for the result. It does not quantize: that needs Nvidia's devices.

    Parameters
    ----------
    lhs, rhs : array_like
    dimension_numbers : tuple
        ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``.
    preferred_element_type : dtype
        Of the result.
    configs : None
    implementation : None
        Accepted for JAX.

    Returns
    -------
    Array

    Raises
    ------
    ArgumentValueError
        For any `configs`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import nn
    >>> nn.scaled_dot_general(np.ones((2, 3)), np.ones((3, 2)), (((1,), (0,)), ((), ())))
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    if configs is not None:
        raise ArgumentValueError(f"scaled_dot_general: configs must be None: {_QUANTIZED}")
    to = canonical(preferred_element_type, "scaled_dot_general: preferred_element_type")
    return finish(ops.convert(lax.dot_general(lhs, rhs, dimension_numbers), to))
