"""Casts of floats to integers, with one result on every processor where NumPy leaves it open.

A float is truncated to a signed integer of 32 bits, or of 64 bits for int64, uint32 and uint64. NaN, and what does not
fit, becomes the smallest of these. Types that have fewer bits, or no sign, take the low bits. For uint64, numbers from
``2**63`` on lose ``2**63`` before and get it back after. That is what C compiles to on x86-64, and what NumPy gives
there, except for uint32, where it depends on the strides. Kernels compute the same (`lowering.llvm.ops.cast`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..core.dtypes import INT32, INT64, is_float
from ..core.low_precision import FLOAT32, is_bfloat16
from ..core.values import ArrayLike, Value
from ..runtime.context import quietly
from ..runtime.float_warnings import at_users_line

_UINT32 = np.dtype(np.uint32)
_UINT64 = np.dtype(np.uint64)
#: Where processors and loops differ: NaN, infinities, the ends of the integers, and what lies beyond.
_DELICATE = [np.nan, np.inf, *[s * 2.0**n for n in (7, 8, 15, 16, 31, 32, 33, 63, 64, 66) for s in (1, -1)]]
_DELICATE += [-np.inf, -1.5, 300.0, -300.0, 1.5e9, 2.5e9, -2.5e9, 1e10, -1e10, 1.5 * 2.0**63, -1.5 * 2.0**63]


def wide_integer(target: np.dtype) -> np.dtype:
    """The signed integers to which a float is truncated on its way to an integer dtype."""
    return INT64 if target.itemsize == 8 or target == _UINT32 else INT32


def cast(x: ArrayLike, dtype: np.dtype) -> Any:
    """``x.astype(dtype, copy=False)``, and what this file says where a float does not fit an integer.

    Parameters
    ----------
    x : ndarray or NumPy scalar
        Not complex, if `dtype` is an integer.
    dtype : dtype

    Examples
    --------
    >>> quietly(cast)(np.array([np.nan, 1e10, -1.0]), np.dtype("uint32"))
    array([         0, 1410065408, 4294967295], dtype=uint32)
    """
    try:
        if dtype.kind not in "iu" or not is_float(x.dtype):
            return x.astype(dtype, copy=False)
        if is_bfloat16(x.dtype):
            x = x.astype(FLOAT32)
        if dtype == _UINT32:  # of NumPy's loops for it one goes through int64, another one does not
            return cast(x, INT64).astype(dtype)
        return x.astype(dtype) if numpy_agrees(x.dtype, dtype) else by_definition(x, dtype)
    except RuntimeWarning as warning:
        return at_users_line(warning, cast, (x, dtype), {})


@cache
@quietly
def numpy_agrees(source: np.dtype, target: np.dtype) -> bool:
    """Whether NumPy's casts from a float to an integer dtype do what this file says, on this machine."""
    if target == _UINT32 or is_bfloat16(source):
        return False
    x = np.tile(np.array(_DELICATE).astype(source), 3)
    expected = by_definition(x, target)
    loops = x.astype(target), np.repeat(x, 2)[::2].astype(target), [number.astype(target) for number in x]
    return all((np.asarray(found) == expected).all() for found in loops)


def by_definition(x: Value, dtype: np.dtype) -> Value:
    """The cast from a float to an integer dtype, by casts that every processor does alike."""
    if x.dtype.itemsize == 2:
        x = x.astype(FLOAT32)
    if dtype == _UINT64:
        large = x >= 2.0**63
        low = _truncated(np.where(large, x - x.dtype.type(2.0**63), x), INT64)
        out = np.where(large, low ^ INT64.type(-(2**63)), low).astype(dtype)
    else:
        out = _truncated(x, wide_integer(dtype)).astype(dtype)
    return out[()] if isinstance(x, np.generic) else out


def _truncated(x: Value, integer: np.dtype) -> np.ndarray:
    limit = 2.0 ** (8 * integer.itemsize - 1)
    return np.where(np.abs(x) < limit, x, x.dtype.type(-limit)).astype(integer)
