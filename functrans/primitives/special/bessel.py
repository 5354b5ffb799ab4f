"""Bessel functions of real order; their derivatives are neighbouring orders (DLMF 10.6.1, 10.29.1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import FLOAT64, Primitive, quietly
from ...core.values import ArrayLike, Value
from ...runtime.libraries import scipy
from ..elementwise.arithmetic import div_p, gt_p, mul_p, neg_p, select_p, sub_p
from ..elementwise.complexes import abs_p
from ..elementwise.exp_log import integer_pow_p
from ..elementwise.rounding import sign_p
from ..families import elementwise, literal
from ..structure.linear import add_p
from .from_scipy import of_scipy, refused

Slope = Callable[..., Any]
"""``slope(function_p, ans, v, x)``: the derivative in `x`."""


def _neighbours(function_p: Primitive, v: Value, x: Value) -> tuple[Any, Any]:
    below, above = [function_p.bind(add_p.bind(v, literal(by, v)), x) for by in (-1.0, 1.0)]
    return below, above


def _half(x: Value) -> Value:
    return mul_p.bind(literal(0.5, x), x)


def _half_difference(function_p: Primitive, ans: Value, v: Value, x: Value) -> Value:
    """J and Y."""
    return _half(sub_p.bind(*_neighbours(function_p, v, x)))


def _half_sum(function_p: Primitive, ans: Value, v: Value, x: Value) -> Value:
    """I."""
    return _half(add_p.bind(*_neighbours(function_p, v, x)))


def _less_half_sum(function_p: Primitive, ans: Value, v: Value, x: Value) -> Value:
    """K."""
    return neg_p.bind(_half_sum(function_p, ans, v, x))


# --- scaled functions: derivatives far from 0, where neighbouring orders cancel: DLMF 10.40.1, 10.40.2 -----------

_FAR = 30.0
_TERMS = 24


def _far_sum(v: Value, y: Value, root: Any, sign: float, m: int) -> Value:
    """The derivative of order `m` of ``sum(sign**k a_k(v) x**(-k - 1/2))``, for ``y = 1 / x`` and its root."""
    coefficient, power, total = 1.0, 1.0, 0.0
    square = v * v * 4.0
    for k in range(_TERMS):
        total = total + coefficient * (power * math.prod(k + 0.5 + j for j in range(m)))
        coefficient = coefficient * ((square - (2.0 * k + 1) ** 2) * (sign / (8.0 * (k + 1))))
        power = power * y
    for _ in range(m):
        total = total * y
    return total * root * (-1.0) ** m


def _factor(kind: str, m: int) -> tuple[float, float]:
    """The sign of the series' terms, and its factor."""
    return (-1.0, 1 / math.sqrt(2 * math.pi)) if kind == "i" else (1.0, math.sqrt(math.pi / 2))


@quietly
def _far_slope(v: Value, x: Value, *, kind: str, m: int) -> Any:
    dtype = np.result_type(v, x)
    v, x = np.asarray(v, np.float64), np.asarray(x, np.float64)
    sign, factor = _factor(kind, m)
    y = 1 / np.maximum(abs(x), _FAR)
    out = _far_sum(v, y, np.sqrt(y), sign, m) * factor
    return np.asarray(np.where((x < 0) & (m % 2 > 0), -out, out)).astype(dtype)[()]


def _far_slope_kernel(k: ArrayLike, v: ArrayLike, x: ArrayLike, *, kind: str, m: int) -> Any:
    dtype, v, x = x.dtype, k.cast(v, FLOAT64), k.cast(x, FLOAT64)
    sign, factor = _factor(kind, m)
    y = k.const(1.0, FLOAT64) / k.call("max", k.call("abs", x), k.const(_FAR, FLOAT64))
    out = _far_sum(v, y, k.call("sqrt", y), sign, m) * factor
    return k.cast(k.where(x < 0.0, -out, out) if m % 2 else out, dtype)


#: The derivative of order `m` of the asymptotic series of ive or kve; for negative `x` of integer order, up to parity.
scaled_far_slope_p: Primitive = elementwise(
    "scaled_bessel_far_slope",
    _far_slope,
    factors=(
        refused("the derivative of a Bessel function in its order"),
        lambda ans, v, x, *, kind, m: scaled_far_slope_p.bind(v, x, kind=kind, m=m + 1),
    ),
    kernel=_far_slope_kernel,
    kinds="f",
)


def _where_far(kind: str, v: Value, x: Value, near: Any) -> Value:
    """Return `near`, or far from 0 the derivative of the series."""
    size = x if kind == "k" else abs_p.bind(x)
    far = gt_p.bind(size, add_p.bind(literal(_FAR, v), integer_pow_p.bind(v, y=2)))
    return select_p.bind(far, scaled_far_slope_p.bind(v, x, kind=kind, m=1), near)


def _scaled_k(function_p: Primitive, ans: Value, v: Value, x: Value) -> Value:
    near = sub_p.bind(ans, _half_sum(function_p, ans, v, x))
    return near if function_p is kve_complex_p else _where_far("k", v, x, near)


def _scaled_i(function_p: Primitive, ans: Value, v: Value, x: Value) -> Value:
    """I times ``exp(-abs(x))``; negative x have a real value for integer orders, whose parity the value keeps."""
    near = sub_p.bind(_half_sum(function_p, ans, v, x), mul_p.bind(sign_p.bind(x), ans))
    positive = gt_p.bind(x, literal(0.0, x))
    return select_p.bind(positive, _where_far("i", v, x, near), near)


# --- functions of an order --------------------------------------------------------------------------------------


def _of_order(name: str, slope: Slope) -> Primitive:
    prim: Primitive = of_scipy(name, _order(name), lambda ans, v, x: slope(prim, ans, v, x))
    return prim


def _order(name: str) -> Any:
    return refused(f"the derivative of {name}(v, x) in its order v")


def _complex_of_order(name: str, slope: Slope) -> Primitive:
    """The same for complex arguments; the order comes as a complex number."""

    def impl(v: Value, z: Value) -> Any:
        out = getattr(scipy.special, name)(np.asarray(v.real, np.float64), np.asarray(z, np.complex128))
        return np.asarray(out).astype(np.result_type(z))[()]

    prim: Primitive = elementwise(
        f"{name}_complex",
        impl,
        factors=(_order(name), lambda ans, v, z: slope(prim, ans, v, z)),
        kinds="c",
    )
    return prim


jv_p, jv_complex_p = _of_order("jv", _half_difference), _complex_of_order("jv", _half_difference)
yv_p, yv_complex_p = _of_order("yv", _half_difference), _complex_of_order("yv", _half_difference)
#: Of integer order: by recurrence from orders 0 and 1, much faster than `yv_p`.
yn_p = _of_order("yn", _half_difference)
iv_p, iv_complex_p = _of_order("iv", _half_sum), _complex_of_order("iv", _half_sum)
kv_p, kv_complex_p = _of_order("kv", _less_half_sum), _complex_of_order("kv", _less_half_sum)
kve_p, kve_complex_p = _of_order("kve", _scaled_k), _complex_of_order("kve", _scaled_k)
ive_p = _of_order("ive", _scaled_i)

# --- orders 0 and 1 ---------------------------------------------------------------------------------------------


def _over(y: Value, x: Value) -> Value:
    return div_p.bind(y, x)


j0_p: Primitive = of_scipy("j0", lambda ans, x: neg_p.bind(j1_p.bind(x)))
j1_p: Primitive = of_scipy(
    "j1", lambda ans, x: _half(sub_p.bind(j0_p.bind(x), jv_p.bind(literal(2.0, x), x)))
)
y0_p: Primitive = of_scipy("y0", lambda ans, x: neg_p.bind(y1_p.bind(x)))
y1_p: Primitive = of_scipy("y1", lambda ans, x: sub_p.bind(y0_p.bind(x), _over(ans, x)))
k0_p: Primitive = of_scipy("k0", lambda ans, x: neg_p.bind(k1_p.bind(x)))
k1_p: Primitive = of_scipy("k1", lambda ans, x: neg_p.bind(add_p.bind(k0_p.bind(x), _over(ans, x))))


def _zeroth_scaled(ans: Value, x: Value) -> Value:
    return _where_far("k", literal(0.0, x), x, sub_p.bind(ans, k1e_p.bind(x)))


def _first_scaled(ans: Value, x: Value) -> Value:
    near = sub_p.bind(sub_p.bind(ans, k0e_p.bind(x)), _over(ans, x))
    return _where_far("k", literal(1.0, x), x, near)


k0e_p: Primitive = of_scipy("k0e", _zeroth_scaled)
k1e_p: Primitive = of_scipy("k1e", _first_scaled)
