"""Formulas of special functions that neither C nor SciPy has, written once for NumPy and for kernels.

A formula is a function ``formula(f, *numbers)`` of a `FormulaArithmetic` and of float64 numbers. Eagerly the numbers
are arrays (`on_arrays`), in a kernel they are values of an LLVM function (`lowering.llvm.own_maths`). So a formula has
no branches: it combines alternatives by ``f.where``, and sums over tables by ``f.sums``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Protocol

import numpy as np

from ...core import FUNCTIONS, quietly
from ...core.libraries import scipy

#: Abscissas and weights of Gauss's and Legendre's rule with 40 points, those with positive abscissas (DLMF 3.5(v)).
_GAUSS_LEGENDRE = (
    (0.9982377097105593, 0.004521277098533191), (0.990726238699457, 0.010498284531152813),
    (0.9772599499837743, 0.01642105838190789), (0.9579168192137917, 0.02224584919416696),
    (0.9328128082786765, 0.0279370069800234), (0.9020988069688743, 0.033460195282547844),
    (0.8659595032122595, 0.038782167974472016), (0.8246122308333117, 0.04387090818567327),
    (0.7783056514265194, 0.04869580763507223), (0.7273182551899271, 0.05322784698393682),
    (0.6719566846141796, 0.05743976909939155), (0.6125538896679802, 0.06130624249292894),
    (0.5494671250951282, 0.06480401345660104), (0.4830758016861787, 0.0679120458152339),
    (0.413779204371605, 0.07061164739128678), (0.3419940908257585, 0.07288658239580406),
    (0.2681521850072537, 0.07472316905796826), (0.1926975807013711, 0.07611036190062624),
    (0.11608407067525521, 0.07703981816424797), (0.03877241750605082, 0.0775059479784248),
)  # fmt: skip
#: The same on the interval from 0 to 1: abscissas and weights.
NODES = tuple([(1 + s * x) / 2 for x, _ in _GAUSS_LEGENDRE for s in (-1, 1)])
WEIGHTS = tuple([w / 2 for _, w in _GAUSS_LEGENDRE for _ in (-1, 1)])
#: Integrals end where the integrand has fallen by ``exp(-DROP)``.
DROP = 37.5


class FormulaArithmetic(Protocol):
    """What a formula computes with, besides the operators of its numbers."""

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """`x` where the condition holds, else `y`; both are computed."""
        ...

    def equal(self, x: Any, y: Any) -> Any:
        """Whether they are equal."""
        ...

    def call(self, name: str, *args: Any) -> Any:
        """A function of `core.scalar_functions.FUNCTIONS`."""
        ...

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        """``c[0] + c[1] x + ...``."""
        ...

    def sums(self, tables: Sequence[Sequence[float]], terms: Callable[..., Sequence[Any]], when: Any) -> list:
        """The sums of ``terms(*row)`` over the rows of `tables`; anything where `when` does not hold."""
        ...


class _OnArrays:
    """`FormulaArithmetic` of arrays whose last axis has one element; sums run along it."""

    where = staticmethod(np.where)
    equal = staticmethod(np.equal)

    def call(self, name: str, *args: Any) -> Any:
        return _function(name)(*args)

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        *rest, last = coefficients
        result = last
        for c in reversed(rest):
            result = result * x + c
        return result

    def sums(self, tables: Sequence[Sequence[float]], terms: Callable[..., Sequence[Any]], when: Any) -> list:
        return [np.sum(t, axis=-1, keepdims=True) for t in terms(*map(np.array, tables))]


@cache
def _function(name: str) -> Callable[..., Any]:
    if name == "trigamma":
        return partial(scipy.special.polygamma, 1)
    special = FUNCTIONS[name].scipy
    return getattr(scipy.special, special) if special else getattr(np, name)


#: Elements computed at once, so that their nodes stay in the processor's cache.
_CHUNK = 512


def on_arrays(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A formula as a function of arrays that broadcast, of any float dtype."""

    @quietly
    def evaluated(*args: Any) -> Any:
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


def _stirling_error(f: FormulaArithmetic, a: Any) -> Any:
    """``lgamma(a) - (a - 1/2) log(a) + a - log(2 pi) / 2`` for positive `a`."""
    large = f.where(a > _LARGE, a, _LARGE)
    small = f.where(a > _LARGE, 1.0, a)
    series = f.polynomial(1.0 / (large * large), _STIRLING) / large
    exact = f.call("lgamma", small) - (small - 0.5) * f.call("log", small) + (small - _LOG_ROOT_TAU)
    return f.where(a > _LARGE, series, exact)


def _log_less_digamma(f: FormulaArithmetic, a: Any) -> Any:
    """``log(a) - digamma(a)`` for positive `a`, accurate for large `a`."""
    large = f.where(a > _LARGE, a, _LARGE)
    small = f.where(a > _LARGE, 1.0, a)
    series = (0.5 + f.polynomial(1.0 / (large * large), _PSI_SERIES) / large) / large
    return f.where(a > _LARGE, series, f.call("log", small) - f.call("digamma", small))


def _deviance(f: FormulaArithmetic, x: Any, m: Any) -> Any:
    """``x / m - 1 - log(x / m)`` without cancellation, for positive numbers: the logarithm is 2 atanh (DLMF 4.6.2)."""
    r = (x - m) / (x + m)
    square = r * r
    series = f.polynomial(square, [1 / (2 * n + 3) for n in range(14)])
    near = square < 0.05
    ratio = f.where(near, 1.0, x / m)
    return f.where(near, r * ((x - m) / m - 2.0 * square * series), ratio - 1.0 - f.call("log", ratio))


def _exp_rest(f: FormulaArithmetic, x: Any) -> Any:
    """``exp(x) - 1 - x`` without cancellation."""
    near = (x < 0.6) & (x > -0.6)
    return f.where(near, x * x * f.polynomial(x, _EXP_SERIES), f.call("expm1", x) - x)


# --- incomplete gamma function -------------------------------------------------------------------------------


def gamma_density(f: FormulaArithmetic, a: Any, x: Any) -> Any:
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


def _drop_gamma(f: FormulaArithmetic, a: Any, x: Any, sign: Any, rate: Any) -> Any:
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


def _gamma_far(f: FormulaArithmetic, a: Any, x: Any, order: int, when: Any) -> Any:
    """`_gamma_quantile_slope` for ``x > 1.5``: the integral over the side on which it does not change sign.

    With ``t = x exp(s)`` above (and ``x exp(-s)`` below), it is x times the integral of ``s + c`` (of ``s - c``), where
    ``c = log(x) - digamma(a)``, weighted with a log-concave function of `s` that is 1 at 0.
    """
    near = (x < 1.5 * a) & (x > 0.5 * a)
    ratio = f.where(near, f.call("log1p", (x - a) / a), f.call("log", x) - f.call("log", a))
    c = ratio + _log_less_digamma(f, a)
    sign = f.where(c > 0.0, 1.0, -1.0)
    rate = (x - a) * sign
    end = _drop_gamma(f, a, x, sign, rate)
    width = f.call("trigamma", a) if order else None

    def terms(u: Any, w: Any) -> list[Any]:
        s = end * u
        weight = w * f.call("exp", -(rate * s + x * _exp_rest(f, sign * s)))
        return [weight * (s + sign * c if order == 0 else sign * (s * s - width) + c * s)]

    (total,) = f.sums((NODES, WEIGHTS), terms, when)
    return f.where(x > 1e150, c, x * end * total)


def _gamma_near(f: FormulaArithmetic, a: Any, x: Any, order: int, when: Any) -> Any:
    """`_gamma_quantile_slope` for ``x <= 1.5``: the integral from 0 to x, of which the leading term is subtracted.

    So nothing cancels as `a` vanishes, where the result grows as 1 / a.
    """
    end = DROP / (a + 1.0)

    def terms(u: Any, w: Any) -> list[Any]:
        s = end * u
        g = w * f.call("exp", -(a * s)) * f.call("expm1", -(x * f.call("exp", -s)))
        return [g, g * s, g * s * s][: order + 2]

    first, second, *third = [end * t for t in f.sums((NODES, WEIGHTS), terms, when)]
    gap = f.call("digamma", a + 1.0) - f.call("log", x)
    unit = 1.0 / a
    if order == 0:
        total = gap * (unit + first) - first * unit + second
    else:
        total = f.call("trigamma", a + 1.0) * (unit + first) - gap * (unit * unit + second)
        total = total + second * unit + first * unit * unit - third[0]
    return x * f.call("exp", x) * total


def _gamma_quantile_slope(f: FormulaArithmetic, a: Any, x: Any, order: int) -> Any:
    """The derivative of order ``order + 1`` in `a` of the quantile `x` at a fixed probability, or of its first one.

    The first is minus the derivative of the incomplete gamma function P(a, x) in `a` over the density: the integral of
    ``(digamma(a) - log(t)) (t / x)**(a - 1) exp(x - t)`` from 0 to x, or of its negative from x to infinity (DLMF
    8.2.4, differentiated under the integral). `order` 1 gives its partial derivative in `a`.
    """
    given, a = a, f.where(a > 0.0, a, 1.0)
    near = x <= 1.5
    close = _gamma_near(f, a, f.where(near, x, 1.0), order, near)
    far = _gamma_far(f, f.where(near, 2.0, a), f.where(near, 2.0, x), order, x > 1.5)
    out = f.where(near, close, far)
    out = f.where(f.equal(x, 0.0), 0.0, f.where(f.equal(x, math.inf), x, out))
    return f.where(given > 0.0, f.where(x >= 0.0, out, math.nan), math.nan)


def gamma_quantile_slope(f: FormulaArithmetic, a: Any, x: Any) -> Any:
    """See `_gamma_quantile_slope`."""
    return _gamma_quantile_slope(f, a, x, 0)


def gamma_quantile_bend(f: FormulaArithmetic, a: Any, x: Any) -> Any:
    """The partial derivative in `a` of `gamma_quantile_slope`."""
    return _gamma_quantile_slope(f, a, x, 1)


#: Keyed by their names in `core.scalar_functions.FUNCTIONS`.
FORMULAS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (gamma_density, gamma_quantile_slope, gamma_quantile_bend)
}
