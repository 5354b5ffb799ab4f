"""The gamma function and its kin: reciprocal, logarithm, sign, beta function, Pochhammer's symbol, binomials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import Primitive, aval_of, concrete
from ...core.kernel import IndexEmitter
from ...core.values import ArrayLike, Value
from ..elementwise.arithmetic import (
    eq_p,
    ge_p,
    lt_p,
    mul_p,
    ne_p,
    neg_p,
    select_p,
    stop_gradient_p,
    sub_p,
)
from ..elementwise.bits import and_p
from ..elementwise.rounding import floor_p, fmod_p, rint_p
from ..elementwise.trig import cos_p, sin_p
from ..families import elementwise, literal
from ..structure.linear import add_p, broadcast_to, dtype_of, shape_of
from ..structure.shape import full
from .from_scipy import of_scipy, of_scipy_complex, refused, zeta_p
from .functions import digamma_p, polygamma_gap_p, polygamma_p

# DLMF 5.2.2, 5.5.3: derivatives by digamma; those of 1 / gamma, an entire function, by reflection for small x.

gamma_p: Primitive = of_scipy("gamma", lambda ans, x: mul_p.bind(ans, digamma_p.bind(x)))


def _reflected_slope(x: Value) -> Value:
    """The derivative of ``1 / gamma(x) = sin(pi x) gamma(1 - x) / pi``."""
    rest = sub_p.bind(literal(1.0, x), x)
    near = rint_p.bind(x)
    angle = mul_p.bind(literal(math.pi, x), sub_p.bind(x, near))
    half = mul_p.bind(literal(0.5, x), near)
    odd = ne_p.bind(half, rint_p.bind(half))
    sine = mul_p.bind(literal(1 / math.pi, x), mul_p.bind(sin_p.bind(angle), digamma_p.bind(rest)))
    slope = mul_p.bind(gamma_p.bind(rest), sub_p.bind(cos_p.bind(angle), sine))
    return select_p.bind(odd, neg_p.bind(slope), slope)


def _rgamma_slope(ans: Value, x: Value) -> Value:
    small, half = lt_p.bind(x, literal(0.5, x)), literal(0.5, x)
    left = _reflected_slope(select_p.bind(small, x, half))
    right = select_p.bind(small, half, x)
    return select_p.bind(small, left, neg_p.bind(mul_p.bind(rgamma_p.bind(right), digamma_p.bind(right))))


rgamma_p: Primitive = of_scipy("rgamma", _rgamma_slope)
psi_complex_p: Primitive = of_scipy_complex("psi", refused("the derivative of digamma of complex numbers"))
gamma_complex_p: Primitive = of_scipy_complex("gamma", lambda ans, z: mul_p.bind(ans, psi_complex_p.bind(z)))
rgamma_complex_p: Primitive = of_scipy_complex(
    "rgamma", lambda ans, z: neg_p.bind(mul_p.bind(ans, psi_complex_p.bind(z)))
)
#: The principal branch.
loggamma_complex_p: Primitive = of_scipy_complex("loggamma", lambda ans, z: psi_complex_p.bind(z))
#: NaN for negative numbers, as SciPy's.
loggamma_p: Primitive = of_scipy("loggamma", lambda ans, x: digamma_p.bind(x))


def _gammasgn_kernel(k: IndexEmitter, x: ArrayLike) -> Any:
    half = k.call("floor", x) * 0.5
    one = k.const(1.0, x.dtype)
    sign = k.where(k.call("floor", half).eq(half), one, -one)
    pole = k.call("floor", x).eq(x)
    left = k.where(pole | x.ne(x), k.const(math.nan, x.dtype), sign)
    zero = k.where(x.eq(0.0), k.call("copysign", one, x), left)
    return k.where(x > 0.0, one, k.where(x.eq(-math.inf), k.const(math.nan, x.dtype), zero))


def _gammasgn(x: Value) -> Value:
    # SciPy before 1.15 gives 0 at the poles and at both zeros.
    whole = np.floor(x)
    sign = np.where(np.floor(whole * 0.5) * 2 == whole, 1.0, -1.0)
    left = np.where((whole == x) | ~np.isfinite(x), np.nan, sign)
    zero = np.where(np.equal(x, 0.0), np.copysign(1.0, x), left)
    return np.where(np.greater(x, 0.0), 1.0, zero).astype(dtype_of(x))[()]


gammasgn_p: Primitive = elementwise("gammasgn", _gammasgn, kernel=_gammasgn_kernel, kinds="f")

# --- two arguments: DLMF 5.12, 5.2.5, 1.2.6 -------------------------------------------------------------------

beta_p: Primitive = of_scipy(
    "beta",
    lambda ans, a, b: mul_p.bind(ans, polygamma_gap_p.bind(a, b, m=0)),
    lambda ans, a, b: mul_p.bind(ans, polygamma_gap_p.bind(b, a, m=0)),
)
#: ``gamma(z + m) / gamma(z)``.
poch_p: Primitive = of_scipy(
    "poch",
    lambda ans, z, m: neg_p.bind(mul_p.bind(ans, polygamma_gap_p.bind(z, m, m=0))),
    lambda ans, z, m: mul_p.bind(ans, digamma_p.bind(add_p.bind(z, m))),
)


def _above(x: Value) -> Value:
    return add_p.bind(x, literal(1.0, x))


def _binom_in_n(ans: Value, n: Value, k: IndexEmitter) -> Any:
    return neg_p.bind(mul_p.bind(ans, polygamma_gap_p.bind(_above(sub_p.bind(n, k)), k, m=0)))


def _binom_in_k(ans: Value, n: Value, k: Value) -> Any:
    gap = sub_p.bind(digamma_p.bind(_above(sub_p.bind(n, k))), digamma_p.bind(_above(k)))
    return mul_p.bind(ans, gap)


#: ``gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1))``.
binom_p: Primitive = of_scipy("binom", _binom_in_n, _binom_in_k)

# --- polygamma of arrays of orders --------------------------------------------------------------------------

#: Known orders up to this many are computed one by one, in kernels; more of them, or unknown ones, by SciPy's zeta.
_MOST_ORDERS = 16


def polygamma_of(orders: Any, x: ArrayLike) -> Any:
    """The derivatives of the digamma function of each order of an array, whole numbers of the dtype of `x`.

    Both have one shape. NaN where an order is negative or no whole number.
    """
    known = concrete(orders)
    distinct = None if known is None else np.unique(np.asarray(known)).tolist()
    if distinct is None or len(distinct) > _MOST_ORDERS:
        return _by_zeta(stop_gradient_p.bind(orders), x)
    out = full(shape_of(x), math.nan, aval_of(x).dtype)
    for order in distinct:
        if order >= 0 and order == int(order):
            value = polygamma_p.bind(x, m=int(order)) if order else digamma_p.bind(x)
            out = select_p.bind(eq_p.bind(orders, literal(order, x)), value, out)
    return out


def _by_zeta(orders: Any, x: Value) -> Value:
    """``(-1)**(m + 1) * m! * zeta(m + 1, x)`` (DLMF 5.15.1, 25.11.12)."""
    one = literal(1.0, x)
    is_zero = eq_p.bind(orders, literal(0.0, x))
    following = add_p.bind(select_p.bind(is_zero, broadcast_to(one, shape_of(x)), orders), one)
    odd = eq_p.bind(fmod_p.bind(orders, literal(2.0, x)), one)
    size = mul_p.bind(gamma_p.bind(following), zeta_p.bind(following, x))
    out = select_p.bind(is_zero, digamma_p.bind(x), select_p.bind(odd, size, neg_p.bind(size)))
    whole = and_p.bind(ge_p.bind(orders, literal(0.0, x)), eq_p.bind(floor_p.bind(orders), orders))
    return select_p.bind(whole, out, broadcast_to(literal(math.nan, x), shape_of(x)))
