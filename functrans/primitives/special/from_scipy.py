"""Special functions that SciPy computes: inverses of erf and of the normal distribution function, the Hurwitz zeta
function. Kernels call SciPy's exported routines, which lack the zeta function.

Where a derivative in a parameter has no closed form, requesting it raises an error; it is not taken for zero.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from ...core import NoRuleError, Primitive, is_float
from ...core.values import Param, Value
from ...runtime.libraries import scipy
from ..elementwise.arithmetic import mul_p, neg_p
from ..elementwise.exp_log import exp_p, integer_pow_p
from ..families import elementwise, literal
from ..structure.linear import Rule, add_p


def refused(what: str) -> Rule:
    """The factor of an operand without a derivative: requesting it raises an error."""

    def factor(ans: Value, *operands: Value) -> NoReturn:
        raise NoRuleError(
            f"{what} has no closed form and is not implemented. If you do not need it, hold the argument constant with "
            "functrans.lax.stop_gradient"
        )

    return factor


def in_double(function: str) -> Rule:
    """SciPy's function computed in double precision, as kernels do: some of SciPy's single precision is poor."""

    def impl(*operands: Value, **params: Param) -> Value:
        routine = getattr(scipy.special, function)
        dtype = np.result_type(*operands)
        if dtype.itemsize == (8 if is_float(dtype) else 16):
            return routine(*operands)
        wide = np.float64 if is_float(dtype) else np.complex128
        return np.asarray(routine(*[np.asarray(x, wide) for x in operands])).astype(dtype)[()]

    return impl


def of_scipy(name: str, *factors: Rule | None) -> Primitive:
    """A primitive of real numbers whose values SciPy computes, in kernels too."""
    return elementwise(
        name,
        in_double(name),
        factors=factors,
        kernel=lambda k, *operands: k.call(name, *operands),
        kinds="f",
    )


def of_scipy_complex(name: str, *factors: Rule | None) -> Primitive:
    """The same of complex numbers; kernels call SciPy through Python."""
    return elementwise(f"{name}_complex", in_double(name), factors=factors, kinds="c")


# --- inverses -----------------------------------------------------------------------------------------------

erfinv_p = elementwise(
    "erfinv",
    in_double("erfinv"),
    factors=(
        lambda ans, x: mul_p.bind(
            literal(math.sqrt(math.pi) / 2, x), exp_p.bind(integer_pow_p.bind(ans, y=2))
        ),
    ),
    kernel=lambda k, x: k.call("erfinv", x),
    kinds="f",
)
ndtri_p = elementwise(
    "ndtri",
    lambda x: scipy.special.ndtri(x),
    factors=(
        lambda ans, x: mul_p.bind(
            literal(math.sqrt(2 * math.pi), x),
            exp_p.bind(mul_p.bind(literal(0.5, x), integer_pow_p.bind(ans, y=2))),
        ),
    ),
    kernel=lambda k, x: k.call("ndtri", x),
    kinds="f",
)

# --- Hurwitz's zeta: DLMF 25.11.17 ---------------------------------------------------------------------------


def _zeta(s: Value, q: Value) -> Any:
    out = scipy.special.zeta(s, q)
    return out.astype(np.result_type(s, q), copy=False) if isinstance(out, np.ndarray) else out


zeta_p: Primitive = elementwise(
    "zeta",
    _zeta,
    factors=(
        refused("the derivative of zeta(s, q) in s"),
        lambda ans, s, q: neg_p.bind(mul_p.bind(s, zeta_p.bind(add_p.bind(s, literal(1.0, s)), q))),
    ),
    kinds="f",
)
