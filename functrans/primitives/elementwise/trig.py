"""Trigonometric and hyperbolic functions, their inverses, hypot, the logistic function and logaddexp.

The derivative of the logistic function is computed from its argument, which keeps the digits in the tails, that of tanh
from its result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import Primitive, quietly
from ...core.kernel import IndexEmitter
from ...core.values import Value
from ...runtime.libraries import scipy
from ..families import elementwise, literal
from ..structure.linear import Rule, add_p, dtype_of
from .arithmetic import div_p, eq_p, mul_p, neg_p, select_p, sub_p
from .bits import and_p
from .exp_log import LN2, integer_pow_p, sqrt_p
from .rounding import is_inf_p


def _one(x: Value) -> Value:
    return literal(1.0, x)


def _unary(name: str, impl: Rule, factor: Rule | None = None, term: Rule | None = None) -> Primitive:
    derivative: dict[str, Any] = {"factors": (factor,)} if term is None else {"terms": (term,)}
    return elementwise(name, impl, **derivative, kernel=lambda k, x: k.call(name, x), kinds="fc")


def _square(x: Value) -> Value:
    return integer_pow_p.bind(x, y=2)


#: ``1 - x**2`` without cancellation near ``|x| = 1``, nor in its derivative near 0.
one_minus_square_p: Primitive = elementwise(
    "one_minus_square",
    lambda x: (1 - x) * (1 + x),
    factors=(lambda ans, x: mul_p.bind(x, literal(-2.0, x)),),
    kernel=lambda k, x: (k.const(1, x.dtype) - x) * (k.const(1, x.dtype) + x),
    kinds="fc",
)

# --- of two real numbers ------------------------------------------------------------------------------------

# Quotients by the distance r from the origin: ``x / r**2``, ``x / r`` and ``1 / r``. Their derivatives are products of
# these quotients, so derivatives of any order neither overflow nor multiply 0 by infinity.


@quietly
def _reciprocal_part(x: Value, y: Value) -> Any:
    wide = np.abs(y) <= np.abs(x)
    ratio = np.where(wide, y, x) / np.where(wide, x, y)
    size = np.where(wide, x, y) + np.where(wide, y, x) * ratio
    return (np.where(wide, 1.0, ratio) / size)[()]


def _reciprocal_part_kernel(k: IndexEmitter, x: Any, y: Any) -> Any:
    wide = k.call("abs", y) <= k.call("abs", x)
    ratio = k.where(wide, y, x) / k.where(wide, x, y)
    size = k.where(wide, x, y) + k.where(wide, y, x) * ratio
    return k.where(wide, k.const(1, x.dtype), ratio) / size


#: ``x / (x**2 + y**2)``, the real part of ``1 / (x + 1j * y)``, by R. Smith's algorithm for division.
reciprocal_part_p: Primitive = elementwise(
    "reciprocal_part",
    _reciprocal_part,
    factors=(
        lambda ans, x, y: sub_p.bind(_square(reciprocal_part_p.bind(y, x)), _square(ans)),
        lambda ans, x, y: mul_p.bind(mul_p.bind(literal(-2.0, x), ans), reciprocal_part_p.bind(y, x)),
    ),
    kernel=_reciprocal_part_kernel,
    kinds="f",
)


@quietly
def _direction(x: Value, y: Value) -> Any:
    r = np.hypot(x, y)
    out = x / np.where(r == 0, 1.0, r)
    return np.where(np.isinf(x) & np.isfinite(y), np.sign(x), out)[()]


def _direction_kernel(k: IndexEmitter, x: Any, y: Any) -> Any:
    r = k.call("hypot", x, y)
    one = k.const(1, x.dtype)
    along = k.call("abs", x).eq(math.inf) & (k.call("abs", y) < math.inf)
    return k.where(along, k.call("copysign", one, x), x / k.where(r.eq(0.0), one, r))


#: ``x / hypot(x, y)``, and 0 at the origin, like the derivative of ``abs``.
direction_p: Primitive = elementwise(
    "direction",
    _direction,
    factors=(
        lambda ans, x, y: mul_p.bind(_square(direction_p.bind(y, x)), inverse_hypot_p.bind(x, y)),
        lambda ans, x, y: neg_p.bind(
            mul_p.bind(mul_p.bind(ans, direction_p.bind(y, x)), inverse_hypot_p.bind(x, y))
        ),
    ),
    kernel=_direction_kernel,
    kinds="f",
)

#: ``1 / hypot(x, y)``.
inverse_hypot_p: Primitive = elementwise(
    "inverse_hypot",
    lambda x, y: np.reciprocal(np.hypot(x, y)),
    factors=(
        lambda ans, x, y: neg_p.bind(mul_p.bind(mul_p.bind(direction_p.bind(x, y), ans), ans)),
        lambda ans, x, y: neg_p.bind(mul_p.bind(mul_p.bind(direction_p.bind(y, x), ans), ans)),
    ),
    kernel=lambda k, x, y: k.const(1, x.dtype) / k.call("hypot", x, y),
    kinds="f",
)

arctan2_p: Primitive = elementwise(
    "arctan2",
    np.arctan2,
    factors=(
        lambda ans, y, x: reciprocal_part_p.bind(x, y),
        lambda ans, y, x: neg_p.bind(reciprocal_part_p.bind(y, x)),
    ),
    kernel=lambda k, y, x: k.call("arctan2", y, x),
    kinds="f",
)

hypot_p: Primitive = elementwise(
    "hypot",
    np.hypot,
    factors=(
        lambda ans, x, y: direction_p.bind(x, y),
        lambda ans, x, y: direction_p.bind(y, x),
    ),
    kernel=lambda k, x, y: k.call("hypot", x, y),
    commutes=True,
    kinds="f",
)

# --- trigonometric ------------------------------------------------------------------------------------------

sin_p: Primitive = _unary("sin", np.sin, lambda ans, x: cos_p.bind(x))
cos_p: Primitive = _unary("cos", np.cos, lambda ans, x: neg_p.bind(sin_p.bind(x)))
tan_p: Primitive = _unary("tan", np.tan, lambda ans, x: add_p.bind(_one(x), _square(ans)))

arcsin_p: Primitive = _unary(
    "arcsin", np.arcsin, term=lambda t, ans, x: div_p.bind(t, sqrt_p.bind(one_minus_square_p.bind(x)))
)
arccos_p: Primitive = _unary(
    "arccos",
    np.arccos,
    term=lambda t, ans, x: neg_p.bind(div_p.bind(t, sqrt_p.bind(one_minus_square_p.bind(x)))),
)
arctan_p: Primitive = _unary(
    "arctan",
    np.arctan,
    term=lambda t, ans, x: (
        div_p.bind(t, add_p.bind(_one(x), _square(x)))
        if dtype_of(x).kind == "c"
        else mul_p.bind(t, reciprocal_part_p.bind(_one(x), x))
    ),
)

# --- hyperbolic ---------------------------------------------------------------------------------------------

sinh_p: Primitive = _unary("sinh", np.sinh, lambda ans, x: cosh_p.bind(x))
cosh_p: Primitive = _unary("cosh", np.cosh, lambda ans, x: sinh_p.bind(x))

arcsinh_p: Primitive = _unary(
    "arcsinh",
    np.arcsinh,
    term=lambda t, ans, x: (
        div_p.bind(t, sqrt_p.bind(add_p.bind(_one(x), _square(x))))
        if dtype_of(x).kind == "c"
        else mul_p.bind(t, inverse_hypot_p.bind(_one(x), x))
    ),
)
# Two roots, not the root of the product: equal on the real line, and the right branch for complex numbers.
arccosh_p: Primitive = _unary(
    "arccosh",
    np.arccosh,
    term=lambda t, ans, x: mul_p.bind(
        div_p.bind(t, sqrt_p.bind(sub_p.bind(x, _one(x)))),
        div_p.bind(_one(x), sqrt_p.bind(add_p.bind(x, _one(x)))),
    ),
)
arctanh_p: Primitive = _unary(
    "arctanh", np.arctanh, term=lambda t, ans, x: div_p.bind(t, one_minus_square_p.bind(x))
)


def _scaled(x: Value, factor: float) -> Value:
    return mul_p.bind(x, literal(factor, x))


# --- logistic -----------------------------------------------------------------------------------------------


def _logistic_kernel(k: IndexEmitter, x: Any) -> Any:
    one = k.const(1, x.dtype)
    small = k.call("exp", -k.call("abs", x))
    return k.where(x >= 0, one, small) / (small + one)


logistic_p: Primitive = elementwise(
    "logistic",
    lambda x: scipy.special.expit(x),
    factors=(lambda ans, x: logistic_slope_p.bind(x),),
    kernel=_logistic_kernel,
    kinds="f",
)


def _logistic_slope(x: Value) -> Value:
    small = np.exp(-np.abs(x))
    return small / np.square(small + 1)


def _logistic_slope_kernel(k: IndexEmitter, x: Any) -> Any:
    small = k.call("exp", -k.call("abs", x))
    other = small + k.const(1, x.dtype)
    return small / (other * other)


#: ``logistic(x) * logistic(-x)``.
logistic_slope_p: Primitive = elementwise(
    "logistic_slope",
    _logistic_slope,
    factors=(lambda ans, x: neg_p.bind(mul_p.bind(tanh_p.bind(_scaled(x, 0.5)), ans)),),
    kernel=_logistic_slope_kernel,
    kinds="f",
)


def _logit_kernel(k: IndexEmitter, x: Any) -> Any:
    one = k.const(1, x.dtype)
    # Near 1/2 the quotient is near 1, and its logarithm would lose digits.
    twice = x * 2.0 - one
    middle = k.call("log1p", twice) - k.call("log1p", -twice)
    return k.where(k.call("abs", twice) < 0.4, middle, k.call("log", x / (one - x)))


logit_p: Primitive = elementwise(
    "logit",
    lambda x: scipy.special.logit(x),
    terms=(lambda t, ans, x: add_p.bind(div_p.bind(t, x), div_p.bind(t, sub_p.bind(literal(1.0, x), x))),),
    kernel=_logit_kernel,
    kinds="f",
)

# --- tanh ---------------------------------------------------------------------------------------------------


# The derivative is taken from the result, which the next layer stores anyway. Taken from the argument it would be
# accurate in the tails, but gradients would store twice the memory, and `checkpoint` policies that save the result
# would compute it again.
tanh_p: Primitive = elementwise(
    "tanh",
    np.tanh,
    factors=(lambda ans, x: one_minus_square_p.bind(ans),),
    kernel=lambda k, x: k.call("tanh", x),
    kinds="fc",
)

# --- logarithms of sums -------------------------------------------------------------------------------------


def log_share(x: Value, ans: Value) -> Value:
    """Return ``x - ans``, the logarithm of the derivative of ``logaddexp`` in `x`; 0 where they are equal.

    So at infinities the derivative is not NaN, but 1 for an operand equal to the result.
    """
    zero = literal(0.0, x)
    same = eq_p.bind(x, ans)
    return sub_p.bind(select_p.bind(same, zero, x), select_p.bind(same, zero, ans))


def _gap(x: Value, y: Value) -> Value:
    """Return ``x - y``, and 0 where both are the same infinity."""
    same, zero = and_p.bind(is_inf_p.bind(x), eq_p.bind(x, y)), literal(0.0, x)
    return sub_p.bind(select_p.bind(same, zero, x), select_p.bind(same, zero, y))


def _logaddexp_kernel(base: float, exp: str, log: str | None) -> Any:
    def emit(k: IndexEmitter, x: Any, y: Any) -> Any:
        top, gap = k.call("max", x, y), k.call("abs", x - y)
        one = k.const(1, x.dtype)
        # The difference of equal infinities is NaN.
        if log is None:
            return k.where(x.eq(y), x + math.log(2.0), top + k.call("log1p", k.call("exp", -gap)))
        rest = k.call("log1p", k.call(exp, -gap)) * (1 / math.log(base))
        return k.where(x.eq(y), x + one, top + rest)

    return emit


logaddexp_p: Primitive = elementwise(
    "logaddexp",
    np.logaddexp,
    factors=(
        lambda ans, x, y: logistic_p.bind(_gap(x, y)),
        lambda ans, x, y: logistic_p.bind(_gap(y, x)),
    ),
    kernel=_logaddexp_kernel(math.e, "exp", None),
    commutes=True,
    kinds="f",
)

#: ``log(1 + exp(x))``.
softplus_p: Primitive = elementwise(
    "softplus",
    lambda x: np.logaddexp(x, x.dtype.type(0)),
    factors=(lambda ans, x: logistic_p.bind(x),),
    kernel=lambda k, x: (
        k.call("max", x, k.const(0, x.dtype)) + k.call("log1p", k.call("exp", -k.call("abs", x)))
    ),
    kinds="f",
)

logaddexp2_p: Primitive = elementwise(
    "logaddexp2",
    np.logaddexp2,
    factors=(
        lambda ans, x, y: logistic_p.bind(_scaled(_gap(x, y), LN2)),
        lambda ans, x, y: logistic_p.bind(_scaled(_gap(y, x), LN2)),
    ),
    kernel=_logaddexp_kernel(2.0, "exp2", "log2"),
    commutes=True,
    kinds="f",
)
