"""Modified Bessel functions of the first kind, of integer order."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from ..core.primitive import Primitive
from .elementwise import mul_p
from .families import elementwise, literal
from .linear import add_p


def _bessel_i(x: Any, *, n: int) -> Any:
    if n == 0:
        return scipy.special.i0(x)
    if n == 1:
        return scipy.special.i1(x)
    # SciPy computes real orders; its float32 loop would round the order too.
    return scipy.special.iv(np.asarray(x).dtype.type(n), x)


def _slope(x: Any, n: int) -> Any:
    """Half the sum of the neighbours; orders n and -n are one function (DLMF 10.27.1, 10.29.1)."""
    if n == 0:
        return bessel_i_p.bind(x, n=1)
    neighbours = add_p.bind(bessel_i_p.bind(x, n=n - 1), bessel_i_p.bind(x, n=n + 1))
    return mul_p.bind(neighbours, literal(0.5, x))


def _kernel(k: Any, x: Any, *, n: int) -> Any:
    return k.call(f"i{n}", x) if n in (0, 1) else k.call("iv", k.const(n, x.dtype), x)


bessel_i_p: Primitive = elementwise(
    "bessel_i",
    _bessel_i,
    factors=(lambda ans, x, *, n: _slope(x, n),),
    kernel=_kernel,
    kinds="f",
)
