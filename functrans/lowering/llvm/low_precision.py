"""float16 and bfloat16 in registers: their bits are ``i16``, to be widened to ``float`` and rounded back.

All forms vectorise. Conversions round to the nearest, ties to even, and know subnormal numbers, infinities and NaN.
LLVM's instructions for bfloat16 are not used: the processors' instructions flush subnormal numbers to zero.
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import FLOAT16, FLOAT64
from .emitter import Emitter


def widen(e: Emitter, x: str, dtype: np.dtype) -> str:
    """The ``float`` with the value of a float16 or bfloat16 number."""
    if dtype != FLOAT16:
        return _as_float(e, e.new(f"shl i32 {e.new(f'zext i16 {x} to i32')}, 16"))
    if e.converts_half:
        return e.new(f"fpext half {e.new(f'bitcast i16 {x} to half')} to float")
    return _widen_half(e, x)


def narrow(e: Emitter, x: str, source: np.dtype, dtype: np.dtype) -> str:
    """A ``float`` rounded to float16 or bfloat16, or a ``double`` rounded to float16."""
    if dtype != FLOAT16:
        return _to_bfloat16(e, x)
    if source == FLOAT64:
        x = _to_odd(e, x)
    if e.converts_half:
        return e.new(f"bitcast half {e.new(f'fptrunc float {x} to half')} to i16")
    return _narrow_half(e, x)


def _as_float(e: Emitter, bits: str) -> str:
    return e.new(f"bitcast i32 {bits} to float")


def _as_bits(e: Emitter, x: str) -> str:
    return e.new(f"bitcast float {x} to i32")


def _to_bfloat16(e: Emitter, x: str) -> str:
    """The upper half of the bits, after adding just under half a unit of it, or half a unit if it is odd."""
    bits = _as_bits(e, x)
    upper = e.new(f"lshr i32 {bits}, 16")
    odd = e.new(f"and i32 {upper}, 1")
    just_under = e.new(f"add i32 {odd}, {0x7FFF}")
    rounded = e.new(f"lshr i32 {e.new(f'add i32 {bits}, {just_under}')}, 16")
    # Of a NaN only the sign stays, as in ml_dtypes.
    quiet = e.new(f"or i32 {e.new(f'and i32 {upper}, {0x8000}')}, {0x7FC0}")
    nan = e.new(f"fcmp uno float {x}, {x}")
    return e.new(f"trunc i32 {e.new(f'select i1 {nan}, i32 {quiet}, i32 {rounded}')} to i16")


def _to_odd(e: Emitter, x: str) -> str:
    """A ``double`` as a ``float`` that rounds to the same float16: cut off, with the last bit set if it is not exact.

    Reference: S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using
    rounding to odd", IEEE Transactions on Computers 57 (2008).
    """
    near = e.new(f"fptrunc double {x} to float")
    back = e.new(f"fpext float {near} to double")
    bits = _as_bits(e, near)
    sizes = [e.new(f"call double @llvm.fabs.f64(double {v})") for v in (back, x)]
    above = e.new(f"zext i1 {e.new(f'fcmp ogt double {sizes[0]}, {sizes[1]}')} to i32")
    odd = e.new(f"or i32 {e.new(f'sub i32 {bits}, {above}')}, 1")
    exact = e.new(f"fcmp ueq double {back}, {x}")
    return _as_float(e, e.new(f"select i1 {exact}, i32 {bits}, i32 {odd}"))


def _widen_half(e: Emitter, x: str) -> str:
    """Without the processor's instruction: move the bits, and multiply to correct the exponent, also of subnormals."""
    bits = e.new(f"zext i16 {x} to i32")
    sign = e.new(f"shl i32 {e.new(f'and i32 {bits}, {0x8000}')}, 16")
    size = e.new(f"shl i32 {e.new(f'and i32 {bits}, {0x7FFF}')}, 13")
    scaled = _as_bits(e, e.new(f"fmul float {_as_float(e, size)}, 0x46F0000000000000"))  # 2 ** 112
    special = e.new(f"or i32 {size}, {0x7F800000}")
    finite = e.new(f"icmp ult i32 {size}, {0x7C00 << 13}")
    value = e.new(f"select i1 {finite}, i32 {scaled}, i32 {special}")
    return _as_float(e, e.new(f"or i32 {value}, {sign}"))


def _narrow_half(e: Emitter, x: str) -> str:
    """Without the processor's instruction: round the bits; subnormal results by the rounding of an addition."""
    bits = _as_bits(e, x)
    sign = e.new(f"and i32 {e.new(f'lshr i32 {bits}, 16')}, {0x8000}")
    size = e.new(f"and i32 {bits}, {0x7FFFFFFF}")
    odd = e.new(f"and i32 {e.new(f'lshr i32 {size}, 13')}, 1")
    moved = e.new(f"sub i32 {size}, {(112 << 23) - 0xFFF}")
    normal = e.new(f"lshr i32 {e.new(f'add i32 {moved}, {odd}')}, 13")
    # The last bit of 0.5 as a float is the smallest float16.
    shifted = _as_bits(e, e.new(f"fadd float {_as_float(e, size)}, 0x3FE0000000000000"))
    subnormal = e.new(f"sub i32 {shifted}, {0x3F000000}")
    small = e.new(f"icmp ult i32 {size}, {113 << 23}")
    value = e.new(f"select i1 {small}, i32 {subnormal}, i32 {normal}")
    payload = e.new(f"and i32 {e.new(f'lshr i32 {size}, 13')}, {0x3FF}")
    nan = e.new(f"icmp ugt i32 {size}, {0x7F800000}")
    special = e.new(f"select i1 {nan}, i32 {e.new(f'or i32 {payload}, {0x7E00}')}, i32 {0x7C00}")
    large = e.new(f"icmp uge i32 {size}, {143 << 23}")
    value = e.new(f"select i1 {large}, i32 {special}, i32 {value}")
    return e.new(f"trunc i32 {e.new(f'or i32 {value}, {sign}')} to i16")
