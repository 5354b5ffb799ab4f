"""Modified Bessel functions of the first kind, of integer order; scaled ones are times ``exp(-|x|)``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from ..core.primitive import Primitive
from .elementwise import mul_p, sub_p
from .families import elementwise, literal
from .linear import add_p
from .rounding import sign_p


def _name(n: int, scaled: bool) -> str:
    """SciPy's name of the function, which takes the order as an argument where it is not 0 or 1."""
    return f"i{n if n in (0, 1) else 'v'}{'e' if scaled else ''}"


def _bessel_i(x: Any, *, n: int, scaled: bool) -> Any:
    function = getattr(scipy.special, _name(n, scaled))
    # Orders are real numbers to SciPy; its float32 loop would round the order too.
    return function(x) if n in (0, 1) else function(np.asarray(x).dtype.type(n), x)


def _slope(ans: Any, x: Any, *, n: int, scaled: bool) -> Any:
    """Half the sum of the neighbours; orders n and -n are one function (DLMF 10.27.1, 10.29.1)."""
    if n == 0:
        slope = bessel_i_p.bind(x, n=1, scaled=scaled)
    else:
        below, above = (bessel_i_p.bind(x, n=m, scaled=scaled) for m in (n - 1, n + 1))
        slope = mul_p.bind(add_p.bind(below, above), literal(0.5, x))
    return sub_p.bind(slope, mul_p.bind(sign_p.bind(x), ans)) if scaled else slope


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
