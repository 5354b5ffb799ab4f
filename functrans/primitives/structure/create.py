"""Arrays made of nothing: iota, full, eye. No constant array ever enters a jaxpr."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.aval import Aval
from ...core.dtypes import INT64
from ...core.errors import DtypeError, ShapeError
from ...core.kernel import Indexed
from ...core.primitive import Primitive
from ...core.trace import current_trace, eval_trace
from ..elementwise.arithmetic import convert_element_type_p, eq_p
from .linear import add_p, broadcast_to


def _iota_abstract(*, dtype: np.dtype, shape: tuple[int, ...], dimension: int) -> Aval:
    if not 0 <= dimension < len(shape):
        raise ShapeError(f"iota: axis {dimension} does not fit shape {shape}")
    if dtype.kind == "b":
        raise DtypeError("iota: bool does not count; use an integer or float dtype")
    return Aval(shape, dtype)


def _iota_impl(*, dtype: np.dtype, shape: tuple[int, ...], dimension: int) -> np.ndarray:
    spread = [1] * len(shape)
    spread[dimension] = shape[dimension]
    # Counted in int64, then cast: a counter of a small dtype wraps, and NumPy's arange would refuse it.
    return np.broadcast_to(np.arange(shape[dimension]).astype(dtype).reshape(spread), shape)


def _iota_kernel(k: Any, index: Any, *, out: Aval, dtype: np.dtype, shape: Any, dimension: int) -> Any:
    return k.cast(index[dimension], dtype)


iota_p: Primitive = Primitive("iota", _iota_abstract, _iota_impl, kernel=Indexed(_iota_kernel), cheap=True)


def iota(shape: tuple[int, ...], dimension: int, dtype: np.dtype = INT64) -> Any:
    """The index along one axis, at every element of an array of `shape`."""
    return iota_p.bind(dtype=dtype, shape=shape, dimension=dimension)


def full(shape: tuple[int, ...], value: Any, dtype: np.dtype) -> Any:
    """A number (of any kind, maybe traced) cast to `dtype` and repeated."""
    if current_trace.get() is eval_trace and not hasattr(value, "aval"):
        return np.full(shape, value, dtype)
    if not hasattr(value, "aval"):
        return broadcast_to(np.asarray(value).astype(dtype)[()], shape)
    return broadcast_to(convert_element_type_p.bind(value, dtype=dtype), shape)


def eye(rows: int, columns: int, offset: int, dtype: np.dtype) -> Any:
    """Ones on one diagonal, above the main one where `offset` is positive."""
    if current_trace.get() is eval_trace:
        return np.eye(rows, columns, offset, dtype)
    return convert_element_type_p.bind(diagonal_mask(rows, columns, offset), dtype=dtype)


def diagonal_mask(rows: int, columns: int, offset: int = 0) -> Any:
    """True where ``column - row == offset``."""
    row = iota((rows, 1), 0)
    return eq_p.bind(add_p.bind(row, np.int64(offset)) if offset else row, iota((1, columns), 1))
