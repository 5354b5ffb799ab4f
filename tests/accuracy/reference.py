"""What functions and their derivatives are: symbolic derivatives (SymPy), evaluated with many digits (mpmath)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import mpmath
import sympy
from mpmath import mp, mpf

#: Digits, until two evaluations in a row agree.
DIGITS = (60, 150, 400, 900)
#: How far from a point its limits are looked for, and how large an argument stands for infinity.
NEAR = (100, 200)
FAR = (60, 200)
_MOST_DIGITS = 500
#: The sign of each argument, a constant of derivatives: ``|x|`` is ``SIGNS[0] * x``.
SIGNS = sympy.symbols("s0 s1 s2", real=True)
ARGUMENTS = sympy.symbols("x y z", real=True)


def _erfinv(x: mpf) -> mpf:
    """By Newton's method on the logarithm of erfc, which is nearly a parabola."""
    if x == 0 or abs(x) >= 1:
        return mp.inf * x if x else x
    rest = 1 - abs(x)
    if abs(x) < 0.5:
        return mp.erfinv(x)
    goal = mp.log(rest)
    y = mp.sqrt(-goal)
    for _ in range(100):
        slope = -2 / mp.sqrt(mp.pi) * mp.exp(-y * y) / mp.erfc(y)
        step = (mp.log(mp.erfc(y)) - goal) / slope
        y -= step
        if abs(step) < mpf(10) ** (-mp.dps * 2 // 3) * y:
            break
    return y * mp.sign(x)


#: SymPy's functions that are others here, or that mpmath names otherwise.
_NUMERIC = {
    "loggamma": lambda x: mp.re(mp.loggamma(x)),  # the logarithm of the size
    "polygamma": lambda m, x: mp.psi(int(m), x),
    "erfinv": _erfinv,
    "zeta": lambda s, q=1: mp.zeta(s, q),
}


class Reference:
    """A function of up to three numbers, and its partial derivatives.

    Parameters
    ----------
    expression : callable
        Takes symbols, returns SymPy's expression.
    domain : sequence of pair of float
        The ends of the interval of each argument.
    """

    def __init__(self, expression: Callable[..., Any], domain: Sequence[tuple[float, float]]):
        self.domain = domain
        self.symbols = ARGUMENTS[: len(domain)]
        self.expression = sympy.sympify(expression(*self.symbols))

    @cache  # noqa: B019 - a reference lives as long as the process
    def compiled(self, orders: tuple[int, ...]) -> Callable[..., Any]:
        """The partial derivative of these orders in each argument."""
        out = self.expression
        for symbol, n in zip(self.symbols, orders):
            out = sympy.diff(out, symbol, n) if n else out
        return sympy.lambdify([*self.symbols, *SIGNS[: len(orders)]], out, [_NUMERIC, "mpmath"], cse=True)

    def __call__(self, orders: tuple[int, ...], point: Sequence[float]) -> mpf | None:
        """A partial derivative at a point, or its limit; None where there is none, or it depends on the direction."""
        found = self._at(orders, point) if all(map(math.isfinite, point)) else None
        if found is not None:
            return found
        limits = [self._limit(orders, point, i, s) for i, x in enumerate(point) for s in self._sides(i, x)]
        if not limits or any(v is None for v in limits):
            return None
        first = limits[0]
        return first if all(_agree(first, v) for v in limits) else None

    def _sides(self, i: int, x: float) -> list[int]:
        """From which sides an argument comes near a number: 1 from above, -1 from below, 0 from its infinity."""
        low, high = self.domain[i]
        if math.isinf(x):
            return [0]
        return [s for s, room in ((1, x < high), (-1, low < x)) if room]

    def _at(self, orders: tuple[int, ...], point: Sequence[Any]) -> mpf | None:
        """The value with as many digits as it takes; None where a formula divides by zero or is not real."""
        last = None
        for digits in DIGITS:
            with mp.workdps(digits):
                found = self._evaluate(orders, [mpf(x) for x in point])
            if found is None:
                return None
            if last is not None and abs(found - last) <= mpf(10) ** -22 * abs(found) and found != 0:
                return found
            last = found
        return last

    def _evaluate(self, orders: tuple[int, ...], point: Sequence[mpf]) -> mpf | None:
        signs = [mp.sign(x) for x in point]
        try:
            found = self.compiled(orders)(*point, *signs)
        except (ZeroDivisionError, ValueError, OverflowError, TypeError, mpmath.libmp.NoConvergence):
            return None
        if isinstance(found, mpmath.mpc):
            found = found.real if found.imag == 0 else mp.nan
        found = mpf(found)
        return found if mp.isfinite(found) else None

    def _limit(self, orders: tuple[int, ...], point: Sequence[float], i: int, side: int) -> mpf | None:
        """The limit in one argument, from two numbers near the point: near each other, growing or vanishing."""
        values = []
        for exponent in NEAR if side else FAR:
            with mp.workdps(_MOST_DIGITS):
                moved = [mpf(x) for x in point]
                far = mpf(10) ** exponent + mpf(1) / 3  # no integer: mpmath would multiply its way up to exp
                moved[i] = moved[i] + side / far if side else far * (1 if point[i] > 0 else -1)
                if not all(map(mp.isfinite, moved)):
                    return None
                values.append(self._evaluate(orders, moved))
        near, nearer = values
        if near is None or nearer is None:
            return None
        with mp.workdps(_MOST_DIGITS):
            if abs(nearer - near) <= mpf(10) ** -20 * abs(nearer):
                return nearer
            if nearer * near <= 0 and near != 0 and nearer != 0:
                return None  # it oscillates
            if abs(nearer) < abs(near):
                return mpf(0)
            return mp.inf if nearer > 0 else -mp.inf


def _agree(a: mpf, b: mpf) -> bool:
    return a == b or (mp.isfinite(a) and mp.isfinite(b) and abs(a - b) <= mpf(10) ** -18 * abs(b))
