"""The logistic function and what is made of it: tanh, the logarithm of a sum of exponentials.

The derivative of the logistic function is computed from its argument, so that it keeps its digits where the function
itself is 1 but for rounding; that of tanh from its result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

from ...core.primitive import Primitive
from ..families import elementwise, literal
from ..structure.linear import add_p
from .arithmetic import div_p, eq_p, mul_p, neg_p, select_p, sub_p
from .bits import and_p
from .exp_log import LN2
from .rounding import is_inf_p
from .trig import one_minus_square_p


def _scaled(x: Any, factor: float) -> Any:
    return mul_p.bind(x, literal(factor, x))


# --- logistic -----------------------------------------------------------------------------------------------


def _logistic_kernel(k: Any, x: Any) -> Any:
    one = k.const(1, x.dtype)
    small = k.call("exp", -k.call("abs", x))
    return k.where(x >= 0, one, small) / (small + one)


logistic_p: Primitive = elementwise(
    "logistic",
    scipy.special.expit,
    factors=(lambda ans, x: logistic_slope_p.bind(x),),
    kernel=_logistic_kernel,
    kinds="f",
)


def _logistic_slope(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return small / np.square(small + 1)


def _logistic_slope_kernel(k: Any, x: Any) -> Any:
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


def _logit_kernel(k: Any, x: Any) -> Any:
    one = k.const(1, x.dtype)
    # Near 1/2, where the quotient is near 1, its logarithm loses digits.
    twice = x * 2.0 - one
    middle = k.call("log1p", twice) - k.call("log1p", -twice)
    return k.where(k.call("abs", twice) < 0.4, middle, k.call("log", x / (one - x)))


logit_p: Primitive = elementwise(
    "logit",
    scipy.special.logit,
    terms=(lambda t, ans, x: add_p.bind(div_p.bind(t, x), div_p.bind(t, sub_p.bind(literal(1.0, x), x))),),
    kernel=_logit_kernel,
    kinds="f",
)

# --- tanh ---------------------------------------------------------------------------------------------------


# The derivative is taken from the result, which the next layer keeps anyway: from the argument, whose tail would have
# all its digits, gradients keep twice the memory, and policies of `checkpoint` that save the result compute it again.
tanh_p: Primitive = elementwise(
    "tanh",
    np.tanh,
    factors=(lambda ans, x: one_minus_square_p.bind(ans),),
    kernel=lambda k, x: k.call("tanh", x),
    kinds="fc",
)

# --- logarithms of sums -------------------------------------------------------------------------------------


def log_share(x: Any, ans: Any) -> Any:
    """``x - ans``, the logarithm of how much of the tangent of `x` enters ``logaddexp``; 0 where they are equal.

    So it is not NaN at infinities, but 1 for an operand as infinite as the result.
    """
    zero = literal(0.0, x)
    same = eq_p.bind(x, ans)
    return sub_p.bind(select_p.bind(same, zero, x), select_p.bind(same, zero, ans))


def _gap(x: Any, y: Any) -> Any:
    """``x - y``, and 0 where both are the same infinity."""
    same, zero = and_p.bind(is_inf_p.bind(x), eq_p.bind(x, y)), literal(0.0, x)
    return sub_p.bind(select_p.bind(same, zero, x), select_p.bind(same, zero, y))


def _logaddexp_kernel(base: float, exp: str, log: str | None) -> Any:
    def emit(k: Any, x: Any, y: Any) -> Any:
        top, gap = k.call("max", x, y), k.call("abs", x - y)
        one = k.const(1, x.dtype)
        # Equal infinities have no difference.
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
    kinds="f",
)
