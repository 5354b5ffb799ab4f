"""Hyperbolic functions and their inverses, for inlining into vectorised loops: see `inline_maths`."""

from __future__ import annotations

import math

from .expr import Expr, FunctionText
from .inline_maths import log1p, power_of_two, reduce

#: From here on asinh(x) and acosh(x) are log1p(x) + log(2).
_FAR = 2.0**60


def _half_exp(f: FunctionText, x: Expr) -> tuple[Expr, Expr]:
    """exp(abs(x)) / 2 and (exp(abs(x)) - 1) / 2, which may be infinite."""
    y = f.intrinsic("fabs", x)
    k, p = reduce(f, f.select(y > 710.5, 710.5, y))
    quarter = power_of_two(f, k - 2)
    e, less = f.fma(quarter, p, quarter), f.fma(quarter, p, quarter - 0.25)
    return e + e, less + less


def sinh(f: FunctionText, x: Expr) -> Expr:
    """Hyperbolic sine: t + t / (2 t + 1) with t = expm1(abs(x)) / 2, and x's sign."""
    _, t = _half_exp(f, x)
    y = f.intrinsic("fabs", x)
    result = f.select(y > 40.0, t, t + t / (t + t + 1.0))
    return f.intrinsic("copysign", f.select(y < 1e-300, y, result), x)


def cosh(f: FunctionText, x: Expr) -> Expr:
    """Hyperbolic cosine: e + 1 / (4 e) with e = exp(abs(x)) / 2."""
    e, _ = _half_exp(f, x)
    return e + 0.25 / e


def arcsinh(f: FunctionText, x: Expr) -> Expr:
    """The inverse of sinh: log1p(y + y**2 / (1 + sqrt(1 + y**2))) with y = abs(x), and x's sign."""
    y = f.intrinsic("fabs", x)
    far = y > _FAR
    square = y * y
    near = y + square / (f.intrinsic("sqrt", square + 1.0) + 1.0)
    result = log1p(f, f.select(far, y, near)) + f.select(far, f.number(math.log(2.0)), 0.0)
    return f.intrinsic("copysign", result, x)


def arccosh(f: FunctionText, x: Expr) -> Expr:
    """The inverse of cosh: log1p(t + sqrt(2 t + t**2)) with t = x - 1."""
    far = x > _FAR
    t = x - 1.0
    near = t + f.intrinsic("sqrt", t * (t + 2.0))
    result = log1p(f, f.select(far, x, near)) + f.select(far, f.number(math.log(2.0)), 0.0)
    return f.select(x >= 1.0, result, math.nan)


def arctanh(f: FunctionText, x: Expr) -> Expr:
    """The inverse of tanh: log1p(2 y / (1 - y)) / 2 with y = abs(x), and x's sign."""
    y = f.intrinsic("fabs", x)
    half = log1p(f, (y + y) / (1.0 - y)) * 0.5
    return f.intrinsic("copysign", f.select(y < 1e-300, y, half), x)


#: The functions by their names in the kernel vocabulary.
FUNCTIONS = {
    "sinh": sinh, "cosh": cosh, "arcsinh": arcsinh, "arccosh": arccosh, "arctanh": arctanh,
}  # fmt: skip
