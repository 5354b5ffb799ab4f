"""Normal numbers and what follows from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..frontend.checked import checked
from ..primitives import ops
from . import stream
from .arguments import (
    cast,
    compiled,
    float_dtype,
    inexact_dtype,
    one_key,
    parameter,
    shape_of_result,
    shape_with,
    words,
)

__all__ = ["normal", "truncated_normal"]


@compiled
def _normal(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    word = words(key)
    if dtype.kind == "f":
        return stream.normal(word, shape, dtype)
    real = np.finfo(dtype).dtype
    parts = [stream.normal(w, shape, real) for w in stream.children(word)]
    return ops.div_p.bind(ops.complex_p.bind(*parts), dtype.type(math.sqrt(2)))


@checked
def normal(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Draw standard normal numbers.

    Parameters
    ----------
    key : key
    shape : int or tuple of int
    dtype : dtype-like
        A float or complex dtype, by default float64. Complex numbers have variance 1, half of it in each part.

    Notes
    -----
    By inversion: ``sqrt(2) erfinv(u)``, with M. B. Giles's approximation of erfinv (2012).

    Examples
    --------
    >>> from functrans import random
    >>> random.normal(random.key(1), (2, 2))
    Array([[-1.18428442, -0.11617041],
           [ 0.17269028,  0.95730718]])
    """
    key = one_key(key, "normal")
    return _normal(key, shape=shape_of_result(shape, "normal"), dtype=inexact_dtype(dtype, "normal"))


@compiled
def _truncated_normal(key: Any, lower: Any, upper: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    root = dtype.type(math.sqrt(2))
    ends = [cast(x, dtype) for x in (lower, upper)]
    low, high = (ops.erf_p.bind(ops.div_p.bind(x, root)) for x in ends)
    u = stream.uniform(words(key), shape, dtype, low, high)
    drawn = ops.mul_p.bind(root, ops.quick_erfinv_p.bind(u))
    fixed = [ops.stop_gradient_p.bind(x) for x in ends]
    above = ops.nextafter_p.bind(fixed[0], dtype.type(np.inf))
    below = ops.nextafter_p.bind(fixed[1], dtype.type(-np.inf))
    return ops.min_p.bind(ops.max_p.bind(drawn, above), below)


@checked
def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Draw standard normal numbers between two bounds.

    Parameters
    ----------
    key : key
    lower, upper : array_like
        They have derivatives.
    shape : int or tuple of int, optional
        By default that of the bounds, which must broadcast to it.
    dtype : dtype-like
        A float dtype, by default float64.

    Returns
    -------
    Array
        Numbers strictly between the bounds.

    Examples
    --------
    >>> from functrans import random
    >>> random.truncated_normal(random.key(0), -1.0, 1.0, 3)
    Array([...
    """
    key, kind = one_key(key, "truncated_normal"), float_dtype(dtype, "truncated_normal")
    low = parameter(lower, "truncated_normal", "lower")
    high = parameter(upper, "truncated_normal", "upper")
    extents = shape_with(shape, "truncated_normal", lower=low, upper=high)
    return _truncated_normal(key, low, high, shape=extents, dtype=kind)
