"""The scalar functions that kernel rules may call, in one table, and the operations of kernels with their costs.

To add one, write a row here and, if C, NumPy and SciPy lack it, its code: a formula in `primitives.special.formulas`,
which serves all kinds of kernels, or in `llvm.maths.own_maths` for native kernels, `python.runtime` for Python ones,
`loops.passes.split_complex` for complex numbers.
"""

from __future__ import annotations

import numpy as np

from ..core.dtypes import real_dtype
from ..runtime.records import dataclass

#: The cost of a call of a maths library, in additions.
CALL = 20


@dataclass(frozen=True)
class ScalarFunction:
    """Where to find a scalar function, and what it costs.

    Attributes
    ----------
    operands : int
    libm : str
        Its name in C's library, for doubles; append ``f`` for floats.
    numpy : bool
        Whether NumPy has it under the same name.
    scipy : str
        Its name in ``scipy.special``, which is used if C lacks it.
    part : int, optional
        The number of this result, if SciPy's function has several.
    complex : str
        Its name in C's library, for complex doubles.
    cost : int
        The cost of one call, in additions.
    instruction : bool
        Whether it is an operation of the processor, not a mathematical function.
    """

    operands: int = 1
    libm: str = ""
    numpy: bool = False
    scipy: str = ""
    part: int | None = None
    complex: str = ""
    cost: int = CALL
    instruction: bool = False


def _c(libm: str, complex: str = "", operands: int = 1, cost: int = CALL) -> ScalarFunction:
    return ScalarFunction(operands, libm, numpy=True, complex=complex, cost=cost)


def _instruction(operands: int = 1, *, numpy: bool = True, cost: int = 1) -> ScalarFunction:
    return ScalarFunction(operands, numpy=numpy, cost=cost, instruction=True)


def _special(
    name: str, operands: int = 1, libm: str = "", part: int | None = None, cost: int = 0
) -> ScalarFunction:
    return ScalarFunction(operands, libm, scipy=name, part=part, cost=cost or (CALL if libm else 10 * CALL))


#: Keyed by the name that `ScalarEmitter.call` takes. NaN and infinities behave as in NumPy.
FUNCTIONS: dict[str, ScalarFunction] = {
    "abs": _instruction(),
    "floor": _instruction(),
    "ceil": _instruction(),
    "trunc": _instruction(),
    "rint": _instruction(),
    "sqrt": ScalarFunction(numpy=True, complex="csqrt", cost=4),
    "cbrt": _c("cbrt"),
    "exp": _c("exp", "cexp"),
    "exp2": _c("exp2"),
    "expm1": _c("expm1"),
    "log": _c("log", "clog"),
    "log2": _c("log2"),
    "log10": _c("log10"),
    "log1p": _c("log1p"),
    "sin": _c("sin", "csin"),
    "cos": _c("cos", "ccos"),
    "tan": _c("tan", "ctan"),
    "arcsin": _c("asin", "casin"),
    "arccos": _c("acos", "cacos"),
    "arctan": _c("atan", "catan"),
    "sinh": _c("sinh", "csinh"),
    "cosh": _c("cosh", "ccosh"),
    "tanh": _c("tanh", "ctanh"),
    "arcsinh": _c("asinh", "casinh"),
    "arccosh": _c("acosh", "cacosh"),
    "arctanh": _c("atanh", "catanh"),
    "erf": _special("erf", libm="erf"),
    "erfc": _special("erfc", libm="erfc"),
    "lgamma": _special("gammaln"),
    "digamma": _special("psi"),
    "trigamma": ScalarFunction(),
    "erfinv": _special("erfinv", cost=3 * CALL),
    "quick_erfinv": ScalarFunction(cost=40),
    "ndtri": _special("ndtri", cost=3 * CALL),
    "i0": _special("i0", cost=3 * CALL),
    "i0e": _special("i0e", cost=3 * CALL),
    "i1": _special("i1", cost=3 * CALL),
    "i1e": _special("i1e", cost=3 * CALL),
    "real": _instruction(),
    "imag": _instruction(),
    "conj": _instruction(),
    "pow": ScalarFunction(2, libm="pow", complex="cpow", cost=40),
    "arctan2": _c("atan2", operands=2),
    "hypot": _c("hypot", operands=2),
    "fmod": _instruction(2, cost=CALL),
    "copysign": _instruction(2),
    "multiply": _instruction(2),
    "nextafter": _c("nextafter", operands=2),
    "complex": _instruction(2, numpy=False),
    "idiv": _instruction(2, numpy=False, cost=20),
    "irem": _instruction(2, numpy=False, cost=20),
    "min": _instruction(2, numpy=False),
    "max": _instruction(2, numpy=False),
    "gammainc": _special("gammainc", 2),
    "gammaincc": _special("gammaincc", 2),
    "betaln": _special("betaln", 2),
    "bdtrik": _special("bdtrik", 3),
    "nbdtrik": _special("nbdtrik", 3),
    "pdtrik": _special("pdtrik", 2),
    "stdtr": _special("stdtr", 2),
    "stdtrit": _special("stdtrit", 2),
    "iv": _special("iv", 2),
    "ive": _special("ive", 2),
    "gamma_density": ScalarFunction(2, cost=5 * CALL),
    "gamma_quantile_slope0": ScalarFunction(2, cost=50 * CALL),
    "gamma_quantile_slope1": ScalarFunction(2, cost=50 * CALL),
    "gamma_quantile_slope2": ScalarFunction(2, cost=50 * CALL),
    "betainc": _special("betainc", 3),
    "beta_density": ScalarFunction(3, cost=8 * CALL),
    "beta_slope_a": ScalarFunction(3, cost=80 * CALL),
    "beta_slope_b": ScalarFunction(3, cost=80 * CALL),
    "betaincc": _special("betaincc", 3),
    "betaincinv": _special("betaincinv", 3),
    "betainccinv": _special("betainccinv", 3),
    "gammaincinv": _special("gammaincinv", 2),
    "gammainccinv": _special("gammainccinv", 2),
    "erfcx_moment": ScalarFunction(2, cost=50 * CALL),
    "dawsn": _special("dawsn"),
    "erfcx": _special("erfcx"),
    "erfi": _special("erfi"),
    "log_ndtr": _special("log_ndtr"),
    "erfcinv": _special("erfcinv"),
    "ndtri_exp": _special("ndtri_exp"),
    "exp1": _special("exp1"),
    "expi": _special("expi"),
    "wrightomega": _special("wrightomega"),
    "spence": _special("spence"),
    "gamma": _special("gamma"),
    "rgamma": _special("rgamma"),
    "j0": _special("j0"),
    "j1": _special("j1"),
    "y0": _special("y0"),
    "y1": _special("y1"),
    "k0": _special("k0"),
    "k0e": _special("k0e"),
    "k1": _special("k1"),
    "k1e": _special("k1e"),
    "exprel": _special("exprel"),
    "cosm1": _special("cosm1"),
    "ellipk": _special("ellipk"),
    "ellipe": _special("ellipe"),
    "owens_t": _special("owens_t", 2),
    "boxcox": _special("boxcox", 2),
    "boxcox1p": _special("boxcox1p", 2),
    "kl_div": _special("kl_div", 2),
    "rel_entr": _special("rel_entr", 2),
    "expn": _special("expn", 2),
    "poch": _special("poch", 2),
    "beta": _special("beta", 2),
    "binom": _special("binom", 2),
    "jv": _special("jv", 2),
    "yv": _special("yv", 2),
    "yn": _special("yn", 2),
    "loggamma": _special("loggamma"),
    "kv": _special("kv", 2),
    "kve": _special("kve", 2),
    "hyp0f1": _special("hyp0f1", 2),
    "hyp1f1": _special("hyp1f1", 3),
    "hyperu": _special("hyperu", 3),
    "hyp2f1": _special("hyp2f1", 4),
    "sici0": _special("sici", part=0),
    "sici1": _special("sici", part=1),
    "shichi0": _special("shichi", part=0),
    "shichi1": _special("shichi", part=1),
    "fresnel0": _special("fresnel", part=0),
    "fresnel1": _special("fresnel", part=1),
}

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
#: Operations and their numbers of operands. ``cast`` converts to its value's dtype; ``select`` takes a condition first.
#: ``shl``/``shr`` need an amount in range; ``div`` is for floats and complex numbers; ``not`` is bitwise; ``bits``
#: returns those of a float as a signed integer; ``from_bits`` is its inverse, of any integer; ``opaque`` is an integer
#: itself, which LLVM does not recognise.
OPERATIONS: dict[str, int] = {
    **dict.fromkeys(("neg", "not", "cast", "bits", "from_bits", "opaque"), 1),
    **dict.fromkeys(("add", "sub", "mul", "div", "and", "or", "xor", "shl", "shr"), 2),
    **dict.fromkeys(COMPARISONS, 2),
    "select": 3,
    **{name: f.operands for name, f in FUNCTIONS.items()},
}
#: The cost of each, in additions.
COSTS: dict[str, int] = {
    **dict.fromkeys(OPERATIONS, 1),
    "div": 4,
    **{name: f.cost for name, f in FUNCTIONS.items()},
}


def result_dtype(op: str, dtypes: tuple[np.dtype, ...]) -> np.dtype:
    """The dtype of an operation's value (except for ``cast``)."""
    if op in COMPARISONS:
        return np.dtype(np.bool_)
    if op == "select":
        return dtypes[1]
    if op in ("abs", "real", "imag"):
        return real_dtype(dtypes[0])
    if op == "bits":
        return np.dtype(f"i{dtypes[0].itemsize}")
    if op == "from_bits":
        return np.dtype(f"f{dtypes[0].itemsize}")
    if op == "complex":
        return np.dtype(f"c{dtypes[0].itemsize * 2}")
    return dtypes[0]
