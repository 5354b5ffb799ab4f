"""Formulas of special functions that C and SciPy lack, written once for NumPy and for kernels.

A formula is a function ``formula(f, *numbers)`` of a `FormulaArithmetic` and of float64 numbers. Eagerly the numbers
are arrays (`on_arrays`), in a kernel they are values of an LLVM function (`lowering.llvm.maths.own_maths`). So a
formula has no branches: it combines alternatives by ``f.where``, and sums over tables by ``f.sums``.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Protocol

import numpy as np

from ...core import quietly
from ...core.values import ArrayLike, Rule, Value
from ...passes.scalar_functions import FUNCTIONS
from ...runtime.libraries import scipy
from .functions import positive_gap, positive_polygamma

#: Abscissas and weights of Gauss's and Legendre's rule with 48 points, those with positive abscissas (DLMF 3.5(v)).
_GAUSS_LEGENDRE = (
    (0.9987710072524261, 0.0031533460523058385), (0.9935301722663508, 0.0073275539012762625),
    (0.9841245837228269, 0.01147723457923454), (0.9705915925462473, 0.015579315722943849),
    (0.9529877031604309, 0.01961616045735553), (0.9313866907065543, 0.02357076083932438),
    (0.9058791367155696, 0.027426509708356948), (0.8765720202742479, 0.03116722783279809),
    (0.8435882616243935, 0.03477722256477044), (0.8070662040294426, 0.03824135106583071),
    (0.7671590325157404, 0.04154508294346475), (0.7240341309238146, 0.04467456085669428),
    (0.6778723796326639, 0.04761665849249048), (0.6288673967765136, 0.05035903555385447),
    (0.5772247260839727, 0.05289018948519367), (0.523160974722233, 0.055199503699984165),
    (0.4669029047509584, 0.057277292100403214), (0.4086864819907167, 0.059114839698395635),
    (0.34875588629216075, 0.06070443916589388), (0.28736248735545555, 0.062039423159892665),
    (0.22476379039468905, 0.06311419228625402), (0.1612223560688917, 0.06392423858464819),
    (0.0970046992094627, 0.06446616443595009), (0.03238017096286936, 0.06473769681268392),
)  # fmt: skip
#: The same on the interval from 0 to 1: abscissas and weights.
NODES = tuple([(1 + s * x) / 2 for x, _ in _GAUSS_LEGENDRE for s in (-1, 1)])
WEIGHTS = tuple([w / 2 for _, w in _GAUSS_LEGENDRE for _ in (-1, 1)])
#: Integrals end where the integrand has fallen by ``exp(-DROP)``.
DROP = 37.5


class FormulaArithmetic(Protocol):
    """What a formula computes with, besides the operators of its numbers."""

    def where(self, condition: Any, x: ArrayLike, y: ArrayLike) -> Any:
        """`x` where the condition holds, else `y`; both are computed."""
        ...

    def equal(self, x: ArrayLike, y: ArrayLike) -> Any:
        """Whether they are equal."""
        ...

    def call(self, name: str, *args: Value) -> Any:
        """A function of `passes.scalar_functions.FUNCTIONS`."""
        ...

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Any:
        """``c[0] + c[1] x + ...``."""
        ...

    def sums(self, tables: Sequence[Sequence[float]], terms: Callable[..., Sequence[Any]], when: Any) -> list:
        """The sums of ``terms(*row)`` over the rows of `tables`; anything where `when` does not hold."""
        ...


class _OnArrays:
    """`FormulaArithmetic` of arrays whose last axis has one element; sums run along it."""

    where = staticmethod(np.where)
    equal = staticmethod(np.equal)

    def call(self, name: str, *args: Value) -> Value:
        return _function(name)(*args)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Any:
        *rest, last = coefficients
        result = last
        for c in reversed(rest):
            result = result * x + c
        return result

    def sums(
        self, tables: Sequence[Sequence[float]], terms: Callable[..., Sequence[Any]], when: Value
    ) -> list:
        return [np.sum(t, axis=-1, keepdims=True) for t in terms(*map(np.array, tables))]


@cache
def _function(name: str) -> Callable[..., Any]:
    if name == "trigamma":
        return partial(scipy.special.polygamma, 1)
    special = FUNCTIONS[name].scipy
    return getattr(scipy.special, special) if special else getattr(np, name)


#: Elements computed at once, so that their nodes stay in the processor's cache.
_CHUNK = 512


def on_arrays(formula: Rule) -> Callable[..., Any]:
    """A formula as a function of arrays that broadcast, of any float dtype."""

    @quietly
    def evaluated(*args: Value) -> Value:
        dtype = np.result_type(*args)
        rows = np.broadcast_arrays(*[np.asarray(x, np.float64) for x in args])
        shape, flat = rows[0].shape, [x.reshape(-1, 1) for x in rows]
        out = np.empty(rows[0].size, np.float64)
        for i in range(0, out.size, _CHUNK):
            out[i : i + _CHUNK] = formula(_OnArrays(), *[x[i : i + _CHUNK] for x in flat])[:, 0]
        return out.astype(dtype, copy=False).reshape(shape)[()]

    return evaluated


# --- parts -------------------------------------------------------------------------------------------------

_LOG_ROOT_TAU = 0.9189385332046727
#: B(2n) / (2n (2n - 1)) and B(2n) / (2n): the series of log gamma and digamma (DLMF 5.11.1, 5.11.2).
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_PSI_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 5 / 660, -691 / 32760, 1 / 12, -3617 / 8160)
_LARGE = 10.0
_EXP_SERIES = tuple([1 / math.factorial(n + 2) for n in range(16)])


def _stirling_error(f: FormulaArithmetic, a: ArrayLike) -> Any:
    """``lgamma(a) - (a - 1/2) log(a) + a - log(2 pi) / 2`` for positive `a`."""
    large = f.where(a > _LARGE, a, _LARGE)
    small = f.where(a > _LARGE, 1.0, a)
    series = f.polynomial(1.0 / (large * large), _STIRLING) / large
    exact = f.call("lgamma", small) - (small - 0.5) * f.call("log", small) + (small - _LOG_ROOT_TAU)
    return f.where(a > _LARGE, series, exact)


def _log_less_digamma(f: FormulaArithmetic, a: ArrayLike) -> Any:
    """``log(a) - digamma(a)`` for positive `a`, accurate for large `a`."""
    large = f.where(a > _LARGE, a, _LARGE)
    small = f.where(a > _LARGE, 1.0, a)
    series = (0.5 + f.polynomial(1.0 / (large * large), _PSI_SERIES) / large) / large
    return f.where(a > _LARGE, series, f.call("log", small) - f.call("digamma", small))


def _deviance(f: FormulaArithmetic, x: ArrayLike, m: ArrayLike) -> Any:
    """``x / m - 1 - log(x / m)`` without cancellation, for positive numbers: the logarithm is 2 atanh (DLMF 4.6.2)."""
    r = (x - m) / (x + m)
    square = r * r
    series = f.polynomial(square, [1 / (2 * n + 3) for n in range(14)])
    near = square < 0.05
    ratio = f.where(near, 1.0, x / m)
    return f.where(near, r * ((x - m) / m - 2.0 * square * series), ratio - 1.0 - f.call("log", ratio))


def _exp_rest(f: FormulaArithmetic, x: Value) -> Value:
    """``exp(x) - 1 - x`` without cancellation."""
    near = (x < 0.6) & (x > -0.6)
    return f.where(near, x * x * f.polynomial(x, _EXP_SERIES), f.call("expm1", x) - x)


# --- incomplete gamma function -------------------------------------------------------------------------------


def gamma_density(f: FormulaArithmetic, a: ArrayLike, x: ArrayLike) -> Any:
    """``x**(a - 1) exp(-x) / gamma(a)``; for large `a` from the saddle point, since powers would cancel.

    References
    ----------
    C. Loader, Fast and accurate computation of binomial probabilities, 2000: the deviance and Stirling's error.
    """
    large = f.where(a > _LARGE, a, _LARGE)
    spread = large * _deviance(f, x, large) + _stirling_error(f, large)
    saddle = f.call("exp", -spread - _LOG_ROOT_TAU) * f.call("sqrt", large) / x
    small = f.where(a > _LARGE, 1.0, f.where(a >= 0.0, a, math.nan))
    power = f.where(f.equal(small, 1.0), 0.0, (small - 1.0) * f.call("log", x))
    out = f.where(a > _LARGE, saddle, f.call("exp", power - x - f.call("lgamma", small)))
    out = f.where(f.equal(x, 0.0) & (a > 1.0), 0.0, out)
    return f.where(f.equal(x, math.inf), 0.0, out)


def _drop_gamma(f: FormulaArithmetic, a: Value, x: Value, sign: Value, rate: Value) -> Value:
    """A little more than the `s` at which ``rate s + x (exp(sign s) - 1 - sign s)``, a convex function, is `DROP`."""
    q = DROP - 2.0 * rate
    root = f.call("sqrt", q * q + 8.0 * DROP * a)
    below = f.where(q > 0.0, (q + root) / (2.0 * a), 4.0 * DROP / (root - q))
    above = 2.0 * DROP / (rate + f.call("sqrt", rate * rate + 2.0 * DROP * x))
    s = f.where(sign > 0.0, above, below)
    for _ in range(2):  # Newton's method stays above the root
        fall = rate * s + x * _exp_rest(f, sign * s)
        s = s - (fall - DROP) / (rate + x * sign * f.call("expm1", sign * s))
    return s


def _polygamma(f: FormulaArithmetic, a: Value, m: int) -> Value:
    """The polygamma function of order `m`, for positive `a`."""
    if m == 0:
        return f.call("digamma", a)
    return positive_polygamma(a / a, a, m) * (1.0 if m % 2 else -1.0)


def _gamma_far(f: FormulaArithmetic, a: Value, x: Value, order: int, when: ArrayLike) -> Any:
    """`_gamma_quantile_slope` for ``x > 1.5``: the integral over the side on which it does not change sign.

    With ``t = x exp(s)`` above (and ``x exp(-s)`` below), it is x times the integral of ``s + c`` (of ``s - c``), where
    ``c = log(x) - digamma(a)``, weighted with a log-concave function of `s` that is 1 at 0 and whose logarithm has the
    derivative `s` (or `-s`) in `a`.
    """
    near = (x < 1.5 * a) & (x > 0.5 * a)
    ratio = f.where(near, f.call("log1p", (x - a) / a), f.call("log", x) - f.call("log", a))
    c = ratio + _log_less_digamma(f, a)
    sign = f.where(c > 0.0, 1.0, -1.0)
    rate = (x - a) * sign
    end = _drop_gamma(f, a, x, sign, rate)
    # Leibniz' rule: the derivatives of c are minus polygamma.
    lower = [-sign * _polygamma(f, a, k) * float(math.comb(order, k)) for k in range(1, order + 1)]

    def terms(u: Value, w: Value) -> list[Value]:
        s = end * u
        powers = [1.0, *itertools.accumulate([sign * s] * order, operator.mul)]
        value = (s + sign * c) * powers[order]
        for k, slope in enumerate(lower, start=1):
            value = value + slope * powers[order - k]
        return [w * f.call("exp", -(rate * s + x * _exp_rest(f, sign * s))) * value]

    (total,) = f.sums((NODES, WEIGHTS), terms, when)
    out = x * end * total
    return f.where(x > 1e150, c, out) if order == 0 else out


def _gamma_near(f: FormulaArithmetic, a: Value, x: Value, order: int, when: Value) -> Value:
    """`_gamma_quantile_slope` for ``x <= 1.5``: the integral from 0 to x, of which the leading term is subtracted.

    So nothing cancels as `a` vanishes, where the result grows as 1 / a. With I(j) the integral of
    ``s**j exp(-a s) (exp(-x exp(-s)) - 1)``, it is ``x exp(x)`` times
    ``(digamma(a + 1) - log(x)) (1 / a + I(0)) - I(0) / a + I(1)``.
    """
    end = DROP / (a + 1.0)

    def terms(u: Value, w: Value) -> list[Value]:
        s = end * u
        g = w * f.call("exp", -(a * s)) * f.call("expm1", -(x * f.call("exp", -s)))
        return list(itertools.accumulate([s] * (order + 1), operator.mul, initial=g))

    integrals = [end * t for t in f.sums((NODES, WEIGHTS), terms, when)]
    units = list(itertools.accumulate([1.0 / a] * (order + 1), operator.mul))
    total = integrals[order + 1] * (-1.0) ** order
    for k in range(order + 1):
        rest = order - k
        falling = math.factorial(order) // math.factorial(rest)
        total = total - units[k] * integrals[rest] * ((-1.0) ** order * falling)
        gap = _polygamma(f, a + 1.0, k) - f.call("log", x) if k == 0 else _polygamma(f, a + 1.0, k)
        first = (units[rest] * float(math.factorial(rest)) + integrals[rest]) * (-1.0) ** rest
        total = total + gap * first * float(math.comb(order, k))
    return x * f.call("exp", x) * total


def _gamma_quantile_slope(order: int, f: FormulaArithmetic, a: ArrayLike, x: ArrayLike) -> Any:
    """The derivative in `a` of the quantile `x` at a fixed probability, and its partial derivative of `order` in `a`.

    It is minus the derivative of the incomplete gamma function P(a, x) in `a` over the density: the integral of
    ``(digamma(a) - log(t)) (t / x)**(a - 1) exp(x - t)`` from 0 to x, or of its negative from x to infinity (DLMF
    8.2.4, differentiated under the integral).
    """
    given, a = a, f.where(a > 0.0, a, 1.0)
    near = x <= 1.5
    close = _gamma_near(f, a, f.where(near, x, 1.0), order, near)
    far = _gamma_far(f, f.where(near, 2.0, a), f.where(near, 2.0, x), order, x > 1.5)
    out = f.where(near, close, far)
    out = f.where(f.equal(x, 0.0), 0.0, f.where(f.equal(x, math.inf), x, out))
    return f.where(given > 0.0, f.where(x >= 0.0, out, math.nan), math.nan)


# --- incomplete beta function --------------------------------------------------------------------------------


def beta_density(f: FormulaArithmetic, a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Any:
    """``x**(a - 1) (1 - x)**(b - 1) / beta(a, b)``, from the saddle point as `gamma_density`."""
    y, total = 1.0 - x, a + b
    spread = a * _deviance(f, x, a / total) + b * _deviance(f, y, b / total)
    errors = _stirling_error(f, a) + _stirling_error(f, b) - _stirling_error(f, total)
    out = f.call("exp", -spread - errors - _LOG_ROOT_TAU) * f.call("sqrt", a / total * b) / (x * y)
    out = f.where(f.equal(x, 0.0), f.where(a > 1.0, 0.0, f.where(a < 1.0, math.inf, b)), out)
    out = f.where(f.equal(y, 0.0), f.where(b > 1.0, 0.0, f.where(b < 1.0, math.inf, a)), out)
    return f.where((a > 0.0) & (b > 0.0), out, math.nan)


def _digamma_gap(f: FormulaArithmetic, a: Value, b: Value) -> Value:
    """``digamma(a) - digamma(a + b)`` for positive numbers."""
    return positive_gap(a / a, lambda x: f.call("log1p", x), a, b, 0)


def _drop_beta(f: FormulaArithmetic, total: ArrayLike, a: Value, p: ArrayLike, q: Value, sign: Any) -> Any:
    """A little more than the `s` at which the weight in `_beta_integral` has fallen to ``exp(-DROP)``."""
    # At 0 the logarithm falls at this rate, and its second derivative then decays at most as exp(-s).
    rate = sign * (total * p - a)
    high, low = rate + total * p * q, 2.0 * rate - DROP
    root = f.call("sqrt", low * low + 8.0 * DROP * high)
    s = f.where(low > 0.0, 4.0 * DROP / (low + root), (root - low) / (2.0 * high))
    s = f.where(s < 700.0, s, 700.0)
    for _ in range(3):  # Newton's method stays above the root of a convex function
        growth = p * f.call("expm1", sign * s)
        fall = total * f.call("log1p", growth) - sign * a * s
        s = s - (fall - DROP) / (sign * (total * (growth + p) / (growth + 1.0) - a))
    return s


def _beta_integral(f: FormulaArithmetic, a: Value, b: Value, x: Value, y: Value, c: ArrayLike) -> Value:
    """The integral of ``log(t / x) + c`` from x to 1, or of its negative from 0 to x, whichever has ``c`` positive.

    The weight is ``t**(a - 1) (1 - t)**(b - 1)`` over its value at x times x y. As a function of
    ``s = abs(logit(t) - logit(x))`` it is log-concave. `y` is 1 - x.
    """
    side = f.where(c > 0.0, 1.0, -1.0)
    left = x <= 0.5
    p, q = f.where(left, x, y), f.where(left, y, x)  # 1 + p (exp(+-s) - 1) has no cancellation for small p
    shape, sign = f.where(left, a, b), f.where(left, side, -side)
    linear = f.where(left, sign, 0.0)
    total = a + b
    end = _drop_beta(f, total, shape, p, q, sign)

    def terms(u: Value, w: Value) -> list[Any]:
        s = end * u
        growth = f.call("log1p", p * f.call("expm1", sign * s))
        weight = f.call("exp", shape * (sign * s) - total * growth)
        return [w * weight * (side * (c + (linear * s - growth)))]

    (integral,) = f.sums((NODES, WEIGHTS), terms, p > 0.0)
    return end * integral


def _beta_slope(f: FormulaArithmetic, a: Value, b: Value, x: ArrayLike, y: ArrayLike) -> Any:
    """Minus the derivative in `a` of the incomplete beta function, over the density times x y.

    By recurrence (DLMF 8.17.20, 8.17.21, differentiated) `a` or `b` is increased by one, whichever gives a sum of
    positive numbers. Then the integral has no long tail.
    """
    log = f.where(
        x <= 0.5, f.call("log", f.where(x <= 0.5, x, 0.5)), f.call("log1p", -f.where(y <= 0.5, y, 0.5))
    )
    above = f.call("digamma", a + 1.0) - f.call("digamma", a + b)
    gap = _digamma_gap(f, a, b)
    above = f.where(a > 1.0, gap + 1.0 / a, above)
    more_a = log < above
    shape = f.where(more_a, a + 1.0, a)
    c = log - f.where(more_a, _digamma_gap(f, shape, b), gap)
    more_b = c > 0.0
    other = f.where(more_b, b + 1.0, b)
    total = shape + b
    out = _beta_integral(f, shape, other, x, y, f.where(more_b, c + 1.0 / total, c))
    out = f.where(more_b, (y * total * out + c) / b, out)
    return f.where(more_a, (x * (a + b) * out + (above - log)) / a, out)


def _in_domain(f: FormulaArithmetic, a: ArrayLike, b: ArrayLike, x: ArrayLike, y: ArrayLike) -> Any:
    """`_beta_slope`, NaN outside the domain."""
    inside = (a > 0.0) & (b > 0.0) & (x > 0.0) & (y > 0.0)
    one = f.where(inside, a, 1.0), f.where(inside, b, 1.0), f.where(inside, x, 0.5), f.where(inside, y, 0.5)
    return f.where(inside, _beta_slope(f, *one), math.nan)


def beta_slope_a(f: FormulaArithmetic, a: Value, b: Value, x: Value) -> Any:
    """Minus the derivative of the incomplete beta function in `a`, over the density times ``x (1 - x)``."""
    return _in_domain(f, a, b, x, 1.0 - x)


def beta_slope_b(f: FormulaArithmetic, a: Value, b: Value, x: Value) -> Any:
    """The derivative of the incomplete beta function in `b`, over the density times ``x (1 - x)``."""
    return _in_domain(f, b, a, 1.0 - x, x)


# --- repeated integrals of erfc ------------------------------------------------------------------------------


def erfcx_moment(f: FormulaArithmetic, x: Value, m: Value) -> Value:
    """The integral of ``t**m exp(-t**2 - 2 x t)`` over positive t, for ``x >= -1``: DLMF 7.18.2 without its factor."""
    fall = DROP + 6.0 * m
    end = fall / (x + f.call("sqrt", x * x + fall))

    def terms(u: Value, w: Value) -> list[Any]:
        t = end * u
        return [w * f.call("exp", m * f.call("log", t) - t * (t + 2.0 * x))]

    (total,) = f.sums((NODES, WEIGHTS), terms, x >= -1.0)
    return end * total


#: Keyed by their names in `passes.scalar_functions.FUNCTIONS`.
FORMULAS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        gamma_density,
        beta_density,
        beta_slope_a,
        beta_slope_b,
        erfcx_moment,
    )
}
#: Orders of the derivatives of `_gamma_quantile_slope`.
QUANTILE_ORDERS = 3
FORMULAS.update(
    {f"gamma_quantile_slope{n}": partial(_gamma_quantile_slope, n) for n in range(QUANTILE_ORDERS)}
)
