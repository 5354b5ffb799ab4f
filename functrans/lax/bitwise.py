"""Bit operations: count bits and leading zeros, reinterpret bits, round to fewer bits."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..core import ArgumentValueError, DtypeError, aval_of, canonical
from ..core.values import ArrayLike, DTypeLike, Value
from ..frontend.checked import checked
from ..primitives import ops
from ..primitives.ops import dtype_of, finish
from .elementwise import bitwise_xor, broadcast_operands, operands
from .windows import reduce

__all__ = ["bitcast_convert_type", "clz", "mulhi", "population_count", "reduce_precision", "reduce_xor"]


def _unsigned(name: str, x: Value) -> tuple[Any, np.dtype]:
    """The bits as unsigned integers, and the dtype they came in."""
    (value,) = operands(name, x)
    own = dtype_of(value)
    if own.kind not in "iu":
        raise DtypeError(f"lax.{name}: expected integers, got dtype {own}")
    return ops.convert(value, np.dtype(f"u{own.itemsize}")), own


def _count(x: Value) -> Value:
    """The number of bits set, of unsigned integers: sums of 1, 2, 4 bits side by side, then of bytes by a product."""
    dtype = dtype_of(x)
    width = 8 * dtype.itemsize
    every = (1 << width) - 1

    def masked(value: Value, byte: int) -> Value:
        return ops.and_p.bind(value, dtype.type(every // 255 * byte))

    def shifted(value: Value, by: int) -> Value:
        return ops.shift_right_p.bind(value, dtype.type(by))

    x = ops.sub_p.bind(x, masked(shifted(x, 1), 0x55))
    x = ops.add_p.bind(masked(x, 0x33), masked(shifted(x, 2), 0x33))
    x = masked(ops.add_p.bind(x, shifted(x, 4)), 0x0F)
    return x if width == 8 else shifted(ops.mul_p.bind(x, dtype.type(every // 255)), width - 8)


@checked
def population_count(x: ArrayLike) -> Any:
    """The number of bits set, in two's complement.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.population_count(np.array([0, 7, -1]))
    Array([ 0,  3, 64])
    """
    bits, own = _unsigned("population_count", x)
    return finish(ops.convert(_count(bits), own))


@checked
def clz(x: ArrayLike) -> Any:
    """The number of zeros before the first set bit.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.clz(np.array([0, 1, 255], np.uint8))
    Array([8, 7, 0], dtype=uint8)
    """
    bits, own = _unsigned("clz", x)
    dtype = dtype_of(bits)
    by = 1
    while by < 8 * dtype.itemsize:  # all bits below the first one
        bits = ops.or_p.bind(bits, ops.shift_right_p.bind(bits, dtype.type(by)))
        by *= 2
    return finish(ops.convert(_count(ops.not_p.bind(bits)), own))


@checked
def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Any:
    """Reinterpret the bits as another dtype. Has no derivative.

    Parameters
    ----------
    operand : array_like
        For a wider dtype, the elements that form one lie along the last axis, which is removed; a narrower one adds a
        last axis.
    new_dtype : dtype-like

    Raises
    ------
    DtypeError, ShapeError
        If the sizes do not match.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.bitcast_convert_type(np.float32([1.0, -0.0]), np.uint32) >> 23
    Array([127, 256], dtype=uint32)
    """
    (x,) = operands("bitcast_convert_type", operand)
    to = canonical(new_dtype, "lax.bitcast_convert_type: new_dtype")
    ops.bitcast_p.abstract(aval_of(x), dtype=to)
    return finish(ops.bitcast_p.bind(x, dtype=to))


@checked
def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Any:
    """Round numbers to a format with fewer bits, without changing their dtype.

    Parameters
    ----------
    operand : array_like
        float or complex.
    exponent_bits : int
        At least 1.
    mantissa_bits : int
        At least 0.

    Notes
    -----
    Rounds to nearest, ties to even. Numbers too large for the format become infinite, and numbers below its normal
    range become zero with the same sign. The derivative is that of the identity (tangents are not rounded).

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.reduce_precision(np.array([1 / 3, 70000.0]), 5, 10)  # half precision
    Array([0.33325195,        inf])
    """
    (x,) = operands("reduce_precision", operand)
    exponent, mantissa = operator.index(exponent_bits), operator.index(mantissa_bits)
    if exponent < 1 or mantissa < 0:
        raise ArgumentValueError(
            f"lax.reduce_precision: expected at least 1 bit of exponent and 0 of mantissa, got {exponent} and "
            f"{mantissa}"
        )
    ops.reduce_precision_p.abstract(aval_of(x))
    return finish(ops.reduce_precision_p.bind(x, exponent_bits=exponent, mantissa_bits=mantissa))


@checked
def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Any:
    """Bitwise exclusive "or" along some axes.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.reduce_xor(np.array([1, 3, 4]), (0,))
    Array(6)
    """
    (x,) = operands("reduce_xor", operand)
    ops.xor_p.abstract(aval_of(x), aval_of(x))
    return reduce(x, dtype_of(x).type(0), bitwise_xor, axes)


@checked
def mulhi(x: ArrayLike, y: ArrayLike) -> Array:
    """The upper half of the bits of the product of integers.

    Parameters
    ----------
    x, y : array_like
        Integers of one dtype of n bits.

    Returns
    -------
    Array
        ``x * y >> n``, computed as if with ``2 * n`` bits.

    Raises
    ------
    DtypeError, ShapeError
        If they are not integers, or differ in dtype, or in shape unless they have no axes.

    Examples
    --------
    >>> from functrans import lax
    >>> import numpy as np
    >>> lax.mulhi(np.int32(2**30), np.int32(12))
    Array(3, dtype=int32)
    """
    a, b = broadcast_operands("mulhi", x, y)
    own = dtype_of(a)
    if own.kind not in "iu":
        raise DtypeError(f"lax.mulhi: expected integers, got dtype {own}")
    width = 8 * own.itemsize
    if width < 64:
        wide = np.dtype(f"{own.kind}8")
        product = ops.mul_p.bind(ops.convert(a, wide), ops.convert(b, wide))
        return finish(ops.convert(_shifted(product, width), own))
    return finish(_high_word(a, b, own))


def _shifted(x: Value, by: int) -> Value:
    """Shift right; copies of the sign enter."""
    return ops.shift_right_p.bind(x, dtype_of(x).type(by))


def _high_word(a: Value, b: Value, dtype: np.dtype) -> Value:
    """The upper 64 of 128 bits, by halves: the upper ones keep the sign, the lower ones have none.

    H. S. Warren, Hacker's Delight, 2nd edition (2012), section 8-2.
    """
    mask = dtype.type(2**32 - 1)
    low_a, low_b = ops.and_p.bind(a, mask), ops.and_p.bind(b, mask)
    high_a, high_b = _shifted(a, 32), _shifted(b, 32)
    # The product of the lower halves may use all 64 bits.
    unsigned = np.dtype(np.uint64)
    low = ops.mul_p.bind(ops.convert(low_a, unsigned), ops.convert(low_b, unsigned))
    middle = ops.add_p.bind(ops.mul_p.bind(high_a, low_b), ops.convert(_shifted(low, 32), dtype))
    other = ops.add_p.bind(ops.mul_p.bind(low_a, high_b), ops.and_p.bind(middle, mask))
    high = ops.add_p.bind(ops.mul_p.bind(high_a, high_b), _shifted(middle, 32))
    return ops.add_p.bind(high, _shifted(other, 32))
