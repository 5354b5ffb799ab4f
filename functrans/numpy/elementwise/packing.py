"""Bits and parts of numbers: packbits, unpackbits, bitwise_count, frexp."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import INT32, ArgumentValueError, DtypeError, finfo, is_float
from ...core.jax_dtypes import default_float
from ...core.values import ArrayLike, AxisLike, Param, Value
from ...primitives import ops, ufuncs
from ...primitives.ops import dtype_of, finish, literal, operand, publish, shape_of, unary
from ..dispatch import along, array_operand, implements

__all__ = ["bitwise_count", "frexp", "packbits", "unpackbits"]

_UINT8 = np.dtype(np.uint8)

# --- packing ------------------------------------------------------------------------------------------------


def _bit_weights(bitorder: str, name: str) -> np.ndarray:
    if bitorder not in ("big", "little"):
        raise ArgumentValueError(f"{name}: 'order' must be either 'little' or 'big', got {bitorder!r}")
    weights = 2 ** np.arange(8)
    return (weights[::-1] if bitorder == "big" else weights).astype(np.uint8)


def _rows(x: Value, axis: AxisLike, name: str) -> tuple[Any, int]:
    """Move the axis to work along last, and return that axis; for None, flatten the array."""
    x, d = along(x, axis, name)
    return ops.move_axis(x, d, len(shape_of(x)) - 1), d


@implements(np.packbits)
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack every eight elements into the bits of one byte.

    Parameters
    ----------
    a : array_like of int or bool
        Nonzero elements become bits that are set.
    axis : int, optional
        By default the flat array is packed.
    bitorder : {'big', 'little'}
        Whether the first of eight elements is the highest bit.

    Returns
    -------
    Array of uint8
        The last byte is padded with zeros.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.packbits([1, 0, 0, 0, 0, 0, 1, 1, 1])
    Array([131, 128], dtype=uint8)
    """
    x = array_operand(a, "packbits")
    if dtype_of(x).kind not in "biu":
        raise DtypeError(
            f"packbits: expected an input array of integer or boolean data type, got {dtype_of(x)}"
        )
    weights = _bit_weights(bitorder, "packbits")
    bits, d = _rows(ops.truth(x), axis, "packbits")
    *batch, n = shape_of(bits)
    missing = -n % 8
    if missing:
        config = ((0, 0, 0),) * len(batch) + ((0, missing, 0),)
        bits = ops.pad_p.bind(bits, np.False_, padding_config=config)
    bits = ops.reshape_p.bind(bits, shape=(*batch, (n + missing) // 8, 8))
    packed = ops.reduce_sum_p.bind(
        ops.select_p.bind(bits, np.broadcast_to(weights, shape_of(bits)), np.uint8(0)), axes=(len(batch) + 1,)
    )
    return finish(ops.move_axis(packed, len(batch), d))


@implements(np.unpackbits)
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Any:
    """Unpack the bits of bytes to zeros and ones.

    Parameters
    ----------
    a : array_like of uint8
    axis : int, optional
        By default the flat array is unpacked.
    count : int, optional
        The number of bits to return; if negative, the number to drop from the end. Missing bits are zeros.
    bitorder : {'big', 'little'}
        Whether the highest bit comes first.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.unpackbits(fnp.array([130], dtype=fnp.uint8))
    Array([1, 0, 0, 0, 0, 0, 1, 0], dtype=uint8)
    """
    x = array_operand(a, "unpackbits")
    if dtype_of(x) != _UINT8:
        raise DtypeError(f"unpackbits: expected an input array of unsigned byte data type, got {dtype_of(x)}")
    weights = _bit_weights(bitorder, "unpackbits")
    rows, d = _rows(x, axis, "unpackbits")
    *batch, n = shape_of(rows)
    spread = ops.reshape_p.bind(rows, shape=(*batch, n, 1))
    shifts = np.log2(weights).astype(np.uint8).reshape((1,) * len(batch) + (1, 8))
    bits = ops.and_p.bind(ops.shift_right_p.bind(spread, shifts), np.uint8(1))
    bits = ops.reshape_p.bind(bits, shape=(*batch, 8 * n))
    if count is not None:
        bit_count = operator.index(count)
        if bit_count < 0 and -bit_count > 8 * n:
            raise ArgumentValueError(
                f"unpackbits: -count ({-bit_count}) is larger than the number of bits, {8 * n}"
            )
        bit_count = 8 * n + bit_count if bit_count < 0 else bit_count
        if bit_count > 8 * n:
            config = ((0, 0, 0),) * len(batch) + ((0, bit_count - 8 * n, 0),)
            bits = ops.pad_p.bind(bits, np.uint8(0), padding_config=config)
        bits = ops.slice_along(bits, len(batch), 0, bit_count)
    return finish(ops.move_axis(bits, len(batch), d))


# --- counting bits ------------------------------------------------------------------------------------------


def _count(x: Value) -> Value:
    """Count the bits of the absolute value by sums of neighbours, in groups of 1, 2, 4, ... bits."""
    dtype = dtype_of(x)
    if dtype.kind == "b":
        return ops.convert(x, _UINT8)
    width = 8 * dtype.itemsize
    to = np.dtype(f"uint{width}")
    x = ops.convert(ops.abs_p.bind(x) if dtype.kind == "i" else x, to)
    group = 1
    while group < width:
        mask = to.type(sum(((1 << group) - 1) << k for k in range(0, width, 2 * group)))
        x = ops.add_p.bind(
            ops.and_p.bind(x, mask), ops.and_p.bind(ops.shift_right_p.bind(x, to.type(group)), mask)
        )
        group *= 2
    return ops.convert(x, _UINT8)


bitwise_count = unary(np.bitwise_count, _count, "The number of bits set in the absolute value, as uint8.")

# --- frexp --------------------------------------------------------------------------------------------------


def _exponent(x: Value) -> Value:
    """The exponent `e` with ``0.5 <= |x| / 2**e < 1``, of a positive normal number, as int32."""
    e = ops.convert(ops.add_p.bind(ops.floor_p.bind(ops.log2_p.bind(x)), literal(1.0, x)), INT32)
    # The logarithm is rounded: near a power of two it may be off by one.
    m = ops.ldexp(x, ops.sub_p.bind(literal(0, e), e))
    one = np.int32(1)
    e = ops.select_p.bind(ops.ge_p.bind(m, literal(1.0, m)), ops.add_p.bind(e, one), e)
    return ops.select_p.bind(ops.lt_p.bind(m, literal(0.5, m)), ops.sub_p.bind(e, one), e)


def _frexp(x: Value, /, **options: Param) -> tuple[Any, Any]:
    value = operand(ufuncs.positive(array_operand(x, "frexp"), **options), "frexp")
    if dtype_of(value).kind == "c":
        raise DtypeError("frexp: x is complex, and complex numbers have no exponent")
    if not is_float(dtype_of(value)):
        value = ops.convert(value, default_float(dtype_of(value)))
    digits = 54
    size = ops.abs_p.bind(value)
    plain = ops.and_p.bind(
        ops.is_finite(value), ops.ge_p.bind(size, literal(float(finfo(value.dtype).tiny), size))
    )
    small = ops.and_p.bind(
        ops.lt_p.bind(size, literal(float(finfo(value.dtype).tiny), size)), _not_zero(size)
    )
    # Denormal numbers are scaled up first; 0, infinity and NaN have the exponent 0.
    scaled = ops.select_p.bind(small, ops.mul_p.bind(size, literal(2.0**digits, size)), size)
    proper = ops.select_p.bind(plain, scaled, ops.select_p.bind(small, scaled, literal(0.5, size)))
    e = _exponent(proper)
    up = ops.convert(small, INT32)
    e = ops.sub_p.bind(e, ops.mul_p.bind(up, np.int32(digits)))
    half = ops.convert(
        ops.floor_p.bind(ops.mul_p.bind(ops.convert(e, default_float(dtype_of(e))), 0.5)), INT32
    )
    # In two steps, so that neither leaves the range.
    down = ops.ldexp(value, ops.sub_p.bind(np.int32(0), half))
    return finish(ops.ldexp(down, ops.sub_p.bind(half, e))), finish(e)


def _not_zero(x: ArrayLike) -> Value:
    return ops.eq_p.bind(ops.eq_p.bind(x, literal(0.0, x)), np.False_)


frexp = publish(
    _frexp, np.frexp, "The mantissa, of size at least 0.5 and below 1, and the exponent of 2, as a tuple."
)
