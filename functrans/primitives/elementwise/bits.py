"""Bits and integer functions (and, or, xor, not, shifts, gcd, lcm), and bitcasts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import (
    FLOAT32,
    Aval,
    Block,
    BlockEmitter,
    Buffer,
    DtypeError,
    Indexed,
    Primitive,
    ShapeError,
    Zero,
    is_bfloat16,
    is_float,
    is_inexact,
    memory_dtype,
)
from ...core.kernel import IndexEmitter, ScalarEmitter
from ...core.values import Index, Tangent, Value
from ...passes.rewriter import inverse_pair
from ..families import elementwise
from ..structure.linear import batched_first
from ..structure.shape import loops

and_p = elementwise("and", np.bitwise_and, kernel=lambda k, x, y: x & y, kinds="biu", commutes=True)
or_p = elementwise("or", np.bitwise_or, kernel=lambda k, x, y: x | y, kinds="biu", commutes=True)
xor_p = elementwise("xor", np.bitwise_xor, kernel=lambda k, x, y: x ^ y, kinds="biu", commutes=True)
not_p = elementwise("not", np.bitwise_not, kernel=lambda k, x: ~x, kinds="biu", simplify=inverse_pair)


def _in_range(k: IndexEmitter, x: Any, amount: Any) -> tuple[Any, Any]:
    """Return whether a shift amount is within ``[0, width)``, and the amount clamped to that range."""
    fits = amount < 8 * x.dtype.itemsize
    if x.dtype.kind == "i":
        fits = fits & (amount >= 0)
    return fits, k.where(fits, amount, k.const(0, x.dtype))


def _shift_left_kernel(k: IndexEmitter, x: Any, amount: Any) -> Any:
    fits, safe = _in_range(k, x, amount)
    return k.where(fits, x << safe, k.const(0, x.dtype))


def _shift_right_kernel(k: IndexEmitter, x: Any, amount: Any) -> Any:
    fits, safe = _in_range(k, x, amount)
    # Shifts beyond the width leave copies of the sign bit.
    rest = (
        k.const(0, x.dtype)
        if x.dtype.kind == "u"
        else k.where(x < 0, k.const(-1, x.dtype), k.const(0, x.dtype))
    )
    return k.where(fits, x >> safe, rest)


shift_left_p = elementwise("shift_left", np.left_shift, kernel=_shift_left_kernel, kinds="iu")
shift_right_p = elementwise("shift_right", np.right_shift, kernel=_shift_right_kernel, kinds="iu")

# --- greatest common divisor --------------------------------------------------------------------------------

_STEPS = {8: 13, 16: 24, 32: 47, 64: 93}
"""The most steps of Euclid's algorithm per integer size: neighbouring Fibonacci numbers are the worst case."""


def _euclid(k: BlockEmitter, x: Any, y: Any) -> Any:
    """Return the greatest common divisor of two unsigned numbers."""
    a, b = k.local(x), k.local(y)
    with k.loop(_STEPS[8 * x.dtype.itemsize]), k.if_(b.get().ne(0)):
        divisor = b.get()
        rest = k.call("irem", a.get(), divisor)
        a.set(divisor)
        b.set(rest)
    return a.get()


def _integer_block(combine: Callable[[BlockEmitter, Any, Any], Any]) -> Block:
    """Make a block that applies `combine` to the unsigned magnitudes of all elements (INT_MIN has one, too)."""

    def size_at(k: BlockEmitter, x: Buffer, index: Sequence[Any]) -> Any:
        own = index[len(index) - len(x.shape) :]
        number = k.load(x, [0 if n == 1 else i for n, i in zip(x.shape, own)])
        if x.dtype.kind == "u":
            return number
        unsigned = np.dtype(f"u{x.dtype.itemsize}")
        return k.cast(k.where(number < 0, -number, number), unsigned)

    def emit(k: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer]) -> None:
        (out,) = results
        with loops(k, out.shape) as index:
            x, y = [size_at(k, a, index) for a in operands]
            k.store(out, index, k.cast(combine(k, x, y), out.dtype))

    return Block(emit)


def _least_multiple(k: BlockEmitter, x: Any, y: Any) -> Any:
    divisor = _euclid(k, x, y)
    none = divisor.eq(0)
    quotient = k.call("idiv", x, k.where(none, k.const(1, x.dtype), divisor))
    return k.where(none, k.const(0, x.dtype), quotient * y)


gcd_p = elementwise("gcd", np.gcd, kernel=_integer_block(_euclid), kinds="iu", commutes=True)
lcm_p = elementwise("lcm", np.lcm, kernel=_integer_block(_least_multiple), kinds="iu", commutes=True)


# --- bitcast ------------------------------------------------------------------------------------------------


def _bitcast_abstract(x: Aval, *, dtype: np.dtype) -> Aval:
    old, new = x.dtype.itemsize, dtype.itemsize
    if "b" in (x.dtype.kind, dtype.kind) and x.dtype != dtype:
        raise DtypeError(f"bitcast: cannot read the bits of {x.dtype} as {dtype}; convert with .astype")
    if new <= old:
        return Aval(x.shape if new == old else (*x.shape, old // new), dtype)
    if not x.shape or x.shape[-1] != new // old:
        raise ShapeError(
            f"bitcast: one {dtype} takes {new // old} elements of {x.dtype}: expected a last axis of that extent, "
            f"got shape {x.shape}"
        )
    return Aval(x.shape[:-1], dtype)


def _bitcast_impl(x: Value, *, dtype: np.dtype) -> np.ndarray:
    x = np.asarray(x)
    shape = _bitcast_abstract(Aval(x.shape, x.dtype), dtype=dtype).shape
    return np.ascontiguousarray(x).reshape(-1).view(dtype).reshape(shape).copy()


def _bitcast_jvp(primals: Sequence[Any], tangents: Sequence[Tangent], *, dtype: np.dtype) -> tuple[Any, Zero]:
    ans = bitcast_p.bind(*primals, dtype=dtype)
    return ans, Zero(ans)


def _bitcast_batch(
    size: int, args: Sequence[Any], dims: Sequence[int | None], *, dtype: np.dtype
) -> tuple[Any, int]:
    return bitcast_p.bind(batched_first(size, args[0], dims[0]), dtype=dtype), 0


def _bitcast_kernel(k: ScalarEmitter, index: Index, x: Any, *, out: Aval, dtype: np.dtype) -> Any:
    source, target = memory_dtype(x.aval.dtype), memory_dtype(dtype)
    if source == target:
        return x[index]
    old, new = _parts(source), _parts(target)
    if out.ndim < x.aval.ndim:
        count = x.aval.shape[-1]
        words = [w for i in range(count) for w in _words(k, x[(*index, i)], source)]
        return _assembled(k, words, target)
    place, number = (index[:-1], index[-1]) if out.ndim > x.aval.ndim else (index, None)
    words = _words(k, x[place], source)
    if number is None:
        return _assembled(k, words, target)
    # One element becomes several: choose the word of the source, then the bits in it.
    lanes = 2 if target.kind == "c" else 1
    first, word = number * lanes, words[0]
    if len(words) == 2:
        per = old.itemsize // new.itemsize
        half = first >= per
        first, word = k.where(half, first - per, first), k.where(half, words[1], word)
    return _assembled(k, [_lower(k, word, first + i, new) for i in range(lanes)], target)


def _parts(dtype: np.dtype) -> np.dtype:
    """The unsigned integer that holds a number, or a part of a complex one."""
    return np.dtype(f"u{dtype.itemsize // (2 if dtype.kind == 'c' else 1)}")


def _words(k: ScalarEmitter, x: Any, dtype: np.dtype) -> list[Any]:
    """The bits of a number as memory of a dtype holds it, as unsigned integers."""
    x = k.narrowed(x, dtype)
    parts = [k.call("real", x), k.call("imag", x)] if x.dtype.kind == "c" else [x]
    bits = [k.call("bits", p) if is_float(p.dtype) else p for p in parts]
    return [k.cast(b, _parts(x.dtype)) for b in bits]


def _lower(k: ScalarEmitter, word: Any, number: Any, unsigned: np.dtype) -> Any:
    """The bits of a word that are element `number` of a narrower dtype; the lowest are the first."""
    if word.dtype == unsigned:
        return word
    shift = k.cast(number * (8 * unsigned.itemsize), word.dtype)
    return k.cast(word >> shift, unsigned)


def _assembled(k: ScalarEmitter, words: Sequence[Any], dtype: np.dtype) -> Any:
    """The number of a dtype from its bits, the lowest first."""
    unsigned = _parts(dtype)
    pieces = words[0].dtype.itemsize // unsigned.itemsize
    if pieces > 1:
        words = [k.cast(w >> 8 * unsigned.itemsize * i, unsigned) for w in words for i in range(pieces)]
    count = unsigned.itemsize // words[0].dtype.itemsize
    parts = []
    for first in range(0, len(words), count):
        total = k.cast(words[first], unsigned)
        for i, word in enumerate(words[first + 1 : first + count], start=1):
            total = total | (k.cast(word, unsigned) << 8 * word.dtype.itemsize * i)
        parts.append(_from_bits(k, total, dtype) if is_inexact(dtype) else k.cast(total, dtype))
    return k.call("complex", *parts) if dtype.kind == "c" else parts[0]


def _from_bits(k: ScalarEmitter, bits: Any, dtype: np.dtype) -> Any:
    """The float with the bits of an unsigned integer, or that part of a complex number."""
    if is_bfloat16(dtype):  # the upper half of a float32
        return k.call("from_bits", k.cast(bits, _parts(FLOAT32)) << 16)
    return k.widened(k.call("from_bits", bits))


bitcast_p: Primitive = Primitive(
    "bitcast",
    _bitcast_abstract,
    _bitcast_impl,
    jvp=_bitcast_jvp,
    batch=_bitcast_batch,
    kernel=Indexed(_bitcast_kernel),
    moves_data=True,
)

# --- rounding to fewer bits ---------------------------------------------------------------------------------

_FIELDS: dict[int, tuple[Any, int, int]] = {4: (np.dtype("u4"), 8, 23), 8: (np.dtype("u8"), 11, 52)}
"""By float dtype: the unsigned dtype of the same size, exponent bits, mantissa bits."""


def _reduce_precision(x: Value, *, exponent_bits: int, mantissa_bits: int) -> np.ndarray:
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
    if drop > 0:  # round to nearest, ties to even
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
    terms=(lambda t, ans, x, **params: t,),  # straight-through: a derivative of 0 would be useless
    kinds="fc",
)
