"""Special functions under JAX's names: the inverse of erf, Bessel functions, incomplete gamma and beta functions, zeta.

SciPy computes them; kernels call it too, but for the incomplete beta function and zeta.
"""

from __future__ import annotations

import operator
from typing import Any

from ..core.checked import checked
from ..core.errors import ArgumentError, ArgumentValueError
from ..primitives.operands import finish
from ..primitives.special import from_scipy as scipy
from ..primitives.special.bessel import bessel_i_p
from ..primitives.special.gamma import polygamma_p
from .elementwise import digamma, of_primitive, operands

__all__ = ["bessel_i0e", "bessel_i1e", "betainc", "erf_inv", "igamma", "igammac", "polygamma", "zeta"]

_X_ONLY = "Differentiable in `x` only: derivatives in the parameters have no closed form, and are refused."

erf_inv = of_primitive("erf_inv", scipy.erfinv_p, 1, "The inverse of `erf`.")
bessel_i0e = of_primitive(
    "bessel_i0e",
    bessel_i_p,
    1,
    "The modified Bessel function of order 0, times ``exp(-|x|)``.",
    n=0,
    scaled=True,
)
bessel_i1e = of_primitive(
    "bessel_i1e",
    bessel_i_p,
    1,
    "The modified Bessel function of order 1, times ``exp(-|x|)``.",
    n=1,
    scaled=True,
)
igamma = of_primitive(
    "igamma",
    scipy.gammainc_p,
    2,
    f"The regularised lower incomplete gamma function of `a`, `x`.\n\n    {_X_ONLY}",
)
igammac = of_primitive(
    "igammac",
    scipy.gammaincc_p,
    2,
    f"The regularised upper incomplete gamma function of `a`, `x`.\n\n    {_X_ONLY}",
)
betainc = of_primitive(
    "betainc",
    scipy.betainc_p,
    3,
    f"The regularised incomplete beta function of `a`, `b`, `x`.\n\n    {_X_ONLY}",
)
zeta = of_primitive(
    "zeta", scipy.zeta_p, 2,
    "Hurwitz's zeta function ``sum((n + q)**-s)``.\n\n    Differentiable in `q` only: a derivative in `s` is refused.",
)  # fmt: skip


@checked
def polygamma(m: Any, x: Any) -> Any:
    """The derivative of order `m` of `digamma`.

    Parameters
    ----------
    m : int, or float without a fraction
        Known while tracing, and not negative.
    x : array_like

    Raises
    ------
    ArgumentError, ArgumentValueError
        If `m` is no such number.

    Examples
    --------
    >>> from functrans import lax
    >>> lax.polygamma(1, 1.0)
    Array(1.64493407)
    """
    try:
        order = operator.index(int(m) if isinstance(m, float) and m.is_integer() else m)
    except TypeError:
        raise ArgumentError(
            f"lax.polygamma: the order must be one integer that is known, got {m!r}"
        ) from None
    if order < 0:
        raise ArgumentValueError(f"lax.polygamma: the order must not be negative, got {order}")
    if order == 0:
        return digamma(x)
    (value,) = operands("polygamma", x)
    return finish(polygamma_p.bind(value, m=order))
