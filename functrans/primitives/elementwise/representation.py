"""The bits of numbers: reading them as another dtype, and rounding to fewer. NumPy does both, between kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.aval import Aval, Zero
from ...core.errors import DtypeError, ShapeError
from ...core.primitive import Primitive
from ..families import elementwise
from ..structure.linear import batched_first

# --- bitcast ------------------------------------------------------------------------------------------------


def _bitcast_abstract(x: Aval, *, dtype: np.dtype) -> Aval:
    old, new = x.dtype.itemsize, dtype.itemsize
    if "b" in (x.dtype.kind, dtype.kind) and x.dtype != dtype:
        raise DtypeError(f"bitcast: dtype {x.dtype} has no bits to be read as {dtype}; convert with astype")
    if new <= old:
        return Aval(x.shape if new == old else (*x.shape, old // new), dtype)
    if not x.shape or x.shape[-1] != new // old:
        raise ShapeError(
            f"bitcast: {new // old} elements of {x.dtype} make one of {dtype}: expected a last axis of that extent, "
            f"got shape {x.shape}"
        )
    return Aval(x.shape[:-1], dtype)


def _bitcast_impl(x: Any, *, dtype: np.dtype) -> np.ndarray:
    x = np.asarray(x)
    shape = _bitcast_abstract(Aval(x.shape, x.dtype), dtype=dtype).shape
    return np.ascontiguousarray(x).reshape(-1).view(dtype).reshape(shape).copy()


def _bitcast_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, dtype: np.dtype) -> tuple[Any, Zero]:
    ans = bitcast_p.bind(*primals, dtype=dtype)
    return ans, Zero(ans)


def _bitcast_batch(
    size: int, args: Sequence[Any], dims: Sequence[int | None], *, dtype: np.dtype
) -> tuple[Any, int]:
    return bitcast_p.bind(batched_first(size, args[0], dims[0]), dtype=dtype), 0


bitcast_p: Primitive = Primitive(
    "bitcast", _bitcast_abstract, _bitcast_impl, jvp=_bitcast_jvp, batch=_bitcast_batch, moves_data=True
)

# --- rounding to fewer bits ---------------------------------------------------------------------------------

_FIELDS: dict[int, tuple[Any, int, int]] = {4: (np.dtype("u4"), 8, 23), 8: (np.dtype("u8"), 11, 52)}
"""By size: the unsigned dtype of the same size, bits of the exponent, bits of the mantissa."""


def _reduce_precision(x: Any, *, exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    x = np.asarray(x)
    if x.dtype.kind == "c":
        parts = [
            _reduce_precision(p, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)
            for p in (x.real, x.imag)
        ]
        return (parts[0] + 1j * parts[1]).astype(x.dtype)
    unsigned, exponent, mantissa = _FIELDS[x.dtype.itemsize]
    one = unsigned.type(1)
    bits = np.array(x, order="C").view(unsigned)
    drop = mantissa - mantissa_bits
    if drop > 0:  # to the nearest, the even one of two
        last = (bits >> unsigned.type(drop)) & one
        bits = bits + last + unsigned.type((1 << (drop - 1)) - 1)
        bits = bits & ~unsigned.type((1 << drop) - 1)
    if exponent_bits < exponent:
        sign = bits & (one << unsigned.type(8 * x.dtype.itemsize - 1))
        size = (bits ^ sign) >> unsigned.type(mantissa)
        middle, reach = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        infinite = sign | unsigned.type(((1 << exponent) - 1) << mantissa)
        bits = np.where(size > middle + reach, infinite, np.where(size <= middle - reach, sign, bits))
    rounded = np.asarray(bits).astype(unsigned).view(x.dtype)
    return np.asarray(np.where(np.isnan(x), x, rounded))


reduce_precision_p = elementwise(
    "reduce_precision",
    _reduce_precision,
    terms=(lambda t, ans, x, **params: t,),  # of what is rounded: a slope of 0 would serve nobody
    kinds="fc",
)
