"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.config import config
from ...core.dtypes import real_dtype
from ...core.errors import ArgumentValueError
from ...primitives.axes import axes_or_all, many_axes
from ...primitives.elementwise.arithmetic import convert_element_type_p, div_p, mul_p, ne_p
from ...primitives.elementwise.complexes import abs_p, conj_p, real_p
from ...primitives.elementwise.exp_log import integer_pow_p, pow_p, sqrt_p
from ...primitives.linalg.svd import svd_p
from ...primitives.operands import finish
from ...primitives.reductions.reduce import reduce_max_p, reduce_min_p
from ...primitives.structure.linear import reduce_sum_p, reshape_p, shape_of, transpose_p
from ..dispatch import implements
from .common import inexact


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors or matrices.

    Parameters
    ----------
    x : array_like
    ord : {None, 'fro', 'nuc', inf, -inf, 1, -1, 2, -2} or, of vectors, any number
        None is the 2-norm of vectors and the Frobenius norm of matrices (of all elements, if `axis` is None
        too). Of matrices 2, -2 and 'nuc' are the largest and the least singular value, and the sum of them.
    axis : int or pair of int, optional
        Along which vectors, or matrices, lie.
    keepdims : bool
        Leave those axes with extent 1.

    Notes
    -----
    The 2-norm has no derivative at 0: its gradient there is NaN.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.norm([3.0, 4.0])
    Array(5.)
    """
    value = inexact(x, "norm")
    ndim = len(shape_of(value))
    if axis is None:
        axes = tuple(range(ndim))
        if ord is None:
            return finish(_kept(_two(value, axes), value, axes, keepdims))
        if ndim not in (1, 2):
            raise ArgumentValueError(
                f"norm: ord={ord!r} is for vectors and matrices, got {ndim} axes; give axis="
            )
    else:
        axes = many_axes(axis, ndim, "norm")
    if len(axes) == 1:
        return finish(_kept(_vector(value, ord, axes), value, axes, keepdims))
    if len(axes) == 2:
        return finish(_kept(_matrix(value, ord, axes), value, axes, keepdims))
    raise ArgumentValueError(f"norm: axis must be one axis or a pair, got {axis!r}")


def _kept(out: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if not keepdims:
        return out
    return reshape_p.bind(out, shape=tuple([1 if d in axes else n for d, n in enumerate(shape_of(x))]))


def _two(x: Any, axes: tuple[int, ...]) -> Any:
    if x.dtype.kind == "c":
        squares = real_p.bind(mul_p.bind(x, conj_p.bind(x)))
    else:
        squares = integer_pow_p.bind(x, y=2)
    return sqrt_p.bind(reduce_sum_p.bind(squares, axes=axes))


def _vector(x: Any, ord: Any, axes: tuple[int, ...]) -> Any:
    if ord is None or ord == 2:
        return _two(x, axes)
    if isinstance(ord, str):
        raise ArgumentValueError(f"norm: ord={ord!r} is no norm of vectors")
    size = abs_p.bind(x)
    if ord == math.inf:
        return reduce_max_p.bind(size, axes=axes)
    if ord == -math.inf:
        return reduce_min_p.bind(size, axes=axes)
    if ord == 1:
        return reduce_sum_p.bind(size, axes=axes)
    dtype = real_dtype(x.dtype)
    if ord == 0:
        nonzero = convert_element_type_p.bind(ne_p.bind(x, x.dtype.type(0)), dtype=dtype)
        return reduce_sum_p.bind(nonzero, axes=axes)
    powers = reduce_sum_p.bind(pow_p.bind(size, dtype.type(ord)), axes=axes)
    return pow_p.bind(powers, div_p.bind(dtype.type(1), dtype.type(ord)))


def _matrix(x: Any, ord: Any, axes: tuple[int, ...]) -> Any:
    if ord in (None, "fro", "f"):
        return _two(x, axes)
    rows, columns = axes
    if ord in (1, -1, math.inf, -math.inf):
        summed, kept = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = reduce_sum_p.bind(abs_p.bind(x), axes=(summed,))
        return _extremum(sums, kept - (summed < kept), ord > 0)
    if ord in (2, -2, "nuc"):
        return _spectral(x, ord, axes)
    raise ArgumentValueError(f"norm: ord={ord!r} is no norm of matrices")


def _spectral(x: Any, ord: Any, axes: tuple[int, ...]) -> Any:
    """The largest (2) or least (-2) singular value, or their sum ('nuc')."""
    others = tuple([d for d in range(len(shape_of(x))) if d not in axes])
    x = transpose_p.bind(x, permutation=(*others, *axes))
    (s,) = svd_p.bind(x, full_matrices=False, vectors=False, on_error=config.linalg_errors)
    if ord == "nuc":
        return reduce_sum_p.bind(s, axes=(len(others),))
    return _extremum(s, len(others), ord == 2)


def _extremum(x: Any, axis: int, largest: bool) -> Any:
    """The largest (of nothing: 0) or least of numbers that are not negative."""
    if largest:
        return (reduce_max_p if shape_of(x)[axis] else reduce_sum_p).bind(x, axes=(axis,))
    return reduce_min_p.bind(x, axes=(axis,))


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors, which lie along `axis` (any number of axes; all, if None).

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.linalg.vector_norm([3.0, 4.0])
    Array(5.)
    """
    value = inexact(x, "vector_norm")
    ndim = len(shape_of(value))
    axes = axes_or_all(axis, ndim, "vector_norm")
    return finish(_kept(_vector(value, ord, axes), value, axes, keepdims))


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two axes; see `norm`.

    Examples
    --------
    >>> from functrans.lax import linalg
    >>> import functrans.numpy as fnp
    >>> import numpy as np
    >>> fnp.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]])
    Array(5.)
    """
    return norm(x, ord, (-2, -1), keepdims)
