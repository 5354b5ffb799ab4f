"""The functions that are compared: each with its formula, and the interval of each argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sy
from reference import SIGNS, Reference

import functrans.numpy as fnp
import functrans.scipy.special as fsp
from functrans import lax

INF = math.inf
REAL, POSITIVE, UNIT = (-INF, INF), (0.0, INF), (-1.0, 1.0)


@dataclass(frozen=True)
class Entry:
    """A function, and what it is.

    Parameters
    ----------
    name : str
    call : callable
    formula : callable
        Of SymPy's symbols.
    domain : sequence of pair of float
    wrt : sequence of int, optional
        Arguments in which it is differentiated, by default all.
    around : float
        Ordinary points are drawn up to this size.
    largest : float
        Arguments beyond this are left out: SciPy or the reference is of no use there.
    conditioned : bool
        Whether the value, too, is measured by what changes of the arguments in the last place make of it: NumPy and
        SciPy compute it in two steps.
    without : sequence of tuple
        Points where derivatives depend on the direction.
    slope : float
        The size of the derivatives, where they are computed from the result: those that are smaller are measured in
        ulp of this.
    slow : bool
        Whether the reference takes long.
    """

    name: str
    call: Callable[..., Any]
    formula: Callable[..., Any]
    domain: Sequence[tuple[float, float]] = (REAL,)
    wrt: Sequence[int] | None = None
    around: float = 4.0
    largest: float = INF
    conditioned: bool = False
    without: Sequence[tuple[float, ...]] = ()
    slope: float = 0.0
    slow: bool = False

    @cached_property
    def reference(self) -> Reference:
        return Reference(self.formula, self.domain)

    @property
    def arguments(self) -> Sequence[int]:
        return range(len(self.domain)) if self.wrt is None else self.wrt


def _abs(x: Any) -> Any:
    return SIGNS[0] * x


def _log2(x: Any) -> Any:
    return sy.log(x) / sy.log(2)


ONE = [
    Entry("exp", fnp.exp, sy.exp, around=20.0),
    Entry("exp2", fnp.exp2, lambda x: 2**x, around=20.0),
    Entry("expm1", fnp.expm1, lambda x: sy.exp(x) - 1),
    Entry("log", fnp.log, sy.log, (POSITIVE,)),
    Entry("log2", fnp.log2, _log2, (POSITIVE,)),
    Entry("log10", fnp.log10, lambda x: sy.log(x) / sy.log(10), (POSITIVE,)),
    Entry("log1p", fnp.log1p, lambda x: sy.log(1 + x), ((-1.0, INF),)),
    Entry("sqrt", fnp.sqrt, sy.sqrt, (POSITIVE,)),
    Entry("rsqrt", lax.rsqrt, lambda x: 1 / sy.sqrt(x), (POSITIVE,)),
    Entry("cbrt", fnp.cbrt, lambda x: SIGNS[0] * (SIGNS[0] * x) ** sy.Rational(1, 3)),
    Entry("square", fnp.square, lambda x: x**2),
    Entry("reciprocal", fnp.reciprocal, lambda x: 1 / x),
    Entry("absolute", fnp.absolute, _abs),
    Entry("x ** 3", lambda x: x**3, lambda x: x**3),
    Entry("x ** -2", lambda x: x**-2, lambda x: x**-2),
    Entry("x ** 0.5", lambda x: x**0.5, sy.sqrt, (POSITIVE,)),
    Entry("x ** 2.5", lambda x: fnp.power(x, 2.5), lambda x: x ** sy.Rational(5, 2), (POSITIVE,)),
    Entry("x ** 20", lambda x: fnp.power(x, 20.0), lambda x: x**20),
    Entry("2.5 ** x", lambda x: fnp.power(2.5, x), lambda x: sy.Rational(5, 2) ** x),
    Entry("sin", fnp.sin, sy.sin, largest=1e31),
    Entry("cos", fnp.cos, sy.cos, largest=1e31),
    Entry("tan", fnp.tan, sy.tan, largest=1e31),
    Entry("arcsin", fnp.arcsin, sy.asin, (UNIT,)),
    Entry("arccos", fnp.arccos, sy.acos, (UNIT,)),
    Entry("arctan", fnp.arctan, sy.atan),
    Entry("sinh", fnp.sinh, sy.sinh),
    Entry("cosh", fnp.cosh, sy.cosh),
    Entry("tanh", fnp.tanh, sy.tanh, slope=1.0),
    Entry("arcsinh", fnp.arcsinh, sy.asinh),
    Entry("arccosh", fnp.arccosh, sy.acosh, ((1.0, INF),)),
    Entry("arctanh", fnp.arctanh, sy.atanh, (UNIT,)),
    Entry("sinc", fnp.sinc, lambda x: sy.sin(sy.pi * x) / (sy.pi * x), largest=1e4, conditioned=True),
    Entry("degrees", fnp.degrees, lambda x: x * 180 / sy.pi),
    Entry("erf", fsp.erf, sy.erf),
    Entry("erfc", fsp.erfc, sy.erfc),
    Entry("erfinv", fsp.erfinv, sy.erfinv, (UNIT,), slow=True),
    Entry("ndtr", fsp.ndtr, lambda x: sy.erfc(-x / sy.sqrt(2)) / 2, conditioned=True),
    Entry("ndtri", fsp.ndtri, lambda x: sy.sqrt(2) * sy.erfinv(2 * x - 1), ((0.0, 1.0),), slow=True),
    Entry("expit", fsp.expit, lambda x: 1 / (1 + sy.exp(-x)), around=30.0),
    Entry("logit", fsp.logit, lambda x: sy.log(x / (1 - x)), ((0.0, 1.0),)),
    Entry("softplus", lambda x: fnp.logaddexp(x, 0.0), lambda x: sy.log(1 + sy.exp(x)), around=30.0),
    Entry("gammaln", fsp.gammaln, sy.loggamma, ((-99.5, INF),), around=8.0, conditioned=True, slow=True),
    Entry(
        "digamma",
        fsp.digamma,
        lambda x: sy.polygamma(0, x),
        ((-99.5, INF),),
        around=8.0,
        conditioned=True,
        slow=True,
    ),
    Entry(
        "polygamma(1, x)",
        lambda x: fsp.polygamma(1, x),
        lambda x: sy.polygamma(1, x),
        ((-99.5, INF),),
        around=8.0,
        slow=True,
    ),
    Entry(
        "polygamma(3, x)",
        lambda x: fsp.polygamma(3, x),
        lambda x: sy.polygamma(3, x),
        ((-99.5, INF),),
        around=8.0,
        slow=True,
    ),
    Entry("entr", fsp.entr, lambda x: -x * sy.log(x), (POSITIVE,)),
    Entry("i0", fsp.i0, lambda x: sy.besseli(0, x), largest=1e3),
    Entry("i1", fsp.i1, lambda x: sy.besseli(1, x), largest=1e3),
    Entry("i0e", fsp.i0e, lambda x: sy.exp(-_abs(x)) * sy.besseli(0, x), largest=1e31),
    Entry("i1e", fsp.i1e, lambda x: sy.exp(-_abs(x)) * sy.besseli(1, x), largest=1e31),
    Entry(
        "zeta(2.5, x)",
        lambda x: fsp.zeta(2.5, x),
        lambda x: sy.zeta(sy.Rational(5, 2), x),
        (POSITIVE,),
        largest=1e3,
        slow=True,
    ),
]

TWO = [
    Entry("multiply", fnp.multiply, lambda x, y: x * y, (REAL, REAL)),
    Entry("divide", fnp.divide, lambda x, y: x / y, (REAL, REAL)),
    Entry("power", fnp.power, lambda x, y: x**y, (POSITIVE, REAL)),
    Entry("float_power", fnp.float_power, lambda x, y: x**y, (POSITIVE, REAL)),
    Entry("arctan2", fnp.arctan2, sy.atan2, (REAL, REAL), without=[(0.0, 0.0)]),
    Entry("hypot", fnp.hypot, lambda x, y: sy.sqrt(x**2 + y**2), (REAL, REAL), without=[(0.0, 0.0)]),
    Entry("logaddexp", fnp.logaddexp, lambda x, y: sy.log(sy.exp(x) + sy.exp(y)), (REAL, REAL), around=30.0),
    Entry("logaddexp2", fnp.logaddexp2, lambda x, y: _log2(2**x + 2**y), (REAL, REAL), around=30.0),
    Entry("xlogy", fsp.xlogy, lambda x, y: x * sy.log(y), (REAL, POSITIVE)),
    Entry("xlog1py", fsp.xlog1py, lambda x, y: x * sy.log(1 + y), (REAL, (-1.0, INF))),
    Entry(
        "betaln",
        fsp.betaln,
        lambda x, y: sy.loggamma(x) + sy.loggamma(y) - sy.loggamma(x + y),
        (POSITIVE, POSITIVE),
        around=8.0,
        slow=True,
    ),
    Entry(
        "gammainc",
        fsp.gammainc,
        lambda a, x: 1 - sy.uppergamma(a, x) / sy.gamma(a),
        (POSITIVE, POSITIVE),
        (1,),
        largest=1e2,
        slow=True,
    ),
    Entry(
        "gammaincc",
        fsp.gammaincc,
        lambda a, x: sy.uppergamma(a, x) / sy.gamma(a),
        (POSITIVE, POSITIVE),
        (1,),
        largest=1e2,
        slow=True,
    ),
]

THREE = [
    Entry(
        "betainc",
        fsp.betainc,
        lambda a, b, x: sy.betainc(a, b, 0, x) * sy.gamma(a + b) / (sy.gamma(a) * sy.gamma(b)),
        ((0.25, INF), (0.25, INF), (0.0, 1.0)),
        (2,),
        largest=1e2,
        slow=True,
    ),
]
ENTRIES = [*ONE, *TWO, *THREE]
