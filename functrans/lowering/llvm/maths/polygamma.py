"""Derivatives of the logarithm of the gamma function."""

from __future__ import annotations

import math

from .expr import Expr, FunctionText


def trigamma(f: FunctionText, x: Expr) -> Expr:
    """The second derivative of the logarithm of the gamma function.

    Uses reflection to x > 0 (DLMF 5.15.6), recurrence to x >= 12 (5.15.5), and an asymptotic series (5.15.8). Poles
    give infinity.
    """
    left = x <= 0.0
    y = f.select(left, 1.0 - x, x)
    low = y < 12.0
    total = f.number(0.0)
    for k in range(12):
        s = y + float(k)
        total = total + 1.0 / (s * s)
    z = f.select(low, y + 12.0, y)
    w = 1.0 / z
    w2 = w * w
    series = f.polynomial(w2, [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6])
    tail = w + w2 * (0.5 + w * series)
    right = f.select(low, total + tail, tail)
    # sin(pi x) of the distance to the nearest integer, by its Taylor series: at most pi / 2.
    distance = (x - f.intrinsic("rint", x)) * math.pi
    d2 = distance * distance
    taylor = [(-1) ** k / math.factorial(2 * k + 1) for k in range(12)]
    ratio = math.pi / (distance * f.polynomial(d2, taylor))
    reflected = ratio * ratio - right
    pole = f.select(f.intrinsic("floor", x).eq(x), math.inf, reflected)
    return f.select(left, pole, right)


#: The functions by their names in the kernel vocabulary.
FUNCTIONS = {"trigamma": trigamma}
