"""The formulas of a distribution that follow from others: complements, logarithms, exponentials.

Each is chosen so that it is accurate in the tails, and so that its derivative is finite where its value is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...api.derivatives import jvp
from ...core.values import ArrayLike, Value
from ...custom.custom_function import custom_jvp
from ...custom_derivatives import SymbolicZero
from ...primitives import ops

Formula = Callable[..., Any]


def where(condition: ArrayLike, x: Any, y: ArrayLike) -> Any:
    """`numpy.where`; `x` itself if the condition is known to hold."""
    if isinstance(condition, bool | np.bool_) and condition:
        return x
    return np.where(condition, x, y)


def together(*operands: Value) -> list[Value]:
    """The operands, broadcast to one shape."""
    shape = ops.broadcast_shapes("broadcast", *map(ops.shape_of, operands))
    return [ops.broadcast_to(x, shape) for x in operands]


def every(*conditions: ArrayLike) -> Value:
    """Whether all hold, element by element."""
    result: Any = True
    for condition in conditions:
        result = condition if result is True else result & condition
    return result


def log1mexp(x: Value) -> Value:
    """``log(1 - exp(x))`` for ``x < 0``: Maechler (2012), "Accurately computing log(1 - exp(-|a|))"."""
    near = x > -math.log(2)
    return np.where(
        near, np.log(-np.expm1(np.where(near, x, -0.5))), np.log1p(-np.exp(np.where(near, -1.0, x)))
    )


def log1mexpexp(x: Value) -> Value:
    """``log(1 - exp(-exp(x)))``."""
    tiny, huge = x < -37.0, x > 7.0  # where the value is x, and 0
    return np.where(tiny, x, np.where(huge, 0.0, log1mexp(-np.exp(np.where(tiny | huge, 0.0, x)))))


def _guarded(log: Formula, inside: Formula, then: Formula, dead: float) -> Formula:
    """``then(log(x))``, and the constant `dead` where the logarithm is ``-inf``.

    There the logarithm may have an infinite derivative, and the product with the derivative of `then`, 0, would be NaN.
    """

    def formula(x: Value, *shapes: ArrayLike) -> Value:
        value = log(*map(ops.stop_gradient_p.bind, (x, *shapes)))
        lost = value == -math.inf
        return np.where(lost, dead, then(log(np.where(lost, inside(*shapes), x), *shapes)))

    return formula


def log_of_probability(small: Formula, large: Formula) -> Formula:
    """The logarithm of a probability, from its formula and that of its complement."""

    def formula(x: Value, *shapes: ArrayLike) -> Value:
        p, rest = small(x, *shapes), large(x, *shapes)
        low, lost = p < 0.5, p == 0
        log = np.where(lost, -math.inf, np.log(np.where(low & ~lost, p, 0.5)))
        return np.where(low, log, np.log1p(-np.where(low, 0.5, rest)))

    return formula


def _moved(tangents: Sequence[Any]) -> bool:
    """Whether a tangent is not known to be zero."""
    return any(not isinstance(t, SymbolicZero) for t in tangents)


def _along(f: Formula, x: Value, shapes: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The tangent of ``f(x, *shapes)`` for fixed `x`."""
    dense = [np.zeros_like(a) if isinstance(t, SymbolicZero) else t for a, t in zip(shapes, tangents)]
    return jvp(lambda *a: f(x, *a), tuple(shapes), tuple(dense))[1]


def with_density(f: Formula, logpdf: Formula, sign: float = 1.0, smooth: Formula | None = None) -> Formula:
    """A formula `f` of `cdf` (of `sf`, for `sign` -1), whose derivative in `x` is the density.

    For formulas that are not differentiable at all points `x`. Nor are they in the parameters, if there is `smooth`:
    another formula that is.
    """
    ruled = custom_jvp(f)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, *shapes), (moved, *rest) = primals, tangents
        tangent = _along(smooth or f, x, shapes, rest) if _moved(rest) else 0.0
        if _moved([moved]):
            tangent = tangent + moved * (sign * np.exp(logpdf(x, *shapes)))
        return ruled(x, *shapes), tangent

    ruled.defjvp(rule, symbolic_zeros=True)
    return ruled


def inverse(f: Formula, of: Formula, logpdf: Formula, sign: float = 1.0) -> Formula:
    """A formula `f` of `ppf` (of `isf`, for `sign` -1), with the derivative of the inverse of `of`.

    ``of(x, *shapes) = q`` implies ``density dx = dq - d(of)``, where the last term is for fixed `x`.
    """
    ruled = custom_jvp(f)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (q, *shapes), (moved, *rest) = primals, tangents
        x = ruled(q, *shapes)
        tangent = -_along(of, x, shapes, rest) if _moved(rest) else 0.0
        tangent = tangent + moved if _moved([moved]) else tangent
        return x, tangent * (sign * np.exp(-logpdf(x, *shapes)))

    ruled.defjvp(rule, symbolic_zeros=True)
    return ruled


def _symmetric_log_of(cdf: Formula) -> Formula:
    """The logarithm of a distribution function that is that of ``-x``, too: from the smaller tail."""

    def formula(x: Value, *shapes: ArrayLike) -> Value:
        left = x < 0
        tail = cdf(np.where(left, x, -x), *shapes)
        lost = tail == 0
        log = np.where(lost, -math.inf, np.log(np.where(lost, 0.5, tail)))
        return np.where(left, log, np.log1p(-tail))

    return formula


_COMPLEMENTS = (("cdf", "sf"), ("sf", "cdf"))


def complete(
    given: dict[str, Formula], inside: Formula, *, symmetric: bool = False, guarded: bool = False
) -> dict[str, Formula]:
    """All formulas that follow from some.

    Parameters
    ----------
    given : dict
        `logpdf` or `logpmf`, and some of `cdf`, `sf`, `logcdf`, `logsf`, `ppf`, `isf`.
    inside : callable
        ``inside(*shapes)``, a point within the support.
    symmetric : bool
        Whether ``-x`` has the same distribution.
    guarded : bool
        Whether `logpdf` may be ``-inf``, with an infinite derivative.
    """
    f = dict(given)
    if guarded:
        f["logpdf"] = _guarded(given["logpdf"], inside, lambda x: x, -math.inf)
    for density in ("pdf", "pmf"):
        if f"log{density}" in f and density not in f:
            f[density] = _guarded(given[f"log{density}"], inside, np.exp, 0.0)
    if symmetric and "logcdf" not in f and "cdf" in f:
        f["logcdf"] = _symmetric_log_of(f["cdf"])
    for p, rest in _COMPLEMENTS if symmetric else ():
        for name, other in ((p, rest), (f"log{p}", f"log{rest}")):
            if other in f and name not in f:
                f[name] = _mirrored(f[other])
    if symmetric and "ppf" in f:
        f["isf"] = lambda q, *shapes: -f["ppf"](q, *shapes)
    for p in ("cdf", "sf"):
        if p not in f and f"log{p}" in f:
            f[p] = _guarded(f[f"log{p}"], inside, np.exp, 0.0)
    for p, rest in _COMPLEMENTS:
        if p not in f and f"log{rest}" in f:
            f[p] = _guarded(f[f"log{rest}"], inside, lambda x: -np.expm1(x), 1.0)
        elif p not in f and rest in f:
            f[p] = _complement(f[rest])
    for p, rest in _COMPLEMENTS:
        if f"log{p}" not in f and f"log{rest}" in given and p not in given:
            f[f"log{p}"] = _guarded(f[f"log{rest}"], inside, log1mexp, 0.0)
        elif f"log{p}" not in f and p in f:
            f[f"log{p}"] = log_of_probability(f[p], f[rest])
    for name, other in (("ppf", "isf"), ("isf", "ppf")):
        if name not in f and other in f:
            f[name] = _from_complement(f[other])
    return f


def _mirrored(formula: Formula) -> Formula:
    return lambda x, *shapes: formula(-x, *shapes)


def _complement(formula: Formula) -> Formula:
    return lambda x, *shapes: 1.0 - formula(x, *shapes)


def _from_complement(formula: Formula) -> Formula:
    return lambda q, *shapes: formula(1.0 - q, *shapes)
