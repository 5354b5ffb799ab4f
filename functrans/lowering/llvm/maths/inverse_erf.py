"""The inverses of erf and of the normal distribution without branches, to be inlined into vectorized loops.

The polynomials are those of `primitives.special.inverse_erf`, in ``w = -log(1 - x**2)``. That is also
``-log(4 p (1 - p))`` with ``x = 2 p - 1``, which has all its digits however small ``p`` is.
"""

from __future__ import annotations

import math

from ....primitives.special.inverse_erf import PIECES
from .expr import Expr, FunctionText
from .inline_maths import log, log1p, log_edges
from .powers import log2_of_float

#: As `inline_maths.LOG`, for floats.
_LOG = (0.6666666654512713, 0.4000012942695626, 0.28549968591308467, 0.23353427603651186)
_LN2_HIGH, _LN2_LOW = 0.693145751953125, 1.4286068202862268e-06
_SQRT_HALF_BITS = 0x3F3504F3
_ONE_BITS = 0x3F800000
_FRACTION = 0x007FFFFF


#: ``erfinv(x) / (x sqrt(w))`` from ``w = 36`` on, where no float ``x`` is but 1: a polynomial in ``w**-0.25 - 0.3``, of
#: nearly the least error (2e-17), by interpolation at Chebyshev's points up to ``w = 750``.
_TAIL_START, _TAIL_CENTRE = 36.0, 0.3
_TAIL = (
    0.9907151208730609, -0.09694906032249838, -0.30617486509061587, -0.08792979571565779, 0.8996031795853702,
    0.5723361258543839, -0.6807542010841645, -0.4350904710028513, -1.2353040256999712, 1.3193450257041754,
    0.955892944924401, 2.785386575132212, -6.042102863228548, 5.9311797283879075, -20.588163693896817,
)  # fmt: skip

#: The inverse of erf divided by its argument, for floats, from these `w` on: a polynomial in `w`, then two in its root,
#: less a centre; minimax, relative errors 2e-9, 2e-9 and 8e-9. For a float other than 0 and 1, `w` is at most 103.
_OF_FLOATS = (
    (0.0, 2.5, (
        1.5014093535146866, 0.24664028763904405, -0.004177339408886109, -0.0012527446717800418, 0.0002182826360120004,
        -4.961903947039449e-06, -3.434613568960259e-06, 4.658900535007951e-07, 1.803748214399169e-08,
        -8.772651764031029e-09, 3.3552666003682886e-10,
    )),
    (5.0, 3.15, (
        2.9834174370057966, 1.0040613568933079, 0.006664443295280603, -0.004936371437179597, 0.0034876254857186696,
        -0.002338768863341091, 0.0012169076953753076, -0.00033533078672468166, -9.114144884324125e-05,
        0.00011650926937855258, -2.9218194912514707e-05,
    )),
    (16.6, 7.0, (
        6.869019700341297, 1.008595536517591, -0.0005129135791864249, 6.412756128057032e-06, 6.270277240324284e-06,
        -1.6779410914405833e-06, 2.531796923484153e-07, -4.219257966270773e-08, 1.5315697315149817e-08,
        -2.3853988843708654e-09,
    )),
)  # fmt: skip


def erfinv(f: FunctionText, x: Expr) -> Expr:
    """The inverse of erf; no digit is lost next to 1, since ``1 - abs(x)`` is exact there."""
    y = f.intrinsic("fabs", x)
    total, _ = _pieces(f, -log(f, (1.0 - y) * (1.0 + y)), 8)
    return f.select(y.eq(1.0), math.inf, total) * x + 0.0  # no zero is negative, as in SciPy


def ndtri(f: FunctionText, p: Expr) -> Expr:
    """The inverse of the distribution function of the normal distribution."""
    w = -log(f, 4.0 * p * (1.0 - p))
    total, root = _pieces(f, w, 8)
    place = 1.0 / f.intrinsic("sqrt", root) - _TAIL_CENTRE
    tail = root * f.polynomial(place, _TAIL)
    return f.select(w >= _TAIL_START, tail, total) * ((p + p - 1.0) * math.sqrt(2.0))


def _erfinv_of_float(f: FunctionText, x: Expr) -> Expr:
    y = f.intrinsic("fabs", x)
    total = _pieces_of_float(f, -_log_of_float(f, (1.0 - y) * (1.0 + y)), 2)
    return f.select(y.eq(1.0), math.inf, total) * x + 0.0


def _ndtri_of_float(f: FunctionText, p: Expr) -> Expr:
    w = -_log_of_float(f, 4.0 * p * (1.0 - p))
    total = f.select(w.eq(math.inf), w, _pieces_of_float(f, w, 3))
    return total * ((p + p - 1.0) * math.sqrt(2.0))


def _log_of_float(f: FunctionText, x: Expr) -> Expr:
    return log_edges(f, x, log2_of_float(f, x) * math.log(2.0))


def _pieces_of_float(f: FunctionText, w: Expr, count: int) -> Expr:
    """The inverse of erf divided by its argument, from so many polynomials."""
    root = f.intrinsic("sqrt", w)
    (_, centre, coefficients), *rest = _OF_FLOATS[:count]
    total = f.polynomial(w - centre, coefficients)
    for start, centre, coefficients in rest:
        total = f.select(w >= start, f.polynomial(root - centre, coefficients), total)
    return total


def double(f: FunctionText, x: Expr) -> Expr:
    """The approximation for doubles."""
    return _quick(f, x, -log1p(f, -(x * x)), 8)


def single(f: FunctionText, x: Expr) -> Expr:
    """The approximation for floats, computed with floats."""
    return _quick(f, x, -_log1p(f, -(x * x)), 4)


def _quick(f: FunctionText, x: Expr, w: Expr, size: int) -> Expr:
    total, _ = _pieces(f, w, size)
    return f.select(f.intrinsic("fabs", x).eq(1.0), math.inf, total) * x


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


def _pieces(f: FunctionText, w: Expr, size: int) -> tuple[Expr, Expr]:
    """The inverse divided by its argument, and the square root of `w`."""
    root = f.intrinsic("sqrt", w)
    total: Expr | None = None
    for piece in PIECES[size]:
        value = f.polynomial((root if piece.root else w) - piece.centre, piece.coefficients[::-1])
        total = value if total is None else f.select(w >= piece.start, value, total)
    assert total is not None
    return total, root


#: The functions by their names in the kernel vocabulary.
FUNCTIONS = {"erfinv": erfinv, "ndtri": ndtri, "quick_erfinv": double}
#: Those of doubles that have the digits of float32 only.
OF_FLOATS = {"erfinv": _erfinv_of_float, "ndtri": _ndtri_of_float}
