"""Modified Bessel functions of the first kind, of integer order; scaled ones are times ``exp(-|x|)``."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.special

from ...core.dtypes import FLOAT64
from ...core.primitive import Primitive
from ..elementwise.arithmetic import ge_p, mul_p, select_p, sub_p
from ..elementwise.complexes import abs_p
from ..elementwise.exp_log import multiplied
from ..elementwise.rounding import sign_p
from ..families import elementwise, literal
from ..structure.linear import add_p


def _name(n: int, scaled: bool) -> str:
    """SciPy's name of the function, which takes the order as an argument where it is not 0 or 1."""
    return f"i{n if n in (0, 1) else 'v'}{'e' if scaled else ''}"


def _bessel_i(x: Any, *, n: int, scaled: bool) -> Any:
    function = getattr(scipy.special, _name(n, scaled))
    # Orders are real numbers to SciPy; its float32 loop would round the order too.
    return function(x) if n in (0, 1) else function(np.asarray(x).dtype.type(n), x)


_FAR = 25.0
"""From here on derivatives of scaled functions are those of the asymptotic series: differences lose all digits."""
_TERMS = 40


@lru_cache(maxsize=64)
def _series(n: int, m: int) -> tuple[float, ...]:
    """Coefficients of ``y**k`` in the derivative of order `m` over ``y**(m + 1/2)``, ``y = 1 / x`` (DLMF 10.40.1)."""
    found, term = [], 1 / math.sqrt(2 * math.pi)
    for k in range(_TERMS):
        found.append(term * (-1) ** m * math.prod(k + 0.5 + i for i in range(m)))
        term *= ((2 * k + 1) ** 2 - 4 * n * n) / (8 * (k + 1))
    return tuple(found)


def _far_sum(y: Any, root: Any, n: int, m: int) -> Any:
    """The series at ``y = 1 / abs(x)``, of arrays and of scalars of a kernel."""
    *rest, total = _series(n, m)
    value = y * total + rest.pop()
    for c in reversed(rest):
        value = value * y + c
    return value * root * multiplied(y, m)


def _far_slope(x: Any, *, n: int, m: int) -> Any:
    y = 1 / np.maximum(np.abs(np.asarray(x, np.float64)), _FAR)
    value = _far_sum(y, np.sqrt(y), n, m)
    value = np.copysign(1.0, x) * value if (n + m) % 2 else value
    return np.asarray(value, np.asarray(x).dtype)[()]


def _far_slope_kernel(k: Any, x: Any, *, n: int, m: int) -> Any:
    one = k.const(1, FLOAT64)
    y = one / k.call("max", k.cast(k.call("abs", x), FLOAT64), k.const(_FAR, FLOAT64))
    value = k.cast(_far_sum(y, k.call("sqrt", y), n, m), x.dtype)
    return k.call("copysign", k.const(1, x.dtype), x) * value if (n + m) % 2 else value


#: Derivatives of positive order `m` of scaled functions where ``abs(x) >= _FAR``; elsewhere those at that number.
far_slope_p: Primitive = elementwise(
    "bessel_i_far_slope",
    _far_slope,
    factors=(lambda ans, x, *, n, m: far_slope_p.bind(x, n=n, m=m + 1),),
    kernel=_far_slope_kernel,
    kinds="f",
)


def _slope(ans: Any, x: Any, *, n: int, scaled: bool) -> Any:
    """Half the sum of the neighbours; orders n and -n are one function (DLMF 10.27.1, 10.29.1)."""
    if n == 0:
        slope = bessel_i_p.bind(x, n=1, scaled=scaled)
    else:
        below, above = (bessel_i_p.bind(x, n=m, scaled=scaled) for m in (n - 1, n + 1))
        slope = mul_p.bind(add_p.bind(below, above), literal(0.5, x))
    if not scaled:
        return slope
    near = sub_p.bind(slope, mul_p.bind(sign_p.bind(x), ans))
    far = ge_p.bind(abs_p.bind(x), literal(_FAR, x))
    return select_p.bind(far, far_slope_p.bind(x, n=n, m=1), near)


def _kernel(k: Any, x: Any, *, n: int, scaled: bool) -> Any:
    order = () if n in (0, 1) else (k.const(n, x.dtype),)
    return k.call(_name(n, scaled), *order, x)


bessel_i_p: Primitive = elementwise(
    "bessel_i",
    _bessel_i,
    factors=(_slope,),
    kernel=_kernel,
    kinds="f",
)
