"""Rounding, division with remainder, signs, and the tests for NaN and infinity.

Kernels follow NumPy's case distinctions wherever NumPy is exact about a corner case: a zero divisor, ``INT_MIN // -1``,
the sign of a zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import BOOL, Primitive, is_float
from ...core.kernel import IndexEmitter, ScalarEmitter
from ...core.values import ArrayLike, Value
from ..families import elementwise, literal
from ..structure.linear import Rule, dtype_of
from .arithmetic import divides, eq_p, mul_p, neg_p, select_p

# --- rounding -----------------------------------------------------------------------------------------------


def _rounding(name: str, ufunc: np.ufunc) -> Primitive:
    # NumPy returns integers and booleans unchanged, since 2.1; before, it makes floats of them.
    def impl(x: Value) -> Value:
        return np.array(x)[()] if dtype_of(x).kind in "biu" else ufunc(x)

    return elementwise(
        name,
        ufunc if "l->l" in ufunc.types else impl,
        factors=(None,),
        kernel=lambda k, x: k.call(name, x) if is_float(x.dtype) else x,
        kinds="biuf",
    )


floor_p = _rounding("floor", np.floor)
ceil_p = _rounding("ceil", np.ceil)
trunc_p = _rounding("trunc", np.trunc)
rint_p: Primitive = elementwise(
    "rint",
    np.rint,
    factors=(None,),
    kernel=lambda k, x: _by_parts(k, lambda part: k.call("rint", part), x),
    kinds="fc",
)


def _by_parts(k: ScalarEmitter, f: Rule, x: Any) -> Any:
    if x.dtype.kind != "c":
        return f(x)
    return k.call("complex", f(k.call("real", x)), f(k.call("imag", x)))


# --- division with remainder --------------------------------------------------------------------------------


def _safe_divisor(k: IndexEmitter, y: Any) -> tuple[Any, Any, Any]:
    """Return a divisor on which integer division never fails, and whether `y` was 0 or -1."""
    zero = y.eq(0)
    if y.dtype.kind == "u":
        return k.where(zero, k.const(1, y.dtype), y), zero, None
    minus = y.eq(-1)
    return k.where(zero | minus, k.const(1, y.dtype), y), zero, minus


def _floor_divide_kernel(k: IndexEmitter, x: ArrayLike, y: ArrayLike) -> Any:
    if is_float(x.dtype):
        return _floor_divide_float(k, x, y)
    one, none = k.const(1, x.dtype), k.const(0, x.dtype)
    divisor, zero, minus = _safe_divisor(k, y)
    quotient = k.call("idiv", x, divisor)
    if minus is None:
        return k.where(zero, none, quotient)
    rest = x - quotient * divisor
    down = rest.ne(0) & ((rest ^ divisor) < 0)
    return k.where(zero, none, k.where(minus, -x, k.where(down, quotient - one, quotient)))


def _floor_divide_float(k: IndexEmitter, x: ArrayLike, y: ArrayLike) -> Any:
    zero = k.const(0, x.dtype)
    rest = k.call("fmod", x, y)
    quotient = (x - rest) / y
    down = rest.ne(0) & (rest < 0).ne(y < 0)
    quotient = k.where(down, quotient - 1, quotient)
    floor = k.call("floor", quotient)
    floor = k.where(quotient - floor > 0.5, floor + 1, floor)
    floor = k.where(quotient.ne(0), floor, k.call("copysign", zero, x / y))
    return k.where(y.eq(0), x / y, floor)


def _remainder_kernel(k: IndexEmitter, x: Any, y: Any) -> Any:
    if is_float(x.dtype):
        rest = k.call("fmod", x, y)
        moved = k.where((rest < 0).ne(y < 0), rest + y, rest)
        signed = k.where(rest.ne(0), moved, k.call("copysign", rest, y))
        return k.where(y.eq(0), rest, signed)
    rest = _fmod_kernel(k, x, y)
    if x.dtype.kind == "u":
        return rest
    return k.where(rest.ne(0) & ((rest ^ y) < 0), rest + y, rest)


def _fmod_kernel(k: IndexEmitter, x: Any, y: Any) -> Any:
    if is_float(x.dtype):
        return k.call("fmod", x, y)
    divisor, zero, minus = _safe_divisor(k, y)
    rest = k.call("irem", x, divisor)
    return k.where(zero if minus is None else zero | minus, k.const(0, x.dtype), rest)


floor_divide_p: Primitive = elementwise(
    "floor_divide",
    np.floor_divide,
    factors=(None, None),
    guard=divides,
    kernel=_floor_divide_kernel,
    kinds="iuf",
)

remainder_p: Primitive = elementwise(
    "remainder",
    np.remainder,
    terms=(
        lambda t, ans, x, y: t,
        lambda t, ans, x, y: mul_p.bind(t, neg_p.bind(floor_divide_p.bind(x, y))),
    ),
    guard=divides,
    kernel=_remainder_kernel,
    kinds="iuf",
)

fmod_p: Primitive = elementwise(
    "fmod",
    np.fmod,
    terms=(
        lambda t, ans, x, y: t,
        lambda t, ans, x, y: mul_p.bind(t, neg_p.bind(_truncated_quotient(x, y))),
    ),
    guard=divides,
    kernel=_fmod_kernel,
    kinds="iuf",
)


def _truncated_quotient(x: Value, y: Value) -> Value:
    """Return how often fmod subtracts `y`: the exact quotient, truncated."""
    size = floor_divide_p.bind(_magnitude(x), _magnitude(y))
    return mul_p.bind(size, mul_p.bind(_sign_of(x), _sign_of(y)))


def _sign_of(x: Value) -> Value:
    return copysign_p.bind(literal(1.0, x), x)


def _magnitude(x: Value) -> Value:
    return copysign_p.bind(x, literal(1.0, x))


# --- signs --------------------------------------------------------------------------------------------------


def _sign_kernel(k: IndexEmitter, x: Any) -> Any:
    one, zero = k.const(1, x.dtype), k.const(0, x.dtype)
    if x.dtype.kind == "u":
        return k.where(x.ne(0), one, zero)
    rest = zero if x.dtype.kind == "i" else k.where(x.eq(0), zero, x)  # NaN stays
    return k.where(x > 0, one, k.where(x < 0, -one, rest))


sign_p: Primitive = elementwise("sign", np.sign, factors=(None,), kernel=_sign_kernel, kinds="iuf")

signbit_p: Primitive = elementwise(
    "signbit",
    np.signbit,
    kernel=lambda k, x: k.call("copysign", k.const(1, x.dtype), x) < 0,
    kinds="f",
    out=lambda dtype: BOOL,
    weak=False,
)

copysign_p: Primitive = elementwise(
    "copysign",
    np.copysign,
    terms=(
        lambda t, ans, x, y: select_p.bind(eq_p.bind(signbit_p.bind(x), signbit_p.bind(y)), t, neg_p.bind(t)),
        None,
    ),
    kernel=lambda k, x, y: k.call("copysign", x, y),
    kinds="f",
)

nextafter_p: Primitive = elementwise(
    "nextafter",
    np.nextafter,
    # A step of one unit in the last place: derivatives treat it as the identity.
    terms=(lambda t, ans, x, y: t, None),
    kernel=lambda k, x, y: k.call("nextafter", x, y),
    kinds="f",
)

# --- NaN and infinity ---------------------------------------------------------------------------------------


def _is_finite_kernel(k: ScalarEmitter, x: ArrayLike) -> Any:
    if x.dtype.kind == "c":
        return _is_finite_kernel(k, k.call("real", x)) & _is_finite_kernel(k, k.call("imag", x))
    return k.call("abs", x) < np.inf


def _is_inf_kernel(k: ScalarEmitter, x: Any) -> Any:
    if x.dtype.kind == "c":
        return _is_inf_kernel(k, k.call("real", x)) | _is_inf_kernel(k, k.call("imag", x))
    return k.call("abs", x).eq(np.inf)


def _test(name: str, impl: Rule, kernel: Rule) -> Primitive:
    return elementwise(name, impl, kernel=kernel, kinds="fc", out=lambda dtype: BOOL, weak=False)


is_finite_p = _test("is_finite", np.isfinite, _is_finite_kernel)
is_inf_p = _test("is_inf", np.isinf, _is_inf_kernel)
is_nan_p = _test("is_nan", np.isnan, lambda k, x: x.ne(x))
