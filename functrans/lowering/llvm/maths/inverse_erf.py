"""The inverse of erf without branches, to be inlined into vectorized loops: see `primitives.special.inverse_erf`."""

from __future__ import annotations

import math

from ....primitives.special.inverse_erf import PIECES
from .expr import Expr, FunctionText
from .inline_maths import log1p

#: As `inline_maths.LOG`, for floats.
_LOG = (0.6666666654512713, 0.4000012942695626, 0.28549968591308467, 0.23353427603651186)
_LN2_HIGH, _LN2_LOW = 0.693145751953125, 1.4286068202862268e-06
_SQRT_HALF_BITS = 0x3F3504F3
_ONE_BITS = 0x3F800000
_FRACTION = 0x007FFFFF


def double(f: FunctionText, x: Expr) -> Expr:
    """The approximation for doubles."""
    return _pieces(f, x, -log1p(f, -(x * x)), 8)


def single(f: FunctionText, x: Expr) -> Expr:
    """The approximation for floats, computed with floats."""
    return _pieces(f, x, -_log1p(f, -(x * x)), 4)


def _log1p(f: FunctionText, x: Expr) -> Expr:
    """log(1 + x) of floats between -1 and 0: the logarithm of the rounded sum, corrected by what rounding lost."""
    u = x + 1.0
    shifted = f.bits(u) + (_ONE_BITS - _SQRT_HALF_BITS)
    k = f.to_float(f.shift_right(shifted, 23) - 127)
    m = f.from_bits((shifted & _FRACTION) + _SQRT_HALF_BITS)
    plain = k.eq(0.0)
    g = f.select(plain, x, m - 1.0)
    lost = f.select(plain, 0.0, (x - (u - 1.0)) / u)
    s = g / (g + 2.0)
    z = s * s
    h = g * g * 0.5
    q = s * f.fma(z, f.polynomial(z, _LOG), h)
    return f.select(u >= 0.0, f.fma(k, _LN2_HIGH, g - (h - (f.fma(k, _LN2_LOW, q) + lost))), math.nan)


def _pieces(f: FunctionText, x: Expr, w: Expr, size: int) -> Expr:
    root = f.intrinsic("sqrt", w)
    total: Expr | None = None
    for piece in PIECES[size]:
        value = f.polynomial((root if piece.root else w) - piece.centre, piece.coefficients[::-1])
        total = value if total is None else f.select(w >= piece.start, value, total)
    assert total is not None
    end = f.intrinsic("fabs", x).eq(1.0)
    return f.select(end, math.inf, total) * x
